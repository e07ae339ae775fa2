// splitmix64 and order statistics.
#include "bench/stats.h"

#include <math.h>
#include <stdlib.h>

uint64_t random_next(Random *random) {
  uint64_t mixed = random->state += 0x9E3779B97F4A7C15u;
  mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9u;
  mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBu;
  return mixed ^ mixed >> 31;
}

int random_below(Random *random, int limit) {
  return (int)(random_next(random) % (uint64_t)limit);
}

// In (0, 1].
static double random_unit(Random *random) {
  return ((double)(random_next(random) >> 11) + 1) * 0x1p-53;
}

double random_normal(Random *random) {
  double radius = sqrt(-2 * log(random_unit(random)));
  return radius * cos(6.283185307179586 * random_unit(random));
}

void random_shuffle(Random *random, int *order, int count) {
  for (int i = count - 1; i > 0; i--) {
    int j = random_below(random, i + 1), kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double stats_quantile(const double *sorted, int count, double at) {
  double place = at * (count - 1);
  int below = (int)place;
  if (below >= count - 1) return sorted[count - 1];
  return sorted[below] + (place - below) * (sorted[below + 1] - sorted[below]);
}

Spread stats_spread(double *values, int count) {
  if (count < 1) return (Spread){0, 0, 0};
  qsort(values, (size_t)count, sizeof *values, compare);
  return (Spread){stats_quantile(values, count, 0.25), stats_quantile(values, count, 0.5),
                  stats_quantile(values, count, 0.75)};
}

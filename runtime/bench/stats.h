// Numbers of a measurement: medians and quartiles, and the random numbers that shuffle and fill.
#ifndef TILE_BENCH_STATS_H
#define TILE_BENCH_STATS_H

#include <stdint.h>

// A seeded sequence; the same seed gives the same numbers everywhere.
typedef struct {
  uint64_t state;
} Random;

uint64_t random_next(Random *random);
// From 0 to limit - 1; limit is at least 1.
int random_below(Random *random, int limit);
// Mean 0, deviation 1.
double random_normal(Random *random);
// Puts `count` numbers into an order that is equally likely to be any.
void random_shuffle(Random *random, int *order, int count);

// First quartile, median and third quartile.
typedef struct {
  double low, median, high;
} Spread;

// Sorts the values; zeros when there are none.
Spread stats_spread(double *values, int count);
// Of sorted values, at 0 <= at <= 1, linear between two of them.
double stats_quantile(const double *sorted, int count, double at);

#endif

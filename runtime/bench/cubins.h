// A folder of compiled candidates: numbered cubins, and an index that says which settings each has.
#ifndef TILE_BENCH_CUBINS_H
#define TILE_BENCH_CUBINS_H

#include "bench/candidates.h"

typedef struct {
  int count;
  int *numbers;
  char **settings;  // a Candidate's text
} Cubins;

void cubins_path(const char *folder, int number, char *out, size_t size);
// Lists the candidates that `compiled` marks.
TileError *cubins_write(const char *folder, const Candidates *candidates, const bool *compiled);
TileError *cubins_read(const char *folder, Cubins *out);
void cubins_free(Cubins *cubins);
// The number of the cubin with these settings, or -1.
int cubins_find(const Cubins *cubins, const char *settings);

#endif

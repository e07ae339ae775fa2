// tilec as processes: several at once, each with its complaints kept.
#ifndef TILE_BENCH_COMPILE_H
#define TILE_BENCH_COMPILE_H

#include <stdbool.h>

#include "tile.h"

// One compilation. `argv` ends with NULL and starts with the program's path.
typedef struct {
  char **argv;
  int status;      // its exit status; -1: it did not start, or ended by a signal
  char *messages;  // what it said; the caller's to free; NULL: nothing, or no memory
} CompileJob;

// Runs all, at most `parallel` at a time, and waits for them. What single jobs failed at is in the jobs.
TileError *compile_run(CompileJob *jobs, int count, int parallel);

#endif

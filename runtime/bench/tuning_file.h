// Files of settings that were measured to be best (docs/tuning.md), as lines: tilec reads them strictly, here they are
// only looked up and replaced.
#ifndef TILE_BENCH_TUNING_FILE_H
#define TILE_BENCH_TUNING_FILE_H

#include "bench/problem.h"

typedef struct {
  char **lines;  // entries, without newline
  int count;
} TuningLines;

// A file that is not there gives no lines when it may be `missing`. TILE_INVALID: unreadable, or not of version 1.
TileError *tuning_lines_read(const char *path, bool missing, TuningLines *out);
// Writes all entries, sorted by kernel, target and sizes as numbers; the file is whole or untouched.
TileError *tuning_lines_write(TuningLines *lines, const char *path);
void tuning_lines_free(TuningLines *lines);

// "gemm sm_90a M=4096 N=4096 K=4096", what an entry is known by.
void tuning_key(const char *kernel, const char *arch, const Problem *problem, Sizes sizes, char *out,
                size_t size);
// Puts an entry in, in place of the one with this key. False without memory.
bool tuning_lines_put(TuningLines *lines, const char *key, const char *settings, double tflops,
                      const char *gpu);
// The settings of the entry with this key ("block_M=128 -O3"), to be freed; NULL when there is none.
char *tuning_lines_find(const TuningLines *lines, const char *key);

#endif

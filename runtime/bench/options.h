// tile-bench's command line.
#ifndef TILE_BENCH_OPTIONS_H
#define TILE_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/problem.h"
#include "core/tool_flags.h"

enum { BENCH_MOST_FILES = 16, BENCH_MOST_SIZES = 64 };

typedef struct {
  const char *files[BENCH_MOST_FILES];
  int nfiles;
  const char *kernel, *arch, *optimise;  // for tilec; NULL: not given
  const char *layout;                    // NULL: found
  ToolPairs defines;                     // for tilec
  ToolPairs fills;                       // constants of other tensors and scalars
  Sizes *sizes;                          // NULL: the kernel's own, or a list of cubes
  int nsizes;
  bool fix_sizes;  // compile for each size
  bool peer;       // compare with cublasLt
  const char *cublaslt;
  int heuristics;                 // algorithms of the peer to try
  int repeat;                     // 0: by time
  double seconds, warmup, slice;  // of a measurement, before it, of one graph
  bool zeros;                     // measure with zeros too
  uint64_t seed;
  const char *json, *svg;     // files to write
  const char *tune, *tuning;  // a specification; the file of what was found
  const char *cubins;         // a folder of candidates
  bool compile_only;
  int jobs;  // processes at once
  bool help, version;
} BenchOptions;

// False: printed what is wrong. What is to be freed, bench_options_free does.
bool bench_options_parse(int argc, char **argv, BenchOptions *out);
void bench_options_free(BenchOptions *options);
void bench_options_help(void);

#endif

// Tries candidates for a kernel, size by size, and records the best.
#ifndef TILE_BENCH_TUNE_H
#define TILE_BENCH_TUNE_H

#include "bench/candidates.h"
#include "bench/trial.h"

// What a tuning works with.
typedef struct {
  const BenchOptions *options;
  Candidates candidates;
  char folder[PATH_MAX - 32];  // where the cubins are
  bool temporary;              // the folder goes with the tuner
  bool *compiled;              // one for each candidate
  Subject *subjects;           // of those that are compiled
} Tuner;

// Reads the specification and compiles the candidates, or finds them in --cubins; prints what does not compile, and why.
// The GPU may be NULL, when nothing is measured.
TileError *tune_open(const BenchOptions *options, const Gpu *gpu, Tuner *out);
// The first that is compiled.
const Subject *tune_subject(const Tuner *tuner);
// Measures, prints, writes --tuning. TILE_FINDING: a candidate computes something else.
TileError *tune_run(Tuner *tuner, const Bench *bench);
void tune_close(Tuner *tuner);

#endif

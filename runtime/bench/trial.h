// One size: buffers, the check that all arms compute the same, and their times. What came out is a Row.
#ifndef TILE_BENCH_TRIAL_H
#define TILE_BENCH_TRIAL_H

#include "bench/cublaslt.h"
#include "bench/measure.h"
#include "bench/subject.h"

enum { TRIAL_MOST_ARMS = BENCH_MOST_FILES + 1 };

// An arm's times for one kind of data.
typedef struct {
  Spread seconds;  // of one launch
  Spread ratio;    // the peer's time over this one's, repetition by repetition; zeros without a peer
  double flops;    // a second, of the median
} Timing;

typedef struct {
  char name[64];
  bool is_peer;
  char detail[40];   // of the peer: which algorithm
  GraphNodes nodes;  // of its graph
  Timing random, zeros;
  double of_peak;        // of the tensor cores at their highest clock; 0: unknown
  double of_peak_clock;  // and at the clock that was measured
} ArmResult;

typedef struct {
  Sizes sizes;
  int narms;
  ArmResult arms[TRIAL_MOST_ARMS];
  bool has_peer, has_zeros;
  double difference;  // relative, the worst of any arm from the peer, or from the samples without one
  int sets, launches, repetitions;
  MonitorSummary monitor, monitor_zeros;
} Row;

typedef struct {
  const BenchOptions *options;
  const Gpu *gpu;
  Monitor *monitor;
  TileDevice *device;
  const CublasLt *lt;  // NULL: no peer
} Bench;

// Measures the subjects, which compute the same product, at these sizes. TILE_FINDING: one computes it wrong.
TileError *trial_run(const Bench *bench, Subject *const *subjects, int nsubjects, Sizes sizes, Row *out);

// Median seconds of each subject in a short measurement of all, without a peer and without a look at results; 0 for one
// that cannot run at these sizes.
TileError *trial_rank(const Bench *bench, Subject *const *subjects, int nsubjects, Sizes sizes,
                      double *seconds);

#endif

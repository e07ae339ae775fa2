// Times several arms (ways to do the same work) against one another: each a graph of many launches, replayed in an
// order that is shuffled in every repetition, so that clocks and power treat them alike.
#ifndef TILE_BENCH_MEASURE_H
#define TILE_BENCH_MEASURE_H

#include "bench/graph_nodes.h"
#include "bench/monitor.h"

typedef struct {
  const char *name;
  // Puts one launch that works on buffer set `set` into the stream.
  TileError *(*launch)(void *context, int set, CudaStream stream);
  void *context;
  CudaGraphExec graph;
  GraphNodes nodes;  // what the graph consists of
  double *seconds;   // of one launch, one for each repetition
  int count;         // of them
} Arm;

typedef struct {
  const Gpu *gpu;
  Monitor *monitor;
  Random *random;
  Arm *arms;
  int narms;
  int sets;      // of buffers, over which the launches of a graph rotate
  int launches;  // in each graph; a multiple of sets
} Measurement;

// Runs every arm once, and builds graphs that take about `slice` seconds each.
TileError *measure_prepare(Measurement *measurement, double slice);
// Replays shuffled repetitions for so many seconds and throws the times away.
TileError *measure_warm(Measurement *measurement, double seconds);
// Times `repetitions`; or, when it is 0, as many as take `seconds`, at least 20. Earlier times are dropped.
TileError *measure_run(Measurement *measurement, int repetitions, double seconds);
// Frees graphs and times, not the arms.
void measure_free(Measurement *measurement);

// The ratio of two arms' times, repetition by repetition. False without memory.
bool measure_ratio(const Arm *over, const Arm *under, Spread *out);
// Sorts a copy.
bool measure_spread(const Arm *arm, Spread *out);

#endif

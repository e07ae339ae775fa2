// Clusters of a launch spread over the host's cores.
#ifndef PTXEMU_WORKERS_H
#define PTXEMU_WORKERS_H

#include "machine.h"

typedef struct {
  Fault fault;           // of the cluster with the lowest number that had one
  const char *findings;  // texts of all findings in order of clusters; NULL: none
  const char *output;    // of vprintf
  uint64_t steps, lane_steps;
  const char *stats, *dump,
      *trace;  // what the launch's Watch asks for; NULL: not asked for, or nothing to show
  size_t trace_bytes;
  uint64_t trace_cut;
  bool out_of_memory;
} LaunchOutcome;

// Runs the launch to its end; texts are in `arena`. Kernels that share flags or atomics in global memory,
// print, or steal clusters run on one worker, in one deterministic interleaving; results and reports don't
// depend on the number of workers. `workers`: at most so many threads; 0: one a core.
LaunchOutcome launch_on_workers(Arena *arena, Gmem *gmem, const Launch *launch, uint32_t checks,
                                uint32_t workers);

#endif

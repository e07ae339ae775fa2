// Counts of a launch, --stats. Each worker counts for itself; sums do not depend on how many there are.
#ifndef PTXEMU_TRACE_STATS_H
#define PTXEMU_TRACE_STATS_H

#include "exec/observer.h"
#include "trace/inst_kind.h"

typedef enum { MMA_TCGEN05, MMA_WGMMA, MMA_SYNC, MMA_FAMILY_COUNT } MmaFamily;

// Kinds of waits as a reader of PTX knows them.
typedef enum {
  STAT_WAIT_MBARRIER,
  STAT_WAIT_BARRIER,
  STAT_WAIT_CLUSTER,
  STAT_WAIT_GROUP,  // cp.async, bulk and wgmma groups, tcgen05.wait
  STAT_WAIT_TMEM,   // tcgen05.alloc without room, the pair's other CTA
  STAT_WAIT_LANES,  // lanes of the warp that are elsewhere
  STAT_WAIT_COUNT,
} StatWait;

typedef struct {
  uint64_t count, bytes;
} Transfers;

typedef struct Counters {
  uint64_t issued[KIND_COUNT];  // warp instructions
  uint64_t mma[MMA_FAMILY_COUNT], flop[MMA_FAMILY_COUNT];
  Transfers tma_in, tma_out, cp_async;  // operations, bytes written to the other side
  uint64_t reached[STAT_WAIT_COUNT];    // a warp (a part of it) came to a wait
  uint64_t blocked[STAT_WAIT_COUNT];    // and had to stand still
  uint64_t polls;                       // test_wait, nanosleep and the like, that found nothing
  uint64_t arrivals, phases, barriers,
      clusters_in;  // mbarrier arrivals and completed phases; warps at barriers
  uint64_t fences;
} Counters;

extern const Observer stats_observer;

void counters_add(Counters *into, const Counters *from);
// The text of --stats: one figure a line.
const char *counters_text(Arena *arena, const Counters *counters, uint64_t ctas, uint64_t steps,
                          uint64_t lane_steps);

#endif

// Asynchronous operations: TMA, bulk copies, cp.async, tcgen05.mma/cp/commit, wgmma, try_cancel. An
// instruction's handler makes an EngineOp and queues it; the engine completes it when the launch's order
// says:
//   fair    promptly: after some steps of the scheduler, in issue order of each queue;
//   lazy    only when a lane waits for something that it would satisfy, or nothing else can run;
//   random  after a random number of steps (cluster->rng), queues independent of each other.
// A queue is (CTA, engine, issuing thread); operations of one queue complete in order. The async half
// implements this file; the scheduler calls the functions below and knows nothing else of it.
#ifndef PTXEMU_ASYNC_ENGINE_H
#define PTXEMU_ASYNC_ENGINE_H

#include "machine.h"

typedef enum {
  ENGINE_TMA_LOAD,
  ENGINE_TMA_STORE,
  ENGINE_CP_ASYNC,
  ENGINE_TENSOR,
  ENGINE_OTHER,
  ENGINE_COUNT
} EngineKind;

typedef struct EngineOp EngineOp;
struct EngineOp {
  bool (*complete)(Machine *machine, EngineOp *op);  // does the work; false after machine_fault_at
  Origin origin;
  EngineKind engine;
  EngineOp *next;
  uint64_t issued;            // machine->steps
  bool again;                 // set by complete(): one stage is done, the operation stays in its queue
  void *buffer;               // malloc-ed, freed with the operation
  struct AsyncGroup *groups;  // counters that the operation belongs to, one a lane of group_lanes; NULL: none
  uint32_t group_lanes;
  Cta *barrier_cta;        // the mbarrier it will arrive at (for lazy order and the hang report); NULL: none
  uint32_t barrier;        // offset
  void *check;             // observers'
  uint32_t barrier_ranks;  // CTAs of the cluster that get the same signal; 0: barrier_cta alone
  // the family's own fields follow, by embedding this struct first
};

// Takes ownership of a malloc-ed op; freed after complete().
void engine_queue(Machine *machine, EngineOp *op);

// Machine life cycle. false: no memory.
bool engine_begin(Machine *machine);
void engine_end(Machine *machine);
// CTA life cycle: sets cta->async. engine_cta_end comes when all warps have exited: it completes what is
// still in flight (in the order's own way: hardware lets stores finish) and reports what must not be in
// flight; false after a fault.
bool engine_cta_begin(Machine *machine, Cta *cta);
bool engine_cta_end(Machine *machine, Cta *cta);
// When all CTAs of the cluster have ended: gives their memory back.
void engine_cluster_end(Machine *machine, Cluster *cluster);

// Called once per scheduler round and resident cluster (a round runs each runnable warp for a slice): may
// complete some operations. false after a fault.
bool engine_step(Machine *machine, Cluster *cluster);
// Called when a group begins to wait (lazy: complete what it waits for, sooner or later).
bool engine_demand(Machine *machine, Warp *warp, const Wait *wait);
// Called when no warp of the cluster can run: completes at least one operation if any is pending. *any says
// so. false after a fault.
bool engine_idle(Machine *machine, Cluster *cluster, bool *any);

// ---- mbarriers, for the hang report (async/mbarrier.c)

typedef struct {
  bool valid;
  uint32_t phase;     // parity of the current, incomplete phase
  uint32_t expected;  // arrivals per phase
  uint32_t pending;   // arrivals still missing
  int64_t tx;         // bytes announced and not yet arrived
} MbarrierState;

MbarrierState mbarrier_decode(uint64_t word);
// Text on pending operations of a CTA that would arrive at this mbarrier ("TMA load issued at line 97, in
// flight"), or NULL.
const char *engine_describe_pending(Machine *machine, const Cta *cta, uint64_t address);

#endif

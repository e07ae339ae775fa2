// What the asynchronous families share: the state that hangs off a CTA, group counters, and small helpers.
#ifndef PTXEMU_ASYNC_ASYNC_INTERNAL_H
#define PTXEMU_ASYNC_ASYNC_INTERNAL_H

#include "async/engine.h"
#include "machine.h"
#include "mem/tmem.h"
#include "num/accumulate.h"

// Operations and groups of one issuer (thread or warp). Its operations complete in order, so counters are
// enough: a group is complete when as many operations are done as had been issued at its commit.
enum { GROUP_MARKS = 32 };
typedef struct AsyncGroup {
  uint32_t issued, read, done;  // operations: started, source read, complete
  uint32_t committed;           // groups
  uint32_t mark[GROUP_MARKS];   // `issued` at the latest commits, ring by group number
} AsyncGroup;

typedef struct {
  EngineKind engine;
  int issuer;
  EngineOp *head, *tail;
} AsyncQueue;

// A pair's meeting for tcgen05.alloc.cta_group::2.
typedef enum { PAIR_NONE, PAIR_WAITING, PAIR_GRANTED } PairState;

typedef struct CtaAsync CtaAsync;
struct CtaAsync {
  CtaAsync *next;  // of the machine; freed when the whole cluster has ended
  const Cta *cta;
  AsyncQueue *queues;  // a queue once made stays
  int nqueues, queue_cap;
  AsyncGroup *copies, *bulks;        // per thread: cp.async, bulk stores
  AsyncGroup *wgmmas, *tmem_stores;  // per warp
  Tmem tmem;
  int cta_group;  // the one that this CTA's tcgen05 instructions use, 0: none yet
  PairState pair;
  uint32_t pair_columns;
  int pair_first;
  bool ended;
};

static inline CtaAsync *cta_async(const Cta *cta) {
  return cta->async;
}

// Scratch of a machine: too large for the stack, used within one complete().
typedef struct {
  NumTile a, b;
  NumGroupScales scale_a, scale_b;
  uint32_t d[256 * 256];
  int16_t int_a[256 * 64], int_b[256 * 64];
  float e4m3[256], e5m2[256], e2m3[64], e3m2[64], e2m1[16];  // values of all codes
} Scratch;

Scratch *engine_scratch(Machine *machine);

// An operation of `bytes` (its struct embeds EngineOp first), zeroed; NULL after reporting that there is no
// memory. lane -1: the issuer is the warp, not a thread.
void *engine_op_new(Machine *machine, const Warp *warp, int lane, EngineKind engine, size_t bytes,
                    bool (*complete)(Machine *, EngineOp *));
void engine_event(Machine *machine, const EngineOp *op, EventKind kind, const Cta *cta, Space space,
                  uint64_t address, uint64_t bytes);
void engine_tmem_event(Machine *machine, const EngineOp *op, EventKind kind, const Cta *cta, uint32_t address,
                       int columns, uint32_t bands);

// ---- groups (engine.c)

void group_commit(AsyncGroup *group);
// Whether at most `allowed` groups are incomplete (`read`: have not read their source).
bool group_reached(const AsyncGroup *group, uint32_t allowed, bool read);
// Blocks the lanes for which more groups are pending. `groups`: of lane 0 of the warp, or (per_warp) the
// warp's own.
ExecResult group_wait(Machine *machine, Warp *warp, uint32_t lanes, AsyncGroup *groups, bool per_warp,
                      uint32_t allowed, bool read, const char *what);

// ---- shared memory

// Host address of bytes in a CTA's shared memory by offset, or NULL after reporting the fault for the op.
uint8_t *async_shared(Machine *machine, const Origin *origin, const Cta *cta, uint64_t offset, uint64_t bytes,
                      const char *what);
// The CTA and offset that a 32-bit shared or generic address names; NULL after reporting. `align` in bytes.
Cta *async_shared_target(Machine *machine, Warp *warp, int lane, uint64_t address, uint32_t align,
                         const char *what, uint32_t *offset);
// The pair's other CTA, or NULL when the cluster has none.
Cta *cta_pair_peer(const Cta *cta);

// ---- tcgen05 (tcgen05_alloc.c)

// The .cta_group of the instruction, 1 or 2; 0 after reporting that the CTA's instructions differ in it, or
// that the cluster has no pairs.
int tcgen05_group(Machine *machine, const Warp *warp, int lane, const Inst *inst);
// True when the columns are allocated in the CTA; otherwise the fault is reported.
bool tcgen05_columns(Machine *machine, const Origin *origin, const Cta *cta, int first, int count,
                     const char *what);

// ---- mbarriers (mbarrier.c); all return false after reporting a fault for the origin

bool mbarrier_arrive(Machine *machine, const Origin *origin, Cta *cta, uint32_t offset, uint32_t count);
// The later arrive of a cp.async.mbarrier.arrive without .noinc must not count: it adds to the phase first.
bool mbarrier_add_pending(Machine *machine, const Origin *origin, Cta *cta, uint32_t offset);
bool mbarrier_complete_tx(Machine *machine, const Origin *origin, Cta *cta, uint32_t offset, uint64_t bytes);

#endif

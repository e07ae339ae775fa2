// The machine while it runs: Grid, Cluster, Cta, Warp, and what instruction handlers may do with them.
//
// One Machine is one worker: it executes clusters of a launch, one after another or a bounded number side by
// side. Everything that changes during execution hangs off the Machine, its clusters, CTAs and warps; only
// global memory is shared between workers.
//
// A warp's 32 lanes are independent threads. Lanes with the same program counter form a LaneGroup and execute
// together; a group is runnable or waits for a Wait. A handler gets the lanes of one group whose guard holds.
// It may
//   - return EXEC_NEXT: the whole group goes on;
//   - call warp_block(): `blocked` lanes stay at this instruction until wait.ready() holds and then execute
//   it AGAIN (so a handler
//     tests its condition, and blocks when it fails); `again` lanes execute it again at once; the rest of the
//     group goes on;
//   - call machine_fault() and return its EXEC_FAULT.
// An instruction that must not be done twice (a barrier's arrival) looks at groups[current].resumed when it
// is executed again. The scheduler polls ready(), which therefore must be cheap and must change nothing.
//
// Who owns what. Warp half: this file, sched.c, warp.c, space.c, named and cluster barriers, hang.c. Async
// half: everything in async/ and mem/{gmem,smem,tmem}; it keeps per-CTA state behind cta->async (engine
// queues, bulk groups, TMEM and its allocator) and per-machine state behind machine->engine. See
// async/engine.h for the calls that the scheduler makes.
#ifndef PTXEMU_MACHINE_H
#define PTXEMU_MACHINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/text.h"
#include "event.h"
#include "mem/gmem.h"
#include "mem/space.h"
#include "ptx/inst.h"
#include "ptx/module.h"

#define WARP_LANES 32
#define NAMED_BARRIERS 16
#define CALL_DEPTH 24

typedef struct Cluster Cluster;
typedef struct Wait Wait;

typedef enum { ORDER_FAIR, ORDER_LAZY, ORDER_RANDOM } OrderKind;

typedef enum {
  WAIT_NONE,
  WAIT_LANES,       // siblings of the warp: lanes = who must come
  WAIT_BARRIER,     // named barrier `number`, until its generation differs from `count`
  WAIT_CLUSTER,     // barrier.cluster.wait
  WAIT_MBARRIER,    // phase with parity `number` of the mbarrier at shared address `address` of `cta`
  WAIT_GROUP,       // cp.async, bulk or wgmma groups: at most `number` may be left
  WAIT_TMEM_ALLOC,  // `number` columns
  WAIT_PEER,        // the pair's other CTA (cta_group::2)
  WAIT_TURN,        // nanosleep, polling: ready at once
  WAIT_OTHER,
} WaitKind;

struct Wait {
  WaitKind kind;
  bool (*ready)(Machine *machine, Warp *warp, const Wait *wait);  // cheap, without effect
  bool timed_out;    // of a try_wait: execute it again, it may say "not yet"
  const char *what;  // a few words for the hang report: "cp.async.wait_group 0"
  Cta *cta;
  uint64_t address;
  uint32_t number;
  uint32_t count;
  uint32_t lanes;
  void *data;  // the family's own
};

typedef struct {
  uint32_t pc;
  uint32_t lanes;
  Wait wait;       // kind WAIT_NONE: runnable
  bool resumed;    // it has just stopped waiting: wait still says for what; cleared after this execution
  uint64_t since;  // machine->steps when it began to wait, or last ran
} LaneGroup;

typedef struct {
  uint8_t depth;
  uint32_t pc[CALL_DEPTH];
} CallStack;

struct Warp {
  uint8_t *bank[BANK_COUNT];  // register file of this warp; constants of the module
  Cta *cta;
  int index;             // warp of the CTA: %tid / 32
  uint32_t live;         // lanes that exist and have not exited
  uint32_t all;          // lanes that exist
  int ngroups, current;  // groups[current] is executing
  LaneGroup groups[WARP_LANES];
  CallStack *calls;          // [32], NULL without device functions
  uint8_t *local;            // [32][cta->local_bytes]
  uint32_t carry;            // the condition code of add.cc and the like, a bit a lane
  uint32_t cluster_arrived;  // lanes whose last barrier.cluster.arrive belongs to phase cluster_phase
  uint32_t cluster_phase;
  bool rotate;        // a group used up its slice while others could run
  int budget;         // instructions left of this slice
  bool polled;        // this slice executed a polling instruction (machine_poll)
  uint64_t unpolled;  // instructions since the last slice that polled
};

typedef struct {
  uint32_t expected;  // threads; 0: all warps of the CTA that live
  bool whole_cta;
  uint32_t arrived;                          // threads
  uint32_t generation;                       // counts completed barriers
  uint32_t votes_and, votes_or, votes_popc;  // bar.red
  uint32_t result_and, result_or, result_popc;
} NamedBarrier;

struct Cta {
  Cluster *cluster;
  uint32_t rank;         // in the cluster
  uint32_t id[3];        // %ctaid
  uint32_t linear;       // x + y * nx + z * nx * ny
  uint8_t *smem;         // host; offsets from 0, the first SHARED_FIRST bytes belong to the system
  uint32_t smem_bytes;   // SHARED_FIRST + statics + dynamic
  uint32_t local_bytes;  // per thread
  Warp *warps;
  int nwarps;
  int live_warps;
  NamedBarrier barriers[NAMED_BARRIERS];
  bool ended;   // all warps have exited, engines are drained
  void *async;  // async half: CtaAsync
  void *check;  // observers
};

struct Cluster {
  Cta *ctas;
  int nctas;
  uint32_t id[3], linear;
  uint32_t barrier_generation;
  uint32_t barrier_arrived;  // live threads that have arrived in this generation
  uint32_t threads;          // live threads of the cluster
  uint64_t rng;              // order random: one stream a cluster, so that results don't depend on workers
  Arena *arena;              // freed when the cluster is done
  uint64_t quiet_rounds;     // rounds in which warps only polled, without progress
  bool ended;
};

// What trace/ is asked for, and whom to tell how far the launch is.
typedef struct {
  bool stats;
  uint64_t trace_events;          // most events of a trace; 0: no trace
  const struct Breakpoint *stop;  // NULL: none
  struct DumpRange *ranges;       // of shared and tensor memory
  int nranges;
  void (*progress)(void *user, uint64_t ctas_done, uint64_t instructions);  // NULL: nobody
  void *progress_user;
} Watch;

typedef struct {
  uint32_t grid[3], block[3], cluster[3];
  uint32_t dynamic_shared;
  const Function *entry;
  const Module *module;
  const uint8_t *params;
  uint64_t param_bytes;
  OrderKind order;
  uint64_t seed;
  uint32_t max_resident_ctas;  // --sms
  uint64_t max_steps;          // 0: none
  Watch watch;
} Launch;

// Where something was issued: engines keep it for faults and findings long after the warp went on.
typedef struct {
  Cta *cta;
  int warp, lane;
  const Inst *inst;
} Origin;

// What --check names; faults that hardware traps are always on.
typedef enum {
  CHECK_UNINIT,
  CHECK_RACE,
  CHECK_PROXY,
  CHECK_TCGEN05,
  CHECK_MBARRIER,
  CHECK_TMEM,
  CHECK_EXIT,
  CHECK_BOUNDS,
  CHECK_GRID,
  CHECK_COUNT,
} Check;

typedef struct {
  bool happened;
  bool hang;
  bool stopped;      // a breakpoint: text is what it shows
  uint32_t cluster;  // that was running
  const char *text;  // complete report, in the launch arena
} Fault;

// How far all workers are together; the one that calls back is the launching thread's.
typedef struct Progress {
  atomic_ullong ctas, steps;
} Progress;

struct Machine {
  const Launch *launch;
  const Module *module;
  Gmem *gmem;
  const GmemBlock *gmem_hint;
  Arena *arena;     // launch arena
  uint32_t checks;  // bit per Check
  struct Findings *findings;
  Cluster **clusters;  // resident ones
  int nclusters;
  void *engine;         // async half: Engine
  const Inst *inst;     // executing now
  struct EngineOp *op;  // completing now, or just queued: for observers
  uint64_t steps;       // warp instructions executed
  uint64_t lane_steps;  // lane instructions
  uint64_t progress;  // counts what can end a spin: stores, barriers, completed operations; whoever does one
                      // adds 1
  Fault fault;
  uint32_t event_mask;  // bit per EventKind that somebody listens to
  struct Observers *observers;
  const struct Arch *arch;
  uint32_t next_cluster;          // the next that this worker starts; clusterlaunchcontrol may take it
  uint32_t cluster_step;          // distance to the one after it: the number of workers
  uint32_t running;               // cluster whose turn it is
  atomic_uint *first_fault;       // of all workers: no cluster behind it is started
  uint64_t wake_progress, wakes;  // progress when waits last timed out, and how often they have
  uint64_t last_progress, progress_step;  // steps at which progress was last seen to change
  TextBuf *log;                           // vprintf
  struct Counters *counters;              // trace/stats.h; NULL: not counted
  TextBuf *trace, *dump;                  // NULL: not asked for
  uint64_t trace_cut;                     // step at which the trace was full, 0: it is whole
  struct Progress *progress_of_all;       // workers'; NULL: nobody is told
  bool first_worker;                      // the one on the thread that launched
  bool uninit_poison;                     // a checking mode fills fresh memory with a pattern
};

// ---- registers

static inline uint8_t *row_ptr(const Warp *warp, const Operand *op) {
  return warp->bank[op->bank] + op->off;
}
static inline uint32_t *row32(const Warp *warp, const Operand *op) {
  return (uint32_t *)(void *)row_ptr(warp, op);
}
static inline uint64_t *row64(const Warp *warp, const Operand *op) {
  return (uint64_t *)(void *)row_ptr(warp, op);
}
// The mask of a predicate row; bits outside of live lanes mean nothing.
static inline uint32_t row_pred(const Warp *warp, const Operand *op) {
  uint32_t mask = *(const uint32_t *)(const void *)row_ptr(warp, op);
  return op->negated ? ~mask : mask;
}

// One lane's value, zero-extended: any register or constant. Predicates give 0 or 1. Low 64 bits of a 128-bit
// register.
uint64_t op_get(const Warp *warp, const Operand *op, int lane);
uint64_t op_get_hi(const Warp *warp, const Operand *op, int lane);
// Stores the low bits of `value`; a sink takes and forgets it.
void op_set(Warp *warp, const Operand *op, int lane, uint64_t value);
void op_set128(Warp *warp, const Operand *op, int lane, uint64_t low, uint64_t high);
void op_set_pred(Warp *warp, const Operand *op, uint32_t lanes,
                 uint32_t mask);  // only the bits of `lanes` change
// Base plus offset of an OPERAND_ADDRESS; 32-bit bases are zero-extended (negative offsets wrap in 32 bits).
uint64_t op_address(const Warp *warp, const Operand *op, int lane);

static inline int first_lane(uint32_t lanes) {
  return __builtin_ctz(lanes);
}
#define FOR_LANES(lane, lanes)                                                                               \
  for (uint32_t lane##_rest = (lanes), lane = 0;                                                             \
       lane##_rest != 0 && (lane = (uint32_t)__builtin_ctz(lane##_rest), true);                              \
       lane##_rest &= lane##_rest - 1)

// ---- memory

Space inst_space(const Inst *inst, int index);  // the index-th space modifier, SPACE_GENERIC without one
// Host address, or NULL after reporting the fault (bounds, and alignment to `align`).
uint8_t *machine_address(Machine *machine, Warp *warp, int lane, Space space, uint64_t address,
                         uint64_t bytes, uint64_t align, bool write);

// ---- control

// `blocked` lanes of the current group wait, `again` lanes repeat the instruction at once, the others go on.
// Returns EXEC_BLOCK.
ExecResult warp_block(Machine *machine, Warp *warp, uint32_t blocked, uint32_t again, const Wait *wait);
// True when every lane of `members` that has not exited is in the current group's `lanes`; otherwise the
// group has been blocked until they come, and the handler returns EXEC_BLOCK. For .sync instructions with a
// member mask and for .aligned ones (members = ~0).
bool warp_meet(Machine *machine, Warp *warp, uint32_t lanes, uint32_t members);

// An instruction that threads repeat while they wait for others (test_wait, volatile loads, nanosleep) says
// so: when a whole round only polls and nothing progresses, engines are pushed on, and in the end it is a
// hang.
static inline void machine_poll(Warp *warp) {
  warp->polled = true;
  warp->budget -= 60;
}

// Reports a fault of the instruction that is executing (lane -1: the whole warp): PTX line, statement, source
// line, thread.
__attribute__((format(printf, 4, 5))) ExecResult machine_fault(Machine *machine, const Warp *warp, int lane,
                                                               const char *format, ...);
// The same for an operation issued earlier.
__attribute__((format(printf, 3, 4))) ExecResult machine_fault_at(Machine *machine, const Origin *origin,
                                                                  const char *format, ...);
// A finding (what hardware silently gets wrong): noted once per (check, instruction); execution goes on.
__attribute__((format(printf, 4, 5))) void machine_finding(Machine *machine, Check check,
                                                           const Origin *origin, const char *format, ...);

static inline Origin origin_here(const Machine *machine, const Warp *warp, int lane) {
  return (Origin){warp->cta, warp->index, lane, machine->inst};
}

// The thread's number in its CTA.
static inline uint32_t thread_index(const Warp *warp, int lane) {
  return (uint32_t)(warp->index * WARP_LANES + lane);
}

void machine_emit(Machine *machine, const Event *event);
static inline void machine_event(Machine *machine, EventKind kind, const Warp *warp, uint32_t lanes,
                                 Space space, uint64_t address, uint64_t bytes) {
  if (machine->event_mask >> kind & 1) {
    machine_emit(machine, &(Event){kind, warp->cta, warp, machine->inst, lanes, space, address, bytes, 0});
  }
}

// A name for a shared or global address: "global_smem+98304", "a+64"; in the launch arena.
const char *machine_symbolize(Machine *machine, const Cta *cta, Space space, uint64_t address);

#endif

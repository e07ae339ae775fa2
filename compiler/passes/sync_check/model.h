// The model of one bounded run: what the kernel's text gives (Plan), what a choice of sizes gives (Scenario), and the
// state of the threads, barriers and buffers while it runs (Run). README.md tells the story.
//
// Time is a vector with one number for each component of the machine: the steps of each class of threads, the
// products issued by it, its groups of bulk copies (sources read; all done), and the completed phases of each
// barrier. "a happens before b" means that b's clock holds at least a's number in a's component.
#ifndef TILEC_PASSES_SYNC_CHECK_MODEL_H
#define TILEC_PASSES_SYNC_CHECK_MODEL_H

#include "base/map.h"
#include "passes/pass.h"
#include "tir/roles.h"

enum { MAX_CLASSES = 64, MAX_THREADS = 1024, KEPT_PHASES = 4, LAST_RANK = 2, MAX_VARIABLES = 8 };

// An interval of integers; INT64_MIN and INT64_MAX where nothing is known.
typedef struct {
  int64_t lo, hi;
} Val;

// Threads that take the same way through the kernel, so that the run moves them as one.
typedef struct {
  int first, last, threads;  // lowest and highest member; how many
  int rank;                  // in the schedule
  bool member[MAX_THREADS];
} ThreadClass;

typedef struct {
  TirValue *root;  // alloc_barrier
  int index;       // in its array
  int64_t count;   // arrivals a phase
} BarrierPlan;

// One access of an op: `buffer` as a whole, or the element at `indices`.
typedef struct {
  TirValue *buffer;
  TirValue **indices;  // NULL: all of the buffer
  bool reads, writes, atomic;
  bool certain;         // false: under a condition inside of the op
  const Layout *share;  // of each thread, when it is that of a fragment; NULL: by position
  bool tile;            // a tile op, not a loop of elements
  bool spread;          // each thread does another part of it
} Effect;

typedef struct {
  Effect *at;
  int len;
} Effects;

enum {
  HAS_SYNC = 1 << 0,    // barriers, fences, waits, asynchronous work
  HAS_ACCESS = 1 << 1,  // shared memory, TMEM, tensors
  HAS_SET = 1 << 2,     // integer variables
  CONVERGED = 1 << 3,   // whole warps come here together, and leave together
};

typedef struct {
  PassCx *cx;
  TirKernel *kernel;
  Arena *arena;
  ThreadClass *classes;
  int nclasses;
  VEC(BarrierPlan) barriers;
  Map *first_barrier;  // alloc_barrier value -> number of its first barrier, plus 1
  Map *buffers;        // root of a buffer -> number, plus 1
  VEC(TirValue *) roots;
  Map *content;  // op with bodies -> HAS_… of what is inside
  Map *effects;  // op -> Effects
  int ncomponents;
  int rounds;      // trip counts that are not known are tried from 0 to this
  int steps_left;  // of all runs together
} Plan;

typedef struct {
  TirValue *value;  // a size or an integer parameter of the launch
  int64_t is;
} Variable;

typedef struct {
  Variable variables[MAX_VARIABLES];
  int nvariables;
  bool last_block;  // the block of the highest index instead of the first
} Scenario;

// What a message between threads carries: what its sender knows to have happened, which ordinary writes are
// visible to the async proxy, and which TMEM accesses were handed over by a fence.
typedef struct {
  int *knows, *async, *tmem;
} Clock;

typedef struct {
  const TirOp *owner;
  const TirOp *next;  // to run in this body; NULL: its end
  Val variable;
  int64_t turn, turns;  // of a loop
  bool uncertain;       // not known to run at all
  bool cut;             // fewer turns than there are
} Frame;

typedef struct {
  int barrier;
  int phase;   // in which it arrives
  int issued;  // products before it
  const TirOp *op;
} Commit;

typedef struct {
  const TirOp *op;
  int target;  // phases that were known to be complete after it
  int at;      // the waiter's step
} Waited;

typedef struct {
  const TirOp *op;
  int count;
} Chosen;

typedef enum { AGENT_RUNS, AGENT_LINGERS, AGENT_WAITS, AGENT_MEETS, AGENT_DONE } AgentState;

// A class of threads at work.
typedef struct {
  int class_index;
  AgentState state;
  VEC(Frame) frames;
  const TirOp *at;  // that it waits in
  int barrier;      // AGENT_WAITS: which
  int target;       // phases to be complete
  Val *env;         // by value id: loop variables, cells, loaded values
  int now;
  Clock clock;  // clock.tmem: handed over by the last fence before
  int *acquired, *incoming;
  int *piped;  // what the arrival of its last commit was ordered after, by barrier
  int bulk_groups;
  bool bulk_open;
  int products;
  const TirOp *bulk_op, *product_op;
  VEC(Commit) commits;
  Waited *waited;  // by barrier
  VEC(Chosen) chosen;
  int uncertain;  // frames that may not run
} Agent;

typedef struct {
  int class_index, at;
  const TirOp *op;
} Announced;

typedef struct {
  bool live;
  bool fenced;  // the initialisation is visible to engines
  const TirOp *init, *arrived, *loaded;
  int init_class, init_at;
  int phase;  // the one that collects arrivals
  int64_t pending, bytes;
  int arrivals;             // of the current phase
  Clock collecting;         // of the current phase
  Clock done[KEPT_PHASES];  // after phase n: done[n % KEPT_PHASES]
  VEC(Announced) announced;
  int loads;  // phases that loads were issued for
} Barrier;

// A meeting point of threads (bar.sync).
typedef struct {
  int64_t arrived, needed;  // threads
  const TirOp *op;
  Clock clock;
} Meet;

enum {
  WARP = 32,
  NAMED_POINTS = 16,
  PART_POINTS = NAMED_POINTS + MAX_THREADS / WARP,
  MAX_PARTS = 32,
  MEETING_POINTS = PART_POINTS + MAX_PARTS
};  // named, then of warps, then of parts of warps

typedef struct {
  int rank;
  int64_t lo[TYPE_MAX_RANK], hi[TYPE_MAX_RANK];  // inclusive
  bool dense;                                    // every element is touched, not only some
} Box;

typedef enum { BY_THREADS, BY_PRODUCT, BY_LOAD, BY_STORE } Engine;

typedef struct {
  const TirOp *op;
  Engine engine;
  bool reads, writes, atomic;
  bool tmem;
  bool own;  // registers: those of other threads are others
  bool certain;
  bool spread;  // over the threads of `team`
  const Layout
      *share;  // of a tile op: the part of each thread, if it is that of a fragment; NULL: by position
  bool tile;
  uint64_t team;      // classes
  int class_index;    // that did or issued it
  int component, at;  // it is over for whoever knows this
  Box box;
} Touched;

typedef struct {
  VEC(Touched) list;
} History;

typedef struct {
  const TirOp *op;
  int instance, option, options;
} Decision;

typedef enum { RUN_FINE, RUN_FOUND, RUN_UNPROVED, RUN_INFEASIBLE } RunResult;

typedef struct {
  Plan *plan;
  const Scenario *scenario;
  Arena *arena;
  Agent *agents;
  Barrier *barriers;
  Meet meets[MEETING_POINTS];
  TirThreads parts[MAX_PARTS];  // of warps that meet, by meeting point
  int nparts;
  History *histories;  // by buffer
  struct Decisions *decisions;
  bool guessed;  // the run rests on one
  Val block[3];
  int tmem_allocated;  // -1: freed
  const TirOp *tmem_op;
  RunResult result;
} Run;

#endif

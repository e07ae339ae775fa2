// Who happens before whom: the model behind the checks race, proxy, tcgen05 and the strict part of exit.
//
// Each cluster is a Domain with actors of its own. A warp is one actor (its lanes count as ordered among
// themselves). Asynchronous operations are over for whoever has waited for them, and so their actor is what
// one waits for:
//   - copies that signal an mbarrier: the mbarrier, counted in phases;
//   - tcgen05.mma, cp and commit: the issuing thread's queue, in order;
//   - cp.async: the thread's copies; bulk stores: the thread's operations, source read and done apart;
//   - wgmma, tcgen05.st, tcgen05.ld: the warp's.
// Knowledge moves with barriers, mbarrier phases, cluster barriers and strong accesses, from whoever arrives
// to whoever waits.
#ifndef PTXEMU_CHECK_ORDER_H
#define PTXEMU_CHECK_ORDER_H

#include "async/async_internal.h"
#include "check/class.h"
#include "check/shadow.h"

// A barrier of threads: what those bring who arrive, and what those get who pass.
typedef struct {
  Clock gather, release;
  uint32_t generation;
} Meeting;

// A warp that saw a phase over: how many phases were, plus 1 (0: never), its clock and the wait.
typedef struct {
  uint32_t phases, clock;
  const Inst *inst;
} PhaseSeen;

typedef struct {
  uint32_t actor, phase;  // phases completed
  Clock gather, release;
  PhaseSeen *seen;  // by warp of the CTA
} OrderMbarrier;

enum { FENCES = 16 };
typedef struct {
  uint32_t clock, lanes;
  InstClass kind;
} FenceRecord;

typedef struct OrderCta OrderCta;

typedef struct {
  OrderCta *cta;
  int index;
  Clock now;    // what is over for this warp
  Clock after;  // what was when it last executed tcgen05.fence::after_thread_sync
  uint32_t actor;
  uint32_t ld, ld_fenced, st, st_fenced,
      wgmma;  // actors, 0: not needed yet. _fenced: up to tcgen05.fence::before
  uint32_t ld_count;
  uint32_t *bulk_read, *bulk_done, *copies, *copies_fenced, *tensor;  // actors per lane
  uint32_t *copy_count, *tensor_count;                                // operations issued, per lane
  FenceRecord fences[FENCES];
  uint32_t nfences;
} OrderWarp;

struct OrderCta {
  const Cta *cta;
  OrderWarp *warps;
  Meeting barriers[NAMED_BARRIERS];
  OrderMbarrier **mbarriers;  // by offset / 8
  Cell *cells;                // by offset / GRANULE
  Cell *tmem;                 // [512][TMEM_BANDS], NULL: not used
  VEC(Access) outside;  // newest access to this CTA's shared memory of each actor that is no warp of its own
  int last_outside;
  bool ended;
};

typedef struct Domain Domain;
struct Domain {
  Domain *next;
  Arena *arena;
  const Cluster *cluster;
  uint32_t number, nactors;
  OrderCta *ctas;
  Meeting cluster_barrier;
  VEC(Clock) strong;  // clocks of locations that strong accesses touched
  struct OpInfo *free_ops;
};

// What an operation in flight knew when it was issued.
typedef struct OpInfo {
  struct OpInfo *next_free;
  Clock now, after;
  OrderWarp *warp;
  Access tag;                       // without actor: waits for the transaction that tells its mbarrier
  uint32_t done_actor, done_clock;  // bulk stores: of the write
  uint32_t lane_clock[WARP_LANES];  // cp.async
  uint32_t arrive_lanes;
  struct {
    OrderCta *cta;  // NULL: global
    uint64_t address, bytes;
    bool write;
  } * pending;
  int npending, pending_cap;
} OpInfo;

typedef struct {
  Machine *machine;
  Arena *arena;
  const uint8_t *classes;
  Domain *domains, *last;
  Shadow *global;
  bool global_sync;  // the module synchronises through global memory: clusters are not compared
} Order;

// Who accesses, as the checks see it.
typedef struct {
  Domain *domain;
  const Clock *now, *after;
  OrderWarp *warp;  // who executed the instruction, or issued the operation
  bool engine;
  Access tag;
} Accessor;

static inline InstClass order_class(const Order *order, const Inst *inst) {
  return (InstClass)order->classes[inst - order->machine->module->insts];
}
uint32_t domain_actor(Domain *domain);
// True when what the record stands for is over for the accessor.
bool order_is_over(const Order *order, const Accessor *who, const Access *record);
Origin access_origin(const Order *order, const Domain *domain, const Access *access);

// ---- access.c: shared and global memory

// bytes at an offset of a CTA's shared memory (cta NULL: at a global address): compared with what is
// remembered, and noted.
void order_access(Order *order, OrderCta *cta, uint64_t address, uint64_t bytes, bool write, Accessor *who);
// Notes what has been compared before, now that its actor is known.
void order_note(Order *order, OrderCta *cta, uint64_t address, uint64_t bytes, bool write,
                const Accessor *who);
// An mbarrier operation: the barrier's initialisation must be over.
void order_use_mbarrier(Order *order, OrderCta *cta, uint32_t offset, const Accessor *who);
// The CTA is about to vanish, for whoever knows no more than `now`.
void order_exit(Order *order, Domain *domain, OrderCta *cta, const Clock *now);

// ---- tcgen05.c: tensor memory

void tmem_access(Order *order, OrderCta *cta, const Event *event, bool write, Accessor *who);
void tmem_reset(OrderCta *cta, int first, int columns);

#endif

// Turns events into clocks and hands memory accesses on.
#include "check/order.h"

#include <string.h>

#include "check/observer.h"
#include "exec/report.h"

enum { MOST_ACTORS = 65000 };

uint32_t domain_actor(Domain *domain) {
  return domain->nactors < MOST_ACTORS ? ++domain->nactors : domain->nactors;
}

// ---- domains

static void begin_warp(Domain *domain, OrderCta *cta, int index) {
  OrderWarp *warp = &cta->warps[index];
  warp->cta = cta;
  warp->index = index;
  warp->actor = domain_actor(domain);
  clock_raise(domain->arena, &warp->now, warp->actor, 1);
  uint32_t **per_lane[] = {&warp->bulk_read, &warp->bulk_done,  &warp->copies,      &warp->copies_fenced,
                           &warp->tensor,    &warp->copy_count, &warp->tensor_count};
  for (size_t i = 0; i < sizeof per_lane / sizeof *per_lane; i++)
    *per_lane[i] = ARENA_ARRAY(domain->arena, uint32_t, WARP_LANES);
}

static Domain *domain_new(Order *order, const Cluster *cluster) {
  Arena *arena = arena_new();
  if (!arena) return NULL;
  Domain *domain = ARENA_NEW(arena, Domain);
  domain->arena = arena;
  domain->cluster = cluster;
  domain->number = cluster->linear;
  domain->ctas = ARENA_ARRAY(arena, OrderCta, cluster->nctas);
  for (int i = 0; i < cluster->nctas; i++) {
    OrderCta *cta = &domain->ctas[i];
    cta->cta = &cluster->ctas[i];
    cta->mbarriers = ARENA_ARRAY(arena, OrderMbarrier *, cta->cta->smem_bytes / 8 + 1);
    cta->cells = ARENA_ARRAY(arena, Cell, cta->cta->smem_bytes / GRANULE + 1);
    cta->warps = ARENA_ARRAY(arena, OrderWarp, cta->cta->nwarps);
    for (int w = 0; w < cta->cta->nwarps; w++) begin_warp(domain, cta, w);
  }
  domain->next = order->domains;
  order->domains = domain;
  return domain;
}

static Domain *domain_of(Order *order, const Cta *cta) {
  if (order->last && order->last->cluster == cta->cluster) return order->last;
  Domain *domain = order->domains;
  while (domain && domain->cluster != cta->cluster) domain = domain->next;
  return order->last = domain ? domain : domain_new(order, cta->cluster);
}

static void domain_free(Order *order, Domain *domain) {
  Domain **link = &order->domains;
  while (*link != domain) link = &(*link)->next;
  *link = domain->next;
  order->last = NULL;
  arena_free(domain->arena);
}

static void *order_begin(Machine *machine) {
  Order *order = ARENA_NEW(machine->arena, Order);
  order->machine = machine;
  order->arena = arena_new();
  order->classes = inst_classes(machine);
  if (!order->arena) return NULL;
  order->global = shadow_new(order->arena);
  for (uint32_t i = 0; i < machine->module->ninsts; i++) {
    const Inst *inst = &machine->module->insts[i];
    bool shared = inst->nspaces > 0 &&
                  (inst_space(inst, 0) == SPACE_SHARED || inst_space(inst, 0) == SPACE_SHARED_CLUSTER);
    order->global_sync |= order->classes[i] == CLASS_STRONG && !shared;
  }
  return order;
}

static void order_end(void *self, Machine *machine) {
  (void)machine;
  Order *order = self;
  if (!order) return;
  while (order->domains) domain_free(order, order->domains);
  arena_free(order->arena);
}

static void cta_end(Order *order, Domain *domain, OrderCta *cta) {
  Clock now = {0};
  for (int w = 0; w < cta->cta->nwarps; w++) clock_join(domain->arena, &now, &cta->warps[w].now);
  order_exit(order, domain, cta, &now);
  cta->ended = true;
  for (int i = 0; i < domain->cluster->nctas; i++)
    if (!domain->ctas[i].ended) return;
  domain_free(order, domain);
}

// ---- knowledge

bool order_is_over(const Order *order, const Accessor *who, const Access *record) {
  if (record->clock == 0) return true;
  if (record->cluster != who->domain->number) return order->global_sync;
  return record->actor == who->tag.actor || clock_get(who->now, record->actor) >= record->clock;
}

// The warp's later work is distinct from what it has handed on.
static void tick(Domain *domain, OrderWarp *warp) {
  clock_raise(domain->arena, &warp->now, warp->actor, clock_get(&warp->now, warp->actor) + 1);
}

static void meeting_turn(Domain *domain, Meeting *meeting, uint32_t generation) {
  if (meeting->generation == generation) return;
  clock_join(domain->arena, &meeting->release, &meeting->gather);
  clock_clear(&meeting->gather);
  meeting->generation = generation;
}

static void on_meeting(Domain *domain, OrderCta *cta, OrderWarp *warp, const Event *event) {
  bool cluster = event->space == SPACE_SHARED_CLUSTER;
  Meeting *meeting = cluster ? &domain->cluster_barrier : &cta->barriers[event->address % NAMED_BARRIERS];
  meeting_turn(domain, meeting,
               cluster ? domain->cluster->barrier_generation
                       : cta->cta->barriers[event->address % NAMED_BARRIERS].generation);
  if (event->kind == EVENT_ARRIVE) {
    clock_join(domain->arena, &meeting->gather, &warp->now);
    tick(domain, warp);
  } else {
    clock_join(domain->arena, &warp->now, &meeting->release);
  }
}

static OrderMbarrier *mbarrier_at(Domain *domain, OrderCta *cta, uint32_t offset) {
  OrderMbarrier **slot = &cta->mbarriers[offset / 8];
  if (!*slot) {
    *slot = ARENA_NEW(domain->arena, OrderMbarrier);
    (*slot)->actor = domain_actor(domain);
    (*slot)->seen = ARENA_ARRAY(domain->arena, PhaseSeen, cta->cta->nwarps);
  }
  return *slot;
}

static Accessor warp_accessor(const Order *order, Domain *domain, OrderWarp *warp, const Event *event,
                              AccessBy by) {
  Access tag = {.clock = clock_get(&warp->now, warp->actor),
                .actor = (uint16_t)warp->actor,
                .inst = (uint32_t)(event->inst - order->machine->module->insts),
                .cluster = domain->number,
                .rank = (uint8_t)warp->cta->cta->rank,
                .warp = (uint8_t)warp->index,
                .lane = event->lanes ? (uint8_t)first_lane(event->lanes) : NO_LANE,
                .by = (uint8_t)by};
  return (Accessor){domain, &warp->now, &warp->after, warp, false, tag};
}

static Accessor op_accessor(Domain *domain, const OpInfo *info) {
  return (Accessor){domain, &info->now, &info->after, info->warp, true, info->tag};
}

// ---- operations

static uint32_t actor_in(Domain *domain, uint32_t *slot) {
  if (*slot == 0) *slot = domain_actor(domain);
  return *slot;
}

// Which actor and moment the operation's accesses belong to.
static void set_moment(Domain *domain, OpInfo *info, const EngineOp *op) {
  OrderWarp *warp = info->warp;
  int lane = op->origin.lane;
  Access *tag = &info->tag;
  switch (op->engine) {
  case ENGINE_TENSOR:
    if (lane < 0) {
      tag->by = BY_WGMMA;
      tag->actor = (uint16_t)actor_in(domain, &warp->wgmma);
      tag->clock = op->groups ? op->groups->issued : 1;
    } else {
      tag->by = BY_TENSOR;
      tag->actor = (uint16_t)actor_in(domain, &warp->tensor[lane]);
      tag->clock = ++warp->tensor_count[lane];
    }
    break;
  case ENGINE_TMA_STORE:
    tag->actor = (uint16_t)actor_in(domain, &warp->bulk_read[lane]);
    info->done_actor = actor_in(domain, &warp->bulk_done[lane]);
    tag->clock = info->done_clock = op->groups ? op->groups[lane].issued : 1;
    break;
  case ENGINE_CP_ASYNC:
    tag->by = BY_COPY;
    info->arrive_lanes = op->groups ? 0 : ~0u;
    for (int i = 0; i < WARP_LANES; i++) {
      if (op->groups && op->group_lanes >> i & 1) warp->copy_count[i] = op->groups[i].issued;
      info->lane_clock[i] = warp->copy_count[i];
    }
    break;
  case ENGINE_OTHER:
    if (!op->groups) break;
    tag->by = BY_ST;
    tag->actor = (uint16_t)actor_in(domain, &warp->st);
    tag->clock = op->groups->issued;
    break;
  case ENGINE_TMA_LOAD:
  case ENGINE_COUNT:
    break;
  }
}

static void on_start(Order *order, Domain *domain, OrderCta *cta, EngineOp *op) {
  OpInfo *info = domain->free_ops;
  if (info)
    domain->free_ops = info->next_free;
  else
    info = ARENA_NEW(domain->arena, OpInfo);
  OrderWarp *warp = &cta->warps[op->origin.warp];
  info->warp = warp;
  info->npending = 0;
  info->done_actor = info->done_clock = info->arrive_lanes = 0;
  clock_copy(domain->arena, &info->now, &warp->now);
  clock_copy(domain->arena, &info->after, &warp->after);
  info->tag = (Access){.inst = (uint32_t)(op->origin.inst - order->machine->module->insts),
                       .cluster = domain->number,
                       .rank = (uint8_t)cta->cta->rank,
                       .warp = (uint8_t)op->origin.warp,
                       .lane = op->origin.lane < 0 ? NO_LANE : (uint8_t)op->origin.lane,
                       .by = order_class(order, op->origin.inst) == CLASS_REDUCE ? BY_REDUCE : BY_TMA};
  set_moment(domain, info, op);
  tick(domain, warp);  // what the warp does from here on, the operation does not come after
  op->check = info;
}

static void on_done(Domain *domain, EngineOp *op) {
  OpInfo *info = op->check;
  if (!info) return;
  info->next_free = domain->free_ops;
  domain->free_ops = info;
  op->check = NULL;
}

static void remember_pending(Domain *domain, OpInfo *info, OrderCta *cta, const Event *event, bool write) {
  if (info->npending == info->pending_cap) {
    int cap = info->pending_cap ? 2 * info->pending_cap : 8;
    void *grown = arena_array(domain->arena, (size_t)cap, sizeof *info->pending);
    if (info->npending) memcpy(grown, info->pending, (size_t)info->npending * sizeof *info->pending);
    info->pending = grown;
    info->pending_cap = cap;
  }
  info->pending[info->npending].cta = cta;
  info->pending[info->npending].address = event->address;
  info->pending[info->npending].bytes = event->bytes;
  info->pending[info->npending++].write = write;
}

static void on_async_access(Order *order, Domain *domain, OrderCta *cta, const Event *event, bool write) {
  OpInfo *info = order->machine->op ? order->machine->op->check : NULL;
  if (!info) return;
  Accessor who = op_accessor(domain, info);
  if (event->space == SPACE_TMEM) {
    tmem_access(order, cta, event, write, &who);
    return;
  }
  if (event->lanes && who.tag.by == BY_COPY) {  // one operation serves the lanes of a warp
    int lane = first_lane(event->lanes);
    who.tag.lane = (uint8_t)lane;
    who.tag.actor = (uint16_t)actor_in(domain, &info->warp->copies[lane]);
    who.tag.clock = info->lane_clock[lane];
  }
  if (info->done_actor && write) {
    who.tag.actor = (uint16_t)info->done_actor;
    who.tag.clock = info->done_clock;
  }
  OrderCta *where = event->space == SPACE_GLOBAL ? NULL : cta;
  order_access(order, where, event->address, event->bytes, write, &who);
  if (who.tag.clock == 0) remember_pending(domain, info, where, event, write);
}

// ---- mbarriers

static void on_transaction(Order *order, Domain *domain, OrderCta *cta, const Event *event) {
  OpInfo *info = order->machine->op ? order->machine->op->check : NULL;
  if ((int64_t)event->bytes > 0 || !info) return;
  OrderMbarrier *mbarrier = mbarrier_at(domain, cta, (uint32_t)event->address);
  Accessor who = op_accessor(domain, info);
  order_use_mbarrier(order, cta, (uint32_t)event->address, &who);
  if (who.tag.clock == 0) {
    who.tag.actor = (uint16_t)mbarrier->actor;
    who.tag.clock = mbarrier->phase + 1;
  }
  for (int i = 0; i < info->npending; i++)
    order_note(order, info->pending[i].cta, info->pending[i].address, info->pending[i].bytes,
               info->pending[i].write, &who);
  info->npending = 0;
  clock_join(domain->arena, &mbarrier->gather, &info->now);
  clock_raise(domain->arena, &mbarrier->gather, mbarrier->actor, mbarrier->phase + 1);
}

static void on_engine_arrive(Order *order, Domain *domain, OrderCta *cta, const Event *event, OpInfo *info) {
  OrderMbarrier *mbarrier = mbarrier_at(domain, cta, (uint32_t)event->address);
  Accessor who = op_accessor(domain, info);
  order_use_mbarrier(order, cta, (uint32_t)event->address, &who);
  clock_join(domain->arena, &mbarrier->gather, &info->now);
  if (info->tag.clock) clock_raise(domain->arena, &mbarrier->gather, info->tag.actor, info->tag.clock);
  if (!event->lanes || info->tag.by != BY_COPY) return;
  int lane = first_lane(event->lanes);
  if (info->warp->copies[lane])
    clock_raise(domain->arena, &mbarrier->gather, info->warp->copies[lane], info->lane_clock[lane]);
}

static void on_arrive(Order *order, Domain *domain, OrderCta *cta, const Event *event) {
  if (!event->warp) {
    OpInfo *info = order->machine->op ? order->machine->op->check : NULL;
    if (info) on_engine_arrive(order, domain, cta, event, info);
    return;
  }
  OrderWarp *warp = &domain->ctas[event->warp->cta->rank].warps[event->warp->index];
  if (event->space != SPACE_SHARED) {
    on_meeting(domain, cta, warp, event);
    return;
  }
  Accessor who = warp_accessor(order, domain, warp, event, BY_STRONG);
  order_use_mbarrier(order, cta, (uint32_t)event->address, &who);
  clock_join(domain->arena, &mbarrier_at(domain, cta, (uint32_t)event->address)->gather, &warp->now);
  tick(domain, warp);
}

// Phase n + 1 completes: whoever waits for phase n must have seen it before, by an order of its own, or a slow warp finds
// the parity turned again and waits for ever.
static void check_lap(Order *order, const OrderCta *cta, const OrderMbarrier *mbarrier, const Event *event) {
  Machine *machine = order->machine;
  for (int w = 0; w < cta->cta->nwarps; w++) {
    const PhaseSeen *seen = &mbarrier->seen[w];
    bool current = seen->phases == mbarrier->phase + 1;
    if (!current || clock_get(&mbarrier->gather, cta->warps[w].actor) >= seen->clock) continue;
    if (!finding_is_new(machine, CHECK_RACE, seen->inst, event->inst)) continue;
    Origin origin = {(Cta *)(uintptr_t)cta->cta, w, -1, seen->inst};
    OtherSide other = {"this completes the next phase", {origin.cta, 0, -1, event->inst}, 0};
    if (event->warp) other.origin.warp = event->warp->index;
    machine_finding_pair(
        machine, CHECK_RACE, &origin, &other,
        "let every waiter of a phase arrive somewhere (a barrier, an 'empty' mbarrier) before the next "
        "phase can complete",
        "warp %d waits for a phase of mbarrier %s, and nothing keeps the next phase from being over "
        "before it looks",
        w, machine_symbolize(machine, cta->cta, SPACE_SHARED, event->address));
  }
}

static void on_phase(Order *order, Domain *domain, OrderCta *cta, const Event *event) {
  OrderMbarrier *mbarrier = mbarrier_at(domain, cta, (uint32_t)event->address);
  check_lap(order, cta, mbarrier, event);
  clock_join(domain->arena, &mbarrier->release, &mbarrier->gather);
  clock_clear(&mbarrier->gather);
  mbarrier->phase++;
}

static void on_init(Order *order, Domain *domain, OrderCta *cta, OrderWarp *warp, const Event *event) {
  uint32_t offset = (uint32_t)event->address;
  cta->mbarriers[offset / 8] = NULL;  // a new life
  mbarrier_at(domain, cta, offset);
  Accessor who = warp_accessor(order, domain, warp, event, BY_INIT);
  order_access(order, cta, offset, 8, true, &who);
}

static void on_inval(Order *order, Domain *domain, OrderCta *cta, OrderWarp *warp, const Event *event) {
  Accessor who = warp_accessor(order, domain, warp, event, BY_INVAL);
  order_access(order, cta, event->address, 8, true, &who);
}

static void on_pass(Order *order, Domain *domain, OrderCta *cta, OrderWarp *warp, const Event *event) {
  if (event->space != SPACE_SHARED) {
    on_meeting(domain, cta, warp, event);
    return;
  }
  uint32_t offset = (uint32_t)event->address & ((1u << SHARED_RANK_SHIFT) - 1);
  OrderMbarrier *mbarrier = mbarrier_at(domain, cta, offset);
  Accessor who = warp_accessor(order, domain, warp, event, BY_STRONG);
  order_use_mbarrier(order, cta, offset, &who);
  clock_join(domain->arena, &warp->now, &mbarrier->release);
  PhaseSeen *seen = &mbarrier->seen[warp->index];  // of lanes that come later nothing is asked
  if (seen->phases != mbarrier->phase + 1)
    *seen = (PhaseSeen){mbarrier->phase + 1, clock_get(&warp->now, warp->actor), event->inst};
}

// ---- fences and group waits

// What a lane of _fenced actors stands for is over up to the fence.
static void raise_to(Domain *domain, OrderWarp *warp, uint32_t actor, uint32_t *fenced) {
  if (actor) clock_raise(domain->arena, &warp->now, actor_in(domain, fenced), clock_get(&warp->now, actor));
}

static void note_fence(Domain *domain, OrderWarp *warp, InstClass kind, uint32_t lanes) {
  warp->fences[warp->nfences++ % FENCES] = (FenceRecord){clock_get(&warp->now, warp->actor), lanes, kind};
  tick(domain, warp);
}

static void on_fence(const Order *order, Domain *domain, OrderWarp *warp, const Event *event) {
  InstClass kind = order_class(order, event->inst);
  if (kind == CLASS_FENCE_ASYNC || kind == CLASS_FENCE_MBARRIER || kind == CLASS_FENCE_MEMORY) {
    FOR_LANES(lane, event->lanes)
    if (kind == CLASS_FENCE_ASYNC) raise_to(domain, warp, warp->copies[lane], &warp->copies_fenced[lane]);
    note_fence(domain, warp, kind, event->lanes);
  } else if (kind == CLASS_FENCE_BEFORE) {
    raise_to(domain, warp, warp->ld, &warp->ld_fenced);
    raise_to(domain, warp, warp->st, &warp->st_fenced);
  } else if (kind == CLASS_FENCE_AFTER) {
    clock_copy(domain->arena, &warp->after, &warp->now);
  } else if (kind == CLASS_WAIT_LD) {
    if (warp->ld) clock_raise(domain->arena, &warp->now, warp->ld, warp->ld_count);
  }
}

static void on_group_wait(const Order *order, Domain *domain, OrderWarp *warp, const Event *event) {
  InstClass kind = order_class(order, event->inst);
  int lane = first_lane(event->lanes);
  uint32_t done = (uint32_t)event->bytes;
  uint32_t actors[2] = {0, 0};
  if (kind == CLASS_WAIT_COPIES) actors[0] = warp->copies[lane];
  if (kind == CLASS_WAIT_WGMMA) actors[0] = warp->wgmma;
  if (kind == CLASS_WAIT_ST) actors[0] = warp->st;
  if (kind == CLASS_WAIT_BULK || kind == CLASS_WAIT_BULK_READ) actors[0] = warp->bulk_read[lane];
  if (kind == CLASS_WAIT_BULK) actors[1] = warp->bulk_done[lane];
  for (int i = 0; i < 2; i++)
    if (actors[i]) clock_raise(domain->arena, &warp->now, actors[i], done);
}

// ---- accesses of threads

static Clock *strong_clock(Domain *domain, Cell *cell) {
  if (cell->sync == 0 || cell->sync_cluster != domain->number) {
    vec_push(domain->arena, &domain->strong, (Clock){0});
    cell->sync = (uint32_t)domain->strong.len;
    cell->sync_cluster = domain->number;
  }
  return &domain->strong.data[cell->sync - 1];
}

static void strong_access(Order *order, Domain *domain, OrderCta *cta, OrderWarp *warp, uint64_t address,
                          bool write) {
  Cell *cell = cta ? &cta->cells[address / GRANULE] : shadow_cell(order->global, address);
  Clock *clock = strong_clock(domain, cell);
  if (!write) {
    clock_join(domain->arena, &warp->now, clock);
    return;
  }
  clock_join(domain->arena, clock, &warp->now);
  tick(domain, warp);
}

static void on_thread_access(Order *order, Domain *domain, OrderCta *cta, OrderWarp *warp, const Event *event,
                             bool write) {
  uint64_t address = event->address;
  if (event->space == SPACE_TMEM) {
    warp->ld_count++;
    Accessor who = warp_accessor(order, domain, warp, event, BY_LD);
    who.tag.actor = (uint16_t)actor_in(domain, &warp->ld);
    who.tag.issued = who.tag.clock;
    who.tag.clock = warp->ld_count;
    tmem_access(order, cta, event, write, &who);
    return;
  }
  switch ((Space)event->space) {
  case SPACE_SHARED:
    address &= (1u << SHARED_RANK_SHIFT) - 1;
    break;
  case SPACE_GENERIC:
  case SPACE_SHARED_CLUSTER: {
    if (event->space == SPACE_GENERIC && !space_is_shared(address)) {
      if (address >> 40 >= 0x7c) return;  // local and parameter windows
      cta = NULL;
      break;
    }
    uint32_t offset;
    const Cta *target = space_shared_cta(order->machine, warp->cta->cta, address, &offset);
    if (!target) return;
    cta = &domain->ctas[target->rank];
    address = offset;
    break;
  }
  case SPACE_GLOBAL:
    cta = NULL;
    break;
  case SPACE_LOCAL:
  case SPACE_PARAM:
  case SPACE_CONST:
  case SPACE_TMEM:
    return;
  }
  bool strong = order_class(order, event->inst) == CLASS_STRONG;
  if (strong) strong_access(order, domain, cta, warp, address, false);
  Accessor who = warp_accessor(order, domain, warp, event, strong ? BY_STRONG : BY_THREAD);
  order_access(order, cta, address, event->bytes, write, &who);
  if (strong && write) strong_access(order, domain, cta, warp, address, true);
}

// ---- events

static void on_warp_event(Order *order, Domain *domain, OrderCta *cta, const Event *event) {
  OrderWarp *warp = &domain->ctas[event->warp->cta->rank].warps[event->warp->index];
  switch (event->kind) {
  case EVENT_ISSUE:
    break;
  case EVENT_READ:
  case EVENT_WRITE:
    on_thread_access(order, domain, cta, warp, event, event->kind == EVENT_WRITE);
    break;
  case EVENT_BARRIER:
    on_pass(order, domain, cta, warp, event);
    break;
  case EVENT_FENCE:
    on_fence(order, domain, warp, event);
    break;
  case EVENT_GROUP_WAIT:
    on_group_wait(order, domain, warp, event);
    break;
  case EVENT_MBARRIER_INIT:
    on_init(order, domain, cta, warp, event);
    break;
  case EVENT_MBARRIER_INVAL:
    on_inval(order, domain, cta, warp, event);
    break;
  case EVENT_TMEM_FREE: {
    Accessor who = warp_accessor(order, domain, warp, event, BY_DEALLOC);
    Event all = *event;
    all.bands = 0xFF;
    tmem_access(order, cta, &all, true, &who);
    break;
  }
  case EVENT_TMEM_ALLOC:
  case EVENT_ASYNC_START:
  case EVENT_ASYNC_READ:
  case EVENT_ASYNC_WRITE:
  case EVENT_ASYNC_DONE:
  case EVENT_ARRIVE:
  case EVENT_TX:
  case EVENT_PHASE:
  case EVENT_THREAD_EXIT:
  case EVENT_WAIT:
  case EVENT_STOP:
  case EVENT_CTA_BEGIN:
  case EVENT_CTA_END:
  case EVENT_COUNT:
    break;
  }
}

static void order_on_event(void *self, Machine *machine, const Event *event) {
  Order *order = self;
  if (!order) return;
  Domain *domain = domain_of(order, event->cta);
  if (!domain) return;
  OrderCta *cta = &domain->ctas[event->cta->rank];
  switch (event->kind) {
  case EVENT_ASYNC_START:
    on_start(order, domain, cta, machine->op);
    break;
  case EVENT_ASYNC_DONE:
    on_done(domain, machine->op);
    break;
  case EVENT_ASYNC_READ:
  case EVENT_ASYNC_WRITE:
    on_async_access(order, domain, cta, event, event->kind == EVENT_ASYNC_WRITE);
    break;
  case EVENT_ARRIVE:
    on_arrive(order, domain, cta, event);
    break;
  case EVENT_TX:
    on_transaction(order, domain, cta, event);
    break;
  case EVENT_PHASE:
    on_phase(order, domain, cta, event);
    break;
  case EVENT_TMEM_ALLOC:
    tmem_reset(cta, (int)event->address, (int)event->bytes);
    break;
  case EVENT_CTA_END:
    cta_end(order, domain, cta);
    break;
  case EVENT_ISSUE:
  case EVENT_READ:
  case EVENT_WRITE:
  case EVENT_BARRIER:
  case EVENT_FENCE:
  case EVENT_GROUP_WAIT:
  case EVENT_MBARRIER_INIT:
  case EVENT_MBARRIER_INVAL:
  case EVENT_TMEM_FREE:
    on_warp_event(order, domain, cta, event);
    break;
  case EVENT_THREAD_EXIT:
  case EVENT_WAIT:
  case EVENT_STOP:
  case EVENT_CTA_BEGIN:
  case EVENT_COUNT:
    break;
  }
}

const Observer order_observer = {
    .name = "order",
    .events = ~(1u << EVENT_ISSUE | 1u << EVENT_THREAD_EXIT | 1u << EVENT_CTA_BEGIN | 1u << EVENT_WAIT |
                1u << EVENT_STOP),
    .begin = order_begin,
    .on_event = order_on_event,
    .end = order_end,
};

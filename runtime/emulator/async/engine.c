// Queues and the three orders. Operations of one queue complete in issue order; the order decides which queue
// moves and when. Under lazy nothing moves until the cluster stands still; then the queue moves that holds
// what some lane waits for, one operation at a time, so that whatever nobody waits for stays undone as long
// as possible.
#include "async/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "async/async_internal.h"
#include "num/num.h"

// Rounds without progress after which lazy order gives in: a lane polls memory that an operation must change.
enum { LAZY_PATIENCE = 8 };

typedef struct {
  CtaAsync *ctas;
  Scratch *scratch;
} Engine;

Scratch *engine_scratch(Machine *machine) {
  return ((Engine *)machine->engine)->scratch;
}

static void fill_codes(const NumFormat *format, float *out, int count) {
  for (int code = 0; code < count; code++) out[code] = (float)num_decode(format, (uint32_t)code);
}

bool engine_begin(Machine *machine) {
  Engine *engine = calloc(1, sizeof *engine);
  machine->engine = engine;
  if (engine) engine->scratch = calloc(1, sizeof *engine->scratch);
  if (!engine || !engine->scratch) return false;
  Scratch *scratch = engine->scratch;
  fill_codes(&num_e4m3, scratch->e4m3, 256);
  fill_codes(&num_e5m2, scratch->e5m2, 256);
  fill_codes(&num_e2m3, scratch->e2m3, 64);
  fill_codes(&num_e3m2, scratch->e3m2, 64);
  fill_codes(&num_e2m1, scratch->e2m1, 16);
  return true;
}

static void op_free(EngineOp *op) {
  free(op->buffer);
  free(op);
}

static void free_queues(CtaAsync *async) {
  for (int i = 0; i < async->nqueues; i++) {
    for (EngineOp *op = async->queues[i].head, *next; op; op = next) {
      next = op->next;
      op_free(op);
    }
  }
  free(async->queues);
  async->queues = NULL;
  async->nqueues = async->queue_cap = 0;
}

static void free_cta(CtaAsync *async) {
  free_queues(async);
  free(async->tmem.cells);
  free(async->copies);
  free(async->bulks);
  free(async->wgmmas);
  free(async->tmem_stores);
  free(async);
}

void engine_end(Machine *machine) {
  Engine *engine = machine->engine;
  if (!engine) return;
  for (CtaAsync *async = engine->ctas, *next; async; async = next) {
    next = async->next;
    free_cta(async);
  }
  free(engine->scratch);
  free(engine);
  machine->engine = NULL;
}

bool engine_cta_begin(Machine *machine, Cta *cta) {
  Engine *engine = machine->engine;
  CtaAsync *async = calloc(1, sizeof *async);
  if (!async) return false;
  size_t warps = (size_t)cta->nwarps, threads = warps * WARP_LANES;
  async->cta = cta;
  async->next = engine->ctas;
  engine->ctas = async;
  async->copies = calloc(threads, sizeof *async->copies);
  async->bulks = calloc(threads, sizeof *async->bulks);
  async->wgmmas = calloc(warps, sizeof *async->wgmmas);
  async->tmem_stores = calloc(warps, sizeof *async->tmem_stores);
  cta->async = async;
  return async->copies && async->bulks && async->wgmmas && async->tmem_stores;
}

// ---- queues

static AsyncQueue *find_queue(CtaAsync *async, EngineKind engine, int issuer) {
  for (int i = 0; i < async->nqueues; i++)
    if (async->queues[i].engine == engine && async->queues[i].issuer == issuer) return &async->queues[i];
  if (async->nqueues == async->queue_cap) {
    int cap = async->queue_cap ? 2 * async->queue_cap : 8;
    AsyncQueue *queues = realloc(async->queues, (size_t)cap * sizeof *queues);
    if (!queues) abort();
    async->queues = queues;
    async->queue_cap = cap;
  }
  AsyncQueue *queue = &async->queues[async->nqueues++];
  *queue = (AsyncQueue){engine, issuer, NULL, NULL};
  return queue;
}

void *engine_op_new(Machine *machine, const Warp *warp, int lane, EngineKind engine, size_t bytes,
                    bool (*complete)(Machine *, EngineOp *)) {
  EngineOp *op = calloc(1, bytes);
  if (!op) {
    machine_fault(machine, warp, lane, "the emulator is out of memory");
    return NULL;
  }
  op->complete = complete;
  op->engine = engine;
  op->origin = origin_here(machine, warp, lane);
  return op;
}

void engine_event(Machine *machine, const EngineOp *op, EventKind kind, const Cta *cta, Space space,
                  uint64_t address, uint64_t bytes) {
  if (!(machine->event_mask >> kind & 1)) return;
  machine_emit(machine, &(Event){kind, cta, NULL, op->origin.inst, 0, space, address, bytes, 0});
}

void engine_tmem_event(Machine *machine, const EngineOp *op, EventKind kind, const Cta *cta, uint32_t address,
                       int columns, uint32_t bands) {
  if (!(machine->event_mask >> kind & 1)) return;
  machine_emit(machine,
               &(Event){kind, cta, NULL, op->origin.inst, 0, SPACE_TMEM, address, (uint64_t)columns, bands});
}

void engine_queue(Machine *machine, EngineOp *op) {
  CtaAsync *async = cta_async(op->origin.cta);
  int issuer = op->origin.warp * (WARP_LANES + 1) + op->origin.lane + 1;
  AsyncQueue *queue = find_queue(async, op->engine, issuer);
  op->next = NULL;
  op->issued = machine->steps;
  if (queue->tail)
    queue->tail->next = op;
  else
    queue->head = op;
  queue->tail = op;
  if (op->groups) FOR_LANES(lane, op->group_lanes) op->groups[lane].issued++;
  machine->op = op;
  engine_event(machine, op, EVENT_ASYNC_START, op->origin.cta, SPACE_GENERIC, 0, 0);
  machine->op = NULL;
}

static bool complete_head(Machine *machine, AsyncQueue *queue) {
  EngineOp *op = queue->head;
  op->again = false;
  machine->op = op;
  bool ok = op->complete(machine, op);
  machine->op = NULL;
  machine->progress++;
  if (ok && op->again) return true;
  queue->head = op->next;
  if (!queue->head) queue->tail = NULL;
  if (ok && op->groups) {
    FOR_LANES(lane, op->group_lanes) {
      op->groups[lane].done++;
      op->groups[lane].read = op->groups[lane].done;
    }
  }
  machine->op = op;
  if (ok) engine_event(machine, op, EVENT_ASYNC_DONE, op->origin.cta, SPACE_GENERIC, 0, 0);
  machine->op = NULL;
  op_free(op);
  return ok;
}

static bool drain(Machine *machine, CtaAsync *async, uint64_t issued_before) {
  for (int i = 0; i < async->nqueues; i++)
    while (async->queues[i].head && async->queues[i].head->issued < issued_before)
      if (!complete_head(machine, &async->queues[i])) return false;
  return true;
}

static uint64_t random_next(Cluster *cluster) {
  uint64_t x = cluster->rng ? cluster->rng : 0x9E3779B97F4A7C15u;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return cluster->rng = x;
}

// Each queue's head completes with probability 1/4, and then again, so that runs of completions occur too.
static bool step_random(Machine *machine, Cluster *cluster, CtaAsync *async) {
  for (int i = 0; i < async->nqueues; i++)
    while (async->queues[i].head && random_next(cluster) >> 33 & 1 && random_next(cluster) >> 33 & 1)
      if (!complete_head(machine, &async->queues[i])) return false;
  return true;
}

bool engine_step(Machine *machine, Cluster *cluster) {
  for (int i = 0; i < cluster->nctas; i++) {
    CtaAsync *async = cta_async(&cluster->ctas[i]);
    if (!async || async->ended) continue;
    bool any;
    switch (machine->launch->order) {
    case ORDER_FAIR:
      if (!drain(machine, async, UINT64_MAX)) return false;
      break;
    case ORDER_RANDOM:
      if (!step_random(machine, cluster, async)) return false;
      break;
    case ORDER_LAZY:
      if (cluster->quiet_rounds > LAZY_PATIENCE && !engine_idle(machine, cluster, &any)) return false;
      break;
    }
  }
  return true;
}

bool engine_demand(Machine *machine, Warp *warp, const Wait *wait) {
  (void)machine, (void)warp, (void)wait;  // lazy looks for waiters when the cluster stands still
  return true;
}

// ---- standing still

static bool op_helps(const EngineOp *op, const Wait *wait) {
  if (wait->kind == WAIT_GROUP) return op->groups && op->groups == wait->data;
  if (wait->kind != WAIT_MBARRIER || !op->barrier_cta || op->barrier != (uint32_t)wait->address) return false;
  if (op->barrier_cta == wait->cta) return true;
  return wait->cta && wait->cta->cluster == op->barrier_cta->cluster &&
         op->barrier_ranks >> wait->cta->rank & 1;
}

static AsyncQueue *queue_that_helps(Cluster *cluster, const Wait *wait) {
  for (int c = 0; c < cluster->nctas; c++) {
    CtaAsync *async = cta_async(&cluster->ctas[c]);
    for (int i = 0; async && i < async->nqueues; i++)
      for (const EngineOp *op = async->queues[i].head; op; op = op->next)
        if (op_helps(op, wait)) return &async->queues[i];
  }
  return NULL;
}

static AsyncQueue *queue_waited_for(Cluster *cluster) {
  for (int c = 0; c < cluster->nctas; c++) {
    Cta *cta = &cluster->ctas[c];
    for (int w = 0; w < cta->nwarps; w++) {
      Warp *warp = &cta->warps[w];
      for (int g = 0; g < warp->ngroups; g++) {
        AsyncQueue *queue = queue_that_helps(cluster, &warp->groups[g].wait);
        if (queue) return queue;
      }
    }
  }
  return NULL;
}

static AsyncQueue *queue_oldest(Cluster *cluster) {
  AsyncQueue *oldest = NULL;
  for (int c = 0; c < cluster->nctas; c++) {
    CtaAsync *async = cta_async(&cluster->ctas[c]);
    for (int i = 0; async && i < async->nqueues; i++) {
      AsyncQueue *queue = &async->queues[i];
      if (queue->head && (!oldest || queue->head->issued < oldest->head->issued)) oldest = queue;
    }
  }
  return oldest;
}

static AsyncQueue *queue_at_random(Cluster *cluster) {
  AsyncQueue *chosen = NULL;
  uint64_t seen = 0;
  for (int c = 0; c < cluster->nctas; c++) {
    CtaAsync *async = cta_async(&cluster->ctas[c]);
    for (int i = 0; async && i < async->nqueues; i++)
      if (async->queues[i].head && (random_next(cluster) >> 20) % ++seen == 0) chosen = &async->queues[i];
  }
  return chosen;
}

static AsyncQueue *next_queue(const Machine *machine, Cluster *cluster) {
  AsyncQueue *queue = NULL;
  switch (machine->launch->order) {
  case ORDER_FAIR:
    break;
  case ORDER_LAZY:
    queue = queue_waited_for(cluster);
    break;
  case ORDER_RANDOM:
    queue = queue_at_random(cluster);
    break;
  }
  return queue ? queue : queue_oldest(cluster);
}

bool engine_idle(Machine *machine, Cluster *cluster, bool *any) {
  AsyncQueue *queue = next_queue(machine, cluster);
  *any = queue != NULL;
  return !queue || complete_head(machine, queue);
}

// ---- end of a CTA

static void free_ended_cluster(Engine *engine, const Cluster *cluster) {
  for (CtaAsync **link = &engine->ctas; *link;) {
    CtaAsync *async = *link;
    if (async->cta->cluster != cluster) {
      link = &async->next;
      continue;
    }
    *link = async->next;
    free_cta(async);
  }
}

bool engine_cta_end(Machine *machine, Cta *cta) {
  CtaAsync *async = cta_async(cta);
  if (!async || async->ended) return true;
  if (!drain(machine, async, UINT64_MAX)) return false;
  async->ended = true;
  int held = tmem_columns_held(&async->tmem);
  if (held > 0) {
    machine_fault_at(
        machine, &(Origin){cta, 0, -1, machine->inst},
        "CTA (%u, %u, %u) exits while it holds %d columns of tensor memory: tcgen05.dealloc is missing",
        cta->id[0], cta->id[1], cta->id[2], held);
    return false;
  }
  return true;
}

void engine_cluster_end(Machine *machine, Cluster *cluster) {
  free_ended_cluster(machine->engine, cluster);
  for (int i = 0; i < cluster->nctas; i++) cluster->ctas[i].async = NULL;
}

static const char *engine_name(EngineKind engine) {
  switch (engine) {
  case ENGINE_TMA_LOAD:
    return "TMA load";
  case ENGINE_TMA_STORE:
    return "TMA store";
  case ENGINE_CP_ASYNC:
    return "cp.async";
  case ENGINE_TENSOR:
    return "tensor-core operation";
  case ENGINE_OTHER:
    break;
  case ENGINE_COUNT:
    break;
  }
  return "asynchronous operation";
}

const char *engine_describe_pending(Machine *machine, const Cta *cta, uint64_t address) {
  Cluster *cluster = cta->cluster;
  Wait wait = {.kind = WAIT_MBARRIER, .cta = (Cta *)(uintptr_t)cta, .address = address};
  for (int c = 0; c < cluster->nctas; c++) {
    CtaAsync *async = cta_async(&cluster->ctas[c]);
    for (int i = 0; async && i < async->nqueues; i++)
      for (const EngineOp *op = async->queues[i].head; op; op = op->next)
        if (op_helps(op, &wait))
          return text_printf(machine->arena, "%s issued at line %d, in flight", engine_name(op->engine),
                             op->origin.inst ? op->origin.inst->line : 0);
  }
  return NULL;
}

// ---- groups

void group_commit(AsyncGroup *group) {
  group->mark[group->committed++ % GROUP_MARKS] = group->issued;
}

bool group_reached(const AsyncGroup *group, uint32_t allowed, bool read) {
  if (allowed >= group->committed) return true;
  if (allowed >= GROUP_MARKS) allowed = GROUP_MARKS - 1;
  uint32_t mark = group->mark[(group->committed - 1 - allowed) % GROUP_MARKS];
  return (int32_t)((read ? group->read : group->done) - mark) >= 0;
}

enum { WAIT_FOR_READ = 1, WAIT_PER_WARP = 2 };

static bool group_ready(Machine *machine, Warp *warp, const Wait *wait) {
  (void)machine, (void)warp;
  const AsyncGroup *groups = wait->data;
  if (wait->count & WAIT_PER_WARP) return group_reached(groups, wait->number, wait->count & WAIT_FOR_READ);
  bool ready = true;
  FOR_LANES(lane, wait->lanes)
  ready &= group_reached(&groups[lane], wait->number, wait->count & WAIT_FOR_READ);
  return ready;
}

// Operations that a wait which leaves `allowed` groups has seen complete.
static uint32_t operations_before(const AsyncGroup *group, uint32_t allowed) {
  if (allowed >= group->committed) return 0;
  return group
      ->mark[(group->committed - 1 - (allowed < GROUP_MARKS ? allowed : GROUP_MARKS - 1)) % GROUP_MARKS];
}

static void wait_events(Machine *machine, const Warp *warp, uint32_t lanes, const AsyncGroup *groups,
                        bool per_warp, uint32_t allowed) {
  if (per_warp) {
    machine_event(machine, EVENT_GROUP_WAIT, warp, lanes, SPACE_GENERIC, 0,
                  operations_before(groups, allowed));
    return;
  }
  FOR_LANES(lane, lanes)
  machine_event(machine, EVENT_GROUP_WAIT, warp, 1u << lane, SPACE_GENERIC, 0,
                operations_before(&groups[lane], allowed));
}

ExecResult group_wait(Machine *machine, Warp *warp, uint32_t lanes, AsyncGroup *groups, bool per_warp,
                      uint32_t allowed, bool read, const char *what) {
  uint32_t pending = 0;
  FOR_LANES(lane, lanes) {
    if (!group_reached(per_warp ? groups : &groups[lane], allowed, read)) pending |= 1u << lane;
  }
  if (machine->event_mask >> EVENT_GROUP_WAIT & 1 && (lanes & ~pending) != 0)
    wait_events(machine, warp, lanes & ~pending, groups, per_warp, allowed);
  if (!pending) return EXEC_NEXT;
  Wait wait = {.kind = WAIT_GROUP, .ready = group_ready, .what = what, .cta = warp->cta, .number = allowed};
  wait.count = (read ? WAIT_FOR_READ : 0) | (per_warp ? WAIT_PER_WARP : 0);
  wait.lanes = pending;
  wait.data = groups;
  return warp_block(machine, warp, pending, 0, &wait);
}

// ---- shared memory

uint8_t *async_shared(Machine *machine, const Origin *origin, const Cta *cta, uint64_t offset, uint64_t bytes,
                      const char *what) {
  if (offset >= SHARED_FIRST && bytes <= cta->smem_bytes && offset <= cta->smem_bytes - bytes)
    return cta->smem + offset;
  machine_fault_at(machine, origin, "%s: shared memory 0x%llx to 0x%llx is outside of the CTA's 0x%x to 0x%x",
                   what, (unsigned long long)offset, (unsigned long long)(offset + bytes), SHARED_FIRST,
                   cta->smem_bytes);
  return NULL;
}

Cta *async_shared_target(Machine *machine, Warp *warp, int lane, uint64_t address, uint32_t align,
                         const char *what, uint32_t *offset) {
  Cta *cta = space_shared_cta(machine, warp->cta, address, offset);
  if (!cta) {
    machine_fault(machine, warp, lane, "%s: address 0x%llx names no shared memory of this cluster", what,
                  (unsigned long long)address);
    return NULL;
  }
  if (*offset % align) {
    machine_fault(machine, warp, lane, "%s: shared address 0x%llx is not a multiple of %u", what,
                  (unsigned long long)address, align);
    return NULL;
  }
  if (cta_async(cta)->ended) {
    machine_fault(machine, warp, lane, "%s: CTA %u of the cluster has exited", what, cta->rank);
    return NULL;
  }
  return cta;
}

Cta *cta_pair_peer(const Cta *cta) {
  uint32_t rank = cta->rank ^ 1;
  return rank < (uint32_t)cta->cluster->nctas ? &cta->cluster->ctas[rank] : NULL;
}

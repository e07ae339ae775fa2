// A thread that has issued bulk stores must not exit before they have read their source: the CTA's shared
// memory is gone then.
#include "check/class.h"
#include "check/cta_table.h"
#include "check/observers.h"

#include <stdlib.h>

#include "async/async_internal.h"
#include "exec/report.h"

enum { MOST_THREADS = 1024 };

typedef struct {
  uint32_t issued[MOST_THREADS], waited[MOST_THREADS];
  const Inst *last[MOST_THREADS];
} Stores;

typedef struct {
  CtaTable ctas;
} State;

static void on_start(State *self, Machine *machine, const Event *event) {
  const EngineOp *op = machine->op;
  if (op->engine != ENGINE_TMA_STORE || op->origin.lane < 0 || !op->groups) return;
  Stores *stores = cta_table_get(&self->ctas, event->cta, sizeof *stores);
  if (!stores) return;
  int thread = op->origin.warp * WARP_LANES + op->origin.lane;
  stores->issued[thread] = op->groups[op->origin.lane].issued;
  stores->last[thread] = op->origin.inst;
}

static void on_wait(State *self, const Event *event) {
  InstClass kind = inst_class(event->inst);
  if (kind != CLASS_WAIT_BULK && kind != CLASS_WAIT_BULK_READ) return;
  Stores *stores = cta_table_get(&self->ctas, event->cta, sizeof *stores);
  uint32_t thread = thread_index(event->warp, first_lane(event->lanes));
  if (stores && stores->waited[thread] < event->bytes) stores->waited[thread] = (uint32_t)event->bytes;
}

static void on_thread_exit(State *self, Machine *machine, const Event *event) {
  if (self->ctas.n == 0) return;
  Stores *stores = cta_table_get(&self->ctas, event->cta, sizeof *stores);
  FOR_LANES(lane, event->lanes) {
    uint32_t thread = thread_index(event->warp, (int)lane);
    if (!stores || stores->issued[thread] <= stores->waited[thread]) continue;
    const Inst *store = stores->last[thread];
    if (!finding_is_new(machine, CHECK_EXIT, store, NULL)) continue;
    Origin origin = {(Cta *)(uintptr_t)event->cta, event->warp->index, (int)lane, store};
    machine_finding_pair(
        machine, CHECK_EXIT, &origin, NULL,
        "cp.async.bulk.commit_group and cp.async.bulk.wait_group.read 0 in this thread before it exits",
        "the thread exits without having waited until its bulk store has read shared memory");
  }
}

static void on_event(void *state, Machine *machine, const Event *event) {
  State *self = state;
  if (event->kind == EVENT_ASYNC_START) on_start(self, machine, event);
  if (event->kind == EVENT_GROUP_WAIT) on_wait(self, event);
  if (event->kind == EVENT_THREAD_EXIT) on_thread_exit(self, machine, event);
  if (event->kind == EVENT_CTA_END) free(cta_table_take(&self->ctas, event->cta));
}

static void *begin(Machine *machine) {
  return ARENA_NEW(machine->arena, State);
}

static void end(void *state, Machine *machine) {
  (void)machine;
  State *self = state;
  cta_table_free(&self->ctas);
}

const Observer exit_observer = {
    .name = "exit",
    .events =
        1u << EVENT_ASYNC_START | 1u << EVENT_GROUP_WAIT | 1u << EVENT_THREAD_EXIT | 1u << EVENT_CTA_END,
    .begin = begin,
    .on_event = on_event,
    .end = end,
};

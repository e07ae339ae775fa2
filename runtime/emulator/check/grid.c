// In a kernel that has a griddepcontrol.wait (PTX ISA 9.7.13.13), every access to global memory comes behind one: the
// kernel before may still run. The thread has passed it, or has since met, at a barrier or an mbarrier of its CTA,
// threads of which some had. Prefetches into L2 may come before.
#include "check/class.h"
#include "check/cta_table.h"
#include "check/observers.h"

#include <stdlib.h>

#include "async/async_internal.h"
#include "exec/report.h"

enum { MOST_WARPS = 32 };

typedef struct {
  bool some;  // a thread has passed
  uint32_t passed[MOST_WARPS];
} Passed;

typedef struct {
  CtaTable ctas;
} State;

static const Inst *find_wait(const Machine *machine) {
  const Function *entry = machine->launch->entry;
  for (uint32_t i = 0; i < entry->count; i++) {
    const Inst *inst = &machine->module->insts[entry->first + i];
    if (inst_class(inst) == CLASS_WAIT_GRID) return inst;
  }
  return NULL;
}

bool grid_waits(const Machine *machine) {
  return find_wait(machine) != NULL;
}

static Passed *passed_of(State *self, const Cta *cta) {
  return cta_table_get(&self->ctas, cta, sizeof(Passed));
}

static void on_pass(State *self, const Event *event) {
  Passed *passed = passed_of(self, event->warp->cta);
  bool wait = event->kind == EVENT_FENCE;
  if (!passed || (wait && inst_class(event->inst) != CLASS_WAIT_GRID) || (!wait && !passed->some)) return;
  passed->some = true;
  passed->passed[event->warp->index] |= event->lanes;
}

static void check(State *self, Machine *machine, const Cta *cta, int warp, uint32_t lanes, const Inst *inst) {
  const Passed *passed = passed_of(self, cta);
  if (!passed || !(lanes & ~passed->passed[warp])) return;
  if (!finding_is_new(machine, CHECK_GRID, inst, NULL)) return;
  Origin origin = {(Cta *)(uintptr_t)cta, warp, first_lane(lanes & ~passed->passed[warp]), inst};
  machine_finding_pair(
      machine, CHECK_GRID, &origin, NULL,
      "griddepcontrol.wait in this thread first, or a barrier with threads behind theirs",
      "global memory is accessed before griddepcontrol.wait (line %d): the kernel before may "
      "still write what is read, or read what is written",
      find_wait(machine)->line);
}

static bool is_global(const Event *event) {
  uint64_t window = event->address >> 32;
  if (event->space != SPACE_GENERIC) return event->space == SPACE_GLOBAL;
  return window != SHARED_WINDOW >> 32 && window != LOCAL_WINDOW >> 32 && window != PARAM_WINDOW >> 32;
}

static void on_start(State *self, Machine *machine) {
  const EngineOp *op = machine->op;
  bool copy = op->engine == ENGINE_TMA_LOAD || op->engine == ENGINE_TMA_STORE;
  uint32_t lanes = op->origin.lane < 0 ? op->group_lanes : 1u << op->origin.lane;
  if ((copy || op->engine == ENGINE_CP_ASYNC) && inst_has(op->origin.inst, MOD_global))
    check(self, machine, op->origin.cta, op->origin.warp, lanes, op->origin.inst);
}

static void on_event(void *state, Machine *machine, const Event *event) {
  State *self = state;
  if (event->kind == EVENT_CTA_END) {
    free(cta_table_take(&self->ctas, event->cta));
  } else if (event->kind == EVENT_ASYNC_START) {
    on_start(self, machine);
  } else if (event->warp && (event->kind == EVENT_FENCE || event->kind == EVENT_BARRIER)) {
    on_pass(self, event);
  } else if (event->warp && is_global(event)) {
    check(self, machine, event->warp->cta, event->warp->index, event->lanes, event->inst);
  }
}

static void *begin(Machine *machine) {
  return ARENA_NEW(machine->arena, State);
}

static void end(void *state, Machine *machine) {
  (void)machine;
  State *self = state;
  cta_table_free(&self->ctas);
}

const Observer grid_observer = {
    .name = "grid",
    .events = 1u << EVENT_READ | 1u << EVENT_WRITE | 1u << EVENT_ASYNC_START | 1u << EVENT_FENCE |
              1u << EVENT_BARRIER | 1u << EVENT_CTA_END,
    .begin = begin,
    .on_event = on_event,
    .end = end,
};

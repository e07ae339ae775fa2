// Registers that asynchronous instructions deliver or hold: those of tcgen05.ld until tcgen05.wait::ld, accumulators of wgmma until
// wgmma.wait_group, and registers that wgmma takes although something wrote them after the last wgmma.fence.
#include <stdlib.h>
#include <string.h>

#include "async/async_internal.h"
#include "check/class.h"
#include "check/cta_table.h"
#include "check/observers.h"
#include "exec/report.h"

enum { ROW = 64 };  // bytes of the register file per mark; a row of 32-bit registers has two
#define BY_TCGEN05 0xffffffffu

typedef struct {
  uint32_t *owner;                // who delivers there: BY_TCGEN05, or the number of the wgmma; 0: nobody
  uint32_t *written;              // 1 + wgmma.fences that came before the last ordinary write
  uint32_t done, fences, newest;  // wgmmas waited for; the newest one
  const Inst *load, *mma;
} WarpRows;

typedef struct {
  CtaTable ctas;
  const uint8_t *classes;
  uint32_t rows;
} State;

static WarpRows *rows_of(State *self, const Cta *cta, int warp) {
  size_t marks = (size_t)self->rows * sizeof(uint32_t), each = sizeof(WarpRows) + 2 * marks;
  uint8_t *memory = cta_table_get(&self->ctas, cta, (size_t)cta->nwarps * each);
  if (!memory) return NULL;
  WarpRows *rows = (WarpRows *)(void *)(memory + (size_t)warp * sizeof *rows);
  uint8_t *all = memory + (size_t)cta->nwarps * sizeof *rows + 2 * marks * (size_t)warp;
  rows->owner = (uint32_t *)(void *)all;
  rows->written = (uint32_t *)(void *)(all + marks);
  return rows;
}

static bool watched(const State *self, const Operand *op) {
  bool reg = op->kind == OPERAND_REG || op->kind == OPERAND_ADDRESS;
  return reg && op->bank == BANK_WARP && op->row == ROW_32 && op->off / ROW < self->rows;
}

static void set_owner(const State *self, WarpRows *rows, const Operand *op, uint32_t owner) {
  if (watched(self, op)) rows->owner[op->off / ROW] = owner;
  for (int i = 0; i < op->nelems; i++) set_owner(self, rows, &op->elems[i], owner);
}

static void set_written(const State *self, WarpRows *rows, const Operand *op) {
  if (op->kind == OPERAND_ADDRESS) return;
  if (watched(self, op)) rows->written[op->off / ROW] = rows->fences + 1;
  for (int i = 0; i < op->nelems; i++) set_written(self, rows, &op->elems[i]);
}

// The owner that still holds one of the operand's registers; 0: none.
static uint32_t holder(const State *self, const WarpRows *rows, const Operand *op) {
  uint32_t owner = watched(self, op) ? rows->owner[op->off / ROW] : 0;
  if (owner == BY_TCGEN05 || owner > rows->done) return owner;
  for (int i = 0; i < op->nelems; i++)
    if ((owner = holder(self, rows, &op->elems[i])) != 0) return owner;
  return 0;
}

static bool unfenced(const State *self, const WarpRows *rows, const Operand *op) {
  if (watched(self, op) && rows->written[op->off / ROW] == rows->fences + 1) return true;
  for (int i = 0; i < op->nelems; i++)
    if (unfenced(self, rows, &op->elems[i])) return true;
  return false;
}

static Origin origin_of(const Event *event) {
  return (Origin){(Cta *)(uintptr_t)event->cta, event->warp->index, first_lane(event->lanes), event->inst};
}

static void report_held(Machine *machine, const WarpRows *rows, const Event *event, uint32_t owner) {
  bool load = owner == BY_TCGEN05;
  Check check = load ? CHECK_TCGEN05 : CHECK_RACE;
  const Inst *inst = load ? rows->load : rows->mma;
  if (!finding_is_new(machine, check, event->inst, inst)) return;
  Origin origin = origin_of(event);
  OtherSide other = {"it is delivered here", {origin.cta, event->warp->index, -1, inst}, 0};
  machine_finding_pair(machine, check, &origin, &other,
                       load ? "tcgen05.wait::ld before the first use of the registers"
                            : "wgmma.commit_group and wgmma.wait_group before the accumulator is touched",
                       load ? "a register that tcgen05.ld delivers is used before tcgen05.wait::ld"
                            : "a register that wgmma accumulates in is used before wgmma.wait_group");
}

static void on_issue(State *self, Machine *machine, const Event *event) {
  const Inst *inst = event->inst;
  InstClass kind = (InstClass)self->classes[inst - machine->module->insts];
  WarpRows *rows = rows_of(self, event->cta, event->warp->index);
  if (!rows) return;
  if (kind == CLASS_WGMMA) {
    bool bad = unfenced(self, rows, &inst->ops[0]) || unfenced(self, rows, &inst->ops[1]);
    if (!bad || !finding_is_new(machine, CHECK_RACE, inst, NULL)) return;
    Origin origin = origin_of(event);
    machine_finding_pair(machine, CHECK_RACE, &origin, NULL,
                         "wgmma.fence.sync.aligned between the write and the wgmma",
                         "wgmma takes a register that was written since the last wgmma.fence");
    return;
  }
  bool held = rows->load || rows->newest > rows->done;
  for (int i = 0; held && i < inst->nops; i++) {
    uint32_t owner = holder(self, rows, &inst->ops[i]);
    if (owner == 0) continue;
    report_held(machine, rows, event, owner);
    break;
  }
  // Compilers copy accumulators between the fence and the wgmma; their assembler makes one register of both.
  if (inst->nops > 0 && kind != CLASS_MOVE) set_written(self, rows, &inst->ops[0]);
}

static void on_wgmma(State *self, Machine *machine) {
  const EngineOp *op = machine->op;
  if (op->engine != ENGINE_TENSOR || op->origin.lane >= 0 || !op->groups) return;
  WarpRows *rows = rows_of(self, op->origin.cta, op->origin.warp);
  if (!rows) return;
  rows->mma = op->origin.inst;
  rows->newest = op->groups->issued;
  set_owner(self, rows, &op->origin.inst->ops[0], rows->newest);
}

static void on_fence(State *self, Machine *machine, const Event *event) {
  InstClass kind = (InstClass)self->classes[event->inst - machine->module->insts];
  WarpRows *rows = rows_of(self, event->cta, event->warp->index);
  if (!rows) return;
  if (kind == CLASS_FENCE_WGMMA) rows->fences++;
  if (kind != CLASS_WAIT_LD) return;
  for (uint32_t i = 0; rows->load && i < self->rows; i++)
    if (rows->owner[i] == BY_TCGEN05) rows->owner[i] = 0;
  rows->load = NULL;
}

static void on_event(void *state, Machine *machine, const Event *event) {
  State *self = state;
  WarpRows *rows;
  if (event->kind == EVENT_ISSUE) {
    on_issue(self, machine, event);
  } else if (event->kind == EVENT_ASYNC_START) {
    on_wgmma(self, machine);
  } else if (event->kind == EVENT_FENCE) {
    on_fence(self, machine, event);
  } else if (event->kind == EVENT_CTA_END) {
    free(cta_table_take(&self->ctas, event->cta));
  } else if (event->kind == EVENT_GROUP_WAIT) {
    if (self->classes[event->inst - machine->module->insts] != CLASS_WAIT_WGMMA) return;
    rows = rows_of(self, event->cta, event->warp->index);
    if (rows && rows->done < event->bytes) rows->done = (uint32_t)event->bytes;
  } else if (event->kind == EVENT_READ && event->space == SPACE_TMEM) {
    rows = rows_of(self, event->cta, event->warp->index);
    if (!rows) return;
    rows->load = event->inst;
    set_owner(self, rows, &event->inst->ops[0], BY_TCGEN05);
  }
}

static void *begin(Machine *machine) {
  State *self = ARENA_NEW(machine->arena, State);
  self->classes = inst_classes(machine);
  self->rows = machine->launch->entry->register_bytes / ROW + 1;
  return self;
}

static void end(void *state, Machine *machine) {
  (void)machine;
  State *self = state;
  cta_table_free(&self->ctas);
}

const Observer registers_observer = {
    .name = "registers",
    .events = 1u << EVENT_ISSUE | 1u << EVENT_READ | 1u << EVENT_FENCE | 1u << EVENT_ASYNC_START |
              1u << EVENT_GROUP_WAIT | 1u << EVENT_CTA_END,
    .begin = begin,
    .on_event = on_event,
    .end = end,
};

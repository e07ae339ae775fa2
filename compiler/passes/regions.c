// Needs    TIR_SYNCED: what one thread does stands in regions of its own, one for each op that was lowered.
// Does     Makes one region of neighbouring ones, with what is computed between them in front: a thread is elected once. In such a
//          region, what is announced to a barrier in parts, before one arrival there, is announced at once by that arrival:
//
//            expect_tx b, x; copy; expect_tx b, y; copy; arrive b    ->    arrive b, expecting x + y; copy; copy
//
//          The phase cannot end sooner for it: it waits for all the bytes (PTX ISA 9.7.13.15.5).
// Leaves   TIR_SYNCED.
// Reports  Nothing.
#include "passes/hazards.h"
#include "passes/tile.h"
#include "tir/ranges.h"

// The next region, if only pure ops stand before it.
static TirOp *neighbour(const TirOp *region) {
  TirOp *next = region->next;
  while (next && op_def(next->kind)->pure) next = next->next;
  return next && next->kind == OP_one_thread ? next : NULL;
}

static void merge(TirOp *region, TirOp *next) {
  for (TirOp *op = region->next, *after; op != next; op = after) {
    after = op->next;
    tir_remove(op);
    tir_insert_before(region, op);
  }
  for (TirOp *op = next->bodies[0]->first, *after; op; op = after) {
    after = op->next;
    tir_remove(op);
    tir_append(region->bodies[0], op);
  }
  tir_remove(next);
}

// ---- announcements

static bool announces(const TirOp *op, int64_t *bytes) {
  return op->kind == OP_mbar_expect_tx && !op->attrs[EXPECT_arrive] && tir_const_int(op->args[1], bytes);
}

// Another one of the same array, as far as can be seen: it may be the same all the same.
static bool may_be_same(TirValue *barrier, TirValue *other) {
  return tir_root(barrier) == tir_root(other) && !tir_same_value(barrier, other);
}

// The one arrival on the barrier behind `first`, with nothing but copies and their announcements between.
static TirOp *arrival_behind(const TirOp *first) {
  for (TirOp *op = first->next; op; op = op->next) {
    int64_t bytes;
    if (op->kind == OP_mbar_arrive && tir_same_value(op->args[0], first->args[0])) return op;
    bool announced = announces(op, &bytes) && !may_be_same(op->args[0], first->args[0]);
    if (!op_def(op->kind)->pure && op_path(op) != PATH_TMA_LOAD && !announced) return NULL;
  }
  return NULL;
}

static void announce_at_once(PassCx *cx, TirOp *first) {
  TirOp *arrival = arrival_behind(first);
  int64_t sum = 0, bytes;
  if (!arrival) return;
  for (TirOp *op = first, *next; op != arrival; op = next) {
    next = op->next;
    if (!announces(op, &bytes) || !tir_same_value(op->args[0], first->args[0])) continue;
    sum += bytes;
    if (op != first) tir_remove(op);
  }
  tir_remove(arrival);
  TirBuilder b = tir_builder_before(cx->module, first);
  first->args[1] = tir_int(&b, sum);
  first->attrs[EXPECT_arrive] = true;
}

static void announce(PassCx *cx, TirBlock *block) {
  int64_t bytes;
  for (TirOp *op = block->first; op; op = op->next)
    if (announces(op, &bytes)) announce_at_once(cx, op);
}

static void walk(PassCx *cx, TirBlock *block) {
  for (TirOp *op = block->first; op; op = op->next) {
    TirOp *next;
    while (op->kind == OP_one_thread && (next = neighbour(op))) merge(op, next);
    if (op->kind == OP_one_thread) announce(cx, op->bodies[0]);
    for (int i = 0; i < op->nbodies; i++) walk(cx, op->bodies[i]);
  }
}

bool pass_regions(PassCx *cx, TirKernel *kernel) {
  walk(cx, kernel->body);
  return true;
}

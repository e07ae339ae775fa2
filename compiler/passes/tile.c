// Questions about tile ops that several passes ask. The answers come from OpDef: a new op needs nothing here.
#include "passes/tile.h"

#include <assert.h>
#include <string.h>

typedef struct {
  Arena *arena;
  TirOpList ops;
} Collector;

static bool push_op(void *context, TirOp *op) {
  Collector *collector = context;
  vec_push(collector->arena, &collector->ops, op);
  return true;
}

TirOpList tile_collect(Arena *arena, TirBlock *block) {
  Collector collector = {.arena = arena};
  tir_walk(block, push_op, &collector);
  return collector.ops;
}

bool tile_is(const TirOp *op) {
  return op_def(op->kind)->group == GROUP_TILE;
}

int64_t tile_attr(const TirOp *op, const char *name, int64_t absent) {
  int index = op_attr_index(op_def(op->kind), name);
  return index < 0 ? absent : op->attrs[index];
}

void tile_set_attr(TirOp *op, const char *name, int64_t value) {
  int index = op_attr_index(op_def(op->kind), name);
  assert(index >= 0);
  op->attrs[index] = value;
}

int tile_slot(const TirOp *op, const char *name) {
  const OpDef *def = op_def(op->kind);
  for (int i = 0; i < def->noperands; i++)
    if (def->operands[i].name && !strcmp(def->operands[i].name, name)) return i;
  return -1;
}

unsigned tile_access(const TirOp *op, int i) {
  const OpDef *def = op_def(op->kind);
  if (i >= def->noperands || i >= op->nargs || !op->args[i] || op->args[i]->type.kind != TYPE_BUFFER)
    return 0;
  return def->operands[i].access;
}

bool tile_move(const TirOp *op, TirValue **src, TirValue **dst) {
  if (!tile_is(op)) return false;
  *src = *dst = NULL;
  for (int i = 0; i < op->nargs; i++) {
    unsigned access = tile_access(op, i);
    if (access == 0 || op->args[i]->type.space == SPACE_BARRIER) continue;
    if (op_def(op->kind)->operands[i].index) return false;
    TirValue **side = access == READS ? src : dst;
    if (access == ACCUMULATES || *side) return false;
    *side = op->args[i];
  }
  return *src && *dst;
}

TirValue *tile_ring(const TirOp *op) {
  int ring = tile_attr(op, "path", PATH_NONE) == PATH_PANELS ? tile_slot(op, "ring") : -1;
  return ring >= 0 && ring < op->nargs ? op->args[ring] : NULL;
}

void tile_guard(PassCx *cx, TirKernel *kernel, TirValue *tensor, bool store) {
  for (int i = 0; i < kernel->guards.len; i++) {
    TirGuard *guard = &kernel->guards.data[i];
    if (guard->tensor != tensor) continue;
    guard->store = guard->store || store;
    return;
  }
  vec_push(cx->module->arena, &kernel->guards, ((TirGuard){tensor, store}));
}

bool tile_reduction(const TirOp *op, TileReduction *out) {
  int64_t dim = tile_is(op) ? tile_attr(op, "dim", -1) : -1;
  if (dim < 0) return false;
  *out = (TileReduction){.src = op->args[0], .dst = op->args[1], .dim = (int)dim};
  for (int d = 0; d < out->src->type.rank; d++)
    if (d != dim) out->kept[out->nkept++] = d;
  return true;
}

TirOp *tile_outermost(TirOp *op, OpKind kind) {
  TirOp *found = NULL;
  for (TirOp *at = op; at; at = tir_parent(at))
    if (at->kind == kind) found = at;
  return found;
}

bool tile_is_element(const TirOp *op) {
  return op->kind == OP_load || op->kind == OP_store || op->kind == OP_atomic || op->kind == OP_atomic_load ||
         op->kind == OP_atomic_store;
}

bool tile_is_fragment(const TirValue *value) {
  return value && value->type.kind == TYPE_BUFFER && value->type.space == SPACE_FRAGMENT;
}

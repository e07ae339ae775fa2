// Needs    TIR_SELECTED: paths say which buffers an MMA or the TMA touches.
// Does     Gives every shared buffer a layout: swizzled panels for operands of an MMA and for rings of panels, with the widest span
//          that divides a row, else row-major. Gives every TMA copy its tensor map; equal maps are one.
// Leaves   TIR_LAID_OUT.
// Reports  Nothing: select's rules accepted only what this pass can lay out.
#include "passes/hazards.h"
#include "passes/tile.h"
#include "target/rules.h"

#include <string.h>

static bool read_by_mma(TirOpList ops, const TirValue *root) {
  for (int i = 0; i < ops.len; i++) {
    const TirOp *op = ops.data[i];
    if (!path_is_mma(op_path(op))) continue;
    for (int a = 0; a < op->nargs; a++)
      if (tile_access(op, a) == READS && tir_root(op->args[a]) == root) return true;
  }
  return false;
}

static bool is_ring(TirOpList ops, const TirValue *root) {
  for (int i = 0; i < ops.len; i++)
    if (tile_ring(ops.data[i]) == root) return true;
  return false;
}

static void lay_out(PassCx *cx, TirOpList ops, TirValue *buffer) {
  Layout *layout = ARENA_NEW(cx->module->arena, Layout);
  layout->kind = LAYOUT_SHARED;
  layout->span = rule_shared_span(cx->target, buffer, read_by_mma(ops, buffer) || is_ring(ops, buffer));
  layout->offset = -1;
  buffer->layout = layout;
}

static int add_map(PassCx *cx, TirKernel *kernel, const TirMap *map) {
  for (int i = 0; i < kernel->maps.len; i++) {
    const TirMap *other = &kernel->maps.data[i];
    if (other->tensor == map->tensor && other->swizzle == map->swizzle && other->store == map->store &&
        !memcmp(other->box, map->box, sizeof map->box))
      return i;
  }
  vec_push(cx->module->arena, &kernel->maps, *map);
  return kernel->maps.len - 1;
}

static void give_map(PassCx *cx, TirKernel *kernel, TirOp *op) {
  TirValue *src, *dst;
  if (!tile_move(op, &src, &dst)) BUG("%s with a TMA path is no move", op_def(op->kind)->name);
  TirValue *ring = tile_ring(op);
  bool store = ring || op_path(op) == PATH_TMA_STORE;
  RuleTile tile = rule_tile(store ? dst : src);
  int span = tir_layout(ring ? ring : store ? src : dst)->span;
  TirMap map = {.tensor = tile.root, .swizzle = span, .store = store};
  if (!rule_tma_box(cx->target, &tile, span, map.box))
    BUG("a TMA copy that the target's rule accepted has no box");
  tile_set_attr(op, "map", add_map(cx, kernel, &map));
}

bool pass_memory_layout(PassCx *cx, TirKernel *kernel) {
  TirOpList ops = tile_collect(cx->scratch, kernel->body);
  for (int i = 0; i < ops.len; i++) {
    TirOp *op = ops.data[i];
    if (op->kind == OP_alloc && op->results[0]->type.space == SPACE_SHARED) lay_out(cx, ops, op->results[0]);
    // Rows of as many bytes lie alike, and so do rows of any length that are adjacent (ALLOC_plain).
    if (op->kind == OP_reshape) op->results[0]->layout = op->args[0]->layout;
  }
  for (int i = 0; i < ops.len; i++) {
    Path path = op_path(ops.data[i]);
    if (path == PATH_TMA_LOAD || path == PATH_TMA_STORE || path == PATH_PANELS)
      give_map(cx, kernel, ops.data[i]);
  }
  return true;
}

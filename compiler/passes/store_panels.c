// A thread's groups of bulk copies finish in order, and one thread stores all panels of a ring. So before panel p it waits
// until no more than slots - 1 groups are left: the one of panel p - slots is not among them. Before the first panel it waits
// for all, and until they have arrived: the tile before may have ended in the same slot, or lie where this one does.
#include "passes/store_panels.h"

#include "passes/hazards.h"
#include "target/rules.h"

static void wait_for_stores(PassCx *cx, TirBuilder *b, int pending, bool read) {
  TirOp *one = tir_one_thread(b);
  TirBuilder inside = tir_builder_at_end(cx->module, one->bodies[0], b->span);
  TirOp *wait = tir_op(&inside, OP_bulk_wait, 0, NULL, 0, NULL);
  wait->attrs[BULK_pending] = pending;
  wait->attrs[BULK_read] = read;
}

// Columns `start` up to start + columns of a tile.
static TirValue *columns_of(TirBuilder *b, TirValue *tile, int64_t start, int64_t columns) {
  if (start == 0 && columns == tile->type.shape[1]) return tile;
  TirValue *offsets[] = {tir_int(b, 0), tir_int(b, start)};
  const int64_t extents[] = {tile->type.shape[0], columns};
  return tir_view(b, tile, offsets, extents, 0);
}

static TirValue *slot_of(TirBuilder *b, TirValue *ring, TirValue *number) {
  TirValue *offsets[] = {number, tir_int(b, 0), tir_int(b, 0)};
  const int64_t extents[] = {1, ring->type.shape[1], ring->type.shape[2]};
  return tir_view(b, ring, offsets, extents, 1);
}

static void store_panel(PassCx *cx, TirOp *op, TirValue *number, int64_t start) {
  TirValue *src, *dst, *ring = tile_ring(op);
  if (!tile_move(op, &src, &dst)) BUG("%s by panels is no move", op_def(op->kind)->name);
  int64_t columns = ring->type.shape[2];
  TirBuilder b = tir_builder_before(cx->module, op);
  TirValue *slot = slot_of(&b, ring, number);
  TirOp *write = rule_make_copy(&b, columns_of(&b, src, start, columns), slot);
  tile_set_attr(write, "path", PATH_THREADS);
  tile_set_attr(write, "bounded", true);
  TirOp *store = rule_make_copy(&b, slot, columns_of(&b, dst, start, columns));
  tile_set_attr(store, "path", PATH_TMA_STORE);
  tile_set_attr(store, "map", tile_attr(op, "map", -1));
}

// The slot of panel `i` of the op's.
static TirValue *number_of(TirBuilder *b, const TirOp *op, const TirOp *loop, int64_t i) {
  const TirValue *ring = tile_ring(op);
  TirValue *slots = tir_int(b, ring->type.shape[0]), *number = tir_int(b, i);
  if (loop) {
    TirValue *columns = tir_int(b, ring->type.shape[2]);
    number = tir_binary(b, OP_add, tir_binary(b, OP_floordiv, loop->results[0], columns), number);
  }
  return tir_binary(b, OP_floormod, number, slots);
}

void store_panels(PassCx *cx, TirOp *op, TirOp *loop, TirOp *first) {
  const TirValue *ring = tile_ring(op);
  int64_t columns = ring->type.shape[2], panels = op->args[0]->type.shape[1] / columns;
  int pending = (int)ring->type.shape[0] - 1;
  TirBuilder begin = tir_builder_before(cx->module, loop ? loop : first);
  begin.span = op->span;
  wait_for_stores(cx, &begin, 0, false);
  for (int64_t i = 0; i < panels; i++) {
    TirBuilder b = tir_builder_before(cx->module, i ? op : first);
    b.span = op->span;
    if (loop || i) wait_for_stores(cx, &b, pending, true);
    tir_op(&b, OP_sync_threads, 0, NULL, 0, NULL);
    store_panel(cx, op, number_of(&b, op, loop, i), i * columns);
  }
  tir_remove(op);
}

// The block at whose end the threads that run this op part or leave.
static TirBlock *home_of(TirOp *op) {
  TirBlock *block = op->parent;
  while (block->owner && block->owner->kind != OP_role) block = block->owner->parent;
  return block;
}

void await_panels(PassCx *cx, TirKernel *kernel) {
  TirOpList ops = tile_collect(cx->scratch, kernel->body);
  VEC(TirBlock *) homes = {0};
  for (int i = 0; i < ops.len; i++) {
    if (!tile_ring(ops.data[i])) continue;
    TirBlock *home = home_of(ops.data[i]);
    bool known = false;
    for (int h = 0; h < homes.len; h++) known = known || homes.data[h] == home;
    if (known) continue;
    vec_push(cx->scratch, &homes, home);
    TirBuilder b = tir_builder_at_end(cx->module, home, ops.data[i]->span);
    wait_for_stores(cx, &b, 0, true);
  }
}

void store_remaining_panels(PassCx *cx, TirKernel *kernel) {
  TirOpList ops = tile_collect(cx->scratch, kernel->body);
  for (int i = 0; i < ops.len; i++)
    if (tile_ring(ops.data[i])) store_panels(cx, ops.data[i], NULL, ops.data[i]);
}

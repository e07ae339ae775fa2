// A thread's groups of bulk copies finish in order, and one thread stores all panels of a ring. So before panel p it waits
// until no more than slots - 1 groups are left: the one of panel p - slots is not among them. Before the first panel it waits
// for all, and until they have arrived: the tile before may have ended in any slot, or lie where this one does.
#include "passes/store_panels.h"

#include "passes/hazards.h"
#include "target/rules.h"

enum { MOST_TOGETHER = 16 };

static void wait_for_stores(PassCx *cx, TirBuilder *b, int pending, bool read) {
  TirOp *one = tir_one_thread(b);
  TirBuilder inside = tir_builder_at_end(cx->module, one->bodies[0], b->span);
  TirOp *wait = tir_op(&inside, OP_bulk_wait, 0, NULL, 0, NULL);
  wait->attrs[BULK_pending] = pending;
  wait->attrs[BULK_read] = read;
}

// Before the first panel of a tile (pending is 0): all slots are free; before others: the one that has been taken longest.
static void free_slots(PassCx *cx, TirBuilder *b, int64_t pending) {
  wait_for_stores(cx, b, (int)pending, pending > 0);
  tir_op(b, OP_sync_threads, 0, NULL, 0, NULL);
}

static void free_slots_if(PassCx *cx, TirBuilder *b, TirValue *condition, int64_t pending) {
  TirOp *branch = tir_if(b, condition);
  TirBuilder inside = tir_builder_at_end(cx->module, branch->bodies[0], b->span);
  free_slots(cx, &inside, pending);
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

static void write_panel(TirBuilder *b, TirOp *op, TirValue *slot, int64_t start) {
  TirOp *write = rule_make_copy(b, columns_of(b, op->args[0], start, slot->type.shape[1]), slot);
  tile_set_attr(write, "path", PATH_THREADS);
  tile_set_attr(write, "bounded", true);
}

static void send_panel(TirBuilder *b, TirOp *op, TirValue *slot, int64_t start) {
  TirOp *store = rule_make_copy(b, slot, columns_of(b, op->args[1], start, slot->type.shape[1]));
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

// A slot as a buffer of its own: what is done with one then asks for nothing to be done about another.
static TirValue *own_slot(PassCx *cx, TirOp *op) {
  TirValue *ring = tile_ring(op);
  TirBuilder b = tir_builder_before(cx->module, ring->op);
  const int64_t shape[] = {ring->type.shape[1], ring->type.shape[2]};
  TirValue *slot = tir_alloc(&b, ring->op->name, type_buffer(ring->type.dtype, SPACE_SHARED, 2, shape));
  slot->name = ring->name;
  slot->op->attrs[ALLOC_ordered] = true;
  slot->layout = ARENA_NEW(cx->module->arena, Layout);
  *slot->layout = *ring->layout;
  return slot;
}

// With a slot for every panel the threads write all of them before they meet, once. `first` may stand before what makes the values.
static void store_together(PassCx *cx, TirOp *op, TirOp *first, int64_t panels) {
  int64_t columns = tile_ring(op)->type.shape[2];
  TirBuilder b = tir_builder_before(cx->module, first), end = tir_builder_before(cx->module, op);
  TirValue *slots[MOST_TOGETHER];
  b.span = end.span = op->span;
  free_slots(cx, &b, 0);
  for (int64_t i = 0; i < panels; i++) {
    slots[i] = own_slot(cx, op);
    write_panel(&end, op, slots[i], i * columns);
  }
  for (int64_t i = 0; i < panels; i++) send_panel(&end, op, slots[i], i * columns);
  tir_remove(tile_ring(op)->op);
}

// Whether nothing else uses the ring, also no steps of another op.
static bool is_alone(PassCx *cx, const TirOp *op) {
  TirOpList all = tile_collect(cx->scratch, op->parent->kernel->body);
  for (int i = 0; i < all.len; i++)
    for (int a = 0; a < all.data[i]->nargs; a++)
      if (all.data[i] != op && all.data[i]->args[a] == tile_ring(op)) return false;
  return true;
}

// What a panel of a round of the loop has to wait for depends on the round.
static void free_in_round(PassCx *cx, TirBuilder *b, const TirOp *loop, int64_t panel, const Type *ring) {
  int64_t slots = ring->shape[0], columns = ring->shape[2], extent;
  TirValue *piece = loop->results[0];
  if (panel == 0) free_slots_if(cx, b, tir_binary(b, OP_eq, piece, tir_int(b, 0)), 0);
  if (tir_const_int(loop->args[FOR_HI], &extent) && extent <= slots * columns) return;
  TirValue *taken = tir_int(b, (slots - panel) * columns);
  free_slots_if(cx, b, tir_binary(b, OP_ge, piece, taken), slots - 1);
}

static void store_in_turn(PassCx *cx, TirOp *op, TirOp *loop, TirOp *first, int64_t panels) {
  const Type *ring = &tile_ring(op)->type;
  int64_t columns = ring->shape[2], slots = ring->shape[0];
  for (int64_t i = 0; i < panels; i++) {
    TirBuilder b = tir_builder_before(cx->module, i ? op : first);
    b.span = op->span;
    if (loop)
      free_in_round(cx, &b, loop, i, ring);
    else if (i == 0 || i >= slots)
      free_slots(cx, &b, i == 0 ? 0 : slots - 1);
    TirBuilder at = tir_builder_before(cx->module, op);
    TirValue *slot = slot_of(&at, tile_ring(op), number_of(&at, op, loop, i));
    write_panel(&at, op, slot, i * columns);
    send_panel(&at, op, slot, i * columns);
  }
}

// Groups of the thread's that may still be on their way when panel `p` of a tile is written, one tile's panels following another's: those
// behind the last one that had its slot.
static int64_t behind(int64_t p, int64_t panels, int64_t slots) {
  int64_t before = p + (panels - 1 - p) / slots * slots;  // of the tile before, the last panel with this slot
  return p >= slots ? slots - 1 : panels - 1 - before + p;
}

static void store_one(PassCx *cx, TirOp *op, int64_t panel, int64_t panels) {
  TirBuilder b = tir_builder_before(cx->module, op);
  const Type *ring = &tile_ring(op)->type;
  b.span = op->span;
  wait_for_stores(cx, &b, (int)behind(panel, panels, ring->shape[0]), true);
  tir_op(&b, OP_sync_threads, 0, NULL, 0, NULL);
  TirValue *slot = slot_of(&b, tile_ring(op), number_of(&b, op, NULL, panel));
  write_panel(&b, op, slot, panel * ring->shape[2]);
  send_panel(&b, op, slot, panel * ring->shape[2]);
}

void store_panels(PassCx *cx, TirOp *op, TirOp *loop, TirOp *first) {
  const Type *ring = &tile_ring(op)->type;
  int64_t panels = op->args[0]->type.shape[1] / ring->shape[2];
  int64_t one = tile_attr(op, "panel", -1);
  if (one >= 0)
    store_one(cx, op, one, panels);
  else if (!loop && panels <= ring->shape[0] && panels <= MOST_TOGETHER && is_alone(cx, op))
    store_together(cx, op, first, panels);
  else
    store_in_turn(cx, op, loop, first, panels);
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

// A reduction of a fragment in up to three steps: each thread folds the registers of a row that it holds; lanes of a
// warp that share the row fold by shuffles; what several warps have of it goes to shared memory, a slot a group:
//
//   fold %src, %slots                        # f32[rows, slots] shared: the first two steps
//   parallel (rows) { x = %slots[i, 0] + %slots[i, 1] + …; store %dst[i] }
#include "passes/reductions.h"

#include "ops/ops.h"

typedef struct {
  PassCx *cx;
  TirOp *op;
  const TileReduction *r;
  ReduceKind kind;
  DType type;  // in which it is computed
} Fold;

static Fold fold_of(PassCx *cx, TirOp *op, const TileReduction *r) {
  return (Fold){cx, op, r, (ReduceKind)tile_attr(op, "kind", 0), op_reduce_type(r->src->type.dtype)};
}

static TirValue *combine(const Fold *f, TirBuilder *b, TirValue *x, TirValue *y) {
  static const OpKind ops[] = {
      [REDUCE_SUM] = OP_add,    [REDUCE_MAX] = OP_max, [REDUCE_MIN] = OP_min, [REDUCE_ABSSUM] = OP_add,
      [REDUCE_ABSMAX] = OP_max, [REDUCE_AND] = OP_and, [REDUCE_OR] = OP_or,   [REDUCE_XOR] = OP_xor};
  return tir_binary(b, ops[f->kind], x, y);
}

static TirValue *element(const Fold *f, TirBuilder *b, TirValue *buffer, TirValue *const *index) {
  TirValue *loaded = tir_load(b, buffer, index, buffer->type.rank);
  if (f->kind == REDUCE_ABSSUM || f->kind == REDUCE_ABSMAX)
    loaded = tir_unary(b, OP_abs, tir_cast(b, f->type, loaded));
  return tir_cast(b, f->type, loaded);
}

// A Parallel loop over dst, spread like it. `kept` gets the variables that index what is kept of src.
static TirOp *loop_over_dst(const Fold *f, TirValue **kept) {
  const Type *type = &f->r->dst->type;
  TirBuilder b = tir_builder_before(f->cx->module, f->op);
  TirValue *extents[TYPE_MAX_RANK];
  int n = 0;
  for (int d = 0; d < type->rank; d++) extents[d] = tir_int(&b, type->shape[d]);
  TirOp *loop = tir_parallel(&b, type->rank, extents);
  bool same_rank = type->rank == f->r->src->type.rank;
  for (int d = 0; d < type->rank && n < f->r->nkept; d++)
    if (!same_rank || d != f->r->dim) kept[n++] = loop->results[d];
  loop->results[0]->layout = f->r->dst->layout;
  return loop;
}

static void store_result(const Fold *f, TirBuilder *b, const TirOp *loop, TirValue *result) {
  TirValue *dst = f->r->dst;
  if (!tile_attr(f->op, "clear", 1))
    result = combine(f, b, tir_cast(b, f->type, tir_load(b, dst, loop->results, dst->type.rank)), result);
  tir_store(b, dst, tir_cast(b, dst->type.dtype, result), loop->results, dst->type.rank);
}

// Folds count elements of `buffer`, whose index number `at` runs.
static void fold_in_loop(const Fold *f, TirOp *loop, TirValue *buffer, TirValue **index, int at,
                         int64_t count) {
  enum { FEW = 8 };
  TirBuilder b = tir_builder_at_end(f->cx->module, loop->bodies[0], f->op->span);
  index[at] = tir_int(&b, 0);
  TirValue *result = element(f, &b, buffer, index);
  if (count <= FEW) {
    for (int64_t i = 1; i < count; i++) {
      index[at] = tir_int(&b, i);
      result = combine(f, &b, result, element(f, &b, buffer, index));
    }
    store_result(f, &b, loop, result);
    return;
  }
  TirValue *cell = tir_cell(&b, intern(f->cx->module->names, "folded"), f->type, result);
  TirOp *serial = tir_for(&b, LOOP_SERIAL, tir_int(&b, 1), tir_int(&b, count), tir_int(&b, 1));
  TirBuilder inside = tir_builder_at_end(f->cx->module, serial->bodies[0], f->op->span);
  index[at] = serial->results[0];
  tir_set(&inside, cell, combine(f, &inside, tir_get(&inside, cell), element(f, &inside, buffer, index)));
  b = tir_builder_at_end(f->cx->module, loop->bodies[0], f->op->span);
  store_result(f, &b, loop, tir_get(&b, cell));
}

static TirValue *new_slots(const Fold *f, int64_t slots) {
  int64_t shape[TYPE_MAX_RANK];
  for (int i = 0; i < f->r->nkept; i++) shape[i] = f->r->src->type.shape[f->r->kept[i]];
  shape[f->r->nkept] = slots;
  TirBuilder b = tir_builder_before(f->cx->module, f->op->parent->kernel->body->first);
  b.span = f->op->span;
  Type type = type_buffer(f->type, SPACE_SHARED, f->r->nkept + 1, shape);
  TirValue *buffer = tir_alloc(&b, intern(f->cx->module->names, "slots"), type);
  buffer->layout = ARENA_NEW(f->cx->module->arena, Layout);
  *buffer->layout = (Layout){.kind = LAYOUT_SHARED, .offset = -1};
  return buffer;
}

static void fold_into(const Fold *f, TirValue *slots) {
  TirBuilder b = tir_builder_before(f->cx->module, f->op);
  TirValue *args[] = {f->r->src, slots};
  TirOp *fold = tir_op(&b, f->op->kind, 2, args, 0, NULL);
  for (int i = 0; i < OP_MAX_ATTRS; i++) fold->attrs[i] = f->op->attrs[i];
  tile_set_attr(fold, "clear", 1);
}

// As many threads as fit fold every so many elements of a row each.
static void fold_rows(const Fold *f, TirValue *staging, TirValue *slots, int64_t count, int64_t shares) {
  TirBuilder b = tir_builder_before(f->cx->module, f->op);
  TirValue *extents[TYPE_MAX_RANK], *index[TYPE_MAX_RANK];
  for (int d = 0; d < slots->type.rank; d++) extents[d] = tir_int(&b, slots->type.shape[d]);
  TirOp *loop = tir_parallel(&b, slots->type.rank, extents);
  TirValue *share = loop->results[slots->type.rank - 1];
  for (int i = 0; i < f->r->nkept; i++) index[f->r->kept[i]] = loop->results[i];
  b = tir_builder_at_end(f->cx->module, loop->bodies[0], f->op->span);
  index[f->r->dim] = share;
  TirValue *cell =
      tir_cell(&b, intern(f->cx->module->names, "folded"), f->type, element(f, &b, staging, index));
  TirValue *step = tir_int(&b, shares);
  TirOp *serial = tir_for(&b, LOOP_SERIAL, tir_binary(&b, OP_add, share, step), tir_int(&b, count), step);
  TirBuilder inside = tir_builder_at_end(f->cx->module, serial->bodies[0], f->op->span);
  index[f->r->dim] = serial->results[0];
  tir_set(&inside, cell, combine(f, &inside, tir_get(&inside, cell), element(f, &inside, staging, index)));
  b = tir_builder_at_end(f->cx->module, loop->bodies[0], f->op->span);
  tir_store(&b, slots, tir_get(&b, cell), loop->results, slots->type.rank);
}

// The results in the slots are folded; they hold no signs.
static void fold_slots(const Fold *f, TirValue *slots) {
  Fold rest = *f;
  TirValue *index[TYPE_MAX_RANK] = {NULL};
  TirOp *loop = loop_over_dst(f, index);
  if (f->kind == REDUCE_ABSSUM) rest.kind = REDUCE_SUM;
  if (f->kind == REDUCE_ABSMAX) rest.kind = REDUCE_MAX;
  fold_in_loop(&rest, loop, slots, index, f->r->nkept, slots->type.shape[f->r->nkept]);
}

bool lower_reduction(PassCx *cx, TirOp *op, const TileReduction *r) {
  Fold fold = fold_of(cx, op, r);
  Layout wanted;
  LayoutAcross across;
  if (!tile_is_fragment(r->dst)) return true;
  if (!layout_across(r->src->layout, &r->src->type, r->dim, &across)) return false;
  layout_project(r->src->layout, &r->src->type, r->kept, r->nkept, &wanted);
  if (across.nslot == 0 && layout_equal(&wanted, r->dst->layout)) return true;
  TirValue *slots = new_slots(&fold, across.slots);
  fold_into(&fold, slots);
  fold_slots(&fold, slots);
  tir_remove(op);
  return true;
}

void lower_reduction_in_memory(PassCx *cx, TirOp *op, const TileReduction *r, TirValue *staging) {
  Fold fold = fold_of(cx, op, r);
  enum { MOST = 32 };
  int64_t count = r->src->type.shape[r->dim], rows = type_elements(&r->src->type) / count, shares = 1;
  while (shares < MOST && 2 * shares <= count &&
         2 * shares * rows <= tir_thread_count(tir_active_threads(op->parent)))
    shares *= 2;
  TirValue *slots = new_slots(&fold, shares);
  fold_rows(&fold, staging, slots, count, shares);
  fold_slots(&fold, slots);
  tir_remove(op);
}

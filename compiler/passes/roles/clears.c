// Sums start at zero. Two ways in which the source says so put work of threads in front of a loop of products, and go:
//
//   fill C, 0; for k in lo..hi { gemm A, B, C }    ->  for k { gemm A, B, C, clear = (k == lo) }; if lo >= hi { fill C, 0 }
//   if lo >= hi { fill C, 0 }; for k in lo..hi …   ->  for k …; if lo >= hi { fill C, 0 }
//
// Both need that the product comes first in every round (rule P10), that nothing in between touches C, and that the loop
// counts up: lo >= hi then means that it has no round.
#include "passes/roles/plan.h"

#include "tir/ranges.h"

static bool is_zero(const TirValue *value) {
  double number;
  int64_t integer;
  if (tir_const_float(value, &number)) return number == 0;
  return tir_const_int(value, &integer) && integer == 0;
}

// The whole buffer that the op sets to zero, or NULL.
static TirValue *zeroed(const TirOp *op) {
  bool fills = tile_is(op) && op->nargs == 2 && tile_access(op, 0) == WRITES &&
               op->args[1]->type.kind == TYPE_SCALAR && is_zero(op->args[1]);
  return fills && op->args[0]->op->kind == OP_alloc ? op->args[0] : NULL;
}

static bool counts_up(const TirOp *loop) {
  return tir_known_range(loop->args[FOR_STEP]).lo > 0;
}

// The next loop of products behind the op, with nothing between that touches the buffer.
static TirOp *loop_behind(TirOp *op, const TirValue *buffer) {
  for (TirOp *next = op->next; next; next = next->next) {
    if (!plan_access(next, buffer)) continue;
    bool fits = next->kind == OP_for && next->attrs[FOR_kind] == LOOP_PIPELINED && counts_up(next);
    return fits ? next : NULL;
  }
  return NULL;
}

// What touches the buffer first in each round, if that is a product of the loop's own body.
static TirOp *first_product(const TirOp *loop, TirValue *buffer) {
  for (TirOp *op = loop->bodies[0]->first; op; op = op->next) {
    if (!plan_access(op, buffer)) continue;
    bool whole = false;
    for (int i = 0; i < op->nargs; i++) whole |= op->args[i] == buffer && tile_access(op, i) == ACCUMULATES;
    return plan_is_product(op) && whole ? op : NULL;
  }
  return NULL;
}

// Where the loop has a round for sure, the zeros go.
static bool has_rounds(const TirOp *loop) {
  return tir_known_range(loop->args[FOR_HI]).lo > tir_known_range(loop->args[FOR_LO]).hi;
}

static void fold_fill(PassCx *cx, TirOp *fill) {
  TirValue *buffer = zeroed(fill);
  TirOp *loop = buffer ? loop_behind(fill, buffer) : NULL;
  TirOp *product = loop ? first_product(loop, buffer) : NULL;
  int clear = product ? tile_slot(product, "clear") : -1;
  if (clear < 0 || clear >= product->nargs || product->args[clear]) return;
  TirBuilder b = tir_builder_before(cx->module, product);
  TirValue *lo = loop->args[FOR_LO], *hi = loop->args[FOR_HI];
  product->args[clear] = tir_binary(&b, OP_eq, loop->results[0], lo);
  b = tir_builder_after(cx->module, loop);
  b.span = fill->span;
  tir_remove(fill);
  if (has_rounds(loop)) return;
  TirOp *none = tir_if(&b, tir_binary(&b, OP_ge, lo, hi));
  tir_append(none->bodies[0], fill);
}

static void move_zeros(TirOp *branch) {
  TirOp *fill = branch->bodies[0]->first;
  TirValue *buffer = fill && !fill->next && !branch->bodies[1]->first ? zeroed(fill) : NULL;
  TirOp *loop = buffer ? loop_behind(branch, buffer) : NULL;
  const TirOp *test = branch->args[0]->op;
  if (loop && first_product(loop, buffer) && test->kind == OP_ge && test->args[0] == loop->args[FOR_LO] &&
      test->args[1] == loop->args[FOR_HI]) {
    tir_remove(branch);
    if (!has_rounds(loop)) tir_insert_after(loop, branch);
  }
}

void fold_clears(PassCx *cx, TirKernel *kernel) {
  TirOpList all = tile_collect(cx->scratch, kernel->body);
  for (int i = 0; i < all.len; i++) {
    if (all.data[i]->kind == OP_if)
      move_zeros(all.data[i]);
    else
      fold_fill(cx, all.data[i]);
  }
}

// Regions with staged starts that surely leave their buffer: shared memory, tensor memory and barriers have neighbours, and what is
// not proved here stops the kernel when it happens. Two proofs: every value that the start can have is outside; or the start is
// computed from loop variables, block numbers and constants such that its extremes are really taken, and nothing between
// these loops and the region decides whether it runs. Under a condition nothing is accused: it may well be what keeps the region inside.
#include "elab/elab_internal.h"

#include <inttypes.h>

#include "tir/ranges.h"

enum { MAX_PARTS = 32 };  // of an index

// The values that an index takes, all else being constant.
typedef struct {
  int64_t lo, hi;                 // both are taken
  bool dense;                     // and so is every number between them
  const TirOp *loops[MAX_LOOPS];  // whose rounds they come from
  int nloops;
} Taken;

static bool taken(const TirValue *value, int *parts, Taken *out);

static bool taken_in_loop(const TirOp *loop, Taken *out) {
  int64_t lo, hi, step;
  bool leaves = loop->nargs > 3 && loop->args[3];
  if (leaves || !tir_const_int(loop->args[0], &lo) || !tir_const_int(loop->args[1], &hi) ||
      !tir_const_int(loop->args[2], &step) || step == 0)
    return false;
  if (step > 0 ? lo >= hi : lo <= hi) return false;
  int64_t rounds = step > 0 ? (hi - lo + step - 1) / step : (lo - hi - step - 1) / -step;
  int64_t last = lo + (rounds - 1) * step;
  *out = (Taken){.lo = step > 0 ? lo : last, .hi = step > 0 ? last : lo, .dense = step == 1 || step == -1};
  out->loops[out->nloops++] = loop;
  return true;
}

static bool taken_by_blocks(const TirValue *value, Taken *out) {
  const TirBlock *block = value->op->parent;
  while (block->owner) block = block->owner->parent;
  for (const TirOp *op = block->kernel->launch->first; op; op = op->next) {
    int64_t extent, dim = value->op->attrs[INDEX_dim];
    if (op->kind != OP_grid) continue;
    if (dim >= op->nargs || !tir_const_int(op->args[dim], &extent) || extent < 1) return false;
    *out = (Taken){.hi = extent - 1, .dense = true};
    return true;
  }
  return false;
}

// Of two sides that vary on their own every pair of values is taken.
static bool join_loops(Taken *out, const Taken *a, const Taken *b) {
  for (int i = 0; i < a->nloops; i++) out->loops[out->nloops++] = a->loops[i];
  for (int k = 0; k < b->nloops; k++) {
    for (int i = 0; i < a->nloops; i++)
      if (a->loops[i] == b->loops[k]) return false;
    if (out->nloops == MAX_LOOPS) return false;
    out->loops[out->nloops++] = b->loops[k];
  }
  return true;
}

static bool taken_by_sum(const Taken *a, const Taken *b, bool subtract, Taken *out) {
  *out = (Taken){.lo = a->lo + (subtract ? -b->hi : b->lo),
                 .hi = a->hi + (subtract ? -b->lo : b->hi),
                 .dense = a->dense && b->dense};
  return join_loops(out, a, b);
}

static bool taken_by_product(const Taken *a, int64_t factor, Taken *out) {
  *out = *a;
  out->lo = (factor < 0 ? a->hi : a->lo) * factor;
  out->hi = (factor < 0 ? a->lo : a->hi) * factor;
  out->dense = a->dense && factor >= -1 && factor <= 1;
  return true;
}

static bool taken_by_remainder(const Taken *a, int64_t divisor, Taken *out) {
  *out = *a;
  if (a->lo >= 0 && a->hi < divisor) return true;
  out->lo = 0, out->hi = divisor - 1;
  return a->dense && a->hi - a->lo >= divisor - 1;
}

static bool small(const Taken *t) {
  return t->lo >= INT32_MIN && t->hi <= INT32_MAX;
}

static bool taken_by_binary(const TirOp *op, int *parts, Taken *out) {
  Taken a, b;
  if (!taken(op->args[0], parts, &a) || !taken(op->args[1], parts, &b)) return false;
  bool constant = b.lo == b.hi;
  if (op->kind == OP_add || op->kind == OP_sub) return taken_by_sum(&a, &b, op->kind == OP_sub, out);
  if (op->kind == OP_mul && constant) return taken_by_product(&a, b.lo, out);
  if (op->kind == OP_mul && a.lo == a.hi) return taken_by_product(&b, a.lo, out);
  if (!constant || b.lo <= 0) return false;
  if (op->kind == OP_floormod) return taken_by_remainder(&a, b.lo, out);
  if (op->kind != OP_floordiv) return false;
  *out = a;
  out->lo = comptime_floordiv(a.lo, b.lo), out->hi = comptime_floordiv(a.hi, b.lo);
  return true;
}

static bool taken(const TirValue *value, int *parts, Taken *out) {
  int64_t number;
  if (--*parts < 0) return false;
  if (tir_const_int(value, &number)) {
    *out = (Taken){.lo = number, .hi = number, .dense = true};
    return small(out);
  }
  const TirOp *op = value->op;
  bool known = op->kind == OP_for                                          ? taken_in_loop(op, out)
               : op->kind == OP_block_idx                                  ? taken_by_blocks(value, out)
               : op_def(op->kind)->group == GROUP_BINARY && op->nargs == 2 ? taken_by_binary(op, parts, out)
                                                                           : false;
  return known && small(out);
}

// Whether the op runs in every round of these loops.
static bool always_runs(const TirOp *op, const Taken *t) {
  int left = t->nloops;
  for (const TirOp *at = tir_parent(op); at && (left > 0 || t->nloops == 0); at = tir_parent(at)) {
    bool one = false;
    for (int i = 0; i < t->nloops; i++) one = one || t->loops[i] == at;
    left -= one;
    Taken rounds;
    if (!one && at->kind == OP_for && !taken_in_loop(at, &rounds)) return false;
    if (at->kind == OP_if || at->kind == OP_while) return false;
  }
  return left == 0;
}

static void report(Elab *e, const TirOp *view, int d, int64_t start, int64_t extent, const Taken *t) {
  const TirValue *buffer = view->args[0];
  int64_t size = buffer->type.shape[d];
  const char *name = tir_buffer_name(buffer);
  if (start < 0)
    diag_error(e->ds, DIAG_out_of_bounds, view->span, "index %" PRId64 " of dimension %d of '%s' is below 0",
               start, d, name);
  else if (extent <= 1)
    diag_error(e->ds, DIAG_out_of_bounds, view->span,
               "index %" PRId64 " is out of bounds: dimension %d of '%s' has %" PRId64
               " elements, 0 to %" PRId64,
               start, d, name, size, size - 1);
  else
    diag_error(e->ds, DIAG_out_of_bounds, view->span,
               "the tile reaches past dimension %d of '%s': min %" PRId64 " + extent %" PRId64 " > %" PRId64,
               d, name, start, extent, size);
  for (int i = 0; t && i < t->nloops; i++)
    diag_note(e->ds, t->loops[i]->span,
              "in a round of this loop: its variable goes from %" PRId64 " to %" PRId64,
              tir_known_range(t->loops[i]->results[0]).lo, tir_known_range(t->loops[i]->results[0]).hi);
  diag_note(e->ds, tir_root((TirValue *)buffer)->op->span, "'%s' is declared here", name);
}

static void check_dimension(Elab *e, const TirOp *view, int d, int64_t extent) {
  const TirValue *start = view->args[1 + d];
  int64_t number, last = view->args[0]->type.shape[d] - extent;
  if (tir_const_int(start, &number)) return;  // tile_subscript has looked
  TirRange range = tir_known_range(start);
  if (range.lo > last || range.hi < 0) {
    report(e, view, d, range.lo > last ? range.lo : range.hi, extent, NULL);
    return;
  }
  Taken t;
  int parts = MAX_PARTS;
  if (!taken(start, &parts, &t) || (t.lo >= 0 && t.hi <= last) || !always_runs(view, &t)) return;
  report(e, view, d, t.lo < 0 ? t.lo : t.hi, extent, &t);
}

static bool visit_view(void *context, TirOp *op) {
  Elab *e = context;
  if (op->kind != OP_view || op->args[0]->type.space == SPACE_GLOBAL) return true;
  int kept = 0;
  for (int d = 0; d < op->args[0]->type.rank; d++) {
    bool drop = op->attrs[VIEW_drop] >> d & 1;
    check_dimension(e, op, d, drop ? 1 : op->results[0]->type.shape[kept]);
    kept += !drop;
  }
  return true;
}

void elab_check_regions(Elab *e) {
  tir_walk(e->kernel->body, visit_view, e);
}

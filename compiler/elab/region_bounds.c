// Regions with staged starts, and elements with staged indices, that surely leave their buffer: shared memory, tensor memory and barriers
// have neighbours, and what of them is not proved here stops the kernel when it happens; an element outside is 0, which hides a mistake. Two
// proofs: every value that the start can have is outside; or the start is
// computed from loop variables, block numbers and constants such that its extremes are really taken, and nothing between
// these loops and the region decides whether it runs. Under a condition nothing is accused: it may well be what keeps the region inside. Nor is an element that is read only to be selected or not.
#include "elab/elab_internal.h"

#include <inttypes.h>

#include "tir/ranges.h"

enum { MAX_PARTS = 32 };  // of an index

// A region or an element of a buffer.
typedef struct {
  TirOp *op;
  TirValue *buffer, *const *starts;  // one a dimension
} Part;

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

static bool runs_parallel(const TirOp *loop) {
  int64_t extent;
  for (int i = 0; i < loop->nargs; i++)
    if (!tir_const_int(loop->args[i], &extent) || extent < 1) return false;
  return true;
}

static bool taken_in_parallel(const TirValue *variable, Taken *out) {
  int64_t extent;
  const TirOp *loop = variable->op;
  if (!runs_parallel(loop) || !tir_const_int(loop->args[variable->index], &extent)) return false;
  *out = (Taken){.hi = extent - 1, .dense = true};
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
               : op->kind == OP_parallel                                   ? taken_in_parallel(value, out)
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
    if (at->kind == OP_if || at->kind == OP_while || (at->kind == OP_parallel && !runs_parallel(at)))
      return false;
  }
  return left == 0;
}

// Which values its variables take; of several those that take more than one.
static void note_loop(Elab *e, const TirOp *loop) {
  for (int i = 0; i < loop->nresults; i++) {
    TirRange range = tir_known_range(loop->results[i]);
    if (loop->nresults > 1 && range.lo == range.hi) continue;
    diag_note(e->ds, loop->span, "in a round of this loop: %s goes from %" PRId64 " to %" PRId64,
              loop->nresults == 1      ? "its variable"
              : loop->results[i]->name ? loop->results[i]->name
                                       : "a variable",
              range.lo, range.hi);
  }
}

static void report(Elab *e, const Part *part, int d, int64_t start, int64_t extent, const Taken *t) {
  int64_t size = part->buffer->type.shape[d];
  const char *name = tir_buffer_name(part->buffer);
  Span span = part->op->span;
  if (start < 0)
    diag_error(e->ds, DIAG_out_of_bounds, span, "index %" PRId64 " of dimension %d of '%s' is below 0", start,
               d, name);
  else if (extent <= 1)
    diag_error(e->ds, DIAG_out_of_bounds, span,
               "index %" PRId64 " is out of bounds: dimension %d of '%s' has %" PRId64
               " elements, 0 to %" PRId64,
               start, d, name, size, size - 1);
  else
    diag_error(e->ds, DIAG_out_of_bounds, span,
               "the tile reaches past dimension %d of '%s': min %" PRId64 " + extent %" PRId64 " > %" PRId64,
               d, name, start, extent, size);
  for (int i = 0; t && i < t->nloops; i++) note_loop(e, t->loops[i]);
  diag_note(e->ds, tir_root(part->buffer)->op->span, "'%s' is declared here", name);
}

// False: reported.
static bool check_dimension(Elab *e, const Part *part, int d, int64_t extent) {
  static const Taken nothing;
  const TirValue *start = part->starts[d];
  int64_t number, last = part->buffer->type.shape[d] - extent;
  if (tir_const_int(start, &number)) return true;  // tile_subscript has looked
  TirRange range = tir_known_range(start);
  bool region = part->op->kind == OP_view;
  if ((range.lo > last || range.hi < 0) && (region || always_runs(part->op, &nothing))) {
    report(e, part, d, range.lo > last ? range.lo : range.hi, extent, NULL);
    return false;
  }
  Taken t;
  int parts = MAX_PARTS;
  if (!taken(start, &parts, &t) || (t.lo >= 0 && t.hi <= last) || !always_runs(part->op, &t)) return true;
  report(e, part, d, t.lo < 0 ? t.lo : t.hi, extent, &t);
  return false;
}

static void check_view(Elab *e, TirOp *op) {
  Part part = {op, op->args[0], op->args + 1};
  int kept = 0;
  for (int d = 0; d < op->args[0]->type.rank; d++) {
    bool drop = op->attrs[VIEW_drop] >> d & 1;
    check_dimension(e, &part, d, drop ? 1 : op->results[0]->type.shape[kept]);
    kept += !drop;
  }
}

static bool uses(const TirValue *value, const TirValue *loaded, int *steps) {
  if (value == loaded) return true;
  if (!value || --*steps < 0 || !op_def(value->op->kind)->pure) return *steps < 0;
  for (int i = 0; i < value->op->nargs; i++)
    if (uses(value->op->args[i], loaded, steps)) return true;
  return false;
}

// Elaboration computes both sides of `a if c else b`, and of `and` and `or`.
static bool visit_choice(void *context, TirOp *op) {
  bool chooses = op->kind == OP_select || op->kind == OP_and || op->kind == OP_or;
  int steps = 1000;
  for (int i = 0; i < op->nargs && chooses; i++)
    if (uses(op->args[i], context, &steps)) return false;
  return true;
}

static void check_element(Elab *e, TirOp *op) {
  Part part = {op, op->args[0], op->args + (op->kind == OP_store ? 2 : 1)};
  if (op->kind == OP_load && !tir_walk(op->parent->kernel->body, visit_choice, op->results[0])) return;
  for (int d = 0; d < part.buffer->type.rank; d++)
    if (!check_dimension(e, &part, d, 1)) return;
}

static bool has_bounds(const TirOp *op) {
  return op->args[0]->type.space != SPACE_GLOBAL && type_is_static(&op->args[0]->type);
}

static bool visit(void *context, TirOp *op) {
  if (op->kind == OP_view && op->args[0]->type.space != SPACE_GLOBAL) check_view(context, op);
  if ((op->kind == OP_load || op->kind == OP_store) && has_bounds(op)) check_element(context, op);
  return true;
}

void elab_check_regions(Elab *e) {
  tir_walk(e->kernel->body, visit, e);
}

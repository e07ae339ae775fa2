// Interval and divisibility analysis by looking back through pure ops. A value is summarised by bounds and a
// divisor; each op combines the summaries of its operands. The depth is bounded because ops form a graph, not
// a tree.
#include "tir/ranges.h"

#include "base/gcd.h"

#include <string.h>

enum { MAX_DEPTH = 10, CELL_DEPTH = 4 };

static const TirRange unknown = {INT64_MIN, INT64_MAX, 1};

static TirRange range_of(const TirValue *value, int depth);

static bool bounded(TirRange r) {
  return r.lo != INT64_MIN && r.hi != INT64_MAX;
}

static TirRange constant(int64_t value) {
  return (TirRange){value, value, base_gcd(value, 0)};
}

// An end of an interval that is unknown stays unknown; so does one that overflows.
static int64_t add_end(int64_t a, int64_t b, int64_t none) {
  int64_t sum;
  return a == none || b == none || __builtin_add_overflow(a, b, &sum) ? none : sum;
}

static int64_t mirror_end(int64_t end) {
  if (end == INT64_MIN) return INT64_MAX;
  return end == INT64_MAX ? INT64_MIN : -end;
}

static TirRange negate(TirRange a) {
  return (TirRange){mirror_end(a.hi), mirror_end(a.lo), a.multiple};
}

TirRange tir_range_add(TirRange a, TirRange b) {
  return (TirRange){add_end(a.lo, b.lo, INT64_MIN), add_end(a.hi, b.hi, INT64_MAX),
                    base_gcd(a.multiple, b.multiple)};
}

static TirRange multiply(TirRange a, TirRange b) {
  TirRange r = unknown;
  if (__builtin_mul_overflow(a.multiple, b.multiple, &r.multiple)) r.multiple = 1;
  if (!bounded(a) || !bounded(b)) {
    if (a.lo >= 0 && b.lo >= 0) r.lo = 0;
    return r;
  }
  int64_t corner[4];
  if (__builtin_mul_overflow(a.lo, b.lo, &corner[0]) || __builtin_mul_overflow(a.lo, b.hi, &corner[1]) ||
      __builtin_mul_overflow(a.hi, b.lo, &corner[2]) || __builtin_mul_overflow(a.hi, b.hi, &corner[3]))
    return r;
  r.lo = r.hi = corner[0];
  for (int i = 1; i < 4; i++) {
    if (corner[i] < r.lo) r.lo = corner[i];
    if (corner[i] > r.hi) r.hi = corner[i];
  }
  return r;
}

static TirRange join(TirRange a, TirRange b) {
  return (TirRange){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi, base_gcd(a.multiple, b.multiple)};
}

static TirRange smaller(TirRange a, TirRange b) {
  return (TirRange){a.lo < b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi, base_gcd(a.multiple, b.multiple)};
}

static int64_t floor_div(int64_t a, int64_t b) {
  int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

// Division by a positive constant, rounding down; rounding up is rounding down after adding divisor - 1.
static TirRange divide(TirRange a, int64_t divisor, bool exact_only) {
  TirRange r = unknown;
  if (divisor <= 0) return r;
  bool exact = a.multiple % divisor == 0;
  if (exact) r.multiple = a.multiple / divisor;
  if (!exact && exact_only) return r;
  if (a.lo != INT64_MIN) r.lo = floor_div(a.lo, divisor);
  if (a.hi != INT64_MAX) r.hi = floor_div(a.hi, divisor);
  return r;
}

static TirRange modulo(TirRange a, int64_t divisor) {
  if (divisor <= 0) return unknown;
  if (a.multiple % divisor == 0) return constant(0);
  if (a.lo >= 0 && a.hi < divisor) return a;
  return (TirRange){0, divisor - 1, base_gcd(a.multiple, divisor)};
}

static const TirOp *find_grid(const TirOp *op) {
  const TirOp *at = op;
  while (at->parent->owner) at = at->parent->owner;
  for (const TirOp *o = at->parent->kernel->launch->first; o; o = o->next)
    if (o->kind == OP_grid) return o;
  return NULL;
}

static TirRange block_index(const TirOp *op, int depth) {
  TirRange r = {0, INT32_MAX, 1};
  const TirOp *grid = op->parent ? find_grid(op) : NULL;
  int dim = (int)op->attrs[INDEX_dim];
  if (!grid || dim >= grid->nargs) return r;
  TirRange extent = range_of(grid->args[dim], depth);
  if (extent.hi != INT64_MAX) r.hi = extent.hi - 1;
  return r;
}

static TirRange loop_variable(const TirOp *op, int depth) {
  TirRange lo = range_of(op->args[0], depth), hi = range_of(op->args[1], depth);
  TirRange step = range_of(op->args[2], depth);
  TirRange r = unknown;
  r.multiple = base_gcd(lo.multiple, step.multiple);
  if (step.lo > 0) {
    r.lo = lo.lo;
    if (hi.hi != INT64_MAX) r.hi = hi.hi - 1;
    if (r.hi != INT64_MAX && r.lo != INT64_MIN && lo.lo == lo.hi && step.lo == step.hi && r.hi >= r.lo)
      r.hi = r.lo + (r.hi - r.lo) / step.lo * step.lo;
  } else if (step.hi < 0) {
    r.hi = lo.hi;
    if (hi.lo != INT64_MIN) r.lo = hi.lo + 1;
  }
  return r;
}

static TirRange parallel_variable(const TirValue *value, int depth) {
  TirRange extent = range_of(value->op->args[value->index], depth);
  return (TirRange){0, extent.hi == INT64_MAX ? INT64_MAX : extent.hi - 1, 1};
}

static TirRange thread_index(const TirOp *op) {
  const TirOp *at = op;
  while (at->parent && at->parent->owner) at = at->parent->owner;
  int threads = at->parent ? at->parent->kernel->threads : 0;
  return (TirRange){0, threads > 0 ? threads - 1 : 1023, 1};
}

// Of numbers that are not negative: `and` has no bit that one of them lacks, `or` and `xor` none that both lack.
static TirRange bits(OpKind kind, TirRange a, TirRange b) {
  if (kind == OP_and && (a.lo >= 0 || b.lo >= 0)) {
    int64_t hi = a.lo < 0 ? b.hi : b.lo < 0 || a.hi < b.hi ? a.hi : b.hi;
    return (TirRange){0, hi, 1};
  }
  if (a.lo < 0 || b.lo < 0 || a.hi > INT32_MAX || b.hi > INT32_MAX) return unknown;
  int64_t most = 1;
  while (most <= a.hi || most <= b.hi) most *= 2;
  return (TirRange){0, most - 1, 1};
}

static TirRange binary(const TirOp *op, int depth) {
  TirRange a = range_of(op->args[0], depth), b = range_of(op->args[1], depth);
  bool known = b.lo == b.hi;
  if (op->kind == OP_add) return tir_range_add(a, b);
  if (op->kind == OP_sub) return tir_range_add(a, negate(b));
  if (op->kind == OP_mul) return multiply(a, b);
  if (op->kind == OP_min) return smaller(a, b);
  if (op->kind == OP_max) return negate(smaller(negate(a), negate(b)));
  if (op->kind == OP_and || op->kind == OP_xor || op->kind == OP_or) return bits(op->kind, a, b);
  if (op->kind == OP_shl && known && b.lo >= 0 && b.lo < 31) return multiply(a, constant(INT64_C(1) << b.lo));
  if (!known) return unknown;
  if (op->kind == OP_floordiv) return divide(a, b.lo, false);
  if (op->kind == OP_floormod) return modulo(a, b.lo);
  if (op->kind == OP_ceildiv && b.lo > 0)
    return a.multiple % b.lo == 0 ? divide(a, b.lo, true)
                                  : divide(tir_range_add(a, constant(b.lo - 1)), b.lo, false);
  if (a.lo >= 0 && op->kind == OP_truncdiv) return divide(a, b.lo, false);
  if (a.lo >= 0 && op->kind == OP_truncmod) return modulo(a, b.lo);
  return unknown;
}

static int64_t most_of(DType dtype) {
  int bits = dtype_bits(dtype) - (dtype_class(dtype) == DTYPE_CLASS_SIGNED);
  return bits >= 63 ? INT64_MAX : (INT64_C(1) << bits) - 1;
}

static int64_t least_of(DType dtype) {
  return dtype_class(dtype) == DTYPE_CLASS_SIGNED ? -most_of(dtype) - 1 : 0;
}

// A conversion keeps the low bits: what does not fit wraps, and only a power of two of the divisor survives.
static TirRange cast_range(TirRange r, DType dtype) {
  if (r.lo >= least_of(dtype) && r.hi <= most_of(dtype)) return r;
  return (TirRange){least_of(dtype), most_of(dtype), r.multiple & -r.multiple};
}

typedef struct {
  const TirValue *cell;
  TirRange range;
} CellRange;

static bool join_set(void *context, TirOp *op) {
  CellRange *of = context;
  if (op->kind == OP_set && op->args[0] == of->cell)
    of->range = join(of->range, range_of(op->args[1], CELL_DEPTH));
  return of->range.lo != INT64_MIN || of->range.hi != INT64_MAX;
}

// Whatever is ever set in the cell. Below CELL_DEPTH no cell is looked into: each look goes through the whole kernel.
static TirRange cell_range(const TirValue *cell) {
  CellRange of = {cell, constant(0)};
  if (cell->op->args[0]) of.range = range_of(cell->op->args[0], CELL_DEPTH);
  tir_walk(cell->op->parent->kernel->body, join_set, &of);
  return of.range;
}

// A device has an SM; and a variant whose guard asks for it has no tensor without elements.
static bool is_at_least_one(const TirOp *size) {
  const TirKernel *kernel = size->parent ? size->parent->kernel : NULL;
  if (strcmp(size->name, TIR_SM_COUNT) == 0) return true;
  for (int g = 0; kernel && kernel->variant == VARIANT_TMA && g < kernel->guards.len; g++) {
    const TirOp *tensor = kernel->guards.data[g].tensor->op;
    for (int d = 0; d < tensor->nargs; d++)
      if (tensor->args[d] == size->results[0]) return true;
  }
  return false;
}

static TirRange compute(const TirValue *value, int depth) {
  const TirOp *op = value->op;
  int64_t number;
  if (tir_const_int(value, &number)) return constant(number);
  if (depth == 0 || !op) return unknown;
  if (op_def(op->kind)->group == GROUP_BINARY) return binary(op, depth - 1);
  if (op->kind == OP_neg) return negate(range_of(op->args[0], depth - 1));
  if (op->kind == OP_select) return join(range_of(op->args[1], depth - 1), range_of(op->args[2], depth - 1));
  if (op->kind == OP_size) return (TirRange){is_at_least_one(op), INT32_MAX, 1};
  if (op->kind == OP_get && depth > CELL_DEPTH) return cell_range(op->args[0]);
  if (op->kind == OP_block_count) return (TirRange){1, INT32_MAX, 1};
  if (op->kind == OP_block_idx) return block_index(op, depth - 1);
  if (op->kind == OP_thread_idx) return thread_index(op);
  if (op->kind == OP_for) return loop_variable(op, depth - 1);
  if (op->kind == OP_parallel) return parallel_variable(value, depth - 1);
  if (op->kind == OP_cast && dtype_is_int(op->args[0]->type.dtype))
    return cast_range(range_of(op->args[0], depth - 1), value->type.dtype);
  return unknown;
}

// Indices are i32 and do not wrap in a correct program (sizes are below 2^31), so a bound outside that type is
// cut to it. Unsigned and narrow arithmetic may wrap.
static TirRange range_of(const TirValue *value, int depth) {
  if (value->type.kind != TYPE_SCALAR || !dtype_is_int(value->type.dtype)) return unknown;
  DType dtype = value->type.dtype;
  TirRange r = compute(value, depth);
  if (dtype_bits(dtype) >= 64) return dtype_class(dtype) == DTYPE_CLASS_SIGNED ? r : unknown;
  if (dtype_class(dtype) == DTYPE_CLASS_UNSIGNED || dtype_bits(dtype) < 32) return cast_range(r, dtype);
  if (r.lo < least_of(dtype)) r.lo = least_of(dtype);
  if (r.hi > most_of(dtype)) r.hi = most_of(dtype);
  return r;
}

TirRange tir_known_range(const TirValue *value) {
  return range_of(value, MAX_DEPTH);
}

int64_t tir_known_multiple(const TirValue *value) {
  return range_of(value, MAX_DEPTH).multiple;
}

static bool same(const TirValue *a, const TirValue *b, int depth) {
  if (a == b) return true;
  if (!a || !b || depth == 0) return false;
  const TirOp *x = a->op, *y = b->op;
  if (x->kind != y->kind || !op_def(x->kind)->pure || x->nargs != y->nargs || a->index != b->index)
    return false;
  if (!type_equal(&a->type, &b->type)) return false;
  for (int i = 0; i < OP_MAX_ATTRS; i++)
    if (x->attrs[i] != y->attrs[i]) return false;
  for (int i = 0; i < x->nargs; i++)
    if (!same(x->args[i], y->args[i], depth - 1)) return false;
  return true;
}

bool tir_same_value(const TirValue *a, const TirValue *b) {
  return same(a, b, MAX_DEPTH);
}

// What can be said about staged integers without running them: whether two differ by a constant (the extent
// of `A[k * 64 : (k + 1) * 64]`), and what a value is in the first round of the loops around it.
#include "elab/elab_internal.h"

enum { MAX_TERMS = 16, MAX_VISITS = 512 };

// sum of coefficient * term, plus a constant
typedef struct {
  const TirValue *terms[MAX_TERMS];
  int64_t coefficients[MAX_TERMS];
  int count;
  int64_t constant;
  int visits;
  bool failed;  // too large, or an overflow
} Linear;

static bool same_value(const TirValue *a, const TirValue *b, int *visits) {
  if (a == b) return true;
  if (!a || !b || ++*visits > MAX_VISITS) return false;
  const TirOp *x = a->op, *y = b->op;
  const OpDef *def = op_def(x->kind);
  bool repeatable = (def->pure && def->nbodies == 0) || x->kind == OP_size || x->kind == OP_param;
  if (x->kind != y->kind || !repeatable || a->index != b->index || x->nargs != y->nargs ||
      x->name != y->name || !type_equal(&a->type, &b->type))
    return false;
  for (int i = 0; i < OP_MAX_ATTRS; i++)
    if (x->attrs[i] != y->attrs[i]) return false;
  for (int i = 0; i < x->nargs; i++)
    if (!same_value(x->args[i], y->args[i], visits)) return false;
  return true;
}

static void add_scaled(int64_t *sum, int64_t value, int64_t scale, bool *failed) {
  int64_t product;
  if (__builtin_mul_overflow(value, scale, &product) || __builtin_add_overflow(*sum, product, sum))
    *failed = true;
}

static void add_term(Linear *sum, const TirValue *term, int64_t scale) {
  for (int i = 0; i < sum->count; i++) {
    if (!same_value(sum->terms[i], term, &sum->visits)) continue;
    add_scaled(&sum->coefficients[i], 1, scale, &sum->failed);
    return;
  }
  if (sum->count == MAX_TERMS) {
    sum->failed = true;
    return;
  }
  sum->terms[sum->count] = term;
  sum->coefficients[sum->count++] = scale;
}

// Adds scale * value: a constant, or a term.
static void add_value(Linear *sum, const TirValue *value, int64_t scale) {
  int64_t number;
  if (tir_const_int(value, &number))
    add_scaled(&sum->constant, number, scale, &sum->failed);
  else
    add_term(sum, value, scale);
}

static bool is_sum(const TirValue *value) {
  int64_t number;
  const TirOp *op = value->op;
  if (op->kind == OP_mul) return tir_const_int(op->args[0], &number) || tir_const_int(op->args[1], &number);
  return op->kind == OP_add || op->kind == OP_sub || op->kind == OP_neg;
}

// Replaces a term by what it is made of.
static void expand(Linear *sum, int index) {
  const TirOp *op = sum->terms[index]->op;
  int64_t scale = sum->coefficients[index], number, product;
  sum->count--;
  sum->terms[index] = sum->terms[sum->count];
  sum->coefficients[index] = sum->coefficients[sum->count];
  if (op->kind == OP_mul) {
    int factor = tir_const_int(op->args[1], &number) ? 1 : 0;
    tir_const_int(op->args[factor], &number);
    if (__builtin_mul_overflow(scale, number, &product))
      sum->failed = true;
    else
      add_value(sum, op->args[1 - factor], product);
    return;
  }
  if (scale == INT64_MIN) sum->failed = true;
  if (sum->failed) return;
  add_value(sum, op->args[0], op->kind == OP_neg ? -scale : scale);
  if (op->kind != OP_neg) add_value(sum, op->args[1], op->kind == OP_sub ? -scale : scale);
}

static void drop_cancelled(Linear *sum) {
  int kept = 0;
  for (int i = 0; i < sum->count; i++) {
    if (sum->coefficients[i] == 0) continue;
    sum->terms[kept] = sum->terms[i];
    sum->coefficients[kept++] = sum->coefficients[i];
  }
  sum->count = kept;
}

// The term made last of those that can be expanded, or -1. Parts are made before sums of them, so that
// everything a term could cancel with has met it when its turn comes.
static int latest_sum(const Linear *sum) {
  int latest = -1;
  for (int i = 0; i < sum->count; i++)
    if (is_sum(sum->terms[i]) && (latest < 0 || sum->terms[i]->id > sum->terms[latest]->id)) latest = i;
  return latest;
}

bool staged_difference(TirValue *a, TirValue *b, int64_t *out) {
  Linear sum = {0};
  add_value(&sum, a, 1);
  add_value(&sum, b, -1);
  for (drop_cancelled(&sum); sum.count > 0 && !sum.failed; drop_cancelled(&sum)) {
    int index = latest_sum(&sum);
    if (index < 0 || ++sum.visits > MAX_VISITS) return false;
    expand(&sum, index);
  }
  *out = sum.constant;
  return !sum.failed;
}

// What the device would compute from two small integers; false where that is no plain arithmetic.
static bool fold(OpKind kind, int64_t a, int64_t b, int64_t *out) {
  bool divides = b != 0 && !(a == INT64_MIN && b == -1);
  if (kind == OP_add) return !__builtin_add_overflow(a, b, out);
  if (kind == OP_sub) return !__builtin_sub_overflow(a, b, out);
  if (kind == OP_mul) return !__builtin_mul_overflow(a, b, out);
  if (kind == OP_floordiv || kind == OP_floormod) {
    if (divides) *out = kind == OP_floordiv ? comptime_floordiv(a, b) : comptime_floormod(a, b);
    return divides;
  }
  if (kind == OP_lt)
    *out = a < b;
  else if (kind == OP_le)
    *out = a <= b;
  else if (kind == OP_gt)
    *out = a > b;
  else if (kind == OP_ge)
    *out = a >= b;
  else if (kind == OP_eq)
    *out = a == b;
  else if (kind == OP_ne)
    *out = a != b;
  else if (kind == OP_and)
    *out = a & b;
  else if (kind == OP_or)
    *out = a | b;
  else if (kind == OP_xor)
    *out = a ^ b;
  else if (kind == OP_min)
    *out = a < b ? a : b;
  else if (kind == OP_max)
    *out = a > b ? a : b;
  else
    return false;
  return true;
}

static bool first_value(const TirValue *value, int depth, int64_t *out);

static bool first_of_binary(const TirOp *op, int depth, int64_t *out) {
  int64_t a, b;
  if (op->nargs != 2 || !first_value(op->args[0], depth + 1, &a) || !first_value(op->args[1], depth + 1, &b))
    return false;
  return fold(op->kind, a, b, out);
}

static bool first_value(const TirValue *value, int depth, int64_t *out) {
  if (!value || depth > 24) return false;
  if (tir_const_int(value, out)) return true;
  const TirOp *op = value->op;
  if (op->kind == OP_for) return first_value(op->args[0], depth + 1, out);
  if (op->kind == OP_cast && !dtype_is_float(value->type.dtype) && !dtype_is_float(op->args[0]->type.dtype))
    return first_value(op->args[0], depth + 1, out);
  if (op->kind == OP_not && first_value(op->args[0], depth + 1, out)) {
    *out = !*out;
    return true;
  }
  OpGroup group = op_def(op->kind)->group;
  return (group == GROUP_BINARY || group == GROUP_COMPARE) && first_of_binary(op, depth, out);
}

bool staged_first_value(const TirValue *value, int64_t *out) {
  return first_value(value, 0, out);
}

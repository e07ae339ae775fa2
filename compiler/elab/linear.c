// What can be said about staged integers without running them: whether two differ by a constant (the extent
// of `A[k * 64 : (k + 1) * 64]`), and what a value is in the first round of the loops around it.
#include "elab/elab_internal.h"
#include "tir/fold.h"

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

static bool first_value(const TirValue *value, int depth, FoldValue *out);

static bool first_of_operands(const TirOp *op, DType dtype, int depth, FoldValue *out) {
  FoldValue a, b = {DTYPE_i32, 0};
  OpGroup group = op_def(op->kind)->group;
  if (op->nargs < 1 || op->nargs > 2 || !first_value(op->args[0], depth, &a)) return false;
  if (op->nargs == 2 && !first_value(op->args[1], depth, &b)) return false;
  if (op->kind == OP_cast) return fold_cast(dtype, a, out);
  if (group == GROUP_UNARY) return fold_unary(op->kind, a, out);
  return (group == GROUP_BINARY || group == GROUP_COMPARE) && fold_binary(op->kind, a, b, out);
}

static bool first_value(const TirValue *value, int depth, FoldValue *out) {
  int64_t number;
  if (!value || depth == 0 || value->type.kind != TYPE_SCALAR || dtype_is_float(value->type.dtype))
    return false;
  if (tir_const_int(value, &number)) {
    *out = (FoldValue){value->type.dtype, number};
    return true;
  }
  if (value->op->kind == OP_for) return first_value(value->op->args[FOR_LO], depth - 1, out);
  return first_of_operands(value->op, value->type.dtype, depth - 1, out);
}

bool staged_first_value(const TirValue *value, int64_t *out) {
  enum { MAX_DEPTH = 24 };
  FoldValue first;
  if (!first_value(value, MAX_DEPTH, &first)) return false;
  *out = first.bits;
  return true;
}

// Arithmetic on intervals. What is exact is computed as fold.h does it; an interval goes through the operations
// that indices and conditions are made of, everything else is unknown.
#include "passes/sync_check/value.h"

#include "tir/fold.h"

enum { FUEL = 400 };  // ops looked at for one value

typedef struct {
  const Leaves *leaves;
  int fuel;
} Eval;

Val val_point(int64_t value) {
  return (Val){value, value};
}

Val val_unknown(void) {
  return (Val){INT64_MIN, INT64_MAX};
}

bool val_is_point(Val value) {
  return value.lo == value.hi;
}

static bool is_bounded(Val value) {
  return value.lo > -(INT64_C(1) << 40) && value.hi < (INT64_C(1) << 40);
}

Val val_union(Val a, Val b) {
  return (Val){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
}

static Val eval(Eval *e, const TirValue *value);

static Val leaf_size(const Eval *e, const TirValue *value) {
  const Scenario *scenario = e->leaves->scenario;
  for (int i = 0; scenario && i < scenario->nvariables; i++)
    if (scenario->variables[i].value == value) return val_point(scenario->variables[i].is);
  return value->op->kind == OP_size ? (Val){0, INT32_MAX} : val_unknown();
}

static Val leaf_const(const TirValue *value) {
  int64_t bits;
  if (value->type.dtype == DTYPE_bool) return val_point(value->op->attrs[CONST_bits] != 0);
  return tir_const_int(value, &bits) ? val_point(bits) : val_unknown();
}

static Val of_parallel(Eval *e, const TirValue *value) {
  Val extent = eval(e, value->op->args[value->index]);
  if (extent.hi == INT64_MAX) return (Val){0, INT64_MAX};
  return (Val){0, extent.hi > 0 ? extent.hi - 1 : 0};
}

static Val wrap(const TirValue *value, Val result) {
  if (dtype_is_int(value->type.dtype) && val_is_point(result) && dtype_bits(value->type.dtype) == 32)
    return val_point(dtype_class(value->type.dtype) == DTYPE_CLASS_UNSIGNED
                         ? (int64_t)(uint32_t)result.lo
                         : (int64_t)(int32_t)(uint32_t)result.lo);
  return result;
}

static Val points(OpKind kind, const TirValue *value, Val a, Val b) {
  if (kind == OP_shl && b.lo >= 0 && b.lo < 32)
    return wrap(value, val_point((int64_t)((uint64_t)a.lo << b.lo)));
  FoldValue out, lhs = {value->op->args[0]->type.dtype, a.lo}, rhs = {value->op->args[1]->type.dtype, b.lo};
  return fold_binary(kind, lhs, rhs, &out) ? val_point(out.bits) : val_unknown();
}

static Val of_compare(OpKind kind, Val a, Val b) {
  bool below = a.hi<b.lo, above = a.lo> b.hi, same = val_is_point(a) && val_is_point(b) && a.lo == b.lo;
  if (kind == OP_lt && (below || a.lo >= b.hi)) return val_point(below);
  if (kind == OP_le && (a.hi <= b.lo || above)) return val_point(!above);
  if (kind == OP_gt && (above || a.hi <= b.lo)) return val_point(above);
  if (kind == OP_ge && (a.lo >= b.hi || below)) return val_point(!below);
  if (kind == OP_eq && (same || below || above)) return val_point(same);
  if (kind == OP_ne && (same || below || above)) return val_point(!same);
  return (Val){0, 1};
}

static bool is_small(Val value) {
  return value.lo > -(INT64_C(1) << 31) && value.hi < (INT64_C(1) << 31);
}

static Val of_product(Val a, Val b) {
  if (!is_small(a) || !is_small(b)) return val_unknown();
  Val of_lo = val_union(val_point(a.lo * b.lo), val_point(a.lo * b.hi));
  return val_union(of_lo, val_union(val_point(a.hi * b.lo), val_point(a.hi * b.hi)));
}

static Val of_range(OpKind kind, Val a, Val b) {
  if (kind == OP_min) return (Val){a.lo < b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
  if (kind == OP_max) return (Val){a.lo > b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
  if (kind == OP_and && a.lo >= 0 && b.lo >= 0) return (Val){0, a.hi < b.hi ? a.hi : b.hi};
  if (kind == OP_floormod && val_is_point(b) && b.lo > 0) {
    if (a.lo >= 0 && a.lo / b.lo == a.hi / b.lo) return (Val){a.lo % b.lo, a.hi % b.lo};
    return (Val){0, b.lo - 1};
  }
  if (!is_bounded(a) || !is_bounded(b)) return val_unknown();
  if (kind == OP_add) return (Val){a.lo + b.lo, a.hi + b.hi};
  if (kind == OP_sub) return (Val){a.lo - b.hi, a.hi - b.lo};
  if (kind == OP_mul) return of_product(a, b);
  if (!val_is_point(b) || b.lo <= 0) return val_unknown();
  if ((kind == OP_floordiv || kind == OP_truncdiv) && a.lo >= 0) return (Val){a.lo / b.lo, a.hi / b.lo};
  if (kind == OP_ceildiv && a.lo >= 0) return (Val){(a.lo + b.lo - 1) / b.lo, (a.hi + b.lo - 1) / b.lo};
  if (kind == OP_truncmod && a.lo >= 0) return (Val){0, b.lo - 1};
  if (kind == OP_shr && a.lo >= 0 && b.lo < 32) return (Val){a.lo >> b.lo, a.hi >> b.lo};
  return val_unknown();
}

static Val of_logic(OpKind kind, Val a, Val b) {
  if (kind == OP_and && (a.hi == 0 || b.hi == 0)) return val_point(0);
  if (kind == OP_or && (a.lo == 1 || b.lo == 1)) return val_point(1);
  return (Val){0, 1};
}

static Val of_two(Eval *e, const TirValue *value) {
  OpKind kind = value->op->kind;
  const TirValue *lhs = value->op->args[0];
  if (dtype_is_float(lhs->type.dtype)) return value->type.dtype == DTYPE_bool ? (Val){0, 1} : val_unknown();
  Val a = eval(e, lhs), b = eval(e, value->op->args[1]);
  if (op_def(kind)->group == GROUP_COMPARE) return of_compare(kind, a, b);
  if (val_is_point(a) && val_is_point(b)) return points(kind, value, a, b);
  return lhs->type.dtype == DTYPE_bool ? of_logic(kind, a, b) : of_range(kind, a, b);
}

static Val of_one(Eval *e, const TirValue *value) {
  OpKind kind = value->op->kind;
  if (dtype_is_float(value->op->args[0]->type.dtype)) return val_unknown();
  Val a = eval(e, value->op->args[0]);
  if (kind == OP_not && value->type.dtype == DTYPE_bool) return (Val){!a.hi, !a.lo};
  if (kind == OP_neg && is_bounded(a)) return (Val){-a.hi, -a.lo};
  if (kind == OP_abs && a.lo >= 0) return a;
  return val_unknown();
}

static Val of_select(Eval *e, const TirValue *value) {
  if (dtype_is_float(value->type.dtype)) return val_unknown();
  Val condition = eval(e, value->op->args[0]);
  Val yes = eval(e, value->op->args[1]), no = eval(e, value->op->args[2]);
  if (condition.lo == 1) return yes;
  return condition.hi == 0 ? no : val_union(yes, no);
}

static Val of_cast(Eval *e, const TirValue *value) {
  DType to = value->type.dtype, from = value->op->args[0]->type.dtype;
  if (dtype_is_float(to) || dtype_is_float(from)) return to == DTYPE_bool ? (Val){0, 1} : val_unknown();
  Val a = eval(e, value->op->args[0]);
  if (to == DTYPE_bool) return (Val){a.lo > 0 || a.hi < 0, a.lo != 0 || a.hi != 0};
  return fold_fits(to, a.lo) && fold_fits(to, a.hi) ? a : val_unknown();
}

// What runs on the device and is not arithmetic: known only if the run has put it into env.
static Val of_state(const Eval *e, const TirValue *value) {
  if (e->leaves->env) return e->leaves->env[value->id];
  return value->type.dtype == DTYPE_bool ? (Val){0, 1} : val_unknown();
}

static Val eval(Eval *e, const TirValue *value);

// The extent of the grid that the launch asks for.
static Val of_grid(Eval *e, const TirOp *op) {
  const TirOp *grid = op->parent->kernel->launch->first;
  while (grid && grid->kind != OP_grid) grid = grid->next;
  int64_t dim = op->attrs[INDEX_dim];
  return grid && dim < grid->nargs ? eval(e, grid->args[dim]) : (Val){1, 1};
}

static Val eval(Eval *e, const TirValue *value) {
  const TirOp *op = value->op;
  const OpDef *def = op_def(op->kind);
  if (--e->fuel < 0 || value->type.kind != TYPE_SCALAR) return val_unknown();
  if (op->kind == OP_const) return leaf_const(value);
  if (op->kind == OP_size || op->kind == OP_param) return leaf_size(e, value);
  if (op->kind == OP_thread_idx) return e->leaves->thread;
  if (op->kind == OP_block_idx) return e->leaves->block[op->attrs[INDEX_dim]];
  if (op->kind == OP_block_count) return of_grid(e, op);
  if (op->kind == OP_parallel) return of_parallel(e, value);
  if (op->kind == OP_select) return of_select(e, value);
  if (op->kind == OP_cast) return of_cast(e, value);
  if (def->group == GROUP_BINARY || def->group == GROUP_COMPARE) return of_two(e, value);
  if (def->group == GROUP_UNARY) return of_one(e, value);
  return of_state(e, value);
}

Val val_of(const Leaves *leaves, const TirValue *value) {
  Eval e = {leaves, FUEL};
  return eval(&e, value);
}

bool val_known(const Leaves *leaves, const TirValue *value, int64_t *out) {
  Val val = val_of(leaves, value);
  *out = val.lo;
  return val_is_point(val);
}

bool val_turns(const Leaves *leaves, const TirOp *loop, int64_t *out) {
  int64_t lo, hi, step;
  if (!val_known(leaves, loop->args[0], &lo) || !val_known(leaves, loop->args[1], &hi) ||
      !val_known(leaves, loop->args[2], &step) || step == 0)
    return false;
  int64_t span = step > 0 ? hi - lo : lo - hi, stride = step > 0 ? step : -step;
  *out = span <= 0 ? 0 : (span + stride - 1) / stride;
  return true;
}

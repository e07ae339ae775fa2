// Arithmetic by name. On compile-time numbers it is done now, in double precision; otherwise it is a tile IR
// op.
#include "elab/elab_internal.h"

#include <math.h>
#include <string.h>

static Value staged_result(TirValue *value) {
  return value ? value_staged(value) : value_poison();
}

static bool check_number(Elab *e, const Value *value, Span span) {
  if (value_is_scalar(value)) return true;
  return staged_scalar(e, value, span) != NULL;  // reports
}

// ---- one operand

typedef double (*RealFn)(double);

static double real_rsqrt(double x) {
  return 1 / sqrt(x);
}

static Value unary(Elab *e, const Call *call, OpKind op, RealFn real) {
  const Value *value = &call->args[0];
  if (!check_number(e, value, call->spans[0])) return value_poison();
  if (value_is_number(value)) return value_float(real(value_as_real(value)));
  TirValue *scalar = staged_scalar(e, value, call->spans[0]);
  if (!scalar) return value_poison();
  e->b.span = call->span;
  if (!dtype_is_float(scalar->type.dtype)) scalar = tir_cast(&e->b, DTYPE_f32, scalar);
  return staged_result(tir_unary(&e->b, op, scalar));
}

static Value run_exp(Elab *e, const Call *call) {
  return unary(e, call, OP_exp, exp);
}
static Value run_exp2(Elab *e, const Call *call) {
  return unary(e, call, OP_exp2, exp2);
}
static Value run_log(Elab *e, const Call *call) {
  return unary(e, call, OP_log, log);
}
static Value run_log2(Elab *e, const Call *call) {
  return unary(e, call, OP_log2, log2);
}
static Value run_sqrt(Elab *e, const Call *call) {
  return unary(e, call, OP_sqrt, sqrt);
}
static Value run_rsqrt(Elab *e, const Call *call) {
  return unary(e, call, OP_rsqrt, real_rsqrt);
}
static Value run_tanh(Elab *e, const Call *call) {
  return unary(e, call, OP_tanh, tanh);
}
static Value run_sin(Elab *e, const Call *call) {
  return unary(e, call, OP_sin, sin);
}
static Value run_cos(Elab *e, const Call *call) {
  return unary(e, call, OP_cos, cos);
}

// Integers are their own floor, ceiling; a compile-time float rounds to an integer, as in Python's math.
static Value rounding(Elab *e, const Call *call, OpKind op, RealFn real) {
  const Value *value = &call->args[0];
  if (!check_number(e, value, call->spans[0])) return value_poison();
  if (value->kind == VALUE_INT || value->kind == VALUE_BOOL) return value_int(value_as_int(value));
  if (value->kind == VALUE_FLOAT) {
    double whole = real(value->real);
    return fabs(whole) < 9e18 ? value_int((int64_t)whole) : value_float(whole);
  }
  TirValue *scalar = staged_scalar(e, value, call->spans[0]);
  if (!scalar || !dtype_is_float(scalar->type.dtype)) return staged_result(scalar);
  return staged_result(tir_unary(&e->b, op, scalar));
}

static Value run_floor(Elab *e, const Call *call) {
  return rounding(e, call, OP_floor, floor);
}
static Value run_ceil(Elab *e, const Call *call) {
  return rounding(e, call, OP_ceil, ceil);
}

static Value run_abs(Elab *e, const Call *call) {
  const Value *value = &call->args[0];
  if (!check_number(e, value, call->spans[0])) return value_poison();
  if (value->kind == VALUE_FLOAT) return value_float(fabs(value->real));
  if (value_is_number(value)) {
    const Value zero = value_int(0);
    return value_as_int(value) < 0 ? comptime_binary(e, BINARY_SUB, &zero, value, call->span) : *value;
  }
  TirValue *scalar = staged_scalar(e, value, call->spans[0]);
  if (!scalar || scalar->type.dtype == DTYPE_bool || dtype_class(scalar->type.dtype) == DTYPE_CLASS_UNSIGNED)
    return staged_result(scalar);
  return staged_result(tir_unary(&e->b, OP_abs, scalar));
}

// ---- two operands

static Value run_ceildiv(Elab *e, const Call *call) {
  const Value *a = &call->args[0], *b = &call->args[1];
  if (!check_number(e, a, call->spans[0]) || !check_number(e, b, call->spans[1])) return value_poison();
  if (a->kind == VALUE_FLOAT || b->kind == VALUE_FLOAT) {
    diag_error(e->ds, DIAG_value_kind, call->span, "ceildiv takes integers");
    return value_poison();
  }
  if (value_is_number(b) && value_as_int(b) == 0) {
    diag_error(e->ds, DIAG_arithmetic, call->span, "division by zero");
    return value_poison();
  }
  if (value_is_number(a) && value_is_number(b))
    return comptime_ceildiv(e, value_as_int(a), value_as_int(b), call->span);
  return staged_op(e, OP_ceildiv, a, b, call->span);
}

static Value run_floordiv(Elab *e, const Call *call) {
  return eval_binary(e, BINARY_FLOORDIV, &call->args[0], &call->args[1], call->span);
}

static Value run_floormod(Elab *e, const Call *call) {
  return eval_binary(e, BINARY_MOD, &call->args[0], &call->args[1], call->span);
}

static Value truncating(Elab *e, const Call *call, OpKind op) {
  const Value *a = &call->args[0], *b = &call->args[1];
  if (!check_number(e, a, call->spans[0]) || !check_number(e, b, call->spans[1])) return value_poison();
  if (a->kind == VALUE_FLOAT || b->kind == VALUE_FLOAT) {
    diag_error(e->ds, DIAG_value_kind, call->span, "%s takes integers", call->builtin->name);
    return value_poison();
  }
  if (value_is_number(b) && value_as_int(b) == 0) {
    diag_error(e->ds, DIAG_arithmetic, call->span, "division by zero");
    return value_poison();
  }
  if (!value_is_number(a) || !value_is_number(b)) return staged_op(e, op, a, b, call->span);
  int64_t x = value_as_int(a), y = value_as_int(b);
  if (x == INT64_MIN && y == -1) return comptime_ceildiv(e, x, y, call->span);
  return value_int(op == OP_truncdiv ? x / y : x % y);
}

static Value run_truncdiv(Elab *e, const Call *call) {
  return truncating(e, call, OP_truncdiv);
}
static Value run_truncmod(Elab *e, const Call *call) {
  return truncating(e, call, OP_truncmod);
}

static Value fold_extreme(Elab *e, const Value *items, int count, OpKind op, Span span) {
  Value best = items[0];
  if (!check_number(e, &best, span)) return value_poison();
  for (int i = 1; i < count; i++) {
    if (!check_number(e, &items[i], span)) return value_poison();
    if (!value_is_number(&best) || !value_is_number(&items[i])) {
      best = staged_op(e, op, &best, &items[i], span);
      if (value_is_poison(&best)) return best;
      continue;
    }
    Value less = comptime_compare(e, op == OP_min ? COMPARE_LT : COMPARE_GT, &items[i], &best, span);
    if (value_truth(&less)) best = items[i];
  }
  return best;
}

static Value extreme(Elab *e, const Call *call, OpKind op) {
  const Value *items = call->rest;
  int count = call->nrest;
  if (count == 1 && !eval_iterable(e, &call->rest[0], call->rest_spans[0], &items, &count))
    return value_poison();
  if (count == 0) {
    diag_error(e->ds, DIAG_call_arguments, call->span, "'%s' of nothing", call->builtin->name);
    return value_poison();
  }
  return fold_extreme(e, items, count, op, call->span);
}

static Value run_min(Elab *e, const Call *call) {
  return extreme(e, call, OP_min);
}
static Value run_max(Elab *e, const Call *call) {
  return extreme(e, call, OP_max);
}

static Value run_clamp(Elab *e, const Call *call) {
  const Value low[2] = {call->args[0], call->args[1]};
  Value both[2] = {fold_extreme(e, low, 2, OP_max, call->span), call->args[2]};
  return value_is_poison(&both[0]) ? both[0] : fold_extreme(e, both, 2, OP_min, call->span);
}

static Value run_shift_left(Elab *e, const Call *call) {
  return eval_binary(e, BINARY_SHL, &call->args[0], &call->args[1], call->span);
}

static Value run_shift_right(Elab *e, const Call *call) {
  return eval_binary(e, BINARY_SHR, &call->args[0], &call->args[1], call->span);
}

// ---- choice and types

static Value run_if_then_else(Elab *e, const Call *call) {
  const Value *condition = &call->args[0];
  if (!check_number(e, condition, call->spans[0])) return value_poison();
  if (!value_is_staged(condition)) return call->args[value_truth(condition) ? 1 : 2];
  return staged_select(e, condition, &call->args[1], &call->args[2], call->span);
}

static Value cast_to(Elab *e, const Value *value, Span value_span, const Value *type, Span type_span) {
  DType dtype;
  if (!need_dtype(e, type, type_span, "the type of a conversion", &dtype)) return value_poison();
  return staged_result(staged_as(e, value, dtype, value_span));
}

static Value run_cast(Elab *e, const Call *call) {
  return cast_to(e, &call->args[0], call->spans[0], &call->args[1], call->spans[1]);
}

static Value run_cast_type_first(Elab *e, const Call *call) {
  return cast_to(e, &call->args[1], call->spans[1], &call->args[0], call->spans[0]);
}

static Value run_infinity(Elab *e, const Call *call) {
  DType dtype;
  if (!need_dtype(e, &call->args[0], call->spans[0], "infinity", &dtype)) return value_poison();
  if (dtype_is_float(dtype)) return value_float(INFINITY);
  diag_error(e->ds, DIAG_value_kind, call->spans[0], "%s has no infinity", dtype_name(dtype));
  return value_poison();
}

static Value limit_of(DType dtype, bool max) {
  double real = dtype == DTYPE_f16    ? 65504.0
                : dtype == DTYPE_bf16 ? 0x1.FEp127
                : dtype == DTYPE_e4m3 ? 448.0
                : dtype == DTYPE_e5m2 ? 57344.0
                                      : 0x1.FFFFFEp127;
  if (dtype_is_float(dtype)) return value_float(max ? real : -real);
  if (dtype == DTYPE_bool) return value_bool(max);
  int bits = dtype_bits(dtype);
  if (dtype_class(dtype) == DTYPE_CLASS_UNSIGNED) return value_int(max ? ((int64_t)1 << bits) - 1 : 0);
  return value_int(max ? ((int64_t)1 << (bits - 1)) - 1 : -((int64_t)1 << (bits - 1)));
}

static Value run_max_value(Elab *e, const Call *call) {
  DType dtype;
  if (!need_dtype(e, &call->args[0], call->spans[0], "max_value", &dtype)) return value_poison();
  return limit_of(dtype, true);
}

static Value run_min_value(Elab *e, const Call *call) {
  DType dtype;
  if (!need_dtype(e, &call->args[0], call->spans[0], "min_value", &dtype)) return value_poison();
  return limit_of(dtype, false);
}

const Builtin builtins_math[] = {
    {"exp", "x", run_exp},
    {"exp2", "x", run_exp2},
    {"log", "x", run_log},
    {"log2", "x", run_log2},
    {"sqrt", "x", run_sqrt},
    {"rsqrt", "x", run_rsqrt},
    {"tanh", "x", run_tanh},
    {"sin", "x", run_sin},
    {"cos", "x", run_cos},
    {"floor", "x", run_floor},
    {"ceil", "x", run_ceil},
    {"abs", "x", run_abs},
    {"ceildiv", "a b", run_ceildiv},
    {"cdiv", "a b", run_ceildiv},
    {"floordiv", "a b", run_floordiv},
    {"floormod", "a b", run_floormod},
    {"truncdiv", "a b", run_truncdiv},
    {"truncmod", "a b", run_truncmod},
    {"min", "*values", run_min},
    {"max", "*values", run_max},
    {"clamp", "value low high", run_clamp},
    {"shift_left", "a b", run_shift_left},
    {"shift_right", "a b", run_shift_right},
    {"if_then_else", "condition yes no", run_if_then_else},
    {"Select", "condition yes no", run_if_then_else},
    {"cast", "value dtype", run_cast},
    {"Cast", "dtype value", run_cast_type_first},
    {"infinity", "dtype", run_infinity},
    {"max_value", "dtype", run_max_value},
    {"min_value", "dtype", run_min_value},
    {NULL, NULL, NULL},
};

// Staged scalars: bringing operands to a common type and building the tile IR op.
//
// The rules (docs/language.md): an integer constant takes the type of the other operand; a float constant
// takes it when that is a float, else f32. Between staged values: float beats integer, wider beats narrower,
// f16 with bf16 gives f32, 8-bit floats become f32, and of two integers of one width the unsigned type wins. bool counts as i32 in
// arithmetic.
#include "elab/elab_internal.h"

#include <inttypes.h>
#include <math.h>

#include "syntax/syntax.h"

// Points the builder at the source text that is being elaborated.
static TirBuilder *builder(Elab *e, Span span) {
  e->b.span = span;
  return &e->b;
}

// ---- constants

static bool int_fits(int64_t value, DType dtype) {
  if (dtype == DTYPE_bool) return value == 0 || value == 1;
  int bits = dtype_bits(dtype);
  if (bits >= 64) return true;
  if (dtype_class(dtype) == DTYPE_CLASS_UNSIGNED) return value >= 0 && value < (int64_t)1 << bits;
  return value >= -((int64_t)1 << (bits - 1)) && value < (int64_t)1 << (bits - 1);
}

// A finite number that rounds to an infinity of the type.
static TirValue *float_constant(Elab *e, double value, DType dtype, Span span) {
  double limit = dtype == DTYPE_f16    ? 65520.0
                 : dtype == DTYPE_bf16 ? 0x1.ffp127
                 : dtype == DTYPE_f32  ? 0x1.ffffffp127
                                       : INFINITY;
  if (isfinite(value) && fabs(value) >= limit)
    diag_warning(e->ds, DIAG_arithmetic, span, "%g does not fit %s: it becomes infinite", value,
                 dtype_name(dtype));
  return tir_float(builder(e, span), dtype, value);
}

static TirValue *int_constant(Elab *e, int64_t value, DType dtype, Span span) {
  if (dtype_is_float(dtype)) return float_constant(e, (double)value, dtype, span);
  if (dtype == DTYPE_bool) return tir_bool(builder(e, span), value != 0);
  if (!int_fits(value, dtype)) {
    diag_error(e->ds, DIAG_arithmetic, span, "%" PRId64 " does not fit %s", value, dtype_name(dtype));
    return NULL;
  }
  return tir_int_typed(builder(e, span), dtype, value);
}

static TirValue *real_constant(Elab *e, double value, DType dtype, Span span) {
  if (dtype_is_float(dtype)) return float_constant(e, value, dtype, span);
  if (dtype == DTYPE_bool) return tir_bool(builder(e, span), value != 0);
  if (isnan(value) || fabs(value) > 9e18) {
    diag_error(e->ds, DIAG_arithmetic, span, "%g does not fit %s", value, dtype_name(dtype));
    return NULL;
  }
  return int_constant(e, (int64_t)value, dtype, span);
}

// ---- scalars

static TirValue *not_scalar(Elab *e, const Value *value, Span span) {
  if (value_is_poison(value)) return NULL;
  diag_error(e->ds, DIAG_value_kind, span, "a number is needed here, not %s",
             value_describe(e->arena, value));
  if (value->kind == VALUE_BUFFER || value->kind == VALUE_TILE)
    diag_hint(e->ds, "index one element, or use copy or fill for whole tiles");
  return NULL;
}

TirValue *staged_element(Elab *e, const Value *value, Span span) {
  switch (value->kind) {
  case VALUE_BOOL:
    return tir_bool(builder(e, span), value->boolean);
  case VALUE_INT:
    return int_constant(e, value->integer, DTYPE_i32, span);
  case VALUE_FLOAT:
    return float_constant(e, value->real, DTYPE_f32, span);
  case VALUE_STAGED:
    return value->staged;
  case VALUE_CELL:
    return tir_get(builder(e, span), value->staged);
  case VALUE_TILE:
    if (value->tile->points_only) return tile_load(e, value->tile, span);
    return not_scalar(e, value, span);
  case VALUE_POISON:
  case VALUE_ABSENT:
  case VALUE_NONE:
  case VALUE_ELLIPSIS:
  case VALUE_STRING:
  case VALUE_DTYPE:
  case VALUE_TUPLE:
  case VALUE_LIST:
  case VALUE_DICT:
  case VALUE_RANGE:
  case VALUE_FUNCTION:
  case VALUE_BUILTIN:
  case VALUE_METHOD:
  case VALUE_MODULE:
  case VALUE_LOOP:
  case VALUE_KERNEL:
  case VALUE_SCHEDULER:
  case VALUE_TENSOR:
  case VALUE_PARAM:
  case VALUE_BUFFER:
    break;
  }
  return not_scalar(e, value, span);
}

// Nothing computes in 8-bit floats.
static TirValue *widened(Elab *e, TirValue *scalar, Span span) {
  bool narrow = scalar && dtype_is_float(scalar->type.dtype) && dtype_bits(scalar->type.dtype) == 8;
  return narrow ? tir_cast(builder(e, span), DTYPE_f32, scalar) : scalar;
}

TirValue *staged_scalar(Elab *e, const Value *value, Span span) {
  return widened(e, staged_element(e, value, span), span);
}

TirValue *staged_as(Elab *e, const Value *value, DType dtype, Span span) {
  if (value->kind == VALUE_INT || value->kind == VALUE_BOOL)
    return int_constant(e, value_as_int(value), dtype, span);
  if (value->kind == VALUE_FLOAT) return real_constant(e, value->real, dtype, span);
  TirValue *scalar = staged_element(e, value, span);
  if (!scalar || scalar->type.dtype == dtype) return scalar;
  scalar = widened(e, scalar, span);
  if (scalar->type.dtype == dtype) return scalar;
  if (dtype == DTYPE_bool) {
    Value staged = value_staged(scalar);
    return staged_condition(e, &staged, span);
  }
  return tir_cast(builder(e, span), dtype, scalar);
}

TirValue *staged_index(Elab *e, const Value *value, Span span, const char *what) {
  if (value->kind == VALUE_FLOAT ||
      (value_is_staged(value) && value->kind == VALUE_STAGED && dtype_is_float(value->staged->type.dtype))) {
    diag_error(e->ds, DIAG_value_kind, span, "%s must be an integer, not %s", what,
               value_describe(e->arena, value));
    return NULL;
  }
  return staged_as(e, value, DTYPE_i32, span);
}

TirValue *staged_condition(Elab *e, const Value *value, Span span) {
  if (!value_is_scalar(value)) return not_scalar(e, value, span);
  if (!value_is_staged(value)) return tir_bool(builder(e, span), value_truth(value));
  TirValue *scalar = staged_scalar(e, value, span);
  if (!scalar || scalar->type.dtype == DTYPE_bool) return scalar;
  TirValue *zero = int_constant(e, 0, scalar->type.dtype, span);
  return tir_binary(builder(e, span), OP_ne, scalar, zero);
}

// ---- common types

static DType promote_floats(DType a, DType b) {
  if (!dtype_is_float(a)) return b;
  if (!dtype_is_float(b)) return a;
  if (dtype_bits(a) == dtype_bits(b)) return DTYPE_f32;  // f16 with bf16
  return dtype_bits(a) > dtype_bits(b) ? a : b;
}

static DType promote(DType a, DType b) {
  if (a == b) return a;
  if (dtype_is_float(a) || dtype_is_float(b)) return promote_floats(a, b);
  if (a == DTYPE_bool) return b;
  if (b == DTYPE_bool) return a;
  if (dtype_bits(a) != dtype_bits(b)) return dtype_bits(a) > dtype_bits(b) ? a : b;
  return dtype_class(a) == DTYPE_CLASS_UNSIGNED ? a : b;
}

static DType with_constant(const Value *constant, DType other) {
  if (constant->kind == VALUE_FLOAT) return dtype_is_float(other) ? other : DTYPE_f32;
  if (constant->kind == VALUE_INT && other == DTYPE_bool) return DTYPE_i32;
  return other;
}

// A scalar that is a constant, or has been made one tile IR value so that it is loaded once.
static bool settle(Elab *e, const Value *value, Span span, Value *out) {
  *out = *value;
  if (value_is_number(value)) return true;
  TirValue *scalar = staged_scalar(e, value, span);
  if (scalar) *out = value_staged(scalar);
  return scalar != NULL;
}

static DType common_type(const Value *lhs, const Value *rhs) {
  bool lhs_constant = value_is_number(lhs), rhs_constant = value_is_number(rhs);
  if (!lhs_constant && !rhs_constant) return promote(lhs->staged->type.dtype, rhs->staged->type.dtype);
  if (lhs_constant && rhs_constant) {
    if (lhs->kind == VALUE_FLOAT || rhs->kind == VALUE_FLOAT) return DTYPE_f32;
    return lhs->kind == VALUE_BOOL && rhs->kind == VALUE_BOOL ? DTYPE_bool : DTYPE_i32;
  }
  return lhs_constant ? with_constant(lhs, rhs->staged->type.dtype)
                      : with_constant(rhs, lhs->staged->type.dtype);
}

typedef struct {
  TirValue *lhs, *rhs;
  DType dtype;
} Pair;

static bool pair_as(Elab *e, const Value *lhs, const Value *rhs, DType dtype, Span span, Pair *out) {
  out->dtype = dtype;
  out->lhs = staged_as(e, lhs, dtype, span);
  out->rhs = out->lhs ? staged_as(e, rhs, dtype, span) : NULL;
  return out->rhs != NULL;
}

// Brings two settled operands to their common type; arithmetic has none of bool.
static bool pair_up(Elab *e, const Value *lhs, const Value *rhs, bool arithmetic, Span span, Pair *out) {
  DType dtype = common_type(lhs, rhs);
  if (arithmetic && dtype == DTYPE_bool) dtype = DTYPE_i32;
  return pair_as(e, lhs, rhs, dtype, span, out);
}

static Value result(TirValue *value) {
  return value ? value_staged(value) : value_poison();
}

Value staged_op(Elab *e, OpKind op, const Value *lhs, const Value *rhs, Span span) {
  Value a, b;
  Pair pair;
  if (!settle(e, lhs, span, &a) || !settle(e, rhs, span, &b)) return value_poison();
  if (!pair_up(e, &a, &b, true, span, &pair)) return value_poison();
  return result(tir_binary(builder(e, span), op, pair.lhs, pair.rhs));
}

// ---- Python's operators

static bool zero_constant(Elab *e, const Value *divisor, Span span) {
  int64_t number;
  bool zero = value_is_number(divisor) ? value_as_real(divisor) == 0
                                       : tir_const_int(divisor->staged, &number) && number == 0;
  if (zero) diag_error(e->ds, DIAG_arithmetic, span, "division by zero");
  return zero;
}

// True division: integers are divided as f32.
static Value divide(Elab *e, const Value *lhs, const Value *rhs, Span span) {
  DType dtype = common_type(lhs, rhs);
  if (!dtype_is_float(dtype)) dtype = DTYPE_f32;
  Pair pair;
  if (!pair_as(e, lhs, rhs, dtype, span, &pair)) return value_poison();
  return result(tir_binary(builder(e, span), OP_div, pair.lhs, pair.rhs));
}

static Value floor_division(Elab *e, BinaryOp op, const Value *lhs, const Value *rhs, Span span) {
  Pair pair;
  if (zero_constant(e, rhs, span) || !pair_up(e, lhs, rhs, true, span, &pair)) return value_poison();
  TirBuilder *b = builder(e, span);
  if (!dtype_is_float(pair.dtype)) {
    OpKind kind = op == BINARY_MOD ? OP_floormod : OP_floordiv;
    return result(tir_binary(b, kind, pair.lhs, pair.rhs));
  }
  TirValue *whole = tir_unary(b, OP_floor, tir_binary(b, OP_div, pair.lhs, pair.rhs));
  if (op == BINARY_FLOORDIV) return result(whole);
  return result(tir_binary(b, OP_sub, pair.lhs, tir_binary(b, OP_mul, whole, pair.rhs)));
}

// x ** n for a small constant n, by multiplication; x ** 0.5.
static Value power(Elab *e, const Value *lhs, const Value *rhs, Span span) {
  TirBuilder *b = builder(e, span);
  TirValue *base = staged_scalar(e, lhs, span);
  if (!base) return value_poison();
  if (rhs->kind == VALUE_FLOAT && rhs->real == 0.5 && dtype_is_float(base->type.dtype))
    return result(tir_unary(b, OP_sqrt, base));
  double exponent = value_is_number(rhs) ? value_as_real(rhs) : -1;
  if (exponent < 0 || exponent > 16 || exponent != floor(exponent))
    return elab_not_supported(e, span, "'**' with an exponent other than a constant 0 to 16 or 0.5");
  if (base->type.dtype == DTYPE_bool) base = tir_cast(b, DTYPE_i32, base);
  TirValue *product = int_constant(e, 1, base->type.dtype, span);
  for (int i = 0; i < (int)exponent; i++) product = i ? tir_binary(b, OP_mul, product, base) : base;
  return result(product);
}

static Value bitwise(Elab *e, BinaryOp op, const Value *lhs, const Value *rhs, Span span) {
  Pair pair;
  if (!pair_up(e, lhs, rhs, false, span, &pair)) return value_poison();
  if (dtype_is_float(pair.dtype)) {
    diag_error(e->ds, DIAG_value_kind, span, "'%s' takes integers, not %s", binary_op_text(op),
               dtype_name(pair.dtype));
    return value_poison();
  }
  OpKind kind = op == BINARY_AND ? OP_and : op == BINARY_OR ? OP_or : OP_xor;
  return result(tir_binary(builder(e, span), kind, pair.lhs, pair.rhs));
}

// The count takes the type of what is shifted.
static Value shift(Elab *e, BinaryOp op, const Value *lhs, const Value *rhs, Span span) {
  DType dtype = value_is_number(lhs) ? common_type(lhs, rhs) : lhs->staged->type.dtype;
  if (dtype == DTYPE_bool) dtype = DTYPE_i32;
  Pair pair;
  if (!pair_as(e, lhs, rhs, dtype, span, &pair)) return value_poison();
  bool real = dtype_is_float(dtype) || lhs->kind == VALUE_FLOAT || rhs->kind == VALUE_FLOAT ||
              (!value_is_number(rhs) && dtype_is_float(rhs->staged->type.dtype));
  int64_t count;
  if (real) {
    diag_error(e->ds, DIAG_value_kind, span, "'%s' takes integers", binary_op_text(op));
    return value_poison();
  }
  if (tir_const_int(pair.rhs, &count) && (count < 0 || count >= dtype_bits(dtype))) {
    diag_error(e->ds, DIAG_arithmetic, span, "the shift count %" PRId64 " is outside 0 to %d", count,
               dtype_bits(dtype) - 1);
    return value_poison();
  }
  return result(tir_binary(builder(e, span), op == BINARY_SHL ? OP_shl : OP_shr, pair.lhs, pair.rhs));
}

Value staged_binary(Elab *e, BinaryOp op, const Value *lhs_in, const Value *rhs_in, Span span) {
  Value lhs, rhs;
  if (!settle(e, lhs_in, span, &lhs) || !settle(e, rhs_in, span, &rhs)) return value_poison();
  switch (op) {
  case BINARY_ADD:
    return staged_op(e, OP_add, &lhs, &rhs, span);
  case BINARY_SUB:
    return staged_op(e, OP_sub, &lhs, &rhs, span);
  case BINARY_MUL:
    return staged_op(e, OP_mul, &lhs, &rhs, span);
  case BINARY_DIV:
    return divide(e, &lhs, &rhs, span);
  case BINARY_FLOORDIV:
  case BINARY_MOD:
    return floor_division(e, op, &lhs, &rhs, span);
  case BINARY_POW:
    return power(e, &lhs, &rhs, span);
  case BINARY_SHL:
  case BINARY_SHR:
    return shift(e, op, &lhs, &rhs, span);
  case BINARY_AND:
  case BINARY_OR:
  case BINARY_XOR:
    return bitwise(e, op, &lhs, &rhs, span);
  case BINARY_MATMUL:
    return elab_not_supported(e, span, "'@'");
  }
  return value_poison();
}

static OpKind compare_kind(CompareOp op) {
  switch (op) {
  case COMPARE_NE:
    return OP_ne;
  case COMPARE_LT:
    return OP_lt;
  case COMPARE_LE:
    return OP_le;
  case COMPARE_GT:
    return OP_gt;
  case COMPARE_GE:
    return OP_ge;
  case COMPARE_EQ:
  case COMPARE_IN:
  case COMPARE_NOT_IN:
  case COMPARE_IS:
  case COMPARE_IS_NOT:
    break;
  }
  return OP_eq;
}

Value staged_compare(Elab *e, CompareOp op, const Value *lhs_in, const Value *rhs_in, Span span) {
  if (op == COMPARE_IN || op == COMPARE_NOT_IN) {
    diag_error(e->ds, DIAG_compile_time, span, "'%s' needs values known at compile time",
               compare_op_text(op));
    return value_poison();
  }
  if (op == COMPARE_IS || op == COMPARE_IS_NOT) return value_bool(op == COMPARE_IS_NOT);
  bool other_kind = !value_is_scalar(lhs_in) || !value_is_scalar(rhs_in);
  if (other_kind && (op == COMPARE_EQ || op == COMPARE_NE)) return value_bool(op == COMPARE_NE);
  Value lhs, rhs;
  Pair pair;
  if (!settle(e, lhs_in, span, &lhs) || !settle(e, rhs_in, span, &rhs)) return value_poison();
  bool of_bools = common_type(&lhs, &rhs) == DTYPE_bool && op != COMPARE_EQ && op != COMPARE_NE;
  if (!pair_up(e, &lhs, &rhs, of_bools, span, &pair)) return value_poison();
  return result(tir_binary(builder(e, span), compare_kind(op), pair.lhs, pair.rhs));
}

Value staged_unary(Elab *e, UnaryOp op, const Value *operand, Span span) {
  TirValue *value = op == UNARY_NOT ? staged_condition(e, operand, span) : staged_scalar(e, operand, span);
  if (!value) return value_poison();
  TirBuilder *b = builder(e, span);
  bool logical = value->type.dtype == DTYPE_bool;
  switch (op) {
  case UNARY_NOT:
    return result(tir_unary(b, OP_not, value));
  case UNARY_POS:
    return result(logical ? tir_cast(b, DTYPE_i32, value) : value);
  case UNARY_NEG:
    return result(tir_unary(b, OP_neg, logical ? tir_cast(b, DTYPE_i32, value) : value));
  case UNARY_INVERT:
    break;
  }
  if (logical) return result(tir_unary(b, OP_not, value));
  if (dtype_is_float(value->type.dtype)) {
    diag_error(e->ds, DIAG_value_kind, span, "'~' takes integers, not %s", dtype_name(value->type.dtype));
    return value_poison();
  }
  bool is_unsigned = dtype_class(value->type.dtype) == DTYPE_CLASS_UNSIGNED;
  int64_t ones = is_unsigned ? ((int64_t)1 << dtype_bits(value->type.dtype)) - 1 : -1;
  return result(tir_binary(b, OP_xor, value, tir_int_typed(b, value->type.dtype, ones)));
}

Value staged_select(Elab *e, const Value *condition, const Value *yes, const Value *no, Span span) {
  Value a, b;
  Pair pair;
  TirValue *test = staged_condition(e, condition, span);
  if (!test || !settle(e, yes, span, &a) || !settle(e, no, span, &b)) return value_poison();
  if (!pair_up(e, &a, &b, false, span, &pair)) return value_poison();
  return result(tir_select(builder(e, span), test, pair.lhs, pair.rhs));
}

TirOp *staged_effect(Elab *e, OpKind kind, int nargs, TirValue *const *args, Span span) {
  return tir_op(builder(e, span), kind, nargs, args, 0, NULL);
}

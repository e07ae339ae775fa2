// Integers fold when the result fits their type; 16- and 32-bit floats are computed in f32 and rounded, as in
// kernels. u64 constants above INT64_MAX are never folded.
#include "tir/fold.h"

#include <math.h>
#include <string.h>

double fold_double(int64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

int64_t fold_bits(double value) {
  int64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

// `digits` significant bits, exponents from `least`; beyond `largest` infinity.
static double round_to(double value, int digits, int least, double largest) {
  if (!isfinite(value) || value == 0) return value;
  int exponent = ilogb(value);
  if (exponent < least) exponent = least;
  double unit = ldexp(1, exponent - digits + 1);
  double rounded = rint(value / unit) * unit;
  return fabs(rounded) > largest ? copysign(INFINITY, value) : rounded;
}

// The 8-bit floats saturate.
static double round_small(double value, int digits, int least, double largest) {
  return fabs(value) > largest ? copysign(largest, value) : round_to(value, digits, least, largest);
}

bool fold_round(DType dtype, double value, double *out) {
  if (dtype == DTYPE_f64)
    *out = value;
  else if (dtype == DTYPE_f32)
    *out = (double)(float)value;
  else if (dtype == DTYPE_f16)
    *out = round_to(value, 11, -14, 65504);
  else if (dtype == DTYPE_bf16)
    *out = round_to(value, 8, -126, 0x1.fep127);
  else if (dtype == DTYPE_e4m3)
    *out = round_small(value, 4, -6, 448);
  else if (dtype == DTYPE_e5m2)
    *out = round_small(value, 3, -14, 57344);
  else if (dtype == DTYPE_tf32)
    *out = round_to(value, 11, -126, 0x1.ffcp127);
  else
    return false;
  return true;
}

bool fold_fits(DType dtype, int64_t value) {
  int bits = dtype_bits(dtype);
  if (dtype == DTYPE_bool) return value == 0 || value == 1;
  if (dtype_class(dtype) == DTYPE_CLASS_UNSIGNED) return value >= 0 && (bits == 64 || value >> bits == 0);
  return bits == 64 || (value >= -(INT64_C(1) << (bits - 1)) && value < INT64_C(1) << (bits - 1));
}

// ---- integers

static int64_t floor_quotient(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

static bool fold_division(OpKind kind, int64_t a, int64_t b, int64_t *out) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return false;
  if (kind == OP_floordiv)
    *out = floor_quotient(a, b);
  else if (kind == OP_floormod)
    *out = a - floor_quotient(a, b) * b;
  else if (kind == OP_truncdiv)
    *out = a / b;
  else if (kind == OP_truncmod)
    *out = a % b;
  else
    *out = a / b + (a % b != 0 && (a < 0) == (b < 0));  // ceildiv
  return true;
}

static bool fold_shift(OpKind kind, DType dtype, int64_t a, int64_t b, int64_t *out) {
  if (b < 0 || b >= dtype_bits(dtype)) return false;
  if (kind == OP_shr) {
    *out = a >> b;
    return true;
  }
  *out = (int64_t)((uint64_t)a << b);
  return *out >> b == a;
}

static bool fold_int(OpKind kind, DType dtype, int64_t a, int64_t b, int64_t *out) {
  if (kind == OP_add) return !__builtin_add_overflow(a, b, out);
  if (kind == OP_sub) return !__builtin_sub_overflow(a, b, out);
  if (kind == OP_mul) return !__builtin_mul_overflow(a, b, out);
  if (kind == OP_min)
    *out = a < b ? a : b;
  else if (kind == OP_max)
    *out = a > b ? a : b;
  else if (kind == OP_and)
    *out = a & b;
  else if (kind == OP_or)
    *out = a | b;
  else if (kind == OP_xor)
    *out = a ^ b;
  else if (kind == OP_shl || kind == OP_shr)
    return fold_shift(kind, dtype, a, b, out);
  else if (kind == OP_div)
    return false;
  else
    return fold_division(kind, a, b, out);
  return true;
}

// ---- floats

static bool fold_float(OpKind kind, DType dtype, double a, double b, double *out) {
  if (isnan(a) || isnan(b)) return false;
  if (dtype != DTYPE_f64) {
    // The kernel's f32 operation comes first, then the rounding to the type: twice rounded, like there.
    if (kind == OP_add)
      *out = (double)((float)a + (float)b);
    else if (kind == OP_sub)
      *out = (double)((float)a - (float)b);
    else if (kind == OP_mul)
      *out = (double)((float)a * (float)b);
    else if (kind == OP_min || kind == OP_max)
      *out = (kind == OP_min) == (a < b) ? a : b;
    else
      return false;
  } else {
    if (kind == OP_add)
      *out = a + b;
    else if (kind == OP_sub)
      *out = a - b;
    else if (kind == OP_mul)
      *out = a * b;
    else
      return false;
  }
  return fold_round(dtype, *out, out);
}

static bool fold_comparison(OpKind kind, bool less, bool equal, int64_t *out) {
  if (kind == OP_lt)
    *out = less;
  else if (kind == OP_le)
    *out = less || equal;
  else if (kind == OP_gt)
    *out = !less && !equal;
  else if (kind == OP_ge)
    *out = !less;
  else if (kind == OP_eq)
    *out = equal;
  else if (kind == OP_ne)
    *out = !equal;
  else
    return false;
  return true;
}

static bool fold_compare(OpKind kind, FoldValue lhs, FoldValue rhs, FoldValue *out) {
  out->dtype = DTYPE_bool;
  if (!dtype_is_float(lhs.dtype))
    return fold_comparison(kind, lhs.bits < rhs.bits, lhs.bits == rhs.bits, &out->bits);
  double a = fold_double(lhs.bits), b = fold_double(rhs.bits);
  return !isnan(a) && !isnan(b) && fold_comparison(kind, a < b, a == b, &out->bits);
}

bool fold_binary(OpKind kind, FoldValue lhs, FoldValue rhs, FoldValue *out) {
  if (lhs.dtype != rhs.dtype) return false;
  if (op_def(kind)->group == GROUP_COMPARE) return fold_compare(kind, lhs, rhs, out);
  out->dtype = lhs.dtype;
  if (!dtype_is_float(lhs.dtype))
    return fold_int(kind, lhs.dtype, lhs.bits, rhs.bits, &out->bits) && fold_fits(lhs.dtype, out->bits);
  double result;
  if (!fold_float(kind, lhs.dtype, fold_double(lhs.bits), fold_double(rhs.bits), &result)) return false;
  out->bits = fold_bits(result);
  return true;
}

static bool fold_unary_int(OpKind kind, DType dtype, int64_t a, int64_t *out) {
  if (kind == OP_not && dtype == DTYPE_bool)
    *out = !a;
  else if (kind == OP_not && dtype_class(dtype) == DTYPE_CLASS_SIGNED)
    *out = ~a;
  else if (kind == OP_neg && a != INT64_MIN)
    *out = -a;
  else if (kind == OP_abs && a != INT64_MIN)
    *out = a < 0 ? -a : a;
  else
    return false;
  return true;
}

bool fold_unary(OpKind kind, FoldValue operand, FoldValue *out) {
  out->dtype = operand.dtype;
  if (!dtype_is_float(operand.dtype))
    return fold_unary_int(kind, operand.dtype, operand.bits, &out->bits) && fold_fits(out->dtype, out->bits);
  double a = fold_double(operand.bits), result;
  if (isnan(a)) return false;
  if (kind == OP_neg)
    result = -a;
  else if (kind == OP_abs)
    result = fabs(a);
  else if (kind == OP_floor)
    result = floor(a);
  else if (kind == OP_ceil)
    result = ceil(a);
  else
    return false;
  if (!fold_round(operand.dtype, result, &result)) return false;
  out->bits = fold_bits(result);
  return true;
}

// ---- casts

// Keeps the low bits, as a conversion between integer registers does.
static bool wrap(DType dtype, int64_t value, int64_t *out) {
  int bits = dtype_bits(dtype);
  if (bits < 64) {
    uint64_t low = (uint64_t)value & ((UINT64_C(1) << bits) - 1);
    bool negative = dtype_class(dtype) == DTYPE_CLASS_SIGNED && low >> (bits - 1);
    value = negative ? (int64_t)low - (INT64_C(1) << bits) : (int64_t)low;
  }
  *out = value;
  return fold_fits(dtype, value);
}

// Truncates toward zero and saturates.
static bool float_to_int(DType dtype, double value, int64_t *out) {
  if (isnan(value) || dtype_bits(dtype) > 32) return false;
  bool is_signed = dtype_class(dtype) == DTYPE_CLASS_SIGNED;
  double most = ldexp(1, dtype_bits(dtype) - is_signed) - 1, least = is_signed ? -most - 1 : 0;
  value = trunc(value);
  *out = (int64_t)(value < least ? least : value > most ? most : value);
  return true;
}

static bool fold_cast_float(DType dtype, double value, FoldValue *out) {
  double rounded;
  if (dtype == DTYPE_bool)
    out->bits = value != 0;
  else if (dtype_is_int(dtype))
    return float_to_int(dtype, value, &out->bits);
  else if (isnan(value) || !fold_round(dtype, value, &rounded))
    return false;
  else
    out->bits = fold_bits(rounded);
  return true;
}

bool fold_cast(DType dtype, FoldValue operand, FoldValue *out) {
  enum { EXACT_BITS = 24 };  // integers of so many bits are exact in f32; larger ones would be rounded twice
  out->dtype = dtype;
  int64_t value = operand.bits;
  if (dtype_is_float(operand.dtype)) return fold_cast_float(dtype, fold_double(value), out);
  if (dtype == DTYPE_bool)
    out->bits = value != 0;
  else if (dtype_is_int(dtype))
    return wrap(dtype, value, &out->bits);
  else if (dtype == DTYPE_f32)
    return fold_cast_float(dtype, (double)(float)value, out);
  else if (value < -(INT64_C(1) << EXACT_BITS) || value > INT64_C(1) << EXACT_BITS)
    return false;
  else
    return fold_cast_float(dtype, (double)value, out);
  return true;
}

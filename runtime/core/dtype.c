// One row a type. A small float is (sign, exponent, mantissa) with subnormals; the formats differ in widths,
// in bias, and in what the largest exponent means (PTX ISA 5.2.3, OCP 8-bit and MX formats).
#include "core/dtype.h"

#include <math.h>
#include <string.h>

typedef enum {
  TOP_IEEE,    // the top exponent holds infinity and NaN
  TOP_NAN,     // only all ones is NaN, no infinity (e4m3)
  TOP_FINITE,  // every pattern is a number
} TopExponent;

typedef struct {
  const char *name;
  int bits;
  DTypeKind kind;
  int exponent, mantissa;  // widths of a float
  TopExponent top;
} DTypeRow;

static const DTypeRow rows[TILE_DTYPE_COUNT] = {
    [TILE_F64] = {"f64", 64, DTYPE_FLOAT, 11, 52, TOP_IEEE},
    [TILE_F32] = {"f32", 32, DTYPE_FLOAT, 8, 23, TOP_IEEE},
    [TILE_TF32] = {"tf32", 32, DTYPE_FLOAT, 8, 23, TOP_IEEE},
    [TILE_F16] = {"f16", 16, DTYPE_FLOAT, 5, 10, TOP_IEEE},
    [TILE_BF16] = {"bf16", 16, DTYPE_FLOAT, 8, 7, TOP_IEEE},
    [TILE_E4M3] = {"e4m3", 8, DTYPE_FLOAT, 4, 3, TOP_NAN},
    [TILE_E5M2] = {"e5m2", 8, DTYPE_FLOAT, 5, 2, TOP_IEEE},
    [TILE_E2M3] = {"e2m3", 6, DTYPE_FLOAT, 2, 3, TOP_FINITE},
    [TILE_E3M2] = {"e3m2", 6, DTYPE_FLOAT, 3, 2, TOP_FINITE},
    [TILE_E2M1] = {"e2m1", 4, DTYPE_FLOAT, 2, 1, TOP_FINITE},
    [TILE_UE8M0] = {"ue8m0", 8, DTYPE_FLOAT, 8, 0, TOP_NAN},
    [TILE_I64] = {"i64", 64, DTYPE_SIGNED, 0, 0, 0},
    [TILE_I32] = {"i32", 32, DTYPE_SIGNED, 0, 0, 0},
    [TILE_I16] = {"i16", 16, DTYPE_SIGNED, 0, 0, 0},
    [TILE_I8] = {"i8", 8, DTYPE_SIGNED, 0, 0, 0},
    [TILE_U64] = {"u64", 64, DTYPE_UNSIGNED, 0, 0, 0},
    [TILE_U32] = {"u32", 32, DTYPE_UNSIGNED, 0, 0, 0},
    [TILE_U16] = {"u16", 16, DTYPE_UNSIGNED, 0, 0, 0},
    [TILE_U8] = {"u8", 8, DTYPE_UNSIGNED, 0, 0, 0},
    [TILE_BOOL] = {"bool", 8, DTYPE_TRUTH, 0, 0, 0},
};

static bool known(TileDType dtype) {
  return (unsigned)dtype < TILE_DTYPE_COUNT;
}

const char *tile_dtype_name(TileDType dtype) {
  return known(dtype) ? rows[dtype].name : NULL;
}

int tile_dtype_bits(TileDType dtype) {
  return known(dtype) ? rows[dtype].bits : 0;
}

bool tile_dtype_parse(const char *name, TileDType *out) {
  for (int i = 0; i < TILE_DTYPE_COUNT; i++) {
    if (strcmp(rows[i].name, name) != 0) continue;
    *out = (TileDType)i;
    return true;
  }
  return false;
}

DTypeKind dtype_kind(TileDType dtype) {
  return rows[dtype].kind;
}

bool dtype_is_integer(TileDType dtype) {
  return rows[dtype].kind != DTYPE_FLOAT;
}

static double decode_float(const DTypeRow *row, uint64_t bits) {
  uint64_t mantissa = bits & ((UINT64_C(1) << row->mantissa) - 1);
  uint64_t top = (UINT64_C(1) << row->exponent) - 1;
  uint64_t exponent = (bits >> row->mantissa) & top;
  int bias = (int)(top >> 1);
  bool negative = (bits >> (row->mantissa + row->exponent)) & 1;
  uint64_t all = (UINT64_C(1) << row->mantissa) - 1;
  double value;
  if (row->top == TOP_IEEE && exponent == top)
    value = mantissa ? NAN : INFINITY;
  else if (row->top == TOP_NAN && exponent == top && mantissa == all)
    value = NAN;
  else if (exponent == 0)
    value = ldexp((double)mantissa, 1 - bias - row->mantissa);
  else
    value = ldexp((double)(mantissa | (all + 1)), (int)exponent - bias - row->mantissa);
  return negative ? -value : value;
}

static double decode_scale(uint64_t bits) {
  return (bits & 255) == 255 ? NAN : ldexp(1.0, (int)(bits & 255) - 127);
}

double dtype_decode(TileDType dtype, uint64_t bits) {
  const DTypeRow *row = &rows[dtype];
  uint64_t mask = row->bits == 64 ? UINT64_MAX : (UINT64_C(1) << row->bits) - 1;
  bits &= mask;
  switch (row->kind) {
  case DTYPE_FLOAT:
    if (dtype == TILE_UE8M0) return decode_scale(bits);
    if (dtype == TILE_F64) {
      double value;
      memcpy(&value, &bits, sizeof value);
      return value;
    }
    return decode_float(row, bits);
  case DTYPE_SIGNED:
    return (double)((int64_t)(bits << (64 - row->bits)) >> (64 - row->bits));
  case DTYPE_UNSIGNED:
    return (double)bits;
  case DTYPE_TRUTH:
    return bits != 0;
  }
  return 0;
}

static uint64_t largest_finite(const DTypeRow *row) {
  uint64_t infinity = ((UINT64_C(1) << row->exponent) - 1) << row->mantissa;
  uint64_t all = (UINT64_C(1) << (row->exponent + row->mantissa)) - 1;
  return row->top == TOP_IEEE ? infinity - 1 : row->top == TOP_NAN ? all - 1 : all;
}

static uint64_t encode_float(const DTypeRow *row, double value) {
  uint64_t sign = (uint64_t)(signbit(value) != 0) << (row->exponent + row->mantissa);
  uint64_t all = (UINT64_C(1) << (row->exponent + row->mantissa)) - 1;
  uint64_t infinity = ((UINT64_C(1) << row->exponent) - 1) << row->mantissa;
  if (isnan(value))
    return row->top == TOP_FINITE ? largest_finite(row)
           : row->top == TOP_NAN  ? all
                                  : infinity | UINT64_C(1) << (row->mantissa - 1);
  double magnitude = fabs(value);
  uint64_t largest = largest_finite(row);
  if (isinf(value)) return sign | (row->top == TOP_IEEE ? infinity : row->top == TOP_NAN ? all : largest);
  if (magnitude == 0) return sign;
  int bias = (1 << (row->exponent - 1)) - 1;
  int exponent = ilogb(magnitude);
  if (exponent < 1 - bias) exponent = 1 - bias;
  // The mantissa in units of the last place; rint rounds ties to even, and a carry runs into the exponent as
  // it should.
  double units = rint(ldexp(magnitude, row->mantissa - exponent));
  uint64_t bits = (uint64_t)units + ((uint64_t)(exponent - 1 + bias) << row->mantissa);
  if (bits <= largest) return sign | bits;
  return sign | (row->top == TOP_IEEE ? infinity : largest);
}

static uint64_t encode_integer(const DTypeRow *row, double value) {
  if (isnan(value)) return 0;
  bool is_signed = row->kind == DTYPE_SIGNED;
  double limit = ldexp(1.0, row->bits - is_signed);
  uint64_t mask = row->bits == 64 ? UINT64_MAX : (UINT64_C(1) << row->bits) - 1;
  value = trunc(value);
  if (value >= limit) return is_signed ? mask >> 1 : mask;
  if (is_signed && value < -limit) value = -limit;
  if (!is_signed) return value <= 0 ? 0 : (uint64_t)value;
  return (uint64_t)(int64_t)value & mask;
}

uint64_t dtype_encode(TileDType dtype, double value) {
  const DTypeRow *row = &rows[dtype];
  switch (row->kind) {
  case DTYPE_FLOAT:
    if (dtype == TILE_UE8M0) {
      if (isnan(value) || value <= 0) return isnan(value) ? 255 : 0;
      double exponent = rint(log2(value)) + 127;
      return exponent < 0 ? 0 : exponent > 254 ? 254 : (uint64_t)exponent;
    }
    if (dtype == TILE_F64) {
      uint64_t bits;
      memcpy(&bits, &value, sizeof bits);
      return bits;
    }
    return encode_float(row, value);
  case DTYPE_SIGNED:
  case DTYPE_UNSIGNED:
    return encode_integer(row, value);
  case DTYPE_TRUTH:
    return value != 0;
  }
  return 0;
}

bool dtype_holds(TileDType dtype, int64_t value) {
  const DTypeRow *row = &rows[dtype];
  switch (row->kind) {
  case DTYPE_FLOAT:
    return true;
  case DTYPE_SIGNED:
    return row->bits == 64 ||
           (value >= -(INT64_C(1) << (row->bits - 1)) && value < INT64_C(1) << (row->bits - 1));
  case DTYPE_UNSIGNED:
    return value >= 0 && (row->bits == 64 || value < INT64_C(1) << row->bits);
  case DTYPE_TRUTH:
    return value == 0 || value == 1;
  }
  return false;
}

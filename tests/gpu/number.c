// One routine for all floats, by the number of exponent and fraction bits.
#include "number.h"

#include <math.h>
#include <string.h>

typedef struct {
  int bytes, exponent, fraction;  // no exponent: an integer
  bool is_signed;
  bool finite;  // no infinities: the largest exponent holds numbers too, all ones are NaN
} Format;

static const Format formats[TILE_DTYPE_COUNT] = {
    [TILE_F64] = {8, 11, 52, true, false}, [TILE_F32] = {4, 8, 23, true, false},
    [TILE_TF32] = {4, 8, 23, true, false}, [TILE_F16] = {2, 5, 10, true, false},
    [TILE_BF16] = {2, 8, 7, true, false},  [TILE_E4M3] = {1, 4, 3, true, true},
    [TILE_E5M2] = {1, 5, 2, true, false},  [TILE_I32] = {4, 0, 0, true, false},
    [TILE_I16] = {2, 0, 0, true, false},   [TILE_I8] = {1, 0, 0, true, false},
    [TILE_U32] = {4, 0, 0, false, false},  [TILE_U16] = {2, 0, 0, false, false},
    [TILE_U8] = {1, 0, 0, false, false},
};

bool number_known(TileDType dtype) {
  return formats[dtype].bytes > 0;
}

int number_bytes(TileDType dtype) {
  return formats[dtype].bytes;
}

static double decode_integer(const Format *format, uint64_t bits) {
  int width = 8 * format->bytes;
  if (format->is_signed && bits >> (width - 1)) return (double)bits - ldexp(1, width);
  return (double)bits;
}

double number_decode(TileDType dtype, const void *bytes) {
  const Format *format = &formats[dtype];
  uint64_t bits = 0;
  memcpy(&bits, bytes, (size_t)format->bytes);
  if (format->exponent == 0) return decode_integer(format, bits);
  int bias = (1 << (format->exponent - 1)) - 1, top = (1 << format->exponent) - 1;
  int exponent = (int)(bits >> format->fraction) & top;
  uint64_t ones = (UINT64_C(1) << format->fraction) - 1, fraction = bits & ones;
  double value;
  if (exponent == top && (format->finite ? fraction == ones : fraction != 0))
    value = NAN;
  else if (exponent == top && !format->finite)
    value = INFINITY;
  else if (exponent == 0)
    value = ldexp((double)fraction, 1 - bias - format->fraction);
  else
    value = ldexp((double)(fraction | (ones + 1)), exponent - bias - format->fraction);
  return bits >> (format->exponent + format->fraction) ? -value : value;
}

// The bits of a magnitude.
static uint64_t encode_magnitude(const Format *format, double value) {
  int bias = (1 << (format->exponent - 1)) - 1, top = (1 << format->exponent) - 1, exponent;
  uint64_t ones = (UINT64_C(1) << format->fraction) - 1;
  uint64_t nan = (uint64_t)top << format->fraction | (format->finite ? ones : (ones + 1) / 2);
  if (isnan(value)) return nan;
  uint64_t infinity = format->finite ? nan : (uint64_t)top << format->fraction;
  if (isinf(value)) return infinity;
  if (value == 0) return 0;
  frexp(value, &exponent);  // value is 0.1… times 2^exponent
  int scale = exponent - 1 > 1 - bias ? exponent - 1 : 1 - bias;
  double steps = nearbyint(ldexp(value, format->fraction - scale));
  // A carry into the next exponent is right as it stands: the fields are one number.
  uint64_t bits = (uint64_t)steps + ((uint64_t)(scale + bias - 1) << format->fraction);
  return bits >= infinity ? infinity : bits;
}

void number_encode(TileDType dtype, double value, void *bytes) {
  const Format *format = &formats[dtype];
  uint64_t bits;
  if (format->exponent == 0)
    bits = (uint64_t)(int64_t)value;
  else
    bits = encode_magnitude(format, fabs(value)) | (uint64_t)(signbit(value) != 0)
                                                       << (format->exponent + format->fraction);
  memcpy(bytes, &bits, (size_t)format->bytes);
}

// The general decoder and encoder. Encoding scales the magnitude so that one unit in the last place becomes
// 1, rounds that number to an integer, and lets a carry walk from the mantissa into the exponent by itself:
// codes of ascending values are consecutive integers.
#include "num/num.h"

#include <math.h>

const NumFormat num_f16 = {"f16", 5, 10, 15, NUM_IEEE, true};
const NumFormat num_bf16 = {"bf16", 8, 7, 127, NUM_IEEE, true};
const NumFormat num_tf32 = {"tf32", 8, 10, 127, NUM_IEEE, true};
const NumFormat num_e4m3 = {"e4m3", 4, 3, 7, NUM_NAN_ONLY, true};
const NumFormat num_e5m2 = {"e5m2", 5, 2, 15, NUM_IEEE, true};
const NumFormat num_e2m3 = {"e2m3", 2, 3, 1, NUM_FINITE, true};
const NumFormat num_e3m2 = {"e3m2", 3, 2, 3, NUM_FINITE, true};
const NumFormat num_e2m1 = {"e2m1", 2, 1, 1, NUM_FINITE, true};
const NumFormat num_ue4m3 = {"ue4m3", 4, 3, 7, NUM_NAN_ONLY, false};

static uint32_t all_ones(const NumFormat *format) {
  return (1u << (format->exp_bits + format->man_bits)) - 1;
}

static uint32_t infinity_code(const NumFormat *format) {
  return ((1u << format->exp_bits) - 1) << format->man_bits;
}

static uint32_t max_code(const NumFormat *format) {
  switch (format->special) {
  case NUM_IEEE:
    return infinity_code(format) - 1;
  case NUM_NAN_ONLY:
    return all_ones(format) - 1;
  case NUM_FINITE:
    break;
  }
  return all_ones(format);
}

static double magnitude(const NumFormat *format, uint32_t code) {
  int exponent = (int)(code >> format->man_bits);
  uint32_t mantissa = code & ((1u << format->man_bits) - 1);
  if (exponent > 0) mantissa |= 1u << format->man_bits;
  return ldexp(mantissa, (exponent > 0 ? exponent : 1) - format->bias - format->man_bits);
}

double num_max(const NumFormat *format) {
  return magnitude(format, max_code(format));
}

double num_decode(const NumFormat *format, uint32_t code) {
  bool negative = format->has_sign && (code >> (format->exp_bits + format->man_bits) & 1);
  uint32_t body = code & all_ones(format);
  if (format->special == NUM_NAN_ONLY && body == all_ones(format)) return NAN;
  if (format->special == NUM_IEEE && body > infinity_code(format)) return NAN;
  double value =
      format->special == NUM_IEEE && body == infinity_code(format) ? INFINITY : magnitude(format, body);
  return negative ? -value : value;
}

// `scaled` >= 0, in units of the last place; `negative` matters for the directed modes.
static double round_integer(double scaled, bool negative, NumRounding rounding) {
  double down = floor(scaled), rest = scaled - down;
  switch (rounding) {
  case NUM_RZ:
    return down;
  case NUM_RM:
    return negative && rest > 0 ? down + 1 : down;
  case NUM_RP:
    return !negative && rest > 0 ? down + 1 : down;
  case NUM_RNA:
    return rest >= 0.5 ? down + 1 : down;
  case NUM_RN:
    break;
  }
  if (rest != 0.5) return rest > 0.5 ? down + 1 : down;
  return fmod(down, 2) == 0 ? down : down + 1;
}

static bool overflows_to_max(bool negative, NumRounding rounding) {
  return rounding == NUM_RZ || (rounding == NUM_RM && !negative) || (rounding == NUM_RP && negative);
}

static uint32_t overflow_code(const NumFormat *format, bool infinite, bool negative, NumRounding rounding,
                              bool saturate) {
  if (saturate || format->special == NUM_FINITE) return max_code(format);
  if (!infinite && overflows_to_max(negative, rounding)) return max_code(format);
  return format->special == NUM_IEEE ? infinity_code(format) : all_ones(format);
}

uint32_t num_encode(const NumFormat *format, double value, NumRounding rounding, bool saturate) {
  if (isnan(value)) return format->special == NUM_FINITE ? max_code(format) : all_ones(format);
  bool negative = signbit(value) != 0;
  uint32_t sign = negative && format->has_sign ? 1u << (format->exp_bits + format->man_bits) : 0;
  double size = fabs(value);
  if (isinf(value)) return sign | overflow_code(format, true, negative, rounding, saturate);
  int exponent = 1 - format->bias;
  if (size > 0 && ilogb(size) > exponent) exponent = ilogb(size);
  double units = round_integer(ldexp(size, format->man_bits - exponent), negative, rounding);
  // Subnormals are stored with exponent field 0: the hidden bit, when present, raises it to 1 by the carry.
  uint64_t code = ((uint64_t)(exponent + format->bias - 1) << format->man_bits) + (uint64_t)units;
  if (exponent + format->bias > (1 << format->exp_bits) || code > max_code(format))
    return sign | overflow_code(format, false, negative, rounding, saturate);
  return sign | (uint32_t)code;
}

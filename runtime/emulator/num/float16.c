// f16, bf16 and tf32 conversions that work on the bits of an f32.
#include "num/num.h"

float num_f16_to_f32(uint16_t code) {
  uint32_t sign = (uint32_t)(code & 0x8000) << 16, exponent = code >> 10 & 31, mantissa = code & 0x3FF;
  if (exponent == 31) return num_f32_from_bits(sign | 0x7F800000 | mantissa << 13);
  if (exponent > 0) return num_f32_from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
  float size = (float)mantissa * 0x1p-24f;
  return sign ? -size : size;
}

uint16_t num_f16_rn(float value) {
  uint32_t bits = num_f32_bits(value), sign = bits >> 16 & 0x8000, size = bits & 0x7FFFFFFF;
  if (size > 0x7F800000) return 0x7FFF;
  if (size >= 0x477FF000) return (uint16_t)(sign | 0x7C00);  // 65520 and above round to infinity
  if (size < 0x38800000) {                                   // below the least normal, 2^-14
    // Adding 0.5 makes the f32 adder round at bit 2^-24, the f16 subnormal unit.
    float shifted = num_f32_from_bits(size) + 0.5f;
    return (uint16_t)(sign | (num_f32_bits(shifted) - num_f32_bits(0.5f)));
  }
  uint32_t rounded = size - 0x38000000 + 0xFFF + (size >> 13 & 1);
  return (uint16_t)(sign | rounded >> 13);
}

uint16_t num_bf16_rn(float value) {
  uint32_t bits = num_f32_bits(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return 0x7FFF;
  return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

float num_tf32_round(float value, NumRounding rounding) {
  uint32_t bits = num_f32_bits(value), size = bits & 0x7FFFFFFF;
  if (size > 0x7F800000) return num_f32_from_bits(0x7FFFFFFF);
  uint32_t rest = bits & 0x1FFF, kept = bits & ~0x1FFFu;
  bool up = false, negative = bits >> 31;
  switch (rounding) {
  case NUM_RZ:
    break;
  case NUM_RM:
    up = negative && rest;
    break;
  case NUM_RP:
    up = !negative && rest;
    break;
  case NUM_RNA:
    up = rest >= 0x1000;
    break;
  case NUM_RN:
    up = rest > 0x1000 || (rest == 0x1000 && (kept & 0x2000));
    break;
  }
  return num_f32_from_bits(up ? kept + 0x2000 : kept);
}

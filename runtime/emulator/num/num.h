// Number formats below f32, as bits and as doubles. A format is a row of facts (NumFormat); one decoder and
// one encoder serve them all, since every value of every format here is exact in a double. The 16-bit
// formats, which the interpreter meets in each warp instruction, also have direct conversions.
#ifndef PTXEMU_NUM_NUM_H
#define PTXEMU_NUM_NUM_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef enum { NUM_RN, NUM_RZ, NUM_RM, NUM_RP, NUM_RNA } NumRounding;

// What the codes with an all-ones exponent mean.
typedef enum {
  NUM_IEEE,      // infinities and NaN
  NUM_NAN_ONLY,  // no infinity; all ones is NaN, the rest are numbers
  NUM_FINITE     // numbers only
} NumSpecial;

typedef struct {
  const char *name;
  int exp_bits, man_bits, bias;
  NumSpecial special;
  bool has_sign;
} NumFormat;

// PTX ISA 5.2.3. Codes are right-aligned; num_tf32 is the 19-bit code, which sits in the top bits of an f32.
extern const NumFormat num_f16, num_bf16, num_tf32;
extern const NumFormat num_e4m3, num_e5m2, num_e2m3, num_e3m2, num_e2m1, num_ue4m3;

// The value of a code; infinities and NaN as doubles of that kind.
double num_decode(const NumFormat *format, uint32_t code);

// Rounds to the format. `saturate` turns what is out of range into the largest finite value (.satfinite).
// NaN becomes the canonical NaN, or the largest positive value in a format without one (PTX ISA 9.7.9.21).
// A format without sign encodes a negative value as its magnitude.
uint32_t num_encode(const NumFormat *format, double value, NumRounding rounding, bool saturate);

// Largest finite value.
double num_max(const NumFormat *format);

// Direct 16-bit conversions; *_rn rounds to nearest even and gives the canonical NaN 0x7FFF.
float num_f16_to_f32(uint16_t code);
uint16_t num_f16_rn(float value);
uint16_t num_bf16_rn(float value);

// f32 to tf32, as an f32 whose low 13 bits are zero (cvt .rna/.rn/.rz); NaN gives 0x7FFFFFFF.
float num_tf32_round(float value, NumRounding rounding);

// ue8m0: 2^(code - 127), 0xFF is NaN (PTX ISA 5.2.3). Rounding is NUM_RZ or NUM_RP on the exponent; the sign
// is dropped; with `saturate` NaN still gives 0xFF and what is too large gives 0xFE.
double num_ue8m0_decode(uint8_t code);
uint8_t num_ue8m0_encode(double value, NumRounding rounding, bool saturate);

static inline uint32_t num_f32_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline float num_f32_from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline float num_bf16_to_f32(uint16_t code) {
  return num_f32_from_bits((uint32_t)code << 16);
}

#endif

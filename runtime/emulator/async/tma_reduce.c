// Element-wise read-modify-write of TMA and bulk reductions (PTX ISA 9.7.9.25.4.2): f32 add flushes
// subnormals, f16 and bf16 add round to nearest even and keep them.
#include "async/tma.h"

#include <math.h>
#include <string.h>

#include "num/num.h"

static bool is_float(int element) {
  return element == ELEMENT_F16 || element == ELEMENT_BF16 || element == ELEMENT_F32 ||
         element == ELEMENT_F32_FTZ || element == ELEMENT_F64;
}

bool tma_reduce_known(int element, Reduce reduce) {
  bool wide = element == ELEMENT_U64 || element == ELEMENT_S64;
  bool word = element == ELEMENT_U32 || element == ELEMENT_S32;
  bool half = element == ELEMENT_F16 || element == ELEMENT_BF16;
  switch (reduce) {
  case REDUCE_NONE:
    return true;
  case REDUCE_ADD:
    return word || wide || is_float(element);
  case REDUCE_MIN:
  case REDUCE_MAX:
    return word || wide || half;
  case REDUCE_INC:
  case REDUCE_DEC:
    return element == ELEMENT_U32;
  case REDUCE_AND:
  case REDUCE_OR:
  case REDUCE_XOR:
    break;
  }
  return word || wide;
}

static double combine_floats(Reduce reduce, double x, double y) {
  if (reduce == REDUCE_ADD) return x + y;
  return reduce == REDUCE_MIN ? fmin(x, y) : fmax(x, y);
}

static float flush(float value) {
  return fabsf(value) < 0x1p-126f ? copysignf(0, value) : value;
}

static void reduce_half(int element, Reduce reduce, uint8_t *memory, const uint8_t *operand) {
  const NumFormat *format = element == ELEMENT_F16 ? &num_f16 : &num_bf16;
  uint16_t x, y;
  memcpy(&x, memory, 2);
  memcpy(&y, operand, 2);
  uint16_t result = (uint16_t)num_encode(
      format, combine_floats(reduce, num_decode(format, x), num_decode(format, y)), NUM_RN, false);
  memcpy(memory, &result, 2);
}

static void reduce_float(int element, Reduce reduce, uint8_t *memory, const uint8_t *operand) {
  if (element == ELEMENT_F64) {
    double x, y;
    memcpy(&x, memory, 8);
    memcpy(&y, operand, 8);
    x = combine_floats(reduce, x, y);
    memcpy(memory, &x, 8);
    return;
  }
  float x, y;
  memcpy(&x, memory, 4);
  memcpy(&y, operand, 4);
  x = flush(flush(x) + flush(y));
  memcpy(memory, &x, 4);
}

static uint64_t combine_integers(Reduce reduce, bool is_signed, uint64_t x, uint64_t y) {
  bool less = is_signed ? (int64_t)x < (int64_t)y : x < y;
  switch (reduce) {
  case REDUCE_NONE:
    return y;
  case REDUCE_ADD:
    return x + y;
  case REDUCE_MIN:
    return less ? x : y;
  case REDUCE_MAX:
    return less ? y : x;
  case REDUCE_INC:
    return x >= y ? 0 : x + 1;
  case REDUCE_DEC:
    return x == 0 || x > y ? y : x - 1;
  case REDUCE_AND:
    return x & y;
  case REDUCE_OR:
    return x | y;
  case REDUCE_XOR:
    break;
  }
  return x ^ y;
}

void tma_reduce_element(int element, Reduce reduce, uint8_t *memory, const uint8_t *operand) {
  if (element == ELEMENT_F16 || element == ELEMENT_BF16) {
    reduce_half(element, reduce, memory, operand);
  } else if (is_float(element)) {
    reduce_float(element, reduce, memory, operand);
  } else if (element == ELEMENT_U64 || element == ELEMENT_S64) {
    uint64_t x, y;
    memcpy(&x, memory, 8);
    memcpy(&y, operand, 8);
    x = combine_integers(reduce, element == ELEMENT_S64, x, y);
    memcpy(memory, &x, 8);
  } else {
    uint32_t x, y;
    memcpy(&x, memory, 4);
    memcpy(&y, operand, 4);
    bool is_signed = element == ELEMENT_S32;
    x = (uint32_t)combine_integers(reduce, is_signed, is_signed ? (uint64_t)(int64_t)(int32_t)x : x,
                                   is_signed ? (uint64_t)(int64_t)(int32_t)y : y);
    memcpy(memory, &x, 4);
  }
}

// Bit fields only: no LLVM here, so that a unit test can compare with words known to run.
#include "codegen/sm100a/descriptors.h"

#include <assert.h>

static uint32_t type_code(DType dtype) {
  if (dtype == DTYPE_bf16 || dtype == DTYPE_e5m2 || dtype == DTYPE_i8) return 1;
  if (dtype == DTYPE_f32 || dtype == DTYPE_tf32) return 2;
  if (dtype == DTYPE_e2m3) return 3;
  if (dtype == DTYPE_e3m2) return 4;
  if (dtype == DTYPE_e2m1) return 5;
  return 0;  // f16, e4m3, u8
}

static uint32_t result_code(DType dtype) {
  return dtype == DTYPE_i32 ? 2 : dtype == DTYPE_f32 ? 1 : 0;
}

uint32_t instruction_descriptor(const MmaShape *shape, int m, int n, bool a_mn_major, bool b_mn_major) {
  return result_code(shape->c) << 4 | type_code(shape->a) << 7 | type_code(shape->b) << 10 |
         (uint32_t)a_mn_major << 15 | (uint32_t)b_mn_major << 16 | (uint32_t)(n >> 3) << 17 |
         (uint32_t)(m >> 4) << 24;
}

static uint64_t swizzle_code(int span) {
  assert(span == 32 || span == 64 || span == 128);
  return span == 128 ? 2 : span == 64 ? 4 : 6;
}

uint64_t matrix_descriptor(int span, int64_t leading_bytes, int64_t stride_bytes) {
  const uint64_t constant = UINT64_C(1) << 46;
  assert(leading_bytes % 16 == 0 && stride_bytes % 16 == 0);
  return (uint64_t)(leading_bytes >> 4) << 16 | (uint64_t)(stride_bytes >> 4) << 32 | constant |
         swizzle_code(span) << 61;
}

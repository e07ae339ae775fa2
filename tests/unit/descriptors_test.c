// Descriptor words against values that other compilers emit and hardware has run.
#include "codegen/sm100a/descriptors.h"

#include "check.h"

static void test_instruction(Checks *c) {
  MmaShape bf16 = {.a = DTYPE_bf16, .b = DTYPE_bf16, .c = DTYPE_f32},
           f16 = {.a = DTYPE_f16, .b = DTYPE_f16, .c = DTYPE_f32};
  MmaShape half = {.a = DTYPE_f16, .b = DTYPE_f16, .c = DTYPE_f16},
           tf32 = {.a = DTYPE_tf32, .b = DTYPE_tf32, .c = DTYPE_f32};
  MmaShape fp8 = {.a = DTYPE_e4m3, .b = DTYPE_e4m3, .c = DTYPE_f32},
           i8 = {.a = DTYPE_i8, .b = DTYPE_i8, .c = DTYPE_i32};
  CHECK_INT(c, instruction_descriptor(&bf16, 128, 256, false, false), 0x08400490);
  CHECK_INT(c, instruction_descriptor(&f16, 256, 256, false, false), 0x10400010);
  CHECK_INT(c, instruction_descriptor(&half, 128, 128, false, false), 0x08200000);
  CHECK_INT(c, instruction_descriptor(&tf32, 128, 128, false, false), 0x08200910);
  CHECK_INT(c, instruction_descriptor(&fp8, 128, 128, false, false), 0x08200010);
  CHECK_INT(c, instruction_descriptor(&i8, 128, 128, false, false), 0x082004A0);
  CHECK_INT(c, instruction_descriptor(&bf16, 128, 256, true, true), 0x08418490);
}

static void test_matrix(Checks *c) {
  CHECK(c, matrix_descriptor(128, 0, 1024) == UINT64_C(0x4000404000000000));
  CHECK(c, matrix_descriptor(64, 0, 512) == UINT64_C(0x8000402000000000));
  CHECK(c, matrix_descriptor(32, 0, 256) == UINT64_C(0xC000401000000000));
  CHECK(c, matrix_descriptor(128, 8192, 1024) == UINT64_C(0x4000404002000000));
}

int main(void) {
  Checks checks = {0};
  test_instruction(&checks);
  test_matrix(&checks);
  return check_report(&checks);
}

// sm_100a (Blackwell data centre): TMA, tensor memory and one-CTA tcgen05.mma.
#include "target/target.h"

#include "target/rules.h"

// PTX ISA 9.7.16.2, tables 39 and 52, cta_group::1. The steps of N are those that every source agrees on: 16 at
// M = 128, 8 at M = 64; 32 rows have only the .ws form; integers and 8-bit operands stored with N innermost take 16 everywhere. tf32 operands are
// f32 in memory, whose low 13 bits the tensor core ignores; their M- and N-innermost forms need a swizzle of its
// own.
#define FLOAT_EXTENTS                                                                                        \
  {.m = 128, .n_min = 16, .n_max = 256, .n_step = 16}, {.m = 64, .n_min = 8, .n_max = 256, .n_step = 8}, {   \
    .m = 32, .n_min = 64, .n_max = 256, .n_step = 64, .ws = true                                             \
  }
#define INTEGER_EXTENTS                                                                                      \
  {.m = 128, .n_min = 16, .n_max = 256, .n_step = 16}, {.m = 64, .n_min = 16, .n_max = 256, .n_step = 16}, { \
    .m = 32, .n_min = 64, .n_max = 256, .n_step = 64, .ws = true                                             \
  }
#define ROW(A, B, C, ATOM, EXTENTS, MN_MAJOR, MN_STEP, KIND)                                                 \
  {                                                                                                          \
    .a = DTYPE_##A, .b = DTYPE_##B, .c = DTYPE_##C, .k_atom = ATOM, .extents = {EXTENTS},                    \
    .mn_major = MN_MAJOR, .mn_n_step = MN_STEP, .kind = KIND                                                 \
  }

static const MmaShape mma_shapes[] = {
    ROW(f16, f16, f32, 16, FLOAT_EXTENTS, true, 8, 0),
    ROW(bf16, bf16, f32, 16, FLOAT_EXTENTS, true, 8, 0),
    ROW(f16, f16, f16, 16, FLOAT_EXTENTS, true, 8, 0),
    ROW(f32, f32, f32, 8, FLOAT_EXTENTS, false, 8, 1),
    ROW(e4m3, e4m3, f32, 32, FLOAT_EXTENTS, true, 16, 2),
    ROW(e4m3, e5m2, f32, 32, FLOAT_EXTENTS, true, 16, 2),
    ROW(e5m2, e4m3, f32, 32, FLOAT_EXTENTS, true, 16, 2),
    ROW(e5m2, e5m2, f32, 32, FLOAT_EXTENTS, true, 16, 2),
    ROW(e4m3, e4m3, f16, 32, FLOAT_EXTENTS, true, 16, 2),
    ROW(e4m3, e5m2, f16, 32, FLOAT_EXTENTS, true, 16, 2),
    ROW(e5m2, e4m3, f16, 32, FLOAT_EXTENTS, true, 16, 2),
    ROW(e5m2, e5m2, f16, 32, FLOAT_EXTENTS, true, 16, 2),
    ROW(i8, i8, i32, 32, INTEGER_EXTENTS, true, 16, 3),
    ROW(i8, u8, i32, 32, INTEGER_EXTENTS, true, 16, 3),
    ROW(u8, i8, i32, 32, INTEGER_EXTENTS, true, 16, 3),
    ROW(u8, u8, i32, 32, INTEGER_EXTENTS, true, 16, 3),
};

#undef FLOAT_EXTENTS
#undef INTEGER_EXTENTS
#undef ROW

const Target target_sm100a = {
    .name = "sm_100a",
    .llvm_cpu = "sm_100a",
    .llvm_features = "+ptx86",
    .shared_bytes = 227 * 1024,
    .tmem_columns = 512,
    .tmem_lanes = 128,
    .registers = 65536,
    .fragment_registers = 200,
    .max_box = 256,
    .param_bytes = 32764,
    .mma = mma_shapes,
    .nmma = sizeof mma_shapes / sizeof *mma_shapes,
    .rules =
        {
            [OP_copy] = rule_copy,
            [OP_fill] = rule_fill,
            [OP_reduce] = rule_reduce,
            [OP_gemm] = rule_gemm,
            [OP_atomic_add] = rule_atomic_add,
        },
};

// sm_90a (Hopper data centre): TMA and wgmma, whose accumulators are registers.
#include "target/target.h"

#include "target/rules.h"

// PTX ISA 9.7.15.5: 64 rows an instruction and warpgroup, N in steps of 8 up to 256; integers take N = 8, 16, 24 and
// multiples of 16 from 32 on, of which the multiples of 16 are used. tf32 operands are f32 in memory, whose low 13 bits
// the tensor core ignores. Only 16-bit operands may be stored with M or N innermost (9.7.15.5.1).
#define FLOAT_EXTENTS                                                                                        \
  { 64, 8, 256, 8 }
#define INTEGER_EXTENTS                                                                                      \
  { 64, 16, 256, 16 }
#define ROW(A, B, C, ATOM, EXTENTS, MN_MAJOR)                                                                \
  {                                                                                                          \
    .a = DTYPE_##A, .b = DTYPE_##B, .c = DTYPE_##C, .k_atom = ATOM, .extents = {EXTENTS},                    \
    .mn_major = MN_MAJOR, .mn_n_step = 8                                                                     \
  }

static const MmaShape mma_shapes[] = {
    ROW(f16, f16, f32, 16, FLOAT_EXTENTS, true),    ROW(bf16, bf16, f32, 16, FLOAT_EXTENTS, true),
    ROW(f16, f16, f16, 16, FLOAT_EXTENTS, true),    ROW(f32, f32, f32, 8, FLOAT_EXTENTS, false),
    ROW(e4m3, e4m3, f32, 32, FLOAT_EXTENTS, false), ROW(e4m3, e5m2, f32, 32, FLOAT_EXTENTS, false),
    ROW(e5m2, e4m3, f32, 32, FLOAT_EXTENTS, false), ROW(e5m2, e5m2, f32, 32, FLOAT_EXTENTS, false),
    ROW(e4m3, e4m3, f16, 32, FLOAT_EXTENTS, false), ROW(e4m3, e5m2, f16, 32, FLOAT_EXTENTS, false),
    ROW(e5m2, e4m3, f16, 32, FLOAT_EXTENTS, false), ROW(e5m2, e5m2, f16, 32, FLOAT_EXTENTS, false),
    ROW(i8, i8, i32, 32, INTEGER_EXTENTS, false),   ROW(i8, u8, i32, 32, INTEGER_EXTENTS, false),
    ROW(u8, i8, i32, 32, INTEGER_EXTENTS, false),   ROW(u8, u8, i32, 32, INTEGER_EXTENTS, false),
};

#undef FLOAT_EXTENTS
#undef INTEGER_EXTENTS
#undef ROW

const Target target_sm90a = {
    .name = "sm_90a",
    .llvm_cpu = "sm_90a",
    .llvm_features = "+ptx86",
    .shared_bytes = 227 * 1024,
    .registers = 65536,
    .fragment_registers = 208,
    .max_box = 256,
    .param_bytes = 4096,
    .mma = mma_shapes,
    .nmma = sizeof mma_shapes / sizeof *mma_shapes,
    .rules =
        {
            [OP_copy] = rule_copy,
            [OP_fill] = rule_fill,
            [OP_gemm] = rule_wgmma,
            [OP_reduce] = rule_reduce,
            [OP_atomic_add] = rule_atomic_add,
        },
};

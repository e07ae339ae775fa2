// sm_100a (Blackwell data centre): TMA, tensor memory and one-CTA tcgen05.mma.
#include "target/target.h"

#include "target/rules.h"

// PTX ISA 9.7.16.2, table 39, cta_group::1; N in steps of 16 at M = 128, which every source agrees on. M = 64
// uses half the lanes of TMEM and comes later.
static const MmaShape mma_shapes[] = {
    {.a = DTYPE_f16,
     .b = DTYPE_f16,
     .c = DTYPE_f32,
     .k_atom = 16,
     .m = {128},
     .n_min = 16,
     .n_max = 256,
     .n_step = 16,
     .kind = 0},
    {.a = DTYPE_bf16,
     .b = DTYPE_bf16,
     .c = DTYPE_f32,
     .k_atom = 16,
     .m = {128},
     .n_min = 16,
     .n_max = 256,
     .n_step = 16,
     .kind = 0},
};

const Target target_sm100a = {
    .name = "sm_100a",
    .llvm_cpu = "sm_100a",
    .llvm_features = "+ptx86",
    .shared_bytes = 227 * 1024,
    .tmem_columns = 512,
    .tmem_lanes = 128,
    .max_box = 256,
    .mma = mma_shapes,
    .nmma = sizeof mma_shapes / sizeof *mma_shapes,
    .rules =
        {
            [OP_copy] = rule_copy,
            [OP_fill] = rule_fill,
            [OP_gemm] = rule_gemm,
        },
};

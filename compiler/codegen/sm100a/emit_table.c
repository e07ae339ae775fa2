// What sm_100a has of its own: tensor memory and tcgen05.mma. The rules in target/sm100a.c choose these paths.
#include "codegen/sm100a/sm100a.h"

static const CgPathEmit paths[] = {
    {OP_copy, PATH_TMEM_LOAD, sm100a_tmem_load},
    {OP_copy, PATH_TMEM_STORE, sm100a_tmem_store},
    {OP_fill, PATH_TMEM_STORE, sm100a_tmem_fill},
    {OP_gemm, PATH_MMA, sm100a_gemm},
};

const CgTarget cg_sm100a = {
    .name = "sm_100a",
    .emit =
        {
            [OP_tmem_alloc] = sm100a_tmem_alloc,
            [OP_tmem_dealloc] = sm100a_tmem_dealloc,
            [OP_tcgen05_commit] = sm100a_commit,
            [OP_tcgen05_fence_before] = sm100a_fence_before,
            [OP_tcgen05_fence_after] = sm100a_fence_after,
        },
    .paths = paths,
    .npaths = sizeof paths / sizeof *paths,
};

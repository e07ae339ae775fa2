// What sm_90a has of its own: wgmma. The rules in target/sm90a.c choose these paths.
#include "codegen/sm90a/sm90a.h"

static const CgPathEmit paths[] = {
    {OP_gemm, PATH_WGMMA, sm90a_gemm},
};

const CgTarget cg_sm90a = {
    .name = "sm_90a",
    .emit = {[OP_mma_wait] = sm90a_mma_wait},
    .paths = paths,
    .npaths = sizeof paths / sizeof *paths,
};

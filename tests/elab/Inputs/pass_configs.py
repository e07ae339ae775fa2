"""TileLang's ways to set pass configurations."""
import os

import tilelang
import tilelang.language as T
from tilelang import PassConfigKey

plain = {
    tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True,
    tilelang.PassConfigKey.TL_DISABLE_TMA_LOWER: True,
}
from_outside = load_configs(os.environ["CONFIGS"])


@tilelang.jit(out_idx=[-1], pass_configs=plain)
def by_name(N):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=128):
            T.clear(A[0:128])

    return main


@tilelang.jit(pass_configs={PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True, "tl.disable_tma_lower": False, "tl.enable_fast_math": True})
def by_key(A):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    with T.Kernel(1, threads=128):
        T.clear(A[0:128])


@tilelang.jit(pass_configs=from_outside)
def unread(A):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    with T.Kernel(1, threads=128):
        T.clear(A[0:128])


@T.prim_func
def in_body(A: T.Tensor((256,), "float32")):
    T.annotate_pass_configs({tilelang.transform.PassConfigKey.TL_DISABLE_TMA_LOWER: True, "tl.disable_tma_lowr": True})
    with T.Kernel(1, threads=128):
        T.clear(A[0:128])


@tilelang.jit(pass_configs=plain)
def contradicted(A):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    T.annotate(roles=True)
    with T.Kernel(1, threads=128):
        T.clear(A[0:128])

"""A program as TileLang users write them: kernels between imports, drivers and helpers that are not ours to read."""
import torch
import tilelang
import tilelang.language as T

tilelang.disable_cache()
DTYPE = "bfloat16"
ACCUM = T.float32


def ref_program(a, b):
    return (a.float() @ b.float().T).to(a.dtype)


@T.macro
def scale_rows(tile, rows, cols, factor):
    for i, j in T.Parallel(rows, cols):
        tile[i, j] = tile[i, j] * factor


# The eager shape: tensors are declared in the body, the output is returned.
@tilelang.jit
def eager_gemm(A, B, factor: float = 1.0, block_M: int = 128, block_N: int = 64, block_K: int = 64):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], DTYPE]
    B: T.Tensor[[N, K], DTYPE]
    C = T.empty((M, N), DTYPE)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), DTYPE)
        B_shared = T.alloc_shared((block_N, block_K), DTYPE)
        C_local = T.alloc_fragment((block_M, block_N), ACCUM)
        T.use_swizzle(10)
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
            T.copy(A[by * block_M, k * block_K], A_shared)
            T.copy(B[bx * block_N, k * block_K], B_shared)
            T.gemm(A_shared, B_shared, C_local, transpose_B=True)
        if factor != 1.0:
            scale_rows(C_local, block_M, block_N, factor)
        T.copy(C_local, C[by * block_M, bx * block_N])
    return C


# The nested shape: an outer function of compile-time arguments that returns the kernel.
@tilelang.jit(out_idx=[-1], pass_configs={"tl.disable_warp_specialized": True})
def make_add(N, block=256, dtype="float32", vectors=2):
    total = T.ceildiv(N, block)

    def load(tensor, index):
        return tensor[index]

    @T.prim_func
    def add(
        A: T.Tensor((N,), dtype),
        B: T.Tensor((N,), dtype),
        scale: T.float32,
        C: T.Tensor((N,), dtype),
    ):
        with T.Kernel(total, threads=128) as bx:
            for i in T.Parallel(block):
                C[bx * block + i] = load(A, bx * block + i) + load(B, bx * block + i) * scale

    return add


# Sizes that stay open, given to the outer function or made inside it.
def copy_rows(block=64):
    M = T.dynamic("m")
    N = T.symbolic("n")

    @T.prim_func
    def main(A: T.Tensor[(M, N), T.float16], B: T.Buffer((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block), T.ceildiv(N, block), threads=128) as (bm, bn):
            S = T.alloc_shared([block, block], "float16")
            T.copy(A[bm * block : (bm + 1) * block, bn * block : (bn + 1) * block], S)
            T.copy(S, B[bm * block : (bm + 1) * block, bn * block : (bn + 1) * block])

    return main


class Driver:
    def run(self):
        return {x for x in range(3)}


if __name__ == "__main__":
    a = torch.randn(128, 128, device="cuda", dtype=torch.bfloat16)
    kernel = make_add(1024)
    print(kernel(a, a), end="")

# A Python file of the kind that TileLang users have: imports, other code, kernels in both shapes.
#= A, B = small("f16", (200, 96), 1), small("f16", (136, 96), 2)
#= C = exactly("f16", as_f64(A) @ as_f64(B).T)
#= case(only="matmul", A=A, B=B, want={"C": C})
#= case(only="matmul", define={"block_N": 64, "block_K": 32}, A=A, B=B, want={"C": C})
#= case(only="matmul_relu", define={"M": 200, "N": 136, "K": 96}, A=A, B=B, want={"C": np.maximum(C, np.float16(0))})
#= X = small("f32", (100, 33))
#= case(only="add_one", X=X, want={"Y": X + 1})
import os

import tilelang
import tilelang.language as T
from tilelang import jit as compile_now

if os.environ.get("DEBUG"):
    print("this is not compiled: %s" % (1, 2))


def reference(a, b):
    """Text with a kernel in it:

    @tilelang.jit
    def not_one(A):
        pass
    """
    return a @ b.T


@tilelang.jit
def matmul(A, B, block_M=128, block_N=128, block_K=64, in_dtype=T.float16, accum_dtype="float32"):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], in_dtype]
    B: T.Tensor[[N, K], in_dtype]
    C = T.empty((M, N), in_dtype)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), in_dtype)
        B_shared = T.alloc_shared([block_N, block_K], in_dtype)
        C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
        T.clear(C_local)
        for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
            T.copy(A[by * block_M, ko * block_K], A_shared)
            T.copy(B[bx * block_N, ko * block_K], B_shared)
            T.gemm(A_shared, B_shared, C_local, transpose_B=True)
        T.copy(C_local, C[by * block_M, bx * block_N])
    return C


@tilelang.jit(out_idx=[-1])
def matmul_relu(M, N, K, block_M=128, block_N=64, block_K=32, dtype="float16", accum_dtype="float"):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((N, K), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[bx * block_N, ko * block_K], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
            for i, j in T.Parallel(block_M, block_N):
                C_local[i, j] = T.max(C_local[i, j], 0)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


@tilelang.jit
def add_one(X, block=32):
    M, N = T.dynamic("M, N")
    X: T.Tensor((M, N), "float32")
    Y = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block)) as (bx, by):
        for i, j in T.Parallel(block, block):
            if by * block + i < M and bx * block + j < N:
                Y[by * block + i, bx * block + j] = X[by * block + i, bx * block + j] + 1.0
    return Y


def main():
    kernel = matmul(128, 128, 32)
    print(kernel)


if __name__ == "__main__":
    main()

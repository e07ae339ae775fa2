# A TileLang program whose blocks stay: the tiles of a product by T.Persistent, and rows by a scheduler.
#= for sms in 1, 3, 148:
#=     for M, N, K in (200, 130, 96), (64, 64, 32):
#=         A, B = small("f16", (M, K), 1), small("f16", (K, N), 2)
#=         case(only="product", define={"block_M": 128, "block_N": 64, "block_K": 32}, sms=sms, A=A, B=B, want={"C": exactly("f16", as_f64(A) @ as_f64(B))})
#= X = small("f32", (37, 40), 3)
#= for sms in 1, 4, 148:
#=     case(only="rows", sms=sms, X=X, want={"Y": exactly("f32", as_f64(X) * 2 + 1)})
import tilelang
import tilelang.language as T
from tilelang.carver.arch import driver

@tilelang.jit
def product(A, B, block_M, block_N, block_K, dtype=T.float16):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((K, N), dtype)
    C = T.empty((M, N), dtype)
    sms = driver.get_num_sms()
    waves = T.ceildiv(T.ceildiv(M, block_M) * T.ceildiv(N, block_N), sms)

    with T.Kernel(sms, threads=128) as (worker):
        A_shared = T.alloc_shared((block_M, block_K), dtype)
        B_shared = T.alloc_shared((block_K, block_N), dtype)
        C_local = T.alloc_fragment((block_M, block_N), T.float32)
        T.use_swizzle(10)
        for bx, by in T.Persistent([T.ceildiv(M, block_M), T.ceildiv(N, block_N)], sms, worker):
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A[bx * block_M, k * block_K], A_shared)
                T.copy(B[k * block_K, by * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[bx * block_M, by * block_N])
    return C

@T.prim_func
def rows(X: T.Tensor((M, 40), "float32"), Y: T.Tensor((M, 40), "float32")):
    with T.Kernel(driver.get_num_sms(), threads=64) as worker:
        sched = T.PersistentTileScheduler(M, 1, column_major=False, name="sched")
        sched.init(worker)
        while sched.valid():
            row = sched.m_idx
            for j in T.Parallel(40):
                Y[row, j] = X[row, j] * 2.0 + 1.0
            sched.next_tile()

def main():
    kernel = product.compile(M=4096, N=4096, K=4096)
    print(kernel.get_kernel_source())

if __name__ == "__main__":
    main()

"""TileLang's own spelling of warp roles: everything between the markers of the protocol as its programs write it."""
import tilelang
import tilelang.language as T
#= P, Q = small("bf16", (256, 192)), small("bf16", (128, 192), seed=2)
#= case(kernel="gemm_roles", A=P, B=Q, want={"C": (as_f64(P) @ as_f64(Q).T).astype(np.float32)})


@tilelang.jit
def gemm_roles(A, B, block_M=128, block_N=128, block_K=64, num_stages=2):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], T.bfloat16]
    B: T.Tensor[[N, K], T.bfloat16]
    C = T.empty((M, N), T.float32)
    k_iters = T.ceildiv(K, block_K)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        A_shared = T.alloc_shared((num_stages, block_M, block_K), T.bfloat16)
        B_shared = T.alloc_shared((num_stages, block_N, block_K), T.bfloat16)
        C_tmem = T.alloc_tmem([block_M, block_N], T.float32)
        C_local = T.alloc_fragment((block_M, block_N), T.float32)
        loaded = T.alloc_barrier([32] * num_stages)
        consumed = T.alloc_barrier([1] * num_stages)
        tmem_full = T.alloc_barrier([1])
        tx = T.get_thread_binding()

        if tx < 32:
            for k in T.serial(k_iters):
                parity = (k // num_stages) & 1
                T.mbarrier_wait_parity(consumed[k % num_stages], parity ^ 1)
                T.tma_copy(A[by * block_M : (by + 1) * block_M, k * block_K : (k + 1) * block_K],
                           A_shared[k % num_stages, :, :], barrier=loaded[k % num_stages])
                T.tma_copy(B[bx * block_N : (bx + 1) * block_N, k * block_K : (k + 1) * block_K],
                           B_shared[k % num_stages, :, :], barrier=loaded[k % num_stages])
                T.mbarrier_arrive(loaded[k % num_stages])
        elif tx < 64:
            for k in T.serial(k_iters):
                T.mbarrier_wait_parity(loaded[k % num_stages], (k // num_stages) & 1)
                T.tcgen05_gemm(A_shared[k % num_stages, :, :], B_shared[k % num_stages, :, :], C_tmem, transpose_B=True,
                               mbar=consumed[k % num_stages], clear_accum=k == 0)
            T.tcgen05_mma_arrive(tmem_full)

        T.mbarrier_wait_parity(tmem_full, 0)
        T.sync_threads()
        T.copy(C_tmem, C_local)
        T.copy(C_local, C[by * block_M, bx * block_N])
    return C

// One typed function per NVVM intrinsic; only nvvm.c spells their names. What must be a constant of the
// instruction is a C integer or enum here. Pointers: `shared` is addrspace(3), `tmem` is a 32-bit TMEM
// address (PTX ISA 9.7.16). Every one with an effect carries an operand bundle, since LLVM 22 believes too
// little of what they touch (rules L1).
#ifndef TILEC_CODEGEN_NVVM_H
#define TILEC_CODEGEN_NVVM_H

#include "codegen/cg.h"

LLVMValueRef nvvm_thread_idx(Cg *cg);
LLVMValueRef nvvm_block_idx(Cg *cg, int dim);
LLVMValueRef nvvm_block_count(Cg *cg, int dim);
void nvvm_prefetch_map(Cg *cg, LLVMValueRef map);
void nvvm_grid_wait(Cg *cg);     // PTX ISA 9.7.13.13
void nvvm_grid_release(Cg *cg);  // likewise
// Named barrier `id` for `count` threads; count 0: all of the CTA. `aligned`: all lanes of a warp come together.
void nvvm_barrier_sync(Cg *cg, int id, int count, bool aligned);
#define ALL_LANES UINT32_MAX
void nvvm_warp_sync(Cg *cg, uint32_t lanes);  // of the warp
void nvvm_set_max_registers(Cg *cg, int count, bool more);
void nvvm_trap(Cg *cg);  // stops the kernel with an error
LLVMValueRef nvvm_shfl_idx(Cg *cg, LLVMValueRef value, int lane);
LLVMValueRef nvvm_shfl_bfly(Cg *cg, LLVMValueRef value,
                            int mask);  // from the lane whose number differs in mask

// mbarrier, default semantics only (rules L3); PTX ISA 9.7.13.15
void nvvm_mbar_init(Cg *cg, LLVMValueRef shared, int count);
void nvvm_mbar_arrive(Cg *cg, LLVMValueRef shared);
void nvvm_mbar_expect_tx(Cg *cg, LLVMValueRef shared, LLVMValueRef bytes);
void nvvm_mbar_arrive_expect_tx(Cg *cg, LLVMValueRef shared, LLVMValueRef bytes);
LLVMValueRef nvvm_mbar_try_wait_parity(Cg *cg, LLVMValueRef shared, LLVMValueRef parity);
void nvvm_fence_mbarrier_init(Cg *cg);
void nvvm_fence_proxy_async(Cg *cg);         // all spaces
void nvvm_fence_proxy_async_shared(Cg *cg);  // .shared::cta

// TMA; coordinates innermost first, `map` a generic pointer; PTX ISA 9.7.9.25.5
void nvvm_tma_load(Cg *cg, LLVMValueRef shared, LLVMValueRef mbar, LLVMValueRef map, int rank,
                   LLVMValueRef const *coordinates);
// `adds`: to what lies there, element by element, instead of replacing it (PTX ISA 9.7.9.25.5.3).
void nvvm_tma_store(Cg *cg, LLVMValueRef shared, LLVMValueRef map, int rank, LLVMValueRef const *coordinates,
                    bool adds);
void nvvm_bulk_commit(Cg *cg);
void nvvm_bulk_wait(Cg *cg, int pending, bool read);

// tcgen05, cta_group::1; PTX ISA 9.7.16
typedef enum { MMA_KIND_F16 = 0, MMA_KIND_TF32 = 1, MMA_KIND_F8F6F4 = 2, MMA_KIND_I8 = 3 } MmaKind;
void nvvm_tcgen05_alloc(Cg *cg, LLVMValueRef shared, int columns);
void nvvm_tcgen05_relinquish(Cg *cg);
void nvvm_tcgen05_dealloc(Cg *cg, LLVMValueRef tmem, int columns);
void nvvm_tcgen05_commit(Cg *cg, LLVMValueRef mbar);
void nvvm_tcgen05_fence_before(Cg *cg);
void nvvm_tcgen05_fence_after(Cg *cg);
void nvvm_tcgen05_wait_ld(Cg *cg);
void nvvm_tcgen05_wait_st(Cg *cg);
// n of 8 x 8 elements of 16 bits, 1, 2 or 4; a register each. PTX ISA 9.7.15.5.16.
void nvvm_stmatrix(Cg *cg, LLVMValueRef shared, int n, LLVMValueRef const *registers);
// n registers (a power of two up to 128): i32 when n is 1, else <n x i32>. 32x32b; with a split 16x32bx2, whose
// second half is so many columns further.
LLVMValueRef nvvm_tcgen05_ld(Cg *cg, LLVMValueRef tmem, int n, int split);
void nvvm_tcgen05_st(Cg *cg, LLVMValueRef tmem, LLVMValueRef registers, int n, int split);
// A is a descriptor of shared memory, or with MMA_FORM_A_IN_TMEM a TMEM address.
typedef enum { MMA_FORM_PLAIN, MMA_FORM_A_IN_TMEM, MMA_FORM_WS } MmaForm;
void nvvm_tcgen05_mma(Cg *cg, MmaForm form, LLVMValueRef tmem_d, LLVMValueRef a, LLVMValueRef b_descriptor,
                      LLVMValueRef instruction_descriptor, LLVMValueRef accumulate, MmaKind kind);

// wgmma, by all threads of a warpgroup; PTX ISA 9.7.15.7
void nvvm_wgmma_commit(Cg *cg);

// f32 approximations; PTX ISA 9.7.3
LLVMValueRef nvvm_ex2_approx(Cg *cg, LLVMValueRef x);
LLVMValueRef nvvm_lg2_approx(Cg *cg, LLVMValueRef x);
LLVMValueRef nvvm_rsqrt_approx(Cg *cg, LLVMValueRef x);
LLVMValueRef nvvm_rcp_approx(Cg *cg, LLVMValueRef x);
LLVMValueRef nvvm_sin_approx(Cg *cg, LLVMValueRef x);
LLVMValueRef nvvm_cos_approx(Cg *cg, LLVMValueRef x);
LLVMValueRef nvvm_sqrt_rn(Cg *cg, LLVMValueRef x);

// cvt.rn.satfinite to e4m3 or e5m2 (i8), and back, which is exact (PTX ISA 9.7.9.22).
LLVMValueRef nvvm_f32_to_fp8(Cg *cg, LLVMValueRef x, bool e5m2);
LLVMValueRef nvvm_fp8_to_f32(Cg *cg, LLVMValueRef x, bool e5m2);

#endif

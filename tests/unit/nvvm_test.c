// Every function of codegen/nvvm.h in one kernel: the intrinsics exist with these signatures, LLVM selects
// them, and (with the argument `ptx`, which tests/codegen/nvvm.test uses) ptxas takes the PTX.
#include "codegen/nvvm.h"

#include "check.h"

static void use_memory(Cg *cg, LLVMValueRef shared, LLVMValueRef map) {
  LLVMValueRef number = cg_i32(cg, 64), coordinates[5];
  for (int i = 0; i < 5; i++) coordinates[i] = cg_i32(cg, 8 * i);
  nvvm_mbar_init(cg, shared, 1);
  nvvm_mbar_arrive(cg, shared);
  nvvm_mbar_expect_tx(cg, shared, number);
  nvvm_mbar_arrive_expect_tx(cg, shared, number);
  nvvm_fence_mbarrier_init(cg);
  nvvm_fence_proxy_async(cg);
  nvvm_fence_proxy_async_shared(cg);
  for (int rank = 1; rank <= 5; rank++) {
    nvvm_tma_load(cg, shared, shared, map, rank, coordinates);
    nvvm_tma_store(cg, shared, map, rank, coordinates, false);
    nvvm_tma_store(cg, shared, map, rank, coordinates, true);
  }
  nvvm_prefetch_map(cg, map);
  nvvm_bulk_commit(cg);
  nvvm_bulk_wait(cg, 0, true);
  nvvm_bulk_wait(cg, 1, false);
}

static void use_matrices(Cg *cg, LLVMValueRef shared) {
  LLVMValueRef words[] = {cg_i32(cg, 1), cg_i32(cg, 2), cg_i32(cg, 3), cg_i32(cg, 4)};
  for (int n = 1; n <= 4; n *= 2) nvvm_stmatrix(cg, shared, n, words);
}

static void use_tcgen05(Cg *cg, LLVMValueRef shared) {
  LLVMValueRef tmem = LLVMBuildLoad2(cg->builder, cg->i32, shared, "");
  LLVMValueRef yes = LLVMConstInt(cg->i1, 1, false), word = cg_i64(cg, 0x4000404000000840);
  nvvm_tcgen05_alloc(cg, shared, 64);
  nvvm_tcgen05_relinquish(cg);
  static const MmaKind kinds[] = {MMA_KIND_F16, MMA_KIND_TF32, MMA_KIND_F8F6F4, MMA_KIND_I8};
  for (int i = 0; i < 4; i++) {
    LLVMValueRef idesc = cg_i32(cg, 0x08400490);
    nvvm_tcgen05_mma(cg, MMA_FORM_PLAIN, tmem, word, word, idesc, yes, kinds[i]);
    nvvm_tcgen05_mma(cg, MMA_FORM_A_IN_TMEM, tmem, tmem, word, idesc, yes, kinds[i]);
    nvvm_tcgen05_mma(cg, MMA_FORM_WS, tmem, word, word, idesc, yes, kinds[i]);
  }
  nvvm_tcgen05_commit(cg, shared);
  nvvm_tcgen05_fence_before(cg);
  nvvm_tcgen05_fence_after(cg);
  for (int n = 1; n <= 128; n *= 2) {
    LLVMValueRef registers = nvvm_tcgen05_ld(cg, tmem, n, 0);
    nvvm_tcgen05_wait_ld(cg);
    nvvm_tcgen05_st(cg, tmem, registers, n, 0);
    nvvm_tcgen05_st(cg, tmem, nvvm_tcgen05_ld(cg, tmem, n, n), n, n);
    nvvm_tcgen05_wait_st(cg);
  }
  nvvm_tcgen05_dealloc(cg, tmem, 64);
}

static void use_values(Cg *cg, LLVMValueRef shared, LLVMValueRef x) {
  LLVMValueRef results[] = {nvvm_ex2_approx(cg, x),
                            nvvm_lg2_approx(cg, x),
                            nvvm_rsqrt_approx(cg, x),
                            nvvm_rcp_approx(cg, x),
                            nvvm_sin_approx(cg, x),
                            nvvm_cos_approx(cg, x),
                            nvvm_sqrt_rn(cg, x),
                            nvvm_fp8_to_f32(cg, nvvm_f32_to_fp8(cg, x, false), false),
                            nvvm_fp8_to_f32(cg, nvvm_f32_to_fp8(cg, x, true), true)};
  LLVMValueRef numbers[] = {nvvm_block_idx(cg, 0),
                            nvvm_block_idx(cg, 1),
                            nvvm_block_idx(cg, 2),
                            nvvm_block_count(cg, 0),
                            nvvm_block_count(cg, 1),
                            nvvm_block_count(cg, 2),
                            nvvm_shfl_idx(cg, nvvm_thread_idx(cg), 3)};
  LLVMValueRef sum =
      LLVMBuildZExt(cg->builder, nvvm_mbar_try_wait_parity(cg, shared, cg_i32(cg, 0)), cg->i32, "");
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    sum = LLVMBuildAdd(cg->builder, sum, numbers[i], "");
  LLVMValueRef total = LLVMBuildSIToFP(cg->builder, sum, cg->f32, "");
  for (size_t i = 0; i < sizeof results / sizeof *results; i++)
    total = LLVMBuildFAdd(cg->builder, total, results[i], "");
  LLVMBuildStore(cg->builder, total, shared);
  nvvm_barrier_sync(cg, 0, 0, true);
  nvvm_barrier_sync(cg, 1, 64, true);
  nvvm_barrier_sync(cg, 1, 64, false);
  nvvm_warp_sync(cg, ALL_LANES);
  nvvm_set_max_registers(cg, 24, false);
  nvvm_set_max_registers(cg, 200, true);
}

static void build_kernel(Cg *cg) {
  LLVMTypeRef params[] = {LLVMPointerTypeInContext(cg->context, 3), LLVMPointerTypeInContext(cg->context, 0),
                          cg->f32};
  cg->function = LLVMAddFunction(cg->module, "every", LLVMFunctionType(cg->none, params, 3, false));
  LLVMSetFunctionCallConv(cg->function, LLVMPTXKernelCallConv);
  LLVMPositionBuilderAtEnd(cg->builder, cg_new_block(cg, "entry"));
  LLVMValueRef shared = LLVMGetParam(cg->function, 0);
  use_memory(cg, shared, LLVMGetParam(cg->function, 1));
  use_values(cg, shared, LLVMGetParam(cg->function, 2));
  use_matrices(cg, shared);
  use_tcgen05(cg, shared);
  nvvm_trap(cg);
  LLVMBuildRetVoid(cg->builder);
}

int main(int argc, char **argv) {
  Checks checks = {0};
  Arena *arena = arena_new();
  Diags *ds = diags_new(arena, NULL);
  Cg *cg = cg_begin(target_find("sm_100a"), NULL, ds);
  if (!CHECK(&checks, cg != NULL)) return check_report(&checks);
  build_kernel(cg);
  CHECK(&checks, cg_verify(cg));
  const char *ptx = cg_ptx_text(cg, arena, ds);
  CHECK(&checks, ptx != NULL);
  CHECK_INT(&checks, diags_errors(ds), 0);
  if (ptx && argc > 1 && strcmp(argv[1], "ptx") == 0) puts(ptx);
  cg_free(cg);
  arena_free(arena);
  return check_report(&checks);
}

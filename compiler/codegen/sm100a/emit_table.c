// Every op's emitter on sm_100a. A tile op has a row here exactly when it has a rule in target/sm100a.c
// (unit/tables_test.c). A tile op goes on by its path, which `select` chose.
#include "codegen/emit.h"
#include "codegen/sm100a/sm100a.h"

static void emit_copy(Cg *cg, const TirOp *op) {
  switch ((Path)op->attrs[COPY_path]) {
  case PATH_THREADS:
    cg_copy_threads(cg, op);
    return;
  case PATH_TMA_LOAD:
  case PATH_TMA_STORE:
    cg_copy_tma(cg, op);
    return;
  case PATH_TMEM_LOAD:
    sm100a_tmem_load(cg, op);
    return;
  case PATH_TMEM_STORE:
    sm100a_tmem_store(cg, op);
    return;
  case PATH_NONE:
  case PATH_MMA:
  case PATH_COUNT:
    cg_unsupported(cg, op, "no path was selected for it");
    return;
  }
}

static void emit_fill(Cg *cg, const TirOp *op) {
  switch ((Path)op->attrs[FILL_path]) {
  case PATH_THREADS:
    cg_fill_threads(cg, op);
    return;
  case PATH_TMEM_STORE:
    sm100a_tmem_fill(cg, op);
    return;
  case PATH_NONE:
  case PATH_TMA_LOAD:
  case PATH_TMA_STORE:
  case PATH_TMEM_LOAD:
  case PATH_MMA:
  case PATH_COUNT:
    cg_unsupported(cg, op, "no path was selected for it");
    return;
  }
}

static void emit_gemm(Cg *cg, const TirOp *op) {
  if (op->attrs[GEMM_path] == PATH_MMA)
    sm100a_gemm(cg, op);
  else
    cg_unsupported(cg, op, "no path was selected for it");
}

const CgTarget cg_sm100a = {
    .name = "sm_100a",
    .emit =
        {
            // launch block: bound at entry, or the runtime's business
            [OP_tensor] = emit_declared,
            [OP_size] = emit_declared,
            [OP_param] = emit_declared,
            [OP_grid] = emit_declared,
            [OP_check] = emit_declared,
            // values
            [OP_const] = emit_const,
            [OP_block_idx] = emit_block_idx,
            [OP_thread_idx] = emit_thread_idx,
            [OP_add] = emit_binary,
            [OP_sub] = emit_binary,
            [OP_mul] = emit_binary,
            [OP_div] = emit_binary,
            [OP_floordiv] = emit_binary,
            [OP_floormod] = emit_binary,
            [OP_truncdiv] = emit_binary,
            [OP_truncmod] = emit_binary,
            [OP_ceildiv] = emit_binary,
            [OP_min] = emit_binary,
            [OP_max] = emit_binary,
            [OP_and] = emit_binary,
            [OP_or] = emit_binary,
            [OP_xor] = emit_binary,
            [OP_shl] = emit_binary,
            [OP_shr] = emit_binary,
            [OP_lt] = emit_compare,
            [OP_le] = emit_compare,
            [OP_gt] = emit_compare,
            [OP_ge] = emit_compare,
            [OP_eq] = emit_compare,
            [OP_ne] = emit_compare,
            [OP_neg] = emit_unary,
            [OP_not] = emit_unary,
            [OP_abs] = emit_unary,
            [OP_floor] = emit_unary,
            [OP_ceil] = emit_unary,
            [OP_exp] = emit_unary,
            [OP_exp2] = emit_unary,
            [OP_log] = emit_unary,
            [OP_log2] = emit_unary,
            [OP_sqrt] = emit_unary,
            [OP_rsqrt] = emit_unary,
            [OP_tanh] = emit_unary,
            [OP_sin] = emit_unary,
            [OP_cos] = emit_unary,
            [OP_select] = emit_select,
            [OP_cast] = emit_cast,
            // control
            [OP_for] = emit_for,
            [OP_parallel] = emit_parallel,
            [OP_if] = emit_if,
            [OP_role] = emit_role,
            [OP_one_thread] = emit_one_thread,
            // memory
            [OP_alloc] = emit_alloc,
            [OP_alloc_barrier] = emit_alloc,
            [OP_view] = emit_view,
            [OP_load] = emit_load,
            [OP_store] = emit_store,
            [OP_cell] = emit_cell,
            [OP_get] = emit_get,
            [OP_set] = emit_set,
            // synchronisation; a `wait` is gone by now
            [OP_sync_threads] = emit_sync_threads,
            [OP_sync_warp] = emit_sync_warp,
            [OP_mbar_init] = emit_mbar_init,
            [OP_fence_mbarrier_init] = emit_fence_mbarrier_init,
            [OP_mbar_arrive] = emit_mbar_arrive,
            [OP_mbar_expect_tx] = emit_mbar_expect_tx,
            [OP_mbarrier_wait_parity] = emit_mbarrier_wait_parity,
            [OP_fence_proxy_async] = emit_fence_proxy_async,
            [OP_bulk_commit] = emit_bulk_commit,
            [OP_bulk_wait] = emit_bulk_wait,
            [OP_tmem_alloc] = sm100a_tmem_alloc,
            [OP_tmem_dealloc] = sm100a_tmem_dealloc,
            [OP_tcgen05_commit] = sm100a_commit,
            [OP_tcgen05_fence_before] = sm100a_fence_before,
            [OP_tcgen05_fence_after] = sm100a_fence_after,
            // tile ops
            [OP_copy] = emit_copy,
            [OP_fill] = emit_fill,
            [OP_gemm] = emit_gemm,
        },
};

// What sm_100a has of its own: tile ops, exactly those with a rule in target/sm100a.c (unit/tables_test.c), and TMEM.
// A tile op goes on by its path, which `select` chose.
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

static void emit_atomic_add(Cg *cg, const TirOp *op) {
  if (op->attrs[ATOMIC_ADD_path] == PATH_TMA_STORE)
    cg_copy_tma(cg, op);
  else
    cg_copy_threads(cg, op);
}

static void emit_reduce(Cg *cg, const TirOp *op) {
  if (op->attrs[REDUCE_path] == PATH_THREADS)
    cg_reduce_threads(cg, op);
  else
    cg_unsupported(cg, op, "no path was selected for it");
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
            [OP_tmem_alloc] = sm100a_tmem_alloc,
            [OP_tmem_dealloc] = sm100a_tmem_dealloc,
            [OP_tcgen05_commit] = sm100a_commit,
            [OP_tcgen05_fence_before] = sm100a_fence_before,
            [OP_tcgen05_fence_after] = sm100a_fence_after,
            [OP_copy] = emit_copy,
            [OP_fill] = emit_fill,
            [OP_reduce] = emit_reduce,
            [OP_gemm] = emit_gemm,
            [OP_atomic_add] = emit_atomic_add,
        },
};

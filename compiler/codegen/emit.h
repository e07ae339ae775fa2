// Emitters of tile operations that targets share: what ordinary loads and stores, TMA and mbarriers do.
#ifndef TILEC_CODEGEN_EMIT_H
#define TILEC_CODEGEN_EMIT_H

#include "codegen/cg.h"

// emit_threads.c: PATH_THREADS, by all threads of the CTA together.
void cg_copy_threads(Cg *cg, const TirOp *op);
void cg_fill_threads(Cg *cg, const TirOp *op);

// emit_reduce.c: fragments, by the threads that hold them.
void cg_reduce_threads(Cg *cg, const TirOp *op);

// emit_async.c: PATH_TMA_LOAD and PATH_TMA_STORE, by the executing thread; barriers, fences and bulk groups.
void cg_copy_tma(Cg *cg, const TirOp *op);
void emit_mbar_init(Cg *cg, const TirOp *op);
void emit_fence_mbarrier_init(Cg *cg, const TirOp *op);
void emit_mbar_arrive(Cg *cg, const TirOp *op);
void emit_mbar_expect_tx(Cg *cg, const TirOp *op);
void emit_mbarrier_wait_parity(Cg *cg, const TirOp *op);
void emit_fence_proxy_async(Cg *cg, const TirOp *op);
void emit_bulk_commit(Cg *cg, const TirOp *op);
void emit_bulk_wait(Cg *cg, const TirOp *op);

#endif

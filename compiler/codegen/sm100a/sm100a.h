// Emitters of sm_100a: what the room's files give to its emit table.
#ifndef TILEC_CODEGEN_SM100A_SM100A_H
#define TILEC_CODEGEN_SM100A_SM100A_H

#include "codegen/cg.h"

// gemm.c
void sm100a_gemm(Cg *cg, const TirOp *op);

// tmem.c: copies and fills of TMEM by whole warps, allocation, fences
void sm100a_tmem_load(Cg *cg, const TirOp *op);
void sm100a_tmem_store(Cg *cg, const TirOp *op);
void sm100a_tmem_fill(Cg *cg, const TirOp *op);
void sm100a_tmem_alloc(Cg *cg, const TirOp *op);
void sm100a_tmem_dealloc(Cg *cg, const TirOp *op);
void sm100a_commit(Cg *cg, const TirOp *op);
void sm100a_fence_before(Cg *cg, const TirOp *op);
void sm100a_fence_after(Cg *cg, const TirOp *op);
// The TMEM address of row 0 of a block of 128 rows, at a column of the buffer.
LLVMValueRef sm100a_tmem_address(Cg *cg, const TirOp *op, const CgPlace *place, int64_t row, int64_t column);

#endif

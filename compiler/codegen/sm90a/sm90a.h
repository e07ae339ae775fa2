// Emitters of sm_90a: what the room's files give to its emit table.
#ifndef TILEC_CODEGEN_SM90A_SM90A_H
#define TILEC_CODEGEN_SM90A_SM90A_H

#include "codegen/cg.h"

// gemm.c: one group of wgmma instructions of the executing warpgroup, and the wait for it
void sm90a_gemm(Cg *cg, const TirOp *op);
void sm90a_mma_wait(Cg *cg, const TirOp *op);

#endif

// stmatrix: fragments laid out like a wgmma accumulator, of 16 bits, into shared memory.
#ifndef TILEC_CODEGEN_MATRICES_H
#define TILEC_CODEGEN_MATRICES_H

#include "codegen/cg.h"

// Emits a copy whose threads hold and whose memory takes whole 8 x 8 matrices. False: it is no such copy, nothing was emitted.
bool cg_store_matrices(Cg *cg, const TirOp *op);

#endif

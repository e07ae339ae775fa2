// How the threads that share a row of a fragment meet to fold it.
#ifndef TILEC_PASSES_REDUCTIONS_H
#define TILEC_PASSES_REDUCTIONS_H

#include "passes/tile.h"

// Leaves the op alone where shuffles within warps give dst its layout; else each warp's results go to shared memory, and
// a Parallel loop folds them. False: the layout of src has no rows that threads could share; nothing is changed.
bool lower_reduction(PassCx *cx, TirOp *op, const TileReduction *reduction);
// Folds by a loop over all of src, in `staging` (shared memory of src's shape).
void lower_reduction_in_memory(PassCx *cx, TirOp *op, const TileReduction *reduction, TirValue *staging);

#endif

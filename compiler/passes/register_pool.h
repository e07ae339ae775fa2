// Whether the registers of a block suffice: what set_max_nreg asks for, and accumulators of products of the threads.
#ifndef TILEC_PASSES_REGISTER_POOL_H
#define TILEC_PASSES_REGISTER_POOL_H

#include "passes/pass.h"

// Reports groups of 4 warps that would wait for registers which nobody gives back.
bool check_register_pool(PassCx *cx, TirKernel *kernel);

// Reports an accumulator that the registers of a thread cannot hold beside a product.
bool check_accumulators(PassCx *cx, TirKernel *kernel);

#endif

// Whether the registers of a block suffice: what set_max_nreg asks for, and accumulators of products of the threads.
#ifndef TILEC_PASSES_REGISTER_POOL_H
#define TILEC_PASSES_REGISTER_POOL_H

#include "passes/pass.h"

// Reports groups of 4 warps that would wait for registers which nobody gives back.
bool check_register_pool(PassCx *cx, TirKernel *kernel);

// Reports an accumulator that the registers of a thread cannot hold beside a product.
bool check_accumulators(PassCx *cx, TirKernel *kernel);

// What ptxas gives each thread of a block of so many that has its SM alone.
int pool_registers_at_entry(const Target *target, int threads);

// Whether a thread of a block of so many holds its `own` registers of an accumulator of this type beside a product. `later`: what
// it has at the product; 0: what it starts with.
bool pool_holds(const Target *target, int threads, int later, const Type *accumulator, int64_t own);

// What fragments may take of a thread's registers in a block of so many threads without spilling: less than what a target refuses
// where many threads share its registers.
int pool_fragment_registers(const Target *target, int threads);

#endif

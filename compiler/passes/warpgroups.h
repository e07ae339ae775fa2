// How many warpgroups share the accumulators of a kernel, on a target without TMEM.
#ifndef TILEC_PASSES_WARPGROUPS_H
#define TILEC_PASSES_WARPGROUPS_H

#include "passes/pass.h"

// Gives a kernel more threads than its source says where they serve it better. False: what the source asks for cannot be.
bool add_warpgroups(PassCx *cx, TirKernel *kernel);

#endif

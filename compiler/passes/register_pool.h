// Whether what set_max_nreg asks for can be had.
#ifndef TILEC_PASSES_REGISTER_POOL_H
#define TILEC_PASSES_REGISTER_POOL_H

#include "passes/pass.h"

bool check_register_pool(PassCx *cx, TirKernel *kernel);

#endif

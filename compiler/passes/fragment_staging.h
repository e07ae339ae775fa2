// Ways through shared memory for uses of fragments that registers cannot serve.
#ifndef TILEC_PASSES_FRAGMENT_STAGING_H
#define TILEC_PASSES_FRAGMENT_STAGING_H

#include "passes/pass.h"

// Rewrites every use of a fragment that does not fit the layouts: what a thread does not hold in a register known
// at compile time goes through a buffer in shared memory. False: reported.
bool stage_fragments(PassCx *cx, TirKernel *kernel);

#endif

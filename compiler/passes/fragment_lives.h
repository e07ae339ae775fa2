// A fragment that is set again and again, for one purpose after another, becomes a fragment for each.
#ifndef TILEC_PASSES_FRAGMENT_LIVES_H
#define TILEC_PASSES_FRAGMENT_LIVES_H

#include "passes/pass.h"

// Each part of a fragment's life that begins with setting all of it gets a fragment of its own, with a layout and
// registers of its own; needs no layouts.
void split_fragments(PassCx *cx, TirKernel *kernel);

#endif

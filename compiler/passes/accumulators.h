// The first half of the select pass: accumulators move into TMEM.
#ifndef TILEC_PASSES_ACCUMULATORS_H
#define TILEC_PASSES_ACCUMULATORS_H

#include "passes/pass.h"

// On a target with TMEM, fragments that an op accumulates into become TMEM buffers; what reads or writes them
// element by element gets a fragment of its own, filled from TMEM before and stored back after. Moves between
// TMEM and anything but a fragment of the same type go through such a fragment. False: reported.
bool place_accumulators(PassCx *cx, TirKernel *kernel);
// On a target without TMEM: TMEM buffers whose every use allows it become fragments, copies between equal fragments
// vanish, and threads are added where the accumulators need their registers. False: reported.
bool place_in_registers(PassCx *cx, TirKernel *kernel);

#endif

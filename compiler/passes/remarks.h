// What the passes decided, for --remarks.
#ifndef TILEC_PASSES_REMARKS_H
#define TILEC_PASSES_REMARKS_H

#include "passes/pass.h"

// Remarks about every kernel that has been through all passes: variants and guards, shared memory and TMEM, where each
// accumulator is, how each copy between global and shared memory is done and why not by TMA.
void pass_remarks(const TirModule *module, const Target *target, Arena *scratch, Diags *ds);

#endif

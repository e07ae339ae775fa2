// What ptxas says of PTX that it took.
#ifndef TILEC_DRIVER_SPILLS_H
#define TILEC_DRIVER_SPILLS_H

#include "base/diag.h"
#include "tir/tir.h"

// Warns of each kernel whose threads have too few registers and keep values in memory instead, by ptxas -warn-spills (a
// remark where it is the variant for launches without TMA). What else ptxas says becomes a remark.
void spills_report(Arena *arena, const TirModule *module, const char *says, Diags *ds);

#endif

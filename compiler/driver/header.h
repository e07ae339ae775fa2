// The C header of --header: a typed launch function for programs that use the driver API alone.
#ifndef TILEC_DRIVER_HEADER_H
#define TILEC_DRIVER_HEADER_H

#include "target/target.h"
#include "tir/tir.h"

// In the arena; NULL: reported.
const char *launch_header(Arena *arena, const TirModule *module, const Target *target, const Source *source,
                          Diags *ds);

#endif

// The text that tells a runtime how to launch the kernels of a module: docs/launch-info.md.
#ifndef TILEC_DRIVER_LAUNCH_INFO_H
#define TILEC_DRIVER_LAUNCH_INFO_H

#include "target/target.h"
#include "tir/tir.h"

// In the arena; NULL: reported.
const char *launch_info(Arena *arena, const TirModule *module, const Target *target, Diags *ds);

#endif

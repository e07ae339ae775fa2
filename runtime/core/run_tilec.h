// Where the compiler is: beside the program that asks.
#ifndef TILE_CORE_RUN_TILEC_H
#define TILE_CORE_RUN_TILEC_H

#include <limits.h>

#include "tile.h"

// The path of tilec in the folder of this program. TILE_UNAVAILABLE: it is not there.
TileError *run_find_tilec(char path[PATH_MAX]);

#endif

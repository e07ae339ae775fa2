// A source file becomes a cubin: tile-run's sibling tilec does it.
#ifndef TILE_CORE_RUN_COMPILE_H
#define TILE_CORE_RUN_COMPILE_H

#include "core/run_options.h"
#include "tile.h"

// Compiles options->file and opens the result, for `arch` (NULL: tilec's default) unless the options name one. Returns
// TOOL_OK, or the exit status (tilec's own when it complained); what went wrong has been printed.
int run_compile(const RunOptions *options, const char *arch, TileModule **out);

// Whether that is a target of tilec's.
bool run_compile_knows(const char *arch);

#endif

// What tile-run and tile-bench do alike: exit statuses, errors for people, source files and the compiler for them.
#ifndef TILE_CORE_TOOL_H
#define TILE_CORE_TOOL_H

#include <limits.h>
#include <stdbool.h>

#include "tile.h"

// Exit statuses (docs/runtime.md).
enum { TOOL_OK = 0, TOOL_WRONG = 1, TOOL_USAGE = 2, TOOL_FAULT = 3 };

// Prints the error after the program's name, and frees it; the exit status that it means.
int tool_report(const char *program, TileError *error);
// Prints what is wrong on the command line, and where to read how it is right. False.
__attribute__((format(printf, 2, 3))) bool tool_usage(const char *program, const char *format, ...);

// Whether a file is for tilec, by its name.
bool tool_is_source(const char *file);
// The path of tilec in the folder of this program. TILE_UNAVAILABLE: it is not there.
TileError *tool_find_tilec(char path[PATH_MAX]);
// Makes a folder for what tilec writes, which is the caller's to remove.
TileError *tool_folder(const char *program, char path[PATH_MAX]);

#endif

// Files that are there whole or not at all.
#ifndef TILEC_DRIVER_OUTPUT_H
#define TILEC_DRIVER_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

// Writes through a temporary beside `path` and a rename; "-" is standard output, devices and pipes are
// written directly. False: *error is a sentence.
bool output_write(Arena *arena, const char *path, const char *data, size_t len, const char **error);

#endif

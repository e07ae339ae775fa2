// What tilec changes in the assembler's output.
#ifndef TILEC_DRIVER_CUBIN_H
#define TILEC_DRIVER_CUBIN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

typedef struct {
  char *data;  // in the arena
  size_t len;
} Cubin;

// Puts `ptx` in place of the PTX that ptxas -lineinfo keeps in the cubin, in the same spelling (NULs for line ends).
// False, with the cubin as it was: no such section, or an ELF file that is put together in another way.
bool cubin_keep_ptx(Arena *arena, Cubin *cubin, const char *ptx);

#endif

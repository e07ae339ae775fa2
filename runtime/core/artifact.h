// What a compiled file holds: a cubin (ELF) or PTX text, the launch information in it, and the PTX that an
// emulator can run.
#ifndef TILE_CORE_ARTIFACT_H
#define TILE_CORE_ARTIFACT_H

#include "core/error.h"

typedef struct {
  const char *name;      // of the file, for messages
  const uint8_t *bytes;  // the file; a NUL follows, so that PTX can be given to the CUDA driver as it is
  size_t length;
  bool cubin;        // else PTX text
  const char *info;  // launch information, not NUL-terminated
  size_t info_length;
  const char *ptx;  // PTX text or the content of .nv_debug_ptx_txt; NULL: a cubin without it
  size_t ptx_length;
} Artifact;

// Copies the bytes into the pool and finds the parts. Every offset of the file is checked before it is
// followed.
TileError *artifact_open(Pool *pool, const char *name, const void *bytes, size_t length, Artifact *out);

#endif

// PTX to cubin by NVIDIA's assembler, a separate program.
#ifndef TILEC_DRIVER_PTXAS_H
#define TILEC_DRIVER_PTXAS_H

#include "base/diag.h"
#include "driver/cubin.h"

typedef enum {
  PTXAS_OK,
  PTXAS_REFUSED,  // it ran and did not like the PTX
  PTXAS_MISSING,  // not found, too old, cannot be started, no room for temporaries
} PtxasStatus;

// Assembles with -lineinfo. `path` is --ptxas or NULL: then $CUDA_HOME/bin, PATH, /usr/local/cuda/bin and
// tools/ beside the folder of this program are searched for one of CUDA 12.8 or later. Everything but
// PTXAS_OK is reported; its own words appear only in a note. `says`: what it said of PTX that it took, spills among it.
PtxasStatus ptxas_run(Arena *arena, const char *path, const char *arch, const char *ptx, Cubin *out,
                      const char **says, Diags *ds);

#endif

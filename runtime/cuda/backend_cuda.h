// For tests: the backend on a driver library of one's own.
#ifndef TILE_CUDA_BACKEND_CUDA_H
#define TILE_CUDA_BACKEND_CUDA_H

#include "core/backend.h"

// What backend_cuda.open does, with the driver in the file `library` (NULL: libcuda.so.1).
TileError *cuda_open_library(const char *library, const TileDeviceOptions *options, void **device);

#endif

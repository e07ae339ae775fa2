// A chain of products on one stream: each launch reads what the one before it has written, and writes what that one has read.
#ifndef TESTS_GPU_CHAIN_H
#define TESTS_GPU_CHAIN_H

#include "tile.h"

typedef struct {
  int launches;
  int64_t side;    // rows and columns of all matrices
  int64_t offset;  // bytes before the first element: not a multiple of 16 for the variant without TMA
} Chain;

// C1 = A Bᵀ, C2 = C1 Bᵀ, …, with nothing waited for between; true when the last one is right. `why` says what is not.
bool chain_run(TileDevice *device, const TileKernel *kernel, void *stream, const Chain *chain, char *why,
               size_t room);

#endif

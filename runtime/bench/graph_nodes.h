// What a captured graph launches, as the driver tells it: how one sees which kernels the peer's library chose.
#ifndef TILE_BENCH_GRAPH_NODES_H
#define TILE_BENCH_GRAPH_NODES_H

#include "bench/gpu.h"

enum { GRAPH_MOST_KERNELS = 4 };

// A kernel and how it is launched.
typedef struct {
  char name[128];  // as its cubin spells it
  unsigned grid[3], block[3];
  unsigned cluster[3];    // zeros: the launch asks for none
  unsigned shared_bytes;  // dynamic
  double each;            // how often, in one of the launches that the graph was captured from
} GraphKernel;

typedef struct {
  GraphKernel kernels[GRAPH_MOST_KERNELS];  // different ones; most shared memory first
  int nkernels;                             // 0: the driver does not tell
  double fills, copies, others;  // nodes that are no kernels, or kernels without room here; in one launch
} GraphNodes;

// Of a graph of so many launches. Leaves `out` empty where the driver is too old (before CUDA 12.3).
void graph_nodes_find(const Gpu *gpu, CudaGraph graph, int launches, GraphNodes *out);
// "NAME, 1x132x1 blocks of 384 threads, cluster 2x1x1, 199 KB shared".
void graph_kernel_text(const GraphKernel *kernel, char *out, size_t size);
// "1 fill of memory, 2 copies"; "" when there are only kernels.
void graph_others_text(const GraphNodes *nodes, char *out, size_t size);

#endif

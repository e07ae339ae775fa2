// Libraries load their kernels as functions of a module or of a library without a context; a node names either.
#include "bench/graph_nodes.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODE_KERNEL = 0, NODE_COPY = 1, NODE_FILL = 2, ATTRIBUTE_CLUSTER = 4 };

static bool can_tell(const Gpu *gpu) {
#define GPU_OPTIONAL(name, symbol, parameters)                                                               \
  if (!gpu->name) return false;
#include "bench/gpu_optional.def"
#undef GPU_OPTIONAL
  return true;
}

static bool describe(const Gpu *gpu, CudaGraphNode node, GraphKernel *out) {
  CudaKernelNode kernel = {0};
  CudaNodeAttribute cluster = {{0}};
  const char *name = NULL;
  *out = (GraphKernel){0};
  if (gpu->node_kernel(node, &kernel)) return false;
  CudaResult result =
      kernel.function ? gpu->function_name(&name, kernel.function) : gpu->kernel_name(&name, kernel.kernel);
  if (result || !name) return false;
  snprintf(out->name, sizeof out->name, "%s", name);
  memcpy(out->grid, kernel.grid, sizeof out->grid);
  memcpy(out->block, kernel.block, sizeof out->block);
  if (!gpu->node_attribute(node, ATTRIBUTE_CLUSTER, &cluster))
    memcpy(out->cluster, cluster.cluster, sizeof out->cluster);
  out->shared_bytes = kernel.shared_bytes;
  return true;
}

static bool same(const GraphKernel *a, const GraphKernel *b) {
  return memcmp(a, b, offsetof(GraphKernel, each)) == 0;
}

// False: one more different kernel than there is room for.
static bool add_kernel(GraphNodes *out, const GraphKernel *kernel, double share) {
  int i = 0;
  while (i < out->nkernels && !same(&out->kernels[i], kernel)) i++;
  if (i == GRAPH_MOST_KERNELS) return false;
  if (i == out->nkernels) out->kernels[out->nkernels++] = *kernel;
  out->kernels[i].each += share;
  return true;
}

static void add_node(const Gpu *gpu, CudaGraphNode node, double share, GraphNodes *out) {
  GraphKernel kernel;
  int type = -1;
  if (gpu->node_type(node, &type)) type = -1;
  if (type == NODE_KERNEL && describe(gpu, node, &kernel) && add_kernel(out, &kernel, share)) return;
  *(type == NODE_FILL ? &out->fills : type == NODE_COPY ? &out->copies : &out->others) += share;
}

// A product keeps more of an SM busy than what prepares or adds up its parts.
static int compare_kernels(const void *a, const void *b) {
  const GraphKernel *x = a, *y = b;
  return (x->shared_bytes < y->shared_bytes) - (x->shared_bytes > y->shared_bytes);
}

void graph_nodes_find(const Gpu *gpu, CudaGraph graph, int launches, GraphNodes *out) {
  size_t count = 0;
  *out = (GraphNodes){0};
  if (!can_tell(gpu) || gpu->graph_nodes(graph, NULL, &count)) return;
  CudaGraphNode *nodes = calloc(count + 1, sizeof *nodes);
  if (nodes && !gpu->graph_nodes(graph, nodes, &count))
    for (size_t i = 0; i < count; i++) add_node(gpu, nodes[i], 1.0 / launches, out);
  free(nodes);
  qsort(out->kernels, (size_t)out->nkernels, sizeof *out->kernels, compare_kernels);
}

// ---- Text

__attribute__((format(printf, 3, 4))) static void append(char *out, size_t size, const char *format, ...) {
  size_t length = strlen(out);
  va_list args;
  va_start(args, format);
  vsnprintf(out + length, size - length, format, args);
  va_end(args);
}

void graph_kernel_text(const GraphKernel *kernel, char *out, size_t size) {
  const unsigned *grid = kernel->grid, *block = kernel->block, *cluster = kernel->cluster;
  *out = '\0';
  append(out, size, "%s, %ux%ux%u blocks of %u threads", kernel->name, grid[0], grid[1], grid[2],
         block[0] * block[1] * block[2]);
  if (cluster[0]) append(out, size, ", cluster %ux%ux%u", cluster[0], cluster[1], cluster[2]);
  append(out, size, ", %u KB shared", kernel->shared_bytes / 1024);
  if (kernel->each < 0.999 || kernel->each > 1.001) append(out, size, ", %.3g times a launch", kernel->each);
}

void graph_others_text(const GraphNodes *nodes, char *out, size_t size) {
  const struct {
    double each;
    const char *one, *many;
  } rows[] = {{nodes->fills, "fill of memory", "fills of memory"},
              {nodes->copies, "copy", "copies"},
              {nodes->others, "other node", "other nodes"}};
  *out = '\0';
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].each > 0)
      append(out, size, "%s%.3g %s", *out ? ", " : "", rows[i].each,
             rows[i].each < 1.001 ? rows[i].one : rows[i].many);
}

// cublasLt as the one to compare with: loaded when it is there, and asked for its best algorithms for a product.
#ifndef TILE_BENCH_CUBLASLT_H
#define TILE_BENCH_CUBLASLT_H

#include <limits.h>

#include "bench/gpu.h"
#include "bench/problem.h"

enum { CUBLASLT_MOST = 64 };

// cublasLtMatmulHeuristicResult_t: an opaque algorithm, and what is known of it.
typedef struct {
  uint64_t algorithm[8];
  size_t workspace;  // bytes
  int status;
  float waves;
  int reserved[4];
} CublasLtAlgorithm;

typedef struct {
  void *library, *handle;
#define CUBLASLT(name, symbol, parameters) int(*name) parameters;
#include "bench/cublaslt.def"
#undef CUBLASLT
  size_t version;
  char path[PATH_MAX];  // of the library
  const Gpu *gpu;
  CudaAddress workspace;
} CublasLt;

// Loads `path`, or when it is NULL looks for the library by name and in the usual places. The GPU must outlive it.
// TILE_UNAVAILABLE says where it looked.
TileError *cublaslt_open(const char *path, const Gpu *gpu, CublasLt *out);
void cublaslt_close(CublasLt *lt);

// One product, ready to be launched with any of the algorithms that were found for it.
typedef struct {
  const CublasLt *lt;
  void *desc, *first, *second, *result;  // operands in the order of the library's column-major world
  bool integer;                          // scaled in integers
  int count, chosen;
  CublasLtAlgorithm algorithms[CUBLASLT_MOST];
} CublasLtProduct;

// Asks for at most `wanted` algorithms. TILE_UNAVAILABLE: the library has none for these types or sizes.
TileError *cublaslt_product(const CublasLt *lt, const Problem *problem, Sizes sizes, int wanted,
                            CublasLtProduct *out);
void cublaslt_product_free(CublasLtProduct *product);
// Launches product->chosen.
TileError *cublaslt_launch(const CublasLtProduct *product, CudaAddress a, CudaAddress b, CudaAddress c,
                           CudaStream stream);

#endif

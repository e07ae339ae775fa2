// The GPU as the measurement sees it: its facts, one stream, and graphs. The context is made current, so that the
// runtime and cublasLt use the same one.
#ifndef TILE_BENCH_GPU_H
#define TILE_BENCH_GPU_H

#include "cuda/driver.h"

typedef struct CudaGraphRecord *CudaGraph;
typedef struct CudaGraphExecRecord *CudaGraphExec;
typedef struct CudaGraphNodeRecord *CudaGraphNode;
typedef struct CudaKernelRecord *CudaKernel;

// CUDA_KERNEL_NODE_PARAMS_v2: either function or kernel is set.
typedef struct {
  CudaFunction function;
  unsigned grid[3], block[3], shared_bytes;
  void **parameters, **extra;
  CudaKernel kernel;
  CudaContext context;
} CudaKernelNode;

// CUlaunchAttributeValue, of which only clusters are read here.
typedef union {
  unsigned cluster[3];
  uint64_t words[8];
} CudaNodeAttribute;

typedef struct {
  Driver driver;
#define GPU(name, symbol, parameters) CudaResult(*name) parameters;
#include "bench/gpu.def"
#undef GPU
#define GPU_OPTIONAL(name, symbol, parameters) CudaResult(*name) parameters;
#include "bench/gpu_optional.def"
#undef GPU_OPTIONAL
  CudaDevice device;
  CudaContext context;
  CudaStream stream;
  int sms, major, minor;
  int clock_mhz;  // the highest SM clock
  uint64_t l2_bytes, memory_bytes;
  char name[100];
  char bus[32];  // PCI bus id, by which NVML finds the same GPU
} Gpu;

// Device 0 of the driver. TILE_UNAVAILABLE says why there is none.
TileError *gpu_open(Gpu *gpu);
void gpu_close(Gpu *gpu);
// driver_error with this table.
TileError *gpu_error(const Gpu *gpu, CudaResult result, const char *what);

TileError *gpu_alloc(const Gpu *gpu, uint64_t bytes, const char *what, CudaAddress *out);
// Waits for everything.
TileError *gpu_wait(const Gpu *gpu);

// Floating-point (or integer) operations of dense products that the tensor cores of one SM do in a clock, by the
// bits of an operand's element; 0 when this GPU is not known.
double gpu_flops_per_clock(int major, int bits);

#endif

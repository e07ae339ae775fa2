// The GPU as the measurement sees it: its facts, one stream, and graphs. The context is made current, so that the
// runtime and cublasLt use the same one.
#ifndef TILE_BENCH_GPU_H
#define TILE_BENCH_GPU_H

#include "cuda/driver.h"

typedef struct CudaGraphRecord *CudaGraph;
typedef struct CudaGraphExecRecord *CudaGraphExec;

typedef struct {
  Driver driver;
#define GPU(name, symbol, parameters) CudaResult(*name) parameters;
#include "bench/gpu.def"
#undef GPU
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

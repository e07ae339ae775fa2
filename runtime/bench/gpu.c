// dlopen of the driver again (it is loaded once, however often it is opened), and a context that stays current.
#include "bench/gpu.h"

#include <stdio.h>
#include <string.h>

enum { STREAM_NON_BLOCKING = 1, ATTRIBUTE_CLOCK_KHZ = 13, ATTRIBUTE_L2_BYTES = 38 };

TileError *gpu_error(const Gpu *gpu, CudaResult result, const char *what) {
  return driver_error(&gpu->driver, result, what);
}

static TileError *load_rows(Gpu *gpu) {
  const char *missing = NULL;
#define GPU(name, symbol, parameters)                                                                        \
  if (!driver_load(gpu->driver.library, symbol, &gpu->name) && !missing) missing = symbol;
#include "bench/gpu.def"
#undef GPU
#define GPU_OPTIONAL(name, symbol, parameters) driver_load(gpu->driver.library, symbol, &gpu->name);
#include "bench/gpu_optional.def"
#undef GPU_OPTIONAL
  if (!missing) return NULL;
  return error_new(TILE_UNAVAILABLE, "the CUDA driver here is too old to measure with: it has no %s",
                   missing);
}

static TileError *find_device(Gpu *gpu) {
  const Driver *driver = &gpu->driver;
  int count = 0;
  TileError *error = gpu_error(gpu, driver->init(0), "cuInit");
  if (!error) error = gpu_error(gpu, driver->device_count(&count), "cuDeviceGetCount");
  if (!error && count == 0) error = error_new(TILE_UNAVAILABLE, "the CUDA driver finds no GPU here");
  if (!error) error = gpu_error(gpu, driver->device_get(&gpu->device, 0), "cuDeviceGet");
  if (error) return error;
  error = gpu_error(gpu, driver->primary_retain(&gpu->context, gpu->device), "cuDevicePrimaryCtxRetain");
  if (error) return error;
  error = gpu_error(gpu, gpu->context_set(gpu->context), "cuCtxSetCurrent");
  return error ? error : gpu_error(gpu, gpu->stream_new(&gpu->stream, STREAM_NON_BLOCKING), "cuStreamCreate");
}

static TileError *attribute(const Gpu *gpu, int attribute, int *out) {
  return gpu_error(gpu, gpu->driver.device_attribute(out, attribute, gpu->device), "cuDeviceGetAttribute");
}

static TileError *read_facts(Gpu *gpu) {
  int khz = 0, l2 = 0;
  size_t unused = 0, total = 0;
  TileError *error =
      gpu_error(gpu, gpu->driver.device_name(gpu->name, sizeof gpu->name, gpu->device), "cuDeviceGetName");
  if (!error) error = attribute(gpu, CUDA_DEVICE_SM_COUNT, &gpu->sms);
  if (!error) error = attribute(gpu, CUDA_DEVICE_MAJOR, &gpu->major);
  if (!error) error = attribute(gpu, CUDA_DEVICE_MINOR, &gpu->minor);
  if (!error) error = attribute(gpu, ATTRIBUTE_CLOCK_KHZ, &khz);
  if (!error) error = attribute(gpu, ATTRIBUTE_L2_BYTES, &l2);
  if (!error) error = gpu_error(gpu, gpu->memory(&unused, &total), "cuMemGetInfo");
  if (!error)
    error = gpu_error(gpu, gpu->pci_bus(gpu->bus, sizeof gpu->bus, gpu->device), "cuDeviceGetPCIBusId");
  gpu->clock_mhz = khz / 1000;
  gpu->l2_bytes = l2 > 0 ? (uint64_t)l2 : 0;
  gpu->memory_bytes = total;
  return error;
}

TileError *gpu_open(Gpu *gpu) {
  *gpu = (Gpu){0};
  TileError *error = driver_open(&gpu->driver, NULL);
  if (!error) error = load_rows(gpu);
  if (!error) error = find_device(gpu);
  if (!error) error = read_facts(gpu);
  if (!error) return NULL;
  TileError *why = error_new(TILE_UNAVAILABLE, "nothing to measure on: %s", tile_error_message(error));
  tile_error_free(error);
  gpu_close(gpu);
  return why;
}

void gpu_close(Gpu *gpu) {
  if (gpu->stream) gpu->stream_free(gpu->stream);
  if (gpu->context) gpu->driver.primary_release(gpu->device);
  driver_close(&gpu->driver);
  *gpu = (Gpu){0};
}

TileError *gpu_alloc(const Gpu *gpu, uint64_t bytes, const char *what, CudaAddress *out) {
  char text[120];
  snprintf(text, sizeof text, "cuMemAlloc of %llu bytes for %.60s", (unsigned long long)bytes, what);
  return gpu_error(gpu, gpu->driver.alloc(out, bytes), text);
}

TileError *gpu_wait(const Gpu *gpu) {
  return gpu_error(gpu, gpu->context_wait(), "kernel (found by cuCtxSynchronize)");
}

// A row a generation of tensor cores. 32 bits: tf32.
double gpu_flops_per_clock(int major, int bits) {
  static const struct {
    int major, bits;
    double flops;
  } rows[] = {
      {9, 32, 2048}, {9, 16, 4096}, {9, 8, 8192}, {10, 32, 4096}, {10, 16, 8192}, {10, 8, 16384},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].major == major && rows[i].bits == bits) return rows[i].flops;
  return 0;
}

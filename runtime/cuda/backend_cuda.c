// A GPU through the CUDA driver. The context is the caller's current one or the primary context of device 0,
// and is pushed and popped around each call, so that neither the caller's own CUDA calls nor other threads
// notice.
#include "cuda/backend_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/driver.h"

typedef struct {
  Driver driver;
  CudaDevice device;
  CudaContext context;
  bool retained;     // the primary context, to be released
  int major, minor;  // compute capability
  int sms;
  char name[160];
} CudaGpu;

// ---- Architecture

// "sm_100a" as number and suffix (0, 'a' or 'f'); false when it is not of that form.
static bool parse_arch(const char *arch, int *number, char *suffix) {
  char rest[3] = "";
  int fields = sscanf(arch, "sm_%4d%2s", number, rest);
  *suffix = rest[0];
  return fields >= 1 && rest[0] ? rest[1] == '\0' : fields >= 1;
}

// Code for …a runs on exactly that architecture, for …f and without suffix on later ones of the same major
// number; PTX without suffix can be compiled for any later one.
static bool fits(const CudaGpu *gpu, const char *arch, bool is_ptx) {
  int number;
  char suffix;
  if (!parse_arch(arch, &number, &suffix)) return false;
  int major = number / 10, minor = number % 10;
  if (suffix == 'a') return gpu->major == major && gpu->minor == minor;
  if (suffix == '\0' && is_ptx && gpu->major > major) return true;
  return gpu->major == major && gpu->minor >= minor;
}

static TileError *refuse(const CudaGpu *gpu, const char *what, const char *arch) {
  return error_new(TILE_UNAVAILABLE,
                   "%s is for %s; the GPU here is %s, which cannot run it; use the emulator instead "
                   "(backend \"emu\"), or compile for this GPU's architecture",
                   what, arch, gpu->name);
}

// ---- Opening

static TileError *enter(CudaGpu *gpu) {
  return driver_error(&gpu->driver, gpu->driver.context_push(gpu->context), "cuCtxPushCurrent");
}

// The caller's error is more telling than one of popping.
static TileError *leave(CudaGpu *gpu, TileError *error) {
  CudaContext popped;
  CudaResult result = gpu->driver.context_pop(&popped);
  return error ? error : driver_error(&gpu->driver, result, "cuCtxPopCurrent");
}

static void cuda_close(void *state) {
  CudaGpu *gpu = state;
  if (gpu->retained) gpu->driver.primary_release(gpu->device);
  driver_close(&gpu->driver);
  free(gpu);
}

static TileError *unavailable(TileError *error) {
  if (!error || tile_error_status(error) == TILE_UNAVAILABLE) return error;
  TileError *changed = error_new(TILE_UNAVAILABLE, "no usable GPU: %s", tile_error_message(error));
  tile_error_free(error);
  return changed;
}

static TileError *find_context(CudaGpu *gpu) {
  const Driver *driver = &gpu->driver;
  TileError *error = driver_error(driver, driver->init(0), "cuInit");
  if (!error) error = driver_error(driver, driver->context_current(&gpu->context), "cuCtxGetCurrent");
  if (error) return error;
  if (gpu->context) return driver_error(driver, driver->context_device(&gpu->device), "cuCtxGetDevice");
  int count = 0;
  error = driver_error(driver, driver->device_count(&count), "cuDeviceGetCount");
  if (!error && count == 0)
    error = error_new(TILE_UNAVAILABLE,
                      "the CUDA driver finds no GPU here; the emulator (backend \"emu\") needs none");
  if (!error) error = driver_error(driver, driver->device_get(&gpu->device, 0), "cuDeviceGet");
  if (!error)
    error =
        driver_error(driver, driver->primary_retain(&gpu->context, gpu->device), "cuDevicePrimaryCtxRetain");
  gpu->retained = !error;
  return error;
}

static TileError *describe(CudaGpu *gpu) {
  const Driver *driver = &gpu->driver;
  char name[100] = "";
  TileError *error =
      driver_error(driver, driver->device_name(name, sizeof name, gpu->device), "cuDeviceGetName");
  if (!error)
    error = driver_error(driver, driver->device_attribute(&gpu->major, CUDA_DEVICE_MAJOR, gpu->device),
                         "cuDeviceGetAttribute");
  if (!error)
    error = driver_error(driver, driver->device_attribute(&gpu->minor, CUDA_DEVICE_MINOR, gpu->device),
                         "cuDeviceGetAttribute");
  if (!error)
    error = driver_error(driver, driver->device_attribute(&gpu->sms, CUDA_DEVICE_SM_COUNT, gpu->device),
                         "cuDeviceGetAttribute");
  snprintf(gpu->name, sizeof gpu->name, "%s (sm_%d%d)", name, gpu->major, gpu->minor);
  return error;
}

TileError *cuda_open_library(const char *library, const TileDeviceOptions *options, void **device) {
  CudaGpu *gpu = calloc(1, sizeof *gpu);
  if (!gpu) return error_no_memory();
  TileError *error = driver_open(&gpu->driver, library);
  if (!error) error = find_context(gpu);
  if (!error) error = describe(gpu);
  error = unavailable(error);
  if (!error && options->arch && !fits(gpu, options->arch, true))
    error = refuse(gpu, "the kernel", options->arch);
  if (error) {
    cuda_close(gpu);
    return error;
  }
  *device = gpu;
  return NULL;
}

static TileError *cuda_open(const TileDeviceOptions *options, void **device) {
  return cuda_open_library(NULL, options, device);
}

static int cuda_sm_count(const void *state) {
  const CudaGpu *gpu = state;
  return gpu->sms;
}

static const char *cuda_describe(const void *state) {
  return ((const CudaGpu *)state)->name;
}

// ---- Code

static TileError *cuda_load(void *state, const Artifact *artifact, const char *arch, void **code) {
  CudaGpu *gpu = state;
  if (!fits(gpu, arch, !artifact->cubin))
    return refuse(gpu, artifact->cubin ? "this cubin" : "this PTX", arch);
  TileError *error = enter(gpu);
  if (error) return error;
  // The driver compiles PTX itself, and puts what it dislikes into the log.
  char log[4096] = "";
  int options[] = {CUDA_JIT_ERROR_LOG, CUDA_JIT_ERROR_LOG_BYTES};
  void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
  CudaModule module = NULL;
  CudaResult result = gpu->driver.module_load(&module, artifact->bytes, 2, options, values);
  error = driver_error(&gpu->driver, result, "cuModuleLoadDataEx");
  if (error && log[0]) {
    TileError *longer =
        error_new(tile_error_status(error), "%s: %s\n%s", artifact->name, tile_error_message(error), log);
    tile_error_free(error);
    error = longer;
  }
  *code = module;
  return leave(gpu, error);
}

static void cuda_unload(void *state, void *code) {
  CudaGpu *gpu = state;
  TileError *error = enter(gpu);
  if (!error) {
    gpu->driver.module_unload(code);
    error = leave(gpu, NULL);
  }
  tile_error_free(error);
}

// ---- Memory

static TileError *cuda_alloc(void *state, uint64_t bytes, const char *name, uint64_t *address) {
  CudaGpu *gpu = state;
  char what[120];
  snprintf(what, sizeof what, "cuMemAlloc of %llu bytes for %.60s", (unsigned long long)bytes, name);
  TileError *error = enter(gpu);
  return error ? error : leave(gpu, driver_error(&gpu->driver, gpu->driver.alloc(address, bytes), what));
}

static TileError *cuda_release(void *state, uint64_t address) {
  CudaGpu *gpu = state;
  TileError *error = enter(gpu);
  return error ? error : leave(gpu, driver_error(&gpu->driver, gpu->driver.release(address), "cuMemFree"));
}

static TileError *cuda_write(void *state, uint64_t address, const void *data, uint64_t bytes) {
  CudaGpu *gpu = state;
  TileError *error = enter(gpu);
  return error ? error
               : leave(gpu,
                       driver_error(&gpu->driver, gpu->driver.copy_in(address, data, bytes), "cuMemcpyHtoD"));
}

static TileError *cuda_read(void *state, uint64_t address, void *data, uint64_t bytes) {
  CudaGpu *gpu = state;
  TileError *error = enter(gpu);
  return error ? error
               : leave(gpu, driver_error(&gpu->driver, gpu->driver.copy_out(data, address, bytes),
                                         "cuMemcpyDtoH"));
}

static TileError *cuda_encode_map(void *state, const TensorMap *map, uint8_t *out) {
  CudaGpu *gpu = state;
  TileError *error = enter(gpu);
  if (error) return error;
  CudaResult result = gpu->driver.encode_map(
      out, map->type, (uint32_t)map->rank, (void *)(uintptr_t)map->address, map->size, map->stride, map->box,
      map->element_stride, map->interleave, map->swizzle, map->l2_promotion, map->fill);
  return leave(gpu, driver_error(&gpu->driver, result, "cuTensorMapEncodeTiled"));
}

// ---- Launch

static TileError *prepare(CudaGpu *gpu, CudaModule module, const InfoEntry *entry, CudaFunction *function) {
  const Driver *driver = &gpu->driver;
  uint32_t cluster = entry->cluster[0] * entry->cluster[1] * entry->cluster[2];
  TileError *error =
      driver_error(driver, driver->module_function(function, module, entry->entry), "cuModuleGetFunction");
  if (!error && entry->shared)
    error = driver_error(driver,
                         driver->function_set(*function, CUDA_FUNCTION_DYNAMIC_SHARED, (int)entry->shared),
                         "cuFuncSetAttribute (shared memory)");
  if (!error && cluster > 8)
    error = driver_error(driver, driver->function_set(*function, CUDA_FUNCTION_LARGE_CLUSTER, 1),
                         "cuFuncSetAttribute (cluster)");
  return error;
}

static TileError *start(CudaGpu *gpu, CudaFunction function, const LaunchPlan *plan, CudaStream stream) {
  const InfoEntry *entry = plan->entry;
  CudaLaunchAttribute cluster = {.id = CUDA_LAUNCH_CLUSTER};
  memcpy(cluster.value.cluster, entry->cluster, sizeof entry->cluster);
  bool clustered = entry->cluster[0] * entry->cluster[1] * entry->cluster[2] > 1;
  CudaLaunch launch = {
      .grid = {plan->grid[0], plan->grid[1], plan->grid[2]},
      .block = {entry->block, 1, 1},
      .shared = entry->shared,
      .stream = stream,
      .attributes = clustered ? &cluster : NULL,
      .nattributes = clustered,
  };
  void **params = calloc((size_t)entry->nparams + 1, sizeof *params);
  if (!params) return error_no_memory();
  for (int i = 0; i < entry->nparams; i++) params[i] = plan->block + entry->params[i].offset;
  CudaResult result = gpu->driver.launch(&launch, function, params, NULL);
  free(params);
  return driver_error(&gpu->driver, result, "cuLaunchKernelEx");
}

static TileError *start_timed(CudaGpu *gpu, CudaFunction function, const LaunchPlan *plan, CudaStream stream,
                              double *seconds) {
  const Driver *driver = &gpu->driver;
  CudaEvent before = NULL, after = NULL;
  float milliseconds = 0;
  TileError *error = driver_error(driver, driver->event_new(&before, 0), "cuEventCreate");
  if (!error) error = driver_error(driver, driver->event_new(&after, 0), "cuEventCreate");
  if (!error) error = driver_error(driver, driver->event_record(before, stream), "cuEventRecord");
  if (!error) error = start(gpu, function, plan, stream);
  if (!error) error = driver_error(driver, driver->event_record(after, stream), "cuEventRecord");
  if (!error) error = driver_error(driver, driver->event_wait(after), "kernel (found by cuEventSynchronize)");
  if (!error)
    error = driver_error(driver, driver->event_elapsed(&milliseconds, before, after), "cuEventElapsedTime");
  if (before) driver->event_free(before);
  if (after) driver->event_free(after);
  *seconds = 1e-3 * (double)milliseconds;
  return error;
}

static TileError *cuda_launch(void *state, void *code, const LaunchPlan *plan, void *stream,
                              double *seconds) {
  CudaGpu *gpu = state;
  CudaFunction function = NULL;
  TileError *error = enter(gpu);
  if (error) return error;
  error = prepare(gpu, code, plan->entry, &function);
  if (!error)
    error = seconds ? start_timed(gpu, function, plan, stream, seconds) : start(gpu, function, plan, stream);
  return leave(gpu, error);
}

static TileError *cuda_synchronize(void *state, void *stream) {
  CudaGpu *gpu = state;
  TileError *error = enter(gpu);
  return error ? error
               : leave(gpu, driver_error(&gpu->driver, gpu->driver.stream_wait(stream),
                                         "kernel (found by cuStreamSynchronize)"));
}

const Backend backend_cuda = {
    .name = "cuda",
    .open = cuda_open,
    .close = cuda_close,
    .describe = cuda_describe,
    .sm_count = cuda_sm_count,
    .load = cuda_load,
    .unload = cuda_unload,
    .alloc = cuda_alloc,
    .release = cuda_release,
    .write = cuda_write,
    .read = cuda_read,
    .encode_map = cuda_encode_map,
    .launch = cuda_launch,
    .synchronize = cuda_synchronize,
};

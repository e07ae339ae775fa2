// A GPU through the CUDA driver. The context is the caller's current one or a primary context, and is pushed and
// popped around each call, so that neither the caller's own CUDA calls nor other threads notice. All that
// changes after opening is the trail of launches, which has its lock: several threads may use one device, and
// launch one kernel.
#include "cuda/backend_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/trail.h"

typedef struct {
  Driver driver;
  Trail trail;
  CudaDevice device;
  CudaContext context;
  bool retained;     // the primary context, to be released
  int major, minor;  // compute capability
  int sms;
  int shared;  // most dynamic shared memory of a block, bytes
  char name[160], arch[16];
} CudaGpu;

enum { PORTABLE_CLUSTER = 8 };  // blocks that every GPU with clusters can hold

typedef struct {
  CudaFunction function;
  int sm_count;  // as backend.h says
} CudaEntry;

typedef struct {
  CudaModule module;
  const LaunchInfo *info;
  CudaEntry entry[];  // as many as info has
} CudaCode;

// NULL for success. Every result of the driver goes through here once the device is open.
static TileError *check(CudaGpu *gpu, CudaResult result, const char *what) {
  return trail_error(&gpu->trail, &gpu->driver, result, what);
}

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
  return check(gpu, gpu->driver.context_push(gpu->context), "cuCtxPushCurrent");
}

// The caller's error is more telling than one of popping.
static TileError *leave(CudaGpu *gpu, TileError *error) {
  CudaContext popped;
  CudaResult result = gpu->driver.context_pop(&popped);
  return error ? error : check(gpu, result, "cuCtxPopCurrent");
}

static void cuda_close(void *state) {
  CudaGpu *gpu = state;
  if (gpu->retained) gpu->driver.primary_release(gpu->device);
  driver_close(&gpu->driver);
  trail_free(&gpu->trail);
  free(gpu);
}

// The emulator is named here, not where tools come by that have no use for it.
static TileError *unavailable(TileError *error) {
  if (!error) return NULL;
  bool known = tile_error_status(error) == TILE_UNAVAILABLE;
  TileError *changed = error_new(TILE_UNAVAILABLE, "%s%s; the emulator (backend \"emu\") needs none",
                                 known ? "" : "no usable GPU: ", tile_error_message(error));
  tile_error_free(error);
  return changed;
}

static TileError *retain_primary(CudaGpu *gpu, int ordinal) {
  const Driver *driver = &gpu->driver;
  int count = 0;
  TileError *error = driver_error(driver, driver->device_count(&count), "cuDeviceGetCount");
  if (error) return error;
  if (count == 0) return error_new(TILE_UNAVAILABLE, "the CUDA driver finds no GPU here");
  if (ordinal >= count)
    return error_new(TILE_UNAVAILABLE, "there is no GPU %d; the CUDA driver finds %d, counted from 0",
                     ordinal, count);
  error = driver_error(driver, driver->device_get(&gpu->device, ordinal), "cuDeviceGet");
  if (error) return error;
  error =
      driver_error(driver, driver->primary_retain(&gpu->context, gpu->device), "cuDevicePrimaryCtxRetain");
  gpu->retained = !error;
  return error;
}

// With a number ("cuda:1") that GPU; else the one of the thread's current context, or the first.
static TileError *find_context(CudaGpu *gpu, const char *backend) {
  const Driver *driver = &gpu->driver;
  TileError *error = driver_error(driver, driver->init(0), "cuInit");
  const char *colon = !error && backend ? strchr(backend, ':') : NULL;
  if (colon) return retain_primary(gpu, atoi(colon + 1));
  if (!error) error = driver_error(driver, driver->context_current(&gpu->context), "cuCtxGetCurrent");
  if (error) return error;
  if (gpu->context) return driver_error(driver, driver->context_device(&gpu->device), "cuCtxGetDevice");
  return retain_primary(gpu, 0);
}

static TileError *describe(CudaGpu *gpu) {
  const Driver *driver = &gpu->driver;
  char name[100] = "";
  const struct {
    int attribute, *value;
  } facts[] = {{CUDA_DEVICE_MAJOR, &gpu->major},
               {CUDA_DEVICE_MINOR, &gpu->minor},
               {CUDA_DEVICE_SM_COUNT, &gpu->sms},
               {CUDA_DEVICE_SHARED_OPTIN, &gpu->shared}};
  TileError *error =
      driver_error(driver, driver->device_name(name, sizeof name, gpu->device), "cuDeviceGetName");
  for (size_t i = 0; i < sizeof facts / sizeof facts[0] && !error; i++)
    error = driver_error(driver, driver->device_attribute(facts[i].value, facts[i].attribute, gpu->device),
                         "cuDeviceGetAttribute");
  snprintf(gpu->name, sizeof gpu->name, "%s (sm_%d%d)", name, gpu->major, gpu->minor);
  // The suffix stands for what one architecture alone has; the first with such is Hopper.
  snprintf(gpu->arch, sizeof gpu->arch, "sm_%d%d%s", gpu->major, gpu->minor, gpu->major >= 9 ? "a" : "");
  return error;
}

TileError *cuda_open_library(const char *library, const TileDeviceOptions *options, void **device) {
  CudaGpu *gpu = calloc(1, sizeof *gpu);
  if (!gpu) return error_no_memory();
  if (!trail_init(&gpu->trail)) {
    free(gpu);
    return error_no_memory();
  }
  TileError *error = driver_open(&gpu->driver, library);
  if (!error) error = find_context(gpu, options->backend);
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

static const char *cuda_describe(const void *state) {
  return ((const CudaGpu *)state)->name;
}

static const char *cuda_arch(const void *state) {
  return ((const CudaGpu *)state)->arch;
}

// ---- Code

static uint32_t cluster_size(const InfoEntry *entry) {
  return entry->cluster[0] * entry->cluster[1] * entry->cluster[2];
}

static CudaLaunch launch_of(const InfoEntry *entry, const uint32_t grid[3], CudaLaunchAttribute *cluster) {
  CudaLaunch launch = {
      .grid = {grid[0], grid[1], grid[2]}, .block = {entry->block, 1, 1}, .shared = entry->shared};
  *cluster = (CudaLaunchAttribute){.id = CUDA_LAUNCH_CLUSTER};
  memcpy(cluster->value.cluster, entry->cluster, sizeof entry->cluster);
  if (cluster_size(entry) > 1) {
    launch.attributes = cluster;
    launch.nattributes = 1;
  }
  return launch;
}

static TileError *no_room(CudaGpu *gpu, const InfoEntry *entry, CudaFunction function, CudaLaunch launch) {
  int most = 0;
  launch.attributes = NULL;  // the question is what could be, not whether this can
  launch.nattributes = 0;
  TileError *error =
      check(gpu, gpu->driver.largest_cluster(&most, function, &launch), "cuOccupancyMaxPotentialClusterSize");
  if (error) return error;
  return error_new(
      TILE_INVALID,
      "kernel %s runs in clusters of %ux%ux%u blocks; with %u threads and %u bytes of shared memory "
      "in each, %s holds clusters of at most %d",
      entry->kernel, entry->cluster[0], entry->cluster[1], entry->cluster[2], entry->block, entry->shared,
      gpu->name, most);
}

// How many clusters of the entry the GPU can hold at once: not every SM can be part of one.
static TileError *measure_clusters(CudaGpu *gpu, const InfoEntry *entry, CudaEntry *out) {
  const Driver *driver = &gpu->driver;
  int cluster = (int)cluster_size(entry), active = 0;
  if (cluster > PORTABLE_CLUSTER) {
    TileError *error = check(gpu, driver->function_set(out->function, CUDA_FUNCTION_LARGE_CLUSTER, 1),
                             "cuFuncSetAttribute (cluster)");
    if (error) return error;
  }
  CudaLaunchAttribute attribute;
  CudaLaunch launch = launch_of(entry, entry->cluster, &attribute);
  CudaResult result = driver->active_clusters(&active, out->function, &launch);
  if (result != 0 && result != CUDA_INVALID_CLUSTER_SIZE)
    return check(gpu, result, "cuOccupancyMaxActiveClusters");
  if (result != 0 || active < 1) return no_room(gpu, entry, out->function, launch);
  int fitting = gpu->sms / cluster;
  out->sm_count = (active < fitting ? active : fitting) * cluster;
  return NULL;
}

static TileError *prepare(CudaGpu *gpu, CudaModule module, const InfoEntry *entry, CudaEntry *out) {
  const Driver *driver = &gpu->driver;
  char what[200];
  snprintf(what, sizeof what, "kernel %.80s: cuModuleGetFunction of %.80s", entry->kernel, entry->entry);
  TileError *error = check(gpu, driver->module_function(&out->function, module, entry->entry), what);
  if (!error && entry->shared > (uint32_t)gpu->shared)
    error = error_new(TILE_INVALID, "kernel %s needs %u bytes of shared memory for a block; %s has %d",
                      entry->kernel, entry->shared, gpu->name, gpu->shared);
  if (!error && entry->shared)
    error = check(gpu, driver->function_set(out->function, CUDA_FUNCTION_DYNAMIC_SHARED, (int)entry->shared),
                  "cuFuncSetAttribute (shared memory)");
  out->sm_count = gpu->sms;
  if (!error && cluster_size(entry) > 1) error = measure_clusters(gpu, entry, out);
  return error;
}

// The driver compiles PTX itself, and puts what it dislikes into the log.
static TileError *load_module(CudaGpu *gpu, const Artifact *artifact, CudaModule *out) {
  char log[4096] = "";
  int options[] = {CUDA_JIT_ERROR_LOG, CUDA_JIT_ERROR_LOG_BYTES};
  void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
  CudaResult result = gpu->driver.module_load(out, artifact->bytes, 2, options, values);
  TileError *error = check(gpu, result, "cuModuleLoadDataEx");
  if (!error) return NULL;
  TileError *longer = error_new(tile_error_status(error), "%s: %s%s%s", artifact->name,
                                tile_error_message(error), log[0] ? "\n" : "", log);
  tile_error_free(error);
  return longer;
}

static TileError *load_entries(CudaGpu *gpu, const Artifact *artifact, CudaCode *code) {
  TileError *error = load_module(gpu, artifact, &code->module);
  if (error) return error;
  for (int i = 0; i < code->info->nentries && !error; i++)
    error = prepare(gpu, code->module, &code->info->entries[i], &code->entry[i]);
  if (error) gpu->driver.module_unload(code->module);
  return error;
}

static TileError *cuda_load(void *state, const Artifact *artifact, const LaunchInfo *info, void **out) {
  CudaGpu *gpu = state;
  const char *arch = info->entries[0].arch;
  if (!fits(gpu, arch, !artifact->cubin))
    return refuse(gpu, artifact->cubin ? "this cubin" : "this PTX", arch);
  CudaCode *code = calloc(1, sizeof *code + (size_t)info->nentries * sizeof code->entry[0]);
  if (!code) return error_no_memory();
  code->info = info;
  TileError *error = enter(gpu);
  if (!error) error = leave(gpu, load_entries(gpu, artifact, code));
  if (error) {
    free(code);
    return error;
  }
  *out = code;
  return NULL;
}

static void cuda_unload(void *state, void *code) {
  CudaGpu *gpu = state;
  TileError *error = enter(gpu);
  if (!error) {
    gpu->driver.module_unload(((CudaCode *)code)->module);
    error = leave(gpu, NULL);
  }
  tile_error_free(error);
  free(code);
}

static int cuda_sm_count(const void *state, const void *code, int entry) {
  (void)state;
  return ((const CudaCode *)code)->entry[entry].sm_count;
}

// ---- Memory

static TileError *cuda_alloc(void *state, uint64_t bytes, const char *name, uint64_t *address) {
  CudaGpu *gpu = state;
  char what[120];
  snprintf(what, sizeof what, "cuMemAlloc of %llu bytes for %.60s", (unsigned long long)bytes, name);
  TileError *error = enter(gpu);
  return error ? error : leave(gpu, check(gpu, gpu->driver.alloc(address, bytes), what));
}

static TileError *cuda_release(void *state, uint64_t address) {
  CudaGpu *gpu = state;
  TileError *error = enter(gpu);
  return error ? error : leave(gpu, check(gpu, gpu->driver.release(address), "cuMemFree"));
}

// The driver may return when it has the data and not yet written them; a stream that does not wait for the default
// one would see what was there before.
static TileError *cuda_write(void *state, uint64_t address, const void *data, uint64_t bytes) {
  CudaGpu *gpu = state;
  TileError *error = enter(gpu);
  if (error) return error;
  uint64_t before = trail_now(&gpu->trail);
  error = check(gpu, gpu->driver.copy_in(address, data, bytes), "cuMemcpyHtoD");
  if (!error) error = check(gpu, gpu->driver.stream_wait(NULL), "cuStreamSynchronize");
  if (!error) trail_finished(&gpu->trail, NULL, before);
  return leave(gpu, error);
}

// It waits for the default stream.
static TileError *cuda_read(void *state, uint64_t address, void *data, uint64_t bytes) {
  CudaGpu *gpu = state;
  TileError *error = enter(gpu);
  if (error) return error;
  uint64_t before = trail_now(&gpu->trail);
  error = check(gpu, gpu->driver.copy_out(data, address, bytes), "cuMemcpyDtoH");
  if (!error) trail_finished(&gpu->trail, NULL, before);
  return leave(gpu, error);
}

static TileError *cuda_encode_map(void *state, const TensorMap *map, uint8_t *out) {
  CudaGpu *gpu = state;
  TileError *error = enter(gpu);
  if (error) return error;
  CudaResult result = gpu->driver.encode_map(
      out, map->type, (uint32_t)map->rank, (void *)(uintptr_t)map->address, map->size, map->stride, map->box,
      map->element_stride, map->interleave, map->swizzle, map->l2_promotion, map->fill);
  return leave(gpu, check(gpu, result, "cuTensorMapEncodeTiled"));
}

// ---- Launch

// A driver that refuses the attribute gets the launch without it: the kernel's wait then finds nothing to wait for.
static CudaResult launch(CudaGpu *gpu, const InfoEntry *entry, CudaFunction function, CudaLaunch plain,
                         void **params) {
  CudaLaunch overlapping = plain;
  CudaLaunchAttribute attributes[2] = {{0}};
  if (plain.nattributes) attributes[0] = plain.attributes[0];
  attributes[plain.nattributes] = (CudaLaunchAttribute){.id = CUDA_LAUNCH_OVERLAP, .value.overlap = 1};
  overlapping.attributes = attributes;
  overlapping.nattributes++;
  CudaResult result = CUDA_NOT_SUPPORTED;
  if (entry->overlap) result = gpu->driver.launch(&overlapping, function, params, NULL);
  if (result != CUDA_NOT_SUPPORTED && result != CUDA_INVALID_VALUE) return result;
  return gpu->driver.launch(&plain, function, params, NULL);
}

static TileError *start(CudaGpu *gpu, CudaFunction function, const LaunchPlan *plan, CudaStream stream) {
  const InfoEntry *entry = plan->entry;
  CudaLaunchAttribute cluster;
  CudaLaunch plain = launch_of(entry, plan->grid, &cluster);
  plain.stream = stream;
  void **params = calloc((size_t)entry->nparams + 1, sizeof *params);
  if (!params) return error_no_memory();
  for (int i = 0; i < entry->nparams; i++) params[i] = plan->block + entry->params[i].offset;
  char what[120];
  snprintf(what, sizeof what, "kernel %.80s: cuLaunchKernelEx", entry->kernel);
  // A fault that this very call reports is of a launch before.
  TileError *error = check(gpu, launch(gpu, entry, function, plain, params), what);
  if (!error) trail_launched(&gpu->trail, entry->kernel, stream);
  free(params);
  return error;
}

static TileError *start_timed(CudaGpu *gpu, CudaFunction function, const LaunchPlan *plan, CudaStream stream,
                              double *seconds) {
  const Driver *driver = &gpu->driver;
  CudaEvent before = NULL, after = NULL;
  float milliseconds = 0;
  uint64_t ticket = 0;
  TileError *error = check(gpu, driver->event_new(&before, 0), "cuEventCreate");
  if (!error) error = check(gpu, driver->event_new(&after, 0), "cuEventCreate");
  if (!error) error = check(gpu, driver->event_record(before, stream), "cuEventRecord");
  if (!error) error = start(gpu, function, plan, stream);
  if (!error) ticket = trail_now(&gpu->trail);
  if (!error) error = check(gpu, driver->event_record(after, stream), "cuEventRecord");
  if (!error) error = check(gpu, driver->event_wait(after), "cuEventSynchronize");
  if (!error) trail_finished(&gpu->trail, stream, ticket);
  if (!error) error = check(gpu, driver->event_elapsed(&milliseconds, before, after), "cuEventElapsedTime");
  if (before) driver->event_free(before);
  if (after) driver->event_free(after);
  *seconds = 1e-3 * (double)milliseconds;
  return error;
}

static TileError *cuda_launch(void *state, void *code, const LaunchPlan *plan, void *stream,
                              double *seconds) {
  CudaGpu *gpu = state;
  const CudaCode *loaded = code;
  CudaFunction function = loaded->entry[plan->entry - loaded->info->entries].function;
  TileError *error = enter(gpu);
  if (error) return error;
  error = seconds ? start_timed(gpu, function, plan, stream, seconds) : start(gpu, function, plan, stream);
  return leave(gpu, error);
}

static TileError *cuda_synchronize(void *state, void *stream) {
  CudaGpu *gpu = state;
  TileError *error = enter(gpu);
  if (error) return error;
  uint64_t before = trail_now(&gpu->trail);
  error = check(gpu, gpu->driver.stream_wait(stream), "cuStreamSynchronize");
  if (!error) trail_finished(&gpu->trail, stream, before);
  return leave(gpu, error);
}

const Backend backend_cuda = {
    .name = "cuda",
    .open = cuda_open,
    .close = cuda_close,
    .describe = cuda_describe,
    .arch = cuda_arch,
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

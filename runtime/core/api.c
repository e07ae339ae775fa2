// Devices and calls of tile.h: looks things up, hands the rest to launch.c and to the device's backend.
#include "core/module.h"

#include <stdlib.h>
#include <string.h>

#include "core/dtype.h"

// ---- Devices

TileError *device_of(const Backend *backend, void *state, TileDevice **out) {
  *out = malloc(sizeof **out);
  if (!*out) return error_no_memory();
  **out = (TileDevice){backend, state};
  return NULL;
}

static TileError *open_backend(const Backend *backend, const TileDeviceOptions *options, TileDevice **out) {
  void *state = NULL;
  TileError *error = backend->open(options, &state);
  if (error) return error;
  error = device_of(backend, state, out);
  if (error) backend->close(state);
  return error;
}

// "cuda:1"
static bool is_numbered_gpu(const char *backend) {
  static const char prefix[] = "cuda:";
  if (strncmp(backend, prefix, strlen(prefix)) != 0) return false;
  size_t digits = strspn(backend + strlen(prefix), "0123456789");
  return digits >= 1 && digits <= 4 && backend[strlen(prefix) + digits] == '\0';
}

TileError *tile_device_open(const TileDeviceOptions *options, TileDevice **out) {
  static const TileDeviceOptions defaults = {0};
  *out = NULL;
  if (!options) options = &defaults;
  const char *backend = options->backend ? options->backend : "auto";
  if (strcmp(backend, "cuda") == 0 || is_numbered_gpu(backend))
    return open_backend(&backend_cuda, options, out);
  if (strcmp(backend, "emu") == 0) return open_backend(&backend_emu, options, out);
  if (strcmp(backend, "auto") != 0)
    return error_new(TILE_INVALID, "no backend \"%s\"; there are auto, cuda, cuda:N and emu", backend);
  TileError *error = open_backend(&backend_cuda, options, out);
  if (tile_error_status(error) != TILE_UNAVAILABLE) return error;
  tile_error_free(error);
  return open_backend(&backend_emu, options, out);
}

void tile_device_close(TileDevice *device) {
  if (!device) return;
  device->backend->close(device->state);
  free(device);
}

const char *tile_device_backend(const TileDevice *device) {
  return device->backend->name;
}

const char *tile_device_name(const TileDevice *device) {
  return device->backend->describe(device->state);
}

const char *tile_device_arch(const TileDevice *device) {
  return device->backend->arch(device->state);
}

TileError *tile_alloc(TileDevice *device, uint64_t bytes, const char *name, uint64_t *address) {
  *address = 0;
  return device->backend->alloc(device->state, bytes ? bytes : 1, name ? name : "memory", address);
}

TileError *tile_free(TileDevice *device, uint64_t address) {
  return device->backend->release(device->state, address);
}

TileError *tile_write(TileDevice *device, uint64_t address, const void *data, uint64_t bytes) {
  return bytes ? device->backend->write(device->state, address, data, bytes) : NULL;
}

TileError *tile_read(TileDevice *device, uint64_t address, void *data, uint64_t bytes) {
  return bytes ? device->backend->read(device->state, address, data, bytes) : NULL;
}

TileError *tile_synchronize(TileDevice *device, void *stream) {
  return device->backend->synchronize(device->state, stream);
}

// ---- Calls

TileError *tile_call_new(const TileKernel *kernel, TileCall **out) {
  *out = calloc(1, sizeof **out);
  TileCall *call = *out;
  if (!call) return error_no_memory();
  const InfoEntry *entry = kernel->variants[0];
  call->kernel = kernel;
  call->tensors = pool_alloc(&call->pool, (size_t)entry->ntensors, sizeof *call->tensors);
  call->scalars = pool_alloc(&call->pool, (size_t)entry->nscalars, sizeof *call->scalars);
  call->given = pool_alloc(&call->pool, (size_t)kernel->nsizes, sizeof *call->given);
  if (call->tensors && call->scalars && call->given) return NULL;
  tile_call_free(call);
  *out = NULL;
  return error_no_memory();
}

void tile_call_free(TileCall *call) {
  if (!call) return;
  pool_free(&call->pool);
  free(call);
}

// An error about a name that is no `what` of the kernel, with the nearest of the names that are.
static TileError *unknown(const TileKernel *kernel, const char *what, const char *name,
                          const char *const *names, int count) {
  const char *near = error_nearest(name, names, count);
  ErrorText text = {0};
  error_text(&text, "kernel %s has no %s %s", kernel->name, what, name);
  if (near)
    error_text(&text, "; did you mean %s?", near);
  else if (count == 0)
    error_text(&text, "; it has none");
  for (int i = 0; i < count && !near; i++) error_text(&text, "%s%s", i ? ", " : "; it has ", names[i]);
  return error_of_text(TILE_INVALID, &text);
}

// The index of a parameter among those of its kind.
static TileError *find_param(const TileCall *call, TileParamKind kind, const char *name, int *out) {
  const TileKernel *kernel = call->kernel;
  int count = 0;
  const char **names = calloc((size_t)kernel->nparams + 1, sizeof *names);
  if (!names) return error_no_memory();
  *out = -1;
  for (int i = 0; i < kernel->nparams; i++) {
    if (kernel->params[i].kind != kind) continue;
    if (strcmp(kernel->params[i].name, name) == 0) *out = count;
    names[count++] = kernel->params[i].name;
  }
  TileError *error = NULL;
  if (*out < 0) error = unknown(kernel, kind == TILE_PARAM_TENSOR ? "tensor" : "scalar", name, names, count);
  free(names);
  return error;
}

TileError *tile_call_tensor(TileCall *call, const char *name, const TileTensor *tensor) {
  int index;
  TileError *error = find_param(call, TILE_PARAM_TENSOR, name, &index);
  return error ? error
               : launch_bind(&call->kernel->variants[0]->tensors[index], tensor, &call->tensors[index]);
}

typedef struct {
  uint8_t code, bits;
  TileDType dtype;
} DLPackRow;

// DLPack's type codes: 0 int, 1 uint, 2 float, 4 bfloat, 6 bool, and the small floats from 8 on.
static const DLPackRow dlpack_rows[] = {
    {0, 64, TILE_I64},  {0, 32, TILE_I32},   {0, 16, TILE_I16}, {0, 8, TILE_I8},   {1, 64, TILE_U64},
    {1, 32, TILE_U32},  {1, 16, TILE_U16},   {1, 8, TILE_U8},   {2, 64, TILE_F64}, {2, 32, TILE_F32},
    {2, 16, TILE_F16},  {4, 16, TILE_BF16},  {6, 8, TILE_BOOL}, {8, 8, TILE_E4M3}, {10, 8, TILE_E4M3},
    {12, 8, TILE_E5M2}, {14, 8, TILE_UE8M0},
};

static bool dlpack_dtype(const TileDLTensor *tensor, TileDType *out) {
  if (tensor->dtype.lanes != 1) return false;
  for (size_t i = 0; i < sizeof dlpack_rows / sizeof dlpack_rows[0]; i++) {
    if (dlpack_rows[i].code != tensor->dtype.code || dlpack_rows[i].bits != tensor->dtype.bits) continue;
    *out = dlpack_rows[i].dtype;
    return true;
  }
  return false;
}

enum { DLPACK_CUDA = 2, DLPACK_CUDA_HOST = 3, DLPACK_EXTENSION = 12, DLPACK_CUDA_MANAGED = 13 };

TileError *tile_call_dlpack(TileCall *call, const char *name, const TileDLTensor *tensor) {
  int index;
  TileError *error = find_param(call, TILE_PARAM_TENSOR, name, &index);
  if (error) return error;
  int device = tensor->device.device_type;
  if (device != DLPACK_CUDA && device != DLPACK_CUDA_HOST && device != DLPACK_CUDA_MANAGED &&
      device != DLPACK_EXTENSION)
    return error_new(TILE_INVALID,
                     "%s is on DLPack device type %d; copy it to the device first (tile_alloc, tile_write)",
                     name, device);
  const InfoTensor *declared = &call->kernel->variants[0]->tensors[index];
  TileTensor given = {(uint64_t)(uintptr_t)tensor->data + tensor->byte_offset, declared->dtype, tensor->ndim,
                      tensor->shape, tensor->strides};
  if (!dlpack_dtype(tensor, &given.dtype))
    return error_new(TILE_INVALID,
                     "%s has DLPack type code %d with %d bits and %d lanes, which no kernel takes", name,
                     tensor->dtype.code, tensor->dtype.bits, tensor->dtype.lanes);
  // DLPack knows tf32 as 32-bit floats.
  if (declared->dtype == TILE_TF32 && given.dtype == TILE_F32) given.dtype = TILE_TF32;
  error = launch_bind(declared, &given, &call->tensors[index]);
  if (!error) call->tensors[index].device_type = device;
  return error;
}

TileError *tile_call_int(TileCall *call, const char *name, int64_t value) {
  int index;
  TileError *error = find_param(call, TILE_PARAM_SCALAR, name, &index);
  if (error) return error;
  TileDType dtype = call->kernel->variants[0]->scalars[index].dtype;
  if (!dtype_holds(dtype, value))
    return error_new(TILE_INVALID, "%s: %lld does not fit %s", name, (long long)value,
                     tile_dtype_name(dtype));
  uint64_t bits = dtype_is_integer(dtype) ? (uint64_t)value : dtype_encode(dtype, (double)value);
  call->scalars[index] = (ScalarArg){true, bits, value};
  return NULL;
}

TileError *tile_call_float(TileCall *call, const char *name, double value) {
  int index;
  TileError *error = find_param(call, TILE_PARAM_SCALAR, name, &index);
  if (error) return error;
  TileDType dtype = call->kernel->variants[0]->scalars[index].dtype;
  if (dtype_is_integer(dtype))
    return error_new(TILE_INVALID, "%s: expected an integer of type %s, given %g", name,
                     tile_dtype_name(dtype), value);
  call->scalars[index] = (ScalarArg){true, dtype_encode(dtype, value), 0};
  return NULL;
}

static int size_index(const TileKernel *kernel, const char *name) {
  for (int i = 0; i < kernel->nsizes; i++)
    if (strcmp(kernel->sizes[i], name) == 0) return i;
  return -1;
}

TileError *tile_call_size(TileCall *call, const char *name, int64_t value) {
  int index = size_index(call->kernel, name);
  if (index < 0) return unknown(call->kernel, "size", name, call->kernel->sizes, call->kernel->nsizes);
  if (value < 0 || value > INT32_MAX)
    return error_new(TILE_INVALID, "%s = %lld: a size is 0 to 2^31 - 1", name, (long long)value);
  call->given[index] = (SizeValue){true, value, NULL};
  return NULL;
}

// Sizes by what is bound; the array is the caller's to free. NULL with the error.
static SizeValue *settled_sizes(const TileCall *call, TileError **error) {
  SizeValue *values = calloc((size_t)call->kernel->nsizes + 1, sizeof *values);
  *error = values ? launch_sizes(call, values) : error_no_memory();
  if (!*error) return values;
  free(values);
  return NULL;
}

TileError *tile_call_shape(const TileCall *call, const char *name, int64_t *shape) {
  int index;
  TileError *error = find_param(call, TILE_PARAM_TENSOR, name, &index);
  if (error) return error;
  SizeValue *values = settled_sizes(call, &error);
  if (values) error = launch_shape(call, &call->kernel->variants[0]->tensors[index], values, shape);
  free(values);
  return error;
}

TileError *tile_call_size_value(const TileCall *call, const char *name, bool *known, int64_t *out) {
  *known = false;
  int index = size_index(call->kernel, name);
  if (index < 0) return unknown(call->kernel, "size", name, call->kernel->sizes, call->kernel->nsizes);
  TileError *error;
  SizeValue *values = settled_sizes(call, &error);
  *known = values && values[index].known;
  if (*known) *out = values[index].value;
  free(values);
  return error;
}

TileError *tile_call_plan(const TileCall *call, TilePlan *out) {
  *out = (TilePlan){0};
  Pool pool = {0};
  LaunchPlan plan;
  TileError *error = launch_plan(call, &pool, &plan);
  if (!error) {
    const InfoEntry *entry = plan.entry ? plan.entry : call->kernel->variants[0];
    *out = (TilePlan){.variant = entry->variant,
                      .nothing = !plan.entry,
                      .block = {entry->block, 1, 1},
                      .shared = entry->shared};
    memcpy(out->grid, plan.grid, sizeof out->grid);
    memcpy(out->cluster, entry->cluster, sizeof out->cluster);
  }
  pool_free(&pool);
  return error;
}

// A DLPack tensor says where it is; that must be where the kernel runs.
static TileError *check_devices(const TileCall *call, const Backend *backend) {
  const InfoEntry *entry = call->kernel->variants[0];
  bool emulated = strcmp(backend->name, "emu") == 0;
  for (int i = 0; i < entry->ntensors; i++) {
    int type = call->tensors[i].device_type;
    if (type && (type == DLPACK_EXTENSION) != emulated)
      return error_new(TILE_INVALID, "%s is on DLPack device type %d, but the kernel runs on backend %s",
                       entry->tensors[i].name, type, backend->name);
  }
  return NULL;
}

static TileError *launch(TileCall *call, void *stream, double *seconds) {
  const TileModule *module = call->kernel->module;
  if (seconds) *seconds = 0;
  if (!module->device)
    return error_new(TILE_INVALID, "%s is not loaded on a device (tile_module_load)", module->artifact.name);
  const Backend *backend = module->device->backend;
  void *device = module->device->state;
  Pool pool = {0};
  LaunchPlan plan;
  TileError *error = check_devices(call, backend);
  if (!error) error = launch_plan(call, &pool, &plan);
  bool something = !error && plan.entry;
  for (int i = 0; something && i < plan.entry->nparams && !error; i++) {
    const InfoParam *param = &plan.entry->params[i];
    if (param->kind == INFO_MAP)
      error = backend->encode_map(device, &plan.maps[param->index], plan.block + param->offset);
  }
  if (something && !error) error = backend->launch(device, module->code, &plan, stream, seconds);
  pool_free(&pool);
  return error;
}

TileError *tile_call_launch(TileCall *call, void *stream) {
  return launch(call, stream, NULL);
}

TileError *tile_call_time(TileCall *call, void *stream, double *seconds) {
  return launch(call, stream, seconds);
}

// Opens files, and turns entries into kernels: the entries with one kernel name are its variants.
#include "core/module.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- Kernels

typedef struct {
  Pool *pool;
  TileKernel *kernel;
  const char *trouble;  // a float scalar in an expression
  bool no_memory;
} Collector;

// Adds a size that an expression names, unless it is there or is a scalar.
static bool collect_size(void *context, const char *name) {
  Collector *collector = context;
  TileKernel *kernel = collector->kernel;
  const InfoEntry *entry = kernel->variants[0];
  for (int i = 0; i < entry->nscalars; i++) {
    if (strcmp(entry->scalars[i].name, name) != 0) continue;
    TileDType dtype = entry->scalars[i].dtype;
    if (dtype == TILE_F64 || dtype == TILE_F32 || dtype == TILE_TF32 || dtype == TILE_F16 ||
        dtype == TILE_BF16)
      collector->trouble = name;
    return true;
  }
  for (int i = 0; i < kernel->nsizes; i++)
    if (strcmp(kernel->sizes[i], name) == 0) return true;
  const char **sizes = pool_grow(collector->pool, kernel->sizes, kernel->nsizes, sizeof *sizes);
  if (!sizes) {
    collector->no_memory = true;
    return false;
  }
  kernel->sizes = sizes;
  sizes[kernel->nsizes++] = name;
  return true;
}

static void collect_entry(Collector *collector, const InfoEntry *entry) {
  for (int t = 0; t < entry->ntensors; t++)
    for (int d = 0; d < entry->tensors[t].rank; d++)
      expr_names(entry->tensors[t].dims[d], collect_size, collector);
  for (int i = 0; i < 3; i++) expr_names(entry->grid[i], collect_size, collector);
  for (int i = 0; i < entry->nchecks; i++) expr_names(entry->checks[i].condition, collect_size, collector);
  for (int i = 0; i < entry->nparams; i++)
    if (entry->params[i].kind == INFO_SIZE) collect_size(collector, entry->params[i].name);
}

static TileError *collect_sizes(TileModule *module, TileKernel *kernel) {
  Collector collector = {.pool = &module->pool, .kernel = kernel};
  for (int i = 0; i < kernel->nvariants; i++) collect_entry(&collector, kernel->variants[i]);
  if (collector.no_memory) return error_no_memory();
  if (!collector.trouble) return NULL;
  return error_new(TILE_INVALID,
                   "%s: launch information of kernel %s: scalar %s is no integer, but an expression uses it",
                   module->artifact.name, kernel->name, collector.trouble);
}

static bool describe_tensor(Pool *pool, const InfoTensor *tensor, TileParam *out) {
  *out = (TileParam){TILE_PARAM_TENSOR, tensor->name, tensor->dtype, tensor->access, tensor->rank, {0}};
  for (int i = 0; i < tensor->rank; i++) {
    ErrorText text = {0};
    expr_print(tensor->dims[i], &text);
    out->shape[i] = text.data ? pool_text(pool, text.data, text.len) : NULL;
    free(text.data);
    if (!out->shape[i]) return false;
  }
  return true;
}

static TileError *describe_params(TileModule *module, TileKernel *kernel) {
  const InfoEntry *entry = kernel->variants[0];
  kernel->nparams = entry->ntensors + entry->nscalars;
  kernel->params = pool_alloc(&module->pool, (size_t)kernel->nparams, sizeof *kernel->params);
  if (!kernel->params) return error_no_memory();
  for (int i = 0; i < entry->ntensors; i++)
    if (!describe_tensor(&module->pool, &entry->tensors[i], &kernel->params[i])) return error_no_memory();
  for (int i = 0; i < entry->nscalars; i++)
    kernel->params[entry->ntensors + i] = (TileParam){
        .kind = TILE_PARAM_SCALAR, .name = entry->scalars[i].name, .dtype = entry->scalars[i].dtype};
  return NULL;
}

static TileKernel *find_or_add(TileModule *module, const char *name) {
  for (int i = 0; i < module->nkernels; i++)
    if (strcmp(module->kernels[i].name, name) == 0) return &module->kernels[i];
  module->kernels[module->nkernels].name = name;
  return &module->kernels[module->nkernels++];
}

static TileError *build_kernels(TileModule *module) {
  module->kernels = pool_alloc(&module->pool, (size_t)module->info.nentries, sizeof *module->kernels);
  if (!module->kernels) return error_no_memory();
  for (int i = 0; i < module->info.nentries; i++) {
    const InfoEntry *entry = &module->info.entries[i];
    TileKernel *kernel = find_or_add(module, entry->kernel);
    kernel->module = module;
    kernel->arch = entry->arch;
    kernel->variants =
        pool_grow(&module->pool, kernel->variants, kernel->nvariants, sizeof *kernel->variants);
    if (!kernel->variants) return error_no_memory();
    kernel->variants[kernel->nvariants++] = entry;
  }
  TileError *error = NULL;
  for (int i = 0; i < module->nkernels && !error; i++) {
    error = collect_sizes(module, &module->kernels[i]);
    if (!error) error = describe_params(module, &module->kernels[i]);
  }
  return error;
}

// ---- Modules

TileError *tile_module_open_memory(const void *bytes, size_t length, const char *name, TileModule **out) {
  *out = NULL;
  TileModule *module = calloc(1, sizeof *module);
  if (!module) return error_no_memory();
  TileError *error = artifact_open(&module->pool, name, bytes, length, &module->artifact);
  if (!error)
    error = launch_info_parse(&module->pool, module->artifact.name, module->artifact.info,
                              module->artifact.info_length, &module->info);
  if (!error) error = build_kernels(module);
  if (error) {
    tile_module_close(module);
    return error;
  }
  *out = module;
  return NULL;
}

// The whole file; NULL with errno.
static char *read_file(FILE *file, size_t *length) {
  size_t cap = 1 << 16;
  char *bytes = malloc(cap);
  *length = 0;
  while (bytes) {
    *length += fread(bytes + *length, 1, cap - *length, file);
    if (*length < cap) break;
    char *bigger = realloc(bytes, cap *= 2);
    if (!bigger) free(bytes);
    bytes = bigger;
  }
  if (bytes && !ferror(file)) return bytes;
  free(bytes);
  return NULL;
}

TileError *tile_module_open(const char *path, TileModule **out) {
  return module_open_named(path, path, out);
}

TileError *module_open_named(const char *path, const char *name, TileModule **out) {
  *out = NULL;
  FILE *file = fopen(path, "rb");
  if (!file) return error_new(TILE_INVALID, "%s: %s", path, strerror(errno));
  size_t length;
  char *bytes = read_file(file, &length);
  int reason = errno;
  fclose(file);
  if (!bytes) return error_new(TILE_INVALID, "%s: %s", path, strerror(reason));
  TileError *error = tile_module_open_memory(bytes, length, name, out);
  free(bytes);
  return error;
}

void tile_module_close(TileModule *module) {
  if (!module) return;
  if (module->device) module->device->backend->unload(module->device->state, module->code);
  pool_free(&module->pool);
  free(module);
}

// Which variant runs is decided at a launch, sizes before.
static int least_sm_count(const TileModule *module, const TileKernel *kernel) {
  const TileDevice *device = module->device;
  int least = 0;
  for (int i = 0; i < kernel->nvariants; i++) {
    int entry = (int)(kernel->variants[i] - module->info.entries);
    int count = device->backend->sm_count(device->state, module->code, entry);
    if (i == 0 || count < least) least = count;
  }
  return least;
}

TileError *tile_module_load(TileModule *module, TileDevice *device) {
  if (module->device == device) return NULL;
  if (module->device)
    return error_new(TILE_INVALID, "%s is loaded on another device; open it a second time",
                     module->artifact.name);
  TileError *error = device->backend->load(device->state, &module->artifact, &module->info, &module->code);
  if (error) return error;
  module->device = device;
  for (int i = 0; i < module->nkernels; i++)
    module->kernels[i].sm_count = least_sm_count(module, &module->kernels[i]);
  return NULL;
}

int tile_module_kernel_count(const TileModule *module) {
  return module->nkernels;
}

const TileKernel *tile_module_kernel(const TileModule *module, int index) {
  return index >= 0 && index < module->nkernels ? &module->kernels[index] : NULL;
}

static void list_kernels(const TileModule *module, ErrorText *text) {
  for (int i = 0; i < module->nkernels; i++) error_text(text, "%s%s", i ? ", " : "", module->kernels[i].name);
}

TileError *tile_module_find(const TileModule *module, const char *name, const TileKernel **out) {
  *out = NULL;
  for (int i = 0; i < module->nkernels; i++)
    if (name ? strcmp(module->kernels[i].name, name) == 0 : module->nkernels == 1) *out = &module->kernels[i];
  if (*out) return NULL;
  ErrorText text = {0};
  if (name)
    error_text(&text, "%s has no kernel %s; it has ", module->artifact.name, name);
  else
    error_text(&text, "%s has %d kernels, choose one: ", module->artifact.name, module->nkernels);
  list_kernels(module, &text);
  return error_of_text(TILE_INVALID, &text);
}

const char *tile_kernel_name(const TileKernel *kernel) {
  return kernel->name;
}

const char *tile_kernel_arch(const TileKernel *kernel) {
  return kernel->arch;
}

int tile_kernel_param_count(const TileKernel *kernel) {
  return kernel->nparams;
}

const TileParam *tile_kernel_param(const TileKernel *kernel, int index) {
  return index >= 0 && index < kernel->nparams ? &kernel->params[index] : NULL;
}

int tile_kernel_size_count(const TileKernel *kernel) {
  return kernel->nsizes;
}

const char *tile_kernel_size_name(const TileKernel *kernel, int index) {
  return index >= 0 && index < kernel->nsizes ? kernel->sizes[index] : NULL;
}

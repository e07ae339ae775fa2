// Besides A, B and C a kernel may take tensors and scalars, which get constants that leave the product as it is.
#include "bench/subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/dtype.h"
#include "core/module.h"

// ---- Buffers

static TileError *alloc_set(Buffers *buffers, const Problem *problem, int set) {
  TileError *error = gpu_alloc(buffers->gpu, buffers->a_bytes, problem->a->name, &buffers->a[set]);
  if (!error) error = gpu_alloc(buffers->gpu, buffers->b_bytes, problem->b->name, &buffers->b[set]);
  if (!error) error = gpu_alloc(buffers->gpu, buffers->c_bytes, problem->c->name, &buffers->c[set]);
  return error;
}

TileError *buffers_open(const Gpu *gpu, const Problem *problem, Sizes sizes, Buffers *out) {
  *out = (Buffers){.gpu = gpu,
                   .a_elements = (uint64_t)sizes.m * (uint64_t)sizes.k,
                   .b_elements = (uint64_t)sizes.n * (uint64_t)sizes.k,
                   .c_elements = (uint64_t)sizes.m * (uint64_t)sizes.n};
  out->a_bytes = out->a_elements * (uint64_t)tile_dtype_bits(problem->a->dtype) / 8;
  out->b_bytes = out->b_elements * (uint64_t)tile_dtype_bits(problem->b->dtype) / 8;
  out->c_bytes = out->c_elements * (uint64_t)tile_dtype_bits(problem->c->dtype) / 8;
  uint64_t sets = 3 * gpu->l2_bytes / (out->a_bytes + out->b_bytes + out->c_bytes) + 1;
  out->sets = sets > BUFFERS_MOST_SETS ? BUFFERS_MOST_SETS : (int)sets;
  TileError *error = NULL;
  for (int i = 0; i < out->sets && !error; i++) error = alloc_set(out, problem, i);
  if (error) buffers_close(out);
  return error;
}

void buffers_close(Buffers *buffers) {
  CudaAddress *all[] = {buffers->a, buffers->b, buffers->c};
  for (int k = 0; k < 3; k++)
    for (int i = 0; i < buffers->sets; i++)
      if (all[k][i]) buffers->gpu->driver.release(all[k][i]);
  *buffers = (Buffers){0};
}

TileError *buffers_fill(const Buffers *buffers, const Block *a, const Block *b) {
  TileError *error = NULL;
  for (int i = 0; i < buffers->sets && !error; i++) {
    error = block_fill(buffers->gpu, a, buffers->a[i], buffers->a_elements);
    if (!error) error = block_fill(buffers->gpu, b, buffers->b[i], buffers->b_elements);
  }
  return error ? error : gpu_wait(buffers->gpu);
}

TileError *buffers_zero(const Buffers *buffers) {
  const Gpu *gpu = buffers->gpu;
  TileError *error = NULL;
  for (int i = 0; i < buffers->sets && !error; i++) {
    error = gpu_error(gpu, gpu->set_bytes(buffers->a[i], 0, buffers->a_bytes), "cuMemsetD8");
    if (!error) error = gpu_error(gpu, gpu->set_bytes(buffers->b[i], 0, buffers->b_bytes), "cuMemsetD8");
  }
  return error ? error : gpu_wait(gpu);
}

// ---- Opening

void subject_name(const char *file, Subject *out) {
  const char *slash = strrchr(file, '/'), *stem = slash ? slash + 1 : file, *dot = strrchr(stem, '.');
  size_t length = dot && dot != stem ? (size_t)(dot - stem) : strlen(stem), most = sizeof out->name - 1;
  snprintf(out->name, sizeof out->name, "%.*s", (int)(length < most ? length : most), stem);
}

TileError *subject_open(const char *path, const char *name, const char *kernel, const char *layout,
                        Subject *out) {
  memset(out, 0, sizeof *out);
  subject_name(name, out);
  TileError *error = module_open_named(path, name, &out->module);
  if (!error) error = tile_module_find(out->module, kernel, &out->kernel);
  if (!error) error = problem_find(out->kernel, layout, &out->problem);
  if (error) subject_close(out);
  return error;
}

void subject_close(Subject *subject) {
  subject_unbind(subject);
  tile_module_close(subject->module);
  subject->module = NULL;
}

bool subject_alike(const Subject *a, const Subject *b) {
  const Problem *p = &a->problem, *q = &b->problem;
  return p->a->dtype == q->a->dtype && p->b->dtype == q->b->dtype && p->c->dtype == q->c->dtype &&
         p->a_by_columns == q->a_by_columns && p->b_by_columns == q->b_by_columns;
}

// ---- Binding

static TileError *constant_of(const ToolPairs *fills, const char *name, double *out) {
  *out = strncmp(name, "scale", 5) == 0 || strcmp(name, "alpha") == 0;
  for (int i = 0; i < fills->count; i++) {
    const ToolPair *fill = &fills->data[i];
    if (strcmp(fill->name, name) != 0) continue;
    char *end;
    *out = strtod(fill->value, &end);
    if (*end) return error_new(TILE_INVALID, "--fill %s: no number", fill->text);
  }
  return NULL;
}

static bool is_part(const Problem *problem, const TileParam *param) {
  return param == problem->a || param == problem->b || param == problem->c;
}

static TileError *bind_matrix(TileCall *call, const TileParam *param, CudaAddress address, int64_t rows,
                              int64_t columns) {
  int64_t shape[2] = {rows, columns};
  TileTensor tensor = {.address = address, .dtype = param->dtype, .rank = 2, .shape = shape};
  return tile_call_tensor(call, param->name, &tensor);
}

static TileError *bind_product(const Subject *subject, TileCall *call, int set, Sizes s) {
  const Problem *p = &subject->problem;
  const Buffers *buffers = subject->buffers;
  TileError *error = problem_fix(p, call, s);
  if (!error)
    error = p->a_by_columns ? bind_matrix(call, p->a, buffers->a[set], s.k, s.m)
                            : bind_matrix(call, p->a, buffers->a[set], s.m, s.k);
  if (!error)
    error = p->b_by_columns ? bind_matrix(call, p->b, buffers->b[set], s.k, s.n)
                            : bind_matrix(call, p->b, buffers->b[set], s.n, s.k);
  if (!error) error = bind_matrix(call, p->c, buffers->c[set], s.m, s.n);
  return error;
}

// A tensor of one constant, made for the first set and shared by the others.
static TileError *make_extra(Subject *subject, const TileParam *param, const int64_t *shape, double value,
                             CudaAddress *out) {
  uint64_t count = 1, width = (uint64_t)tile_dtype_bits(param->dtype) / 8;
  for (int d = 0; d < param->rank; d++) count *= (uint64_t)shape[d];
  if (width == 0)
    return error_new(TILE_INVALID, "tensor %s of %s cannot be filled", param->name,
                     tile_dtype_name(param->dtype));
  uint8_t *bytes = malloc(count * width + 1);
  uint64_t bits = dtype_encode(param->dtype, value);
  for (uint64_t i = 0; bytes && i < count; i++) memcpy(bytes + i * width, &bits, width);
  const Gpu *gpu = subject->buffers->gpu;
  TileError *error = bytes ? gpu_alloc(gpu, count * width + 1, param->name, out) : error_no_memory();
  if (!error) subject->extras[subject->nextras++] = *out;
  if (!error && count)
    error = gpu_error(gpu, gpu->driver.copy_in(*out, bytes, count * width), "cuMemcpyHtoD");
  free(bytes);
  return error;
}

static TileError *bind_extra(Subject *subject, const TileParam *param, double value) {
  int64_t shape[TILE_MAX_RANK];
  CudaAddress address = 0;
  TileError *error = tile_call_shape(subject->calls[0], param->name, shape);
  if (!error) error = make_extra(subject, param, shape, value, &address);
  TileTensor tensor = {.address = address, .dtype = param->dtype, .rank = param->rank, .shape = shape};
  for (int i = 0; i < subject->ncalls && !error; i++)
    error = tile_call_tensor(subject->calls[i], param->name, &tensor);
  return error;
}

static TileError *bind_scalar(Subject *subject, const TileParam *param, double value) {
  TileError *error = NULL;
  for (int i = 0; i < subject->ncalls && !error; i++)
    error = dtype_is_integer(param->dtype) ? tile_call_int(subject->calls[i], param->name, (int64_t)value)
                                           : tile_call_float(subject->calls[i], param->name, value);
  return error;
}

static TileError *bind_rest(Subject *subject, const ToolPairs *fills) {
  TileError *error = NULL;
  for (int i = 0; i < tile_kernel_param_count(subject->kernel) && !error; i++) {
    const TileParam *param = tile_kernel_param(subject->kernel, i);
    double value;
    if (is_part(&subject->problem, param)) continue;
    if (subject->nextras == SUBJECT_MOST_EXTRAS)
      return error_new(TILE_INVALID, "kernel %s has more than %d tensors besides A, B and C",
                       tile_kernel_name(subject->kernel), SUBJECT_MOST_EXTRAS);
    error = constant_of(fills, param->name, &value);
    if (!error)
      error = param->kind == TILE_PARAM_SCALAR ? bind_scalar(subject, param, value)
                                               : bind_extra(subject, param, value);
  }
  return error;
}

TileError *subject_bind(Subject *subject, TileDevice *device, const Buffers *buffers, Sizes sizes,
                        const ToolPairs *fills) {
  subject_unbind(subject);
  subject->buffers = buffers;
  TileError *error = tile_module_load(subject->module, device);
  for (int i = 0; i < buffers->sets && !error; i++) {
    error = tile_call_new(subject->kernel, &subject->calls[i]);
    if (!error) subject->ncalls = i + 1;
    if (!error) error = bind_product(subject, subject->calls[i], i, sizes);
  }
  if (!error) error = bind_rest(subject, fills);
  TilePlan plan;
  if (!error) error = tile_call_plan(subject->calls[0], &plan);
  return error;
}

void subject_unbind(Subject *subject) {
  for (int i = 0; i < subject->ncalls; i++) tile_call_free(subject->calls[i]);
  for (int i = 0; i < subject->nextras; i++) subject->buffers->gpu->driver.release(subject->extras[i]);
  subject->ncalls = subject->nextras = 0;
}

TileError *subject_launch(void *subject, int set, CudaStream stream) {
  return tile_call_launch(((const Subject *)subject)->calls[set], stream);
}

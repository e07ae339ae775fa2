// The library is column-major: a row-major C (m, n) is its (n, m), so it is asked for the product of B and A. Numbers
// restate the public headers of CUDA 12 and 13.
#include "bench/cublaslt.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/dtype.h"

enum {
  COMPUTE_F32 = 68,
  COMPUTE_F32_FAST_TF32 = 77,
  COMPUTE_I32 = 72,
  CUDA_F32 = 0,
  CUDA_I32 = 10,
  DESC_TRANSPOSE_A = 3,
  DESC_TRANSPOSE_B = 4,
  DESC_FAST_ACCUMULATION = 25,
  PREFERENCE_WORKSPACE = 1,
  TRANSPOSE_NO = 0,
  TRANSPOSE_YES = 1,
};

// What is recommended for the largest GPUs is 32 MiB; more lets algorithms with split sums take part.
static const uint64_t workspace_bytes = UINT64_C(64) << 20;

static const struct {
  TileDType dtype;
  int cuda;
} types[] = {{TILE_F32, 0},  {TILE_TF32, 0},  {TILE_F16, 2},   {TILE_I8, 3},
             {TILE_I32, 10}, {TILE_BF16, 14}, {TILE_E4M3, 28}, {TILE_E5M2, 29}};

static bool find_type(TileDType dtype, int *out) {
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    if (types[i].dtype != dtype) continue;
    *out = types[i].cuda;
    return true;
  }
  return false;
}

// ---- Finding the library

static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};
// Patterns; the first %s is the environment variable's value where one is named.
static const struct {
  const char *variable, *pattern;
} places[] = {
    {"CUDA_HOME", "%s/lib64/libcublasLt.so*"},
    {NULL, "/usr/local/cuda/lib64/libcublasLt.so*"},
    {NULL, "/usr/local/cuda*/targets/*/lib/libcublasLt.so*"},
    {"CONDA_PREFIX", "%s/lib/libcublasLt.so*"},
    {"VIRTUAL_ENV", "%s/lib/python3*/site-packages/nvidia/*/lib/libcublasLt.so*"},
    {"HOME", "%s/.local/lib/python3*/site-packages/nvidia/*/lib/libcublasLt.so*"},
    {NULL, "/usr/local/lib/python3*/*-packages/nvidia/*/lib/libcublasLt.so*"},
    {NULL, "/usr/lib/python3*/*-packages/nvidia/*/lib/libcublasLt.so*"},
};

static bool try_path(CublasLt *lt, const char *path) {
  lt->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (lt->library) snprintf(lt->path, sizeof lt->path, "%s", path);
  return lt->library != NULL;
}

static bool try_place(CublasLt *lt, const char *variable, const char *pattern) {
  char text[PATH_MAX];
  const char *value = variable ? getenv(variable) : "";
  if (!value || strlen(value) + strlen(pattern) >= sizeof text) return false;
  const char *hole = strstr(pattern, "%s");
  if (hole)
    snprintf(text, sizeof text, "%s%s", value, hole + 2);
  else
    snprintf(text, sizeof text, "%s", pattern);
  glob_t found = {0};
  bool opened = false;
  if (glob(text, 0, NULL, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc && !opened; i++) opened = try_path(lt, found.gl_pathv[i]);
  globfree(&found);
  return opened;
}

static TileError *find_library(CublasLt *lt, const char *path) {
  if (path) {
    if (try_path(lt, path)) return NULL;
    return error_new(TILE_UNAVAILABLE, "--cublaslt: %s", dlerror());
  }
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (try_path(lt, names[i])) return NULL;
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    if (try_place(lt, places[i].variable, places[i].pattern)) return NULL;
  return error_new(
      TILE_UNAVAILABLE,
      "no cublasLt to compare with: libcublasLt.so.13 and .12 are neither where the loader looks nor "
      "in $CUDA_HOME, /usr/local/cuda or Python's nvidia packages; --cublaslt PATH says where it "
      "is, --peer none measures the kernel alone");
}

static TileError *load_rows(CublasLt *lt) {
  const char *missing = NULL;
#define CUBLASLT(name, symbol, parameters)                                                                   \
  if (!driver_load(lt->library, symbol, &lt->name) && !missing) missing = symbol;
#include "bench/cublaslt.def"
#undef CUBLASLT
  if (missing) return error_new(TILE_UNAVAILABLE, "%s has no %s", lt->path, missing);
  size_t (*version)(void);
  if (driver_load(lt->library, "cublasLtGetVersion", &version)) lt->version = version();
  return NULL;
}

static TileError *check(const CublasLt *lt, int status, const char *what) {
  if (status == 0) return NULL;
  const char *(*describe)(int);
  bool known = driver_load(lt->library, "cublasLtGetStatusName", &describe);
  return error_new(TILE_UNAVAILABLE, "%s: %s (%d)", what, known ? describe(status) : "failed", status);
}

TileError *cublaslt_open(const char *path, const Gpu *gpu, CublasLt *out) {
  memset(out, 0, sizeof *out);
  out->gpu = gpu;
  TileError *error = find_library(out, path);
  if (!error) error = load_rows(out);
  if (!error) error = check(out, out->create(&out->handle), "cublasLtCreate");
  if (!error) error = gpu_alloc(gpu, workspace_bytes, "the workspace of cublasLt", &out->workspace);
  if (error) cublaslt_close(out);
  return error;
}

void cublaslt_close(CublasLt *lt) {
  if (lt->workspace) lt->gpu->driver.release(lt->workspace);
  if (lt->handle) lt->destroy(lt->handle);
  if (lt->library) dlclose(lt->library);
  memset(lt, 0, sizeof *lt);
}

// ---- A product

static TileError *set_int(const CublasLtProduct *product, int attribute, int32_t value, size_t bytes,
                          const char *what) {
  return check(product->lt, product->lt->desc_set(product->desc, attribute, &value, bytes), what);
}

static TileError *make_desc(CublasLtProduct *product, const Problem *problem) {
  TileDType operand = problem->a->dtype;
  bool narrow = operand == TILE_E4M3 || operand == TILE_E5M2;
  bool wide = operand == TILE_F32 || operand == TILE_TF32;
  int compute = product->integer ? COMPUTE_I32 : wide ? COMPUTE_F32_FAST_TF32 : COMPUTE_F32;
  TileError *error = check(
      product->lt, product->lt->desc_new(&product->desc, compute, product->integer ? CUDA_I32 : CUDA_F32),
      "cublasLtMatmulDescCreate");
  // The library's first operand is our B, whose rows of K are its columns.
  if (!error)
    error = set_int(product, DESC_TRANSPOSE_A, problem->b_by_columns ? TRANSPOSE_NO : TRANSPOSE_YES,
                    sizeof(int32_t), "the transposition of the first operand");
  if (!error)
    error = set_int(product, DESC_TRANSPOSE_B, problem->a_by_columns ? TRANSPOSE_YES : TRANSPOSE_NO,
                    sizeof(int32_t), "the transposition of the second operand");
  // Our kernels let the tensor core sum in its own precision; so does the peer then.
  if (!error && narrow) error = set_int(product, DESC_FAST_ACCUMULATION, 1, 1, "fast accumulation");
  return error;
}

// A row-major matrix of these dimensions.
static TileError *make_layout(const CublasLt *lt, TileDType dtype, int64_t rows, int64_t columns,
                              void **out) {
  int type;
  if (!find_type(dtype, &type))
    return error_new(TILE_UNAVAILABLE, "cublasLt is not asked for elements of %s", tile_dtype_name(dtype));
  return check(lt, lt->layout_new(out, type, (uint64_t)columns, (uint64_t)rows, columns),
               "cublasLtMatrixLayoutCreate");
}

static TileError *find_algorithms(CublasLtProduct *product, int wanted) {
  const CublasLt *lt = product->lt;
  void *preference = NULL;
  TileError *error = check(lt, lt->preference_new(&preference), "cublasLtMatmulPreferenceCreate");
  if (!error)
    error = check(
        lt, lt->preference_set(preference, PREFERENCE_WORKSPACE, &workspace_bytes, sizeof workspace_bytes),
        "the size of the workspace");
  if (!error)
    error = check(lt,
                  lt->heuristics(lt->handle, product->desc, product->first, product->second, product->result,
                                 product->result, preference, wanted, product->algorithms, &product->count),
                  "cublasLtMatmulAlgoGetHeuristic");
  if (preference) lt->preference_free(preference);
  int kept = 0;
  for (int i = 0; !error && i < product->count; i++)
    if (product->algorithms[i].status == 0) product->algorithms[kept++] = product->algorithms[i];
  product->count = kept;
  if (!error && kept == 0) error = error_new(TILE_UNAVAILABLE, "cublasLt has no algorithm");
  return error;
}

TileError *cublaslt_product(const CublasLt *lt, const Problem *problem, Sizes sizes, int wanted,
                            CublasLtProduct *out) {
  memset(out, 0, sizeof *out);
  out->lt = lt;
  out->integer = dtype_is_integer(problem->a->dtype);
  bool across_a = problem->a_by_columns, across_b = problem->b_by_columns;
  TileError *error = make_desc(out, problem);
  if (!error)
    error = make_layout(lt, problem->b->dtype, across_b ? sizes.k : sizes.n, across_b ? sizes.n : sizes.k,
                        &out->first);
  if (!error)
    error = make_layout(lt, problem->a->dtype, across_a ? sizes.k : sizes.m, across_a ? sizes.m : sizes.k,
                        &out->second);
  if (!error) error = make_layout(lt, problem->c->dtype, sizes.m, sizes.n, &out->result);
  if (!error) error = find_algorithms(out, wanted < CUBLASLT_MOST ? wanted : CUBLASLT_MOST);
  if (!error) return NULL;
  cublaslt_product_free(out);
  char operands[PROBLEM_OPERANDS];
  TileError *longer =
      error_new(TILE_UNAVAILABLE, "%s, for %lldx%lldx%lld of %s to %s; --peer none measures without it",
                tile_error_message(error), (long long)sizes.m, (long long)sizes.n, (long long)sizes.k,
                problem_operands(problem, operands), tile_dtype_name(problem->c->dtype));
  tile_error_free(error);
  return longer;
}

void cublaslt_product_free(CublasLtProduct *product) {
  void *layouts[] = {product->first, product->second, product->result};
  for (int i = 0; i < 3; i++)
    if (layouts[i]) product->lt->layout_free(layouts[i]);
  if (product->desc) product->lt->desc_free(product->desc);
  memset(product, 0, sizeof *product);
}

TileError *cublaslt_launch(const CublasLtProduct *product, CudaAddress a, CudaAddress b, CudaAddress c,
                           CudaStream stream) {
  const CublasLt *lt = product->lt;
  static const float one = 1, zero = 0;
  static const int32_t one_integer = 1, zero_integer = 0;
  const void *alpha = product->integer ? (const void *)&one_integer : &one;
  const void *beta = product->integer ? (const void *)&zero_integer : &zero;
  void *result = (void *)(uintptr_t)c;
  int status = lt->multiply(lt->handle, product->desc, alpha, (const void *)(uintptr_t)b, product->first,
                            (const void *)(uintptr_t)a, product->second, beta, result, product->result,
                            result, product->result, &product->algorithms[product->chosen],
                            (void *)(uintptr_t)lt->workspace, workspace_bytes, stream);
  return check(lt, status, "cublasLtMatmul");
}

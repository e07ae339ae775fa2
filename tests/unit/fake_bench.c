// A GPU that only keeps the books, for the whole of tile-bench: libcuda, libcublasLt and NVML in one shared library, under
// three names. Memory is the host's; a launch multiplies the matrices of the three tensor maps that were encoded
// last (A, B, C; shapes say which of A and B is stored the other way, by rows of K in doubt); time is a counter that launches advance by what they would take at a
// rate that only the number of CTAs lowers. FAKE_WRONG=1 spoils the last element of every kernel's result, FAKE_FAULT=1 makes every launch fail.
// FAKE_MAJOR is the first number of the compute capability, else 9. FAKE_E4M3=1: bytes in tensor maps are
// floats, not integers. FAKE_SPLIT=1: cublasLt adds up split sums in a second kernel.
// With FAKE_OLD defined it is a driver that tells nothing about graphs.
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double now, captured;  // seconds
static bool capturing;

// A node of the graph that is being captured, and of a graph when that is done.
typedef struct {
  int type;  // 0 kernel, 1 copy, 2 fill
  const char *function, *kernel;
  unsigned grid[3], block[3], shared;
  unsigned cluster[3];
} Node;

typedef struct {
  double seconds;
  size_t count;
  Node nodes[];
} Graph;

enum { MOST_NODES = 8192 };
static Node nodes[MOST_NODES];
static size_t nnodes;

static void add_node(Node node) {
  if (capturing && nnodes < MOST_NODES) nodes[nnodes++] = node;
}

static const double kernel_rate = 800e12, peer_rates[] = {500e12, 760e12, 640e12};
enum { ALGORITHMS = sizeof peer_rates / sizeof *peer_rates };

static void advance(double seconds) {
  *(capturing ? &captured : &now) += seconds;
}

// ---- Elements; types are numbered as cublasLt does

enum { F32 = 0, F16 = 2, I8 = 3, I32 = 10, BF16 = 14, E4M3 = 28 };

static int width_of(int type) {
  return type == F32 || type == I32 ? 4 : type == F16 || type == BF16 ? 2 : 1;
}

// A float of so many bits of mantissa with this bias, without infinities.
static double decode_small(unsigned bits, int mantissa, int bias, int sign) {
  int exponent = (int)(bits & ((1U << sign) - 1)) >> mantissa;
  double fraction = bits & ((1U << mantissa) - 1);
  double value = exponent ? ldexp(fraction + (1 << mantissa), exponent - bias - mantissa)
                          : ldexp(fraction, 1 - bias - mantissa);
  return bits >> sign & 1 ? -value : value;
}

static double decode(int type, const void *data, uint64_t index) {
  uint32_t bits = 0;
  float value;
  memcpy(&bits, (const char *)data + index * (uint64_t)width_of(type), (size_t)width_of(type));
  if (type == I8) return (int8_t)bits;
  if (type == I32) return (int32_t)bits;
  if (type == F16) return decode_small(bits, 10, 15, 15);
  if (type == E4M3) return decode_small(bits, 3, 7, 7);
  if (type == BF16) bits <<= 16;
  memcpy(&value, &bits, sizeof value);
  return (double)value;
}

// Of the types of results.
static void encode(int type, void *data, uint64_t index, double number) {
  float value = (float)number;
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (type == I32) bits = (uint32_t)(int32_t)number;
  if (type == BF16) bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
  if (type == F16) {
    int exponent;
    double half = frexp(fabs(number), &exponent);
    bits = exponent < -13 ? (uint32_t)nearbyint(ldexp(fabs(number), 24))
                          : ((uint32_t)(exponent + 14) << 10) + (uint32_t)nearbyint(ldexp(half, 11)) - 1024;
    bits |= number < 0 ? 0x8000 : 0;
  }
  memcpy((char *)data + index * (uint64_t)width_of(type), &bits, (size_t)width_of(type));
}

typedef struct {
  void *data;
  int type;
  uint64_t rows, columns;
  bool across;  // an operand that is stored by columns of K
} Matrix;

// All row-major: c (m, n) = a (m, k) b (n, k)ᵀ.
static void multiply(const Matrix *a, const Matrix *b, const Matrix *c, uint64_t k) {
  uint64_t m = c->rows, n = c->columns;
  for (uint64_t i = 0; i < m; i++)
    for (uint64_t j = 0; j < n; j++) {
      double sum = 0;
      for (uint64_t x = 0; x < k; x++)
        sum += decode(a->type, a->data, a->across ? x * m + i : i * k + x) *
               decode(b->type, b->data, b->across ? x * n + j : j * k + x);
      encode(c->type, c->data, i * n + j, sum);
    }
}

static Matrix matrices[3];  // of tensor maps
static int encoded;

static void *pointer(uint64_t address) {
  return (void *)(uintptr_t)address;
}

// ---- libcuda

#define OK(symbol, ...)                                                                                      \
  int symbol(__VA_ARGS__);                                                                                   \
  int symbol(__VA_ARGS__)

OK(cuInit, unsigned flags) {
  return (int)flags;
}
OK(cuDriverGetVersion, int *version) {
  *version = 13000;
  return 0;
}
OK(cuGetErrorName, int result, const char **text) {
  *text = result == 719 ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR_UNKNOWN";
  return 0;
}
OK(cuGetErrorString, int result, const char **text) {
  *text = result == 719 ? "unspecified launch failure" : "unknown";
  return 0;
}
OK(cuDeviceGetCount, int *count) {
  *count = getenv("FAKE_NONE") ? 0 : 1;
  return 0;
}
OK(cuDeviceGet, int *device, int ordinal) {
  *device = ordinal;
  return 0;
}
OK(cuDeviceGetName, char *name, int length, int device) {
  snprintf(name, (size_t)length, "Fake <GPU>");
  return device;
}
OK(cuDeviceGetAttribute, int *value, int attribute, int device) {
  const char *major = getenv("FAKE_MAJOR");
  const struct {
    int attribute, value;
  } rows[] = {{16, 132}, {75, major ? atoi(major) : 9}, {76, 0}, {13, 2000000}, {38, 16384}, {97, 232448}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].attribute == attribute) *value = rows[i].value;
  return device;
}
OK(cuDevicePrimaryCtxRetain, void **context, int device) {
  *context = &now;
  return device;
}
OK(cuDevicePrimaryCtxRelease_v2, int device) {
  return device;
}
OK(cuCtxGetCurrent, void **context) {
  *context = &now;
  return 0;
}
OK(cuCtxGetDevice, int *device) {
  *device = 0;
  return 0;
}
OK(cuCtxPushCurrent_v2, void *context) {
  return context ? 0 : 1;
}
OK(cuCtxPopCurrent_v2, void **context) {
  *context = &now;
  return 0;
}
OK(cuCtxSetCurrent, void *context) {
  return context ? 0 : 1;
}
OK(cuCtxSynchronize, void) {
  return 0;
}
OK(cuDeviceGetPCIBusId, char *text, int length, int device) {
  snprintf(text, (size_t)length, "0000:01:00.0");
  return device;
}
OK(cuMemGetInfo_v2, size_t *unused, size_t *total) {
  *unused = *total = 1 << 30;
  return 0;
}
OK(cuModuleLoadDataEx, void **module, const void *image, unsigned count, int *options, void **values) {
  *module = (void *)(uintptr_t)image;
  return options && values && count ? 0 : 0;
}
OK(cuModuleUnload, void *module) {
  return module ? 0 : 1;
}
// A function is its name.
OK(cuModuleGetFunction, void **function, void *module, const char *name) {
  static char names[64][64];
  size_t i = 0;
  while (i < 63 && names[i][0] && strcmp(names[i], name) != 0) i++;
  snprintf(names[i], sizeof names[i], "%s", name);
  *function = names[i];
  return module ? 0 : 1;
}
OK(cuFuncSetAttribute, void *function, int attribute, int value) {
  return function && attribute >= 0 && value >= 0 ? 0 : 1;
}
OK(cuOccupancyMaxActiveClusters, int *clusters, void *function, const void *launch) {
  *clusters = 132;
  return function && launch ? 0 : 1;
}
OK(cuOccupancyMaxPotentialClusterSize, int *size, void *function, const void *launch) {
  *size = 8;
  return function && launch ? 0 : 1;
}
OK(cuMemAlloc_v2, uint64_t *address, size_t bytes) {
  void *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
  *address = (uint64_t)(uintptr_t)memory;
  return memory ? 0 : 2;
}
OK(cuMemFree_v2, uint64_t address) {
  free(pointer(address));
  return 0;
}
OK(cuMemcpyHtoD_v2, uint64_t to, const void *from, size_t bytes) {
  memcpy(pointer(to), from, bytes);
  return 0;
}
OK(cuMemcpyDtoH_v2, void *to, uint64_t from, size_t bytes) {
  memcpy(to, pointer(from), bytes);
  return 0;
}
OK(cuMemcpyDtoD_v2, uint64_t to, uint64_t from, size_t bytes) {
  memcpy(pointer(to), pointer(from), bytes);
  return 0;
}
OK(cuMemsetD8_v2, uint64_t address, unsigned char byte, size_t count) {
  memset(pointer(address), byte, count);
  return 0;
}
OK(cuTensorMapEncodeTiled, void *map, int type, uint32_t rank, void *address, const uint64_t *size,
   const uint64_t *stride, const uint32_t *box, const uint32_t *element_stride, int interleave, int swizzle,
   int l2_promotion, int fill) {
  // CUtensorMapDataType; those that no kernel of the tests has are bytes.
  const int types[16] = {
      [0] = getenv("FAKE_E4M3") ? E4M3 : I8, [3] = I32, [6] = F16, [7] = F32, [9] = BF16, [11] = F32};
  matrices[encoded++ % 3] =
      (Matrix){.data = address, .type = types[type & 15], .rows = size[1], .columns = size[0]};
  memset(map, 0, 128);
  bool plain = stride && box && element_stride && !interleave && !fill && type >= 0 && l2_promotion >= 0;
  return rank == 2 && plain && swizzle >= 0 ? 0 : 1;
}
OK(cuLaunchKernelEx, const void *launch, void *function, void **params, void **extra) {
  Matrix *a = &matrices[0], *b = &matrices[1], *c = &matrices[2];
  uint64_t m = c->rows, n = c->columns;
  a->across = a->rows != m;
  uint64_t k = a->across ? a->rows : a->columns;
  b->across = b->columns != k;
  if (!launch || !function || !params || extra || encoded % 3) return 1;
  if (getenv("FAKE_FAULT")) return 719;
  uint32_t shape[7];
  memcpy(shape, launch, sizeof shape);
  double rate = kernel_rate * (1 - 0.01 * (shape[0] * shape[1] - 1));
  Node node = {.function = function, .shared = shape[6]};
  memcpy(node.grid, shape, sizeof node.grid);
  memcpy(node.block, shape + 3, sizeof node.block);
  add_node(node);
  advance(2.0 * (double)m * (double)n * (double)k / rate);
  if (capturing) return 0;
  multiply(a, b, c, k);
  if (getenv("FAKE_WRONG")) encode(c->type, c->data, m * n - 1, 1e6);
  return 0;
}
OK(cuStreamSynchronize, void *stream) {
  return stream ? 0 : 0;
}
OK(cuStreamCreate, void **stream, unsigned flags) {
  *stream = &captured;
  return flags == 1 ? 0 : 1;
}
OK(cuStreamDestroy_v2, void *stream) {
  return stream ? 0 : 1;
}
OK(cuStreamBeginCapture_v2, void *stream, int mode) {
  captured = 0;
  nnodes = 0;
  capturing = true;
  return stream && mode == 2 ? 0 : 1;
}
OK(cuStreamEndCapture, void *stream, void **out) {
  Graph *graph = malloc(sizeof *graph + nnodes * sizeof *nodes);
  if (!graph) return 2;
  graph->seconds = captured;
  graph->count = nnodes;
  memcpy(graph->nodes, nodes, nnodes * sizeof *nodes);
  *out = graph;
  capturing = false;
  return stream ? 0 : 1;
}
OK(cuGraphInstantiateWithFlags, void **exec, void *graph, unsigned long long flags) {
  double *seconds = malloc(sizeof *seconds);
  if (!seconds) return 2;
  *seconds = ((const Graph *)graph)->seconds;
  *exec = seconds;
  return flags == 0 ? 0 : 1;
}
#ifndef FAKE_OLD
OK(cuGraphGetNodes, void *graph, void **out, size_t *count) {
  Graph *from = graph;
  for (size_t i = 0; out && i < *count && i < from->count; i++) out[i] = &from->nodes[i];
  *count = from->count;
  return 0;
}
OK(cuGraphNodeGetType, void *node, int *type) {
  *type = ((const Node *)node)->type;
  return 0;
}
OK(cuGraphKernelNodeGetParams_v2, void *node, void *out) {
  const Node *from = node;
  struct {
    const void *function;
    unsigned shape[7];
    void **parameters, **extra;
    const void *kernel, *context;
  } params = {.function = from->function, .kernel = from->kernel};
  memcpy(params.shape, from->grid, sizeof from->grid);
  memcpy(params.shape + 3, from->block, sizeof from->block);
  params.shape[6] = from->shared;
  memcpy(out, &params, sizeof params);
  return from->type == 0 ? 0 : 1;
}
OK(cuGraphKernelNodeGetAttribute, void *node, int attribute, void *out) {
  memset(out, 0, 64);
  memcpy(out, ((const Node *)node)->cluster, sizeof((const Node *)node)->cluster);
  return attribute == 4 ? 0 : 1;
}
OK(cuFuncGetName, const char **name, void *function) {
  *name = function;
  return function ? 0 : 1;
}
OK(cuKernelGetName, const char **name, void *kernel) {
  *name = kernel;
  return kernel ? 0 : 1;
}
#endif
OK(cuGraphLaunch, void *exec, void *stream) {
  double seconds;
  memcpy(&seconds, exec, sizeof seconds);
  advance(seconds);
  return stream ? 0 : 1;
}
OK(cuGraphDestroy, void *graph) {
  free(graph);
  return 0;
}
OK(cuGraphExecDestroy, void *exec) {
  free(exec);
  return 0;
}
OK(cuEventCreate, void **event, unsigned flags) {
  *event = calloc(1, sizeof(double));
  return *event && flags == 0 ? 0 : 2;
}
OK(cuEventRecord, void *event, void *stream) {
  memcpy(event, &now, sizeof now);
  return stream ? 0 : 1;
}
OK(cuEventSynchronize, void *event) {
  return event ? 0 : 1;
}
OK(cuEventQuery, void *event) {
  return event ? 0 : 1;
}
OK(cuEventElapsedTime, float *milliseconds, void *start, void *end) {
  double from, to;
  memcpy(&from, start, sizeof from);
  memcpy(&to, end, sizeof to);
  *milliseconds = (float)(1e3 * (to - from));
  return 0;
}
OK(cuEventDestroy_v2, void *event) {
  free(event);
  return 0;
}

// ---- libcublasLt

// A description of a product, or the layout of a matrix, column-major.
typedef struct {
  int type, scale, transposed[2];
  bool fast;
  uint64_t rows, columns;
} Thing;

enum { NOT_SUPPORTED = 15 };

static void *thing(int type, uint64_t rows, uint64_t columns) {
  Thing *made = calloc(1, sizeof *made);
  if (made) *made = (Thing){.type = type, .rows = rows, .columns = columns};
  return made;
}

OK(cublasLtCreate, void **handle) {
  *handle = &now;
  return getenv("FAKE_REFUSES") ? 1 : 0;
}
OK(cublasLtDestroy, void *handle) {
  return handle ? 0 : 1;
}
size_t cublasLtGetVersion(void);
size_t cublasLtGetVersion(void) {
  return 130000;
}
OK(cublasLtMatmulDescCreate, void **desc, int compute_type, int scale_type) {
  Thing *made = thing(compute_type, 0, 0);
  if (made) made->scale = scale_type;
  *desc = made;
  return made ? 0 : 3;
}
OK(cublasLtMatmulDescDestroy, void *desc) {
  free(desc);
  return 0;
}
OK(cublasLtMatmulDescSetAttribute, void *desc, int attribute, const void *value, size_t bytes) {
  Thing *product = desc;
  if (attribute == 25 && bytes == 1) return product->fast = true, 0;
  if (bytes != 4 || attribute < 3 || attribute > 4) return 7;
  memcpy(&product->transposed[attribute - 3], value, bytes);
  return 0;
}
OK(cublasLtMatrixLayoutCreate, void **layout, int type, uint64_t rows, uint64_t columns, int64_t pitch) {
  *layout = thing(type, rows, columns);
  return pitch == (int64_t)rows ? 0 : 7;
}
OK(cublasLtMatrixLayoutDestroy, void *layout) {
  free(layout);
  return 0;
}
OK(cublasLtMatmulPreferenceCreate, void **preference) {
  *preference = thing(0, 0, 0);
  return 0;
}
OK(cublasLtMatmulPreferenceDestroy, void *preference) {
  free(preference);
  return 0;
}
OK(cublasLtMatmulPreferenceSetAttribute, void *preference, int attribute, const void *value, size_t bytes) {
  return preference && attribute == 1 && value && bytes == 8 ? 0 : 1;
}
// What the library's manual lists, of what tile-bench can ask for: types that go together, shapes that fit, floats of 8
// bits only by rows of K, and with fast sums as the kernels have them.
static bool supported(const Thing *product, const Thing *first, const Thing *second, const Thing *result) {
  static const struct {
    int compute, scale, operand, results[3];
    bool by_rows;
  } rows[] = {{68, 0, BF16, {BF16, F32, BF16}, false},
              {68, 0, F16, {F16, F32, F16}, false},
              {77, 0, F32, {F32, F32, F32}, false},
              {72, 10, I8, {I32, I32, I32}, false},
              {68, 0, E4M3, {BF16, F32, F16}, true}};
  bool first_across = !product->transposed[0], second_across = product->transposed[1];
  uint64_t n = first_across ? first->rows : first->columns, k = first_across ? first->columns : first->rows;
  uint64_t m = second_across ? second->rows : second->columns;
  if ((second_across ? second->columns : second->rows) != k) return false;
  if (result->rows != n || result->columns != m) return false;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const int *results = rows[i].results;
    bool known = result->type == results[0] || result->type == results[1] || result->type == results[2];
    if (product->type == rows[i].compute && product->scale == rows[i].scale && known &&
        first->type == rows[i].operand && second->type == rows[i].operand &&
        (!rows[i].by_rows || (!first_across && !second_across)) && product->fast == rows[i].by_rows)
      return true;
  }
  return false;
}

OK(cublasLtMatmulAlgoGetHeuristic, void *handle, void *desc, void *a, void *b, void *c, void *d,
   void *preference, int wanted, void *results, int *count) {
  *count = 0;
  if (!supported(desc, a, b, d)) return NOT_SUPPORTED;
  *count = wanted < ALGORITHMS ? wanted : ALGORITHMS;
  for (int i = 0; i < *count; i++) {
    memset((char *)results + 96 * i, 0, 96);
    memcpy((char *)results + 96 * i, &(uint64_t){(uint64_t)i}, 8);
  }
  return handle && c == d && preference ? 0 : 1;
}
// What cublasLt launches: it fills its workspace before the product, or adds split sums up after it.
static void add_peer_nodes(const int *transposed) {
  static const char *const names[2][2] = {
      {"nvjet_sm90_tst_176x128_64x5_1x2_h_bz_NNN", "nvjet_sm90_tst_176x128_64x5_1x2_h_bz_NTN"},
      {"nvjet_sm90_tst_176x128_64x5_1x2_h_bz_TNN", "nvjet_sm90_tst_176x128_64x5_1x2_h_bz_TTN"}};
  const Node sum = {.function = "splitKreduce_kernel", .grid = {64, 1, 1}, .block = {32, 16, 1}};
  const Node product = {.kernel = names[transposed[0]][transposed[1]],
                        .grid = {2, 66, 1},
                        .block = {384, 1, 1},
                        .shared = 206 * 1024,
                        .cluster = {2, 1, 1}};
  bool split = getenv("FAKE_SPLIT") != NULL;
  if (!split) add_node((Node){.type = 2});
  if (split) add_node(sum);  // the driver lists nodes in any order
  add_node(product);
  if (split) add_node(sum);
}

// Column-major: op(A) op(B) is (n, m), which is the row-major C (m, n); so A here is the kernels' B.
OK(cublasLtMatmul, void *handle, void *desc, const void *alpha, const void *a, void *a_layout, const void *b,
   void *b_layout, const void *beta, const void *c, void *c_layout, void *d, void *d_layout,
   const void *algorithm, void *workspace, size_t workspace_bytes, void *stream) {
  const Thing *product = desc, *first = a_layout, *second = b_layout, *result = d_layout;
  uint64_t index;
  memcpy(&index, algorithm, sizeof index);
  bool integer = product->scale == I32;
  double one = integer ? *(const int32_t *)alpha : (double)*(const float *)alpha;
  double zero = integer ? *(const int32_t *)beta : (double)*(const float *)beta;
  bool right = one == 1 && zero == 0 && c == d && c_layout == d_layout;
  if (!handle || !right || !workspace || !workspace_bytes || !stream || index >= ALGORITHMS) return 1;
  if (!supported(product, first, second, result)) return NOT_SUPPORTED;
  Matrix ours[3] = {{.data = (void *)(uintptr_t)b, .type = second->type, .across = product->transposed[1]},
                    {.data = (void *)(uintptr_t)a, .type = first->type, .across = !product->transposed[0]},
                    {.data = d, .type = result->type, .rows = result->columns, .columns = result->rows}};
  uint64_t k = ours[1].across ? first->columns : first->rows;
  advance(2.0 * (double)result->rows * (double)result->columns * (double)k / peer_rates[index]);
  add_peer_nodes(product->transposed);
  if (!capturing) multiply(&ours[0], &ours[1], &ours[2], k);
  return 0;
}
const char *cublasLtGetStatusName(int status);
const char *cublasLtGetStatusName(int status) {
  return status == NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED" : "failed";
}

// ---- NVML

OK(nvmlInit_v2, void) {
  return 0;
}
OK(nvmlShutdown, void) {
  return 0;
}
OK(nvmlDeviceGetHandleByPciBusId_v2, const char *bus, void **device) {
  *device = &now;
  return strcmp(bus, "0000:01:00.0");
}
OK(nvmlSystemGetDriverVersion, char *text, unsigned length) {
  snprintf(text, length, "1.2.3");
  return 0;
}
OK(nvmlDeviceGetClockInfo, void *device, int kind, unsigned *mhz) {
  *mhz = kind == 1 ? 1000 : 3000;
  return device ? 0 : 1;
}
OK(nvmlDeviceGetPowerUsage, void *device, unsigned *milliwatts) {
  *milliwatts = 600000;
  return device ? 0 : 1;
}
OK(nvmlDeviceGetEnforcedPowerLimit, void *device, unsigned *milliwatts) {
  *milliwatts = 700000;
  return device ? 0 : 1;
}
OK(nvmlDeviceGetTemperature, void *device, int sensor, unsigned *celsius) {
  *celsius = 50;
  return device && sensor == 0 ? 0 : 1;
}
OK(nvmlDeviceGetCurrentClocksThrottleReasons, void *device, unsigned long long *reasons) {
  *reasons = 4;
  return device ? 0 : 1;
}

// What each kernel must compute, in double precision and without any cleverness. Exact kernels get small whole
// numbers, whose sums every device has exactly; the others are compared within a tolerance.
#include "case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- Products

// C[b, m, n] = sum of A[b, m, k] B[b, n, k], the operands' dimensions by name: "K" says which is k.
static bool is_depth_first(const Array *array) {
  return strcmp(array->param->shape[array->param->rank - 2], "K") == 0;
}

// One matrix as [row, k], compact; `rows` and `depth` are what it has.
static double *by_rows(const Array *array, int64_t batch, int64_t rows, int64_t depth) {
  double *out = calloc((size_t)(rows * depth) + 1, sizeof *out);
  const double *in = array->value + batch * rows * depth;
  bool turned = is_depth_first(array);
  for (int64_t r = 0; out && r < rows; r++)
    for (int64_t k = 0; k < depth; k++) out[r * depth + k] = turned ? in[k * rows + r] : in[r * depth + k];
  return out;
}

static void multiply(const double *a, const double *b, double *c, int64_t m, int64_t n, int64_t k) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      double sum[4] = {0};
      for (int64_t l = 0; l < k; l++) sum[l % 4] += a[i * k + l] * b[j * k + l];
      c[i * n + j] = sum[0] + sum[1] + sum[2] + sum[3];
    }
}

static Array *find(Case *c, const char *name) {
  for (int i = 0; i < c->narrays; i++)
    if (strcmp(c->array[i].param->name, name) == 0) return &c->array[i];
  return NULL;
}

static void product(Case *c) {
  int64_t m = case_size(c, "M"), n = case_size(c, "N"), k = case_size(c, "K");
  Array *a = find(c, "A"), *b = find(c, "B"), *out = find(c, "C");
  int64_t batches = out->param->rank == 3 ? case_size(c, "batch") : 1;
  for (int64_t batch = 0; batch < batches; batch++) {
    double *rows = by_rows(a, batch, m, k), *columns = by_rows(b, batch, n, k);
    if (rows && columns) multiply(rows, columns, out->value + batch * m * n, m, n, k);
    free(rows);
    free(columns);
  }
}

static void gemm_epilogue(Case *c) {
  product(c);
  int64_t n = case_size(c, "N");
  Array *out = find(c, "C"), *bias = find(c, "bias");
  for (int64_t i = 0; i < out->count; i++) {
    double x = out->value[i] + bias->value[i % n];
    out->value[i] = 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
  }
}

static void gemm_fp8(Case *c) {
  product(c);
  int64_t n = case_size(c, "N");
  Array *out = find(c, "C"), *rows = find(c, "scale_A"), *columns = find(c, "scale_B");
  for (int64_t i = 0; i < out->count; i++) out->value[i] *= rows->value[i / n] * columns->value[i % n];
}

static void gemm_ts(Case *c) {
  product(c);
  int64_t n = case_size(c, "N");
  Array *out = find(c, "C"), *rows = find(c, "scale");
  for (int64_t i = 0; i < out->count; i++) out->value[i] *= rows->value[i / n];
}

// ---- Element by element

static void same(Case *c) {
  Array *in = find(c, "A"), *out = find(c, "B");
  for (int64_t i = 0; i < out->count; i++) out->value[i] = in->value[i];
}

static void transpose(Case *c) {
  Array *in = find(c, "A"), *out = find(c, "B");
  int64_t m = in->shape[0], n = in->shape[1];
  for (int64_t i = 0; i < out->count; i++) out->value[i] = in->value[i % m * n + i / m];
}

static void vector_add(Case *c) {
  Array *a = find(c, "A"), *b = find(c, "B"), *out = find(c, "C");
  for (int64_t i = 0; i < out->count; i++) out->value[i] = a->value[i] + b->value[i];
}

static void histogram(Case *c) {
  Array *values = find(c, "values"), *counts = find(c, "counts");
  for (int64_t i = 0; i < values->count; i++)
    if (values->value[i] >= 0 && values->value[i] < (double)counts->count)
      counts->value[(int64_t)values->value[i]] += 1;
}

// ---- Row by row

static void softmax(Case *c) {
  Array *in = find(c, "A"), *out = find(c, "B");
  int64_t n = in->shape[1];
  for (int64_t row = 0; row < in->shape[0] && n; row++) {
    const double *x = in->value + row * n;
    double most = x[0], sum = 0;
    for (int64_t j = 0; j < n; j++) most = fmax(most, x[j]);
    for (int64_t j = 0; j < n; j++) sum += exp(x[j] - most);
    for (int64_t j = 0; j < n; j++) out->value[row * n + j] = exp(x[j] - most) / sum;
  }
}

static void layernorm(Case *c) {
  Array *in = find(c, "A"), *gamma = find(c, "gamma"), *beta = find(c, "beta"), *out = find(c, "B");
  int64_t n = in->shape[1];
  for (int64_t row = 0; row < in->shape[0]; row++) {
    const double *x = in->value + row * n;
    double mean = 0, variance = 0;
    for (int64_t j = 0; j < n; j++) mean += x[j] / (double)n;
    for (int64_t j = 0; j < n; j++) variance += (x[j] - mean) * (x[j] - mean) / (double)n;
    for (int64_t j = 0; j < n; j++)
      out->value[row * n + j] = (x[j] - mean) / sqrt(variance + 1e-5) * gamma->value[j] + beta->value[j];
  }
}

static void nothing(Case *c) {
  (void)c;
}

static const Spec specs[] = {
    {"product", FILL_INTEGERS, 0, 0, product, true, false},
    {"gemm", FILL_INTEGERS, 0, 0, product, false, false},
    {"gemm_batched", FILL_INTEGERS, 0, 0, product, false, false},
    {"gemm_async", FILL_INTEGERS, 0, 0, product, false, false},
    {"gemm_int8", FILL_INTEGERS, 0, 0, product, false, false},
    {"gemm_persistent", FILL_INTEGERS, 0, 0, product, false, true},
    {"gemm_tiles", FILL_INTEGERS, 0, 0, product, false, false},
    {"gemm_ws", FILL_INTEGERS, 0, 0, product, false, true},
    {"gemm_fp8", FILL_INTEGERS, 0, 0, gemm_fp8, false, false},
    {"gemm_ts", FILL_INTEGERS, 0, 0, gemm_ts, false, false},
    {"gemm_epilogue", FILL_REALS, 1e-2, 2e-2, gemm_epilogue, false, false},
    {"copy", FILL_INTEGERS, 0, 0, same, false, false},
    {"cast", FILL_REALS, 0, 0, same, false, false},
    {"transpose_tiles", FILL_INTEGERS, 0, 0, transpose, false, false},
    {"vector_add", FILL_INTEGERS, 0, 0, vector_add, false, false},
    {"histogram", FILL_POSITIVE, 0, 0, histogram, false, false},
    {"softmax", FILL_REALS, 1e-4, 1e-6, softmax, false, false},
    {"layernorm", FILL_REALS, 1e-2, 1e-2, layernorm, false, false},
    {"asserts", FILL_INTEGERS, 0, 0, nothing, false, false},
};

const Spec *spec_find(const char *kernel) {
  for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
    if (strcmp(specs[i].kernel, kernel) == 0) return &specs[i];
  return NULL;
}

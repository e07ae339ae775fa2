// A large matrix is made on the GPU from a block of a million elements by doubling copies, which takes milliseconds
// where making each element anew would take seconds.
#include "bench/data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/stats.h"
#include "core/dtype.h"

enum { BLOCK_ELEMENTS = 1000003, SAMPLES = 512 };

static void set_element(Block *block, uint64_t index, double value) {
  int bytes = tile_dtype_bits(block->dtype) / 8;
  uint64_t bits = dtype_encode(block->dtype, value);
  memcpy(block->bytes + index * (uint64_t)bytes, &bits, (size_t)bytes);
  block->values[index] = (float)dtype_decode(block->dtype, bits);
}

TileError *block_make(TileDType dtype, uint64_t seed, Block *out) {
  *out = (Block){dtype, BLOCK_ELEMENTS, NULL, NULL};
  out->bytes = malloc(out->count * (uint64_t)tile_dtype_bits(dtype) / 8);
  out->values = malloc(out->count * sizeof *out->values);
  if (!out->bytes || !out->values) {
    block_free(out);
    return error_no_memory();
  }
  Random random = {seed};
  for (uint64_t i = 0; i < out->count; i++)
    set_element(out, i,
                dtype_is_integer(dtype) ? (double)random_below(&random, 17) - 8 : random_normal(&random));
  return NULL;
}

void block_free(Block *block) {
  free(block->bytes);
  free(block->values);
  *block = (Block){0};
}

TileError *block_fill(const Gpu *gpu, const Block *block, CudaAddress address, uint64_t elements) {
  uint64_t width = (uint64_t)tile_dtype_bits(block->dtype) / 8;
  uint64_t total = elements * width, done = block->count * width;
  if (done > total) done = total;
  TileError *error = gpu_error(gpu, gpu->driver.copy_in(address, block->bytes, done), "cuMemcpyHtoD");
  while (!error && done < total) {
    uint64_t more = done < total - done ? done : total - done;
    error = gpu_error(gpu, gpu->copy_within(address + done, address, more), "cuMemcpyDtoD");
    done += more;
  }
  return error;
}

// ---- Comparing

// Values of all 8- and 16-bit patterns; NULL for wider types, and without memory.
static float *value_table(TileDType dtype) {
  int bits = tile_dtype_bits(dtype);
  if (bits > 16) return NULL;
  float *table = malloc(sizeof *table << bits);
  for (uint64_t i = 0; table && i < UINT64_C(1) << bits; i++) table[i] = (float)dtype_decode(dtype, i);
  return table;
}

static double value_at(TileDType dtype, const float *table, const uint8_t *data, uint64_t index) {
  int bytes = tile_dtype_bits(dtype) / 8;
  uint64_t bits = 0;
  memcpy(&bits, data + index * (uint64_t)bytes, (size_t)bytes);
  return table ? (double)table[bits] : dtype_decode(dtype, bits);
}

// Two results that are rounded from nearly the same number are at most a unit in the last place apart.
static double rounding(TileDType dtype) {
  switch (tile_dtype_bits(dtype)) {
  case 8:
    return dtype_is_integer(dtype) ? 0 : 0.25;
  case 16:
    return dtype == TILE_BF16 ? 0x1p-7 : 0x1p-10;
  default:
    return 0;
  }
}

double data_tolerance(TileDType operand) {
  if (dtype_is_integer(operand)) return 0;
  return tile_dtype_bits(operand) <= 8 ? 0.05 : 0.02;
}

typedef struct {
  double allowed, relative;  // absolute, and by the value
  double errors, squares;    // sums
  Difference *out;
} Comparison;

static void compare_one(Comparison *comparison, uint64_t index, double got, double want) {
  Difference *out = comparison->out;
  double error = fabs(got - want);
  out->elements++;
  if (!(error <= comparison->allowed + comparison->relative * fabs(want)) && out->wrong++ == 0) {
    out->first = index;
    out->got = got;
    out->want = want;
  }
  comparison->errors += error * error;
  comparison->squares += want * want;
}

static void finish(Comparison *comparison) {
  comparison->out->relative =
      comparison->squares > 0 ? sqrt(comparison->errors / comparison->squares) : sqrt(comparison->errors);
}

bool data_compare(TileDType dtype, const uint8_t *got, const uint8_t *want, uint64_t elements, double loose,
                  Difference *out) {
  *out = (Difference){0};
  float *table = value_table(dtype);
  if (!table && tile_dtype_bits(dtype) <= 16) return false;
  double squares = 0;
  for (uint64_t i = 0; i < elements; i++) {
    double value = value_at(dtype, table, want, i);
    squares += value * value;
  }
  Comparison comparison = {.allowed = elements ? loose * sqrt(squares / (double)elements) : 0,
                           .relative = loose > 0 ? rounding(dtype) : 0,
                           .out = out};
  for (uint64_t i = 0; i < elements; i++)
    compare_one(&comparison, i, value_at(dtype, table, got, i), value_at(dtype, table, want, i));
  finish(&comparison);
  free(table);
  return true;
}

static double element_of(const Block *block, bool by_columns, int64_t row, int64_t k, int64_t rows,
                         int64_t depth) {
  uint64_t index = by_columns ? (uint64_t)k * (uint64_t)rows + (uint64_t)row
                              : (uint64_t)row * (uint64_t)depth + (uint64_t)k;
  return (double)block->values[index % block->count];
}

static double sum_of(const Problem *problem, Sizes sizes, const Block *a, const Block *b, int64_t i,
                     int64_t j) {
  double sum = 0;
  for (int64_t k = 0; k < sizes.k; k++)
    sum += element_of(a, problem->a_by_columns, i, k, sizes.m, sizes.k) *
           element_of(b, problem->b_by_columns, j, k, sizes.n, sizes.k);
  return sum;
}

void data_check_samples(const Problem *problem, Sizes sizes, const Block *a, const Block *b,
                        const uint8_t *result, uint64_t seed, Difference *out) {
  *out = (Difference){0};
  TileDType dtype = problem->c->dtype;
  double loose = data_tolerance(a->dtype);
  // Products of two numbers of deviation 1, summed over k.
  Comparison comparison = {
      .allowed = loose * sqrt((double)sizes.k), .relative = loose > 0 ? rounding(dtype) : 0, .out = out};
  Random random = {seed};
  for (int s = 0; s < SAMPLES; s++) {
    int64_t i = random_below(&random, (int)sizes.m), j = random_below(&random, (int)sizes.n);
    uint64_t index = (uint64_t)i * (uint64_t)sizes.n + (uint64_t)j;
    compare_one(&comparison, index, value_at(dtype, NULL, result, index), sum_of(problem, sizes, a, b, i, j));
  }
  finish(&comparison);
}

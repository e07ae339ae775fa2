// num_mma works on 16 columns at a time, B transposed so that a column block is one vector: first the largest
// exponent over K, then each product scaled so that one unit is 2^(E-F) and truncated to an integer. Products
// are exact in f32 and 16 of them fit 32 bits only in groups of 8. Elements whose exponents leave the range
// where f32 arithmetic is exact, and NaN or infinity, are redone by num_mma_element.
#include "num/accumulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "num/num.h"

enum { BLOCK = 16, GROUP = 8 };

typedef int16_t Short16 __attribute__((vector_size(32)));
typedef int16_t Short8 __attribute__((vector_size(16)));
typedef float Float8 __attribute__((vector_size(32)));
typedef int32_t Int8 __attribute__((vector_size(32)));
typedef uint32_t Unsigned8 __attribute__((vector_size(32)));
typedef int32_t Int4 __attribute__((vector_size(16)));
typedef int64_t Long4 __attribute__((vector_size(32)));
typedef double Double4 __attribute__((vector_size(32)));
typedef float Float4 __attribute__((vector_size(16)));

// GCC picks the widest version at load time; sanitizer builds cannot run code that early.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif
// Inlined into each version of its caller.
#define INLINE static inline __attribute__((always_inline))

static const NumFormat *result_format(const NumSum *sum) {
  return sum->f16_result ? &num_f16 : NULL;
}

static float accumulator(const NumSum *sum, uint32_t d) {
  if (!sum->read_d) return 0;
  return sum->f16_result ? num_f16_to_f32((uint16_t)d) : num_f32_from_bits(d);
}

static int accumulator_exponent(const NumSum *sum, float value) {
  if (value == 0) return NUM_EXPONENT_ZERO;
  int least = sum->f16_result ? -14 : -126, exponent = (int)(num_f32_bits(value) >> 23 & 0xFF) - 127;
  return (exponent > least ? exponent : least) - sum->d_scale_down;
}

static double truncate_f32(double value, int fraction_bits) {
  if (value == 0) return 0;
  int exponent = ilogb(value);
  if (exponent < -126) exponent = -126;
  return ldexp(trunc(ldexp(value, fraction_bits - exponent)), exponent - fraction_bits);
}

static uint32_t special_result(const NumSum *sum, double value) {
  if (isnan(value)) return sum->f16_result ? 0x7FFF : 0x7FFFFFFF;
  if (sum->f16_result) return value > 0 ? 0x7C00 : 0xFC00;
  return value > 0 ? 0x7F800000 : 0xFF800000;
}

static uint32_t finish(const NumSum *sum, double value) {
  const NumFormat *format = result_format(sum);
  if (format) {
    uint32_t code = num_encode(format, value, NUM_RN, false);
    return code == 0x8000 ? 0 : code;
  }
  float result = (float)truncate_f32(value, sum->result_bits);
  return result == 0 ? 0 : num_f32_bits(result);
}

uint32_t num_mma_element(const NumTile *a, int m, const NumTile *b, int n, const NumSum *sum, uint32_t d) {
  const float *av = a->value + m * NUM_TILE_MAX_K, *bv = b->value + n * NUM_TILE_MAX_K;
  const int16_t *ae = a->exponent + m * NUM_TILE_MAX_K, *be = b->exponent + n * NUM_TILE_MAX_K;
  float acc = accumulator(sum, d);
  int scale = a->scale[m] + b->scale[n], acc_exponent = accumulator_exponent(sum, acc),
      largest = acc_exponent;
  double plain = (double)acc;
  for (int k = 0; k < a->k; k++) {
    plain += (double)av[k] * bv[k];
    if (ae[k] + be[k] + scale > largest) largest = ae[k] + be[k] + scale;
  }
  if (a->scale_is_nan[m] || b->scale_is_nan[n]) plain = NAN;
  if (!isfinite(plain)) return special_result(sum, plain);
  // Every term is below 2^(F+2) once scaled, so doubles hold the sum exactly.
  double total = trunc(ldexp((double)acc, sum->window - largest - sum->d_scale_down));
  for (int k = 0; k < a->k; k++) total += trunc(ldexp((double)av[k] * bv[k], sum->window - largest + scale));
  return finish(sum, ldexp(total, largest - sum->window));
}

// B's values and exponents, K x N in column blocks.
typedef struct {
  Float8 value[NUM_TILE_MAX_K][2];
  Short16 exponent[NUM_TILE_MAX_K];
  Int8 scale[2];
  bool nonzero[BLOCK], scale_is_nan[BLOCK], any_scale_is_nan;
} Columns;

static void transpose(const NumTile *b, int first, Columns *out) {
  out->any_scale_is_nan = false;
  for (int j = 0; j < BLOCK; j++) {
    const float *value = b->value + (first + j) * NUM_TILE_MAX_K;
    const int16_t *exponent = b->exponent + (first + j) * NUM_TILE_MAX_K;
    bool inside = first + j < b->rows, nonzero = false;
    for (int k = 0; k < b->k; k++) {
      out->value[k][j / 8][j % 8] = inside ? value[k] : 0;
      out->exponent[k][j] = inside ? exponent[k] : NUM_EXPONENT_ZERO_FACTOR;
      nonzero |= inside && value[k] != 0;
    }
    out->scale[j / 8][j % 8] = inside ? b->scale[first + j] : 0;
    out->scale_is_nan[j] = inside && b->scale_is_nan[first + j];
    out->any_scale_is_nan |= out->scale_is_nan[j];
    out->nonzero[j] = nonzero || out->scale_is_nan[j];
  }
}

// One row of A by one block of columns. The caller fills the accumulators; `exponent` becomes that of the
// unit in which `total` counts, and `redo` is nonzero where the element needs the general way.
typedef struct {
  Float8 acc[2];
  Int8 acc_exponent[2];
  Int8 exponent[2], redo[2];
  double total[BLOCK];
  bool any_redo;
} RowBlock;

// The largest exponent over K for each column of the block, scales not counted.
INLINE void largest_exponents(const int16_t *ae, const Columns *b, int k_count, Int8 out[2]) {
  Short16 largest = b->exponent[0] + ae[0];
  for (int k = 1; k < k_count; k++) {
    Short16 exponent = b->exponent[k] + ae[k], greater = exponent > largest;
    largest = (exponent & greater) | (largest & ~greater);
  }
  Short8 halves[2];
  memcpy(halves, &largest, sizeof largest);
#pragma GCC unroll 2
  for (int h = 0; h < 2; h++) out[h] = __builtin_convertvector(halves[h], Int8);
}

// Alignment of half a block: what products are multiplied by, and the accumulator in the same units. The
// bounds keep every f32 intermediate exact or certainly below one unit.
INLINE void align_half(const NumSum *sum, const Int8 *largest_of, const Columns *b, int scale_m,
                       RowBlock *block, int h, Float8 *unit, Unsigned8 *acc) {
  int down = sum->d_scale_down;
  Int8 largest = largest_of[h], scale = b->scale[h] + scale_m;
  Int8 scaled = largest + scale, acc_exponent = block->acc_exponent[h], greater = scaled > acc_exponent;
  Int8 top = (scaled & greater) | (acc_exponent & ~greater), shift = sum->window - top + scale;
  Int8 redo = (largest > 125) | (acc_exponent > 127 - down) | (top < -100) | (top > 150) | (shift > 125) |
              (shift < -126);
  Int8 acc_shift = sum->window - top - down, acc_keep = ~redo & (acc_shift >= -126);
  *unit = (Float8)(((shift + 127) << 23) & ~redo);
  Float8 acc_unit = (Float8)(((acc_shift + 127) << 23) & acc_keep),
         kept = (Float8)((Int8)block->acc[h] & acc_keep);
  *acc = (Unsigned8) __builtin_convertvector(kept * acc_unit, Int8);
  block->redo[h] = redo;
  block->exponent[h] = (top - sum->window) & ~redo;
}

// total[j] = sum over k of trunc(a[k] * b[k][j] * unit[j]) + acc[j], exactly. The sums are unsigned, since
// elements to be redone may overflow.
INLINE void sum_products(const float *av, const Columns *b, int k_count, const Float8 unit[2],
                         const Unsigned8 acc[2], double total[BLOCK]) {
  Unsigned8 sum0 = acc[0], sum1 = acc[1];
  Double4 wide[4] = {{0}, {0}, {0}, {0}};
  for (int start = 0; start < k_count; start += GROUP) {
    int end = start + GROUP < k_count ? start + GROUP : k_count;
    for (int k = start; k < end; k++) {
      sum0 += (Unsigned8) __builtin_convertvector(b->value[k][0] * av[k] * unit[0], Int8);
      sum1 += (Unsigned8) __builtin_convertvector(b->value[k][1] * av[k] * unit[1], Int8);
    }
    Int4 quarters[4];
    memcpy(quarters, &sum0, sizeof sum0);
    memcpy(quarters + 2, &sum1, sizeof sum1);
#pragma GCC unroll 4
    for (int q = 0; q < 4; q++) wide[q] += __builtin_convertvector(quarters[q], Double4);
    sum0 ^= sum0;
    sum1 ^= sum1;
  }
  memcpy(total, wide, sizeof wide);
}

// d[j] = total[j] * 2^exponent[j], truncated to `fraction_bits`; no result that is not redone is subnormal.
INLINE void finish_block(const RowBlock *block, int fraction_bits, uint32_t *d) {
  int64_t mask = -((int64_t)1 << (52 - fraction_bits));
  Int4 powers[4];
  memcpy(powers, block->exponent, sizeof powers);
#pragma GCC unroll 4
  for (int q = 0; q < BLOCK / 4; q++) {
    Double4 value;
    memcpy(&value, block->total + 4 * q, sizeof value);
    value *= (Double4)((__builtin_convertvector(powers[q], Long4) + 1023) << 52);
    value = (Double4)((Long4)value & mask);
    Float4 result = __builtin_convertvector(value, Float4);
    memcpy(d + 4 * q, &result, sizeof result);
  }
}

// Accumulators that are f32 words.
INLINE void load_f32(const uint32_t *d, RowBlock *block) {
#pragma GCC unroll 2
  for (int h = 0; h < 2; h++) {
    Int8 bits;
    memcpy(&bits, d + 8 * h, sizeof bits);
    Int8 field = (bits >> 23) & 0xFF;
    block->acc[h] = (Float8)bits;
    block->acc_exponent[h] = field - (field == 0) - 127;
  }
}

// `d` is read when the accumulators are plain f32 words, and written when the result is f32.
INLINE void row_block(const float *av, const int16_t *ae, const Columns *b, int k_count, int scale_m,
                      const NumSum *sum, bool plain, uint32_t *d, RowBlock *block) {
  Int8 largest[2];
  Float8 unit[2];
  Unsigned8 acc[2];
  if (plain) load_f32(d, block);
  largest_exponents(ae, b, k_count, largest);
#pragma GCC unroll 2
  for (int h = 0; h < 2; h++) align_half(sum, largest, b, scale_m, block, h, &unit[h], &acc[h]);
  sum_products(av, b, k_count, unit, acc, block->total);
  if (!sum->f16_result) finish_block(block, sum->result_bits, d);
  Int8 any = block->redo[0] | block->redo[1];
  Long4 folded = (Long4)any;
  block->any_redo = (folded[0] | folded[1] | folded[2] | folded[3]) != 0;
}

static void load_accumulators(const NumSum *sum, const uint32_t *d, RowBlock *block) {
  for (int j = 0; j < BLOCK; j++) {
    float acc = accumulator(sum, d[j]);
    block->acc[j / 8][j % 8] = acc;
    block->acc_exponent[j / 8][j % 8] = accumulator_exponent(sum, acc);
  }
}

// A whole block is the common case, and its size is known to the compiler.
INLINE void copy_block(uint32_t *to, const uint32_t *from, int count) {
  if (count == BLOCK)
    memcpy(to, from, BLOCK * sizeof *to);
  else
    memcpy(to, from, (size_t)count * sizeof *to);
}

INLINE void mma_row_block(const NumTile *a, int m, bool a_is_zero, const NumTile *b, int first,
                          const Columns *columns, const NumSum *sum, uint32_t *d) {
  int count = b->rows - first < BLOCK ? b->rows - first : BLOCK;
  bool plain = sum->read_d && !sum->f16_result && sum->d_scale_down == 0;
  uint32_t result[BLOCK] = {0};
  RowBlock block;
  copy_block(result, d, count);
  if (!plain) load_accumulators(sum, result, &block);
  row_block(a->value + m * NUM_TILE_MAX_K, a->exponent + m * NUM_TILE_MAX_K, columns, a->k, a->scale[m], sum,
            plain, result, &block);
  for (int j = 0; sum->f16_result && j < count; j++)
    result[j] = finish(sum, ldexp(block.total[j], block.exponent[j / 8][j % 8]));
  for (int j = 0; (block.any_redo || columns->any_scale_is_nan) && j < count; j++) {
    if (!block.redo[j / 8][j % 8] && !columns->scale_is_nan[j]) continue;
    bool stays_zero = (a_is_zero || !columns->nonzero[j]) && accumulator(sum, d[j]) == 0;
    result[j] = stays_zero ? 0 : num_mma_element(a, m, b, first + j, sum, d[j]);
  }
  copy_block(d, result, count);
}

// All rows of A by one block of columns; `d` is that of row 0.
WIDE static void mma_columns(const NumTile *a, const bool *a_zero, const NumTile *b, int first,
                             const Columns *columns, const NumSum *sum, uint32_t *d, int d_stride) {
  int count = b->rows - first < BLOCK ? b->rows - first : BLOCK;
  for (int m = 0; m < a->rows; m++) {
    uint32_t *row = d + (long)m * d_stride;
    if (!a->scale_is_nan[m]) {
      mma_row_block(a, m, a_zero[m], b, first, columns, sum, row);
      continue;
    }
    for (int j = 0; j < count; j++) row[j] = num_mma_element(a, m, b, first + j, sum, row[j]);
  }
}

static bool row_is_zero(const NumTile *tile, int row) {
  bool zero = !tile->scale_is_nan[row];
  for (int k = 0; k < tile->k; k++) zero &= tile->value[row * NUM_TILE_MAX_K + k] == 0;
  return zero;
}

static bool row_is_finite(const NumTile *tile, int row) {
  bool finite = !tile->scale_is_nan[row];
  for (int k = 0; k < tile->k; k++)
    finite &= tile->exponent[row * NUM_TILE_MAX_K + k] != NUM_EXPONENT_SPECIAL;
  return finite;
}

static bool all_finite(const NumTile *tile) {
  bool finite = true;
  for (int row = 0; row < tile->rows; row++) finite &= row_is_finite(tile, row);
  return finite;
}

void num_mma(const NumTile *a, const NumTile *b, const NumSum *sum, uint32_t *d, int d_stride) {
  bool a_zero[NUM_TILE_MAX_ROWS], b_finite = all_finite(b);
  for (int m = 0; m < a->rows; m++) a_zero[m] = b_finite && row_is_zero(a, m);
  bool a_finite = all_finite(a);
  for (int first = 0; first < b->rows; first += BLOCK) {
    Columns columns;
    transpose(b, first, &columns);
    for (int j = 0; j < BLOCK; j++) columns.nonzero[j] |= !a_finite;
    mma_columns(a, a_zero, b, first, &columns, sum, d + first, d_stride);
  }
}

void num_mma_fp4(const NumTile *a, const NumGroupScales *sa, const NumTile *b, const NumGroupScales *sb,
                 bool read_d, uint32_t *d, int d_stride) {
  const NumSum sum = {.window = 35, .result_bits = 23, .read_d = read_d};
  int groups = a->k / 16;
  for (int m = 0; m < a->rows; m++) {
    for (int n = 0; n < b->rows; n++) {
      uint32_t *out = d + (long)m * d_stride + n;
      float acc = accumulator(&sum, *out);
      int exponent[4], largest = accumulator_exponent(&sum, acc);
      double term[4], total = (double)acc;
      for (int g = 0; g < groups; g++) {
        const float *av = a->value + m * NUM_TILE_MAX_K + g * 16,
                    *bv = b->value + n * NUM_TILE_MAX_K + g * 16;
        float dot = 0;  // exact: multiples of 1/4 up to 576
        for (int k = 0; k < 16; k++) dot += av[k] * bv[k];
        term[g] = (double)dot * sa->significand[m * 4 + g] * sb->significand[n * 4 + g];
        exponent[g] = sa->exponent[m * 4 + g] + sb->exponent[n * 4 + g];
        total += term[g];
        if (exponent[g] > largest) largest = exponent[g];
      }
      if (!isfinite(total)) {
        *out = special_result(&sum, total);
        continue;
      }
      total = trunc(ldexp((double)acc, sum.window - largest));
      for (int g = 0; g < groups; g++) total += trunc(ldexp(term[g], sum.window + exponent[g] - largest));
      *out = finish(&sum, ldexp(total, largest - sum.window));
    }
  }
}

void num_mma_int(const int16_t *a, const int16_t *b, int m, int n, int k, bool saturate, bool read_d,
                 uint32_t *d, int d_stride) {
  for (int i = 0; i < m; i++) {
    for (int j = 0; j < n; j++) {
      uint32_t *out = d + (long)i * d_stride + j;
      int32_t dot = 0;
      for (int x = 0; x < k; x++) dot += a[i * k + x] * b[j * k + x];
      int64_t total = (int64_t)dot + (read_d ? (int32_t)*out : 0);
      if (saturate && total > INT32_MAX) total = INT32_MAX;
      if (saturate && total < INT32_MIN) total = INT32_MIN;
      *out = (uint32_t)total;
    }
  }
}

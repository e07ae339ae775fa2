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
  int16_t scale[BLOCK];
  bool nonzero[BLOCK];
} Columns;

static void transpose(const NumTile *b, int first, Columns *out) {
  for (int j = 0; j < BLOCK; j++) {
    const float *value = b->value + (first + j) * NUM_TILE_MAX_K;
    const int16_t *exponent = b->exponent + (first + j) * NUM_TILE_MAX_K;
    bool inside = first + j < b->rows, nonzero = false;
    for (int k = 0; k < b->k; k++) {
      out->value[k][j / 8][j % 8] = inside ? value[k] : 0;
      out->exponent[k][j] = inside ? exponent[k] : NUM_EXPONENT_ZERO;
      nonzero |= inside && value[k] != 0;
    }
    out->scale[j] = inside ? b->scale[first + j] : 0;
    out->nonzero[j] = nonzero || (inside && b->scale_is_nan[first + j]);
  }
}

// The largest exponent over K for each column of the block, scales not counted.
WIDE static void largest_exponents(const int16_t *ae, const Columns *b, int k_count, int16_t *out) {
  Short16 largest = b->exponent[0] + ae[0];
  for (int k = 1; k < k_count; k++) {
    Short16 exponent = b->exponent[k] + ae[k], greater = exponent > largest;
    largest = (exponent & greater) | (largest & ~greater);
  }
  memcpy(out, &largest, sizeof largest);
}

// total[j] = sum over k of trunc(a[k] * b[k][j] * unit[j]) + acc[j], exactly.
WIDE static void sum_block(const float *av, const Columns *b, int k_count, const float *unit,
                           const int32_t *acc, double *total) {
  Float8 unit0, unit1;
  memcpy(&unit0, unit, sizeof unit0);
  memcpy(&unit1, unit + 8, sizeof unit1);
  Unsigned8 sum0, sum1;  // unsigned, since elements to be redone may overflow
  memcpy(&sum0, acc, sizeof sum0);
  memcpy(&sum1, acc + 8, sizeof sum1);
  Double4 wide[4] = {{0}, {0}, {0}, {0}};
  for (int start = 0; start < k_count; start += GROUP) {
    int end = start + GROUP < k_count ? start + GROUP : k_count;
    for (int k = start; k < end; k++) {
      sum0 += (Unsigned8) __builtin_convertvector(b->value[k][0] * av[k] * unit0, Int8);
      sum1 += (Unsigned8) __builtin_convertvector(b->value[k][1] * av[k] * unit1, Int8);
    }
    Int4 quarters[4];
    memcpy(quarters, &sum0, sizeof sum0);
    memcpy(quarters + 2, &sum1, sizeof sum1);
    for (int q = 0; q < 4; q++) wide[q] += __builtin_convertvector(quarters[q], Double4);
    sum0 ^= sum0;
    sum1 ^= sum1;
  }
  memcpy(total, wide, sizeof wide);
}

// d[j] = total[j] * 2^exponent[j], truncated to `fraction_bits`; the caller knows that no result is
// subnormal.
WIDE static void finish_block(const double *total, const int32_t *exponent, int fraction_bits, uint32_t *d) {
  int64_t mask = -((int64_t)1 << (52 - fraction_bits));
  for (int q = 0; q < BLOCK / 4; q++) {
    Double4 value;
    Int4 power;
    memcpy(&value, total + 4 * q, sizeof value);
    memcpy(&power, exponent + 4 * q, sizeof power);
    Long4 scale = (__builtin_convertvector(power, Long4) + 1023) << 52;
    value *= (Double4)scale;
    value = (Double4)((Long4)value & mask);
    Float4 result = __builtin_convertvector(value, Float4);
    memcpy(d + 4 * q, &result, sizeof result);
  }
}

typedef struct {
  float unit[BLOCK];
  int32_t acc[BLOCK], exponent[BLOCK];
  bool redo[BLOCK];
} Prepared;

// Alignment of each column: the unit that products are scaled by, the accumulator in those units, and which
// elements need the general way. The bounds keep every f32 intermediate exact or certainly below one unit.
static void prepare(const NumSum *sum, const int16_t *largest, int scale_m, const int16_t *scale_n,
                    const uint32_t *d, int columns, Prepared *out) {
  for (int j = 0; j < BLOCK; j++) {
    float acc = j < columns ? accumulator(sum, d[j]) : 0;
    int scale = scale_m + scale_n[j], acc_exponent = accumulator_exponent(sum, acc);
    int top = largest[j] + scale > acc_exponent ? largest[j] + scale : acc_exponent;
    int shift = sum->window - top + scale;
    bool redo = largest[j] > 125 || acc_exponent > 127 - sum->d_scale_down || top < -100 || top > 150 ||
                shift > 125 || shift < -126;
    out->redo[j] = redo;
    out->exponent[j] = redo ? 0 : top - sum->window;
    out->unit[j] = redo ? 0 : num_f32_from_bits((uint32_t)(shift + 127) << 23);
    int acc_shift = sum->window - top - sum->d_scale_down;
    out->acc[j] =
        redo || acc_shift < -126 ? 0 : (int32_t)(acc * num_f32_from_bits((uint32_t)(acc_shift + 127) << 23));
  }
}

static void mma_row_block(const NumTile *a, int m, bool a_is_zero, const NumTile *b, int first,
                          const Columns *columns, const NumSum *sum, uint32_t *d) {
  int count = b->rows - first < BLOCK ? b->rows - first : BLOCK;
  const int16_t *ae = a->exponent + m * NUM_TILE_MAX_K;
  int16_t largest[BLOCK];
  Prepared prepared;
  double total[BLOCK];
  uint32_t result[BLOCK];
  largest_exponents(ae, columns, a->k, largest);
  prepare(sum, largest, a->scale[m], columns->scale, d, count, &prepared);
  sum_block(a->value + m * NUM_TILE_MAX_K, columns, a->k, prepared.unit, prepared.acc, total);
  if (sum->f16_result)
    for (int j = 0; j < count; j++) result[j] = finish(sum, ldexp(total[j], prepared.exponent[j]));
  else
    finish_block(total, prepared.exponent, sum->result_bits, result);
  for (int j = 0; j < count; j++) {
    if (!prepared.redo[j] && !b->scale_is_nan[first + j])
      d[j] = result[j];
    else if ((a_is_zero || !columns->nonzero[j]) && accumulator(sum, d[j]) == 0)
      d[j] = 0;
    else
      d[j] = num_mma_element(a, m, b, first + j, sum, d[j]);
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
    int count = b->rows - first < BLOCK ? b->rows - first : BLOCK;
    transpose(b, first, &columns);
    for (int j = 0; j < BLOCK; j++) columns.nonzero[j] |= !a_finite;
    for (int m = 0; m < a->rows; m++) {
      uint32_t *row = d + (long)m * d_stride + first;
      if (!a->scale_is_nan[m]) {
        mma_row_block(a, m, a_zero[m], b, first, &columns, sum, row);
        continue;
      }
      for (int j = 0; j < count; j++) row[j] = num_mma_element(a, m, b, first + j, sum, row[j]);
    }
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

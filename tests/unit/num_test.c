// Number formats against their definitions, every code of the small ones; the fused sum against an
// independent statement of the model in exact integers, and its fast path against the slow one.
#include "num/num.h"

#include <math.h>
#include <stdlib.h>

#include "check.h"
#include "num/accumulate.h"
#include "num_vectors.h"

static const NumFormat *const small_formats[] = {&num_e4m3, &num_e5m2, &num_e2m3,
                                                 &num_e3m2, &num_e2m1, &num_ue4m3};
enum { SMALL_COUNT = sizeof small_formats / sizeof *small_formats };

static double definition(const NumFormat *f, uint32_t code) {
  int body = f->exp_bits + f->man_bits, e = (int)(code >> f->man_bits) & ((1 << f->exp_bits) - 1);
  int m = (int)code & ((1 << f->man_bits) - 1);
  double size = e ? (1 + m / (double)(1 << f->man_bits)) * pow(2, e - f->bias)
                  : m / (double)(1 << f->man_bits) * pow(2, 1 - f->bias);
  if (f->special == NUM_IEEE && e == (1 << f->exp_bits) - 1) size = m ? NAN : INFINITY;
  if (f->special == NUM_NAN_ONLY && (code & ((1u << body) - 1)) == (1u << body) - 1) size = NAN;
  return f->has_sign && code >> body & 1 ? -size : size;
}

static bool same(double x, double y) {
  return (isnan(x) && isnan(y)) || x == y;
}

static void test_decode(Checks *checks) {
  for (int f = 0; f < SMALL_COUNT; f++)
    for (uint32_t code = 0; code < 256; code++)
      if (code >> (small_formats[f]->exp_bits + small_formats[f]->man_bits) <= 1)
        CHECK(checks, same(num_decode(small_formats[f], code), definition(small_formats[f], code)));
  for (uint32_t code = 0; code < 65536; code++) {
    CHECK(checks, same(num_decode(&num_f16, code), definition(&num_f16, code)));
    CHECK(checks, same((double)num_f16_to_f32((uint16_t)code), definition(&num_f16, code)));
    CHECK(checks, same((double)num_bf16_to_f32((uint16_t)code), definition(&num_bf16, code)));
  }
  CHECK_INT(checks, (int)num_max(&num_e4m3), 448);
  CHECK_INT(checks, (int)num_max(&num_e5m2), 57344);
  CHECK_INT(checks, (int)num_max(&num_e3m2), 28);
  CHECK(checks, num_max(&num_e2m3) == 7.5 && num_max(&num_e2m1) == 6);
}

// Nearest code by search over all finite codes of the sign; ties to the even code.
static uint32_t nearest(const NumFormat *f, double value) {
  uint32_t best = 0, count = 1u << (f->exp_bits + f->man_bits);
  for (uint32_t code = 0; code < count; code++) {
    double x = definition(f, code), gap = fabs(x - fabs(value)),
           old = fabs(definition(f, best) - fabs(value));
    if (isfinite(x) && (gap < old || (gap == old && code % 2 == 0))) best = code;
  }
  return signbit(value) && f->has_sign ? best | count : best;
}

static void test_encode_nearest(Checks *checks) {
  for (int f = 0; f < SMALL_COUNT; f++) {
    const NumFormat *format = small_formats[f];
    uint32_t count = 1u << (format->exp_bits + format->man_bits);
    for (uint32_t code = 0; code + 1 < count; code++) {
      double low = definition(format, code), high = definition(format, code + 1);
      if (!isfinite(high)) continue;
      for (int part = 0; part <= 8; part++) {
        double value = low + (high - low) * part / 8;
        CHECK_INT(checks, num_encode(format, value, NUM_RN, true), nearest(format, value));
        if (format->has_sign)
          CHECK_INT(checks, num_encode(format, -value, NUM_RN, true), nearest(format, -value));
        CHECK_INT(checks, num_encode(format, value, NUM_RZ, true), part == 8 ? code + 1 : code);
        CHECK_INT(checks, num_encode(format, value, NUM_RP, true), part == 0 ? code : code + 1);
        CHECK_INT(checks, num_encode(format, value, NUM_RNA, true), part >= 4 ? code + 1 : code);
      }
    }
    CHECK_INT(checks, num_encode(format, 1e6, NUM_RN, true), nearest(format, 1e6));
    CHECK_INT(checks, num_encode(format, INFINITY, NUM_RN, true), nearest(format, 1e6));
  }
  CHECK_INT(checks, num_encode(&num_e4m3, NAN, NUM_RN, true), 0x7F);
  CHECK_INT(checks, num_encode(&num_e2m1, NAN, NUM_RN, true), 7);
  CHECK_INT(checks, num_encode(&num_e5m2, 1e30, NUM_RN, false), 0x7C);
  CHECK_INT(checks, num_encode(&num_e4m3, 465, NUM_RN, false), 0x7F);
  CHECK_INT(checks, num_encode(&num_e4m3, 464, NUM_RN, false), 0x7E);
}

static uint32_t next_random(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*state >> 32);
}

static void test_encode_16(Checks *checks) {
  uint64_t state = 1;
  for (int i = 0; i < 200000; i++) {
    float value = num_f32_from_bits(next_random(&state));
    if (i % 2) value = num_f16_to_f32((uint16_t)next_random(&state)) * (1 + (float)(i % 5) * 0x1p-12f);
    CHECK_INT(checks, num_f16_rn(value), num_encode(&num_f16, (double)value, NUM_RN, false));
    CHECK_INT(checks, num_bf16_rn(value), num_encode(&num_bf16, (double)value, NUM_RN, false));
    for (int r = NUM_RN; r <= NUM_RNA; r++)
      if (!isnan(value))
        CHECK_INT(checks, num_f32_bits(num_tf32_round(value, (NumRounding)r)) >> 13,
                  num_encode(&num_tf32, (double)value, (NumRounding)r, false));
  }
  for (uint32_t code = 0; code < 65536; code++)
    if (!isnan(num_f16_to_f32((uint16_t)code)))
      CHECK_INT(checks, num_f16_rn(num_f16_to_f32((uint16_t)code)), code);
}

static void test_ue8m0(Checks *checks) {
  for (int code = 0; code < 255; code++) {
    CHECK(checks, num_ue8m0_decode((uint8_t)code) == pow(2, code - 127));
    CHECK_INT(checks, num_ue8m0_encode(num_ue8m0_decode((uint8_t)code), NUM_RZ, true), code);
    CHECK_INT(checks, num_ue8m0_encode(num_ue8m0_decode((uint8_t)code) * 1.5, NUM_RZ, true), code);
    CHECK_INT(checks, num_ue8m0_encode(num_ue8m0_decode((uint8_t)code) * 1.5, NUM_RP, true),
              code < 254 ? code + 1 : 254);
  }
  CHECK(checks, isnan(num_ue8m0_decode(255)));
  CHECK_INT(checks, num_ue8m0_encode(NAN, NUM_RP, true), 255);
  CHECK_INT(checks, num_ue8m0_encode(INFINITY, NUM_RP, true), 254);
}

typedef struct {
  const NumFormat *format;
  int k, spread;
  bool f16_result;
  int window, result_bits;
} SumCase;

static const SumCase sum_cases[] = {
    {&num_bf16, 16, 6, false, 25, 23},   {&num_bf16, 16, 40, false, 25, 23},
    {&num_bf16, 16, 250, false, 25, 23}, {&num_f16, 16, 30, false, 25, 23},
    {&num_f16, 16, 20, true, 25, 23},    {&num_tf32, 8, 60, false, 25, 23},
    {&num_e4m3, 32, 15, false, 25, 23},  {&num_e5m2, 32, 31, false, 13, 13},
    {&num_e2m1, 32, 3, false, 25, 23},
};

static uint32_t random_code(const NumFormat *f, int spread, bool specials, uint64_t *state) {
  uint32_t exponents = 1u << f->exp_bits, mantissa = next_random(state) & ((1u << f->man_bits) - 1);
  int range = spread < (int)exponents ? spread : (int)exponents;
  int exponent = (int)(exponents - (unsigned)range) / 2 + (int)(next_random(state) % (unsigned)range);
  uint32_t code = (uint32_t)exponent << f->man_bits | mantissa;
  if (next_random(state) % 8 == 0) code = 0;
  if (!specials && !isfinite(definition(f, code))) code = 1u << f->man_bits;
  return code | (next_random(state) & 1) << (f->exp_bits + f->man_bits);
}

static void fill(NumTile *tile, int rows, const SumCase *c, bool specials, uint64_t *state) {
  memset(tile, 0, sizeof *tile);
  tile->rows = rows;
  tile->k = c->k;
  for (int row = 0; row < rows; row++)
    for (int k = 0; k < c->k; k++) {
      uint32_t code = row == 3 ? 0 : random_code(c->format, c->spread, specials, state);
      num_tile_set(tile, row, k, (float)num_decode(c->format, code), 1 - c->format->bias);
    }
}

// The model in integers: significands as integers with explicit right shifts. Only for finite inputs.
static double model_sum(const NumTile *a, int m, const NumTile *b, int n, int window, float acc,
                        int acc_exponent) {
  int largest = acc_exponent;
  for (int k = 0; k < a->k; k++) {
    int e = a->exponent[m * NUM_TILE_MAX_K + k] + b->exponent[n * NUM_TILE_MAX_K + k];
    if (e > largest) largest = e;
  }
  int64_t total = 0;
  for (int k = -1; k < a->k; k++) {
    int e = acc_exponent, shift;
    double x = (double)acc, y = 1;
    if (k >= 0) {
      x = (double)a->value[m * NUM_TILE_MAX_K + k], y = (double)b->value[n * NUM_TILE_MAX_K + k];
      e = a->exponent[m * NUM_TILE_MAX_K + k] + b->exponent[n * NUM_TILE_MAX_K + k];
    }
    int64_t significand =
        (int64_t)ldexp(fabs(x) * fabs(y), 46 - e);  // all bits of a product of two 24-bit numbers
    shift = 46 - window + largest - e;
    int64_t aligned = shift > 62 ? 0 : significand >> shift;
    total += (x < 0) != (y < 0) ? -aligned : aligned;
  }
  return ldexp((double)total, largest - window);
}

static uint32_t model_result(double sum, const SumCase *c) {
  if (c->f16_result) {
    uint32_t code = num_encode(&num_f16, sum, NUM_RN, false);
    return code == 0x8000 ? 0 : code;
  }
  int e = sum == 0 ? -126 : ilogb(sum) < -126 ? -126 : ilogb(sum);
  double cut = trunc(ldexp(sum, c->result_bits - e));
  return cut == 0 ? 0 : num_f32_bits((float)ldexp(cut, e - c->result_bits));
}

static void test_sum(Checks *checks, const SumCase *c, uint64_t *state) {
  enum { M = 24, N = 40 };
  NumTile *a = malloc(sizeof *a), *b = malloc(sizeof *b);
  uint32_t d[M * N], was[M * N];
  NumSum sum = {
      .window = c->window, .f16_result = c->f16_result, .result_bits = c->result_bits, .read_d = true};
  fill(a, M, c, false, state);
  fill(b, N, c, false, state);
  for (int i = 0; i < M * N; i++) {
    float x = (float)ldexp((double)(int32_t)next_random(state), -31 + (int)(next_random(state) % 20) - 10);
    if (c->spread > 200) x = num_f32_from_bits(next_random(state) & 0xBFFFFFFF);
    d[i] = was[i] = i % 7 == 0 ? 0 : c->f16_result ? num_f16_rn(x) : num_f32_bits(x);
  }
  num_mma(a, b, &sum, d, N);
  for (int m = 0; m < M; m++)
    for (int n = 0; n < N; n++) {
      uint32_t old = was[m * N + n];
      float acc = c->f16_result ? num_f16_to_f32((uint16_t)old) : num_f32_from_bits(old);
      int e = acc == 0 ? -126 : ilogb((double)acc), least = c->f16_result ? -14 : -126;
      if (acc != 0 && e < least) e = least;
      CHECK_INT(checks, d[m * N + n], model_result(model_sum(a, m, b, n, c->window, acc, e), c));
    }
  free(a);
  free(b);
}

// With NaN, infinity, scales and lane counts that don't fill a block: fast path against the definition.
static void test_sum_specials(Checks *checks, const SumCase *c, uint64_t *state) {
  enum { M = 16, N = 24 };
  NumTile *a = malloc(sizeof *a), *b = malloc(sizeof *b);
  uint32_t d[M * N], was[M * N];
  NumSum sum = {
      .window = c->window, .f16_result = c->f16_result, .result_bits = c->result_bits, .read_d = true};
  fill(a, M, c, true, state);
  fill(b, N, c, true, state);
  for (int i = 0; i < M; i++) a->scale[i] = (int16_t)(next_random(state) % 40 - 20);
  for (int i = 0; i < N; i++) b->scale[i] = (int16_t)(next_random(state) % 250 - 125);
  b->scale_is_nan[5] = a->scale_is_nan[7] = true;
  for (int i = 0; i < M * N; i++) d[i] = was[i] = next_random(state) & (c->f16_result ? 0xFFFF : ~0u);
  num_mma(a, b, &sum, d, N);
  for (int m = 0; m < M; m++)
    for (int n = 0; n < N; n++)
      CHECK_INT(checks, d[m * N + n], num_mma_element(a, m, b, n, &sum, was[m * N + n]));
  CHECK_INT(checks, d[7 * N], c->f16_result ? 0x7FFF : 0x7FFFFFFF);
  free(a);
  free(b);
}

static void test_known_sums(Checks *checks) {
  NumTile *a = calloc(1, sizeof *a), *b = calloc(1, sizeof *b);
  NumSum sum = {.window = 25, .result_bits = 23, .read_d = true};
  a->rows = b->rows = 1;
  a->k = b->k = 16;
  for (int k = 0; k < 16; k++) num_tile_set(a, 0, k, 0, -126), num_tile_set(b, 0, k, 1, -126);
  // 1 + 2^-26: the small term is cut off at 2^-25. 1 - 2^-25 - 2^-25 = 1 - 2^-24, and truncation keeps it.
  num_tile_set(a, 0, 0, 0x1p-26f, -126);
  uint32_t d = num_f32_bits(1);
  num_mma(a, b, &sum, &d, 1);
  CHECK_INT(checks, d, num_f32_bits(1));
  num_tile_set(a, 0, 0, -0x1p-25f, -126);
  num_tile_set(a, 0, 1, -0x1p-25f, -126);
  num_mma(a, b, &sum, &d, 1);
  CHECK_INT(checks, d, num_f32_bits(1 - 0x1p-24f));
  // A zero times 2^100 leaves an accumulator of 2^-40 alone.
  num_tile_set(a, 0, 0, 0, -126);
  num_tile_set(a, 0, 1, 0, -126);
  num_tile_set(b, 0, 0, 0x1p100f, -126);
  d = num_f32_bits(0x1.234566p-40f);
  num_mma(a, b, &sum, &d, 1);
  CHECK_INT(checks, d, num_f32_bits(0x1.234566p-40f));
  d = 0x80000000;  // a negative zero comes out positive
  num_tile_set(a, 0, 0, 0, -126);
  num_tile_set(a, 0, 1, 0, -126);
  num_mma(a, b, &sum, &d, 1);
  CHECK_INT(checks, d, 0);
  free(a);
  free(b);
}

static const NumFormat *vector_format(const char *name) {
  static const NumFormat *const all[] = {&num_bf16, &num_f16, &num_tf32, &num_e4m3, &num_e5m2};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (strcmp(all[i]->name, name) == 0) return all[i];
  return NULL;
}

static void fill_vector(NumTile *tile, const char *type, const char *hex) {
  const NumFormat *format = vector_format(type);
  uint8_t bytes[32];
  for (int i = 0; i < 32; i++) {
    char pair[3] = {hex[2 * i], hex[2 * i + 1], 0};
    bytes[i] = (uint8_t)strtoul(pair, NULL, 16);
  }
  int size = format->exp_bits + format->man_bits > 15 ? 4 : format->exp_bits + format->man_bits > 7 ? 2 : 1;
  tile->rows = 1;
  tile->k = 32 / size;
  for (int k = 0; k < tile->k; k++) {
    uint32_t code = 0;
    memcpy(&code, bytes + k * size, (size_t)size);
    float value = (float)num_decode(format, size == 4 ? code >> 13 : code);
    num_tile_set(tile, 0, k, value, 1 - format->bias);
  }
}

static void test_hardware(Checks *checks) {
  NumTile *a = calloc(1, sizeof *a), *b = calloc(1, sizeof *b);
  for (size_t i = 0; i < sizeof num_vectors / sizeof *num_vectors; i++) {
    const NumVector *v = &num_vectors[i];
    bool fp8 = v->a_type[0] == 'e';
    NumSum sum = {
        .window = fp8 ? 13 : 25, .f16_result = v->f16_result, .result_bits = fp8 ? 13 : 23, .read_d = true};
    fill_vector(a, v->a_type, v->a);
    fill_vector(b, v->b_type, v->b);
    uint32_t d = v->d;
    num_mma(a, b, &sum, &d, 1);
    CHECK_INT(checks, d, v->result);
    CHECK_INT(checks, num_mma_element(a, 0, b, 0, &sum, v->d), v->result);
  }
  free(a);
  free(b);
}

static void test_int(Checks *checks) {
  int16_t a[32], b[32];
  for (int k = 0; k < 32; k++) a[k] = -128, b[k] = 255;
  uint32_t d = (uint32_t)INT32_MIN, e = d;
  num_mma_int(a, b, 1, 1, 32, true, true, &d, 1);
  num_mma_int(a, b, 1, 1, 32, false, true, &e, 1);
  CHECK_INT(checks, (int32_t)d, INT32_MIN);
  CHECK_INT(checks, e, (uint32_t)INT32_MIN - 128 * 255 * 32);
}

static void test_fp4(Checks *checks) {
  NumTile *a = calloc(1, sizeof *a), *b = calloc(1, sizeof *b);
  NumGroupScales *sa = calloc(1, sizeof *sa), *sb = calloc(1, sizeof *sb);
  a->rows = b->rows = 1;
  a->k = b->k = 64;
  for (int k = 0; k < 64; k++) num_tile_set(a, 0, k, 1.5f, 0), num_tile_set(b, 0, k, -2, 0);
  for (int g = 0; g < 4; g++) sa->significand[g] = 1.5f, sb->significand[g] = 1, sa->exponent[g] = (int16_t)g;
  uint32_t d = num_f32_bits(100);
  num_mma_fp4(a, sa, b, sb, true, &d, 1);
  CHECK(checks, num_f32_from_bits(d) == 100 - 16 * 3 * 1.5f * (1 + 2 + 4 + 8));
  sa->significand[2] = NAN;
  num_mma_fp4(a, sa, b, sb, true, &d, 1);
  CHECK_INT(checks, d, 0x7FFFFFFF);
  free(a), free(b), free(sa), free(sb);
}

int main(void) {
  Checks checks = {0};
  test_decode(&checks);
  test_encode_nearest(&checks);
  test_encode_16(&checks);
  test_ue8m0(&checks);
  uint64_t state = 7;
  for (unsigned i = 0; i < sizeof sum_cases / sizeof *sum_cases; i++)
    for (int round = 0; round < 4; round++) {
      test_sum(&checks, &sum_cases[i], &state);
      test_sum_specials(&checks, &sum_cases[i], &state);
    }
  test_known_sums(&checks);
  test_hardware(&checks);
  test_int(&checks);
  test_fp4(&checks);
  return check_report(&checks);
}

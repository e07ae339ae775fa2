// Element types as numbers: every pattern of the small types survives decoding and encoding, and a value
// between two neighbours goes to the nearer one, a tie to the one with an even pattern.
#include <math.h>
#include <stdlib.h>

#include "check.h"
#include "core/dtype.h"

static const TileDType small_floats[] = {TILE_F16,  TILE_BF16, TILE_E4M3, TILE_E5M2,
                                         TILE_E2M3, TILE_E3M2, TILE_E2M1};
enum { SMALL_FLOATS = sizeof small_floats / sizeof small_floats[0] };

static void test_round_trip(Checks *checks, TileDType dtype) {
  uint64_t count = UINT64_C(1) << tile_dtype_bits(dtype), wrong = 0;
  for (uint64_t bits = 0; bits < count; bits++) {
    double value = dtype_decode(dtype, bits);
    if (isnan(value))
      wrong += !isnan(dtype_decode(dtype, dtype_encode(dtype, value)));
    else
      wrong += dtype_encode(dtype, value) != bits;
  }
  if (!CHECK_INT(checks, wrong, 0)) fprintf(stderr, "  %s\n", tile_dtype_name(dtype));
}

// Patterns of positive finite numbers are in the order of their values.
static void test_rounding(Checks *checks, TileDType dtype) {
  uint64_t half = UINT64_C(1) << (tile_dtype_bits(dtype) - 1), wrong = 0;
  for (uint64_t bits = 0; bits + 1 < half; bits++) {
    double low = dtype_decode(dtype, bits), high = dtype_decode(dtype, bits + 1), middle = (low + high) / 2;
    if (isnan(high) || isinf(high)) break;
    wrong += !(low < high);
    wrong += dtype_encode(dtype, nextafter(middle, low)) != bits;
    wrong += dtype_encode(dtype, nextafter(middle, high)) != bits + 1;
    wrong += dtype_encode(dtype, middle) != bits + bits % 2;
    wrong += dtype_encode(dtype, -middle) != half + bits + bits % 2;
  }
  if (!CHECK_INT(checks, wrong, 0)) fprintf(stderr, "  %s\n", tile_dtype_name(dtype));
}

static void test_known(Checks *checks) {
  CHECK_INT(checks, dtype_encode(TILE_F32, 1.0), 0x3F800000);
  CHECK_INT(checks, dtype_encode(TILE_F32, 1e300), 0x7F800000);
  CHECK_INT(checks, dtype_encode(TILE_F16, 65520), 0x7C00);  // the first value that rounds to infinity
  CHECK_INT(checks, dtype_encode(TILE_F16, 65519), 0x7BFF);
  CHECK_INT(checks, dtype_encode(TILE_BF16, -1.5), 0xBFC0);
  CHECK_INT(checks, dtype_encode(TILE_E4M3, 448), 0x7E);
  CHECK_INT(checks, dtype_encode(TILE_E4M3, 1000), 0x7E);
  CHECK_INT(checks, dtype_encode(TILE_E5M2, 57344), 0x7B);
  CHECK_INT(checks, dtype_encode(TILE_E2M1, 6), 7);
  CHECK_INT(checks, dtype_encode(TILE_E2M1, -100), 15);
  CHECK_INT(checks, dtype_encode(TILE_UE8M0, 1), 127);
  CHECK_INT(checks, dtype_encode(TILE_I8, -200), 0x80);
  CHECK_INT(checks, dtype_encode(TILE_I8, -1.9), 0xFF);
  CHECK_INT(checks, dtype_encode(TILE_U8, 300), 0xFF);
  CHECK_INT(checks, dtype_encode(TILE_U64, 1e30), -1);
  CHECK_INT(checks, dtype_encode(TILE_I32, NAN), 0);
  CHECK(checks, dtype_decode(TILE_I16, 0xFFFE) == -2);
  CHECK(checks, dtype_decode(TILE_E4M3, 1) == 0x1p-9);
  CHECK(checks, dtype_decode(TILE_BF16, 0x7F80) == INFINITY);
  CHECK(checks, isnan(dtype_decode(TILE_E4M3, 0xFF)) && isnan(dtype_decode(TILE_BF16, 0xFFFF)));
  CHECK(checks, dtype_holds(TILE_U8, 255) && !dtype_holds(TILE_U8, 256) && !dtype_holds(TILE_U64, -1) &&
                    dtype_holds(TILE_I64, INT64_MIN));
}

static void test_names(Checks *checks) {
  for (int i = 0; i < TILE_DTYPE_COUNT; i++) {
    TileDType found;
    CHECK(checks, tile_dtype_parse(tile_dtype_name((TileDType)i), &found) && found == (TileDType)i);
  }
  TileDType none;
  CHECK(checks, !tile_dtype_parse("float32", &none) && tile_dtype_name(TILE_DTYPE_COUNT) == NULL);
}

// The compiler writes these names into launch information: same names, same widths, none missing.
static void test_compiler_table(Checks *checks) {
  static const struct {
    const char *name;
    int bits;
  } rows[] = {
#define DTYPE(name, bits, class) {#name, bits},
#include "types/dtype.def"
#undef DTYPE
  };
  CHECK_INT(checks, sizeof rows / sizeof rows[0], TILE_DTYPE_COUNT);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    TileDType found;
    CHECK(checks, tile_dtype_parse(rows[i].name, &found) && tile_dtype_bits(found) == rows[i].bits);
  }
}

int main(void) {
  Checks checks = {0};
  for (int i = 0; i < SMALL_FLOATS; i++) {
    test_round_trip(&checks, small_floats[i]);
    test_rounding(&checks, small_floats[i]);
  }
  test_round_trip(&checks, TILE_UE8M0);
  test_round_trip(&checks, TILE_I8);
  test_round_trip(&checks, TILE_U16);
  test_known(&checks);
  test_names(&checks);
  test_compiler_table(&checks);
  return check_report(&checks);
}

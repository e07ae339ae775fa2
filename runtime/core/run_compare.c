// Comparison in double precision, and a line of statistics.
#include "core/run_compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/dtype.h"
#include "core/error.h"
#include "npy/npy.h"

static void print_head(const RunArray *array) {
  printf("%s: %s[", array->param->name, tile_dtype_name(array->param->dtype));
  for (int i = 0; i < array->param->rank; i++) printf("%s%" PRId64, i ? ", " : "", array->shape[i]);
  printf("]");
}

void run_summary(const RunArray *array) {
  double low = INFINITY, high = -INFINITY, sum = 0;
  uint64_t nan = 0;
  for (uint64_t i = 0; i < array->elements; i++) {
    double value = run_array_value(array, i);
    if (isnan(value)) {
      nan++;
      continue;
    }
    low = fmin(low, value);
    high = fmax(high, value);
    sum += value;
  }
  print_head(array);
  uint64_t numbers = array->elements - nan;
  if (numbers) printf(", min %.6g, max %.6g, mean %.6g", low, high, sum / (double)numbers);
  printf(", %" PRIu64 " NaN\n", nan);
}

// A number of a numpy array that is no element type of ours.
static bool plain_dtype(const char *descr, TileDType *out) {
  static const struct {
    const char *descr;
    TileDType dtype;
  } rows[] = {{"f8", TILE_F64}, {"f4", TILE_F32}, {"f2", TILE_F16}, {"i8", TILE_I64},
              {"i4", TILE_I32}, {"i2", TILE_I16}, {"i1", TILE_I8},  {"u8", TILE_U64},
              {"u4", TILE_U32}, {"u2", TILE_U16}, {"u1", TILE_U8},  {"b1", TILE_BOOL}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (strcmp(descr + 1, rows[i].descr) != 0) continue;
    *out = rows[i].dtype;
    return true;
  }
  return false;
}

typedef struct {
  uint64_t wrong, worst;
  double error, got, want;
} Comparison;

static Comparison compare(const RunArray *got, const RunArray *want, double rtol, double atol) {
  Comparison result = {.error = -1};
  for (uint64_t i = 0; i < got->elements; i++) {
    double a = run_array_value(got, i), b = run_array_value(want, i);
    bool same = a == b || (isnan(a) && isnan(b));
    double error = same ? 0 : fabs(a - b);
    if (isnan(error)) error = INFINITY;
    if (!same && !(error <= atol + rtol * fabs(b))) result.wrong++;
    if (error > result.error) result = (Comparison){result.wrong, i, error, a, b};
  }
  return result;
}

static void print_index(const RunArray *array, uint64_t index) {
  uint64_t at[TILE_MAX_RANK];
  for (int i = array->param->rank - 1; i >= 0; i--) {
    at[i] = index % (uint64_t)array->shape[i];
    index /= (uint64_t)array->shape[i];
  }
  printf("%s[", array->param->name);
  for (int i = 0; i < array->param->rank; i++) printf("%s%" PRIu64, i ? ", " : "", at[i]);
  printf("]");
}

static void print_comparison(const RunArray *array, const Comparison *result, double rtol, double atol) {
  print_head(array);
  if (array->elements == 0) {
    printf(": nothing to compare\n");
    return;
  }
  if (result->error == 0) {
    printf(": equal to what is expected, all %" PRIu64 " elements\n", array->elements);
    return;
  }
  printf(": largest error %.3g at ", result->error);
  print_index(array, result->worst);
  printf(" (%.8g instead of %.8g); %" PRIu64 " of %" PRIu64 " beyond rtol %g, atol %g\n", result->got,
         result->want, result->wrong, array->elements, rtol, atol);
}

// The expected array, of the tensor's own type or of a number type of numpy; `param` describes it.
static TileError *read_expected(const RunArray *array, const char *path, TileParam *param, RunArray *want) {
  *param = *array->param;
  *want = (RunArray){.param = param};
  TileError *error = run_array_read(want, path);
  if (!error) return NULL;
  Npy npy;
  NpyError reason;
  if (!npy_read(path, &npy, &reason)) return error;
  bool plain = plain_dtype(npy.descr, &param->dtype);
  npy_free(&npy);
  if (!plain || param->dtype == array->param->dtype) return error;
  TileError *second = run_array_read(want, path);
  if (second) {
    tile_error_free(second);
    return error;
  }
  tile_error_free(error);
  return NULL;
}

static void shape_text(ErrorText *text, const RunArray *array) {
  for (int i = 0; i < array->param->rank; i++)
    error_text(text, "%s%" PRId64, i ? ", " : "[", array->shape[i]);
  error_text(text, "]");
}

static TileError *load_expected(const RunArray *array, const char *path, TileParam *param, RunArray *want) {
  TileError *error = read_expected(array, path, param, want);
  if (error || memcmp(want->shape, array->shape, sizeof want->shape) == 0) return error;
  ErrorText text = {0};
  error_text(&text, "--expect %s: %s has the shape ", array->param->name, path);
  shape_text(&text, want);
  error_text(&text, ", the result has ");
  shape_text(&text, array);
  return error_of_text(TILE_INVALID, &text);
}

TileError *run_expect_check(const RunArray *array, const char *path) {
  TileParam param;
  RunArray want;
  TileError *error = load_expected(array, path, &param, &want);
  run_array_free(&want);
  return error;
}

TileError *run_expect(const RunArray *array, const char *path, double rtol, double atol, bool *wrong) {
  double tolerance = dtype_is_integer(array->param->dtype) ? 0 : 1e-2;
  if (rtol < 0) rtol = tolerance;
  if (atol < 0) atol = tolerance;
  TileParam param;
  RunArray want;
  TileError *error = load_expected(array, path, &param, &want);
  if (!error) {
    Comparison result = compare(array, &want, rtol, atol);
    print_comparison(array, &result, rtol, atol);
    *wrong = result.wrong > 0;
  }
  run_array_free(&want);
  return error;
}

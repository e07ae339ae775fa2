// Host arrays, their .npy files and their place on the device. An emulated allocation has exactly the
// tensor's bytes, so that any access beside it faults at its instruction; on a GPU, red zones around tensors
// that are written find it afterwards.
#include "core/run_array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/dtype.h"
#include "core/error.h"
#include "npy/npy.h"

enum { ZONE_BYTES = 1024, ZONE_FILL = 0xA5, POISON = 0xFF };

// ---- Host

TileError *run_array_shape(RunArray *array) {
  int bits = tile_dtype_bits(array->param->dtype);
  const char *name = array->param->name;
  array->elements = 1;
  for (int i = 0; i < array->param->rank; i++)
    if (__builtin_mul_overflow(array->elements, (uint64_t)array->shape[i], &array->elements) ||
        array->elements > UINT64_C(1) << 40)
      return error_new(TILE_INVALID, "%s: too many elements", name);
  if (bits == 6)
    return error_new(TILE_INVALID, "%s: tile-run has no arrays of %s", name,
                     tile_dtype_name(array->param->dtype));
  if (bits == 4 && array->shape[array->param->rank - 1] % 2)
    return error_new(TILE_INVALID, "%s: rows of %s must have an even number of elements", name,
                     tile_dtype_name(array->param->dtype));
  array->bytes = array->elements * (uint64_t)bits / 8;
  free(array->data);
  array->data = calloc(array->bytes ? array->bytes : 1, 1);
  return array->data ? NULL
                     : error_new(TILE_UNAVAILABLE, "no memory for %llu bytes of %s",
                                 (unsigned long long)array->bytes, name);
}

void run_array_free(RunArray *array) {
  free(array->data);
  array->data = NULL;
}

uint64_t run_array_bits(const RunArray *array, uint64_t index) {
  int bits = tile_dtype_bits(array->param->dtype);
  uint64_t value = 0;
  if (bits == 4) return array->data[index / 2] >> (index % 2 * 4) & 15;
  memcpy(&value, array->data + index * (uint64_t)bits / 8, (size_t)bits / 8);
  return value;
}

double run_array_value(const RunArray *array, uint64_t index) {
  return dtype_decode(array->param->dtype, run_array_bits(array, index));
}

static void set_value(RunArray *array, uint64_t index, double value) {
  int bits = tile_dtype_bits(array->param->dtype);
  uint64_t encoded = dtype_encode(array->param->dtype, value);
  if (bits == 4)
    array->data[index / 2] |= (uint8_t)(encoded << (index % 2 * 4));
  else
    memcpy(array->data + index * (uint64_t)bits / 8, &encoded, (size_t)bits / 8);
}

// SplitMix64: a counter through a mixer.
static uint64_t next_random(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

static double uniform(uint64_t *state) {
  return ((double)(next_random(state) >> 11) + 0.5) * 0x1p-53;
}

// Box and Muller: one of the two normal numbers is enough here.
static double normal(uint64_t *state) {
  double radius = sqrt(-2 * log(uniform(state)));
  return radius * cos(6.283185307179586 * uniform(state));
}

void run_array_random(RunArray *array, uint64_t seed) {
  TileDType dtype = array->param->dtype;
  uint64_t state = seed;
  memset(array->data, 0, array->bytes);
  for (uint64_t i = 0; i < array->elements; i++) {
    double value = 0;
    switch (dtype_kind(dtype)) {
    case DTYPE_FLOAT:
      value = dtype == TILE_UE8M0 ? ldexp(1, (int)(next_random(&state) % 5) - 2) : normal(&state);
      break;
    case DTYPE_SIGNED:
      value = (double)(next_random(&state) % 17) - 8;
      break;
    case DTYPE_UNSIGNED:
      value = (double)(next_random(&state) % 16);
      break;
    case DTYPE_TRUTH:
      value = (double)(next_random(&state) % 2);
      break;
    }
    set_value(array, i, value);
  }
}

void run_array_poison(RunArray *array) {
  memset(array->data, POISON, array->bytes);
}

// ---- Files

// How numpy spells the dtype, and another spelling that is accepted.
static void npy_types(TileDType dtype, const char **first, const char **second) {
  static const char *const rows[TILE_DTYPE_COUNT][2] = {
      [TILE_F64] = {"<f8", NULL},  [TILE_F32] = {"<f4", NULL},   [TILE_TF32] = {"<f4", NULL},
      [TILE_F16] = {"<f2", NULL},  [TILE_BF16] = {"<u2", "V2"},  [TILE_E4M3] = {"|u1", "V1"},
      [TILE_E5M2] = {"|u1", "V1"}, [TILE_E2M3] = {"|u1", "V1"},  [TILE_E3M2] = {"|u1", "V1"},
      [TILE_E2M1] = {"|u1", "V1"}, [TILE_UE8M0] = {"|u1", "V1"}, [TILE_I64] = {"<i8", NULL},
      [TILE_I32] = {"<i4", NULL},  [TILE_I16] = {"<i2", NULL},   [TILE_I8] = {"|i1", NULL},
      [TILE_U64] = {"<u8", NULL},  [TILE_U32] = {"<u4", NULL},   [TILE_U16] = {"<u2", NULL},
      [TILE_U8] = {"|u1", NULL},   [TILE_BOOL] = {"|b1", "u1"},
  };
  *first = rows[dtype][0];
  *second = rows[dtype][1];
}

static bool npy_fits(TileDType dtype, const char *descr) {
  const char *first, *second;
  npy_types(dtype, &first, &second);
  return strcmp(descr + 1, first + 1) == 0 || (second && strcmp(descr + 1, second) == 0);
}

// As numpy calls it, for messages.
static const char *numpy_name(const char *code) {
  static const char *const rows[][2] = {
      {"f8", "float64"}, {"f4", "float32"}, {"f2", "float16"},  {"i8", "int64"},  {"i4", "int32"},
      {"i2", "int16"},   {"i1", "int8"},    {"u8", "uint64"},   {"u4", "uint32"}, {"u2", "uint16"},
      {"u1", "uint8"},   {"b1", "bool"},    {"c8", "complex64"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (strcmp(code, rows[i][0]) == 0) return rows[i][1];
  return code;
}

// The float type of a file that --convert reads. False: it holds something else.
static bool convertible(const RunArray *array, const Npy *npy, TileDType *from) {
  static const TileDType floats[] = {TILE_F64, TILE_F32, TILE_F16};
  bool to_float = dtype_kind(array->param->dtype) == DTYPE_FLOAT;
  for (int i = 0; i < 3 && to_float; i++) {
    const char *first, *second;
    npy_types(floats[i], &first, &second);
    if (strcmp(npy->descr + 1, first + 1) != 0) continue;
    *from = floats[i];
    return true;
  }
  return false;
}

static TileError *misfit(const RunArray *array, const Npy *npy, const char *path) {
  const TileParam *param = array->param;
  const char *first, *second, *dtype = tile_dtype_name(param->dtype);
  TileDType from;
  npy_types(param->dtype, &first, &second);
  ErrorText text = {0};
  error_text(&text, "%s: expected %s[", param->name, dtype);
  for (int i = 0; i < param->rank; i++) error_text(&text, "%s%s", i ? ", " : "", param->shape[i]);
  error_text(&text, "], given %s[", numpy_name(npy->descr + 1));
  for (int i = 0; i < npy->ndim; i++)
    error_text(&text, "%s%llu", i ? ", " : "", (unsigned long long)npy->shape[i]);
  error_text(&text, "] in %s", path);
  if (!npy_fits(param->dtype, npy->descr)) {
    error_text(&text, "; %s is %s%s%s in a .npy file%s", dtype, numpy_name(first + 1), second ? " or " : "",
               second ? numpy_name(second) : "", tile_dtype_bits(param->dtype) == 4 ? ", two to a byte" : "");
    if (convertible(array, npy, &from))
      error_text(&text, "; with --convert the numbers are rounded to %s", dtype);
  }
  return error_of_text(TILE_INVALID, &text);
}

static TileError *convert(RunArray *array, const Npy *npy, TileDType from) {
  size_t bytes = (size_t)tile_dtype_bits(from) / 8;
  TileError *error = run_array_shape(array);
  for (uint64_t i = 0; i < array->elements && !error; i++) {
    uint64_t bits = 0;
    memcpy(&bits, (const char *)npy->data + i * bytes, bytes);
    set_value(array, i, dtype_decode(from, bits));
  }
  return error;
}

static TileError *take_file(RunArray *array, const Npy *npy, const char *path) {
  const TileParam *param = array->param;
  TileDType from;
  bool fits = npy_fits(param->dtype, npy->descr);
  bool converts = !fits && array->convert && convertible(array, npy, &from);
  if ((!fits && !converts) || npy->ndim != param->rank) return misfit(array, npy, path);
  for (int i = 0; i < npy->ndim; i++) {
    if (npy->shape[i] > INT32_MAX) return misfit(array, npy, path);
    array->shape[i] = (int64_t)npy->shape[i];
  }
  if (converts) return convert(array, npy, from);
  if (tile_dtype_bits(param->dtype) == 4) array->shape[param->rank - 1] *= 2;
  TileError *error = run_array_shape(array);
  if (!error) memcpy(array->data, npy->data, array->bytes);
  return error;
}

TileError *run_array_read(RunArray *array, const char *path) {
  Npy npy;
  NpyError reason;
  if (!npy_read(path, &npy, &reason))
    return error_new(TILE_INVALID, "%s: %s", array->param->name, reason.text);
  TileError *error = take_file(array, &npy, path);
  npy_free(&npy);
  return error;
}

static TileError *write_npy(const RunArray *array, const Npy *npy, const char *path) {
  NpyError reason;
  return npy_write(path, npy, &reason) ? NULL
                                       : error_new(TILE_INVALID, "%s: %s", array->param->name, reason.text);
}

// Numbers that numpy has no type for, as float32, which holds each of them.
static TileError *write_converted(const RunArray *array, Npy *npy, const char *path) {
  float *numbers = calloc(array->elements + 1, sizeof *numbers);
  if (!numbers) return error_new(TILE_UNAVAILABLE, "no memory to convert %s", array->param->name);
  for (uint64_t i = 0; i < array->elements; i++) numbers[i] = (float)run_array_value(array, i);
  npy->data = numbers;
  strcpy(npy->descr, "<f4");
  TileError *error = write_npy(array, npy, path);
  free(numbers);
  return error;
}

TileError *run_array_write(const RunArray *array, const char *path) {
  const char *first, *second;
  TileDType dtype = array->param->dtype;
  npy_types(dtype, &first, &second);
  Npy npy = {.ndim = array->param->rank, .data = array->data};
  for (int i = 0; i < npy.ndim; i++) npy.shape[i] = (uint64_t)array->shape[i];
  if (array->convert && dtype_kind(dtype) == DTYPE_FLOAT && first[1] == 'u')
    return write_converted(array, &npy, path);
  strcpy(npy.descr, first);
  if (tile_dtype_bits(dtype) == 4) npy.shape[npy.ndim - 1] /= 2;
  return write_npy(array, &npy, path);
}

// ---- Device

// The tensor as it lies on the device: rows of so many bytes, one every `pitch` bytes.
typedef struct {
  uint64_t rows, row, pitch, bytes;
  int64_t strides[TILE_MAX_RANK];  // in elements
} Placed;

static Placed placed_of(const RunArray *array) {
  int rank = array->param->rank;
  uint64_t bits = (uint64_t)tile_dtype_bits(array->param->dtype);
  uint64_t inner = rank ? (uint64_t)array->shape[rank - 1] : 1;
  uint64_t pitch = array->pitch ? (uint64_t)array->pitch : inner;
  Placed placed = {
      .rows = inner ? array->elements / inner : 0, .row = inner * bits / 8, .pitch = pitch * bits / 8};
  placed.bytes = placed.rows * placed.pitch;
  int64_t stride = 1;
  for (int d = rank - 1; d >= 0; d--) {
    placed.strides[d] = stride;
    stride *= d == rank - 1 ? (int64_t)pitch : array->shape[d];
  }
  return placed;
}

static TileError *check_pitch(const RunArray *array) {
  int64_t inner = array->param->rank ? array->shape[array->param->rank - 1] : 1;
  bool whole = array->pitch * tile_dtype_bits(array->param->dtype) % 8 == 0;
  if (array->pitch == 0 || (array->pitch >= inner && whole)) return NULL;
  return error_new(TILE_INVALID, "%s: a pitch of %lld elements, rows have %lld", array->param->name,
                   (long long)array->pitch, (long long)inner);
}

static TileError *write_zones(const RunArray *array, TileDevice *device) {
  uint8_t zone[ZONE_BYTES];
  memset(zone, ZONE_FILL, sizeof zone);
  TileError *error = tile_write(device, array->address - array->zone, zone, array->zone);
  return error ? error : tile_write(device, array->address + placed_of(array).bytes, zone, array->zone);
}

static TileError *write_rows(const RunArray *array, TileDevice *device) {
  Placed placed = placed_of(array);
  if (placed.pitch == placed.row) return tile_write(device, array->address, array->data, array->bytes);
  uint8_t *image = malloc(placed.bytes + 1);
  if (!image) return error_new(TILE_UNAVAILABLE, "no memory for the rows of %s", array->param->name);
  memset(image, ZONE_FILL, placed.bytes);
  for (uint64_t r = 0; r < placed.rows; r++)
    memcpy(image + r * placed.pitch, array->data + r * placed.row, placed.row);
  TileError *error = tile_write(device, array->address, image, placed.bytes);
  free(image);
  return error;
}

TileError *run_array_place(RunArray *array, TileDevice *device, TileCall *call) {
  TileError *error = check_pitch(array);
  if (error) return error;
  bool emulated = strcmp(tile_device_backend(device), "emu") == 0;
  Placed placed = placed_of(array);
  array->zone = (array->param->access & TILE_WRITE) && !emulated ? ZONE_BYTES : 0;
  uint64_t base;
  error = tile_alloc(device, placed.bytes + 2 * array->zone, array->param->name, &base);
  if (error) return error;
  array->address = base + array->zone;
  error = write_zones(array, device);
  if (!error) error = write_rows(array, device);
  TileTensor tensor = {array->address, array->param->dtype, array->param->rank, array->shape,
                       array->pitch ? placed.strides : NULL};
  return error ? error : tile_call_tensor(call, array->param->name, &tensor);
}

void run_array_unplace(RunArray *array, TileDevice *device) {
  if (array->address) tile_error_free(tile_free(device, array->address - array->zone));
  array->address = 0;
}

// `at` is where the zone begins, counted from the tensor's first byte.
static TileError *check_fill(const RunArray *array, const uint8_t *zone, uint64_t bytes, int64_t at) {
  for (uint64_t i = 0; i < bytes; i++) {
    if (zone[i] == ZONE_FILL) continue;
    return error_new(TILE_FAULT, "the kernel wrote outside of %s: at byte %lld, the tensor has %llu bytes%s",
                     array->param->name, (long long)(at + (int64_t)i),
                     (unsigned long long)placed_of(array).bytes,
                     array->pitch ? " with the gaps between rows" : "");
  }
  return NULL;
}

static TileError *check_zone(const RunArray *array, TileDevice *device, int64_t at) {
  uint8_t zone[ZONE_BYTES];
  TileError *error = tile_read(device, array->address + (uint64_t)at, zone, array->zone);
  return error ? error : check_fill(array, zone, array->zone, at);
}

static TileError *read_rows(RunArray *array, TileDevice *device) {
  Placed placed = placed_of(array);
  if (placed.pitch == placed.row) return tile_read(device, array->address, array->data, array->bytes);
  uint8_t *image = malloc(placed.bytes + 1);
  if (!image) return error_new(TILE_UNAVAILABLE, "no memory for the rows of %s", array->param->name);
  TileError *error = tile_read(device, array->address, image, placed.bytes);
  for (uint64_t r = 0; r < placed.rows && !error; r++) {
    uint64_t at = r * placed.pitch, gap = at + placed.row;
    memcpy(array->data + r * placed.row, image + at, placed.row);
    error = check_fill(array, image + gap, placed.pitch - placed.row, (int64_t)gap);
  }
  free(image);
  return error;
}

TileError *run_array_fetch(RunArray *array, TileDevice *device) {
  TileError *error = read_rows(array, device);
  if (!error) error = check_zone(array, device, -(int64_t)array->zone);
  if (!error) error = check_zone(array, device, (int64_t)placed_of(array).bytes);
  return error;
}

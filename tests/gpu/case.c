// Sizes and arrays of a case, from a seed. The first cases of a kernel are the corners (K = 0, one row, one
// column, …), the others random. Two cases of three are fit for TMA: sizes and strides are multiples of 16, though
// not of the tile. In the others all is possible, so that both variants of a kernel run.
#include "case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"

enum { POISON = 0xA5, UNWRITTEN = 0xFF };

// ---- Randomness: splitmix64

uint64_t random_bits(Random *random) {
  uint64_t z = random->state += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
  return z ^ z >> 31;
}

int64_t random_range(Random *random, int64_t low, int64_t high) {
  return low + (int64_t)(random_bits(random) % (uint64_t)(high - low + 1));
}

bool random_chance(Random *random, int percent) {
  return random_range(random, 0, 99) < percent;
}

static double random_real(Random *random) {
  double sum = 0;  // twelve of these are near enough to a normal distribution
  for (int i = 0; i < 12; i++) sum += ldexp((double)(random_bits(random) >> 11), -53);
  return sum - 6;
}

// ---- Sizes

typedef struct {
  const char *name;
  int64_t size;
} Corner;

static const Corner corners[] = {
    {NULL, 256}, {"K", 0}, {"M", 1}, {"N", 1}, {"K", 1}, {"K", 16}, {"M", 0}, {"K", 288},
};
enum { NCORNERS = sizeof corners / sizeof corners[0] };

static int64_t draw_size(Random *random, const char *name, bool multiple, bool large) {
  enum { MOST = 300 };
  if (strcmp(name, "batch") == 0) return random_range(random, 1, 3);
  bool depth = strcmp(name, "K") == 0;
  if (large) return random_range(random, depth ? 4 : 100, depth ? 9 : 180) * 16;
  if (!multiple && random_chance(random, 20)) return random_range(random, 1, 17);
  return multiple ? 16 * random_range(random, 1, MOST / 16) : random_range(random, 1, MOST);
}

// A kernel whose only size is N is a vector: more elements.
static bool draw_sizes(Case *c, Random *random, int index, bool large, bool multiple, char *why) {
  int count = tile_kernel_size_count(c->kernel);
  const Corner *corner = !large && !c->spec->tma_only && index < NCORNERS ? &corners[index] : NULL;
  for (int i = 0; i < count; i++) {
    const char *name = tile_kernel_size_name(c->kernel, i);
    if (name[0] == '$') continue;  // the device's
    if (c->nsizes == MAX_SIZES) return snprintf(why, 200, "more than %d sizes", MAX_SIZES), false;
    int64_t size = draw_size(random, name, multiple, large);
    if (corner && (!corner->name || strcmp(corner->name, name) == 0) && strcmp(name, "batch") != 0)
      size = corner->size;
    if (count == 1 && name[0] == 'N') size = size * 37 + random_range(random, 0, 3);
    c->size_name[c->nsizes] = name;
    c->size[c->nsizes++] = size;
  }
  return true;
}

int64_t case_size(const Case *c, const char *name) {
  for (int i = 0; i < c->nsizes; i++)
    if (strcmp(c->size_name[i], name) == 0) return c->size[i];
  return 0;
}

// ---- Arrays

int64_t array_bytes(const Array *array) {
  return array->offset + array->extent;
}

// Strides from the innermost dimension out: compact, or rows padded to 16 bytes and a little more, or (of what is only
// read) one row for all.
static void set_strides(Array *array, Random *random, bool multiple) {
  int rank = array->param->rank, bytes = number_bytes(array->param->dtype);
  bool padded = rank > 1 && random_chance(random, multiple ? 50 : 30);
  bool one_row = rank > 1 && array->param->access == TILE_READ && random_chance(random, 6);
  int64_t pitch = 1, last = 0;
  array->count = 1;
  for (int i = rank - 1; i >= 0; i--) {
    array->stride[i] = one_row && i == rank - 2 ? 0 : pitch;
    if (one_row && i == rank - 2) {
      array->count *= array->shape[i];
      continue;
    }
    last += array->shape[i] > 0 ? (array->shape[i] - 1) * pitch : 0;
    array->count *= array->shape[i];
    pitch *= array->shape[i] ? array->shape[i] : 1;
    if (padded && i == rank - 1)
      pitch = ((pitch * bytes + 15) / 16 + random_range(random, 0, 2)) * 16 / bytes;
  }
  array->extent = array->count ? (last + 1) * bytes : 0;
  array->offset = !multiple && random_chance(random, 20) ? bytes * random_range(random, 1, 3) : 0;
}

static double draw_value(const Case *c, const TileParam *param, Random *random) {
  bool is_unsigned = param->dtype == TILE_U8 || param->dtype == TILE_U16 || param->dtype == TILE_U32;
  switch (c->fill) {
  case FILL_INTEGERS:
    return (double)random_range(random, is_unsigned ? 0 : -3, 3);
  case FILL_POSITIVE:
    return (double)random_range(random, -4, 300);
  case FILL_REALS:
    break;
  }
  return random_real(random);
}

// Byte offset of element `index` (counted as `value` is) from the first.
static int64_t place_of(const Array *array, int64_t index) {
  int64_t place = 0;
  for (int i = array->param->rank - 1; i >= 0; i--) {
    place += index % array->shape[i] * array->stride[i];
    index /= array->shape[i];
  }
  return place * number_bytes(array->param->dtype);
}

static bool fill_array(const Case *c, Array *array, Random *random) {
  size_t bytes = (size_t)array_bytes(array) + 2 * GUARD;
  array->value = calloc((size_t)array->count + 1, sizeof *array->value);
  array->image = malloc(bytes);
  if (!array->value || !array->image) return false;
  memset(array->image, POISON, bytes);
  uint8_t *first = array->image + GUARD + array->offset, unwritten[8];
  memset(unwritten, UNWRITTEN, sizeof unwritten);
  TileDType dtype = array->param->dtype;
  for (int64_t i = 0; i < array->count; i++) {
    uint8_t *at = first + place_of(array, i);
    if (array->param->access & TILE_READ) {
      number_encode(dtype, draw_value(c, array->param, random), at);
    } else {
      memcpy(at, unwritten, (size_t)number_bytes(dtype));
    }
  }
  // Elements may share memory.
  for (int64_t i = 0; i < array->count && (array->param->access & TILE_READ); i++)
    array->value[i] = number_decode(dtype, first + place_of(array, i));
  return true;
}

// The API works out each tensor's shape from the sizes.
static bool make_arrays(Case *c, Random *random, bool multiple, char *why) {
  TileCall *call = NULL;
  TileError *error = tile_call_new(c->kernel, &call);
  for (int i = 0; i < c->nsizes && !error; i++) error = tile_call_size(call, c->size_name[i], c->size[i]);
  bool ok = true;
  for (int i = 0; i < tile_kernel_param_count(c->kernel) && !error && ok; i++) {
    const TileParam *param = tile_kernel_param(c->kernel, i);
    ok = param->kind == TILE_PARAM_TENSOR && c->narrays < MAX_ARRAYS && number_known(param->dtype);
    if (!ok) snprintf(why, 200, "parameter %s is nothing that the suite can make", param->name);
    if (!ok) break;
    Array *array = &c->array[c->narrays++];
    array->param = param;
    error = tile_call_shape(call, param->name, array->shape);
    if (error) break;
    set_strides(array, random, multiple);
    ok = fill_array(c, array, random);
  }
  if (error) snprintf(why, 200, "%s", tile_error_message(error));
  ok = ok && !error;
  tile_error_free(error);
  tile_call_free(call);
  return ok;
}

// Real numbers in place of whole ones, with the errors that the operands' types and the result's have: an f32 operand
// loses what tf32 lacks, sums of 8-bit floats keep 13 bits on Hopper.
static void use_reals(Case *c) {
  double atol = 0, rtol = 0, least = 0;
  for (int i = 0; i < tile_kernel_param_count(c->kernel); i++) {
    const TileParam *param = tile_kernel_param(c->kernel, i);
    int bytes = number_bytes(param->dtype);
    if (param->access & TILE_WRITE)
      rtol = bytes == 4 ? 1e-4 : param->dtype == TILE_F16 ? 2e-3 : 1e-2;
    else
      atol = bytes == 4 ? 4e-2 : bytes == 2 ? 1e-3 : 1e-1;
    if (param->access == TILE_READ && bytes == 4) least = 2e-3;
    if (param->dtype == TILE_I8 || param->dtype == TILE_U8) return;
  }
  c->fill = FILL_REALS;
  c->rtol = fmax(rtol, least);
  c->atol = atol;
}

bool case_draw(Case *out, const TileKernel *kernel, uint64_t seed, int index, bool large, char why[200]) {
  *out = (Case){.spec = spec_find(tile_kernel_name(kernel)), .kernel = kernel, .seed = seed};
  if (!out->spec) {
    snprintf(why, 200, "the suite has no reference for kernel %s (kernels.c)", tile_kernel_name(kernel));
    return false;
  }
  out->fill = out->spec->fill;
  out->rtol = out->spec->rtol;
  out->atol = out->spec->atol;
  if (large && index % 2 && out->spec->reals) use_reals(out);
  Random random = {seed + UINT64_C(0x632BE59BD9B4E019) * (uint64_t)(2 * index + large + 1)};
  bool multiple = large || out->spec->tma_only || random_chance(&random, 67);
  if (!draw_sizes(out, &random, index, large, multiple, why) || !make_arrays(out, &random, multiple, why))
    return false;
  static const int clusters[] = {0, 1, 2, 3, 5};
  out->clusters = large ? 0 : clusters[random_range(&random, 0, 4)];
  out->spec->reference(out);
  return true;
}

void case_free(Case *c) {
  for (int i = 0; i < c->narrays; i++) {
    free(c->array[i].value);
    free(c->array[i].image);
  }
}

void case_describe(const Case *c, char *text, size_t room) {
  size_t n = 0;
  text[0] = '\0';
  for (int i = 0; i < c->nsizes && n < room; i++)
    n += (size_t)snprintf(text + n, room - n, "%s%s=%lld", i ? " " : "", c->size_name[i],
                          (long long)c->size[i]);
  for (int i = 0; i < c->narrays && n < room; i++) {
    const Array *array = &c->array[i];
    int rank = array->param->rank;
    if (rank > 1 && array->stride[rank - 2] != array->shape[rank - 1])
      n += (size_t)snprintf(text + n, room - n, ", %s pitch %lld", array->param->name,
                            (long long)array->stride[rank - 2]);
    if (array->offset && n < room)
      n += (size_t)snprintf(text + n, room - n, ", %s starts %lld bytes late", array->param->name,
                            (long long)array->offset);
  }
}

// ---- Judging

static bool element_wrong(const Case *c, TileDType dtype, const void *at, double want) {
  double got = number_decode(dtype, at);
  if (c->rtol == 0 && c->atol == 0) {
    uint8_t bytes[8] = {0};
    number_encode(dtype, want, bytes);
    double rounded = number_decode(dtype, bytes);
    return isnan(rounded) ? !isnan(got) : got != rounded;
  }
  return !(fabs(got - want) <= c->atol + c->rtol * fabs(want));
}

// Marks bytes that belong to elements, and counts wrong elements.
static int64_t judge_elements(const Case *c, const Array *array, const uint8_t *image, uint8_t *element,
                              char *why, size_t room) {
  TileDType dtype = array->param->dtype;
  int bytes = number_bytes(dtype);
  int64_t wrong = 0;
  for (int64_t i = 0; i < array->count; i++) {
    int64_t at = GUARD + array->offset + place_of(array, i);
    memset(element + at, 1, (size_t)bytes);
    if (!element_wrong(c, dtype, image + at, array->value[i])) continue;
    if (!wrong++)
      snprintf(why, room, "%s: element %lld of %lld is %g, should be %g", array->param->name, (long long)i,
               (long long)array->count, number_decode(dtype, image + at), array->value[i]);
  }
  return wrong;
}

bool array_wrong(const Case *c, const Array *array, const uint8_t *image, char *why, size_t room) {
  int64_t bytes = array_bytes(array) + 2 * GUARD;
  uint8_t *element = calloc((size_t)bytes, 1);
  if (!element) return snprintf(why, room, "out of memory"), true;
  int64_t wrong = judge_elements(c, array, image, element, why, room);
  if (wrong > 1) {
    size_t n = strlen(why);
    snprintf(why + n, room - n, " (%lld wrong)", (long long)wrong);
  }
  for (int64_t i = 0; i < bytes && !wrong; i++) {
    if (element[i] || image[i] == array->image[i]) continue;
    wrong = 1;
    snprintf(why, room, "%s: byte %lld from its start, which belongs to no element, was written",
             array->param->name, (long long)(i - GUARD - array->offset));
  }
  free(element);
  return wrong != 0;
}

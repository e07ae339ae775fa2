// One --arg is one or more clauses joined by ';', for one kernel parameter: `in:`, `out:`, `inout:` declare
// an array (and pass its address, unless a `tma:` clause passes a tensor map over it); `i32:`, `i64:`,
// `f32:`, `null` pass a scalar.
#include "emu_args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  const char *name;
  const char *descr;  // NumPy's
  int bits;
  int tma;  // CUtensorMapDataType
} DtypeRow;

static const DtypeRow dtypes[] = {
    {"f32", "<f4", 32, 7},  {"tf32", "<f4", 32, 11}, {"f16", "<f2", 16, 6}, {"bf16", "<u2", 16, 9},
    {"f64", "<f8", 64, 8},  {"e4m3", "|u1", 8, 0},   {"e5m2", "|u1", 8, 0}, {"ue8m0", "|u1", 8, 0},
    {"e2m1", "|u1", 4, 13}, {"i8", "|i1", 8, 0},     {"u8", "|u1", 8, 0},   {"bool", "|b1", 8, 0},
    {"i16", "<i2", 16, 1},  {"u16", "<u2", 16, 1},   {"i32", "<i4", 32, 3}, {"u32", "<u4", 32, 2},
    {"i64", "<i8", 64, 5},  {"u64", "<u8", 64, 4},
};

static bool fail(EmuArgs *args, const char *what, const char *text) {
  snprintf(args->error, sizeof args->error, "--arg %.300s: %s", text, what);
  return false;
}

static const DtypeRow *find_dtype(const char *name, size_t length) {
  for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
    if (strlen(dtypes[i].name) == length && memcmp(dtypes[i].name, name, length) == 0) return &dtypes[i];
  }
  return NULL;
}

static EmuArray *find_array(EmuArgs *args, const char *name, size_t length) {
  for (int i = 0; i < args->narrays; i++) {
    if (strlen(args->arrays[i].name) == length && memcmp(args->arrays[i].name, name, length) == 0)
      return &args->arrays[i];
  }
  return NULL;
}

// D0xD1x…, at most `most` numbers; the count, or 0
static int parse_shape(const char *text, size_t length, uint64_t *shape, int most) {
  char copy[160];
  if (length == 0 || length >= sizeof copy) return 0;
  memcpy(copy, text, length);
  copy[length] = '\0';
  int n = 0;
  for (char *at = copy; n < most;) {
    char *end;
    if (*at < '0' || *at > '9') return 0;
    errno = 0;
    shape[n++] = strtoull(at, &end, 10);
    if (errno != 0) return 0;
    if (*end == '\0') return n;
    if (*end != 'x') return 0;
    at = end + 1;
  }
  return 0;
}

bool emu_parse_dims(const char *text, uint32_t dims[3]) {
  dims[0] = dims[1] = dims[2] = 1;
  for (int i = 0; i < 3; i++) {
    char *end;
    if (*text < '0' || *text > '9') return false;
    unsigned long long value = strtoull(text, &end, 10);
    if (value < 1 || value > 0x7fffffff) return false;
    dims[i] = (uint32_t)value;
    if (*end == '\0') return true;
    if (*end != ',') return false;
    text = end + 1;
  }
  return false;
}

// ---- arrays

static EmuArray *new_array(EmuArgs *args, const char *clause, const char *name, size_t length) {
  if (args->narrays == MOST_ARRAYS || length == 0 || length >= sizeof args->arrays[0].name) {
    fail(args, "a name of 1 to 63 characters is expected", clause);
    return NULL;
  }
  if (find_array(args, name, length) != NULL) {
    fail(args, "the name is taken already", clause);
    return NULL;
  }
  EmuArray *array = &args->arrays[args->narrays++];
  memset(array, 0, sizeof *array);
  memcpy(array->name, name, length);
  return array;
}

static bool place(EmuArgs *args, const char *clause, EmuArray *array) {
  array->address = ptxemu_alloc(args->emu, array->npy.bytes, array->name);
  if (array->address == 0) return fail(args, "out of memory", clause);
  if (array->npy.data != NULL) ptxemu_write(args->emu, array->address, array->npy.data, array->npy.bytes);
  free(array->npy.data);
  array->npy.data = NULL;
  return true;
}

static bool set_path(EmuArgs *args, const char *clause, char *to, size_t size, const char *from,
                     size_t length) {
  if (length == 0 || length >= size) return fail(args, "a file name is expected", clause);
  memcpy(to, from, length);
  to[length] = '\0';
  return true;
}

// in:NAME=x.npy, inout:NAME=x.npy[:y.npy]
static bool input_clause(EmuArgs *args, const char *clause, const char *rest, bool is_inout,
                         EmuArray **array) {
  const char *equals = strchr(rest, '=');
  if (equals == NULL) return fail(args, "NAME=FILE.npy is expected", clause);
  *array = new_array(args, clause, rest, (size_t)(equals - rest));
  if (*array == NULL) return false;
  const char *path = equals + 1, *colon = is_inout ? strchr(path, ':') : NULL;
  char in[512];
  size_t length = colon != NULL ? (size_t)(colon - path) : strlen(path);
  if (!set_path(args, clause, in, sizeof in, path, length)) return false;
  const char *out = colon != NULL ? colon + 1 : path;
  if (is_inout && !set_path(args, clause, (*array)->out_path, sizeof(*array)->out_path, out, strlen(out)))
    return false;
  NpyError error;
  if (!npy_read(in, &(*array)->npy, &error)) return fail(args, error.text, clause);
  (*array)->bits = (int)(*array)->npy.item_bytes * 8;
  return place(args, clause, *array);
}

// out:NAME=y.npy:DTYPE:D0xD1
static bool output_clause(EmuArgs *args, const char *clause, const char *rest, EmuArray **array) {
  const char *equals = strchr(rest, '='), *shape = strrchr(rest, ':'), *dtype = shape;
  while (dtype != NULL && dtype > rest && *--dtype != ':') {
  }
  if (equals == NULL || shape == NULL || dtype == NULL || dtype <= equals) {
    return fail(args, "NAME=FILE.npy:DTYPE:D0xD1 is expected", clause);
  }
  const DtypeRow *row = find_dtype(dtype + 1, (size_t)(shape - dtype - 1));
  if (row == NULL) return fail(args, "unknown element type", clause);
  *array = new_array(args, clause, rest, (size_t)(equals - rest));
  if (*array == NULL) return false;
  if (!set_path(args, clause, (*array)->out_path, sizeof(*array)->out_path, equals + 1,
                (size_t)(dtype - equals - 1)))
    return false;
  Npy *npy = &(*array)->npy;
  snprintf(npy->descr, sizeof npy->descr, "%s", row->descr);
  npy->ndim = parse_shape(shape + 1, strlen(shape + 1), npy->shape, NPY_MAX_DIMS);
  uint64_t count;
  if (npy->ndim == 0 || !npy_count(npy, &count)) return fail(args, "a shape like 128x64 is expected", clause);
  npy->item_bytes = npy_item_bytes(npy->descr);
  npy->bytes = count * npy->item_bytes;
  (*array)->bits = row->bits;
  return place(args, clause, *array);
}

// ---- tensor maps

static bool map_option(PtxEmuTensorMap *map, const DtypeRow **dtype, const char *key, size_t key_length,
                       const char *value, size_t length) {
  uint64_t numbers[5];
  int n = parse_shape(value, length, numbers, 5);
#define KEY(text) (key_length == sizeof text - 1 && memcmp(key, text, key_length) == 0)
#define VALUE(text) (length == sizeof text - 1 && memcmp(value, text, length) == 0)
  if (KEY("dtype")) return (*dtype = find_dtype(value, length)) != NULL;
  if (KEY("box") || KEY("strides")) {
    for (int i = 0; i < n; i++)
      (KEY("box") ? map->box : map->element_stride)[n - 1 - i] = (uint32_t)numbers[i];
    if (KEY("box")) map->rank = n;
    return n > 0;
  }
  if (KEY("size")) {  // of a tensor in the corner of the array; pitches stay the array's
    for (int i = 0; i < n; i++) map->size[n - 1 - i] = numbers[i];
    return n > 0;
  }
  if (KEY("swizzle")) {
    map->swizzle = VALUE("128") ? 3 : VALUE("64") ? 2 : VALUE("32") ? 1 : 0;
    return map->swizzle != 0 || VALUE("0");
  }
  if (KEY("interleave")) {
    map->interleave = VALUE("32") ? 2 : VALUE("16") ? 1 : 0;
    return map->interleave != 0 || VALUE("0");
  }
  if (KEY("oob")) {
    map->fill_nan = VALUE("nan");
    return map->fill_nan || VALUE("zero");
  }
#undef KEY
#undef VALUE
  return false;
}

static bool map_options(EmuArgs *args, const char *clause, const char *at, PtxEmuTensorMap *map,
                        const DtypeRow **dtype) {
  while (*at == ',') {
    at++;
    size_t length = strcspn(at, ","), key = strcspn(at, "=");
    if (key >= length || !map_option(map, dtype, at, key, at + key + 1, length - key - 1)) {
      return fail(args,
                  "options are dtype=, box=D0xD1, swizzle=0|32|64|128, interleave=0|16|32, oob=zero|nan, "
                  "strides=, size=",
                  clause);
    }
    at += length;
  }
  if (*dtype == NULL || map->rank == 0) return fail(args, "dtype= and box= are needed", clause);
  return true;
}

// tma:NAME,dtype=bf16,box=128x64,swizzle=128: outermost dimension first
static bool map_clause(EmuArgs *args, const char *clause, const char *rest, uint8_t out[128]) {
  size_t length = strcspn(rest, ",");
  const EmuArray *array = find_array(args, rest, length);
  if (array == NULL) return fail(args, "no array of that name has been declared", clause);
  PtxEmuTensorMap map = {.address = array->address};
  for (int i = 0; i < 5; i++) map.element_stride[i] = 1;
  const DtypeRow *dtype = NULL;
  if (!map_options(args, clause, rest + length, &map, &dtype)) return false;
  if (array->npy.ndim != map.rank) return fail(args, "the box has another rank than the array", clause);
  map.type = dtype->tma;
  uint64_t pitch = array->npy.item_bytes;
  for (int i = 0; i < map.rank; i++) {
    uint64_t extent = array->npy.shape[map.rank - 1 - i];
    if (map.size[i] == 0 || map.size[i] > extent) map.size[i] = extent;
    map.stride[i] = pitch;
    pitch *= extent;
  }
  if (dtype->bits == 4) map.size[0] *= 2;
  if (ptxemu_encode_tensor_map(args->emu, &map, out)) return true;
  return fail(args, ptxemu_report(args->emu), clause);
}

// ---- clauses

typedef struct {
  uint8_t bytes[128];
  size_t size;
} Value;

static bool number_clause(EmuArgs *args, const char *clause, const char *kind, const char *rest,
                          Value *value) {
  char *end;
  errno = 0;
  if (strcmp(kind, "f32") == 0) {
    float f = strtof(rest, &end);
    memcpy(value->bytes, &f, value->size = 4);
  } else {
    long long i = rest[0] == '-' ? strtoll(rest, &end, 0) : (long long)strtoull(rest, &end, 0);
    value->size = strcmp(kind, "i64") == 0 ? 8 : 4;
    memcpy(value->bytes, &i, value->size);
  }
  if (end == rest || *end != '\0') return fail(args, "a number is expected", clause);
  return true;
}

static bool one_clause(EmuArgs *args, const char *clause, Value *value) {
  char kind[8];
  size_t length = strcspn(clause, ":");
  if (strcmp(clause, "null") == 0) {
    value->size = 8;
    return true;
  }
  if (length >= sizeof kind || clause[length] != ':')
    return fail(args, "in: out: inout: tma: i32: i64: f32: or null", clause);
  memcpy(kind, clause, length);
  kind[length] = '\0';
  const char *rest = clause + length + 1;
  EmuArray *array = NULL;
  if (strcmp(kind, "tma") == 0) {
    value->size = 128;
    return map_clause(args, clause, rest, value->bytes);
  }
  if (strcmp(kind, "i32") == 0 || strcmp(kind, "i64") == 0 || strcmp(kind, "f32") == 0) {
    return number_clause(args, clause, kind, rest, value);
  }
  bool ok = strcmp(kind, "in") == 0      ? input_clause(args, clause, rest, false, &array)
            : strcmp(kind, "inout") == 0 ? input_clause(args, clause, rest, true, &array)
            : strcmp(kind, "out") == 0   ? output_clause(args, clause, rest, &array)
                                         : fail(args, "in: out: inout: tma: i32: i64: f32: or null", clause);
  if (!ok) return false;
  memcpy(value->bytes, &array->address, value->size = 8);
  return true;
}

bool emu_args_add(EmuArgs *args, const char *text, const PtxEmuParam *param) {
  char copy[2048];
  if (strlen(text) >= sizeof copy) return fail(args, "the argument is too long", text);
  strcpy(copy, text);
  Value value = {{0}, 0};
  for (char *clause = copy; clause != NULL;) {
    char *next = strchr(clause, ';');
    if (next != NULL) *next++ = '\0';
    memset(&value, 0, sizeof value);
    if (!one_clause(args, clause, &value)) return false;
    clause = next;
  }
  if (param == NULL) return true;
  if (value.size != param->bytes) {
    snprintf(args->error, sizeof args->error, "--arg %.200s gives %zu bytes, parameter '%.100s' takes %llu",
             text, value.size, param->name, (unsigned long long)param->bytes);
    return false;
  }
  if (param->offset + value.size > sizeof args->params) return fail(args, "too many parameters", text);
  memcpy(args->params + param->offset, value.bytes, value.size);
  return true;
}

bool emu_args_write(EmuArgs *args) {
  for (int i = 0; i < args->narrays; i++) {
    EmuArray *array = &args->arrays[i];
    if (array->out_path[0] == '\0') continue;
    Npy npy = array->npy;
    npy.data = malloc(npy.bytes > 0 ? npy.bytes : 1);
    NpyError error = {"out of memory"};
    bool ok = npy.data != NULL && ptxemu_read(args->emu, array->address, npy.data, npy.bytes) &&
              npy_write(array->out_path, &npy, &error);
    free(npy.data);
    if (!ok) {
      snprintf(args->error, sizeof args->error, "%s", error.text);
      return false;
    }
  }
  return true;
}

void emu_args_free(EmuArgs *args) {
  for (int i = 0; i < args->narrays; i++) free(args->arrays[i].npy.data);
}

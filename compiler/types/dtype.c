// The rows of dtype.def as tables, and the spellings that Python libraries use for the same types.
#include "types/dtype.h"

#include <assert.h>
#include <string.h>

typedef struct {
  const char *name;
  int bits;
  DTypeClass class;
} DTypeRow;

static const DTypeRow rows[DTYPE_COUNT] = {
#define DTYPE(name, bits, class) {#name, bits, DTYPE_CLASS_##class},
#include "types/dtype.def"
#undef DTYPE
};

typedef struct {
  const char *spelling;
  DType dtype;
} Alias;

static const Alias aliases[] = {
    {"float64", DTYPE_f64},
    {"double", DTYPE_f64},
    {"float32", DTYPE_f32},
    {"float", DTYPE_f32},
    {"tfloat32", DTYPE_tf32},
    {"float16", DTYPE_f16},
    {"half", DTYPE_f16},
    {"bfloat16", DTYPE_bf16},
    {"float8_e4m3", DTYPE_e4m3},
    {"float8_e4m3fn", DTYPE_e4m3},
    {"e4m3_float8", DTYPE_e4m3},
    {"float8_e5m2", DTYPE_e5m2},
    {"e5m2_float8", DTYPE_e5m2},
    {"float6_e2m3fn", DTYPE_e2m3},
    {"float6_e3m2fn", DTYPE_e3m2},
    {"float4_e2m1fn", DTYPE_e2m1},
    {"float8_e8m0fnu", DTYPE_ue8m0},
    {"int64", DTYPE_i64},
    {"int32", DTYPE_i32},
    {"int", DTYPE_i32},
    {"int16", DTYPE_i16},
    {"int8", DTYPE_i8},
    {"uint64", DTYPE_u64},
    {"uint32", DTYPE_u32},
    {"uint16", DTYPE_u16},
    {"uint8", DTYPE_u8},
    {"boolean", DTYPE_bool},
};

static const DTypeRow *row(DType dtype) {
  assert((unsigned)dtype < DTYPE_COUNT);
  return &rows[dtype];
}

const char *dtype_name(DType dtype) {
  return row(dtype)->name;
}

int dtype_bits(DType dtype) {
  return row(dtype)->bits;
}

int dtype_bytes(DType dtype) {
  return row(dtype)->bits / 8;
}

DTypeClass dtype_class(DType dtype) {
  return row(dtype)->class;
}

bool dtype_is_float(DType dtype) {
  return row(dtype)->class == DTYPE_CLASS_FLOAT;
}

bool dtype_is_int(DType dtype) {
  return row(dtype)->class == DTYPE_CLASS_SIGNED || row(dtype)->class == DTYPE_CLASS_UNSIGNED;
}

bool dtype_parse(const char *text, DType *out) {
  for (int i = 0; i < DTYPE_COUNT; i++) {
    if (strcmp(rows[i].name, text) != 0) continue;
    *out = (DType)i;
    return true;
  }
  for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
    if (strcmp(aliases[i].spelling, text) != 0) continue;
    *out = aliases[i].dtype;
    return true;
  }
  return false;
}

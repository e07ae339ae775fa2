// Element types: one row each in dtype.def.
#ifndef TILEC_TYPES_DTYPE_H
#define TILEC_TYPES_DTYPE_H

#include <stdbool.h>

typedef enum { DTYPE_CLASS_FLOAT, DTYPE_CLASS_SIGNED, DTYPE_CLASS_UNSIGNED, DTYPE_CLASS_BOOLEAN } DTypeClass;

typedef enum {
#define DTYPE(name, bits, class) DTYPE_##name,
#include "types/dtype.def"
#undef DTYPE
  DTYPE_COUNT
} DType;

const char *dtype_name(DType dtype);  // "bf16"
int dtype_bits(DType dtype);          // in memory; bool is a byte
int dtype_bytes(DType dtype);         // 0 for types narrower than a byte
DTypeClass dtype_class(DType dtype);
bool dtype_is_float(DType dtype);
bool dtype_is_int(DType dtype);  // signed or unsigned, not bool

// Accepts our spelling and those of Python libraries: "bf16", "bfloat16", "float32", "int8", "uint8",
// "float8_e4m3", "float8_e4m3fn", "float8_e5m2", "float16", "half", "bool", … False when unknown.
bool dtype_parse(const char *text, DType *out);

#endif

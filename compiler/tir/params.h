// The parameters of a kernel's entry function, in their one order: code generation declares them so, launch
// information lists them so (docs/launch-info.md).
#ifndef TILEC_TIR_PARAMS_H
#define TILEC_TIR_PARAMS_H

#include "tir/tir.h"

typedef enum {
  PARAM_POINTER,  // a tensor's base address: 8 bytes
  PARAM_SIZE,     // a dimension's size: i32
  PARAM_STRIDE,   // a tensor's stride of one dimension, in elements: i64; all dimensions but the innermost
  PARAM_MAP,      // a tensor map: 128 bytes, aligned to 64
  PARAM_SCALAR,   // a scalar argument of its natural size
} ParamKind;

typedef struct {
  ParamKind kind;
  TirValue *value;  // the tensor, size or param value; of a map its tensor
  int index;        // PARAM_STRIDE: dimension, outermost 0; PARAM_MAP: number of the map
} TirParam;

typedef VEC(TirParam) TirParams;

// The symbol of the kernel's entry function in PTX and cubin: its name, with a suffix for the general
// variant.
const char *tir_entry_name(Arena *arena, const TirKernel *kernel);

// What the kernel's body does with a tensor: READS, WRITES or both; READS when it is not touched.
unsigned tir_access(const TirKernel *kernel, const TirValue *tensor);
TirParams tir_params(Arena *arena, const TirKernel *kernel);

#endif

// The 32-bit instruction descriptor of tcgen05.mma (PTX ISA 9.7.16.4.2, tables 42-45) and the shapes of
// table 39.
#ifndef PTXEMU_ASYNC_IDESC_H
#define PTXEMU_ASYNC_IDESC_H

#include "async/mma_operand.h"

typedef enum { KIND_F16, KIND_TF32, KIND_F8F6F4, KIND_I8, KIND_MXF8F6F4, KIND_MXF4, KIND_MXF4NVF4 } MmaKind;
typedef enum { D_F16, D_F32, D_S32 } MmaD;

typedef struct {
  MmaKind kind;
  int m, n, k;
  MmaType a, b;
  MmaD d;
  bool negate_a, negate_b, transpose_a, transpose_b, saturate;
  int scale_a, scale_b;  // byte of the scale word (SF id)
  bool scale_ue8m0;
} Idesc;

static inline bool kind_is_scaled(MmaKind kind) {
  return kind >= KIND_MXF8F6F4;
}

// False with the reason when a field is illegal for the kind and cta_group (1 or 2). `scale_vector`: scales
// per row and instruction, 1, 2 or 4, for scaled kinds.
bool idesc_decode(uint32_t word, MmaKind kind, int cta_group, bool ws, int scale_vector, Idesc *out,
                  SpaceError *why);

#endif

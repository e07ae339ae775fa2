// Arithmetic at compile time, exactly as the GPU would do it or not at all.
#ifndef TILEC_TIR_FOLD_H
#define TILEC_TIR_FOLD_H

#include "ops/ops.h"

// A constant as OP_const holds it: an integer (bool: 0 or 1), or the bits of a double.
typedef struct {
  DType dtype;
  int64_t bits;
} FoldValue;

// False: the result is not exact (overflow, division by zero, a function that hardware approximates), so do
// not fold.
bool fold_binary(OpKind kind, FoldValue lhs, FoldValue rhs, FoldValue *out);
bool fold_unary(OpKind kind, FoldValue operand, FoldValue *out);
bool fold_cast(DType dtype, FoldValue operand, FoldValue *out);

// Rounds to the nearest value of a float type, ties to even; false for types narrower than 16 bits.
bool fold_round(DType dtype, double value, double *out);
bool fold_fits(DType dtype, int64_t value);  // value is one of an integer or bool type

double fold_double(int64_t bits);
int64_t fold_bits(double value);

#endif

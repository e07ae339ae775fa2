// Between the two files of the verifier.
#ifndef TILEC_TIR_VERIFY_INTERNAL_H
#define TILEC_TIR_VERIFY_INTERNAL_H

#include "tir/tir.h"

typedef struct {
  TirKernel *kernel;
  Diags *ds;
  unsigned char *visible;  // by value id: a Visibility
  bool in_launch;
} Verifier;

// Reports; returns false.
__attribute__((format(printf, 3, 4))) bool verify_fail(Verifier *v, const TirOp *op, const char *format, ...);

// Operand and result types of one op whose counts are right. False: reported.
bool verify_op(Verifier *v, const TirOp *op);

#endif

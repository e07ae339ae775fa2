// What can be proven about a staged integer: bounds and a common divisor. Used to show that a tile lies
// inside its tensor and that addresses are aligned.
#ifndef TILEC_TIR_RANGES_H
#define TILEC_TIR_RANGES_H

#include "tir/tir.h"

typedef struct {
  int64_t lo, hi;    // inclusive; INT64_MIN and INT64_MAX where nothing is known
  int64_t multiple;  // the value is a multiple of it; 0 for the constant 0, which is a multiple of everything
} TirRange;

// Never wrong, often weak: looks a bounded number of ops back.
TirRange tir_known_range(const TirValue *value);
// The range's `multiple`: `tir_known_multiple(v) % 16 == 0` means that v is provably a multiple of 16.
int64_t tir_known_multiple(const TirValue *value);
// Provably the same: one value, or pure ops of the same kind on the same operands; for buffers, equal views
// of one root.
bool tir_same_value(const TirValue *a, const TirValue *b);
// The sum of two ranges; bounds that leave 64 bits become unknown.
TirRange tir_range_add(TirRange a, TirRange b);

#endif

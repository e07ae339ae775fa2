// Element types as numbers: what a scalar argument, a random input or a comparison needs.
#ifndef TILE_CORE_DTYPE_H
#define TILE_CORE_DTYPE_H

#include "tile.h"

typedef enum { DTYPE_FLOAT, DTYPE_SIGNED, DTYPE_UNSIGNED, DTYPE_TRUTH } DTypeKind;

DTypeKind dtype_kind(TileDType dtype);
bool dtype_is_integer(TileDType dtype);  // signed, unsigned or bool

// The value of an element whose bits are the low bits of `bits`.
double dtype_decode(TileDType dtype, uint64_t bits);
// The bits of the nearest value, ties to even. Floats with infinities overflow to them, the others saturate
// (e4m3 to NaN for an infinity); integers truncate towards zero and saturate; NaN becomes 0 in an integer.
uint64_t dtype_encode(TileDType dtype, double value);
// Whether an integer is a value of the type, exactly.
bool dtype_holds(TileDType dtype, int64_t value);

#endif

// Element types as numbers, written down a second time: the suite must not judge the runtime by its own tables.
#ifndef TESTS_GPU_NUMBER_H
#define TESTS_GPU_NUMBER_H

#include "tile.h"

int number_bytes(TileDType dtype);
// The value of an element in memory. NaN stays NaN.
double number_decode(TileDType dtype, const void *bytes);
// Rounds to nearest, ties to even; beyond the largest: infinity, or NaN where the type has none. Integers are
// taken as they are.
void number_encode(TileDType dtype, double value, void *bytes);
// Whether the suite has values of this type.
bool number_known(TileDType dtype);

#endif

// What tile-run says about a result.
#ifndef TILE_CORE_RUN_COMPARE_H
#define TILE_CORE_RUN_COMPARE_H

#include "core/run_array.h"

// Prints "C: bf16[512, 512], min -3 max 4 mean 0.1, 0 NaN".
void run_summary(const RunArray *array);

// Whether the file can be compared with the array: type and shape. The same errors as run_expect, before anything runs.
TileError *run_expect_check(const RunArray *array, const char *path);

// Compares with a .npy file: of the tensor's own type, or of any numpy number type (a reference in double
// precision). Prints the largest error, where it is, and the count of elements with |result - expected| >
// atol + rtol * |expected|; a NaN equals a NaN only. Negative tolerances: 1e-2 for floats, 0 for integers.
// *wrong: whether there are such elements.
TileError *run_expect(const RunArray *array, const char *path, double rtol, double atol, bool *wrong);

#endif

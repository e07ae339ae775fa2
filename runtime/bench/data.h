// Matrices on the GPU with reproducible content, and whether two results agree.
#ifndef TILE_BENCH_DATA_H
#define TILE_BENCH_DATA_H

#include "bench/gpu.h"
#include "bench/problem.h"

// Random elements that fill a matrix over and over; their number is prime, so that rows and columns see them at
// ever other places.
typedef struct {
  TileDType dtype;
  uint64_t count;
  uint8_t *bytes;
  float *values;
} Block;

// Normally distributed floats, or integers from -8 to 8.
TileError *block_make(TileDType dtype, uint64_t seed, Block *out);
void block_free(Block *block);
// Fills `elements` elements at `address`.
TileError *block_fill(const Gpu *gpu, const Block *block, CudaAddress address, uint64_t elements);

// How one result differs from another.
typedef struct {
  uint64_t elements, wrong;  // wrong: differ by more than is allowed
  uint64_t first;            // index of the first wrong one
  double got, want;          // there
  double relative;           // root of the squared differences' sum over that of the squares
} Difference;

// Compares two results of dtype on the host; `loose` is the difference that is always allowed, in units of the
// root mean square of `want`. Integers must be equal. NaN is never right. False without memory.
bool data_compare(TileDType dtype, const uint8_t *got, const uint8_t *want, uint64_t elements, double loose,
                  Difference *out);
// What is allowed for products of these operands.
double data_tolerance(TileDType operand);

// Compares some elements of a result with sums in double precision of the blocks that filled A and B.
void data_check_samples(const Problem *problem, Sizes sizes, const Block *a, const Block *b,
                        const uint8_t *result, uint64_t seed, Difference *out);

#endif

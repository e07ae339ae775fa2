// The arithmetic of one tensor-core instruction: a whole M x N x K product added to an accumulator in one
// fused sum per element. The PTX ISA leaves order and rounding open; this is the model that public
// measurements of Hopper and Blackwell found exact: all products and the accumulator are aligned to the
// largest exponent, truncated to F fractional bits, added exactly, and the sum is truncated to f32 (or
// rounded to f16).
#ifndef PTXEMU_NUM_ACCUMULATE_H
#define PTXEMU_NUM_ACCUMULATE_H

#include <stdbool.h>
#include <stdint.h>

enum {
  NUM_TILE_MAX_ROWS = 256,
  NUM_TILE_MAX_K = 64,
  NUM_EXPONENT_ZERO = -126,          // what a zero accumulator counts as
  NUM_EXPONENT_ZERO_FACTOR = -1000,  // a product with a zero factor never sets the alignment (measured)
  NUM_EXPONENT_SPECIAL = 4000        // marks NaN and infinity
};

// One decoded operand. Element (row, k) is value[row * NUM_TILE_MAX_K + k]; `exponent` is that of the
// element's own format, subnormals counted at the format's least exponent. scale[row] is a power of two
// applied to the row.
typedef struct {
  int rows, k;
  float value[NUM_TILE_MAX_ROWS * NUM_TILE_MAX_K];
  int16_t exponent[NUM_TILE_MAX_ROWS * NUM_TILE_MAX_K];
  int16_t scale[NUM_TILE_MAX_ROWS];
  bool scale_is_nan[NUM_TILE_MAX_ROWS];
} NumTile;

// How an instruction kind sums.
typedef struct {
  int window;        // F
  bool f16_result;   // accumulator and result are f16 codes in the low half of each word
  int result_bits;   // fractional bits kept in an f32 result: 23, or 13 for fp8 on Hopper
  bool read_d;       // enable-input-d
  int d_scale_down;  // scale-input-d: the accumulator counts times 2^-d_scale_down
} NumSum;

// d[m][n] := a (M x K) * b (N x K) transposed + d, the words of a row `d_stride` apart. `b` is given as N
// rows.
void num_mma(const NumTile *a, const NumTile *b, const NumSum *sum, uint32_t *d, int d_stride);

// The same for one element, straight from the definition: what num_mma falls back to, and what tests compare
// with.
uint32_t num_mma_element(const NumTile *a, int m, const NumTile *b, int n, const NumSum *sum, uint32_t d);

// Block-scaled fp4 (mxf4, mxf4nvf4): groups of 16 products are summed exactly, multiplied by the two scale
// significands and added with F = 35. Scales of row r, group g: scale_value[r * 4 + g], significand in [1, 2)
// or below for subnormals, and scale_exponent; a NaN scale makes the result NaN.
typedef struct {
  float significand[NUM_TILE_MAX_ROWS * 4];
  int16_t exponent[NUM_TILE_MAX_ROWS * 4];
} NumGroupScales;
void num_mma_fp4(const NumTile *a, const NumGroupScales *sa, const NumTile *b, const NumGroupScales *sb,
                 bool read_d, uint32_t *d, int d_stride);

// s8/u8 products into s32, wrapping, or clamped when `saturate`. Operands are M x K and N x K, rows `k` long.
void num_mma_int(const int16_t *a, const int16_t *b, int m, int n, int k, bool saturate, bool read_d,
                 uint32_t *d, int d_stride);

// Fills one element of a tile; the exponent of a subnormal is `min_exponent`.
static inline void num_tile_set(NumTile *tile, int row, int k, float value, int min_exponent) {
  union {
    float f;
    uint32_t u;
  } bits = {value};
  int at = row * NUM_TILE_MAX_K + k, field = (int)(bits.u >> 23 & 0xFF), exponent = field - 127;
  if (exponent < min_exponent) exponent = min_exponent;
  if (field == 0xFF) exponent = NUM_EXPONENT_SPECIAL;
  if ((bits.u & 0x7FFFFFFF) == 0) exponent = NUM_EXPONENT_ZERO_FACTOR;
  tile->value[at] = value;
  tile->exponent[at] = (int16_t)exponent;
}

#endif

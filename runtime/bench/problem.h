// Which product a kernel computes: recognised from its tensors, since a kernel does not say so.
#ifndef TILE_BENCH_PROBLEM_H
#define TILE_BENCH_PROBLEM_H

#include <stdbool.h>

#include "tile.h"

// C (m, n) = A · B over k.
typedef struct {
  int64_t m, n, k;
} Sizes;

typedef struct {
  const TileParam *a, *b, *c;
  bool a_by_columns;      // A is (K, M), not (M, K)
  bool b_by_columns;      // B is (K, N), not (N, K)
  const char *m, *n, *k;  // dimensions as the kernel spells them: a name, or a number that was fixed
} Problem;

// `layout` is NULL for any, or as cublas spells the operands of a row-major product (B first): "tn" A (M, K), B (N, K);
// "nn" B (K, N); "tt" A (K, M), B (N, K); "nt" both. TILE_INVALID: no such product, several
// results, a batch, or types whose results cannot be compared.
TileError *problem_find(const TileKernel *kernel, const char *layout, Problem *out);
// Whether problem_find knows this layout.
bool problem_knows_layout(const char *layout);
// "A(M,K) B(N,K)": how the two are stored.
void problem_describe(const Problem *problem, char *out, size_t size);

enum { PROBLEM_OPERANDS = 24 };
// "bf16", or "e4m3 and e5m2": the types of A and B, written to `out`, which is returned.
const char *problem_operands(const Problem *problem, char out[PROBLEM_OPERANDS]);

// "8192x8192x1024", or "4096" for a cube. False: not of that form, or no sizes from 1 to 2^31 - 1.
bool sizes_parse(const char *text, size_t length, Sizes *out);
// A comma list; `out` is the caller's to free. False: printed nowhere, *wrong points at the item at fault.
bool sizes_parse_list(const char *text, Sizes **out, int *count, const char **wrong);
double sizes_flops(Sizes sizes);

// Gives the kernel's sizes these values where it leaves them open. TILE_INVALID: it has fixed another value.
TileError *problem_fix(const Problem *problem, TileCall *call, Sizes sizes);
// The sizes that the kernel has fixed itself; false when one is open.
bool problem_fixed_sizes(const Problem *problem, Sizes *out);

#endif

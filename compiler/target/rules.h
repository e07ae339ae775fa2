// Rules that targets share: a target's table names them. Tensor-map boxes and the shape of shared tiles are
// decided here too, so that the rule that accepts a TMA copy and the pass that lays it out cannot disagree.
#ifndef TILEC_TARGET_RULES_H
#define TILEC_TARGET_RULES_H

#include "target/target.h"
#include "tir/build.h"
#include "tir/ranges.h"

extern const Target target_sm100a, target_sm90a;

// Paths among the memory spaces of a GPU with TMA and TMEM.
bool rule_copy(const Target *target, TirOp *op, bool variant_tma, Diags *ds);
bool rule_fill(const Target *target, TirOp *op, bool variant_tma, Diags *ds);
bool rule_atomic_add(const Target *target, TirOp *op, bool variant_tma, Diags *ds);
bool rule_reduce(const Target *target, TirOp *op, bool variant_tma, Diags *ds);
// One-CTA MMA with operands in shared memory, either way round, and the accumulator in TMEM.
bool rule_gemm(const Target *target, TirOp *op, bool variant_tma, Diags *ds);
// MMA by whole warpgroups: B in shared memory, A there or in a fragment, the accumulator in a fragment.
bool rule_wgmma(const Target *target, TirOp *op, bool variant_tma, Diags *ds);

// Which part of its root a buffer value is: all numbers are per dimension of the root.
typedef struct {
  TirValue *root;
  int64_t extent[TYPE_MAX_RANK];
  TirRange start[TYPE_MAX_RANK];
  int dim[TYPE_MAX_RANK];  // per dimension of the buffer: the dimension of the root
} RuleTile;
RuleTile rule_tile(TirValue *buffer);

// The swizzle span, in bytes, of a shared buffer: the widest that divides its rows when an MMA reads it;
// otherwise 0, unless its rows are too long for one box dimension. 0 for one that is seen with rows of several lengths.
int rule_shared_span(const Target *target, TirValue *buffer, bool mma_operand);

// The widest span that divides the rows of a matrix; 0: none does.
int rule_row_span(const Type *type);

// The box of a TMA copy between `tile` of a tensor and shared memory of that span: as large as the limits
// allow, and such that the boxes of the tile, in row-major order, fill the shared tile. False: no such box,
// or too many of them.
bool rule_tma_box(const Target *target, const RuleTile *tile, int span, int64_t *box);

// Why the TMA cannot reach this part of a tensor; NULL: it can once the guard holds.
const char *rule_tensor_obstacle(const RuleTile *tile, bool store);
// Why the TMA cannot carry out a copy between these buffers, whatever its guard says; NULL: it can once the guard holds.
const char *rule_tma_obstacle(const Target *target, TirValue *src, TirValue *dst);
bool rule_tma_legal(const Target *target, TirValue *src, TirValue *dst);
// The same for a copy that only the TMA may do. False: reported, with the bytes.
bool rule_check_tma(const Target *target, const TirOp *op, Diags *ds);

// A copy without a path, for passes that need one.
TirOp *rule_make_copy(TirBuilder *b, TirValue *src, TirValue *dst);

#endif

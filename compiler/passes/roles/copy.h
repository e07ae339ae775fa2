// One role's copy of the kernel's body: its own ops, the control around them, and what they compute with.
#ifndef TILEC_PASSES_ROLES_COPY_H
#define TILEC_PASSES_ROLES_COPY_H

#include "passes/roles/plan.h"

// Where a role stands in something that it goes through again and again: which of `depth` copies it is at, and whether for
// an even or an odd time. Cells of the role, since loops around make the count.
typedef struct {
  const void *of;  // a Ring or a block that is home to channels
  int depth;
  TirValue *index, *use;  // cells; NULL: always 0
  TirValue *at, *parity;  // their values in this turn
} Clock;

typedef struct {
  RolePlan *plan;
  Role role;
  TirThreads threads;
  Map *now;      // values and ops of the original -> of the copy
  TirBuilder b;  // where the copy grows
  VEC(Clock) clocks;
} RoleCopy;

// Copies what the role does in `block` to the builder's place.
void copy_block(RoleCopy *copy, TirBlock *block);
// The copy of a value of the original; the value itself when it is outside of what is copied.
TirValue *copy_value(const RoleCopy *copy, TirValue *value);
// Copies one op without its bodies, with no result that is a token unless `tokens`.
TirOp *copy_op(RoleCopy *copy, const TirOp *op, bool tokens);

// ---- the protocol that the copies keep (protocol.c)

void clocks_make(RoleCopy *copy);
// A turn of a block or of a ring's loop begins, ends.
void turn_begins(RoleCopy *copy, TirBlock *block);
void turn_ends(RoleCopy *copy, TirBlock *block);
// Around an op of a block.
void hand_in(RoleCopy *copy, const TirOp *op);
void hand_on(RoleCopy *copy, const TirOp *op);
void copy_load(RoleCopy *copy, const TirOp *op);
void copy_product(RoleCopy *copy, const TirOp *op);

#endif

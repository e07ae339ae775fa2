// What the files of this room share: the rows of tile.def and the sentences' parts.
#ifndef TILEC_OPS_OPS_INTERNAL_H
#define TILEC_OPS_OPS_INTERNAL_H

#include "ops/ops.h"

#define TILE_OP(name) extern const OpDef op_##name;
#include "ops/tile.def"
#undef TILE_OP

enum {
  IN_GLOBAL = 1u << SPACE_GLOBAL,
  IN_SHARED = 1u << SPACE_SHARED,
  IN_TMEM = 1u << SPACE_TMEM,
  IN_FRAGMENT = 1u << SPACE_FRAGMENT,
  IN_BARRIER = 1u << SPACE_BARRIER,
  IN_LOCAL = 1u << SPACE_LOCAL,
  IN_MEMORY = IN_GLOBAL | IN_SHARED | IN_TMEM | IN_FRAGMENT,
};

// The checks of atomic.c: of the three element ops, and of the type that an op may add to in memory.
bool op_check_atomic(const OpCall *call);
bool op_check_atomic_type(const OpCall *call, AtomicOp op);

// The row of a core op; `kind` is below the first tile op.
const OpDef *op_core_def(OpKind kind);

// How messages call operand i: the user's name for it, else the table's.
const char *op_operand_name(const OpCall *call, int i);

// "128x64", "?x64" or "a scalar", in the caller's storage.
typedef struct {
  char text[128];
} ShapeText;
ShapeText op_shape_text(const Type *type);

#endif

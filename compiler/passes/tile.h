// What the passes of this room ask about tile ops, answered from OpDef and the op's attributes, so that no
// pass names one.
#ifndef TILEC_PASSES_TILE_H
#define TILEC_PASSES_TILE_H

#include "passes/pass.h"

typedef VEC(TirOp *) TirOpList;

enum { RESERVED_BYTES = 2048 };  // of shared memory, for barriers and small buffers that later passes add

// Every op below the block, in order, bodies after their op; safe to edit the IR while going through it.
TirOpList tile_collect(Arena *arena, TirBlock *block);
bool tile_is(const TirOp *op);  // a tile op
// Attribute by name; `absent` when the op has none of that name.
int64_t tile_attr(const TirOp *op, const char *name, int64_t absent);
int tile_slot(const TirOp *op, const char *name);  // by name; -1 when the op has none of that name
void tile_set_attr(TirOp *op, const char *name, int64_t value);
// The access of operand i: READS | WRITES; 0 for scalars, absent operands, operands past the fixed ones.
unsigned tile_access(const TirOp *op, int i);
// An op that moves one buffer into another of the same shape. False: it does something else.
bool tile_move(const TirOp *op, TirValue **src, TirValue **dst);
// The buffer whose slots the panels of the tile stand in on their way; NULL: the op goes another path.
TirValue *tile_ring(const TirOp *op);
// The kernel is for launches where the TMA can reach this tensor; `store`: write it.
void tile_guard(PassCx *cx, TirKernel *kernel, TirValue *tensor, bool store);
// An op that folds one dimension of src into dst.
typedef struct {
  TirValue *src, *dst;
  int dim;                         // that dimension of src
  int kept[TYPE_MAX_RANK], nkept;  // the others
} TileReduction;
bool tile_reduction(const TirOp *op, TileReduction *out);  // false: it is no such op
// The outermost op of that kind around `op`, itself included; NULL when there is none.
TirOp *tile_outermost(TirOp *op, OpKind kind);
bool tile_is_element(const TirOp *op);         // reads or writes one element of a buffer
bool tile_is_fragment(const TirValue *value);  // NULL is none

#endif

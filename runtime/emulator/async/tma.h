// A tiled TMA operation once its operands are read: shared by the instruction handlers (tma_inst.c) and the
// copy engine itself (tma.c).
#ifndef PTXEMU_ASYNC_TMA_H
#define PTXEMU_ASYNC_TMA_H

#include "async/async_internal.h"
#include "async/tensor_map.h"

typedef enum {
  REDUCE_NONE,
  REDUCE_ADD,
  REDUCE_MIN,
  REDUCE_MAX,
  REDUCE_INC,
  REDUCE_DEC,
  REDUCE_AND,
  REDUCE_OR,
  REDUCE_XOR
} Reduce;

typedef enum { TILE_BOX, TILE_GATHER4, TILE_SCATTER4 } TileMode;

typedef struct {
  EngineOp op;
  TensorMap map;
  TileMode mode;
  int32_t at[5];     // coordinates; gather4 and scatter4: column, then four rows
  uint32_t shared;   // offset of the tile in each CTA of `ranks`
  uint32_t ranks;    // CTAs of the cluster: destinations of a load
  bool pair_signal;  // .cta_group::2: the barrier is in the pair's CTA of the named one's parity
  Reduce reduce;     // a store keeps its bytes in op.buffer after the first stage: rows without padding
} TmaOp;

bool tma_complete_load(Machine *machine, EngineOp *op);
bool tma_complete_store(Machine *machine, EngineOp *op);

// One element of a reduction in place; `bits` wide. False: the type has no such operation.
bool tma_reduce_known(int element, Reduce reduce);
void tma_reduce_element(int element, Reduce reduce, uint8_t *memory, const uint8_t *operand);

#endif

// Operand tiles of tensor-core instructions, decoded once per instruction into values and exponents: from
// shared memory through a descriptor, from tensor memory, or from registers. Used by tcgen05.mma and wgmma.
#ifndef PTXEMU_ASYNC_MMA_OPERAND_H
#define PTXEMU_ASYNC_MMA_OPERAND_H

#include "async/async_internal.h"
#include "async/smem_desc.h"

typedef enum {
  MMA_F16,
  MMA_BF16,
  MMA_TF32,
  MMA_E4M3,
  MMA_E5M2,
  MMA_E2M3,
  MMA_E3M2,
  MMA_E2M1,         // in 8-bit containers, or 16 elements padded to 16 bytes in shared memory
  MMA_E2M1_PACKED,  // two per byte
  MMA_U8,
  MMA_S8,
  MMA_U4,  // these two in registers only
  MMA_S4,
} MmaType;

const char *mma_type_name(MmaType type);
bool mma_type_is_int(MmaType type);
// Elements in 16 bytes of shared memory, and in one 32-bit word of tensor memory or of a register.
int mma_type_per_unit(MmaType type);
int mma_type_per_word(MmaType type);

// Where the decoded elements go. Integer types fill `ints` (rows of `k`), the others `tile`.
typedef struct {
  NumTile *tile;
  int16_t *ints;
  int k;
  MmaType type;
  bool negate;
} MmaTarget;

// Rows first … first + rows - 1 of the target from the shared memory of `cta`: rows (M or N) `from` and up of
// the operand. False after reporting a fault.
bool mma_load_shared(Machine *machine, const Origin *origin, const Cta *cta, const SmemDesc *desc,
                     bool mn_major, int from, int first, int rows, const MmaTarget *target);
// Elements of one 32-bit word: k, k + 1, … of `row`.
void mma_load_word(Machine *machine, uint32_t word, int row, int k, const MmaTarget *target);

#endif

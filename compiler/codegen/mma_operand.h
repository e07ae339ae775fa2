// Operands of an MMA in shared memory: panels of swizzled rows, named by a 64-bit descriptor whose low 14 bits are the start
// address over 16. Steps along M, N and K change nothing else, so one descriptor an operand is computed and steps add
// constants.
#ifndef TILEC_CODEGEN_MMA_OPERAND_H
#define TILEC_CODEGEN_MMA_OPERAND_H

#include "codegen/cg.h"

// The descriptor of a target without its start address. leading: bytes from a panel to the next along M or N, when these
// are innermost in memory; stride: from 8 rows to the next 8.
typedef uint64_t (*MmaDescriptorFn)(int span, int64_t leading, int64_t stride);

typedef struct {
  const CgPlace *place;
  bool mn_major;        // M (or N) is the innermost dimension in memory
  int bytes, span;      // of an element, of a row of a panel
  int64_t rows;         // of a panel
  bool regular;         // steps are constants
  uint64_t descriptor;  // without start address
  LLVMValueRef first;   // i32: where along M or N this warpgroup's part starts; NULL: at 0
  LLVMValueRef base;    // descriptor of its first element
} MmaOperand;

// False: reported. `first` as above.
bool mma_operand_begin(Cg *cg, const TirOp *op, int i, bool mn_major, MmaDescriptorFn descriptor,
                       LLVMValueRef first, MmaOperand *out);
// The descriptor for an instruction that starts so many elements further along M or N, and along K.
LLVMValueRef mma_operand_step(Cg *cg, const MmaOperand *operand, int64_t mn, int64_t k);

// Columns of an instruction: equal pieces of whole steps, the last one shorter. With N innermost in memory a piece starts
// with a panel of B, or, in the part of a warpgroup that begins inside of one, lies in it.
int64_t mma_piece_columns(int64_t n, int64_t most, int64_t step, const MmaOperand *b);
// i1: whether the first K step adds to the accumulator; `clear` is the number of that operand.
LLVMValueRef mma_first_accumulates(Cg *cg, const TirOp *op, int clear);

#endif

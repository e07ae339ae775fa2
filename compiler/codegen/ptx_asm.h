// Instructions that LLVM has no intrinsic for, or none that keeps what matters, as PTX text.
#ifndef TILEC_CODEGEN_PTX_ASM_H
#define TILEC_CODEGEN_PTX_ASM_H

#include "codegen/cg.h"

// One or several instructions with an effect on memory. Operands are $0, $1, …: the result first, when there is one,
// then `args`: integers of 16, 32 and 64 bits, f32, and pointers. NULL: no result.
LLVMValueRef ptx_asm(Cg *cg, const char *text, LLVMTypeRef result, int nargs, LLVMValueRef *args);

#endif

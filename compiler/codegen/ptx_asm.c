// Every piece of text counts as an effect that touches memory: nothing moves across it (rules L1).
#include "codegen/ptx_asm.h"

#include <string.h>

#include "base/text.h"

enum { MAX_OPERANDS = 8 };

// The constraint letter of a register of this type.
static char letter_of(LLVMTypeRef type) {
  if (LLVMGetTypeKind(type) == LLVMPointerTypeKind) return 'l';
  if (LLVMGetTypeKind(type) == LLVMFloatTypeKind) return 'f';
  unsigned bits = LLVMGetIntTypeWidth(type);
  return bits == 16 ? 'h' : bits == 32 ? 'r' : 'l';
}

LLVMValueRef ptx_asm(Cg *cg, const char *text, LLVMTypeRef result, int nargs, LLVMValueRef *args) {
  TextBuf constraints = {.arena = cg->arena};
  LLVMTypeRef types[MAX_OPERANDS];
  if (result) textbuf_printf(&constraints, "=%c,", letter_of(result));
  for (int i = 0; i < nargs; i++) {
    types[i] = LLVMTypeOf(args[i]);
    textbuf_printf(&constraints, "%c,", letter_of(types[i]));
  }
  textbuf_puts(&constraints, "~{memory}");
  LLVMTypeRef type = LLVMFunctionType(result ? result : cg->none, types, (unsigned)nargs, false);
  LLVMValueRef callee = LLVMGetInlineAsm(type, text, strlen(text), constraints.data, constraints.len, true,
                                         false, LLVMInlineAsmDialectATT, false);
  return LLVMBuildCall2(cg->builder, type, callee, args, (unsigned)nargs, "");
}

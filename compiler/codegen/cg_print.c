// print becomes a call of the device's vprintf(format, arguments): the driver, or the emulator, shows the text. The
// arguments lie in local memory as C's varargs would: integers of 32 or 64 bits, floats as doubles, each at a multiple
// of its size.
#include "codegen/cg.h"
#include "codegen/nvvm.h"

#include <string.h>

enum { MAX_PRINTED = 32, SLOT_BYTES = 8 };

static LLVMValueRef vprintf_function(Cg *cg, LLVMTypeRef *type) {
  LLVMTypeRef pointer = LLVMPointerTypeInContext(cg->context, 0), params[] = {pointer, pointer};
  *type = LLVMFunctionType(cg->i32, params, 2, false);
  LLVMValueRef found = LLVMGetNamedFunction(cg->module, "vprintf");
  return found ? found : LLVMAddFunction(cg->module, "vprintf", *type);
}

// The text in global memory, as a generic pointer.
static LLVMValueRef format_text(Cg *cg, const char *text) {
  enum { GLOBAL = 1 };
  LLVMValueRef bytes = LLVMConstStringInContext2(cg->context, text, strlen(text), false);
  LLVMValueRef global = LLVMAddGlobalInAddressSpace(cg->module, LLVMTypeOf(bytes), "format", GLOBAL);
  LLVMSetInitializer(global, bytes);
  LLVMSetGlobalConstant(global, true);
  LLVMSetLinkage(global, LLVMPrivateLinkage);
  return LLVMConstAddrSpaceCast(global, LLVMPointerTypeInContext(cg->context, 0));
}

static LLVMValueRef as_vararg(Cg *cg, const TirValue *value) {
  DType dtype = value->type.dtype;
  LLVMValueRef llvm = cg_value(cg, value);
  if (dtype_is_float(dtype))
    return LLVMBuildFPExt(cg->builder, llvm, LLVMDoubleTypeInContext(cg->context), "");
  if (dtype != DTYPE_bool && dtype_bits(dtype) == 64) return llvm;
  bool is_signed = dtype_class(dtype) == DTYPE_CLASS_SIGNED;
  if (dtype_bits(dtype) == 32) return llvm;
  return is_signed ? LLVMBuildSExt(cg->builder, llvm, cg->i32, "")
                   : LLVMBuildZExt(cg->builder, llvm, cg->i32, "");
}

static int bytes_of(Cg *cg, LLVMValueRef value) {
  return LLVMTypeOf(value) == cg->i32 ? 4 : SLOT_BYTES;
}

void emit_print(Cg *cg, const TirOp *op) {
  LLVMTypeRef type, area = LLVMArrayType2(cg->i64, (uint64_t)op->nargs + 1);
  if (op->nargs > MAX_PRINTED) {
    cg_unsupported(cg, op, "more than %d values", MAX_PRINTED);
    return;
  }
  LLVMValueRef function = vprintf_function(cg, &type), values = cg_alloca(cg, area, "printed");
  CgIf branch = cg_begin_if(cg, cg->may_store);
  int at = 0;
  for (int i = 0; i < op->nargs; i++) {
    LLVMValueRef value = as_vararg(cg, op->args[i]);
    int bytes = bytes_of(cg, value);
    at = (at + bytes - 1) / bytes * bytes;
    LLVMBuildStore(cg->builder, value, cg_offset_pointer(cg, values, cg_i64(cg, at)));
    at += bytes;
  }
  LLVMValueRef args[] = {format_text(cg, op->name), values};
  LLVMBuildCall2(cg->builder, type, function, args, 2, "");
  cg_end_if(cg, branch);
}

void emit_trap(Cg *cg, const TirOp *op) {
  (void)op;
  nvvm_trap(cg);
}

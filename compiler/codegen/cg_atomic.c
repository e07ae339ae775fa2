// Atomics as PTX text (PTX ISA 9.7.9.8, 9.7.9.12, 9.7.13.13, 9.7.13.14): LLVM's atomicrmw leaves the order out when it
// becomes an atom instruction, and makes loops with plain loads of what hardware lacks. Scopes: the CTA for
// shared memory, the GPU for global memory. The sequentially consistent forms are a fence.sc before the one with
// acquire and release.
#include "base/text.h"
#include "codegen/ptx_asm.h"

typedef struct {
  Space space;
  DType dtype;
  MemoryOrder order;
} Atomic;

static const char *scope_of(const Atomic *access) {
  return access->space == SPACE_SHARED ? "cta" : "gpu";
}
static const char *space_of(const Atomic *access) {
  return access->space == SPACE_SHARED ? "shared" : "global";
}
static const char *fence_of(Cg *cg, const Atomic *access) {
  return access->order == ORDER_SEQ_CST ? text_printf(cg->arena, "fence.sc.%s; ", scope_of(access)) : "";
}

static bool is_signed(DType dtype) {
  return dtype_class(dtype) == DTYPE_CLASS_SIGNED;
}

// "u32", "s32", "f32", "b16": as loads, stores and arithmetic name it.
static const char *type_text(Cg *cg, DType dtype, bool bits_only) {
  int bits = dtype_bits(dtype);
  if (bits_only || (dtype_is_float(dtype) && bits < 16))
    return text_printf(cg->arena, "b%d", bits < 8 ? 8 : bits);
  if (dtype == DTYPE_f16) return "f16";
  if (dtype == DTYPE_bf16) return "bf16";
  if (dtype_is_float(dtype)) return text_printf(cg->arena, "f%d", bits);
  return text_printf(cg->arena, "%c%d", is_signed(dtype) ? 's' : 'u', bits);
}

static LLVMTypeRef register_type(Cg *cg, DType dtype) {
  int bits = dtype_bits(dtype) <= 16 ? 16 : dtype_bits(dtype);
  return LLVMIntTypeInContext(cg->context, (unsigned)bits);
}

// A value in memory's form as the register that an instruction takes, and back.
static LLVMValueRef to_register(Cg *cg, LLVMValueRef value, DType dtype) {
  LLVMTypeRef bits =
      LLVMIntTypeInContext(cg->context, (unsigned)(dtype_bits(dtype) < 8 ? 8 : dtype_bits(dtype)));
  LLVMValueRef as_bits = LLVMBuildBitCast(cg->builder, value, bits, "");
  return LLVMBuildZExtOrBitCast(cg->builder, as_bits, register_type(cg, dtype), "");
}
static LLVMValueRef from_register(Cg *cg, LLVMValueRef value, DType dtype) {
  LLVMTypeRef type = cg_memory_type(cg, dtype);
  LLVMTypeRef bits =
      LLVMIntTypeInContext(cg->context, (unsigned)(dtype_bits(dtype) < 8 ? 8 : dtype_bits(dtype)));
  return LLVMBuildBitCast(cg->builder, LLVMBuildTruncOrBitCast(cg->builder, value, bits, ""), type, "");
}

// ---- read, change, write

// A red gives nothing back and cannot acquire.
static bool is_reduction(const Atomic *access, bool prev) {
  return !prev && (access->order == ORDER_RELAXED || access->order == ORDER_RELEASE);
}

// "atom.relaxed.gpu.global" with what follows.
static const char *head_of(Cg *cg, const Atomic *access, bool reduction) {
  static const char *const orders[ORDER_COUNT] = {"relaxed", "acquire", "release", "acq_rel", "acq_rel"};
  return text_printf(cg->arena, "%s.%s.%s.%s", reduction ? "red" : "atom", orders[access->order],
                     scope_of(access), space_of(access));
}

// The order of two floats is that of their bits as integers, signed when the value is positive or compared with
// a positive one, and reversed among negative numbers.
static const char *float_extreme(Cg *cg, const Atomic *access, const char *head, const char *operands,
                                 int value, bool least) {
  return text_printf(cg->arena, "{ .reg .pred p; setp.ge.s32 p, $%d, 0; %s@p %s.%s %s; @!p %s.%s %s; }",
                     value, fence_of(cg, access), head, least ? "min.s32" : "max.s32", operands, head,
                     least ? "max.u32" : "min.u32", operands);
}

static const char *change_text(Cg *cg, const Atomic *access, AtomicOp op, bool reduction) {
  static const char *const names[ATOMIC_OP_COUNT] = {"add", "max", "min"};
  const char *head = head_of(cg, access, reduction), *operands = reduction ? "[$0], $1" : "$0, [$1], $2";
  bool is_float = dtype_is_float(access->dtype), half = is_float && dtype_bits(access->dtype) == 16;
  if (is_float && op != ATOMIC_ADD)
    return float_extreme(cg, access, head, operands, reduction ? 1 : 2, op == ATOMIC_MIN);
  const char *type = type_text(cg, access->dtype, false);
  if (op == ATOMIC_ADD && !is_float) type = text_printf(cg->arena, "u%d", dtype_bits(access->dtype));
  return text_printf(cg->arena, "%s%s.%s%s.%s %s;", fence_of(cg, access), head, names[op],
                     half ? ".noftz" : "", type, operands);
}

// The element before, in memory's form; NULL for a reduction.
static LLVMValueRef change(Cg *cg, const Atomic *access, AtomicOp op, LLVMValueRef address,
                           LLVMValueRef value, bool prev) {
  bool reduction = is_reduction(access, prev);
  LLVMValueRef args[] = {address, to_register(cg, value, access->dtype)};
  LLVMTypeRef result = reduction ? NULL : register_type(cg, access->dtype);
  LLVMValueRef before = ptx_asm(cg, change_text(cg, access, op, reduction), result, 2, args);
  return reduction ? NULL : from_register(cg, before, access->dtype);
}

void cg_atomic_add(Cg *cg, Space space, DType dtype, LLVMValueRef address, LLVMValueRef value) {
  Atomic access = {space, dtype, ORDER_RELAXED};
  change(cg, &access, ATOMIC_ADD, address, value, false);
}

static Atomic access_of(Cg *cg, const TirOp *op) {
  return (Atomic){cg_place(cg, op->args[0])->root->type.space, op->args[0]->type.dtype,
                  (MemoryOrder)op->attrs[ATOMIC_order]};
}

// What `value` became in the branch, 0 around it.
static LLVMValueRef or_zero(Cg *cg, CgIf branch, LLVMBasicBlockRef before, LLVMValueRef value) {
  LLVMBasicBlockRef inside = LLVMGetInsertBlock(cg->builder);
  cg_end_if(cg, branch);
  if (!branch.after) return value;
  LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(value)),
               phi = LLVMBuildPhi(cg->builder, LLVMTypeOf(value), "");
  LLVMAddIncoming(phi, &value, &inside, 1);
  LLVMAddIncoming(phi, &zero, &before, 1);
  return phi;
}

void emit_atomic(Cg *cg, const TirOp *op) {
  Atomic access = access_of(cg, op);
  bool prev = op->attrs[ATOMIC_prev] != 0;
  if (prev && cg->may_store) {
    cg_unsupported(
        cg, op,
        "return_prev in a Parallel loop over a fragment whose elements several threads hold: one of them "
        "does it, and the others would not know what it found");
    return;
  }
  LLVMValueRef value = cg_to_memory(cg, access.dtype, cg_value(cg, op->args[1]));
  CgElement element = cg_element(cg, op, 2);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(cg->builder);
  CgIf branch = cg_begin_if(cg, cg_both(cg, element.inside, cg->may_store));
  LLVMValueRef old = change(cg, &access, (AtomicOp)op->attrs[ATOMIC_op], element.address, value, prev);
  LLVMValueRef result = LLVMConstNull(cg_memory_type(cg, access.dtype));
  if (prev)
    result = or_zero(cg, branch, before, old);
  else
    cg_end_if(cg, branch);
  cg_set_value(cg, op->results[0], cg_from_memory(cg, access.dtype, result));
}

// ---- load and store

void emit_atomic_load(Cg *cg, const TirOp *op) {
  static const char *const orders[ORDER_COUNT] = {"relaxed", "acquire", "acquire", "acquire", "acquire"};
  Atomic access = access_of(cg, op);
  CgElement element = cg_element(cg, op, 1);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(cg->builder);
  CgIf branch = cg_begin_if(cg, element.inside);
  const char *text =
      text_printf(cg->arena, "%sld.%s.%s.%s.%s $0, [$1];", fence_of(cg, &access), orders[access.order],
                  scope_of(&access), space_of(&access), type_text(cg, access.dtype, true));
  LLVMValueRef loaded = ptx_asm(cg, text, register_type(cg, access.dtype), 1, &element.address);
  LLVMValueRef value = or_zero(cg, branch, before, from_register(cg, loaded, access.dtype));
  cg_set_value(cg, op->results[0], cg_from_memory(cg, access.dtype, value));
}

void emit_atomic_store(Cg *cg, const TirOp *op) {
  static const char *const orders[ORDER_COUNT] = {"relaxed", "release", "release", "release", "release"};
  Atomic access = access_of(cg, op);
  LLVMValueRef value = cg_to_memory(cg, access.dtype, cg_value(cg, op->args[1]));
  CgElement element = cg_element(cg, op, 2);
  LLVMValueRef args[] = {element.address, to_register(cg, value, access.dtype)};
  CgIf branch = cg_begin_if(cg, cg_both(cg, element.inside, cg->may_store));
  const char *text =
      text_printf(cg->arena, "%sst.%s.%s.%s.%s [$0], $1;", fence_of(cg, &access), orders[access.order],
                  scope_of(&access), space_of(&access), type_text(cg, access.dtype, true));
  ptx_asm(cg, text, NULL, 2, args);
  cg_end_if(cg, branch);
}

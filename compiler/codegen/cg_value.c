// Scalars: types, constants, cells, and what is known about an index at compile time.
//
// A bool is an i1 as a value and a byte in memory. Cells are allocas, which LLVM turns into registers. The facts about
// indices (an upper bound, a power of two that divides it) choose cheaper instructions; they must never guess.
#include "codegen/cg.h"

#include <string.h>

#include "codegen/nvvm.h"

static LLVMTypeRef float_type(Cg *cg, DType dtype) {
  if (dtype == DTYPE_f64) return LLVMDoubleTypeInContext(cg->context);
  if (dtype == DTYPE_f32 || dtype == DTYPE_tf32) return cg->f32;
  if (dtype == DTYPE_f16) return LLVMHalfTypeInContext(cg->context);
  if (dtype == DTYPE_bf16) return LLVMBFloatTypeInContext(cg->context);
  return cg->i8;  // smaller floats are only moved
}

LLVMTypeRef cg_memory_type(Cg *cg, DType dtype) {
  if (dtype_is_float(dtype)) return float_type(cg, dtype);
  return LLVMIntTypeInContext(cg->context, (unsigned)dtype_bits(dtype));
}

LLVMTypeRef cg_type(Cg *cg, DType dtype) {
  return dtype == DTYPE_bool ? cg->i1 : cg_memory_type(cg, dtype);
}

LLVMValueRef cg_to_memory(Cg *cg, DType dtype, LLVMValueRef value) {
  return dtype == DTYPE_bool ? LLVMBuildZExt(cg->builder, value, cg->i8, "") : value;
}

LLVMValueRef cg_from_memory(Cg *cg, DType dtype, LLVMValueRef value) {
  if (dtype != DTYPE_bool) return value;
  return LLVMBuildICmp(cg->builder, LLVMIntNE, value, LLVMConstInt(cg->i8, 0, false), "");
}

LLVMValueRef cg_i32(Cg *cg, int64_t value) { return LLVMConstInt(cg->i32, (uint64_t)value & UINT32_MAX, false); }
LLVMValueRef cg_i64(Cg *cg, int64_t value) { return LLVMConstInt(cg->i64, (uint64_t)value, true); }

LLVMValueRef cg_value(Cg *cg, const TirValue *value) {
  LLVMValueRef llvm = cg->scalars[value->id];
  if (!llvm) BUG("value %%%d of '%s' has no code yet", value->id, op_def(value->op->kind)->name);
  return llvm;
}

void cg_set_value(Cg *cg, const TirValue *value, LLVMValueRef llvm) { cg->scalars[value->id] = llvm; }

bool cg_const(LLVMValueRef value, int64_t *out) {
  if (!LLVMIsAConstantInt(value)) return false;
  *out = LLVMConstIntGetSExtValue(value);
  return true;
}

// ---- what is known about an index

enum { MAX_DEPTH = 8 };  // of the expressions looked into

static int64_t bound_of(const Cg *cg, const TirValue *value, int depth);

static int64_t bound_of_binary(const Cg *cg, const TirOp *op, int depth) {
  int64_t lhs = bound_of(cg, op->args[0], depth), rhs = bound_of(cg, op->args[1], depth), divisor = 0;
  bool by_constant = tir_const_int(op->args[1], &divisor) && divisor > 0;
  if (op->kind == OP_floormod && by_constant) return divisor - 1;
  if (op->kind == OP_and && (lhs >= 0 || rhs >= 0)) return lhs < 0 || (rhs >= 0 && rhs < lhs) ? rhs : lhs;
  if (lhs < 0 || rhs < 0) return -1;
  int64_t bound = -1;
  if (op->kind == OP_add) bound = lhs + rhs;
  if (op->kind == OP_mul) bound = lhs * rhs;
  if (op->kind == OP_min) bound = lhs < rhs ? lhs : rhs;
  if (op->kind == OP_max) bound = lhs < rhs ? rhs : lhs;
  if (op->kind == OP_floordiv && by_constant) bound = lhs / divisor;
  return bound <= INT32_MAX ? bound : -1;  // an overflow may wrap
}

static int64_t bound_of_loop(const Cg *cg, const TirOp *op, int depth) {
  int64_t step = 0, hi = 0;
  if (!tir_const_int(op->args[2], &step) || step <= 0 || bound_of(cg, op->args[0], depth) < 0) return -1;
  return tir_const_int(op->args[1], &hi) && hi > 0 ? hi - 1 : INT32_MAX;
}

static int64_t bound_of(const Cg *cg, const TirValue *value, int depth) {
  const TirOp *op = value->op;
  int64_t constant = 0;
  if (value->type.dtype != DTYPE_i32 || depth == 0) return -1;
  if (tir_const_int(value, &constant)) return constant >= 0 ? constant : -1;
  if (op->kind == OP_thread_idx) return cg->kernel->threads - 1;
  if (op->kind == OP_block_idx || op->kind == OP_size) return INT32_MAX;
  if (op->kind == OP_for) return bound_of_loop(cg, op, depth - 1);
  if (op->kind == OP_parallel) {
    int64_t bound = bound_of(cg, op->args[value->index], depth - 1);
    return bound > 0 ? bound - 1 : INT32_MAX;
  }
  return op_def(op->kind)->group == GROUP_BINARY ? bound_of_binary(cg, op, depth - 1) : -1;
}

int64_t cg_upper_bound(const Cg *cg, const TirValue *value) { return bound_of(cg, value, MAX_DEPTH); }

static int64_t lowest_bit(int64_t value) {
  enum { LARGEST = 1 << 20 };
  int64_t bit = value & -value;
  return bit == 0 || bit > LARGEST ? LARGEST : bit;
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t multiple_of(const TirValue *value, int depth) {
  const TirOp *op = value->op;
  int64_t constant = 0;
  if (tir_const_int(value, &constant)) return lowest_bit(constant);
  if (depth == 0) return 1;
  OpKind kind = op->kind;
  if (kind != OP_add && kind != OP_sub && kind != OP_for && kind != OP_mul) return 1;
  int64_t lhs = multiple_of(op->args[0], depth - 1), rhs = multiple_of(op->args[kind == OP_for ? 2 : 1], depth - 1);
  return kind == OP_mul ? lowest_bit(lhs * rhs) : smaller(lhs, rhs);
}

int64_t cg_multiple(const TirValue *value) { return multiple_of(value, MAX_DEPTH); }

// ---- ops

void emit_const(Cg *cg, const TirOp *op) {
  const TirValue *result = op->results[0];
  DType dtype = result->type.dtype;
  LLVMTypeRef type = cg_type(cg, dtype);
  int64_t bits = op->attrs[CONST_bits];
  if (dtype_is_float(dtype)) {
    double number;
    memcpy(&number, &bits, sizeof number);
    if (type == cg->i8) {
      cg_unsupported(cg, op, "constants of %s", dtype_name(dtype));
      return;
    }
    cg_set_value(cg, result, LLVMConstReal(type, number));
  } else if (dtype == DTYPE_bool) {
    cg_set_value(cg, result, LLVMConstInt(type, bits != 0, false));
  } else {
    uint64_t mask = dtype_bits(dtype) == 64 ? UINT64_MAX : (UINT64_C(1) << dtype_bits(dtype)) - 1;
    cg_set_value(cg, result, LLVMConstInt(type, (uint64_t)bits & mask, false));
  }
}

void emit_block_idx(Cg *cg, const TirOp *op) {
  cg_set_value(cg, op->results[0], nvvm_block_idx(cg, (int)op->attrs[INDEX_dim]));
}

void emit_thread_idx(Cg *cg, const TirOp *op) { cg_set_value(cg, op->results[0], cg->thread); }

void emit_select(Cg *cg, const TirOp *op) {
  LLVMValueRef value = LLVMBuildSelect(cg->builder, cg_value(cg, op->args[0]), cg_value(cg, op->args[1]),
                                       cg_value(cg, op->args[2]), "");
  cg_set_value(cg, op->results[0], value);
}

void emit_cell(Cg *cg, const TirOp *op) {
  const TirValue *cell = op->results[0];
  LLVMTypeRef type = cg_type(cg, cell->type.dtype);
  LLVMValueRef slot = cg_alloca(cg, type, "cell");
  cg->storage[cell->id] = slot;
  LLVMValueRef initial = op->args[0] ? cg_value(cg, op->args[0]) : LLVMConstNull(type);
  LLVMBuildStore(cg->builder, initial, slot);
}

void emit_get(Cg *cg, const TirOp *op) {
  LLVMTypeRef type = cg_type(cg, op->results[0]->type.dtype);
  cg_set_value(cg, op->results[0], LLVMBuildLoad2(cg->builder, type, cg->storage[op->args[0]->id], ""));
}

void emit_set(Cg *cg, const TirOp *op) {
  LLVMBuildStore(cg->builder, cg_value(cg, op->args[1]), cg->storage[op->args[0]->id]);
}

void emit_declared(Cg *cg, const TirOp *op) {
  (void)cg;
  (void)op;
}

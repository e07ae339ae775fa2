// Scalars: types, constants, cells, and what is known about an index at compile time.
//
// A bool is an i1 as a value and a byte in memory. Cells are allocas, which LLVM turns into registers. The
// facts about indices (an upper bound, a power of two that divides it) choose cheaper instructions; they must
// never guess.
#include "codegen/cg.h"

#include <string.h>

#include "codegen/nvvm.h"
#include "tir/ranges.h"

static LLVMTypeRef float_type(Cg *cg, DType dtype) {
  if (dtype == DTYPE_f64) return LLVMDoubleTypeInContext(cg->context);
  if (dtype == DTYPE_f32 || dtype == DTYPE_tf32) return cg->f32;
  if (dtype == DTYPE_f16) return LLVMHalfTypeInContext(cg->context);
  if (dtype == DTYPE_bf16) return LLVMBFloatTypeInContext(cg->context);
  return cg->i8;  // smaller floats are only moved and converted
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

LLVMValueRef cg_i32(Cg *cg, int64_t value) {
  return LLVMConstInt(cg->i32, (uint64_t)value & UINT32_MAX, false);
}
LLVMValueRef cg_i64(Cg *cg, int64_t value) {
  return LLVMConstInt(cg->i64, (uint64_t)value, true);
}

LLVMValueRef cg_value(Cg *cg, const TirValue *value) {
  LLVMValueRef llvm = cg->scalars[value->id];
  if (!llvm) BUG("value %%%d of '%s' has no code yet", value->id, op_def(value->op->kind)->name);
  return llvm;
}

const TirValue *cg_arg(const TirOp *op, int i) {
  return i < op->nargs ? op->args[i] : NULL;
}

void cg_set_value(Cg *cg, const TirValue *value, LLVMValueRef llvm) {
  cg->scalars[value->id] = llvm;
}

bool cg_const(LLVMValueRef value, int64_t *out) {
  if (!LLVMIsAConstantInt(value)) return false;
  *out = LLVMConstIntGetSExtValue(value);
  return true;
}

// An end beyond i32 may have wrapped around.
bool cg_nonnegative(const TirValue *value) {
  TirRange range = tir_known_range(value);
  return value->type.dtype == DTYPE_i32 && range.lo >= 0 && range.hi <= INT32_MAX;
}

int64_t cg_multiple(const TirValue *value) {
  enum { LARGEST = 1 << 20 };
  int64_t multiple = tir_known_multiple(value), bit = multiple & -multiple;
  return bit == 0 || bit > LARGEST ? LARGEST : bit;
}

// ---- ops

void emit_const(Cg *cg, const TirOp *op) {
  const TirValue *result = op->results[0];
  DType dtype = result->type.dtype;
  LLVMTypeRef type = cg_type(cg, dtype);
  int64_t bits = op->attrs[CONST_bits];
  if (dtype_is_float(dtype)) {
    double number;
    memcpy(&number, &bits, sizeof number);
    bool small = type == cg->i8;
    LLVMValueRef constant = LLVMConstReal(small ? cg->f32 : type, number);
    cg_set_value(cg, result, small ? cg_cast(cg, op, constant, DTYPE_f32, dtype) : constant);
  } else if (dtype == DTYPE_bool) {
    cg_set_value(cg, result, LLVMConstInt(type, bits != 0, false));
  } else {
    uint64_t mask = dtype_bits(dtype) == 64 ? UINT64_MAX : (UINT64_C(1) << dtype_bits(dtype)) - 1;
    cg_set_value(cg, result, LLVMConstInt(type, (uint64_t)bits & mask, false));
  }
}

static const TirOp *grid_of(const TirKernel *kernel) {
  for (const TirOp *op = kernel->launch->first; op; op = op->next)
    if (op->kind == OP_grid) return op;
  return NULL;
}

// Where in the grid the block stands whose number among all of its layer is x + y * width: in panel after panel of
// `kernel->panel` rows (or columns, then everything is the other way round), the last of what is left. A panel is
// crossed column by column, every second one backwards.
static LLVMValueRef panel_idx(Cg *cg, const TirOp *grid, bool along) {
  LLVMBuilderRef b = cg->builder;
  bool rows = cg->kernel->block_order == BLOCKS_BY_ROWS;
  LLVMValueRef width = cg_value(cg, grid->args[0]), height = cg_value(cg, grid->args[1]);
  LLVMValueRef number =
      LLVMBuildAdd(b, LLVMBuildMul(b, nvvm_block_idx(cg, 1), width, ""), nvvm_block_idx(cg, 0), "");
  LLVMValueRef length = rows ? width : height, breadth = rows ? height : width;
  LLVMValueRef most = cg_i32(cg, cg->kernel->panel), size = LLVMBuildMul(b, most, length, "");
  LLVMValueRef panel = LLVMBuildUDiv(b, number, size, ""), offset = LLVMBuildURem(b, number, size, "");
  LLVMValueRef start = LLVMBuildMul(b, panel, most, ""), left = LLVMBuildSub(b, breadth, start, "");
  LLVMValueRef partial = LLVMBuildICmp(b, LLVMIntULT, left, most, "");
  LLVMValueRef thick = LLVMBuildSelect(b, partial, left, most, "");
  if (!along) return LLVMBuildAdd(b, start, LLVMBuildURem(b, offset, thick, ""), "");
  LLVMValueRef forward = LLVMBuildUDiv(b, offset, thick, "");
  LLVMValueRef last = LLVMBuildSub(b, length, cg_i32(cg, 1), "");
  LLVMValueRef odd = LLVMBuildTrunc(b, panel, cg->i1, "");
  return LLVMBuildSelect(b, odd, LLVMBuildSub(b, last, forward, ""), forward, "");
}

void emit_block_idx(Cg *cg, const TirOp *op) {
  int dim = (int)op->attrs[INDEX_dim];
  const TirOp *grid = grid_of(cg->kernel);
  bool ordered = cg->kernel->block_order && grid && grid->nargs > 1 && dim < 2;
  bool rows = cg->kernel->block_order == BLOCKS_BY_ROWS;
  cg_set_value(cg, op->results[0],
               ordered ? panel_idx(cg, grid, rows == (dim == 0)) : nvvm_block_idx(cg, dim));
}

void emit_block_count(Cg *cg, const TirOp *op) {
  cg_set_value(cg, op->results[0], nvvm_block_count(cg, (int)op->attrs[INDEX_dim]));
}

void emit_thread_idx(Cg *cg, const TirOp *op) {
  cg_set_value(cg, op->results[0], cg->thread);
}

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
  LLVMValueRef initial = cg_arg(op, 0) ? cg_value(cg, op->args[0]) : LLVMConstNull(type);
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

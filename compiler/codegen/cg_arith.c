// Arithmetic, comparison and conversion.
//
// Integers wrap. floordiv and floormod floor for all signs; a division by zero gives an unspecified number
// and traps nowhere. f16 and bf16 are computed in f32 and rounded after each op, which for + - * / equals
// rounding the exact result. Float operations are never fused or reassociated: no flag allows it.
#include "codegen/cg.h"

#include <string.h>

#include "codegen/nvvm.h"

LLVMValueRef cg_intrinsic(Cg *cg, const char *name, LLVMTypeRef overload, int nargs, LLVMValueRef *args) {
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  if (!id) BUG("LLVM knows no intrinsic %s", name);
  LLVMValueRef callee = LLVMGetIntrinsicDeclaration(cg->module, id, &overload, 1);
  LLVMTypeRef type = LLVMIntrinsicGetType(cg->context, id, &overload, 1);
  return LLVMBuildCall2(cg->builder, type, callee, args, (unsigned)nargs, "");
}

static bool is_narrow_float(DType dtype) {
  return dtype == DTYPE_f16 || dtype == DTYPE_bf16;
}
static bool is_unsigned(DType dtype) {
  return dtype_class(dtype) != DTYPE_CLASS_SIGNED;
}

static LLVMValueRef widen(Cg *cg, DType dtype, LLVMValueRef value) {
  return is_narrow_float(dtype) ? LLVMBuildFPExt(cg->builder, value, cg->f32, "") : value;
}

static LLVMValueRef narrow(Cg *cg, DType dtype, LLVMValueRef value) {
  return is_narrow_float(dtype) ? LLVMBuildFPTrunc(cg->builder, value, cg_type(cg, dtype), "") : value;
}

// ---- integer division

typedef struct {
  LLVMValueRef quotient, remainder;
} Division;

// Truncating; LLVM leaves x / 0 and INT_MIN / -1 undefined, here they are numbers.
static Division divide(Cg *cg, LLVMValueRef lhs, LLVMValueRef rhs, bool without_sign) {
  LLVMBuilderRef b = cg->builder;
  LLVMTypeRef type = LLVMTypeOf(lhs);
  int64_t constant = 0;
  if (!cg_const(rhs, &constant) || constant == 0 || constant == -1) {
    LLVMValueRef bad = LLVMBuildICmp(b, LLVMIntEQ, rhs, LLVMConstInt(type, 0, false), "");
    if (!without_sign) {
      LLVMValueRef least = LLVMConstInt(type, UINT64_C(1) << (LLVMGetIntTypeWidth(type) - 1), false);
      LLVMValueRef is_least = LLVMBuildICmp(b, LLVMIntEQ, lhs, least, "");
      LLVMValueRef by_minus_one = LLVMBuildICmp(b, LLVMIntEQ, rhs, LLVMConstAllOnes(type), "");
      bad = LLVMBuildOr(b, bad, LLVMBuildAnd(b, is_least, by_minus_one, ""), "");
    }
    rhs = LLVMBuildSelect(b, bad, LLVMConstInt(type, 1, false), rhs, "");
  }
  Division result;
  result.quotient = without_sign ? LLVMBuildUDiv(b, lhs, rhs, "") : LLVMBuildSDiv(b, lhs, rhs, "");
  result.remainder = without_sign ? LLVMBuildURem(b, lhs, rhs, "") : LLVMBuildSRem(b, lhs, rhs, "");
  return result;
}

static LLVMValueRef is_negative(Cg *cg, LLVMValueRef value) {
  return LLVMBuildICmp(cg->builder, LLVMIntSLT, value, LLVMConstInt(LLVMTypeOf(value), 0, false), "");
}

static LLVMValueRef is_nonzero(Cg *cg, LLVMValueRef value) {
  return LLVMBuildICmp(cg->builder, LLVMIntNE, value, LLVMConstInt(LLVMTypeOf(value), 0, false), "");
}

// Whether the remainder is not zero and the signs of remainder and divisor differ (or agree): the quotient
// was truncated up (or down).
static LLVMValueRef inexact(Cg *cg, Division division, LLVMValueRef rhs, bool differ) {
  LLVMValueRef mixed = is_negative(cg, LLVMBuildXor(cg->builder, division.remainder, rhs, ""));
  if (!differ) mixed = LLVMBuildNot(cg->builder, mixed, "");
  return LLVMBuildAnd(cg->builder, is_nonzero(cg, division.remainder), mixed, "");
}

static LLVMValueRef add_if(Cg *cg, LLVMValueRef value, LLVMValueRef condition, LLVMValueRef addend) {
  LLVMValueRef zero = LLVMConstInt(LLVMTypeOf(value), 0, false);
  return LLVMBuildAdd(cg->builder, value, LLVMBuildSelect(cg->builder, condition, addend, zero, ""), "");
}

static bool is_power_of_two(int64_t value) {
  return value > 0 && (value & (value - 1)) == 0;
}

// Arithmetic shift and mask floor for every sign.
static LLVMValueRef divide_by_power(Cg *cg, OpKind kind, LLVMValueRef lhs, int64_t divisor) {
  LLVMTypeRef type = LLVMTypeOf(lhs);
  if (kind == OP_floormod)
    return LLVMBuildAnd(cg->builder, lhs, LLVMConstInt(type, (uint64_t)divisor - 1, false), "");
  unsigned shift = 0;
  while (divisor >> shift > 1) shift++;
  return LLVMBuildAShr(cg->builder, lhs, LLVMConstInt(type, shift, false), "");
}

static LLVMValueRef integer_division(Cg *cg, const TirOp *op, LLVMValueRef lhs, LLVMValueRef rhs) {
  LLVMTypeRef type = LLVMTypeOf(lhs);
  bool is_signed = !is_unsigned(op->args[0]->type.dtype),
       truncates = op->kind == OP_truncdiv || op->kind == OP_truncmod;
  bool modulo = op->kind == OP_floormod || op->kind == OP_truncmod;
  int64_t constant = 0;
  bool positive = cg_const(rhs, &constant) ? constant > 0 : cg_nonnegative(op->args[1]);
  bool nonnegative = is_signed && positive && cg_nonnegative(op->args[0]);
  if (is_signed && !truncates && op->kind != OP_ceildiv && is_power_of_two(constant))
    return divide_by_power(cg, op->kind, lhs, constant);
  Division division = divide(cg, lhs, rhs, !is_signed || nonnegative);
  if (op->kind == OP_ceildiv) {
    LLVMValueRef up =
        is_signed && !nonnegative ? inexact(cg, division, rhs, false) : is_nonzero(cg, division.remainder);
    return add_if(cg, division.quotient, up, LLVMConstInt(type, 1, false));
  }
  LLVMValueRef result = modulo ? division.remainder : division.quotient;
  if (!is_signed || nonnegative || truncates) return result;
  return add_if(cg, result, inexact(cg, division, rhs, true), modulo ? rhs : LLVMConstAllOnes(type));
}

// ---- binary

// A shift by the width or more gives 0, or the sign.
static LLVMValueRef shift(Cg *cg, const TirOp *op, LLVMValueRef lhs, LLVMValueRef rhs) {
  LLVMTypeRef type = LLVMTypeOf(lhs);
  LLVMValueRef most = LLVMConstInt(type, LLVMGetIntTypeWidth(type) - 1, false);
  LLVMValueRef inside = LLVMBuildICmp(cg->builder, LLVMIntULE, rhs, most, "");
  LLVMValueRef amount = LLVMBuildSelect(cg->builder, inside, rhs, most, "");
  bool arithmetic = op->kind == OP_shr && !is_unsigned(op->args[0]->type.dtype);
  if (arithmetic) return LLVMBuildAShr(cg->builder, lhs, amount, "");
  LLVMValueRef shifted = op->kind == OP_shl ? LLVMBuildShl(cg->builder, lhs, amount, "")
                                            : LLVMBuildLShr(cg->builder, lhs, amount, "");
  return LLVMBuildSelect(cg->builder, inside, shifted, LLVMConstInt(type, 0, false), "");
}

static LLVMValueRef integer_binary(Cg *cg, const TirOp *op, LLVMValueRef lhs, LLVMValueRef rhs) {
  bool without_sign = is_unsigned(op->args[0]->type.dtype);
  LLVMBuilderRef b = cg->builder;
  LLVMValueRef args[] = {lhs, rhs};
  OpKind kind = op->kind;
  if (kind == OP_add) return LLVMBuildAdd(b, lhs, rhs, "");
  if (kind == OP_sub) return LLVMBuildSub(b, lhs, rhs, "");
  if (kind == OP_mul) return LLVMBuildMul(b, lhs, rhs, "");
  if (kind == OP_and) return LLVMBuildAnd(b, lhs, rhs, "");
  if (kind == OP_or) return LLVMBuildOr(b, lhs, rhs, "");
  if (kind == OP_xor) return LLVMBuildXor(b, lhs, rhs, "");
  if (kind == OP_shl || kind == OP_shr) return shift(cg, op, lhs, rhs);
  if (kind == OP_min)
    return cg_intrinsic(cg, without_sign ? "llvm.umin" : "llvm.smin", LLVMTypeOf(lhs), 2, args);
  if (kind == OP_max)
    return cg_intrinsic(cg, without_sign ? "llvm.umax" : "llvm.smax", LLVMTypeOf(lhs), 2, args);
  if (kind == OP_div) {
    cg_unsupported(cg, op, "true division of integers; cast the operands to a float type");
    return lhs;
  }
  return integer_division(cg, op, lhs, rhs);
}

static LLVMValueRef float_binary(Cg *cg, const TirOp *op, LLVMValueRef lhs, LLVMValueRef rhs) {
  LLVMBuilderRef b = cg->builder;
  LLVMValueRef args[] = {lhs, rhs};
  OpKind kind = op->kind;
  if (kind == OP_add) return LLVMBuildFAdd(b, lhs, rhs, "");
  if (kind == OP_sub) return LLVMBuildFSub(b, lhs, rhs, "");
  if (kind == OP_mul) return LLVMBuildFMul(b, lhs, rhs, "");
  if (kind == OP_div) return LLVMBuildFDiv(b, lhs, rhs, "");
  if (kind == OP_min) return cg_intrinsic(cg, "llvm.minnum", LLVMTypeOf(lhs), 2, args);
  if (kind == OP_max) return cg_intrinsic(cg, "llvm.maxnum", LLVMTypeOf(lhs), 2, args);
  cg_unsupported(cg, op, "operands of type %s", dtype_name(op->args[0]->type.dtype));
  return lhs;
}

// fp8 and smaller are only moved and converted.
static bool has_arithmetic(Cg *cg, const TirOp *op, DType dtype) {
  if (!dtype_is_float(dtype) || cg_type(cg, dtype) != cg->i8) return true;
  cg_unsupported(cg, op, "arithmetic in %s; cast to f32", dtype_name(dtype));
  return false;
}

void emit_binary(Cg *cg, const TirOp *op) {
  DType dtype = op->args[0]->type.dtype;
  if (!has_arithmetic(cg, op, dtype)) return;
  LLVMValueRef lhs = cg_value(cg, op->args[0]), rhs = cg_value(cg, op->args[1]), result;
  if (dtype_is_float(dtype))
    result = narrow(cg, dtype, float_binary(cg, op, widen(cg, dtype, lhs), widen(cg, dtype, rhs)));
  else
    result = integer_binary(cg, op, lhs, rhs);
  cg_set_value(cg, op->results[0], result);
}

// ---- comparison

static LLVMRealPredicate real_predicate(OpKind kind) {
  if (kind == OP_lt) return LLVMRealOLT;
  if (kind == OP_le) return LLVMRealOLE;
  if (kind == OP_gt) return LLVMRealOGT;
  if (kind == OP_ge) return LLVMRealOGE;
  return kind == OP_eq ? LLVMRealOEQ : LLVMRealUNE;
}

static LLVMIntPredicate int_predicate(OpKind kind, bool without_sign) {
  if (kind == OP_lt) return without_sign ? LLVMIntULT : LLVMIntSLT;
  if (kind == OP_le) return without_sign ? LLVMIntULE : LLVMIntSLE;
  if (kind == OP_gt) return without_sign ? LLVMIntUGT : LLVMIntSGT;
  if (kind == OP_ge) return without_sign ? LLVMIntUGE : LLVMIntSGE;
  return kind == OP_eq ? LLVMIntEQ : LLVMIntNE;
}

void emit_compare(Cg *cg, const TirOp *op) {
  DType dtype = op->args[0]->type.dtype;
  if (!has_arithmetic(cg, op, dtype)) return;
  LLVMValueRef lhs = widen(cg, dtype, cg_value(cg, op->args[0])),
               rhs = widen(cg, dtype, cg_value(cg, op->args[1]));
  LLVMValueRef result =
      dtype_is_float(dtype)
          ? LLVMBuildFCmp(cg->builder, real_predicate(op->kind), lhs, rhs, "")
          : LLVMBuildICmp(cg->builder, int_predicate(op->kind, is_unsigned(dtype)), lhs, rhs, "");
  cg_set_value(cg, op->results[0], result);
}

// ---- unary

static LLVMValueRef integer_unary(Cg *cg, const TirOp *op, LLVMValueRef x) {
  OpKind kind = op->kind;
  if (kind == OP_neg) return LLVMBuildNeg(cg->builder, x, "");
  if (kind == OP_not) return LLVMBuildNot(cg->builder, x, "");
  if (kind == OP_floor || kind == OP_ceil) return x;
  if (kind == OP_abs && is_unsigned(op->args[0]->type.dtype)) return x;
  if (kind == OP_abs)
    return LLVMBuildSelect(cg->builder, is_negative(cg, x), LLVMBuildNeg(cg->builder, x, ""), x, "");
  cg_unsupported(cg, op, "an operand of type %s", dtype_name(op->args[0]->type.dtype));
  return x;
}

static LLVMValueRef float_unary(Cg *cg, const TirOp *op, LLVMValueRef x) {
  DType dtype = op->args[0]->type.dtype;
  if (op->kind == OP_neg) return LLVMBuildFNeg(cg->builder, x, "");
  LLVMValueRef wide = widen(cg, dtype, x);
  if (LLVMTypeOf(wide) == cg->f32 && op->kind != OP_not)
    return narrow(cg, dtype, cg_math(cg, op->kind, wide));
  cg_unsupported(cg, op, "an operand of type %s", dtype_name(dtype));
  return x;
}

void emit_unary(Cg *cg, const TirOp *op) {
  DType dtype = op->args[0]->type.dtype;
  if (!has_arithmetic(cg, op, dtype)) return;
  LLVMValueRef x = cg_value(cg, op->args[0]);
  cg_set_value(cg, op->results[0], dtype_is_float(dtype) ? float_unary(cg, op, x) : integer_unary(cg, op, x));
}

// ---- conversion

// To nearest even, from the integer itself: there is one rounding, also for bf16.
static LLVMValueRef int_to_float(Cg *cg, LLVMValueRef value, DType from, DType to) {
  LLVMTypeRef type = cg_type(cg, to);
  return is_unsigned(from) ? LLVMBuildUIToFP(cg->builder, value, type, "")
                           : LLVMBuildSIToFP(cg->builder, value, type, "");
}

// Toward zero; beyond the range the nearest limit, NaN gives 0.
static LLVMValueRef float_to_int(Cg *cg, LLVMValueRef value, DType from, DType to) {
  LLVMValueRef wide = widen(cg, from, value);
  const char *name = is_unsigned(to) ? "llvm.fptoui.sat" : "llvm.fptosi.sat";
  LLVMTypeRef overloads[] = {cg_type(cg, to), LLVMTypeOf(wide)};
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  LLVMValueRef callee = LLVMGetIntrinsicDeclaration(cg->module, id, overloads, 2);
  LLVMTypeRef type = LLVMIntrinsicGetType(cg->context, id, overloads, 2);
  return LLVMBuildCall2(cg->builder, type, callee, &wide, 1, "");
}

static LLVMValueRef float_to_float(Cg *cg, LLVMValueRef value, DType from, DType to) {
  LLVMTypeRef type = cg_type(cg, to);
  int from_bits = dtype_bits(from), to_bits = dtype_bits(to);
  if (from_bits < to_bits) return LLVMBuildFPExt(cg->builder, value, type, "");
  if (from_bits > to_bits) return LLVMBuildFPTrunc(cg->builder, value, type, "");
  return LLVMBuildFPTrunc(cg->builder, widen(cg, from, value), type, "");  // f16 to bf16 and back
}

static bool is_fp8(DType dtype) {
  return dtype == DTYPE_e4m3 || dtype == DTYPE_e5m2;
}

static bool convertible(Cg *cg, const TirOp *op, DType dtype) {
  if (!dtype_is_float(dtype) || is_fp8(dtype) || (cg_type(cg, dtype) != cg->i8 && dtype != DTYPE_tf32))
    return true;
  cg_unsupported(cg, op, "conversion from or to %s", dtype_name(dtype));
  return false;
}

LLVMValueRef cg_cast(Cg *cg, const TirOp *op, LLVMValueRef value, DType from, DType to) {
  if (from == to) return value;
  if (!convertible(cg, op, from) || !convertible(cg, op, to)) return LLVMConstNull(cg_type(cg, to));
  // By way of f32, which holds every f16, bf16 and fp8, and every integer that does not saturate.
  if (is_fp8(from)) return cg_cast(cg, op, nvvm_fp8_to_f32(cg, value, from == DTYPE_e5m2), DTYPE_f32, to);
  if (is_fp8(to)) return nvvm_f32_to_fp8(cg, cg_cast(cg, op, value, from, DTYPE_f32), to == DTYPE_e5m2);
  LLVMTypeRef type = cg_type(cg, to);
  if (dtype_is_float(from)) {
    if (dtype_is_float(to)) return float_to_float(cg, value, from, to);
    if (to == DTYPE_bool)
      return LLVMBuildFCmp(cg->builder, LLVMRealUNE, value, LLVMConstReal(cg_type(cg, from), 0.0), "");
    return float_to_int(cg, value, from, to);
  }
  if (dtype_is_float(to)) return int_to_float(cg, value, from, to);
  if (to == DTYPE_bool) return is_nonzero(cg, value);
  return LLVMBuildIntCast2(cg->builder, value, type, !is_unsigned(from), "");
}

void cg_cast_run(Cg *cg, const TirOp *op, LLVMValueRef *values, int n, DType from, DType to) {
  bool pairs = from == DTYPE_f32 && (to == DTYPE_f16 || to == DTYPE_bf16);
  for (int i = 0; i < n; i++) {
    if (!pairs || i + 1 == n) {
      values[i] = cg_cast(cg, op, values[i], from, to);
      continue;
    }
    LLVMValueRef two = LLVMGetPoison(LLVMVectorType(cg->f32, 2));
    for (int k = 0; k < 2; k++)
      two = LLVMBuildInsertElement(cg->builder, two, values[i + k], cg_i32(cg, k), "");
    two = LLVMBuildFPTrunc(cg->builder, two, LLVMVectorType(cg_type(cg, to), 2), "");
    for (int k = 0; k < 2; k++) values[i + k] = LLVMBuildExtractElement(cg->builder, two, cg_i32(cg, k), "");
    i++;
  }
}

void emit_cast(Cg *cg, const TirOp *op) {
  DType from = op->args[0]->type.dtype, to = op->results[0]->type.dtype;
  cg_set_value(cg, op->results[0], cg_cast(cg, op, cg_value(cg, op->args[0]), from, to));
}

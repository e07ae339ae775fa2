// Functions of one f32, made from the .approx instructions of the GPU: no library is linked (rules L9).
// README.md states their errors.
#include "codegen/cg.h"

#include <math.h>

#include "codegen/nvvm.h"

static LLVMValueRef real(Cg *cg, double number) {
  return LLVMConstReal(cg->f32, number);
}
static LLVMValueRef mul(Cg *cg, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildFMul(cg->builder, a, b, "");
}

static LLVMValueRef fma3(Cg *cg, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
  LLVMValueRef args[] = {a, b, c};
  return cg_intrinsic(cg, "llvm.fma", cg->f32, 3, args);
}

static LLVMValueRef absolute(Cg *cg, LLVMValueRef x) {
  return cg_intrinsic(cg, "llvm.fabs", cg->f32, 1, &x);
}

// e^x = 2^y (1 + r ln 2), where y is x log2(e) rounded and r what the rounding lost.
static LLVMValueRef exp_of(Cg *cg, LLVMValueRef x) {
  const double log2e = 1.4426950408889634, ln2 = 0.6931471805599453;
  const double high = (float)log2e, low = log2e - high;
  LLVMValueRef y = mul(cg, x, real(cg, high));
  LLVMValueRef rest = fma3(cg, x, real(cg, high), LLVMBuildFNeg(cg->builder, y, ""));
  rest = fma3(cg, x, real(cg, low), rest);
  LLVMValueRef power = nvvm_ex2_approx(cg, y);
  LLVMValueRef better = fma3(cg, power, mul(cg, rest, real(cg, ln2)), power);
  // Beyond the range of f32 the rest is inf - inf or multiplies an infinity.
  LLVMValueRef inside = LLVMBuildFCmp(cg->builder, LLVMRealOLT, absolute(cg, y), real(cg, 126.0), "");
  return LLVMBuildSelect(cg->builder, inside, better, power, "");
}

// 1 - 2 / (e^2x + 1); near 0, where that cancels, the odd series to x^7.
static LLVMValueRef tanh_of(Cg *cg, LLVMValueRef x) {
  LLVMValueRef power = nvvm_ex2_approx(cg, mul(cg, x, real(cg, 2.8853900817779268)));
  LLVMValueRef half = nvvm_rcp_approx(cg, LLVMBuildFAdd(cg->builder, power, real(cg, 1.0), ""));
  LLVMValueRef far = fma3(cg, half, real(cg, -2.0), real(cg, 1.0));
  LLVMValueRef square = mul(cg, x, x);
  LLVMValueRef series = fma3(cg, square, real(cg, -17.0 / 315), real(cg, 2.0 / 15));
  series = fma3(cg, series, square, real(cg, -1.0 / 3));
  LLVMValueRef near = fma3(cg, mul(cg, series, square), x, x);
  LLVMValueRef small = LLVMBuildFCmp(cg->builder, LLVMRealOLT, absolute(cg, x), real(cg, 0.25), "");
  return LLVMBuildSelect(cg->builder, small, near, far, "");
}

// x - k 2 pi, k the nearest whole number: sin.approx and cos.approx are good only near 0.
static LLVMValueRef reduced_angle(Cg *cg, LLVMValueRef x) {
  const double two_pi = 6.283185307179586;
  const double high = (float)two_pi, low = two_pi - high;
  LLVMValueRef turns = mul(cg, x, real(cg, 1.0 / two_pi));
  LLVMValueRef whole = cg_intrinsic(cg, "llvm.rint", cg->f32, 1, &turns);
  LLVMValueRef rest = fma3(cg, whole, real(cg, -high), x);
  return fma3(cg, whole, real(cg, -low), rest);
}

LLVMValueRef cg_math(Cg *cg, OpKind kind, LLVMValueRef x) {
  if (kind == OP_exp) return exp_of(cg, x);
  if (kind == OP_exp2) return nvvm_ex2_approx(cg, x);
  if (kind == OP_log) return mul(cg, nvvm_lg2_approx(cg, x), real(cg, 0.6931471805599453));
  if (kind == OP_log2) return nvvm_lg2_approx(cg, x);
  if (kind == OP_sqrt) return nvvm_sqrt_rn(cg, x);
  if (kind == OP_rsqrt) return nvvm_rsqrt_approx(cg, x);
  if (kind == OP_tanh) return tanh_of(cg, x);
  if (kind == OP_sin) return nvvm_sin_approx(cg, reduced_angle(cg, x));
  if (kind == OP_cos) return nvvm_cos_approx(cg, reduced_angle(cg, x));
  if (kind == OP_floor) return cg_intrinsic(cg, "llvm.floor", cg->f32, 1, &x);
  if (kind == OP_ceil) return cg_intrinsic(cg, "llvm.ceil", cg->f32, 1, &x);
  if (kind == OP_abs) return absolute(cg, x);
  BUG("'%s' is no function of one number", op_def(kind)->name);
}

// f32 and f64 arithmetic. Without a rounding modifier results round to nearest even, which is what C's
// operators do; directed rounding takes a slow path. `.ftz` flushes subnormal inputs and results, `.sat`
// clamps to [0, 1] with NaN to 0. The approximate functions give the correctly computed value: within the
// error that PTX allows, not bit for bit what hardware gives.
#include "exec/exec.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

#include "num/num.h"

// fesetround changes what the next operations give; the compiler must not move them across it.
#define FORCE(x) __asm__ volatile("" : "+m"(x))

static inline float flush(float x) {
  return fabsf(x) < 1.17549435e-38f ? copysignf(0.0f, x) : x;
}
static inline float saturate(float x) {
  return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f;
}
// The canonical NaN of the hardware.
static inline float canonical(float x) {
  return x != x ? num_f32_from_bits(0x7fffffffu) : x;
}

// ---- fast forms: nearest even, with and without flushing

BINARY(add_f32, float, canonical(a + b))
BINARY(sub_f32, float, canonical(a - b))
BINARY(mul_f32, float, canonical(a *b))
BINARY(div_f32, float, canonical(a / b))
BINARY(add_f32_ftz, float, canonical(flush(flush(a) + flush(b))))
BINARY(sub_f32_ftz, float, canonical(flush(flush(a) - flush(b))))
BINARY(mul_f32_ftz, float, canonical(flush(flush(a) * flush(b))))
BINARY(div_f32_ftz, float, canonical(flush(flush(a) / flush(b))))
BINARY(add_f64, double, a + b)
BINARY(sub_f64, double, a - b)
BINARY(mul_f64, double, a *b)
BINARY(div_f64, double, a / b)
TERNARY(fma_f32, float, canonical(fmaf(a, b, c)))
TERNARY(fma_f32_ftz, float, canonical(flush(fmaf(flush(a), flush(b), flush(c)))))
TERNARY(fma_f64, double, fma(a, b, c))

#if defined(__x86_64__)
#define TARGET_FMA __attribute__((target("avx2,fma")))
TARGET_FMA TERNARY(fma_f32_ftz_fast, float,
                   canonical(flush(__builtin_fmaf(flush(a), flush(b), flush(c))))) TARGET_FMA
    TERNARY(fma_f32_fast, float, canonical(__builtin_fmaf(a, b, c))) TARGET_FMA
    TERNARY(fma_f64_fast, double, __builtin_fma(a, b, c)) static bool has_fma(void) {
  return __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2");
}
#else
#define fma_f32_fast fma_f32
#define fma_f32_ftz_fast fma_f32_ftz
#define fma_f64_fast fma_f64
static bool has_fma(void) {
  return false;
}
#endif

// ---- the general form: any rounding, ftz, sat

typedef enum { OP_ADD, OP_SUB, OP_MUL, OP_FMA, OP_DIV, OP_RCP, OP_SQRT } ArithmeticKind;

static int rounding_of(const Inst *inst) {
  if (inst_has(inst, MOD_rz)) return FE_TOWARDZERO;
  if (inst_has(inst, MOD_rm)) return FE_DOWNWARD;
  if (inst_has(inst, MOD_rp)) return FE_UPWARD;
  return FE_TONEAREST;
}

static float compute_f32(int op, float a, float b, float c) {
  FORCE(a);
  FORCE(b);
  FORCE(c);
  float r = 0;
  switch ((ArithmeticKind)op) {
  case OP_ADD:
    r = a + b;
    break;
  case OP_SUB:
    r = a - b;
    break;
  case OP_MUL:
    r = a * b;
    break;
  case OP_FMA:
    r = fmaf(a, b, c);
    break;
  case OP_DIV:
    r = a / b;
    break;
  case OP_RCP:
    r = 1.0f / a;
    break;
  case OP_SQRT:
    r = sqrtf(a);
    break;
  }
  FORCE(r);
  return r;
}

static double compute_f64(int op, double a, double b, double c) {
  FORCE(a);
  FORCE(b);
  FORCE(c);
  double r = 0;
  switch ((ArithmeticKind)op) {
  case OP_ADD:
    r = a + b;
    break;
  case OP_SUB:
    r = a - b;
    break;
  case OP_MUL:
    r = a * b;
    break;
  case OP_FMA:
    r = fma(a, b, c);
    break;
  case OP_DIV:
    r = a / b;
    break;
  case OP_RCP:
    r = 1.0 / a;
    break;
  case OP_SQRT:
    r = sqrt(a);
    break;
  }
  FORCE(r);
  return r;
}

static float operand_f32(const Warp *warp, const Inst *inst, int at, int lane) {
  if (at >= inst->nops) return 0;
  float x = num_f32_from_bits((uint32_t)op_get(warp, &inst->ops[at], lane));
  return inst_has(inst, MOD_ftz) ? flush(x) : x;
}

static ExecResult exec_general_f32(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  int rounding = rounding_of(inst);
  fesetround(rounding);
  FOR_LANES(lane, lanes) {
    float r = compute_f32(inst->aux, operand_f32(warp, inst, 1, (int)lane),
                          operand_f32(warp, inst, 2, (int)lane), operand_f32(warp, inst, 3, (int)lane));
    if (inst_has(inst, MOD_ftz)) r = flush(r);
    if (inst_has(inst, MOD_sat)) r = saturate(r);
    if (inst_has(inst, MOD_relu) && !(r > 0) && r == r) r = 0;
    op_set(warp, &inst->ops[0], (int)lane, num_f32_bits(canonical(r)));
  }
  fesetround(FE_TONEAREST);
  return EXEC_NEXT;
}

static double operand_f64(const Warp *warp, const Inst *inst, int at, int lane) {
  double x = 0;
  uint64_t bits = at < inst->nops ? op_get(warp, &inst->ops[at], lane) : 0;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static ExecResult exec_general_f64(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  fesetround(rounding_of(inst));
  FOR_LANES(lane, lanes) {
    double r = compute_f64(inst->aux, operand_f64(warp, inst, 1, (int)lane),
                           operand_f64(warp, inst, 2, (int)lane), operand_f64(warp, inst, 3, (int)lane));
    uint64_t bits;
    memcpy(&bits, &r, sizeof bits);
    op_set(warp, &inst->ops[0], (int)lane, bits);
  }
  fesetround(FE_TONEAREST);
  return EXEC_NEXT;
}

// Packed pairs of f32 in a 64-bit register
static ExecResult exec_f32x2(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  bool ftz = inst_has(inst, MOD_ftz);
  fesetround(rounding_of(inst));
  FOR_LANES(lane, lanes) {
    uint64_t result = 0;
    for (int part = 0; part < 2; part++) {
      float x[3] = {0, 0, 0};
      for (int i = 0; i < 3 && i + 1 < inst->nops; i++) {
        x[i] = num_f32_from_bits((uint32_t)(op_get(warp, &inst->ops[i + 1], (int)lane) >> 32 * part));
        if (ftz) x[i] = flush(x[i]);
      }
      float r = compute_f32(inst->aux, x[0], x[1], x[2]);
      result |= (uint64_t)num_f32_bits(canonical(ftz ? flush(r) : r)) << 32 * part;
    }
    op_set(warp, &inst->ops[0], (int)lane, result);
  }
  fesetround(FE_TONEAREST);
  return EXEC_NEXT;
}

// add.f32.bf16-like mixed forms: d and c are f32, a (and b) a half
static ExecResult exec_mixed(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  PtxType half = (PtxType)inst->types[1];
  int halves = inst->aux == OP_FMA ? 2 : 1;
  fesetround(rounding_of(inst));
  FOR_LANES(lane, lanes) {
    float x[3] = {0, 0, 0};
    for (int i = 0; i + 1 < inst->nops; i++) {
      uint32_t bits = (uint32_t)op_get(warp, &inst->ops[i + 1], (int)lane);
      x[i] = i >= halves      ? num_f32_from_bits(bits)
             : half == PT_f16 ? num_f16_to_f32((uint16_t)bits)
                              : num_bf16_to_f32((uint16_t)bits);
    }
    float r = compute_f32(inst->aux, x[0], x[1], x[2]);
    op_set(warp, &inst->ops[0], (int)lane,
           num_f32_bits(canonical(inst_has(inst, MOD_sat) ? saturate(r) : r)));
  }
  fesetround(FE_TONEAREST);
  return EXEC_NEXT;
}

static bool directed(const Inst *inst) {
  return rounding_of(inst) != FE_TONEAREST;
}

static const char *select_arithmetic(Inst *inst, ArithmeticKind op, ExecFn f32, ExecFn f32_ftz, ExecFn f64) {
  PtxType type = type0(inst);
  bool plain = !directed(inst) && !inst_has(inst, MOD_sat) && !inst_has(inst, MOD_relu);
  inst->aux = op;
  if (inst->ntypes == 2) {
    inst->exec = exec_mixed;
    bool fits = type == PT_f32 && (inst->types[1] == PT_f16 || inst->types[1] == PT_bf16);
    return fits && op <= OP_FMA && op != OP_MUL ? NULL : "this pair of types is not supported";
  }
  if (type == PT_f32) {
    inst->exec = !plain ? exec_general_f32 : inst_has(inst, MOD_ftz) ? f32_ftz : f32;
  } else if (type == PT_f64) {
    inst->exec = plain ? f64 : exec_general_f64;
  } else if (type == PT_f32x2 && op <= OP_FMA) {
    inst->exec = exec_f32x2;
  } else {
    return "this type is not supported";
  }
  return NULL;
}

static const char *select_add(Inst *inst) {
  return select_arithmetic(inst, OP_ADD, add_f32, add_f32_ftz, add_f64);
}
static const char *select_sub(Inst *inst) {
  return select_arithmetic(inst, OP_SUB, sub_f32, sub_f32_ftz, sub_f64);
}
static const char *select_mul(Inst *inst) {
  return select_arithmetic(inst, OP_MUL, mul_f32, mul_f32_ftz, mul_f64);
}
static const char *select_div(Inst *inst) {
  return select_arithmetic(inst, OP_DIV, div_f32, div_f32_ftz, div_f64);
}
static const char *select_fma(Inst *inst) {
  bool fast = has_fma();
  return select_arithmetic(inst, OP_FMA, fast ? fma_f32_fast : fma_f32, fast ? fma_f32_ftz_fast : fma_f32_ftz,
                           fast ? fma_f64_fast : fma_f64);
}
static const char *select_rcp(Inst *inst) {
  return select_arithmetic(inst, OP_RCP, exec_general_f32, exec_general_f32, exec_general_f64);
}
static const char *select_sqrt(Inst *inst) {
  return select_arithmetic(inst, OP_SQRT, exec_general_f32, exec_general_f32, exec_general_f64);
}

// ---- min max abs neg copysign

// -0 is less than +0; a NaN loses, or wins with .NaN
static float min_f32(float a, float b, bool nan) {
  if (a != a || b != b) return nan || (a != a && b != b) ? num_f32_from_bits(0x7fffffffu) : a != a ? b : a;
  return a < b || (a == b && signbit(a)) ? a : b;
}
static float max_f32(float a, float b, bool nan) {
  if (a != a || b != b) return nan || (a != a && b != b) ? num_f32_from_bits(0x7fffffffu) : a != a ? b : a;
  return a > b || (a == b && !signbit(a)) ? a : b;
}
static double min_f64(double a, double b) {
  if (a != a || b != b) return a != a ? b : a;
  return a < b || (a == b && signbit(a)) ? a : b;
}
static double max_f64(double a, double b) {
  if (a != a || b != b) return a != a ? b : a;
  return a > b || (a == b && !signbit(a)) ? a : b;
}

BINARY(min_plain, float, min_f32(a, b, false))
BINARY(max_plain, float, max_f32(a, b, false))
BINARY(min_double, double, min_f64(a, b))
BINARY(max_double, double, max_f64(a, b))

// .NaN, .ftz, .xorsign.abs, three inputs
static ExecResult exec_minmax(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  bool nan = inst_has(inst, MOD_nan), xorsign = inst_has(inst, MOD_xorsign), least = inst->aux == 0;
  bool magnitude = inst_has(inst, MOD_abs);
  FOR_LANES(lane, lanes) {
    float r = operand_f32(warp, inst, 1, (int)lane);
    bool sign = signbit(r);
    if (magnitude) r = fabsf(r);
    for (int i = 2; i < inst->nops; i++) {
      float b = operand_f32(warp, inst, i, (int)lane);
      sign ^= (bool)signbit(b);
      if (magnitude) b = fabsf(b);
      r = least ? min_f32(r, b, nan) : max_f32(r, b, nan);
    }
    if (xorsign && r == r) r = sign ? -fabsf(r) : fabsf(r);
    op_set(warp, &inst->ops[0], (int)lane, num_f32_bits(r));
  }
  return EXEC_NEXT;
}

static const char *select_minmax(Inst *inst, bool least) {
  bool special = inst_has(inst, MOD_nan) || inst_has(inst, MOD_ftz) || inst_has(inst, MOD_xorsign) ||
                 inst_has(inst, MOD_abs) || inst->nops > 3;
  inst->aux = least ? 0 : 1;
  if (type0(inst) == PT_f64)
    return inst->exec = least ? min_double : max_double, special ? "unsupported form" : NULL;
  inst->exec = special ? exec_minmax : least ? min_plain : max_plain;
  return type0(inst) == PT_f32 ? NULL : "this type is not supported";
}
static const char *select_min(Inst *inst) {
  return select_minmax(inst, true);
}
static const char *select_max(Inst *inst) {
  return select_minmax(inst, false);
}

UNARY(abs_f32, float, canonical(fabsf(a)))
UNARY(neg_f32, float, canonical(-a))
UNARY(abs_f32_ftz, float, canonical(fabsf(flush(a))))
UNARY(neg_f32_ftz, float, canonical(-flush(a)))
// A NaN of f64 keeps its sign and becomes quiet (measured).
#define F64_NAN(a) (((a) & ~(1ull << 63)) > 0x7ffull << 52)
UNARY(abs_f64, uint64_t, F64_NAN(a) ? a | 1ull << 51 : a & ~(1ull << 63))
UNARY(neg_f64, uint64_t, F64_NAN(a) ? a | 1ull << 51 : a ^ 1ull << 63)
BINARY(copysign_f32, uint32_t, (b & 0x7fffffffu) | (a & 0x80000000u))
BINARY(copysign_f64, uint64_t, (b & ~(1ull << 63)) | (a & 1ull << 63))

static const char *select_sign(Inst *inst, ExecFn f32, ExecFn ftz, ExecFn f64) {
  inst->exec = type0(inst) == PT_f64 ? f64 : inst_has(inst, MOD_ftz) ? ftz : f32;
  return type0(inst) == PT_f32 || type0(inst) == PT_f64 ? NULL : "this type is not supported";
}
static const char *select_abs(Inst *inst) {
  return select_sign(inst, abs_f32, abs_f32_ftz, abs_f64);
}
static const char *select_neg(Inst *inst) {
  return select_sign(inst, neg_f32, neg_f32_ftz, neg_f64);
}
static const char *select_copysign(Inst *inst) {
  return select_sign(inst, copysign_f32, copysign_f32, copysign_f64);
}

// ---- approximate functions of one f32

typedef enum { FN_EX2, FN_LG2, FN_RSQRT, FN_SIN, FN_COS, FN_TANH } FunctionKind;

static float apply(int kind, float x) {
  switch ((FunctionKind)kind) {
  case FN_EX2:
    return exp2f(x);
  case FN_LG2:
    return log2f(x);
  case FN_RSQRT:
    return (float)(1.0 / sqrt((double)x));
  case FN_SIN:
    return sinf(x);
  case FN_COS:
    return cosf(x);
  case FN_TANH:
    return tanhf(x);
  }
  return 0;
}

static ExecResult exec_function(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  bool ftz = inst_has(inst, MOD_ftz);
  const uint32_t *a = row32(warp, &inst->ops[1]);
  uint32_t *d = row32(warp, &inst->ops[0]);
  FOR_LANES(lane, lanes) {
    float x = num_f32_from_bits(a[lane]);
    float r = apply(inst->aux, ftz ? flush(x) : x);
    d[lane] = num_f32_bits(canonical(ftz ? flush(r) : r));
  }
  return EXEC_NEXT;
}

static ExecResult exec_rsqrt_f64(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  FOR_LANES(lane, lanes) {
    double r = 1.0 / sqrt(operand_f64(warp, inst, 1, (int)lane));
    uint64_t bits;
    memcpy(&bits, &r, sizeof bits);
    op_set(warp, &inst->ops[0], (int)lane, bits);
  }
  return EXEC_NEXT;
}

static const char *select_function(Inst *inst, FunctionKind kind) {
  inst->aux = (int)kind;
  inst->exec = exec_function;
  if (kind == FN_RSQRT && type0(inst) == PT_f64) return inst->exec = exec_rsqrt_f64, NULL;
  return type0(inst) == PT_f32 ? NULL : "this type is not supported";
}
static const char *select_ex2(Inst *inst) {
  return select_function(inst, FN_EX2);
}
static const char *select_lg2(Inst *inst) {
  return select_function(inst, FN_LG2);
}
static const char *select_rsqrt(Inst *inst) {
  return select_function(inst, FN_RSQRT);
}
static const char *select_sin(Inst *inst) {
  return select_function(inst, FN_SIN);
}
static const char *select_cos(Inst *inst) {
  return select_function(inst, FN_COS);
}
static const char *select_tanh(Inst *inst) {
  return select_function(inst, FN_TANH);
}

// ---- testp

enum { TEST_NUMBER = 99 };  // no class of fpclassify

// Zeros count as normal (PTX ISA 9.7.3.1, and measured).
static bool test_class(const Inst *inst, int kind) {
  bool number = kind != FP_NAN;
  switch (inst->aux) {
  case FP_ZERO:
    return number && kind != FP_INFINITE;
  case FP_NORMAL:
    return kind == FP_NORMAL || kind == FP_ZERO;
  case TEST_NUMBER:
    return number;
  default:
    return kind == inst->aux;
  }
}

static ExecResult exec_testp(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  uint32_t mask = 0;
  FOR_LANES(lane, lanes) {
    uint64_t bits = op_get(warp, &inst->ops[1], (int)lane);
    double wide;
    memcpy(&wide, &bits, sizeof wide);
    bool yes = test_class(inst, type0(inst) == PT_f64 ? fpclassify(wide)
                                                      : fpclassify(operand_f32(warp, inst, 1, (int)lane)));
    mask |= (uint32_t)yes << lane;
  }
  op_set_pred(warp, &inst->ops[0], lanes, mask);
  return EXEC_NEXT;
}

static const char *select_testp(Inst *inst) {
  inst->aux = inst_has(inst, MOD_finite)       ? FP_ZERO
              : inst_has(inst, MOD_infinite)   ? FP_INFINITE
              : inst_has(inst, MOD_normal)     ? FP_NORMAL
              : inst_has(inst, MOD_subnormal)  ? FP_SUBNORMAL
              : inst_has(inst, MOD_notanumber) ? FP_NAN
                                               : TEST_NUMBER;
  return type0(inst) == PT_f32 || type0(inst) == PT_f64 ? NULL : "this type is not supported";
}

static bool is_single(const Inst *inst) {
  return is_float_type(inst) && !is_half_type(inst);
}

// The first type is that of the result and of what is added, the second that of the others.
static bool is_mixed(const Inst *inst) {
  return is_single(inst) && inst->ntypes == 2;
}

#define ARITHMETIC (MC(ROUND) | MC(FTZ) | MC(SAT))

const InstDef float_insts[] = {
    {"add", ARITHMETIC, "010", 0, NULL, is_mixed, select_add},
    {"add", ARITHMETIC, "000", 0, NULL, is_single, select_add},
    {"sub", ARITHMETIC, "010", 0, NULL, is_mixed, select_sub},
    {"sub", ARITHMETIC, "000", 0, NULL, is_single, select_sub},
    {"mul", ARITHMETIC, "000", 0, NULL, is_single, select_mul},
    {"fma", ARITHMETIC, "0110", 0, NULL, is_mixed, select_fma},
    {"fma", ARITHMETIC | MC(RELU), "0000", 0, NULL, is_single, select_fma},
    {"mad", ARITHMETIC, "0000", 0, NULL, is_single, select_fma},
    {"div", ARITHMETIC | MC(PRECISION), "000", 0, NULL, is_single, select_div},
    {"rcp", ARITHMETIC | MC(PRECISION), "00", 0, NULL, is_single, select_rcp},
    {"sqrt", ARITHMETIC | MC(PRECISION), "00", 0, NULL, is_single, select_sqrt},
    {"min", MC(FTZ) | MC(NAN) | MC(XORSIGN), "000?0", 0, NULL, is_single, select_min},
    {"max", MC(FTZ) | MC(NAN) | MC(XORSIGN), "000?0", 0, NULL, is_single, select_max},
    {"abs", MC(FTZ), "00", 0, NULL, is_single, select_abs},
    {"neg", MC(FTZ), "00", 0, NULL, is_single, select_neg},
    {"copysign", 0, "000", 0, NULL, NULL, select_copysign},
    {"ex2", MC(FTZ) | MC(PRECISION), "00", 0, NULL, is_single, select_ex2},
    {"lg2", MC(FTZ) | MC(PRECISION), "00", 0, NULL, NULL, select_lg2},
    {"rsqrt", MC(FTZ) | MC(PRECISION), "00", 0, NULL, NULL, select_rsqrt},
    {"sin", MC(FTZ) | MC(PRECISION), "00", 0, NULL, NULL, select_sin},
    {"cos", MC(FTZ) | MC(PRECISION), "00", 0, NULL, NULL, select_cos},
    {"tanh", MC(PRECISION), "00", 0, NULL, is_single, select_tanh},
    {"testp", MC(TEST), "p0", 0, exec_testp, NULL, select_testp},
    {.name = NULL},
};

// f16, bf16 and their pairs. A result is computed without rounding error that could matter twice: exactly, or
// in double with the last bit made odd when something was lost, and rounded once.
#include "exec/exec.h"

#include <math.h>
#include <string.h>

#include "num/num.h"

typedef enum {
  HALF_ADD,
  HALF_SUB,
  HALF_MUL,
  HALF_FMA,
  HALF_MIN,
  HALF_MAX,
  HALF_ABS,
  HALF_NEG,
  HALF_EX2,
  HALF_TANH
} HalfKind;

static bool is_bf16(const Inst *inst) {
  return type0(inst) == PT_bf16 || type0(inst) == PT_bf16x2;
}
static bool is_pair(const Inst *inst) {
  return type0(inst) == PT_f16x2 || type0(inst) == PT_bf16x2;
}

// a + b to odd: exact error by two-sum
static double add_odd(double a, double b) {
  double sum = a + b;
  if (!isfinite(sum)) return sum;
  double bb = sum - a, error = (a - (sum - bb)) + (b - bb);
  if (error == 0) return sum;
  uint64_t bits;
  memcpy(&bits, &sum, sizeof bits);
  if (bits & 1) return sum;
  bool away = (error > 0) == (sum > 0);
  bits = away ? bits + 1 : bits - 1;
  memcpy(&sum, &bits, sizeof sum);
  return sum;
}

static double select_minmax(double a, double b, bool least, bool nan) {
  if (a != a || b != b) return nan || (a != a && b != b) ? NAN : a != a ? b : a;
  bool first = least ? a < b || (a == b && signbit(a)) : a > b || (a == b && !signbit(a));
  return first ? a : b;
}

static double compute(const Inst *inst, double a, double b, double c) {
  switch ((HalfKind)inst->aux) {
  case HALF_ADD:
    return add_odd(a, b);
  case HALF_SUB:
    return add_odd(a, -b);
  case HALF_MUL:
    return a * b;
  case HALF_FMA:
    return add_odd(a * b, c);
  case HALF_MIN:
    return select_minmax(a, b, true, inst_has(inst, MOD_nan));
  case HALF_MAX:
    return select_minmax(a, b, false, inst_has(inst, MOD_nan));
  case HALF_EX2:
    return exp2(a);
  case HALF_TANH:
    return tanh(a);
  case HALF_ABS:
  case HALF_NEG:
    break;
  }
  return a;
}

static uint32_t compute_code(const Inst *inst, const NumFormat *format, uint32_t a, uint32_t b, uint32_t c) {
  if ((inst->aux == HALF_ABS || inst->aux == HALF_NEG) && inst_has(inst, MOD_ftz) && (a & 0x7c00) == 0)
    a &= 0x8000;  // only f16 has .ftz
  if (inst->aux == HALF_ABS) return a & 0x7fff;
  if (inst->aux == HALF_NEG) return a ^ 0x8000;
  double x = num_decode(format, a), y = num_decode(format, b), z = num_decode(format, c);
  double least = format == &num_bf16 ? 1.1754943508222875e-38 : 6.103515625e-05;
  if (inst_has(inst, MOD_ftz)) {
    if (fabs(x) < least) x = copysign(0, x);
    if (fabs(y) < least) y = copysign(0, y);
    if (fabs(z) < least) z = copysign(0, z);
  }
  double r = 0;
  if (inst_has(inst, MOD_xorsign)) {  // with .abs, always
    r = compute(inst, fabs(x), fabs(y), z);
    if (r == r && signbit(x) != signbit(y)) r = -r;
  } else {
    r = compute(inst, x, y, z);
  }
  if (inst_has(inst, MOD_sat)) r = r > 0 ? (r < 1 ? r : 1) : 0;
  if (inst_has(inst, MOD_relu) && r <= 0) r = 0;
  if (inst_has(inst, MOD_ftz) && fabs(r) < least) r = copysign(0, r);
  return num_encode(format, r, NUM_RN, false);
}

static ExecResult exec_half(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  const NumFormat *format = is_bf16(inst) ? &num_bf16 : &num_f16;
  const uint32_t *a = row32(warp, &inst->ops[1]);
  const uint32_t *b = inst->nops > 2 ? row32(warp, &inst->ops[2]) : a,
                 *c = inst->nops > 3 ? row32(warp, &inst->ops[3]) : a;
  uint32_t *d = row32(warp, &inst->ops[0]);
  bool pair = is_pair(inst);
  FOR_LANES(lane, lanes) {
    uint32_t x = a[lane], y = b[lane], z = c[lane];
    uint32_t low = compute_code(inst, format, x & 0xffff, y & 0xffff, z & 0xffff);
    d[lane] = pair ? low | compute_code(inst, format, x >> 16, y >> 16, z >> 16) << 16 : low;
  }
  return EXEC_NEXT;
}

static const char *pick(Inst *inst, HalfKind kind) {
  inst->aux = (int)kind;
  inst->exec = exec_half;
  return inst->ntypes == 1 ? NULL : "one type expected";
}
static const char *select_add(Inst *inst) {
  return pick(inst, HALF_ADD);
}
static const char *select_sub(Inst *inst) {
  return pick(inst, HALF_SUB);
}
static const char *select_mul(Inst *inst) {
  return pick(inst, HALF_MUL);
}
static const char *select_fma(Inst *inst) {
  return pick(inst, HALF_FMA);
}
static const char *select_min(Inst *inst) {
  return pick(inst, HALF_MIN);
}
static const char *select_max(Inst *inst) {
  return pick(inst, HALF_MAX);
}
static const char *select_abs(Inst *inst) {
  return pick(inst, HALF_ABS);
}
static const char *select_neg(Inst *inst) {
  return pick(inst, HALF_NEG);
}
static const char *select_ex2(Inst *inst) {
  return pick(inst, HALF_EX2);
}
static const char *select_tanh(Inst *inst) {
  return pick(inst, HALF_TANH);
}

#define ARITHMETIC (MC(ROUND) | MC(FTZ) | MC(SAT) | MC(RELU))

const InstDef half_insts[] = {
    {"add", ARITHMETIC, "000", 0, NULL, is_half_type, select_add},
    {"sub", ARITHMETIC, "000", 0, NULL, is_half_type, select_sub},
    {"mul", ARITHMETIC, "000", 0, NULL, is_half_type, select_mul},
    {"fma", ARITHMETIC, "0000", 0, NULL, is_half_type, select_fma},
    {"min", MC(FTZ) | MC(NAN) | MC(XORSIGN), "000", 0, NULL, is_half_type, select_min},
    {"max", MC(FTZ) | MC(NAN) | MC(XORSIGN), "000", 0, NULL, is_half_type, select_max},
    {"abs", MC(FTZ), "00", 0, NULL, is_half_type, select_abs},
    {"neg", MC(FTZ), "00", 0, NULL, is_half_type, select_neg},
    {"ex2", MC(FTZ) | MC(PRECISION), "00", 0, NULL, is_half_type, select_ex2},
    {"tanh", MC(PRECISION), "00", 0, NULL, is_half_type, select_tanh},
    {.name = NULL},
};

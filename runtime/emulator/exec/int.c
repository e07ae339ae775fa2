// Integer arithmetic. 8- and 16-bit registers live in 32-bit rows with zero upper bits; every handler keeps
// that so.
#include "exec/exec.h"

#define U16(x) ((uint16_t)(x))
#define S16(x) ((int16_t)(uint16_t)(x))
#define S32(x) ((int32_t)(uint32_t)(x))
#define S64(x) ((int64_t)(uint64_t)(x))

// ---- add sub mul mad

BINARY(add16, uint32_t, U16(a + b))
BINARY(add32, uint32_t, a + b)
BINARY(add64, uint64_t, a + b)
BINARY(sub16, uint32_t, U16(a - b))
BINARY(sub32, uint32_t, a - b)
BINARY(sub64, uint64_t, a - b)
BINARY(add16x2, uint32_t, U16(a + b) | (((a >> 16) + (b >> 16)) << 16))
BINARY(mul_lo16, uint32_t, U16(a *b))
BINARY(mul_lo32, uint32_t, a *b)
BINARY(mul_lo64, uint64_t, a *b)
BINARY(mul_hi_u16, uint32_t, a *b >> 16)
BINARY(mul_hi_s16, uint32_t, U16(S16(a) * S16(b) >> 16))
BINARY(mul_hi_u32, uint32_t, (uint64_t)a *b >> 32)
BINARY(mul_hi_s32, uint32_t, (int64_t)S32(a) * S32(b) >> 32)
BINARY(mul_wide_u16, uint32_t, a *b)
BINARY(mul_wide_s16, uint32_t, S16(a) * S16(b))
BINARY(mul24_hi_u, uint32_t, (uint32_t)((uint64_t)(a & 0xffffff) * (b & 0xffffff) >> 16))
BINARY(mul24_hi_s, uint32_t, (uint32_t)((int64_t)(S32(a << 8) >> 8) * (S32(b << 8) >> 8) >> 16))
BINARY(mul24_lo_u, uint32_t, (a & 0xffffff) * (b & 0xffffff))
BINARY(mul24_lo_s, uint32_t, (uint32_t)((int64_t)(S32(a << 8) >> 8) * (S32(b << 8) >> 8)))
TERNARY(mad_lo16, uint32_t, U16(a *b + c))
TERNARY(mad_lo32, uint32_t, a *b + c)
TERNARY(mad_lo64, uint64_t, a *b + c)
TERNARY(mad_hi_u16, uint32_t, U16((a * b >> 16) + c))
TERNARY(mad_hi_s16, uint32_t, U16((uint32_t)(S16(a) * S16(b) >> 16) + c))
TERNARY(mad_hi_u32, uint32_t, (uint32_t)((uint64_t)a *b >> 32) + c)
TERNARY(mad_hi_s32, uint32_t, (uint32_t)((int64_t)S32(a) * S32(b) >> 32) + c)
TERNARY(mad_wide_u16, uint32_t, a *b + c)
TERNARY(mad_wide_s16, uint32_t, (uint32_t)(S16(a) * S16(b)) + c)
TERNARY(mad24_hi_u, uint32_t, (uint32_t)((uint64_t)(a & 0xffffff) * (b & 0xffffff) >> 16) + c)
TERNARY(mad24_hi_s, uint32_t, (uint32_t)((int64_t)(S32(a << 8) >> 8) * (S32(b << 8) >> 8) >> 16) + c)
TERNARY(mad24_lo_u, uint32_t, (a & 0xffffff) * (b & 0xffffff) + c)
TERNARY(mad24_lo_s, uint32_t, (uint32_t)((int64_t)(S32(a << 8) >> 8) * (S32(b << 8) >> 8)) + c)

static uint64_t mul_high_u64(uint64_t a, uint64_t b) {
  uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
  uint64_t mid = ah * bl + (al * bl >> 32), mid2 = al * bh + (uint32_t)mid;
  return ah * bh + (mid >> 32) + (mid2 >> 32);
}

static uint64_t mul_high_s64(uint64_t a, uint64_t b) {
  return mul_high_u64(a, b) - (S64(a) < 0 ? b : 0) - (S64(b) < 0 ? a : 0);
}

BINARY(mul_hi_u64, uint64_t, mul_high_u64(a, b))
BINARY(mul_hi_s64, uint64_t, mul_high_s64(a, b))
TERNARY(mad_hi_u64, uint64_t, mul_high_u64(a, b) + c)
TERNARY(mad_hi_s64, uint64_t, mul_high_s64(a, b) + c)

// 32 x 32 -> 64 (+ 64)
#define WIDE(function, expression, has_c)                                                                    \
  static ExecResult function(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {               \
    (void)machine;                                                                                           \
    uint64_t *d_ = row64(warp, &inst->ops[0]);                                                               \
    const uint32_t *a_ = row32(warp, &inst->ops[1]), *b_ = row32(warp, &inst->ops[2]);                       \
    const uint64_t *c_ = has_c ? row64(warp, &inst->ops[3]) : d_;                                            \
    LANE_LOOP(lanes, i, uint32_t a = a_[i]; uint32_t b = b_[i]; uint64_t c = has_c ? c_[i] : 0;              \
              d_[i] = (uint64_t)(expression) + c);                                                           \
    return EXEC_NEXT;                                                                                        \
  }
WIDE(mul_wide_u32, (uint64_t)a *b, 0)
WIDE(mul_wide_s32, (int64_t)S32(a) * S32(b), 0)
WIDE(mad_wide_u32, (uint64_t)a *b, 1)
WIDE(mad_wide_s32, (int64_t)S32(a) * S32(b), 1)

// ---- division: by zero the manual leaves the result open; all ones is what 32-bit hardware code gives
// (measured)

BINARY(div_u16, uint32_t, U16(b) == 0 ? 0xffff : U16(a) / U16(b))
BINARY(div_s16, uint32_t, U16(b) == 0 ? 0xffff : U16(S16(a) / S16(b)))
BINARY(div_u32, uint32_t, b == 0 ? 0xffffffffu : a / b)
BINARY(div_s32, uint32_t, b == 0 ? 0xffffffffu : (uint32_t)((int64_t)S32(a) / S32(b)))
BINARY(div_u64, uint64_t, b == 0 ? ~(uint64_t)0 : a / b)
BINARY(div_s64, uint64_t, b == 0 ? ~(uint64_t)0 : b == ~(uint64_t)0 ? 0 - a : (uint64_t)(S64(a) / S64(b)))
BINARY(rem_u16, uint32_t, U16(b) == 0 ? 0xffff : U16(a) % U16(b))
BINARY(rem_s16, uint32_t, U16(b) == 0 ? 0xffff : U16(S16(a) % S16(b)))
BINARY(rem_u32, uint32_t, b == 0 ? 0xffffffffu : a % b)
BINARY(rem_s32, uint32_t, b == 0 ? 0xffffffffu : (uint32_t)((int64_t)S32(a) % S32(b)))
BINARY(rem_u64, uint64_t, b == 0 ? ~(uint64_t)0 : a % b)
BINARY(rem_s64, uint64_t, b == 0 ? ~(uint64_t)0 : b == ~(uint64_t)0 ? 0 : (uint64_t)(S64(a) % S64(b)))

// ---- min max abs neg sad

BINARY(min_u32, uint32_t, a < b ? a : b)
BINARY(min_s16, uint32_t, S16(a) < S16(b) ? a : b)
BINARY(min_s32, uint32_t, S32(a) < S32(b) ? a : b)
BINARY(min_u64, uint64_t, a < b ? a : b)
BINARY(min_s64, uint64_t, S64(a) < S64(b) ? a : b)
BINARY(max_u32, uint32_t, a > b ? a : b)
BINARY(max_s16, uint32_t, S16(a) > S16(b) ? a : b)
BINARY(max_s32, uint32_t, S32(a) > S32(b) ? a : b)
BINARY(max_u64, uint64_t, a > b ? a : b)
BINARY(max_s64, uint64_t, S64(a) > S64(b) ? a : b)
BINARY(max_s32_relu, uint32_t, S32(a) > S32(b) ? (S32(a) > 0 ? a : 0) : S32(b) > 0 ? b : 0)
BINARY(min_s32_relu, uint32_t, S32(a) < S32(b) ? (S32(a) > 0 ? a : 0) : S32(b) > 0 ? b : 0)
// pairs of 16 bits
#define PAIR(low, high) ((uint32_t)(uint16_t)(low) | (uint32_t)(high) << 16)
BINARY(min_u16x2, uint32_t, PAIR(U16(a) < U16(b) ? a : b, a >> 16 < b >> 16 ? a >> 16 : b >> 16))
BINARY(max_u16x2, uint32_t, PAIR(U16(a) > U16(b) ? a : b, a >> 16 > b >> 16 ? a >> 16 : b >> 16))
static uint32_t relu16(uint32_t x) {
  return S16(x) > 0 ? U16(x) : 0;
}
BINARY(min_s16x2, uint32_t, PAIR(S16(a) < S16(b) ? a : b, S16(a >> 16) < S16(b >> 16) ? a >> 16 : b >> 16))
BINARY(max_s16x2, uint32_t, PAIR(S16(a) > S16(b) ? a : b, S16(a >> 16) > S16(b >> 16) ? a >> 16 : b >> 16))
BINARY(min_s16x2_relu, uint32_t,
       PAIR(relu16(S16(a) < S16(b) ? a : b), relu16(S16(a >> 16) < S16(b >> 16) ? a >> 16 : b >> 16)))
BINARY(max_s16x2_relu, uint32_t,
       PAIR(relu16(S16(a) > S16(b) ? a : b), relu16(S16(a >> 16) > S16(b >> 16) ? a >> 16 : b >> 16)))
UNARY(abs16, uint32_t, U16(S16(a) < 0 ? 0 - a : a))
UNARY(abs32, uint32_t, S32(a) < 0 ? 0 - a : a)
UNARY(abs64, uint64_t, S64(a) < 0 ? 0 - a : a)
UNARY(neg16, uint32_t, U16(0 - a))
UNARY(neg32, uint32_t, 0 - a)
UNARY(neg64, uint64_t, 0 - a)
TERNARY(sad_u32, uint32_t, c + (a > b ? a - b : b - a))
TERNARY(sad_s32, uint32_t, c + (S32(a) > S32(b) ? a - b : b - a))
TERNARY(sad_u16, uint32_t, U16(c + (a > b ? a - b : b - a)))
TERNARY(sad_s16, uint32_t, U16(c + (S16(a) > S16(b) ? a - b : b - a)))
TERNARY(sad_u64, uint64_t, c + (a > b ? a - b : b - a))
TERNARY(sad_s64, uint64_t, c + (S64(a) > S64(b) ? a - b : b - a))

static uint32_t clamped(int64_t value) {
  return (uint32_t)(value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : value);
}
TERNARY(mad_hi_sat_s32, uint32_t, clamped(((int64_t)S32(a) * S32(b) >> 32) + S32(c)))
TERNARY(mad24_hi_sat_s32, uint32_t,
        clamped(((int64_t)(S32(a << 8) >> 8) * (S32(b << 8) >> 8) >> 16) + S32(c)))
BINARY(add_sat_s32, uint32_t,
       (int64_t)S32(a) + S32(b) > INT32_MAX   ? (uint32_t)INT32_MAX
       : (int64_t)S32(a) + S32(b) < INT32_MIN ? (uint32_t)INT32_MIN
                                              : a + b)
BINARY(sub_sat_s32, uint32_t,
       (int64_t)S32(a) - S32(b) > INT32_MAX   ? (uint32_t)INT32_MAX
       : (int64_t)S32(a) - S32(b) < INT32_MIN ? (uint32_t)INT32_MIN
                                              : a - b)

// ---- carry chains: the condition code is a bit a lane

typedef enum { CHAIN_ADD, CHAIN_SUB, CHAIN_MAD_LO, CHAIN_MAD_HI } ChainKind;
enum { CHAIN_CARRY_IN = 8, CHAIN_WIDE = 16, CHAIN_SIGNED = 32 };

static uint64_t chain_term(int aux, uint64_t a, uint64_t b) {
  bool wide = aux & CHAIN_WIDE, is_signed = aux & CHAIN_SIGNED;
  switch ((ChainKind)(aux & 7)) {
  case CHAIN_MAD_LO:
    return wide ? a * b : (uint32_t)(a * b);
  case CHAIN_MAD_HI:
    if (wide) return is_signed ? mul_high_s64(a, b) : mul_high_u64(a, b);
    return is_signed ? (uint32_t)((uint64_t)((int64_t)S32(a) * S32(b)) >> 32) : a * b >> 32;
  case CHAIN_ADD:
  case CHAIN_SUB:
    break;
  }
  return a;
}

static ExecResult exec_chain(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  bool wide = inst->aux & CHAIN_WIDE, subtract = (inst->aux & 7) == CHAIN_SUB;
  bool three = (inst->aux & 7) >= CHAIN_MAD_LO;
  FOR_LANES(lane, lanes) {
    uint64_t a = op_get(warp, &inst->ops[1], (int)lane), b = op_get(warp, &inst->ops[2], (int)lane);
    uint64_t x = chain_term(inst->aux, a, b), y = three ? op_get(warp, &inst->ops[3], (int)lane) : b;
    uint64_t in = inst->aux & CHAIN_CARRY_IN ? warp->carry >> lane & 1 : 0,
             mask = wide ? ~(uint64_t)0 : 0xffffffffu;
    uint64_t sum = (subtract ? x - y - in : x + y + in) & mask;
    // Carry out of the top bit, borrow for subtraction.
    bool out = subtract ? x < y || (x == y && in != 0) : sum < x || (sum == x && in != 0 && y == mask);
    op_set(warp, &inst->ops[0], (int)lane, sum);
    if (inst_has(inst, MOD_cc)) warp->carry = (warp->carry & ~(1u << lane)) | (uint32_t)out << lane;
  }
  return EXEC_NEXT;
}

static const char *select_chain(Inst *inst, ChainKind kind, bool carry_in) {
  PtxType t = type0(inst);
  inst->aux = (int)kind | (carry_in ? CHAIN_CARRY_IN : 0) | (ptx_type_bits(t) == 64 ? CHAIN_WIDE : 0) |
              (ptx_type_signed(t) ? CHAIN_SIGNED : 0);
  inst->exec = exec_chain;
  return ptx_type_bits(t) < 32 ? "needs a 32- or 64-bit type" : NULL;
}

static ChainKind mad_kind(const Inst *inst) {
  return inst_has(inst, MOD_hi) ? CHAIN_MAD_HI : CHAIN_MAD_LO;
}
static const char *select_addc(Inst *inst) {
  return select_chain(inst, CHAIN_ADD, true);
}
static const char *select_subc(Inst *inst) {
  return select_chain(inst, CHAIN_SUB, true);
}
static const char *select_madc(Inst *inst) {
  return select_chain(inst, mad_kind(inst), true);
}

// ---- which handler

typedef struct {
  PtxType type;
  ExecFn exec;
} TypeRow;

static const char *by_type(Inst *inst, const TypeRow *rows) {
  if (inst->ntypes != 1) return "one type expected";
  for (; rows->type != PT_none; rows++) {
    if (rows->type == type0(inst)) {
      inst->exec = rows->exec;
      return NULL;
    }
  }
  return "this type is not supported";
}

static const char *select_add(Inst *inst) {
  static const TypeRow rows[] = {{PT_u16, add16},     {PT_s16, add16}, {PT_u32, add32}, {PT_s32, add32},
                                 {PT_u64, add64},     {PT_s64, add64}, {PT_b32, add32}, {PT_u16x2, add16x2},
                                 {PT_s16x2, add16x2}, {PT_none, NULL}};
  if (inst_has(inst, MOD_cc)) return select_chain(inst, CHAIN_ADD, false);
  if (inst_has(inst, MOD_sat))
    return inst->exec = add_sat_s32, type0(inst) == PT_s32 ? NULL : ".sat needs .s32";
  return by_type(inst, rows);
}

static const char *select_sub(Inst *inst) {
  static const TypeRow rows[] = {{PT_u16, sub16}, {PT_s16, sub16}, {PT_u32, sub32}, {PT_s32, sub32},
                                 {PT_u64, sub64}, {PT_s64, sub64}, {PT_none, NULL}};
  if (inst_has(inst, MOD_cc)) return select_chain(inst, CHAIN_SUB, false);
  if (inst_has(inst, MOD_sat))
    return inst->exec = sub_sat_s32, type0(inst) == PT_s32 ? NULL : ".sat needs .s32";
  return by_type(inst, rows);
}

static const char *select_mul(Inst *inst) {
  static const TypeRow lo[] = {{PT_u16, mul_lo16}, {PT_s16, mul_lo16}, {PT_u32, mul_lo32}, {PT_s32, mul_lo32},
                               {PT_u64, mul_lo64}, {PT_s64, mul_lo64}, {PT_none, NULL}};
  static const TypeRow hi[] = {{PT_u16, mul_hi_u16}, {PT_s16, mul_hi_s16}, {PT_u32, mul_hi_u32},
                               {PT_s32, mul_hi_s32}, {PT_u64, mul_hi_u64}, {PT_s64, mul_hi_s64},
                               {PT_none, NULL}};
  return by_type(inst, inst_has(inst, MOD_hi) ? hi : lo);
}

static const char *select_mul_wide(Inst *inst) {
  static const TypeRow rows[] = {{PT_u16, mul_wide_u16},
                                 {PT_s16, mul_wide_s16},
                                 {PT_u32, mul_wide_u32},
                                 {PT_s32, mul_wide_s32},
                                 {PT_none, NULL}};
  return by_type(inst, rows);
}

static const char *select_mad(Inst *inst) {
  static const TypeRow lo[] = {{PT_u16, mad_lo16}, {PT_s16, mad_lo16}, {PT_u32, mad_lo32}, {PT_s32, mad_lo32},
                               {PT_u64, mad_lo64}, {PT_s64, mad_lo64}, {PT_none, NULL}};
  static const TypeRow hi[] = {{PT_u16, mad_hi_u16}, {PT_s16, mad_hi_s16}, {PT_u32, mad_hi_u32},
                               {PT_s32, mad_hi_s32}, {PT_u64, mad_hi_u64}, {PT_s64, mad_hi_s64},
                               {PT_none, NULL}};
  if (inst_has(inst, MOD_cc)) return select_chain(inst, mad_kind(inst), false);
  if (inst_has(inst, MOD_sat)) {
    inst->exec = mad_hi_sat_s32;
    return type0(inst) == PT_s32 && inst_has(inst, MOD_hi) ? NULL : ".sat needs .hi and .s32";
  }
  return by_type(inst, inst_has(inst, MOD_hi) ? hi : lo);
}

static const char *select_mad_wide(Inst *inst) {
  static const TypeRow rows[] = {{PT_u16, mad_wide_u16},
                                 {PT_s16, mad_wide_s16},
                                 {PT_u32, mad_wide_u32},
                                 {PT_s32, mad_wide_s32},
                                 {PT_none, NULL}};
  return by_type(inst, rows);
}

static const char *select_mul24(Inst *inst) {
  bool is_signed = type0(inst) == PT_s32;
  inst->exec = inst_has(inst, MOD_hi) ? (is_signed ? mul24_hi_s : mul24_hi_u)
               : is_signed            ? mul24_lo_s
                                      : mul24_lo_u;
  return need_bits(inst, 32, 0, 0);
}

static const char *select_mad24(Inst *inst) {
  if (inst_has(inst, MOD_sat)) {
    inst->exec = mad24_hi_sat_s32;
    return type0(inst) == PT_s32 && inst_has(inst, MOD_hi) ? NULL : ".sat needs .hi and .s32";
  }
  bool is_signed = type0(inst) == PT_s32;
  inst->exec = inst_has(inst, MOD_hi) ? (is_signed ? mad24_hi_s : mad24_hi_u)
               : is_signed            ? mad24_lo_s
                                      : mad24_lo_u;
  return need_bits(inst, 32, 0, 0);
}

static const char *select_div(Inst *inst) {
  static const TypeRow rows[] = {{PT_u16, div_u16}, {PT_s16, div_s16}, {PT_u32, div_u32}, {PT_s32, div_s32},
                                 {PT_u64, div_u64}, {PT_s64, div_s64}, {PT_none, NULL}};
  return by_type(inst, rows);
}

static const char *select_rem(Inst *inst) {
  static const TypeRow rows[] = {{PT_u16, rem_u16}, {PT_s16, rem_s16}, {PT_u32, rem_u32}, {PT_s32, rem_s32},
                                 {PT_u64, rem_u64}, {PT_s64, rem_s64}, {PT_none, NULL}};
  return by_type(inst, rows);
}

static const char *select_min(Inst *inst) {
  static const TypeRow rows[] = {{PT_u16, min_u32},     {PT_s16, min_s16},     {PT_u32, min_u32},
                                 {PT_s32, min_s32},     {PT_u64, min_u64},     {PT_s64, min_s64},
                                 {PT_u16x2, min_u16x2}, {PT_s16x2, min_s16x2}, {PT_none, NULL}};
  static const TypeRow relu[] = {{PT_s32, min_s32_relu}, {PT_s16x2, min_s16x2_relu}, {PT_none, NULL}};
  return by_type(inst, inst_has(inst, MOD_relu) ? relu : rows);
}

static const char *select_max(Inst *inst) {
  static const TypeRow rows[] = {{PT_u16, max_u32},     {PT_s16, max_s16},     {PT_u32, max_u32},
                                 {PT_s32, max_s32},     {PT_u64, max_u64},     {PT_s64, max_s64},
                                 {PT_u16x2, max_u16x2}, {PT_s16x2, max_s16x2}, {PT_none, NULL}};
  static const TypeRow relu[] = {{PT_s32, max_s32_relu}, {PT_s16x2, max_s16x2_relu}, {PT_none, NULL}};
  return by_type(inst, inst_has(inst, MOD_relu) ? relu : rows);
}

static const char *select_abs(Inst *inst) {
  static const TypeRow rows[] = {{PT_s16, abs16}, {PT_s32, abs32}, {PT_s64, abs64}, {PT_none, NULL}};
  return by_type(inst, rows);
}

static const char *select_neg(Inst *inst) {
  static const TypeRow rows[] = {{PT_s16, neg16}, {PT_s32, neg32}, {PT_s64, neg64}, {PT_none, NULL}};
  return by_type(inst, rows);
}

static const char *select_sad(Inst *inst) {
  static const TypeRow rows[] = {{PT_u16, sad_u16}, {PT_s16, sad_s16}, {PT_u32, sad_u32}, {PT_s32, sad_s32},
                                 {PT_u64, sad_u64}, {PT_s64, sad_s64}, {PT_none, NULL}};
  return by_type(inst, rows);
}

// ---- dot products of bytes and halves

static int32_t part(uint32_t word, int index, int bits, bool is_signed) {
  uint32_t value = word >> (index * bits) & ((1u << bits) - 1);
  return is_signed ? (int32_t)(value << (32 - bits)) >> (32 - bits) : (int32_t)value;
}

static ExecResult exec_dp(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  bool sa = inst->types[0] == PT_s32, sb = inst->types[1] == PT_s32, four = inst->aux == 4;
  int high = inst_has(inst, MOD_hi) ? 2 : 0;
  FOR_LANES(lane, lanes) {
    uint32_t a = (uint32_t)op_get(warp, &inst->ops[1], (int)lane),
             b = (uint32_t)op_get(warp, &inst->ops[2], (int)lane);
    uint32_t sum = (uint32_t)op_get(warp, &inst->ops[3], (int)lane);
    for (int i = 0; i < (four ? 4 : 2); i++) {
      sum += (uint32_t)(part(a, i, four ? 8 : 16, sa) * part(b, four ? i : i + high, 8, sb));
    }
    op_set(warp, &inst->ops[0], (int)lane, sum);
  }
  return EXEC_NEXT;
}

static const char *select_dp4a(Inst *inst) {
  return inst->aux = 4, inst->ntypes == 2 ? NULL : "two types";
}
static const char *select_dp2a(Inst *inst) {
  return inst->aux = 2, inst->ntypes == 2 ? NULL : "two types";
}

static bool is_integer_wide(const Inst *inst) {
  return inst_has(inst, MOD_wide) && is_integer_type(inst);
}

const InstDef int_insts[] = {
    {"add", MC(SAT) | MC(CARRY), "000", 0, NULL, is_integer_type, select_add},
    {"sub", MC(SAT) | MC(CARRY), "000", 0, NULL, is_integer_type, select_sub},
    {"addc", MC(CARRY), "000", 0, NULL, NULL, select_addc},
    {"subc", MC(CARRY), "000", 0, NULL, NULL, select_subc},
    {"mul", MC(HALF), "w00", 0, NULL, is_integer_wide, select_mul_wide},
    {"mul", MC(HALF), "000", 0, NULL, is_integer_type, select_mul},
    {"mad", MC(HALF), "w00w", 0, NULL, is_integer_wide, select_mad_wide},
    {"mad", MC(HALF) | MC(CARRY) | MC(SAT), "0000", 0, NULL, is_integer_type, select_mad},
    {"madc", MC(HALF) | MC(CARRY), "0000", 0, NULL, NULL, select_madc},
    {"mul24", MC(HALF), "000", 0, NULL, NULL, select_mul24},
    {"mad24", MC(HALF) | MC(SAT), "0000", 0, NULL, NULL, select_mad24},
    {"div", 0, "000", 0, NULL, is_integer_type, select_div},
    {"rem", 0, "000", 0, NULL, NULL, select_rem},
    {"min", MC(RELU), "000", 0, NULL, is_integer_type, select_min},
    {"max", MC(RELU), "000", 0, NULL, is_integer_type, select_max},
    {"abs", 0, "00", 0, NULL, is_integer_type, select_abs},
    {"neg", 0, "00", 0, NULL, is_integer_type, select_neg},
    {"sad", 0, "0000", 0, NULL, NULL, select_sad},
    {"dp4a", 0, "iiii", 0, exec_dp, NULL, select_dp4a},
    {"dp2a", MC(HALF), "iiii", 0, exec_dp, NULL, select_dp2a},
    {.name = NULL},
};

// Bits: and or xor not, shifts (counts clamp, they don't wrap), fields, permutes, counts.
#include "exec/exec.h"

#include <stddef.h>

#define S16(x) ((int16_t)(uint16_t)(x))
#define S32(x) ((int32_t)(uint32_t)(x))
#define S64(x) ((int64_t)(uint64_t)(x))

BINARY(and32, uint32_t, a &b)
BINARY(and64, uint64_t, a &b)
BINARY(or32, uint32_t, a | b)
BINARY(or64, uint64_t, a | b)
BINARY(xor32, uint32_t, a ^ b)
BINARY(xor64, uint64_t, a ^ b)
UNARY(not16, uint32_t, (uint16_t)~a)
UNARY(not32, uint32_t, ~a)
UNARY(not64, uint64_t, ~a)
UNARY(cnot16, uint32_t, a == 0)
UNARY(cnot64, uint64_t, a == 0)

static ExecResult exec_pred(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  uint32_t a = row_pred(warp, &inst->ops[1]), b = inst->nops > 2 ? row_pred(warp, &inst->ops[2]) : 0;
  uint32_t result = inst->aux == '&' ? a & b : inst->aux == '|' ? a | b : inst->aux == '^' ? a ^ b : ~a;
  op_set_pred(warp, &inst->ops[0], lanes, result);
  return EXEC_NEXT;
}

static const char *select_logic(Inst *inst, int op, ExecFn narrow, ExecFn wide) {
  inst->aux = op;
  inst->exec = is_pred_type(inst) ? exec_pred : ptx_type_bits(type0(inst)) == 64 ? wide : narrow;
  if (inst->ntypes != 1) return "one type expected";
  return is_pred_type(inst) && op != '!' ? NULL : need_bits(inst, 16, 32, 64);
}

static const char *select_and(Inst *inst) {
  return select_logic(inst, '&', and32, and64);
}
static const char *select_or(Inst *inst) {
  return select_logic(inst, '|', or32, or64);
}
static const char *select_xor(Inst *inst) {
  return select_logic(inst, '^', xor32, xor64);
}
static const char *select_not(Inst *inst) {
  return select_logic(inst, '~', ptx_type_bits(type0(inst)) == 16 ? not16 : not32, not64);
}
static const char *select_cnot(Inst *inst) {
  return select_logic(inst, '!', cnot16, cnot64);
}

// ---- shifts: the count is a 32-bit row whatever the type

#define SHIFT(function, T, expression)                                                                       \
  static ExecResult function(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {               \
    (void)machine;                                                                                           \
    T *d_ = (T *)(void *)row_ptr(warp, &inst->ops[0]);                                                       \
    const T *a_ = (const T *)(const void *)row_ptr(warp, &inst->ops[1]);                                     \
    const uint32_t *n_ = row32(warp, &inst->ops[2]);                                                         \
    LANE_LOOP(lanes, i, T a = a_[i]; uint32_t n = n_[i]; d_[i] = (T)(expression));                           \
    return EXEC_NEXT;                                                                                        \
  }
SHIFT(shl16, uint32_t, n > 15 ? 0 : (uint16_t)(a << n))
SHIFT(shl32, uint32_t, n > 31 ? 0 : a << n)
SHIFT(shl64, uint64_t, n > 63 ? 0 : a << n)
SHIFT(shr_u32, uint32_t, n > 31 ? 0 : a >> n)
SHIFT(shr_u64, uint64_t, n > 63 ? 0 : a >> n)
SHIFT(shr_s16, uint32_t, (uint16_t)(S16(a) >> (n > 15 ? 15 : n)))
SHIFT(shr_s32, uint32_t, S32(a) >> (n > 31 ? 31 : n))
SHIFT(shr_s64, uint64_t, S64(a) >> (n > 63 ? 63 : n))

static const char *select_shl(Inst *inst) {
  int bits = ptx_type_bits(type0(inst));
  inst->exec = bits == 64 ? shl64 : bits == 32 ? shl32 : shl16;
  return need_bits(inst, 16, 32, 64);
}

static const char *select_shr(Inst *inst) {
  int bits = ptx_type_bits(type0(inst));
  bool is_signed = ptx_type_signed(type0(inst));
  if (is_signed) {
    inst->exec = bits == 64 ? shr_s64 : bits == 32 ? shr_s32 : shr_s16;
  } else {
    inst->exec = bits == 64 ? shr_u64 : shr_u32;
  }
  return need_bits(inst, 16, 32, 64);
}

static const char *need_32(Inst *inst) {
  return need_bits(inst, 32, 0, 0);
}
static const char *need_32_or_64(Inst *inst) {
  return need_bits(inst, 32, 64, 0);
}

// Funnel shifts: b is the high word.
TERNARY(shf_l_clamp, uint32_t, c >= 32 ? a : c == 0 ? b : b << c | a >> (32 - c))
TERNARY(shf_l_wrap, uint32_t, (c & 31) == 0 ? b : b << (c & 31) | a >> (32 - (c & 31)))
TERNARY(shf_r_clamp, uint32_t, c >= 32 ? b : c == 0 ? a : a >> c | b << (32 - c))
TERNARY(shf_r_wrap, uint32_t, (c & 31) == 0 ? a : a >> (c & 31) | b << (32 - (c & 31)))

static const char *select_shf(Inst *inst) {
  bool left = inst_has(inst, MOD_l), wrap = inst_has(inst, MOD_wrap);
  inst->exec = left ? (wrap ? shf_l_wrap : shf_l_clamp) : (wrap ? shf_r_wrap : shf_r_clamp);
  return need_32(inst);
}

// ---- fields

static uint64_t extract(uint64_t a, uint32_t pos, uint32_t len, int bits, bool is_signed) {
  uint32_t top = (uint32_t)bits - 1, last = pos + len - 1 < top ? pos + len - 1 : top;
  uint64_t sign = is_signed && len > 0 ? a >> last & 1 : 0;
  uint64_t field = pos <= top ? a >> pos : 0,
           keep = last >= pos && len > 0 && pos <= top ? last - pos + 1 : 0;
  uint64_t mask = keep >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << keep) - 1;
  return (field & mask) | (sign ? ~mask : 0);
}

static ExecResult exec_bfe(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  int bits = ptx_type_bits(type0(inst));
  bool is_signed = ptx_type_signed(type0(inst));
  const uint32_t *pos = row32(warp, &inst->ops[2]), *len = row32(warp, &inst->ops[3]);
  FOR_LANES(lane, lanes) {
    uint64_t a = op_get(warp, &inst->ops[1], (int)lane);
    op_set(warp, &inst->ops[0], (int)lane, extract(a, pos[lane] & 255, len[lane] & 255, bits, is_signed));
  }
  return EXEC_NEXT;
}

static ExecResult exec_bfi(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  uint32_t bits = (uint32_t)ptx_type_bits(type0(inst));
  FOR_LANES(lane, lanes) {
    uint64_t a = op_get(warp, &inst->ops[1], (int)lane), b = op_get(warp, &inst->ops[2], (int)lane);
    uint32_t pos = op_get(warp, &inst->ops[3], (int)lane) & 255,
             len = op_get(warp, &inst->ops[4], (int)lane) & 255;
    if (pos < bits) {
      uint32_t keep = len < bits - pos ? len : bits - pos;
      uint64_t mask = (keep >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << keep) - 1) << pos;
      b = (b & ~mask) | (a << pos & mask);
    }
    op_set(warp, &inst->ops[0], (int)lane, b);
  }
  return EXEC_NEXT;
}

static ExecResult exec_bmsk(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  FOR_LANES(lane, lanes) {
    uint32_t from = (uint32_t)op_get(warp, &inst->ops[1], (int)lane),
             len = (uint32_t)op_get(warp, &inst->ops[2], (int)lane);
    if (inst_has(inst, MOD_wrap)) from &= 31, len &= 31;
    uint64_t mask = from > 31 ? 0 : (((uint64_t)1 << (len > 32 ? 32 : len)) - 1) << from;
    op_set(warp, &inst->ops[0], (int)lane, (uint32_t)mask);
  }
  return EXEC_NEXT;
}

static ExecResult exec_szext(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  FOR_LANES(lane, lanes) {
    uint32_t a = (uint32_t)op_get(warp, &inst->ops[1], (int)lane),
             n = (uint32_t)op_get(warp, &inst->ops[2], (int)lane);
    if (inst_has(inst, MOD_wrap)) n &= 31;
    if (n < 32) {
      uint32_t mask = (1u << n) - 1;
      bool negative = ptx_type_signed(type0(inst)) && n > 0 && (a >> (n - 1) & 1);
      a = negative ? a | ~mask : a & mask;
    }
    op_set(warp, &inst->ops[0], (int)lane, a);
  }
  return EXEC_NEXT;
}

// ---- lop3 prmt

static uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t result = 0;
  for (int i = 0; i < 8; i++) {
    if (table >> i & 1) result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  }
  return result;
}

static ExecResult exec_lop3(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  const uint32_t *a = row32(warp, &inst->ops[1]), *b = row32(warp, &inst->ops[2]),
                 *c = row32(warp, &inst->ops[3]);
  uint32_t table = row32(warp, &inst->ops[4])[first_lane(lanes)];
  uint32_t *d = row32(warp, &inst->ops[0]);
  FOR_LANES(lane, lanes) d[lane] = lop3(a[lane], b[lane], c[lane], table);
  return EXEC_NEXT;
}

// lop3.BoolOp d|p, a, b, c, table, q: p = (d != 0) BoolOp q
static ExecResult exec_lop3_pred(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  const Operand *pair = &inst->ops[0];
  uint32_t q = row_pred(warp, &inst->ops[5]);
  const uint32_t *a = row32(warp, &inst->ops[1]), *b = row32(warp, &inst->ops[2]),
                 *c = row32(warp, &inst->ops[3]);
  uint32_t table = row32(warp, &inst->ops[4])[first_lane(lanes)], nonzero = 0;
  (void)machine;
  FOR_LANES(lane, lanes) {
    uint32_t value = lop3(a[lane], b[lane], c[lane], table);
    nonzero |= (uint32_t)(value != 0) << lane;
    op_set(warp, &pair->elems[0], (int)lane, value);
  }
  op_set_pred(warp, &pair->elems[1], lanes, inst_has(inst, MOD_and) ? nonzero & q : nonzero | q);
  return EXEC_NEXT;
}

static const char *select_lop3(Inst *inst) {
  inst->exec = inst->nops > 5 ? exec_lop3_pred : exec_lop3;
  if (need_32(inst) != NULL) return need_32(inst);
  return (inst->nops > 5) == (inst->ops[0].kind == OPERAND_PAIR) ? NULL : "d|p and q belong together";
}

static uint32_t permute(uint32_t a, uint32_t b, uint32_t selector) {
  uint64_t bytes = (uint64_t)b << 32 | a;
  uint32_t result = 0;
  for (int i = 0; i < 4; i++) {
    uint32_t s = selector >> (4 * i) & 15, byte = (uint32_t)(bytes >> (8 * (s & 7))) & 255;
    if (s & 8) byte = byte & 128 ? 255 : 0;
    result |= byte << (8 * i);
  }
  return result;
}

// The selector that a mode's 2-bit control stands for.
static uint32_t mode_selector(const Inst *inst, uint32_t c) {
  static const uint16_t f4e[] = {0x3210, 0x4321, 0x5432, 0x6543}, b4e[] = {0x5670, 0x6701, 0x7012, 0x0123};
  static const uint16_t rc8[] = {0x0000, 0x1111, 0x2222, 0x3333}, ecl[] = {0x3210, 0x3211, 0x3222, 0x3333};
  static const uint16_t ecr[] = {0x0000, 0x1110, 0x2210, 0x3210}, rc16[] = {0x1010, 0x3232, 0x1010, 0x3232};
  c &= 3;
  if (inst_has(inst, MOD_f4e)) return f4e[c];
  if (inst_has(inst, MOD_b4e)) return b4e[c];
  if (inst_has(inst, MOD_rc8)) return rc8[c];
  if (inst_has(inst, MOD_ecl)) return ecl[c];
  if (inst_has(inst, MOD_ecr)) return ecr[c];
  return rc16[c];
}

static ExecResult exec_prmt(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  bool moded = inst_mod_in(inst, MC_PERMUTE) != MOD_COUNT;
  const uint32_t *a = row32(warp, &inst->ops[1]), *b = row32(warp, &inst->ops[2]),
                 *c = row32(warp, &inst->ops[3]);
  uint32_t *d = row32(warp, &inst->ops[0]);
  FOR_LANES(lane, lanes) d[lane] = permute(a[lane], b[lane], moded ? mode_selector(inst, c[lane]) : c[lane]);
  return EXEC_NEXT;
}

// ---- counts: results are 32 bits

typedef enum { COUNT_POPC, COUNT_CLZ, COUNT_FIND } CountKind;

static uint32_t find_high(uint64_t a, int bits, bool is_signed, bool shift_amount) {
  uint64_t mask = bits == 64 ? ~(uint64_t)0 : 0xffffffffu;
  if (is_signed && (a >> (bits - 1) & 1)) a = ~a & mask;
  if (a == 0) return 0xffffffffu;
  int at = 63 - __builtin_clzll(a);
  return (uint32_t)(shift_amount ? bits - 1 - at : at);
}

static ExecResult exec_count(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  int bits = ptx_type_bits(type0(inst));
  uint32_t *d = row32(warp, &inst->ops[0]);
  FOR_LANES(lane, lanes) {
    uint64_t a = op_get(warp, &inst->ops[1], (int)lane);
    switch ((CountKind)inst->aux) {
    case COUNT_POPC:
      d[lane] = (uint32_t)__builtin_popcountll(a);
      break;
    case COUNT_CLZ:
      d[lane] = a == 0 ? (uint32_t)bits : (uint32_t)(__builtin_clzll(a) - (64 - bits));
      break;
    case COUNT_FIND:
      d[lane] = find_high(a, bits, ptx_type_signed(type0(inst)), inst_has(inst, MOD_shiftamt));
      break;
    }
  }
  return EXEC_NEXT;
}

static const char *select_popc(Inst *inst) {
  return inst->aux = COUNT_POPC, need_32_or_64(inst);
}
static const char *select_clz(Inst *inst) {
  return inst->aux = COUNT_CLZ, need_32_or_64(inst);
}
static const char *select_bfind(Inst *inst) {
  return inst->aux = COUNT_FIND, need_32_or_64(inst);
}

static uint64_t reverse(uint64_t a) {
  uint64_t r = 0;
  for (int i = 0; i < 64; i++) r |= (a >> i & 1) << (63 - i);
  return r;
}
UNARY(brev32, uint32_t, reverse(a) >> 32)
UNARY(brev64, uint64_t, reverse(a))

static const char *select_brev(Inst *inst) {
  inst->exec = ptx_type_bits(type0(inst)) == 64 ? brev64 : brev32;
  return need_32_or_64(inst);
}

const InstDef logic_insts[] = {
    {"and", 0, "000", 0, NULL, NULL, select_and},
    {"or", 0, "000", 0, NULL, NULL, select_or},
    {"xor", 0, "000", 0, NULL, NULL, select_xor},
    {"not", 0, "00", 0, NULL, NULL, select_not},
    {"cnot", 0, "00", 0, NULL, NULL, select_cnot},
    {"shl", 0, "00i", 0, NULL, NULL, select_shl},
    {"shr", 0, "00i", 0, NULL, NULL, select_shr},
    {"shf", MC(SHIFT), "0iii", 0, NULL, NULL, select_shf},
    {"bfe", 0, "00ii", 0, exec_bfe, NULL, need_32_or_64},
    {"bfi", 0, "000ii", 0, exec_bfi, NULL, need_32_or_64},
    {"bmsk", MC(SHIFT), "0ii", 0, exec_bmsk, NULL, need_32},
    {"szext", MC(SHIFT), "00i", 0, exec_szext, NULL, need_32},
    {"lop3", MC(OPERATION) | MC(PAIR), "0000i?p", 0, NULL, NULL, select_lop3},
    {"prmt", MC(PERMUTE), "0iii", 0, exec_prmt, NULL, need_32},
    {"popc", 0, "i0", 0, exec_count, NULL, select_popc},
    {"clz", 0, "i0", 0, exec_count, NULL, select_clz},
    {"bfind", MC(SHIFT), "i0", 0, exec_count, NULL, select_bfind},
    {"brev", 0, "00", 0, NULL, NULL, select_brev},
    {.name = NULL},
};

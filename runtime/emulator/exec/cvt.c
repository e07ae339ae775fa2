// Conversions. One general path through int64 or double serves every pair of scalar types; the pairs that
// fill real kernels have loops of their own. Packed forms: the first source goes to the upper part.
#include "exec/exec.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

#include "num/num.h"

// ---- frequent pairs

#define CONVERT(function, D, S, expression)                                                                  \
  static ExecResult function(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {               \
    (void)machine;                                                                                           \
    D *d_ = (D *)(void *)row_ptr(warp, &inst->ops[0]);                                                       \
    const S *a_ = (const S *)(const void *)row_ptr(warp, &inst->ops[1]);                                     \
    LANE_LOOP(lanes, i, S a = a_[i]; d_[i] = (D)(expression));                                               \
    return EXEC_NEXT;                                                                                        \
  }
CONVERT(u64_u32, uint64_t, uint32_t, a)
CONVERT(s64_s32, int64_t, int32_t, a)
CONVERT(u32_u64, uint32_t, uint64_t, a)
CONVERT(f32_s32, float, int32_t, a)
CONVERT(f32_u32, float, uint32_t, a)
CONVERT(f32_bf16, uint32_t, uint32_t, a << 16)

static inline uint32_t bf16_code(uint32_t bits) {
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fff : rounded;
}
CONVERT(bf16_f32, uint32_t, uint32_t, bf16_code(a))

static ExecResult bf16x2_f32(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  uint32_t *d_ = row32(warp, &inst->ops[0]);
  const uint32_t *a_ = row32(warp, &inst->ops[1]), *b_ = row32(warp, &inst->ops[2]);
  LANE_LOOP(lanes, i, d_[i] = bf16_code(a_[i]) << 16 | bf16_code(b_[i]));
  return EXEC_NEXT;
}

typedef struct {
  PtxType to, from;
  ExecFn exec;
} PairRow;

static const PairRow plain_pairs[] = {
    {PT_u64, PT_u32, u64_u32}, {PT_s64, PT_u32, u64_u32}, {PT_s64, PT_s32, s64_s32},
    {PT_u64, PT_s32, s64_s32}, {PT_u32, PT_u64, u32_u64}, {PT_u32, PT_s64, u32_u64},
    {PT_s32, PT_s64, u32_u64}, {PT_s32, PT_u64, u32_u64}, {PT_f32, PT_bf16, f32_bf16},
};
static const PairRow nearest_pairs[] = {
    {PT_f32, PT_s32, f32_s32},
    {PT_f32, PT_u32, f32_u32},
    {PT_bf16, PT_f32, bf16_f32},
    {PT_bf16x2, PT_f32, bf16x2_f32},
};

// ---- values

static const NumFormat *small_format(PtxType type) {
  switch (type) {
  case PT_f16:
  case PT_f16x2:
    return &num_f16;
  case PT_bf16:
  case PT_bf16x2:
    return &num_bf16;
  case PT_e4m3:
  case PT_e4m3x2:
  case PT_e4m3x4:
    return &num_e4m3;
  case PT_e5m2:
  case PT_e5m2x2:
  case PT_e5m2x4:
    return &num_e5m2;
  case PT_e3m2x2:
  case PT_e3m2x4:
    return &num_e3m2;
  case PT_e2m3x2:
  case PT_e2m3x4:
    return &num_e2m3;
  case PT_e2m1x2:
  case PT_e2m1x4:
    return &num_e2m1;
  default:
    return NULL;
  }
}

static NumRounding num_rounding(const Inst *inst) {
  if (inst_has(inst, MOD_rz)) return NUM_RZ;
  if (inst_has(inst, MOD_rm)) return NUM_RM;
  if (inst_has(inst, MOD_rp)) return NUM_RP;
  if (inst_has(inst, MOD_rna)) return NUM_RNA;
  return NUM_RN;
}

static int fe_rounding(const Inst *inst) {
  if (inst_has(inst, MOD_rz)) return FE_TOWARDZERO;
  if (inst_has(inst, MOD_rm)) return FE_DOWNWARD;
  if (inst_has(inst, MOD_rp)) return FE_UPWARD;
  return FE_TONEAREST;
}

static uint64_t low_bits(uint64_t x, int bits) {
  return bits >= 64 ? x : x & (((uint64_t)1 << bits) - 1);
}

static int64_t as_integer(PtxType type, uint64_t bits) {
  int n = ptx_type_bits(type);
  if (n >= 64 || !ptx_type_signed(type)) return (int64_t)low_bits(bits, n);
  return (int64_t)(bits << (64 - n)) >> (64 - n);
}

static double as_double(PtxType type, uint64_t bits, bool ftz) {
  if (type == PT_f64) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
  }
  if (type == PT_f32) {
    float x = num_f32_from_bits((uint32_t)bits);
    return ftz && fabsf(x) < 1.17549435e-38f ? (double)copysignf(0, x) : (double)x;
  }
  return num_decode(small_format(type), (uint32_t)low_bits(bits, ptx_type_bits(type)));
}

static double round_integral(const Inst *inst, double x) {
  if (inst_has(inst, MOD_rzi)) return trunc(x);
  if (inst_has(inst, MOD_rmi)) return floor(x);
  if (inst_has(inst, MOD_rpi)) return ceil(x);
  if (inst_has(inst, MOD_rni)) return nearbyint(x);
  return x;
}

static uint64_t double_to_integer(PtxType from, PtxType to, double x) {
  int n = ptx_type_bits(to);
  if (x != x) return from == PT_f64 || n == 64 ? (uint64_t)1 << (n - 1) : 0;
  if (ptx_type_signed(to)) {
    double limit = ldexp(1, n - 1);
    if (x >= limit) return low_bits(((uint64_t)1 << (n - 1)) - 1, n);
    if (x < -limit) return (uint64_t)1 << (n - 1);
    return low_bits((uint64_t)(int64_t)x, n);
  }
  if (x <= -1 || x <= 0) return 0;
  if (x >= ldexp(1, n)) return low_bits(~(uint64_t)0, n);
  return (uint64_t)x;
}

static uint64_t integer_to_integer(PtxType from, PtxType to, uint64_t bits, bool saturate) {
  int n = ptx_type_bits(to);
  int64_t x = as_integer(from, bits);
  if (!saturate) return low_bits((uint64_t)x, n);
  bool big = !ptx_type_signed(from) && ptx_type_bits(from) == 64 && x < 0;  // above 2^63
  if (ptx_type_signed(to)) {
    int64_t most = n == 64 ? INT64_MAX : ((int64_t)1 << (n - 1)) - 1;
    x = big || x > most ? most : x < -most - 1 ? -most - 1 : x;
  } else if (!big) {
    x = x < 0 ? 0 : n < 64 && x > (int64_t)low_bits(~(uint64_t)0, n) ? (int64_t)low_bits(~(uint64_t)0, n) : x;
  } else if (n < 64) {
    x = (int64_t)low_bits(~(uint64_t)0, n);
  }
  return low_bits((uint64_t)x, n);
}

// Rounds a double to the float type `to`.
static uint64_t double_to_float(const Inst *inst, PtxType to, double x) {
  bool ftz = inst_has(inst, MOD_ftz);
  if (inst_has(inst, MOD_sat) && small_format(to) == NULL) x = x > 0 ? (x < 1 ? x : 1) : 0;
  if (inst_has(inst, MOD_sat) && (to == PT_f16 || to == PT_bf16)) x = x > 0 ? (x < 1 ? x : 1) : 0;
  if (inst_has(inst, MOD_relu) && x <= 0) x = 0;  // -0 becomes +0 (measured)
  uint64_t bits = 0;
  if (to == PT_f64) {
    memcpy(&bits, &x, sizeof bits);
  } else if (to == PT_f32) {
    volatile double wide = x;
    volatile float narrow = (float)wide;  // under the rounding mode set by the caller
    float r = narrow;
    if (ftz && fabsf(r) < 1.17549435e-38f) r = copysignf(0, r);
    // A NaN of f64 keeps sign and payload, others become the canonical one (measured).
    bits = r != r && inst->types[1] != PT_f64 ? 0x7fffffffu : num_f32_bits(r);
  } else if (to == PT_tf32) {
    bits = x != x ? 0x7fc00000u : num_f32_bits(num_tf32_round((float)x, num_rounding(inst)));
  } else {
    bits = num_encode(small_format(to), x, num_rounding(inst), inst_has(inst, MOD_satfinite));
  }
  return bits;
}

static uint64_t integer_to_float(const Inst *inst, PtxType from, PtxType to, uint64_t bits) {
  int64_t x = as_integer(from, bits);
  bool is_unsigned = !ptx_type_signed(from);
  if (to == PT_f32) {
    volatile float r = is_unsigned ? (float)(uint64_t)x : (float)x;
    return num_f32_bits(r);
  }
  volatile double r = is_unsigned ? (double)(uint64_t)x : (double)x;
  return double_to_float(inst, to, r);
}

// ---- the general scalar form

static ExecResult exec_scalar(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  PtxType to = (PtxType)inst->types[0], from = (PtxType)inst->types[1];
  bool to_float = ptx_type_float(to), from_float = ptx_type_float(from), saturate = inst_has(inst, MOD_sat);
  fesetround(fe_rounding(inst));
  FOR_LANES(lane, lanes) {
    uint64_t a = op_get(warp, &inst->ops[1], (int)lane), r;
    if (from_float) {
      // nearbyint needs nearest even; .rni never comes with a directed .rn
      double x = round_integral(inst, as_double(from, a, inst_has(inst, MOD_ftz)));
      r = to_float ? double_to_float(inst, to, x) : double_to_integer(from, to, x);
    } else {
      r = to_float ? integer_to_float(inst, from, to, a) : integer_to_integer(from, to, a, saturate);
    }
    if (to == PT_tf32 && from == PT_f32 && (a & 0x7fffffff) > 0x7f800000) r = a & ~0x1fffull;  // measured
    // A register may be wider than the type: integers are extended by the type's own sign.
    if (!to_float && ptx_type_signed(to)) r = (uint64_t)as_integer(to, r);
    op_set(warp, &inst->ops[0], (int)lane, r);
  }
  fesetround(FE_TONEAREST);
  return EXEC_NEXT;
}

// ---- packed forms

// d = {a, b} rounded to a small format, a in the upper part
static ExecResult exec_pack(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  PtxType to = (PtxType)inst->types[0];
  int bits = ptx_type_bits(to) / 2;
  bool ue8m0 = to == PT_ue8m0x2;
  FOR_LANES(lane, lanes) {
    uint64_t code[2];
    for (int i = 0; i < 2; i++) {
      double x = as_double(PT_f32, op_get(warp, &inst->ops[1 + i], (int)lane), inst_has(inst, MOD_ftz));
      if (inst_has(inst, MOD_relu) && x <= 0) x = 0;  // -0 becomes +0 (measured)
      code[i] = ue8m0 ? num_ue8m0_encode(x, num_rounding(inst), inst_has(inst, MOD_satfinite))
                      : num_encode(small_format(to), x, num_rounding(inst), inst_has(inst, MOD_satfinite));
    }
    op_set(warp, &inst->ops[0], (int)lane, code[0] << bits | code[1]);
  }
  return EXEC_NEXT;
}

static double decode_part(PtxType type, uint32_t code) {
  return type == PT_ue8m0x2 ? num_ue8m0_decode((uint8_t)code) : num_decode(small_format(type), code);
}

// A pair of one small format to a pair of another, part by part
static ExecResult exec_repack(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  PtxType to = (PtxType)inst->types[0], from = (PtxType)inst->types[1];
  int to_bits = ptx_type_bits(to) / 2, from_bits = ptx_type_bits(from) / 2;
  FOR_LANES(lane, lanes) {
    uint64_t a = op_get(warp, &inst->ops[1], (int)lane), r = 0;
    for (int i = 0; i < 2; i++) {
      double x = decode_part(from, (uint32_t)low_bits(a >> i * from_bits, from_bits));
      if (inst_has(inst, MOD_relu) && x <= 0) x = 0;  // -0 becomes +0 (measured)
      uint64_t code =
          to == PT_ue8m0x2
              ? num_ue8m0_encode(x, num_rounding(inst), inst_has(inst, MOD_satfinite))
              : num_encode(small_format(to), x, num_rounding(inst), inst_has(inst, MOD_satfinite));
      r |= code << i * to_bits;
    }
    op_set(warp, &inst->ops[0], (int)lane, r);
  }
  return EXEC_NEXT;
}

// cvt.pack.sat.convertType.abType{.cType} d, a, b{, c}
static ExecResult exec_cvt_pack(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  PtxType to = (PtxType)inst->types[0], from = (PtxType)inst->types[1];
  int bits = ptx_type_bits(to);
  FOR_LANES(lane, lanes) {
    uint64_t a = integer_to_integer(from, to, op_get(warp, &inst->ops[1], (int)lane), true);
    uint64_t b = integer_to_integer(from, to, op_get(warp, &inst->ops[2], (int)lane), true);
    uint64_t c = inst->nops > 3 ? op_get(warp, &inst->ops[3], (int)lane) << 2 * bits : 0;
    op_set(warp, &inst->ops[0], (int)lane, (uint32_t)(c | low_bits(a, bits) << bits | low_bits(b, bits)));
  }
  return EXEC_NEXT;
}

// ---- which handler

static bool is_packed(PtxType type) {
  return type == PT_f16x2 || type == PT_bf16x2 || (type >= PT_e4m3x2 && type <= PT_ue8m0x2);
}

static bool find_pair(Inst *inst, const PairRow *rows, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (rows[i].to == inst->types[0] && rows[i].from == inst->types[1]) {
      inst->exec = rows[i].exec;
      return true;
    }
  }
  return false;
}

static bool rows_fit(const Inst *inst) {
  for (int i = 0; i < 2; i++) {
    int bits = ptx_type_bits((PtxType)inst->types[i]);
    if (inst->ops[i].kind != OPERAND_REG || inst->ops[i].row != (bits == 64 ? ROW_64 : ROW_32)) return false;
  }
  return true;
}

static bool is_scalar(PtxType type) {
  return (type >= PT_u8 && type <= PT_s64) || type == PT_f16 || type == PT_bf16 || type == PT_f32 ||
         type == PT_f64 || type == PT_tf32;
}

static const char *select_cvt(Inst *inst) {
  if (inst->ntypes != 2) return "two types expected";
  PtxType to = (PtxType)inst->types[0], from = (PtxType)inst->types[1];
  bool modified = inst_has(inst, MOD_sat) || inst_has(inst, MOD_satfinite) || inst_has(inst, MOD_relu) ||
                  inst_has(inst, MOD_ftz);
  if (inst->ops[0].kind == OPERAND_REG && inst->ops[0].bank == BANK_CONST)
    return "the destination is no register";
  if (from == PT_tf32) return "this pair of types is not supported";
  if (inst_has(inst, MOD_rs)) return ".rs is not supported";
  if (is_packed(to) && from == PT_f32) {
    inst->exec = exec_pack;
    if (inst->nops != 3) return "three operands expected";
  } else if (is_packed(to) && is_packed(from)) {
    inst->exec = exec_repack;
    if (inst->nops != 2) return "two operands expected";
  } else if (is_scalar(to) && is_scalar(from)) {
    inst->exec = exec_scalar;
    if (inst->nops != 2) return "two operands expected";
  } else {
    return "this pair of types is not supported";
  }
  Mod rounding = inst_mod_in(inst, MC_ROUND);
  if (modified || !rows_fit(inst)) return NULL;
  if (rounding == MOD_COUNT) find_pair(inst, plain_pairs, sizeof plain_pairs / sizeof *plain_pairs);
  if (rounding == MOD_rn) find_pair(inst, nearest_pairs, sizeof nearest_pairs / sizeof *nearest_pairs);
  return NULL;
}

static const char *select_cvt_pack(Inst *inst) {
  if (inst->ntypes < 2) return "two types expected";
  int bits = ptx_type_bits((PtxType)inst->types[0]);
  bool known = inst->types[1] == PT_s32 && (bits == 4 || bits == 8 || (bits == 16 && inst->nops == 3));
  return known ? NULL : "these types are not supported";
}

const InstDef cvt_insts[] = {
    {"cvt.pack", MC(SAT), "iii?i", 0, exec_cvt_pack, NULL, select_cvt_pack},
    {"cvt", MC(ROUND) | MC(FTZ) | MC(SAT) | MC(RELU), "xx?xx", 0, NULL, NULL, select_cvt},
    {.name = NULL},
};

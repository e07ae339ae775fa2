// setp, set, selp, slct. A comparison is computed for the whole warp into a mask; predicates are masks.
#include "exec/exec.h"

#include <math.h>
#include <string.h>

#include "num/num.h"

// ---- masks of comparisons

typedef uint32_t (*CompareFn)(const void *a, const void *b);

#define COMPARE(function, T, expression)                                                                     \
  static uint32_t function(const void *pa, const void *pb) {                                                 \
    const T *a_ = pa, *b_ = pb;                                                                              \
    uint32_t mask = 0;                                                                                       \
    for (int i = 0; i < WARP_LANES; i++) {                                                                   \
      T a = a_[i], b = b_[i];                                                                                \
      mask |= (uint32_t)(expression) << i;                                                                   \
    }                                                                                                        \
    return mask;                                                                                             \
  }

#define S16(x) ((int16_t)(uint16_t)(x))
COMPARE(eq32, uint32_t, a == b)
COMPARE(lt_u32, uint32_t, a < b)
COMPARE(le_u32, uint32_t, a <= b)
COMPARE(lt_s32, int32_t, a < b)
COMPARE(le_s32, int32_t, a <= b)
COMPARE(lt_s16, uint32_t, S16(a) < S16(b))
COMPARE(le_s16, uint32_t, S16(a) <= S16(b))
COMPARE(eq64, uint64_t, a == b)
COMPARE(lt_u64, uint64_t, a < b)
COMPARE(le_u64, uint64_t, a <= b)
COMPARE(lt_s64, int64_t, a < b)
COMPARE(le_s64, int64_t, a <= b)
COMPARE(eq_f32, float, a == b)
COMPARE(lt_f32, float, a < b)
COMPARE(le_f32, float, a <= b)
COMPARE(num_f32, float, a == a && b == b)
COMPARE(eq_f64, double, a == b)
COMPARE(lt_f64, double, a < b)
COMPARE(le_f64, double, a <= b)
COMPARE(num_f64, double, a == a && b == b)

// A relation is one of eq, lt, le, num with operands perhaps swapped and the result perhaps negated.
typedef enum { REL_EQ, REL_LT, REL_LE, REL_NUM } Relation;
enum { SWAPPED = 4, NEGATED = 8, FLUSH = 16 };

static int relation_of(const Inst *inst, bool is_float) {
  switch (inst_mod_in(inst, MC_COMPARE)) {
  case MOD_eq:
    return REL_EQ;
  case MOD_ne:
    return is_float ? -2 : REL_EQ | NEGATED;  // ordered: both numbers and not equal
  case MOD_lt:
  case MOD_l:
    return REL_LT;
  case MOD_le:
  case MOD_ls:
    return REL_LE;
  case MOD_gt:
    return REL_LT | SWAPPED;
  case MOD_ge:
  case MOD_hs:
    return REL_LE | SWAPPED;
  case MOD_equ:
    return -3;
  case MOD_neu:
    return REL_EQ | NEGATED;
  case MOD_ltu:
    return REL_LE | SWAPPED | NEGATED;
  case MOD_leu:
    return REL_LT | SWAPPED | NEGATED;
  case MOD_gtu:
    return REL_LE | NEGATED;
  case MOD_geu:
    return REL_LT | NEGATED;
  case MOD_num:
    return REL_NUM;
  case MOD_cmp_nan:
    return REL_NUM | NEGATED;
  default:
    return inst_has(inst, MOD_lo) ? REL_LT : inst_has(inst, MOD_hi) ? REL_LT | SWAPPED : -1;
  }
}

static CompareFn compare_fn(PtxType type, int relation) {
  static const CompareFn s16[] = {eq32, lt_s16, le_s16, NULL}, s32[] = {eq32, lt_s32, le_s32, NULL};
  static const CompareFn u32[] = {eq32, lt_u32, le_u32, NULL}, s64[] = {eq64, lt_s64, le_s64, NULL};
  static const CompareFn u64[] = {eq64, lt_u64, le_u64, NULL}, f32[] = {eq_f32, lt_f32, le_f32, num_f32};
  static const CompareFn f64[] = {eq_f64, lt_f64, le_f64, num_f64};
  switch (type) {
  case PT_s16:
    return s16[relation & 3];
  case PT_s32:
    return s32[relation & 3];
  case PT_b16:
  case PT_u16:
  case PT_b32:
  case PT_u32:
    return u32[relation & 3];
  case PT_s64:
    return s64[relation & 3];
  case PT_b64:
  case PT_u64:
    return u64[relation & 3];
  case PT_f32:
  case PT_f16:
  case PT_bf16:
    return f32[relation & 3];
  case PT_f64:
    return f64[relation & 3];
  default:
    return NULL;
  }
}

// Halves are compared as f32.
static void widen(PtxType type, const uint32_t *row, float out[WARP_LANES], bool flush) {
  for (int i = 0; i < WARP_LANES; i++) {
    uint16_t code = (uint16_t)row[i];
    out[i] = type == PT_f16    ? num_f16_to_f32(code)
             : type == PT_bf16 ? num_bf16_to_f32(code)
                               : num_f32_from_bits(row[i]);
    float least = type == PT_f16 ? 6.103515625e-05f : 1.17549435e-38f;
    if (flush && fabsf(out[i]) < least) out[i] = 0;
  }
}

static uint32_t relation_mask(PtxType type, int relation, const void *a, const void *b) {
  if (relation & SWAPPED) {
    const void *t = a;
    a = b;
    b = t;
  }
  uint32_t mask = compare_fn(type, relation)(a, b);
  return relation & NEGATED ? ~mask : mask;
}

static uint32_t compare(const Warp *warp, const Inst *inst, int source, PtxType type) {
  const void *a = row_ptr(warp, &inst->ops[source]), *b = row_ptr(warp, &inst->ops[source + 1]);
  float fa[WARP_LANES], fb[WARP_LANES];
  bool flush = inst_has(inst, MOD_ftz);
  if (type == PT_f16 || type == PT_bf16 || (type == PT_f32 && flush)) {
    widen(type, a, fa, flush);
    widen(type, b, fb, flush);
    a = fa;
    b = fb;
  }
  if (inst->aux == -2) return ~relation_mask(type, REL_EQ, a, b) & relation_mask(type, REL_NUM, a, b);
  if (inst->aux == -3) return relation_mask(type, REL_EQ, a, b) | ~relation_mask(type, REL_NUM, a, b);
  return relation_mask(type, inst->aux, a, b);
}

static uint32_t combine(const Warp *warp, const Inst *inst, uint32_t mask, int at) {
  if (inst->nops <= at) return mask;
  uint32_t c = row_pred(warp, &inst->ops[at]);
  return inst_has(inst, MOD_and) ? mask & c : inst_has(inst, MOD_or) ? mask | c : mask ^ c;
}

// ---- setp

static ExecResult exec_setp(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  uint32_t mask = compare(warp, inst, 1, type0(inst));
  const Operand *d = &inst->ops[0];
  if (d->kind == OPERAND_PAIR) {
    op_set_pred(warp, &d->elems[1], lanes, combine(warp, inst, ~mask, 3));
    d = &d->elems[0];
  }
  op_set_pred(warp, d, lanes, combine(warp, inst, mask, 3));
  return EXEC_NEXT;
}

static ExecResult exec_setp_simple(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  uint32_t mask = relation_mask((PtxType)inst->types[0], inst->aux, row_ptr(warp, &inst->ops[1]),
                                row_ptr(warp, &inst->ops[2]));
  uint32_t *row = row32(warp, &inst->ops[0]);
  *row = (*row & ~lanes) | (mask & lanes);
  return EXEC_NEXT;
}

// One half of each f16x2 or bf16x2 pair compared.
static uint32_t compare_part(const Warp *warp, const Inst *inst, PtxType half, int part) {
  const uint32_t *a = row32(warp, &inst->ops[1]), *b = row32(warp, &inst->ops[2]);
  uint32_t ah[WARP_LANES], bh[WARP_LANES];
  float fa[WARP_LANES], fb[WARP_LANES];
  for (int i = 0; i < WARP_LANES; i++) ah[i] = a[i] >> 16 * part & 0xffff, bh[i] = b[i] >> 16 * part & 0xffff;
  widen(half, ah, fa, inst_has(inst, MOD_ftz));
  widen(half, bh, fb, inst_has(inst, MOD_ftz));
  uint32_t equal = relation_mask(half, REL_EQ, fa, fb), numbers = relation_mask(half, REL_NUM, fa, fb);
  uint32_t mask = inst->aux == -2   ? ~equal & numbers
                  : inst->aux == -3 ? equal | ~numbers
                                    : relation_mask(half, inst->aux, fa, fb);
  return combine(warp, inst, mask, 3);
}

// setp.f16x2 p|q, a, b: one predicate a half
static ExecResult exec_setp_x2(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  PtxType half = inst->types[0] == PT_f16x2 ? PT_f16 : PT_bf16;
  uint32_t masks[2] = {compare_part(warp, inst, half, 0), compare_part(warp, inst, half, 1)};
  for (int part = 0; part < 2; part++) op_set_pred(warp, &inst->ops[0].elems[part], lanes, masks[part]);
  return EXEC_NEXT;
}

// -2 and -3 ask also whether both are numbers.
static bool comparable(PtxType type, int relation) {
  return relation >= 0 ? compare_fn(type, relation) != NULL
                       : compare_fn(type, REL_EQ) != NULL && compare_fn(type, REL_NUM) != NULL;
}

static const char *select_setp(Inst *inst) {
  PtxType type = type0(inst);
  inst->aux = relation_of(inst, ptx_type_float(type));
  if (inst->aux == -1) return "no comparison";
  if (type == PT_f16x2 || type == PT_bf16x2) {
    inst->exec = exec_setp_x2;
    return inst->ops[0].kind == OPERAND_PAIR ? NULL : "p|q expected";
  }
  if (!comparable(type, inst->aux)) return "this comparison does not fit the type";
  bool wide = type == PT_f16 || type == PT_bf16 || inst_has(inst, MOD_ftz);
  bool simple = inst->nops == 3 && inst->aux >= 0 && !wide && inst->ops[0].kind == OPERAND_REG;
  inst->exec = simple ? exec_setp_simple : exec_setp;
  return NULL;
}

// ---- set: all ones or zero, or 1.0 and 0.0

static uint32_t true_value(PtxType type) {
  return type == PT_f32                     ? 0x3f800000u
         : type == PT_f16                   ? 0x3c00u
         : type == PT_bf16                  ? 0x3f80u
         : type == PT_u16 || type == PT_s16 ? 0xffffu
                                            : 0xffffffffu;
}

static ExecResult exec_set(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  uint32_t mask = combine(warp, inst, compare(warp, inst, 1, (PtxType)inst->types[1]), 3),
           one = true_value(type0(inst));
  FOR_LANES(lane, lanes) op_set(warp, &inst->ops[0], (int)lane, mask >> lane & 1 ? one : 0);
  return EXEC_NEXT;
}

// Each half by itself; as integers, all ones a half.
static ExecResult exec_set_x2(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  PtxType half = inst->types[1] == PT_f16x2 ? PT_f16 : PT_bf16;
  uint32_t low = compare_part(warp, inst, half, 0), high = compare_part(warp, inst, half, 1);
  uint32_t one = type0(inst) == PT_f16x2 ? 0x3c00u : type0(inst) == PT_bf16x2 ? 0x3f80u : 0xffffu;
  FOR_LANES(lane, lanes)
  op_set(warp, &inst->ops[0], (int)lane, (low >> lane & 1 ? one : 0) | (high >> lane & 1 ? one << 16 : 0));
  return EXEC_NEXT;
}

static const char *select_set(Inst *inst) {
  if (inst->ntypes != 2) return "two types expected";
  PtxType type = (PtxType)inst->types[1];
  inst->aux = relation_of(inst, ptx_type_float(type));
  if (inst->aux != -1 && (type == PT_f16x2 || type == PT_bf16x2)) {
    inst->exec = exec_set_x2;
    return NULL;
  }
  if (inst->aux == -1 || !comparable(type, inst->aux)) return "unsupported comparison";
  inst->exec = exec_set;
  return NULL;
}

// ---- selp slct

#define SELECT(function, T)                                                                                  \
  static ExecResult function(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {               \
    (void)machine;                                                                                           \
    T *d = (T *)(void *)row_ptr(warp, &inst->ops[0]);                                                        \
    const T *a = (const T *)(const void *)row_ptr(warp, &inst->ops[1]);                                      \
    const T *b = (const T *)(const void *)row_ptr(warp, &inst->ops[2]);                                      \
    uint32_t p = row_pred(warp, &inst->ops[3]);                                                              \
    LANE_LOOP(lanes, i, d[i] = p >> i & 1 ? a[i] : b[i]);                                                    \
    return EXEC_NEXT;                                                                                        \
  }
SELECT(selp32, uint32_t)
SELECT(selp64, uint64_t)

static const char *select_selp(Inst *inst) {
  inst->exec = ptx_type_bits(type0(inst)) == 64 ? selp64 : selp32;
  return need_bits(inst, 16, 32, 64);
}

// d = c >= 0 ? a : b
static ExecResult exec_slct(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  FOR_LANES(lane, lanes) {
    uint32_t c = (uint32_t)op_get(warp, &inst->ops[3], (int)lane);
    bool first = inst->types[1] == PT_f32 ? num_f32_from_bits(c) >= 0 : (int32_t)c >= 0;
    op_set(warp, &inst->ops[0], (int)lane, op_get(warp, &inst->ops[first ? 1 : 2], (int)lane));
  }
  return EXEC_NEXT;
}

static const char *select_slct(Inst *inst) {
  return inst->ntypes == 2 ? NULL : "two types expected";
}

#define COMPARE_CLASSES (MC(COMPARE) | MC(OPERATION) | MC(FTZ) | MC(HALF))

const InstDef compare_insts[] = {
    {"setp", COMPARE_CLASSES | MC(PAIR), "p00?p", 0, NULL, NULL, select_setp},
    {"set", COMPARE_CLASSES, "011?p", 0, NULL, NULL, select_set},
    {"selp", 0, "000p", 0, NULL, NULL, select_selp},
    {"slct", MC(FTZ), "000i", 0, exec_slct, NULL, select_slct},
    {.name = NULL},
};

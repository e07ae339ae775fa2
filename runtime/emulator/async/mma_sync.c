// mma.sync: one warp multiplies M x K by K x 8 out of registers, at once (PTX ISA 9.7.14.5). Fragments: thread t
// holds row t/4 (and t/4 + 8 when M is 16) of A, C and D and column t/4 of B. Sums are the fused ones of wgmma; bits
// and doubles, which no other instruction multiplies, have functions of their own.
#include <math.h>
#include <string.h>

#include "async/mma_operand.h"

enum { COLUMNS = 8, MAX_ROWS = 16, DOUBLE_MAX_K = 16 };

static int type_of(int type) {
  static const struct {
    PtxType type;
    MmaType mma;
  } rows[] = {{PT_f16, MMA_F16},   {PT_bf16, MMA_BF16}, {PT_tf32, MMA_TF32},
              {PT_e4m3, MMA_E4M3}, {PT_e5m2, MMA_E5M2}, {PT_u8, MMA_U8},
              {PT_s8, MMA_S8},     {PT_u4, MMA_U4},     {PT_s4, MMA_S4}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if ((int)rows[i].type == type) return (int)rows[i].mma;
  return -1;
}

static const Operand *element(const Operand *op, int index) {
  return op->kind == OPERAND_VECTOR ? &op->elems[index] : op;
}
static int element_count(const Operand *op) {
  return op->kind == OPERAND_VECTOR ? op->nelems : 1;
}

static MmaTarget begin(NumTile *tile, int16_t *ints, MmaType type, int rows, int k) {
  tile->rows = rows;
  tile->k = k;
  memset(tile->scale, 0, sizeof tile->scale);
  memset(tile->scale_is_nan, 0, sizeof tile->scale_is_nan);
  return (MmaTarget){tile, mma_type_is_int(type) ? ints : NULL, k, type, false};
}

// Registers of A (`blocks` of 8 rows) or B (one).
static void load(Machine *machine, const Warp *warp, const Operand *list, int blocks,
                 const MmaTarget *target) {
  int per_word = mma_type_per_word(target->type);
  for (int reg = 0; reg < element_count(list); reg++)
    for (int t = 0; t < WARP_LANES; t++)
      mma_load_word(machine, (uint32_t)op_get(warp, element(list, reg), t), t / 4 + 8 * (reg % blocks),
                    per_word * (t % 4) + 4 * per_word * (reg / blocks), target);
}

static uint32_t *cell(uint32_t *d, int reg, int t, int column) {
  return d + (t / 4 + 8 * reg) * COLUMNS + 2 * (t % 4) + column;
}

static void load_c(const Warp *warp, const Operand *list, bool f16, uint32_t *d) {
  for (int reg = 0; reg < element_count(list); reg++)
    for (int t = 0; t < WARP_LANES; t++) {
      uint32_t word = (uint32_t)op_get(warp, element(list, reg), t);
      if (f16) {
        *cell(d, reg, t, 0) = word & 0xFFFF;
        *cell(d, reg, t, 1) = word >> 16;
      } else {
        *cell(d, reg / 2, t, reg % 2) = word;
      }
    }
}

static void store_d(Warp *warp, const Operand *list, bool f16, uint32_t *d) {
  for (int reg = 0; reg < element_count(list); reg++)
    for (int t = 0; t < WARP_LANES; t++)
      op_set(warp, element(list, reg), t,
             f16 ? *cell(d, reg, t, 0) | *cell(d, reg, t, 1) << 16 : *cell(d, reg / 2, t, reg % 2));
}

static ExecResult exec_mma(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  if (!warp_meet(machine, warp, lanes, ~0u)) return EXEC_BLOCK;
  Scratch *s = engine_scratch(machine);
  int rows = inst->shape[0], k = inst->shape[2];
  bool f16 = inst->types[0] == PT_f16;
  MmaTarget a = begin(&s->a, s->int_a, (MmaType)type_of(inst->types[1]), rows, k);
  MmaTarget b = begin(&s->b, s->int_b, (MmaType)type_of(inst->types[2]), COLUMNS, k);
  load(machine, warp, &inst->ops[1], rows / 8, &a);
  load(machine, warp, &inst->ops[2], 1, &b);
  load_c(warp, &inst->ops[3], f16, s->d);
  if (a.ints)
    num_mma_int(s->int_a, s->int_b, rows, COLUMNS, k, inst_has(inst, MOD_satfinite), true, s->d, COLUMNS);
  else
    num_mma(&s->a, &s->b, &(NumSum){.window = 25, .f16_result = f16, .result_bits = 23, .read_d = true}, s->d,
            COLUMNS);
  store_d(warp, &inst->ops[0], f16, s->d);
  return EXEC_NEXT;
}

// ---- single bits: D += popc(a op b) over words of 32

static ExecResult exec_bits(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  if (!warp_meet(machine, warp, lanes, ~0u)) return EXEC_BLOCK;
  const Operand *a = &inst->ops[1], *b = &inst->ops[2];
  int blocks = inst->shape[0] / 8, steps = element_count(b);
  bool xor = inst_has(inst, MOD_xor);
  uint32_t d[MAX_ROWS * COLUMNS];
  load_c(warp, &inst->ops[3], false, d);
  for (int row = 0; row < inst->shape[0]; row++) {
    for (int column = 0; column < COLUMNS; column++) {
      for (int word = 0; word < 4 * steps; word++) {
        const Operand *left = element(a, row / 8 + blocks * (word / 4)), *right = element(b, word / 4);
        uint32_t x = (uint32_t)op_get(warp, left, row % 8 * 4 + word % 4),
                 y = (uint32_t)op_get(warp, right, column * 4 + word % 4);
        d[row * COLUMNS + column] += (uint32_t)__builtin_popcount(xor? x ^ y : x &y);
      }
    }
  }
  store_d(warp, &inst->ops[0], false, d);
  return EXEC_NEXT;
}

// ---- doubles: fused multiply-adds in order of k

static double double_at(const Warp *warp, const Operand *op, int t) {
  uint64_t bits = op_get(warp, op, t);
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static ExecResult exec_doubles(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  if (!warp_meet(machine, warp, lanes, ~0u)) return EXEC_BLOCK;
  const Operand *d = &inst->ops[0], *a = &inst->ops[1], *b = &inst->ops[2], *c = &inst->ops[3];
  int blocks = inst->shape[0] / 8;
  uint64_t result[4][WARP_LANES];
  for (int reg = 0; reg < 2 * blocks; reg++) {
    for (int t = 0; t < WARP_LANES; t++) {
      int row = t / 4 + 8 * (reg / 2), column = 2 * (t % 4) + reg % 2;
      double sum = double_at(warp, element(c, reg), t);
      for (int k = 0; k < inst->shape[2]; k++)
        sum = fma(double_at(warp, element(a, row / 8 + blocks * (k / 4)), row % 8 * 4 + k % 4),
                  double_at(warp, element(b, k / 4), column * 4 + k % 4), sum);
      memcpy(&result[reg][t], &sum, sizeof sum);
    }
  }
  for (int reg = 0; reg < 2 * blocks; reg++)
    for (int t = 0; t < WARP_LANES; t++) op_set(warp, element(d, reg), t, result[reg][t]);
  return EXEC_NEXT;
}

static bool are_registers(const Operand *list, int count, RowKind row) {
  for (int i = 0; i < element_count(list); i++)
    if (element(list, i)->kind != OPERAND_REG || element(list, i)->row != row) return false;
  return element_count(list) == count;
}

static const char *check_registers(const Inst *inst, int results, int steps, RowKind row) {
  bool fit = are_registers(&inst->ops[0], results, row) && are_registers(&inst->ops[3], results, row) &&
             are_registers(&inst->ops[1], inst->shape[0] / 8 * steps, row) &&
             are_registers(&inst->ops[2], steps, row);
  return fit ? NULL : "the number of registers does not fit the shape";
}

static bool d_fits(int d, MmaType a) {
  if (mma_type_is_int(a)) return d == PT_s32;
  return d == PT_f32 || (d == PT_f16 && a != MMA_BF16 && a != MMA_TF32);
}

static const char *select_bits(Inst *inst) {
  int k = inst->shape[2];
  inst->exec = exec_bits;
  if (!inst_has(inst, MOD_popc) || inst_has(inst, MOD_and) == inst_has(inst, MOD_xor))
    return "bits need .and.popc or .xor.popc";
  if (inst->types[0] != PT_s32 || inst->types[2] != PT_b1 || inst->types[3] != PT_s32 ||
      !(k == 128 || (k == 256 && inst->shape[0] == 16)))
    return "this shape does not exist for bits";
  return check_registers(inst, inst->shape[0] / 4, k / 128, ROW_32);
}

static const char *select_doubles(Inst *inst) {
  int k = inst->shape[2];
  inst->exec = exec_doubles;
  for (int i = 0; i < 4; i++)
    if (inst->types[i] != PT_f64) return "f64 does not mix with other types";
  bool exists = inst->shape[0] == 8 ? k == 4 : k == 4 || k == 8 || k == DOUBLE_MAX_K;
  return exists ? check_registers(inst, inst->shape[0] / 4, k / 4, ROW_64)
                : "this shape does not exist for f64";
}

static const char *select_mma(Inst *inst) {
  int m = inst->shape[0], k = inst->shape[2];
  if (inst_has(inst, MOD_sp)) return "sparse instructions are not supported";
  if (inst_mod_in(inst, MC_KIND) != MOD_COUNT || inst_mod_in(inst, MC_BLOCK_SCALE) != MOD_COUNT)
    return "kinds and block scales exist on other targets only";
  if (inst->nops != 4 || inst->ntypes != 4 || (m != 16 && m != 8) || inst->shape[1] != COLUMNS)
    return "only shapes m16n8k… and m8n8k… with four types are supported";
  if (inst->types[1] == PT_b1) return select_bits(inst);
  if (inst->types[1] == PT_f64) return select_doubles(inst);
  int a = type_of(inst->types[1]), b = type_of(inst->types[2]);
  if (a < 0 || b < 0) return "these operand types are not supported";
  int per_word = mma_type_per_word((MmaType)a);
  bool ints = mma_type_is_int((MmaType)a), small = per_word >= 4;
  if (a != b && !(small && mma_type_per_word((MmaType)b) == per_word && mma_type_is_int((MmaType)b) == ints))
    return "these operand types do not mix";
  if (m == 8 && !(ints && k == 4 * per_word)) return "this shape of 8 rows is not supported";
  if (k != 4 * per_word && k != 8 * per_word) return "K does not fit the operand types";
  if (inst->types[0] != inst->types[3] || !d_fits(inst->types[0], (MmaType)a))
    return "the types of C and D do not go with the operands";
  return check_registers(inst, inst->types[0] == PT_f16 ? 2 : m / 4, k / (4 * per_word), ROW_32);
}

const InstDef mma_sync_insts[] = {
    {.name = "mma",
     .classes = MC(ALIGNED) | MC(SHAPE) | MC(LAYOUT) | MC(SAT) | MC(SPARSE) | MC(KIND) | MC(BLOCK_SCALE) |
                MC(OPERATION) | MC(ROUND),
     .operands = "rrrr?**",
     .min_sm = 80,
     .exec = exec_mma,
     .select = select_mma},
    {0},
};

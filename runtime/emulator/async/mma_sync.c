// mma.sync: one warp multiplies 16 x K by K x 8 out of registers, at once (PTX ISA 9.7.14.5). Fragments:
// thread t holds rows t/4 and t/4 + 8 of A, C and D and column t/4 of B. Sums are the fused ones of wgmma.
#include <string.h>

#include "async/mma_operand.h"

enum { ROWS = 16, COLUMNS = 8 };

static int type_of(int type) {
  static const struct {
    PtxType type;
    MmaType mma;
  } rows[] = {{PT_f16, MMA_F16},   {PT_bf16, MMA_BF16}, {PT_tf32, MMA_TF32}, {PT_e4m3, MMA_E4M3},
              {PT_e5m2, MMA_E5M2}, {PT_u8, MMA_U8},     {PT_s8, MMA_S8}};
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

// Registers of A (two row blocks) or B (one).
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
  int k = inst->shape[2];
  bool f16 = inst->types[0] == PT_f16;
  MmaTarget a = begin(&s->a, s->int_a, (MmaType)type_of(inst->types[1]), ROWS, k);
  MmaTarget b = begin(&s->b, s->int_b, (MmaType)type_of(inst->types[2]), COLUMNS, k);
  load(machine, warp, &inst->ops[1], 2, &a);
  load(machine, warp, &inst->ops[2], 1, &b);
  load_c(warp, &inst->ops[3], f16, s->d);
  if (a.ints)
    num_mma_int(s->int_a, s->int_b, ROWS, COLUMNS, k, inst_has(inst, MOD_satfinite), true, s->d, COLUMNS);
  else
    num_mma(&s->a, &s->b, &(NumSum){.window = 25, .f16_result = f16, .result_bits = 23, .read_d = true}, s->d,
            COLUMNS);
  store_d(warp, &inst->ops[0], f16, s->d);
  return EXEC_NEXT;
}

static bool are_registers(const Operand *list, int count) {
  for (int i = 0; i < element_count(list); i++)
    if (element(list, i)->kind != OPERAND_REG || element(list, i)->row != ROW_32) return false;
  return element_count(list) == count;
}

static bool d_fits(int d, MmaType a) {
  if (mma_type_is_int(a)) return d == PT_s32;
  return d == PT_f32 || (d == PT_f16 && a != MMA_BF16 && a != MMA_TF32);
}

static const char *select_mma(Inst *inst) {
  if (inst_has(inst, MOD_sp)) return "sparse instructions are not supported";
  if (inst->ntypes != 4 || inst->shape[0] != 16 || inst->shape[1] != 8)
    return "only shapes m16n8k… with four types are supported";
  int a = type_of(inst->types[1]), b = type_of(inst->types[2]), k = inst->shape[2];
  if (a < 0 || b < 0) return "these operand types are not supported";
  int per_word = mma_type_per_word((MmaType)a);
  bool small = per_word == 4;
  if (a != b && !(small && mma_type_per_word((MmaType)b) == 4 &&
                  mma_type_is_int((MmaType)a) == mma_type_is_int((MmaType)b)))
    return "these operand types do not mix";
  if (k != 4 * per_word && k != 8 * per_word) return "K does not fit the operand types";
  if (inst->types[0] != inst->types[3] || !d_fits(inst->types[0], (MmaType)a))
    return "the types of C and D do not go with the operands";
  int steps = k / (4 * per_word), results = inst->types[0] == PT_f16 ? 2 : 4;
  if (!are_registers(&inst->ops[0], results) || !are_registers(&inst->ops[3], results) ||
      !are_registers(&inst->ops[1], 2 * steps) || !are_registers(&inst->ops[2], steps))
    return "the number of registers does not fit the shape";
  return NULL;
}

const InstDef mma_sync_insts[] = {
    {.name = "mma",
     .classes = MC(ALIGNED) | MC(SHAPE) | MC(LAYOUT) | MC(SAT) | MC(SPARSE) | MC(KIND),
     .operands = "rrrr?**",
     .min_sm = 80,
     .exec = exec_mma,
     .select = select_mma},
    {0},
};

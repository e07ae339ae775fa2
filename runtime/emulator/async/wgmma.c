// Hopper's wgmma (PTX ISA 9.7.15). The four warps of a warpgroup each compute the 16 rows whose fragments
// they hold, so every warp queues an operation of its own; D and A registers are read and written when it
// completes, as hardware is free to do. Groups are per warp.
#include <stdlib.h>
#include <string.h>

#include "async/mma_operand.h"

enum { WARP_ROWS = 16, MAX_N = 256 };

typedef struct {
  EngineOp op;
  SmemDesc a, b;
  bool a_in_registers, read_d;
  bool negate_a, negate_b, transpose_a, transpose_b;
} WgmmaOp;

static int mma_type_of(PtxType type) {
  static const struct {
    PtxType type;
    MmaType mma;
  } rows[] = {{PT_f16, MMA_F16},   {PT_bf16, MMA_BF16}, {PT_tf32, MMA_TF32}, {PT_e4m3, MMA_E4M3},
              {PT_e5m2, MMA_E5M2}, {PT_u8, MMA_U8},     {PT_s8, MMA_S8}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].type == type) return (int)rows[i].mma;
  return -1;
}

static Warp *warp_of(const EngineOp *op) {
  return &op->origin.cta->warps[op->origin.warp];
}

static void begin_tile(NumTile *tile, int rows, int k) {
  tile->rows = rows;
  tile->k = k;
  memset(tile->scale, 0, sizeof tile->scale);
  memset(tile->scale_is_nan, 0, sizeof tile->scale_is_nan);
}

static void load_a_registers(Machine *machine, const WgmmaOp *op, const MmaTarget *target) {
  const Operand *list = &op->op.origin.inst->ops[1];
  const Warp *warp = warp_of(&op->op);
  int per_word = mma_type_per_word(target->type);
  for (int reg = 0; reg < list->nelems; reg++)
    for (int t = 0; t < WARP_LANES; t++) {
      int row = t / 4 + 8 * (reg % 2), k = per_word * (t % 4) + 4 * per_word * (reg / 2);
      mma_load_word(machine, (uint32_t)op_get(warp, &list->elems[reg], t), row, k, target);
    }
}

static bool load_operands(Machine *machine, const WgmmaOp *op) {
  const Inst *inst = op->op.origin.inst;
  const Cta *cta = op->op.origin.cta;
  Scratch *s = engine_scratch(machine);
  int n = inst->shape[1], k = inst->shape[2], from = op->op.origin.warp % 4 * WARP_ROWS;
  MmaType type_a = (MmaType)mma_type_of((PtxType)inst->types[1]),
          type_b = (MmaType)mma_type_of((PtxType)inst->types[2]);
  bool ints = mma_type_is_int(type_a);
  MmaTarget a = {&s->a, ints ? s->int_a : NULL, k, type_a, op->negate_a};
  MmaTarget b = {&s->b, ints ? s->int_b : NULL, k, type_b, op->negate_b};
  begin_tile(&s->a, WARP_ROWS, k);
  begin_tile(&s->b, n, k);
  if (op->a_in_registers)
    load_a_registers(machine, op, &a);
  else if (!mma_load_shared(machine, &op->op.origin, cta, &op->a, op->transpose_a, from, 0, WARP_ROWS, &a))
    return false;
  if (!mma_load_shared(machine, &op->op.origin, cta, &op->b, op->transpose_b, 0, 0, n, &b)) return false;
  return true;
}

// Thread t's cell of f32 register 0 in the dense 16 x n copy of D, and the way from there to register i.
static int thread_cell(int n, int t) {
  return t / 4 * n + 2 * (t % 4);
}
static int register_cell(int n, int i) {
  return i / 2 % 2 * 8 * n + 8 * (i / 4) + i % 2;
}

// f16 results pack the columns of two f32 registers into one.
static void read_d(const WgmmaOp *op, Scratch *s, bool f16) {
  const Operand *list = &op->op.origin.inst->ops[0];
  int n = op->op.origin.inst->shape[1];
  for (int reg = 0; reg < list->nelems; reg++) {
    const uint32_t *row = row32(warp_of(&op->op), &list->elems[reg]);
    uint32_t *low = s->d + register_cell(n, f16 ? 2 * reg : reg),
             *high = s->d + register_cell(n, 2 * reg + 1);
    for (int t = 0; t < WARP_LANES; t++) {
      low[thread_cell(n, t)] = f16 ? row[t] & 0xFFFF : row[t];
      if (f16) high[thread_cell(n, t)] = row[t] >> 16;
    }
  }
}

static void write_d(const WgmmaOp *op, const Scratch *s, bool f16) {
  const Operand *list = &op->op.origin.inst->ops[0];
  int n = op->op.origin.inst->shape[1];
  for (int reg = 0; reg < list->nelems; reg++) {
    uint32_t *row = row32(warp_of(&op->op), &list->elems[reg]);
    const uint32_t *low = s->d + register_cell(n, f16 ? 2 * reg : reg),
                   *high = s->d + register_cell(n, 2 * reg + 1);
    for (int t = 0; t < WARP_LANES; t++)
      row[t] = f16 ? low[thread_cell(n, t)] | high[thread_cell(n, t)] << 16 : low[thread_cell(n, t)];
  }
}

static bool complete_wgmma(Machine *machine, EngineOp *base) {
  WgmmaOp *op = (WgmmaOp *)base;
  const Inst *inst = base->origin.inst;
  Scratch *s = engine_scratch(machine);
  bool f16 = inst->types[0] == PT_f16, fp8 = inst->types[1] == PT_e4m3 || inst->types[1] == PT_e5m2;
  int n = inst->shape[1];
  if (!load_operands(machine, op)) return false;
  read_d(op, s, f16);
  // Hopper's fp8 sums keep 13 fractional bits, of terms and of an f32 result.
  NumSum sum = {
      .window = fp8 ? 13 : 25, .f16_result = f16, .result_bits = fp8 ? 13 : 23, .read_d = op->read_d};
  if (mma_type_is_int((MmaType)mma_type_of((PtxType)inst->types[1])))
    num_mma_int(s->int_a, s->int_b, WARP_ROWS, n, inst->shape[2], inst_has(inst, MOD_satfinite), op->read_d,
                s->d, n);
  else
    num_mma(&s->a, &s->b, &sum, s->d, n);
  write_d(op, s, f16);
  return true;
}

// ---- instructions

static bool read_operands(Machine *machine, Warp *warp, const Inst *inst, int lane, WgmmaOp *op) {
  SpaceError why;
  op->a_in_registers = inst->ops[1].kind == OPERAND_VECTOR;
  op->read_d = op_get(warp, &inst->ops[3], lane) & 1;
  int next = 4;
  if (inst->nops > 5) {
    op->negate_a = op_get(warp, &inst->ops[next++], lane) != 1;  // 1 or -1, of whatever width
    op->negate_b = op_get(warp, &inst->ops[next++], lane) != 1;
  }
  if (next < inst->nops && !op->a_in_registers) op->transpose_a = op_get(warp, &inst->ops[next++], lane) & 1;
  if (next < inst->nops) op->transpose_b = op_get(warp, &inst->ops[next], lane) & 1;
  if ((op->a_in_registers || smem_desc_wgmma(op_get(warp, &inst->ops[1], lane), &op->a, &why)) &&
      smem_desc_wgmma(op_get(warp, &inst->ops[2], lane), &op->b, &why))
    return true;
  machine_fault(machine, warp, lane, "%s", why.text);
  return false;
}

static ExecResult exec_wgmma(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  if (!warp_meet(machine, warp, lanes, ~0u)) return EXEC_BLOCK;
  if (warp->cta->nwarps - warp->index / 4 * 4 < 4)
    return machine_fault(machine, warp, -1,
                         "wgmma needs four warps from a multiple of four; warp %d of %d has not", warp->index,
                         warp->cta->nwarps);
  WgmmaOp *op = engine_op_new(machine, warp, -1, ENGINE_TENSOR, sizeof *op, complete_wgmma);
  if (!op) return EXEC_FAULT;
  if (!read_operands(machine, warp, inst, first_lane(lanes), op)) {
    free(op);
    return EXEC_FAULT;
  }
  op->op.groups = &cta_async(warp->cta)->wgmmas[warp->index];
  op->op.group_lanes = 1;
  engine_queue(machine, &op->op);
  return EXEC_NEXT;
}

static int k_of(MmaType type) {
  return type == MMA_TF32 ? 8 : type == MMA_F16 || type == MMA_BF16 ? 16 : 32;
}

static bool d_fits(PtxType d, MmaType a) {
  if (mma_type_is_int(a)) return d == PT_s32;
  return d == PT_f32 || (d == PT_f16 && a != MMA_BF16 && a != MMA_TF32);
}

static const char *select_wgmma(Inst *inst) {
  if (inst_has(inst, MOD_sp)) return "sparse instructions are not supported";
  if (inst->ntypes != 3 || inst->shape[0] != 64) return "needs a shape m64n…k… and three types";
  int a = mma_type_of((PtxType)inst->types[1]), b = mma_type_of((PtxType)inst->types[2]), n = inst->shape[1];
  if (a < 0 || b < 0) return "operand types are not supported";
  bool small = k_of((MmaType)a) == 32 && mma_type_is_int((MmaType)a) == mma_type_is_int((MmaType)b);
  if (a != b && !(small && k_of((MmaType)b) == 32)) return "these operand types do not mix";
  if (inst->shape[2] != k_of((MmaType)a)) return "K does not fit the operand types";
  if (n < 8 || n > MAX_N || n % 8) return "N must be a multiple of 8 up to 256";
  if (!d_fits((PtxType)inst->types[0], (MmaType)a)) return "D's type does not go with the operands";
  const Operand *d = &inst->ops[0];
  int registers = inst->types[0] == PT_f16 ? n / 4 : n / 2;
  if (d->kind != OPERAND_VECTOR || d->nelems != registers) return "the number of D registers does not fit N";
  for (int i = 0; i < registers; i++)
    if (d->elems[i].kind != OPERAND_REG || d->elems[i].row != ROW_32) return "D must be 32-bit registers";
  if (inst->ops[1].kind == OPERAND_VECTOR && inst->ops[1].nelems != 4) return "A takes 4 registers";
  return NULL;
}

static ExecResult exec_fence(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)inst;
  if (!warp_meet(machine, warp, lanes, ~0u)) return EXEC_BLOCK;
  machine_event(machine, EVENT_FENCE, warp, lanes, SPACE_GENERIC, 0, 0);
  return EXEC_NEXT;
}

static ExecResult exec_commit(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)inst;
  if (!warp_meet(machine, warp, lanes, ~0u)) return EXEC_BLOCK;
  group_commit(&cta_async(warp->cta)->wgmmas[warp->index]);
  return EXEC_NEXT;
}

static ExecResult exec_wait(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  if (!warp_meet(machine, warp, lanes, ~0u)) return EXEC_BLOCK;
  uint32_t allowed = (uint32_t)op_get(warp, &inst->ops[0], first_lane(lanes));
  return group_wait(machine, warp, lanes, &cta_async(warp->cta)->wgmmas[warp->index], true, allowed, false,
                    "wgmma.wait_group");
}

// Targets before sm_90 and after have no wgmma: the rows say 90 and the parser compares "at least", so sm_100
// modules, which no assembler would accept with it, run here.
const InstDef wgmma_insts[] = {
    {.name = "wgmma.mma_async",
     .classes = MC(ALIGNED) | MC(SAT) | MC(SPARSE) | MC(SHAPE),
     .operands = "vxlp*",
     .min_sm = 90,
     .exec = exec_wgmma,
     .select = select_wgmma},
    {.name = "wgmma.fence", .classes = MC(ALIGNED), .operands = "", .min_sm = 90, .exec = exec_fence},
    {.name = "wgmma.commit_group", .classes = MC(ALIGNED), .operands = "", .min_sm = 90, .exec = exec_commit},
    {.name = "wgmma.wait_group", .classes = MC(ALIGNED), .operands = "i", .min_sm = 90, .exec = exec_wait},
    {0},
};

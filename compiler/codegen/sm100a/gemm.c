// gemm by tcgen05.mma, issued by the executing thread.
//
// An instruction multiplies 128 rows (or 64, or 32), up to 256 columns and one K atom (32 bytes of K). The op is cut into
// blocks of rows, pieces of columns, and K steps; only the first K step of each block may clear. Operand A may be in TMEM: row by row in the accumulator's lanes,
// packed along K (blackwell 2.7).
#include "codegen/sm100a/sm100a.h"

#include "codegen/mma_operand.h"
#include "codegen/nvvm.h"
#include "codegen/sm100a/descriptors.h"

enum { OPERAND_a, OPERAND_b, OPERAND_c, OPERAND_barrier, OPERAND_clear };

// An operand in TMEM has a place and no descriptor.
static bool begin_operand(Cg *cg, const TirOp *op, int i, bool mn_major, MmaOperand *o) {
  const CgPlace *place = cg_place(cg, op->args[i]);
  if (i != OPERAND_a || place->root->type.space != SPACE_TMEM)
    return mma_operand_begin(cg, op, i, mn_major, matrix_descriptor, NULL, o);
  *o = (MmaOperand){.place = place};
  return true;
}

typedef struct {
  const TirOp *op;
  const MmaShape *shape;
  const MmaExtents *extents;  // of one instruction
  int64_t n_step;
  MmaOperand a, b;
  const CgPlace *c;
  int64_t m, n, k;
  LLVMValueRef accumulate;  // i1, of the first K step
} Gemm;

static void multiply_block(Cg *cg, const Gemm *g, int64_t row, int64_t column, int64_t columns) {
  uint32_t word = instruction_descriptor(g->shape, g->extents->m, (int)columns, g->a.mn_major, g->b.mn_major);
  LLVMValueRef idesc = LLVMConstInt(cg->i32, word, false), always = LLVMConstInt(cg->i1, 1, false);
  LLVMValueRef d = sm100a_tmem_address(cg, g->op, g->c, row, column);
  MmaForm form = !g->a.base ? MMA_FORM_A_IN_TMEM : g->extents->ws ? MMA_FORM_WS : MMA_FORM_PLAIN;
  for (int64_t k = 0; k < g->k; k += g->shape->k_atom) {
    LLVMValueRef a =
        g->a.base ? mma_operand_step(cg, &g->a, row, k) : sm100a_tmem_address(cg, g->op, g->a.place, row, k);
    LLVMValueRef b = mma_operand_step(cg, &g->b, column, k);
    nvvm_tcgen05_mma(cg, form, d, a, b, idesc, k == 0 ? g->accumulate : always, (MmaKind)g->shape->kind);
  }
}

static bool check_extents(Cg *cg, const Gemm *g) {
  bool legal =
      g->extents && g->k % g->shape->k_atom == 0 && g->n % g->n_step == 0 && g->n >= g->extents->n_min;
  if (!legal) cg_unsupported(cg, g->op, "a product of %d x %d x %d", (int)g->m, (int)g->n, (int)g->k);
  return legal;
}

void sm100a_gemm(Cg *cg, const TirOp *op) {
  bool trans_a = op->attrs[GEMM_trans_a] != 0, trans_b = op->attrs[GEMM_trans_b] != 0;
  const Type *a = &op->args[OPERAND_a]->type, *c = &op->args[OPERAND_c]->type;
  Gemm g = {.op = op,
            .c = cg_place(cg, op->args[OPERAND_c]),
            .m = c->shape[0],
            .n = c->shape[1],
            .k = a->shape[trans_a ? 0 : 1]};
  g.shape = target_find_mma(cg->target, a->dtype, op->args[OPERAND_b]->type.dtype, c->dtype);
  if (!g.shape) {
    cg_unsupported(cg, op, "these element types");
    return;
  }
  g.extents = target_mma_extents(cg->target, g.shape, g.m);
  if (g.extents) g.n_step = target_mma_n_step(g.shape, g.extents, !trans_b);
  if (!check_extents(cg, &g) || !begin_operand(cg, op, OPERAND_a, trans_a, &g.a) ||
      !begin_operand(cg, op, OPERAND_b, !trans_b, &g.b))
    return;
  g.accumulate = mma_first_accumulates(cg, op, OPERAND_clear);
  int64_t piece = mma_piece_columns(g.n, g.extents->n_max, g.n_step, &g.b);
  for (int64_t row = 0; row < g.m; row += g.extents->m)
    for (int64_t column = 0; column < g.n; column += piece)
      multiply_block(cg, &g, row, column, g.n - column < piece ? g.n - column : piece);
}

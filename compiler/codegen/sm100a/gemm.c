// gemm by tcgen05.mma, issued by the executing thread.
//
// An instruction multiplies 128 rows (or 64, or 32), up to 256 columns and one K atom (32 bytes of K). The op is cut into
// blocks of rows, pieces of columns, and K steps; only the first K step of each block may clear. Operands are
// panels of swizzled rows in shared memory: their descriptors differ in the start address alone, so one base
// per operand is computed and steps add constants (blackwell 2.4 to 2.6). The start address is that before
// the XOR: hardware applies it to the address itself. Operand A may be in TMEM: row by row in the accumulator's lanes,
// packed along K (blackwell 2.7).
#include "codegen/sm100a/sm100a.h"

#include <assert.h>

#include "codegen/nvvm.h"
#include "codegen/sm100a/descriptors.h"

enum { OPERAND_a, OPERAND_b, OPERAND_c, OPERAND_barrier, OPERAND_clear };
enum { PATTERN_ROWS = 8 };

typedef struct {
  const CgPlace *place;
  bool mn_major;      // M (or N) is the innermost dimension in memory
  int bytes, span;    // of an element, of a row of a panel
  int64_t rows;       // of a panel
  bool regular;       // steps are constants
  LLVMValueRef base;  // descriptor of its first element; of an operand in TMEM there is none
} Operand;

// Byte offset from the operand's first element. Both steps stay on multiples of what the offset's formula
// needs.
static int64_t operand_offset(const Operand *o, int64_t mn, int64_t k) {
  int64_t row = o->mn_major ? k : mn, column = o->mn_major ? mn : k, columns = o->span / o->bytes;
  return column / columns * o->rows * o->span + row * o->span + column % columns * o->bytes;
}

static uint64_t descriptor_of(const Operand *o) {
  // K-major: 8-row groups follow each other. MN-major: so do groups of 8 K; the next panel is the leading
  // dimension.
  return matrix_descriptor(o->span, o->mn_major ? o->rows * o->span : 0, PATTERN_ROWS * o->span);
}

// Whether the tile starts with a panel or lies in one: then every step is a constant from its first element.
static bool keeps_to_panels(const Operand *o, const Type *tile) {
  int64_t columns = o->span / o->bytes, multiple = o->place->multiple[o->place->root->type.rank - 1];
  return multiple % columns == 0 || tile->shape[1] <= multiple;
}

static LLVMValueRef make_descriptor(Cg *cg, const Operand *o, int64_t mn, int64_t k) {
  LLVMBuilderRef b = cg->builder;
  LLVMValueRef index[2], root_index[TYPE_MAX_RANK];
  index[o->mn_major] = cg_i32(cg, mn);
  index[!o->mn_major] = cg_i32(cg, k);
  cg_root_index(cg, o->place, index, root_index);
  LLVMValueRef start = LLVMBuildPtrToInt(b, cg->storage[o->place->root->id], cg->i32, "");
  start = LLVMBuildAdd(b, start, cg_shared_linear(cg, o->place, root_index), "");
  start = LLVMBuildAnd(b, LLVMBuildLShr(b, start, cg_i32(cg, 4), ""), cg_i32(cg, 0x3FFF), "");
  start = LLVMBuildZExt(b, start, cg->i64, "");
  return LLVMBuildOr(b, start, cg_i64(cg, (int64_t)descriptor_of(o)), "");
}

static bool begin_operand(Cg *cg, const TirOp *op, int i, bool mn_major, Operand *o) {
  const TirValue *value = op->args[i];
  const CgPlace *place = cg_place(cg, value);
  const Type *root = &place->root->type;
  const Layout *layout = place->root->layout;
  if (i == OPERAND_a && root->space == SPACE_TMEM) {
    *o = (Operand){.place = place};
    return true;
  }
  if (root->space != SPACE_SHARED || layout->span == 0 || place->rank != 2) {
    cg_unsupported(cg, op, "operand %d must be a swizzled matrix in shared memory", i);
    return false;
  }
  *o = (Operand){.place = place,
                 .mn_major = mn_major,
                 .bytes = dtype_bytes(root->dtype),
                 .span = layout->span,
                 .rows = 1};
  for (int d = 0; d + 1 < root->rank; d++) o->rows *= root->shape[d];
  o->regular = keeps_to_panels(o, &value->type);
  o->base = make_descriptor(cg, o, 0, 0);
  return true;
}

static LLVMValueRef step_descriptor(Cg *cg, const Operand *o, int64_t mn, int64_t k) {
  if (!o->regular) return make_descriptor(cg, o, mn, k);
  return LLVMBuildAdd(cg->builder, o->base, cg_i64(cg, operand_offset(o, mn, k) >> 4), "");
}

typedef struct {
  const TirOp *op;
  const MmaShape *shape;
  const MmaExtents *extents;  // of one instruction
  int64_t n_step;
  Operand a, b;
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
        g->a.base ? step_descriptor(cg, &g->a, row, k) : sm100a_tmem_address(cg, g->op, g->a.place, row, k);
    LLVMValueRef b = step_descriptor(cg, &g->b, column, k);
    nvvm_tcgen05_mma(cg, form, d, a, b, idesc, k == 0 ? g->accumulate : always, (MmaKind)g->shape->kind);
  }
}

// Columns of an instruction: equal pieces of whole steps, the last one shorter. With N innermost in memory a piece
// starts with a panel.
static int64_t piece_columns(const Gemm *g) {
  int64_t pieces = (g->n + g->extents->n_max - 1) / g->extents->n_max, step = g->n_step;
  if (pieces > 1 && g->b.mn_major && g->b.span / g->b.bytes > step) step = g->b.span / g->b.bytes;
  int64_t columns = (g->n + pieces - 1) / pieces;
  return (columns + step - 1) / step * step;
}

static bool check_extents(Cg *cg, const Gemm *g) {
  bool legal =
      g->extents && g->k % g->shape->k_atom == 0 && g->n % g->n_step == 0 && g->n >= g->extents->n_min;
  if (!legal) cg_unsupported(cg, g->op, "a product of %d x %d x %d", (int)g->m, (int)g->n, (int)g->k);
  return legal;
}

static LLVMValueRef first_accumulates(Cg *cg, const TirOp *op) {
  const TirValue *clear = cg_arg(op, OPERAND_clear);
  return clear ? LLVMBuildNot(cg->builder, cg_value(cg, clear), "") : LLVMConstInt(cg->i1, 1, false);
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
  g.accumulate = first_accumulates(cg, op);
  int64_t piece = piece_columns(&g);
  for (int64_t row = 0; row < g.m; row += g.extents->m)
    for (int64_t column = 0; column < g.n; column += piece)
      multiply_block(cg, &g, row, column, g.n - column < piece ? g.n - column : piece);
}

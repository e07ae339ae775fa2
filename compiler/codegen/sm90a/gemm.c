// gemm by wgmma: each warpgroup of 128 threads multiplies its part of the accumulator, which is in its registers as
// layout_mma (types/layout.h) spreads it: blocks of 64 rows dealt to warpgroups, then columns. An instruction multiplies 64
// rows, up to 256 columns and one K atom (32 bytes of K); only the first K step may clear. All instructions of an op are one
// wgmma group (PTX ISA 9.7.15.7).
#include "codegen/sm90a/sm90a.h"

#include <assert.h>

#include "base/gcd.h"
#include "codegen/fragment.h"
#include "codegen/mma_operand.h"
#include "codegen/nvvm.h"
#include "codegen/sm90a/wgmma.h"

enum { OPERAND_a, OPERAND_b, OPERAND_c, OPERAND_barrier, OPERAND_clear };
enum {
  ROWS = 64,
  GROUP = 128,
  WARP = 32,
  EIGHT = 8,
  VALUES_OF_EIGHT = 4
};  // a thread's values of 64 rows x 8 columns

// PTX ISA 9.7.15.5.1.2: swizzle in bits 62-63.
static uint64_t descriptor_of(int span, int64_t leading, int64_t stride) {
  assert(span == 32 || span == 64 || span == 128);
  uint64_t swizzle = span == 128 ? 1 : span == 64 ? 2 : 3;
  return (uint64_t)(leading >> 4) << 16 | (uint64_t)(stride >> 4) << 32 | swizzle << 62;
}

// ---- accumulators: an array of values a thread, kept in registers

typedef struct {
  const TirValue *value;
  int per_register;  // values that one 32-bit register packs
  int count;         // registers
} Accumulator;

static Accumulator accumulator_of(const TirValue *value) {
  int packed = dtype_bits(value->type.dtype) == 16 ? 2 : 1;
  return (Accumulator){value, packed, (int)layout_registers(value->layout) / packed};
}

static LLVMTypeRef register_type(Cg *cg, const Accumulator *acc) {
  return acc->value->type.dtype == DTYPE_f32 ? cg->f32 : cg->i32;
}

static LLVMTypeRef pair_type(Cg *cg, const Accumulator *acc) {
  return LLVMVectorType(cg_memory_type(cg, acc->value->type.dtype), 2);
}

static LLVMValueRef load_register(Cg *cg, const Accumulator *acc, int number) {
  LLVMTypeRef element = cg_memory_type(cg, acc->value->type.dtype);
  int first = number * acc->per_register;
  LLVMValueRef low = LLVMBuildLoad2(cg->builder, element, cg_register(cg, acc->value, cg_i32(cg, first)), "");
  if (acc->per_register == 1) return low;
  LLVMValueRef high =
      LLVMBuildLoad2(cg->builder, element, cg_register(cg, acc->value, cg_i32(cg, first + 1)), "");
  LLVMValueRef pair =
      LLVMBuildInsertElement(cg->builder, LLVMGetPoison(pair_type(cg, acc)), low, cg_i32(cg, 0), "");
  pair = LLVMBuildInsertElement(cg->builder, pair, high, cg_i32(cg, 1), "");
  return LLVMBuildBitCast(cg->builder, pair, cg->i32, "");
}

static void store_register(Cg *cg, const Accumulator *acc, int number, LLVMValueRef value) {
  int first = number * acc->per_register;
  if (acc->per_register == 1) {
    LLVMBuildStore(cg->builder, value, cg_register(cg, acc->value, cg_i32(cg, first)));
    return;
  }
  LLVMValueRef pair = LLVMBuildBitCast(cg->builder, value, pair_type(cg, acc), "");
  for (int i = 0; i < 2; i++)
    LLVMBuildStore(cg->builder, LLVMBuildExtractElement(cg->builder, pair, cg_i32(cg, i), ""),
                   cg_register(cg, acc->value, cg_i32(cg, first + i)));
}

static WgmmaRegisters load_registers(Cg *cg, const Accumulator *acc, int first, int count) {
  WgmmaRegisters d = {register_type(cg, acc), ARENA_ARRAY(cg->arena, LLVMValueRef, count), count};
  for (int i = 0; i < count; i++) d.values[i] = load_register(cg, acc, first + i);
  return d;
}

static void store_registers(Cg *cg, const Accumulator *acc, int first, WgmmaRegisters d) {
  for (int i = 0; i < d.count; i++) store_register(cg, acc, first + i, d.values[i]);
}

// ---- products

typedef struct {
  const TirOp *op;
  const MmaShape *shape;
  Accumulator c, a_registers;  // the second only with A in a fragment
  bool a_in_registers;
  MmaOperand a, b;
  int64_t m, n, k;          // n: columns of a warpgroup
  int64_t down;             // warpgroups that share the rows
  LLVMValueRef accumulate;  // i1, of the first K step
} Gemm;

static const char *type_text(DType dtype) {
  if (dtype == DTYPE_f32) return "tf32";
  if (dtype == DTYPE_i8) return "s8";
  return dtype_name(dtype);
}

// Text after the scale-d predicate: signs of float operands, and for 16-bit ones which is stored with M or N innermost.
static const char *tail_of(Cg *cg, const Gemm *g) {
  if (g->shape->c == DTYPE_i32) return "";
  if (!g->shape->mn_major) return ", 1, 1";
  if (g->a_in_registers) return text_printf(cg->arena, ", 1, 1, %d", g->b.mn_major);
  return text_printf(cg->arena, ", 1, 1, %d, %d", g->a.mn_major, g->b.mn_major);
}

static const char *shape_of(Cg *cg, const Gemm *g, int64_t columns) {
  const char *result = g->shape->c == DTYPE_i32 ? "s32" : dtype_name(g->shape->c);
  return text_printf(cg->arena, "m64n%dk%d.%s.%s.%s", (int)columns, g->shape->k_atom, result,
                     type_text(g->shape->a), type_text(g->shape->b));
}

// The four registers of A for a block of rows and a K step: its fragment is spread like an accumulator of 16-bit values.
static void load_a(Cg *cg, const Gemm *g, int64_t block, int64_t k, Wgmma *out) {
  int64_t per_block = g->k / EIGHT * VALUES_OF_EIGHT / g->a_registers.per_register;
  int64_t first = block * per_block + k / EIGHT * VALUES_OF_EIGHT / g->a_registers.per_register;
  out->a_count = 4;
  for (int i = 0; i < 4; i++) out->a[i] = load_register(cg, &g->a_registers, (int)first + i);
}

static void multiply_piece(Cg *cg, const Gemm *g, int64_t block, int64_t column, int64_t columns) {
  int64_t per_eight = VALUES_OF_EIGHT / g->c.per_register;
  int first = (int)((block * g->n + column) / EIGHT * per_eight), count = (int)(columns / EIGHT * per_eight);
  WgmmaRegisters d = load_registers(cg, &g->c, first, count);
  Wgmma w = {.shape = shape_of(cg, g, columns), .tail = tail_of(cg, g)};
  for (int64_t k = 0; k < g->k; k += g->shape->k_atom) {
    if (g->a_in_registers) {
      load_a(cg, g, block, k, &w);
    } else {
      w.a[0] = mma_operand_step(cg, &g->a, block * g->down * ROWS, k);
      w.a_count = 1;
    }
    w.b = mma_operand_step(cg, &g->b, column, k);
    w.accumulate = k == 0 ? g->accumulate : LLVMConstInt(cg->i1, 1, false);
    sm90a_wgmma(cg, &w, d);
  }
  store_registers(cg, &g->c, first, d);
}

// In a role the number of the warp is there already, the same in all lanes.
static LLVMValueRef group_of_warp(Cg *cg) {
  LLVMValueRef first = cg_i32(cg, cg->active.lo / WARP);
  return LLVMBuildUDiv(cg->builder, LLVMBuildSub(cg->builder, cg->warp, first, ""), cg_i32(cg, GROUP / WARP),
                       "");
}

// Where this warpgroup's part starts: rows of A, columns of C. The number of the warpgroup is made the same in all lanes.
static void find_part(Cg *cg, const Gemm *g, int64_t across, LLVMValueRef *row, LLVMValueRef *column) {
  LLVMBuilderRef b = cg->builder;
  *row = *column = NULL;
  if (g->down * across == 1) return;
  LLVMValueRef group = cg->warp ? group_of_warp(cg)
                                : nvvm_shfl_idx(cg, LLVMBuildUDiv(b, cg->position, cg_i32(cg, GROUP), ""), 0);
  if (g->down > 1)
    *row = LLVMBuildMul(b, LLVMBuildURem(b, group, cg_i32(cg, g->down), ""), cg_i32(cg, ROWS), "");
  if (across > 1)
    *column = LLVMBuildMul(b, LLVMBuildUDiv(b, group, cg_i32(cg, g->down), ""), cg_i32(cg, g->n), "");
}

static bool begin(Cg *cg, const TirOp *op, Gemm *g) {
  bool trans_a = op->attrs[GEMM_trans_a] != 0, trans_b = op->attrs[GEMM_trans_b] != 0;
  const Type *a = &op->args[OPERAND_a]->type, *c = &op->args[OPERAND_c]->type;
  int64_t groups = tir_thread_count(cg->active) / GROUP, blocks = c->shape[0] / ROWS;
  *g = (Gemm){.op = op, .m = c->shape[0], .k = a->shape[trans_a ? 0 : 1]};
  g->shape = target_find_mma(cg->target, a->dtype, op->args[OPERAND_b]->type.dtype, c->dtype);
  g->down = base_gcd(blocks, groups);
  int64_t across = groups / g->down;
  g->n = c->shape[1] / across;
  if (!g->shape || blocks % g->down || groups % g->down || c->shape[1] % across ||
      g->n % g->shape->extents[0].n_step) {
    cg_unsupported(cg, op, "a product of %d x %d by %d threads", (int)c->shape[0], (int)c->shape[1],
                   tir_thread_count(cg->active));
    return false;
  }
  g->c = accumulator_of(op->args[OPERAND_c]);
  g->a_in_registers = a->space == SPACE_FRAGMENT;
  if (g->a_in_registers) g->a_registers = accumulator_of(op->args[OPERAND_a]);
  if (g->a_in_registers && (across > 1 || dtype_bits(a->dtype) != 16)) {
    cg_unsupported(cg, op,
                   across > 1 ? "A in a fragment needs a block of 64 rows for each warpgroup"
                              : "A in a fragment has 16-bit elements");
    return false;
  }
  LLVMValueRef row, column;
  find_part(cg, g, across, &row, &column);
  g->accumulate = mma_first_accumulates(cg, op, OPERAND_clear);
  return (g->a_in_registers || mma_operand_begin(cg, op, OPERAND_a, trans_a, descriptor_of, row, &g->a)) &&
         mma_operand_begin(cg, op, OPERAND_b, !trans_b, descriptor_of, column, &g->b);
}

// All registers that the instructions read are computed before the fence; with one computed between them, ptxas makes them wait
// for each other (C7519).
static void fence(Cg *cg, const Gemm *g) {
  if (g->a_in_registers) {
    WgmmaRegisters a = load_registers(cg, &g->a_registers, 0, g->a_registers.count);
    sm90a_wgmma_pin(cg, a);
    store_registers(cg, &g->a_registers, 0, a);
  }
  WgmmaRegisters d = load_registers(cg, &g->c, 0, g->c.count);
  sm90a_wgmma_fence(cg, d);
  store_registers(cg, &g->c, 0, d);
}

void sm90a_gemm(Cg *cg, const TirOp *op) {
  Gemm g;
  if (!begin(cg, op, &g)) return;
  const MmaExtents *extents = &g.shape->extents[0];
  int64_t piece = mma_piece_columns(g.n, extents->n_max, extents->n_step, &g.b), blocks = g.m / ROWS / g.down;
  fence(cg, &g);
  for (int64_t block = 0; block < blocks; block++)
    for (int64_t column = 0; column < g.n; column += piece)
      multiply_piece(cg, &g, block, column, g.n - column < piece ? g.n - column : piece);
  nvvm_wgmma_commit(cg);
}

void sm90a_mma_wait(Cg *cg, const TirOp *op) {
  Accumulator acc = accumulator_of(op->args[0]);
  WgmmaRegisters d = load_registers(cg, &acc, 0, acc.count);
  sm90a_wgmma_wait(cg, (int)op->attrs[MMA_WAIT_pending], d);
  store_registers(cg, &acc, 0, d);
}

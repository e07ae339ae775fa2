// stmatrix (PTX ISA 9.7.15.5.16) stores up to four matrices of 8 x 8 elements of 16 bits. Thread t of a warp holds row t / 4,
// columns 2 (t mod 4) and the next, of each, in one register: as in the accumulator of a wgmma (types/layout.h, mma). The rows,
// 16 bytes each, go where the threads say: thread t gives the address of row t mod 8 of matrix t / 8.
//
// Registers 2k and 2k + 1 of such a fragment are one matrix; the next one has the eight rows below, the one behind these the
// eight columns to the right. Four in this order make a block of 16 x 16: thread t addresses its row t mod 16, column
// 8 (t / 16). In swizzled rows the 8 addresses of a matrix lie in different banks.
#include "codegen/matrices.h"

#include "codegen/fragment.h"
#include "codegen/nvvm.h"
#include "target/rules.h"

enum { WARP = 32, SIDE = 8, PAIR = 2, MOST_MATRICES = 4 };

typedef struct {
  Cg *cg;
  const TirOp *op;
  const TirValue *root;  // of the source
  const CgPlace *memory;
  DType from, to;
  CgFragment fragment;
  CgSlice slice;
  LLVMValueRef row, column;  // of the address that this thread gives, in the 16 x 16 elements of register 0
} Matrices;

static bool is_accumulator_layout(const Cg *cg, const TirValue *root) {
  Layout layout;
  int threads = tir_thread_count(cg->active);
  return layout_mma(&root->type, threads, &layout) && layout_equal(&layout, root->layout);
}

// Rows of 8 elements are adjacent and lie on multiples of their size.
static bool takes_matrices(const CgPlace *memory, const Type *type) {
  const Type *root = &memory->root->type;
  int last = root->rank - 1;
  if (root->space != SPACE_SHARED || type->rank != 2 || memory->dim[1] != last) return false;
  return root->shape[last] % SIDE == 0 && memory->multiple[last] % SIDE == 0;
}

static bool begin(Cg *cg, const TirOp *op, Matrices *m) {
  const TirValue *src = op->args[0], *dst = op->args[1];
  *m = (Matrices){
      .cg = cg, .op = op, .memory = cg_place(cg, dst), .from = src->type.dtype, .to = dst->type.dtype};
  const CgPlace *place = cg_place(cg, src);
  m->root = place->root;
  if (m->root->type.space != SPACE_FRAGMENT || dtype_bits(m->to) != SIDE * PAIR || op->kind != OP_copy)
    return false;
  if (cg->divergent || !is_accumulator_layout(cg, m->root) || !takes_matrices(m->memory, &dst->type))
    return false;
  if (!cg_slice(place, &src->type, &m->slice)) return false;
  return m->slice.extent[0] == m->root->type.shape[0] && m->slice.first[1] % SIDE == 0 &&
         m->slice.extent[1] % SIDE == 0;
}

// Of the thread's coordinates what the warp has in common, and the thread's part in addressing.
static void find_address(Matrices *m) {
  Cg *cg = m->cg;
  LLVMBuilderRef b = cg->builder;
  LLVMValueRef lane = LLVMBuildAnd(b, cg->position, cg_i32(cg, WARP - 1), "");
  LLVMValueRef row = LLVMBuildLShr(b, lane, cg_i32(cg, 2), "");
  LLVMValueRef column = LLVMBuildShl(b, LLVMBuildAnd(b, lane, cg_i32(cg, 3), ""), cg_i32(cg, 1), "");
  LLVMValueRef down = LLVMBuildAnd(b, lane, cg_i32(cg, 2 * SIDE - 1), "");
  LLVMValueRef right = LLVMBuildShl(b, LLVMBuildLShr(b, lane, cg_i32(cg, 4), ""), cg_i32(cg, 3), "");
  m->row = LLVMBuildAdd(b, LLVMBuildSub(b, m->fragment.base[0], row, ""), down, "");
  m->column = LLVMBuildAdd(b, LLVMBuildSub(b, m->fragment.base[1], column, ""), right, "");
}

static LLVMValueRef pair_at(const Matrices *m, int64_t reg) {
  Cg *cg = m->cg;
  LLVMValueRef values[PAIR];
  if (m->from == m->to)
    return LLVMBuildLoad2(cg->builder, cg->i32, cg_register(cg, m->root, cg_i32(cg, reg)), "");
  LLVMTypeRef type = cg_memory_type(cg, m->from);
  for (int i = 0; i < PAIR; i++)
    values[i] = LLVMBuildLoad2(cg->builder, type, cg_register(cg, m->root, cg_i32(cg, reg + i)), "");
  cg_cast_run(cg, m->op, values, PAIR, m->from, m->to);
  LLVMValueRef vector = LLVMGetPoison(LLVMVectorType(LLVMTypeOf(values[0]), PAIR));
  for (int i = 0; i < PAIR; i++)
    vector = LLVMBuildInsertElement(cg->builder, vector, values[i], cg_i32(cg, i), "");
  return LLVMBuildBitCast(cg->builder, vector, cg->i32, "");
}

// Stores the matrices from register `reg` on, one below the other and, of four, two and two side by side.
static void store_block(const Matrices *m, int64_t reg, int count) {
  Cg *cg = m->cg;
  int64_t element = layout_element(m->fragment.layout, 0, reg), width = m->root->type.shape[1];
  LLVMValueRef registers[MOST_MATRICES], root_index[TYPE_MAX_RANK], row = cg_i32(cg, element / width);
  LLVMValueRef column = cg_i32(cg, element % width - m->slice.first[1]);
  LLVMValueRef at[] = {LLVMBuildAdd(cg->builder, m->row, row, ""),
                       LLVMBuildAdd(cg->builder, m->column, column, "")};
  // Of two matrices the upper threads' addresses are not looked at.
  cg_root_index(cg, m->memory, at, root_index);
  for (int i = 0; i < count; i++) registers[i] = pair_at(m, reg + PAIR * i);
  nvvm_stmatrix(cg, cg_address(cg, m->memory, root_index), count, registers);
}

// Whether a thread's registers from `reg` on are four matrices of one block of 16 x 16 within the slice.
static bool starts_block(const Matrices *m, int64_t reg) {
  const Layout *layout = m->fragment.layout;
  enum { NEXT = 2 * PAIR };
  if (reg + 2 * NEXT > m->fragment.registers) return false;
  return layout_element(layout, 0, reg + NEXT) == layout_element(layout, 0, reg) + SIDE &&
         cg_slice_holds(&m->fragment, &m->slice, reg + NEXT) == OWNED_BY_ALL;
}

// Warpgroups may share the columns: then a slice is held by some warps, each whole matrices of it.
static CgIf begin_held(const Matrices *m, int64_t reg) {
  LLVMValueRef at[TYPE_MAX_RANK];
  cg_fragment_coordinates(m->cg, &m->fragment, reg, at);
  return cg_begin_if(m->cg, cg_slice_take(m->cg, &m->fragment, &m->slice, reg, at));
}

bool cg_store_matrices(Cg *cg, const TirOp *op) {
  Matrices m;
  if (!begin(cg, op, &m)) return false;
  m.fragment = cg_fragment(cg, m.root->layout, &m.root->type);
  find_address(&m);
  for (int64_t reg = 0; reg < m.fragment.registers;) {
    CgOwned held = cg_slice_holds(&m.fragment, &m.slice, reg);
    int count = held == OWNED_BY_ALL && starts_block(&m, reg) ? MOST_MATRICES : MOST_MATRICES / 2;
    if (held != OWNED_BY_NONE) {
      CgIf branch = begin_held(&m, reg);
      store_block(&m, reg, count);
      cg_end_if(cg, branch);
    }
    reg += PAIR * count;
  }
  return true;
}

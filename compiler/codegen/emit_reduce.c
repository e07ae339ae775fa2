// reduce: each thread folds the registers of a row that it holds, then lanes that share the row by butterfly shuffles.
// The result is left in the registers of dst, or stored to shared memory by one lane, in the slot of its group of
// threads (passes/reductions.c decides which).
#include "codegen/emit.h"

#include "codegen/fragment.h"
#include "codegen/nvvm.h"

typedef struct {
  Cg *cg;
  const TirOp *op;
  ReduceKind kind;
  DType type;  // in which it is computed
  const TirValue *src, *dst;
  int dim;
  Layout results;  // who holds which result
  CgFragment fragment;
  LayoutAcross across;
  LLVMValueRef *folded;  // by register of `results`; NULL: no element
  int64_t *sample;       // by register of `results`: a register of src that has its coordinates
} Reduce;

static LLVMValueRef identity(const Reduce *r) {
  LLVMTypeRef type = cg_type(r->cg, r->type);
  bool is_signed = r->type == DTYPE_i32;
  switch (r->kind) {
  case REDUCE_MAX:
    if (dtype_is_float(r->type)) return LLVMConstReal(type, -__builtin_inf());
    return LLVMConstInt(type, is_signed ? 0x80000000u : 0, false);
  case REDUCE_MIN:
    if (dtype_is_float(r->type)) return LLVMConstReal(type, __builtin_inf());
    return LLVMConstInt(type, is_signed ? 0x7fffffffu : 0xffffffffu, false);
  case REDUCE_AND:
    return LLVMConstAllOnes(type);
  case REDUCE_SUM:
  case REDUCE_ABSSUM:
  case REDUCE_ABSMAX:
  case REDUCE_OR:
  case REDUCE_XOR:
    break;
  }
  return LLVMConstNull(type);
}

static LLVMValueRef extreme(const Reduce *r, bool max, LLVMValueRef x, LLVMValueRef y) {
  static const char *const names[3][2] = {
      {"llvm.minnum", "llvm.maxnum"}, {"llvm.smin", "llvm.smax"}, {"llvm.umin", "llvm.umax"}};
  int row = dtype_is_float(r->type) ? 0 : r->type == DTYPE_i32 ? 1 : 2;
  LLVMValueRef args[] = {x, y};
  return cg_intrinsic(r->cg, names[row][max], LLVMTypeOf(x), 2, args);
}

static LLVMValueRef combine(const Reduce *r, LLVMValueRef x, LLVMValueRef y) {
  LLVMBuilderRef b = r->cg->builder;
  switch (r->kind) {
  case REDUCE_SUM:
  case REDUCE_ABSSUM:
    return dtype_is_float(r->type) ? LLVMBuildFAdd(b, x, y, "") : LLVMBuildAdd(b, x, y, "");
  case REDUCE_MAX:
  case REDUCE_ABSMAX:
    return extreme(r, true, x, y);
  case REDUCE_MIN:
    return extreme(r, false, x, y);
  case REDUCE_AND:
    return LLVMBuildAnd(b, x, y, "");
  case REDUCE_OR:
    return LLVMBuildOr(b, x, y, "");
  case REDUCE_XOR:
    break;
  }
  return LLVMBuildXor(b, x, y, "");
}

static LLVMValueRef absolute(const Reduce *r, LLVMValueRef x) {
  if (dtype_is_float(r->type)) return cg_intrinsic(r->cg, "llvm.fabs", r->cg->f32, 1, &x);
  if (r->type == DTYPE_u32) return x;
  LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(x)),
               negative = LLVMBuildICmp(r->cg->builder, LLVMIntSLT, x, zero, "");
  return LLVMBuildSelect(r->cg->builder, negative, LLVMBuildNeg(r->cg->builder, x, ""), x, "");
}

static LLVMValueRef element(const Reduce *r, int64_t reg) {
  Cg *cg = r->cg;
  DType dtype = r->src->type.dtype;
  LLVMValueRef slot = cg_register(cg, r->src, cg_i32(cg, reg));
  LLVMValueRef value = LLVMBuildLoad2(cg->builder, cg_memory_type(cg, dtype), slot, "");
  value = cg_cast(cg, r->op, cg_from_memory(cg, dtype, value), dtype, r->type);
  if (r->kind == REDUCE_ABSSUM || r->kind == REDUCE_ABSMAX) value = absolute(r, value);
  if (cg_fragment_owned(&r->fragment, reg) == OWNED_BY_ALL) return value;
  LLVMValueRef at[TYPE_MAX_RANK];
  cg_fragment_coordinates(cg, &r->fragment, reg, at);
  LLVMValueRef owns = cg_fragment_owns(cg, &r->fragment, at);
  return LLVMBuildSelect(cg->builder, owns, value, identity(r), "");
}

// The number of an element among the kept dimensions.
static int64_t kept_element(const Reduce *r, int64_t element) {
  const Type *type = &r->src->type;
  int64_t inner = 1, outer = 1;
  for (int d = type->rank - 1; d > r->dim; d--) inner *= type->shape[d];
  outer = inner * type->shape[r->dim];
  return element / outer * inner + element % inner;
}

static void fold_registers(Reduce *r) {
  int64_t count = layout_registers(&r->results);
  r->folded = ARENA_ARRAY(r->cg->arena, LLVMValueRef, count);
  r->sample = ARENA_ARRAY(r->cg->arena, int64_t, count);
  for (int64_t reg = 0; reg < r->fragment.registers; reg++) {
    if (cg_fragment_owned(&r->fragment, reg) == OWNED_BY_NONE) continue;
    int64_t kept = kept_element(r, layout_element(r->src->layout, 0, reg));
    int64_t to = cg_fragment_find(&r->results, 0, kept);
    if (to < 0) BUG("a reduced row has no register");
    LLVMValueRef value = element(r, reg);
    r->folded[to] = r->folded[to] ? combine(r, r->folded[to], value) : value;
    r->sample[to] = reg;
  }
}

static LLVMValueRef shuffled(const Reduce *r, LLVMValueRef value, int mask) {
  Cg *cg = r->cg;
  LLVMTypeRef type = LLVMTypeOf(value);
  LLVMValueRef other = nvvm_shfl_bfly(cg, LLVMBuildBitCast(cg->builder, value, cg->i32, ""), mask);
  return LLVMBuildBitCast(cg->builder, other, type, "");
}

static void fold_lanes(Reduce *r) {
  for (int i = 0; i < r->across.nlane; i++)
    for (int64_t bit = 1; bit < r->across.lane[i].extent; bit *= 2)
      for (int64_t k = 0; k < layout_registers(&r->results); k++)
        if (r->folded[k])
          r->folded[k] =
              combine(r, r->folded[k], shuffled(r, r->folded[k], (int)(bit * r->across.lane[i].stride)));
}

// ---- results

static void keep_results(Reduce *r) {
  Cg *cg = r->cg;
  DType dtype = r->dst->type.dtype;
  for (int64_t k = 0; k < layout_registers(&r->results); k++) {
    LLVMValueRef slot = cg_register(cg, r->dst, cg_i32(cg, k)), value = r->folded[k];
    if (!value) continue;
    if (!r->op->attrs[REDUCE_clear]) {
      LLVMValueRef old = LLVMBuildLoad2(cg->builder, cg_memory_type(cg, dtype), slot, "");
      value = combine(r, cg_cast(cg, r->op, old, dtype, r->type), value);
    }
    LLVMBuildStore(cg->builder, cg_cast(cg, r->op, value, r->type, dtype), slot);
  }
}

static LLVMValueRef thread_digit(Cg *cg, LayoutMode mode) {
  LLVMValueRef above = LLVMBuildUDiv(cg->builder, cg->position, cg_i32(cg, mode.stride), "");
  return LLVMBuildURem(cg->builder, above, cg_i32(cg, mode.extent), "");
}

// Whether this thread stores its group's results.
static LLVMValueRef storing_thread(const Reduce *r) {
  Cg *cg = r->cg;
  LLVMValueRef stores = cg_fragment_first_holder(cg, r->src->layout);
  for (int i = 0; i < r->across.nlane; i++) {
    LLVMValueRef first =
        LLVMBuildICmp(cg->builder, LLVMIntEQ, thread_digit(cg, r->across.lane[i]), cg_i32(cg, 0), "");
    stores = stores ? LLVMBuildAnd(cg->builder, stores, first, "") : first;
  }
  return stores;
}

static LLVMValueRef slot_number(const Reduce *r) {
  Cg *cg = r->cg;
  LLVMValueRef number = cg_i32(cg, 0);
  for (int i = 0; i < r->across.nslot; i++) {
    number = LLVMBuildMul(cg->builder, number, cg_i32(cg, r->across.slot[i].extent), "");
    number = LLVMBuildAdd(cg->builder, number, thread_digit(cg, r->across.slot[i]), "");
  }
  return number;
}

static void store_results(Reduce *r) {
  Cg *cg = r->cg;
  const CgPlace *place = cg_place(cg, r->dst);
  if (r->dst->type.shape[r->dst->type.rank - 1] != r->across.slots)
    BUG("a reduction has slots for other threads");
  CgIf branch = cg_begin_if(cg, storing_thread(r));
  LLVMValueRef number = slot_number(r), index[TYPE_MAX_RANK], root_index[TYPE_MAX_RANK], at[TYPE_MAX_RANK];
  for (int64_t k = 0; k < layout_registers(&r->results); k++) {
    if (!r->folded[k]) continue;
    cg_fragment_coordinates(cg, &r->fragment, r->sample[k], at);
    // Only the first dimension is ragged; when it is the one that is folded, every row exists.
    bool all = r->dim == 0 || cg_fragment_owned(&r->fragment, r->sample[k]) == OWNED_BY_ALL;
    CgIf owned = cg_begin_if(cg, all ? NULL : cg_fragment_owns(cg, &r->fragment, at));
    int n = 0;
    for (int d = 0; d < r->src->type.rank; d++)
      if (d != r->dim) index[n++] = at[d];
    index[n] = number;
    cg_root_index(cg, place, index, root_index);
    LLVMBuildStore(cg->builder, r->folded[k], cg_address(cg, place, root_index));
    cg_end_if(cg, owned);
  }
  cg_end_if(cg, branch);
}

void cg_reduce_threads(Cg *cg, const TirOp *op) {
  Reduce r = {
      .cg = cg, .op = op, .kind = (ReduceKind)op->attrs[REDUCE_kind], .src = op->args[0], .dst = op->args[1]};
  int kept[TYPE_MAX_RANK], nkept = 0;
  r.dim = (int)op->attrs[REDUCE_dim];
  r.type = op_reduce_type(r.src->type.dtype);
  for (int d = 0; d < r.src->type.rank; d++)
    if (d != r.dim) kept[nkept++] = d;
  bool whole = r.src->op->kind == OP_alloc && r.dst->op->kind == OP_alloc && r.src->layout;
  if (!whole || !layout_across(r.src->layout, &r.src->type, r.dim, &r.across) ||
      !layout_project(r.src->layout, &r.src->type, kept, nkept, &r.results)) {
    cg_unsupported(cg, op, "the fragment has no rows that threads could share");
    return;
  }
  bool in_registers = r.dst->type.space == SPACE_FRAGMENT;
  if (in_registers && (r.across.nslot || !r.dst->layout || !layout_equal(r.dst->layout, &r.results))) {
    cg_unsupported(cg, op, "the two fragments are spread over the threads in different ways");
    return;
  }
  r.fragment = cg_fragment(cg, r.src->layout, &r.src->type);
  fold_registers(&r);
  fold_lanes(&r);
  if (in_registers)
    keep_results(&r);
  else
    store_results(&r);
}

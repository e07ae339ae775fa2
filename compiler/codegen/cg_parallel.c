// parallel: iterations spread over the threads of the CTA, each exactly once.
//
// Without fragments a rolled loop hands consecutive iterations to consecutive threads. With fragments the
// loop has a layout (on its first variable), and each thread runs the iterations whose elements it holds, one
// register at a time, unrolled, so that every fragment access is a register known here. Where several threads
// hold an element, all compute and one stores.
#include "codegen/cg.h"

#include "codegen/fragment.h"

struct CgParallel {
  const TirOp *op;
  CgFragment fragment;  // of the iteration space
  int64_t reg;
};

// ---- over threads

static void bind_variables(Cg *cg, const TirOp *op, LLVMValueRef iteration) {
  for (int i = op->nresults - 1; i > 0; i--) {
    LLVMValueRef extent = cg_value(cg, op->args[i]);
    cg_set_value(cg, op->results[i], LLVMBuildURem(cg->builder, iteration, extent, ""));
    iteration = LLVMBuildUDiv(cg->builder, iteration, extent, "");
  }
  cg_set_value(cg, op->results[0], iteration);
}

// A negative extent means no iterations, as does 0.
static LLVMValueRef count_iterations(Cg *cg, const TirOp *op) {
  LLVMValueRef total = cg_i32(cg, 1);
  for (int i = 0; i < op->nresults; i++) {
    LLVMValueRef args[] = {cg_value(cg, op->args[i]), cg_i32(cg, 0)};
    total = LLVMBuildMul(cg->builder, total, cg_intrinsic(cg, "llvm.smax", cg->i32, 2, args), "");
  }
  return total;
}

static void spread_over_threads(Cg *cg, const TirOp *op) {
  LLVMValueRef total = count_iterations(cg, op);
  CgLoop loop = cg_begin_loop(cg, cg_thread_loop(cg, total));
  bind_variables(cg, op, loop.index);
  cg_block(cg, op->bodies[0]);
  cg_end_loop(cg, loop);
}

// ---- over a fragment

static bool iteration_type(const TirOp *op, Type *out) {
  int64_t shape[TYPE_MAX_RANK];
  for (int i = 0; i < op->nresults; i++)
    if (!tir_const_int(op->args[i], &shape[i]) || shape[i] <= 0) return false;
  *out = type_buffer(DTYPE_f32, SPACE_FRAGMENT, op->nresults, shape);
  return true;
}

static void emit_iteration(Cg *cg, const TirOp *op, CgParallel *parallel) {
  CgOwned owned = cg_fragment_owned(&parallel->fragment, parallel->reg);
  if (owned == OWNED_BY_NONE) return;
  LLVMValueRef at[TYPE_MAX_RANK];
  cg_fragment_coordinates(cg, &parallel->fragment, parallel->reg, at);
  CgIf branch = cg_begin_if(cg, owned == OWNED_BY_ALL ? NULL : cg_fragment_owns(cg, &parallel->fragment, at));
  for (int i = 0; i < op->nresults; i++) cg_set_value(cg, op->results[i], at[i]);
  cg_block(cg, op->bodies[0]);
  cg_end_if(cg, branch);
}

static void follow_fragment(Cg *cg, const TirOp *op, const Layout *layout) {
  CgParallel parallel = {.op = op};
  Type type;
  if (!cg_may_repeat(op->bodies[0], layout_registers(layout))) {
    cg_unsupported(cg, op,
                   "%d iterations of it a thread, unrolled, are too long; use more threads or smaller tiles",
                   (int)layout_registers(layout));
    return;
  }
  if (!iteration_type(op, &type)) {
    cg_unsupported(cg, op, "a loop over a fragment needs constant extents of at least 1");
    return;
  }
  parallel.fragment = cg_fragment(cg, layout, &type);
  cg->parallel = &parallel;
  cg->may_store = cg_fragment_first_holder(cg, layout);
  for (; parallel.reg < parallel.fragment.registers && !cg->failed; parallel.reg++)
    emit_iteration(cg, op, &parallel);
  cg->may_store = NULL;
  cg->parallel = NULL;
}

void emit_parallel(Cg *cg, const TirOp *op) {
  cg->divergent++;
  if (op->results[0]->layout)
    follow_fragment(cg, op, op->results[0]->layout);
  else
    spread_over_threads(cg, op);
  cg->divergent--;
}

// ---- accesses

// An index is a variable of the loop (or -1) plus a constant.
typedef struct {
  int variable;
  int64_t constant;
} IndexForm;

static bool index_form(Cg *cg, const TirValue *index, IndexForm *out) {
  *out = (IndexForm){-1, 0};
  if (tir_const_int(index, &out->constant)) return true;
  if (cg->parallel && index->op == cg->parallel->op) {
    out->variable = index->index;
    return true;
  }
  return cg->scalars[index->id] && cg_const(cg->scalars[index->id], &out->constant);
}

static int64_t element_at(const Type *type, const IndexForm *forms, const int64_t *variables) {
  int64_t element = 0;
  for (int d = 0; d < type->rank; d++) {
    int64_t index = forms[d].constant + (forms[d].variable >= 0 ? variables[forms[d].variable] : 0);
    element = element * type->shape[d] + index;
  }
  return element;
}

// The values of the loop's variables in a thread; false when it has no iteration in this register.
static bool variables_of(const CgParallel *parallel, int64_t thread, int64_t *out) {
  const CgFragment *f = &parallel->fragment;
  int64_t element = layout_element(f->layout, thread, parallel->reg);
  if (element >= type_elements(&f->type)) return false;
  for (int d = f->type.rank - 1; d >= 0; d--) {
    out[d] = element % f->type.shape[d];
    element /= f->type.shape[d];
  }
  return true;
}

static int64_t register_in(const CgParallel *parallel, const TirValue *root, const IndexForm *forms,
                           int64_t thread) {
  int64_t variables[TYPE_MAX_RANK] = {0};
  if (parallel && !variables_of(parallel, thread, variables)) return -2;
  return cg_fragment_find(root->layout, thread, element_at(&root->type, forms, variables));
}

// The same register in every thread, or -1. Threads that differ in one bit suffice to tell layouts apart.
static int64_t common_register(Cg *cg, const TirValue *root, const IndexForm *forms) {
  int64_t reg = register_in(cg->parallel, root, forms, 0), threads = tir_thread_count(cg->active);
  for (int64_t t = 1; t < threads && reg >= 0; t *= 2) {
    int64_t other = register_in(cg->parallel, root, forms, t);
    if (other != reg && other != -2) return -1;
  }
  int64_t last = register_in(cg->parallel, root, forms, threads - 1);
  return last == reg || last == -2 ? reg : -1;
}

static bool same_point(const CgParallel *parallel, const TirValue *root, const IndexForm *forms) {
  if (!parallel || root->type.rank != parallel->fragment.type.rank ||
      !layout_equal(root->layout, parallel->fragment.layout))
    return false;
  for (int d = 0; d < root->type.rank; d++)
    if (forms[d].variable != d || forms[d].constant != 0) return false;
  return true;
}

static LLVMValueRef element_number(Cg *cg, const Type *type, TirValue *const *indices) {
  LLVMValueRef element = cg_i32(cg, 0);
  for (int d = 0; d < type->rank; d++) {
    element = LLVMBuildMul(cg->builder, element, cg_i32(cg, type->shape[d]), "");
    element = LLVMBuildAdd(cg->builder, element, cg_value(cg, indices[d]), "");
  }
  return element;
}

LLVMValueRef cg_fragment_slot(Cg *cg, const TirOp *op, const TirValue *buffer, TirValue *const *indices,
                              int n) {
  IndexForm forms[TYPE_MAX_RANK];
  bool simple = buffer->op->kind == OP_alloc;
  for (int d = 0; d < n && simple; d++) simple = index_form(cg, indices[d], &forms[d]);
  int64_t reg = -1;
  if (simple)
    reg = same_point(cg->parallel, buffer, forms) ? cg->parallel->reg : common_register(cg, buffer, forms);
  if (reg >= 0) return cg_register(cg, buffer, cg_i32(cg, reg));
  if (buffer->op->kind == OP_alloc && cg_fragment_replicated(buffer->layout))
    return cg_register(cg, buffer, element_number(cg, &buffer->type, indices));
  cg_unsupported(cg, op, "the thread that runs this does not hold that element of the fragment");
  return NULL;
}

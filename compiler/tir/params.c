// Pointers first, then sizes, strides, maps and scalars; each group in the order of declaration.
#include "tir/params.h"

const char *tir_entry_name(Arena *arena, const TirKernel *kernel) {
  return kernel->variant == VARIANT_GENERAL ? text_printf(arena, "%s__general", kernel->name) : kernel->name;
}

static void add(Arena *arena, TirParams *params, ParamKind kind, TirValue *value, int index) {
  TirParam param = {kind, value, index};
  vec_push(arena, params, param);
}

static void add_declared(Arena *arena, TirParams *params, const TirKernel *kernel, OpKind declares,
                         ParamKind kind) {
  for (TirOp *op = kernel->launch->first; op; op = op->next)
    if (op->kind == declares) add(arena, params, kind, op->results[0], 0);
}

static void add_strides(Arena *arena, TirParams *params, const TirKernel *kernel) {
  for (TirOp *op = kernel->launch->first; op; op = op->next) {
    if (op->kind != OP_tensor) continue;
    for (int dim = 0; dim + 1 < op->results[0]->type.rank; dim++)
      add(arena, params, PARAM_STRIDE, op->results[0], dim);
  }
}

TirParams tir_params(Arena *arena, const TirKernel *kernel) {
  TirParams params = {0};
  add_declared(arena, &params, kernel, OP_tensor, PARAM_POINTER);
  add_declared(arena, &params, kernel, OP_size, PARAM_SIZE);
  add_strides(arena, &params, kernel);
  for (int i = 0; i < kernel->maps.len; i++) add(arena, &params, PARAM_MAP, kernel->maps.data[i].tensor, i);
  add_declared(arena, &params, kernel, OP_param, PARAM_SCALAR);
  return params;
}

typedef struct {
  const TirValue *tensor;
  unsigned access;
} AccessSearch;

static bool visit_access(void *context, TirOp *op) {
  AccessSearch *search = context;
  const OpDef *def = op_def(op->kind);
  for (int i = 0; i < op->nargs && i < def->noperands; i++)
    if (def->operands[i].access && op->args[i] && op->args[i]->type.kind == TYPE_BUFFER &&
        tir_root(op->args[i]) == search->tensor)
      search->access |= def->operands[i].access & ACCUMULATES;
  return true;
}

unsigned tir_access(const TirKernel *kernel, const TirValue *tensor) {
  AccessSearch search = {tensor, 0};
  tir_walk(kernel->body, visit_access, &search);
  search.access &= READS | WRITES;
  return search.access ? search.access : READS;
}

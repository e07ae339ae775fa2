// Stores whose place is the same for all threads while the value is not: which thread's value is left is chance.
// Only where nothing but whole branches on the thread index decides who stores, so that no correct program is
// accused: a condition on the data may well leave one thread.
#include "elab/elab_internal.h"
#include "tir/roles.h"

static bool is_one_iteration(const TirOp *parallel) {
  int64_t extent;
  for (int i = 0; i < parallel->nargs; i++)
    if (!tir_const_int(parallel->args[i], &extent) || extent > 1) return false;
  return true;
}

// Whether something around the op, but roles, makes threads or iterations part.
static bool may_be_one_thread(const TirOp *op, TirThreads threads) {
  for (const TirOp *at = tir_parent(op); at; at = tir_parent(at)) {
    if (at->kind == OP_one_thread || (at->kind == OP_parallel && is_one_iteration(at))) return true;
    if (at->kind == OP_role || at->kind == OP_parallel) continue;
    for (int i = 0; i < at->nargs; i++)
      if (at->args[i] && tir_differs_among(at->args[i], threads)) return true;
  }
  return false;
}

static bool same_place(const TirOp *store, TirThreads threads) {
  for (int i = 2; i < store->nargs; i++)
    if (tir_differs_among(store->args[i], threads)) return false;
  for (const TirValue *at = store->args[0]; at->op->kind == OP_view; at = at->op->args[0])
    for (int i = 1; i < at->op->nargs; i++)
      if (tir_differs_among(at->op->args[i], threads)) return false;
  return true;
}

static bool visit_store(void *context, TirOp *op) {
  Elab *e = context;
  Space space = op->kind == OP_store ? tir_root(op->args[0])->type.space : SPACE_FRAGMENT;
  if (space == SPACE_FRAGMENT || space == SPACE_LOCAL) return true;
  TirThreads threads = tir_active_threads(op->parent);
  if (!same_place(op, threads) || !tir_differs_among(op->args[1], threads) || may_be_one_thread(op, threads))
    return true;
  bool parallel = false;
  for (const TirOp *at = tir_parent(op); at; at = tir_parent(at))
    parallel = parallel || at->kind == OP_parallel;
  diag_warning(e->ds, DIAG_same_element, op->span,
               "%s store different values to one element of '%s': which one is left is chance",
               parallel ? "iterations of Parallel" : "threads", tir_buffer_name(tir_root(op->args[0])));
  diag_hint(e->ds,
            parallel
                ? "index the element by the loop's variable, or combine the values: atomic_add, a reduction"
                : "let one thread do it (if get_thread_binding() == 0:), or combine the values: atomic_add");
  return true;
}

void elab_check_same_element(Elab *e) {
  tir_walk(e->kernel->body, visit_store, e);
}

// Needs    TIR_SYNCED: what is set up before the first use of a tensor stands at the start of the body.
// Does     Lets the kernel begin while the one before it in the stream ends: `grid_wait` goes in front of the first op that may
//          touch global memory, so that only barriers, tensor maps, TMEM and arithmetic run before it. Behind it, `grid_release`
//          lets the next kernel begin in the same way.
// Leaves   TIR_SYNCED.
// Reports  Nothing.
//
// The release stands behind the wait: what the next kernel waits for then includes the end of all kernels before this one.
// A kernel with TMEM has none, and its blocks release by ending: blocks of the next one would otherwise take an SM's TMEM
// in turns with blocks of this (PTX ISA 9.7.16.7.1: an allocation blocks until there are enough columns).
#include "passes/pass.h"

static bool is_global(const TirValue *value) {
  return value && value->type.kind == TYPE_BUFFER && value->type.space == SPACE_GLOBAL;
}

// Neither this op nor one inside touches global memory. Bodies other than what one thread sets up are not looked into: no
// work that is worth having in front stands there.
static bool stays_in_front(const TirOp *op) {
  if (op->kind == OP_print || op->kind == OP_trap) return false;
  if (op->nbodies > 0 && op->kind != OP_one_thread) return false;
  if (!op_def(op->kind)->pure)
    for (int i = 0; i < op->nargs; i++)
      if (is_global(op->args[i])) return false;
  for (int i = 0; i < op->nbodies; i++)
    for (const TirOp *inner = op->bodies[i]->first; inner; inner = inner->next)
      if (!stays_in_front(inner)) return false;
  return true;
}

bool pass_overlap(PassCx *cx, TirKernel *kernel) {
  TirOp *first = kernel->body->first;
  while (first && stays_in_front(first)) {
    if (first->kind == OP_grid_wait) return true;
    first = first->next;
  }
  if (!first) return true;
  TirBuilder b = tir_builder_before(cx->module, first);
  b.span = kernel->span;
  tir_op(&b, OP_grid_wait, 0, NULL, 0, NULL);
  if (kernel->tmem_columns == 0) tir_op(&b, OP_grid_release, 0, NULL, 0, NULL);
  return true;
}

// Fragments that are read before anything has set them: what registers then hold is anybody's guess, and no run of the
// emulator tells. Setting a part counts as setting, and so does what stands in a branch or in a loop of no round; what
// stands behind the read counts only where a loop may lead back to a read that its first round passes by. So that only
// reads are named that no launch can save.
#include "elab/elab_internal.h"

typedef VEC(const TirOp *) Ops;

typedef struct {
  Elab *e;
  Map *setters;  // root -> the Ops that set it, in order
  Map *seen;     // roots that have been set on the way, or are reported
} Unset;

static bool is_fragment(const TirValue *value) {
  return value && value->type.kind == TYPE_BUFFER && value->type.space == SPACE_FRAGMENT;
}

static unsigned access_of(const TirOp *op, int i) {
  const OpDef *def = op_def(op->kind);
  return i < def->noperands && is_fragment(op->args[i]) ? def->operands[i].access : 0;
}

// Accumulators of products are E0214's; what a reduction folds in is read.
static bool reads(const TirOp *op, int i) {
  unsigned access = access_of(op, i);
  if (access != ACCUMULATES) return access & READS;
  return op->kind == OP_reduce && !op->attrs[REDUCE_clear];
}

static bool visit_setter(void *context, TirOp *op) {
  Unset *u = context;
  for (int i = 0; i < op->nargs; i++) {
    if (!(access_of(op, i) & WRITES)) continue;
    const TirValue *root = tir_root(op->args[i]);
    Ops *setters = map_get(u->setters, root);
    if (!setters) {
      setters = ARENA_NEW(u->e->arena, Ops);
      *setters = (Ops){0};
      map_put(u->setters, root, setters);
    }
    vec_push(u->e->arena, setters, op);
  }
  return true;
}

// Whether a loop may lead from the setter back to the read without the read having been reached before.
static bool may_come_first(const TirOp *setter, const TirOp *read) {
  bool passed_by = false;
  for (const TirOp *at = tir_parent(read); at; at = tir_parent(at)) {
    if (tir_is_loop(at) && tir_inside(setter, at)) return passed_by;
    passed_by = passed_by || at->kind == OP_if || at->kind == OP_role || tir_is_loop(at);
  }
  return false;
}

static void look_at_read(Unset *u, const TirOp *op, TirValue *root) {
  const Ops *setters = map_get(u->setters, root);
  if (map_has(u->seen, root)) return;
  for (int i = 0; setters && i < setters->len; i++)
    if (may_come_first(setters->data[i], op)) return;
  map_put(u->seen, root, root);
  const char *name = tir_buffer_name(root);
  diag_warning(
      u->e->ds, DIAG_unset_fragment, op->span,
      "fragment '%s' is read here, and nothing has set it before: it holds what was left in registers", name);
  diag_note(u->e->ds, root->op->span, "'%s' is allocated here", name);
  if (setters) diag_note(u->e->ds, setters->data[0]->span, "it is first set here");
  diag_hint(u->e->ds, "clear(%s), fill(%s, …) or a copy into it", name, name);
}

static bool visit_op(void *context, TirOp *op) {
  Unset *u = context;
  for (int i = 0; i < op->nargs; i++)
    if (reads(op, i)) look_at_read(u, op, tir_root(op->args[i]));
  for (int i = 0; i < op->nargs; i++) {
    TirValue *root = access_of(op, i) & WRITES ? tir_root(op->args[i]) : NULL;
    if (root) map_put(u->seen, root, root);
  }
  return true;
}

void elab_check_unset(Elab *e) {
  Unset unset = {e, map_new(e->arena), map_new(e->arena)};
  tir_walk(e->kernel->body, visit_setter, &unset);
  tir_walk(e->kernel->body, visit_op, &unset);
}

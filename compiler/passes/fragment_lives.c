// The uses of a fragment that all lie in one block run in order. Where one of them sets all of the fragment, whatever
// was in it is forgotten: from there on it is another fragment. The first must set all of it too, or something would
// be carried from one round of a loop to the next.
#include "passes/fragment_lives.h"

#include "passes/fragment_layouts.h"

typedef struct {
  PassCx *cx;
  TirOpList ops, uses;  // all of the kernel; those of the fragment
  TirValue *fragment;
  const TirBlock *block;  // that the uses lie in
} Lives;

static bool uses_value(const TirOp *op, const TirValue *value) {
  for (int i = 0; i < op->nargs; i++)
    if (op->args[i] == value) return true;
  return false;
}

// The op of the block that this one is or lies in; NULL: none.
static TirOp *op_of_block(TirOp *op, const TirBlock *block) {
  while (op && op->parent != block) op = tir_parent(op);
  return op;
}

static bool holds_all(const Lives *l, const TirBlock *block) {
  for (int i = 0; i < l->uses.len; i++)
    if (!op_of_block(l->uses.data[i], block)) return false;
  return true;
}

// False: no uses, or uses by views, which may stand anywhere.
static bool find_uses(Lives *l) {
  l->uses.len = 0;
  for (int i = 0; i < l->ops.len; i++) {
    if (!uses_value(l->ops.data[i], l->fragment)) continue;
    if (l->ops.data[i]->kind == OP_view) return false;
    vec_push(l->cx->scratch, &l->uses, l->ops.data[i]);
  }
  if (l->uses.len == 0) return false;
  TirOp *parallel = tile_outermost(l->uses.data[0], OP_parallel);
  l->block = parallel ? parallel->parent : l->uses.data[0]->parent;
  while (!holds_all(l, l->block)) {
    if (!l->block->owner) return false;
    l->block = l->block->owner->parent;
  }
  return true;
}

static bool tile_op_sets(const TirOp *op, const TirValue *fragment) {
  bool sets = false;
  for (int i = 0; i < op->nargs; i++) {
    if (op->args[i] != fragment) continue;
    if (tile_access(op, i) != WRITES) return false;
    sets = true;
  }
  return sets && tile_is(op);
}

static bool same_element(const TirOp *load, const TirOp *store) {
  for (int d = 0; d < load->args[0]->type.rank; d++)
    if (load->args[1 + d] != store->args[2 + d]) return false;
  return true;
}

// Whether every element is stored, and loaded only behind its store.
static bool loop_sets(const Lives *l, const TirOp *parallel) {
  const TirOp *store = NULL;
  for (int i = 0; i < l->uses.len; i++) {
    const TirOp *op = l->uses.data[i];
    if (!tir_inside(op, parallel)) continue;
    if (op->kind == OP_load) {
      if (!store || !same_element(op, store)) return false;
    } else if (op->kind != OP_store) {
      return false;
    } else if (!store && op->parent == parallel->bodies[0] &&
               fragment_access(parallel, op).kind != ACCESS_ANY) {
      store = op;
    }
  }
  return store != NULL;
}

static bool sets_all(const Lives *l, const TirOp *op) {
  return op->kind == OP_parallel ? loop_sets(l, op) : tile_op_sets(op, l->fragment);
}

static TirValue *another(const Lives *l, TirOp *at) {
  TirBuilder b = tir_builder_before(l->cx->module, at);
  b.span = l->fragment->op->span;
  TirValue *next = tir_alloc(&b, l->fragment->op->name, l->fragment->type);
  next->name = l->fragment->name;
  return next;
}

static void split(Lives *l) {
  const TirOp *last = op_of_block(l->uses.data[0], l->block);
  TirValue *now = l->fragment;
  if (!sets_all(l, last)) return;
  for (int i = 0; i < l->uses.len; i++) {
    TirOp *use = l->uses.data[i], *at = op_of_block(use, l->block);
    if (at != last && sets_all(l, at)) now = another(l, at);
    last = at;
    for (int a = 0; a < use->nargs; a++)
      if (use->args[a] == l->fragment && now != l->fragment) use->args[a] = now;
  }
}

void split_fragments(PassCx *cx, TirKernel *kernel) {
  Lives lives = {.cx = cx, .ops = tile_collect(cx->scratch, kernel->body)};
  for (int i = 0; i < lives.ops.len; i++) {
    const TirOp *op = lives.ops.data[i];
    if (op->kind != OP_alloc || !tile_is_fragment(op->results[0])) continue;
    lives.fragment = op->results[0];
    if (find_uses(&lives)) split(&lives);
  }
}

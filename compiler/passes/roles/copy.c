#include "passes/roles/copy.h"

TirValue *copy_value(const RoleCopy *c, TirValue *value) {
  TirValue *found = value ? map_get(c->now, value) : NULL;
  return found ? found : value;
}

TirOp *copy_op(RoleCopy *c, const TirOp *op, bool tokens) {
  TirValue *args[OP_MAX_OPERANDS + TYPE_MAX_RANK];
  Type types[OP_MAX_RESULTS];
  bool drops = op->nresults == 1 && op->results[0]->type.kind == TYPE_TOKEN && !tokens;
  int nresults = drops ? 0 : op->nresults;
  for (int i = 0; i < op->nargs; i++) args[i] = copy_value(c, op->args[i]);
  for (int i = 0; i < nresults; i++) types[i] = op->results[i]->type;
  c->b.span = op->span;
  TirOp *copy = tir_op(&c->b, op->kind, op->nargs, args, nresults, types);
  for (int i = 0; i < OP_MAX_ATTRS; i++) copy->attrs[i] = op->attrs[i];
  copy->name = op->name;
  copy->nlist = op->nlist;
  copy->list = op->list;
  for (int i = 0; i < nresults; i++) {
    copy->results[i]->name = op->results[i]->name;
    copy->results[i]->layout = op->results[i]->layout;
    map_put(c->now, op->results[i], copy->results[i]);
  }
  return copy;
}

// Whether the role has what the op computes with: another role's loads and cells it has not.
static bool has_operands(const RoleCopy *c, const TirOp *op) {
  for (int i = 0; i < op->nargs; i++) {
    const TirValue *arg = op->args[i];
    bool there = !arg || map_has(c->now, arg) || tir_in_launch(arg) || arg->op->kind == OP_alloc;
    if (!there) return false;
  }
  return true;
}

typedef void (*CopyBody)(RoleCopy *copy, TirBlock *block);

static void copy_bodies(RoleCopy *c, const TirOp *op, TirOp *copy, CopyBody copy_body) {
  TirBuilder outer = c->b;
  for (int i = 0; i < op->nbodies; i++) {
    c->b = tir_builder_at_end(c->plan->cx->module, copy->bodies[i], op->span);
    copy_body(c, op->bodies[i]);
  }
  c->b = outer;
}

// All ops of a block that belongs to the role as a whole.
static void copy_whole(RoleCopy *c, TirBlock *block) {
  for (TirOp *op = block->first; op; op = op->next)
    if (op->kind != OP_alloc) copy_bodies(c, op, copy_op(c, op, true), copy_whole);
}

static void copy_control(RoleCopy *c, TirOp *op) {
  TirOp *copy = copy_op(c, op, false);
  if (plan_ring_of_loop(c->plan, op)) copy->attrs[FOR_kind] = LOOP_SERIAL;
  copy_bodies(c, op, copy, copy_block);
}

static void copy_work(RoleCopy *c, TirOp *op) {
  if (c->role == ROLE_loader)
    copy_load(c, op);
  else if (plan_is_product(op))
    copy_product(c, op);
  else
    copy_bodies(c, op, copy_op(c, op, true), copy_whole);
}

static void copy_one(RoleCopy *c, TirOp *op) {
  if (op_def(op->kind)->pure) {
    if (has_operands(c, op)) copy_op(c, op, false);
  } else if (op->kind == OP_wait) {
    if (map_has(c->now, op->args[0])) copy_op(c, op, false);
  } else if (plan_has(c->plan, op, c->role)) {
    hand_in(c, op);
    if (plan_is_work(op))
      copy_work(c, op);
    else
      copy_control(c, op);
  }
}

void copy_block(RoleCopy *c, TirBlock *block) {
  turn_begins(c, block);
  for (TirOp *op = block->first; op; op = op->next) {
    copy_one(c, op);
    // An asynchronous op's wait belongs to it.
    const TirOp *done = op->kind == OP_wait ? op->args[0]->op : op;
    bool waits = op->next && op->next->kind == OP_wait && op->nresults && op->next->args[0] == op->results[0];
    if (!waits && !op_def(done->kind)->pure && plan_has(c->plan, done, c->role)) hand_on(c, done);
  }
  turn_ends(c, block);
}

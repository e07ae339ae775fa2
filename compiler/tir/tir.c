// Making, linking, copying and walking ops. A block is a doubly linked list; an op that is linked knows its
// block, a block its owner, so that every question about nesting is a walk upwards.
#include "tir/tir.h"

#include <assert.h>
#include <string.h>

TirModule *tir_module_new(Arena *arena, Interner *names) {
  TirModule *module = ARENA_NEW(arena, TirModule);
  module->arena = arena;
  module->names = names;
  return module;
}

TirBlock *tir_block_new(TirModule *module, TirKernel *kernel, TirOp *owner) {
  TirBlock *block = ARENA_NEW(module->arena, TirBlock);
  block->owner = owner;
  block->kernel = kernel;
  return block;
}

static TirKernel *new_kernel(TirModule *module, Name name, Span span) {
  TirKernel *kernel = ARENA_NEW(module->arena, TirKernel);
  kernel->name = name;
  kernel->span = span;
  kernel->launch = tir_block_new(module, kernel, NULL);
  kernel->body = tir_block_new(module, kernel, NULL);
  vec_push(module->arena, &module->kernels, kernel);
  return kernel;
}

TirKernel *tir_kernel_new(TirModule *module, Name name, Span span) {
  return new_kernel(module, name, span);
}

TirOp *tir_op_new(TirModule *module, TirKernel *kernel, OpKind kind, Span span, int nargs, int nresults) {
  const OpDef *def = op_def(kind);
  Arena *arena = module->arena;
  TirOp *op = ARENA_NEW(arena, TirOp);
  op->kind = kind;
  op->span = span;
  op->nargs = nargs;
  op->nresults = nresults;
  op->nbodies = def->nbodies;
  op->args = ARENA_ARRAY(arena, TirValue *, nargs);
  op->results = ARENA_ARRAY(arena, TirValue *, nresults);
  op->bodies = ARENA_ARRAY(arena, TirBlock *, def->nbodies);
  for (int i = 0; i < OP_MAX_ATTRS && def->attrs[i].name; i++) op->attrs[i] = def->attrs[i].initial;
  for (int i = 0; i < def->nbodies; i++) op->bodies[i] = tir_block_new(module, kernel, op);
  for (int i = 0; i < nresults; i++) {
    TirValue *value = op->results[i] = ARENA_NEW(arena, TirValue);
    value->op = op;
    value->index = i;
    value->id = kernel->next_id++;
  }
  return op;
}

// ---- linking

static void link_between(TirBlock *block, TirOp *prev, TirOp *op, TirOp *next) {
  assert(!op->parent);
  op->parent = block;
  op->prev = prev;
  op->next = next;
  *(prev ? &prev->next : &block->first) = op;
  *(next ? &next->prev : &block->last) = op;
}

void tir_append(TirBlock *block, TirOp *op) {
  link_between(block, block->last, op, NULL);
}

void tir_insert_before(TirOp *at, TirOp *op) {
  assert(at->parent);
  link_between(at->parent, at->prev, op, at);
}

void tir_insert_after(TirOp *at, TirOp *op) {
  assert(at->parent);
  link_between(at->parent, at, op, at->next);
}

void tir_remove(TirOp *op) {
  TirBlock *block = op->parent;
  assert(block);
  *(op->prev ? &op->prev->next : &block->first) = op->next;
  *(op->next ? &op->next->prev : &block->last) = op->prev;
  op->parent = NULL;
  op->prev = op->next = NULL;
}

// ---- copying

typedef struct {
  TirModule *module;
  TirKernel *to;
  TirValue **values;  // by id in the kernel that is copied
} Cloner;

static void clone_block(Cloner *cloner, const TirBlock *from, TirBlock *to);

static void clone_value(Cloner *cloner, const TirValue *from, TirValue *to) {
  to->type = from->type;
  to->name = from->name;
  if (from->layout) {
    to->layout = ARENA_NEW(cloner->module->arena, Layout);
    *to->layout = *from->layout;
  }
  cloner->values[from->id] = to;
}

static void clone_op(Cloner *cloner, const TirOp *from, TirBlock *block) {
  TirOp *op = tir_op_new(cloner->module, cloner->to, from->kind, from->span, from->nargs, from->nresults);
  for (int i = 0; i < from->nargs; i++)
    op->args[i] = from->args[i] ? cloner->values[from->args[i]->id] : NULL;
  for (int i = 0; i < from->nresults; i++) clone_value(cloner, from->results[i], op->results[i]);
  memcpy(op->attrs, from->attrs, sizeof op->attrs);
  op->name = from->name;
  op->nlist = from->nlist;
  op->list = ARENA_ARRAY(cloner->module->arena, int64_t, from->nlist);
  for (int i = 0; i < from->nlist; i++) op->list[i] = from->list[i];
  tir_append(block, op);
  for (int i = 0; i < from->nbodies; i++) clone_block(cloner, from->bodies[i], op->bodies[i]);
}

static void clone_block(Cloner *cloner, const TirBlock *from, TirBlock *to) {
  for (const TirOp *op = from->first; op; op = op->next) clone_op(cloner, op, to);
}

TirKernel *tir_kernel_clone(TirModule *module, const TirKernel *kernel) {
  TirKernel *copy = new_kernel(module, kernel->name, kernel->span);
  Cloner cloner = {module, copy, ARENA_ARRAY(module->arena, TirValue *, kernel->next_id)};
  clone_block(&cloner, kernel->launch, copy->launch);
  clone_block(&cloner, kernel->body, copy->body);
  copy->variant = kernel->variant;
  copy->threads = kernel->threads;
  copy->block_order = kernel->block_order;
  copy->panel = kernel->panel;
  memcpy(copy->choices, kernel->choices, sizeof copy->choices);
  copy->shared_bytes = kernel->shared_bytes;
  copy->tmem_columns = kernel->tmem_columns;
  copy->facts = kernel->facts;
  for (int i = 0; i < kernel->maps.len; i++) {
    TirMap map = kernel->maps.data[i];
    map.tensor = cloner.values[map.tensor->id];
    vec_push(module->arena, &copy->maps, map);
  }
  for (int i = 0; i < kernel->guards.len; i++) {
    TirGuard guard = kernel->guards.data[i];
    guard.tensor = cloner.values[guard.tensor->id];
    vec_push(module->arena, &copy->guards, guard);
  }
  return copy;
}

// ---- walking

bool tir_walk(TirBlock *block, TirVisitor visitor, void *context) {
  for (TirOp *op = block->first, *next; op; op = next) {
    next = op->next;
    if (!visitor(context, op)) return false;
    if (op->parent != block) continue;  // removed
    for (int i = 0; i < op->nbodies; i++)
      if (!tir_walk(op->bodies[i], visitor, context)) return false;
    next = op->next;
  }
  return true;
}

typedef struct {
  const TirValue *old;
  TirValue *value;
} Replacement;

static bool replace_in_op(void *context, TirOp *op) {
  const Replacement *replacement = context;
  for (int i = 0; i < op->nargs; i++)
    if (op->args[i] == replacement->old) op->args[i] = replacement->value;
  return true;
}

bool tir_may_overlap(const TirKernel *kernel) {
  for (const TirOp *op = kernel->body->first; op; op = op->next)
    if (op->kind == OP_grid_wait) return true;
  return false;
}

void tir_replace_uses(TirKernel *kernel, const TirValue *old, TirValue *value) {
  Replacement replacement = {old, value};
  tir_walk(kernel->launch, replace_in_op, &replacement);
  tir_walk(kernel->body, replace_in_op, &replacement);
  for (int i = 0; i < kernel->maps.len; i++)
    if (kernel->maps.data[i].tensor == old) kernel->maps.data[i].tensor = value;
  for (int i = 0; i < kernel->guards.len; i++)
    if (kernel->guards.data[i].tensor == old) kernel->guards.data[i].tensor = value;
}

// ---- questions

TirValue *tir_root(TirValue *buffer) {
  while (buffer->op->kind == OP_view || buffer->op->kind == OP_reshape) buffer = buffer->op->args[0];
  return buffer;
}

Layout *tir_layout(const TirValue *buffer) {
  while (buffer->op->kind == OP_view) buffer = buffer->op->args[0];
  return buffer->layout;
}

const char *tir_buffer_name(const TirValue *buffer) {
  while (buffer->op->kind == OP_view || (buffer->op->kind == OP_reshape && !buffer->name))
    buffer = buffer->op->args[0];
  if (buffer->op->name) return buffer->op->name;
  return buffer->name ? buffer->name : "a buffer";
}

bool tir_const_int(const TirValue *value, int64_t *out) {
  if (value->op->kind != OP_const || dtype_is_float(value->type.dtype)) return false;
  *out = value->op->attrs[CONST_bits];
  return true;
}

bool tir_const_float(const TirValue *value, double *out) {
  if (value->op->kind != OP_const || !dtype_is_float(value->type.dtype)) return false;
  memcpy(out, &value->op->attrs[CONST_bits], sizeof *out);
  return true;
}

bool tir_in_launch(const TirValue *value) {
  const TirBlock *block = value->op->parent;
  return block && block == block->kernel->launch;
}

bool tir_asks_for(const TirKernel *kernel, ChoiceKind choice) {
  return kernel->choices[choice].given && kernel->choices[choice].value;
}

bool tir_forbids(const TirKernel *kernel, ChoiceKind choice) {
  return kernel->choices[choice].given && !kernel->choices[choice].value;
}

TirOp *tir_parent(const TirOp *op) {
  return op->parent ? op->parent->owner : NULL;
}

bool tir_is_loop(const TirOp *op) {
  return op->kind == OP_for || op->kind == OP_while;
}

bool tir_inside(const TirOp *op, const TirOp *ancestor) {
  for (const TirOp *at = tir_parent(op); at; at = tir_parent(at))
    if (at == ancestor) return true;
  return false;
}

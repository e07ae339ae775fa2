// Atomics: on an element of global or shared memory by the thread that runs them, and atomic_add of a whole tile
// by all threads together.
#include "elab/elab_internal.h"

#include <string.h>

enum { ARG_dst, ARG_value, ARG_order, ARG_prev };

static bool given(const Value *value) {
  return value->kind != VALUE_ABSENT && value->kind != VALUE_NONE;
}

static bool read_order(Elab *e, const Call *call, int arg, MemoryOrder otherwise, int64_t *out) {
  Str text;
  *out = otherwise;
  if (!given(&call->args[arg])) return true;
  if (!need_string(e, &call->args[arg], call->spans[arg], "memory_order", &text)) return false;
  const char *word = text_copy(e->arena, text.data, text.len);
  if (strcmp(word, "consume") == 0) word = "acquire";
  for (int i = 0; i < ORDER_COUNT; i++) {
    *out = i;
    if (strcmp(word, op_order_names[i]) == 0) return true;
  }
  diag_error(e->ds, DIAG_value_kind, call->spans[arg],
             "memory_order is relaxed, acquire, release, acq_rel or seq_cst, not '%s'", word);
  const char *near = text_nearest(word, op_order_names, ORDER_COUNT);
  if (near) diag_hint(e->ds, "did you mean \"%s\"?", near);
  return false;
}

static bool is_tile(const Value *value) {
  return value->kind == VALUE_BUFFER || (value->kind == VALUE_TILE && !value->tile->points_only);
}

// The element that argument 0 names; NULL: reported.
static const TileRef *read_element(Elab *e, const Call *call) {
  const Value *value = &call->args[ARG_dst];
  if (value_is_poison(value)) return NULL;
  if (value->kind == VALUE_TILE && value->tile->points_only) return value->tile;
  diag_error(e->ds, DIAG_value_kind, call->spans[ARG_dst], "'%s' takes one element of a buffer here, not %s",
             call->builtin->name, value_describe(e->arena, value));
  if (value->kind == VALUE_BUFFER) {
    const Type *type = &value->staged->type;
    diag_hint(e->ds, "index it: %s[%s]", tir_buffer_name(value->staged), type->rank == 1 ? "i" : "i, j");
  }
  return NULL;
}

// The op on an element; `value` NULL: none is written. NULL: reported.
static TirOp *element_op(Elab *e, const Call *call, OpKind kind, TirValue *value, const int64_t *attrs) {
  const TileRef *tile = call->args[ARG_dst].tile;
  TirValue *args[2 + TYPE_MAX_RANK] = {tile->buffer, value};
  int first = value ? 2 : 1, nargs = first + tile->rank;
  OpCall check = {.kind = kind, .nargs = nargs, .attrs = attrs, .span = call->span, .ds = e->ds};
  for (int i = 0; i < tile->rank; i++) args[first + i] = tile->starts[i];
  for (int i = 0; i < nargs && i < OP_MAX_OPERANDS; i++) {
    check.types[i] = &args[i]->type;
    check.spans[i] = i < 2 ? call->spans[i] : call->span;
  }
  check.names[0] = tir_buffer_name(tile->buffer);
  if (!op_check(&check)) return NULL;
  Type type = type_scalar(tile->buffer->type.dtype);
  e->b.span = call->span;
  TirOp *op = tir_op(&e->b, kind, nargs, args, op_def(kind)->nresults, &type);
  memcpy(op->attrs, attrs, OP_MAX_ATTRS * sizeof *attrs);
  if (value) map_put(e->initialized, tile->buffer, tile->buffer);
  return op;
}

static TirValue *element_value(Elab *e, const Call *call) {
  return staged_as(e, &call->args[ARG_value], call->args[ARG_dst].tile->buffer->type.dtype,
                   call->spans[ARG_value]);
}

static Value change(Elab *e, const Call *call, AtomicOp op) {
  int64_t attrs[OP_MAX_ATTRS] = {[ATOMIC_op] = op};
  bool prev = false;
  if (!elab_placed(e, call->span, call->builtin->name, false) ||
      !read_order(e, call, ARG_order, ORDER_RELAXED, &attrs[ATOMIC_order]) || !read_element(e, call))
    return value_poison();
  if (given(&call->args[ARG_prev]) &&
      !need_bool(e, &call->args[ARG_prev], call->spans[ARG_prev], "return_prev", &prev))
    return value_poison();
  attrs[ATOMIC_prev] = prev;
  TirValue *value = element_value(e, call);
  TirOp *made = value ? element_op(e, call, OP_atomic, value, attrs) : NULL;
  if (!made) return value_poison();
  return prev ? value_staged(made->results[0]) : value_none();
}

// What does not go with a whole tile.
static bool check_tile_form(Elab *e, const Call *call) {
  int64_t order;
  bool prev = false;
  if (!read_order(e, call, ARG_order, ORDER_RELAXED, &order)) return false;
  if (given(&call->args[ARG_prev]) &&
      !need_bool(e, &call->args[ARG_prev], call->spans[ARG_prev], "return_prev", &prev))
    return false;
  if (order == ORDER_RELAXED && !prev) return true;
  int arg = prev ? ARG_prev : ARG_order;
  diag_error(e->ds, DIAG_value_kind, call->spans[arg],
             "a whole tile is added element by element, in no order, and gives nothing back");
  diag_hint(e->ds, "leave out %s, or add single elements in a Parallel loop",
            prev ? "return_prev" : "memory_order");
  return false;
}

static Value add_tile(Elab *e, const Call *call) {
  TirValue *args[2] = {0};
  int64_t attrs[OP_MAX_ATTRS] = {[ATOMIC_ADD_map] = -1};
  if (!elab_placed(e, call->span, "atomic_add", true) || !check_tile_form(e, call)) return value_poison();
  if (!tile_copy_operands(e, &call->args[ARG_value], call->spans[ARG_value], &call->args[ARG_dst],
                          call->spans[ARG_dst], &args[0], &args[1]))
    return value_poison();
  OpCall check = {.kind = OP_atomic_add, .nargs = 2, .attrs = attrs, .span = call->span, .ds = e->ds};
  for (int i = 0; i < 2; i++) {
    check.types[i] = &args[i]->type;
    check.names[i] = tir_buffer_name(args[i]);
    check.spans[i] = call->spans[i == 0 ? ARG_value : ARG_dst];
  }
  if (!op_check(&check)) return value_poison();
  TirOp *op = staged_effect(e, OP_atomic_add, 2, args, call->span);
  memcpy(op->attrs, attrs, sizeof attrs);
  TirValue *root = tir_root(args[1]);
  map_put(e->initialized, root, root);
  return value_none();
}

static Value run_atomic_add(Elab *e, const Call *call) {
  return is_tile(&call->args[ARG_value]) ? add_tile(e, call) : change(e, call, ATOMIC_ADD);
}
static Value run_atomic_max(Elab *e, const Call *call) {
  return change(e, call, ATOMIC_MAX);
}
static Value run_atomic_min(Elab *e, const Call *call) {
  return change(e, call, ATOMIC_MIN);
}

static Value run_atomic_load(Elab *e, const Call *call) {
  int64_t attrs[OP_MAX_ATTRS] = {0};
  if (!elab_placed(e, call->span, "atomic_load", false) ||
      !read_order(e, call, 1, ORDER_SEQ_CST, &attrs[ATOMIC_order]) || !read_element(e, call))
    return value_poison();
  TirOp *op = element_op(e, call, OP_atomic_load, NULL, attrs);
  return op ? value_staged(op->results[0]) : value_poison();
}

static Value run_atomic_store(Elab *e, const Call *call) {
  int64_t attrs[OP_MAX_ATTRS] = {0};
  if (!elab_placed(e, call->span, "atomic_store", false) ||
      !read_order(e, call, ARG_order, ORDER_SEQ_CST, &attrs[ATOMIC_order]) || !read_element(e, call))
    return value_poison();
  TirValue *value = element_value(e, call);
  if (value) element_op(e, call, OP_atomic_store, value, attrs);
  return value_none();
}

const Builtin builtins_atomic[] = {
    {"atomic_add", "dst value memory_order? return_prev? use_tma~", run_atomic_add},
    {"atomic_max", "dst value memory_order? return_prev?", run_atomic_max},
    {"atomic_min", "dst value memory_order? return_prev?", run_atomic_min},
    {"atomic_load", "src memory_order?", run_atomic_load},
    {"atomic_store", "dst src|value memory_order?", run_atomic_store},
    {NULL, NULL, NULL},
};

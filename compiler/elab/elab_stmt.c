// Statements: assignments, and what is neither a branch (elab_branch.c) nor a loop (elab_control.c).
#include "elab/elab_internal.h"

#include <inttypes.h>

#include "syntax/syntax.h"

// ---- assignment

static const char *region_name(const Region *region) {
  switch (region->kind) {
  case REGION_LOOP:
    return "loop";
  case REGION_BRANCH:
  case REGION_REST:
    return "branch";
  case REGION_PARALLEL:
    return "Parallel loop";
  case REGION_HOST:
  case REGION_KERNEL:
    break;
  }
  return "kernel body";
}

// The innermost loop or branch between the binding and here.
static const Region *outermost_inside(const Region *inner, const Region *binding) {
  while (inner->parent && inner->parent != binding && inner->parent->kind != REGION_KERNEL)
    inner = inner->parent;
  return inner;
}

static void report_staged_assignment(Elab *e, Name name, const Binding *binding, Span span) {
  const Region *region = outermost_inside(e->region, binding->region);
  diag_error(e->ds, DIAG_staged_assignment, span,
             "'%s' is a value, bound outside this %s: assigning it here has no meaning on the device", name,
             region_name(region));
  diag_note(e->ds, binding->span, "'%s' is bound here", name);
  diag_note(e->ds, region->span, "the %s is here", region_name(region));
  diag_hint(e->ds, "make it a variable before the %s: %s = alloc_var(dtype, init=…)", region_name(region),
            name);
}

static void set_cell(Elab *e, TirValue *cell, const Value *value, Span span) {
  TirValue *scalar = staged_as(e, value, cell->type.dtype, e->assigned);
  if (!scalar) return;
  e->b.span = span;
  tir_set(&e->b, cell, scalar);
}

// What follows a return under a condition is as deep as the function's body: nothing comes after it.
static const Region *without_rest(const Region *region) {
  while (region->kind == REGION_REST) region = region->parent;
  return region;
}

static bool is_deeper(Elab *e, const Binding *binding) {
  const Region *region = without_rest(e->region);
  return binding->region && without_rest(binding->region) != region &&
         region_encloses(binding->region, region) && region->kind != REGION_KERNEL;
}

static void name_value(const Value *value, Name name) {
  bool named = value->kind == VALUE_STAGED || value->kind == VALUE_CELL || value->kind == VALUE_BUFFER;
  if (named && !value->staged->name && value->staged->op->kind != OP_const) value->staged->name = name;
}

static void assign_name(Elab *e, Name name, const Value *value, Span span) {
  Binding *binding = scope_own(e->scope, name);
  bool visible =
      binding && !binding->lazy && (!binding->region || region_encloses(binding->region, e->region));
  if (visible && binding->value.kind == VALUE_CELL && value->kind != VALUE_CELL) {
    if (!value_is_poison(value)) set_cell(e, binding->value.staged, value, span);
    return;
  }
  if (visible && is_deeper(e, binding) && !value_is_poison(&binding->value)) {
    report_staged_assignment(e, name, binding, span);
    return;
  }
  Value bound = *value;
  if (value->kind == VALUE_TENSOR && value->tensor->is_output)
    bound = launch_declare_tensor(e, name, value->tensor, span);
  name_value(&bound, name);
  scope_bind(e->scope, name, bound, e->region, span);
}

static int starred_at(const Expr *target) {
  for (int i = 0; i < target->elements.count; i++)
    if (target->elements.items[i]->kind == EXPR_STARRED) return i;
  return -1;
}

// Whether so many values can be unpacked into the target; reports.
static bool fits_target(Elab *e, const Expr *target, int count, int starred) {
  int names = target->elements.count - (starred >= 0);
  for (int i = starred + 1; i < target->elements.count && starred >= 0; i++) {
    if (target->elements.items[i]->kind != EXPR_STARRED) continue;
    diag_error(e->ds, DIAG_value_kind, target->elements.items[i]->span, "a target has at most one '*'");
    return false;
  }
  if (starred >= 0 ? count >= names : count == names) return true;
  diag_error(e->ds, DIAG_value_kind, target->span, "%s%d names for %d values",
             starred >= 0 ? "at least " : "", names, count);
  return false;
}

// a, *b, c = …: the name with the star gets the list of those that the others leave.
static void assign_items(Elab *e, const Expr *target, const Value *value) {
  const Value *items = NULL;
  int count = 0, starred = starred_at(target), next = 0;
  bool ok = eval_iterable(e, value, target->span, &items, &count) && fits_target(e, target, count, starred);
  int rest = count - (target->elements.count - 1);
  for (int i = 0; i < target->elements.count; i++) {
    const Expr *element = target->elements.items[i];
    Value item = value_poison();
    if (ok && i == starred)
      item = value_sequence(e->arena, VALUE_LIST, e->region, &items[next], rest);
    else if (ok)
      item = items[next];
    next += i == starred ? rest : 1;
    assign_target(e, element->kind == EXPR_STARRED ? element->inner : element, &item);
  }
}

static bool may_change(Elab *e, const Region *made_in, Span span, const char *what) {
  if (made_in == e->region) return true;
  diag_error(e->ds, DIAG_staged_assignment, span,
             "this %s was made outside this %s: changing it here has no meaning on the device", what,
             region_name(e->region));
  return false;
}

static void set_item(Elab *e, const Value *base, const Expr *target, const Value *value) {
  const Expr *first = target->subscript.indices.items[0];
  Value index = first->kind == EXPR_SLICE ? value_poison() : eval(e, first);
  if (first->kind == EXPR_SLICE) elab_not_supported(e, target->span, "assigning to a slice of a list");
  if (value_is_poison(&index)) return;
  if (base->kind == VALUE_DICT) {
    if (!may_change(e, base->dict->region, target->span, "dict")) return;
    vec_push(e->arena, &base->dict->keys, index);
    vec_push(e->arena, &base->dict->values, *value);
    return;
  }
  if (base->kind != VALUE_LIST) {
    diag_error(e->ds, DIAG_value_kind, target->span, "items of %s cannot be assigned",
               value_describe(e->arena, base));
    return;
  }
  Value old = eval_item(e, base, &index, target->span, first->span);
  if (value_is_poison(&old)) return;
  if (old.kind == VALUE_CELL && value->kind != VALUE_CELL) {
    set_cell(e, old.staged, value, target->span);
    return;
  }
  int64_t at;
  if (!may_change(e, base->sequence->region, target->span, "list")) return;
  if (!need_int(e, &index, first->span, "the index of a list", &at)) return;
  base->sequence->items.data[at < 0 ? at + base->sequence->items.len : at] = *value;
}

// What a subscript target names: a variable x[0], an element of a buffer, or an item of a list or dict.
typedef struct {
  enum { PLACE_NONE, PLACE_CELL, PLACE_ELEMENT, PLACE_ITEM } kind;
  Value base;  // PLACE_CELL PLACE_ITEM
  Value tile;  // PLACE_ELEMENT
} SubscriptPlace;

static SubscriptPlace find_place(Elab *e, const Expr *target) {
  SubscriptPlace place = {.base = eval_raw(e, target->subscript.base)};
  if (value_is_poison(&place.base)) return place;
  if (place.base.kind == VALUE_CELL) {
    place.kind = PLACE_CELL;
  } else if (place.base.kind == VALUE_BUFFER || place.base.kind == VALUE_TILE) {
    place.tile = tile_subscript(e, &place.base, target);
    if (value_is_poison(&place.tile)) return place;
    if (place.tile.tile->points_only) {
      place.kind = PLACE_ELEMENT;
    } else {
      diag_error(e->ds, DIAG_value_kind, target->span, "only single elements can be assigned, not %s",
                 value_describe(e->arena, &place.tile));
      diag_hint(e->ds, "use copy(source, %s) or fill(%s, value)", elab_text(e, target->span),
                elab_text(e, target->span));
    }
  } else {
    place.kind = PLACE_ITEM;
  }
  return place;
}

static void assign_place(Elab *e, const SubscriptPlace *place, const Expr *target, const Value *value) {
  if (value_is_poison(value)) return;
  switch (place->kind) {
  case PLACE_NONE:
    return;
  case PLACE_CELL:
    set_cell(e, place->base.staged, value, target->span);
    return;
  case PLACE_ELEMENT:
    tile_store(e, place->tile.tile, value, target->span);
    return;
  case PLACE_ITEM:
    set_item(e, &place->base, target, value);
    return;
  }
}

void assign_target(Elab *e, const Expr *target, const Value *value) {
  if (target->kind == EXPR_NAME) {
    assign_name(e, target->name, value, target->span);
  } else if (target->kind == EXPR_TUPLE || target->kind == EXPR_LIST) {
    assign_items(e, target, value);
  } else if (target->kind == EXPR_SUBSCRIPT) {
    SubscriptPlace place = find_place(e, target);
    assign_place(e, &place, target, value);
  } else {
    elab_not_supported(e, target->span, "this target of an assignment");
  }
}

static void exec_assign(Elab *e, const Stmt *stmt) {
  const Expr *first = stmt->assign.targets.items[0];
  e->naming = first->kind == EXPR_NAME ? first->name : NULL;
  Value value = eval(e, stmt->assign.value);
  e->naming = NULL;
  e->assigned = stmt->assign.value->span;
  for (int i = 0; i < stmt->assign.targets.count; i++)
    assign_target(e, stmt->assign.targets.items[i], &value);
}

// `x += 1` where x belongs to a function around this one: a variable is set, a value cannot be.
static bool augments_outer(Elab *e, const Stmt *stmt, const Value *value) {
  const Expr *target = stmt->aug_assign.target;
  if (target->kind != EXPR_NAME || scope_own(e->scope, target->name)) return false;
  const Binding *binding = scope_find(e->scope, target->name);
  if (binding && binding->value.kind == VALUE_CELL) {
    set_cell(e, binding->value.staged, value, stmt->span);
    return true;
  }
  diag_error(e->ds, DIAG_staged_assignment, target->span,
             "'%s' is a value of a function around this one; it cannot be assigned here", target->name);
  if (binding) diag_note(e->ds, binding->span, "bound here");
  diag_hint(e->ds, "return the new value, or make it a variable: %s = alloc_var(dtype, init=…)",
            target->name);
  return true;
}

// target op= value, the target's parts evaluated once.
static void exec_aug_assign(Elab *e, const Stmt *stmt) {
  const Expr *target = stmt->aug_assign.target;
  SubscriptPlace place = {.kind = PLACE_NONE};
  Value old;
  if (target->kind == EXPR_SUBSCRIPT) {
    place = find_place(e, target);
    if (place.kind == PLACE_NONE) return;
    if (place.kind == PLACE_ITEM) {
      old = eval(e, target);
    } else {
      TirValue *now = staged_scalar(e, place.kind == PLACE_CELL ? &place.base : &place.tile, target->span);
      old = now ? value_staged(now) : value_poison();
    }
  } else {
    old = eval(e, target);
  }
  Value operand = eval(e, stmt->aug_assign.value);
  if (value_is_poison(&old) || value_is_poison(&operand)) return;
  Value value = eval_binary(e, stmt->aug_assign.op, &old, &operand, stmt->span);
  e->assigned = stmt->span;
  if (target->kind == EXPR_SUBSCRIPT)
    assign_place(e, &place, target, &value);
  else if (!augments_outer(e, stmt, &value))
    assign_target(e, target, &value);
}

// `A: Tensor[…]` makes parameter A a tensor; `x: float32` makes x a scalar given at launch.
static void declare_parameter(Elab *e, const Stmt *stmt, const Value *type) {
  const Expr *target = stmt->ann_assign.target;
  Binding *binding = target->kind == EXPR_NAME ? scope_own(e->scope, target->name) : NULL;
  bool declares = type->kind == VALUE_TENSOR || type->kind == VALUE_DTYPE;
  if (!declares) return;
  if (!binding || binding->value.kind != VALUE_PARAM) {
    diag_error(e->ds, DIAG_kernel_form, target->span, "'%s' is not a parameter of the kernel without a value",
               elab_text(e, target->span));
    return;
  }
  if (type->kind == VALUE_TENSOR) {
    binding->value = launch_declare_tensor(e, target->name, type->tensor, stmt->span);
  } else {
    e->b.span = stmt->span;
    binding->value = value_staged(tir_param(&e->b, target->name, type->dtype));
  }
}

static void exec_ann_assign(Elab *e, const Stmt *stmt) {
  Value type = eval_annotation(e, stmt->ann_assign.annotation);
  if (!stmt->ann_assign.value) {
    if (!value_is_poison(&type)) declare_parameter(e, stmt, &type);
    return;
  }
  const Expr *target = stmt->ann_assign.target;
  e->naming = target->kind == EXPR_NAME ? target->name : NULL;
  Value value = eval(e, stmt->ann_assign.value);
  e->naming = NULL;
  e->assigned = stmt->ann_assign.value->span;
  if (type.kind == VALUE_DTYPE && value_is_scalar(&value) && value.kind != VALUE_CELL) {
    TirValue *scalar = staged_as(e, &value, type.dtype, stmt->ann_assign.value->span);
    value = scalar ? value_staged(scalar) : value_poison();
  }
  assign_target(e, target, &value);
}

// ---- the others

static Flow exec_with(Elab *e, const Stmt *stmt) {
  if (stmt->with.nitems != 1) {
    elab_not_supported(e, stmt->span, "'with' of several contexts");
    if (stmt->with.items[0].target && !stmt->with.items[1].target)
      diag_hint(e->ds, "block indices stand in parentheses: `as (bx, by)`");
    return FLOW_NEXT;
  }
  const WithItem *item = &stmt->with.items[0];
  Value context = eval(e, item->context);
  if (context.kind == VALUE_KERNEL)
    return exec_kernel(e, context.kernel, item->target, &stmt->with.body, stmt->span);
  if (!value_is_poison(&context))
    diag_error(e->ds, DIAG_value_kind, item->context->span, "'with' takes Kernel(…), not %s",
               value_describe(e->arena, &context));
  return FLOW_NEXT;
}

static void exec_raise(Elab *e, const Stmt *stmt) {
  diag_error(e->ds, DIAG_assertion, stmt->span, "the kernel raises an exception here");
  e->returned = value_poison();
}

static Flow exec_expr(Elab *e, const Stmt *stmt) {
  eval_raw(e, stmt->value);
  Flow flow = e->jumped;
  e->jumped = FLOW_NEXT;
  return flow;
}

static Flow exec_stmt(Elab *e, const Stmt *stmt) {
  switch (stmt->kind) {
  case STMT_FUNCTION: {
    Value function = make_function(e, stmt);
    scope_bind(e->scope, stmt->function.name, function, e->region, stmt->function.name_span);
    return FLOW_NEXT;
  }
  case STMT_RETURN:
    return exec_return(e, stmt);
  case STMT_IF:
    return exec_if(e, stmt);
  case STMT_FOR:
    return exec_for(e, stmt);
  case STMT_WHILE:
    return exec_while(e, stmt);
  case STMT_WITH:
    return exec_with(e, stmt);
  case STMT_ASSIGN:
    exec_assign(e, stmt);
    return FLOW_NEXT;
  case STMT_AUG_ASSIGN:
    exec_aug_assign(e, stmt);
    return FLOW_NEXT;
  case STMT_ANN_ASSIGN:
    exec_ann_assign(e, stmt);
    return FLOW_NEXT;
  case STMT_EXPR:
    return exec_expr(e, stmt);
  case STMT_ASSERT:
    exec_assert(e, stmt);
    return FLOW_NEXT;
  case STMT_RAISE:
    exec_raise(e, stmt);
    return FLOW_RETURN;
  case STMT_PASS:
    return FLOW_NEXT;
  case STMT_BREAK:
  case STMT_CONTINUE:
    return exec_jump(e, stmt->kind == STMT_BREAK, stmt->span);
  case STMT_UNSUPPORTED:
    elab_not_supported(e, stmt->span, stmt->what);
    return FLOW_NEXT;
  case STMT_UNPARSED:
    syntax_report_unparsed(e->arena, e->names, e->ast->source, stmt, e->ds);
    scope_bind(e->scope, stmt->unparsed.name, value_poison(), e->region, stmt->unparsed.name_span);
    return FLOW_NEXT;
  }
  return FLOW_NEXT;
}

Flow exec_block(Elab *e, const Block *block) {
  Flow flow = FLOW_NEXT;
  int jumps = e->frame->jumps;
  for (int i = 0; i < block->count && flow == FLOW_NEXT && !e->stopped; i++) {
    const Stmt *stmt = block->stmts[i];
    elab_before_statement(e, &jumps, stmt->span);
    if (elab_enter(e, stmt->span) && elab_step(e, stmt->span)) flow = exec_stmt(e, stmt);
    elab_leave(e);
  }
  return flow;
}

// Expressions. Each is evaluated once, in Python's order; what cannot be computed now becomes tile IR at the
// builder's place.
#include "elab/elab_internal.h"

#include <math.h>
#include <string.h>

#include "syntax/syntax.h"

// ---- names

static const char *nearest_in_scope(Elab *e, Name name) {
  VEC(const char *) candidates = {0};
  for (const Scope *scope = e->scope; scope; scope = scope->parent)
    for (int i = 0; i < map_count(scope->names); i++)
      vec_push(e->arena, &candidates, (const char *)map_at(scope->names, i)->key);
  return candidates.len ? text_nearest(name, candidates.data, candidates.len) : NULL;
}

// What other languages call Python's constants.
static const char *python_constant(Name name) {
  static const char *const rows[][2] = {{"true", "True"}, {"false", "False"}, {"null", "None"},
                                        {"NULL", "None"}, {"nil", "None"},    {"none", "None"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strcmp(rows[i][0], name) == 0) return rows[i][1];
  return NULL;
}

static Value unknown_name(Elab *e, Name name, Span span) {
  diag_error(e->ds, DIAG_unknown_name, span, "'%s' is not defined", name);
  const char *near = python_constant(name);
  if (!near && e->blocks) {
    diag_hint(e->ds, "'%s' is all block indices together; name each: `as (bx, by)`", e->blocks);
    return value_poison();
  }
  if (!near) near = nearest_in_scope(e, name);
  if (!near) near = builtin_nearest(name);
  if (near) diag_hint(e->ds, "did you mean '%s'?", near);
  return value_poison();
}

static const char *region_text(RegionKind kind) {
  switch (kind) {
  case REGION_HOST:
    return "outside the kernel body";
  case REGION_KERNEL:
    return "in the kernel body";
  case REGION_LOOP:
    return "in a loop that runs on the device";
  case REGION_BRANCH:
  case REGION_REST:
    return "in a branch that is decided on the device";
  case REGION_PARALLEL:
    return "in a Parallel loop";
  }
  return "";
}

// A constant of the file; -D overrides it.
static bool overridden(Elab *e, Name name, const Stmt *stmt, Value *out) {
  bool constant = stmt->kind == STMT_ASSIGN && stmt->assign.targets.items[0]->kind == EXPR_NAME;
  return constant && elab_define(e, name, out);
}

// Runs a statement of the module the first time one of its names is used.
static Value run_global(Elab *e, Name name, Binding *binding) {
  const Stmt *stmt = binding->lazy;
  const Block once = {&stmt, 1};
  Scope *scope = e->scope;
  Frame frame;
  bool open_names = e->open_names;
  Name naming = e->naming;
  Value value;
  if (overridden(e, name, stmt, &value))
    return scope_bind(e->globals, name, value, e->host, binding->span)->value;
  elab_frame_enter(e, &frame, FRAME_FUNCTION);
  e->scope = e->globals;
  frame.region = e->region = e->host;
  e->open_names = false;
  binding->running = true;
  exec_block(e, &once);
  binding->running = false;
  elab_frame_leave(e, &frame);
  e->scope = scope;
  e->open_names = open_names;
  e->naming = naming;
  Binding *now = scope_own(e->globals, name);
  if (now->lazy) *now = (Binding){.value = value_poison(), .region = e->host, .span = now->span};
  return now->value;
}

Value eval_binding(Elab *e, Name name, Binding *binding, Span span) {
  if (binding->running) {
    diag_error(e->ds, DIAG_unknown_name, span, "'%s' depends on itself", name);
    return value_poison();
  }
  return binding->lazy ? run_global(e, name, binding) : binding->value;
}

// A name bound in a staged region has no value once the region has ended.
static bool is_visible(Elab *e, Name name, const Binding *binding, Span span) {
  if (!binding->region || region_encloses(binding->region, e->region)) return true;
  diag_error(e->ds, DIAG_staged_assignment, span, "'%s' has no value here: it is bound %s", name,
             region_text(binding->region->kind));
  diag_note(e->ds, binding->span, "bound here");
  diag_hint(e->ds, "declare it before with alloc_var(dtype) and assign it there");
  return false;
}

static Value eval_known_name(Elab *e, Name name, Span span) {
  DType dtype;
  const Builtin *builtin = builtin_find(name);
  if (builtin) return (Value){.kind = VALUE_BUILTIN, .builtin = builtin};
  if (builtin_is_module(name)) return (Value){.kind = VALUE_MODULE, .module = name};
  if (dtype_parse(name, &dtype)) return value_dtype(dtype);
  if (e->open_names) return launch_size(e, name);
  return unknown_name(e, name, span);
}

// Reported at its first use; later ones are silent.
static Value unset_parameter(Elab *e, Name name, Binding *binding, Span span) {
  diag_error(e->ds, DIAG_define, span, "parameter '%s' has no value", name);
  diag_note(e->ds, binding->span, "it is declared here, without a default");
  if (e->open_names)
    diag_hint(e->ds,
              "pass -D %s=…; a size that is taken from the tensors at launch is no parameter: leave it out",
              name);
  else
    diag_hint(e->ds, "pass -D %s=…, or declare it as a tensor: `%s: Tensor[(M, N), float32]`", name, name);
  return binding->value = value_poison();
}

Value eval_name(Elab *e, Name name, Span span) {
  Binding *binding = scope_find(e->scope, name);
  if (!binding) return eval_known_name(e, name, span);
  if (!binding->lazy && !is_visible(e, name, binding, span)) return value_poison();
  if (binding->value.kind == VALUE_PARAM) return unset_parameter(e, name, binding, span);
  return eval_binding(e, name, binding, span);
}

// ---- attributes

static Value module_attribute(Elab *e, const Value *base, Name name, Span span) {
  DType dtype;
  if (strcmp(base->module, "math") == 0) {
    if (strcmp(name, "inf") == 0) return value_float(INFINITY);
    if (strcmp(name, "nan") == 0) return value_float(NAN);
    if (strcmp(name, "pi") == 0) return value_float(3.14159265358979323846);
    if (strcmp(name, "e") == 0) return value_float(2.71828182845904523536);
  }
  if (strcmp(base->module, "GemmWarpPolicy") == 0) return value_string(str_of(name));
  if (strcmp(base->module, "PassConfigKey") == 0) return annotate_config_key(e, name);
  const Builtin *builtin = builtin_find(name);
  if (builtin) return (Value){.kind = VALUE_BUILTIN, .builtin = builtin};
  if (builtin_is_module(name)) return (Value){.kind = VALUE_MODULE, .module = name};
  if (dtype_parse(name, &dtype)) return value_dtype(dtype);
  diag_error(e->ds, DIAG_unknown_name, span, "'%s' has no '%s'", base->module, name);
  const char *near = builtin_nearest(name);
  if (near) diag_hint(e->ds, "did you mean '%s'?", near);
  return value_poison();
}

static Value buffer_shape(Elab *e, const TirValue *buffer) {
  Value dims[TYPE_MAX_RANK];
  for (int d = 0; d < buffer->type.rank; d++) {
    bool fixed = buffer->type.shape[d] != DIM_DYNAMIC;
    dims[d] = fixed ? value_int(buffer->type.shape[d]) : value_staged(buffer->op->args[d]);
  }
  return value_sequence(e->arena, VALUE_TUPLE, e->region, dims, buffer->type.rank);
}

static Value data_attribute(Elab *e, const Value *base, Name name) {
  if (base->kind == VALUE_SCHEDULER) return scheduler_attribute(e, base->scheduler, name);
  if (base->kind == VALUE_BUFFER && strcmp(name, "shape") == 0) return buffer_shape(e, base->staged);
  if (base->kind == VALUE_BUFFER && strcmp(name, "ndim") == 0) return value_int(base->staged->type.rank);
  bool typed = base->kind == VALUE_BUFFER || base->kind == VALUE_STAGED || base->kind == VALUE_CELL;
  if (typed && strcmp(name, "dtype") == 0) return value_dtype(base->staged->type.dtype);
  if (base->kind == VALUE_DTYPE && strcmp(name, "bits") == 0) return value_int(dtype_bits(base->dtype));
  bool bytes = strcmp(name, "bytes") == 0 || strcmp(name, "itemsize") == 0;
  if (base->kind == VALUE_DTYPE && bytes) return value_int(dtype_bytes(base->dtype));
  return (Value){.kind = VALUE_ABSENT};
}

Value eval_attribute(Elab *e, const Value *base, Name name, Span span) {
  if (value_is_poison(base)) return value_poison();
  if (base->kind == VALUE_MODULE) return module_attribute(e, base, name, span);
  Value data = data_attribute(e, base, name);
  if (data.kind != VALUE_ABSENT) return data;
  const Builtin *methods = base->kind == VALUE_SCHEDULER ? builtins_scheduler : builtins_method;
  for (const Builtin *method = methods; method->name; method++) {
    if (strcmp(method->name, name) != 0) continue;
    ValueMethod *bound = ARENA_NEW(e->arena, ValueMethod);
    *bound = (ValueMethod){method, *base};
    return (Value){.kind = VALUE_METHOD, .method = bound};
  }
  diag_error(e->ds, DIAG_unknown_name, span, "%s has no attribute '%s'", value_describe(e->arena, base),
             name);
  return value_poison();
}

// ---- operators

Value eval_binary(Elab *e, BinaryOp op, const Value *lhs, const Value *rhs, Span span) {
  if (value_is_poison(lhs) || value_is_poison(rhs)) return value_poison();
  bool scalars = value_is_scalar(lhs) && value_is_scalar(rhs);
  if (scalars && (value_is_staged(lhs) || value_is_staged(rhs))) return staged_binary(e, op, lhs, rhs, span);
  return comptime_binary(e, op, lhs, rhs, span);
}

// Python's truth where it is known now.
static bool known_truth(const Value *value, bool *out) {
  int64_t number;
  if (value->kind == VALUE_STAGED && tir_const_int(value->staged, &number)) {
    *out = number != 0;
    return true;
  }
  if (value_is_staged(value)) return false;
  *out = value_truth(value);
  return true;
}

static Value both_sides(Elab *e, BoolOp op, const Value *lhs, const Value *rhs, Span span) {
  TirValue *a = staged_condition(e, lhs, span);
  TirValue *b = a ? staged_condition(e, rhs, span) : NULL;
  if (!b) return value_poison();
  return value_staged(tir_binary(&e->b, op == BOOL_AND ? OP_and : OP_or, a, b));
}

// Compile-time operands decide as in Python; staged ones are all evaluated, since that has no effect.
static Value eval_bool(Elab *e, const Expr *expr) {
  BoolOp op = expr->boolean.op;
  Value so_far = value_none();
  for (int i = 0; i < expr->boolean.operands.count; i++) {
    bool truth;
    bool known = i > 0 && known_truth(&so_far, &truth);
    if (known && truth == (op == BOOL_OR)) return so_far;
    Value next = eval(e, expr->boolean.operands.items[i]);
    if (value_is_poison(&next)) return next;
    bool next_truth;
    bool absorbs = i > 0 && !known && known_truth(&next, &next_truth) && next_truth == (op == BOOL_OR);
    if (i == 0 || known || absorbs)
      so_far = next;
    else
      so_far = both_sides(e, op, &so_far, &next, expr->span);
    if (value_is_poison(&so_far) || absorbs) return so_far;
  }
  return so_far;
}

static Value compare_one(Elab *e, CompareOp op, const Value *lhs, const Value *rhs, Span span) {
  bool staged = value_is_staged(lhs) || value_is_staged(rhs);
  bool identity = op == COMPARE_IN || op == COMPARE_NOT_IN;
  if (staged && !(identity && !value_is_staged(lhs))) return staged_compare(e, op, lhs, rhs, span);
  return comptime_compare(e, op, lhs, rhs, span);
}

static Value eval_compare(Elab *e, const Expr *expr) {
  Value lhs = eval(e, expr->compare.operands[0]);
  Value so_far = value_bool(true);
  for (int i = 0; i < expr->compare.nops; i++) {
    Value rhs = eval(e, expr->compare.operands[i + 1]);
    if (value_is_poison(&lhs) || value_is_poison(&rhs)) return value_poison();
    Value one = compare_one(e, expr->compare.ops[i], &lhs, &rhs, expr->span);
    if (value_is_poison(&one)) return one;
    bool truth;
    if (known_truth(&one, &truth)) {
      if (!truth) return value_bool(false);
    } else {
      so_far = so_far.kind == VALUE_BOOL ? one : both_sides(e, BOOL_AND, &so_far, &one, expr->span);
    }
    lhs = rhs;
  }
  return so_far;
}

static Value eval_conditional(Elab *e, const Expr *expr) {
  bool truth;
  Value condition = eval(e, expr->conditional.condition);
  if (value_is_poison(&condition)) return condition;
  if (known_truth(&condition, &truth))
    return eval_raw(e, truth ? expr->conditional.then : expr->conditional.otherwise);
  Value yes = eval(e, expr->conditional.then);
  Value no = eval(e, expr->conditional.otherwise);
  if (value_is_poison(&yes) || value_is_poison(&no)) return value_poison();
  if (value_is_scalar(&yes) && value_is_scalar(&no))
    return staged_select(e, &condition, &yes, &no, expr->span);
  report_not_compile_time(e, &condition, expr->conditional.condition->span,
                          "a condition that chooses between values that are not numbers");
  return value_poison();
}

static Value eval_unary(Elab *e, const Expr *expr) {
  Value operand = eval(e, expr->unary.operand);
  if (value_is_poison(&operand)) return operand;
  if (value_is_staged(&operand)) return staged_unary(e, expr->unary.op, &operand, expr->span);
  return comptime_unary(e, expr->unary.op, &operand, expr->span);
}

// ---- displays and subscripts

static Value eval_display(Elab *e, const Expr *expr, ValueKind kind) {
  Value out = value_sequence(e->arena, kind, e->region, NULL, 0);
  for (int i = 0; i < expr->elements.count; i++) {
    const Expr *element = expr->elements.items[i];
    if (element->kind != EXPR_STARRED) {
      vec_push(e->arena, &out.sequence->items, eval(e, element));
      continue;
    }
    const Value *items;
    int count;
    Value inner = eval(e, element->inner);
    if (!eval_iterable(e, &inner, element->span, &items, &count)) return value_poison();
    for (int k = 0; k < count; k++) vec_push(e->arena, &out.sequence->items, items[k]);
  }
  return out;
}

static Value eval_dict(Elab *e, const Expr *expr) {
  Dict *dict = ARENA_NEW(e->arena, Dict);
  dict->region = e->region;
  for (int i = 0; i < expr->dict.count; i++) {
    if (!expr->dict.items[i].key) return elab_not_supported(e, expr->span, "'**' in a dict");
    vec_push(e->arena, &dict->keys, eval(e, expr->dict.items[i].key));
    vec_push(e->arena, &dict->values, eval(e, expr->dict.items[i].value));
  }
  return (Value){.kind = VALUE_DICT, .dict = dict};
}

static Value index_value(Elab *e, const Expr *expr) {
  const ExprList *indices = &expr->subscript.indices;
  if (indices->count == 1 && !expr->subscript.has_comma) return eval(e, indices->items[0]);
  Value out = value_sequence(e->arena, VALUE_TUPLE, e->region, NULL, 0);
  for (int i = 0; i < indices->count; i++)
    vec_push(e->arena, &out.sequence->items, eval(e, indices->items[i]));
  return out;
}

static bool is_annotation(const Value *base) {
  if (base->kind != VALUE_BUILTIN) return false;
  const char *name = base->builtin->name;
  return strcmp(name, "Tensor") == 0 || strcmp(name, "Buffer") == 0;
}

// `Tensor[(M, K), bfloat16]` is the call Tensor((M, K), bfloat16).
static Value eval_annotation_subscript(Elab *e, const Value *base, const Expr *expr) {
  const ExprList *indices = &expr->subscript.indices;
  Call call = {.builtin = base->builtin, .span = expr->span, .callee = expr->subscript.base->span};
  if (indices->count > 2) {
    diag_error(e->ds, DIAG_call_arguments, expr->span,
               "%s takes a shape and an element type: %s[(M, K), bfloat16]", base->builtin->name,
               base->builtin->name);
    return value_poison();
  }
  for (int i = 0; i < 2; i++) {
    if (i >= indices->count) {
      call.args[i] = (Value){.kind = VALUE_ABSENT};
      continue;
    }
    call.args[i] = eval(e, indices->items[i]);
    call.spans[i] = indices->items[i]->span;
    if (value_is_poison(&call.args[i])) return value_poison();
  }
  for (int i = 2; i < BUILTIN_MAX_ARGS; i++) call.args[i] = (Value){.kind = VALUE_ABSENT};
  return base->builtin->run(e, &call);
}

static Value eval_subscript(Elab *e, const Expr *expr) {
  Value base = eval_raw(e, expr->subscript.base);
  if (value_is_poison(&base)) return base;
  if (base.kind == VALUE_BUFFER || base.kind == VALUE_TILE) return tile_subscript(e, &base, expr);
  if (is_annotation(&base)) return eval_annotation_subscript(e, &base, expr);
  const Expr *only = expr->subscript.indices.items[0];
  bool slice = expr->subscript.indices.count == 1 && only->kind == EXPR_SLICE;
  if (slice) return eval_slice_of(e, &base, only, expr->span);
  Value index = index_value(e, expr);
  if (value_is_poison(&index)) return index;
  if (base.kind == VALUE_CELL && index.kind == VALUE_INT && index.integer == 0) return base;
  return eval_item(e, &base, &index, expr->span, only->span);
}

// ---- dispatch

static Value eval_lambda(Elab *e, const Expr *expr) {
  Function *function = ARENA_NEW(e->arena, Function);
  *function = (Function){.lambda = expr, .closure = e->scope, .span = expr->span};
  return (Value){.kind = VALUE_FUNCTION, .function = function};
}

static Value eval_attribute_of(Elab *e, const Expr *expr) {
  Value base = eval_raw(e, expr->attribute.base);
  return eval_attribute(e, &base, expr->attribute.name, expr->attribute.name_span);
}

static Value dispatch(Elab *e, const Expr *expr) {
  switch (expr->kind) {
  case EXPR_INT:
    return value_int(expr->integer);
  case EXPR_FLOAT:
    return value_float(expr->real);
  case EXPR_STRING:
    return value_string(expr->string.text);
  case EXPR_FSTRING:
    return eval_fstring(e, expr);
  case EXPR_TRUE:
    return value_bool(true);
  case EXPR_FALSE:
    return value_bool(false);
  case EXPR_NONE:
    return value_none();
  case EXPR_ELLIPSIS:
    return (Value){.kind = VALUE_ELLIPSIS};
  case EXPR_NAME:
    return eval_name(e, expr->name, expr->span);
  case EXPR_ATTRIBUTE:
    return eval_attribute_of(e, expr);
  case EXPR_CALL:
    return eval_call(e, expr);
  case EXPR_SUBSCRIPT:
    return eval_subscript(e, expr);
  case EXPR_SLICE:
    return elab_not_supported(e, expr->span, "a slice here");
  case EXPR_TUPLE:
    return eval_display(e, expr, VALUE_TUPLE);
  case EXPR_LIST:
    return eval_display(e, expr, VALUE_LIST);
  case EXPR_SET:
    return elab_not_supported(e, expr->span, "a set");
  case EXPR_DICT:
    return eval_dict(e, expr);
  case EXPR_COMPREHENSION:
    return eval_comprehension(e, expr);
  case EXPR_UNARY:
    return eval_unary(e, expr);
  case EXPR_BINARY: {
    Value lhs = eval(e, expr->binary.lhs);
    Value rhs = eval(e, expr->binary.rhs);
    return eval_binary(e, expr->binary.op, &lhs, &rhs, expr->span);
  }
  case EXPR_COMPARE:
    return eval_compare(e, expr);
  case EXPR_BOOL:
    return eval_bool(e, expr);
  case EXPR_CONDITIONAL:
    return eval_conditional(e, expr);
  case EXPR_LAMBDA:
    return eval_lambda(e, expr);
  case EXPR_STARRED:
    return elab_not_supported(e, expr->span, "'*' here");
  case EXPR_UNSUPPORTED:
    return elab_not_supported(e, expr->span, expr->what);
  }
  return value_poison();
}

Value eval_raw(Elab *e, const Expr *expr) {
  Value out = value_poison();
  if (elab_enter(e, expr->span) && elab_step(e, expr->span)) out = dispatch(e, expr);
  elab_leave(e);
  return out;
}

Value eval(Elab *e, const Expr *expr) {
  int next_id = e->kernel ? e->kernel->next_id : 0;
  Value raw = eval_raw(e, expr);
  // A variable that the expression makes stays one; `a if c else v` reads the variable v that there was before.
  bool made = raw.kind == VALUE_CELL && raw.staged->id >= next_id;
  bool fresh = expr->kind == EXPR_CALL || (expr->kind == EXPR_CONDITIONAL && made);
  bool element =
      raw.kind == VALUE_TILE && raw.tile->points_only && raw.tile->buffer->type.space != SPACE_BARRIER;
  if (!element && !(raw.kind == VALUE_CELL && !fresh)) return raw;
  TirValue *scalar = staged_element(e, &raw, expr->span);
  return scalar ? value_staged(scalar) : value_poison();
}

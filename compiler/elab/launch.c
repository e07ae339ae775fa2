// What the launch decides: parameters, sizes, tensors, the grid, and the assertions that it checks.
#include "elab/elab_internal.h"

#include <inttypes.h>
#include <string.h>

// ---- sizes and tensors

Value launch_size(Elab *e, Name name) {
  Value value;
  int64_t size;
  const Span nowhere = {0, 0};
  if (elab_define(e, name, &value)) {
    bool known = need_int(e, &value, nowhere, elab_spell_define(e, name, NULL), &size);
    if (known && (size < 1 || size > INT32_MAX)) {
      diag_error(e->ds, DIAG_define, nowhere, "%s: a size is 1 to 2147483647",
                 elab_spell_define(e, name, text_printf(e->arena, "%" PRId64, size)));
      known = false;
    }
    value = known ? value_int(size) : value_poison();
  } else {
    value = value_staged(tir_size(&e->b, name));
    if (!value.staged->name) value.staged->name = name;
  }
  Span here = e->b.span;
  scope_bind(e->kernel_scope, name, value, e->host, here);
  return value;
}

Value eval_annotation(Elab *e, const Expr *annotation) {
  bool outer = e->open_names;
  e->open_names = true;
  e->b.span = annotation->span;
  Value value = eval(e, annotation);
  e->open_names = outer;
  DType dtype;
  if (value.kind == VALUE_STRING && value_names_dtype(&value, &dtype)) return value_dtype(dtype);
  return value;
}

static bool dimension(Elab *e, Name name, const TensorSpec *spec, int d, Span span, TirValue **out) {
  const Value *dim = &spec->dims[d];
  if (dim->kind == VALUE_INT && (dim->integer < 1 || dim->integer > INT32_MAX)) {
    diag_error(e->ds, DIAG_value_kind, span, "dimension %d of '%s' is %" PRId64 "; a size is 1 to 2147483647",
               d, name, dim->integer);
    return false;
  }
  *out = staged_index(e, dim, span, "a dimension of a tensor");
  if (!*out) return false;
  int64_t number;
  if (tir_const_int(*out, &number) || tir_in_launch(*out)) return true;
  diag_error(e->ds, DIAG_compile_time, span, "dimension %d of '%s' must be known at launch", d, name);
  return false;
}

static const char *declared_as(Elab *e, Name name) {
  for (const TirOp *op = e->kernel->launch->first; op; op = op->next)
    if (op->name == name && op->kind != OP_check) return op_def(op->kind)->name;
  return NULL;
}

Value launch_declare_tensor(Elab *e, Name name, const TensorSpec *spec, Span span) {
  TirValue *dims[TYPE_MAX_RANK];
  if (e->region->kind != REGION_HOST) {
    diag_error(e->ds, DIAG_kernel_form, span, "tensor '%s' is declared inside `with Kernel(…)`", name);
    return value_poison();
  }
  const char *earlier = declared_as(e, name);
  if (earlier) {
    diag_error(e->ds, DIAG_kernel_form, span, "the kernel already has a %s '%s'", earlier, name);
    return value_poison();
  }
  for (int d = 0; d < spec->rank; d++)
    if (!dimension(e, name, spec, d, span, &dims[d])) return value_poison();
  e->b.span = span;
  TirValue *tensor = tir_tensor(&e->b, name, spec->dtype, spec->rank, dims);
  if (!tensor->name) tensor->name = name;
  map_put(e->initialized, tensor, tensor);
  return value_of_buffer(tensor);
}

// ---- parameters

// int, float, bool, str: a parameter that is known at compile time.
static bool is_python_type(const Value *type) {
  if (type->kind != VALUE_BUILTIN) return type->kind == VALUE_NONE;
  static const char *const names[] = {"int", "float", "bool", "str", "tuple", "list"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(type->builtin->name, names[i]) == 0) return true;
  return false;
}

// A parameter known at compile time: its -D, its default, or nothing yet.
static Value compile_time_param(Elab *e, const Function *function, const Param *param) {
  Value given, value = {.kind = VALUE_PARAM, .param = param->name};
  Value type = define_annotated_type(e, param);
  bool defined = elab_define(e, param->name, &given);
  if (param->default_value) {
    Scope *outer = e->scope;
    e->scope = function->closure;
    value = eval(e, param->default_value);
    e->scope = outer;
  }
  if (value_is_poison(&value)) return value;
  return defined ? define_convert(e, param->name, &type, &value, &given)
                 : define_default(e, param, &type, &value);
}

static Value tensor_param(Elab *e, const Param *param, const TensorSpec *spec) {
  Value value;
  if (elab_given(e, param->name, &value)) {
    diag_error(e->ds, DIAG_define, (Span){0, 0}, "%s: '%s' is a tensor",
               elab_spell_define(e, param->name, NULL), param->name);
    return value_poison();
  }
  return launch_declare_tensor(e, param->name, spec, param->span);
}

static Value scalar_param(Elab *e, const Param *param, DType dtype) {
  Value value;
  Value type = value_dtype(dtype);
  if (elab_define(e, param->name, &value)) {
    value = define_convert(e, param->name, &type, &(Value){.kind = VALUE_ABSENT}, &value);
    TirValue *scalar = staged_as(e, &value, dtype, (Span){0, 0});
    return scalar ? value_staged(scalar) : value_poison();
  }
  if (!need_dtype(e, &type, param->annotation->span, "a parameter", &dtype)) return value_poison();
  e->b.span = param->span;
  TirValue *scalar = tir_param(&e->b, param->name, dtype);
  if (!scalar->name) scalar->name = param->name;
  return value_staged(scalar);
}

static Value annotated_param(Elab *e, const Function *function, const Param *param) {
  DType dtype;
  Value type = eval_annotation(e, param->annotation);
  if (value_is_poison(&type)) return type;
  if (type.kind == VALUE_TENSOR) return tensor_param(e, param, type.tensor);
  if (is_python_type(&type)) return compile_time_param(e, function, param);
  if (value_names_dtype(&type, &dtype)) return scalar_param(e, param, dtype);
  diag_error(e->ds, DIAG_value_kind, param->annotation->span,
             "a parameter is annotated with Tensor[shape, dtype], an element type or a Python type, not %s",
             value_describe(e->arena, &type));
  return value_poison();
}

static bool is_compile_time(const Param *param) {
  return !param->annotation || param->default_value;
}

// Compile-time parameters first, so that the shapes of tensors may name them.
static void bind_kernel_params(Elab *e, const Function *function) {
  const ParamList *params = &function->def->params;
  for (int i = 0; i < params->count; i++) {
    const Param *param = &params->items[i];
    bool star = param->kind == PARAM_STAR || param->kind == PARAM_DOUBLE_STAR;
    if (star) elab_not_supported(e, param->span, "'*' in the parameters of a kernel");
    if (star || !is_compile_time(param)) continue;
    scope_bind(e->scope, param->name, compile_time_param(e, function, param), e->host, param->span);
  }
  for (int i = 0; i < params->count; i++) {
    const Param *param = &params->items[i];
    bool star = param->kind == PARAM_STAR || param->kind == PARAM_DOUBLE_STAR;
    if (star || is_compile_time(param)) continue;
    scope_bind(e->scope, param->name, annotated_param(e, function, param), e->host, param->span);
  }
}

static void report_no_kernel(Elab *e, const Function *function) {
  diag_error(e->ds, DIAG_kernel_form, function->span, "'%s' holds no `with Kernel(…)` and returns no kernel",
             function->def->name);
}

static void report_returned(Elab *e, const Block *body, Span span) {
  for (int i = 0; i < body->count; i++)
    if (body->stmts[i]->kind == STMT_RETURN) span = body->stmts[i]->span;
  diag_error(e->ds, DIAG_kernel_form, span, "a kernel returns no number: its results go into its tensors");
}

void run_kernel_function(Elab *e, const Function *function) {
  Scope *outer = e->scope, *outer_kernel = e->kernel_scope;
  int errors = diags_errors(e->ds);
  e->scope = e->kernel_scope = scope_new(e->arena, function->closure);
  annotate_by_decorators(e, function);
  bind_kernel_params(e, function);
  if (diags_errors(e->ds) != errors) e->params_in_error = true;
  e->returned = value_none();
  Frame frame;
  elab_frame_enter(e, &frame, FRAME_FUNCTION);
  Flow flow = exec_block(e, &function->def->body);
  elab_frame_leave(e, &frame);
  Value returned = flow == FLOW_RETURN ? e->returned : value_none();
  if (value_is_number(&returned)) report_returned(e, &function->def->body, function->span);
  bool inner = returned.kind == VALUE_FUNCTION && returned.function->is_kernel && returned.function->def;
  if (inner && e->with_span.end == 0 && e->calls < MAX_CALLS) {
    e->calls++;
    run_kernel_function(e, returned.function);
    e->calls--;
  } else if (e->with_span.end == 0 && diags_errors(e->ds) == errors && !e->stopped) {
    report_no_kernel(e, function);
  }
  e->scope = outer;
  e->kernel_scope = outer_kernel;
}

// ---- with Kernel

static bool grid_extents(Elab *e, const KernelSpec *spec, Span span, TirValue **out) {
  for (int i = 0; i < spec->rank; i++) {
    const Value *extent = &spec->grid[i];
    if (extent->kind == VALUE_INT && extent->integer < 1) {
      diag_error(e->ds, DIAG_value_kind, span, "grid dimension %d is %" PRId64 "; it must be at least 1", i,
                 extent->integer);
      return false;
    }
    if (i > 0 && extent->kind == VALUE_INT && extent->integer > 65535) {
      diag_error(e->ds, DIAG_value_kind, span, "grid dimension %d is %" PRId64 "; at most 65535", i,
                 extent->integer);
      return false;
    }
    out[i] = staged_index(e, extent, span, "a grid dimension");
    if (!out[i]) return false;
  }
  return true;
}

static Value block_indices(Elab *e, int rank) {
  Value items[3];
  for (int i = 0; i < rank; i++) {
    if (!e->block_idx[i]) e->block_idx[i] = tir_block_idx(&e->b, i);
    items[i] = value_staged(e->block_idx[i]);
  }
  return rank == 1 ? items[0] : value_sequence(e->arena, VALUE_TUPLE, e->region, items, rank);
}

Flow exec_kernel(Elab *e, const KernelSpec *spec, const Expr *target, const Block *body, Span span) {
  TirValue *extents[3];
  if (e->region->kind != REGION_HOST || e->with_span.end != 0) {
    diag_error(e->ds, DIAG_kernel_form, span, "a kernel function has exactly one `with Kernel(…)`");
    diag_note(e->ds, e->with_span, "the first is here");
    return FLOW_NEXT;
  }
  e->with_span = span;
  e->kernel->threads = e->threads = spec->threads;
  if (!grid_extents(e, spec, span, extents)) return FLOW_NEXT;
  e->b.span = span;
  tir_grid(&e->b, spec->rank, extents);
  Frame frame;
  elab_frame_enter(e, &frame, FRAME_KERNEL);
  frame.region = elab_region_push(e, REGION_KERNEL, span, false);
  Value indices = block_indices(e, spec->rank);
  e->blocks = target && target->kind == EXPR_NAME && spec->rank > 1 ? target->name : NULL;
  if (target) assign_target(e, target, &indices);
  Flow flow = exec_block(e, body);
  if (flow == FLOW_RETURN && value_is_number(&e->returned)) {
    report_returned(e, body, span);
    e->returned = value_none();
  }
  elab_frame_leave(e, &frame);
  if (!e->stopped) launch_check_limits(e);
  if (!e->stopped && diags_errors(e->ds) == 0) {
    elab_check_regions(e);
    elab_check_same_element(e);
    elab_check_unset(e);
  }
  return flow;
}

// ---- assert

static const char *assert_text(Elab *e, const Stmt *stmt) {
  if (!stmt->assertion.message) return elab_text(e, stmt->assertion.condition->span);
  Value message = eval(e, stmt->assertion.message);
  if (value_is_poison(&message)) return elab_text(e, stmt->assertion.condition->span);
  return value_repr(e->arena, &message, false);
}

// The numbers of a comparison that came out false.
static void note_operands(Elab *e, const Expr *condition) {
  if (condition->kind != EXPR_COMPARE) return;
  for (int i = 0; i <= condition->compare.nops; i++) {
    const Expr *operand = condition->compare.operands[i];
    if (operand->kind == EXPR_INT) continue;
    Value value = eval(e, operand);
    if (value_is_number(&value))
      diag_note(e->ds, operand->span, "this is %s", value_repr(e->arena, &value, false));
  }
}

void launch_check(Elab *e, TirValue *condition, Span span, const char *what) {
  Place place = source_place(e->ast->source, span.begin);
  const char *text =
      text_printf(e->arena, "%s:%d:%d: %s", e->ast->source->path, place.line, place.column, what);
  e->b.span = span;
  tir_check(&e->b, condition, intern(e->names, text));
}

// Whether every block comes here: no loop or branch around, and no return before that some take.
static bool always_runs(const Elab *e) {
  bool host = e->region->kind == REGION_HOST;
  return host || (e->region->kind == REGION_KERNEL && e->b.block == e->kernel->body);
}

static void report_device_assertion(Elab *e, const Stmt *stmt) {
  elab_not_supported(e, stmt->span, "an assertion about values computed on the device");
  diag_hint(e->ds, "the device checks with device_assert(%s)", elab_text(e, stmt->assertion.condition->span));
}

void exec_assert(Elab *e, const Stmt *stmt) {
  const Expr *expr = stmt->assertion.condition;
  Value condition = eval(e, expr);
  int64_t number;
  if (value_is_poison(&condition)) return;
  bool constant = condition.kind == VALUE_STAGED && tir_const_int(condition.staged, &number);
  if (value_is_staged(&condition) && !constant) {
    TirValue *test = staged_condition(e, &condition, expr->span);
    if (!test) return;
    if (tir_in_launch(test) && always_runs(e))
      launch_check(e, test, stmt->span, assert_text(e, stmt));
    else
      report_device_assertion(e, stmt);
    return;
  }
  if (constant ? number != 0 : value_truth(&condition)) return;
  diag_error(e->ds, DIAG_assertion, stmt->span, "assertion failed: %s", assert_text(e, stmt));
  note_operands(e, expr);
}

// What the author promises: false at compile time is a mistake, what the runtime knows it checks, and of the rest
// nothing is made.
Value launch_assume(Elab *e, const Call *call) {
  int64_t known;
  TirValue *test = staged_condition(e, &call->args[0], call->spans[0]);
  if (!test) return value_poison();
  if (tir_const_int(test, &known)) {
    if (!known)
      diag_error(e->ds, DIAG_assertion, call->span, "this assumption is false: %s",
                 elab_text(e, call->spans[0]));
  } else if (tir_in_launch(test) && always_runs(e)) {
    launch_check(e, test, call->span, elab_text(e, call->spans[0]));
  }
  return value_none();
}

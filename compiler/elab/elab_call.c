// Calls: a builtin by its parameter words, a function of the program by Python's rules, with its body run
// here.
#include "elab/elab_internal.h"

#include <string.h>

// ---- arguments as written

typedef struct {
  Name keyword;  // NULL: positional
  Value value;
  Span span, keyword_span;
} Actual;

typedef struct {
  VEC(Actual) items;
  bool poisoned;
} Actuals;

static void add_dict(Elab *e, Actuals *out, const Value *value, Span span) {
  if (value->kind != VALUE_DICT) {
    diag_error(e->ds, DIAG_value_kind, span, "'**' takes a dict, not %s", value_describe(e->arena, value));
    out->poisoned = true;
    return;
  }
  for (int i = 0; i < value->dict->keys.len; i++) {
    Str key;
    if (!need_string(e, &value->dict->keys.data[i], span, "a keyword", &key)) {
      out->poisoned = true;
      return;
    }
    Actual actual = {intern_n(e->names, key.data, key.len), value->dict->values.data[i], span, span};
    vec_push(e->arena, &out->items, actual);
  }
}

static void add_star(Elab *e, Actuals *out, const Value *value, Span span) {
  const Value *items;
  int count;
  if (!eval_iterable(e, value, span, &items, &count)) {
    out->poisoned = true;
    return;
  }
  for (int i = 0; i < count; i++) {
    Actual actual = {NULL, items[i], span, span};
    vec_push(e->arena, &out->items, actual);
  }
}

static Actuals eval_actuals(Elab *e, const Expr *expr) {
  Actuals out = {0};
  for (int i = 0; i < expr->call.nargs; i++) {
    const Arg *arg = &expr->call.args[i];
    Value value = eval_raw(e, arg->value);
    if (value_is_poison(&value)) {
      out.poisoned = true;
    } else if (arg->kind == ARG_STAR) {
      add_star(e, &out, &value, arg->span);
    } else if (arg->kind == ARG_DOUBLE_STAR) {
      add_dict(e, &out, &value, arg->span);
    } else {
      bool keyword = arg->kind == ARG_KEYWORD;
      Actual actual = {keyword ? arg->name : NULL, value, arg->value->span, arg->name_span};
      vec_push(e->arena, &out.items, actual);
    }
  }
  return out;
}

// ---- builtins

// One word of Builtin.params.
typedef struct {
  const char *names;  // "transpose_A|trans_A", not terminated
  size_t len;
  char flag;      // '?', '~', '!' or 0
  bool star;      // "*name" or
  bool keywords;  // "**name"
} Word;

static bool next_word(const char **cursor, Word *out) {
  const char *at = *cursor;
  while (*at == ' ') at++;
  if (!*at) return false;
  *out = (Word){.star = *at == '*', .keywords = *at == '*' && at[1] == '*'};
  while (*at == '*') at++;
  out->names = at;
  while (*at && *at != ' ' && !strchr("?~!", *at)) at++;
  out->len = (size_t)(at - out->names);
  if (*at && *at != ' ') out->flag = *at++;
  *cursor = at;
  return true;
}

static bool word_has(const Word *word, const char *name) {
  size_t len = strlen(name);
  const char *at = word->names, *end = word->names + word->len;
  while (at < end) {
    const char *bar = memchr(at, '|', (size_t)(end - at));
    size_t piece = (size_t)((bar ? bar : end) - at);
    if (piece == len && memcmp(at, name, len) == 0) return true;
    at += piece + 1;
  }
  return false;
}

static const char *word_text(Elab *e, const Word *word) {
  const char *bar = memchr(word->names, '|', word->len);
  return text_copy(e->arena, word->names, bar ? (size_t)(bar - word->names) : word->len);
}

static void unknown_keyword(Elab *e, const Call *call, const Actual *actual) {
  VEC(const char *) names = {0};
  const char *cursor = call->builtin->params;
  Word word;
  while (next_word(&cursor, &word))
    if (!word.star) vec_push(e->arena, &names, word_text(e, &word));
  diag_error(e->ds, DIAG_call_arguments, actual->keyword_span, "'%s' takes no keyword '%s'",
             call->builtin->name, actual->keyword);
  const char *near = names.len ? text_nearest(actual->keyword, names.data, names.len) : NULL;
  if (near) diag_hint(e->ds, "did you mean '%s'?", near);
}

static bool place_argument(Elab *e, Call *call, int slot, const Word *word, const Actual *actual) {
  if (call->args[slot].kind != VALUE_ABSENT) {
    diag_error(e->ds, DIAG_call_arguments, actual->span, "'%s' gets '%s' twice", call->builtin->name,
               word_text(e, word));
    return false;
  }
  if (word->flag == '!') {
    elab_not_supported(e, actual->keyword ? actual->keyword_span : actual->span,
                       text_printf(e->arena, "'%s' of %s", word_text(e, word), call->builtin->name));
    return false;
  }
  if (word->flag == '~')
    diag_remark(e->ds, actual->span, "'%s' of %s is a hint without effect here", word_text(e, word),
                call->builtin->name);
  call->args[slot] = actual->value;
  call->spans[slot] = actual->span;
  return true;
}

static void add_rest(Elab *e, Call *call, const Actual *actual, int room) {
  if (!call->rest) {
    call->rest = ARENA_ARRAY(e->arena, Value, room);
    call->rest_spans = ARENA_ARRAY(e->arena, Span, room);
    call->rest_names = ARENA_ARRAY(e->arena, Name, room);
  }
  call->rest_names[call->nrest] = actual->keyword;
  call->rest[call->nrest] = actual->value;
  call->rest_spans[call->nrest++] = actual->span;
}

static bool place_keyword(Elab *e, Call *call, const Actual *actual, int room) {
  const char *cursor = call->builtin->params;
  Word word;
  int slot = 0;
  while (next_word(&cursor, &word)) {
    if (word.keywords) {
      add_rest(e, call, actual, room);
      return true;
    }
    if (word.star) continue;
    if (word_has(&word, actual->keyword)) return place_argument(e, call, slot, &word, actual);
    slot++;
  }
  unknown_keyword(e, call, actual);
  return false;
}

static bool place_arguments(Elab *e, Call *call, const Actuals *actuals) {
  const char *cursor = call->builtin->params;
  Word word = {0};
  int slot = 0;
  bool ok = true, more = next_word(&cursor, &word);
  for (int i = 0; i < actuals->items.len; i++) {
    const Actual *actual = &actuals->items.data[i];
    if (actual->keyword) continue;
    if (more && word.star && !word.keywords) {
      add_rest(e, call, actual, actuals->items.len);
    } else if (more && !word.keywords) {
      ok = place_argument(e, call, slot++, &word, actual) && ok;
      more = next_word(&cursor, &word);
    } else {
      diag_error(e->ds, DIAG_call_arguments, actual->span, "'%s' takes at most %d positional argument%s",
                 call->builtin->name, slot, slot == 1 ? "" : "s");
      return false;
    }
  }
  for (int i = 0; i < actuals->items.len; i++)
    if (actuals->items.data[i].keyword)
      ok = place_keyword(e, call, &actuals->items.data[i], actuals->items.len) && ok;
  return ok;
}

static bool check_required(Elab *e, const Call *call) {
  const char *cursor = call->builtin->params;
  Word word;
  int slot = 0;
  while (next_word(&cursor, &word)) {
    if (word.star) continue;
    if (!word.flag && call->args[slot].kind == VALUE_ABSENT) {
      diag_error(e->ds, DIAG_call_arguments, call->span, "'%s' needs the argument '%s'", call->builtin->name,
                 word_text(e, &word));
      return false;
    }
    slot++;
  }
  return true;
}

static Value call_builtin(Elab *e, const Builtin *builtin, const Value *self, const Expr *expr,
                          const Actuals *actuals, Name naming) {
  if (!builtin->run)
    return elab_not_supported(e, expr->call.callee->span, text_printf(e->arena, "'%s'", builtin->name));
  if (actuals->poisoned) return value_poison();
  Call call = {.builtin = builtin, .span = expr->span, .callee = expr->call.callee->span, .self = *self};
  for (int i = 0; i < BUILTIN_MAX_ARGS; i++) call.args[i] = (Value){.kind = VALUE_ABSENT};
  if (!place_arguments(e, &call, actuals) || !check_required(e, &call)) return value_poison();
  e->naming = naming;
  e->b.span = expr->span;
  Value out = builtin->run(e, &call);
  e->naming = NULL;
  return out;
}

// ---- functions of the program

static const ParamList *params_of(const Function *function) {
  return function->def ? &function->def->params : &function->lambda->lambda.params;
}

static const char *function_name(const Function *function) {
  return function->def ? function->def->name : "a lambda";
}

static bool keyword_used(const bool *used, const Actuals *actuals, Name name, int *index) {
  for (int i = 0; i < actuals->items.len; i++) {
    if (actuals->items.data[i].keyword != name || used[i]) continue;
    *index = i;
    return true;
  }
  return false;
}

// An element is loaded before the call; a variable is passed itself, so that a macro can set it.
static Value passed_value(Elab *e, const Actual *actual) {
  bool element = actual->value.kind == VALUE_TILE && actual->value.tile->points_only &&
                 actual->value.tile->buffer->type.space != SPACE_BARRIER;
  if (!element) return actual->value;
  TirValue *scalar = staged_element(e, &actual->value, actual->span);
  return scalar ? value_staged(scalar) : value_poison();
}

typedef struct {
  const Function *function;
  const Actuals *actuals;
  bool *used;
  Scope *scope;
  int next;  // positional argument
  Span span;
} Binder;

static const Actual *next_positional(Binder *cx) {
  for (; cx->next < cx->actuals->items.len; cx->next++)
    if (!cx->actuals->items.data[cx->next].keyword) {
      cx->used[cx->next] = true;
      return &cx->actuals->items.data[cx->next++];
    }
  return NULL;
}

static void bind_star(Elab *e, Binder *cx, const Param *param) {
  Value rest = value_sequence(e->arena, VALUE_TUPLE, e->region, NULL, 0);
  for (const Actual *actual; (actual = next_positional(cx));)
    vec_push(e->arena, &rest.sequence->items, passed_value(e, actual));
  scope_bind(cx->scope, param->name, rest, e->region, param->span);
}

static void bind_double_star(Elab *e, Binder *cx, const Param *param) {
  Dict *dict = ARENA_NEW(e->arena, Dict);
  dict->region = e->region;
  for (int i = 0; i < cx->actuals->items.len; i++) {
    const Actual *actual = &cx->actuals->items.data[i];
    if (!actual->keyword || cx->used[i]) continue;
    cx->used[i] = true;
    vec_push(e->arena, &dict->keys, value_string(str_of(actual->keyword)));
    vec_push(e->arena, &dict->values, passed_value(e, actual));
  }
  Value value = {.kind = VALUE_DICT, .dict = dict};
  scope_bind(cx->scope, param->name, value, e->region, param->span);
}

static bool bind_default(Elab *e, Binder *cx, const Param *param) {
  if (!param->default_value) {
    diag_error(e->ds, DIAG_call_arguments, cx->span, "%s needs the argument '%s'",
               function_name(cx->function), param->name);
    diag_note(e->ds, param->span, "declared here");
    return false;
  }
  Scope *outer = e->scope;
  e->scope = cx->function->closure;
  Value value = eval(e, param->default_value);
  e->scope = outer;
  scope_bind(cx->scope, param->name, value, e->region, param->span);
  return true;
}

static bool bind_param(Elab *e, Binder *cx, const Param *param) {
  int index = -1;
  const Actual *actual = NULL;
  if (param->kind == PARAM_NORMAL || param->kind == PARAM_POSITIONAL_ONLY) actual = next_positional(cx);
  if (param->kind != PARAM_POSITIONAL_ONLY && keyword_used(cx->used, cx->actuals, param->name, &index)) {
    if (actual) {
      diag_error(e->ds, DIAG_call_arguments, cx->span, "%s gets '%s' twice", function_name(cx->function),
                 param->name);
      return false;
    }
    actual = &cx->actuals->items.data[index];
    cx->used[index] = true;
  }
  if (!actual) return bind_default(e, cx, param);
  scope_bind(cx->scope, param->name, passed_value(e, actual), e->region, param->span);
  return true;
}

static bool check_leftovers(Elab *e, const Binder *cx) {
  const ParamList *params = params_of(cx->function);
  for (int i = 0; i < cx->actuals->items.len; i++) {
    const Actual *actual = &cx->actuals->items.data[i];
    if (cx->used[i]) continue;
    if (!actual->keyword) {
      diag_error(e->ds, DIAG_call_arguments, actual->span, "%s takes %d argument%s",
                 function_name(cx->function), params->count, params->count == 1 ? "" : "s");
      return false;
    }
    VEC(const char *) names = {0};
    for (int p = 0; p < params->count; p++) vec_push(e->arena, &names, params->items[p].name);
    diag_error(e->ds, DIAG_call_arguments, actual->keyword_span, "%s takes no keyword '%s'",
               function_name(cx->function), actual->keyword);
    const char *near = names.len ? text_nearest(actual->keyword, names.data, names.len) : NULL;
    if (near) diag_hint(e->ds, "did you mean '%s'?", near);
    return false;
  }
  return true;
}

static bool bind_params(Elab *e, Binder *cx) {
  const ParamList *params = params_of(cx->function);
  for (int i = 0; i < params->count; i++) {
    const Param *param = &params->items[i];
    if (param->kind == PARAM_STAR)
      bind_star(e, cx, param);
    else if (param->kind == PARAM_DOUBLE_STAR)
      bind_double_star(e, cx, param);
    else if (!bind_param(e, cx, param))
      return false;
  }
  return check_leftovers(e, cx);
}

static Value run_body(Elab *e, const Function *function) {
  if (function->lambda) return eval(e, function->lambda->lambda.body);
  e->returned = value_none();
  Flow flow = exec_block(e, &function->def->body);
  Value out = flow == FLOW_RETURN ? e->returned : value_none();
  return e->stopped ? value_poison() : out;
}

static Value run_function(Elab *e, const Function *function, Scope *scope) {
  Scope *outer_scope = e->scope;
  Value outer_returned = e->returned;
  bool outer_range = e->python_range, open_names = e->open_names;
  e->open_names = false;
  e->scope = scope;
  Frame frame;
  elab_frame_enter(e, &frame, FRAME_FUNCTION);
  e->python_range = !function->is_macro;
  Value out = run_body(e, function);
  elab_frame_leave(e, &frame);
  e->python_range = outer_range;
  e->open_names = open_names;
  e->returned = outer_returned;
  e->scope = outer_scope;
  return out;
}

static Value call_function(Elab *e, const Function *function, const Actuals *actuals, Span span) {
  if (actuals->poisoned) return value_poison();
  if (function->is_kernel) {
    diag_error(e->ds, DIAG_kernel_form, span, "'%s' is a kernel: it is launched, not called",
               function_name(function));
    return value_poison();
  }
  if (e->calls >= MAX_CALLS) {
    diag_error(e->ds, DIAG_compile_time_limit, span, "calls are nested more than %d deep", MAX_CALLS);
    e->stopped = true;
    return value_poison();
  }
  Binder cx = {.function = function, .actuals = actuals, .span = span};
  cx.scope = scope_new(e->arena, function->closure);
  cx.used = ARENA_ARRAY(e->arena, bool, actuals->items.len + 1);
  if (!bind_params(e, &cx)) return value_poison();
  e->calls++;
  diag_push_frame(e->ds, span, "in %s'%s', called here", function->is_macro ? "macro " : "",
                  function_name(function));
  Value out = run_function(e, function, cx.scope);
  diag_pop_frame(e->ds);
  e->calls--;
  return out;
}

// ---- decorators

// The last word of `T.prim_func` or `tilelang.jit(out_idx=[-1])`.
static const char *decorator_word(const Expr *decorator) {
  if (decorator->kind == EXPR_CALL) return decorator_word(decorator->call.callee);
  if (decorator->kind == EXPR_ATTRIBUTE) return decorator->attribute.name;
  return decorator->kind == EXPR_NAME ? decorator->name : "";
}

bool is_kernel_decorator(const Expr *decorator) {
  const char *word = decorator_word(decorator);
  return strcmp(word, "kernel") == 0 || strcmp(word, "prim_func") == 0 || strcmp(word, "jit") == 0;
}

static void read_decorator(Elab *e, const Expr *decorator, Function *out) {
  static const char *const known[] = {"kernel", "prim_func", "jit", "macro"};
  const char *word = decorator_word(decorator);
  if (is_kernel_decorator(decorator)) {
    out->is_kernel = true;
  } else if (strcmp(word, "macro") == 0) {
    out->is_macro = true;
  } else if (strcmp(word, "autotune") == 0) {
    diag_remark(e->ds, decorator->span, "'autotune' has no effect: parameters keep their defaults");
  } else {
    diag_error(e->ds, DIAG_unknown_name, decorator->span, "unknown decorator '%s'",
               elab_text(e, decorator->span));
    const char *near = text_nearest(word, known, 4);
    if (near) diag_hint(e->ds, "did you mean '@%s'?", near);
  }
}

Value make_function(Elab *e, const Stmt *stmt) {
  Function *function = ARENA_NEW(e->arena, Function);
  *function = (Function){.def = &stmt->function, .closure = e->scope, .span = stmt->span};
  for (int i = 0; i < stmt->function.decorators.count; i++)
    read_decorator(e, stmt->function.decorators.items[i], function);
  return (Value){.kind = VALUE_FUNCTION, .function = function};
}

// ---- dispatch

// `float32(x)` is cast(x, float32).
static Value call_dtype(Elab *e, const Value *callee, const Expr *expr, const Actuals *actuals) {
  if (actuals->poisoned) return value_poison();
  DType dtype;
  if (!need_dtype(e, callee, expr->call.callee->span, "the type of a conversion", &dtype))
    return value_poison();
  if (actuals->items.len != 1 || actuals->items.data[0].keyword) {
    diag_error(e->ds, DIAG_call_arguments, expr->span, "%s(…) takes one value", dtype_name(dtype));
    return value_poison();
  }
  TirValue *scalar = staged_as(e, &actuals->items.data[0].value, dtype, actuals->items.data[0].span);
  return scalar ? value_staged(scalar) : value_poison();
}

// A kernel function, or one that makes kernels, does not hide a builtin of its own name: calling it from a
// kernel would mean nothing.
static bool hides_builtin(Name name, const Binding *binding) {
  const FunctionDef *def = NULL;
  if (binding->lazy && binding->lazy->kind == STMT_FUNCTION) def = &binding->lazy->function;
  if (!binding->lazy && binding->value.kind == VALUE_FUNCTION) def = binding->value.function->def;
  bool unread = binding->lazy && binding->lazy->kind == STMT_UNPARSED;
  return !(unread || (def && elab_makes_kernel(def))) || !builtin_find(name);
}

static Value eval_callee(Elab *e, const Expr *callee) {
  const Binding *binding = callee->kind == EXPR_NAME ? scope_find(e->scope, callee->name) : NULL;
  if (!binding || hides_builtin(callee->name, binding)) return eval_raw(e, callee);
  return (Value){.kind = VALUE_BUILTIN, .builtin = builtin_find(callee->name)};
}

static Value call(Elab *e, const Expr *expr, Name naming) {
  Value callee = eval_callee(e, expr->call.callee);
  DeviceText text = {0};
  e->device_text = callee.kind == VALUE_BUILTIN && builtin_prints(callee.builtin) ? &text : NULL;
  Actuals actuals = eval_actuals(e, expr);
  const Value none = value_none();
  switch (callee.kind) {
  case VALUE_POISON:
    return callee;
  case VALUE_BUILTIN:
    return call_builtin(e, callee.builtin, &none, expr, &actuals, naming);
  case VALUE_METHOD:
    return call_builtin(e, callee.method->builtin, &callee.method->self, expr, &actuals, naming);
  case VALUE_FUNCTION:
    return call_function(e, callee.function, &actuals, expr->span);
  case VALUE_DTYPE:
    return call_dtype(e, &callee, expr, &actuals);
  case VALUE_ABSENT:
  case VALUE_NONE:
  case VALUE_ELLIPSIS:
  case VALUE_BOOL:
  case VALUE_INT:
  case VALUE_FLOAT:
  case VALUE_STRING:
  case VALUE_TUPLE:
  case VALUE_LIST:
  case VALUE_DICT:
  case VALUE_RANGE:
  case VALUE_MODULE:
  case VALUE_LOOP:
  case VALUE_KERNEL:
  case VALUE_SCHEDULER:
  case VALUE_TENSOR:
  case VALUE_PARAM:
  case VALUE_STAGED:
  case VALUE_CELL:
  case VALUE_BUFFER:
  case VALUE_TILE:
    break;
  }
  diag_error(e->ds, DIAG_value_kind, expr->call.callee->span, "%s cannot be called",
             value_describe(e->arena, &callee));
  return value_poison();
}

// Arguments are not what the assigned name is for.
Value eval_call(Elab *e, const Expr *expr) {
  Name naming = e->naming;
  DeviceText *text = e->device_text;
  e->naming = NULL;
  Value out = call(e, expr, naming);
  e->device_text = text;
  e->naming = naming;
  return out;
}

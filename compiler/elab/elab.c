// The door of the room: which functions of a file are kernels, their -D values, and the bounds on what
// running them may cost.
#include "elab/elab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elab/elab_internal.h"
#include "syntax/syntax.h"

static const Span nowhere = {0, 0};

// ---- bounds

static void stop(Elab *e, Span span, const char *what, int limit) {
  if (!e->stopped) {
    diag_error(e->ds, DIAG_compile_time_limit, span, "more than %d %s at compile time", limit, what);
    diag_hint(e->ds, "a loop over serial(…) or unroll(…) is elaborated once, whatever its bound");
  }
  e->stopped = true;
}

bool elab_step(Elab *e, Span span) {
  if (e->stopped) return false;
  if (++e->steps > MAX_STEPS) stop(e, span, "expressions and statements", MAX_STEPS);
  if (e->kernel && e->kernel->next_id > MAX_OPS) stop(e, span, "tile IR values", MAX_OPS);
  // A loop of the compiler that finds the same mistake in every turn finds nothing more.
  if (diags_at_limit(e->ds) || diags_repeated(e->ds) > MAX_REPEATS) e->stopped = true;
  return !e->stopped;
}

bool elab_enter(Elab *e, Span span) {
  if (++e->depth <= MAX_DEPTH) return true;
  stop(e, span, "levels of nesting", MAX_DEPTH);
  return false;
}

void elab_leave(Elab *e) {
  e->depth--;
}

Region *elab_region_push(Elab *e, RegionKind kind, Span span, bool thread_dependent) {
  Region *region = ARENA_NEW(e->arena, Region);
  *region = (Region){.parent = e->region, .kind = kind, .span = span};
  region->depth = e->region ? e->region->depth + 1 : 0;
  region->thread_dependent = thread_dependent || (e->region && e->region->thread_dependent);
  region->parted = e->region && e->region->thread_dependent ? e->region->parted : span;
  return e->region = region;
}

bool elab_may_nest(Elab *e, Span span) {
  int loops = 0;
  for (const Region *region = e->region; region; region = region->parent)
    loops += region->kind == REGION_LOOP;
  if (e->region->depth >= MAX_REGIONS)
    stop(e, span, "nested loops and branches of the device", MAX_REGIONS);
  else if (loops >= MAX_LOOPS)
    stop(e, span, "nested loops of the device", MAX_LOOPS);
  return !e->stopped;
}

TirThreads elab_active(const Elab *e) {
  return tir_active_threads(e->b.block);
}

void elab_region_pop(Elab *e) {
  e->region = e->region->parent;
}

static const Region *enclosing(const Region *region, RegionKind kind) {
  for (; region; region = region->parent)
    if (region->kind == kind) return region;
  return NULL;
}

bool elab_placed(Elab *e, Span span, const char *what, bool together) {
  if (e->region->kind == REGION_HOST) {
    diag_error(e->ds, DIAG_kernel_form, span, "%s stands outside `with Kernel(…)`", what);
    if (e->with_span.end == 0)
      diag_hint(e->ds, "a kernel's work is the body of `with Kernel(grid, threads=128) as bx:`");
    return false;
  }
  const Region *parallel = enclosing(e->region, REGION_PARALLEL);
  if (together && parallel) {
    diag_error(e->ds, DIAG_placement, span,
               "%s cannot stand in Parallel: its iterations belong to single threads", what);
    diag_note(e->ds, parallel->span, "Parallel is here");
    return false;
  }
  if (together && e->region->thread_dependent) {
    diag_error(e->ds, DIAG_placement, span,
               "%s is done by the active threads together, and stands under a condition that they may decide "
               "differently",
               what);
    diag_note(e->ds, e->region->parted, "the condition is here");
    diag_hint(e->ds,
              "a condition on the thread index alone that is true for a range of threads makes a role, as "
              "`if tx < 32:` does");
    return false;
  }
  return true;
}

TirValue *elab_thread_idx(Elab *e) {
  TirBuilder b = tir_builder_at_end(e->module, e->kernel->body, e->b.span);
  if (e->kernel->body->first) b.before = e->kernel->body->first;
  if (!e->thread_idx) e->thread_idx = tir_thread_idx(&b);
  return e->thread_idx;
}

Value elab_not_supported(Elab *e, Span span, const char *what) {
  diag_error(e->ds, DIAG_not_supported, span, "%s is not supported yet", what);
  return value_poison();
}

const char *elab_text(Elab *e, Span span) {
  uint32_t len = span.end - span.begin;
  if (span.end == 0 || span.end > e->ast->source->len) return "";
  char *text = arena_alloc(e->arena, (size_t)len + 1);
  memcpy(text, e->ast->source->text + span.begin, len);
  for (uint32_t i = 0; i < len; i++)
    if (text[i] == '\n' || text[i] == '\t') text[i] = ' ';
  if (len > 80) memcpy(text + 77, "...", 4);
  return text;
}

// ---- -D

static bool whole_number(const char *text, int64_t *out) {
  char *end;
  errno = 0;
  long long value = strtoll(text, &end, 0);
  *out = value;
  return end != text && *end == 0 && errno == 0;
}

static bool real_number(const char *text, double *out) {
  char *end;
  *out = strtod(text, &end);
  return end != text && *end == 0 && strpbrk(text, "0123456789") != NULL;
}

// A Python literal or a dtype; any other word is a string.
static Value define_value(Elab *e, const char *text) {
  int64_t integer;
  double real;
  DType dtype;
  size_t len = strlen(text);
  if (whole_number(text, &integer)) return value_int(integer);
  if (real_number(text, &real)) return value_float(real);
  if (strcmp(text, "True") == 0 || strcmp(text, "False") == 0) return value_bool(text[0] == 'T');
  if (strcmp(text, "None") == 0) return value_none();
  const char *word = strncmp(text, "T.", 2) == 0 ? text + 2 : text;
  if (dtype_parse(word, &dtype)) return value_dtype(dtype);
  bool quoted = len >= 2 && (text[0] == '\'' || text[0] == '"') && text[len - 1] == text[0];
  if (quoted) return value_string((Str){text_copy(e->arena, text + 1, len - 2), len - 2});
  return value_string(str_of(text));
}

static void remember_definable(Elab *e, Name name) {
  for (int i = 0; i < e->definable.len; i++)
    if (strcmp(e->definable.data[i], name) == 0) return;
  vec_push(e->arena, &e->definable, name);
}

bool elab_define(Elab *e, Name name, Value *out) {
  remember_definable(e, name);
  return elab_given(e, name, out);
}

bool elab_given(Elab *e, Name name, Value *out) {
  bool found = false;
  for (int i = 0; i < e->options->ndefines; i++) {
    if (strcmp(e->options->defines[i].name, name) != 0) continue;
    *out = define_value(e, e->options->defines[i].value);
    e->define_used[i] = found = true;
  }
  return found;
}

const char *elab_spell_define(const Elab *e, Name name, const char *value) {
  const char *place = NULL, *equals = value ? "=" : "";
  for (int i = 0; i < e->options->ndefines; i++)
    if (!strcmp(e->options->defines[i].name, name)) place = e->options->defines[i].place;
  if (!value) value = "";
  return place ? text_printf(e->arena, "%s%s%s of %s", name, equals, value, place)
               : text_printf(e->arena, "-D %s%s%s", name, equals, value);
}

static void report_unused_defines(Elab *e) {
  for (int i = 0; i < e->options->ndefines; i++) {
    if (e->define_used[i]) continue;
    const char *name = e->options->defines[i].name;
    diag_error(e->ds, DIAG_define, nowhere, "%s: no size or compile-time parameter has that name",
               elab_spell_define(e, name, NULL));
    const char *near = e->definable.len ? text_nearest(name, e->definable.data, e->definable.len) : NULL;
    TextBuf names = {.arena = e->arena};
    for (int k = 0; k < e->definable.len; k++) textbuf_printf(&names, " %s", e->definable.data[k]);
    if (near)
      diag_hint(e->ds, "did you mean %s%s=…?", e->options->defines[i].place ? "" : "-D ", near);
    else if (e->definable.len)
      diag_hint(e->ds, "-D may set:%s", names.data);
  }
}

// ---- the file

static void bind_lazily(Elab *e, Name name, const Stmt *stmt, Span span) {
  scope_bind(e->globals, name, value_poison(), e->host, span)->lazy = stmt;
}

static void bind_targets(Elab *e, const Expr *target, const Stmt *stmt) {
  if (target->kind == EXPR_NAME) bind_lazily(e, target->name, stmt, target->span);
  if (target->kind == EXPR_TUPLE || target->kind == EXPR_LIST)
    for (int i = 0; i < target->elements.count; i++) bind_targets(e, target->elements.items[i], stmt);
}

static void bind_globals(Elab *e) {
  for (int i = 0; i < e->ast->body.count; i++) {
    const Stmt *stmt = e->ast->body.stmts[i];
    if (stmt->kind == STMT_FUNCTION)
      bind_lazily(e, stmt->function.name, stmt, stmt->function.name_span);
    else if (stmt->kind == STMT_UNPARSED)
      bind_lazily(e, stmt->unparsed.name, stmt, stmt->unparsed.name_span);
    else if (stmt->kind == STMT_ASSIGN)
      for (int t = 0; t < stmt->assign.targets.count; t++)
        bind_targets(e, stmt->assign.targets.items[t], stmt);
    else if (stmt->kind == STMT_ANN_ASSIGN)
      bind_targets(e, stmt->ann_assign.target, stmt);
  }
}

static bool has_kernel_decorator(const FunctionDef *def) {
  for (int i = 0; i < def->decorators.count; i++)
    if (is_kernel_decorator(def->decorators.items[i])) return true;
  return false;
}

// A kernel function, or one around a kernel function.
bool elab_makes_kernel(const FunctionDef *def) {
  if (has_kernel_decorator(def)) return true;
  for (int i = 0; i < def->body.count; i++) {
    const Stmt *stmt = def->body.stmts[i];
    if (stmt->kind == STMT_FUNCTION && has_kernel_decorator(&stmt->function)) return true;
  }
  return false;
}

static bool text_makes_kernel(const Elab *e, const Stmt *stmt) {
  Span span = stmt->unparsed.text;
  return memmem(e->ast->source->text + span.begin, span.end - span.begin, "Kernel(", 7) != NULL;
}

// Constants of the file run again for each kernel: they may hold sizes, which belong to one.
static void elaborate_kernel(Elab *e, Name name) {
  bind_globals(e);
  Binding *binding = scope_own(e->globals, name);
  Value value = eval_binding(e, name, binding, binding->span);
  if (value.kind != VALUE_FUNCTION || !value.function->def) return;
  e->kernel = tir_kernel_new(e->module, name, value.function->span);
  e->kernel_name = name;
  e->b = tir_builder_at_end(e->module, e->kernel->body, value.function->span);
  e->with_span = nowhere;
  e->blocks = NULL;
  e->threads = 0;
  e->thread_idx = NULL;
  memset(e->block_idx, 0, sizeof e->block_idx);
  e->initialized = map_new(e->arena);
  e->steps = 0;
  e->stopped = false;
  e->frame = NULL;
  e->region = e->host;
  e->scope = e->globals;
  run_kernel_function(e, value.function);
  if (!e->stopped) annotate_check(e);
  e->kernel->facts |= TIR_TYPED;
}

static Name name_of(const Stmt *stmt) {
  if (stmt->kind == STMT_FUNCTION) return stmt->function.name;
  return stmt->kind == STMT_UNPARSED ? stmt->unparsed.name : NULL;
}

static bool is_wanted(const Elab *e, const Stmt *stmt) {
  Name name = name_of(stmt);
  if (!name) return false;
  if (e->options->kernel) return strcmp(e->options->kernel, name) == 0;
  return stmt->kind == STMT_FUNCTION ? elab_makes_kernel(&stmt->function) : text_makes_kernel(e, stmt);
}

// A function whose body opens `with Kernel(…)`.
static bool opens_kernel(Elab *e, const FunctionDef *def) {
  for (int i = 0; i < def->body.count; i++) {
    const Stmt *stmt = def->body.stmts[i];
    if (stmt->kind == STMT_WITH && strstr(elab_text(e, stmt->with.items[0].context->span), "Kernel("))
      return true;
  }
  return false;
}

static void report_no_kernel_in_file(Elab *e) {
  for (int i = 0; i < e->ast->body.count; i++) {
    const Stmt *stmt = e->ast->body.stmts[i];
    if (stmt->kind != STMT_FUNCTION || !opens_kernel(e, &stmt->function)) continue;
    diag_error(e->ds, DIAG_kernel_form, stmt->function.name_span,
               "the file holds no kernel: '%s' opens `with Kernel(…)`, but is not declared to be one",
               stmt->function.name);
    diag_hint(e->ds, "write @kernel on the line above `def %s`", stmt->function.name);
    return;
  }
  diag_error(e->ds, DIAG_kernel_form, nowhere,
             "the file holds no kernel: a function under @kernel or @T.prim_func");
}

static void report_no_kernels(Elab *e) {
  VEC(const char *) names = {0};
  TextBuf kernels = {.arena = e->arena};
  if (!e->options->kernel) {
    report_no_kernel_in_file(e);
    return;
  }
  for (int i = 0; i < e->ast->body.count; i++) {
    const Stmt *stmt = e->ast->body.stmts[i];
    if (stmt->kind != STMT_FUNCTION) continue;
    vec_push(e->arena, &names, stmt->function.name);
    if (elab_makes_kernel(&stmt->function)) textbuf_printf(&kernels, " %s", stmt->function.name);
  }
  diag_error(e->ds, DIAG_kernel_form, nowhere, "the file holds no function '%s'", e->options->kernel);
  const char *near = names.len ? text_nearest(e->options->kernel, names.data, names.len) : NULL;
  if (near)
    diag_hint(e->ds, "did you mean --kernel %s?", near);
  else if (kernels.len)
    diag_hint(e->ds, "its kernels are:%s", kernels.data);
}

// In Python the last definition of a name is the one that counts.
static bool is_redefined(const Elab *e, int index) {
  for (int i = index + 1; i < e->ast->body.count; i++)
    if (name_of(e->ast->body.stmts[i]) == name_of(e->ast->body.stmts[index])) return true;
  return false;
}

static void elaborate_file(Elab *e) {
  bool any = false;
  for (int i = 0; i < e->ast->body.count && !diags_at_limit(e->ds); i++) {
    const Stmt *stmt = e->ast->body.stmts[i];
    if (!is_wanted(e, stmt) || is_redefined(e, i)) continue;
    any = true;
    elaborate_kernel(e, name_of(stmt));
  }
  if (!any) report_no_kernels(e);
}

TirModule *elaborate(Arena *arena, Interner *names, const Module *ast, const ElabOptions *options,
                     Diags *ds) {
  Elab e = {.arena = arena, .names = names, .ast = ast, .options = options, .ds = ds};
  int errors = diags_errors(ds);
  e.module = tir_module_new(arena, names);
  e.define_used = ARENA_ARRAY(arena, bool, options->ndefines + 1);
  e.globals = scope_new(arena, NULL);
  e.scope = e.globals;
  e.initialized = map_new(arena);
  e.host = elab_region_push(&e, REGION_HOST, nowhere, false);
  elaborate_file(&e);
  // Where parameters are in error, a name that they would have used may look unused.
  if (!e.params_in_error) report_unused_defines(&e);
  return diags_errors(ds) == errors ? e.module : NULL;
}

// What the source says of decisions that the passes make by rule: annotate(…), and TileLang's spellings of the same, which are
// pass configurations (of the decorator and of annotate_pass_configs) and disable_warp_group_reg_alloc().
#include "elab/elab_internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

// ---- choices of the kernel

// `said` of `kind` is not what the kernel says of `other`.
static void report_contradiction(Elab *e, ChoiceKind kind, const TirChoice *said, ChoiceKind other) {
  const TirChoice *first = &e->kernel->choices[other];
  char number[16], other_number[16];
  diag_error(e->ds, DIAG_kernel_form, said->span, "%s=%s contradicts %s=%s", choice_def(kind)->name,
             choice_text(kind, said->value, true, number), choice_def(other)->name,
             choice_text(other, first->value, true, other_number));
  diag_note(e->ds, first->span, "which the kernel says here");
}

static void choose(Elab *e, ChoiceKind kind, int value, Span span) {
  TirChoice *choice = &e->kernel->choices[kind];
  if (!choice->given) {
    *choice = (TirChoice){true, value, span};
  } else if (choice->value != value) {
    report_contradiction(e, kind, &(TirChoice){true, value, span}, kind);
  }
}

// What is said holds for the kernel, so it may not look as if a branch decided it.
static bool stands_well(Elab *e, const Call *call) {
  const Region *region = e->region;
  while (region->kind == REGION_REST) region = region->parent;
  if (!e->kernel || e->scope == e->globals) {
    diag_error(e->ds, DIAG_kernel_form, call->span, "%s stands outside of a kernel", call->builtin->name);
    return false;
  }
  if (region->kind == REGION_HOST || region->kind == REGION_KERNEL) return true;
  diag_error(e->ds, DIAG_placement, call->span,
             "%s is about the whole kernel: it cannot stand in a loop or branch of the device",
             call->builtin->name);
  diag_note(e->ds, region->span, "the loop or branch is here");
  return false;
}

static void refuse_value(Elab *e, ChoiceKind kind, const Value *value, Span span) {
  const ChoiceDef *def = choice_def(kind);
  if (value_is_poison(value)) return;
  if (value_is_staged(value))
    report_not_compile_time(e, value, span, def->name);
  else if (def->most)
    diag_error(e->ds, DIAG_value_kind, span, "%s is %s; legal are 1 to %d and None", def->name,
               value_repr(e->arena, value, true), def->most);
  else
    diag_error(e->ds, DIAG_value_kind, span, "%s is %s; legal are True, False and None", def->name,
               value_repr(e->arena, value, true));
}

static void choose_value(Elab *e, ChoiceKind kind, const Value *value, Span span) {
  int least = choice_def(kind)->most ? 1 : 0, most = choice_def(kind)->most ? choice_def(kind)->most : 1;
  ValueKind wanted =
      choice_def(kind)->most ? VALUE_INT : VALUE_BOOL;  // 1 is no True: it looks like a number of something
  if (value->kind == VALUE_NONE) return;
  if (value->kind != wanted || value_as_int(value) < least || value_as_int(value) > most)
    refuse_value(e, kind, value, span);
  else
    choose(e, kind, (int)value_as_int(value), span);
}

static void unknown_choice(Elab *e, Name name, Span span) {
  const char *names[CHOICE_COUNT];
  TextBuf all = {.arena = e->arena};
  for (int i = 0; i < CHOICE_COUNT; i++) {
    names[i] = choice_def((ChoiceKind)i)->name;
    textbuf_printf(&all, "%s%s", i ? ", " : "", names[i]);
  }
  diag_error(e->ds, DIAG_call_arguments, span, "'annotate' takes no keyword '%s'; legal are %s", name,
             all.data);
  const char *near = text_nearest(name, names, CHOICE_COUNT);
  if (near) diag_hint(e->ds, "did you mean '%s'?", near);
}

static Value run_annotate(Elab *e, const Call *call) {
  if (!stands_well(e, call)) return value_poison();
  for (int i = 0; i < call->nrest; i++) {
    ChoiceKind kind;
    if (choice_find(call->rest_names[i], &kind))
      choose_value(e, kind, &call->rest[i], call->rest_spans[i]);
    else
      unknown_choice(e, call->rest_names[i], call->rest_spans[i]);
  }
  return value_none();
}

// TileLang: registers stay as the launch shares them out.
static Value run_equal_registers(Elab *e, const Call *call) {
  if (stands_well(e, call)) choose(e, CHOICE_registers, false, call->span);
  return value_none();
}

// Blocks that stay number the tiles of the grid.
static void check_tiles(Elab *e) {
  const TirOp *grid = schedule_grid(e);
  const TirChoice *asked = &e->kernel->choices[CHOICE_persistent];
  if (!tir_asks_for(e->kernel, CHOICE_persistent) || !grid || grid->nargs < 2) return;
  TirValue *tiles = grid->args[0];
  e->b.span = asked->span;
  for (int i = 1; i < grid->nargs; i++) tiles = tir_binary(&e->b, OP_mul, tiles, grid->args[i]);
  schedule_check_count(e, tiles, asked->span, "persistent=True");
}

// What a pass is asked for, and the pass itself forbidden.
static void check_contradictions(Elab *e) {
  for (int i = 0; i < CHOICE_COUNT; i++) {
    ChoiceKind kind = (ChoiceKind)i, pass;
    if (tir_asks_for(e->kernel, kind) && choice_find(choice_def(kind)->pass, &pass) &&
        tir_forbids(e->kernel, pass))
      report_contradiction(e, kind, &e->kernel->choices[kind], pass);
  }
}

void annotate_check(Elab *e) {
  const TirChoice *rows = &e->kernel->choices[CHOICE_group_rows];
  check_tiles(e);
  check_contradictions(e);
  if (!rows->given || !e->kernel->block_order) return;
  diag_error(e->ds, DIAG_kernel_form, rows->span,
             "group_rows and use_swizzle both say in which order tiles are taken");
  diag_hint(e->ds, "use_swizzle(%d) alone does, whether blocks stay or not", rows->value);
}

// ---- pass configurations

// True leaves out what the choice decides; False, TileLang's own default, leaves it to the rules.
static const struct {
  const char *key;
  ChoiceKind choice;
} configs[] = {{"tl.disable_warp_specialized", CHOICE_roles}, {"tl.disable_tma_lower", CHOICE_tma}};

enum { CONFIG_COUNT = sizeof configs / sizeof *configs };

// PassConfigKey.TL_DISABLE_TMA_LOWER is "tl.disable_tma_lower".
Value annotate_config_key(Elab *e, Name name) {
  size_t len = strlen(name), bar = strcspn(name, "_");
  char *text = ARENA_ARRAY(e->arena, char, len + 1);
  for (size_t i = 0; i < len; i++) text[i] = (char)tolower((unsigned char)name[i]);
  if (bar < len) text[bar] = '.';
  return value_string((Str){text, len});
}

static void ignore_config(Elab *e, Str key, Span span) {
  const char *names[CONFIG_COUNT], *name = text_copy(e->arena, key.data, key.len);
  for (int i = 0; i < CONFIG_COUNT; i++) names[i] = configs[i].key;
  const char *near = text_nearest(name, names, CONFIG_COUNT);
  diag_remark(e->ds, span, "pass configuration '%s' has no effect%s%s%s", name,
              near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static void use_configs(Elab *e, const Value *dict, Span span) {
  for (int i = 0; i < dict->dict->keys.len; i++) {
    Str key;
    bool on, known = false;
    if (!need_string(e, &dict->dict->keys.data[i], span, "the key of a pass configuration", &key)) continue;
    for (int c = 0; c < CONFIG_COUNT; c++) {
      if (!str_is(key, configs[c].key)) continue;
      known = true;
      if (need_bool(e, &dict->dict->values.data[i], span, configs[c].key, &on) && on)
        choose(e, configs[c].choice, false, span);
    }
    if (!known) ignore_config(e, key, span);
  }
}

static Value run_annotate_pass_configs(Elab *e, const Call *call) {
  if (!stands_well(e, call) || value_is_poison(&call->args[0])) return value_none();
  if (call->args[0].kind == VALUE_DICT)
    use_configs(e, &call->args[0], call->spans[0]);
  else
    diag_error(e->ds, DIAG_value_kind, call->spans[0], "pass configurations are a dict, not %s",
               value_describe(e->arena, &call->args[0]));
  return value_none();
}

// A program may make its configurations in any way that Python knows; a dict that stands in the text is read.
static bool is_readable(const Elab *e, const Expr *expr) {
  if (expr->kind == EXPR_DICT) return true;
  const Binding *binding = expr->kind == EXPR_NAME ? scope_find(e->scope, expr->name) : NULL;
  if (!binding) return false;
  if (!binding->lazy) return binding->value.kind == VALUE_DICT;
  return binding->lazy->kind == STMT_ASSIGN && binding->lazy->assign.value->kind == EXPR_DICT;
}

static void use_config_argument(Elab *e, const Expr *expr) {
  if (expr->kind == EXPR_NONE) return;
  if (!is_readable(e, expr)) {
    diag_remark(e->ds, expr->span, "these pass configurations have no effect: no dict stands here");
    return;
  }
  Value value = eval(e, expr);
  if (value.kind == VALUE_DICT) use_configs(e, &value, expr->span);
}

void annotate_by_decorators(Elab *e, const Function *function) {
  Scope *outer = e->scope;
  e->scope = function->closure;
  for (int i = 0; i < function->def->decorators.count; i++) {
    const Expr *decorator = function->def->decorators.items[i];
    for (int a = 0; decorator->kind == EXPR_CALL && a < decorator->call.nargs; a++) {
      const Arg *arg = &decorator->call.args[a];
      if (arg->kind == ARG_KEYWORD && !strcmp(arg->name, "pass_configs")) use_config_argument(e, arg->value);
    }
  }
  e->scope = outer;
}

const Builtin builtins_annotate[] = {
    {"annotate", "**choices", run_annotate},
    {"annotate_pass_configs", "pass_configs", run_annotate_pass_configs},
    {"disable_warp_group_reg_alloc", "", run_equal_registers},
    {"no_set_max_nreg", "", run_equal_registers},
    {NULL, NULL, NULL},
};

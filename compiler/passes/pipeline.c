// The pass table in the order of execution, and its runner. A pass sees one kernel; a kernel that a pass
// reported something about leaves the module, so that the other kernels are still checked. A pass may append
// kernels (variants): they are reached by the same pass, later in the same round.
#include "passes/pipeline.h"

#include <setjmp.h>
#include <string.h>

#include "tir/text.h"

static const Pass pipeline[] = {
    // name           function            needs            gives           least -O, with
    {"select", pass_select, TIR_TYPED, TIR_SELECTED, 0, NULL},
    {"stores", pass_stores, TIR_SELECTED, 0, 1, NULL},
    {"persistent", pass_persistent, TIR_SELECTED, 0, 2, "roles"},
    {"defer", pass_defer, TIR_SELECTED, 0, 2, "roles"},
    {"roles", pass_roles, TIR_SELECTED, 0, 2, NULL},
    {"memory-layout", pass_memory_layout, TIR_SELECTED, TIR_LAID_OUT, 0, NULL},
    {"fragments", pass_fragments, TIR_LAID_OUT, TIR_FRAGMENTS, 0, NULL},
    {"tmem", pass_tmem, TIR_FRAGMENTS, TIR_TMEM_PLACED, 0, NULL},
    {"barriers", pass_barriers, TIR_TMEM_PLACED, TIR_SYNCED, 0, NULL},
    {"narrow", pass_narrow, TIR_SYNCED, 0, 2, NULL},
    {"regions", pass_regions, TIR_SYNCED, 0, 2, NULL},
    {"overlap", pass_overlap, TIR_SYNCED, 0, 2, NULL},
    {"smem", pass_smem, TIR_SYNCED, TIR_SMEM_PLACED, 0, NULL},
    {"sync-check", pass_sync_check, TIR_SMEM_PLACED, 0, 0, NULL},
};

enum { PASS_COUNT = sizeof pipeline / sizeof *pipeline };

int pipeline_count(void) {
  return PASS_COUNT;
}

const Pass *pipeline_at(int index) {
  return &pipeline[index];
}

const Pass *pipeline_find(const char *name) {
  for (int i = 0; i < PASS_COUNT; i++)
    if (!strcmp(pipeline[i].name, name)) return &pipeline[i];
  return NULL;
}

static bool has_facts(const Pass *pass, const TirKernel *kernel, Diags *ds) {
  if ((kernel->facts & pass->needs) == pass->needs && !(kernel->facts & pass->gives)) return true;
  const char *why = kernel->facts & pass->gives ? "has run already" : "needs the passes before it";
  diag_error(ds, DIAG_pass_order, kernel->span, "pass %s %s on kernel %s", pass->name, why, kernel->name);
  return false;
}

static void drop_kernel(TirModule *module, int index) {
  for (int i = index; i + 1 < module->kernels.len; i++) module->kernels.data[i] = module->kernels.data[i + 1];
  module->kernels.len--;
}

// What the source forbids is left out; it is needed by nothing that follows (docs/roles.md, "Overruling the rules").
static bool is_forbidden(PassCx *cx, const TirKernel *kernel, const Pass *pass) {
  ChoiceKind choice;
  if (!choice_find(pass->name, &choice) || !tir_forbids(kernel, choice)) return false;
  if (kernel->variant != VARIANT_GENERAL)
    diag_remark(cx->ds, kernel->choices[choice].span, "the source leaves the pass %s out", pass->name);
  return true;
}

static bool run_pass(PassCx *cx, const Pass *pass) {
  bool ok = true;
  for (int i = 0; i < cx->module->kernels.len;) {
    TirKernel *kernel = cx->module->kernels.data[i];
    ArenaMark mark = arena_mark(cx->scratch);
    bool done = has_facts(pass, kernel, cx->ds) && (is_forbidden(cx, kernel, pass) || pass->run(cx, kernel));
    arena_reset(cx->scratch, mark);
    if (done) {
      kernel->facts |= pass->gives;
      i++;
    } else {
      drop_kernel(cx->module, i);
      ok = false;
    }
  }
  return ok;
}

static void print_module(const PassCx *cx, const PipelineOptions *options, const Pass *pass) {
  if (!options->print_after || !options->print_to) return;
  if (strcmp(options->print_after, "all") && strcmp(options->print_after, pass->name)) return;
  ArenaMark mark = arena_mark(cx->scratch);
  TextBuf text = {.arena = cx->scratch};
  tir_print(&text, cx->module);
  fprintf(options->print_to, "# after %s\n%s", pass->name, text.data ? text.data : "");
  arena_reset(cx->scratch, mark);
}

static bool run_step(PassCx *cx, const PipelineOptions *options, const Pass *pass) {
  bool ok = run_pass(cx, pass);
  if (!tir_verify(cx->module, cx->ds)) {
    diag_note(cx->ds, (Span){0, 0}, "found after pass %s: a fault of the compiler, please report it",
              pass->name);
    return false;
  }
  print_module(cx, options, pass);
  return ok;
}

// The pass of a --no-PASS that leaves this one out; NULL: none does.
static const char *disabled_by(const PipelineOptions *options, const Pass *pass) {
  for (int i = 0; i < options->ndisabled; i++)
    if (!strcmp(options->disabled[i], pass->name) ||
        (pass->with && !strcmp(options->disabled[i], pass->with)))
      return options->disabled[i];
  return NULL;
}

// Options overrule the source.
static void remark_unheard(PassCx *cx, const PipelineOptions *options, const Pass *pass) {
  const char *by = disabled_by(options, pass);
  const char *option =
      by ? text_printf(cx->scratch, "--no-%s", by) : text_printf(cx->scratch, "-O%d", options->level);
  for (int i = 0; i < cx->module->kernels.len; i++) {
    const TirKernel *kernel = cx->module->kernels.data[i];
    for (int c = 0; c < CHOICE_COUNT && kernel->variant != VARIANT_GENERAL; c++) {
      char number[16];
      const TirChoice *choice = &kernel->choices[c];
      if (!tir_asks_for(kernel, (ChoiceKind)c) || strcmp(choice_def((ChoiceKind)c)->pass, pass->name))
        continue;
      diag_remark(cx->ds, choice->span, "%s leaves out what %s=%s asks for", option,
                  choice_def((ChoiceKind)c)->name, choice_text((ChoiceKind)c, choice->value, true, number));
    }
  }
}

static bool run_only(PassCx *cx, const PipelineOptions *options) {
  bool ok = true;
  for (int i = 0; i < options->nonly; i++) {
    const Pass *pass = pipeline_find(options->only[i]);
    if (!pass) {
      diag_error(cx->ds, DIAG_pass_order, (Span){0, 0}, "pass %s does not exist", options->only[i]);
      return false;
    }
    ok = (disabled_by(options, pass) || run_step(cx, options, pass)) && ok;
  }
  return ok;
}

static bool run_all(PassCx *cx, const PipelineOptions *options) {
  bool ok = true;
  for (int i = 0; i < PASS_COUNT; i++) {
    bool skipped = disabled_by(options, &pipeline[i]) || options->level < pipeline[i].level;
    if (skipped) remark_unheard(cx, options, &pipeline[i]);
    ok = (skipped || run_step(cx, options, &pipeline[i])) && ok;
    if (options->stop_after && !strcmp(options->stop_after, pipeline[i].name)) break;
  }
  return ok;
}

bool pass_refuse_choice(const PassCx *cx, const TirKernel *kernel, ChoiceKind choice, Span at,
                        const char *why) {
  char number[16];
  const TirChoice *asked = &kernel->choices[choice];
  bool elsewhere = at.end && at.begin != asked->span.begin;
  diag_error(cx->ds, DIAG_choice_unmet, elsewhere ? at : asked->span, "%s=%s cannot be: %s",
             choice_def(choice)->name, choice_text(choice, asked->value, true, number), why);
  if (elsewhere) diag_note(cx->ds, asked->span, "the source asks for it here");
  return false;
}

bool run_pipeline(TirModule *module, const Target *target, const PipelineOptions *options, Diags *ds) {
  Arena *scratch = arena_new();
  jmp_buf out_of_memory;
  if (!scratch || setjmp(out_of_memory)) {
    if (scratch) arena_free(scratch);
    diag_error(ds, DIAG_compile_time_limit, (Span){0, 0}, "the passes need more memory than there is");
    return false;
  }
  arena_on_out_of_memory(scratch, &out_of_memory);
  PassCx cx = {module, target, scratch, ds};
  bool ok = tir_verify(module, ds) && (options->only ? run_only(&cx, options) : run_all(&cx, options));
  arena_free(scratch);
  return ok;
}

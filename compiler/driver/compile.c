// THE PIPELINE: text, tree, tile IR, placed tile IR, LLVM IR, PTX, cubin. Each form has a printer; the form
// that was asked for is where it ends. Nothing is written before everything has succeeded.
#include "driver/compile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/codegen.h"
#include "driver/header.h"
#include "driver/launch_info.h"
#include "driver/output.h"
#include "driver/ptxas.h"
#include "driver/spills.h"
#include "driver/tuning_use.h"
#include "passes/pipeline.h"
#include "passes/remarks.h"
#include "syntax/syntax.h"
#include "tir/text.h"

typedef struct {
  Arena *arena;
  const Options *options;
  FILE *messages;
  DiagStyle style;
  Source *source;
  Interner *names;
  Diags *ds, *tuning_ds;  // about the source; about the tuning file, or NULL
  const Target *target;
  const Module *ast;
  TirModule *tir;
  CgModule *cg;
  const char *llvm, *ptx, *header;
  const char *data;  // the output, in the form that was asked for
  size_t len;
  int status;  // of a failure; EXIT_SOURCE unless a stage knows better
} Compilation;

static bool environment_fault(Compilation *c) {
  c->status = EXIT_ENVIRONMENT;
  return false;
}

// ---- stages. Each returns false when it has reported something.

static bool find_target(Compilation *c) {
  const char *name = c->options->arch;
  c->target = target_find(name);
  if (c->target) return true;
  TextBuf names = {.arena = c->arena};
  for (int i = 0; i < target_count(); i++) textbuf_printf(&names, "%s%s", i ? ", " : "", target_at(i)->name);
  const char *why = target_known(name) ? "is not supported" : "does not exist";
  diag_error(c->ds, DIAG_target_name, (Span){0, 0}, "target %s %s; the targets are: %s", name, why,
             names.data);
  return environment_fault(c);
}

static bool read_source(Compilation *c) {
  static const char *const reasons[] = {[SOURCE_UNREADABLE] = "cannot be read",
                                        [SOURCE_TOO_LARGE] = "is larger than 16 MiB",
                                        [SOURCE_BINARY] = "is not UTF-8 text"};
  const char *path = c->options->input;
  SourceStatus status = source_read(c->arena, path, &c->source);
  const char *reason = status == SOURCE_UNREADABLE ? strerror(errno) : NULL;
  if (status != SOURCE_OK) c->source = source_from_text(c->arena, path, "", 0);
  diags_set_source(c->ds, c->source);
  if (status == SOURCE_OK) return true;
  diag_error(c->ds, DIAG_source_file, (Span){0, 0}, "the file %s%s%s", reasons[status], reason ? ": " : "",
             reason ? reason : "");
  return status == SOURCE_UNREADABLE ? environment_fault(c) : false;
}

static bool stage_parse(Compilation *c) {
  return parse(c->arena, c->names, c->source, c->ds, &c->ast);
}

static bool stage_tuning(Compilation *c) {
  bool environment = false;
  if (!c->options->tuning) return true;
  Options *tuned = ARENA_NEW(c->arena, Options);
  *tuned = *c->options;
  c->options = tuned;
  if (tuning_use(c->arena, c->ast, tuned, &c->tuning_ds, &environment)) return true;
  return environment ? environment_fault(c) : false;
}

static bool stage_elaborate(Compilation *c) {
  ElabOptions options = {c->options->defines.data, c->options->defines.len, c->options->kernel};
  c->tir = elaborate(c->arena, c->names, c->ast, &options, c->ds);
  if (!c->tir || tir_verify(c->tir, c->ds)) return c->tir != NULL;
  diag_note(c->ds, (Span){0, 0}, "found after elaboration: a fault of the compiler, please report it");
  return false;
}

static bool stage_read_tir(Compilation *c) {
  c->tir = tir_parse(c->arena, c->names, c->source, c->ds);
  return c->tir && tir_verify(c->tir, c->ds);
}

// Passes that tile IR from a file has not been through, if it has been through any: those behind the last whose facts hold.
static void continue_pipeline(Compilation *c, PipelineOptions *options) {
  unsigned facts = ~0u;
  int begin = 0;
  for (int i = 0; i < c->tir->kernels.len; i++) facts &= c->tir->kernels.data[i]->facts;
  for (int i = 0; i < pipeline_count(); i++)
    if (pipeline_at(i)->gives & facts) begin = i + 1;
  const char **rest = ARENA_ARRAY(c->arena, const char *, pipeline_count());
  options->only = rest;
  for (int i = begin; i < pipeline_count(); i++) {
    const Pass *pass = pipeline_at(i);
    rest[options->nonly++] = pass->name;
    if (options->stop_after && !strcmp(options->stop_after, pass->name)) break;
  }
}

static bool stage_passes(Compilation *c, bool from_tir) {
  const Options *o = c->options;
  if (o->stop_after && !strcmp(o->stop_after, "elaborate")) return true;
  PipelineOptions options = {.level = o->level,
                             .print_after = o->print_after,
                             .stop_after = o->stop_after,
                             .print_to = c->messages,
                             .disabled = o->disabled.data,
                             .ndisabled = o->disabled.len};
  if (from_tir) continue_pipeline(c, &options);
  if (!run_pipeline(c->tir, c->target, &options, c->ds) || diags_errors(c->ds)) return false;
  if (o->remarks) pass_remarks(c->tir, c->target, c->arena, c->ds);
  return true;
}

static bool stage_llvm(Compilation *c) {
  const char *info = launch_info(c->arena, c->tir, c->target, c->ds);
  if (!info) return false;
  c->cg = cg_module(c->tir, c->target, c->source, info, c->ds);
  return c->cg != NULL;
}

static bool stage_ptx(Compilation *c) {
  c->ptx = cg_ptx_text(c->cg, c->arena, c->ds);
  return c->ptx != NULL;
}

static bool stage_cubin(Compilation *c) {
  Cubin cubin;
  const char *says;
  PtxasStatus status = ptxas_run(c->arena, c->options->ptxas, c->target->name, c->ptx, &cubin, &says, c->ds);
  if (status == PTXAS_MISSING) return environment_fault(c);
  if (status != PTXAS_OK) return false;
  spills_report(c->arena, c->tir, says, c->ds);
  cubin_keep_ptx(c->arena, &cubin,
                 c->ptx);  // without it, reports of the emulator only lack the source's lines
  c->data = cubin.data;
  c->len = cubin.len;
  return true;
}

static bool stage_header(Compilation *c) {
  if (!c->options->header) return true;
  c->header = launch_header(c->arena, c->tir, c->target, c->source, c->ds);
  return c->header != NULL;
}

// ---- output

static bool give(Compilation *c, const char *text) {
  c->data = text;
  c->len = text ? strlen(text) : 0;
  return true;
}

static bool give_ast(Compilation *c) {
  char *text = NULL;
  size_t len = 0;
  FILE *file = open_memstream(&text, &len);
  if (!file) return environment_fault(c);
  ast_print(file, c->ast);
  fclose(file);
  give(c, text_copy(c->arena, text, len));
  free(text);
  return true;
}

static bool give_tir(Compilation *c) {
  TextBuf text = {.arena = c->arena};
  tir_print(&text, c->tir);
  return give(c, text.data);
}

// --check: code generation also finds mistakes; what comes after it does not.
static bool checks_all(const Options *options) {
  return !options->print_after && !options->stop_after && !options->header;
}

static bool run_stages(Compilation *c) {
  OutputForm form = c->options->form;
  const char *dot = strrchr(c->options->input, '.');
  bool from_tir = dot && !strcmp(dot, ".tir");

  if (!find_target(c) || !read_source(c)) return false;
  if (!from_tir && !stage_parse(c)) return false;
  if (form == FORM_AST) return give_ast(c);
  if (!from_tir && !stage_tuning(c)) return false;
  if (!(from_tir ? stage_read_tir(c) : stage_elaborate(c))) return false;
  if (!stage_passes(c, from_tir)) return false;
  if (!stage_header(c)) return false;
  if (form == FORM_NONE && !checks_all(c->options)) return true;
  if (form == FORM_TIR) return give_tir(c);
  if (!stage_llvm(c)) return false;
  if (form == FORM_NONE) return true;
  if (form == FORM_LLVM) return give(c, cg_llvm_text(c->cg, c->arena));
  if (!stage_ptx(c)) return false;
  if (form == FORM_PTX) return give(c, c->ptx);
  return stage_cubin(c);
}

static bool write_output(Compilation *c, const char *path, const char *data, size_t len) {
  const char *error;
  if (output_write(c->arena, path, data, len, &error)) return true;
  diag_print_plain(c->messages, &c->style, "tilec", error);
  return environment_fault(c);
}

static bool write_outputs(Compilation *c) {
  const Options *o = c->options;
  if (o->form && !write_output(c, o->output ? o->output : "-", c->data, c->len)) return false;
  return !c->header || write_output(c, o->header, c->header, strlen(c->header));
}

static int compile_guarded(Compilation *c) {
  bool ok = run_stages(c) && diags_errors(c->ds) == 0;
  if (c->cg) cg_free(c->cg);
  c->cg = NULL;
  if (c->tuning_ds) diags_print(c->tuning_ds, c->messages, &c->style);
  diags_print(c->ds, c->messages, &c->style);
  ok = ok && write_outputs(c);
  return ok ? EXIT_FINE : c->status;
}

int compile(Arena *arena, const Options *options, FILE *messages) {
  Compilation *volatile c = NULL;
  jmp_buf out_of_memory;
  if (setjmp(out_of_memory)) {
    if (c && c->cg) cg_free(c->cg);
    DiagStyle style = messages_style(&options->messages, messages, false);
    diag_print_plain(messages, &style, "tilec", "out of memory");
    return EXIT_ENVIRONMENT;
  }
  arena_on_out_of_memory(arena, &out_of_memory);
  c = ARENA_NEW(arena, Compilation);
  *c = (Compilation){.arena = arena, .options = options, .messages = messages, .status = EXIT_SOURCE};
  c->style = messages_style(&options->messages, messages, options->remarks);
  c->names = interner_new(arena);
  c->ds = diags_new(arena, NULL);
  return compile_guarded(c);
}

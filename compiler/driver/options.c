// Options are rows: a name, whether it takes a value, and what to do with it. `--name=value`, `--name value`,
// `-Dx=1` and
// `-D x=1` are the spellings. What the output is follows from all options together, at the end.
#include "driver/options.h"

#include <string.h>

#include "passes/pipeline.h"

typedef struct {
  Arena *arena;
  Options *options;
  const char **message;
  const char *emit;
  bool check;
} Reader;

typedef struct {
  const char *name;
  bool takes_value;
  bool (*set)(Reader *reader, const char *value);
} OptionRow;

static const char *const form_names[FORM_COUNT] = {
    [FORM_NONE] = "",     [FORM_AST] = "ast", [FORM_TIR] = "tir",
    [FORM_LLVM] = "llvm", [FORM_PTX] = "ptx", [FORM_CUBIN] = "cubin",
};
static const char *const form_suffixes[FORM_COUNT] = {
    [FORM_NONE] = "",    [FORM_AST] = ".ast", [FORM_TIR] = ".tir",
    [FORM_LLVM] = ".ll", [FORM_PTX] = ".ptx", [FORM_CUBIN] = ".cubin",
};

static const char usage[] =
    "usage: tilec FILE [options]\n"
    "  -o OUT               write OUT; its suffix says what: .ast .tir .ll .ptx .cubin ('-': standard "
    "output)\n"
    "  --emit=FORM          ast, tir, llvm, ptx or cubin; without -o it is printed\n"
    "  --check              only report what is wrong\n"
    "  --header FILE.h      write a C header with a typed launch function; with -o, beside that output\n"
    "  --kernel NAME        compile that kernel only\n"
    "  --arch NAME          target (--version lists them; the first is the default)\n"
    "  -D NAME=VALUE        a compile-time argument, a size, or a scalar parameter\n"
    "  -O0 ... -O3          -O0, -O1: one role, everything waited for at once; -O2 (unless given), -O3: "
    "warp\n"
    "                       roles for pipelined loops of copies and products\n"
    "  --print-after=PASS   tile IR after a pass, or after 'all', on standard error\n"
    "  --stop-after=PASS    no passes beyond it (elaborate: none at all); the output is tile IR\n"
    "  --no-PASS            leave out a pass that need not run: --no-roles, --no-sync-check\n"
    "  --remarks            what the compiler decided: variants, TMA or threads, shared memory, TMEM\n"
    "  --tuning FILE        settings for the kernel and its sizes that were measured to be best "
    "(docs/tuning.md)\n"
    "  --for M=4096,N=...   sizes that choose an entry there, besides those that -D fixes\n"
    "  --ptxas PATH         the assembler (default: $CUDA_HOME/bin, PATH, /usr/local/cuda/bin, ../tools)\n"
    "  --error-format=FORM  text, or json: an object a line (docs/diagnostics.md)\n"
    "  --color=WHEN         auto (a terminal, unless NO_COLOR is set), always or never\n"
    "  --explain CODE       what a diagnostic means and what to do\n"
    "  --version, --help\n"
    "Without -o, --emit, --check, --print-after or --header, FILE.tile makes FILE.cubin in the current "
    "folder.\n"
    "FILE may also be tile IR (.tir); '-' is standard input.\n"
    "Exit status: 0; 1 the source is at fault; 2 usage or environment.\n";

const char *options_usage(void) {
  return usage;
}

static bool refuse(Reader *reader, const char *message) {
  *reader->message = message;
  return false;
}

// "… ; did you mean 'x'?"
static const char *suggestion(Arena *arena, const char *word, const char *const *names, int count) {
  const char *nearest = text_nearest(word, names, count);
  return nearest ? text_printf(arena, "; did you mean '%s'?", nearest) : "";
}

// ---- one option each

static bool set_output(Reader *reader, const char *value) {
  reader->options->output = value;
  return true;
}
static bool set_emit(Reader *reader, const char *value) {
  reader->emit = value;
  return true;
}
static bool set_kernel(Reader *reader, const char *value) {
  reader->options->kernel = value;
  return true;
}
static bool set_arch(Reader *reader, const char *value) {
  reader->options->arch = value;
  return true;
}
static bool set_ptxas(Reader *reader, const char *value) {
  reader->options->ptxas = value;
  return true;
}
static bool set_header(Reader *reader, const char *value) {
  reader->options->header = value;
  return true;
}
static bool set_format(Reader *reader, const char *value) {
  reader->options->messages.format = value;
  return messages_check(reader->arena, &reader->options->messages, reader->message);
}
static bool set_color(Reader *reader, const char *value) {
  reader->options->messages.color = value;
  return messages_check(reader->arena, &reader->options->messages, reader->message);
}
static bool set_tuning(Reader *reader, const char *value) {
  reader->options->tuning = value;
  return true;
}
static bool set_explain(Reader *reader, const char *value) {
  reader->options->explain = value;
  return true;
}
static bool set_check(Reader *reader, const char *value) {
  (void)value;
  return reader->check = true;
}
static bool set_remarks(Reader *reader, const char *value) {
  (void)value;
  return reader->options->remarks = true;
}
static bool set_help(Reader *reader, const char *value) {
  (void)value;
  return reader->options->help = true;
}
static bool set_version(Reader *reader, const char *value) {
  (void)value;
  return reader->options->version = true;
}

static bool set_define(Reader *reader, const char *value) {
  const char *equals = strchr(value, '=');
  if (!equals || equals == value)
    return refuse(reader, text_printf(reader->arena, "-D takes NAME=VALUE, not '%s'", value));
  ElabDefine define = {text_copy(reader->arena, value, (size_t)(equals - value)), equals + 1, NULL};
  vec_push(reader->arena, &reader->options->defines, define);
  return true;
}

static bool set_sizes(Reader *reader, const char *value) {
  for (const char *at = value;; at++) {
    size_t len = strcspn(at, ",");
    TuningSize size;
    if (!tuning_size_parse(reader->arena, at, len, &size))
      return refuse(reader, text_printf(reader->arena, "--for takes sizes as in M=4096,N=4096, not '%.*s'",
                                        (int)len, at));
    vec_push(reader->arena, &reader->options->sizes, size);
    at += len;
    if (!*at) return true;
  }
}

// `also` is a name that the option takes besides those of passes, or NULL.
static bool check_pass(Reader *reader, const char *name, const char *also) {
  if (pipeline_find(name) || (also && !strcmp(name, also))) return true;
  const char **names = ARENA_ARRAY(reader->arena, const char *, pipeline_count() + 1);
  int count = 0;
  if (also) names[count++] = also;
  for (int i = 0; i < pipeline_count(); i++) names[count++] = pipeline_at(i)->name;
  TextBuf list = {.arena = reader->arena};
  for (int i = 0; i < count; i++) textbuf_printf(&list, " %s", names[i]);
  return refuse(reader, text_printf(reader->arena, "there is no pass '%s'%s\nThe passes are:%s", name,
                                    suggestion(reader->arena, name, names, count), list.data));
}

static bool set_print_after(Reader *reader, const char *value) {
  reader->options->print_after = value;
  return check_pass(reader, value, "all");
}

static bool set_stop_after(Reader *reader, const char *value) {
  reader->options->stop_after = value;
  return check_pass(reader, value, "elaborate");
}

static const OptionRow rows[] = {
    {"-o", true, set_output},
    {"--emit", true, set_emit},
    {"--check", false, set_check},
    {"--header", true, set_header},
    {"--kernel", true, set_kernel},
    {"--arch", true, set_arch},
    {"-D", true, set_define},
    {"--print-after", true, set_print_after},
    {"--stop-after", true, set_stop_after},
    {"--remarks", false, set_remarks},
    {"--tuning", true, set_tuning},
    {"--for", true, set_sizes},
    {"--ptxas", true, set_ptxas},
    {"--error-format", true, set_format},
    {"--color", true, set_color},
    {"--explain", true, set_explain},
    {"--version", false, set_version},
    {"--help", false, set_help},
    {"-h", false, set_help},
};

enum { ROW_COUNT = sizeof rows / sizeof *rows };

// ---- the command line

static bool set_level(Reader *reader, const char *text) {
  if (text[0] < '0' || text[0] > '3' || text[1])
    return refuse(reader, text_printf(reader->arena, "-O takes 0, 1, 2 or 3, not '%s'", text));
  reader->options->level = text[0] - '0';
  reader->options->level_given = true;
  return true;
}

static bool set_disabled(Reader *reader, const char *pass) {
  if (!check_pass(reader, pass, NULL)) return false;
  if (pipeline_find(pass)->gives)
    return refuse(reader,
                  text_printf(reader->arena, "pass '%s' is needed for correct code: no --no-%s", pass, pass));
  vec_push(reader->arena, &reader->options->disabled, pass);
  return true;
}

static bool refuse_option(Reader *reader, const char *arg) {
  const char *names[ROW_COUNT];
  for (int i = 0; i < ROW_COUNT; i++) names[i] = rows[i].name;
  const char *equals = strchr(arg, '=');
  const char *name = equals ? text_copy(reader->arena, arg, (size_t)(equals - arg)) : arg;
  return refuse(reader, text_printf(reader->arena, "there is no option '%s'%s", name,
                                    suggestion(reader->arena, name, names, ROW_COUNT)));
}

// The row, and the value that is written in the same argument (NULL: none is).
static const OptionRow *find_row(const char *arg, const char **value) {
  for (int i = 0; i < ROW_COUNT; i++) {
    size_t len = strlen(rows[i].name);
    if (strncmp(arg, rows[i].name, len) != 0) continue;
    bool is_short = len == 2, attached = arg[len] == '=' || (is_short && rows[i].takes_value && arg[len]);
    if (arg[len] && !attached) continue;
    *value = !arg[len] ? NULL : is_short && arg[len] != '=' ? arg + len : arg + len + 1;
    return &rows[i];
  }
  return NULL;
}

static bool read_option(Reader *reader, int argc, char **argv, int *i) {
  const char *arg = argv[*i], *value;
  const OptionRow *row = find_row(arg, &value);
  if (!row && !strncmp(arg, "-O", 2)) return set_level(reader, arg + 2);
  if (!row && !strncmp(arg, "--no-", 5)) return set_disabled(reader, arg + 5);
  if (!row) return refuse_option(reader, arg);
  if (value && !row->takes_value)
    return refuse(reader, text_printf(reader->arena, "%s takes no value", row->name));
  if (row->takes_value && !value) {
    if (*i + 1 == argc) return refuse(reader, text_printf(reader->arena, "%s takes a value", row->name));
    value = argv[++*i];
  }
  return row->set(reader, value);
}

static bool read_argument(Reader *reader, int argc, char **argv, int *i) {
  const char *arg = argv[*i];
  if (arg[0] == '-' && arg[1]) return read_option(reader, argc, argv, i);
  if (reader->options->input)
    return refuse(
        reader, text_printf(reader->arena, "one FILE at a time: '%s' and '%s'", reader->options->input, arg));
  reader->options->input = arg;
  return true;
}

bool options_tune(Arena *arena, Options *options, const char *option, const char **message) {
  Reader reader = {.arena = arena, .options = options, .message = message};
  if (!strncmp(option, "-O", 2)) {
    bool given = options->level_given;
    int level = options->level;
    if (!set_level(&reader, option + 2)) return false;
    if (given) options->level = level;
    return true;
  }
  if (!strncmp(option, "--no-", 5)) return set_disabled(&reader, option + 5);
  return refuse(&reader,
                text_printf(arena, "a tuning file may set -O0 to -O3 and --no-PASS, not '%s'", option));
}

// ---- what the output is

static OutputForm form_of_suffix(const char *path) {
  const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
  if (!dot || (slash && dot < slash)) return FORM_NONE;
  for (int form = FORM_AST; form < FORM_COUNT; form++)
    if (!strcmp(dot, form_suffixes[form])) return (OutputForm)form;
  return FORM_NONE;
}

static bool form_of_emit(Reader *reader, OutputForm *form) {
  for (int i = FORM_AST; i < FORM_COUNT; i++) {
    if (strcmp(reader->emit, form_names[i]) != 0) continue;
    *form = (OutputForm)i;
    return true;
  }
  return refuse(reader, text_printf(reader->arena, "--emit takes ast, tir, llvm, ptx or cubin, not '%s'%s",
                                    reader->emit,
                                    suggestion(reader->arena, reader->emit, form_names + 1, FORM_COUNT - 1)));
}

// The name of a cubin beside nothing else: the input's, in the current folder.
static bool default_output(Reader *reader) {
  Options *options = reader->options;
  if (!strcmp(options->input, "-"))
    return refuse(reader, "the source is standard input: say -o OUT, --emit=FORM or --check");
  const char *slash = strrchr(options->input, '/'), *name = slash ? slash + 1 : options->input;
  const char *dot = strrchr(name, '.');
  size_t stem = dot && dot != name ? (size_t)(dot - name) : strlen(name);
  options->output = text_printf(reader->arena, "%.*s.cubin", (int)stem, name);
  options->form = FORM_CUBIN;
  return true;
}

static bool form_of_output(Reader *reader) {
  Options *options = reader->options;
  OutputForm suffix = form_of_suffix(options->output);
  if (options->form && suffix && suffix != options->form)
    return refuse(reader, text_printf(reader->arena, "--emit=%s contradicts the suffix of '%s'", reader->emit,
                                      options->output));
  if (!options->form) options->form = suffix;
  if (!options->form)
    return refuse(
        reader,
        text_printf(reader->arena,
                    "the suffix of '%s' does not say what to write: use .ast .tir .ll .ptx .cubin, or --emit",
                    options->output));
  return true;
}

static bool settle_output(Reader *reader) {
  Options *options = reader->options;
  bool quiet = reader->check || options->print_after || options->header;
  if (reader->check && (options->output || reader->emit))
    return refuse(reader, "--check writes nothing: leave out -o and --emit");
  if (reader->emit && !form_of_emit(reader, &options->form)) return false;
  if (options->stop_after) {
    if (!options->form) options->form = FORM_TIR;
    if (options->form != FORM_TIR)
      return refuse(reader, "after --stop-after the output is tile IR: use --emit=tir or OUT.tir");
  }
  if (options->output) return form_of_output(reader);
  return options->form || quiet || default_output(reader);
}

static bool check_tuning(Reader *reader) {
  const Options *options = reader->options;
  const char *dot = strrchr(options->input, '.');
  if (options->sizes.len && !options->tuning) return refuse(reader, "--for goes with --tuning FILE");
  if (options->tuning && dot && !strcmp(dot, ".tir"))
    return refuse(reader, "--tuning sets arguments of kernels in sources; tile IR has none left");
  for (int i = 0; i < options->sizes.len; i++)
    for (int k = 0; k < options->defines.len; k++)
      if (!strcmp(options->sizes.data[i].name, options->defines.data[k].name))
        return refuse(reader, text_printf(reader->arena, "-D %s fixes the size: leave it out of --for",
                                          options->sizes.data[i].name));
  return true;
}

bool options_parse(Arena *arena, int argc, char **argv, Options *out, const char **message) {
  *out = (Options){.level = 2, .arch = target_at(0)->name};
  Reader reader = {.arena = arena, .options = out, .message = message};
  for (int i = 1; i < argc; i++)
    if (!read_argument(&reader, argc, argv, &i)) return false;
  if (out->help || out->version || out->explain) return true;
  if (!out->input) return refuse(&reader, "no FILE given");
  if (!check_tuning(&reader)) return false;
  return settle_output(&reader);
}

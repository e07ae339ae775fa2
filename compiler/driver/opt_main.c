// tile-opt: tile IR in, passes, tile IR out. Without --pass it reads, verifies and prints. It links without
// LLVM.
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "driver/messages.h"
#include "driver/output.h"
#include "passes/pipeline.h"
#include "tir/text.h"

static const char usage[] = "usage: tile-opt FILE.tir [-o OUT.tir] [--pass=NAME]... [--arch=NAME] "
                            "[--print-after=PASS|all] [--remarks]\n"
                            "                [--error-format=text|json] [--color=auto|always|never] "
                            "[--explain CODE] [--version] [--help]\n"
                            "Reads tile IR ('-': standard input), runs the passes named, in that order, and "
                            "prints the result or writes OUT.\n"
                            "Exit status: 0; 1 the tile IR is at fault; 2 usage or environment.\n";

enum { MAX_PASSES = 64, EXIT_SOURCE = 1, EXIT_USAGE = 2 };

typedef struct {
  const char *path, *output, *arch, *print_after, *explain;
  MessageOptions messages;
  const char *passes[MAX_PASSES];
  int npasses;
  bool remarks, help, version;
} Options;

// The text after `name=` or the next argument; NULL when this is another option.
static const char *value_of(const char *name, int argc, char **argv, int *i) {
  size_t len = strlen(name);
  if (strncmp(argv[*i], name, len) != 0) return NULL;
  if (argv[*i][len] == '=') return argv[*i] + len + 1;
  return argv[*i][len] == 0 && *i + 1 < argc ? argv[++*i] : NULL;
}

static bool read_option(Options *options, int argc, char **argv, int *i) {
  const char *value;
  if (!strcmp(argv[*i], "--help"))
    options->help = true;
  else if (!strcmp(argv[*i], "--version"))
    options->version = true;
  else if (!strcmp(argv[*i], "--remarks"))
    options->remarks = true;
  else if ((value = value_of("-o", argc, argv, i)))
    options->output = value;
  else if ((value = value_of("--arch", argc, argv, i)))
    options->arch = value;
  else if ((value = value_of("--print-after", argc, argv, i)))
    options->print_after = value;
  else if ((value = value_of("--error-format", argc, argv, i)))
    options->messages.format = value;
  else if ((value = value_of("--color", argc, argv, i)))
    options->messages.color = value;
  else if ((value = value_of("--explain", argc, argv, i)))
    options->explain = value;
  else if ((value = value_of("--pass", argc, argv, i)) && options->npasses < MAX_PASSES)
    options->passes[options->npasses++] = value;
  else if ((argv[*i][0] != '-' || !argv[*i][1]) && !options->path)
    options->path = argv[*i];
  else
    return false;
  return true;
}

static int refuse_pass(const char *name) {
  const char *names[MAX_PASSES];
  int count = pipeline_count() < MAX_PASSES ? pipeline_count() : MAX_PASSES;
  for (int i = 0; i < count; i++) names[i] = pipeline_at(i)->name;
  const char *nearest = text_nearest(name, names, count);
  fprintf(stderr, "tile-opt: there is no pass '%s'%s%s%s; the passes are", name,
          nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
  for (int i = 0; i < count; i++) fprintf(stderr, " %s", names[i]);
  fputs("\n", stderr);
  return EXIT_USAGE;
}

static int check_options(const Options *options, const Target **target) {
  for (int i = 0; i < options->npasses; i++)
    if (!pipeline_find(options->passes[i])) return refuse_pass(options->passes[i]);
  if (options->print_after && strcmp(options->print_after, "all") && !pipeline_find(options->print_after))
    return refuse_pass(options->print_after);
  *target = options->arch ? target_find(options->arch) : target_at(0);
  if (*target) return 0;
  fprintf(stderr, "tile-opt: there is no target '%s'\n", options->arch);
  return EXIT_USAGE;
}

static int plain_error(const DiagStyle *style, const char *message) {
  diag_print_plain(stderr, style, "tile-opt", message);
  return EXIT_USAGE;
}

static int explain(Arena *arena, const char *code, const DiagStyle *style) {
  const char *error, *text = messages_explain(arena, code, &error);
  return text ? fputs(text, stdout) < 0 : plain_error(style, error);
}

static int run(const Options *options, const Target *target, Arena *arena) {
  DiagStyle style = messages_style(&options->messages, stderr, options->remarks);
  Source *source;
  const char *error;
  if (!messages_check(arena, &options->messages, &error)) return plain_error(&style, error);
  if (options->explain) return explain(arena, options->explain, &style);
  if (source_read(arena, options->path, &source) != SOURCE_OK)
    return plain_error(&style, text_printf(arena, "%s cannot be read as text", options->path));
  Diags *ds = diags_new(arena, source);
  PipelineOptions pipeline = {.print_after = options->print_after,
                              .print_to = stderr,
                              .only = options->passes,
                              .nonly = options->npasses};
  TirModule *module = tir_parse(arena, interner_new(arena), source, ds);
  bool ok = module && run_pipeline(module, target, &pipeline, ds) && diags_errors(ds) == 0;
  diags_print(ds, stderr, &style);
  if (!ok) return EXIT_SOURCE;
  TextBuf text = {.arena = arena};
  tir_print(&text, module);
  if (output_write(arena, options->output ? options->output : "-", text.data, text.len, &error)) return 0;
  return plain_error(&style, error);
}

static int run_in_arena(const Options *options, const Target *target) {
  Arena *arena = arena_new();
  jmp_buf out_of_memory;
  if (arena && setjmp(out_of_memory) == 0) {
    arena_on_out_of_memory(arena, &out_of_memory);
    int status = run(options, target, arena);
    arena_free(arena);
    return status;
  }
  fputs("tile-opt: out of memory\n", stderr);
  return EXIT_USAGE;
}

int main(int argc, char **argv) {
  Options options = {0};
  for (int i = 1; i < argc; i++) {
    if (read_option(&options, argc, argv, &i)) continue;
    static const char *const names[] = {"--pass", "--arch",         "--print-after", "--remarks", "--version",
                                        "--help", "--error-format", "--color",       "--explain", "-o"};
    const char *near = text_nearest(argv[i], names, sizeof names / sizeof *names);
    fprintf(stderr, "tile-opt: cannot use '%s'%s%s%s\n%s", argv[i], near ? "; did you mean '" : "",
            near ? near : "", near ? "'?" : "", usage);
    return EXIT_USAGE;
  }
  if (options.help) {
    fputs(usage, stdout);
    return 0;
  }
  if (options.version) {
    puts("tile-opt " TILE_VERSION);
    return 0;
  }
  if (!options.path && !options.explain) {
    fprintf(stderr, "tile-opt: no file given\n%s", usage);
    return EXIT_USAGE;
  }
  const Target *target = NULL;
  int status = check_options(&options, &target);
  return status ? status : run_in_arena(&options, target);
}

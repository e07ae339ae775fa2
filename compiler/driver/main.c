// tilec: reads the command line and hands over to compile().
#include <stdio.h>

#include "driver/compile.h"
#include "target/target.h"

static void print_version(void) {
  printf("tilec %s, targets:", TILE_VERSION);
  for (int i = 0; i < target_count(); i++) printf(" %s", target_at(i)->name);
  printf("\n");
}

static int explain(Arena *arena, const char *code) {
  const char *error, *text = messages_explain(arena, code, &error);
  if (text) return printf("%s", text) < 0 ? EXIT_ENVIRONMENT : EXIT_FINE;
  fprintf(stderr, "tilec: %s\n", error);
  return EXIT_ENVIRONMENT;
}

static int run(Arena *arena, int argc, char **argv) {
  Options options;
  const char *message;
  if (!options_parse(arena, argc, argv, &options, &message)) {
    DiagStyle style = messages_style(&options.messages, stderr, false);
    diag_print_plain(stderr, &style, "tilec", message);
    if (!style.json) fputs("Try 'tilec --help'.\n", stderr);
    return EXIT_ENVIRONMENT;
  }
  if (options.explain) return explain(arena, options.explain);
  if (options.help) fputs(options_usage(), stdout);
  if (options.version) print_version();
  return options.help || options.version ? EXIT_FINE : compile(arena, &options, stderr);
}

int main(int argc, char **argv) {
  Arena *arena = arena_new();
  if (!arena) {
    fputs("tilec: out of memory\n", stderr);
    return EXIT_ENVIRONMENT;
  }
  int status = run(arena, argc, argv);
  arena_free(arena);
  return status;
}

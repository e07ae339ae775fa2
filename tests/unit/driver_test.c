// The command line as a value, and two compilations in one process.
#include "driver/options.h"

#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "driver/compile.h"

typedef struct {
  Options options;
  const char *message;
  bool ok;
} Parsed;

static Parsed parse_line(Arena *arena, int argc, const char *const *argv) {
  Parsed parsed = {.message = NULL};
  char *args[16] = {(char *)"tilec"};
  for (int i = 0; i < argc; i++) args[i + 1] = (char *)argv[i];
  parsed.ok = options_parse(arena, argc + 1, args, &parsed.options, &parsed.message);
  return parsed;
}

#define LINE(arena, ...)                                                                                     \
  parse_line((arena), sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *),                           \
             (const char *const[]){__VA_ARGS__})

static void test_forms(Checks *c, Arena *arena) {
  CHECK_INT(c, LINE(arena, "a.tile", "-o", "b.tir").options.form, FORM_TIR);
  CHECK_INT(c, LINE(arena, "a.tile", "-ob.ll").options.form, FORM_LLVM);
  CHECK_INT(c, LINE(arena, "-o=b.ptx", "a.tile").options.form, FORM_PTX);
  CHECK_INT(c, LINE(arena, "a.tile", "--emit=ast").options.form, FORM_AST);
  CHECK(c, LINE(arena, "a.tile", "--emit", "ptx").options.output == NULL);
  CHECK_INT(c, LINE(arena, "a.tile", "-o", "dir.d/b", "--emit=ptx").options.form, FORM_PTX);
  CHECK(c, !LINE(arena, "a.tile", "-o", "dir.ptx/b").ok);
  CHECK_TEXT(c, LINE(arena, "x/y/gemm.tile").options.output, "gemm.cubin");
  CHECK_TEXT(c, LINE(arena, "x.d/gemm").options.output, "gemm.cubin");
  CHECK_INT(c, LINE(arena, "a.tile", "--check").options.form, FORM_NONE);
  CHECK_INT(c, LINE(arena, "a.tile", "--header", "a.h").options.form, FORM_NONE);
  CHECK_INT(c, LINE(arena, "a.tile", "--header", "a.h", "-o", "a.cubin").options.form, FORM_CUBIN);
  CHECK_INT(c, LINE(arena, "a.tile", "--stop-after=select").options.form, FORM_TIR);
  CHECK(c, !LINE(arena, "-").ok);
  CHECK(c, LINE(arena, "-", "--emit=ptx").ok);
}

static void test_values(Checks *c, Arena *arena) {
  Parsed parsed = LINE(arena, "a.tile", "-D", "M=4096", "-DN=a=b", "-O3", "--remarks", "--kernel=k");
  CHECK(c, parsed.ok);
  CHECK_INT(c, parsed.options.defines.len, 2);
  CHECK_TEXT(c, parsed.options.defines.data[0].name, "M");
  CHECK_TEXT(c, parsed.options.defines.data[0].value, "4096");
  CHECK_TEXT(c, parsed.options.defines.data[1].name, "N");
  CHECK_TEXT(c, parsed.options.defines.data[1].value, "a=b");
  CHECK_INT(c, parsed.options.level, 3);
  CHECK(c, parsed.options.remarks);
  CHECK(c, !LINE(arena, "a.tile", "--remarks=yes").ok);
  CHECK(c, !LINE(arena, "a.tile", "-D", "=1").ok);
  CHECK(c, !LINE(arena, "a.tile", "-O").ok);
  CHECK(c, !LINE(arena, "a.tile", "-o").ok);
  CHECK(c, LINE(arena, "--help").ok && LINE(arena, "--help").options.help);
}

static const char kernel[] = "@kernel\n"
                             "def scale(A: Tensor[(M,), float32], B: Tensor[(M,), float32]):\n"
                             "    with Kernel(ceildiv(M, 128), threads=128) as bx:\n"
                             "        for i in Parallel(128):\n"
                             "            B[bx * 128 + i] = A[bx * 128 + i] * 2.0\n";

static char *compile_text(Checks *c, const char *folder, const char *name) {
  Arena *arena = arena_new();
  const char *input = text_printf(arena, "%s/scale.tile", folder),
             *output = text_printf(arena, "%s/%s", folder, name);
  FILE *file = fopen(input, "w");
  fputs(kernel, file);
  fclose(file);
  Parsed parsed = LINE(arena, input, "-o", output);
  CHECK(c, parsed.ok);
  CHECK_INT(c, compile(arena, &parsed.options, stderr), EXIT_FINE);
  char *text = calloc(1, 1 << 20);
  file = fopen(output, "r");
  if (CHECK(c, file)) {
    CHECK(c, fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
  }
  unlink(output);
  unlink(input);
  arena_free(arena);
  return text;
}

static void test_twice(Checks *c) {
  char folder[] = "/tmp/tilec-test-XXXXXX";
  if (!CHECK(c, mkdtemp(folder))) return;
  char *first = compile_text(c, folder, "a.ptx"), *second = compile_text(c, folder, "b.ptx");
  CHECK_TEXT(c, second, first);
  free(first);
  free(second);
  rmdir(folder);
}

int main(void) {
  Checks checks = {0};
  Arena *arena = arena_new();
  test_forms(&checks, arena);
  test_values(&checks, arena);
  test_twice(&checks);
  arena_free(arena);
  return check_report(&checks);
}

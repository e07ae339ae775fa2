// Bytes as a program: parsed, elaborated with the -D values that its own text names (as in "tilec -D N=128"), through all passes
// at a level that the bytes choose, then launch information, header and remarks: everything before LLVM.
#include <setjmp.h>
#include <stdlib.h>

#include "defines.h"
#include "driver/header.h"
#include "driver/launch_info.h"
#include "elab/elab.h"
#include "fuzz.h"
#include "passes/pipeline.h"
#include "passes/remarks.h"
#include "syntax/syntax.h"
#include "text.h"
#include "tir/text.h"

static void compile(Arena *arena, const Source *source, Diags *ds, uint32_t choice, FILE *sink) {
  Interner *names = interner_new(arena);
  const Module *ast;
  if (!parse(arena, names, source, ds, &ast)) return;
  ast_print(sink, ast);
  ElabDefine defines[FUZZ_MOST_DEFINES];
  ElabOptions options = {defines, fuzz_defines(arena, source->text, defines), NULL};
  TirModule *tir = elaborate(arena, names, ast, &options, ds);
  if (!tir) return;
  if (!tir_verify(tir, ds)) abort();  // a fault of the compiler
  const Target *target = target_at((int)(choice >> 8) % target_count());
  PipelineOptions pipeline = {
      .level = (int)(choice & 3), .print_after = choice & 4 ? "all" : NULL, .print_to = sink};
  if (!run_pipeline(tir, target, &pipeline, ds) || diags_errors(ds) > 0) return;
  pass_remarks(tir, target, arena, ds);
  launch_info(arena, tir, target, ds);
  launch_header(arena, tir, target, source, ds);
}

static void compile_guarded(Arena *arena, const uint8_t *data, size_t size, FILE *sink) {
  jmp_buf out_of_memory;
  if (setjmp(out_of_memory)) return;
  arena_on_out_of_memory(arena, &out_of_memory);
  Source *source = fuzz_source(arena, data, size, "input.tile");
  if (!source) return;
  if (strstr(source->text, "import ")) source->path = "input.py";  // only kernels are read of those
  Diags *ds = diags_new(arena, source);
  uint32_t choice = fuzz_hash(data, size);
  compile(arena, source, ds, choice, sink);
  diags_print(ds, sink, &(DiagStyle){.remarks = true, .json = choice & 8, .color = choice & 16});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Arena *arena = arena_new();
  FILE *sink = fopen("/dev/null", "w");
  if (arena && sink) compile_guarded(arena, data, size, sink);
  if (sink) fclose(sink);
  arena_free(arena);
  return 0;
}

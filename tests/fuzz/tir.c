// Bytes as tile IR, as tile-opt reads it: parsed and verified; what is legal must print to a text that reads back as the same,
// and goes through the passes that its facts say it has not seen.
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "passes/pipeline.h"
#include "text.h"
#include "tir/text.h"

static const char *print(Arena *arena, const TirModule *module) {
  TextBuf text = {.arena = arena};
  tir_print(&text, module);
  return text.data ? text.data : "";
}

// `always`: it must be read at all. After the passes it need not: loops of no turn or of a billion have layouts that the reader refuses.
static void read_back(Arena *arena, const char *text, bool always) {
  const Source *source = source_from_text(arena, "printed.tir", text, (uint32_t)strlen(text));
  Diags *ds = diags_new(arena, source);
  TirModule *module = tir_parse(arena, interner_new(arena), source, ds);
  if (module && tir_verify(module, ds) && strcmp(print(arena, module), text) == 0) return;
  if (!module && !always) return;
  diags_print(ds, stderr, &(DiagStyle){0});
  fputs(text, stderr);
  abort();
}

static void run_rest(Arena *arena, TirModule *module, uint32_t choice, Diags *ds) {
  unsigned facts = ~0u;
  for (int i = 0; i < module->kernels.len; i++) facts &= module->kernels.data[i]->facts;
  const char **rest = ARENA_ARRAY(arena, const char *, pipeline_count());
  PipelineOptions options = {.level = (int)(choice & 3), .only = rest};
  for (int i = 0; i < pipeline_count(); i++) {
    const Pass *pass = pipeline_at(i);
    if (!pass->gives || (facts & pass->gives) != pass->gives) rest[options.nonly++] = pass->name;
  }
  if (!run_pipeline(module, target_at((int)(choice >> 8) % target_count()), &options, ds)) return;
  if (diags_errors(ds) == 0) read_back(arena, print(arena, module), false);
}

static void read_guarded(Arena *arena, const uint8_t *data, size_t size, FILE *sink) {
  jmp_buf out_of_memory;
  if (setjmp(out_of_memory)) return;
  arena_on_out_of_memory(arena, &out_of_memory);
  const Source *source = fuzz_source(arena, data, size, "input.tir");
  if (!source) return;
  Diags *ds = diags_new(arena, source);
  TirModule *module = tir_parse(arena, interner_new(arena), source, ds);
  if (module && tir_verify(module, ds)) {
    read_back(arena, print(arena, module), true);
    run_rest(arena, module, fuzz_hash(data, size), ds);
  }
  diags_print(ds, sink, &(DiagStyle){.remarks = true});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Arena *arena = arena_new();
  FILE *sink = fopen("/dev/null", "w");
  if (arena && sink) read_guarded(arena, data, size, sink);
  if (sink) fclose(sink);
  arena_free(arena);
  return 0;
}

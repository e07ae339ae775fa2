// Bytes as a tuning file of tilec; of what is read, an entry is chosen for sizes that the bytes give.
#include <setjmp.h>
#include <stdlib.h>

#include "driver/tuning.h"
#include "fuzz.h"
#include "text.h"

static void choose(Arena *arena, const TuningFile *file, uint32_t choice) {
  for (int i = 0; i < file->entries.len; i++) {
    const TuningEntry *entry = file->entries.data[i];
    double distance = -1;
    const TuningEntry *same = tuning_choose(file, entry->kernel, entry->arch, &entry->sizes, &distance);
    if (!same || distance != 0) abort();
    TuningSizes sizes = {0};
    TuningSize size = {entry->sizes.data[0].name, 1 + choice % 100000, {0, 0}};
    vec_push(arena, &sizes, size);
    if (!tuning_choose(file, entry->kernel, entry->arch, &sizes, &distance)) abort();
    tuning_settings_text(arena, entry);
  }
}

static void read_guarded(Arena *arena, const uint8_t *data, size_t size, FILE *sink) {
  jmp_buf out_of_memory;
  if (setjmp(out_of_memory)) return;
  arena_on_out_of_memory(arena, &out_of_memory);
  const Source *source = fuzz_source(arena, data, size, "input");
  if (!source) return;
  Diags *ds = diags_new(arena, source);
  const TuningFile *file = tuning_parse(arena, source, ds);
  if (!file && diags_errors(ds) == 0) abort();
  if (file) choose(arena, file, fuzz_hash(data, size));
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

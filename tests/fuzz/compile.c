// Bytes as a program for the whole compiler up to PTX, LLVM included, as the command line calls it. LLVM makes it slow.
#include "driver/compile.h"

#include <string.h>
#include <unistd.h>

#include "defines.h"
#include "fuzz.h"
#include "target/target.h"
#include "text.h"

static void compile_file(Arena *arena, const uint8_t *data, size_t size, FILE *sink) {
  char path[32];
  ElabDefine defines[FUZZ_MOST_DEFINES];
  uint32_t choice = fuzz_hash(data, size);
  const char *text = text_copy(arena, (const char *)data, size);
  int fd = fuzz_file(data, size, path), count = fuzz_defines(arena, text, defines);
  Options options = {.input = path,
                     .output = "/dev/null",
                     .form = FORM_PTX,
                     .arch = target_at((int)(choice >> 8) % target_count())->name,
                     .level = (int)(choice & 3),
                     .defines = {.data = defines, .len = count, .cap = count},
                     .remarks = true};
  if (fd >= 0) compile(arena, &options, sink);
  if (fd >= 0) close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Arena *arena = arena_new();
  FILE *sink = fopen("/dev/null", "w");
  if (arena && sink) compile_file(arena, data, size, sink);
  if (sink) fclose(sink);
  arena_free(arena);
  return 0;
}

// For programs that embed the runtime and bring a module along in memory.
#ifndef TILE_TESTS_EMBEDDING_H
#define TILE_TESTS_EMBEDDING_H

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "tile.h"

// A file in memory: PTX for sm_100a with its launch information. The caller frees it.
static inline char *embed_file(const char *info, const char *code) {
  size_t length = strlen(info);
  char *text = malloc(strlen(code) + 6 * length + 200);
  int n = sprintf(text,
                  ".version 8.6\n.target sm_100a\n.address_size 64\n"
                  ".const .align 1 .b8 __tile_launch_info[%zu] = {",
                  length);
  for (size_t i = 0; i < length; i++) n += sprintf(text + n, "%s%d", i ? ", " : "", info[i]);
  sprintf(text + n, "};\n%s", code);
  return text;
}

// Checks that there is no error, prints it otherwise, and frees it.
static inline bool embed_ok(Checks *checks, TileError *error) {
  bool good = CHECK(checks, error == NULL);
  if (!good) fprintf(stderr, "  %s\n", tile_error_message(error));
  tile_error_free(error);
  return good;
}

#endif

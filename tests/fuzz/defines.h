// The -D values that a source's own text names, as in a comment "RUN: tilec %s -D N=128".
#ifndef TESTS_FUZZ_DEFINES_H
#define TESTS_FUZZ_DEFINES_H

#include <string.h>

#include "base/text.h"
#include "elab/elab.h"

enum { FUZZ_MOST_DEFINES = 8 };

static inline int fuzz_defines(Arena *arena, const char *text, ElabDefine *defines) {
  int count = 0;
  for (const char *at = text; count < FUZZ_MOST_DEFINES && (at = strstr(at, "-D ")) != NULL;) {
    at += 3;
    size_t name = strcspn(at, "= \n");
    if (at[name] != '=') continue;
    size_t value = strcspn(at + name + 1, " \n");
    defines[count++] = (ElabDefine){text_copy(arena, at, name), text_copy(arena, at + name + 1, value), NULL};
  }
  return count;
}

#endif

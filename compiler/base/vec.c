// Growth of VEC: doubling, in a new place; the old elements stay behind in the arena until it goes.
#include "base/vec.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

enum { FIRST_CAPACITY = 8 };

void *vec_reserve(Arena *arena, void *data, int len, int *cap, int extra, size_t size) {
  assert(extra >= 0 && len <= INT_MAX - extra);
  if (data && len + extra <= *cap) return data;
  int grown = *cap < FIRST_CAPACITY ? FIRST_CAPACITY : *cap <= INT_MAX / 2 ? *cap * 2 : INT_MAX;
  if (grown < len + extra) grown = len + extra;
  void *moved = arena_array(arena, (size_t)grown, size);
  if (len) memcpy(moved, data, (size_t)len * size);
  *cap = grown;
  return moved;
}

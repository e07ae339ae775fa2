// Clocks grow in the arena of their cluster; what they outgrow is freed with it.
#include "check/clock.h"

#include <string.h>

#include "base/vec.h"

static void make_room(Arena *arena, Clock *clock, uint32_t n) {
  if (n > clock->cap) {
    uint32_t cap = clock->cap ? 2 * clock->cap : 64;
    while (cap < n) cap *= 2;
    uint32_t *at = ARENA_ARRAY(arena, uint32_t, cap);
    if (clock->n) memcpy(at, clock->at, clock->n * sizeof *at);
    clock->at = at;
    clock->cap = cap;
  }
  if (n > clock->n) {
    memset(clock->at + clock->n, 0, (n - clock->n) * sizeof *clock->at);
    clock->n = n;
  }
}

void clock_raise(Arena *arena, Clock *clock, uint32_t actor, uint32_t value) {
  make_room(arena, clock, actor + 1);
  if (clock->at[actor] < value) clock->at[actor] = value;
}

void clock_join(Arena *arena, Clock *into, const Clock *from) {
  make_room(arena, into, from->n);
  for (uint32_t i = 0; i < from->n; i++)
    if (into->at[i] < from->at[i]) into->at[i] = from->at[i];
}

void clock_copy(Arena *arena, Clock *into, const Clock *from) {
  into->n = 0;
  make_room(arena, into, from->n);
  if (from->n) memcpy(into->at, from->at, from->n * sizeof *into->at);
}

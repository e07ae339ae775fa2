// Vector clocks. Index: an actor of a cluster (a warp, a queue of operations, an mbarrier's transactions);
// value: how much of that actor's work is known to be over. A value of 0 is nothing; indices beyond the end
// are 0.
#ifndef PTXEMU_CHECK_CLOCK_H
#define PTXEMU_CHECK_CLOCK_H

#include <stdint.h>

#include "base/arena.h"

typedef struct {
  uint32_t *at;
  uint32_t n, cap;
} Clock;

static inline uint32_t clock_get(const Clock *clock, uint32_t actor) {
  return actor < clock->n ? clock->at[actor] : 0;
}
// Raises one entry to `value`; a smaller value changes nothing.
void clock_raise(Arena *arena, Clock *clock, uint32_t actor, uint32_t value);
void clock_join(Arena *arena, Clock *into, const Clock *from);
void clock_copy(Arena *arena, Clock *into, const Clock *from);
static inline void clock_clear(Clock *clock) {
  clock->n = 0;
}

#endif

// A hash table of spellings. Text with the same bytes gets the same pointer for the life of the interner.
#include "base/intern.h"

#include <stdint.h>
#include <string.h>

#include "base/text.h"

typedef struct {
  uint64_t hash;
  Name name;
} Slot;

struct Interner {
  Arena *arena;
  Slot *slots;
  size_t capacity, count;  // the capacity is a power of two
};

enum { FIRST_CAPACITY = 128 };

Interner *interner_new(Arena *arena) {
  Interner *interner = ARENA_NEW(arena, Interner);
  *interner = (Interner){arena, ARENA_ARRAY(arena, Slot, FIRST_CAPACITY), FIRST_CAPACITY, 0};
  return interner;
}

// FNV-1a, 64 bits.
static uint64_t hash_of(const char *text, size_t len) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < len; i++) hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
  return hash;
}

static void grow(Interner *interner) {
  size_t capacity = interner->capacity * 2;
  Slot *slots = ARENA_ARRAY(interner->arena, Slot, capacity);
  for (size_t i = 0; i < interner->capacity; i++) {
    if (!interner->slots[i].name) continue;
    size_t to = interner->slots[i].hash & (capacity - 1);
    while (slots[to].name) to = (to + 1) & (capacity - 1);
    slots[to] = interner->slots[i];
  }
  interner->slots = slots;
  interner->capacity = capacity;
}

static bool spells(Name name, const char *text, size_t len) {
  return strncmp(name, text, len) == 0 && name[len] == '\0';
}

Name intern_n(Interner *interner, const char *text, size_t len) {
  const char *nul = memchr(text, '\0', len);
  if (nul) len = (size_t)(nul - text);
  if (interner->count * 2 >= interner->capacity) grow(interner);
  uint64_t hash = hash_of(text, len);
  size_t i = hash & (interner->capacity - 1);
  for (; interner->slots[i].name; i = (i + 1) & (interner->capacity - 1))
    if (interner->slots[i].hash == hash && spells(interner->slots[i].name, text, len))
      return interner->slots[i].name;
  interner->slots[i] = (Slot){hash, text_copy(interner->arena, text, len)};
  interner->count++;
  return interner->slots[i].name;
}

Name intern(Interner *interner, const char *text) {
  return intern_n(interner, text, strlen(text));
}

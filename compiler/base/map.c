// Open addressing over indices into the list of entries: the list keeps the order of insertion, the table
// finds. Nothing is ever removed, so probing needs no tombstones.
#include "base/map.h"

#include <assert.h>
#include <stdint.h>

#include "base/vec.h"

struct Map {
  Arena *arena;
  VEC(MapEntry) entries;
  int *slots;  // index of an entry plus one; 0 is free
  int bits;    // the table has 1 << bits slots
};

enum { FIRST_BITS = 4 };

Map *map_new(Arena *arena) {
  Map *map = ARENA_NEW(arena, Map);
  map->arena = arena;
  map->bits = FIRST_BITS;
  map->slots = ARENA_ARRAY(arena, int, 1 << FIRST_BITS);
  return map;
}

// The slot that holds the key, or the free one where it belongs. Fibonacci hashing: pointers differ in middle
// bits.
static int *find_slot(const Map *map, const void *key) {
  uint64_t mixed = (uint64_t)(uintptr_t)key * UINT64_C(0x9E3779B97F4A7C15);
  uint64_t mask = ((uint64_t)1 << map->bits) - 1;
  for (uint64_t i = mixed >> (64 - map->bits);; i = (i + 1) & mask) {
    int *slot = &map->slots[i];
    if (*slot == 0 || map->entries.data[*slot - 1].key == key) return slot;
  }
}

static void grow(Map *map) {
  map->bits++;
  map->slots = ARENA_ARRAY(map->arena, int, (size_t)1 << map->bits);
  for (int i = 0; i < map->entries.len; i++) *find_slot(map, map->entries.data[i].key) = i + 1;
}

void map_put(Map *map, const void *key, void *value) {
  assert(key);
  int *slot = find_slot(map, key);
  if (*slot) {
    map->entries.data[*slot - 1].value = value;
    return;
  }
  MapEntry entry = {key, value};
  vec_push(map->arena, &map->entries, entry);
  *slot = map->entries.len;
  if (map->entries.len * 2 > 1 << map->bits) grow(map);
}

void *map_get(const Map *map, const void *key) {
  int slot = *find_slot(map, key);
  return slot ? map->entries.data[slot - 1].value : NULL;
}

bool map_has(const Map *map, const void *key) {
  return *find_slot(map, key) != 0;
}

int map_count(const Map *map) {
  return map->entries.len;
}

const MapEntry *map_at(const Map *map, int index) {
  assert(index >= 0 && index < map->entries.len);
  return &map->entries.data[index];
}

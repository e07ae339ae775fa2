// Hash map from an interned Name (or any pointer) to a pointer; insertion order is kept for iteration.
#ifndef TILEC_BASE_MAP_H
#define TILEC_BASE_MAP_H

#include <stdbool.h>

#include "base/arena.h"

typedef struct {
  const void *key;
  void *value;
} MapEntry;

typedef struct Map Map;

Map *map_new(Arena *arena);
void map_put(Map *map, const void *key, void *value);  // replaces an earlier value
void *map_get(const Map *map, const void *key);        // NULL when absent
bool map_has(const Map *map, const void *key);
int map_count(const Map *map);
const MapEntry *map_at(const Map *map, int index);  // in insertion order

#endif

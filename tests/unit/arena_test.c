// The arena and what stands on it: blocks, marks, the array, the map, interned names.
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/intern.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"
#include "check.h"

static bool all_zero(const unsigned char *bytes, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (bytes[i]) return false;
  return true;
}

static void test_alloc(Checks *c) {
  Arena *arena = arena_new();
  unsigned char *empty = arena_alloc(arena, 0), *other = arena_alloc(arena, 0);
  CHECK(c, empty && other && empty != other);
  bool aligned = true, zero = true;
  for (size_t size = 1; size < 300000; size = size * 3 + 1) {
    unsigned char *bytes = arena_alloc(arena, size);
    aligned &= (uintptr_t)bytes % 16 == 0;
    zero &= all_zero(bytes, size);
    memset(bytes, 0xee, size);
  }
  CHECK(c, aligned);
  CHECK(c, zero);
  arena_free(arena);
  arena_free(NULL);
}

static void test_mark(Checks *c) {
  Arena *arena = arena_new();
  char *kept = arena_alloc(arena, 100);
  memset(kept, 'k', 100);
  ArenaMark mark = arena_mark(arena);
  unsigned char *first = arena_alloc(arena, 64);
  memset(first, 0xff, 64);
  for (int i = 0; i < 200; i++) memset(arena_alloc(arena, 4096), 0xff, 4096);
  CHECK(c, arena_used(arena) >= 200 * 4096);
  arena_reset(arena, mark);
  CHECK_INT(c, arena_used(arena), 0);
  unsigned char *again = arena_alloc(arena, 64);
  CHECK(c, again == first);
  CHECK(c, all_zero(again, 64));
  CHECK(c, kept[0] == 'k' && kept[99] == 'k');
  CHECK_INT(c, arena_used(arena), 64);
  arena_free(arena);

  arena = arena_new();
  ArenaMark bottom = arena_mark(arena);
  arena_alloc(arena, 1000);
  arena_reset(arena, bottom);
  CHECK(c, arena_alloc(arena, 8) != NULL);
  arena_free(arena);
}

static bool runs_out(Arena *arena, size_t count, size_t size) {
  jmp_buf handler;
  if (setjmp(handler)) return true;
  arena_on_out_of_memory(arena, &handler);
  arena_array(arena, count, size);
  return false;
}

static void test_out_of_memory(Checks *c) {
  Arena *arena = arena_new();
  CHECK(c, runs_out(arena, SIZE_MAX / 2, 3));
  CHECK(c, runs_out(arena, SIZE_MAX, 1));
  CHECK(c, !runs_out(arena, SIZE_MAX, 0));
  CHECK(c, !runs_out(arena, 10, 10));
  arena_free(arena);
}

static void test_vec(Checks *c) {
  Arena *arena = arena_new();
  VEC(int) numbers = {0};
  for (int i = 0; i < 1000; i++) vec_push(arena, &numbers, i * i);
  CHECK_INT(c, numbers.len, 1000);
  CHECK(c, numbers.cap >= 1000);
  bool kept = true;
  for (int i = 0; i < 1000; i++) kept &= numbers.data[i] == i * i;
  CHECK(c, kept);
  numbers.data = vec_reserve(arena, numbers.data, numbers.len, &numbers.cap, 5000, sizeof(int));
  CHECK(c, numbers.cap >= 6000 && numbers.data[999] == 999 * 999);
  arena_free(arena);
}

static void test_map(Checks *c) {
  Arena *arena = arena_new();
  Interner *interner = interner_new(arena);
  Map *map = map_new(arena);
  Name names[500];
  for (int i = 0; i < 500; i++) {
    names[i] = intern(interner, text_printf(arena, "name%d", i));
    CHECK(c, !map_has(map, names[i]));
    map_put(map, names[i], &names[i]);
  }
  bool found = true, ordered = true;
  for (int i = 0; i < 500; i++) {
    found &= map_get(map, names[i]) == &names[i];
    ordered &= map_at(map, i)->key == names[i];
  }
  CHECK(c, found);
  CHECK(c, ordered);
  map_put(map, names[7], NULL);
  CHECK_INT(c, map_count(map), 500);
  CHECK(c, map_has(map, names[7]) && map_get(map, names[7]) == NULL);
  CHECK(c, map_at(map, 7)->key == names[7]);
  CHECK(c, map_get(map, intern(interner, "absent")) == NULL);
  arena_free(arena);
}

static void test_intern(Checks *c) {
  Arena *arena = arena_new();
  Interner *interner = interner_new(arena);
  Name a = intern(interner, "acc");
  CHECK(c, a == intern_n(interner, "accumulator", 3));
  CHECK(c, a != intern(interner, "ac"));
  CHECK(c, a != intern(interner, "acc_"));
  CHECK_TEXT(c, a, "acc");
  CHECK(c, intern(interner, "") == intern_n(interner, "xyz", 0));
  for (int i = 0; i < 1000; i++) intern(interner, text_printf(arena, "n%d", i));
  CHECK(c, a == intern(interner, "acc"));
  CHECK(c, intern(interner, "n500") == intern(interner, "n500"));
  arena_free(arena);
}

int main(void) {
  Checks checks = {0};
  test_alloc(&checks);
  test_mark(&checks);
  test_out_of_memory(&checks);
  test_vec(&checks);
  test_map(&checks);
  test_intern(&checks);
  return check_report(&checks);
}

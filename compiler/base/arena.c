// The arena is a stack of blocks, newest on top. An allocation that does not fit starts a new block, at least
// twice as large as the last one up to a limit; a mark remembers the top block and how full it was, and a
// reset pops back to it. Under AddressSanitizer everything not handed out is poisoned, and each allocation is
// followed by a red zone.
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
enum { RED_ZONE = 16 };
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
enum { RED_ZONE = 0 };
#endif

enum { ALIGNMENT = 16, FIRST_BLOCK = 32 << 10, LARGEST_BLOCK = 1 << 20 };

typedef struct Block {
  struct Block *below;
  size_t size, used;
  _Alignas(ALIGNMENT) unsigned char bytes[];
} Block;

struct Arena {
  Block *top;
  size_t handed_out, next_size;
  jmp_buf *handler;
};

Arena *arena_new(void) {
  Arena *arena = calloc(1, sizeof *arena);
  if (arena) arena->next_size = FIRST_BLOCK;
  return arena;
}

static void pop_block(Arena *arena) {
  Block *block = arena->top;
  arena->top = block->below;
  ASAN_UNPOISON_MEMORY_REGION(block->bytes, block->size);
  free(block);
}

void arena_free(Arena *arena) {
  if (!arena) return;
  while (arena->top) pop_block(arena);
  free(arena);
}

jmp_buf *arena_on_out_of_memory(Arena *arena, jmp_buf *handler) {
  jmp_buf *before = arena->handler;
  arena->handler = handler;
  return before;
}

__attribute__((noreturn)) static void out_of_memory(Arena *arena) {
  if (arena->handler) longjmp(*arena->handler, 1);
  abort();
}

static void push_block(Arena *arena, size_t need) {
  size_t size = need > arena->next_size ? need : arena->next_size;
  Block *block = size <= SIZE_MAX - sizeof *block ? malloc(sizeof *block + size) : NULL;
  if (!block) out_of_memory(arena);
  *block = (Block){.below = arena->top, .size = size};
  ASAN_POISON_MEMORY_REGION(block->bytes, size);
  arena->top = block;
  if (arena->next_size < LARGEST_BLOCK) arena->next_size *= 2;
}

void *arena_alloc(Arena *arena, size_t bytes) {
  if (bytes > SIZE_MAX / 2) out_of_memory(arena);
  size_t need = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + RED_ZONE;
  if (need == 0) need = ALIGNMENT;  // distinct allocations have distinct addresses
  if (!arena->top || arena->top->size - arena->top->used < need) push_block(arena, need);
  Block *block = arena->top;
  void *result = block->bytes + block->used;
  block->used += need;
  arena->handed_out += bytes;
  ASAN_UNPOISON_MEMORY_REGION(result, bytes);
  return memset(result, 0, bytes);
}

void *arena_array(Arena *arena, size_t count, size_t size) {
  if (size && count > SIZE_MAX / size) out_of_memory(arena);
  return arena_alloc(arena, count * size);
}

ArenaMark arena_mark(Arena *arena) {
  return (ArenaMark){arena->top, arena->top ? arena->top->used : 0};
}

void arena_reset(Arena *arena, ArenaMark mark) {
  while (arena->top != mark.block) pop_block(arena);
  if (arena->top) {
    arena->top->used = mark.used;
    ASAN_POISON_MEMORY_REGION(arena->top->bytes + mark.used, arena->top->size - mark.used);
  }
  arena->handed_out = 0;
}

size_t arena_used(const Arena *arena) {
  return arena->handed_out;
}

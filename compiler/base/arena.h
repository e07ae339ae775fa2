// Bump arena: memory that lives exactly as long as its owner (a compilation, a pass, an emulated machine).
// Nothing is freed singly; a mark and a reset bound scratch memory. All memory comes back zeroed.
#ifndef TILEC_BASE_ARENA_H
#define TILEC_BASE_ARENA_H

#include <setjmp.h>
#include <stddef.h>

typedef struct Arena Arena;

typedef struct {
  void *block;
  size_t used;
} ArenaMark;

// Returns NULL when the system has no memory.
Arena *arena_new(void);
void arena_free(Arena *arena);

// Out of memory longjmps here with value 1; without a handler it aborts. The library entry that owns the
// arena sets it. Returns the handler before, which whoever cleans up on the way puts back and jumps on to.
jmp_buf *arena_on_out_of_memory(Arena *arena, jmp_buf *handler);

// Zeroed and aligned to 16; never NULL. arena_array checks the product for overflow.
void *arena_alloc(Arena *arena, size_t bytes);
void *arena_array(Arena *arena, size_t count, size_t size);

ArenaMark arena_mark(Arena *arena);
// Frees everything allocated after the mark.
void arena_reset(Arena *arena, ArenaMark mark);

// Bytes handed out since creation or the last reset.
size_t arena_used(const Arena *arena);

#define ARENA_NEW(arena, T) ((T *)arena_alloc((arena), sizeof(T)))
#define ARENA_ARRAY(arena, T, count) ((T *)arena_array((arena), (size_t)(count), sizeof(T)))

#endif

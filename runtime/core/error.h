// Errors as values, and the memory of a module: what every file of the runtime needs.
#ifndef TILE_CORE_ERROR_H
#define TILE_CORE_ERROR_H

#include "tile.h"

// Never NULL: without memory it is a constant error that says so.
__attribute__((format(printf, 2, 3))) TileError *error_new(TileStatus status, const char *format, ...);
TileError *error_no_memory(void);

// Text that grows; `data` is NUL-terminated and never NULL after the first call. Runs out of memory silently:
// the text is cut, which is the best that an error message can do.
typedef struct {
  char *data;
  size_t len, cap;
} ErrorText;

__attribute__((format(printf, 2, 3))) void error_text(ErrorText *text, const char *format, ...);
// Makes an error of the text and frees it.
TileError *error_of_text(TileStatus status, ErrorText *text);

// The candidate nearest to `word`, or NULL when none is near enough to suggest.
const char *error_nearest(const char *word, const char *const *candidates, int count);

// Blocks that live as long as a module or a call. Zero-initialised it is empty.
typedef struct {
  void **blocks;
  int count, cap;
} Pool;

// Zeroed; NULL without memory, or when the product overflows.
void *pool_alloc(Pool *pool, size_t count, size_t size);
char *pool_text(Pool *pool, const char *text, size_t length);
// A bigger copy of an array of `count` elements when `count` is a power of two (or 0); else the array itself.
// NULL without memory.
void *pool_grow(Pool *pool, void *array, int count, size_t size);
void pool_free(Pool *pool);

#endif

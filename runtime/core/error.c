// An error is one allocation that holds its text. The constant one for "no memory" is recognised by its
// address and never freed.
#include "core/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct TileError {
  TileStatus status;
  const char *message;
};

static const TileError no_memory = {TILE_UNAVAILABLE, "out of memory"};

// Callers only ever read through the pointer, and tile_error_free knows the address.
TileError *error_no_memory(void) {
  return (TileError *)(uintptr_t)&no_memory;
}

static TileError *error_copy(TileStatus status, const char *text, size_t length) {
  TileError *error = malloc(sizeof *error + length + 1);
  if (!error) return error_no_memory();
  char *copy = (char *)(error + 1);
  memcpy(copy, text, length);
  copy[length] = '\0';
  error->status = status;
  error->message = copy;
  return error;
}

TileError *error_new(TileStatus status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char *text = NULL;
  int length = vasprintf(&text, format, args);
  va_end(args);
  if (length < 0) return error_no_memory();
  TileError *error = error_copy(status, text, (size_t)length);
  free(text);
  return error;
}

TileError *error_of_text(TileStatus status, ErrorText *text) {
  TileError *error = text->data ? error_copy(status, text->data, text->len) : error_no_memory();
  free(text->data);
  *text = (ErrorText){0};
  return error;
}

TileStatus tile_error_status(const TileError *error) {
  return error ? error->status : TILE_OK;
}

const char *tile_error_message(const TileError *error) {
  return error ? error->message : "";
}

void tile_error_free(TileError *error) {
  if (error != &no_memory) free(error);
}

void error_text(ErrorText *text, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char *piece = NULL;
  int length = vasprintf(&piece, format, args);
  va_end(args);
  if (length < 0) return;
  if (text->len + (size_t)length + 1 > text->cap) {
    size_t cap = 2 * (text->len + (size_t)length + 1);
    char *data = realloc(text->data, cap);
    if (!data) {
      free(piece);
      return;
    }
    text->data = data;
    text->cap = cap;
  }
  memcpy(text->data + text->len, piece, (size_t)length + 1);
  text->len += (size_t)length;
  free(piece);
}

enum { MAX_WORD = 40 };

// Levenshtein's distance of two words of at most MAX_WORD letters, one row at a time.
static int distance(const char *a, const char *b) {
  int row[MAX_WORD + 1];
  int length = (int)strlen(b);
  for (int j = 0; j <= length; j++) row[j] = j;
  for (int i = 1; a[i - 1]; i++) {
    int diagonal = row[0];
    row[0] = i;
    for (int j = 1; j <= length; j++) {
      int best = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      if (row[j] + 1 < best) best = row[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      row[j] = best;
    }
  }
  return row[length];
}

const char *error_nearest(const char *word, const char *const *candidates, int count) {
  int length = (int)strlen(word);
  if (length > MAX_WORD) return NULL;
  int best = length / 3 + 2;  // a distance from here on is not "near"
  const char *nearest = NULL;
  for (int i = 0; i < count; i++) {
    if (strlen(candidates[i]) > MAX_WORD) continue;
    int d = distance(word, candidates[i]);
    if (d >= best || d >= length) continue;
    best = d;
    nearest = candidates[i];
  }
  return nearest;
}

void *pool_alloc(Pool *pool, size_t count, size_t size) {
  if (pool->count == pool->cap) {
    int cap = pool->cap ? 2 * pool->cap : 32;
    void **blocks = realloc(pool->blocks, (size_t)cap * sizeof *blocks);
    if (!blocks) return NULL;
    pool->blocks = blocks;
    pool->cap = cap;
  }
  void *block = calloc(count ? count : 1, size);
  if (block) pool->blocks[pool->count++] = block;
  return block;
}

char *pool_text(Pool *pool, const char *text, size_t length) {
  char *copy = pool_alloc(pool, length + 1, 1);
  if (copy) memcpy(copy, text, length);
  return copy;
}

void *pool_grow(Pool *pool, void *array, int count, size_t size) {
  if ((count & (count - 1)) != 0) return array;
  void *bigger = pool_alloc(pool, count ? 2 * (size_t)count : 1, size);
  if (bigger && count) memcpy(bigger, array, (size_t)count * size);
  return bigger;
}

void pool_free(Pool *pool) {
  for (int i = 0; i < pool->count; i++) free(pool->blocks[i]);
  free(pool->blocks);
  *pool = (Pool){0};
}

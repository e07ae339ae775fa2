// Text: slices, formatted strings in an arena, a growing buffer, and the edit distance behind "did you mean".
#ifndef TILEC_BASE_TEXT_H
#define TILEC_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

typedef struct {
  const char *data;
  size_t len;
} Str;

Str str_of(const char *text);
bool str_is(Str str, const char *text);

__attribute__((format(printf, 2, 3))) const char *text_printf(Arena *arena, const char *format, ...);
const char *text_vprintf(Arena *arena, const char *format, va_list args);
const char *text_copy(Arena *arena, const char *text, size_t len);  // adds the NUL

// A growing buffer; `data` is always NUL-terminated after the first add.
typedef struct {
  Arena *arena;
  char *data;
  size_t len, cap;
} TextBuf;

__attribute__((format(printf, 2, 3))) void textbuf_printf(TextBuf *buf, const char *format, ...);
void textbuf_add(TextBuf *buf, const char *data, size_t len);
void textbuf_puts(TextBuf *buf, const char *text);

// The candidate nearest to `word` by edit distance (one that has it as a part between underscores is nearer), or NULL when none is near enough to suggest.
const char *text_nearest(const char *word, const char *const *candidates, int count);

#endif

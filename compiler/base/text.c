// Text in arenas: formatting measures first and allocates once; the buffer doubles. The edit distance counts
// insertions, deletions, replacements and swapped neighbours, with a change of case at half the price.
#include "base/text.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

Str str_of(const char *text) {
  return (Str){text, strlen(text)};
}

bool str_is(Str str, const char *text) {
  return strlen(text) == str.len && memcmp(str.data, text, str.len) == 0;
}

const char *text_copy(Arena *arena, const char *text, size_t len) {
  char *copy = arena_alloc(arena, len + 1);
  if (len) memcpy(copy, text, len);
  return copy;
}

const char *text_vprintf(Arena *arena, const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  int len = vsnprintf(NULL, 0, format, args);
  char *text = arena_alloc(arena, len < 0 ? 1 : (size_t)len + 1);
  if (len > 0) vsnprintf(text, (size_t)len + 1, format, again);
  va_end(again);
  return text;
}

const char *text_printf(Arena *arena, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *text = text_vprintf(arena, format, args);
  va_end(args);
  return text;
}

enum { FIRST_CAPACITY = 64 };

static void textbuf_reserve(TextBuf *buf, size_t extra) {
  if (buf->data && buf->cap - buf->len > extra) return;
  size_t cap = buf->cap < FIRST_CAPACITY ? FIRST_CAPACITY : buf->cap;
  while (cap - buf->len <= extra) cap *= 2;
  char *data = arena_alloc(buf->arena, cap);
  if (buf->len) memcpy(data, buf->data, buf->len);
  buf->data = data;
  buf->cap = cap;
}

void textbuf_add(TextBuf *buf, const char *data, size_t len) {
  textbuf_reserve(buf, len);
  if (len) memcpy(buf->data + buf->len, data, len);
  buf->len += len;
  buf->data[buf->len] = '\0';
}

void textbuf_puts(TextBuf *buf, const char *text) {
  textbuf_add(buf, text, strlen(text));
}

void textbuf_printf(TextBuf *buf, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int len = vsnprintf(NULL, 0, format, args);
  if (len > 0) {
    textbuf_reserve(buf, (size_t)len);
    vsnprintf(buf->data + buf->len, (size_t)len + 1, format, again);
    buf->len += (size_t)len;
  } else {
    textbuf_add(buf, "", 0);
  }
  va_end(again);
  va_end(args);
}

enum { LONGEST_WORD = 63, EDIT = 2, CASE_CHANGE = 1 };

static int min_int(int a, int b) {
  return a < b ? a : b;
}

static int replace_cost(char a, char b) {
  if (a == b) return 0;
  return tolower((unsigned char)a) == tolower((unsigned char)b) ? CASE_CHANGE : EDIT;
}

// In half edits. Both words are at most LONGEST_WORD long. Rows of the usual table; a swap looks two rows
// back.
static int edit_distance(const char *a, int alen, const char *b, int blen) {
  int rows[3][LONGEST_WORD + 1];
  int *before = rows[0], *last = rows[1], *row = rows[2];
  for (int j = 0; j <= blen; j++) last[j] = j * EDIT;
  for (int i = 1; i <= alen; i++) {
    row[0] = i * EDIT;
    for (int j = 1; j <= blen; j++) {
      row[j] = last[j - 1] + replace_cost(a[i - 1], b[j - 1]);
      row[j] = min_int(row[j], min_int(last[j], row[j - 1]) + EDIT);
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = min_int(row[j], before[j - 2] + EDIT);
    }
    int *oldest = before;
    before = last;
    last = row;
    row = oldest;
  }
  return last[blen];
}

// `word` is some of the words that '_' joins in `candidate`: stages in num_stages.
static bool is_part(const char *word, size_t len, const char *candidate) {
  enum { TELLING = 4 };
  const char *at = len < TELLING ? NULL : strstr(candidate, word);
  return at && (at == candidate || at[-1] == '_') && (at[len] == '_' || at[len] == '\0');
}

const char *text_nearest(const char *word, const char *const *candidates, int count) {
  size_t len = strlen(word);
  if (len > LONGEST_WORD) return NULL;
  const char *best = NULL;
  int best_distance = 0;
  for (int i = 0; i < count; i++) {
    size_t other = strlen(candidates[i]);
    if (other > LONGEST_WORD) continue;
    int shorter = min_int((int)len, (int)other);
    bool part = is_part(word, len, candidates[i]);
    int distance = part ? CASE_CHANGE : edit_distance(word, (int)len, candidates[i], (int)other);
    // A third of the word may be wrong; a word of which nothing is left is no suggestion.
    bool near = part || (distance <= ((int)len + 2) / 3 * EDIT && distance < shorter * EDIT);
    if (!near || (best && distance >= best_distance)) continue;
    best = candidates[i];
    best_distance = distance;
  }
  return best;
}

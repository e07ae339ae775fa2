// A file is read whole, in one buffer, and indexed by line once. Offsets are bytes; only messages know lines.
#include "base/source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"

static void index_lines(Arena *arena, Source *source) {
  VEC(uint32_t) starts = {0};
  vec_push(arena, &starts, 0);
  for (uint32_t i = 0; i < source->len; i++)
    if (source->text[i] == '\n') vec_push(arena, &starts, i + 1);
  source->line_starts = starts.data;
  source->nlines = starts.len;
}

Source *source_from_text(Arena *arena, const char *path, const char *text, uint32_t len) {
  Source *source = ARENA_NEW(arena, Source);
  source->path = text_copy(arena, path, strlen(path));
  source->text = text_copy(arena, text, len);
  source->len = len;
  index_lines(arena, source);
  return source;
}

// Bytes of the UTF-8 sequence at p, or 0 when it is malformed, overlong, a surrogate or beyond U+10FFFF.
static int utf8_length(const unsigned char *p, size_t left) {
  if (p[0] < 0x80) return 1;
  int length = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
  if (p[0] < 0xc2 || p[0] > 0xf4 || left < (size_t)length) return 0;
  for (int i = 1; i < length; i++)
    if ((p[i] & 0xc0) != 0x80) return 0;
  if (p[0] == 0xe0 && p[1] < 0xa0) return 0;
  if (p[0] == 0xed && p[1] > 0x9f) return 0;
  if (p[0] == 0xf0 && p[1] < 0x90) return 0;
  if (p[0] == 0xf4 && p[1] > 0x8f) return 0;
  return length;
}

static bool is_text(const char *text, size_t len) {
  for (size_t i = 0; i < len;) {
    int length = text[i] == '\0' ? 0 : utf8_length((const unsigned char *)text + i, len - i);
    if (length == 0) return false;
    i += (size_t)length;
  }
  return true;
}

static SourceStatus read_stream(Arena *arena, FILE *file, TextBuf *text) {
  text->arena = arena;
  char chunk[16 << 10];
  for (size_t got; (got = fread(chunk, 1, sizeof chunk, file)) > 0;) {
    if (text->len + got > SOURCE_MAX_BYTES) return SOURCE_TOO_LARGE;
    textbuf_add(text, chunk, got);
  }
  textbuf_add(text, "", 0);
  if (ferror(file)) return SOURCE_UNREADABLE;
  return is_text(text->data, text->len) ? SOURCE_OK : SOURCE_BINARY;
}

SourceStatus source_read(Arena *arena, const char *path, Source **out) {
  bool standard_input = strcmp(path, "-") == 0;
  FILE *file = standard_input ? stdin : fopen(path, "rb");
  if (!file) return SOURCE_UNREADABLE;
  TextBuf text = {0};
  SourceStatus status = read_stream(arena, file, &text);
  int reason = errno;
  if (!standard_input) fclose(file);
  errno = reason;
  if (status != SOURCE_OK) return status;
  Source *source = ARENA_NEW(arena, Source);
  source->path = standard_input ? "<stdin>" : text_copy(arena, path, strlen(path));
  source->text = text.data;
  source->len = (uint32_t)text.len;
  index_lines(arena, source);
  *out = source;
  return SOURCE_OK;
}

Place source_place(const Source *source, uint32_t offset) {
  if (offset > source->len) offset = source->len;
  int low = 0, high = source->nlines;  // line_starts[low] <= offset < line_starts[high]
  while (high - low > 1) {
    int middle = low + (high - low) / 2;
    if (source->line_starts[middle] <= offset)
      low = middle;
    else
      high = middle;
  }
  return (Place){low + 1, (int)(offset - source->line_starts[low]) + 1};
}

const char *source_line(const Source *source, int line, int *len) {
  if (line < 1 || line > source->nlines) {
    *len = 0;
    return "";
  }
  uint32_t begin = source->line_starts[line - 1];
  uint32_t end = line < source->nlines ? source->line_starts[line] - 1 : source->len;
  if (end > begin && source->text[end - 1] == '\r') end--;
  *len = (int)(end - begin);
  return source->text + begin;
}

static bool is_nowhere(Span span) {
  return span.begin == 0 && span.end == 0;
}

Span span_join(Span a, Span b) {
  if (is_nowhere(a)) return b;
  if (is_nowhere(b)) return a;
  return (Span){a.begin < b.begin ? a.begin : b.begin, a.end > b.end ? a.end : b.end};
}

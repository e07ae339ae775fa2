// A source text and byte ranges in it. Lines and columns are computed only when a message prints.
#ifndef TILEC_BASE_SOURCE_H
#define TILEC_BASE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

// Half-open byte range [begin, end) of a Source. {0, 0} means "no place".
typedef struct {
  uint32_t begin, end;
} Span;

typedef struct {
  const char *path;
  const char *text;  // NUL-terminated; may hold no NUL inside
  uint32_t len;
  const uint32_t *line_starts;  // offset of each line, ascending
  int nlines;
} Source;

typedef struct {
  int line, column;  // both from 1; the column counts bytes
} Place;

// Why a file could not become a Source; SOURCE_OK otherwise.
typedef enum { SOURCE_OK, SOURCE_UNREADABLE, SOURCE_TOO_LARGE, SOURCE_BINARY } SourceStatus;

enum { SOURCE_MAX_BYTES = 16 << 20 };

// Reads a whole file ("-" is standard input). A NUL byte or invalid UTF-8 makes it SOURCE_BINARY.
// SOURCE_UNREADABLE leaves the reason in errno.
SourceStatus source_read(Arena *arena, const char *path, Source **out);
Source *source_from_text(Arena *arena, const char *path, const char *text, uint32_t len);

Place source_place(const Source *source, uint32_t offset);
// The text of one line without its newline; `line` counts from 1.
const char *source_line(const Source *source, int line, int *len);
Span span_join(Span a, Span b);

#endif

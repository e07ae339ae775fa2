// A line is a sequence of cells, one per character: a tab fills up to the next multiple of eight columns, a
// control or direction-changing character is shown as an escape, a broken byte as \xNN, and anything else is
// one column wide. Columns are counted twice over the line, never stored, so that a line of megabytes costs
// no memory; of a long line only the columns around the caret are printed.
#include "base/diag_excerpt.h"

#include <string.h>

enum { TAB_WIDTH = 8, WIDEST_LINE = 160, WINDOW = 150, BEFORE_CARET = 60 };

typedef struct {
  char text[16];  // what is printed
  int bytes;      // how much of the line it stands for
  int width;      // in columns
} Cell;

// Decodes one character of well-formed UTF-8; *bytes is 1 and the value negative where it is not.
static int decode(const char *text, int left, int *bytes) {
  const unsigned char *p = (const unsigned char *)text;
  int length = p[0] < 0x80 ? 1 : p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc2 ? 2 : 0;
  *bytes = 1;
  if (length == 1) return p[0];
  if (length == 0 || length > left) return -1;
  int value = p[0] & (0xff >> (length + 1));
  for (int i = 1; i < length; i++) {
    if ((p[i] & 0xc0) != 0x80) return -1;
    value = value << 6 | (p[i] & 0x3f);
  }
  *bytes = length;
  return value;
}

// Characters that a terminal would obey rather than show, or that hide what the program says.
static bool is_unprintable(int c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

static Cell cell_at(const char *text, int left, int column) {
  Cell cell = {0};
  int c = decode(text, left, &cell.bytes);
  if (c == '\t') {
    cell.width = TAB_WIDTH - column % TAB_WIDTH;
    memset(cell.text, ' ', (size_t)cell.width);
  } else if (c < 0) {
    cell.width = snprintf(cell.text, sizeof cell.text, "\\x%02x", (unsigned char)text[0]);
  } else if (is_unprintable(c)) {
    cell.width = snprintf(cell.text, sizeof cell.text, c < 0x100 ? "\\x%02x" : "\\u%04x", (unsigned)c);
  } else {
    cell.width = 1;
    memcpy(cell.text, text, (size_t)cell.bytes);
  }
  return cell;
}

// The column at which byte `offset` of the line starts.
static int column_of(const char *line, int len, int offset) {
  int column = 0;
  for (int i = 0; i < len && i < offset;) {
    Cell cell = cell_at(line + i, len - i, column);
    column += cell.width;
    i += cell.bytes;
  }
  return column;
}

// Prints the cells that lie within [first, last); one that is cut becomes spaces.
static void print_columns(FILE *out, const char *line, int len, int first, int last) {
  int column = 0;
  for (int i = 0; i < len && column < last;) {
    Cell cell = cell_at(line + i, len - i, column);
    int end = column + cell.width;
    if (column >= first && end <= last)
      fputs(cell.text, out);
    else
      for (int at = column; at < end; at++)
        if (at >= first && at < last) fputc(' ', out);
    column = end;
    i += cell.bytes;
  }
}

static void print_repeated(FILE *out, char c, int count) {
  for (int i = 0; i < count; i++) fputc(c, out);
}

int excerpt_decode(const char *text, int *bytes) {
  return decode(text, (int)strnlen(text, 4), bytes);
}

void excerpt_print(FILE *out, const Source *source, Span span, const char *color) {
  Place place = source_place(source, span.begin);
  int len;
  const char *line = source_line(source, place.line, &len);
  int begin = place.column - 1 < len ? place.column - 1 : len;
  bool goes_on = span.end > span.begin && source_place(source, span.end - 1).line > place.line;
  int bytes = span.end > span.begin ? (int)(span.end - span.begin) : 1;
  int end = goes_on || bytes > len - begin ? len : begin + bytes;

  int width = column_of(line, len, len);
  int caret = column_of(line, len, begin), caret_end = column_of(line, len, end);
  if (caret_end <= caret) caret_end = caret + 1;
  int first = width > WIDEST_LINE && caret > BEFORE_CARET ? caret - BEFORE_CARET : 0;
  int last = width > WIDEST_LINE && width - first > WINDOW ? first + WINDOW : width;
  const char *cut = first > 0 ? "..." : "";

  fprintf(out, "%5d | %s", place.line, cut);
  print_columns(out, line, len, first, last);
  fprintf(out, "%s\n      | ", last < width ? "..." : "");
  print_repeated(out, ' ', (int)strlen(cut) + caret - first);
  int shown = caret_end > last && last > caret ? last : caret_end;
  if (color) fputs(color, out);
  print_repeated(out, '^', shown - caret);
  fputs(goes_on ? "..." : "", out);
  fputs(color ? "\033[0m\n" : "\n", out);
}

void excerpt_print_text(FILE *out, const char *text) {
  int len = (int)strlen(text);
  for (int i = 0; i < len;) {
    Cell cell = cell_at(text + i, len - i, 0);
    if (text[i] == '\n')
      fputc('\n', out);
    else
      fputs(cell.text, out);
    i += cell.bytes;
  }
}

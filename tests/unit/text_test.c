// Formatting, the growing buffer, suggestions; source texts and places in them.
#include "base/text.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/source.h"
#include "check.h"

static void test_format(Checks *c, Arena *arena) {
  CHECK_TEXT(c, text_printf(arena, "%s takes %d of %d", "acc", 256, 512), "acc takes 256 of 512");
  CHECK_TEXT(c, text_printf(arena, "%s", ""), "");
  CHECK_TEXT(c, text_copy(arena, "fragment", 4), "frag");
  CHECK(c, str_is(str_of("tile"), "tile"));
  CHECK(c, !str_is((Str){"tile", 3}, "tile"));
  CHECK(c, str_is((Str){"tile", 3}, "til"));
}

static void test_buffer(Checks *c, Arena *arena) {
  TextBuf buf = {.arena = arena};
  textbuf_puts(&buf, "");
  CHECK_TEXT(c, buf.data, "");
  for (int i = 0; i < 1000; i++) textbuf_printf(&buf, "%d,", i % 10);
  CHECK_INT(c, buf.len, 2000);
  CHECK_INT(c, strlen(buf.data), 2000);
  CHECK(c, strncmp(buf.data, "0,1,2,", 6) == 0);
  textbuf_add(&buf, "ab", 1);
  CHECK_TEXT(c, buf.data + 2000, "a");
  textbuf_printf(&buf, "%s", "");
  CHECK_INT(c, buf.len, 2001);
}

static void test_nearest(Checks *c) {
  static const char *const words[] = {"alloc_shared", "alloc_fragment", "alloc_tmem", "gemm",
                                      "copy",         "fill",           "N",          "M"};
  enum { COUNT = sizeof words / sizeof *words };
  CHECK_TEXT(c, text_nearest("aloc_shared", words, COUNT), "alloc_shared");
  CHECK_TEXT(c, text_nearest("alloc_fragmnet", words, COUNT), "alloc_fragment");
  CHECK_TEXT(c, text_nearest("cpoy", words, COUNT), "copy");
  CHECK_TEXT(c, text_nearest("GEMM", words, COUNT), "gemm");
  CHECK_TEXT(c, text_nearest("gem", words, COUNT), "gemm");
  CHECK_TEXT(c, text_nearest("n", words, COUNT), "N");
  CHECK_TEXT(c, text_nearest("print", words, COUNT), NULL);
  CHECK_TEXT(c, text_nearest("K", words, COUNT), NULL);
  CHECK_TEXT(c, text_nearest("shared", words, COUNT), "alloc_shared");
  CHECK_TEXT(c, text_nearest("", words, COUNT), NULL);
  CHECK_TEXT(c, text_nearest("copy", words, 0), NULL);
  char huge[1000];
  memset(huge, 'c', sizeof huge - 1);
  huge[sizeof huge - 1] = '\0';
  CHECK_TEXT(c, text_nearest(huge, words, COUNT), NULL);
}

static void check_place(Checks *c, const Source *source, uint32_t offset, int line, int column) {
  Place place = source_place(source, offset);
  CHECK_INT(c, place.line, line);
  CHECK_INT(c, place.column, column);
}

static void test_places(Checks *c, Arena *arena) {
  Source *source = source_from_text(arena, "a.tile", "one\ntwo\r\n\nend", 13);
  CHECK_INT(c, source->nlines, 4);
  check_place(c, source, 0, 1, 1);
  check_place(c, source, 3, 1, 4);
  check_place(c, source, 4, 2, 1);
  check_place(c, source, 9, 3, 1);
  check_place(c, source, 13, 4, 4);
  check_place(c, source, 4000, 4, 4);
  int len;
  CHECK(c, strncmp(source_line(source, 2, &len), "two", 3) == 0 && len == 3);
  source_line(source, 3, &len);
  CHECK_INT(c, len, 0);
  CHECK(c, strncmp(source_line(source, 4, &len), "end", 3) == 0 && len == 3);
  source_line(source, 5, &len);
  CHECK_INT(c, len, 0);
  check_place(c, source_from_text(arena, "b", "", 0), 0, 1, 1);

  Span joined = span_join((Span){5, 9}, (Span){2, 6});
  CHECK(c, joined.begin == 2 && joined.end == 9);
  joined = span_join((Span){0, 0}, (Span){2, 6});
  CHECK(c, joined.begin == 2 && joined.end == 6);
  joined = span_join((Span){2, 6}, (Span){0, 0});
  CHECK(c, joined.begin == 2 && joined.end == 6);
}

static SourceStatus status_of(Arena *arena, const char *bytes, size_t len, Source **out) {
  char path[] = "/tmp/source_test_XXXXXX";
  int fd = mkstemp(path);
  bool written = fd >= 0 && write(fd, bytes, len) == (ssize_t)len;
  close(fd);
  SourceStatus status = source_read(arena, path, out);
  unlink(path);
  return written ? status : SOURCE_UNREADABLE;
}

static void test_read(Checks *c, Arena *arena) {
  Source *source = NULL;
  CHECK_INT(c, status_of(arena, "x = 1\n", 6, &source), SOURCE_OK);
  CHECK_TEXT(c, source->text, "x = 1\n");
  CHECK_INT(c, source->len, 6);
  CHECK_INT(c, status_of(arena, "", 0, &source), SOURCE_OK);
  CHECK_INT(c, source->len, 0);
  CHECK_INT(c, status_of(arena, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, &source), SOURCE_OK);
  static const char *const broken[] = {"\xc3",  "\x80",    "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80",
                                       "a\xff", "\xe2\x82"};
  for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
    CHECK_INT(c, status_of(arena, broken[i], strlen(broken[i]), &source), SOURCE_BINARY);
  CHECK_INT(c, status_of(arena, "a\0b", 3, &source), SOURCE_BINARY);
  CHECK_INT(c, source_read(arena, "/nonexistent/x.tile", &source), SOURCE_UNREADABLE);
  CHECK_INT(c, source_read(arena, "/", &source), SOURCE_UNREADABLE);
  size_t size = SOURCE_MAX_BYTES + 1;
  char *big = malloc(size);
  memset(big, ' ', size);
  CHECK_INT(c, status_of(arena, big, size - 1, &source), SOURCE_OK);
  CHECK_INT(c, status_of(arena, big, size, &source), SOURCE_TOO_LARGE);
  free(big);
}

int main(void) {
  Checks checks = {0};
  Arena *arena = arena_new();
  test_format(&checks, arena);
  test_buffer(&checks, arena);
  test_nearest(&checks);
  test_places(&checks, arena);
  test_read(&checks, arena);
  arena_free(arena);
  return check_report(&checks);
}

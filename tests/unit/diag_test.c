// What a message looks like, to the letter: carets under tabs, UTF-8 and escapes, long and several lines,
// order, notes.
#include "base/diag.h"

#include <stdlib.h>

#include "check.h"

// A source, and a place to collect what is printed about it.
typedef struct {
  Arena *arena;
  Source *source;
  Diags *ds;
} Case;

static Case begin_case(const char *text) {
  Arena *arena = arena_new();
  Source *source = source_from_text(arena, "k.tile", text, (uint32_t)strlen(text));
  return (Case){arena, source, diags_new(arena, source)};
}

// The span of the first occurrence of `part`.
static Span span_of(const Case *k, const char *part) {
  uint32_t begin = (uint32_t)(strstr(k->source->text, part) - k->source->text);
  return (Span){begin, begin + (uint32_t)strlen(part)};
}

static void check_printed(Checks *c, const Diags *ds, bool remarks, const char *want) {
  char *text = NULL;
  size_t len;
  FILE *out = open_memstream(&text, &len);
  diags_print(ds, out, &(DiagStyle){.remarks = remarks});
  fclose(out);
  CHECK_TEXT(c, text, want);
  free(text);
}

static void finish(Checks *c, Case *k, const char *want) {
  check_printed(c, k->ds, false, want);
  arena_free(k->arena);
}

static void test_plain(Checks *c) {
  Case k = begin_case("C = alloc_tmem([128, 512], f32)\n        S = alloc_tmem([128, 128], f32)\n");
  Span second = {44, 54};
  diag_error(k.ds, DIAG_syntax, second, "live tiles need %d TMEM columns, %s has %d", 640, "sm_100a", 512);
  diag_note(k.ds, span_of(&k, "alloc_tmem"), "this accumulator takes %d", 512);
  diag_hint(k.ds, "make one of them smaller");
  CHECK_INT(c, diags_errors(k.ds), 1);
  finish(c, &k,
         "k.tile:2:13: error[E0101]: live tiles need 640 TMEM columns, sm_100a has 512\n"
         "    2 |         S = alloc_tmem([128, 128], f32)\n"
         "      |             ^^^^^^^^^^\n"
         "k.tile:1:5: note: this accumulator takes 512\n"
         "    1 | C = alloc_tmem([128, 512], f32)\n"
         "      |     ^^^^^^^^^^\n"
         "  hint: make one of them smaller\n");
}

static void test_json(Checks *c) {
  Case k = begin_case("x = \"é\"\ny = 1\n");
  k.source->path = "a\"b\\c\xff.tile";
  diag_push_frame(k.ds, span_of(&k, "y"), "in 'f', called here");
  diag_error(k.ds, DIAG_syntax, span_of(&k, "\"é\"\ny"), "a \"quote\", a\nline, a\ttab, \xc3\xa9");
  diag_note(k.ds, (Span){0, 0}, "nowhere");
  diag_hint(k.ds, "one");
  diag_hint(k.ds, "two");
  diag_pop_frame(k.ds);
  diag_remark(k.ds, span_of(&k, "y"), "hidden");
  char *text = NULL;
  size_t len;
  FILE *out = open_memstream(&text, &len);
  diags_print(k.ds, out, &(DiagStyle){.json = true});
  diag_print_plain(out, &(DiagStyle){.json = true}, "tilec", "no");
  diag_print_plain(out, &(DiagStyle){.json = false}, "tilec", "no");
  fclose(out);
  CHECK_TEXT(
      c, text,
      "{\"code\":\"E0101\",\"severity\":\"error\",\"file\":\"a\\\"b\\\\c\\ufffd.tile\",\"line\":1,\"col\":5,"
      "\"end\":{\"line\":2,\"col\":2},\"message\":\"a \\\"quote\\\", a\\nline, a\\u0009tab, é\","
      "\"notes\":[{\"message\":\"nowhere\",\"file\":\"a\\\"b\\\\c\\ufffd.tile\",\"line\":null,\"col\":null,"
      "\"end\":null},"
      "{\"message\":\"in 'f', called here\",\"file\":\"a\\\"b\\\\c\\ufffd.tile\",\"line\":2,\"col\":1,"
      "\"end\":{\"line\":2,\"col\":2}}],\"hints\":[\"one\",\"two\"]}\n"
      "{\"code\":null,\"severity\":\"error\",\"file\":null,\"line\":null,\"col\":null,\"end\":null,"
      "\"message\":\"no\","
      "\"notes\":[],\"hints\":[]}\n"
      "tilec: no\n");
  free(text);
  arena_free(k.arena);
}

static void test_order(Checks *c) {
  Case k = begin_case("aa\nbb\ncc\n");
  diag_error(k.ds, DIAG_syntax, span_of(&k, "cc"), "third");
  diag_warning(k.ds, DIAG_unclosed, span_of(&k, "aa"), "first");
  diag_remark(k.ds, span_of(&k, "bb"), "quiet");
  diag_error(k.ds, DIAG_syntax, span_of(&k, "bb"), "second");
  diag_error(k.ds, DIAG_unclosed, span_of(&k, "bb"), "second, other code");
  diag_error(k.ds, DIAG_syntax, span_of(&k, "bb"), "said before");
  diag_note(k.ds, span_of(&k, "aa"), "goes with what was dropped");
  diag_hint(k.ds, "and so does this");
  CHECK_INT(c, diags_errors(k.ds), 3);
  const char *want = "k.tile:1:1: warning[E0105]: first\n    1 | aa\n      | ^^\n"
                     "k.tile:2:1: error[E0101]: second\n    2 | bb\n      | ^^\n"
                     "k.tile:2:1: error[E0105]: second, other code\n    2 | bb\n      | ^^\n"
                     "k.tile:3:1: error[E0101]: third\n    3 | cc\n      | ^^\n";
  check_printed(c, k.ds, false, want);
  check_printed(c, k.ds, true,
                "k.tile:1:1: warning[E0105]: first\n    1 | aa\n      | ^^\n"
                "k.tile:2:1: remark: quiet\n    2 | bb\n      | ^^\n"
                "k.tile:2:1: error[E0101]: second\n    2 | bb\n      | ^^\n"
                "k.tile:2:1: error[E0105]: second, other code\n    2 | bb\n      | ^^\n"
                "k.tile:3:1: error[E0101]: third\n    3 | cc\n      | ^^\n");
  arena_free(k.arena);
}

static void test_tabs(Checks *c) {
  Case k = begin_case("\tab\tcd = 1\r\n");
  diag_error(k.ds, DIAG_indentation, span_of(&k, "cd"), "tab");
  diag_note(k.ds, (Span){0, 1}, "this one");
  finish(c, &k,
         "k.tile:1:5: error[E0103]: tab\n"
         "    1 |         ab      cd = 1\n"
         "      |                 ^^\n"
         "k.tile:1:1: note: this one\n"
         "    1 |         ab      cd = 1\n"
         "      | ^^^^^^^^\n");
}

static void test_characters(Checks *c) {
  Case k = begin_case("s = '\xc3\xa9\xe2\x82\xac' + x\n");
  diag_error(k.ds, DIAG_syntax, span_of(&k, "x"), "after UTF-8");
  finish(c, &k,
         "k.tile:1:15: error[E0101]: after UTF-8\n    1 | s = '\xc3\xa9\xe2\x82\xac' + x\n      |            "
         "^\n");

  k = begin_case("a\x1b[31m\xe2\x80\xae b\xff\n");
  diag_error(k.ds, DIAG_syntax, span_of(&k, " b"), "bad \x1b name '%s'", "\xe2\x80\xae\x07\xff");
  finish(c, &k,
         "k.tile:1:10: error[E0101]: bad \\x1b name '\\u202e\\x07\\xff'\n"
         "    1 | a\\x1b[31m\\u202e b\\xff\n"
         "      |                ^^\n");
}

static void test_lines(Checks *c) {
  Case k = begin_case("f(a,\n  b)\n");
  diag_error(k.ds, DIAG_syntax, span_of(&k, "(a,\n  b)"), "two lines");
  diag_error(k.ds, DIAG_unclosed, (Span){10, 10}, "end of file");
  finish(c, &k,
         "k.tile:1:2: error[E0101]: two lines\n    1 | f(a,\n      |  ^^^...\n"
         "k.tile:3:1: error[E0105]: end of file\n    3 | \n      | ^\n");

  k = begin_case("ab\n");
  diag_error(k.ds, DIAG_syntax, (Span){2, 3}, "the newline itself");
  finish(c, &k, "k.tile:1:3: error[E0101]: the newline itself\n    1 | ab\n      |   ^\n");
}

// A line of 400 digits: columns 0 to 9 repeat, so that the cut shows.
static void test_long_line(Checks *c) {
  char text[402];
  for (int i = 0; i < 400; i++) text[i] = (char)('0' + i % 10);
  strcpy(text + 400, "\n");
  Case k = begin_case(text);
  diag_error(k.ds, DIAG_syntax, (Span){200, 203}, "middle");
  Arena *arena = k.arena;
  const char *want =
      text_printf(arena, "k.tile:1:201: error[E0101]: middle\n    1 | ...%.150s...\n      | %*s^^^\n",
                  text + 140, 63, "");
  finish(c, &k, want);

  k = begin_case(text);
  diag_error(k.ds, DIAG_syntax, (Span){10, 390}, "span longer than the window");
  char carets[141];
  memset(carets, '^', 140);
  carets[140] = '\0';
  want = text_printf(
      k.arena, "k.tile:1:11: error[E0101]: span longer than the window\n    1 | %.150s...\n      | %*s%s\n",
      text, 10, "", carets);
  finish(c, &k, want);

  text[160] = '\n';
  k = begin_case(text);
  diag_error(k.ds, DIAG_syntax, (Span){159, 160}, "just fits");
  want = text_printf(k.arena, "k.tile:1:160: error[E0101]: just fits\n    1 | %.160s\n      | %*s^\n", text,
                     159, "");
  finish(c, &k, want);
}

static void test_no_place(Checks *c) {
  Case k = begin_case("x\n");
  diag_error(k.ds, DIAG_source_file, (Span){0, 0}, "the file is empty");
  diag_note(k.ds, (Span){0, 0}, "a table:\n  a 1\n  b 2");
  check_printed(c, k.ds, false,
                "k.tile: error[E0102]: the file is empty\nk.tile: note: a table:\n  a 1\n  b 2\n");
  arena_free(k.arena);

  Arena *arena = arena_new();
  Diags *ds = diags_new(arena, NULL);
  diag_error(ds, DIAG_source_file, (Span){3, 4}, "cannot read 'x.tile'");
  check_printed(c, ds, false, "error[E0102]: cannot read 'x.tile'\n");
  diags_set_source(ds, source_from_text(arena, "y.tile", "abcdef", 6));
  check_printed(c, ds, false,
                "y.tile:1:4: error[E0102]: cannot read 'x.tile'\n    1 | abcdef\n      |    ^\n");
  arena_free(arena);
}

static void test_frames(Checks *c) {
  Case k = begin_case("outer\ninner\nbad\nlater\n");
  diag_push_frame(k.ds, span_of(&k, "outer"), "in macro '%s' called here", "f");
  diag_push_frame(k.ds, span_of(&k, "inner"), "in macro '%s' called here", "g");
  diag_error(k.ds, DIAG_syntax, span_of(&k, "bad"), "wrong");
  diag_pop_frame(k.ds);
  diag_pop_frame(k.ds);
  diag_note(k.ds, span_of(&k, "later"), "and this");
  diag_error(k.ds, DIAG_syntax, span_of(&k, "later"), "outside");
  finish(c, &k,
         "k.tile:3:1: error[E0101]: wrong\n    3 | bad\n      | ^^^\n"
         "k.tile:4:1: note: and this\n    4 | later\n      | ^^^^^\n"
         "k.tile:2:1: note: in macro 'g' called here\n    2 | inner\n      | ^^^^^\n"
         "k.tile:1:1: note: in macro 'f' called here\n    1 | outer\n      | ^^^^^\n"
         "k.tile:4:1: error[E0101]: outside\n    4 | later\n      | ^^^^^\n");
}

static int count_of(const char *text, const char *part) {
  int count = 0;
  for (const char *at = text; (at = strstr(at, part)); at++) count++;
  return count;
}

static void test_limit(Checks *c) {
  char text[101];
  memset(text, 'x', 100);
  text[100] = '\0';
  Case k = begin_case(text);
  for (uint32_t i = 1; i < 100; i++) {
    CHECK_INT(c, diags_at_limit(k.ds), i > 50);
    diag_error(k.ds, DIAG_syntax, (Span){i, i + 1}, "number %u", i);
  }
  CHECK_INT(c, diags_errors(k.ds), 50);
  char *printed = NULL;
  size_t len;
  FILE *out = open_memstream(&printed, &len);
  diags_print(k.ds, out, &(DiagStyle){.json = false});
  fclose(out);
  CHECK_INT(c, count_of(printed, "error[E0101]"), 50);
  CHECK(c, strstr(printed, "note: stopped after 50 errors\n") != NULL);
  free(printed);
  arena_free(k.arena);
}

int main(void) {
  Checks checks = {0};
  CHECK_TEXT(&checks, diag_code_text(DIAG_syntax), "E0101");
  CHECK(&checks, strstr(diag_code_summary(DIAG_unclosed), "bracket") != NULL);
  test_plain(&checks);
  test_json(&checks);
  test_order(&checks);
  test_tabs(&checks);
  test_characters(&checks);
  test_lines(&checks);
  test_long_line(&checks);
  test_no_place(&checks);
  test_frames(&checks);
  test_limit(&checks);
  return check_report(&checks);
}

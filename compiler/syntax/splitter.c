// Cuts a Python file into its top-level pieces without parsing it: a piece is a line at the left margin with
// everything indented below it, where lines join inside brackets and strings. A decorator belongs to the
// definition after it.
//
// Damage is contained: a string that is not closed ends with its line, and an open bracket ends where a
// definition begins at the left margin.
#include "syntax/syntax_internal.h"

#include <string.h>

typedef struct {
  const char *text;
  uint32_t at, end;
} Cursor;

static bool at_newline(const Cursor *cx) {
  return cx->at < cx->end && (cx->text[cx->at] == '\n' || cx->text[cx->at] == '\r');
}

static void skip_newline(Cursor *cx) {
  if (cx->text[cx->at] == '\r' && cx->end - cx->at > 1 && cx->text[cx->at + 1] == '\n') cx->at++;
  cx->at++;
}

static void skip_to_newline(Cursor *cx) {
  while (cx->at < cx->end && !at_newline(cx)) cx->at++;
}

static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (c & 0x80);
}

static bool at_word(const Cursor *cx, const char *word) {
  size_t len = strlen(word);
  if (cx->end - cx->at < len || memcmp(cx->text + cx->at, word, len) != 0) return false;
  return cx->end - cx->at == len || !is_word(cx->text[cx->at + len]);
}

static bool at_definition(const Cursor *cx) {
  if (at_word(cx, "def") || at_word(cx, "class") || at_word(cx, "async")) return true;
  return cx->end - cx->at > 1 && cx->text[cx->at] == '@' && is_word(cx->text[cx->at + 1]);
}

// A string, word or single character. Strings pass whole.
static void skip_item(Cursor *cx) {
  if (string_prefix(cx->text, cx->at, cx->end) >= 0) {
    Literal lit;
    bool is_closed = string_scan(cx->text, cx->at, cx->end, &lit);
    uint32_t begin = cx->at;
    cx->at = lit.end;
    if (!is_closed && lit.is_triple) {
      cx->at = begin;
      skip_to_newline(cx);
    }
  } else if (is_word(cx->text[cx->at])) {
    while (cx->at < cx->end && is_word(cx->text[cx->at])) cx->at++;
  } else {
    cx->at++;
  }
}

// To behind the line end that ends the statement. Answers whether an `=` stands outside of brackets.
static bool skip_logical_line(Cursor *cx) {
  int nest = 0;
  bool has_equals = false;
  while (cx->at < cx->end) {
    char c = cx->text[cx->at];
    if (at_newline(cx)) {
      skip_newline(cx);
      if (nest <= 0 || at_definition(cx)) return has_equals;
    } else if (c == '#') {
      skip_to_newline(cx);
    } else if (c == '\\') {
      cx->at++;
      if (at_newline(cx)) skip_newline(cx);
    } else {
      has_equals |= c == '=' && nest == 0;
      nest += strchr("([{", c) ? 1 : strchr(")]}", c) ? -1 : 0;
      skip_item(cx);
    }
  }
  return has_equals;
}

static bool at_blank_line(const Cursor *cx) {
  Cursor look = *cx;
  while (look.at < look.end && strchr(" \t\f", look.text[look.at])) look.at++;
  return look.at == look.end || at_newline(&look) || look.text[look.at] == '#';
}

static void skip_blank_lines(Cursor *cx) {
  while (cx->at < cx->end && at_blank_line(cx)) {
    skip_to_newline(cx);
    if (cx->at < cx->end) skip_newline(cx);
  }
}

// The indented lines below. Trailing blank lines and comments stay outside of the piece.
static void skip_block(Cursor *cx) {
  for (;;) {
    Cursor look = *cx;
    skip_blank_lines(&look);
    if (look.at == look.end || !strchr(" \t\f", look.text[look.at])) return;
    skip_logical_line(&look);
    *cx = look;
  }
}

// The word after `def`.
static Span function_name(const Cursor *cx) {
  Cursor look = *cx;
  look.at += strlen("def");
  while (look.at < look.end && (look.text[look.at] == ' ' || look.text[look.at] == '\t')) look.at++;
  Span name = {look.at, look.at};
  while (name.end < look.end && is_word(look.text[name.end])) name.end++;
  return name;
}

static bool begins_plain_statement(const Cursor *cx) {
  static const char *const keywords[] = {"if",      "for",   "while", "with",   "try",   "except",
                                         "finally", "else",  "elif",  "import", "from",  "assert",
                                         "class",   "async", "del",   "global", "raise", "return",
                                         "lambda",  "not",   "yield", "await",  "print"};
  for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++) {
    if (at_word(cx, keywords[i])) return false;
  }
  return is_word(cx->text[cx->at]) || cx->text[cx->at] == '(';
}

bool splitter_next(const Source *source, uint32_t *at, Chunk *chunk) {
  Cursor cx = {source->text, *at, source->len};
  skip_blank_lines(&cx);
  *chunk = (Chunk){.kind = CHUNK_OTHER, .begin = cx.at};
  if (cx.at == cx.end) return false;
  while (cx.at < cx.end && cx.text[cx.at] == '@') {
    skip_logical_line(&cx);
    skip_blank_lines(&cx);
  }
  if (at_word(&cx, "def")) {
    chunk->kind = CHUNK_FUNCTION;
    chunk->name = function_name(&cx);
    skip_logical_line(&cx);
  } else {
    bool may_assign = cx.at == chunk->begin && cx.at < cx.end && begins_plain_statement(&cx);
    bool has_equals = skip_logical_line(&cx);
    if (may_assign && has_equals) chunk->kind = CHUNK_ASSIGNMENT;
  }
  skip_block(&cx);
  chunk->end = *at = cx.at;
  return true;
}

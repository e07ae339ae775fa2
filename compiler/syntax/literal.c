// Numbers and strings: where a string literal ends, and what a literal's text stands for.
//
// An f-string nests: `{` begins an expression that may hold strings, f-strings and brackets, then perhaps
// `!r` and a format specification with fields of its own. scan_field knows that shape; it serves the scanner,
// which only needs the end, and string_build, which parses the expression inside by a Parser of its own.
#include "syntax/syntax_internal.h"

#include <stdlib.h>
#include <string.h>

#include "syntax/parser.h"

// ---- shape of strings

typedef struct {
  const char *text;
  uint32_t end;
  char quote;
  bool is_triple;
} Quoted;

// The pieces of one `{…}`; offsets of what is absent are 0.
typedef struct {
  uint32_t expr, expr_end;
  uint32_t equals;  // the '=' of `{x=}`
  char conversion;
  uint32_t format, format_end;
  uint32_t end;  // behind the '}'
} Field;

static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (c & 0x80);
}

static bool is_newline(char c) {
  return c == '\n' || c == '\r';
}

int string_prefix(const char *text, uint32_t at, uint32_t end) {
  int len = 0;
  while (at + (uint32_t)len < end && len < 3) {
    char c = text[at + (uint32_t)len];
    if (c == '"' || c == '\'') break;
    if (len == 2 || !strchr("rRbBfFuU", c)) return -1;
    len++;
  }
  if (at + (uint32_t)len >= end || len == 3) return -1;
  if (len < 2) return len;
  bool has_raw = strchr("rR", text[at]) || strchr("rR", text[at + 1]);
  bool has_other = strchr("bBfF", text[at]) || strchr("bBfF", text[at + 1]);
  return has_raw && has_other ? 2 : -1;
}

static bool closes(const Quoted *q, uint32_t at) {
  if (q->text[at] != q->quote) return false;
  return !q->is_triple || (q->end - at >= 3 && q->text[at + 1] == q->quote && q->text[at + 2] == q->quote);
}

static bool scan_literal(const char *text, uint32_t at, uint32_t end, int depth, Literal *lit);
static bool scan_field(const Quoted *q, uint32_t at, int depth, Field *field);

// A format specification: up to the '}' of its field.
static uint32_t scan_format(const Quoted *q, uint32_t at, int depth) {
  while (at < q->end && q->text[at] != '}') {
    if (closes(q, at) || (!q->is_triple && is_newline(q->text[at]))) return 0;
    if (q->text[at] == '{') {
      Field inner;
      if (depth >= MAX_FSTRING_DEPTH || !scan_field(q, at + 1, depth + 1, &inner)) return 0;
      at = inner.end;
    } else {
      at++;
    }
  }
  return at < q->end ? at : 0;
}

// Behind the expression: `=`, `!r`, `:format`, `}`.
static bool scan_field_end(const Quoted *q, uint32_t at, int depth, Field *field) {
  const char *text = q->text;
  field->expr_end = at;
  uint32_t back = at;
  while (back > field->expr && text[back - 1] == ' ') back--;
  if (back > field->expr + 1 && text[back - 1] == '=' && !strchr("=!<>", text[back - 2])) {
    field->equals = field->expr_end = back - 1;
  }
  if (text[at] == '!') {
    field->conversion = at + 1 < q->end ? text[at + 1] : '!';
    at += 2;
    if (at >= q->end || (text[at] != ':' && text[at] != '}')) return false;
  }
  if (text[at] == ':') {
    field->format = at + 1;
    field->format_end = at = scan_format(q, at + 1, depth);
    if (!at) return false;
  }
  field->end = at + 1;
  return true;
}

// `at` is behind the '{'. False: the field has no end.
static bool scan_field(const Quoted *q, uint32_t at, int depth, Field *field) {
  const char *text = q->text;
  *field = (Field){.expr = at};
  int nest = 0;
  while (at < q->end) {
    char c = text[at];
    bool begins_word = !is_word(c) || at == field->expr || !is_word(text[at - 1]);
    if (begins_word && string_prefix(text, at, q->end) >= 0) {
      Literal inner;
      if (depth >= MAX_FSTRING_DEPTH || !scan_literal(text, at, q->end, depth + 1, &inner)) return false;
      at = inner.end;
      continue;
    }
    if (!q->is_triple && is_newline(c)) return false;
    bool is_not_equal = c == '!' && at + 1 < q->end && text[at + 1] == '=';
    if (nest == 0 && (c == '}' || c == ':' || (c == '!' && !is_not_equal)))
      return scan_field_end(q, at, depth, field);
    if (strchr("([{", c)) nest++;
    if (strchr(")]}", c) && nest > 0) nest--;
    at += is_not_equal ? 2 : 1;
  }
  return false;
}

// Where the text of a string stops making sense.
static bool unclosed(const Quoted *q, uint32_t at, Literal *lit) {
  while (at < q->end && (q->is_triple || !is_newline(q->text[at]))) at++;
  lit->body_end = lit->end = at;
  return false;
}

static bool scan_literal(const char *text, uint32_t at, uint32_t end, int depth, Literal *lit) {
  *lit = (Literal){.begin = at};
  for (; text[at] != '"' && text[at] != '\''; at++) {
    lit->is_raw |= strchr("rR", text[at]) != NULL;
    lit->is_bytes |= strchr("bB", text[at]) != NULL;
    lit->is_fstring |= strchr("fF", text[at]) != NULL;
  }
  Quoted q = {text, end, text[at], false};
  lit->is_triple = q.is_triple = end - at >= 3 && text[at + 1] == q.quote && text[at + 2] == q.quote;
  at += q.is_triple ? 3 : 1;
  lit->body = at;
  while (at < end) {
    Field field;
    if (closes(&q, at)) {
      lit->body_end = at;
      lit->end = at + (q.is_triple ? 3 : 1);
      return true;
    }
    if (text[at] == '\\') {
      bool is_crlf = end - at > 2 && text[at + 1] == '\r' && text[at + 2] == '\n';
      bool is_field = lit->is_fstring && end - at > 1 && (text[at + 1] == '{' || text[at + 1] == '}');
      at += is_crlf ? 3 : is_field ? 1 : 2;
    } else if (!q.is_triple && is_newline(text[at])) {
      break;
    } else if (!lit->is_fstring || text[at] != '{') {
      at++;
    } else if (end - at > 1 && text[at + 1] == '{') {
      at += 2;
    } else {
      if (!scan_field(&q, at + 1, depth, &field)) break;
      at = field.end;
    }
  }
  return unclosed(&q, at < end ? at : end, lit);
}

bool string_scan(const char *text, uint32_t at, uint32_t end, Literal *lit) {
  return scan_literal(text, at, end, 0, lit);
}

// ---- escapes

static void add_utf8(TextBuf *out, uint32_t code) {
  char bytes[4];
  size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (size_t i = len; i-- > 1; code >>= 6) bytes[i] = (char)(0x80 | (code & 0x3f));
  static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
  bytes[0] = (char)(code | lead[len]);
  textbuf_add(out, bytes, len);
}

static int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// `\xHH`, `\uHHHH`, `\UHHHHHHHH`: `digits` of them at `at`.
static uint32_t hex_escape(Parser *px, uint32_t at, uint32_t end, uint32_t digits, bool is_bytes,
                           TextBuf *out) {
  const char *text = px->source->text;
  uint32_t code = 0, n = 0;
  for (; n < digits && at + n < end && hex_value(text[at + n]) >= 0; n++) {
    code = code << 4 | (uint32_t)hex_value(text[at + n]);
  }
  Span span = {at - 2, at + n};
  if (n < digits) {
    px_error(px, DIAG_syntax, span, "'\\%c' needs %d hexadecimal digits, here are %d", text[at - 1],
             (int)digits, (int)n);
  } else if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
    px_error(px, DIAG_syntax, span, "there is no character U+%X", code);
  } else if (is_bytes || code < 0x80) {
    char byte = (char)code;
    textbuf_add(out, &byte, 1);
  } else {
    add_utf8(out, code);
  }
  return at + n;
}

static uint32_t octal_escape(const char *text, uint32_t at, uint32_t end, bool is_bytes, TextBuf *out) {
  uint32_t code = 0, n = 0;
  for (; n < 3 && at + n < end && text[at + n] >= '0' && text[at + n] <= '7'; n++) {
    code = code * 8 + (uint32_t)(text[at + n] - '0');
  }
  char byte = (char)code;
  if (is_bytes || code < 0x80)
    textbuf_add(out, &byte, 1);
  else
    add_utf8(out, code);
  return at + n;
}

// `at` is at the backslash; answers where the escape ends.
static uint32_t escape(Parser *px, uint32_t at, uint32_t end, bool is_bytes, TextBuf *out) {
  static const char letters[] = "abfnrtv\\'\"", values[] = "\a\b\f\n\r\t\v\\'\"";
  const char *text = px->source->text;
  if (end - at < 2) {
    textbuf_add(out, "\\", 1);
    return end;
  }
  char c = text[at + 1];
  const char *found = c ? strchr(letters, c) : NULL;
  if (found) {
    textbuf_add(out, &values[found - letters], 1);
    return at + 2;
  }
  if (c == '\n') return at + 2;
  if (c == '\r') return at + (end - at > 2 && text[at + 2] == '\n' ? 3 : 2);
  if (c >= '0' && c <= '7') return octal_escape(text, at + 1, end, is_bytes, out);
  if (c == 'x') return hex_escape(px, at + 2, end, 2, is_bytes, out);
  if (!is_bytes && (c == 'u' || c == 'U')) return hex_escape(px, at + 2, end, c == 'u' ? 4 : 8, false, out);
  if (!is_bytes && c == 'N') {
    px_error(px, DIAG_not_supported, (Span){at, at + 2}, "characters by name ('\\N{…}') are not supported");
    return at + 2;
  }
  textbuf_add(out, "\\", 1);
  return at + 1;
}

// Appends what source[at, end) stands for. Line ends become '\n' whatever the file uses.
static void decode(Parser *px, uint32_t at, uint32_t end, const Literal *lit, TextBuf *out) {
  const char *text = px->source->text;
  while (at < end) {
    uint32_t run = at;
    while (run < end && text[run] != '\r' && (lit->is_raw || text[run] != '\\')) run++;
    textbuf_add(out, text + at, run - at);
    at = run;
    if (at == end) return;
    if (text[at] == '\\') {
      at = escape(px, at, end, lit->is_bytes, out);
    } else {
      textbuf_add(out, "\n", 1);
      at += end - at > 1 && text[at + 1] == '\n' ? 2 : 1;
    }
  }
}

static Str str_from(const TextBuf *buf) {
  return (Str){buf->data ? buf->data : "", buf->len};
}

// ---- f-strings

typedef VEC(FStringPart) PartVec;

static void add_text(Parser *px, uint32_t begin, uint32_t end, const Literal *lit, TextBuf *run,
                     Span *run_span) {
  if (run->len == 0 && begin < end) run_span->begin = begin;
  decode(px, begin, end, lit, run);
  run_span->end = end;
}

static void flush_text(Parser *px, PartVec *parts, TextBuf *run, Span span) {
  if (run->len == 0) return;
  FStringPart part = {.span = span, .text = str_from(run)};
  vec_push(px->arena, parts, part);
  *run = (TextBuf){.arena = px->arena};
}

static const Expr *parse_inside(Parser *px, uint32_t begin, uint32_t end) {
  Span span = {begin, end};
  while (begin < end && strchr(" \t\r\n", px->source->text[begin])) begin++;
  if (begin == end) {
    px_error(px, DIAG_syntax, (Span){span.begin - 1, span.end + 1},
             "the braces of an f-string hold no expression");
    return expr_new(px, EXPR_NONE, span);
  }
  if (px->fstring_depth == MAX_FSTRING_DEPTH) {
    px_error(px, DIAG_nesting, span, "f-strings are nested more than %d deep", MAX_FSTRING_DEPTH);
    px->is_fatal = true;
    return expr_new(px, EXPR_NONE, span);
  }
  Parser inner = px_new(px->arena, px->interner, px->source, px->ds);
  inner.fstring_depth = px->fstring_depth + 1;
  if (px_is_spoiled(px, begin)) inner.spoiled_end = UINT32_MAX;
  px_run(&inner, TOK_START_EXPRESSION, begin, end);
  px->errors += inner.errors;
  px->is_fatal |= inner.is_fatal;
  if (inner.errors) px_spoil(px, begin);
  return inner.expression && !inner.errors ? inner.expression : expr_new(px, EXPR_NONE, span);
}

static const Expr *parse_format(Parser *px, const Quoted *q, const Literal *lit, const Field *field,
                                int depth);

static void add_field(Parser *px, const Quoted *q, const Literal *lit, uint32_t brace, const Field *field,
                      int depth, PartVec *parts) {
  FStringPart part = {.span = {brace, field->end}, .conversion = field->conversion};
  if (field->conversion && !strchr("rsa", field->conversion)) {
    px_error(px, DIAG_syntax, part.span, "an f-string converts with '!r', '!s' or '!a', not '!%c'",
             field->conversion);
  }
  part.value = parse_inside(px, field->expr, field->expr_end);
  if (field->equals) {
    uint32_t end = field->equals + 1;
    while (q->text[end] == ' ') end++;
    part.text = (Str){q->text + field->expr, end - field->expr};
  }
  if (field->format) part.format = parse_format(px, q, lit, field, depth);
  vec_push(px->arena, parts, part);
}

// The text source[at, end) with its fields. In a format specification braces cannot be doubled.
static void parse_parts(Parser *px, const Quoted *q, const Literal *lit, uint32_t at, bool is_format,
                        int depth, TextBuf *run, Span *run_span, PartVec *parts) {
  const char *text = q->text;
  uint32_t from = at;
  while (at < q->end) {
    bool is_brace = text[at] == '{' || text[at] == '}';
    if (!is_brace) {
      bool is_pair = text[at] == '\\' && q->end - at > 1 && text[at + 1] != '{' && text[at + 1] != '}';
      at += is_pair ? 2 : 1;
      continue;
    }
    bool is_doubled = !is_format && q->end - at > 1 && text[at + 1] == text[at];
    add_text(px, from, is_doubled ? at + 1 : at, lit, run, run_span);
    Field field;
    if (is_doubled) {
      at += 2;
    } else if (text[at] == '}') {
      px_error(px, DIAG_syntax, (Span){at, at + 1}, "a single '}' in an f-string is written '}}'");
      at++;
    } else if (depth > MAX_FSTRING_DEPTH || !scan_field(q, at + 1, depth, &field)) {
      px_error(px, DIAG_unclosed, (Span){at, at + 1}, "this '{' is not closed inside the f-string");
      at = q->end;
    } else {
      flush_text(px, parts, run, *run_span);
      add_field(px, q, lit, at, &field, depth, parts);
      at = field.end;
    }
    from = at;
  }
  add_text(px, from, q->end, lit, run, run_span);
}

static const Expr *parse_format(Parser *px, const Quoted *q, const Literal *lit, const Field *field,
                                int depth) {
  Span span = {field->format, field->format_end};
  Quoted inside = *q;
  inside.end = field->format_end;
  PartVec parts = {0};
  TextBuf run = {.arena = px->arena};
  Span run_span = span;
  parse_parts(px, &inside, lit, field->format, true, depth + 1, &run, &run_span, &parts);
  flush_text(px, &parts, &run, run_span);
  return expr_fstring(px, span, parts.data, parts.len);
}

const Expr *string_build(Parser *px, const Span *pieces, int npieces, Span span) {
  PartVec parts = {0};
  TextBuf run = {.arena = px->arena};
  Span run_span = span;
  bool is_fstring = false, is_raw = false, is_bytes = false, is_text = false;
  for (int i = 0; i < npieces; i++) {
    Literal lit;
    string_scan(px->source->text, pieces[i].begin, pieces[i].end, &lit);
    Quoted q = {px->source->text, lit.body_end, px->source->text[lit.body - 1], lit.is_triple};
    is_fstring |= lit.is_fstring;
    is_raw |= lit.is_raw;
    is_bytes |= lit.is_bytes;
    is_text |= !lit.is_bytes;
    if (lit.is_fstring)
      parse_parts(px, &q, &lit, lit.body, false, 0, &run, &run_span, &parts);
    else
      add_text(px, lit.body, lit.body_end, &lit, &run, &run_span);
  }
  if (is_bytes && is_text) px_error(px, DIAG_syntax, span, "bytes and text cannot be joined to one string");
  if (is_fstring) {
    flush_text(px, &parts, &run, run_span);
    return expr_fstring(px, span, parts.data, parts.len);
  }
  Expr *expr = expr_new(px, EXPR_STRING, span);
  expr->string.text = str_from(&run);
  expr->string.is_bytes = is_bytes;
  expr->string.is_raw = is_raw;
  return expr;
}

// ---- numbers

// The literal without its underscores.
static const char *digits_of(Parser *px, Span span) {
  char *digits = arena_alloc(px->arena, span.end - span.begin + 1);
  size_t len = 0;
  for (uint32_t i = span.begin; i < span.end; i++) {
    if (px->source->text[i] != '_') digits[len++] = px->source->text[i];
  }
  return digits;
}

const Expr *number_int(Parser *px, Span span) {
  const char *digits = digits_of(px, span);
  uint64_t base = 10, value = 0;
  if (digits[0] == '0' && digits[1] != '\0' && digits[1] != '0') {
    base = strchr("xX", digits[1]) ? 16 : strchr("oO", digits[1]) ? 8 : 2;
    digits += 2;
  }
  bool is_large = false;
  for (; *digits && !is_large; digits++) {
    uint64_t digit = (uint64_t)hex_value(*digits);
    is_large = value > ((uint64_t)INT64_MAX - digit) / base;
    value = value * base + digit;
  }
  if (is_large) return expr_unsupported(px, span, "an integer above 9223372036854775807 (64 bits with sign)");
  Expr *expr = expr_new(px, EXPR_INT, span);
  expr->integer = (int64_t)value;
  return expr;
}

const Expr *number_float(Parser *px, Span span) {
  Expr *expr = expr_new(px, EXPR_FLOAT, span);
  expr->real = strtod(digits_of(px, span), NULL);
  return expr;
}

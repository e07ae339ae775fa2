// A hand-written lexer of a dozen token forms. The source ends in NUL, which belongs to no token.
#include "tir/text_lex.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_letter(char c) {
  return isalpha((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_word_char(char c) {
  return is_letter(c) || isdigit((unsigned char)c);
}

static uint32_t skip_blank(const char *text, uint32_t at, bool *newline) {
  *newline = at == 0;
  for (;;) {
    if (text[at] == '#') {
      while (text[at] && text[at] != '\n') at++;
    } else if (text[at] == ' ' || text[at] == '\t' || text[at] == '\r') {
      at++;
    } else if (text[at] == '\n') {
      *newline = true;
      at++;
    } else {
      return at;
    }
  }
}

bool lexer_at_line_end(const Lexer *lexer) {
  bool newline;
  uint32_t at = skip_blank(lexer->source->text, lexer->at, &newline);
  return newline || !lexer->source->text[at];
}

static uint32_t scan_value(const char *text, uint32_t at) {
  while (is_word_char(text[at]) || text[at] == '.') at++;
  return at;
}

static uint32_t scan_string(const char *text, uint32_t at, Token *token) {
  uint32_t begin = ++at;
  while (text[at] && text[at] != '"' && text[at] != '\n') at += text[at] == '\\' && text[at + 1] ? 2 : 1;
  token->text = (Str){text + begin, at - begin};
  if (text[at] != '"') return at;
  token->kind = TOKEN_STRING;
  return at + 1;
}

static uint32_t scan_digits(const char *text, uint32_t at) {
  while (isdigit((unsigned char)text[at])) at++;
  return at;
}

static uint32_t scan_hex(const char *text, uint32_t begin, Token *token) {
  uint32_t at = begin + 2;
  while (isxdigit((unsigned char)text[at])) at++;
  if (at == begin + 2 || at - begin > 18) return at;
  token->kind = TOKEN_HEX;
  token->integer = (int64_t)strtoull(text + begin, NULL, 16);
  return at;
}

static uint32_t scan_number(const char *text, uint32_t begin, Token *token) {
  uint32_t at = begin + (text[begin] == '-');
  if (strncmp(text + at, "inf", 3) == 0 && !is_word_char(text[at + 3])) {
    token->kind = TOKEN_FLOAT;
    token->real = strtod(text + begin, NULL);
    return at + 3;
  }
  if (text[at] == '0' && (text[at + 1] == 'x' || text[at + 1] == 'X')) return scan_hex(text, at, token);
  uint32_t digits = at = scan_digits(text, at);
  if (text[at] == '.') at = scan_digits(text, at + 1);
  if (text[at] == 'e' || text[at] == 'E') {
    uint32_t exponent = at + 1 + (text[at + 1] == '-' || text[at + 1] == '+');
    if (isdigit((unsigned char)text[exponent])) at = scan_digits(text, exponent);
  }
  errno = 0;
  if (at != digits) {
    token->kind = TOKEN_FLOAT;
    token->real = strtod(text + begin, NULL);
    return at;
  }
  token->integer = strtoll(text + begin, NULL, 10);
  if (errno == 0) token->kind = TOKEN_INT;
  return at;
}

static bool starts_number(const char *text) {
  if (*text == '-') return isdigit((unsigned char)text[1]) || strncmp(text + 1, "inf", 3) == 0;
  return isdigit((unsigned char)*text) || (strncmp(text, "inf", 3) == 0 && !is_word_char(text[3]));
}

static uint32_t scan(const char *text, uint32_t begin, Token *token) {
  uint32_t at = begin;
  token->kind = TOKEN_WRONG;
  if (starts_number(text + begin)) return scan_number(text, begin, token);
  if (text[begin] == '"') return scan_string(text, begin, token);
  if (text[begin] == '%') {
    at = scan_value(text, begin + 1);
    if (at > begin + 1) token->kind = TOKEN_VALUE;
    token->text = (Str){text + begin + 1, at - begin - 1};
    return at;
  }
  if (is_letter(text[begin])) {
    while (is_word_char(text[at])) at++;
    token->kind = TOKEN_WORD;
  } else {
    at++;
    if (strchr("={}()[],:@?", text[begin])) token->kind = TOKEN_PUNCT;
  }
  token->text = (Str){text + begin, at - begin};
  return at;
}

Token lexer_next(Lexer *lexer) {
  const char *text = lexer->source->text;
  Token token = {.kind = TOKEN_END};
  uint32_t begin = skip_blank(text, lexer->at, &token.first), end = begin;
  if (begin < lexer->source->len) end = scan(text, begin, &token);
  token.span = (Span){begin, end};
  lexer->at = end;
  return token;
}

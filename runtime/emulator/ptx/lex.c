// One pass over the text, no copies: tokens point into it. A NUL counts as a line end, since that is how
// cubins store PTX text.
#include "ptx/lex.h"

#include <stdlib.h>
#include <string.h>

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
static bool is_alpha(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static bool is_word_start(char c) {
  return is_alpha(c) || c == '_' || c == '$' || c == '%';
}
static bool is_word(char c) {
  return is_alpha(c) || is_digit(c) || c == '_' || c == '$';
}

static char peek(const Lexer *lexer, int ahead) {
  return lexer->end - lexer->at > ahead ? lexer->at[ahead] : ' ';
}

static void skip_line(Lexer *lexer) {
  while (lexer->at < lexer->end && *lexer->at != '\n' && *lexer->at != '\0') lexer->at++;
}

static void skip_comment(Lexer *lexer) {
  lexer->at += 2;
  while (lexer->at < lexer->end && !(lexer->at[0] == '*' && peek(lexer, 1) == '/')) {
    lexer->line += *lexer->at == '\n' || *lexer->at == '\0';
    lexer->at++;
  }
  lexer->at = lexer->end - lexer->at >= 2 ? lexer->at + 2 : lexer->end;
}

static void skip_blanks(Lexer *lexer) {
  while (lexer->at < lexer->end) {
    char c = *lexer->at;
    if (c == '\n' || c == '\0') {
      lexer->line++;
      lexer->at++;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      lexer->at++;
    } else if (c == '/' && peek(lexer, 1) == '/') {
      skip_line(lexer);
    } else if (c == '/' && peek(lexer, 1) == '*') {
      skip_comment(lexer);
    } else {
      return;
    }
  }
}

// A word goes on over ".x" and, once it has a dot, over "::x". A label's colon is left alone.
static void word(Lexer *lexer) {
  bool dotted = false;
  for (;;) {
    char c = peek(lexer, 0);
    if (is_word(c) || c == '%') {
      lexer->at++;
    } else if (c == '.' && is_word(peek(lexer, 1))) {
      dotted = true;
      lexer->at += 2;
    } else if (dotted && c == ':' && peek(lexer, 1) == ':' && is_word(peek(lexer, 2))) {
      lexer->at += 3;
    } else {
      return;
    }
  }
}

static int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

static uint64_t digits(Lexer *lexer, int base) {
  uint64_t value = 0;
  while (hex_digit(peek(lexer, 0)) < base) value = value * (uint64_t)base + (uint64_t)hex_digit(*lexer->at++);
  return value;
}

static bool is_decimal_fraction(const Lexer *lexer) {
  int i = 0;
  while (is_digit(peek(lexer, i))) i++;
  char c = peek(lexer, i), d = peek(lexer, i + 1);
  if (c == '.') return !is_alpha(d) || d == 'e' || d == 'E';
  return (c == 'e' || c == 'E') && (is_digit(d) || ((d == '-' || d == '+') && is_digit(peek(lexer, i + 2))));
}

static void decimal_fraction(Lexer *lexer, Token *token) {
  char copy[64];
  size_t n = 0;
  while (n < sizeof copy - 1) {
    char c = peek(lexer, 0), last = n > 0 ? copy[n - 1] : ' ';
    bool sign = (c == '-' || c == '+') && (last == 'e' || last == 'E');
    if (!is_digit(c) && c != '.' && c != 'e' && c != 'E' && !sign) break;
    copy[n++] = c;
    lexer->at++;
  }
  copy[n] = '\0';
  double value = strtod(copy, NULL);
  memcpy(&token->bits, &value, sizeof value);
  token->kind = TOKEN_F64;
}

static void number(Lexer *lexer, Token *token) {
  token->kind = TOKEN_INT;
  char x = peek(lexer, 0) == '0' ? peek(lexer, 1) : ' ';
  if (x == 'f' || x == 'F' || x == 'd' || x == 'D') {
    lexer->at += 2;
    token->bits = digits(lexer, 16);
    token->kind = x == 'f' || x == 'F' ? TOKEN_F32 : TOKEN_F64;
  } else if (x == 'x' || x == 'X') {
    lexer->at += 2;
    token->bits = digits(lexer, 16);
  } else if (x == 'b' || x == 'B') {
    lexer->at += 2;
    token->bits = digits(lexer, 2);
  } else if (is_decimal_fraction(lexer)) {
    decimal_fraction(lexer, token);
  } else {
    token->bits = digits(lexer, is_digit(x) ? 8 : 10);
  }
  if (token->kind == TOKEN_INT && (peek(lexer, 0) == 'U' || peek(lexer, 0) == 'u')) lexer->at++;
}

static void string(Lexer *lexer, Token *token) {
  lexer->at++;
  token->kind = TOKEN_STRING;
  token->text = lexer->at;
  while (lexer->at < lexer->end && *lexer->at != '"') {
    lexer->line += *lexer->at == '\n';
    lexer->at += *lexer->at == '\\' && lexer->end - lexer->at > 1 ? 2 : 1;
  }
  token->length = (int)(lexer->at - token->text);
  if (lexer->at < lexer->end) lexer->at++;
}

Token lex_next(Lexer *lexer) {
  skip_blanks(lexer);
  Token token = {.kind = TOKEN_END, .text = lexer->at, .line = lexer->line};
  if (lexer->at >= lexer->end) return token;
  char c = *lexer->at;
  if (c == '"') {
    string(lexer, &token);
    return token;
  }
  if (is_word_start(c) && !(c == '%' && !is_word(peek(lexer, 1)))) {
    token.kind = TOKEN_WORD;
    lexer->at++;
    word(lexer);
  } else if (c == '.' && is_word(peek(lexer, 1)) && !is_digit(peek(lexer, 1))) {
    token.kind = TOKEN_DIRECTIVE;  // one segment: ".reg.b32" is two
    lexer->at++;
    while (is_word(peek(lexer, 0))) lexer->at++;
  } else if (is_digit(c)) {
    number(lexer, &token);
  } else {
    token.kind = (unsigned char)c < 0x20 || (unsigned char)c > 0x7e ? TOKEN_BAD : TOKEN_PUNCT;
    lexer->at++;
  }
  token.length = (int)(lexer->at - token.text);
  return token;
}

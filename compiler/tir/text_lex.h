// Tokens of the text form. Lines matter only in that operands and the brace of attributes follow on the op's
// line.
#ifndef TILEC_TIR_TEXT_LEX_H
#define TILEC_TIR_TEXT_LEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/source.h"
#include "base/text.h"

typedef enum {
  TOKEN_END,
  TOKEN_WORD,    // identifier, keyword, dtype
  TOKEN_VALUE,   // %name, %12, %name.12: text without the %
  TOKEN_STRING,  // text as written, without the quotes
  TOKEN_INT,
  TOKEN_HEX,    // 0x…
  TOKEN_FLOAT,  // real
  TOKEN_PUNCT,  // one character
  TOKEN_WRONG,  // no token starts here, or a number is too large, or a string is not closed
} TokenKind;

typedef struct {
  TokenKind kind;
  Str text;
  Span span;
  bool first;  // on its line
  int64_t integer;
  double real;
} Token;

typedef struct {
  const Source *source;
  uint32_t at;  // after the token read last
} Lexer;

Token lexer_next(Lexer *lexer);
// Whether a newline comes before the next token.
bool lexer_at_line_end(const Lexer *lexer);

#endif

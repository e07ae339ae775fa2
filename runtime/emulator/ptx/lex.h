// PTX tokens. There is no token per opcode or modifier: one dotted word ("cp.async.ca.shared::cta.global") is
// one token.
#ifndef PTXEMU_PTX_LEX_H
#define PTXEMU_PTX_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
  TOKEN_END,
  TOKEN_WORD,       // add.s32, %r1, %tid.x, $L__BB0_1, name
  TOKEN_DIRECTIVE,  // .reg, .b32: a word that starts with a dot
  TOKEN_INT,        // bits
  TOKEN_F32,        // 0f…: 32 bits
  TOKEN_F64,        // 0d… or a decimal fraction: 64 bits
  TOKEN_STRING,     // text without the quotes
  TOKEN_PUNCT,      // text[0]
  TOKEN_BAD,
} TokenKind;

typedef struct {
  TokenKind kind;
  const char *text;
  int length;
  int line;
  uint64_t bits;
} Token;

typedef struct {
  const char *at, *end;
  int line;
} Lexer;

Token lex_next(Lexer *lexer);

#endif

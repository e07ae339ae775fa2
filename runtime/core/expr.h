// Expressions of launch information: an integer, a name, or (op a b). docs/launch-info.md says what each op
// means.
#ifndef TILE_CORE_EXPR_H
#define TILE_CORE_EXPR_H

#include "core/error.h"

typedef enum {
  EXPR_INT,
  EXPR_NAME,
  EXPR_ADD,
  EXPR_SUB,
  EXPR_MUL,
  EXPR_FLOORDIV,
  EXPR_FLOORMOD,
  EXPR_TRUNCDIV,
  EXPR_TRUNCMOD,
  EXPR_CEILDIV,
  EXPR_MIN,
  EXPR_MAX,
  EXPR_LT,
  EXPR_LE,
  EXPR_GT,
  EXPR_GE,
  EXPR_EQ,
  EXPR_NE,
  EXPR_AND,
  EXPR_OR,
  EXPR_XOR,
  EXPR_SHL,
  EXPR_SHR,
  EXPR_NOT,
  EXPR_NEG,
  EXPR_ABS,
  EXPR_SELECT,
} ExprOp;

typedef struct Expr Expr;

struct Expr {
  ExprOp op;
  int64_t value;     // EXPR_INT
  const char *name;  // EXPR_NAME
  const Expr *args[3];
};

// Reads one expression at *text (which ends before `end`) and moves *text behind it. NULL, with a sentence in
// *why, when there is none or memory is gone. `(M)` gives the same as `M`.
const Expr *expr_parse(Pool *pool, const char **text, const char *end, const char **why);

// The value of a name; false when it has none.
typedef bool (*ExprLookup)(const void *context, const char *name, int64_t *out);

typedef enum { EXPR_VALUE, EXPR_UNKNOWN, EXPR_ERROR } ExprResult;

// EXPR_UNKNOWN: *why is the name without a value; EXPR_ERROR: *why says what went wrong (overflow, division
// by zero).
ExprResult expr_eval(const Expr *expr, ExprLookup lookup, const void *context, int64_t *out,
                     const char **why);

bool expr_equal(const Expr *a, const Expr *b);
// Calls `visit` for every name, in order of appearance; stops and returns false when that does.
bool expr_names(const Expr *expr, bool (*visit)(void *context, const char *name), void *context);
// As people write it: "ceildiv(N, 256)", "2*K + 1".
void expr_print(const Expr *expr, ErrorText *out);

#endif

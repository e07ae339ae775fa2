// Recursive descent over s-expressions with a bound on depth and on nodes, and an evaluator in which nothing
// wraps: a result beyond 64 bits is an error, since it would become a wrong grid.
#include "core/expr.h"

#include <string.h>

typedef struct {
  const char *name;
  const char *infix;  // NULL: printed as a call
  int nargs;
} OpRow;

static const OpRow op_rows[] = {
    [EXPR_INT] = {"", NULL, 0},
    [EXPR_NAME] = {"", NULL, 0},
    [EXPR_ADD] = {"add", "+", 2},
    [EXPR_SUB] = {"sub", "-", 2},
    [EXPR_MUL] = {"mul", "*", 2},
    [EXPR_FLOORDIV] = {"floordiv", "//", 2},
    [EXPR_FLOORMOD] = {"floormod", "%", 2},
    [EXPR_TRUNCDIV] = {"truncdiv", NULL, 2},
    [EXPR_TRUNCMOD] = {"truncmod", NULL, 2},
    [EXPR_CEILDIV] = {"ceildiv", NULL, 2},
    [EXPR_MIN] = {"min", NULL, 2},
    [EXPR_MAX] = {"max", NULL, 2},
    [EXPR_LT] = {"lt", "<", 2},
    [EXPR_LE] = {"le", "<=", 2},
    [EXPR_GT] = {"gt", ">", 2},
    [EXPR_GE] = {"ge", ">=", 2},
    [EXPR_EQ] = {"eq", "==", 2},
    [EXPR_NE] = {"ne", "!=", 2},
    [EXPR_AND] = {"and", "&", 2},
    [EXPR_OR] = {"or", "|", 2},
    [EXPR_XOR] = {"xor", "^", 2},
    [EXPR_SHL] = {"shl", "<<", 2},
    [EXPR_SHR] = {"shr", ">>", 2},
    [EXPR_NOT] = {"not", NULL, 1},
    [EXPR_NEG] = {"neg", NULL, 1},
    [EXPR_ABS] = {"abs", NULL, 1},
    [EXPR_SELECT] = {"select", NULL, 3},
};

enum { OP_ROWS = sizeof op_rows / sizeof op_rows[0] };

typedef struct {
  Pool *pool;
  const char *at, *end;
  const char *why;
  int nodes;
} Reader;

static const Expr *fail(Reader *reader, const char *why) {
  if (!reader->why) reader->why = why;
  return NULL;
}

static void skip_spaces(Reader *reader) {
  while (reader->at < reader->end && *reader->at == ' ') reader->at++;
}

static bool ends_word(char c) {
  return c == ' ' || c == '(' || c == ')' || (unsigned char)c < 33 || c == 127;
}

static size_t word_length(const Reader *reader) {
  const char *p = reader->at;
  while (p < reader->end && !ends_word(*p)) p++;
  return (size_t)(p - reader->at);
}

static Expr *new_node(Reader *reader, ExprOp op) {
  if (++reader->nodes > TILE_LAUNCH_INFO_MAX_NODES) {
    fail(reader, "an expression has too many parts");
    return NULL;
  }
  Expr *node = pool_alloc(reader->pool, 1, sizeof *node);
  if (node)
    node->op = op;
  else
    fail(reader, "out of memory");
  return node;
}

static const Expr *read_integer(Reader *reader, size_t length) {
  bool negative = *reader->at == '-';
  uint64_t value = 0, limit = (uint64_t)INT64_MAX + negative;
  if (length == (size_t)negative) return fail(reader, "an expression is malformed");
  for (size_t i = negative; i < length; i++) {
    char c = reader->at[i];
    if (c < '0' || c > '9') return fail(reader, "a number is malformed");
    if (value > (limit - (uint64_t)(c - '0')) / 10) return fail(reader, "a number does not fit 64 bits");
    value = 10 * value + (uint64_t)(c - '0');
  }
  Expr *node = new_node(reader, EXPR_INT);
  if (node) node->value = negative ? (int64_t)(0 - value) : (int64_t)value;
  reader->at += length;
  return node;
}

static const Expr *read_atom(Reader *reader) {
  size_t length = word_length(reader);
  if (length == 0) return fail(reader, "an expression is missing");
  char first = *reader->at;
  if (first == '-' || (first >= '0' && first <= '9')) return read_integer(reader, length);
  Expr *node = new_node(reader, EXPR_NAME);
  if (!node) return NULL;
  node->name = pool_text(reader->pool, reader->at, length);
  if (!node->name) return fail(reader, "out of memory");
  reader->at += length;
  return node;
}

static bool take(Reader *reader, char c) {
  skip_spaces(reader);
  if (reader->at == reader->end || *reader->at != c) return false;
  reader->at++;
  return true;
}

static const Expr *read_expr(Reader *reader, int depth);

// The op of a list's first word; EXPR_INT when it is none.
static ExprOp op_named(const char *word, size_t length) {
  for (int op = EXPR_ADD; op < OP_ROWS; op++)
    if (strlen(op_rows[op].name) == length && memcmp(op_rows[op].name, word, length) == 0) return (ExprOp)op;
  return EXPR_INT;
}

// After the opening parenthesis: `op args… )`, or `expr )`. A word is an op when arguments follow it.
static const Expr *read_list(Reader *reader, int depth) {
  skip_spaces(reader);
  size_t length = word_length(reader);
  const char *after = reader->at + length;
  while (after < reader->end && *after == ' ') after++;
  if (length == 0 || (after < reader->end && *after == ')')) {
    const Expr *inner = read_expr(reader, depth);
    if (inner && !take(reader, ')')) return fail(reader, "a parenthesis is not closed");
    return inner;
  }
  ExprOp op = op_named(reader->at, length);
  if (op == EXPR_INT) return fail(reader, "an operation is unknown");
  reader->at += length;
  Expr *node = new_node(reader, op);
  if (!node) return NULL;
  for (int i = 0; i < op_rows[op].nargs; i++)
    if (!(node->args[i] = read_expr(reader, depth))) return NULL;
  if (!take(reader, ')')) return fail(reader, "an operation has the wrong number of operands");
  return node;
}

static const Expr *read_expr(Reader *reader, int depth) {
  if (depth > TILE_LAUNCH_INFO_MAX_DEPTH) return fail(reader, "an expression is nested too deeply");
  return take(reader, '(') ? read_list(reader, depth + 1) : read_atom(reader);
}

const Expr *expr_parse(Pool *pool, const char **text, const char *end, const char **why) {
  Reader reader = {.pool = pool, .at = *text, .end = end};
  const Expr *expr = read_expr(&reader, 0);
  *text = reader.at;
  *why = expr ? NULL : reader.why;
  return expr;
}

// Whether the value can only be 0 or 1.
static bool is_truth(const Expr *expr) {
  switch (expr->op) {
  case EXPR_LT:
  case EXPR_LE:
  case EXPR_GT:
  case EXPR_GE:
  case EXPR_EQ:
  case EXPR_NE:
    return true;
  case EXPR_AND:
  case EXPR_OR:
  case EXPR_XOR:
    return is_truth(expr->args[0]) && is_truth(expr->args[1]);
  case EXPR_NOT:
    return is_truth(expr->args[0]);
  case EXPR_INT:
    return expr->value == 0 || expr->value == 1;
  case EXPR_NAME:
  case EXPR_ADD:
  case EXPR_SUB:
  case EXPR_MUL:
  case EXPR_FLOORDIV:
  case EXPR_FLOORMOD:
  case EXPR_TRUNCDIV:
  case EXPR_TRUNCMOD:
  case EXPR_CEILDIV:
  case EXPR_MIN:
  case EXPR_MAX:
  case EXPR_SHL:
  case EXPR_SHR:
  case EXPR_NEG:
  case EXPR_ABS:
  case EXPR_SELECT:
    return false;
  }
  return false;
}

// All four roundings of a quotient, and the remainders that go with them. False: not defined, or beyond 64
// bits.
static bool divide(ExprOp op, int64_t a, int64_t b, int64_t *out) {
  if (b == 0) return false;
  if (b == -1) {  // INT64_MIN / -1 traps on the host
    bool remainder = op == EXPR_FLOORMOD || op == EXPR_TRUNCMOD;
    *out = 0;
    return remainder || !__builtin_sub_overflow((int64_t)0, a, out);
  }
  int64_t quotient = a / b, rest = a % b;
  bool below = rest != 0 && (rest < 0) != (b < 0);  // the exact quotient lies below the truncated one
  if (op == EXPR_FLOORDIV)
    *out = quotient - below;
  else if (op == EXPR_FLOORMOD)
    *out = below ? rest + b : rest;
  else if (op == EXPR_CEILDIV)
    *out = quotient + (rest != 0 && !below);
  else
    *out = op == EXPR_TRUNCDIV ? quotient : rest;
  return true;
}

static bool shift(ExprOp op, int64_t a, int64_t b, int64_t *out) {
  if (b < 0 || b > 62) return false;
  if (op == EXPR_SHL) return !__builtin_mul_overflow(a, INT64_C(1) << b, out);
  *out = a >> b;
  return true;
}

// One op on its operands' values; false: overflow, or division by zero.
static bool apply(const Expr *expr, int64_t a, int64_t b, int64_t *out) {
  switch (expr->op) {
  case EXPR_ADD:
    return !__builtin_add_overflow(a, b, out);
  case EXPR_SUB:
    return !__builtin_sub_overflow(a, b, out);
  case EXPR_MUL:
    return !__builtin_mul_overflow(a, b, out);
  case EXPR_FLOORDIV:
  case EXPR_FLOORMOD:
  case EXPR_TRUNCDIV:
  case EXPR_TRUNCMOD:
  case EXPR_CEILDIV:
    return divide(expr->op, a, b, out);
  case EXPR_MIN:
    *out = a < b ? a : b;
    return true;
  case EXPR_MAX:
    *out = a > b ? a : b;
    return true;
  case EXPR_LT:
    *out = a < b;
    return true;
  case EXPR_LE:
    *out = a <= b;
    return true;
  case EXPR_GT:
    *out = a > b;
    return true;
  case EXPR_GE:
    *out = a >= b;
    return true;
  case EXPR_EQ:
    *out = a == b;
    return true;
  case EXPR_NE:
    *out = a != b;
    return true;
  case EXPR_AND:
    *out = a & b;
    return true;
  case EXPR_OR:
    *out = a | b;
    return true;
  case EXPR_XOR:
    *out = a ^ b;
    return true;
  case EXPR_SHL:
  case EXPR_SHR:
    return shift(expr->op, a, b, out);
  case EXPR_NOT:
    *out = is_truth(expr->args[0]) ? !a : ~a;
    return true;
  case EXPR_NEG:
    return !__builtin_sub_overflow((int64_t)0, a, out);
  case EXPR_ABS:
    return a < 0 ? !__builtin_sub_overflow((int64_t)0, a, out) : (*out = a, true);
  case EXPR_INT:
  case EXPR_NAME:
  case EXPR_SELECT:
    break;
  }
  return false;
}

static const char *blame(ExprOp op, int64_t divisor) {
  bool division = op == EXPR_FLOORDIV || op == EXPR_FLOORMOD || op == EXPR_TRUNCDIV || op == EXPR_TRUNCMOD ||
                  op == EXPR_CEILDIV;
  return division && divisor == 0 ? "division by zero" : "the result does not fit 64 bits";
}

ExprResult expr_eval(const Expr *expr, ExprLookup lookup, const void *context, int64_t *out,
                     const char **why) {
  if (expr->op == EXPR_INT) {
    *out = expr->value;
    return EXPR_VALUE;
  }
  if (expr->op == EXPR_NAME) {
    *why = expr->name;
    return lookup(context, expr->name, out) ? EXPR_VALUE : EXPR_UNKNOWN;
  }
  int64_t a = 0, b = 0;
  ExprResult result = expr_eval(expr->args[0], lookup, context, &a, why);
  if (result != EXPR_VALUE) return result;
  if (expr->op == EXPR_SELECT) return expr_eval(expr->args[a ? 1 : 2], lookup, context, out, why);
  bool settled = (expr->op == EXPR_AND && a == 0) || (expr->op == EXPR_OR && a == 1 && is_truth(expr));
  if (settled) {
    *out = a;
    return EXPR_VALUE;
  }
  if (expr->args[1]) result = expr_eval(expr->args[1], lookup, context, &b, why);
  if (result != EXPR_VALUE) return result;
  if (apply(expr, a, b, out)) return EXPR_VALUE;
  *why = blame(expr->op, b);
  return EXPR_ERROR;
}

bool expr_equal(const Expr *a, const Expr *b) {
  if (a->op != b->op || a->value != b->value) return false;
  if (a->op == EXPR_NAME) return strcmp(a->name, b->name) == 0;
  for (int i = 0; i < op_rows[a->op].nargs; i++)
    if (!expr_equal(a->args[i], b->args[i])) return false;
  return true;
}

bool expr_names(const Expr *expr, bool (*visit)(void *context, const char *name), void *context) {
  if (expr->op == EXPR_NAME) return visit(context, expr->name);
  for (int i = 0; i < op_rows[expr->op].nargs; i++)
    if (!expr_names(expr->args[i], visit, context)) return false;
  return true;
}

static void print_operand(const Expr *expr, ErrorText *out) {
  bool infix = op_rows[expr->op].infix != NULL;
  if (infix) error_text(out, "(");
  expr_print(expr, out);
  if (infix) error_text(out, ")");
}

void expr_print(const Expr *expr, ErrorText *out) {
  const OpRow *row = &op_rows[expr->op];
  if (expr->op == EXPR_INT) {
    error_text(out, "%lld", (long long)expr->value);
  } else if (expr->op == EXPR_NAME) {
    error_text(out, "%s", expr->name);
  } else if (row->infix) {
    bool tight = expr->op == EXPR_MUL || expr->op == EXPR_FLOORDIV;
    print_operand(expr->args[0], out);
    error_text(out, tight ? "%s" : " %s ", row->infix);
    print_operand(expr->args[1], out);
  } else {
    error_text(out, "%s(", row->name);
    for (int i = 0; i < row->nargs; i++) {
      if (i) error_text(out, ", ");
      expr_print(expr->args[i], out);
    }
    error_text(out, ")");
  }
}

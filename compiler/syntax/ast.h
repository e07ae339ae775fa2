// The syntax tree of one source file: what was written, before anything is looked up or run.
//
// Nodes are tagged unions that point at their parts, const once parsed; every list is a pointer and a count.
// Names are interned, so they compare with ==. Every node, and every name that is not an expression of its
// own (a parameter, a keyword of a call), has the byte range it was written at.
//
// Depth is bounded, so that readers may recurse: an expression is at most AST_MAX_EXPR_DEPTH nodes deep
// (parentheses leave no node), statements nest at most AST_MAX_BLOCK_DEPTH deep. Deeper text is refused by
// the parser.
//
// Python that is recognised but has no meaning here becomes STMT_UNSUPPORTED or EXPR_UNSUPPORTED with a
// phrase that names it ("a class definition"). The parser accepts it; elaboration reports DIAG_not_supported
// where it reaches one, so that what is never run is never complained about.
#ifndef TILEC_SYNTAX_AST_H
#define TILEC_SYNTAX_AST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/intern.h"
#include "base/source.h"
#include "base/text.h"

enum { AST_MAX_EXPR_DEPTH = 1000, AST_MAX_BLOCK_DEPTH = 100 };

typedef struct Expr Expr;
typedef struct Stmt Stmt;

typedef struct {
  const Expr *const *items;
  int count;
} ExprList;

typedef struct {
  const Stmt *const *stmts;
  int count;  // 0 only where the clause is absent (no `else`)
} Block;

// ---- expressions

typedef enum { UNARY_NEG, UNARY_POS, UNARY_INVERT, UNARY_NOT } UnaryOp;

typedef enum {
  BINARY_ADD,
  BINARY_SUB,
  BINARY_MUL,
  BINARY_DIV,       // /
  BINARY_FLOORDIV,  // //
  BINARY_MOD,
  BINARY_POW,
  BINARY_MATMUL,  // @
  BINARY_SHL,
  BINARY_SHR,
  BINARY_AND,  // &
  BINARY_OR,   // |
  BINARY_XOR,  // ^
} BinaryOp;

typedef enum {
  COMPARE_EQ,
  COMPARE_NE,
  COMPARE_LT,
  COMPARE_LE,
  COMPARE_GT,
  COMPARE_GE,
  COMPARE_IN,
  COMPARE_NOT_IN,
  COMPARE_IS,
  COMPARE_IS_NOT,
} CompareOp;

typedef enum { BOOL_AND, BOOL_OR } BoolOp;

typedef enum { ARG_POSITIONAL, ARG_KEYWORD, ARG_STAR, ARG_DOUBLE_STAR } ArgKind;

typedef struct {
  ArgKind kind;
  Span span;       // the whole argument
  Name name;       // ARG_KEYWORD only
  Span name_span;  // ARG_KEYWORD only
  const Expr *value;
} Arg;

// `key: value`, or `**value` with key NULL.
typedef struct {
  const Expr *key, *value;
} DictItem;

// `for target in iterable if c1 if c2`
typedef struct {
  const Expr *target, *iterable;
  ExprList conditions;
} CompClause;

typedef enum { COMP_LIST, COMP_SET, COMP_DICT, COMP_GENERATOR } CompKind;

// One piece of an f-string: literal text (value NULL), or `{value=!r:format}`. As in Python, `{value=}`
// without conversion and format prints like `!r`.
typedef struct {
  Span span;
  Str text;            // literal pieces: escapes decoded. `{x=}`: "x=", printed first; else empty
  const Expr *value;   // NULL in a literal piece
  char conversion;     // 'r', 's', 'a', or 0
  const Expr *format;  // the part after ':', an EXPR_FSTRING, or NULL
} FStringPart;

typedef enum {
  PARAM_POSITIONAL_ONLY,  // before `/`
  PARAM_NORMAL,
  PARAM_STAR,          // *args
  PARAM_KEYWORD_ONLY,  // after `*` or `*args`
  PARAM_DOUBLE_STAR,   // **kwargs
} ParamKind;

typedef struct {
  ParamKind kind;
  Span span;  // name, annotation and default
  Name name;
  Span name_span;
  const Expr *annotation;     // or NULL
  const Expr *default_value;  // or NULL
} Param;

typedef struct {
  const Param *items;
  int count;
} ParamList;

typedef enum {
  EXPR_INT,
  EXPR_FLOAT,
  EXPR_STRING,   // adjacent literals are joined
  EXPR_FSTRING,  // any of the joined literals is an f-string
  EXPR_TRUE,
  EXPR_FALSE,
  EXPR_NONE,
  EXPR_ELLIPSIS,
  EXPR_NAME,
  EXPR_ATTRIBUTE,
  EXPR_CALL,
  EXPR_SUBSCRIPT,
  EXPR_SLICE,  // only as an index of EXPR_SUBSCRIPT
  EXPR_TUPLE,
  EXPR_LIST,
  EXPR_SET,
  EXPR_DICT,
  EXPR_COMPREHENSION,
  EXPR_UNARY,
  EXPR_BINARY,
  EXPR_COMPARE,
  EXPR_BOOL,
  EXPR_CONDITIONAL,
  EXPR_LAMBDA,
  EXPR_STARRED,  // only in tuples, lists, sets, indices and targets
  EXPR_UNSUPPORTED,
} ExprKind;

struct Expr {
  ExprKind kind;
  uint16_t depth;  // 1 in a leaf
  Span span;
  union {
    int64_t integer;    // EXPR_INT; larger ones are EXPR_UNSUPPORTED
    double real;        // EXPR_FLOAT
    Name name;          // EXPR_NAME
    const char *what;   // EXPR_UNSUPPORTED: "an assignment expression ':='"
    ExprList elements;  // EXPR_TUPLE EXPR_LIST EXPR_SET
    const Expr *inner;  // EXPR_STARRED
    struct {            // EXPR_STRING
      Str text;         // escapes decoded
      bool is_bytes, is_raw;
    } string;
    struct {  // EXPR_FSTRING
      const FStringPart *parts;
      int count;
    } fstring;
    struct {  // EXPR_ATTRIBUTE
      const Expr *base;
      Name name;
      Span name_span;
    } attribute;
    struct {  // EXPR_CALL
      const Expr *callee;
      const Arg *args;  // in the order written
      int nargs;
    } call;
    struct {  // EXPR_SUBSCRIPT
      const Expr *base;
      ExprList indices;  // `A[i, j]`: two; `A[(i, j)]`: one EXPR_TUPLE
      bool has_comma;    // `A[i,]` indexes with a tuple of one
    } subscript;
    struct {  // EXPR_SLICE: NULL where left out
      const Expr *begin, *end, *step;
    } slice;
    struct {  // EXPR_DICT
      const DictItem *items;
      int count;
    } dict;
    struct {  // EXPR_COMPREHENSION
      CompKind kind;
      const Expr *element;  // COMP_DICT: the key
      const Expr *value;    // COMP_DICT only
      const CompClause *clauses;
      int nclauses;
    } comprehension;
    struct {  // EXPR_UNARY
      UnaryOp op;
      const Expr *operand;
    } unary;
    struct {  // EXPR_BINARY
      BinaryOp op;
      const Expr *lhs, *rhs;
    } binary;
    struct {  // EXPR_COMPARE: operands[0] ops[0] operands[1] ops[1] … ; nops + 1 operands
      const Expr *const *operands;
      const CompareOp *ops;
      int nops;
    } compare;
    struct {  // EXPR_BOOL: two or more operands of one operator
      BoolOp op;
      ExprList operands;
    } boolean;
    struct {  // EXPR_CONDITIONAL: `then if condition else otherwise`
      const Expr *condition, *then, *otherwise;
    } conditional;
    struct {  // EXPR_LAMBDA
      ParamList params;
      const Expr *body;
    } lambda;
  };
};

// ---- statements

typedef struct {
  const Expr *condition;
  Block body;
  Span span;  // `if condition` or `elif condition`
} IfArm;

// `context as target`; target is NULL, a name, a tuple, a subscript…
typedef struct {
  const Expr *context, *target;
} WithItem;

typedef struct {
  Name name;
  Span name_span;
  ExprList decorators;  // without the '@', outermost first
  ParamList params;
  const Expr *returns;  // annotation, or NULL
  Block body;
} FunctionDef;

typedef enum {
  STMT_FUNCTION,
  STMT_RETURN,
  STMT_IF,
  STMT_FOR,
  STMT_WHILE,
  STMT_WITH,
  STMT_ASSIGN,      // a = b = value
  STMT_AUG_ASSIGN,  // a += value
  STMT_ANN_ASSIGN,  // a: annotation = value
  STMT_EXPR,
  STMT_ASSERT,
  STMT_RAISE,
  STMT_PASS,
  STMT_BREAK,
  STMT_CONTINUE,
  STMT_UNSUPPORTED,
  STMT_UNPARSED,  // only at the top level of a .py file: a function whose text does not parse
} StmtKind;

struct Stmt {
  StmtKind kind;
  Span span;  // compound statements: the header, from the first word to before the ':'
  union {
    FunctionDef function;  // STMT_FUNCTION
    const Expr *value;     // STMT_EXPR; STMT_RETURN STMT_RAISE: or NULL
    const char *what;      // STMT_UNSUPPORTED: "a class definition"
    struct {               // STMT_IF
      const IfArm *arms;   // `if`, then each `elif`
      int narms;
      Block otherwise;
    } branch;
    struct {               // STMT_FOR
      const Expr *target;  // a name or a tuple of targets
      const Expr *iterable;
      Block body, otherwise;
    } loop;
    struct {  // STMT_WHILE
      const Expr *condition;
      Block body, otherwise;
    } while_loop;
    struct {  // STMT_WITH
      const WithItem *items;
      int nitems;
      Block body;
    } with;
    struct {             // STMT_ASSIGN
      ExprList targets;  // `a = b = e`: a, b. Each is a name, attribute, subscript, starred, or a tuple or
                         // list of those
      const Expr *value;
    } assign;
    struct {  // STMT_AUG_ASSIGN
      BinaryOp op;
      const Expr *target, *value;
    } aug_assign;
    struct {  // STMT_ANN_ASSIGN
      const Expr *target, *annotation;
      const Expr *value;  // or NULL
    } ann_assign;
    struct {  // STMT_ASSERT
      const Expr *condition;
      const Expr *message;  // or NULL
    } assertion;
    struct {  // STMT_UNPARSED
      Name name;
      Span name_span;
      Span text;  // decorators and body: what syntax_report_unparsed parses again
    } unparsed;
  };
};

// What a file holds at top level: only STMT_FUNCTION, STMT_ASSIGN, STMT_ANN_ASSIGN and STMT_UNPARSED, in
// order.
typedef struct {
  const Source *source;
  Block body;
} Module;

#endif

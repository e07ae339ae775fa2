// What the files of this room share: one Parser is one run over one piece of text (a file, a function of a
// .py file, or an expression inside an f-string).
//
// Layers, each calling the one below:  parser.y (grammar) -> layout.c (lines, INDENT and DEDENT, brackets,
// skipping of statements that have no meaning here) -> lexer.l (characters to tokens). literal.c reads
// numbers and strings, splitter.c cuts .py files, explain.c turns a syntax error into a sentence.
//
// One mistake gives one error: after an error, everything else on the same logical line is silent (px_error).
#ifndef TILEC_SYNTAX_INTERNAL_H
#define TILEC_SYNTAX_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/vec.h"
#include "syntax/ast.h"

enum {
  MAX_BRACKETS = 200,
  MAX_INDENTS = AST_MAX_BLOCK_DEPTH,
  MAX_FSTRING_DEPTH = 12,  // f-strings and format specifications within each other
};

typedef VEC(const Expr *) ExprVec;
typedef VEC(const Stmt *) StmtVec;
typedef VEC(Arg) ArgVec;
typedef VEC(Param) ParamVec;
typedef VEC(DictItem) DictVec;
typedef VEC(CompClause) ClauseVec;
typedef VEC(CompareOp) CompareVec;
typedef VEC(IfArm) ArmVec;
typedef VEC(WithItem) WithVec;
typedef VEC(Span) SpanVec;

// An operator chain that is still growing: `a < b < c`, `a and b and c`.
typedef struct {
  ExprVec operands;
  CompareVec ops;
} Chain;

// What the lexer knows about a token besides its place.
typedef struct {
  const Expr *expr;  // numbers
  Name name;
  int op;
} RawValue;

typedef struct {
  int token;
  Span span;
} TokenRecord;

typedef struct {
  int token;
  Span span;
  RawValue value;
} ReadAhead;

typedef struct {
  Arena *arena;
  Interner *interner;
  const Source *source;
  Diags *ds;

  uint32_t end;        // the text ends here; it may be less than the source
  uint32_t at;         // where the lexer is, an offset in the source
  int first_token;     // tells the grammar what to expect; 0 once handed out
  bool is_expression;  // the inside of an f-string: newlines mean nothing
  int fstring_depth;

  // Indentation as Python compares it: tabs to the next multiple of 8, and tabs as 1; both must agree.
  struct {
    int column, tab1;
  } indents[MAX_INDENTS + 1];
  int nindents;
  bool has_mixed_tabs;
  int pending_indents, pending_dedents;
  Span layout_span;  // of the line that caused them
  bool line_has_tokens, has_ended;

  struct {
    char opener;
    uint32_t at;
  } brackets[MAX_BRACKETS];
  int nbrackets;
  bool is_bracket_broken;  // an error inside the open brackets: leave them at the next line that looks like a
                           // statement

  // Logical lines, and which of them is spoiled by an error already reported.
  uint32_t line_begin;
  uint32_t spoiled_begin, spoiled_end;
  int errors;
  bool is_fatal;  // gave up: the lexer answers "end of file" and all is silent

  TokenRecord statement, before_last, last, current;  // the statement's first token, and the latest three
  bool at_statement;                                  // the next token begins a statement
  ReadAhead queue[2];                                 // tokens that skipping a statement read ahead
  int nqueue;

  bool is_tile_file, has_statement;
  StmtVec statements;      // the result of a file
  const Expr *expression;  // the result of an expression
} Parser;

// ---- lexer.l

// What raw_lex answers besides tokens.
enum { RAW_END = 0, RAW_LAYOUT = -1 };

// The next token of the text, blind to lines and brackets except through the layout_… calls below.
int raw_next(void *scanner, RawValue *value, Span *span);

// Runs the grammar over source[begin, end). Results are in px->statements or px->expression.
void px_run(Parser *px, int first_token, uint32_t begin, uint32_t end);

// A parser for the same source that reports into `ds`.
Parser px_new(Arena *arena, Interner *interner, const Source *source, Diags *ds);

// ---- layout.c

// At the first character of a line that holds a token: queues INDENT or DEDENT. True: something was queued.
bool layout_line(Parser *px, uint32_t begin, uint32_t end);
// At a line end. True: it ends the statement; false: brackets join the lines.
bool layout_newline(Parser *px);
void layout_open(Parser *px, char opener, Span span);
// The closing bracket that the parser should see, or 0 when this one closes nothing. *is_inserted: it stands
// for a missing one, and `closer` is still to come.
int layout_close(Parser *px, char closer, Span span, bool *is_inserted);
// Forgets the open brackets after an error that swallowed their ends.
void layout_leave_brackets(Parser *px);

// Reports, unless the logical line at span.begin is spoiled by an earlier error. False: was silent; attach no
// notes.
__attribute__((format(printf, 4, 5))) bool px_error(Parser *px, DiagCode code, Span span, const char *format,
                                                    ...);
// Silences the rest of the logical line at `offset`, where an error was reported.
void px_spoil(Parser *px, uint32_t offset);
// Whether an error was already reported on the logical line that holds `offset`.
bool px_is_spoiled(const Parser *px, uint32_t offset);
// The text of a span for a message, shortened to one line.
const char *px_text(const Parser *px, Span span);

// ---- literal.c

// Where a string literal ends and what it is. `begin` is at its prefix.
typedef struct {
  uint32_t begin, body, body_end, end;
  bool is_raw, is_bytes, is_fstring, is_triple;
} Literal;

// Length of the string prefix at `at` (0 to 2) when a quote follows it, else -1.
int string_prefix(const char *text, uint32_t at, uint32_t end);
// False: not closed; lit->end is then where the text stops making sense (line end or end of text).
bool string_scan(const char *text, uint32_t at, uint32_t end, Literal *lit);
// Joins adjacent literals to one EXPR_STRING or EXPR_FSTRING.
const Expr *string_build(Parser *px, const Span *pieces, int npieces, Span span);
const Expr *number_int(Parser *px, Span span);
const Expr *number_float(Parser *px, Span span);

// ---- ast.c: constructors that also bound the depth

Expr *expr_new(Parser *px, ExprKind kind, Span span);
const Expr *expr_unsupported(Parser *px, Span span, const char *what);
const Expr *expr_unary(Parser *px, Span span, UnaryOp op, const Expr *operand);
const Expr *expr_binary(Parser *px, Span span, BinaryOp op, const Expr *lhs, const Expr *rhs);
const Expr *expr_attribute(Parser *px, Span span, const Expr *base, Name name, Span name_span);
const Expr *expr_call(Parser *px, Span span, const Expr *callee, const ArgVec *args);
const Expr *expr_subscript(Parser *px, Span span, const Expr *base, const ExprVec *indices, bool has_comma);
const Expr *expr_slice(Parser *px, Span span, const Expr *begin, const Expr *end, const Expr *step);
const Expr *expr_list(Parser *px, ExprKind kind, Span span, const ExprVec *elements);
const Expr *expr_dict(Parser *px, Span span, const DictVec *items);
const Expr *expr_comprehension(Parser *px, Span span, CompKind kind, const Expr *element, const Expr *value,
                               const ClauseVec *clauses);
const Expr *expr_compare(Parser *px, Span span, const Chain *chain);
const Expr *expr_bool(Parser *px, Span span, BoolOp op, const ExprVec *operands);
const Expr *expr_conditional(Parser *px, Span span, const Expr *condition, const Expr *then,
                             const Expr *otherwise);
const Expr *expr_lambda(Parser *px, Span span, ParamList params, const Expr *body);
const Expr *expr_starred(Parser *px, Span span, const Expr *inner);
const Expr *expr_fstring(Parser *px, Span span, const FStringPart *parts, int count);
// `context as target` inside brackets, which only `with` understands; elsewhere it is EXPR_UNSUPPORTED.
const Expr *expr_as(Parser *px, Span span, const Expr *context, const Expr *target);

Stmt *stmt_new(Parser *px, StmtKind kind, Span span);
Block block_of(const StmtVec *stmts);
ExprList list_of(const ExprVec *exprs);

// ---- check.c: rules that the grammar leaves out

// Reports what cannot be assigned to. `verb` is "assign to" or "loop over with".
void check_target(Parser *px, const Expr *target);
// Turns the markers `/` and `*` into kinds; reports wrong order and repeated names.
ParamList check_params(Parser *px, const ParamVec *params);
void check_args(Parser *px, const ArgVec *args);
// A lone `*x` where one value is needed.
const Expr *check_single(Parser *px, const Expr *expr);
// Takes apart `with (a as b, c as d)`.
void check_with_item(Parser *px, WithVec *items, const Expr *context, const Expr *target);

// ---- explain.c

// A token that the grammar did not expect; `expected` are bison's names of those it did.
// The token is px->current.
void explain_unexpected(Parser *px, Span span, const char *const *expected, int nexpected);
void explain_missing_colon(Parser *px, Span newline);
void explain_missing_block(Parser *px, Span header, Span newline);
void explain_unexpected_indent(Parser *px, Span indent);

// ---- module.c

// Adds top-level statements to the result; reports those that a .tile file may not have.
void module_append(Parser *px, const StmtVec *stmts, StmtVec *module);

// ---- splitter.c

typedef enum { CHUNK_FUNCTION, CHUNK_ASSIGNMENT, CHUNK_OTHER } ChunkKind;

typedef struct {
  ChunkKind kind;
  uint32_t begin, end;
  Span name;  // CHUNK_FUNCTION
} Chunk;

// The next top-level piece of source[*at, …), moving *at behind it. False at the end.
bool splitter_next(const Source *source, uint32_t *at, Chunk *chunk);

#endif

/* The grammar. Actions only build nodes, through ast.c; rules that would need a sentence are in check.c.
 *
 * Precedence is in the layers of the expression rules. Left-recursive lists keep the parser's stack short,
 * so that its bound (YYMAXDEPTH) is reached by nesting alone: that is an error like any other, and so
 * nothing recurses without end.
 *
 * Errors. A header that does not parse is cut at its ':' (`IF error suite`), a statement at its line end
 * (`error NEWLINE`); missing ':' and missing or unexpected blocks are rules of their own. layout.c sees to
 * it that a line end and INDENT and DEDENT come in pairs whatever the text, so that recovery never leaves a
 * block half open. */
%define api.pure full
%define api.prefix {grammar_}
%define api.token.prefix {TOK_}
%define api.location.type {Span}
%define parse.error custom
%define parse.lac full
%locations
%expect 0
%param {Parser *px} {void *scanner}

%code requires {
#include "syntax/syntax_internal.h"
}

%code {
#include <string.h>

int grammar_lex(GRAMMAR_STYPE *out, Span *span, Parser *px, void *scanner);
static void grammar_error(const Span *span, Parser *px, void *scanner, const char *text);

#define YYMAXDEPTH 10000

#define YYLLOC_DEFAULT(out, rhs, n)                                                                          \
  do {                                                                                                       \
    (out).begin = (n) ? YYRHSLOC(rhs, 1).begin : YYRHSLOC(rhs, 0).end;                                       \
    (out).end = (n) ? YYRHSLOC(rhs, n).end : YYRHSLOC(rhs, 0).end;                                           \
  } while (0)

#define NEW(T) ARENA_NEW(px->arena, T)
#define PUSH(vec, value) vec_push(px->arena, (vec), (value))

static ExprVec *exprs_of(Parser *px, const Expr *first) {
  ExprVec *vec = NEW(ExprVec);
  PUSH(vec, first);
  return vec;
}

static StmtVec *stmts_of(Parser *px, const Stmt *stmt) {
  StmtVec *vec = NEW(StmtVec);
  PUSH(vec, stmt);
  return vec;
}

static void append(Parser *px, StmtVec *to, const StmtVec *from) {
  for (int i = 0; i < from->len; i++) PUSH(to, from->data[i]);
}

static Chain *chain_of(Parser *px, const Expr *lhs, int op, const Expr *rhs) {
  Chain *chain = NEW(Chain);
  PUSH(&chain->operands, lhs);
  PUSH(&chain->operands, rhs);
  PUSH(&chain->ops, (CompareOp)op);
  return chain;
}

static Span to_end(Span begin, Span end) {
  return (Span){begin.begin, end.end};
}

// An absent part of a slice has a place without width, perhaps before white space.
static Span slice_span(const Span *begin, Span colons, const Span *end) {
  bool has_begin = begin->begin < begin->end, has_end = end->begin < end->end;
  return (Span){has_begin ? begin->begin : colons.begin, has_end ? end->end : colons.end};
}

// A list of elements as one expression: alone without a comma it is itself.
static const Expr *tuple_of(Parser *px, const ExprVec *elements, bool has_comma, Span span) {
  if (elements->len == 1 && !has_comma) return check_single(px, elements->data[0]);
  return expr_list(px, EXPR_TUPLE, span, elements);
}

static Stmt *value_stmt(Parser *px, StmtKind kind, Span span, const Expr *value) {
  Stmt *stmt = stmt_new(px, kind, span);
  stmt->value = value;
  return stmt;
}

static Stmt *unsupported_stmt(Parser *px, Span span, const char *what) {
  Stmt *stmt = stmt_new(px, STMT_UNSUPPORTED, span);
  stmt->what = what;
  return stmt;
}

static const Stmt *assign_stmt(Parser *px, Span span, ExprVec *chain) {
  Stmt *stmt = stmt_new(px, STMT_ASSIGN, span);
  stmt->assign.value = chain->data[chain->len - 1];
  chain->len--;
  stmt->assign.targets = list_of(chain);
  for (int i = 0; i < chain->len; i++) check_target(px, chain->data[i]);
  return stmt;
}

static const Stmt *ann_assign_stmt(Parser *px, Span span, const Expr *target, const Expr *annotation,
                                   const Expr *value) {
  Stmt *stmt = stmt_new(px, STMT_ANN_ASSIGN, span);
  if (target->kind == EXPR_TUPLE || target->kind == EXPR_LIST) {
    px_error(px, DIAG_syntax, target->span, "only one name can be annotated");
  } else {
    check_target(px, target);
  }
  stmt->ann_assign.target = target;
  stmt->ann_assign.annotation = annotation;
  stmt->ann_assign.value = value;
  return stmt;
}

static Stmt *loop_stmt(Parser *px, StmtKind kind, Span span, const StmtVec *body, const StmtVec *otherwise) {
  Stmt *stmt = stmt_new(px, kind, span);
  if (kind == STMT_FOR) {
    stmt->loop.body = block_of(body);
    stmt->loop.otherwise = block_of(otherwise);
  } else {
    stmt->while_loop.body = block_of(body);
    stmt->while_loop.otherwise = block_of(otherwise);
  }
  return stmt;
}

static Param param_of(ParamKind kind, Span span, Name name, Span name_span, const Expr *annotation,
                      const Expr *default_value) {
  return (Param){kind, span, name, name_span, annotation, default_value};
}

// A function without decorators yet; its span is the header.
static Stmt *function_stmt(Parser *px, Span header, Name name, Span name_span, const ParamVec *params,
                           const Expr *returns, const StmtVec *body) {
  Stmt *stmt = stmt_new(px, STMT_FUNCTION, header);
  stmt->function.name = name;
  stmt->function.name_span = name_span;
  stmt->function.params = check_params(px, params);
  stmt->function.returns = returns;
  stmt->function.body = block_of(body);
  return stmt;
}

static const Expr *name_expr(Parser *px, Span span, Name name) {
  Expr *expr = expr_new(px, EXPR_NAME, span);
  expr->name = name;
  return expr;
}

static const Expr *leaf(Parser *px, ExprKind kind, Span span) {
  return expr_new(px, kind, span);
}

static Arg arg_of(Parser *px, Span span, const Expr *keyword, const Expr *value) {
  if (keyword->kind != EXPR_NAME) {
    px_error(px, DIAG_syntax, keyword->span, "the keyword of an argument is a name");
    return (Arg){ARG_POSITIONAL, span, NULL, span, value};
  }
  return (Arg){ARG_KEYWORD, span, keyword->name, keyword->span, value};
}

static ClauseVec *add_clause(Parser *px, ClauseVec *clauses, const Expr *target, const Expr *iterable) {
  CompClause clause = {target, iterable, {NULL, 0}};
  check_target(px, target);
  PUSH(clauses, clause);
  return clauses;
}

// Conditions of the last clause grow one by one: the array doubles whenever the count is a power of two.
static ClauseVec *add_condition(Parser *px, ClauseVec *clauses, const Expr *condition) {
  ExprList *list = &clauses->data[clauses->len - 1].conditions;
  const Expr **items = (const Expr **)(uintptr_t)list->items;
  if ((list->count & (list->count - 1)) == 0) {
    items = ARENA_ARRAY(px->arena, const Expr *, list->count ? 2 * list->count : 1);
    for (int i = 0; i < list->count; i++) items[i] = list->items[i];
    list->items = items;
  }
  items[list->count++] = condition;
  return clauses;
}
}

%union {
  const Expr *expr;
  const Stmt *stmt;
  ExprVec *exprs;
  StmtVec *stmts;
  ArgVec *args;
  ParamVec *params;
  DictVec *dict;
  ClauseVec *clauses;
  ArmVec *arms;
  WithVec *withs;
  Chain *chain;
  Stmt *function;
  struct { ExprVec *list; bool has_comma; } commas;
  Arg arg;
  Param param;
  DictItem dict_item;
  Name name;
  const char *what;
  int op;
  SpanVec *spans;
}

%token START_FILE START_EXPRESSION
%token END 0 "the end of the file"
%token NEWLINE "the end of the line"
%token INDENT "an indented block"
%token DEDENT "the end of the block"
%token <what> SKIPPED "a statement"
%token <name> NAME "a name"
%token <expr> NUMBER "a number"
%token STRING "a string"
%token FALSE "'False'" NONE "'None'" TRUE "'True'" AND "'and'" AS "'as'" ASSERT "'assert'" ASYNC "'async'"
%token AWAIT "'await'" BREAK "'break'" CLASS "'class'" CONTINUE "'continue'" DEF "'def'" DEL "'del'"
%token ELIF "'elif'" ELSE "'else'" EXCEPT "'except'" FINALLY "'finally'" FOR "'for'" FROM "'from'"
%token GLOBAL "'global'" IF "'if'" IMPORT "'import'" IN "'in'" IS "'is'" LAMBDA "'lambda'"
%token NONLOCAL "'nonlocal'" NOT "'not'" OR "'or'" PASS "'pass'" RAISE "'raise'" RETURN "'return'" TRY "'try'"
%token WHILE "'while'" WITH "'with'" YIELD "'yield'"
%token POW "'**'" FLOORDIV "'//'" SHL "'<<'" SHR "'>>'" LE "'<='" GE "'>='" EQ "'=='" NE "'!='" ARROW "'->'"
%token WALRUS "':='" ELLIPSIS "'...'"
%token <op> AUG "an assignment operator"

%type <stmts> file stmts stmt block suite else_opt
%type <stmts> simple_list
%type <stmt> simple compound definition
%type <withs> with_items with_item
%type <expr> value testlist cond named expr ternary or_test and_test not_test comparison
%type <expr> bitor bitxor bitand shift sum
%type <expr> term factor power primary atom index slice_opt element item
%type <exprs> chain or_chain and_chain decorators
%type <chain> compare_chain
%type <op> compare_op
%type <commas> elements items indices target_items
%type <args> args arg_list
%type <arg> arg
%type <params> params param_list lambda_params lambda_list
%type <param> param lambda_param
%type <dict> dict_items
%type <dict_item> dict_item
%type <clauses> clauses
%type <arms> arms
%type <function> function
%type <expr> returns target_or_star target_list
%type <spans> strings

%precedence LOW
%precedence INDENT DEF SKIPPED '@'

%%

start
  : START_FILE file                   { if ($2) px->statements = *$2; }
  | START_EXPRESSION value            { px->expression = $2; }
  ;

file
  : %empty                            { $$ = NEW(StmtVec); }
  | file stmt                         { module_append(px, $2, $1); $$ = $1; }
  ;

stmts
  : stmt
  | stmts stmt                        { append(px, $1, $2); $$ = $1; }
  ;

stmt
  : simple_list NEWLINE
  | simple_list ';' NEWLINE
  | compound                          { $$ = stmts_of(px, $1); }
  | unexpected_indent stmts DEDENT    { $$ = $2; }
  | error NEWLINE                     { $$ = NEW(StmtVec); yyerrok; }
  ;

unexpected_indent
  : INDENT                            { explain_unexpected_indent(px, @1); }
  ;

simple_list
  : simple                            { $$ = stmts_of(px, $1); }
  | simple_list ';' simple            { PUSH($1, $3); $$ = $1; }
  ;

/* What follows a header, whatever is wrong with it. */
suite
  : ':' simple_list NEWLINE           { $$ = $2; }
  | ':' simple_list ';' NEWLINE       { $$ = $2; }
  | ':' error NEWLINE                 { $$ = NEW(StmtVec); yyerrok; }
  | ':' NEWLINE block                 { $$ = $3; }
  | ':' NEWLINE %prec LOW             { $$ = NEW(StmtVec); explain_missing_block(px, @1, @2); }
  | missing_colon block               { $$ = $2; }
  | missing_colon %prec LOW           { $$ = NEW(StmtVec); }
  ;

missing_colon
  : NEWLINE                           { explain_missing_colon(px, @1); }
  ;

block
  : INDENT stmts DEDENT               { $$ = $2; }
  ;

simple
  : testlist                          { $$ = value_stmt(px, STMT_EXPR, @$, $1); }
  | yield                             {
      $$ = value_stmt(px, STMT_EXPR, @$, expr_unsupported(px, @$, "'yield'"));
    }
  | chain                             { $$ = assign_stmt(px, @$, $1); }
  | testlist AUG value                {
      Stmt *stmt = stmt_new(px, STMT_AUG_ASSIGN, @$);
      check_target(px, $1);
      stmt->aug_assign.op = (BinaryOp)$2;
      stmt->aug_assign.target = $1;
      stmt->aug_assign.value = $3;
      $$ = stmt;
    }
  | testlist ':' expr                 { $$ = ann_assign_stmt(px, @$, $1, $3, NULL); }
  | testlist ':' expr '=' value       { $$ = ann_assign_stmt(px, @$, $1, $3, $5); }
  | PASS                              { $$ = stmt_new(px, STMT_PASS, @$); }
  | BREAK                             { $$ = stmt_new(px, STMT_BREAK, @$); }
  | CONTINUE                          { $$ = stmt_new(px, STMT_CONTINUE, @$); }
  | RETURN                            { $$ = value_stmt(px, STMT_RETURN, @$, NULL); }
  | RETURN testlist                   { $$ = value_stmt(px, STMT_RETURN, @$, $2); }
  | RAISE                             { $$ = value_stmt(px, STMT_RAISE, @$, NULL); }
  | RAISE expr                        { $$ = value_stmt(px, STMT_RAISE, @$, $2); }
  | RAISE expr FROM expr              { $$ = value_stmt(px, STMT_RAISE, @$, $2); }
  | ASSERT expr                       {
      Stmt *stmt = stmt_new(px, STMT_ASSERT, @$);
      stmt->assertion.condition = $2;
      $$ = stmt;
    }
  | ASSERT expr ',' expr              {
      Stmt *stmt = stmt_new(px, STMT_ASSERT, @$);
      stmt->assertion.condition = $2;
      stmt->assertion.message = $4;
      $$ = stmt;
    }
  | SKIPPED                           { $$ = unsupported_stmt(px, @$, $1); }
  ;

chain
  : testlist '=' value                { $$ = exprs_of(px, $1); PUSH($$, $3); }
  | chain '=' value                   { PUSH($1, $3); $$ = $1; }
  ;

value
  : testlist
  | yield                             { $$ = expr_unsupported(px, @$, "'yield'"); }
  ;

yield
  : YIELD
  | YIELD testlist
  | YIELD FROM expr
  ;

compound
  : IF cond suite arms else_opt       {
      Stmt *stmt = stmt_new(px, STMT_IF, to_end(@1, @2));
      ArmVec *all = NEW(ArmVec);
      PUSH(all, ((IfArm){$2, block_of($3), to_end(@1, @2)}));
      for (int i = 0; i < $4->len; i++) PUSH(all, $4->data[i]);
      stmt->branch.arms = all->data;
      stmt->branch.narms = all->len;
      stmt->branch.otherwise = block_of($5);
      $$ = stmt;
    }
  | FOR target_list IN testlist suite else_opt   {
      Stmt *stmt = loop_stmt(px, STMT_FOR, to_end(@1, @4), $5, $6);
      stmt->loop.target = $2;
      check_target(px, $2);
      stmt->loop.iterable = $4;
      $$ = stmt;
    }
  | FOR error suite else_opt          {
      Stmt *stmt = loop_stmt(px, STMT_FOR, @1, $3, $4);
      stmt->loop.target = stmt->loop.iterable = expr_new(px, EXPR_NONE, @2);
      $$ = stmt;
    }
  | WHILE cond suite else_opt         {
      Stmt *stmt = loop_stmt(px, STMT_WHILE, to_end(@1, @2), $3, $4);
      stmt->while_loop.condition = $2;
      $$ = stmt;
    }
  | WITH with_items suite             {
      Stmt *stmt = stmt_new(px, STMT_WITH, to_end(@1, @2));
      stmt->with.items = $2->data;
      stmt->with.nitems = $2->len;
      stmt->with.body = block_of($3);
      $$ = stmt;
    }
  | WITH error suite                  {
      Stmt *stmt = stmt_new(px, STMT_WITH, @1);
      stmt->with.body = block_of($3);
      $$ = stmt;
    }
  | definition
  ;

arms
  : %empty                            { $$ = NEW(ArmVec); }
  | arms ELIF cond suite              { PUSH($1, ((IfArm){$3, block_of($4), to_end(@2, @3)})); $$ = $1; }
  | arms ELSE IF cond suite           {
      px_error(px, DIAG_syntax, to_end(@2, @3), "'else if' is written 'elif'");
      PUSH($1, ((IfArm){$4, block_of($5), to_end(@2, @4)}));
      $$ = $1;
    }
  ;

cond
  : named
  | error                             { $$ = expr_new(px, EXPR_NONE, @1); }
  ;

else_opt
  : %empty                            { $$ = NEW(StmtVec); }
  | ELSE suite                        { $$ = $2; }
  | ELSE error suite                  { $$ = $3; }
  ;

with_items
  : with_item
  | with_items ',' with_item          {
      for (int i = 0; i < $3->len; i++) PUSH($1, $3->data[i]);
      $$ = $1;
    }
  ;

with_item
  : expr                              { $$ = NEW(WithVec); check_with_item(px, $$, $1, NULL); }
  | expr AS bitor                     { $$ = NEW(WithVec); check_with_item(px, $$, $1, $3); }
  ;

definition
  : function                          { $$ = $1; }
  | decorators function               { $2->function.decorators = list_of($1); $$ = $2; }
  | decorators SKIPPED NEWLINE        { $$ = unsupported_stmt(px, @2, $2); }
  | decorators %prec LOW              {
      px_error(px, DIAG_syntax, @1, "a decorator is followed by a function definition");
      $$ = stmt_new(px, STMT_PASS, @1);
    }
  ;

decorators
  : '@' named NEWLINE                 { $$ = exprs_of(px, $2); }
  | decorators '@' named NEWLINE      { PUSH($1, $3); $$ = $1; }
  ;

function
  : DEF NAME '(' params ')' returns suite   {
      $$ = function_stmt(px, to_end(@1, @6), $2, @2, $4, $6, $7);
    }
  | DEF error suite                   {
      $$ = function_stmt(px, @1, intern(px->interner, "?"), @1, NEW(ParamVec), NULL, $3);
    }
  ;

returns
  : %empty                            { $$ = NULL; }
  | ARROW expr                        { $$ = $2; }
  ;

params
  : %empty                            { $$ = NEW(ParamVec); }
  | param_list
  | param_list ','
  ;

param_list
  : param                             { $$ = NEW(ParamVec); PUSH($$, $1); }
  | param_list ',' param              { PUSH($1, $3); $$ = $1; }
  ;

param
  : NAME                              { $$ = param_of(PARAM_NORMAL, @$, $1, @1, NULL, NULL); }
  | NAME ':' expr                     { $$ = param_of(PARAM_NORMAL, @$, $1, @1, $3, NULL); }
  | NAME '=' expr                     { $$ = param_of(PARAM_NORMAL, @$, $1, @1, NULL, $3); }
  | NAME ':' expr '=' expr            { $$ = param_of(PARAM_NORMAL, @$, $1, @1, $3, $5); }
  | '/'                               { $$ = param_of(PARAM_POSITIONAL_ONLY, @$, NULL, @1, NULL, NULL); }
  | '*'                               { $$ = param_of(PARAM_STAR, @$, NULL, @1, NULL, NULL); }
  | '*' NAME                          { $$ = param_of(PARAM_STAR, @$, $2, @2, NULL, NULL); }
  | '*' NAME ':' expr                 { $$ = param_of(PARAM_STAR, @$, $2, @2, $4, NULL); }
  | POW NAME                          { $$ = param_of(PARAM_DOUBLE_STAR, @$, $2, @2, NULL, NULL); }
  | POW NAME ':' expr                 { $$ = param_of(PARAM_DOUBLE_STAR, @$, $2, @2, $4, NULL); }
  ;

lambda_params
  : %empty                            { $$ = NEW(ParamVec); }
  | lambda_list
  | lambda_list ','
  ;

lambda_list
  : lambda_param                      { $$ = NEW(ParamVec); PUSH($$, $1); }
  | lambda_list ',' lambda_param      { PUSH($1, $3); $$ = $1; }
  ;

lambda_param
  : NAME                              { $$ = param_of(PARAM_NORMAL, @$, $1, @1, NULL, NULL); }
  | NAME '=' expr                     { $$ = param_of(PARAM_NORMAL, @$, $1, @1, NULL, $3); }
  | '/'                               { $$ = param_of(PARAM_POSITIONAL_ONLY, @$, NULL, @1, NULL, NULL); }
  | '*'                               { $$ = param_of(PARAM_STAR, @$, NULL, @1, NULL, NULL); }
  | '*' NAME                          { $$ = param_of(PARAM_STAR, @$, $2, @2, NULL, NULL); }
  | POW NAME                          { $$ = param_of(PARAM_DOUBLE_STAR, @$, $2, @2, NULL, NULL); }
  ;

/* Lists of expressions without brackets. */
testlist
  : elements                          { $$ = tuple_of(px, $1.list, $1.has_comma, @$); }
  | elements ','                      { $$ = tuple_of(px, $1.list, true, @$); }
  ;

elements
  : element                           { $$.list = exprs_of(px, $1); $$.has_comma = false; }
  | elements ',' element              { PUSH($1.list, $3); $$ = $1; $$.has_comma = true; }
  ;

element
  : expr
  | '*' bitor                         { $$ = expr_starred(px, @$, $2); }
  ;

/* What `for` binds: no comparison, since `in` ends it. */
target_list
  : target_items                      { $$ = tuple_of(px, $1.list, $1.has_comma, @$); }
  | target_items ','                  { $$ = tuple_of(px, $1.list, true, @$); }
  ;

target_items
  : target_or_star                    { $$.list = exprs_of(px, $1); $$.has_comma = false; }
  | target_items ',' target_or_star   { PUSH($1.list, $3); $$ = $1; $$.has_comma = true; }
  ;

target_or_star
  : bitor
  | '*' bitor                         { $$ = expr_starred(px, @$, $2); }
  ;

/* ---- expressions, loosest first */
named
  : expr
  | expr WALRUS expr                  { $$ = expr_unsupported(px, @$, "an assignment expression ':='"); }
  ;

expr
  : ternary
  | LAMBDA lambda_params ':' expr     { $$ = expr_lambda(px, @$, check_params(px, $2), $4); }
  ;

ternary
  : or_test
  | or_test IF or_test ELSE expr      { $$ = expr_conditional(px, @$, $3, $1, $5); }
  ;

or_test
  : and_test
  | or_chain                          { $$ = expr_bool(px, @$, BOOL_OR, $1); }
  ;

or_chain
  : and_test OR and_test              { $$ = exprs_of(px, $1); PUSH($$, $3); }
  | or_chain OR and_test              { PUSH($1, $3); $$ = $1; }
  ;

and_test
  : not_test
  | and_chain                         { $$ = expr_bool(px, @$, BOOL_AND, $1); }
  ;

and_chain
  : not_test AND not_test             { $$ = exprs_of(px, $1); PUSH($$, $3); }
  | and_chain AND not_test            { PUSH($1, $3); $$ = $1; }
  ;

not_test
  : comparison
  | NOT not_test                      { $$ = expr_unary(px, @$, UNARY_NOT, $2); }
  ;

comparison
  : bitor
  | compare_chain                     { $$ = expr_compare(px, @$, $1); }
  ;

compare_chain
  : bitor compare_op bitor            { $$ = chain_of(px, $1, $2, $3); }
  | compare_chain compare_op bitor    {
      PUSH(&$1->operands, $3);
      PUSH(&$1->ops, (CompareOp)$2);
      $$ = $1;
    }
  ;

compare_op
  : EQ                                { $$ = COMPARE_EQ; }
  | NE                                { $$ = COMPARE_NE; }
  | '<'                               { $$ = COMPARE_LT; }
  | LE                                { $$ = COMPARE_LE; }
  | '>'                               { $$ = COMPARE_GT; }
  | GE                                { $$ = COMPARE_GE; }
  | IN                                { $$ = COMPARE_IN; }
  | NOT IN                            { $$ = COMPARE_NOT_IN; }
  | IS                                { $$ = COMPARE_IS; }
  | IS NOT                            { $$ = COMPARE_IS_NOT; }
  ;

bitor
  : bitxor
  | bitor '|' bitxor                  { $$ = expr_binary(px, @$, BINARY_OR, $1, $3); }
  ;

bitxor
  : bitand
  | bitxor '^' bitand                 { $$ = expr_binary(px, @$, BINARY_XOR, $1, $3); }
  ;

bitand
  : shift
  | bitand '&' shift                  { $$ = expr_binary(px, @$, BINARY_AND, $1, $3); }
  ;

shift
  : sum
  | shift SHL sum                     { $$ = expr_binary(px, @$, BINARY_SHL, $1, $3); }
  | shift SHR sum                     { $$ = expr_binary(px, @$, BINARY_SHR, $1, $3); }
  ;

sum
  : term
  | sum '+' term                      { $$ = expr_binary(px, @$, BINARY_ADD, $1, $3); }
  | sum '-' term                      { $$ = expr_binary(px, @$, BINARY_SUB, $1, $3); }
  ;

term
  : factor
  | term '*' factor                   { $$ = expr_binary(px, @$, BINARY_MUL, $1, $3); }
  | term '/' factor                   { $$ = expr_binary(px, @$, BINARY_DIV, $1, $3); }
  | term FLOORDIV factor              { $$ = expr_binary(px, @$, BINARY_FLOORDIV, $1, $3); }
  | term '%' factor                   { $$ = expr_binary(px, @$, BINARY_MOD, $1, $3); }
  | term '@' factor                   { $$ = expr_binary(px, @$, BINARY_MATMUL, $1, $3); }
  ;

factor
  : power
  | '-' factor                        { $$ = expr_unary(px, @$, UNARY_NEG, $2); }
  | '+' factor                        { $$ = expr_unary(px, @$, UNARY_POS, $2); }
  | '~' factor                        { $$ = expr_unary(px, @$, UNARY_INVERT, $2); }
  ;

power
  : primary
  | primary POW factor                { $$ = expr_binary(px, @$, BINARY_POW, $1, $3); }
  | AWAIT primary                     { $$ = expr_unsupported(px, @$, "'await'"); }
  ;

primary
  : atom
  | primary '.' NAME                  { $$ = expr_attribute(px, @$, $1, $3, @3); }
  | primary '(' args ')'              { check_args(px, $3); $$ = expr_call(px, @$, $1, $3); }
  | primary '[' indices ']'           { $$ = expr_subscript(px, @$, $1, $3.list, $3.has_comma); }
  | primary '[' indices ',' ']'       { $$ = expr_subscript(px, @$, $1, $3.list, true); }
  ;

args
  : %empty                            { $$ = NEW(ArgVec); }
  | arg_list
  | arg_list ','
  ;

arg_list
  : arg                               { $$ = NEW(ArgVec); PUSH($$, $1); }
  | arg_list ',' arg                  { PUSH($1, $3); $$ = $1; }
  ;

arg
  : named                             { $$ = (Arg){ARG_POSITIONAL, @$, NULL, @$, $1}; }
  | expr clauses                      {
      const Expr *value = expr_comprehension(px, @$, COMP_GENERATOR, $1, NULL, $2);
      $$ = (Arg){ARG_POSITIONAL, @$, NULL, @$, value};
    }
  | expr '=' expr                     { $$ = arg_of(px, @$, $1, $3); }
  | '*' expr                          { $$ = (Arg){ARG_STAR, @$, NULL, @$, $2}; }
  | POW expr                          { $$ = (Arg){ARG_DOUBLE_STAR, @$, NULL, @$, $2}; }
  ;

indices
  : index                             { $$.list = exprs_of(px, $1); $$.has_comma = false; }
  | indices ',' index                 { PUSH($1.list, $3); $$ = $1; $$.has_comma = true; }
  ;

index
  : named
  | '*' bitor                         { $$ = expr_starred(px, @$, $2); }
  | slice_opt ':' slice_opt           { $$ = expr_slice(px, slice_span(&@1, @2, &@3), $1, $3, NULL); }
  | slice_opt ':' slice_opt ':' slice_opt   {
      $$ = expr_slice(px, slice_span(&@1, to_end(@2, @4), &@5), $1, $3, $5);
    }
  ;

slice_opt
  : %empty                            { $$ = NULL; }
  | expr
  ;

clauses
  : FOR target_list IN or_test        { $$ = add_clause(px, NEW(ClauseVec), $2, $4); }
  | clauses FOR target_list IN or_test   { $$ = add_clause(px, $1, $3, $5); }
  | clauses IF or_test                { $$ = add_condition(px, $1, $3); }
  ;

atom
  : NAME                              { $$ = name_expr(px, @$, $1); }
  | NUMBER
  | strings                           { $$ = string_build(px, $1->data, $1->len, @$); }
  | TRUE                              { $$ = leaf(px, EXPR_TRUE, @$); }
  | FALSE                             { $$ = leaf(px, EXPR_FALSE, @$); }
  | NONE                              { $$ = leaf(px, EXPR_NONE, @$); }
  | ELLIPSIS                          { $$ = leaf(px, EXPR_ELLIPSIS, @$); }
  | '(' ')'                           { $$ = expr_list(px, EXPR_TUPLE, @$, NEW(ExprVec)); }
  | '(' items ')'                     { $$ = tuple_of(px, $2.list, $2.has_comma, @$); }
  | '(' items ',' ')'                 { $$ = tuple_of(px, $2.list, true, @$); }
  | '(' item clauses ')'              { $$ = expr_comprehension(px, @$, COMP_GENERATOR, $2, NULL, $3); }
  | '(' yield ')'                     { $$ = expr_unsupported(px, @$, "'yield'"); }
  | '[' ']'                           { $$ = expr_list(px, EXPR_LIST, @$, NEW(ExprVec)); }
  | '[' items ']'                     { $$ = expr_list(px, EXPR_LIST, @$, $2.list); }
  | '[' items ',' ']'                 { $$ = expr_list(px, EXPR_LIST, @$, $2.list); }
  | '[' item clauses ']'              { $$ = expr_comprehension(px, @$, COMP_LIST, $2, NULL, $3); }
  | '{' '}'                           { $$ = expr_dict(px, @$, NEW(DictVec)); }
  | '{' items '}'                     { $$ = expr_list(px, EXPR_SET, @$, $2.list); }
  | '{' items ',' '}'                 { $$ = expr_list(px, EXPR_SET, @$, $2.list); }
  | '{' item clauses '}'              { $$ = expr_comprehension(px, @$, COMP_SET, $2, NULL, $3); }
  | '{' dict_items '}'                { $$ = expr_dict(px, @$, $2); }
  | '{' dict_items ',' '}'            { $$ = expr_dict(px, @$, $2); }
  | '{' expr ':' expr clauses '}'     { $$ = expr_comprehension(px, @$, COMP_DICT, $2, $4, $5); }
  ;

items
  : item                              { $$.list = exprs_of(px, $1); $$.has_comma = false; }
  | items ',' item                    { PUSH($1.list, $3); $$ = $1; $$.has_comma = true; }
  ;

item
  : named
  | '*' bitor                         { $$ = expr_starred(px, @$, $2); }
  | expr AS bitor                     { $$ = expr_as(px, @$, $1, $3); }
  ;

dict_items
  : dict_item                         { $$ = NEW(DictVec); PUSH($$, $1); }
  | dict_items ',' dict_item          { PUSH($1, $3); $$ = $1; }
  ;

dict_item
  : expr ':' expr                     { $$ = (DictItem){$1, $3}; }
  | POW bitor                         { $$ = (DictItem){NULL, $2}; }
  ;

strings
  : STRING                            { $$ = NEW(SpanVec); PUSH($$, @1); }
  | strings STRING                    { PUSH($1, @2); $$ = $1; }
  ;

%%

// Bison calls this when its stack is full; syntax errors come through grammar_report_syntax_error.
static void grammar_error(const Span *span, Parser *px, void *scanner, const char *text) {
  (void)scanner;
  (void)text;
  px_error(px, DIAG_nesting, *span, "this is nested too deeply");
  px->is_fatal = true;
}

static int yyreport_syntax_error(const yypcontext_t *cx, Parser *px, void *scanner) {
  (void)scanner;
  yysymbol_kind_t kinds[YYNTOKENS];
  const char *names[YYNTOKENS];
  int count = yypcontext_expected_tokens(cx, kinds, YYNTOKENS);
  for (int i = 0; i < count; i++) names[i] = yysymbol_name(kinds[i]);
  explain_unexpected(px, *yypcontext_location(cx), names, count > 0 ? count : 0);
  return 0;
}

// Constructors of the tree. Each computes its node's depth and refuses a node that would be deeper than the
// bound that ast.h promises; what stands in for it then is a leaf, and the parser gives up on the text.
#include "syntax/ast.h"

#include "syntax/syntax_internal.h"

static const char as_what[] = "an 'as' clause outside of a 'with' statement";

Expr *expr_new(Parser *px, ExprKind kind, Span span) {
  Expr *expr = ARENA_NEW(px->arena, Expr);
  expr->kind = kind;
  expr->span = span;
  expr->depth = 1;
  return expr;
}

static int max_int(int a, int b) {
  return a > b ? a : b;
}

static int depth_of(const Expr *expr) {
  return expr ? expr->depth : 0;
}

static int depth_of_all(const ExprVec *exprs) {
  int depth = 0;
  for (int i = 0; i < exprs->len; i++) depth = max_int(depth, depth_of(exprs->data[i]));
  return depth;
}

// A node above parts of depth `below`. When that is too deep: reports, and answers a leaf without parts.
static Expr *node(Parser *px, ExprKind kind, Span span, int below) {
  if (below >= AST_MAX_EXPR_DEPTH) {
    px_error(px, DIAG_nesting, span, "this expression is nested more than %d levels deep",
             AST_MAX_EXPR_DEPTH);
    px->is_fatal = true;
    return NULL;
  }
  Expr *expr = expr_new(px, kind, span);
  expr->depth = (uint16_t)(below + 1);
  return expr;
}

static const Expr *stand_in(Parser *px, Span span) {
  return expr_new(px, EXPR_NONE, span);
}

const Expr *expr_unsupported(Parser *px, Span span, const char *what) {
  Expr *expr = expr_new(px, EXPR_UNSUPPORTED, span);
  expr->what = what;
  return expr;
}

const Expr *expr_unary(Parser *px, Span span, UnaryOp op, const Expr *operand) {
  Expr *expr = node(px, EXPR_UNARY, span, depth_of(operand));
  if (!expr) return stand_in(px, span);
  expr->unary.op = op;
  expr->unary.operand = operand;
  return expr;
}

const Expr *expr_binary(Parser *px, Span span, BinaryOp op, const Expr *lhs, const Expr *rhs) {
  Expr *expr = node(px, EXPR_BINARY, span, max_int(depth_of(lhs), depth_of(rhs)));
  if (!expr) return stand_in(px, span);
  expr->binary.op = op;
  expr->binary.lhs = lhs;
  expr->binary.rhs = rhs;
  return expr;
}

const Expr *expr_attribute(Parser *px, Span span, const Expr *base, Name name, Span name_span) {
  Expr *expr = node(px, EXPR_ATTRIBUTE, span, depth_of(base));
  if (!expr) return stand_in(px, span);
  expr->attribute.base = base;
  expr->attribute.name = name;
  expr->attribute.name_span = name_span;
  return expr;
}

const Expr *expr_call(Parser *px, Span span, const Expr *callee, const ArgVec *args) {
  int below = depth_of(callee);
  for (int i = 0; i < args->len; i++) below = max_int(below, depth_of(args->data[i].value));
  Expr *expr = node(px, EXPR_CALL, span, below);
  if (!expr) return stand_in(px, span);
  expr->call.callee = callee;
  expr->call.args = args->data;
  expr->call.nargs = args->len;
  return expr;
}

const Expr *expr_subscript(Parser *px, Span span, const Expr *base, const ExprVec *indices, bool has_comma) {
  Expr *expr = node(px, EXPR_SUBSCRIPT, span, max_int(depth_of(base), depth_of_all(indices)));
  if (!expr) return stand_in(px, span);
  expr->subscript.base = base;
  expr->subscript.indices = list_of(indices);
  expr->subscript.has_comma = has_comma;
  return expr;
}

const Expr *expr_slice(Parser *px, Span span, const Expr *begin, const Expr *end, const Expr *step) {
  int below = max_int(depth_of(begin), max_int(depth_of(end), depth_of(step)));
  Expr *expr = node(px, EXPR_SLICE, span, below);
  if (!expr) return stand_in(px, span);
  expr->slice.begin = begin;
  expr->slice.end = end;
  expr->slice.step = step;
  return expr;
}

const Expr *expr_list(Parser *px, ExprKind kind, Span span, const ExprVec *elements) {
  Expr *expr = node(px, kind, span, depth_of_all(elements));
  if (!expr) return stand_in(px, span);
  expr->elements = list_of(elements);
  return expr;
}

const Expr *expr_dict(Parser *px, Span span, const DictVec *items) {
  int below = 0;
  for (int i = 0; i < items->len; i++) {
    below = max_int(below, max_int(depth_of(items->data[i].key), depth_of(items->data[i].value)));
  }
  Expr *expr = node(px, EXPR_DICT, span, below);
  if (!expr) return stand_in(px, span);
  expr->dict.items = items->data;
  expr->dict.count = items->len;
  return expr;
}

static int depth_of_clause(const CompClause *clause) {
  int depth = max_int(depth_of(clause->target), depth_of(clause->iterable));
  for (int i = 0; i < clause->conditions.count; i++) {
    depth = max_int(depth, depth_of(clause->conditions.items[i]));
  }
  return depth;
}

const Expr *expr_comprehension(Parser *px, Span span, CompKind kind, const Expr *element, const Expr *value,
                               const ClauseVec *clauses) {
  int below = max_int(depth_of(element), depth_of(value));
  for (int i = 0; i < clauses->len; i++) below = max_int(below, depth_of_clause(&clauses->data[i]));
  Expr *expr = node(px, EXPR_COMPREHENSION, span, below);
  if (!expr) return stand_in(px, span);
  expr->comprehension.kind = kind;
  expr->comprehension.element = element;
  expr->comprehension.value = value;
  expr->comprehension.clauses = clauses->data;
  expr->comprehension.nclauses = clauses->len;
  return expr;
}

const Expr *expr_compare(Parser *px, Span span, const Chain *chain) {
  Expr *expr = node(px, EXPR_COMPARE, span, depth_of_all(&chain->operands));
  if (!expr) return stand_in(px, span);
  expr->compare.operands = chain->operands.data;
  expr->compare.ops = chain->ops.data;
  expr->compare.nops = chain->ops.len;
  return expr;
}

const Expr *expr_bool(Parser *px, Span span, BoolOp op, const ExprVec *operands) {
  Expr *expr = node(px, EXPR_BOOL, span, depth_of_all(operands));
  if (!expr) return stand_in(px, span);
  expr->boolean.op = op;
  expr->boolean.operands = list_of(operands);
  return expr;
}

const Expr *expr_conditional(Parser *px, Span span, const Expr *condition, const Expr *then,
                             const Expr *otherwise) {
  int below = max_int(depth_of(condition), max_int(depth_of(then), depth_of(otherwise)));
  Expr *expr = node(px, EXPR_CONDITIONAL, span, below);
  if (!expr) return stand_in(px, span);
  expr->conditional.condition = condition;
  expr->conditional.then = then;
  expr->conditional.otherwise = otherwise;
  return expr;
}

const Expr *expr_lambda(Parser *px, Span span, ParamList params, const Expr *body) {
  int below = depth_of(body);
  for (int i = 0; i < params.count; i++) below = max_int(below, depth_of(params.items[i].default_value));
  Expr *expr = node(px, EXPR_LAMBDA, span, below);
  if (!expr) return stand_in(px, span);
  expr->lambda.params = params;
  expr->lambda.body = body;
  return expr;
}

const Expr *expr_starred(Parser *px, Span span, const Expr *inner) {
  Expr *expr = node(px, EXPR_STARRED, span, depth_of(inner));
  if (!expr) return stand_in(px, span);
  expr->inner = inner;
  return expr;
}

const Expr *expr_fstring(Parser *px, Span span, const FStringPart *parts, int count) {
  int below = 0;
  for (int i = 0; i < count; i++) {
    below = max_int(below, max_int(depth_of(parts[i].value), depth_of(parts[i].format)));
  }
  Expr *expr = node(px, EXPR_FSTRING, span, below);
  if (!expr) return stand_in(px, span);
  expr->fstring.parts = parts;
  expr->fstring.count = count;
  return expr;
}

// The node that stands for `context as target`, with what it stands for behind it.
typedef struct {
  Expr node;
  WithItem item;
} AsExpr;

const Expr *expr_as(Parser *px, Span span, const Expr *context, const Expr *target) {
  AsExpr *as = ARENA_NEW(px->arena, AsExpr);
  as->node.kind = EXPR_UNSUPPORTED;
  as->node.depth = 1;
  as->node.span = span;
  as->node.what = as_what;
  as->item.context = context;
  as->item.target = target;
  return &as->node;
}

static const WithItem *as_item(const Expr *expr) {
  bool is_as = expr->kind == EXPR_UNSUPPORTED && expr->what == as_what;
  return is_as ? &((const AsExpr *)(const void *)expr)->item : NULL;
}

void check_with_item(Parser *px, WithVec *items, const Expr *context, const Expr *target) {
  const WithItem *as = target ? NULL : as_item(context);
  if (as) {
    vec_push(px->arena, items, *as);
    check_target(px, as->target);
    return;
  }
  bool is_list = !target && context->kind == EXPR_TUPLE;
  for (int i = 0; is_list && i < context->elements.count; i++) {
    const Expr *element = context->elements.items[i];
    WithItem plain = {element, NULL};
    as = as_item(element);
    vec_push(px->arena, items, as ? *as : plain);
    if (as) check_target(px, as->target);
  }
  if (is_list) return;
  vec_push(px->arena, items, ((WithItem){context, target}));
  if (target) check_target(px, target);
}

Stmt *stmt_new(Parser *px, StmtKind kind, Span span) {
  Stmt *stmt = ARENA_NEW(px->arena, Stmt);
  stmt->kind = kind;
  stmt->span = span;
  return stmt;
}

Block block_of(const StmtVec *stmts) {
  return (Block){stmts->data, stmts->len};
}

ExprList list_of(const ExprVec *exprs) {
  return (ExprList){exprs->data, exprs->len};
}

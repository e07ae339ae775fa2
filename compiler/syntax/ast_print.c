// The tree as text, for --emit=ast and for tests: a node a line, `kind words @line:column`, children indented
// by two. A child that plays a part of its own is under a line that names the part ("body", "else",
// "default").
#include "syntax/syntax.h"

#include <string.h>

typedef struct {
  FILE *out;
  const Source *source;
  int depth;
} Printer;

static void print_expr(Printer *pr, const Expr *expr);
static void print_stmt(Printer *pr, const Stmt *stmt);

static const char *const unary_texts[] = {
    [UNARY_NEG] = "-", [UNARY_POS] = "+", [UNARY_INVERT] = "~", [UNARY_NOT] = "not"};

static const char *const binary_texts[] = {
    [BINARY_ADD] = "+",       [BINARY_SUB] = "-",  [BINARY_MUL] = "*",  [BINARY_DIV] = "/",
    [BINARY_FLOORDIV] = "//", [BINARY_MOD] = "%",  [BINARY_POW] = "**", [BINARY_MATMUL] = "@",
    [BINARY_SHL] = "<<",      [BINARY_SHR] = ">>", [BINARY_AND] = "&",  [BINARY_OR] = "|",
    [BINARY_XOR] = "^"};

static const char *const compare_texts[] = {
    [COMPARE_EQ] = "==", [COMPARE_NE] = "!=",        [COMPARE_LT] = "<",  [COMPARE_LE] = "<=",
    [COMPARE_GT] = ">",  [COMPARE_GE] = ">=",        [COMPARE_IN] = "in", [COMPARE_NOT_IN] = "not in",
    [COMPARE_IS] = "is", [COMPARE_IS_NOT] = "is not"};

const char *unary_op_text(UnaryOp op) {
  return unary_texts[op];
}

const char *binary_op_text(BinaryOp op) {
  return binary_texts[op];
}

const char *compare_op_text(CompareOp op) {
  return compare_texts[op];
}

static void begin_line(const Printer *pr) {
  fprintf(pr->out, "%*s", 2 * pr->depth, "");
}

static void end_line(const Printer *pr, Span span) {
  Place place = source_place(pr->source, span.begin);
  fprintf(pr->out, " @%d:%d\n", place.line, place.column);
}

// A whole line without further words.
static void print_line(const Printer *pr, const char *text, Span span) {
  begin_line(pr);
  fputs(text, pr->out);
  end_line(pr, span);
}

static void print_text(const Printer *pr, Str text) {
  fputc('"', pr->out);
  for (size_t i = 0; i < text.len; i++) {
    unsigned char c = (unsigned char)text.data[i];
    if (c == '"' || c == '\\')
      fprintf(pr->out, "\\%c", c);
    else if (c == '\n')
      fputs("\\n", pr->out);
    else if (c < 0x20 || c == 0x7f)
      fprintf(pr->out, "\\x%02x", c);
    else
      fputc(c, pr->out);
  }
  fputc('"', pr->out);
}

static void print_part(Printer *pr, const char *part, const Expr *expr) {
  if (!expr) return;
  begin_line(pr);
  fprintf(pr->out, "%s\n", part);
  pr->depth++;
  print_expr(pr, expr);
  pr->depth--;
}

static void print_list(Printer *pr, ExprList list) {
  for (int i = 0; i < list.count; i++) print_expr(pr, list.items[i]);
}

static void print_params(Printer *pr, ParamList params) {
  static const char *const kinds[] = {[PARAM_POSITIONAL_ONLY] = "positional-only ",
                                      [PARAM_NORMAL] = "",
                                      [PARAM_STAR] = "*",
                                      [PARAM_KEYWORD_ONLY] = "keyword-only ",
                                      [PARAM_DOUBLE_STAR] = "**"};
  for (int i = 0; i < params.count; i++) {
    const Param *param = &params.items[i];
    begin_line(pr);
    fprintf(pr->out, "param %s%s", kinds[param->kind], param->name);
    end_line(pr, param->name_span);
    pr->depth++;
    print_part(pr, "annotation", param->annotation);
    print_part(pr, "default", param->default_value);
    pr->depth--;
  }
}

static void print_args(Printer *pr, const Expr *expr) {
  for (int i = 0; i < expr->call.nargs; i++) {
    const Arg *arg = &expr->call.args[i];
    if (arg->kind == ARG_POSITIONAL) {
      print_expr(pr, arg->value);
      continue;
    }
    begin_line(pr);
    fprintf(pr->out, "%s%s",
            arg->kind == ARG_KEYWORD ? "keyword "
            : arg->kind == ARG_STAR  ? "star"
                                     : "double-star",
            arg->kind == ARG_KEYWORD ? arg->name : "");
    end_line(pr, arg->span);
    pr->depth++;
    print_expr(pr, arg->value);
    pr->depth--;
  }
}

static void print_fstring_parts(Printer *pr, const Expr *expr) {
  for (int i = 0; i < expr->fstring.count; i++) {
    const FStringPart *part = &expr->fstring.parts[i];
    begin_line(pr);
    fputs(part->value ? "field" : "text", pr->out);
    if (part->text.len) {
      fputc(' ', pr->out);
      print_text(pr, part->text);
    }
    if (part->conversion) fprintf(pr->out, " !%c", part->conversion);
    end_line(pr, part->span);
    pr->depth++;
    if (part->value) print_expr(pr, part->value);
    print_part(pr, "format", part->format);
    pr->depth--;
  }
}

static void print_clauses(Printer *pr, const Expr *expr) {
  for (int i = 0; i < expr->comprehension.nclauses; i++) {
    const CompClause *clause = &expr->comprehension.clauses[i];
    print_part(pr, "for", clause->target);
    print_part(pr, "in", clause->iterable);
    for (int k = 0; k < clause->conditions.count; k++) print_part(pr, "if", clause->conditions.items[k]);
  }
}

// The node's own line, up to its place.
static void print_expr_head(Printer *pr, const Expr *expr) {
  static const char *const comps[] = {
      [COMP_LIST] = "list", [COMP_SET] = "set", [COMP_DICT] = "dict", [COMP_GENERATOR] = "generator"};
  FILE *out = pr->out;
  begin_line(pr);
  switch (expr->kind) {
  case EXPR_INT:
    fprintf(out, "int %lld", (long long)expr->integer);
    break;
  case EXPR_FLOAT:
    fprintf(out, "float %.17g", expr->real);
    break;
  case EXPR_STRING:
    fputs(expr->string.is_bytes ? "bytes " : "string ", out);
    print_text(pr, expr->string.text);
    break;
  case EXPR_FSTRING:
    fputs("fstring", out);
    break;
  case EXPR_TRUE:
    fputs("True", out);
    break;
  case EXPR_FALSE:
    fputs("False", out);
    break;
  case EXPR_NONE:
    fputs("None", out);
    break;
  case EXPR_ELLIPSIS:
    fputs("ellipsis", out);
    break;
  case EXPR_NAME:
    fprintf(out, "name %s", expr->name);
    break;
  case EXPR_ATTRIBUTE:
    fprintf(out, "attribute %s", expr->attribute.name);
    break;
  case EXPR_CALL:
    fputs("call", out);
    break;
  case EXPR_SUBSCRIPT:
    fputs("subscript", out);
    break;
  case EXPR_SLICE:
    fputs("slice", out);
    break;
  case EXPR_TUPLE:
    fputs("tuple", out);
    break;
  case EXPR_LIST:
    fputs("list", out);
    break;
  case EXPR_SET:
    fputs("set", out);
    break;
  case EXPR_DICT:
    fputs("dict", out);
    break;
  case EXPR_COMPREHENSION:
    fprintf(out, "comprehension %s", comps[expr->comprehension.kind]);
    break;
  case EXPR_UNARY:
    fprintf(out, "unary %s", unary_op_text(expr->unary.op));
    break;
  case EXPR_BINARY:
    fprintf(out, "binary %s", binary_op_text(expr->binary.op));
    break;
  case EXPR_COMPARE:
    fputs("compare", out);
    for (int i = 0; i < expr->compare.nops; i++) fprintf(out, " %s", compare_op_text(expr->compare.ops[i]));
    break;
  case EXPR_BOOL:
    fputs(expr->boolean.op == BOOL_AND ? "and" : "or", out);
    break;
  case EXPR_CONDITIONAL:
    fputs("conditional", out);
    break;
  case EXPR_LAMBDA:
    fputs("lambda", out);
    break;
  case EXPR_STARRED:
    fputs("starred", out);
    break;
  case EXPR_UNSUPPORTED:
    fprintf(out, "unsupported: %s", expr->what);
    break;
  }
  end_line(pr, expr->span);
}

static void print_expr_parts(Printer *pr, const Expr *expr) {
  switch (expr->kind) {
  case EXPR_INT:
  case EXPR_FLOAT:
  case EXPR_STRING:
  case EXPR_TRUE:
  case EXPR_FALSE:
  case EXPR_NONE:
  case EXPR_ELLIPSIS:
  case EXPR_NAME:
  case EXPR_UNSUPPORTED:
    break;
  case EXPR_FSTRING:
    print_fstring_parts(pr, expr);
    break;
  case EXPR_ATTRIBUTE:
    print_expr(pr, expr->attribute.base);
    break;
  case EXPR_CALL:
    print_expr(pr, expr->call.callee);
    print_args(pr, expr);
    break;
  case EXPR_SUBSCRIPT:
    print_expr(pr, expr->subscript.base);
    print_list(pr, expr->subscript.indices);
    break;
  case EXPR_SLICE:
    print_part(pr, "begin", expr->slice.begin);
    print_part(pr, "end", expr->slice.end);
    print_part(pr, "step", expr->slice.step);
    break;
  case EXPR_TUPLE:
  case EXPR_LIST:
  case EXPR_SET:
    print_list(pr, expr->elements);
    break;
  case EXPR_DICT:
    for (int i = 0; i < expr->dict.count; i++) {
      print_part(pr, "key", expr->dict.items[i].key);
      print_part(pr, expr->dict.items[i].key ? "value" : "double-star", expr->dict.items[i].value);
    }
    break;
  case EXPR_COMPREHENSION:
    print_expr(pr, expr->comprehension.element);
    print_part(pr, "value", expr->comprehension.value);
    print_clauses(pr, expr);
    break;
  case EXPR_UNARY:
    print_expr(pr, expr->unary.operand);
    break;
  case EXPR_BINARY:
    print_expr(pr, expr->binary.lhs);
    print_expr(pr, expr->binary.rhs);
    break;
  case EXPR_COMPARE:
    for (int i = 0; i <= expr->compare.nops; i++) print_expr(pr, expr->compare.operands[i]);
    break;
  case EXPR_BOOL:
    print_list(pr, expr->boolean.operands);
    break;
  case EXPR_CONDITIONAL:
    print_part(pr, "if", expr->conditional.condition);
    print_part(pr, "then", expr->conditional.then);
    print_part(pr, "else", expr->conditional.otherwise);
    break;
  case EXPR_LAMBDA:
    print_params(pr, expr->lambda.params);
    print_part(pr, "body", expr->lambda.body);
    break;
  case EXPR_STARRED:
    print_expr(pr, expr->inner);
    break;
  }
}

static void print_expr(Printer *pr, const Expr *expr) {
  print_expr_head(pr, expr);
  pr->depth++;
  print_expr_parts(pr, expr);
  pr->depth--;
}

static void print_block(Printer *pr, const char *part, Block block) {
  if (block.count == 0) return;
  begin_line(pr);
  fprintf(pr->out, "%s\n", part);
  pr->depth++;
  for (int i = 0; i < block.count; i++) print_stmt(pr, block.stmts[i]);
  pr->depth--;
}

static void print_function(Printer *pr, const Stmt *stmt) {
  const FunctionDef *function = &stmt->function;
  begin_line(pr);
  fprintf(pr->out, "function %s", function->name);
  end_line(pr, stmt->span);
  pr->depth++;
  for (int i = 0; i < function->decorators.count; i++)
    print_part(pr, "decorator", function->decorators.items[i]);
  print_params(pr, function->params);
  print_part(pr, "returns", function->returns);
  print_block(pr, "body", function->body);
  pr->depth--;
}

static void print_branch(Printer *pr, const Stmt *stmt) {
  for (int i = 0; i < stmt->branch.narms; i++) {
    const IfArm *arm = &stmt->branch.arms[i];
    print_line(pr, i == 0 ? "if" : "elif", arm->span);
    pr->depth++;
    print_expr(pr, arm->condition);
    print_block(pr, "body", arm->body);
    pr->depth--;
  }
  print_block(pr, "else", stmt->branch.otherwise);
}

static void print_with(Printer *pr, const Stmt *stmt) {
  print_line(pr, "with", stmt->span);
  pr->depth++;
  for (int i = 0; i < stmt->with.nitems; i++) {
    print_expr(pr, stmt->with.items[i].context);
    print_part(pr, "as", stmt->with.items[i].target);
  }
  print_block(pr, "body", stmt->with.body);
  pr->depth--;
}

static void print_loop(Printer *pr, const Stmt *stmt) {
  bool is_for = stmt->kind == STMT_FOR;
  print_line(pr, is_for ? "for" : "while", stmt->span);
  pr->depth++;
  print_expr(pr, is_for ? stmt->loop.target : stmt->while_loop.condition);
  if (is_for) print_part(pr, "in", stmt->loop.iterable);
  print_block(pr, "body", is_for ? stmt->loop.body : stmt->while_loop.body);
  print_block(pr, "else", is_for ? stmt->loop.otherwise : stmt->while_loop.otherwise);
  pr->depth--;
}

static void print_assignment(Printer *pr, const Stmt *stmt) {
  begin_line(pr);
  if (stmt->kind == STMT_AUG_ASSIGN)
    fprintf(pr->out, "assign %s=", binary_op_text(stmt->aug_assign.op));
  else
    fputs("assign", pr->out);
  end_line(pr, stmt->span);
  pr->depth++;
  if (stmt->kind == STMT_ASSIGN) {
    print_list(pr, stmt->assign.targets);
    print_part(pr, "value", stmt->assign.value);
  } else if (stmt->kind == STMT_AUG_ASSIGN) {
    print_expr(pr, stmt->aug_assign.target);
    print_part(pr, "value", stmt->aug_assign.value);
  } else {
    print_expr(pr, stmt->ann_assign.target);
    print_part(pr, "annotation", stmt->ann_assign.annotation);
    print_part(pr, "value", stmt->ann_assign.value);
  }
  pr->depth--;
}

// A statement of one word and at most one expression.
static void print_simple(Printer *pr, const char *word, Span span, const Expr *value) {
  print_line(pr, word, span);
  pr->depth++;
  if (value) print_expr(pr, value);
  pr->depth--;
}

static void print_stmt(Printer *pr, const Stmt *stmt) {
  switch (stmt->kind) {
  case STMT_FUNCTION:
    print_function(pr, stmt);
    break;
  case STMT_RETURN:
    print_simple(pr, "return", stmt->span, stmt->value);
    break;
  case STMT_IF:
    print_branch(pr, stmt);
    break;
  case STMT_FOR:
  case STMT_WHILE:
    print_loop(pr, stmt);
    break;
  case STMT_WITH:
    print_with(pr, stmt);
    break;
  case STMT_ASSIGN:
  case STMT_AUG_ASSIGN:
  case STMT_ANN_ASSIGN:
    print_assignment(pr, stmt);
    break;
  case STMT_EXPR:
    print_simple(pr, "expression", stmt->span, stmt->value);
    break;
  case STMT_ASSERT:
    print_simple(pr, "assert", stmt->span, stmt->assertion.condition);
    pr->depth++;
    print_part(pr, "message", stmt->assertion.message);
    pr->depth--;
    break;
  case STMT_RAISE:
    print_simple(pr, "raise", stmt->span, stmt->value);
    break;
  case STMT_PASS:
    print_line(pr, "pass", stmt->span);
    break;
  case STMT_BREAK:
    print_line(pr, "break", stmt->span);
    break;
  case STMT_CONTINUE:
    print_line(pr, "continue", stmt->span);
    break;
  case STMT_UNSUPPORTED:
    begin_line(pr);
    fprintf(pr->out, "unsupported: %s", stmt->what);
    end_line(pr, stmt->span);
    break;
  case STMT_UNPARSED:
    begin_line(pr);
    fprintf(pr->out, "unparsed function %s", stmt->unparsed.name);
    end_line(pr, stmt->span);
    break;
  }
}

void ast_print(FILE *out, const Module *module) {
  Printer pr = {out, module->source, 0};
  for (int i = 0; i < module->body.count; i++) print_stmt(&pr, module->body.stmts[i]);
}

// Rules of the language that the grammar leaves out, because a sentence about them is better than a syntax
// error.
#include "syntax/syntax_internal.h"

#include "base/map.h"

static const char *name_of_kind(const Expr *expr) {
  switch (expr->kind) {
  case EXPR_INT:
  case EXPR_FLOAT:
    return "a number";
  case EXPR_STRING:
  case EXPR_FSTRING:
    return "a string";
  case EXPR_TRUE:
    return "True";
  case EXPR_FALSE:
    return "False";
  case EXPR_NONE:
    return "None";
  case EXPR_ELLIPSIS:
    return "'...'";
  case EXPR_CALL:
    return "the result of a call";
  case EXPR_SLICE:
    return "a slice";
  case EXPR_SET:
  case EXPR_DICT:
    return "a set or dictionary";
  case EXPR_COMPREHENSION:
    return "a comprehension";
  case EXPR_COMPARE:
    return "a comparison";
  case EXPR_CONDITIONAL:
    return "a conditional expression";
  case EXPR_LAMBDA:
    return "a lambda";
  case EXPR_UNARY:
  case EXPR_BINARY:
  case EXPR_BOOL:
    return "the result of an operator";
  case EXPR_UNSUPPORTED:
    return expr->what;
  case EXPR_NAME:
  case EXPR_ATTRIBUTE:
  case EXPR_SUBSCRIPT:
  case EXPR_TUPLE:
  case EXPR_LIST:
  case EXPR_STARRED:
    break;
  }
  return NULL;
}

void check_target(Parser *px, const Expr *target) {
  if (target->kind == EXPR_STARRED) {
    check_target(px, target->inner);
  } else if (target->kind == EXPR_TUPLE || target->kind == EXPR_LIST) {
    for (int i = 0; i < target->elements.count; i++) check_target(px, target->elements.items[i]);
  } else {
    const char *what = name_of_kind(target);
    if (!what || !px_error(px, DIAG_syntax, target->span, "%s cannot be assigned to", what)) return;
    if (target->kind == EXPR_COMPARE) diag_hint(px->ds, "'==' compares; '=' assigns");
  }
}

const Expr *check_single(Parser *px, const Expr *expr) {
  if (expr->kind == EXPR_STARRED) {
    px_error(px, DIAG_syntax, expr->span, "a starred expression stands only in a tuple, list, set or call");
  }
  return expr;
}

static void check_repeated(Parser *px, Map *seen, Name name, Span span, const char *what) {
  const Span *earlier = map_get(seen, name);
  if (earlier) {
    if (px_error(px, DIAG_syntax, span, "the %s '%s' is given twice", what, name)) {
      diag_note(px->ds, *earlier, "first given here");
    }
    return;
  }
  Span *kept = ARENA_NEW(px->arena, Span);
  *kept = span;
  map_put(seen, name, kept);
}

static ParamKind kind_after(ParamKind previous, const Param *param) {
  if (param->kind != PARAM_NORMAL) return param->kind;
  return previous == PARAM_STAR || previous == PARAM_KEYWORD_ONLY ? PARAM_KEYWORD_ONLY : PARAM_NORMAL;
}

static void check_order(Parser *px, const Param *param, ParamKind previous, bool has_default) {
  if (previous == PARAM_DOUBLE_STAR) {
    px_error(px, DIAG_syntax, param->span, "nothing can follow the parameter with '**'");
  } else if (param->kind == PARAM_STAR && (previous == PARAM_STAR || previous == PARAM_KEYWORD_ONLY)) {
    px_error(px, DIAG_syntax, param->span, "there is already a '*' among the parameters");
  } else if (param->kind == PARAM_POSITIONAL_ONLY &&
             (previous == PARAM_STAR || previous == PARAM_KEYWORD_ONLY)) {
    px_error(px, DIAG_syntax, param->span, "'/' must come before '*'");
  } else if (param->kind == PARAM_NORMAL && has_default && !param->default_value) {
    px_error(px, DIAG_syntax, param->span, "the parameter '%s' has no default value, but one before it has",
             param->name);
  }
}

ParamList check_params(Parser *px, const ParamVec *params) {
  ParamVec kept = {0};
  Map *seen = map_new(px->arena);
  ParamKind previous = PARAM_NORMAL;
  bool has_default = false, has_slash = false;
  for (int i = 0; i < params->len; i++) {
    Param param = params->data[i];
    param.kind = kind_after(previous, &param);
    check_order(px, &param, previous, has_default);
    if (!param.name && param.kind == PARAM_POSITIONAL_ONLY) {
      if (kept.len == 0 || has_slash)
        px_error(px, DIAG_syntax, param.span, "'/' stands once, after a parameter");
      for (int k = 0; !has_slash && k < kept.len; k++) kept.data[k].kind = PARAM_POSITIONAL_ONLY;
      has_slash = true;
      continue;
    }
    previous = param.kind;
    if (!param.name) continue;
    has_default |= param.default_value != NULL;
    check_repeated(px, seen, param.name, param.name_span, "parameter");
    vec_push(px->arena, &kept, param);
  }
  const Param *last = params->len ? &params->data[params->len - 1] : NULL;
  if (last && last->kind == PARAM_STAR && !last->name) {
    px_error(px, DIAG_syntax, last->span, "a parameter must follow '*'");
  }
  return (ParamList){kept.data, kept.len};
}

void check_args(Parser *px, const ArgVec *args) {
  const Arg *keyword = NULL;
  Map *seen = args->len > 1 ? map_new(px->arena) : NULL;
  for (int i = 0; i < args->len; i++) {
    const Arg *arg = &args->data[i];
    if (arg->kind == ARG_KEYWORD && seen) check_repeated(px, seen, arg->name, arg->name_span, "argument");
    if (arg->kind == ARG_KEYWORD || arg->kind == ARG_DOUBLE_STAR) {
      keyword = arg;
    } else if (arg->kind == ARG_POSITIONAL && keyword) {
      if (px_error(px, DIAG_syntax, arg->span, "a positional argument cannot follow a keyword argument")) {
        diag_note(px->ds, keyword->span, "the keyword argument");
      }
    }
  }
}

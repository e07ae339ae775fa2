// Integer, comparison and boolean ops over sizes and constants, in 64 bits with floor semantics. The set is
// that of docs/launch-info.md.
#include "driver/launch_expr.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_EXPR_BYTES = 16 << 10 };

const char *launch_c_name(Arena *arena, const char *name) {
  static const char *const keywords[] = {
      "auto",   "break",    "case",     "char",     "const", "continue", "default", "do",     "double",
      "else",   "enum",     "extern",   "float",    "for",   "goto",     "if",      "inline", "int",
      "long",   "register", "restrict", "return",   "short", "signed",   "sizeof",  "static", "struct",
      "switch", "typedef",  "union",    "unsigned", "void",  "volatile", "while",   "bool",   "true",
      "false",  "class",    "new",      "delete",   "this",  "template"};
  for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
    if (!strcmp(keywords[i], name)) return text_printf(arena, "%s_", name);
  return name;
}

bool launch_is_sm_count(const TirOp *op) {
  return op->kind == OP_size && strcmp(op->name, TIR_SM_COUNT) == 0;
}

const char *launch_c_size(Arena *arena, const TirOp *op) {
  if (launch_is_sm_count(op)) return "tile_sms";
  return text_printf(arena, "args->%s", launch_c_name(arena, op->name));
}

static bool is_evaluable(OpKind kind) {
  static const OpKind kinds[] = {
      OP_add, OP_sub, OP_mul, OP_floordiv, OP_floormod, OP_truncdiv, OP_truncmod, OP_ceildiv, OP_min,
      OP_max, OP_lt,  OP_le,  OP_gt,       OP_ge,       OP_eq,       OP_ne,       OP_and,     OP_or,
      OP_xor, OP_not, OP_neg, OP_select,   OP_shl,      OP_shr,      OP_abs};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (kinds[i] == kind) return true;
  return false;
}

static bool print_expr(TextBuf *out, const TirValue *value, ExprStyle style) {
  const TirOp *op = value->op;
  int64_t number;
  if (out->len > MAX_EXPR_BYTES || dtype_is_float(value->type.dtype)) return false;
  if (tir_const_int(value, &number)) {
    textbuf_printf(out, style == EXPR_C && number == INT64_MIN ? "INT64_MIN" : "%" PRId64, number);
    return true;
  }
  bool number_given = op->kind == OP_param && dtype_is_int(value->type.dtype);
  if (op->kind == OP_size || number_given) {
    if (style == EXPR_C)
      textbuf_puts(out, launch_c_size(out->arena, op));
    else
      textbuf_puts(out, op->name);
    return true;
  }
  // A bool is 0 or 1 and an i32 keeps its value in 64 bits: such casts change nothing.
  if (op->kind == OP_cast && dtype_bits(value->type.dtype) >= dtype_bits(op->args[0]->type.dtype) &&
      dtype_is_int(value->type.dtype))
    return print_expr(out, op->args[0], style);
  if (!is_evaluable(op->kind)) return false;
  textbuf_printf(out, style == EXPR_C ? "tile_%s(" : "(%s ", op_def(op->kind)->name);
  for (int i = 0; i < op->nargs; i++) {
    if (i) textbuf_puts(out, style == EXPR_C ? ", " : " ");
    if (!print_expr(out, op->args[i], style)) return false;
  }
  textbuf_puts(out, ")");
  return true;
}

bool launch_expr_print(TextBuf *out, const TirValue *value, ExprStyle style, Span span, Diags *ds) {
  TextBuf text = {.arena = out->arena};
  if (print_expr(&text, value, style)) {
    textbuf_add(out, text.data, text.len);
    return true;
  }
  diag_error(ds, DIAG_launch_expression, span,
             text.len > MAX_EXPR_BYTES ? "this value takes too long an expression to be computed at launch"
                                       : "this value depends on something that cannot be computed at launch: "
                                         "only sizes, integer parameters and integers can");
  return false;
}

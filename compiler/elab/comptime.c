// Python's arithmetic on values known at compile time. Integers are 64 bits wide: a result that does not fit
// is reported, never wrapped. `//` and `%` floor for all signs.
#include "elab/elab_internal.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "syntax/syntax.h"

// ---- integers

int64_t comptime_floordiv(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return a % b != 0 && (a % b < 0) != (b < 0) ? quotient - 1 : quotient;
}

int64_t comptime_floormod(int64_t a, int64_t b) {
  int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static Value overflow(Elab *e, Span span) {
  diag_error(e->ds, DIAG_arithmetic, span, "the result does not fit 64 bits");
  return value_poison();
}

static Value zero_division(Elab *e, Span span) {
  diag_error(e->ds, DIAG_arithmetic, span, "division by zero");
  return value_poison();
}

static bool divides(int64_t a, int64_t b) {
  return b != 0 && !(a == INT64_MIN && b == -1);
}

static Value int_power(Elab *e, int64_t base, int64_t exponent, Span span) {
  if (exponent < 0) {
    if (base == 0) return zero_division(e, span);
    return value_float(pow((double)base, (double)exponent));
  }
  int64_t result = 1;
  if (base >= -1 && base <= 1) exponent = exponent ? 2 - exponent % 2 : 0;
  for (int64_t i = 0; i < exponent; i++)
    if (__builtin_mul_overflow(result, base, &result)) return overflow(e, span);
  return value_int(result);
}

static Value int_shift(Elab *e, BinaryOp op, int64_t a, int64_t b, Span span) {
  if (b < 0) {
    diag_error(e->ds, DIAG_arithmetic, span, "the shift count %" PRId64 " is negative", b);
    return value_poison();
  }
  if (op == BINARY_SHR) return value_int(b > 63 ? (a < 0 ? -1 : 0) : a >> b);
  int64_t result;
  if (a != 0 && (b > 62 || __builtin_mul_overflow(a, (int64_t)1 << b, &result))) return overflow(e, span);
  return value_int(a == 0 ? 0 : result);
}

static Value int_binary(Elab *e, BinaryOp op, int64_t a, int64_t b, Span span) {
  int64_t result;
  switch (op) {
  case BINARY_ADD:
    return __builtin_add_overflow(a, b, &result) ? overflow(e, span) : value_int(result);
  case BINARY_SUB:
    return __builtin_sub_overflow(a, b, &result) ? overflow(e, span) : value_int(result);
  case BINARY_MUL:
    return __builtin_mul_overflow(a, b, &result) ? overflow(e, span) : value_int(result);
  case BINARY_DIV:
    return b == 0 ? zero_division(e, span) : value_float((double)a / (double)b);
  case BINARY_FLOORDIV:
    if (divides(a, b)) return value_int(comptime_floordiv(a, b));
    return b == 0 ? zero_division(e, span) : overflow(e, span);
  case BINARY_MOD:
    if (divides(a, b)) return value_int(comptime_floormod(a, b));
    return b == 0 ? zero_division(e, span) : value_int(0);
  case BINARY_POW:
    return int_power(e, a, b, span);
  case BINARY_SHL:
  case BINARY_SHR:
    return int_shift(e, op, a, b, span);
  case BINARY_AND:
    return value_int(a & b);
  case BINARY_OR:
    return value_int(a | b);
  case BINARY_XOR:
    return value_int(a ^ b);
  case BINARY_MATMUL:
    break;
  }
  return value_poison();
}

Value comptime_ceildiv(Elab *e, int64_t a, int64_t b, Span span) {
  if (b == 0) return zero_division(e, span);
  if (!divides(a, b) || a == INT64_MIN) return overflow(e, span);
  return value_int(-comptime_floordiv(-a, b));
}

// ---- floats

// The remainder has the sign of the divisor, like -0.0 for a multiple of a negative one.
static double real_floormod(double a, double b) {
  double rest = fmod(a, b);
  if (rest == 0) return copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

// The quotient belongs to the exact remainder: a / b may round up to a whole number that it does not reach.
static double real_floordiv(double a, double b) {
  if (!isfinite(a) || !isfinite(b)) return floor(a / b);
  double quotient = (a - real_floormod(a, b)) / b;
  if (quotient == 0) return copysign(0.0, a / b);
  return round(quotient);
}

static Value real_binary(Elab *e, BinaryOp op, double a, double b, Span span) {
  switch (op) {
  case BINARY_ADD:
    return value_float(a + b);
  case BINARY_SUB:
    return value_float(a - b);
  case BINARY_MUL:
    return value_float(a * b);
  case BINARY_DIV:
    return b == 0 ? zero_division(e, span) : value_float(a / b);
  case BINARY_FLOORDIV:
    return b == 0 ? zero_division(e, span) : value_float(real_floordiv(a, b));
  case BINARY_MOD: {
    if (b == 0) return zero_division(e, span);
    return value_float(real_floormod(a, b));
  }
  case BINARY_POW: {
    double result = pow(a, b);
    if (isnan(result) && !isnan(a) && !isnan(b)) break;
    return value_float(result);
  }
  case BINARY_SHL:
  case BINARY_SHR:
  case BINARY_AND:
  case BINARY_OR:
  case BINARY_XOR:
  case BINARY_MATMUL:
    break;
  }
  diag_error(e->ds, DIAG_value_kind, span, "'%s' does not take floats", binary_op_text(op));
  return value_poison();
}

// ---- sequences and strings

static Value too_many(Elab *e, Span span) {
  diag_error(e->ds, DIAG_compile_time_limit, span, "more than %d items", MAX_ITEMS);
  return value_poison();
}

static Value concatenate(Elab *e, const Value *lhs, const Value *rhs, Span span) {
  if (lhs->sequence->items.len + rhs->sequence->items.len > MAX_ITEMS) return too_many(e, span);
  Value out =
      value_sequence(e->arena, lhs->kind, e->region, lhs->sequence->items.data, lhs->sequence->items.len);
  for (int i = 0; i < rhs->sequence->items.len; i++)
    vec_push(e->arena, &out.sequence->items, rhs->sequence->items.data[i]);
  return out;
}

static bool too_many_items(Elab *e, int64_t count, int64_t times, Span span) {
  if (count == 0 || times <= 0 || times <= MAX_ITEMS / count) return false;
  too_many(e, span);
  return true;
}

static Value repeat(Elab *e, const Value *sequence, int64_t times, Span span) {
  if (sequence->kind == VALUE_STRING) {
    TextBuf text = {.arena = e->arena};
    textbuf_puts(&text, "");
    if (too_many_items(e, (int64_t)sequence->string.len, times, span)) return value_poison();
    for (int64_t i = 0; i < times && sequence->string.len; i++)
      textbuf_add(&text, sequence->string.data, sequence->string.len);
    return value_string((Str){text.data, text.len});
  }
  const Value *items = sequence->sequence->items.data;
  int count = sequence->sequence->items.len;
  if (too_many_items(e, count, times, span)) return value_poison();
  Value out = value_sequence(e->arena, sequence->kind, e->region, NULL, 0);
  for (int64_t i = 0; i < times && count; i++)
    for (int k = 0; k < count; k++) vec_push(e->arena, &out.sequence->items, items[k]);
  return out;
}

static bool is_sequence(const Value *value) {
  return value->kind == VALUE_TUPLE || value->kind == VALUE_LIST || value->kind == VALUE_STRING;
}

static bool is_whole(const Value *value) {
  return value->kind == VALUE_INT || value->kind == VALUE_BOOL;
}

static Value sequence_binary(Elab *e, BinaryOp op, const Value *lhs, const Value *rhs, Span span) {
  if (op == BINARY_ADD && lhs->kind == rhs->kind && is_sequence(lhs)) {
    if (lhs->kind != VALUE_STRING) return concatenate(e, lhs, rhs, span);
    if (lhs->string.len + rhs->string.len > MAX_ITEMS) return too_many(e, span);
    TextBuf text = {.arena = e->arena};
    textbuf_puts(&text, "");
    textbuf_add(&text, lhs->string.data, lhs->string.len);
    textbuf_add(&text, rhs->string.data, rhs->string.len);
    return value_string((Str){text.data, text.len});
  }
  if (op == BINARY_MUL && is_sequence(lhs) && is_whole(rhs)) return repeat(e, lhs, value_as_int(rhs), span);
  if (op == BINARY_MUL && is_whole(lhs) && is_sequence(rhs)) return repeat(e, rhs, value_as_int(lhs), span);
  if (op == BINARY_MOD && lhs->kind == VALUE_STRING)
    return elab_not_supported(e, span, "formatting with '%'");
  diag_error(e->ds, DIAG_value_kind, span, "'%s' does not take %s and %s", binary_op_text(op),
             value_describe(e->arena, lhs), value_describe(e->arena, rhs));
  if (lhs->kind == VALUE_BUFFER || rhs->kind == VALUE_BUFFER || lhs->kind == VALUE_TILE ||
      rhs->kind == VALUE_TILE)
    diag_hint(e->ds, "arithmetic works on elements: index the buffer inside Parallel");
  return value_poison();
}

Value comptime_binary(Elab *e, BinaryOp op, const Value *lhs, const Value *rhs, Span span) {
  if (!value_is_number(lhs) || !value_is_number(rhs)) return sequence_binary(e, op, lhs, rhs, span);
  if (op == BINARY_MATMUL) return sequence_binary(e, BINARY_MATMUL, lhs, rhs, span);
  if (lhs->kind == VALUE_FLOAT || rhs->kind == VALUE_FLOAT)
    return real_binary(e, op, value_as_real(lhs), value_as_real(rhs), span);
  Value result = int_binary(e, op, value_as_int(lhs), value_as_int(rhs), span);
  bool logical = op == BINARY_AND || op == BINARY_OR || op == BINARY_XOR;
  if (logical && lhs->kind == VALUE_BOOL && rhs->kind == VALUE_BOOL) return value_bool(result.integer != 0);
  return result;
}

Value comptime_unary(Elab *e, UnaryOp op, const Value *operand, Span span) {
  if (op == UNARY_NOT) return value_bool(!value_truth(operand));
  if (!value_is_number(operand) || (op == UNARY_INVERT && operand->kind == VALUE_FLOAT)) {
    diag_error(e->ds, DIAG_value_kind, span, "'%s' does not take %s", unary_op_text(op),
               value_describe(e->arena, operand));
    return value_poison();
  }
  if (operand->kind == VALUE_FLOAT) return value_float(op == UNARY_NEG ? -operand->real : operand->real);
  int64_t value = value_as_int(operand);
  if (op == UNARY_POS) return value_int(value);
  if (op == UNARY_INVERT) return value_int(~value);
  return value == INT64_MIN ? overflow(e, span) : value_int(-value);
}

// ---- comparison

static bool contains(Elab *e, const Value *container, const Value *item, Span span, bool *found) {
  if (container->kind == VALUE_STRING && item->kind == VALUE_STRING) {
    *found = item->string.len == 0 || (container->string.len >= item->string.len &&
                                       memmem(container->string.data, container->string.len,
                                              item->string.data, item->string.len) != NULL);
    return true;
  }
  const Value *items;
  int count;
  *found = false;
  if (!eval_iterable(e, container, span, &items, &count)) return false;
  for (int i = 0; i < count; i++)
    if (value_equal(&items[i], item)) *found = true;
  return true;
}

static int order_text(Str a, Str b) {
  size_t shorter = a.len < b.len ? a.len : b.len;
  int order = shorter ? memcmp(a.data, b.data, shorter) : 0;
  return order ? order : (a.len > b.len) - (a.len < b.len);
}

// Sets *out to <0, 0, >0. False: the two have no order. NaN compares as unordered.
static bool order_of(const Value *lhs, const Value *rhs, int depth, int *out, bool *unordered) {
  *unordered = false;
  if (value_is_number(lhs) && value_is_number(rhs)) {
    if (lhs->kind == VALUE_FLOAT || rhs->kind == VALUE_FLOAT) {
      double a = value_as_real(lhs), b = value_as_real(rhs);
      *unordered = isnan(a) || isnan(b);
      *out = (a > b) - (a < b);
    } else {
      *out = (value_as_int(lhs) > value_as_int(rhs)) - (value_as_int(lhs) < value_as_int(rhs));
    }
    return true;
  }
  if (lhs->kind != rhs->kind) return false;
  if (lhs->kind == VALUE_STRING) {
    *out = order_text(lhs->string, rhs->string);
    return true;
  }
  if ((lhs->kind != VALUE_TUPLE && lhs->kind != VALUE_LIST) || depth > 100) return false;
  const Sequence *a = lhs->sequence, *b = rhs->sequence;
  for (int i = 0; i < a->items.len && i < b->items.len; i++)
    if (!value_equal(&a->items.data[i], &b->items.data[i]))
      return order_of(&a->items.data[i], &b->items.data[i], depth + 1, out, unordered);
  *out = (a->items.len > b->items.len) - (a->items.len < b->items.len);
  return true;
}

Value comptime_compare(Elab *e, CompareOp op, const Value *lhs, const Value *rhs, Span span) {
  bool found, unordered;
  int order = 0;
  switch (op) {
  case COMPARE_EQ:
    return value_bool(value_equal(lhs, rhs));
  case COMPARE_NE:
    return value_bool(!value_equal(lhs, rhs));
  case COMPARE_IS:
    return value_bool(lhs->kind == rhs->kind && value_equal(lhs, rhs));
  case COMPARE_IS_NOT:
    return value_bool(lhs->kind != rhs->kind || !value_equal(lhs, rhs));
  case COMPARE_IN:
  case COMPARE_NOT_IN:
    if (!contains(e, rhs, lhs, span, &found)) return value_poison();
    return value_bool(found == (op == COMPARE_IN));
  case COMPARE_LT:
  case COMPARE_LE:
  case COMPARE_GT:
  case COMPARE_GE:
    break;
  }
  if (!order_of(lhs, rhs, 0, &order, &unordered)) {
    diag_error(e->ds, DIAG_value_kind, span, "'%s' does not compare %s and %s", compare_op_text(op),
               value_describe(e->arena, lhs), value_describe(e->arena, rhs));
    return value_poison();
  }
  if (unordered) return value_bool(false);
  if (op == COMPARE_LT) return value_bool(order < 0);
  if (op == COMPARE_LE) return value_bool(order <= 0);
  return value_bool(op == COMPARE_GT ? order > 0 : order >= 0);
}

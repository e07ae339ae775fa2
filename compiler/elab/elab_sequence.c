// Python's sequences at compile time: items, slices, iteration, comprehensions, f-strings.
#include "elab/elab_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// ---- items

static Value dict_item(Elab *e, const Dict *dict, const Value *key, Span span) {
  for (int i = dict->keys.len - 1; i >= 0; i--)
    if (value_equal(&dict->keys.data[i], key)) return dict->values.data[i];
  diag_error(e->ds, DIAG_out_of_bounds, span, "the dict has no key %s", value_repr(e->arena, key, true));
  return value_poison();
}

// Python's rule: a negative index counts from the end.
static bool settle_index(Elab *e, int64_t index, int64_t length, Span span, int64_t *out) {
  *out = index < 0 ? index + length : index;
  if (*out >= 0 && *out < length) return true;
  diag_error(e->ds, DIAG_out_of_bounds, span,
             "index %" PRId64 " is out of bounds: there are %" PRId64 " items", index, length);
  return false;
}

static int64_t range_bound(const Value *bound, int64_t absent) {
  return bound->kind == VALUE_INT ? bound->integer : absent;
}

static bool range_is_known(const LoopSpec *range) {
  return range->lo->kind == VALUE_INT && range->hi->kind == VALUE_INT && range->step->kind == VALUE_INT;
}

static int64_t range_length(const LoopSpec *range) {
  int64_t lo = range_bound(range->lo, 0), hi = range_bound(range->hi, 0), step = range_bound(range->step, 1);
  if (step > 0 ? lo >= hi : lo <= hi) return 0;
  uint64_t distance = step > 0 ? (uint64_t)hi - (uint64_t)lo : (uint64_t)lo - (uint64_t)hi;
  uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
  uint64_t length = (distance - 1) / stride + 1;
  return length > INT64_MAX ? INT64_MAX : (int64_t)length;
}

Value eval_item(Elab *e, const Value *base, const Value *index, Span span, Span index_span) {
  int64_t number;
  if (base->kind == VALUE_DICT) return dict_item(e, base->dict, index, index_span);
  bool sequence = base->kind == VALUE_TUPLE || base->kind == VALUE_LIST || base->kind == VALUE_STRING ||
                  base->kind == VALUE_RANGE;
  if (!sequence) {
    diag_error(e->ds, DIAG_value_kind, span, "%s cannot be indexed", value_describe(e->arena, base));
    return value_poison();
  }
  if (!need_int(e, index, index_span, "the index of a compile-time sequence", &number)) return value_poison();
  if (base->kind == VALUE_STRING) {
    if (!settle_index(e, number, (int64_t)base->string.len, index_span, &number)) return value_poison();
    return value_string((Str){base->string.data + number, 1});
  }
  if (base->kind == VALUE_RANGE) {
    if (!range_is_known(base->loop) ||
        !settle_index(e, number, range_length(base->loop), index_span, &number))
      return value_poison();
    return value_int(base->loop->lo->integer + number * base->loop->step->integer);
  }
  const Sequence *items = base->sequence;
  if (!settle_index(e, number, items->items.len, index_span, &number)) return value_poison();
  return items->items.data[number];
}

static bool slice_bound(Elab *e, const Expr *expr, int64_t length, int64_t absent, int64_t *out) {
  *out = absent;
  if (!expr) return true;
  Value value = eval(e, expr);
  if (value.kind == VALUE_NONE) return true;
  if (!need_int(e, &value, expr->span, "the bound of a slice of a compile-time sequence", out)) return false;
  if (*out < 0) *out += length;
  if (*out < 0) *out = 0;
  if (*out > length) *out = length;
  return true;
}

Value eval_slice_of(Elab *e, const Value *base, const Expr *slice, Span span) {
  int64_t lo, hi;
  bool text = base->kind == VALUE_STRING;
  if (!text && base->kind != VALUE_TUPLE && base->kind != VALUE_LIST) {
    diag_error(e->ds, DIAG_value_kind, span, "%s cannot be sliced", value_describe(e->arena, base));
    return value_poison();
  }
  int64_t length = text ? (int64_t)base->string.len : base->sequence->items.len;
  if (slice->slice.step) return elab_not_supported(e, slice->span, "a step in a slice");
  if (!slice_bound(e, slice->slice.begin, length, 0, &lo) ||
      !slice_bound(e, slice->slice.end, length, length, &hi))
    return value_poison();
  if (hi < lo) hi = lo;
  if (text) return value_string((Str){base->string.data + lo, (size_t)(hi - lo)});
  return value_sequence(e->arena, base->kind, e->region, base->sequence->items.data + lo, (int)(hi - lo));
}

// ---- iteration

static bool list_range(Elab *e, const LoopSpec *range, Span span, const Value **items, int *count) {
  if (!range_is_known(range)) {
    const Value *staged = range->hi->kind == VALUE_INT ? range->lo : range->hi;
    report_not_compile_time(e, staged, span, "the bound of a range that is run at compile time");
    return false;
  }
  int64_t length = range_length(range);
  if (length > MAX_ITEMS) {
    diag_error(e->ds, DIAG_compile_time_limit, span,
               "a range of %" PRId64 " items; at most %d at compile time", length, MAX_ITEMS);
    return false;
  }
  Value *out = ARENA_ARRAY(e->arena, Value, length + 1);
  for (int64_t i = 0; i < length; i++) out[i] = value_int(range->lo->integer + i * range->step->integer);
  *items = out;
  *count = (int)length;
  return true;
}

bool eval_iterable(Elab *e, const Value *value, Span span, const Value **items, int *count) {
  if (value_is_poison(value)) return false;
  if (value->kind == VALUE_TUPLE || value->kind == VALUE_LIST) {
    *items = value->sequence->items.data;
    *count = value->sequence->items.len;
    return true;
  }
  if (value->kind == VALUE_DICT) {
    *items = value->dict->keys.data;
    *count = value->dict->keys.len;
    return true;
  }
  if (value->kind == VALUE_RANGE) return list_range(e, value->loop, span, items, count);
  if (value->kind == VALUE_STRING) {
    Value *out = ARENA_ARRAY(e->arena, Value, value->string.len + 1);
    for (size_t i = 0; i < value->string.len; i++) out[i] = value_string((Str){value->string.data + i, 1});
    *items = out;
    *count = (int)value->string.len;
    return true;
  }
  diag_error(e->ds, DIAG_value_kind, span, "%s cannot be iterated over", value_describe(e->arena, value));
  if (value->kind == VALUE_INT || value->kind == VALUE_STAGED) diag_hint(e->ds, "write range(…) around it");
  return false;
}

// ---- comprehensions

typedef struct {
  const Expr *expr;
  Value out;
} Comprehension;

static bool comprehend(Elab *e, Comprehension *cx, int clause);

static bool add_element(Elab *e, Comprehension *cx) {
  Value element = eval(e, cx->expr->comprehension.element);
  if (cx->out.kind != VALUE_DICT) {
    vec_push(e->arena, &cx->out.sequence->items, element);
    return cx->out.sequence->items.len <= MAX_ITEMS;
  }
  vec_push(e->arena, &cx->out.dict->keys, element);
  vec_push(e->arena, &cx->out.dict->values, eval(e, cx->expr->comprehension.value));
  return cx->out.dict->keys.len <= MAX_ITEMS;
}

static bool passes_conditions(Elab *e, const CompClause *clause, bool *out) {
  *out = true;
  for (int i = 0; i < clause->conditions.count && *out; i++) {
    Value condition = eval(e, clause->conditions.items[i]);
    if (value_is_poison(&condition)) return false;
    if (!need_bool(e, &condition, clause->conditions.items[i]->span, "the condition of a comprehension", out))
      return false;
  }
  return true;
}

static bool comprehend(Elab *e, Comprehension *cx, int index) {
  if (index == cx->expr->comprehension.nclauses) return add_element(e, cx);
  const CompClause *clause = &cx->expr->comprehension.clauses[index];
  const Value *items;
  int count;
  Value iterable = eval(e, clause->iterable);
  if (!eval_iterable(e, &iterable, clause->iterable->span, &items, &count)) return false;
  for (int i = 0; i < count && !e->stopped; i++) {
    bool wanted;
    assign_target(e, clause->target, &items[i]);
    if (!passes_conditions(e, clause, &wanted) || (wanted && !comprehend(e, cx, index + 1))) return false;
  }
  return !e->stopped;
}

Value eval_comprehension(Elab *e, const Expr *expr) {
  Comprehension cx = {.expr = expr};
  if (expr->comprehension.kind == COMP_SET) return elab_not_supported(e, expr->span, "a set");
  if (expr->comprehension.kind == COMP_DICT) {
    Dict *dict = ARENA_NEW(e->arena, Dict);
    dict->region = e->region;
    cx.out = (Value){.kind = VALUE_DICT, .dict = dict};
  } else {
    cx.out = value_sequence(e->arena, VALUE_LIST, e->region, NULL, 0);
  }
  Scope *outer = e->scope;
  e->scope = scope_new(e->arena, outer);
  bool done = comprehend(e, &cx, 0);
  e->scope = outer;
  return done ? cx.out : value_poison();
}

// ---- f-strings

// Python's format specification, as far as printf has it: [0][width][.precision][d f e g x %].
static bool format_number(Elab *e, const Value *value, const char *spec, TextBuf *out) {
  char flags[16], kind = 0;
  int used = 0;
  while (spec[used] && used < 10 && strchr("0123456789.-+<>", spec[used])) used++;
  if (spec[used]) kind = spec[used];
  if (used >= 10 || (kind && spec[used + 1]) || strpbrk(spec, "<>")) return false;
  memcpy(flags, spec, (size_t)used);
  flags[used] = 0;
  char format[24];
  if (kind == 'd' || kind == 'x' || (!kind && value->kind != VALUE_FLOAT)) {
    if (value->kind == VALUE_FLOAT || strchr(flags, '.')) return false;
    snprintf(format, sizeof format, "%%%sl%c", flags, kind ? kind : 'd');
    char text[80];
    snprintf(text, sizeof text, format, (long)value_as_int(value));
    textbuf_puts(out, text);
    return true;
  }
  if (kind && !strchr("feg", kind)) return false;
  snprintf(format, sizeof format, "%%%s%c", flags, kind ? kind : 'g');
  char text[400];
  snprintf(text, sizeof text, format, value_as_real(value));
  textbuf_puts(out, text);
  (void)e;
  return true;
}

// A staged value prints as its source text, since it has no number yet; where the device prints, it leaves a mark.
static bool add_staged_part(Elab *e, const FStringPart *part, const Value *value, TextBuf *out) {
  static const char mark = DEVICE_TEXT_MARK;
  if (!e->device_text) {
    textbuf_puts(out, elab_text(e, part->value->span));
    return true;
  }
  Value format = part->format ? eval_fstring(e, part->format) : value_string(str_of(""));
  TirValue *scalar = value_is_poison(&format) ? NULL : staged_scalar(e, value, part->value->span);
  if (!scalar) return false;
  DeviceValue printed = {scalar, text_copy(e->arena, format.string.data, format.string.len)};
  vec_push(e->arena, &e->device_text->values, printed);
  textbuf_add(out, &mark, 1);
  return true;
}

static bool add_part(Elab *e, const FStringPart *part, TextBuf *out) {
  textbuf_add(out, part->text.data, part->text.len);
  if (!part->value) return true;
  Value value = eval(e, part->value);
  if (value_is_poison(&value)) return false;
  if (value_is_staged(&value)) return add_staged_part(e, part, &value, out);
  Value format = part->format ? eval_fstring(e, part->format) : value_string(str_of(""));
  if (value_is_poison(&format)) return false;
  if (format.string.len == 0) {
    textbuf_puts(out, value_repr(e->arena, &value, part->conversion == 'r'));
    return true;
  }
  const char *spec = text_copy(e->arena, format.string.data, format.string.len);
  if (value_is_number(&value) && format_number(e, &value, spec, out)) return true;
  elab_not_supported(e, part->format->span, "this format specification");
  return false;
}

Value eval_fstring(Elab *e, const Expr *expr) {
  TextBuf out = {.arena = e->arena};
  textbuf_puts(&out, "");
  for (int i = 0; i < expr->fstring.count; i++)
    if (!add_part(e, &expr->fstring.parts[i], &out)) return value_poison();
  if (out.len > MAX_ITEMS) {
    diag_error(e->ds, DIAG_compile_time_limit, expr->span, "a string of more than %d bytes", MAX_ITEMS);
    return value_poison();
  }
  return value_string((Str){out.data, out.len});
}

// The few functions of Python itself that kernels use at compile time, and methods of values.
#include "elab/elab_internal.h"

#include <stdlib.h>
#include <string.h>

static bool given(const Value *value) {
  return value->kind != VALUE_ABSENT;
}

static Value run_len(Elab *e, const Call *call) {
  const Value *value = &call->args[0], *items;
  int count;
  if (value->kind == VALUE_BUFFER) {
    diag_error(e->ds, DIAG_value_kind, call->spans[0], "len of a buffer; its sizes are %s.shape",
               tir_buffer_name(value->staged));
    return value_poison();
  }
  if (!eval_iterable(e, value, call->spans[0], &items, &count)) return value_poison();
  return value_int(count);
}

static Value listed(Elab *e, const Call *call, ValueKind kind) {
  const Value *items = NULL;
  int count = 0;
  if (given(&call->args[0]) && !eval_iterable(e, &call->args[0], call->spans[0], &items, &count))
    return value_poison();
  return value_sequence(e->arena, kind, e->region, items, count);
}

static Value run_list(Elab *e, const Call *call) {
  return listed(e, call, VALUE_LIST);
}
static Value run_tuple(Elab *e, const Call *call) {
  return listed(e, call, VALUE_TUPLE);
}

static Value run_reversed(Elab *e, const Call *call) {
  Value out = listed(e, call, VALUE_LIST);
  if (value_is_poison(&out)) return out;
  Sequence *items = out.sequence;
  for (int i = 0; i < items->items.len / 2; i++) {
    Value swap = items->items.data[i];
    items->items.data[i] = items->items.data[items->items.len - 1 - i];
    items->items.data[items->items.len - 1 - i] = swap;
  }
  return out;
}

static Value run_enumerate(Elab *e, const Call *call) {
  const Value *items;
  int count;
  if (!eval_iterable(e, &call->args[0], call->spans[0], &items, &count)) return value_poison();
  Value out = value_sequence(e->arena, VALUE_LIST, e->region, NULL, 0);
  for (int i = 0; i < count; i++) {
    Value pair[2] = {value_int(i), items[i]};
    vec_push(e->arena, &out.sequence->items, value_sequence(e->arena, VALUE_TUPLE, e->region, pair, 2));
  }
  return out;
}

static Value run_zip(Elab *e, const Call *call) {
  enum { MAX_ZIPPED = 8 };
  const Value *items[MAX_ZIPPED];
  int counts[MAX_ZIPPED], shortest = MAX_ITEMS;
  if (call->nrest > MAX_ZIPPED) return elab_not_supported(e, call->span, "zip of more than 8 sequences");
  for (int i = 0; i < call->nrest; i++) {
    if (!eval_iterable(e, &call->rest[i], call->rest_spans[i], &items[i], &counts[i])) return value_poison();
    if (counts[i] < shortest) shortest = counts[i];
  }
  Value out = value_sequence(e->arena, VALUE_LIST, e->region, NULL, 0);
  for (int k = 0; k < shortest && call->nrest; k++) {
    Value row = value_sequence(e->arena, VALUE_TUPLE, e->region, NULL, 0);
    for (int i = 0; i < call->nrest; i++) vec_push(e->arena, &row.sequence->items, items[i][k]);
    vec_push(e->arena, &out.sequence->items, row);
  }
  return out;
}

static Value run_sum(Elab *e, const Call *call) {
  const Value *items;
  int count;
  Value total = given(&call->args[1]) ? call->args[1] : value_int(0);
  if (!eval_iterable(e, &call->args[0], call->spans[0], &items, &count)) return value_poison();
  for (int i = 0; i < count; i++) total = eval_binary(e, BINARY_ADD, &total, &items[i], call->span);
  return total;
}

static Value any_or_all(Elab *e, const Call *call, bool any) {
  const Value *items;
  int count;
  if (!eval_iterable(e, &call->args[0], call->spans[0], &items, &count)) return value_poison();
  for (int i = 0; i < count; i++) {
    bool truth;
    if (!need_bool(e, &items[i], call->spans[0], "an item", &truth)) return value_poison();
    if (truth == any) return value_bool(any);
  }
  return value_bool(!any);
}

static Value run_any(Elab *e, const Call *call) {
  return any_or_all(e, call, true);
}
static Value run_all(Elab *e, const Call *call) {
  return any_or_all(e, call, false);
}

// float("-inf"), int("12")
static Value read_number(Elab *e, const Call *call, DType dtype) {
  Str text = call->args[0].string;
  const char *start = text_copy(e->arena, text.data, text.len);
  char *end;
  double real = strtod(start, &end);
  long long whole = strtoll(start, NULL, 10);
  if (dtype == DTYPE_bool) return value_bool(text.len > 0);
  if (text.len > 0 && *end == 0 && dtype == DTYPE_f32) return value_float(real);
  if (text.len > 0 && *end == 0 && (double)whole == real) return value_int(whole);
  diag_error(e->ds, DIAG_value_kind, call->spans[0], "'%.*s' is no number",
             (int)(text.len < 40 ? text.len : 40), start);
  return value_poison();
}

// int, float and bool convert now what is known now, and cast what is staged.
static Value convert(Elab *e, const Call *call, DType dtype) {
  const Value *value = &call->args[0];
  if (value->kind == VALUE_STRING) return read_number(e, call, dtype);
  if (!value_is_number(value)) {
    TirValue *scalar = staged_as(e, value, dtype, call->spans[0]);
    return scalar ? value_staged(scalar) : value_poison();
  }
  if (dtype == DTYPE_bool) return value_bool(value_truth(value));
  if (dtype == DTYPE_f32) return value_float(value_as_real(value));
  double real = value_as_real(value);
  if (value->kind != VALUE_FLOAT) return value_int(value_as_int(value));
  if (real > -9e18 && real < 9e18) return value_int((int64_t)real);
  diag_error(e->ds, DIAG_arithmetic, call->spans[0], "%g is no 64-bit integer", real);
  return value_poison();
}

static Value run_int(Elab *e, const Call *call) {
  return convert(e, call, DTYPE_i32);
}
static Value run_float(Elab *e, const Call *call) {
  return convert(e, call, DTYPE_f32);
}
static Value run_bool(Elab *e, const Call *call) {
  return convert(e, call, DTYPE_bool);
}

static Value run_str(Elab *e, const Call *call) {
  return value_string(str_of(value_repr(e->arena, &call->args[0], false)));
}

const Builtin builtins_python[] = {
    {"len", "value", run_len},
    {"list", "items?", run_list},
    {"tuple", "items?", run_tuple},
    {"reversed", "items", run_reversed},
    {"enumerate", "items", run_enumerate},
    {"zip", "*sequences", run_zip},
    {"sum", "items start?", run_sum},
    {"any", "items", run_any},
    {"all", "items", run_all},
    {"int", "value", run_int},
    {"float", "value", run_float},
    {"bool", "value", run_bool},
    {"str", "value", run_str},
    {NULL, NULL, NULL},
};

// ---- methods

static bool has_kind(Elab *e, const Call *call, ValueKind kind) {
  if (call->self.kind == kind) return true;
  diag_error(e->ds, DIAG_unknown_name, call->callee, "%s has no method '%s'",
             value_describe(e->arena, &call->self), call->builtin->name);
  return false;
}

static Value method_astype(Elab *e, const Call *call) {
  DType dtype;
  if (!need_dtype(e, &call->args[0], call->spans[0], "the type of a conversion", &dtype))
    return value_poison();
  TirValue *scalar = staged_as(e, &call->self, dtype, call->span);
  return scalar ? value_staged(scalar) : value_poison();
}

static bool may_grow(Elab *e, const Call *call) {
  if (!has_kind(e, call, VALUE_LIST)) return false;
  if (call->self.sequence->region == e->region) return true;
  diag_error(e->ds, DIAG_staged_assignment, call->span,
             "this list was made outside this loop or branch: changing it here has no meaning on the device");
  return false;
}

static Value method_append(Elab *e, const Call *call) {
  if (may_grow(e, call)) vec_push(e->arena, &call->self.sequence->items, call->args[0]);
  return value_none();
}

static Value method_extend(Elab *e, const Call *call) {
  const Value *items;
  int count;
  if (!may_grow(e, call) || !eval_iterable(e, &call->args[0], call->spans[0], &items, &count))
    return value_none();
  for (int i = 0; i < count; i++) {
    Value item = items[i];
    vec_push(e->arena, &call->self.sequence->items, item);
  }
  return value_none();
}

static Value method_keys(Elab *e, const Call *call) {
  if (!has_kind(e, call, VALUE_DICT)) return value_poison();
  const Dict *dict = call->self.dict;
  return value_sequence(e->arena, VALUE_LIST, e->region, dict->keys.data, dict->keys.len);
}

static Value method_values(Elab *e, const Call *call) {
  if (!has_kind(e, call, VALUE_DICT)) return value_poison();
  const Dict *dict = call->self.dict;
  return value_sequence(e->arena, VALUE_LIST, e->region, dict->values.data, dict->values.len);
}

static Value method_items(Elab *e, const Call *call) {
  if (!has_kind(e, call, VALUE_DICT)) return value_poison();
  const Dict *dict = call->self.dict;
  Value out = value_sequence(e->arena, VALUE_LIST, e->region, NULL, 0);
  for (int i = 0; i < dict->keys.len; i++) {
    Value pair[2] = {dict->keys.data[i], dict->values.data[i]};
    vec_push(e->arena, &out.sequence->items, value_sequence(e->arena, VALUE_TUPLE, e->region, pair, 2));
  }
  return out;
}

static Value method_get(Elab *e, const Call *call) {
  if (!has_kind(e, call, VALUE_DICT)) return value_poison();
  const Dict *dict = call->self.dict;
  for (int i = dict->keys.len - 1; i >= 0; i--)
    if (value_equal(&dict->keys.data[i], &call->args[0])) return dict->values.data[i];
  return given(&call->args[1]) ? call->args[1] : value_none();
}

const Builtin builtins_method[] = {
    {"astype", "dtype", method_astype},  {"append", "item", method_append},
    {"extend", "items", method_extend},  {"keys", "", method_keys},
    {"values", "", method_values},       {"items", "", method_items},
    {"get", "key default?", method_get}, {NULL, NULL, NULL},
};

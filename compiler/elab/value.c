// Constructors and the questions Python asks of any value: equality, truth, repr.
#include "elab/value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "elab/elab_internal.h"

Value value_poison(void) {
  return (Value){.kind = VALUE_POISON};
}
Value value_none(void) {
  return (Value){.kind = VALUE_NONE};
}
Value value_bool(bool value) {
  return (Value){.kind = VALUE_BOOL, .boolean = value};
}
Value value_int(int64_t value) {
  return (Value){.kind = VALUE_INT, .integer = value};
}
Value value_float(double value) {
  return (Value){.kind = VALUE_FLOAT, .real = value};
}
Value value_string(Str text) {
  return (Value){.kind = VALUE_STRING, .string = text};
}
Value value_dtype(DType dtype) {
  return (Value){.kind = VALUE_DTYPE, .dtype = dtype};
}
Value value_staged(TirValue *value) {
  return (Value){.kind = VALUE_STAGED, .staged = value};
}
Value value_of_buffer(TirValue *value) {
  return (Value){.kind = VALUE_BUFFER, .staged = value};
}

Value value_sequence(Arena *arena, ValueKind kind, const Region *region, const Value *items, int count) {
  Sequence *sequence = ARENA_NEW(arena, Sequence);
  sequence->region = region;
  for (int i = 0; i < count; i++) vec_push(arena, &sequence->items, items[i]);
  return (Value){.kind = kind, .sequence = sequence};
}

bool value_is_poison(const Value *value) {
  return value->kind == VALUE_POISON;
}

bool value_is_number(const Value *value) {
  return value->kind == VALUE_INT || value->kind == VALUE_FLOAT || value->kind == VALUE_BOOL;
}

bool value_is_staged(const Value *value) {
  return value->kind == VALUE_STAGED || value->kind == VALUE_CELL ||
         (value->kind == VALUE_TILE && value->tile->points_only);
}

bool value_is_scalar(const Value *value) {
  return value_is_number(value) || value_is_staged(value);
}

double value_as_real(const Value *number) {
  if (number->kind == VALUE_FLOAT) return number->real;
  return (double)value_as_int(number);
}

int64_t value_as_int(const Value *number) {
  return number->kind == VALUE_BOOL ? number->boolean : number->integer;
}

// A list may hold itself, or share parts so that there are exponentially many ways through it: what is too
// deep or too long to compare is not equal.
typedef struct {
  int depth, steps;
} Comparison;

enum { MAX_COMPARE_DEPTH = 100, MAX_COMPARE_STEPS = 1000000 };

static bool equal(Comparison *cx, const Value *a, const Value *b);

static bool sequence_equal(Comparison *cx, const Sequence *a, const Sequence *b) {
  bool same = a->items.len == b->items.len && cx->depth < MAX_COMPARE_DEPTH;
  cx->depth++;
  for (int i = 0; same && i < a->items.len; i++) same = equal(cx, &a->items.data[i], &b->items.data[i]);
  cx->depth--;
  return same;
}

// A dtype equals its spelling, as in `in_dtype == "bfloat16"`.
static bool dtype_equals_text(DType dtype, Str text) {
  char word[32];
  DType parsed;
  if (text.len >= sizeof word) return false;
  memcpy(word, text.data, text.len);
  word[text.len] = 0;
  return dtype_parse(word, &parsed) && parsed == dtype;
}

static bool equal(Comparison *cx, const Value *a, const Value *b) {
  if (++cx->steps > MAX_COMPARE_STEPS) return false;
  if (value_is_number(a) && value_is_number(b)) {
    if (a->kind == VALUE_FLOAT || b->kind == VALUE_FLOAT) return value_as_real(a) == value_as_real(b);
    return value_as_int(a) == value_as_int(b);
  }
  if (a->kind == VALUE_DTYPE && b->kind == VALUE_STRING) return dtype_equals_text(a->dtype, b->string);
  if (a->kind == VALUE_STRING && b->kind == VALUE_DTYPE) return dtype_equals_text(b->dtype, a->string);
  if (a->kind != b->kind) return false;
  switch (a->kind) {
  case VALUE_STRING:
    return a->string.len == b->string.len && memcmp(a->string.data, b->string.data, a->string.len) == 0;
  case VALUE_DTYPE:
    return a->dtype == b->dtype;
  case VALUE_TUPLE:
  case VALUE_LIST:
    return sequence_equal(cx, a->sequence, b->sequence);
  case VALUE_NONE:
  case VALUE_ELLIPSIS:
  case VALUE_ABSENT:
    return true;
  case VALUE_FUNCTION:
    return a->function == b->function;
  case VALUE_BUILTIN:
    return a->builtin == b->builtin;
  case VALUE_STAGED:
  case VALUE_CELL:
  case VALUE_BUFFER:
    return a->staged == b->staged;
  case VALUE_DICT:
    return a->dict == b->dict;
  case VALUE_RANGE:
  case VALUE_LOOP:
    return a->loop == b->loop;
  case VALUE_METHOD:
    return a->method == b->method;
  case VALUE_MODULE:
    return strcmp(a->module, b->module) == 0;
  case VALUE_SCHEDULER:
    return a->scheduler == b->scheduler;
  case VALUE_KERNEL:
    return a->kernel == b->kernel;
  case VALUE_TENSOR:
    return a->tensor == b->tensor;
  case VALUE_PARAM:
    return a->param == b->param;
  case VALUE_TILE:
    return a->tile == b->tile;
  case VALUE_BOOL:
  case VALUE_INT:
  case VALUE_FLOAT:
  case VALUE_POISON:
    break;
  }
  return false;
}

bool value_equal(const Value *a, const Value *b) {
  Comparison cx = {0, 0};
  return equal(&cx, a, b);
}

bool value_truth(const Value *value) {
  switch (value->kind) {
  case VALUE_NONE:
  case VALUE_ABSENT:
    return false;
  case VALUE_BOOL:
    return value->boolean;
  case VALUE_INT:
    return value->integer != 0;
  case VALUE_FLOAT:
    return value->real != 0;
  case VALUE_STRING:
    return value->string.len > 0;
  case VALUE_TUPLE:
  case VALUE_LIST:
    return value->sequence->items.len > 0;
  case VALUE_DICT:
    return value->dict->keys.len > 0;
  case VALUE_POISON:
  case VALUE_ELLIPSIS:
  case VALUE_DTYPE:
  case VALUE_RANGE:
  case VALUE_FUNCTION:
  case VALUE_BUILTIN:
  case VALUE_METHOD:
  case VALUE_MODULE:
  case VALUE_LOOP:
  case VALUE_KERNEL:
  case VALUE_SCHEDULER:
  case VALUE_TENSOR:
  case VALUE_PARAM:
  case VALUE_STAGED:
  case VALUE_CELL:
  case VALUE_BUFFER:
  case VALUE_TILE:
    break;
  }
  return true;
}

// ---- text

// The shortest decimal that reads back as the same double, as Python writes it.
static const char *real_text(Arena *arena, double value) {
  if (isnan(value)) return "nan";
  if (isinf(value)) return value < 0 ? "-inf" : "inf";
  char text[40];
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    double back;
    if (sscanf(text, "%lf", &back) == 1 && back == value) break;
  }
  bool whole = strpbrk(text, ".en") == NULL;
  return text_printf(arena, "%s%s", text, whole ? ".0" : "");
}

static void repr_into(TextBuf *out, const Value *value, bool quoted, int depth);

static void repr_sequence(TextBuf *out, const Value *value, int depth) {
  bool tuple = value->kind == VALUE_TUPLE;
  const Sequence *sequence = value->sequence;
  textbuf_puts(out, tuple ? "(" : "[");
  for (int i = 0; i < sequence->items.len && i < 32; i++) {
    if (i) textbuf_puts(out, ", ");
    repr_into(out, &sequence->items.data[i], true, depth + 1);
  }
  if (sequence->items.len > 32) textbuf_puts(out, ", …");
  if (tuple && sequence->items.len == 1) textbuf_puts(out, ",");
  textbuf_puts(out, tuple ? ")" : "]");
}

static void repr_into(TextBuf *out, const Value *value, bool quoted, int depth) {
  if (depth > 8 || (depth > 0 && out->len > 4000)) {
    textbuf_puts(out, "…");
    return;
  }
  switch (value->kind) {
  case VALUE_NONE:
    textbuf_puts(out, "None");
    return;
  case VALUE_ELLIPSIS:
    textbuf_puts(out, "...");
    return;
  case VALUE_BOOL:
    textbuf_puts(out, value->boolean ? "True" : "False");
    return;
  case VALUE_INT:
    textbuf_printf(out, "%" PRId64, value->integer);
    return;
  case VALUE_FLOAT:
    textbuf_puts(out, real_text(out->arena, value->real));
    return;
  case VALUE_STRING:
    if (quoted) textbuf_puts(out, "'");
    textbuf_add(out, value->string.data, value->string.len);
    if (quoted) textbuf_puts(out, "'");
    return;
  case VALUE_DTYPE:
    textbuf_puts(out, dtype_name(value->dtype));
    return;
  case VALUE_TUPLE:
  case VALUE_LIST:
    repr_sequence(out, value, depth);
    return;
  case VALUE_POISON:
  case VALUE_ABSENT:
  case VALUE_DICT:
  case VALUE_RANGE:
  case VALUE_FUNCTION:
  case VALUE_BUILTIN:
  case VALUE_METHOD:
  case VALUE_MODULE:
  case VALUE_LOOP:
  case VALUE_KERNEL:
  case VALUE_SCHEDULER:
  case VALUE_TENSOR:
  case VALUE_PARAM:
  case VALUE_STAGED:
  case VALUE_CELL:
  case VALUE_BUFFER:
  case VALUE_TILE:
    textbuf_puts(out, value_describe(out->arena, value));
    return;
  }
}

const char *value_repr(Arena *arena, const Value *value, bool quoted) {
  TextBuf out = {.arena = arena};
  textbuf_puts(&out, "");
  repr_into(&out, value, quoted, 0);
  return out.data;
}

static const char *describe_buffer(Arena *arena, const TirValue *buffer) {
  TextBuf type = {.arena = arena};
  type_print(&type, &buffer->type);
  if (!buffer->name) return text_printf(arena, "a buffer %s", type.data);
  return text_printf(arena, "buffer '%s' (%s)", buffer->name, type.data);
}

const char *value_describe(Arena *arena, const Value *value) {
  switch (value->kind) {
  case VALUE_POISON:
    return "an error";
  case VALUE_ABSENT:
    return "nothing";
  case VALUE_NONE:
    return "None";
  case VALUE_ELLIPSIS:
    return "'...'";
  case VALUE_BOOL:
    return value->boolean ? "True" : "False";
  case VALUE_INT:
    return text_printf(arena, "the integer %" PRId64, value->integer);
  case VALUE_FLOAT:
    return text_printf(arena, "the float %s", real_text(arena, value->real));
  case VALUE_STRING:
    return "a string";
  case VALUE_DTYPE:
    return text_printf(arena, "the element type %s", dtype_name(value->dtype));
  case VALUE_TUPLE:
    return "a tuple";
  case VALUE_LIST:
    return "a list";
  case VALUE_DICT:
    return "a dict";
  case VALUE_RANGE:
    return "a range";
  case VALUE_FUNCTION:
    if (!value->function->def) return "a lambda";
    return text_printf(arena, "function '%s'", value->function->def->name);
  case VALUE_BUILTIN:
    return text_printf(arena, "'%s'", value->builtin->name);
  case VALUE_METHOD:
    return text_printf(arena, "method '%s'", value->method->builtin->name);
  case VALUE_MODULE:
    return text_printf(arena, "module '%s'", value->module);
  case VALUE_LOOP:
    return "a loop";
  case VALUE_SCHEDULER:
    return "a tile scheduler";
  case VALUE_KERNEL:
    return "a Kernel(...) context";
  case VALUE_TENSOR:
    return "a tensor declaration";
  case VALUE_PARAM:
    return text_printf(arena, "parameter '%s' without a value", value->param);
  case VALUE_STAGED:
    return text_printf(arena, "a staged %s", dtype_name(value->staged->type.dtype));
  case VALUE_CELL:
    return text_printf(arena, "a variable of type %s", dtype_name(value->staged->type.dtype));
  case VALUE_BUFFER:
    return describe_buffer(arena, value->staged);
  case VALUE_TILE:
    if (value->tile->points_only) return "an element of a buffer";
    return text_printf(arena, "a part of %s", describe_buffer(arena, value->tile->buffer));
  }
  return "a value";
}

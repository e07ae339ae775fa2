// "A value of this kind is needed here": each question reports why the answer is no. A staged value where a
// compile-time one is needed names the -D that would settle it, when sizes and parameters are all it depends
// on.
#include "elab/elab_internal.h"

#include <inttypes.h>
#include <string.h>

typedef struct {
  Name names[4];
  int count;
  int visits;
  bool on_device;  // depends on more than what the launch fixes
} Sources;

static void add_source(Sources *out, Name name) {
  for (int i = 0; i < out->count; i++)
    if (out->names[i] == name) return;
  if (out->count < 4) out->names[out->count++] = name;
}

static void find_sources(const TirValue *value, Sources *out) {
  if (!value || out->visits++ > 1000) return;
  const TirOp *op = value->op;
  if (op->kind == OP_size || op->kind == OP_param) {
    add_source(out, op->name);
    return;
  }
  if (!op_def(op->kind)->pure || op->kind == OP_block_idx || op->kind == OP_thread_idx) out->on_device = true;
  for (int i = 0; i < op->nargs; i++) find_sources(op->args[i], out);
}

void report_not_compile_time(Elab *e, const Value *value, Span span, const char *what) {
  Sources sources = {.on_device = value->kind != VALUE_STAGED};
  if (value->kind == VALUE_STAGED) find_sources(value->staged, &sources);
  if (sources.on_device || sources.count == 0) {
    diag_error(e->ds, DIAG_compile_time, span,
               "%s must be known at compile time; '%s' is computed on the device", what, elab_text(e, span));
    return;
  }
  TextBuf names = {.arena = e->arena}, options = {.arena = e->arena};
  for (int i = 0; i < sources.count; i++) {
    textbuf_printf(&names, "%s%s", i == 0 ? "" : i + 1 == sources.count ? " and " : ", ", sources.names[i]);
    textbuf_printf(&options, "%s-D %s=…", i ? " " : "", sources.names[i]);
  }
  diag_error(e->ds, DIAG_compile_time, span,
             "%s must be known at compile time; '%s' depends on %s, known only at launch", what,
             elab_text(e, span), names.data);
  diag_hint(e->ds, "%s fixes it", options.data);
}

static bool wrong_kind(Elab *e, const Value *value, Span span, const char *what, const char *wanted) {
  if (!value_is_poison(value))
    diag_error(e->ds, DIAG_value_kind, span, "%s must be %s, not %s", what, wanted,
               value_describe(e->arena, value));
  return false;
}

bool need_int(Elab *e, const Value *value, Span span, const char *what, int64_t *out) {
  if (value->kind == VALUE_INT || value->kind == VALUE_BOOL) {
    *out = value_as_int(value);
    return true;
  }
  if (value->kind == VALUE_STAGED && tir_const_int(value->staged, out)) return true;
  if (value_is_staged(value)) {
    report_not_compile_time(e, value, span, what);
    return false;
  }
  return wrong_kind(e, value, span, what, "an integer");
}

bool need_bool(Elab *e, const Value *value, Span span, const char *what, bool *out) {
  int64_t number;
  if (value->kind == VALUE_STAGED && tir_const_int(value->staged, &number)) {
    *out = number != 0;
    return true;
  }
  if (value_is_staged(value)) {
    report_not_compile_time(e, value, span, what);
    return false;
  }
  if (value->kind != VALUE_BOOL && value->kind != VALUE_INT)
    return wrong_kind(e, value, span, what, "True or False");
  *out = value_truth(value);
  return true;
}

bool value_names_dtype(const Value *value, DType *out) {
  char word[32];
  if (value->kind == VALUE_DTYPE) {
    *out = value->dtype;
    return true;
  }
  if (value->kind == VALUE_BUILTIN) {
    const char *name = value->builtin->name;
    bool python = strcmp(name, "int") == 0 || strcmp(name, "float") == 0 || strcmp(name, "bool") == 0;
    return python && dtype_parse(name, out);
  }
  if (value->kind != VALUE_STRING || value->string.len >= sizeof word) return false;
  memcpy(word, value->string.data, value->string.len);
  word[value->string.len] = 0;
  return dtype_parse(word, out);
}

// The element types of today; others parse, so that the message can say so.
static bool dtype_is_supported(DType dtype) {
  switch (dtype) {
  case DTYPE_f32:
  case DTYPE_f16:
  case DTYPE_bf16:
  case DTYPE_i32:
  case DTYPE_u32:
  case DTYPE_i8:
  case DTYPE_u8:
  case DTYPE_e4m3:
  case DTYPE_e5m2:
  case DTYPE_bool:
    return true;
  case DTYPE_f64:
  case DTYPE_tf32:
  case DTYPE_e2m3:
  case DTYPE_e3m2:
  case DTYPE_e2m1:
  case DTYPE_ue8m0:
  case DTYPE_i64:
  case DTYPE_i16:
  case DTYPE_u64:
  case DTYPE_u16:
  case DTYPE_COUNT:
    break;
  }
  return false;
}

static void hint_dtype(Elab *e, const char *name) {
  static const char *const names[] = {"float32", "float16", "bfloat16", "int32",       "uint32",
                                      "int8",    "uint8",   "bool",     "float8_e4m3", "float8_e5m2"};
  const char *near = text_nearest(name, names, sizeof names / sizeof *names);
  if (near) diag_hint(e->ds, "did you mean '%s'?", near);
}

// A name that nothing defines is a size in an annotation; where an element type must stand it is a slip.
static bool misspelt_dtype(Elab *e, const Value *value, Span span) {
  if (value->kind != VALUE_STAGED || value->staged->op->kind != OP_size) return false;
  Name name = value->staged->op->name;
  diag_error(e->ds, DIAG_value_kind, span, "'%s' is no element type", name);
  hint_dtype(e, name);
  if (e->kernel_scope) scope_bind(e->kernel_scope, name, value_poison(), e->host, span);
  return true;
}

bool need_dtype(Elab *e, const Value *value, Span span, const char *what, DType *out) {
  if (!value_names_dtype(value, out)) {
    if (value->kind == VALUE_STRING) {
      diag_error(e->ds, DIAG_value_kind, span, "%s: '%.*s' is no element type", what,
                 (int)(value->string.len < 60 ? value->string.len : 60), value->string.data);
      hint_dtype(e, text_copy(e->arena, value->string.data, value->string.len));
      return false;
    }
    return misspelt_dtype(e, value, span) ? false : wrong_kind(e, value, span, what, "an element type");
  }
  if (dtype_is_supported(*out)) return true;
  diag_error(e->ds, DIAG_not_supported, span,
             "element type %s is not supported yet; the legal ones are f32, f16, bf16, e4m3, e5m2, i32, u32, "
             "i8, u8, bool",
             dtype_name(*out));
  return false;
}

bool need_string(Elab *e, const Value *value, Span span, const char *what, Str *out) {
  if (value->kind != VALUE_STRING) return wrong_kind(e, value, span, what, "a string");
  *out = value->string;
  return true;
}

bool need_items(Elab *e, const Value *value, const Value **items, int *count) {
  if (value_is_poison(value)) return false;
  if (value->kind == VALUE_TUPLE || value->kind == VALUE_LIST) {
    *items = value->sequence->items.data;
    *count = value->sequence->items.len;
    for (int i = 0; i < *count; i++)
      if (value_is_poison(&(*items)[i])) return false;
    return true;
  }
  Value *one = ARENA_NEW(e->arena, Value);
  *one = *value;
  *items = one;
  *count = 1;
  return true;
}

// What a -D gives a parameter. Its text is read as a Python literal (elab.c); the parameter's annotation, or its default
// where it has none, says what the value must be, and what it is converted to.
#include "elab/elab_internal.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tir/fold.h"

// ---- conversions: NULL, or what the value is not

static bool whole(const Value *given, int64_t *out) {
  if (given->kind != VALUE_INT && given->kind != VALUE_BOOL) return false;
  *out = value_as_int(given);
  return true;
}

static const char *to_integer(Elab *e, DType dtype, const Value *given, Value *out) {
  int64_t number;
  int bits = dtype_bits(dtype);
  bool is_signed = dtype_class(dtype) != DTYPE_CLASS_UNSIGNED;
  if (!whole(given, &number)) return text_printf(e->arena, "%s, a whole number", dtype_name(dtype));
  *out = value_int(number);
  if (fold_fits(dtype, number)) return NULL;
  int64_t most = bits == 64 ? INT64_MAX : (INT64_C(1) << (bits - is_signed)) - 1;
  return text_printf(e->arena, "%s, %" PRId64 " to %" PRId64, dtype_name(dtype), is_signed ? -most - 1 : 0,
                     most);
}

static const char *to_float(Elab *e, DType dtype, const Value *given, Value *out) {
  double real;
  if (!value_is_number(given)) return text_printf(e->arena, "%s, a number", dtype_name(dtype));
  real = value_as_real(given);
  *out = value_float(fold_round(dtype, real, &real) ? real : value_as_real(given));
  if (!isfinite(out->real) && isfinite(value_as_real(given)))
    return text_printf(e->arena, "%s, which has no number that large", dtype_name(dtype));
  return NULL;
}

static const char *to_bool(const Value *given, Value *out) {
  int64_t number;
  if (!whole(given, &number) || (number != 0 && number != 1)) return "True or False";
  *out = value_bool(number != 0);
  return NULL;
}

static const char *to_dtype(Elab *e, DType dtype, const Value *given, Value *out) {
  if (dtype == DTYPE_bool) return to_bool(given, out);
  return dtype_is_float(dtype) ? to_float(e, dtype, given, out) : to_integer(e, dtype, given, out);
}

// int, float, bool, str, tuple, list. The name of an element type is a string too, and stays what it is.
static const char *to_python(Elab *e, const char *type, const Value *given, Value *out) {
  int64_t number;
  if (strcmp(type, "int") == 0) {
    if (!whole(given, &number)) return "a whole number";
    *out = value_int(number);
  } else if (strcmp(type, "float") == 0) {
    if (!value_is_number(given)) return "a number";
    *out = value_float(value_as_real(given));
  } else if (strcmp(type, "bool") == 0) {
    return to_bool(given, out);
  } else if (strcmp(type, "str") == 0) {
    if (value_is_number(given)) *out = value_string(str_of(value_repr(e->arena, given, false)));
  } else if (strcmp(type, "tuple") == 0 || strcmp(type, "list") == 0) {
    return text_printf(e->arena, "a %s, which no -D can be", type);
  }
  return NULL;
}

// Without an annotation the default speaks: what takes the place of an element type or a number must be one.
static const char *like_default(const Value *given, const Value *initial) {
  DType dtype;
  if (initial->kind == VALUE_DTYPE || (initial->kind == VALUE_STRING && value_names_dtype(initial, &dtype)))
    return value_names_dtype(given, &dtype) ? NULL : "an element type";
  return value_is_number(initial) && !value_is_number(given) ? "a number" : NULL;
}

static const char *convert(Elab *e, const Value *type, const Value *given, Value *out) {
  DType dtype;
  *out = *given;
  if (type->kind == VALUE_BUILTIN) return to_python(e, type->builtin->name, given, out);
  return value_names_dtype(type, &dtype) ? to_dtype(e, dtype, given, out) : NULL;
}

static Value report(Elab *e, Name name, const Value *given, const char *wanted) {
  diag_error(e->ds, DIAG_define, (Span){0, 0}, "%s: '%s' is %s",
             elab_spell_define(e, name, value_repr(e->arena, given, false)), name, wanted);
  return value_poison();
}

Value define_convert(Elab *e, Name name, const Value *type, const Value *initial, const Value *given) {
  Value value;
  bool clears = given->kind == VALUE_NONE && initial->kind == VALUE_NONE;
  const char *wanted = clears ? NULL : convert(e, type, given, &value);
  if (!wanted) wanted = like_default(given, initial);
  if (wanted) return report(e, name, given, wanted);
  return clears ? *given : value;
}

Value define_default(Elab *e, const Param *param, const Value *type, const Value *initial) {
  Value value;
  if (type->kind == VALUE_BUILTIN || !value_is_number(initial)) return *initial;
  const char *wanted = convert(e, type, initial, &value);
  if (!wanted) return value;
  diag_error(e->ds, DIAG_value_kind, param->default_value->span, "the default %s of '%s', which is %s",
             value_repr(e->arena, initial, false), param->name, wanted);
  return value_poison();
}

// ---- what an annotation says

// Looks at nothing that could be in error: annotations of Python's are for other readers too, like Optional[int].
static bool is_known(const Elab *e, const Expr *annotation) {
  DType dtype;
  if (annotation->kind == EXPR_ATTRIBUTE)
    return annotation->attribute.base->kind == EXPR_NAME &&
           !scope_find(e->scope, annotation->attribute.base->name) &&
           builtin_is_module(annotation->attribute.base->name) &&
           dtype_parse(annotation->attribute.name, &dtype);
  if (annotation->kind != EXPR_NAME) return annotation->kind == EXPR_STRING;
  const Binding *binding = scope_find(e->scope, annotation->name);
  if (!binding) return builtin_find(annotation->name) || dtype_parse(annotation->name, &dtype);
  return binding->lazy ? binding->lazy->kind == STMT_ASSIGN : binding->value.kind != VALUE_PARAM;
}

Value define_annotated_type(Elab *e, const Param *param) {
  if (!param->annotation || !is_known(e, param->annotation)) return value_none();
  Value type = eval(e, param->annotation);
  if (type.kind != VALUE_STRING) return type;
  const Builtin *builtin = builtin_find(text_copy(e->arena, type.string.data, type.string.len));
  return builtin ? (Value){.kind = VALUE_BUILTIN, .builtin = builtin} : type;
}

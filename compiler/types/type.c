// Types are small values: made, compared and printed here, and nothing is looked up.
#include "types/type.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

static const char *const space_names[SPACE_COUNT] = {
    [SPACE_GLOBAL] = "global",     [SPACE_SHARED] = "shared",   [SPACE_TMEM] = "tmem",
    [SPACE_FRAGMENT] = "fragment", [SPACE_BARRIER] = "barrier", [SPACE_LOCAL] = "local",
};

Type type_scalar(DType dtype) {
  return (Type){.kind = TYPE_SCALAR, .dtype = dtype};
}

Type type_cell(DType dtype) {
  return (Type){.kind = TYPE_CELL, .dtype = dtype};
}

Type type_token(void) {
  return (Type){.kind = TYPE_TOKEN};
}

Type type_buffer(DType dtype, Space space, int rank, const int64_t *shape) {
  assert(rank >= 0 && rank <= TYPE_MAX_RANK);
  Type type = {.kind = TYPE_BUFFER, .dtype = dtype, .space = space, .rank = rank};
  for (int i = 0; i < rank; i++) type.shape[i] = shape[i];
  return type;
}

bool type_equal(const Type *a, const Type *b) {
  if (a->kind != b->kind) return false;
  if (a->kind == TYPE_NONE || a->kind == TYPE_TOKEN) return true;
  if (a->dtype != b->dtype) return false;
  if (a->kind != TYPE_BUFFER) return true;
  if (a->space != b->space || a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; i++)
    if (a->shape[i] != b->shape[i]) return false;
  return true;
}

bool type_is_static(const Type *type) {
  for (int i = 0; i < type->rank; i++)
    if (type->shape[i] < 0) return false;
  return true;
}

int64_t type_elements(const Type *type) {
  int64_t count = 1;
  for (int i = 0; i < type->rank; i++) {
    assert(type->shape[i] >= 0);
    if (__builtin_mul_overflow(count, type->shape[i], &count)) count = INT64_MAX;
  }
  return count;
}

int64_t type_rows(const Type *type) {
  int64_t rows = 1;
  for (int d = 0; d + 1 < type->rank; d++) rows *= type->shape[d];
  return rows;
}

int64_t type_bytes(const Type *type) {
  int64_t elements = type_elements(type), bits;
  if (__builtin_mul_overflow(elements, (int64_t)dtype_bits(type->dtype), &bits)) return INT64_MAX;
  return bits / 8 + (bits % 8 != 0);
}

const char *space_name(Space space) {
  assert((unsigned)space < SPACE_COUNT);
  return space_names[space];
}

bool space_parse(Str text, Space *out) {
  for (int i = 0; i < SPACE_COUNT; i++) {
    if (!str_is(text, space_names[i])) continue;
    *out = (Space)i;
    return true;
  }
  return false;
}

static void print_buffer(TextBuf *out, const Type *type) {
  textbuf_printf(out, "%s[", dtype_name(type->dtype));
  for (int i = 0; i < type->rank; i++) {
    if (i > 0) textbuf_puts(out, ", ");
    if (type->shape[i] == DIM_DYNAMIC)
      textbuf_puts(out, "?");
    else
      textbuf_printf(out, "%" PRId64, type->shape[i]);
  }
  textbuf_printf(out, "] %s", space_name(type->space));
}

void type_print(TextBuf *out, const Type *type) {
  switch (type->kind) {
  case TYPE_NONE:
    textbuf_puts(out, "none");
    return;
  case TYPE_SCALAR:
    textbuf_puts(out, dtype_name(type->dtype));
    return;
  case TYPE_BUFFER:
    print_buffer(out, type);
    return;
  case TYPE_CELL:
    textbuf_printf(out, "cell %s", dtype_name(type->dtype));
    return;
  case TYPE_TOKEN:
    textbuf_puts(out, "token");
    return;
  }
}

// The text form, generic over OpDef: one line an op. A value prints by its user's name where only one value
// of the kernel has that name, and by its number elsewhere; an integer constant of the launch block by its value: %c64.
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tir/fold.h"
#include "tir/text.h"
#include "tir/text_names.h"

typedef struct {
  TextBuf *out;
  Map *uses;                // name -> how many values of the kernel have it, as a pointer-sized number
  bool constants_by_value;  // no two constants and no name of the kernel would look alike
} Printer;

static bool is_word(const char *text) {
  if (!text || isdigit((unsigned char)*text) || !*text) return false;
  for (; *text; text++)
    if (!isalnum((unsigned char)*text) && *text != '_' && (unsigned char)*text < 0x80) return false;
  return true;
}

static bool count_names(void *context, TirOp *op) {
  Map *uses = context;
  for (int i = 0; i < op->nresults; i++) {
    Name name = op->results[i]->name;
    if (name) map_put(uses, name, (void *)((uintptr_t)map_get(uses, name) + 1));
  }
  return true;
}

// "c64", "cm1" for -1, "c64_u32"; false: no integer constant that the launch block holds.
static bool constant_name(const TirOp *op, char out[64]) {
  if (op->kind != OP_const || op->results[0]->name || dtype_is_float(op->results[0]->type.dtype))
    return false;
  int64_t number = op->attrs[CONST_bits];
  DType dtype = op->results[0]->type.dtype;
  uint64_t magnitude = number < 0 ? -(uint64_t)number : (uint64_t)number;
  int length = snprintf(out, 64, "c%s%" PRIu64, number < 0 ? "m" : "", magnitude);
  if (dtype != DTYPE_i32) snprintf(out + length, 64 - (size_t)length, "_%s", dtype_name(dtype));
  return true;
}

static bool looks_like_constant(const char *name) {
  return name && name[0] == 'c' && isdigit((unsigned char)name[name[1] == 'm' ? 2 : 1]);
}

static bool find_likeness(void *context, TirOp *op) {
  (void)context;
  for (int i = 0; i < op->nresults; i++)
    if (looks_like_constant(op->results[i]->name)) return false;
  return true;
}

// The builder makes one constant of a value, a reader of text perhaps two.
static bool constants_differ(const TirBlock *launch) {
  enum { MANY = 500 };
  const TirOp *seen[MANY];
  int count = 0;
  for (const TirOp *op = launch->first; op; op = op->next) {
    if (op->kind != OP_const) continue;
    for (int i = 0; i < count; i++)
      if (seen[i]->attrs[CONST_bits] == op->attrs[CONST_bits] &&
          seen[i]->results[0]->type.dtype == op->results[0]->type.dtype)
        return false;
    if (count == MANY) return false;
    seen[count++] = op;
  }
  return true;
}

static void print_value(Printer *p, const TirValue *value) {
  char constant[64];
  if (!value) {
    textbuf_puts(p->out, "_");
  } else if (p->constants_by_value && tir_in_launch(value) && constant_name(value->op, constant)) {
    textbuf_printf(p->out, "%%%s", constant);
  } else if (!is_word(value->name)) {
    textbuf_printf(p->out, "%%%d", value->id);
  } else if ((uintptr_t)map_get(p->uses, value->name) == 1) {
    textbuf_printf(p->out, "%%%s", value->name);
  } else {
    textbuf_printf(p->out, "%%%s.%d", value->name, value->id);
  }
}

static void print_string(TextBuf *out, const char *text) {
  textbuf_puts(out, "\"");
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\')
      textbuf_printf(out, "\\%c", c);
    else if (c < 0x20 || c == 0x7f)
      textbuf_printf(out, "\\x%02x", c);
    else
      textbuf_add(out, text, 1);
  }
  textbuf_puts(out, "\"");
}

// The shortest decimal form that reads back as the same double; always recognisable as a float.
static void print_float(TextBuf *out, int64_t bits) {
  double value = fold_double(bits);
  char text[40];
  if (isnan(value)) {
    textbuf_printf(out, "0x%" PRIx64, (uint64_t)bits);
    return;
  }
  for (int digits = 6; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    if (strtod(text, NULL) == value) break;
  }
  textbuf_puts(out, text);
  if (isfinite(value) && !strpbrk(text, ".e")) textbuf_puts(out, ".0");
}

static void print_attr(TextBuf *out, const TirOp *op, const AttrDef *def, int64_t value) {
  textbuf_printf(out, "%s = ", def->name);
  switch (def->kind) {
  case ATTR_INT:
  case ATTR_MASK:
    textbuf_printf(out, "%" PRId64, value);
    return;
  case ATTR_BOOL:
    textbuf_puts(out, value ? "true" : "false");
    return;
  case ATTR_ENUM:
    textbuf_puts(out, def->names[value]);
    return;
  case ATTR_FLOAT_BITS:
    if (dtype_is_float(op->results[0]->type.dtype))
      print_float(out, value);
    else
      textbuf_printf(out, "%" PRId64, value);
    return;
  }
}

static void print_attrs(TextBuf *out, const TirOp *op, const OpDef *def) {
  const char *before = " {";
  for (int i = 0; i < OP_MAX_ATTRS && def->attrs[i].name; i++) {
    const AttrDef *attr = &def->attrs[i];
    if (op->attrs[i] == attr->initial && attr->kind != ATTR_FLOAT_BITS) continue;
    textbuf_puts(out, before);
    print_attr(out, op, attr, op->attrs[i]);
    before = ", ";
  }
  if (before[0] == ',') textbuf_puts(out, "}");
}

static void print_list(TextBuf *out, const int64_t *list, int count) {
  textbuf_puts(out, "[");
  for (int i = 0; i < count; i++) textbuf_printf(out, "%s%" PRId64, i ? ", " : "", list[i]);
  textbuf_puts(out, "]");
}

static void print_args(Printer *p, const TirOp *op) {
  int count = op->nargs;
  while (count > 0 && !op->args[count - 1]) count--;
  for (int i = 0; i < count; i++) {
    textbuf_puts(p->out, i ? ", " : " ");
    print_value(p, op->args[i]);
  }
}

static void print_results(Printer *p, const TirOp *op) {
  for (int i = 0; i < op->nresults; i++) {
    if (i) textbuf_puts(p->out, ", ");
    print_value(p, op->results[i]);
  }
  if (op->nresults) textbuf_puts(p->out, " = ");
}

static void print_types(TextBuf *out, const TirOp *op) {
  for (int i = 0; i < op->nresults; i++) {
    textbuf_puts(out, i ? ", " : " : ");
    type_print(out, &op->results[i]->type);
    if (!op->results[i]->layout) continue;
    textbuf_puts(out, " @ ");
    layout_print(out, op->results[i]->layout);
  }
}

static void indent(TextBuf *out, int depth) {
  for (int i = 0; i < depth; i++) textbuf_puts(out, "  ");
}

static void print_block(Printer *p, const TirBlock *block, int depth);

static void print_bodies(Printer *p, const TirOp *op, int depth) {
  for (int i = 0; i < op->nbodies; i++) {
    if (i > 0 && !op->bodies[i]->first) continue;
    textbuf_puts(p->out, i > 0 ? " else {\n" : " {\n");
    print_block(p, op->bodies[i], depth + 1);
    indent(p->out, depth);
    textbuf_puts(p->out, "}");
  }
}

static void print_op(Printer *p, const TirOp *op, int depth) {
  const OpDef *def = op_def(op->kind);
  indent(p->out, depth);
  print_results(p, op);
  textbuf_puts(p->out, def->name);
  if (def->named) {
    textbuf_puts(p->out, " ");
    print_string(p->out, op->name ? op->name : "");
  }
  print_args(p, op);
  print_attrs(p->out, op, def);
  if (def->listed) {
    textbuf_puts(p->out, " ");
    print_list(p->out, op->list, op->nlist);
  }
  print_types(p->out, op);
  print_bodies(p, op, depth);
  textbuf_puts(p->out, "\n");
}

static void print_block(Printer *p, const TirBlock *block, int depth) {
  for (const TirOp *op = block->first; op; op = op->next) print_op(p, op, depth);
}

static void print_facts(TextBuf *out, unsigned facts) {
  const char *before = " facts(";
  for (int i = 0; tir_fact_names[i]; i++) {
    if (!(facts & 1u << i)) continue;
    textbuf_printf(out, "%s%s", before, tir_fact_names[i]);
    before = ", ";
  }
  if (before[0] == ',') textbuf_puts(out, ")");
}

static void print_choices(TextBuf *out, const TirKernel *kernel) {
  const char *before = " annotate(";
  char number[16];
  for (int i = 0; i < CHOICE_COUNT; i++) {
    const TirChoice *choice = &kernel->choices[i];
    if (!choice->given) continue;
    textbuf_printf(out, "%s%s = %s", before, choice_def((ChoiceKind)i)->name,
                   choice_text((ChoiceKind)i, choice->value, false, number));
    before = ", ";
  }
  if (before[0] == ',') textbuf_puts(out, ")");
}

static void print_resources(Printer *p, const TirKernel *kernel) {
  for (int i = 0; i < kernel->maps.len; i++) {
    const TirMap *map = &kernel->maps.data[i];
    textbuf_printf(p->out, "  map %d ", i);
    print_value(p, map->tensor);
    textbuf_puts(p->out, " box ");
    print_list(p->out, map->box, map->tensor->type.rank);
    textbuf_printf(p->out, " swizzle %d %s\n", map->swizzle, map->store ? "store" : "load");
  }
  for (int i = 0; i < kernel->guards.len; i++) {
    textbuf_puts(p->out, "  guard ");
    print_value(p, kernel->guards.data[i].tensor);
    textbuf_puts(p->out, kernel->guards.data[i].store ? " store\n" : " load\n");
  }
  if (kernel->shared_bytes) textbuf_printf(p->out, "  shared %" PRId64 "\n", kernel->shared_bytes);
  if (kernel->tmem_columns) textbuf_printf(p->out, "  tmem %d\n", kernel->tmem_columns);
}

static void print_kernel(TextBuf *out, const TirKernel *kernel) {
  Printer p = {.out = out, .uses = map_new(out->arena)};
  p.constants_by_value = constants_differ(kernel->launch) && tir_walk(kernel->launch, find_likeness, NULL) &&
                         tir_walk(kernel->body, find_likeness, NULL);
  tir_walk(kernel->launch, count_names, p.uses);
  tir_walk(kernel->body, count_names, p.uses);
  textbuf_printf(out, "kernel @%s", kernel->name);
  if (kernel->variant) textbuf_printf(out, " variant(%s)", tir_variant_names[kernel->variant]);
  textbuf_printf(out, " threads(%d)", kernel->threads);
  if (kernel->block_order)
    textbuf_printf(out, " blocks(%s %d)", tir_block_order_names[kernel->block_order], kernel->panel);
  print_choices(out, kernel);
  print_facts(out, kernel->facts);
  textbuf_puts(out, " {\n");
  print_resources(&p, kernel);
  textbuf_puts(out, "launch:\n");
  print_block(&p, kernel->launch, 1);
  textbuf_puts(out, "body:\n");
  print_block(&p, kernel->body, 1);
  textbuf_puts(out, "}\n");
}

void tir_print(TextBuf *out, const TirModule *module) {
  for (int i = 0; i < module->kernels.len; i++) {
    if (i) textbuf_puts(out, "\n");
    print_kernel(out, module->kernels.data[i]);
  }
}

// print and device_assert. What is printed becomes a format of C's printf and its arguments; strings, numbers and
// what f-strings hold are part of the format where they are known now. Who printed stands in front of each line.
#include "elab/elab_internal.h"

#include <string.h>

#include "syntax/syntax.h"
#include "tir/roles.h"

enum { MAX_PRINTED = 32, MAX_ELEMENTS = 4096 };

enum { ARG_msg, ARG_thread, ARG_warp, ARG_block, ARG_warp_group_id, ARG_warp_id };

static bool given(const Value *value) {
  return value->kind != VALUE_ABSENT && value->kind != VALUE_NONE;
}

// A line that grows. Its values are computed by all threads, whoever prints them: an element of a fragment may have to
// come from another thread.
typedef struct {
  Elab *e;
  TextBuf format;
  VEC(TirValue *) args;
  Span span;
  bool ok;
} Line;

static Line line_new(Elab *e, Span span) {
  Line line = {.e = e, .format = {.arena = e->arena}, .span = span, .ok = true};
  textbuf_puts(&line.format, "");
  return line;
}

// ---- the parts of a line

static void add_constant(Line *line, const char *text, size_t len) {
  for (size_t i = 0; i < len; i++) {
    if (text[i] == '%') textbuf_puts(&line->format, "%");
    textbuf_add(&line->format, text + i, 1);
  }
}

// The conversion of a type without a format of its own, and with one that ends in a letter of the other kind.
static char natural_conversion(DType dtype) {
  if (dtype_is_float(dtype)) return 'g';
  return dtype_class(dtype) == DTYPE_CLASS_UNSIGNED ? 'u' : 'd';
}

static bool split_spec(const char *spec, char flags[16], char *kind) {
  size_t used = strspn(spec, "0123456789.-+");
  *kind = spec[used];
  if (used >= 12 || (*kind && (spec[used + 1] || !strchr("dxfeg", *kind)))) return false;
  memcpy(flags, spec, used);
  flags[used] = 0;
  return true;
}

static void add_staged(Line *line, TirValue *value, const char *spec) {
  char flags[16], kind;
  Elab *e = line->e;
  if (!value) {
    line->ok = false;
    return;
  }
  if (!split_spec(spec, flags, &kind)) {
    elab_not_supported(e, line->span, text_printf(e->arena, "the format specification '%s'", spec));
    line->ok = false;
    return;
  }
  bool is_float = dtype_is_float(value->type.dtype);
  Value scalar = value_staged(value);
  if (!kind && strchr(flags, '.')) kind = 'g';
  if (kind && strchr("feg", kind) && !is_float) value = staged_as(e, &scalar, DTYPE_f32, line->span);
  if (kind && strchr("dx", kind) && is_float) value = staged_as(e, &scalar, DTYPE_i32, line->span);
  DType dtype = value->type.dtype;
  if (!kind || kind == 'd') kind = natural_conversion(dtype);
  bool wide = !dtype_is_float(dtype) && dtype_bits(dtype) == 64;
  textbuf_printf(&line->format, "%%%s%s%c", flags, wide ? "ll" : "", kind);
  vec_push(e->arena, &line->args, value);
}

// A string in which f-strings left marks for values of the device.
static void add_string(Line *line, const char *text, size_t len) {
  DeviceText *device = line->e->device_text;
  size_t start = 0;
  for (size_t i = 0; i < len; i++) {
    if (text[i] != DEVICE_TEXT_MARK || !device || device->next >= device->values.len) continue;
    const DeviceValue *value = &device->values.data[device->next++];
    add_constant(line, text + start, i - start);
    add_staged(line, value->value, value->spec);
    start = i + 1;
  }
  add_constant(line, text + start, len - start);
}

static void add_value(Line *line, const Value *value);

static void add_items(Line *line, const Value *sequence) {
  bool list = sequence->kind == VALUE_LIST;
  add_constant(line, list ? "[" : "(", 1);
  for (int i = 0; i < sequence->sequence->items.len; i++) {
    if (i) add_constant(line, ", ", 2);
    add_value(line, &sequence->sequence->items.data[i]);
  }
  add_constant(line, list ? "]" : ")", 1);
}

static void add_value(Line *line, const Value *value) {
  if (value->kind == VALUE_STRING) {
    add_string(line, value->string.data, value->string.len);
  } else if (value->kind == VALUE_STAGED || value->kind == VALUE_CELL || value->kind == VALUE_TILE) {
    add_staged(line, staged_scalar(line->e, value, line->span), "");
  } else if (value->kind == VALUE_TUPLE || value->kind == VALUE_LIST) {
    add_items(line, value);
  } else if (value_is_poison(value)) {
    line->ok = false;
  } else {
    const char *text = value_repr(line->e->arena, value, false);
    add_constant(line, text, strlen(text));
  }
}

// "[block 3, 0 thread 17] "
static void add_origin(Line *line) {
  Elab *e = line->e;
  textbuf_puts(&line->format, "[block ");
  for (int i = 0; i < 3 && e->block_idx[i]; i++) {
    textbuf_puts(&line->format, i ? ", %d" : "%d");
    vec_push(e->arena, &line->args, e->block_idx[i]);
  }
  textbuf_puts(&line->format, " thread %d] ");
  vec_push(e->arena, &line->args, elab_thread_idx(e));
}

static bool emit_line(Line *line, TirBuilder *b) {
  Elab *e = line->e;
  if (!line->ok) return false;
  if (line->args.len > MAX_PRINTED) {
    diag_error(e->ds, DIAG_value_kind, line->span, "a line of %d values; at most %d are printed at once",
               line->args.len, MAX_PRINTED);
    return false;
  }
  b->span = line->span;
  TirOp *op = tir_op(b, OP_print, line->args.len, line->args.data, 0, NULL);
  op->name = intern(e->names, line->format.data);
  return true;
}

// ---- who prints

static bool add_equal(Elab *e, TirValue *value, int64_t number, TirValue **all) {
  TirValue *same = tir_binary(&e->b, OP_eq, value, tir_int(&e->b, number));
  *all = *all ? tir_binary(&e->b, OP_and, *all, same) : same;
  return true;
}

static bool filter_number(Elab *e, const Call *call, int arg, const char *what, int64_t limit, int64_t *out) {
  if (!need_int(e, &call->args[arg], call->spans[arg], what, out)) return false;
  if (*out >= 0 && *out < limit) return true;
  diag_error(e->ds, DIAG_value_kind, call->spans[arg], "%s %lld; there are 0 to %lld", what, (long long)*out,
             (long long)limit - 1);
  return false;
}

static bool filter_block(Elab *e, const Call *call, TirValue **all) {
  const Value *items;
  int count, rank = 0;
  int64_t number;
  while (rank < 3 && e->block_idx[rank]) rank++;
  if (!need_items(e, &call->args[ARG_block], &items, &count)) return false;
  if (count != rank) {
    diag_error(e->ds, DIAG_value_kind, call->spans[ARG_block],
               "block has %d numbers; the grid has %d dimensions", count, rank);
    return false;
  }
  for (int i = 0; i < rank; i++) {
    if (!need_int(e, &items[i], call->spans[ARG_block], "the number of a block", &number)) return false;
    add_equal(e, e->block_idx[i], number, all);
  }
  return true;
}

// The one thread that prints, or -1: all of those that the other filters leave.
static bool read_thread(Elab *e, const Call *call, int64_t *thread) {
  int64_t group = 0, warp = 0;
  *thread = -1;
  if (given(&call->args[ARG_thread])) return filter_number(e, call, ARG_thread, "thread", e->threads, thread);
  if (!given(&call->args[ARG_warp_group_id]) && !given(&call->args[ARG_warp_id])) return true;
  if (given(&call->args[ARG_warp_group_id]) &&
      !filter_number(e, call, ARG_warp_group_id, "warp_group_id", (e->threads + 127) / 128, &group))
    return false;
  if (given(&call->args[ARG_warp_id]) &&
      !filter_number(e, call, ARG_warp_id, "warp_id", e->threads / 32, &warp))
    return false;
  *thread = group * 128 + warp * 32;
  return true;
}

// The condition under which this thread prints; NULL: always.
static bool read_filters(Elab *e, const Call *call, bool one, TirValue **out) {
  int64_t thread, warp;
  *out = NULL;
  e->b.span = call->span;
  if (!read_thread(e, call, &thread)) return false;
  if (one && thread < 0) thread = tir_active_threads(e->b.block).lo;
  if (thread >= 0) add_equal(e, elab_thread_idx(e), thread, out);
  if (given(&call->args[ARG_warp])) {
    if (!filter_number(e, call, ARG_warp, "warp", e->threads / 32, &warp)) return false;
    TirValue *number = tir_binary(&e->b, OP_floordiv, elab_thread_idx(e), tir_int(&e->b, 32));
    add_equal(e, number, warp, out);
  }
  return !given(&call->args[ARG_block]) || filter_block(e, call, out);
}

static TirBuilder inside_if(Elab *e, TirValue *condition, Span span) {
  e->b.span = span;
  if (!condition) return e->b;
  TirOp *branch = tir_if(&e->b, condition);
  return tir_builder_at_end(e->module, branch->bodies[0], span);
}

// ---- whole buffers: a line an element

static void add_element(Line *line, const TirValue *buffer, TirValue *const *index, TirValue *element) {
  Elab *e = line->e;
  add_constant(line, tir_buffer_name(buffer), strlen(tir_buffer_name(buffer)));
  for (int d = 0; d < buffer->type.rank; d++) {
    textbuf_puts(&line->format, d ? ", %d" : "[%d");
    vec_push(e->arena, &line->args, index[d]);
  }
  textbuf_puts(&line->format, "] = ");
  add_staged(line, element, "");
  textbuf_puts(&line->format, "\n");
}

static bool printable(Elab *e, const TirValue *buffer, Span span) {
  const char *name = tir_buffer_name(buffer);
  if (buffer->type.space == SPACE_TMEM || buffer->type.space == SPACE_BARRIER) {
    diag_error(e->ds, DIAG_element_access, span, "'%s' is in %s memory, whose elements cannot be printed",
               name, space_name(buffer->type.space));
    if (buffer->type.space == SPACE_TMEM)
      diag_hint(e->ds, "copy it to a fragment first: copy(%s, fragment)", name);
    return false;
  }
  if (type_is_static(&buffer->type) && type_elements(&buffer->type) <= MAX_ELEMENTS) return true;
  diag_error(e->ds, DIAG_value_kind, span,
             "'%s' has more than %d elements to print, or a number known only at launch", name, MAX_ELEMENTS);
  diag_hint(e->ds, "print a part of it: %s[%s]", name, buffer->type.rank == 1 ? "0:8" : "0:8, 0:8");
  return false;
}

// The loops over the elements: of one thread over memory, of all threads over a fragment.
static TirBuilder element_loops(Elab *e, TirBuilder b, const TirValue *buffer, Span span, TirValue **index) {
  int rank = buffer->type.rank;
  TirValue *extents[TYPE_MAX_RANK];
  for (int d = 0; d < rank; d++) extents[d] = tir_int(&b, buffer->type.shape[d]);
  if (buffer->type.space == SPACE_FRAGMENT) {
    TirOp *loop = tir_parallel(&b, rank, extents);
    for (int d = 0; d < rank; d++) index[d] = loop->results[d];
    return tir_builder_at_end(e->module, loop->bodies[0], span);
  }
  for (int d = 0; d < rank; d++) {
    TirOp *loop = tir_for(&b, LOOP_SERIAL, tir_int(&b, 0), extents[d], tir_int(&b, 1));
    index[d] = loop->results[0];
    b = tir_builder_at_end(e->module, loop->bodies[0], span);
  }
  return b;
}

// An element of a part of a fragment is one of the fragment, whose parts are nothing by themselves.
static TirValue *load_element(Elab *e, TirValue *buffer, TirValue *const *index) {
  TirValue *at[TYPE_MAX_RANK];
  if (buffer->type.space != SPACE_FRAGMENT || buffer->op->kind != OP_view)
    return tir_load(&e->b, buffer, index, buffer->type.rank);
  const TirOp *view = buffer->op;
  for (int d = 0; d + 1 < view->nargs; d++) {
    bool dropped = view->attrs[VIEW_drop] >> d & 1;
    at[d] = dropped ? view->args[1 + d] : tir_binary(&e->b, OP_add, view->args[1 + d], *index++);
  }
  return load_element(e, view->args[0], at);
}

static Value print_buffer(Elab *e, const Call *call, const Value *value, Span span, const char *message) {
  TirValue *index[TYPE_MAX_RANK], *condition;
  TirValue *buffer = tile_operand(e, value, span, "what is printed");
  if (!buffer || !printable(e, buffer, span)) return value_poison();
  bool fragment = buffer->type.space == SPACE_FRAGMENT;
  if (fragment && !elab_placed(e, call->span, "print of a fragment", true)) return value_poison();
  if (!read_filters(e, call, !fragment, &condition)) return value_poison();
  // A fragment's loop is done by all threads together, so that the condition stands inside it.
  TirBuilder b =
      element_loops(e, fragment ? e->b : inside_if(e, condition, call->span), buffer, call->span, index);
  if (fragment && condition) {
    TirOp *branch = tir_if(&b, condition);
    b = tir_builder_at_end(e->module, branch->bodies[0], call->span);
  }
  TirBuilder outer = e->b;
  e->b = b;
  Line line = line_new(e, call->span);
  add_origin(&line);
  add_constant(&line, message, strlen(message));
  Value element = value_staged(load_element(e, buffer, index));
  add_element(&line, buffer, index, staged_scalar(e, &element, call->span));
  emit_line(&line, &e->b);
  e->b = outer;
  return value_none();
}

// ---- print

static bool is_buffer(const Value *value) {
  return value->kind == VALUE_BUFFER || (value->kind == VALUE_TILE && !value->tile->points_only);
}

static bool read_message(Elab *e, const Call *call, const char **out) {
  Str text;
  *out = "";
  if (!given(&call->args[ARG_msg])) return true;
  if (!need_string(e, &call->args[ARG_msg], call->spans[ARG_msg], "msg", &text)) return false;
  *out = text.len ? text_printf(e->arena, "%.*s ", (int)text.len, text.data) : "";
  return true;
}

static Value run_print(Elab *e, const Call *call) {
  const char *message;
  TirValue *condition;
  if (!elab_placed(e, call->span, "print", false) || !read_message(e, call, &message)) return value_poison();
  for (int i = 0; i < call->nrest; i++) {
    if (!is_buffer(&call->rest[i])) continue;
    if (call->nrest == 1) return print_buffer(e, call, &call->rest[0], call->rest_spans[0], message);
    diag_error(e->ds, DIAG_value_kind, call->rest_spans[i], "a whole buffer is printed by itself");
    diag_hint(e->ds, "print(%s, msg=\"…\")", elab_text(e, call->rest_spans[i]));
    return value_poison();
  }
  if (!read_filters(e, call, false, &condition)) return value_poison();
  Line line = line_new(e, call->span);
  add_origin(&line);
  add_string(&line, message, strlen(message));
  for (int i = 0; i < call->nrest; i++) {
    if (i) textbuf_puts(&line.format, " ");
    line.span = call->rest_spans[i];
    add_value(&line, &call->rest[i]);
  }
  line.span = call->span;
  textbuf_puts(&line.format, "\n");
  TirBuilder inside = inside_if(e, condition, call->span);
  return emit_line(&line, condition ? &inside : &e->b) ? value_none() : value_poison();
}

// ---- device_assert

static const char *place_text(Elab *e, Span span) {
  Place place = source_place(e->ast->source, span.begin);
  return text_printf(e->arena, "%s:%d:%d: ", e->ast->source->path, place.line, place.column);
}

static Value run_device_assert(Elab *e, const Call *call) {
  int64_t number;
  if (!elab_placed(e, call->span, "device_assert", false)) return value_poison();
  TirValue *test = staged_condition(e, &call->args[0], call->spans[0]);
  if (!test) return value_poison();
  if (tir_const_int(test, &number) && number != 0) return value_none();
  Line line = line_new(e, call->span);
  const char *place = place_text(e, call->span), *text = elab_text(e, call->spans[0]);
  add_constant(&line, place, strlen(place));
  add_origin(&line);
  textbuf_puts(&line.format, "device_assert failed: ");
  if (given(&call->args[1]))
    add_value(&line, &call->args[1]);
  else
    add_constant(&line, text, strlen(text));
  textbuf_puts(&line.format, "\n");
  e->b.span = call->span;
  TirBuilder outer = e->b;
  e->b = inside_if(e, tir_unary(&e->b, OP_not, test), call->span);
  if (emit_line(&line, &e->b)) staged_effect(e, OP_trap, 0, NULL, call->span);
  e->b = outer;
  return value_none();
}

const Builtin builtins_debug[] = {
    {"print", "*values msg? thread? warp? block? warp_group_id? warp_id? sep~ end~ flush~", run_print},
    {"device_assert", "condition msg? no_stack_info~", run_device_assert},
    {NULL, NULL, NULL},
};

bool builtin_prints(const Builtin *builtin) {
  return builtin->run == run_print || builtin->run == run_device_assert;
}

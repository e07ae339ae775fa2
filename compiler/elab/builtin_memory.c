// Declarations: tensors and sizes, buffers, variables, barriers.
#include "elab/elab_internal.h"

#include <inttypes.h>
#include <string.h>

static bool given(const Value *value) {
  return value->kind != VALUE_ABSENT;
}

// ---- tensors and sizes

static Value tensor_value(Elab *e, const Call *call, bool is_output) {
  TensorSpec *spec = ARENA_NEW(e->arena, TensorSpec);
  const Value *items;
  int count;
  spec->dtype = DTYPE_f32;
  spec->is_output = is_output;
  if (given(&call->args[1]) &&
      !need_dtype(e, &call->args[1], call->spans[1], "the element type of a tensor", &spec->dtype))
    return value_poison();
  if (!need_items(e, &call->args[0], &items, &count)) return value_poison();
  if (count < 1 || count > TYPE_MAX_RANK) {
    diag_error(e->ds, DIAG_value_kind, call->spans[0], "a tensor has 1 to %d dimensions, not %d",
               TYPE_MAX_RANK, count);
    return value_poison();
  }
  spec->dims = ARENA_ARRAY(e->arena, Value, count);
  spec->rank = count;
  memcpy(spec->dims, items, (size_t)count * sizeof *items);
  return (Value){.kind = VALUE_TENSOR, .tensor = spec};
}

static Value run_tensor(Elab *e, const Call *call) {
  return tensor_value(e, call, false);
}

static Value run_empty(Elab *e, const Call *call) {
  Value out = tensor_value(e, call, true);
  if (out.kind != VALUE_TENSOR || e->naming) return out;
  diag_error(e->ds, DIAG_kernel_form, call->span, "an output needs a name: C = empty(…)");
  return value_poison();
}

static bool is_name(const char *text, size_t len) {
  for (size_t i = 0; i < len; i++) {
    char c = text[i];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && !(i > 0 && c >= '0' && c <= '9')) return false;
  }
  return len > 0;
}

// const("M, N, K"): a size a name; one name gives one size, several a tuple.
static Value run_sizes(Elab *e, const Call *call) {
  Str text;
  if (!need_string(e, &call->args[0], call->spans[0], "the names of sizes", &text)) return value_poison();
  if (e->region->kind != REGION_HOST) {
    diag_error(e->ds, DIAG_kernel_form, call->span, "sizes are declared before `with Kernel(…)`");
    return value_poison();
  }
  Value out = value_sequence(e->arena, VALUE_TUPLE, e->region, NULL, 0);
  const char *at = text.data, *end = text.data + text.len;
  while (at < end) {
    while (at < end && (*at == ' ' || *at == ',')) at++;
    const char *start = at;
    while (at < end && *at != ' ' && *at != ',') at++;
    if (at == start) break;
    if (!is_name(start, (size_t)(at - start))) {
      diag_error(e->ds, DIAG_value_kind, call->spans[0], "'%.*s' is no name for a size", (int)(at - start),
                 start);
      return value_poison();
    }
    vec_push(e->arena, &out.sequence->items, launch_size(e, intern_n(e->names, start, (size_t)(at - start))));
  }
  if (out.sequence->items.len == 0) diag_error(e->ds, DIAG_value_kind, call->spans[0], "no names of sizes");
  return out.sequence->items.len == 1 ? out.sequence->items.data[0] : out;
}

// ---- buffers

static bool read_shape(Elab *e, const Call *call, int arg, int *rank, int64_t *shape) {
  const Value *items;
  int count;
  int64_t elements = 1;
  if (!need_items(e, &call->args[arg], &items, &count)) return false;
  if (count < 1 || count > TYPE_MAX_RANK) {
    diag_error(e->ds, DIAG_value_kind, call->spans[arg], "a buffer has 1 to %d dimensions, not %d",
               TYPE_MAX_RANK, count);
    return false;
  }
  for (int d = 0; d < count; d++) {
    if (!need_int(e, &items[d], call->spans[arg], "the shape of a buffer", &shape[d])) return false;
    bool fits = shape[d] >= 1 && shape[d] <= INT32_MAX && elements <= INT32_MAX / shape[d];
    if (!fits) {
      diag_error(e->ds, DIAG_value_kind, call->spans[arg],
                 "dimension %d is %" PRId64
                 "; extents are at least 1 and a buffer has fewer than 2^31 elements",
                 d, shape[d]);
      return false;
    }
    elements *= shape[d];
  }
  *rank = count;
  return true;
}

// Buffers live as long as the kernel: what is allocated in a loop or branch stands before it in tile IR.
static TirBuilder at_kernel_level(Elab *e, Span span) {
  TirBuilder b = e->b;
  TirOp *at = NULL;
  for (const TirBlock *block = b.block; block != e->kernel->body; block = at->parent) at = block->owner;
  if (at) b = tir_builder_before(e->module, at);
  b.span = span;
  return b;
}

TirValue *memory_temporary(Elab *e, const char *name, Type type, Span span) {
  TirBuilder b = at_kernel_level(e, span);
  return tir_alloc(&b, intern(e->names, name), type);
}

// What happens once stands in no loop or branch of the device.
static bool kernel_level(Elab *e, const Call *call, const char *reason, const char *remedy) {
  if (!elab_placed(e, call->span, call->builtin->name, true)) return false;
  if (e->region->kind == REGION_KERNEL) return true;
  diag_error(e->ds, DIAG_placement, call->span, "'%s' in a loop or branch that runs on the device: %s",
             call->builtin->name, reason);
  diag_note(e->ds, e->region->span, "it is here; %s it", remedy);
  return false;
}

static Value allocate(Elab *e, const Call *call, Space space) {
  int rank;
  int64_t shape[TYPE_MAX_RANK];
  DType dtype;
  Name name = e->naming ? e->naming : intern(e->names, call->builtin->name + strlen("alloc_"));
  if (!elab_placed(e, call->span, call->builtin->name, space != SPACE_LOCAL) ||
      !read_shape(e, call, 0, &rank, shape) ||
      !need_dtype(e, &call->args[1], call->spans[1], "the element type of a buffer", &dtype))
    return value_poison();
  TirBuilder b = at_kernel_level(e, call->span);
  TirValue *buffer = tir_alloc(&b, name, type_buffer(dtype, space, rank, shape));
  if (!buffer->name) buffer->name = name;
  return value_of_buffer(buffer);
}

static Value run_alloc_shared(Elab *e, const Call *call) {
  return allocate(e, call, SPACE_SHARED);
}
static Value run_alloc_fragment(Elab *e, const Call *call) {
  return allocate(e, call, SPACE_FRAGMENT);
}
static Value run_alloc_local(Elab *e, const Call *call) {
  return allocate(e, call, SPACE_LOCAL);
}
static Value run_alloc_tmem(Elab *e, const Call *call) {
  return allocate(e, call, SPACE_TMEM);
}

// ---- other shapes

static bool can_reshape(Elab *e, const Call *call) {
  const Value *value = &call->args[0];
  if (value_is_poison(value)) return false;
  if (value->kind != VALUE_BUFFER) {
    diag_error(e->ds, DIAG_value_kind, call->spans[0], "%s takes a whole buffer, not %s", call->builtin->name,
               value_describe(e->arena, value));
    return false;
  }
  Space space = value->staged->type.space;
  if (space == SPACE_SHARED || space == SPACE_TMEM) return true;
  elab_not_supported(
      e, call->span,
      text_printf(e->arena, "%s of a buffer in %s memory", call->builtin->name, space_name(space)));
  return false;
}

static int64_t row_bits(const Type *type) {
  return type->shape[type->rank - 1] * dtype_bits(type->dtype);
}

static Value other_shape(Elab *e, const Call *call, Type type) {
  TirValue *buffer = call->args[0].staged;
  int64_t bits = type_elements(&type) * dtype_bits(type.dtype);
  int64_t has = type_elements(&buffer->type) * dtype_bits(buffer->type.dtype);
  if (bits != has) {
    diag_error(e->ds, DIAG_shapes_disagree, call->span,
               "'%s' has %" PRId64 " bits in %" PRId64 " elements; the other shape has %" PRId64
               " bits in %" PRId64,
               tir_buffer_name(buffer), has, type_elements(&buffer->type), bits, type_elements(&type));
    return value_poison();
  }
  if (row_bits(&type) != row_bits(&buffer->type)) tir_root(buffer)->op->attrs[ALLOC_plain] = 1;
  TirBuilder b = at_kernel_level(e, call->span);
  TirValue *result = tir_reshape(&b, buffer, type);
  result->name = e->naming;
  return value_of_buffer(result);
}

// view(buffer, shape=None, dtype=None), reshape(buffer, shape): the same memory, seen otherwise.
static Value run_view(Elab *e, const Call *call) {
  if (!elab_placed(e, call->span, call->builtin->name, false) || !can_reshape(e, call)) return value_poison();
  const Type *from = &call->args[0].staged->type;
  int rank = from->rank;
  int64_t shape[TYPE_MAX_RANK];
  DType dtype = from->dtype;
  memcpy(shape, from->shape, sizeof shape);
  if (given(&call->args[1]) && call->args[1].kind != VALUE_NONE && !read_shape(e, call, 1, &rank, shape))
    return value_poison();
  if (given(&call->args[2]) && call->args[2].kind != VALUE_NONE &&
      !need_dtype(e, &call->args[2], call->spans[2], "the element type of a buffer", &dtype))
    return value_poison();
  return other_shape(e, call, type_buffer(dtype, from->space, rank, shape));
}

// deallocate_tmem(buffer): nothing uses it any more.
static Value run_deallocate_tmem(Elab *e, const Call *call) {
  const Value *value = &call->args[0];
  if (!kernel_level(e, call, "tensor memory is released once", "release after")) return value_poison();
  if (value->kind != VALUE_BUFFER || value->staged->type.space != SPACE_TMEM) {
    if (!value_is_poison(value))
      diag_error(e->ds, DIAG_value_kind, call->spans[0],
                 "deallocate_tmem takes a buffer of alloc_tmem, not %s", value_describe(e->arena, value));
    return value_poison();
  }
  TirValue *buffer = value->staged;
  staged_effect(e, OP_tmem_release, 1, &buffer, call->span);
  return value_none();
}

// alloc_var(dtype, init=0): a mutable scalar of each thread. A second string is TileLang's scope.
static Value run_alloc_var(Elab *e, const Call *call) {
  DType dtype;
  const Value *init = given(&call->args[2]) ? &call->args[2] : &call->args[1];
  Span span = given(&call->args[2]) ? call->spans[2] : call->spans[1];
  Name name = e->naming ? e->naming : intern(e->names, "var");
  if (!elab_placed(e, call->span, "alloc_var", false) ||
      !need_dtype(e, &call->args[0], call->spans[0], "the type of a variable", &dtype))
    return value_poison();
  const Value zero = value_int(0);
  if (!given(init) || init->kind == VALUE_STRING) init = &zero;
  TirValue *initial = staged_as(e, init, dtype, span);
  if (!initial) return value_poison();
  e->b.span = call->span;
  TirValue *cell = tir_cell(&e->b, name, dtype, initial);
  if (!cell->name) cell->name = name;
  return (Value){.kind = VALUE_CELL, .staged = cell};
}

// ---- barriers

enum { MAX_ARRIVALS = (1 << 20) - 1, MAX_BARRIERS = 1024 };

static bool read_counts(Elab *e, const Call *call, const Value *items, int count, int64_t *out) {
  bool ok = true;
  for (int i = 0; i < count; i++) {
    if (!need_int(e, &items[i], call->spans[0], "an arrival count", &out[i])) return false;
    if (out[i] >= 1 && out[i] <= MAX_ARRIVALS) continue;
    diag_error(e->ds, DIAG_arrival_count, call->spans[0],
               "an arrival count of %" PRId64 "; legal are 1 to %d", out[i], MAX_ARRIVALS);
    ok = false;
  }
  return ok;
}

static Value run_alloc_barrier(Elab *e, const Call *call) {
  const Value *items;
  int count;
  Name name = e->naming ? e->naming : intern(e->names, "barrier");
  if (!kernel_level(e, call, "a barrier is initialised once", "allocate before") ||
      !need_items(e, &call->args[0], &items, &count))
    return value_poison();
  if (count < 1 || count > MAX_BARRIERS) {
    diag_error(e->ds, DIAG_arrival_count, call->spans[0], "%d barriers; legal are 1 to %d", count,
               MAX_BARRIERS);
    return value_poison();
  }
  int64_t *counts = ARENA_ARRAY(e->arena, int64_t, count);
  if (!read_counts(e, call, items, count, counts)) return value_poison();
  e->b.span = call->span;
  TirValue *barrier = tir_alloc_barrier(&e->b, name, count, counts);
  if (!barrier->name) barrier->name = name;
  return value_of_buffer(barrier);
}

const Builtin builtins_memory[] = {
    {"Tensor", "shape dtype?", run_tensor},
    {"Buffer", "shape dtype?", run_tensor},
    {"empty", "shape dtype?", run_empty},
    {"const", "names", run_sizes},
    {"dynamic", "names dtype~", run_sizes},
    {"symbolic", "names dtype~", run_sizes},
    {"alloc_shared", "shape dtype scope~", run_alloc_shared},
    {"alloc_fragment", "shape dtype scope~", run_alloc_fragment},
    {"alloc_local", "shape dtype scope~", run_alloc_local},
    {"alloc_tmem", "shape dtype", run_alloc_tmem},
    {"deallocate_tmem", "buffer", run_deallocate_tmem},
    {"view", "src shape? dtype?", run_view},
    {"reshape", "src shape", run_view},
    {"alloc_var", "dtype value? init? scope~", run_alloc_var},
    {"alloc_barrier", "arrive_count", run_alloc_barrier},
    {NULL, NULL, NULL},
};

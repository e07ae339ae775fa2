// Folding, scanning and turning tiles. A reduction is an op on whole fragments: other buffers are copied to and from
// fragments around it. The others are Parallel loops; where they need elements of a fragment that another thread
// holds, the fragments pass leads these through shared memory.
#include "elab/elab_internal.h"

#include <inttypes.h>
#include <string.h>

static bool given(const Value *value) {
  return value->kind != VALUE_ABSENT && value->kind != VALUE_NONE;
}

static bool read_dim(Elab *e, const Value *value, Span span, const TirValue *src, int64_t absent,
                     int64_t *out) {
  int rank = src->type.rank;
  *out = absent;
  if (given(value) && !need_int(e, value, span, "dim", out)) return false;
  if (*out < 0) *out += rank;
  if (*out >= 0 && *out < rank) return true;
  diag_error(e->ds, DIAG_value_kind, span, "dim is %" PRId64 "; '%s' has %d dimension%s: legal are %d to %d",
             given(value) ? value_as_int(value) : absent, tir_buffer_name(src), rank, rank == 1 ? "" : "s",
             -rank, rank - 1);
  return false;
}

static bool copy_tile(Elab *e, TirValue *src, TirValue *dst, Span span) {
  TirValue *args[] = {src, dst, NULL};
  const Span spans[3] = {span, span, {0, 0}};
  int64_t attrs[OP_MAX_ATTRS];
  tile_initial_attrs(OP_copy, attrs);
  return tile_emit(e, OP_copy, 3, args, spans, attrs, span);
}

// ---- reductions

static bool is_whole_fragment(const TirValue *buffer) {
  return buffer->type.space == SPACE_FRAGMENT && buffer->op->kind == OP_alloc;
}

static TirValue *fragment_like(Elab *e, const TirValue *buffer, Span span) {
  Type type = type_buffer(buffer->type.dtype, SPACE_FRAGMENT, buffer->type.rank, buffer->type.shape);
  return memory_temporary(e, tir_buffer_name(buffer), type, span);
}

static bool fold_buffers(Elab *e, const Call *call, TirValue *src, TirValue *dst, const int64_t *attrs) {
  TirValue *args[2] = {src, dst};
  const Span spans[2] = {call->spans[0], call->spans[1]};
  // select brings accumulators to fragments; an array of each thread is refused
  bool as_it_is = src->type.space == SPACE_TMEM || src->type.space == SPACE_LOCAL;
  if (!as_it_is && !is_whole_fragment(src)) {
    args[0] = type_is_static(&src->type) ? fragment_like(e, src, call->spans[0]) : src;
    if (!copy_tile(e, src, args[0], call->spans[0])) return false;
  }
  if (!is_whole_fragment(dst)) {
    args[1] = type_is_static(&dst->type) ? fragment_like(e, dst, call->spans[1]) : dst;
    if (!attrs[REDUCE_clear] && !copy_tile(e, dst, args[1], call->spans[1])) return false;
  }
  if (!tile_emit(e, OP_reduce, 2, args, spans, attrs, call->span)) return false;
  return args[1] == dst || copy_tile(e, args[1], dst, call->spans[1]);
}

static Value reduce(Elab *e, const Call *call, ReduceKind kind, const Value *dim, Span dim_span,
                    const Value *clear, Span clear_span) {
  int64_t attrs[OP_MAX_ATTRS];
  bool clears = true;
  tile_initial_attrs(OP_reduce, attrs);
  attrs[REDUCE_kind] = kind;
  if (!elab_placed(e, call->span, call->builtin->name, true)) return value_poison();
  TirValue *src = tile_operand(e, &call->args[0], call->spans[0], "what is reduced");
  TirValue *dst = src ? tile_operand(e, &call->args[1], call->spans[1], "the result of a reduction") : NULL;
  if (!dst || !read_dim(e, dim, dim_span, src, -1, &attrs[REDUCE_dim])) return value_poison();
  if (given(clear) && !need_bool(e, clear, clear_span, "clear", &clears)) return value_poison();
  attrs[REDUCE_clear] = clears;
  if (fold_buffers(e, call, src, dst, attrs)) tile_set_by(e, dst);
  return value_none();
}

static Value reduce_by_name(Elab *e, const Call *call, ReduceKind kind) {
  return reduce(e, call, kind, &call->args[2], call->spans[2], &call->args[3], call->spans[3]);
}

static Value run_reduce_sum(Elab *e, const Call *call) {
  return reduce_by_name(e, call, REDUCE_SUM);
}
static Value run_reduce_max(Elab *e, const Call *call) {
  return reduce_by_name(e, call, REDUCE_MAX);
}
static Value run_reduce_min(Elab *e, const Call *call) {
  return reduce_by_name(e, call, REDUCE_MIN);
}
static Value run_reduce_abssum(Elab *e, const Call *call) {
  return reduce_by_name(e, call, REDUCE_ABSSUM);
}
static Value run_reduce_absmax(Elab *e, const Call *call) {
  return reduce_by_name(e, call, REDUCE_ABSMAX);
}
static Value run_reduce_and(Elab *e, const Call *call) {
  return reduce_by_name(e, call, REDUCE_AND);
}
static Value run_reduce_or(Elab *e, const Call *call) {
  return reduce_by_name(e, call, REDUCE_OR);
}
static Value run_reduce_xor(Elab *e, const Call *call) {
  return reduce_by_name(e, call, REDUCE_XOR);
}

static Value run_reduce(Elab *e, const Call *call) {
  static const char *const names[] = {"sum", "max", "min", "abssum", "absmax", "bitand", "bitor", "bitxor"};
  enum { COUNT = sizeof names / sizeof *names };
  Str text;
  if (!need_string(e, &call->args[2], call->spans[2], "reduce_type", &text)) return value_poison();
  for (int i = 0; i < COUNT; i++)
    if (str_is(text, names[i]))
      return reduce(e, call, (ReduceKind)i, &call->args[3], call->spans[3], &call->args[4], call->spans[4]);
  diag_error(e->ds, DIAG_value_kind, call->spans[2],
             "reduce_type is \"%.*s\"; legal are sum, max, min, abssum, absmax, bitand, bitor and bitxor",
             (int)text.len, text.data);
  return value_poison();
}

// ---- loops over elements

static bool same_shape(const Type *a, const Type *b) {
  if (a->rank != b->rank) return false;
  for (int d = 0; d < a->rank; d++)
    if (a->shape[d] != b->shape[d]) return false;
  return true;
}

static bool check_elements(Elab *e, const TirValue *buffer, Span span, const char *what) {
  bool reachable = buffer->type.space != SPACE_TMEM && buffer->type.space != SPACE_BARRIER;
  if (reachable && type_is_static(&buffer->type)) return true;
  diag_error(e->ds, DIAG_value_kind, span, "%s '%s' must have %s", what, tir_buffer_name(buffer),
             reachable ? "extents that are known at compile time: take a tile of it"
                       : "elements: copy it to a fragment or to shared memory first");
  return false;
}

static bool loop_operands(Elab *e, const Call *call, TirValue **src, TirValue **dst) {
  if (!elab_placed(e, call->span, call->builtin->name, true)) return false;
  *src = tile_operand(e, &call->args[0], call->spans[0], "the source");
  if (!*src) return false;
  *dst = *src;
  if (given(&call->args[1])) *dst = tile_operand(e, &call->args[1], call->spans[1], "the destination");
  return *dst && check_elements(e, *src, call->spans[0], "the source") &&
         check_elements(e, *dst, call->spans[1].end ? call->spans[1] : call->spans[0], "the destination");
}

static TirOp *parallel_over(Elab *e, const Type *type, int skip, Span span) {
  TirValue *extents[TYPE_MAX_RANK];
  int n = 0;
  e->b.span = span;
  for (int d = 0; d < type->rank; d++)
    if (d != skip) extents[n++] = tir_int(&e->b, type->shape[d]);
  if (n == 0) extents[n++] = tir_int(&e->b, 1);
  return tir_parallel(&e->b, n, extents);
}

// cumsum: a thread a row adds up along it.
static void scan_rows(Elab *e, TirValue *src, TirValue *dst, int dim, bool reverse, Span span) {
  DType type = op_reduce_type(src->type.dtype);
  TirOp *loop = parallel_over(e, &src->type, dim, span);
  TirBuilder b = tir_builder_at_end(e->module, loop->bodies[0], span);
  int64_t count = src->type.shape[dim];
  TirValue *index[TYPE_MAX_RANK];
  TirValue *zero = dtype_is_float(type) ? tir_float(&b, type, 0.0) : tir_int_typed(&b, type, 0);
  TirValue *sum = tir_cell(&b, intern(e->names, "sum"), type, zero);
  TirOp *along = tir_for(&b, LOOP_SERIAL, tir_int(&b, reverse ? count - 1 : 0),
                         tir_int(&b, reverse ? -1 : count), tir_int(&b, reverse ? -1 : 1));
  for (int d = 0, n = 0; d < src->type.rank; d++)
    index[d] = d == dim ? along->results[0] : loop->results[n++];
  b = tir_builder_at_end(e->module, along->bodies[0], span);
  TirValue *element = tir_cast(&b, type, tir_load(&b, src, index, src->type.rank));
  tir_set(&b, sum, tir_binary(&b, OP_add, tir_get(&b, sum), element));
  tir_store(&b, dst, tir_cast(&b, dst->type.dtype, tir_get(&b, sum)), index, dst->type.rank);
}

static Value run_cumsum(Elab *e, const Call *call) {
  TirValue *src, *dst;
  int64_t dim;
  bool reverse = false;
  if (!loop_operands(e, call, &src, &dst)) return value_poison();
  if (!read_dim(e, &call->args[2], call->spans[2], src, 0, &dim)) return value_poison();
  if (given(&call->args[3]) && !need_bool(e, &call->args[3], call->spans[3], "reverse", &reverse))
    return value_poison();
  if (!same_shape(&src->type, &dst->type)) {
    diag_error(e->ds, DIAG_shapes_disagree, call->span, "cumsum of '%s' into '%s': their extents differ",
               tir_buffer_name(src), tir_buffer_name(dst));
    return value_poison();
  }
  scan_rows(e, src, dst, (int)dim, reverse, call->span);
  tile_set_by(e, dst);
  return value_none();
}

static Value run_transpose(Elab *e, const Call *call) {
  TirValue *src, *dst;
  if (!loop_operands(e, call, &src, &dst)) return value_poison();
  bool fits = src->type.rank == 2 && dst->type.rank == 2 && src->type.shape[0] == dst->type.shape[1] &&
              src->type.shape[1] == dst->type.shape[0];
  if (!fits || tir_root(src) == tir_root(dst)) {
    diag_error(e->ds, DIAG_shapes_disagree, call->span,
               "transpose takes '%s' [m, n] to another buffer [n, m]; '%s' is %s", tir_buffer_name(src),
               tir_buffer_name(dst), fits ? "the same" : "none such");
    return value_poison();
  }
  TirOp *loop = parallel_over(e, &dst->type, -1, call->span);
  TirBuilder b = tir_builder_at_end(e->module, loop->bodies[0], call->span);
  TirValue *from[2] = {loop->results[1], loop->results[0]};
  TirValue *element = tir_load(&b, src, from, 2);
  tir_store(&b, dst, tir_cast(&b, dst->type.dtype, element), loop->results, 2);
  tile_set_by(e, dst);
  return value_none();
}

#define REDUCE_PARAMS "buffer out dim? clear? batch~ nan_propagate!"
const Builtin builtins_fragment[] = {
    {"reduce_sum", REDUCE_PARAMS, run_reduce_sum},
    {"reduce_max", REDUCE_PARAMS, run_reduce_max},
    {"reduce_min", REDUCE_PARAMS, run_reduce_min},
    {"reduce_abssum", REDUCE_PARAMS, run_reduce_abssum},
    {"reduce_absmax", REDUCE_PARAMS, run_reduce_absmax},
    {"reduce_bitand", REDUCE_PARAMS, run_reduce_and},
    {"reduce_bitor", REDUCE_PARAMS, run_reduce_or},
    {"reduce_bitxor", REDUCE_PARAMS, run_reduce_xor},
    {"reduce", "buffer out reduce_type dim? clear? batch~ nan_propagate!", run_reduce},
    {"cumsum", "src dst? dim? reverse?", run_cumsum},
    {"transpose", "src dst", run_transpose},
    {NULL, NULL, NULL},
};
#undef REDUCE_PARAMS

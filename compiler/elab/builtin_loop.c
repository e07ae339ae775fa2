// Loops and the kernel context: values that only `for` and `with` can use.
#include "elab/elab_internal.h"

#include <inttypes.h>
#include <string.h>

static bool given(const Value *value) {
  return value->kind != VALUE_ABSENT && value->kind != VALUE_NONE;
}

static Value *boxed(Elab *e, Value value) {
  Value *box = ARENA_NEW(e->arena, Value);
  *box = value;
  return box;
}

static bool check_bound(Elab *e, const Value *value, Span span, const char *what) {
  bool whole = value->kind == VALUE_INT || value->kind == VALUE_BOOL || value_is_staged(value);
  if (value->kind == VALUE_STAGED && dtype_is_float(value->staged->type.dtype)) whole = false;
  if (!whole)
    diag_error(e->ds, DIAG_value_kind, span, "%s must be an integer, not %s", what,
               value_describe(e->arena, value));
  return whole;
}

// A bound as an int or a staged value, so that variables and elements are read once, here.
static bool settle_bound(Elab *e, const Value *value, Span span, const char *what, Value *out) {
  if (!check_bound(e, value, span, what)) return false;
  if (value_is_number(value)) {
    *out = value_int(value_as_int(value));
    return true;
  }
  TirValue *scalar = staged_index(e, value, span, what);
  int64_t number;
  if (!scalar) return false;
  *out = tir_const_int(scalar, &number) ? value_int(number) : value_staged(scalar);
  return true;
}

// (stop), (start, stop) or (start, stop, step).
static LoopSpec *bounds_spec(Elab *e, const Call *call) {
  LoopSpec *spec = ARENA_NEW(e->arena, LoopSpec);
  if (call->nrest < 1 || call->nrest > 3) {
    diag_error(e->ds, DIAG_call_arguments, call->span, "'%s' takes a bound, or a start, a bound and a step",
               call->builtin->name);
    return NULL;
  }
  Value values[3];
  for (int i = 0; i < call->nrest; i++)
    if (!settle_bound(e, &call->rest[i], call->rest_spans[i], "the bound of a loop", &values[i])) return NULL;
  spec->lo = boxed(e, call->nrest == 1 ? value_int(0) : values[0]);
  spec->hi = boxed(e, call->nrest == 1 ? values[0] : values[1]);
  spec->step = boxed(e, call->nrest == 3 ? values[2] : value_int(1));
  if (spec->step->kind == VALUE_INT && spec->step->integer == 0) {
    diag_error(e->ds, DIAG_arithmetic, call->rest_spans[2], "the step of a loop is 0");
    return NULL;
  }
  return spec;
}

static Value loop_value(const LoopSpec *spec, ValueKind kind) {
  return spec ? (Value){.kind = kind, .loop = spec} : value_poison();
}

static Value run_range(Elab *e, const Call *call) {
  return loop_value(bounds_spec(e, call), VALUE_RANGE);
}
static Value run_serial(Elab *e, const Call *call) {
  return loop_value(bounds_spec(e, call), VALUE_LOOP);
}

static Value run_unroll(Elab *e, const Call *call) {
  LoopSpec *spec = bounds_spec(e, call);
  if (spec) spec->kind = LOOP_UNROLL;
  return loop_value(spec, VALUE_LOOP);
}

static Value run_pipelined(Elab *e, const Call *call) {
  LoopSpec *spec = bounds_spec(e, call);
  if (!spec) return value_poison();
  spec->kind = LOOP_PIPELINED;
  if (given(&call->args[0]) && !need_int(e, &call->args[0], call->spans[0], "num_stages", &spec->stages))
    return value_poison();
  if (spec->stages >= 0 && spec->stages <= 32) return loop_value(spec, VALUE_LOOP);
  diag_error(e->ds, DIAG_value_kind, call->spans[0], "num_stages is %" PRId64 "; legal are 0 to 32",
             spec->stages);
  return value_poison();
}

static LoopSpec *extents_spec(Elab *e, const Call *call, const char *what, bool fixed) {
  LoopSpec *spec = ARENA_NEW(e->arena, LoopSpec);
  if (call->nrest < 1 || call->nrest > TYPE_MAX_RANK) {
    diag_error(e->ds, DIAG_call_arguments, call->span, "'%s' takes 1 to %d extents", call->builtin->name,
               TYPE_MAX_RANK);
    return NULL;
  }
  spec->extents = ARENA_ARRAY(e->arena, Value, call->nrest);
  spec->nextents = call->nrest;
  for (int i = 0; i < call->nrest; i++) {
    int64_t extent;
    if (!settle_bound(e, &call->rest[i], call->rest_spans[i], what, &spec->extents[i])) return NULL;
    if (!fixed) continue;
    if (!need_int(e, &spec->extents[i], call->rest_spans[i], what, &extent)) return NULL;
    if (extent >= 1 && extent <= INT32_MAX) continue;
    diag_error(e->ds, DIAG_value_kind, call->rest_spans[i], "%s is %" PRId64 "; it must be at least 1", what,
               extent);
    return NULL;
  }
  return spec;
}

// Iterations are numbered by 32 bits.
static bool check_iterations(Elab *e, const LoopSpec *spec, Span span) {
  int64_t count = 1;
  for (int i = 0; i < spec->nextents; i++) {
    if (!__builtin_mul_overflow(count, spec->extents[i].integer, &count) && count <= INT32_MAX) continue;
    diag_error(e->ds, DIAG_value_kind, span, "the extents of Parallel multiply to more than %d", INT32_MAX);
    return false;
  }
  return true;
}

static Value run_parallel(Elab *e, const Call *call) {
  LoopSpec *spec = extents_spec(e, call, "an extent of Parallel", true);
  if (spec && !check_iterations(e, spec, call->span)) return value_poison();
  if (spec) spec->parallel = true;
  return loop_value(spec, VALUE_LOOP);
}

static Value run_grid(Elab *e, const Call *call) {
  LoopSpec *spec = extents_spec(e, call, "an extent of grid", false);
  if (spec) spec->grid = true;
  return loop_value(spec, VALUE_LOOP);
}

// TileLang's word for `break`.
static Value run_loop_break(Elab *e, const Call *call) {
  e->jumped = exec_jump(e, true, call->span);
  return value_none();
}

// ---- Kernel

enum { DEFAULT_THREADS = 128 };

static bool read_threads(Elab *e, const Call *call, int *out) {
  const Value *items;
  int count;
  int64_t threads = 1;
  bool flat = true;
  *out = DEFAULT_THREADS;
  if (!given(&call->args[0])) return true;
  if (!need_items(e, &call->args[0], &items, &count)) return false;
  for (int i = 0; i < count; i++) {
    int64_t extent;
    if (!need_int(e, &items[i], call->spans[0], "threads", &extent)) return false;
    if (extent < 1 || extent > 1024) threads = 0;
    threads = threads * extent > 1 << 20 ? 0 : threads * extent;
    if (count == 1) threads = extent;
    flat = flat && (i == 0 || extent == 1);
  }
  *out = (int)threads;
  if (threads >= 32 && threads <= 1024 && threads % 32 == 0) {
    if (!flat) elab_not_supported(e, call->spans[0], "'threads' in more than one dimension");
    return flat;
  }
  diag_error(e->ds, DIAG_thread_count, call->spans[0],
             "threads is %" PRId64 "; legal are the multiples of 32 from 32 to 1024", threads);
  return false;
}

static Value run_kernel(Elab *e, const Call *call) {
  KernelSpec *spec = ARENA_NEW(e->arena, KernelSpec);
  if (call->nrest < 1 || call->nrest > 3) {
    diag_error(e->ds, DIAG_call_arguments, call->span, "Kernel takes 1 to 3 grid dimensions, not %d",
               call->nrest);
    return value_poison();
  }
  spec->grid = call->rest;
  spec->rank = call->nrest;
  for (int i = 0; i < call->nrest; i++) {
    Value extent;
    if (!settle_bound(e, &call->rest[i], call->rest_spans[i], "a grid dimension", &extent))
      return value_poison();
    bool known = extent.kind == VALUE_INT || tir_in_launch(extent.staged);
    if (!known) {
      diag_error(e->ds, DIAG_compile_time, call->rest_spans[i], "a grid dimension must be known at launch");
      return value_poison();
    }
    spec->grid[i] = extent;
  }
  // What is wrong with the launch is reported; the body's own mistakes are worth the same run.
  if (!read_threads(e, call, &spec->threads)) spec->threads = DEFAULT_THREADS;
  return (Value){.kind = VALUE_KERNEL, .kernel = spec};
}

const Builtin builtins_loop[] = {
    {"range", "*bounds", run_range},
    {"serial", "*bounds annotations~", run_serial},
    {"unroll", "*bounds explicit~ unroll_factor~ annotations~", run_unroll},
    {"vectorized", "*bounds annotations~", run_unroll},
    {"Pipelined", "*bounds num_stages? order! stage! sync! group!", run_pipelined},
    {"Parallel", "*extents coalesced_width~ loop_layout! prefer_async~", run_parallel},
    {"grid", "*extents", run_grid},
    {"assume", "condition", launch_assume},
    {"loop_break", "", run_loop_break},
    {"Kernel", "*grid threads? cluster_dims! prelude! is_cpu!", run_kernel},
    {NULL, NULL, NULL},
};

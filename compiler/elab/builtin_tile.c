// Tile operations. Shapes and spaces are judged by the op tables (ops/), element types
// and extents that a unit can do by the target (select); here operands become buffers and views.
#include "elab/elab_internal.h"

#include <string.h>

#include "tir/ranges.h"

static bool given(const Value *value) {
  return value->kind != VALUE_ABSENT && value->kind != VALUE_NONE;
}

void tile_set_by(Elab *e, TirValue *buffer) {
  TirValue *root = tir_root(buffer);
  map_put(e->initialized, root, root);
}

// Checks the operands as ops/ wants them; `spans` and `args` have one entry an operand of the op.
static bool check(Elab *e, OpKind kind, int nargs, TirValue *const *args, const Span *spans,
                  const int64_t *attrs, Span span) {
  OpCall call = {.kind = kind, .nargs = nargs, .attrs = attrs, .span = span, .ds = e->ds};
  for (int i = 0; i < nargs; i++) {
    call.spans[i] = spans[i].end ? spans[i] : span;
    if (!args[i]) continue;
    call.types[i] = &args[i]->type;
    if (args[i]->type.kind == TYPE_BUFFER) call.names[i] = tir_buffer_name(args[i]);
  }
  return op_check(&call);
}

// An op with its attributes: checked, then built.
bool tile_emit(Elab *e, OpKind kind, int nargs, TirValue *const *args, const Span *spans,
               const int64_t *attrs, Span span) {
  if (!check(e, kind, nargs, args, spans, attrs, span)) return false;
  TirOp *op = staged_effect(e, kind, nargs, args, span);
  memcpy(op->attrs, attrs, OP_MAX_ATTRS * sizeof *attrs);
  return true;
}

void tile_initial_attrs(OpKind kind, int64_t *out) {
  for (int i = 0; i < OP_MAX_ATTRS; i++)
    out[i] = op_def(kind)->attrs[i].name ? op_def(kind)->attrs[i].initial : 0;
}

// ---- copy, fill, clear

// A thread's own array: what touches one is done by each thread for itself.
static bool is_local(const Value *value) {
  const TirValue *buffer = value->kind == VALUE_BUFFER ? value->staged
                           : value->kind == VALUE_TILE ? value->tile->buffer
                                                       : NULL;
  return buffer && buffer->type.space == SPACE_LOCAL;
}

// Nested loops over dst's elements, unrolled where short: dst = src, or the value where src is NULL.
static bool set_elements(Elab *e, TirValue *src, TirValue *value, TirValue *dst, Span span) {
  TirValue *index[TYPE_MAX_RANK];
  TirBuilder b = e->b;
  b.span = span;
  for (int d = 0; d < dst->type.rank; d++) {
    TirOp *loop = tir_for(&b, LOOP_UNROLL, tir_int(&b, 0), tir_int(&b, dst->type.shape[d]), tir_int(&b, 1));
    index[d] = loop->results[0];
    b = tir_builder_at_end(e->module, loop->bodies[0], span);
  }
  if (src) value = tir_cast(&b, dst->type.dtype, tir_load(&b, src, index, src->type.rank));
  tir_store(&b, dst, value, index, dst->type.rank);
  return true;
}

static bool copy_elements(Elab *e, TirValue *src, TirValue *dst, Span span) {
  bool shared_by_threads[] = {src->type.space == SPACE_FRAGMENT || src->type.space == SPACE_TMEM,
                              dst->type.space == SPACE_FRAGMENT || dst->type.space == SPACE_TMEM};
  if (!shared_by_threads[0] && !shared_by_threads[1]) return set_elements(e, src, NULL, dst, span);
  const TirValue *local = src->type.space == SPACE_LOCAL ? src : dst, *other = local == src ? dst : src;
  diag_error(e->ds, DIAG_operand_space, span,
             "%s is each thread's own, %s is in %s memory and belongs to all", tir_buffer_name(local),
             tir_buffer_name(other), space_name(other->type.space));
  diag_hint(e->ds, "set its elements in a Parallel loop, or go through shared memory");
  return false;
}

static Value run_copy(Elab *e, const Call *call) {
  TirValue *args[3] = {0};
  int64_t attrs[OP_MAX_ATTRS];
  const Span spans[3] = {call->spans[0], call->spans[1], {0, 0}};
  bool own = is_local(&call->args[0]) || is_local(&call->args[1]);
  if (!elab_placed(e, call->span, "copy", !own)) return value_poison();
  const Value *width = &call->args[2];
  int64_t number;
  bool none = width->kind == VALUE_ABSENT || width->kind == VALUE_NONE;
  if (!none && !need_int(e, width, call->spans[2], "coalesced_width of copy", &number)) return value_poison();
  bool no_tma = false, said = call->args[3].kind != VALUE_ABSENT && call->args[3].kind != VALUE_NONE;
  if (said && !need_bool(e, &call->args[3], call->spans[3], "disable_tma of copy", &no_tma))
    return value_poison();
  if (!tile_copy_operands(e, &call->args[0], call->spans[0], &call->args[1], call->spans[1], &args[0],
                          &args[1]))
    return value_poison();
  if (own) {
    copy_elements(e, args[0], args[1], call->span);
    return value_none();
  }
  tile_initial_attrs(OP_copy, attrs);
  attrs[COPY_no_tma] = no_tma;
  if (tile_emit(e, OP_copy, 3, args, spans, attrs, call->span)) tile_set_by(e, args[1]);
  return value_none();
}

// Bytes are announced to the barrier; the author arrives and waits.
static Value run_tma_copy(Elab *e, const Call *call) {
  TirValue *args[3] = {0};
  int64_t attrs[OP_MAX_ATTRS];
  const Span spans[3] = {call->spans[0], call->spans[1], call->spans[2]};
  if (!elab_placed(e, call->span, "tma_copy", true)) return value_poison();
  if (!tile_copy_operands(e, &call->args[0], call->spans[0], &call->args[1], call->spans[1], &args[0],
                          &args[1]))
    return value_poison();
  bool load = args[1]->type.space == SPACE_SHARED, barrier = given(&call->args[2]);
  if (load != barrier) {
    diag_error(e->ds, DIAG_call_arguments, barrier ? call->spans[2] : call->span,
               load ? "tma_copy to shared memory needs barrier=: the one to which its bytes are announced"
                    : "tma_copy from shared memory takes no barrier: wait for it with tma_store_wait()");
    return value_none();
  }
  if (barrier) args[2] = tile_barrier(e, &call->args[2], call->spans[2], "barrier");
  if (barrier && !args[2]) return value_none();
  tile_initial_attrs(OP_copy, attrs);
  attrs[COPY_explicit] = true;
  if (tile_emit(e, OP_copy, 3, args, spans, attrs, call->span)) tile_set_by(e, args[1]);
  return value_none();
}

static Value fill_with(Elab *e, const Call *call, const Value *value, Span value_span) {
  TirValue *args[2];
  int64_t attrs[OP_MAX_ATTRS];
  const Span spans[2] = {call->spans[0], value_span};
  bool own = is_local(&call->args[0]);
  if (!elab_placed(e, call->span, call->builtin->name, !own)) return value_poison();
  args[0] = tile_operand(e, &call->args[0], call->spans[0], "what is filled");
  args[1] = args[0] ? staged_as(e, value, args[0]->type.dtype, value_span) : NULL;
  if (!args[1]) return value_poison();
  if (own) {
    set_elements(e, NULL, args[1], args[0], call->span);
    return value_none();
  }
  tile_initial_attrs(OP_fill, attrs);
  if (tile_emit(e, OP_fill, 2, args, spans, attrs, call->span)) tile_set_by(e, args[0]);
  return value_none();
}

static Value run_fill(Elab *e, const Call *call) {
  return fill_with(e, call, &call->args[1], call->spans[1]);
}

static Value run_clear(Elab *e, const Call *call) {
  const Value zero = value_int(0);
  return fill_with(e, call, &zero, call->span);
}

// ---- gemm

enum {
  ARG_a,
  ARG_b,
  ARG_c,
  ARG_trans_a,
  ARG_trans_b,
  ARG_policy,
  ARG_clear,
  ARG_k_pack,
  ARG_wg_wait,
  ARG_mbar
};
enum { OPERAND_a, OPERAND_b, OPERAND_c, OPERAND_barrier, OPERAND_clear, OPERAND_count };

static bool read_flag(Elab *e, const Call *call, int arg, const char *what, int64_t *out) {
  bool flag = false;
  if (given(&call->args[arg]) && !need_bool(e, &call->args[arg], call->spans[arg], what, &flag)) return false;
  *out = flag;
  return true;
}

// NULL in *out: not cleared.
static bool read_clear(Elab *e, const Call *call, TirValue **out) {
  int64_t number;
  *out = NULL;
  if (!given(&call->args[ARG_clear])) return true;
  TirValue *clear = staged_condition(e, &call->args[ARG_clear], call->spans[ARG_clear]);
  if (!clear) return false;
  bool never = tir_const_int(clear, &number) && number == 0;
  *out = never ? NULL : clear;
  return true;
}

// The first gemm into an accumulator that nothing has set reads whatever was there.
static void warn_not_cleared(Elab *e, const Call *call, TirValue *c, const TirValue *clear) {
  int64_t first;
  TirValue *root = tir_root(c);
  bool clears = clear && (!staged_first_value(clear, &first) || first != 0);
  if (!clears && !map_has(e->initialized, root)) {
    diag_warning(e->ds, DIAG_accumulator_not_cleared, call->span,
                 "this gemm adds to '%s', which nothing has set before", tir_buffer_name(root));
    diag_note(e->ds, root->op->span, "'%s' is allocated here", tir_buffer_name(root));
    diag_hint(e->ds,
              clear ? "clear_accum is false in the first round"
                    : "clear(%s) before the loop, or clear_accum=",
              tir_buffer_name(root));
  }
  map_put(e->initialized, root, root);
}

enum { MAX_LOOPS_AROUND = 8, MAX_LOOK_BACK = 16 };

// The loops around what is emitted now, up to the accumulator's own block, the innermost first.
static int loops_around(Elab *e, const TirValue *root, TirOp **loops) {
  int count = 0;
  for (const TirBlock *block = e->b.block; block && block->owner && block != root->op->parent;
       block = block->owner->parent)
    if (tir_is_loop(block->owner) && count < MAX_LOOPS_AROUND) loops[count++] = block->owner;
  return count;
}

// Whether the value changes with the loop's rounds: by its variable, by variables that are set and elements of memory.
static bool changes_in(const TirValue *value, const TirOp *loop, int depth) {
  const TirOp *op = value->op;
  if (op == loop || depth == 0 || op->kind == OP_get || op->kind == OP_load) return true;
  if (op_def(op->kind)->nbodies) return false;
  for (int i = 0; i < op->nargs; i++)
    if (op->args[i] && changes_in(op->args[i], loop, depth - 1)) return true;
  return false;
}

// How many of the loops make up the sum: up to the outermost with which `clear` changes.
static int loops_of_sum(const TirValue *clear, TirOp *const *loops, int count) {
  while (count > 1 && !changes_in(clear, loops[count - 1], MAX_LOOK_BACK)) count--;
  return count;
}

// Whether the loop has no round, as far as that is known before `outermost`; NULL: it always has one.
static TirValue *has_no_round(TirBuilder *b, const TirOp *loop, const TirOp *outermost) {
  int64_t step;
  if (loop->kind != OP_for || !tir_const_int(loop->args[FOR_STEP], &step)) return tir_bool(b, true);
  TirValue *lo = loop->args[FOR_LO], *hi = loop->args[FOR_HI];
  if (step > 0 && tir_known_range(hi).lo > tir_known_range(lo).hi) return NULL;
  if (step < 0 && tir_known_range(hi).hi < tir_known_range(lo).lo) return NULL;
  bool known = loop == outermost || (tir_in_launch(lo) && tir_in_launch(hi));
  return known ? tir_binary(b, step > 0 ? OP_ge : OP_le, lo, hi) : tir_bool(b, true);
}

// A sum of no products is zero: where the loops of a sum, whose first product clears the accumulator, have no round,
// the accumulator gets zeros instead. Otherwise it would hold whatever was there (K = 0). In a role the author, who
// says when the accumulator may be written, has to do that.
static void zero_without_rounds(Elab *e, const Call *call, TirValue *root, const TirValue *clear) {
  TirOp *loops[MAX_LOOPS_AROUND];
  int count = loops_of_sum(clear, loops, loops_around(e, root, loops));
  if (count == 0 || tir_role_of(e->b.block)) return;
  TirBuilder b = tir_builder_before(e->b.module, loops[count - 1]);
  b.span = call->span;
  TirValue *none = NULL;
  for (int i = 0; i < count; i++) {
    TirValue *empty = has_no_round(&b, loops[i], loops[count - 1]);
    if (empty) none = none ? tir_binary(&b, OP_or, none, empty) : empty;
  }
  if (!none) return;
  TirOp *branch = tir_if(&b, none);
  TirBuilder inside = tir_builder_at_end(e->b.module, branch->bodies[0], call->span);
  DType dtype = root->type.dtype;
  TirValue *zero = dtype_is_float(dtype) ? tir_float(&inside, dtype, 0.0) : tir_int_typed(&inside, dtype, 0);
  TirValue *args[] = {root, zero};
  tir_op(&inside, OP_fill, 2, args, 0, NULL);
}

static bool read_operands(Elab *e, const Call *call, TirValue **args) {
  static const char *const what[] = {"operand A of gemm", "operand B of gemm", "the accumulator of gemm"};
  bool ok = true;
  for (int i = 0; i < 3; i++) {
    args[i] = tile_operand(e, &call->args[i], call->spans[i], what[i]);
    if (!args[i]) ok = false;
  }
  if (!given(&call->args[ARG_mbar])) return ok;
  args[OPERAND_barrier] = tile_barrier(e, &call->args[ARG_mbar], call->spans[ARG_mbar], "mbar");
  return args[OPERAND_barrier] && ok;
}

static Value gemm(Elab *e, const Call *call, bool is_explicit) {
  TirValue *args[OPERAND_count] = {0};
  int64_t attrs[OP_MAX_ATTRS];
  tile_initial_attrs(OP_gemm, attrs);
  attrs[GEMM_explicit] = is_explicit;
  if (!elab_placed(e, call->span, call->builtin->name, true)) return value_poison();
  bool ok = read_operands(e, call, args);
  ok = read_flag(e, call, ARG_trans_a, "transpose_A", &attrs[GEMM_trans_a]) && ok;
  ok = read_flag(e, call, ARG_trans_b, "transpose_B", &attrs[GEMM_trans_b]) && ok;
  ok = read_clear(e, call, &args[OPERAND_clear]) && ok;
  if (is_explicit && !given(&call->args[ARG_mbar])) {
    diag_error(e->ds, DIAG_call_arguments, call->span,
               "tcgen05_gemm needs mbar=: the barrier that it arrives on when it is done");
    diag_hint(e->ds,
              "done = alloc_barrier(1), then mbar=done and mbarrier_wait_parity(done, …); or use gemm");
    ok = false;
  }
  if (!ok) return value_poison();
  const Span spans[OPERAND_count] = {call->spans[0], call->spans[1], call->spans[2], call->spans[ARG_mbar],
                                     call->spans[ARG_clear]};
  TirValue *root = tir_root(args[OPERAND_c]);
  bool fresh = !map_has(e->initialized, root);
  if (!tile_emit(e, OP_gemm, OPERAND_count, args, spans, attrs, call->span)) return value_none();
  if (fresh && args[OPERAND_clear]) zero_without_rounds(e, call, root, args[OPERAND_clear]);
  warn_not_cleared(e, call, args[OPERAND_c], args[OPERAND_clear]);
  return value_none();
}

static Value run_gemm(Elab *e, const Call *call) {
  return gemm(e, call, false);
}
static Value run_tcgen05_gemm(Elab *e, const Call *call) {
  return gemm(e, call, true);
}

const Builtin builtins_tile[] = {
    {"copy", "src dst coalesced_width~ disable_tma? eviction_policy~ loop_layout! prefer_instruction!",
     run_copy},
    {"tma_copy", "src dst barrier? eviction_policy~ annotations!", run_tma_copy},
    {"fill", "buffer value", run_fill},
    {"clear", "buffer", run_clear},
    {"gemm",
     "A B C transpose_A|trans_A? transpose_B|trans_B? policy~ clear_accum? k_pack~ wg_wait~ mbar? use_2cta!",
     run_gemm},
    {"tcgen05_gemm",
     "A B C transpose_A|trans_A? transpose_B|trans_B? policy~ clear_accum? k_pack~ wg_wait~ mbar? use_2cta!",
     run_tcgen05_gemm},
    {NULL, NULL, NULL},
};

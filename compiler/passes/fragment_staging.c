// Where layouts do not meet, elements move between threads through shared memory:
//
//   copy %y, %staging                            # y[j, i] in a loop that is spread like x
//   parallel (m, n) { … load %staging[j, i] … store %x[i, j] … }
//
// A Parallel loop sees a fragment as it was before the loop, save where one of its iterations stores: stores at places
// other than the loop's own go to the buffer, from which the fragment is read back behind the loop. Copies between
// fragments that are spread differently, copies between TMEM and a fragment spread otherwise, and slices in tile ops
// go the same way. Buffers are shared by all stagings of one type and range of threads; the barriers pass sees them as any others.
#include "passes/fragment_staging.h"

#include "passes/fragment_layouts.h"
#include "passes/hazards.h"
#include "passes/reductions.h"
#include "target/rules.h"

typedef struct {
  TirValue *view;      // what has the fragment's shape
  TirThreads threads;  // that use it: those of other roles may run at the same time
  bool taken;          // by another fragment of the op at hand
} Staging;

typedef struct {
  PassCx *cx;
  TirKernel *kernel;
  TirThreads threads;  // of the op at hand
  VEC(Staging) stagings;
  bool ok;
} Stager;

static TirBuilder at_entry(Stager *s) {
  return tir_builder_before(s->cx->module, s->kernel->body->first);
}

static Layout *shared_rows(Stager *s) {
  Layout *layout = ARENA_NEW(s->cx->module->arena, Layout);
  *layout = (Layout){.kind = LAYOUT_SHARED, .offset = -1};
  return layout;
}

// Rows that fill all banks are padded by 16 bytes: threads that each hold a row would meet in one bank.
static Staging new_staging(Stager *s, const Type *type, Span span) {
  enum { BANKS = 128, PAD = 16 };
  Type padded = type_buffer(type->dtype, SPACE_SHARED, type->rank, type->shape);
  int last = type->rank - 1, bytes = dtype_bytes(type->dtype);
  TirValue *offsets[TYPE_MAX_RANK];
  bool pad = type->rank > 1 && bytes > 0 && type->shape[last] * bytes % BANKS == 0;
  if (pad) padded.shape[last] += PAD / bytes;
  TirBuilder b = at_entry(s);
  b.span = span;
  TirValue *buffer = tir_alloc(&b, intern(s->cx->module->names, "staging"), padded);
  buffer->layout = shared_rows(s);
  for (int d = 0; d <= last; d++) offsets[d] = tir_int(&b, 0);
  return (Staging){.view = pad ? tir_view(&b, buffer, offsets, type->shape, 0) : buffer};
}

static TirValue *staging_for(Stager *s, const TirValue *fragment, Span span) {
  Type wanted = fragment->type;
  wanted.space = SPACE_SHARED;
  for (int i = 0; i < s->stagings.len; i++) {
    Staging *staging = &s->stagings.data[i];
    bool same_threads = staging->threads.lo == s->threads.lo && staging->threads.hi == s->threads.hi;
    if (staging->taken || !same_threads || !type_equal(&staging->view->type, &wanted)) continue;
    staging->taken = true;
    return staging->view;
  }
  Staging staging = new_staging(s, &wanted, span);
  staging.taken = true;
  staging.threads = s->threads;
  vec_push(s->cx->scratch, &s->stagings, staging);
  return staging.view;
}

static void release_stagings(Stager *s) {
  for (int i = 0; i < s->stagings.len; i++) s->stagings.data[i].taken = false;
}

static void remark(Stager *s, const TirOp *op, const TirValue *fragment) {
  if (s->kernel->variant == VARIANT_GENERAL) return;
  diag_remark(s->cx->ds, op->span,
              "%s goes through shared memory here: its elements are needed by other threads than hold them",
              tir_buffer_name(fragment));
}

static void copy(Stager *s, TirBuilder b, TirValue *src, TirValue *dst) {
  TirOp *op = rule_make_copy(&b, src, dst);
  s->ok = s->cx->target->rules[op->kind](s->cx->target, op, false, s->cx->ds) && s->ok;
}

static TirBuilder before(Stager *s, TirOp *op) {
  return tir_builder_before(s->cx->module, op);
}

static TirBuilder after(Stager *s, TirOp *op) {
  return tir_builder_after(s->cx->module, op);
}

// ---- element accesses

static bool is_access(const TirOp *op, const TirValue *fragment) {
  return tile_is_element(op) && op->args[0] == fragment;
}

static bool same_place(const TirOp *a, const TirOp *b) {
  int first_a = a->kind == OP_store ? 2 : 1, first_b = b->kind == OP_store ? 2 : 1;
  for (int d = 0; d < a->args[0]->type.rank; d++)
    if (!tir_same_value(a->args[first_a + d], b->args[first_b + d])) return false;
  return true;
}

static bool is_stored_at(TirOpList body, const TirOp *load) {
  for (int i = 0; i < body.len; i++)
    if (body.data[i]->kind == OP_store && is_access(body.data[i], load->args[0]) &&
        same_place(body.data[i], load))
      return true;
  return false;
}

// Whether the loop sets every element of the fragment before it reads any at the same place.
static bool sets_all(const TirOp *parallel, TirOpList body, const TirValue *fragment) {
  for (int i = 0; i < body.len; i++) {
    const TirOp *op = body.data[i];
    if (!is_access(op, fragment)) continue;
    if (op->kind == OP_load && is_stored_at(body, op)) return false;
    FragmentAccess access = fragment_access(parallel, op);
    if (op->kind == OP_store && op->parent == parallel->bodies[0] && access.kind != ACCESS_ANY) return true;
  }
  return false;
}

typedef struct {
  bool load, store;
} Misfit;

static Misfit misfit_of(const TirOp *parallel, TirOpList body, const TirValue *fragment) {
  Misfit misfit = {false, false};
  for (int i = 0; i < body.len; i++) {
    const TirOp *op = body.data[i];
    if (!is_access(op, fragment) || fragment_access_fits(parallel, op)) continue;
    if (op->kind == OP_load) misfit.load = true;
    if (op->kind == OP_store) misfit.store = true;
  }
  return misfit;
}

// Stores go to one buffer, and so do loads of what is stored; other loads see the fragment as it was.
static void stage_in_loop(Stager *s, TirOp *parallel, TirOpList body, TirValue *fragment) {
  Misfit misfit = misfit_of(parallel, body, fragment);
  TirValue *written = NULL, *read = NULL;
  if (!misfit.load && !misfit.store) return;
  remark(s, parallel, fragment);
  if (misfit.store) {
    written = staging_for(s, fragment, parallel->span);
    if (!sets_all(parallel, body, fragment)) copy(s, before(s, parallel), fragment, written);
    copy(s, after(s, parallel), written, fragment);
  }
  for (int i = 0; i < body.len; i++) {
    TirOp *op = body.data[i];
    if (!is_access(op, fragment)) continue;
    if (written && (op->kind == OP_store || is_stored_at(body, op))) continue;
    if (op->kind == OP_store || fragment_access_fits(parallel, op)) continue;
    if (!read) {
      read = staging_for(s, fragment, parallel->span);
      copy(s, before(s, parallel), fragment, read);
    }
    op->args[0] = read;
  }
  for (int i = 0; i < body.len && written; i++) {
    TirOp *op = body.data[i];
    if (is_access(op, fragment) && (op->kind == OP_store || !fragment_access_fits(parallel, op)))
      op->args[0] = written;
  }
}

static bool follows_fragment(TirOpList body) {
  for (int i = 0; i < body.len; i++) {
    const TirOp *op = body.data[i];
    if (!tile_is_element(op) || !tile_is_fragment(op->args[0])) continue;
    if (op->kind == OP_store || !fragment_access_constant(op)) return true;
  }
  return false;
}

static void stage_loop(Stager *s, TirOp *parallel) {
  TirOpList body = tile_collect(s->cx->scratch, parallel->bodies[0]);
  for (int i = 0; i < body.len; i++)
    if (tile_is_element(body.data[i]) && tile_is_fragment(body.data[i]->args[0]))
      stage_in_loop(s, parallel, body, body.data[i]->args[0]);
  if (!follows_fragment(body)) parallel->results[0]->layout = NULL;
}

// An element outside of Parallel is used by every thread.
static void stage_element(Stager *s, TirOp *op) {
  TirValue *fragment = op->args[0];
  if (layout_held_whole(fragment->layout)) return;
  remark(s, op, fragment);
  op->args[0] = staging_for(s, fragment, op->span);
  copy(s, before(s, op), fragment, op->args[0]);
}

// ---- tile ops

static bool report_slice(Stager *s, const TirOp *op, const TirValue *slice) {
  diag_error(s->cx->ds, DIAG_fragment_access, op->span,
             "%s: this operation takes whole fragments, not slices of one", tir_buffer_name(slice));
  diag_hint(s->cx->ds, "copy the slice to a fragment of its own");
  s->ok = false;
  return false;
}

static void stage_slice(Stager *s, TirOp *op, int i) {
  TirOp *view = op->args[i]->op;
  TirValue *fragment = tir_root(op->args[i]);
  if (op_path(op) != PATH_THREADS || !(op_def(op->kind)->operands[i].spaces & 1u << SPACE_SHARED)) {
    report_slice(s, op, op->args[i]);
    return;
  }
  remark(s, op, fragment);
  TirValue *staging = staging_for(s, fragment, op->span), *slice = staging;
  VEC(TirOp *) views = {0};
  for (TirOp *at = view; at->kind == OP_view; at = at->args[0]->op) vec_push(s->cx->scratch, &views, at);
  copy(s, before(s, op), fragment, staging);
  TirBuilder b = before(s, op);
  for (int v = views.len - 1; v >= 0; v--) {
    const TirOp *at = views.data[v];
    slice = tir_view(&b, slice, at->args + 1, at->results[0]->type.shape, (unsigned)at->attrs[VIEW_drop]);
  }
  op->args[i] = slice;
  if (tile_access(op, i) & WRITES) copy(s, after(s, op), staging, fragment);
}

static TirValue *new_fragment(Stager *s, TirOp *op, const TirValue *like, Layout layout) {
  TirBuilder b = before(s, op);
  TirValue *part = tir_alloc(&b, intern(s->cx->module->names, tir_buffer_name(like)), like->type);
  part->layout = ARENA_NEW(s->cx->module->arena, Layout);
  *part->layout = layout;
  return part;
}

// TMEM gives and takes rows; another layout is reached from a fragment that has them.
static void stage_tmem_move(Stager *s, TirOp *op, int i) {
  TirValue *fragment = op->args[i];
  Layout rows;
  if (!layout_row(&fragment->type, tir_thread_count(s->threads), &rows)) return;  // reported by the solver
  if (layout_equal(&rows, fragment->layout)) return;
  TirValue *part = new_fragment(s, op, fragment, rows), *staging = staging_for(s, fragment, op->span);
  bool reads = tile_access(op, i) == READS;
  remark(s, op, fragment);
  op->args[i] = part;
  TirBuilder b = reads ? before(s, op) : after(s, op);
  copy(s, b, reads ? fragment : part, staging);
  copy(s, b, staging, reads ? part : fragment);
}

static void stage_move(Stager *s, TirOp *op, TirValue *src, TirValue *dst) {
  if (layout_equal(src->layout, dst->layout)) return;
  remark(s, op, src);
  TirValue *staging = staging_for(s, src, op->span);
  TirBuilder b = before(s, op);
  copy(s, b, src, staging);
  copy(s, b, staging, dst);
  tir_remove(op);
}

static void stage_tile_op(Stager *s, TirOp *op) {
  TirValue *src, *dst;
  TileReduction reduction;
  for (int i = 0; i < op->nargs; i++)
    if (tile_is_fragment(op->args[i]) && op->args[i]->op->kind == OP_view) stage_slice(s, op, i);
  if (!s->ok) return;
  if (op_path(op) == PATH_TMEM_LOAD || op_path(op) == PATH_TMEM_STORE) {
    for (int i = 0; i < op->nargs; i++)
      if (tile_is_fragment(op->args[i])) stage_tmem_move(s, op, i);
  } else if (tile_move(op, &src, &dst) && tile_is_fragment(src) && tile_is_fragment(dst)) {
    stage_move(s, op, src, dst);
  } else if (tile_reduction(op, &reduction)) {
    if (lower_reduction(s->cx, op, &reduction)) return;
    remark(s, op, reduction.src);
    TirValue *staging = staging_for(s, reduction.src, op->span);
    copy(s, before(s, op), reduction.src, staging);
    lower_reduction_in_memory(s->cx, op, &reduction, staging);
  }
}

bool stage_fragments(PassCx *cx, TirKernel *kernel) {
  Stager s = {.cx = cx, .kernel = kernel, .ok = true};
  TirOpList ops = tile_collect(cx->scratch, kernel->body);
  for (int i = 0; i < ops.len && s.ok; i++) {
    TirOp *op = ops.data[i];
    release_stagings(&s);
    s.threads = tir_active_threads(op->parent);
    if (op->kind == OP_parallel)
      stage_loop(&s, op);
    else if (tile_is(op))
      stage_tile_op(&s, op);
    else if (tile_is_element(op) && tile_is_fragment(op->args[0]) && !tile_outermost(op, OP_parallel))
      stage_element(&s, op);
  }
  return s.ok;
}

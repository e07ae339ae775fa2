// Accumulators in TMEM. The language lets a gemm accumulate into a fragment; tensor cores of a target with
// TMEM cannot. So the fragment becomes a TMEM buffer, and each Parallel loop that touches its elements works
// on a temporary fragment:
//
//   copy %C, %t          # unless the loop writes all of it without reading
//   parallel … { … %t … }
//   copy %t, %C          # if the loop writes it
//
// The temporary is fresh for each loop, so that the fragments pass can cut loop and copies into column
// pieces. A fragment that is an operand of a gemm is copied to a TMEM buffer of its own in front of it.
#include "passes/accumulators.h"

#include "passes/tile.h"
#include "target/rules.h"

static TirValue *new_fragment(PassCx *cx, TirBuilder *b, const TirValue *like, DType dtype) {
  Type type = type_buffer(dtype, SPACE_FRAGMENT, like->type.rank, like->type.shape);
  const char *name =
      tir_buffer_name(like);  // the op keeps it: messages call the temporary like the accumulator
  TirValue *part = tir_alloc(b, intern(cx->module->names, name), type);
  part->name = intern(cx->module->names, text_printf(cx->scratch, "%s_part", name));
  return part;
}

static bool accumulates(const TirOp *op, int i) {
  return tile_is(op) && tile_access(op, i) == ACCUMULATES &&
         op_def(op->kind)->operands[i].spaces & 1u << SPACE_TMEM;
}

static void move_to_tmem(TirOpList ops, TirValue *root) {
  root->type.space = SPACE_TMEM;
  for (int i = 0; i < ops.len; i++) {
    TirOp *op = ops.data[i];
    if (op->kind == OP_view && tir_root(op->results[0]) == root) op->results[0]->type.space = SPACE_TMEM;
  }
}

static bool report_element(PassCx *cx, const TirOp *op, const TirOp *gemm) {
  diag_error(
      cx->ds, DIAG_accumulator_access, op->span,
      "%s is an accumulator and lives in TMEM: its elements can be used only in a Parallel loop over them",
      tir_buffer_name(op->args[0]));
  diag_note(cx->ds, gemm->span, "it is accumulated here");
  return false;
}

static void use_instead(TirOpList body, const TirValue *buffer, TirValue *fragment) {
  for (int i = 0; i < body.len; i++)
    if (tile_is_element(body.data[i]) && body.data[i]->args[0] == buffer) body.data[i]->args[0] = fragment;
}

// Whether one unconditional store of the loop covers the buffer: its indices are the loop's variables over
// the whole shape.
static bool covers(const TirOp *parallel, const TirOp *store, const TirValue *buffer) {
  int rank = buffer->type.rank;
  if (store->parent != parallel->bodies[0] || parallel->nresults != rank || store->nargs != rank + 2)
    return false;
  for (int d = 0; d < rank; d++) {
    int64_t extent;
    if (store->args[2 + d] != parallel->results[d]) return false;
    if (!tir_const_int(parallel->args[d], &extent) || extent != buffer->type.shape[d]) return false;
  }
  return true;
}

typedef struct {
  bool reads, writes, covered;
} Use;

static Use use_in(const TirOp *parallel, TirOpList body, const TirValue *buffer) {
  Use use = {0};
  for (int i = 0; i < body.len; i++) {
    const TirOp *op = body.data[i];
    if (!tile_is_element(op) || op->args[0] != buffer) continue;
    if (op->kind == OP_load) use.reads = true;
    if (op->kind == OP_store) use.writes = true;
    if (op->kind == OP_store && !use.reads && covers(parallel, op, buffer)) use.covered = true;
  }
  return use;
}

// One loop's accesses to one buffer value (the accumulator or a view of it).
static void give_fragment(PassCx *cx, TirOp *parallel, TirOpList body, TirValue *buffer) {
  Use use = use_in(parallel, body, buffer);
  TirBuilder before = tir_builder_before(cx->module, parallel);
  TirValue *fragment = new_fragment(cx, &before, buffer, buffer->type.dtype);
  if (!use.covered) rule_make_copy(&before, buffer, fragment);
  use_instead(body, buffer, fragment);
  if (!use.writes) return;
  TirBuilder after = tir_builder_after(cx->module, parallel);
  rule_make_copy(&after, fragment, buffer);
}

// Two slices of one accumulator in a loop that writes it might overlap: their copies would not see each
// other.
static bool report_two_slices(PassCx *cx, const TirOp *first, const TirOp *second) {
  diag_error(cx->ds, DIAG_accumulator_access, second->span,
             "this loop uses two slices of %s, an accumulator in TMEM, and writes one: use one slice a loop",
             tir_buffer_name(second->args[0]));
  diag_note(cx->ds, first->span, "the other slice is used here");
  return false;
}

static bool rewrite_loop(PassCx *cx, TirOp *parallel, TirValue *root, const TirOp *gemm) {
  TirOpList body = tile_collect(cx->scratch, parallel->bodies[0]);
  const TirOp *first = NULL;
  bool writes = false;
  for (int i = 0; i < body.len; i++)
    if (body.data[i]->kind == OP_store && tir_root(body.data[i]->args[0]) == root) writes = true;
  for (int i = 0; i < body.len; i++) {
    TirOp *op = body.data[i];
    if (!tile_is_element(op) || tir_root(op->args[0]) != root) continue;
    if (tir_inside(op->args[0]->op, parallel)) return report_element(cx, op, gemm);
    if (first && writes) return report_two_slices(cx, first, op);
    first = op;
    give_fragment(cx, parallel, body, op->args[0]);
  }
  return true;
}

static bool rewrite_elements(PassCx *cx, TirOpList ops, TirValue *root, const TirOp *gemm) {
  bool ok = true;
  for (int i = 0; i < ops.len; i++) {
    TirOp *op = ops.data[i];
    if (!tile_is_element(op) || tir_root(op->args[0]) != root) continue;
    TirOp *parallel = tile_outermost(op, OP_parallel);
    ok = (parallel ? rewrite_loop(cx, parallel, root, gemm) : report_element(cx, op, gemm)) && ok;
    if (!ok) break;
  }
  return ok;
}

typedef VEC(TirValue *) Accumulators;

static bool move_accumulators(PassCx *cx, TirKernel *kernel, Accumulators *moved) {
  TirOpList ops = tile_collect(cx->scratch, kernel->body);
  bool ok = true;
  for (int i = 0; i < ops.len; i++) {
    TirOp *op = ops.data[i];
    for (int a = 0; a < op->nargs; a++) {
      if (!accumulates(op, a)) continue;
      TirValue *root = tir_root(op->args[a]);
      if (root->type.space != SPACE_FRAGMENT) continue;
      move_to_tmem(ops, root);
      vec_push(cx->scratch, moved, root);
      ok = rewrite_elements(cx, ops, root, op) && ok;
    }
  }
  return ok;
}

// Operand A from registers: through a TMEM buffer of its own.
static void move_operands(PassCx *cx, TirKernel *kernel) {
  TirOpList ops = tile_collect(cx->scratch, kernel->body);
  for (int i = 0; i < ops.len; i++) {
    TirOp *op = ops.data[i];
    for (int a = 0; a < op->nargs && op_def(op->kind)->operands[0].index; a++) {
      TirValue *operand = op->args[a];
      if (tile_access(op, a) != READS || !tile_is_fragment(operand)) continue;
      Type type = type_buffer(operand->type.dtype, SPACE_TMEM, operand->type.rank, operand->type.shape);
      const char *name = tir_buffer_name(operand);
      TirBuilder first = tir_builder_before(cx->module, kernel->body->first);
      first.span = op->span;
      TirValue *tmem = tir_alloc(&first, intern(cx->module->names, name), type);
      tmem->name = intern(cx->module->names, text_printf(cx->scratch, "%s_tmem", name));
      TirBuilder before = tir_builder_before(cx->module, op);
      rule_make_copy(&before, operand, tmem);
      op->args[a] = tmem;
    }
  }
}

static bool needs_fragment(const TirValue *tmem, const TirValue *other) {
  return tmem->type.space == SPACE_TMEM &&
         (other->type.space != SPACE_FRAGMENT || other->type.dtype != tmem->type.dtype);
}

static TirValue *through_fragment(PassCx *cx, TirBuilder *b, TirValue *from, const TirValue *like) {
  TirValue *fragment = new_fragment(cx, b, like, like->type.dtype);
  rule_make_copy(b, from, fragment);
  return fragment;
}

static void split_tmem_moves(PassCx *cx, TirKernel *kernel) {
  TirOpList ops = tile_collect(cx->scratch, kernel->body);
  for (int i = 0; i < ops.len; i++) {
    TirOp *op = ops.data[i];
    TirValue *src, *dst;
    if (!tile_move(op, &src, &dst)) continue;
    TirBuilder b = tir_builder_before(cx->module, op);
    TirValue *from = src;
    if (needs_fragment(src, dst)) from = through_fragment(cx, &b, from, src);
    if (needs_fragment(dst, from)) from = through_fragment(cx, &b, from, dst);
    for (int a = 0; a < op->nargs; a++)
      if (op->args[a] == src) op->args[a] = from;
  }
}

// Ops that work on fragments get one in place of a buffer that has moved to TMEM.
static void give_fragments(PassCx *cx, TirKernel *kernel) {
  TirOpList ops = tile_collect(cx->scratch, kernel->body);
  for (int i = 0; i < ops.len; i++) {
    TirOp *op = ops.data[i];
    for (int a = 0; tile_is(op) && a < op->nargs; a++) {
      unsigned access = tile_access(op, a);
      bool takes_tmem = access && op_def(op->kind)->operands[a].spaces & 1u << SPACE_TMEM;
      if (!access || takes_tmem || op->args[a]->type.space != SPACE_TMEM) continue;
      TirValue *tmem = op->args[a];
      TirBuilder before = tir_builder_before(cx->module, op), after = tir_builder_after(cx->module, op);
      op->args[a] = new_fragment(cx, &before, tmem, tmem->type.dtype);
      if (access & READS) rule_make_copy(&before, tmem, op->args[a]);
      if (access & WRITES) rule_make_copy(&after, op->args[a], tmem);
    }
  }
}

// ---- a value just stored is not loaded again

static bool uses(const TirOp *op, const TirValue *value) {
  for (int i = 0; i < op->nargs; i++)
    if (op->args[i] == value) return true;
  return false;
}

static bool used_outside(TirOpList ops, int from, int to, const TirValue *value) {
  for (int i = from; i < to; i++)
    if (uses(ops.data[i], value)) return true;
  return false;
}

// Whether the op, bodies apart, leaves alone what the fragment and the TMEM buffer hold: it computes, or works on other
// buffers.
static bool passes_by(const TirOp *op, const TirValue *stored, TirValue *tmem) {
  bool works = tile_is(op) || tile_is_element(op);
  if (op_def(op->kind)->pure || op->kind == OP_alloc || op->kind == OP_parallel || op->kind == OP_get)
    return true;
  for (int a = 0; works && a < op->nargs; a++) {
    if (!tile_access(op, a)) continue;
    if (tir_root(op->args[a]) == tir_root(tmem) || (op->args[a] == stored && tile_access(op, a) & WRITES))
      return false;
  }
  return works;
}

// The block that the op is in, Parallel loops apart.
static const TirBlock *block_of(TirOp *op) {
  TirOp *parallel = tile_outermost(op, OP_parallel);
  return parallel ? parallel->parent : op->parent;
}

// The load of what `ops.data[at]` stores, if nothing between touches either; its number, or -1.
static int find_reload(TirOpList ops, int at, TirValue *stored, TirValue *tmem) {
  for (int i = at + 1; i < ops.len; i++) {
    TirOp *op = ops.data[i];
    TirValue *src, *dst;
    if (block_of(op) != ops.data[at]->parent) return -1;
    if (passes_by(op, stored, tmem)) continue;
    bool reload = tile_move(op, &src, &dst) && src == tmem && dst->op->kind == OP_alloc &&
                  type_equal(&dst->type, &stored->type);
    if (!reload || dst->op->parent != op->parent || stored->op->parent != op->parent) return -1;
    bool fresh = !used_outside(ops, 0, i, dst), done = !used_outside(ops, i + 1, ops.len, stored);
    return fresh && done ? i : -1;
  }
  return -1;
}

// Whether a store to this buffer can still be seen: something reads it later, or earlier in a loop around
// both.
static bool is_read_after(TirOpList ops, int at, TirValue *tmem) {
  for (int i = 0; i < ops.len; i++) {
    TirOp *op = ops.data[i];
    bool reads = false;
    for (int a = 0; a < op->nargs; a++)
      reads = reads || (tile_access(op, a) & READS && tir_root(op->args[a]) == tir_root(tmem));
    if (!reads) continue;
    if (i > at) return true;
    for (TirOp *loop = tir_parent(ops.data[at]); loop; loop = tir_parent(loop))
      if (tir_is_loop(loop) && tir_inside(op, loop)) return true;
  }
  return false;
}

// Buffers that the user put into TMEM keep every copy that the user wrote.
static bool stores_fragment(const Accumulators *moved, const TirOp *op, TirValue **fragment,
                            TirValue **tmem) {
  if (!tile_move(op, fragment, tmem) || (*fragment)->op->kind != OP_alloc) return false;
  for (int i = 0; i < moved->len; i++)
    if (moved->data[i] == tir_root(*tmem)) return true;
  return false;
}

static bool forward_one(PassCx *cx, TirKernel *kernel, const Accumulators *moved) {
  TirOpList ops = tile_collect(cx->scratch, kernel->body);
  for (int i = 0; i < ops.len; i++) {
    TirValue *fragment, *tmem;
    if (!stores_fragment(moved, ops.data[i], &fragment, &tmem)) continue;
    int reload = find_reload(ops, i, fragment, tmem);
    if (reload < 0) continue;
    TirOp *load = ops.data[reload];
    TirValue *src, *dst;
    tile_move(load, &src, &dst);
    tir_remove(load);
    tir_remove(dst->op);
    tir_replace_uses(kernel, dst, fragment);
    return true;
  }
  return false;
}

static void forward_accumulators(PassCx *cx, TirKernel *kernel, const Accumulators *moved) {
  while (forward_one(cx, kernel, moved)) continue;
  TirOpList ops = tile_collect(cx->scratch, kernel->body);
  for (int i = 0; i < ops.len; i++) {
    TirValue *fragment, *tmem;
    if (stores_fragment(moved, ops.data[i], &fragment, &tmem) && !is_read_after(ops, i, tmem))
      tir_remove(ops.data[i]);
  }
}

bool place_accumulators(PassCx *cx, TirKernel *kernel) {
  if (cx->target->tmem_columns == 0) return place_in_registers(cx, kernel);
  Accumulators moved = {0};
  if (!move_accumulators(cx, kernel, &moved)) return false;
  move_operands(cx, kernel);
  split_tmem_moves(cx, kernel);
  give_fragments(cx, kernel);
  forward_accumulators(cx, kernel, &moved);
  return true;
}

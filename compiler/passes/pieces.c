// Column pieces. After a gemm the accumulator's whole tile is copied, computed on and copied out: hundreds of
// values a thread, which compile slowly and spill. Columns do not depend on each other, so a run of such ops
//
//   copy %C, %t; parallel (128, 256) { … %t[i, j] … }; copy %t, %S
//
// becomes a loop over pieces of a few columns, with fragments of one piece:
//
//   for c = 0, 256, 32 {
//     copy %C[:, c:c+32], %t; parallel (128, 32) { … %t[i, j] … c + j … }; copy %t, %S[:, c:c+32]
//   }
//
// A run is a stretch of a block whose ops touch fragments spread in rows (or vectors along their columns),
// where every fragment is set in the run before it is read and not used outside, and no two ops meet in
// memory. Fragments whose registers step through whole rows are cut into pieces of rows in the same way. Where roles wait for
// each other within a run, it ends there, so that what comes before runs while others work: unless it holds more over the
// wait than fits, then the wait is for all pieces together, in front of them.
#include "passes/pieces.h"

#include "passes/fragment_layouts.h"
#include "passes/hazards.h"
#include "passes/register_pool.h"
#include "passes/store_panels.h"
#include "target/rules.h"

typedef struct {
  PassCx *cx;
  TirKernel *kernel;
  int threads;             // that do the run
  TirOpList all;           // ops of the kernel
  VEC(TirValue *) barred;  // fragments that cannot be cut
  Type tile;               // of the run
  int cut;                 // the dimension of the tile that is cut: the last of two, or the first
  int64_t extent, step;    // its extent; what pieces are a multiple of, of rows
  Layout layout, across;   // of the tile; of a vector along the dimension
  TirOpList run, others;   // ops to cut; ops between them that may stand before them
  bool over_waits;         // waits for other roles may
} Cutter;

// ---- what a value is to the run's tile

typedef enum { SHAPE_TILE, SHAPE_ACROSS, SHAPE_OTHER } Shape;

static Shape shape_of(const Cutter *c, const Type *type, const Layout *layout) {
  if (!layout) return SHAPE_OTHER;
  bool same = type->rank == c->tile.rank && layout_equal(layout, &c->layout);
  for (int d = 0; d < type->rank && same; d++) same = type->shape[d] == c->tile.shape[d];
  if (same) return SHAPE_TILE;
  if (type->rank == 1 && type->shape[0] == c->extent && layout_equal(layout, &c->across)) return SHAPE_ACROSS;
  return SHAPE_OTHER;
}

static Shape loop_shape(const Cutter *c, const TirOp *parallel) {
  Type type = fragment_loop_type(parallel);
  return shape_of(c, &type, parallel->results[0]->layout);
}

static Shape fragment_shape(const Cutter *c, const TirValue *fragment) {
  return shape_of(c, &fragment->type, fragment->layout);
}

static bool barred(const Cutter *c, const TirValue *fragment) {
  for (int i = 0; i < c->barred.len; i++)
    if (c->barred.data[i] == fragment) return true;
  return false;
}

// ---- which ops can be cut

static bool can_cut_loop(const Cutter *c, TirOp *parallel) {
  if (loop_shape(c, parallel) == SHAPE_OTHER) return false;
  TirOpList body = tile_collect(c->cx->scratch, parallel->bodies[0]);
  for (int i = 0; i < body.len; i++) {
    const TirOp *op = body.data[i];
    if (op_def(op->kind)->pure || op->kind == OP_if || op->kind == OP_get) continue;
    if (!tile_is_element(op)) return false;
    if (!tile_is_fragment(op->args[0])) continue;
    if (barred(c, op->args[0])) return false;
    if (op->kind == OP_store && fragment_shape(c, op->args[0]) == SHAPE_OTHER) return false;
  }
  return true;
}

// A tile op on whole fragments: a move with another buffer on one side, or one that only writes a fragment.
static bool can_cut_tile_op(const Cutter *c, const TirOp *op) {
  TileReduction reduction;
  if (path_is_async(op_path(op)) || op_def(op->kind)->operands[0].index || tile_reduction(op, &reduction))
    return false;
  if (tile_ring(op) && c->cut == 0) return false;  // a panel has all rows
  bool found = false;
  for (int i = 0; i < op->nargs; i++) {
    if (!tile_is_fragment(op->args[i])) continue;
    if (barred(c, op->args[i]) || fragment_shape(c, op->args[i]) == SHAPE_OTHER) return false;
    found = true;
  }
  return found;
}

static bool can_cut(const Cutter *c, TirOp *op) {
  if (op->kind == OP_parallel) return can_cut_loop(c, op);
  return tile_is(op) && can_cut_tile_op(c, op);
}

// Ops that may move in front of the run: they depend on nothing the run does. Nor does what others are waited for, since a
// run tells nobody anything.
static bool is_neutral(const Cutter *c, const TirOp *op) {
  return op_def(op->kind)->pure || op->kind == OP_alloc || op->kind == OP_get ||
         (op->kind == OP_mbarrier_wait_parity && c->over_waits);
}

// ---- growing a run

static bool mentions(const TirOp *op, const TirValue *fragment) {
  for (int i = 0; i < op->nargs; i++)
    if (op->args[i] == fragment) return true;
  return false;
}

static bool in_list(const TirOpList *list, const TirOp *op) {
  for (int i = 0; i < list->len; i++)
    if (list->data[i] == op) return true;
  return false;
}

// The op of the run that an op belongs to: itself, or the Parallel loop around it.
static const TirOp *run_member(const Cutter *c, const TirOp *op) {
  for (const TirOp *at = op; at; at = tir_parent(at))
    if (in_list(&c->run, at)) return at;
  return NULL;
}

static bool adopt(Cutter *c, const Type *type, const Layout *layout, int cut, int64_t step) {
  c->tile = *type;
  c->layout = *layout;
  c->cut = cut;
  c->step = step;
  c->extent = type->shape[cut];
  if (!layout_project(layout, type, &cut, 1, &c->across)) c->across = (Layout){.kind = LAYOUT_SHARED};
  return true;
}

static bool adopt_columns(Cutter *c, const Type *type, const Layout *layout) {
  Layout row;
  enum { ROWS_OF_WARP = 32 };  // of so few rows each warp has all, and the columns are spread over the warps
  if (type->rank != 2 || type->shape[0] == ROWS_OF_WARP || !layout_row(type, c->threads, &row)) return false;
  return layout_equal(&row, layout) && adopt(c, type, layout, 1, 1);
}

// The last registers step through whole rows, all of them; the others stay within a step.
static bool adopt_rows(Cutter *c, const Type *type, const Layout *layout) {
  if (layout->kind != LAYOUT_FRAGMENT || layout->nregister_modes == 0) return false;
  if (type->rank == 0 || type_elements(type) <= 0) return false;
  int last = layout->nregister_modes - 1;
  int64_t inner = type_elements(type) / type->shape[0], reach = 0;
  LayoutMode steps = layout->reg[last];
  for (int i = 0; i < layout->nthread_modes; i++)
    reach += (layout->thread[i].extent - 1) * layout->thread[i].stride;
  for (int i = 0; i < last; i++) reach += (layout->reg[i].extent - 1) * layout->reg[i].stride;
  bool whole = steps.stride > reach && steps.stride % inner == 0 &&
               steps.extent * (steps.stride / inner) == type->shape[0];
  return whole && adopt(c, type, layout, 0, steps.stride / inner);
}

// The tile that this op works on, if it can be cut.
static bool adopt_tile(Cutter *c, const TirOp *op) {
  Type type = {0};
  const Layout *layout = NULL;
  if (op->kind == OP_parallel) {
    type = fragment_loop_type(op);
    layout = op->results[0]->layout;
  }
  c->threads = tir_thread_count(tir_active_threads(op->parent));
  for (int i = 0; i < op->nargs && op->kind != OP_parallel; i++) {
    if (!tile_is(op) || !tile_is_fragment(op->args[i])) continue;
    type = op->args[i]->type;
    layout = tir_layout(op->args[i]);
  }
  if (!layout || !type_is_static(&type)) return false;
  return adopt_columns(c, &type, layout) || adopt_rows(c, &type, layout);
}

static void grow(Cutter *c, TirOp *first) {
  c->run.len = c->others.len = 0;
  TirOp *begin = first;
  for (TirOp *op = first->prev; op && (is_neutral(c, op) || can_cut(c, op)); op = op->prev)
    if (!is_neutral(c, op)) begin = op;
  for (TirOp *op = begin; op; op = op->next) {
    bool cut = can_cut(c, op);
    if (!cut && !is_neutral(c, op)) break;
    if (cut)
      vec_push(c->cx->scratch, &c->run, op);
    else
      vec_push(c->cx->scratch, &c->others, op);
  }
}

// ---- what forbids a run

static bool escapes(const Cutter *c, const TirValue *fragment) {
  bool set = false;
  for (int i = 0; i < c->all.len; i++) {
    TirOp *op = c->all.data[i];
    for (int a = 0; a < op->nargs; a++) {
      if (!op->args[a] || op->args[a]->type.kind != TYPE_BUFFER || tir_root(op->args[a]) != fragment)
        continue;
      if (!run_member(c, op)) return true;
      if (set) continue;
      // The first use must set all of it, or the value would come from before the run.
      if (tile_access(op, a) != WRITES) return true;
      if (tile_is(op))
        set = true;
      else if (tir_parent(op)->kind == OP_parallel)
        set = true;  // not under a condition
      else
        return true;
    }
  }
  return false;
}

// The first fragment of the run that cannot be cut; NULL when all can.
static TirValue *find_escape(const Cutter *c) {
  for (int i = 0; i < c->all.len; i++) {
    TirOp *op = c->all.data[i];
    if (!run_member(c, op)) continue;
    for (int a = 0; a < op->nargs; a++) {
      if (!tile_is_fragment(op->args[a]) || fragment_shape(c, op->args[a]) == SHAPE_OTHER) continue;
      if (escapes(c, op->args[a])) return op->args[a];
    }
  }
  return NULL;
}

// Memory that one op of the run writes and another touches would be seen in another order; the same tile of
// it is cut alike. But panels of two stores that share a ring or a tensor are in order only as long as they do not mix.
static bool ops_meet(const TirOp *a, unsigned a_access, const TirValue *a_buffer, const TirOp *b,
                     unsigned b_access, TirValue *b_buffer) {
  if (!((a_access | b_access) & WRITES) || tir_root((TirValue *)a_buffer) != tir_root(b_buffer)) return false;
  bool alike = tile_is(a) && tile_is(b) && !tile_ring(a) && tir_same_value(a_buffer, b_buffer);
  return a != b && !alike;
}

static unsigned contact_of(const TirOp *op, int a) {
  return op->args[a] && op->args[a] == tile_ring(op) ? WRITES : tile_access(op, a);
}

typedef struct {
  const TirOp *member;
  TirValue *buffer;
  unsigned access;
} Contact;

// Cuts the run's end off before an op that meets an earlier one in memory.
static void stop_at_meeting(Cutter *c) {
  VEC(Contact) touches = {0};
  for (int i = 0; i < c->run.len; i++) {
    TirOpList ops = {0};
    vec_push(c->cx->scratch, &ops, c->run.data[i]);
    if (c->run.data[i]->kind == OP_parallel) ops = tile_collect(c->cx->scratch, c->run.data[i]->bodies[0]);
    for (int o = 0; o < ops.len; o++) {
      for (int a = 0; a < ops.data[o]->nargs; a++) {
        Contact touch = {c->run.data[i], ops.data[o]->args[a], contact_of(ops.data[o], a)};
        if (!touch.access || tile_is_fragment(touch.buffer)) continue;
        for (int t = 0; t < touches.len; t++) {
          const Contact *other = &touches.data[t];
          if (!ops_meet(other->member, other->access, other->buffer, touch.member, touch.access,
                        touch.buffer))
            continue;
          c->run.len = i;
          return;
        }
        vec_push(c->cx->scratch, &touches, touch);
      }
    }
  }
}

// ---- how wide a piece is

// Values a thread holds of all fragments of the run when a piece has `piece` columns or rows.
static int64_t values_held(const Cutter *c, int64_t piece) {
  VEC(TirValue *) counted = {0};
  int64_t sum = 0;
  for (int i = 0; i < c->all.len; i++) {
    TirOp *op = c->all.data[i];
    if (!run_member(c, op)) continue;
    for (int a = 0; a < op->nargs; a++) {
      bool seen = !tile_is_fragment(op->args[a]);
      for (int k = 0; k < counted.len && !seen; k++) seen = counted.data[k] == op->args[a];
      if (seen) continue;
      vec_push(c->cx->scratch, &counted, op->args[a]);
      int64_t registers = layout_registers(op->args[a]->layout);
      sum += fragment_shape(c, op->args[a]) == SHAPE_OTHER ? registers : registers * piece / c->extent;
    }
  }
  return sum;
}

// A piece of a swizzled tile lies in one panel, so that its columns are adjacent.
static bool suits_panels(const Cutter *c, int64_t piece) {
  for (int i = 0; i < c->run.len; i++) {
    TirValue *src, *dst;
    if (!tile_move(c->run.data[i], &src, &dst)) continue;
    TirValue *shared = src->type.space == SPACE_SHARED ? src : dst;
    if (shared->type.space != SPACE_SHARED || tir_layout(shared)->span == 0) continue;
    RuleTile tile = rule_tile(shared);
    int last = tile.dim[shared->type.rank - 1];
    int64_t panel = tir_layout(shared)->span / dtype_bytes(shared->type.dtype);
    if (last != tile.root->type.rank - 1 || panel % piece || tile.start[last].multiple % piece) return false;
  }
  return true;
}

static int64_t choose_rows(const Cutter *c) {
  enum { VALUES = PIECE_VALUES / 2 };  // here they only pass through
  int64_t steps = c->extent / c->step;
  for (int64_t n = steps / 2; n > 1; n--)
    if (steps % n == 0 && values_held(c, n * c->step) <= VALUES) return n * c->step;
  return c->step;
}

static int64_t choose_piece(const Cutter *c) {
  if (c->cut == 0) return choose_rows(c);
  int groups = c->threads / 128;
  int64_t fallback = 0;
  for (int64_t piece = 32 * groups; piece >= 8 * groups; piece /= 2) {
    if (c->extent % piece || !suits_panels(c, piece)) continue;
    if (values_held(c, piece) <= PIECE_VALUES) return piece;
    fallback = piece;
  }
  return fallback;
}

// ---- rewriting

// The dimension that is cut of a tile, or of a vector along it.
static int cut_of(const Cutter *c, int rank) {
  return rank == 1 ? 0 : c->cut;
}

static TirValue *slice(const Cutter *c, TirBuilder *b, TirValue *buffer, TirValue *start, int64_t piece) {
  TirValue *offsets[TYPE_MAX_RANK];
  int64_t extents[TYPE_MAX_RANK];
  int cut = cut_of(c, buffer->type.rank);
  for (int d = 0; d < buffer->type.rank; d++) {
    offsets[d] = d == cut ? start : tir_int(b, 0);
    extents[d] = d == cut ? piece : buffer->type.shape[d];
  }
  return tir_view(b, buffer, offsets, extents, 0);
}

static void cut_tile_op(Cutter *c, TirOp *op, TirValue *column, int64_t piece) {
  TirBuilder b = tir_builder_before(c->cx->module, op);
  for (int i = 0; i < op->nargs; i++)
    if (tile_access(op, i) && !tile_is_fragment(op->args[i]))
      op->args[i] = slice(c, &b, op->args[i], column, piece);
}

// Whether argument `a` of an access picks the column of a fragment that becomes one piece.
static bool picks_piece_column(const Cutter *c, const TirOp *op, int a) {
  if (!tile_is_element(op) || !tile_is_fragment(op->args[0])) return false;
  Shape shape = fragment_shape(c, op->args[0]);
  int first = op->kind == OP_store ? 2 : 1;
  return shape != SHAPE_OTHER && a == first + cut_of(c, op->args[0]->type.rank);
}

// The layout of what had this shape, once it has `piece` columns or rows.
static Layout *piece_layout(Cutter *c, Shape shape, int64_t piece) {
  Layout *layout = ARENA_NEW(c->cx->module->arena, Layout), whole = c->layout;
  Type tile = c->tile;
  tile.shape[c->cut] = piece;
  if (c->cut == 0) {
    LayoutMode *steps = &whole.reg[whole.nregister_modes - 1];
    steps->extent = piece / c->step;
    if (steps->extent == 1) whole.nregister_modes--;
  } else if (!layout_row(&tile, c->threads, &whole)) {
    BUG("a piece of %d columns has no layout", (int)piece);
  }
  *layout = whole;
  if (shape == SHAPE_ACROSS) layout_project(&whole, &tile, &c->cut, 1, layout);
  return layout;
}

static void cut_loop(Cutter *c, TirOp *parallel, TirValue *column, int64_t piece) {
  int last = cut_of(c, parallel->nresults);
  TirOpList body = tile_collect(c->cx->scratch, parallel->bodies[0]);
  TirBuilder before = tir_builder_before(c->cx->module, parallel);
  TirValue *within = parallel->results[last];
  parallel->results[0]->layout = piece_layout(c, loop_shape(c, parallel), piece);
  parallel->args[last] = tir_int(&before, piece);
  if (!parallel->bodies[0]->first) return;
  TirBuilder b = tir_builder_before(c->cx->module, parallel->bodies[0]->first);
  TirValue *whole = tir_binary(&b, OP_add, column, within);
  for (int i = 0; i < body.len; i++)
    for (int a = 0; a < body.data[i]->nargs; a++)
      if (body.data[i]->args[a] == within && !picks_piece_column(c, body.data[i], a))
        body.data[i]->args[a] = whole;
}

// Shrinks the run's fragments; after this their shapes no longer match the run's tile.
static void shrink_fragments(Cutter *c, int64_t piece) {
  for (int i = 0; i < c->all.len; i++) {
    TirOp *op = c->all.data[i];
    if (!run_member(c, op)) continue;
    for (int a = 0; a < op->nargs; a++) {
      TirValue *fragment = op->args[a];
      if (!tile_is_fragment(fragment) || fragment_shape(c, fragment) == SHAPE_OTHER) continue;
      fragment->layout = piece_layout(c, fragment_shape(c, fragment), piece);
      fragment->type.shape[cut_of(c, fragment->type.rank)] = piece;
    }
  }
}

// Ops between those of the run go in front of it.
static void move_others(Cutter *c) {
  TirOp *first = c->run.data[0], *end = c->run.data[c->run.len - 1];
  for (int i = 0; i < c->others.len; i++) {
    TirOp *op = c->others.data[i];
    bool before_end = false;
    for (TirOp *at = op; at; at = at->next) before_end = before_end || at == end;
    if (!before_end) continue;
    tir_remove(op);
    tir_insert_before(first, op);
  }
}

// Returns the loop over pieces.
static TirOp *rewrite(Cutter *c, int64_t piece) {
  move_others(c);
  TirBuilder b = tir_builder_before(c->cx->module, c->run.data[0]);
  TirOp *loop = tir_for(&b, LOOP_SERIAL, tir_int(&b, 0), tir_int(&b, c->extent), tir_int(&b, piece));
  loop->results[0]->name = intern(c->cx->module->names, "piece");
  for (int i = 0; i < c->run.len; i++) {
    TirOp *op = c->run.data[i];
    tir_remove(op);
    tir_append(loop->bodies[0], op);
    if (op->kind == OP_parallel)
      cut_loop(c, op, loop->results[0], piece);
    else
      cut_tile_op(c, op, loop->results[0], piece);
  }
  shrink_fragments(c, piece);
  return loop;
}

// ---- sinking loads

static bool is_written(const Cutter *c, const TirValue *root) {
  for (int i = 0; i < c->all.len; i++)
    for (int a = 0; a < c->all.data[i]->nargs; a++)
      if (tile_access(c->all.data[i], a) & WRITES && tir_root(c->all.data[i]->args[a]) == root) return true;
  return false;
}

// The first op behind `op` in its block that uses the fragment, itself or in a body; NULL when another place
// uses it too.
static TirOp *next_use(const Cutter *c, TirOp *op, const TirValue *fragment) {
  TirOp *first = NULL;
  for (int i = 0; i < c->all.len; i++) {
    TirOp *use = c->all.data[i];
    if (!mentions(use, fragment) || use == op) continue;
    TirOp *at = use;
    while (at && at->parent != op->parent) at = tir_parent(at);
    bool behind = false;
    for (const TirOp *next = op->next; next && at; next = next->next) behind = behind || next == at;
    if (!behind) return NULL;
    if (!first) first = at;
  }
  return first;
}

static bool replicates(const Layout *layout) {
  for (int i = 0; i < layout->nthread_modes; i++)
    if (layout->thread[i].stride == 0) return true;
  return false;
}

static bool cuts_columns(const Cutter *c, const TirOp *op) {
  Cutter probe = *c;
  return adopt_tile(&probe, op) && probe.cut > 0;
}

// A vector across the columns that is read from a tensor long before the run that uses it would be held
// whole, by every thread, until then. The tensor does not change, so it can just as well be read there.
static void sink_loads(const Cutter *c) {
  for (int i = 0; i < c->all.len; i++) {
    TirOp *op = c->all.data[i];
    TirValue *src, *dst;
    if (!tile_move(op, &src, &dst) || src->type.space != SPACE_GLOBAL || !tile_is_fragment(dst)) continue;
    if (!replicates(dst->layout) || is_written(c, tir_root(src))) continue;
    TirOp *use = next_use(c, op, dst);
    if (!use || tir_is_loop(use) || !cuts_columns(c, use)) continue;
    tir_remove(op);
    tir_insert_before(use, op);
  }
}

// ---- finding runs

// Settles the run around `first`: fragments that escape it are barred and what touches them leaves it. False:
// nothing to cut.
static bool settle_run(Cutter *c, TirOp *first) {
  c->barred.len = 0;
  for (;;) {
    if (!can_cut(c, first)) return false;
    grow(c, first);
    stop_at_meeting(c);
    if (!in_list(&c->run, first)) return false;
    TirValue *escape = find_escape(c);
    if (!escape) return c->run.len > 0;
    vec_push(c->cx->scratch, &c->barred, escape);
  }
}

// Whether the run has set a fragment where it waits that it reads behind the wait.
static bool holds_at(const Cutter *c, const TirOp *wait) {
  VEC(const TirValue *) set = {0};
  bool behind = false;
  for (int i = 0; i < c->all.len; i++) {
    const TirOp *op = c->all.data[i];
    behind = behind || op == wait;
    if (!run_member(c, op)) continue;
    for (int a = 0; a < op->nargs && !behind; a++)
      if (tile_is_fragment(op->args[a])) vec_push(c->cx->scratch, &set, op->args[a]);
    for (int k = 0; k < set.len && behind; k++)
      if (mentions(op, set.data[k])) return true;
  }
  return false;
}

static bool must_cross_waits(const Cutter *c) {
  if (values_held(c, c->extent) <= pool_fragment_registers(c->cx->target, c->kernel->threads)) return false;
  for (int i = 0; i < c->others.len; i++)
    if (c->others.data[i]->kind == OP_mbarrier_wait_parity && holds_at(c, c->others.data[i])) return true;
  return false;
}

static bool settle(Cutter *c, TirOp *first) {
  c->over_waits = true;
  if (settle_run(c, first) && must_cross_waits(c)) return true;
  c->over_waits = false;
  return settle_run(c, first);
}

static void remark(const Cutter *c, const TirOp *op, int64_t piece) {
  if (c->kernel->variant == VARIANT_GENERAL) return;
  diag_remark(c->cx->ds, op->span, "work on fragments from here on goes through %d %s at a time, %d in all",
              (int)piece, c->cut ? "columns" : "rows", (int)c->extent);
}

// Columns of the widest panel that an op of the run stores; 0: none does.
static int64_t panel_of(const Cutter *c) {
  int64_t widest = 0;
  for (int i = 0; i < c->run.len; i++) {
    TirValue *ring = tile_ring(c->run.data[i]);
    if (ring && ring->type.shape[2] > widest) widest = ring->type.shape[2];
  }
  return widest;
}

// A run that stores by panels: as wide as they are, and each leaves at the end of its round. What is left of the round
// may be cut once more. False: it cannot be cut so.
static bool cut_panels(Cutter *c, int64_t panel) {
  Type tile = c->tile;
  Layout layout;
  tile.shape[c->cut] = panel;
  if (!suits_panels(c, panel) || !layout_row(&tile, c->threads, &layout)) return false;
  bool again = values_held(c, panel) > PIECE_VALUES;
  TirOp *loop = NULL;
  if (panel < c->extent) {
    remark(c, c->run.data[0], panel);
    loop = rewrite(c, panel);
  } else {
    move_others(c);
  }
  TirOp *begin = loop ? loop->bodies[0]->first : c->run.data[0];
  for (int i = 0; i < c->run.len; i++)
    if (tile_ring(c->run.data[i])) store_panels(c->cx, c->run.data[i], loop, again ? begin : c->run.data[i]);
  return true;
}

// Cuts the first run that is long enough. False: there is none.
static bool cut_block(Cutter *c, TirBlock *block) {
  for (TirOp *op = block->first; op; op = op->next) {
    for (int i = 0; i < op->nbodies && op->kind != OP_parallel; i++)
      if (cut_block(c, op->bodies[i])) return true;
    if (!adopt_tile(c, op) || !settle(c, op)) continue;
    int64_t panel = panel_of(c);
    if (panel) {
      if (cut_panels(c, panel)) return true;
      continue;
    }
    int64_t piece = values_held(c, c->extent) > PIECE_VALUES ? choose_piece(c) : 0;
    if (piece == 0 || piece == c->extent) continue;
    remark(c, op, piece);
    rewrite(c, piece);
    return true;
  }
  return false;
}

void cut_pieces(PassCx *cx, TirKernel *kernel) {
  for (;;) {
    Cutter cutter = {.cx = cx, .kernel = kernel, .all = tile_collect(cx->scratch, kernel->body)};
    sink_loads(&cutter);
    if (!cut_block(&cutter, kernel->body)) return;
  }
}

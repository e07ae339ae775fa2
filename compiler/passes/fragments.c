// Needs    TIR_LAID_OUT: accumulators are in TMEM, shared buffers have layouts.
// Does     Makes a fragment of each part of a fragment's life (fragment_lives.c), decides which thread holds which element of each fragment (fragment_layouts.c), leads what these layouts do
//          not serve through shared memory (fragment_staging.c, reductions.c), and cuts long runs of work on fragments
//          into column pieces (pieces.c).
// Leaves   TIR_FRAGMENTS: a layout on every fragment and on every Parallel loop over one.
// Reports  Thread counts that do not suit TMEM, fragments larger than the registers.
#include "passes/fragment_layouts.h"
#include "passes/fragment_lives.h"
#include "passes/fragment_staging.h"
#include "passes/register_pool.h"
#include "passes/pieces.h"
#include "passes/store_panels.h"

typedef struct {
  TirValue *fragment;
  int begin, end;      // numbers of the first and last op that uses it
  TirThreads threads;  // that use it
} Life;

static int number_of(TirOpList ops, const TirOp *op) {
  for (int i = 0; i < ops.len; i++)
    if (ops.data[i] == op) return i;
  return -1;
}

static int last_inside(TirOpList ops, const TirOp *ancestor) {
  int last = number_of(ops, ancestor);
  while (last + 1 < ops.len && tir_inside(ops.data[last + 1], ancestor)) last++;
  return last;
}

// A use inside a loop that the fragment outlives keeps it alive for the whole loop, unless its rounds were blocks; a thread's
// iterations of a Parallel loop are unrolled, so all its fragments are live at once.
static bool lasts(const TirOp *loop, const TirOp *alloc) {
  if (loop->kind == OP_parallel) return true;
  bool tiles = loop->kind == OP_for && loop->attrs[FOR_kind] == LOOP_TILES;
  return tir_is_loop(loop) && !tiles && !tir_inside(alloc, loop);
}

static void extend(TirOpList ops, Life *life, int use) {
  const TirOp *alloc = life->fragment->op, *around = NULL;
  for (TirOp *at = tir_parent(ops.data[use]); at; at = tir_parent(at))
    if (lasts(at, alloc)) around = at;
  int begin = around ? number_of(ops, around) : use, end = around ? last_inside(ops, around) : use;
  if (life->begin < 0 || begin < life->begin) life->begin = begin;
  if (end > life->end) life->end = end;
}

static Life life_of(TirOpList ops, TirValue *fragment) {
  Life life = {.fragment = fragment, .begin = -1, .end = -1};
  for (int i = 0; i < ops.len; i++)
    for (int a = 0; a < ops.data[i]->nargs; a++) {
      if (ops.data[i]->args[a] != fragment) continue;
      life.threads = tir_active_threads(ops.data[i]->parent);
      extend(ops, &life, i);
    }
  return life;
}

// Registers that a thread's part takes: one a value, since ptxas packs none.
static int64_t registers_of(const TirValue *fragment) {
  return layout_registers(fragment->layout);
}

// Whether a thread that holds one holds the other at op number `at`.
static bool held_with(const Life *life, const Life *other, int at) {
  bool same_threads = life->threads.lo < other->threads.hi && other->threads.lo < life->threads.hi;
  return same_threads && other->begin <= at && other->end >= at;
}

static bool is_replicated(const TirValue *fragment) {
  int64_t elements = 1;
  for (int d = 0; d < fragment->type.rank; d++) elements *= fragment->type.shape[d];
  return elements > 1 && layout_registers(fragment->layout) == elements &&
         layout_threads(fragment->layout) > 1;
}

// Of a fragment that nothing uses, which is live nowhere.
static bool report_unused(PassCx *cx, const TirValue *fragment) {
  diag_error(cx->ds, DIAG_fragment_registers, fragment->op->span,
             "%s needs %lld registers of each thread; there are %d for fragments", tir_buffer_name(fragment),
             (long long)registers_of(fragment), cx->target->fragment_registers);
  return false;
}

static void report_registers(PassCx *cx, const Life *lives, int count, const Life *life, int64_t sum) {
  const TirValue *largest = NULL;
  int at = life->begin;
  for (int i = 0; i < count; i++) {
    if (!held_with(life, &lives[i], at)) continue;
    if (!largest || registers_of(lives[i].fragment) > registers_of(largest)) largest = lives[i].fragment;
  }
  diag_error(cx->ds, DIAG_fragment_registers, largest->op->span,
             "fragments live at once need %lld registers of each thread; there are %d for them",
             (long long)sum, cx->target->fragment_registers);
  for (int i = 0; i < count; i++) {
    if (!held_with(life, &lives[i], at)) continue;
    diag_note(cx->ds, lives[i].fragment->op->span, "%s takes %lld%s", tir_buffer_name(lives[i].fragment),
              (long long)registers_of(lives[i].fragment),
              is_replicated(lives[i].fragment) ? ": every thread holds all of it" : "");
  }
  diag_hint(cx->ds, "use more threads, smaller tiles, or keep the data in shared memory");
}

static bool check_registers(PassCx *cx, TirKernel *kernel) {
  TirOpList ops = tile_collect(cx->scratch, kernel->body);
  VEC(Life) lives = {0};
  for (int i = 0; i < ops.len; i++) {
    TirOp *op = ops.data[i];
    if (op->kind == OP_alloc && tile_is_fragment(op->results[0]) && !op->attrs[ALLOC_late])
      vec_push(cx->scratch, &lives, life_of(ops, op->results[0]));
  }
  for (int i = 0; i < lives.len; i++) {
    int at = lives.data[i].begin;
    int64_t sum = 0;
    if (at < 0 && registers_of(lives.data[i].fragment) > cx->target->fragment_registers)
      return report_unused(cx, lives.data[i].fragment);
    for (int k = 0; k < lives.len; k++)
      if (at >= 0 && held_with(&lives.data[i], &lives.data[k], at))
        sum += registers_of(lives.data[k].fragment);
    if (sum <= cx->target->fragment_registers) continue;
    report_registers(cx, lives.data, lives.len, &lives.data[i], sum);
    return false;
  }
  return true;
}

bool pass_fragments(PassCx *cx, TirKernel *kernel) {
  split_fragments(cx, kernel);
  if (!lay_out_fragments(cx, kernel) || !stage_fragments(cx, kernel)) return false;
  await_panels(cx, kernel);
  cut_pieces(cx, kernel);
  store_remaining_panels(cx, kernel);
  return check_registers(cx, kernel) && check_accumulators(cx, kernel) && check_register_pool(cx, kernel);
}

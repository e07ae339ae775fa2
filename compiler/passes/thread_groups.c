// A fragment lives in the registers of the threads that use it, so all its uses are in roles of one range. Warps reach the
// lanes of TMEM by their number (PTX ISA 9.7.16.8.1), so a range that touches TMEM is groups of four warps, the first of
// which has a number that four divides.
#include "passes/thread_groups.h"

#include "passes/hazards.h"

enum { LANES = 128 };

static bool same(TirThreads a, TirThreads b) {
  return a.lo == b.lo && a.hi == b.hi;
}

static ThreadGroup *group_of(PassCx *cx, ThreadGroups *groups, TirThreads threads) {
  for (int i = 0; i < groups->len; i++)
    if (same(groups->data[i].threads, threads)) return &groups->data[i];
  vec_push(cx->scratch, groups, ((ThreadGroup){.threads = threads}));
  return &groups->data[groups->len - 1];
}

static bool report_two_ranges(PassCx *cx, const TirValue *fragment, const TirOp *first, const TirOp *second) {
  TirThreads a = tir_active_threads(first->parent), b = tir_active_threads(second->parent);
  diag_error(cx->ds, DIAG_role_threads, second->span,
             "fragment %s is used by threads %d to %d here and by %d to %d elsewhere: it lives in the "
             "registers of one "
             "range of threads",
             tir_buffer_name(fragment), b.lo, b.hi - 1, a.lo, a.hi - 1);
  diag_note(cx->ds, first->span, "the other use is here");
  diag_hint(cx->ds, "allocate a fragment for each role; between roles, values go through shared memory");
  return false;
}

// The first op that uses each fragment.
static bool find_users(PassCx *cx, TirOpList ops, Map *users) {
  bool ok = true;
  for (int i = 0; i < ops.len; i++) {
    for (int a = 0; a < ops.data[i]->nargs && !op_def(ops.data[i]->kind)->pure; a++) {
      if (!tile_is_fragment(ops.data[i]->args[a])) continue;
      TirValue *fragment = tir_root(ops.data[i]->args[a]);
      const TirOp *first = map_get(users, fragment);
      if (!first)
        map_put(users, fragment, ops.data[i]);
      else if (!same(tir_active_threads(first->parent), tir_active_threads(ops.data[i]->parent)))
        ok = ok && report_two_ranges(cx, fragment, first, ops.data[i]);
    }
  }
  return ok;
}

static bool check_tmem(PassCx *cx, const TirOp *op) {
  TirThreads threads = tir_active_threads(op->parent);
  const TirOp *role = tir_role_of(op->parent);
  bool touches = op_path(op) == PATH_TMEM_LOAD || op_path(op) == PATH_TMEM_STORE;
  if (!touches || !role || (threads.lo % LANES == 0 && threads.hi % LANES == 0)) return true;
  diag_error(cx->ds, DIAG_role_threads, op->span,
             "the %d active threads, %d to %d, do not suit an access to TMEM: 4 warps cover the %d lanes, so "
             "they are "
             "a multiple of %d, from a multiple of %d",
             tir_thread_count(threads), threads.lo, threads.hi - 1, LANES, LANES, LANES);
  diag_note(cx->ds, role->span, "the branch that picks them is here");
  return false;
}

// Lanes of a warp fold by shuffles that take all of them.
static bool check_reduction(PassCx *cx, const TirOp *op) {
  enum { WARP = 32 };
  TirThreads threads = tir_active_threads(op->parent);
  const TirOp *role = tir_role_of(op->parent);
  TileReduction reduction;
  if (!role || (threads.lo % WARP == 0 && threads.hi % WARP == 0) || !tile_reduction(op, &reduction))
    return true;
  diag_error(cx->ds, DIAG_role_threads, op->span,
             "the %d active threads, %d to %d, do not suit a reduction: it takes whole warps, multiples of "
             "%d threads "
             "from a multiple of %d",
             tir_thread_count(threads), threads.lo, threads.hi - 1, WARP, WARP);
  diag_note(cx->ds, role->span, "the branch that picks them is here");
  return false;
}

bool thread_groups(PassCx *cx, TirKernel *kernel, TirOpList ops, ThreadGroups *out) {
  Map *users = map_new(cx->scratch);
  bool ok = find_users(cx, ops, users);
  group_of(cx, out, (TirThreads){0, kernel->threads});
  for (int i = 0; i < ops.len; i++) {
    const TirOp *at = ops.data[i];
    ok = check_tmem(cx, at) && check_reduction(cx, at) && ok;
    if (at->kind == OP_alloc && map_has(users, at->results[0])) at = map_get(users, at->results[0]);
    ThreadGroup *group = group_of(cx, out, tir_active_threads(at->parent));
    vec_push(cx->scratch, &group->ops, ops.data[i]);
  }
  return ok;
}

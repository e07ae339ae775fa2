// Named barriers have numbers from 1 to 15 (PTX ISA 9.7.13.1). The author's count up from 1, so the compiler's count
// down from 15, one for each range of threads; a barrier counts whole warps.
#include "passes/meet.h"

enum { WARP = 32 };

static bool find_taken(void *context, TirOp *op) {
  Meetings *meetings = context;
  int64_t id = op->kind == OP_sync_threads ? op->attrs[SYNC_id] : 0;
  if (id > 0 && id < NAMED_BARRIERS && !meetings->taken[id]) meetings->taken[id] = op;
  return true;
}

Meetings meetings_new(PassCx *cx, TirKernel *kernel) {
  Meetings meetings = {.cx = cx, .kernel = kernel};
  tir_walk(kernel->body, find_taken, &meetings);
  return meetings;
}

static bool report_clash(Meetings *meetings, int id, TirThreads threads, const TirOp *at) {
  Diags *ds = meetings->cx->ds;
  const TirOp *taken = id > 0 ? meetings->taken[id] : NULL;
  if (taken) {
    diag_error(
        ds, DIAG_named_barrier, taken->span,
        "named barrier %d is also the one at which threads %d to %d meet: the compiler's count down from %d",
        id, threads.lo, threads.hi - 1, NAMED_BARRIERS - 1);
    diag_note(ds, at->span, "they meet before this statement");
    diag_hint(ds, "number your own barriers from 1 upwards");
  } else {
    diag_error(ds, DIAG_named_barrier, at->span,
               "threads %d to %d would have to meet at a named barrier, and all %d are in use", threads.lo,
               threads.hi - 1, NAMED_BARRIERS - 1);
  }
  return false;
}

// The barrier of these threads; 0: reported.
static int barrier_of(Meetings *meetings, TirThreads threads, const TirOp *at) {
  for (int i = 0; i < meetings->nnamed; i++) {
    TirThreads other = meetings->named[i].threads;
    if (other.lo == threads.lo && other.hi == threads.hi) return meetings->named[i].id;
  }
  int id = NAMED_BARRIERS - 1 - meetings->nnamed;
  if (id == 0 || meetings->taken[id]) {
    report_clash(meetings, id, threads, at);
    return 0;
  }
  meetings->named[meetings->nnamed].threads = threads;
  meetings->named[meetings->nnamed++].id = id;
  return id;
}

static bool report_part(Meetings *meetings, TirThreads threads, const TirOp *at) {
  diag_error(meetings->cx->ds, DIAG_role_threads, at->span,
             "the %d active threads, %d to %d, would have to meet here, and they are no whole warps: a "
             "meeting takes "
             "multiples of %d threads from a multiple of %d, or threads of one warp",
             tir_thread_count(threads), threads.lo, threads.hi - 1, WARP, WARP);
  const TirOp *role = tir_role_of(at->parent);
  if (role) diag_note(meetings->cx->ds, role->span, "the branch that picks them is here");
  return false;
}

bool meet_threads(Meetings *meetings, TirBuilder *b, TirThreads threads, const TirOp *at) {
  if (threads.lo == 0 && threads.hi == meetings->kernel->threads) {
    tir_op(b, OP_sync_threads, 0, NULL, 0, NULL);
    return true;
  }
  if (tir_thread_count(threads) == 1) return true;
  if (threads.lo / WARP == (threads.hi - 1) / WARP) {
    tir_op(b, OP_sync_warp, 0, NULL, 0, NULL);
    return true;
  }
  if (threads.lo % WARP || threads.hi % WARP) return report_part(meetings, threads, at);
  int id = barrier_of(meetings, threads, at);
  if (id == 0) return false;
  TirOp *sync = tir_op(b, OP_sync_threads, 0, NULL, 0, NULL);
  sync->attrs[SYNC_id] = id;
  sync->attrs[SYNC_count] = tir_thread_count(threads);
  return true;
}

// Synchronisation and who runs: barriers, fences, explicit asynchronous work and its waits, thread and warp numbers.
//
// What one thread does for all active ones (announcing bytes, committing MMAs) stands in a `one_thread`; an arrival, a
// fence and a bulk group's wait belong to each thread that executes them.
#include "elab/elab_internal.h"

#include "tir/ranges.h"

enum { WARP = 32, WARPGROUP = 128 };

static bool given(const Value *value) {
  return value->kind != VALUE_ABSENT && value->kind != VALUE_NONE;
}

static bool in_parallel(Elab *e, const Call *call) {
  for (const Region *region = e->region; region; region = region->parent) {
    if (region->kind != REGION_PARALLEL) continue;
    diag_error(e->ds, DIAG_placement, call->span, "'%s' cannot stand in Parallel", call->builtin->name);
    diag_note(e->ds, region->span, "Parallel is here");
    return true;
  }
  return false;
}

// What each thread does for itself.
static bool placed_alone(Elab *e, const Call *call) {
  return elab_placed(e, call->span, call->builtin->name, false) && !in_parallel(e, call);
}

static bool placed_together(Elab *e, const Call *call) {
  return elab_placed(e, call->span, call->builtin->name, true);
}

static TirBuilder elect(Elab *e, Span span) {
  e->b.span = span;
  return tir_builder_at_end(e->module, tir_one_thread(&e->b)->bodies[0], span);
}

static Value effect(Elab *e, const Call *call, OpKind kind) {
  if (placed_alone(e, call)) staged_effect(e, kind, 0, NULL, call->span);
  return value_none();
}

static Value run_fence_proxy_async(Elab *e, const Call *call) {
  return effect(e, call, OP_fence_proxy_async);
}
static Value run_fence_before(Elab *e, const Call *call) {
  return effect(e, call, OP_tcgen05_fence_before);
}
static Value run_fence_after(Elab *e, const Call *call) {
  return effect(e, call, OP_tcgen05_fence_after);
}
static Value run_tma_store_arrive(Elab *e, const Call *call) {
  return effect(e, call, OP_bulk_commit);
}

// ---- threads that meet

static void report_threads(Elab *e, const Call *call, const char *needs) {
  TirThreads threads = elab_active(e);
  const TirOp *role = tir_role_of(e->b.block);
  diag_error(e->ds, DIAG_role_threads, call->span, "%s: the %d active threads, %d to %d, are not %s",
             call->builtin->name, tir_thread_count(threads), threads.lo, threads.hi - 1, needs);
  if (role) diag_note(e->ds, role->span, "the branch that picks them is here");
}

static bool read_named(Elab *e, const Call *call, int64_t *id, int64_t *count) {
  TirThreads threads = elab_active(e);
  *count = tir_thread_count(threads);
  if (!need_int(e, &call->args[0], call->spans[0], "the number of a named barrier", id)) return false;
  if (given(&call->args[1]) &&
      !need_int(e, &call->args[1], call->spans[1], "the threads of a named barrier", count))
    return false;
  if (*id < 1 || *id > 15) {
    diag_error(e->ds, DIAG_named_barrier, call->spans[0],
               "named barrier %lld; yours are 1 to 15, and 0 is that of sync_threads()", (long long)*id);
    return false;
  }
  if (threads.lo % WARP || threads.hi % WARP) {
    report_threads(e, call, "whole warps");
    return false;
  }
  if (*count % WARP == 0 && *count >= tir_thread_count(threads) && *count <= e->threads) return true;
  diag_error(
      e->ds, DIAG_named_barrier, given(&call->args[1]) ? call->spans[1] : call->span,
      "a named barrier of %lld threads; legal are multiples of %d from %d, the active ones here, to %d",
      (long long)*count, WARP, tir_thread_count(threads), e->threads);
  return false;
}

static Value run_sync_threads(Elab *e, const Call *call) {
  int64_t id = 0, count = 0;
  if (!placed_together(e, call)) return value_poison();
  if (given(&call->args[0]) && !read_named(e, call, &id, &count)) return value_poison();
  TirOp *op = staged_effect(e, OP_sync_threads, 0, NULL, call->span);
  op->attrs[SYNC_id] = id;
  op->attrs[SYNC_count] = count;
  return value_none();
}

static Value run_sync_warp(Elab *e, const Call *call) {
  TirThreads threads = elab_active(e);
  if (!placed_together(e, call)) return value_poison();
  bool one_warp = threads.lo / WARP == (threads.hi - 1) / WARP;
  if (!one_warp && (threads.lo % WARP || threads.hi % WARP))
    report_threads(e, call, "whole warps, or threads of one");
  else
    staged_effect(e, OP_sync_warp, 0, NULL, call->span);
  return value_none();
}

// ---- mbarriers

static TirValue *first_barrier(Elab *e, const Call *call) {
  return tile_barrier(e, &call->args[0], call->spans[0], "the barrier");
}

// A parity is that of a number of phases: of a staged number the lowest bit counts.
static TirValue *read_parity(Elab *e, const Value *value, Span span) {
  int64_t number;
  TirValue *parity = staged_index(e, value, span, "a parity");
  if (!parity) return NULL;
  if (tir_const_int(parity, &number) && number != 0 && number != 1) {
    diag_error(e->ds, DIAG_value_kind, span, "the parity is %lld; legal are 0 and 1", (long long)number);
    return NULL;
  }
  TirRange range = tir_known_range(parity);
  if (range.lo >= 0 && range.hi <= 1) return parity;
  e->b.span = span;
  return tir_binary(&e->b, OP_and, parity, tir_int(&e->b, 1));
}

static Value run_wait_parity(Elab *e, const Call *call) {
  TirValue *args[2];
  if (!placed_alone(e, call)) return value_poison();
  args[0] = first_barrier(e, call);
  args[1] = read_parity(e, &call->args[1], call->spans[1]);
  if (args[0] && args[1]) staged_effect(e, OP_mbarrier_wait_parity, 2, args, call->span);
  return value_none();
}

static Value run_arrive(Elab *e, const Call *call) {
  if (!placed_alone(e, call)) return value_poison();
  TirValue *barrier = first_barrier(e, call);
  if (barrier) staged_effect(e, OP_mbar_arrive, 1, &barrier, call->span);
  return value_none();
}

static bool check_bytes(Elab *e, const TirValue *bytes, Span span) {
  enum { MAX_BYTES = (1 << 20) - 1 };  // PTX ISA 9.7.13.15.1
  int64_t number;
  if (!tir_const_int(bytes, &number) || (number >= 0 && number <= MAX_BYTES)) return true;
  diag_error(e->ds, DIAG_value_kind, span, "%lld bytes; a barrier counts 0 to %d", (long long)number,
             MAX_BYTES);
  return false;
}

static Value announce(Elab *e, const Call *call, bool arrive) {
  if (!placed_together(e, call)) return value_poison();
  TirValue *args[] = {first_barrier(e, call),
                      staged_index(e, &call->args[1], call->spans[1], "a number of bytes")};
  if (!args[0] || !args[1] || !check_bytes(e, args[1], call->spans[1])) return value_none();
  TirBuilder b = elect(e, call->span);
  tir_op(&b, OP_mbar_expect_tx, 2, args, 0, NULL)->attrs[EXPECT_arrive] = arrive;
  return value_none();
}

static Value run_expect_tx(Elab *e, const Call *call) {
  return announce(e, call, false);
}
static Value run_arrive_expect_tx(Elab *e, const Call *call) {
  return announce(e, call, true);
}

static Value run_mma_arrive(Elab *e, const Call *call) {
  if (!placed_together(e, call)) return value_poison();
  TirValue *barrier = first_barrier(e, call);
  if (!barrier) return value_none();
  TirBuilder b = elect(e, call->span);
  tir_op(&b, OP_tcgen05_commit, 1, &barrier, 0, NULL);
  return value_none();
}

// ---- bulk groups

static Value run_tma_store_wait(Elab *e, const Call *call) {
  int64_t pending = 0;
  bool read = true;
  if (!placed_alone(e, call)) return value_poison();
  if (given(&call->args[0]) &&
      !need_int(e, &call->args[0], call->spans[0], "the stores that may be in flight", &pending))
    return value_poison();
  if (given(&call->args[1]) && !need_bool(e, &call->args[1], call->spans[1], "read of tma_store_wait", &read))
    return value_poison();
  if (pending < 0) {
    diag_error(e->ds, DIAG_value_kind, call->spans[0], "%lld stores in flight; 0 or more may be",
               (long long)pending);
    return value_none();
  }
  TirOp *op = staged_effect(e, OP_bulk_wait, 0, NULL, call->span);
  op->attrs[BULK_pending] = pending;
  op->attrs[BULK_read] = read;
  return value_none();
}

// ---- registers

// PTX ISA 9.7.19.5: 24 to 256 in steps of 8, by all warps of a warpgroup.
static Value run_set_max_nreg(Elab *e, const Call *call) {
  TirThreads threads = elab_active(e);
  int64_t count, increase;
  if (!placed_together(e, call) ||
      !need_int(e, &call->args[0], call->spans[0], "a number of registers", &count) ||
      !need_int(e, &call->args[1], call->spans[1], "is_inc of set_max_nreg", &increase))
    return value_poison();
  if (count < 24 || count > 256 || count % 8) {
    diag_error(e->ds, DIAG_value_kind, call->spans[0],
               "%lld registers a thread; legal are multiples of 8 from 24 to 256", (long long)count);
    return value_none();
  }
  if (threads.lo % WARPGROUP || threads.hi % WARPGROUP) {
    report_threads(e, call, "whole groups of 4 warps: a multiple of 128 threads, from a multiple of 128");
    return value_none();
  }
  TirOp *op = staged_effect(e, OP_set_max_nreg, 0, NULL, call->span);
  op->attrs[NREG_count] = count;
  op->attrs[NREG_inc] = increase != 0;
  return value_none();
}

// ---- who runs

static bool read_dim(Elab *e, const Call *call, int64_t *out) {
  *out = 0;
  if (!given(&call->args[0])) return true;
  if (!need_int(e, &call->args[0], call->spans[0], "the dimension", out)) return false;
  if (*out >= 0 && *out <= 2) return true;
  diag_error(e->ds, DIAG_value_kind, call->spans[0], "dimension %lld; legal are 0, 1 and 2", (long long)*out);
  return false;
}

// Threads are numbered along x alone.
static Value run_get_thread_binding(Elab *e, const Call *call) {
  int64_t dim;
  if (!elab_placed(e, call->span, "get_thread_binding", false) || !read_dim(e, call, &dim))
    return value_poison();
  return dim == 0 ? value_staged(elab_thread_idx(e)) : value_int(0);
}

static Value run_get_block_binding(Elab *e, const Call *call) {
  int64_t dim;
  if (!elab_placed(e, call->span, "get_block_binding", false) || !read_dim(e, call, &dim))
    return value_poison();
  if (!e->block_idx[dim]) return value_int(0);
  return value_staged(e->block_idx[dim]);
}

static Value run_get_thread_extent(Elab *e, const Call *call) {
  int64_t dim;
  if (!elab_placed(e, call->span, "get_thread_extent", false) || !read_dim(e, call, &dim))
    return value_poison();
  return value_int(dim == 0 ? e->threads : 1);
}

static Value of_thread(Elab *e, const Call *call, OpKind kind, int64_t number) {
  if (!elab_placed(e, call->span, call->builtin->name, false)) return value_poison();
  TirValue *thread = elab_thread_idx(e);
  e->b.span = call->span;
  return value_staged(tir_binary(&e->b, kind, thread, tir_int(&e->b, number)));
}

static Value run_warp_idx(Elab *e, const Call *call) {
  return of_thread(e, call, OP_floordiv, WARP);
}
static Value run_warp_group_idx(Elab *e, const Call *call) {
  return of_thread(e, call, OP_floordiv, WARPGROUP);
}
static Value run_lane_idx(Elab *e, const Call *call) {
  return of_thread(e, call, OP_floormod, WARP);
}

// shuffle_elect(n): one thread of every n; of all with 0.
static Value run_shuffle_elect(Elab *e, const Call *call) {
  int64_t extent = 0;
  if (given(&call->args[0]) &&
      !need_int(e, &call->args[0], call->spans[0], "the threads of which one is elected", &extent))
    return value_poison();
  if (extent < 0 || extent % WARP) {
    diag_error(e->ds, DIAG_value_kind, call->spans[0],
               "one of every %lld threads; legal are 0, for all, and multiples of %d", (long long)extent,
               WARP);
    return value_poison();
  }
  Value position = of_thread(e, call, OP_floormod, extent ? extent : TIR_MAX_THREADS);
  const Value zero = value_int(0);
  return value_is_poison(&position) ? position : staged_op(e, OP_eq, &position, &zero, call->span);
}

// One thread of each warp.
static Value run_elect_one(Elab *e, const Call *call) {
  Value lane = run_lane_idx(e, call);
  const Value zero = value_int(0);
  return value_is_poison(&lane) ? lane : staged_op(e, OP_eq, &lane, &zero, call->span);
}

const Builtin builtins_sync[] = {
    {"sync_threads", "barrier_id? arrive_count?", run_sync_threads},
    {"sync_warp", "mask!", run_sync_warp},
    {"fence_proxy_async", "space~", run_fence_proxy_async},
    {"tcgen05_before_thread_sync", "", run_fence_before},
    {"tcgen05_after_thread_sync", "", run_fence_after},
    {"tcgen05_mma_arrive", "mbar arrive_2cta!", run_mma_arrive},
    {"mbarrier_wait_parity", "mbarrier parity", run_wait_parity},
    {"barrier_wait", "mbarrier parity", run_wait_parity},
    {"mbarrier_arrive", "mbarrier cta_id!", run_arrive},
    {"barrier_arrive", "mbarrier cta_id!", run_arrive},
    {"ptx_arrive_barrier", "mbarrier", run_arrive},
    {"mbarrier_expect_tx", "mbarrier tx", run_expect_tx},
    {"mbarrier_arrive_expect_tx", "mbarrier tx", run_arrive_expect_tx},
    {"tma_store_arrive", "", run_tma_store_arrive},
    {"tma_store_wait", "count? read?", run_tma_store_wait},
    {"set_max_nreg", "reg_count is_inc", run_set_max_nreg},
    {"get_thread_binding", "dim?", run_get_thread_binding},
    {"get_thread_bindings", "", NULL},
    {"get_block_binding", "dim?", run_get_block_binding},
    {"get_thread_extent", "dim?", run_get_thread_extent},
    {"get_warp_idx", "warp_size~", run_warp_idx},
    {"get_warp_idx_sync", "warp_size~", run_warp_idx},
    {"get_warp_group_idx", "warp_size~ warps_per_group~", run_warp_group_idx},
    {"get_lane_idx", "warp_size~", run_lane_idx},
    {"shuffle_elect", "thread_extent?", run_shuffle_elect},
    {"elect_one", "", run_elect_one},
    {NULL, NULL, NULL},
};

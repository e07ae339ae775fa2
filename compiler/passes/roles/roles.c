// Needs    TIR_SELECTED: paths say which engine carries out an op; asynchronous ops yield tokens.
// Does     Warp specialisation of a kernel with pipelined loops that load tiles by TMA and multiply them:
//
//            for k { copy A -> S; copy B -> T; gemm S, T, C }; rest        (every op waited for)
//
//          becomes warps that work at the same time and hand the tiles over through a ring of stages. The author's threads
//          keep everything but the loop's copies (and, where a single thread issues products, the products); the roles are
//          extra warps behind them:
//
//            role loader   { for k { wait empty[s]; tma_copy A -> S[s], full[s]; … ; arrive full[s] } }
//            role products { wait C_empty; for k { wait full[s]; gemm S[s], T[s], C; commit empty[s] }; commit C_full }
//            role author   { wait C_full; rest; arrive C_empty }
//
//          On a target whose products are issued by whole warpgroups the author's threads run the second loop, with one
//          product in flight: stage s - 1 is given back when product s has been issued and the one before is done.
//          plan.h says what is handed over how, plan.c what is left alone, protocol.c who waits and arrives where.
// Leaves   The explicit forms of copies and products, whose barriers are written out.
// Reports  Nothing; remarks say which threads have which role, why a pipelined loop stays as it is, and what has no effect here.
#include "passes/roles/copy.h"

static Name name_of(const RolePlan *p, const char *text) {
  return intern(p->cx->module->names, text);
}

static TirValue *new_barriers(RolePlan *p, TirBuilder *b, const char *name, int count, int arrivals) {
  int64_t *counts = ARENA_ARRAY(p->cx->module->arena, int64_t, count);
  for (int i = 0; i < count; i++) counts[i] = arrivals;
  return tir_alloc_barrier(b, name_of(p, name), count, counts);
}

// The buffer with a first dimension of `count`.
static TirValue *repeated(TirBuilder *b, const TirValue *buffer, int count) {
  int64_t shape[TYPE_MAX_RANK] = {count};
  for (int d = 0; d < buffer->type.rank; d++) shape[d + 1] = buffer->type.shape[d];
  b->span = buffer->op->span;
  TirValue *array = tir_alloc(
      b, buffer->op->name, type_buffer(buffer->type.dtype, buffer->type.space, buffer->type.rank + 1, shape));
  array->name = buffer->name;
  return array;
}

static int arrivals_of(const RolePlan *p, Role role) {
  return role == ROLE_author ? p->kernel->threads / WARP : 1;
}

static void allocate_ring(RolePlan *p, TirBuilder *b, Ring *ring) {
  for (int i = 0; i < ring->tiles.len; i++)
    vec_push(p->cx->scratch, &ring->rings, repeated(b, ring->tiles.data[i], ring->stages));
  int readers = 0;
  for (Role role = 0; role < ROLES; role++)
    if (ring->readers >> role & 1) readers += arrivals_of(p, role);
  b->span = ring->loop->span;
  ring->full = new_barriers(p, b, "full", ring->stages, 1);
  ring->empty = new_barriers(p, b, "empty", ring->stages, readers);
  if (ring->handed) ring->ready = new_barriers(p, b, "ready", ring->stages, arrivals_of(p, ROLE_author));
}

static void allocate_channel(RolePlan *p, TirBuilder *b, Channel *channel) {
  const char *name = tir_buffer_name(channel->buffer);
  int n = channel->segments.len;
  if (channel->count > 1) channel->versions = repeated(b, channel->buffer, channel->count);
  b->span = channel->buffer->op->span;
  for (int s = 0; s < n; s++) {
    Segment *here = &channel->segments.data[s], *next = &channel->segments.data[(s + 1) % n];
    bool last = s == n - 1;
    if (here->role == next->role || (last && !channel->repeats)) continue;
    const char *what = last ? "empty" : "full";
    here->passed = new_barriers(p, b, text_printf(p->cx->module->arena, "%s_%s", name, what), channel->count,
                                arrivals_of(p, here->role));
  }
}

static TirBuilder begin_role(RolePlan *p, TirBuilder *at, int lo, int hi) {
  TirOp *op = tir_role(at, (TirThreads){lo, hi});
  return tir_builder_at_end(p->cx->module, op->bodies[0], at->span);
}

static void share_out(TirBuilder *b, int registers, bool more) {
  TirOp *op = tir_op(b, OP_set_max_nreg, 0, NULL, 0, NULL);
  op->attrs[NREG_count] = registers;
  op->attrs[NREG_inc] = more;
}

static void emit_role(RolePlan *p, TirBlock *source, Role role, int lo, int hi) {
  TirBuilder at = tir_builder_at_end(p->cx->module, p->kernel->body, p->rings.data[0].loop->span);
  RoleCopy copy = {.plan = p, .role = role, .now = map_new(p->cx->scratch)};
  copy.b = begin_role(p, &at, lo, hi);
  copy.b.block->owner->attrs[ROLE_arm] = role != ROLE_loader;
  if (p->ample) share_out(&copy.b, role == ROLE_loader ? p->spare : p->ample, role != ROLE_loader);
  if (role == ROLE_loader && hi - lo > WARP) {
    TirBuilder group = copy.b;
    copy.b = begin_role(p, &group, lo, hi = lo + WARP);
  }
  copy.threads = (TirThreads){lo, hi};
  clocks_make(&copy);
  copy_block(&copy, source);
}

static bool is_replaced(const RolePlan *p, const TirOp *alloc) {
  const Channel *channel = plan_channel_of(p, alloc->results[0]);
  return alloc->kind == OP_alloc_barrier || plan_ring_of_tile(p, alloc->results[0]) ||
         (channel && channel->versions);
}

// Declarations stand before all roles, those of the author first.
static void keep_declarations(RolePlan *p, TirBlock *source) {
  TirOpList all = tile_collect(p->cx->scratch, source);
  for (int i = 0; i < all.len; i++) {
    TirOp *op = all.data[i];
    if ((op->kind != OP_alloc && op->kind != OP_alloc_barrier) || is_replaced(p, op)) continue;
    tir_remove(op);
    tir_append(p->kernel->body, op);
  }
}

// A role computes only what its ops need: users come before what they use when ops are seen from the end.
static void drop_unused(RolePlan *p) {
  TirOpList all = tile_collect(p->cx->scratch, p->kernel->body);
  Map *used = map_new(p->cx->scratch);
  for (int i = all.len - 1; i >= 0; i--) {
    TirOp *op = all.data[i];
    bool wanted = !op_def(op->kind)->pure;
    for (int r = 0; r < op->nresults; r++) wanted = wanted || map_has(used, op->results[r]);
    if (!wanted) tir_remove(op);
    for (int a = 0; a < op->nargs && wanted; a++)
      if (op->args[a]) map_put(used, op->args[a], op);
  }
}

void emit_roles(RolePlan *p) {
  TirKernel *kernel = p->kernel;
  TirBlock *source = kernel->body;
  kernel->body = tir_block_new(p->cx->module, kernel, NULL);
  TirBuilder b = tir_builder_at_end(p->cx->module, kernel->body, kernel->span);
  for (int i = 0; i < p->rings.len; i++) allocate_ring(p, &b, &p->rings.data[i]);
  for (int i = 0; i < p->channels.len; i++) allocate_channel(p, &b, &p->channels.data[i]);
  keep_declarations(p, source);
  int threads = kernel->threads, extra = plan_extra_threads(p), loader = threads + plan_loader_threads(p);
  emit_role(p, source, ROLE_loader, threads, loader);
  if (!p->by_warpgroups) emit_role(p, source, ROLE_products, loader, threads + extra);
  emit_role(p, source, ROLE_author, 0, threads);
  drop_unused(p);
  kernel->threads += extra;
}

// By the author's hand, or by this pass.
static bool has_roles(PassCx *cx, const TirKernel *kernel) {
  TirOpList all = tile_collect(cx->scratch, kernel->body);
  for (int i = 0; i < all.len; i++)
    if (all.data[i]->kind == OP_role) return true;
  return false;
}

// What only roles have. A target whose products one thread issues has no registers to share out, one without TMEM one
// accumulator.
static bool needs_no_roles(const PassCx *cx, const TirKernel *kernel) {
  bool tmem = cx->target->tmem_columns > 0, two = kernel->choices[CHOICE_accumulators].value == 2;
  ChoiceKind choice = tmem ? CHOICE_accumulators : CHOICE_registers;
  if (tmem ? !two : !tir_asks_for(kernel, choice)) return true;
  return pass_refuse_choice(cx, kernel, choice, (Span){0, 0}, "the kernel has no warp roles");
}

// What the source may ask for on one kind of target and has nothing to mean on the other.
static void remark_idle(const PassCx *cx, const TirKernel *kernel) {
  static const struct {
    ChoiceKind choice;
    bool by_warpgroups;
  } kinds[] = {{CHOICE_registers, true},
               {CHOICE_warpgroups, true},
               {CHOICE_defer, true},
               {CHOICE_accumulators, false}};
  bool tmem = cx->target->tmem_columns > 0;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    const TirChoice *choice = &kernel->choices[kinds[i].choice];
    char number[16];
    if (!choice->given || kinds[i].by_warpgroups != tmem) continue;
    diag_remark(cx->ds, choice->span, "%s=%s has no effect on %s: %s", choice_def(kinds[i].choice)->name,
                choice_text(kinds[i].choice, choice->value, true, number), cx->target->name,
                tmem ? "one thread issues products" : "accumulators are in registers");
  }
}

static void remark_roles(const RolePlan *p) {
  int threads = p->kernel->threads, loader = threads + plan_loader_threads(p);
  for (int i = 0; i < p->rings.len; i++) {
    const Ring *ring = &p->rings.data[i];
    const char *products =
        text_printf(p->cx->scratch, ", %d to %d issue products", loader, threads + plan_extra_threads(p) - 1);
    diag_remark(
        p->cx->ds, ring->loop->span,
        "warp roles for this loop: threads %d to %d load%s, 0 to %d do the rest; %d stages of %lld bytes",
        threads, threads + WARP - 1, p->by_warpgroups ? "" : products, threads - 1, ring->stages,
        (long long)plan_stage_bytes(ring));
  }
}

bool pass_roles(PassCx *cx, TirKernel *kernel) {
  RolePlan plan;
  bool asked = tir_asks_for(kernel, CHOICE_roles);
  if (kernel->variant == VARIANT_GENERAL || (asked && has_roles(cx, kernel))) return true;
  remark_idle(cx, kernel);
  fold_clears(cx, kernel);
  int errors = diags_errors(cx->ds);
  if (!plan_roles(&plan, cx, kernel, false))
    return diags_errors(cx->ds) == errors && needs_no_roles(cx, kernel);
  remark_roles(&plan);
  if (plan.by_warpgroups) plan_slots(&plan);
  emit_roles(&plan);
  send_late(cx, kernel);
  return true;
}

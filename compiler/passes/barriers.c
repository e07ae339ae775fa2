// Needs    TIR_TMEM_PLACED: asynchronous ops yield tokens, a `wait` stands behind each that is to be waited
//          for.
// Does     Turns tokens into mbarriers with phase counters (TMA loads, MMA) and bulk groups (TMA stores), issued
//          by one thread; puts fences and CTA barriers where one op must see another's effects.
// Leaves   TIR_SYNCED: no tokens; the order of effects is only what the ops say.
// Reports  A barrier whose arrival count or use does not suit an implicit wait; a CTA barrier, or work that
//          all threads share, under thread-dependent control.
//
// Phases are counted, never guessed: each mbarrier array that is waited for implicitly has a cell with one
// bit a barrier, flipped by all threads at every completion that this kernel arranges; a parity derived from the
// loop's variable would be wrong in a loop that is entered twice. Before a barrier is armed again all threads have
// met since they last waited on it, so no phase can lap a waiter: one bit tells apart only neighbouring phases.
#include "passes/hazards.h"

#include "base/map.h"
#include "passes/tile.h"

enum { PHASE_BITS = 32 };

typedef struct {
  PassCx *cx;
  TirKernel *kernel;
  Hazards hazards;
  Map *phases;          // alloc_barrier value -> cell
  TirValue *tma, *mma;  // barriers the compiler made; NULL until needed
  TirOp *divergent;     // the innermost enclosing op under thread-dependent control, or NULL
  TirOp *reported;      // the divergent op that was reported last
  Meeting wanted;       // what a walk without insertion would have needed under divergent control
  Meeting needed;       // of all meetings since it was emptied
  bool insert;          // false: only follow the state (to find a loop's entry state)
  bool ok;
} Barriers;

// --- barriers and their phases ---

static TirValue *barrier_index(TirBuilder *b, const TirValue *barrier) {
  return barrier->op->kind == OP_view ? barrier->op->args[1] : tir_int(b, 0);
}

static TirBuilder at_entry(Barriers *s, Span span) {
  TirBuilder b = s->kernel->body->first ? tir_builder_before(s->cx->module, s->kernel->body->first)
                                        : tir_builder_at_end(s->cx->module, s->kernel->body, span);
  b.span = span;
  return b;
}

static TirValue *phase_cell(Barriers *s, TirValue *root) {
  TirValue *cell = map_get(s->phases, root);
  if (cell) return cell;
  const char *name = text_printf(s->cx->module->arena, "%s_phase", root->name ? root->name : "barrier");
  TirBuilder b = at_entry(s, root->op->span);
  cell = tir_cell(&b, intern(s->cx->module->names, name), DTYPE_i32, tir_int(&b, 0));
  map_put(s->phases, root, cell);
  return cell;
}

// The parity of the phase that the arrival arranged just now completes, and the flip for the next one.
static TirValue *step_phase(Barriers *s, TirBuilder *b, TirValue *barrier) {
  TirValue *root = tir_root(barrier);
  TirValue *cell = phase_cell(s, root);
  TirValue *bits = tir_get(b, cell);
  TirValue *one = tir_int(b, 1);
  if (root->type.shape[0] == 1) {
    tir_set(b, cell, tir_binary(b, OP_xor, bits, one));
    return bits;
  }
  TirValue *index = barrier_index(b, barrier);
  tir_set(b, cell, tir_binary(b, OP_xor, bits, tir_binary(b, OP_shl, one, index)));
  return tir_binary(b, OP_and, tir_binary(b, OP_shr, bits, index), one);
}

static TirValue *own_barrier(Barriers *s, TirValue **slot, const char *name, Span span) {
  if (*slot) return *slot;
  const int64_t one_arrival = 1;
  TirBuilder b = at_entry(s, span);
  *slot = tir_alloc_barrier(&b, intern(s->cx->module->names, name), 1, &one_arrival);
  return *slot;
}

static void emit_wait(TirBuilder *b, TirValue *barrier, TirValue *parity) {
  TirValue *args[] = {barrier, parity};
  tir_op(b, OP_mbarrier_wait_parity, 2, args, 0, NULL);
}

static void emit(TirBuilder *b, OpKind kind) {
  tir_op(b, kind, 0, NULL, 0, NULL);
}

// --- lowering of asynchronous ops ---

// Moves `op` into a one_thread region before the ops that follow it; returns a builder at the region's end.
static TirBuilder into_one_thread(Barriers *s, TirOp *op, TirOp **region) {
  TirBuilder b = tir_builder_before(s->cx->module, op);
  *region = tir_one_thread(&b);
  tir_remove(op);
  op->nresults = 0;
  tir_append((*region)->bodies[0], op);
  return tir_builder_at_end(s->cx->module, (*region)->bodies[0], op->span);
}

static void lower_tma_load(Barriers *s, TirOp *op) {
  TirOp *region;
  TirValue *barrier = own_barrier(s, &s->tma, "tma_barrier", op->span);
  into_one_thread(s, op, &region);
  TirBuilder inside = tir_builder_before(s->cx->module, op);
  TirValue *announce[] = {barrier, tir_int(&inside, type_bytes(&op->args[1]->type))};
  tir_op(&inside, OP_mbar_expect_tx, 2, announce, 0, NULL);
  op->args[2] = barrier;
  TirBuilder after = tir_builder_after(s->cx->module, region);
  emit_wait(&after, barrier, step_phase(s, &after, barrier));
}

static void lower_tma_store(Barriers *s, TirOp *op) {
  TirOp *region;
  TirBuilder b = into_one_thread(s, op, &region);
  emit(&b, OP_bulk_commit);
  tir_op(&b, OP_bulk_wait, 0, NULL, 0, NULL)->attrs[BULK_pending] = 0;
}

static int barrier_operand(const TirOp *op) {
  const OpDef *def = op_def(op->kind);
  for (int i = 0; i < def->noperands; i++)
    if (def->operands[i].spaces == 1u << SPACE_BARRIER) return i;
  BUG("%s has no barrier operand", def->name);
}

// Without a wait the author counts the phases of the barrier: no other op waits on it implicitly.
static void lower_mma(Barriers *s, TirOp *op, bool waited) {
  TirOp *region;
  int slot = barrier_operand(op);
  TirValue *barrier = op->args[slot] ? op->args[slot] : own_barrier(s, &s->mma, "mma_barrier", op->span);
  op->args[slot] = NULL;
  TirBuilder b = into_one_thread(s, op, &region);
  TirBuilder before = tir_builder_before(s->cx->module, op);
  emit(&before, OP_tcgen05_fence_after);
  tir_op(&b, OP_tcgen05_commit, 1, &barrier, 0, NULL);
  if (!waited) return;
  TirBuilder after = tir_builder_after(s->cx->module, region);
  emit_wait(&after, barrier, step_phase(s, &after, barrier));
  emit(&after, OP_tcgen05_fence_after);
}

// The `wait` behind op that consumes its token, or NULL.
static TirOp *wait_of(const TirOp *op) {
  for (TirOp *next = op->next; next && op->nresults; next = next->next)
    if (next->kind == OP_wait && next->args[0] == op->results[0]) return next;
  return NULL;
}

static TirValue *barrier_of(Barriers *s, const TirOp *op) {
  if (op_path(op) == PATH_TMA_LOAD) return s->tma;
  if (op_path(op) != PATH_MMA) return NULL;
  TirValue *barrier = op->args[barrier_operand(op)];
  return barrier ? barrier : s->mma;
}

static void lower_async(Barriers *s, TirOp *op) {
  TirOp *wait = wait_of(op);
  if (wait) tir_remove(wait);
  switch (op_path(op)) {
  case PATH_TMA_LOAD:
    lower_tma_load(s, op);
    return;
  case PATH_TMA_STORE:
    lower_tma_store(s, op);
    return;
  case PATH_MMA:
    lower_mma(s, op, wait != NULL);
    return;
  case PATH_NONE:
  case PATH_THREADS:
  case PATH_TMEM_LOAD:
  case PATH_TMEM_STORE:
  case PATH_COUNT:
    break;
  }
  BUG("%s is not asynchronous", op_def(op->kind)->name);
}

// --- the walk: hazards in program order ---

static void report_divergent(Barriers *s, TirOp *op, const char *sentence, const char *hint) {
  s->ok = false;
  if (s->reported == s->divergent) return;
  s->reported = s->divergent;
  diag_error(s->cx->ds, DIAG_divergent_barrier, op->span,
             "all threads of the block must %s, but it runs under a condition that differs between threads",
             sentence);
  diag_note(s->cx->ds, s->divergent->span, "the threads part here");
  diag_hint(s->cx->ds, "%s", hint);
}

static void report_meeting(Barriers *s, TirOp *op) {
  report_divergent(s, op, "meet before this statement",
                   "split the branch so that the exchange through shared memory happens outside it");
}

// Whether the op is work that the threads share, or meet for: some of them alone would do a part of it.
static bool takes_all_threads(const TirOp *op) {
  return tile_is(op) || op->kind == OP_parallel || op->kind == OP_sync_threads;
}

static bool check_together(Barriers *s, TirOp *op) {
  if (!s->divergent || !takes_all_threads(op)) return true;
  if (s->insert)
    report_divergent(s, op, "do this together",
                     "make the condition one that all threads decide alike, or use elements instead");
  return false;
}

static void meet(Barriers *s, TirOp *before, Meeting meeting, Touch *state) {
  if (!meeting.sync) return;
  s->needed.sync = true;
  s->needed.proxy_fence |= meeting.proxy_fence;
  meeting.tmem_fence |= hazards_in_tmem(&s->hazards, state);
  hazards_met(&s->hazards, state, meeting);
  if (!s->insert) return;
  TirBuilder b = tir_builder_before(s->cx->module, before);
  if (meeting.proxy_fence) emit(&b, OP_fence_proxy_async);
  if (meeting.tmem_fence) emit(&b, OP_tcgen05_fence_before);
  emit(&b, OP_sync_threads);
  if (meeting.tmem_fence) emit(&b, OP_tcgen05_fence_after);
}

static void walk_block(Barriers *s, TirBlock *block, Touch *state);

static void walk_bodies(Barriers *s, TirOp *op, Touch *state, bool may_skip) {
  Touch *entry = hazards_copy(&s->hazards, state);
  Touch *joined = may_skip ? hazards_copy(&s->hazards, state) : hazards_state(&s->hazards);
  for (int i = 0; i < op->nbodies; i++) {
    Touch *branch = hazards_copy(&s->hazards, entry);
    walk_block(s, op->bodies[i], branch);
    hazards_join(&s->hazards, joined, branch);
  }
  for (int i = 0; i < s->hazards.count; i++) state[i] = joined[i];
}

static void walk_loop(Barriers *s, TirOp *op, Touch *state);

// What the loop would need, entered in this state.
static Meeting needed_in_loop(Barriers *s, TirOp *op, const Touch *state) {
  Meeting outer = s->needed;
  s->insert = false;
  s->needed = (Meeting){0};
  walk_loop(s, op, hazards_copy(&s->hazards, state));
  Meeting needed = s->needed;
  s->needed = outer;
  s->insert = true;
  return needed;
}

// One meeting before the loop instead of one a turn, where only what stands before it asks for them.
static void meet_before_loop(Barriers *s, TirOp *op, Touch *state) {
  Meeting needed = needed_in_loop(s, op, state);
  if (!needed.sync) return;
  Touch *met = hazards_copy(&s->hazards, state);
  hazards_met(&s->hazards, met, needed);
  if (!needed_in_loop(s, op, met).sync) meet(s, op, needed, state);
}

// The state at the head of a loop holds for its first and for every later turn.
static void walk_loop(Barriers *s, TirOp *op, Touch *state) {
  bool insert = s->insert;
  if (insert && !s->divergent) meet_before_loop(s, op, state);
  s->insert = false;
  for (bool grew = true; grew;) {
    Touch *turn = hazards_copy(&s->hazards, state);
    walk_block(s, op->bodies[0], turn);
    grew = hazards_join(&s->hazards, state, turn);
  }
  s->insert = insert;
  // A turn has just led back to this very state. To walk once more at each level would double the work with
  // every loop around.
  if (insert) walk_bodies(s, op, state, true);
}

static bool parts_threads(const TirOp *op) {
  for (int i = 0; i < op->nargs; i++)
    if (op->args[i] && tir_thread_dependent(op->args[i])) return true;
  return false;
}

static void walk_into(Barriers *s, TirOp *op, Touch *state) {
  if (tir_is_loop(op))
    walk_loop(s, op, state);
  else
    walk_bodies(s, op, state, op->kind == OP_one_thread || op->kind == OP_role);
}

// Threads that are about to part meet first when something inside would ask for it.
static void meet_before_parting(Barriers *s, TirOp *op, Touch *state) {
  bool insert = s->insert;
  s->insert = false;
  s->wanted = (Meeting){0};
  walk_into(s, op, hazards_copy(&s->hazards, state));
  s->insert = insert;
  meet(s, op, s->wanted, state);
}

static void walk_control(Barriers *s, TirOp *op, Touch *state) {
  TirOp *outer = s->divergent;
  bool parts = op->kind == OP_one_thread || op->kind == OP_role || parts_threads(op);
  if (parts) s->divergent = op;
  if (parts && !outer) meet_before_parting(s, op, state);
  walk_into(s, op, state);
  s->divergent = outer;
}

static void walk_sync(Barriers *s, TirOp *op, Touch *state) {
  if (!check_together(s, op)) return;
  if (op->kind == OP_sync_threads) hazards_met(&s->hazards, state, (Meeting){.sync = true});
  if (op->kind == OP_fence_proxy_async && !s->divergent)
    hazards_met(&s->hazards, state, (Meeting){.proxy_fence = true});
  if (op->kind != OP_mbarrier_wait_parity) return;
  hazards_waited(&s->hazards, state, op->args[0]);
  if (!s->insert || !s->kernel->tmem_columns) return;
  TirBuilder after = tir_builder_after(s->cx->module, op);
  emit(&after, OP_tcgen05_fence_after);
}

static void walk_effect(Barriers *s, TirOp *op, Touch *state) {
  if (!check_together(s, op)) return;
  bool async = path_is_async(op_path(op));
  Meeting meeting = hazards_before(&s->hazards, state, op);
  TirValue *armed = async ? barrier_of(s, op) : NULL;
  if (armed && hazards_may_lap(&s->hazards, state, armed)) meeting.sync = true;
  if (meeting.sync && s->divergent) {
    if (s->insert) report_meeting(s, op);
    s->wanted.sync |= meeting.sync;
    s->wanted.proxy_fence |= meeting.proxy_fence;
    s->wanted.tmem_fence |= meeting.tmem_fence;
    return;
  }
  meet(s, op, meeting, state);
  hazards_after(&s->hazards, state, op);
  if (armed && wait_of(op)) hazards_waited(&s->hazards, state, armed);
  if (async && s->insert) lower_async(s, op);
}

static void walk_block(Barriers *s, TirBlock *block, Touch *state) {
  for (TirOp *op = block->first, *next; op; op = next) {
    next = op->next;
    while (next && next->kind == OP_wait) next = next->next;  // goes with its op
    OpGroup group = op_def(op->kind)->group;
    if (op->kind == OP_parallel || tile_is_element(op))
      walk_effect(s, op, state);
    else if (group == GROUP_CONTROL)
      walk_control(s, op, state);
    else if (group == GROUP_SYNC)
      walk_sync(s, op, state);
    else if (group == GROUP_TILE)
      walk_effect(s, op, state);
  }
}

// --- what the author's barriers must be for an implicit wait ---

typedef struct {
  Barriers *s;
  Map *implicit;  // alloc_barrier values behind an implicit wait -> first op that waits so
} Uses;

static bool find_implicit(void *context, TirOp *op) {
  Uses *uses = context;
  if (op_path(op) == PATH_TMA_LOAD) own_barrier(uses->s, &uses->s->tma, "tma_barrier", op->span);
  if (op_path(op) != PATH_MMA) return true;
  TirValue *barrier = op->args[barrier_operand(op)];
  if (!barrier) {
    own_barrier(uses->s, &uses->s->mma, "mma_barrier", op->span);
    return true;
  }
  TirValue *root = tir_root(barrier);
  if (wait_of(op) && !map_has(uses->implicit, root)) map_put(uses->implicit, root, op);
  return true;
}

static const char *barrier_name(const TirValue *root) {
  return root->name ? root->name : "the barrier";
}

static bool check_counts(Barriers *s, const TirValue *root, const TirOp *user) {
  for (int i = 0; i < root->op->nlist; i++) {
    if (root->op->list[i] == 1) continue;
    diag_error(s->cx->ds, DIAG_barrier_count, user->span,
               "%s expects %lld arrivals, but the tensor core arrives once when this is done",
               barrier_name(root), (long long)root->op->list[i]);
    diag_note(s->cx->ds, root->op->span, "declared here");
    diag_hint(s->cx->ds, "alloc_barrier(1)");
    return false;
  }
  if (root->type.shape[0] <= PHASE_BITS) return true;
  diag_error(s->cx->ds, DIAG_barrier_array, root->op->span,
             "%s has %lld barriers; at most %d can be waited for implicitly", barrier_name(root),
             (long long)root->type.shape[0], PHASE_BITS);
  return false;
}

// The barrier on which this op arrives without the pass adding a wait; NULL: it does not.
static TirValue *arrives_on(const TirOp *op) {
  if (op->kind == OP_mbar_arrive || op->kind == OP_mbar_expect_tx) return op->args[0];
  if (op_path(op) != PATH_MMA || wait_of(op)) return NULL;
  return op->args[barrier_operand(op)];
}

static bool check_arrivals(void *context, TirOp *op) {
  Uses *uses = context;
  TirValue *barrier = arrives_on(op);
  TirValue *root = barrier ? tir_root(barrier) : NULL;
  const TirOp *user = root ? map_get(uses->implicit, root) : NULL;
  if (!user) return true;
  uses->s->ok = false;
  diag_error(uses->s->cx->ds, DIAG_barrier_shared, op->span,
             "%s completes phases of its own here, so the implicit wait on it cannot know its phase",
             barrier_name(root));
  diag_note(uses->s->cx->ds, user->span, "waited for implicitly here");
  diag_hint(uses->s->cx->ds, "use a barrier of its own for each purpose");
  return true;
}

static void check_barriers(Barriers *s) {
  Uses uses = {s, map_new(s->cx->scratch)};
  tir_walk(s->kernel->body, find_implicit, &uses);
  tir_walk(s->kernel->body, check_arrivals, &uses);
  for (int i = 0; i < map_count(uses.implicit); i++) {
    const MapEntry *entry = map_at(uses.implicit, i);
    TirValue *root = (TirValue *)entry->key;
    if (!check_counts(s, root, entry->value))
      s->ok = false;
    else
      phase_cell(s, root);
  }
}

// --- prologue ---

typedef struct {
  Arena *arena;
  VEC(TirOp *) ops;
} Found;

static bool find_barrier(void *context, TirOp *op) {
  Found *found = context;
  if (op->kind == OP_alloc_barrier) vec_push(found->arena, &found->ops, op);
  return true;
}

// All barriers are initialised by one thread before anybody can use them.
static void emit_prologue(Barriers *s) {
  Found found = {.arena = s->cx->scratch};
  tir_walk(s->kernel->body, find_barrier, &found);
  if (found.ops.len == 0) return;
  for (int i = 0; i < found.ops.len; i++) tir_remove(found.ops.data[i]);
  TirBuilder b = at_entry(s, s->kernel->span);
  TirOp *region = tir_one_thread(&b);
  for (int i = 0; i < found.ops.len; i++) tir_insert_before(region, found.ops.data[i]);
  TirBuilder inside = tir_builder_at_end(s->cx->module, region->bodies[0], s->kernel->span);
  for (int i = 0; i < found.ops.len; i++)
    tir_op(&inside, OP_mbar_init, 1, &found.ops.data[i]->results[0], 0, NULL);
  emit(&inside, OP_fence_mbarrier_init);
  if (s->kernel->tmem_columns) return;  // the meeting after the TMEM allocation serves both
  emit(&b, OP_sync_threads);
}

bool pass_barriers(PassCx *cx, TirKernel *kernel) {
  Barriers s = {.cx = cx, .kernel = kernel, .phases = map_new(cx->scratch), .insert = true, .ok = true};
  check_barriers(&s);
  if (!s.ok) return false;
  s.hazards = hazards_new(cx->scratch, kernel);
  walk_block(&s, kernel->body, hazards_state(&s.hazards));
  if (s.ok) emit_prologue(&s);
  return s.ok;
}

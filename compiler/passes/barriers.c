// Needs    TIR_TMEM_PLACED: asynchronous ops yield tokens, a `wait` stands behind each that is to be waited
//          for.
// Does     Turns tokens into mbarriers with phase counters (TMA loads, MMA) and bulk groups (TMA stores), issued
//          by the first active thread; puts fences and meetings of the active threads where one op must see
//          another's effects.
// Leaves   TIR_SYNCED: no tokens; the order of effects is only what the ops say.
// Reports  A barrier whose arrival count or use does not suit an implicit wait; a meeting, or work that all active
//          threads share, under thread-dependent control; active threads that cannot meet.
//
// Phases are counted, never guessed: each mbarrier array that is waited for implicitly has a cell with one
// bit a barrier, flipped by all active threads at every completion that this kernel arranges; a parity derived from the
// loop's variable would be wrong in a loop that is entered twice. Before a barrier is armed again all of them have
// met since they last waited on it, so no phase can lap a waiter: one bit tells apart only neighbouring phases. A
// barrier that is waited for implicitly belongs to one range of threads, since only they count its phases.
//
// Inside a role the threads of the role meet, never those of the CTA. What a role's ops need because of what the
// threads around it did before is met in front of the branch.
#include "passes/hazards.h"

#include "base/map.h"
#include "passes/meet.h"
#include "passes/tile.h"

enum { PHASE_BITS = 32 };

// The range of threads that is being walked, and those around it.
typedef struct Frame {
  struct Frame *outer;
  TirThreads threads;
  int range;       // number in hazards
  Meeting wanted;  // of the threads of `outer`, before they part into this role
} Frame;

// A barrier the compiler made for asynchronous work of a range.
typedef struct {
  TirThreads threads;
  Path path;
  TirValue *barrier;
} OwnBarrier;

typedef struct {
  PassCx *cx;
  TirKernel *kernel;
  Hazards hazards;
  Meetings meetings;
  Map *phases;  // alloc_barrier value -> cell
  VEC(OwnBarrier) own;
  Frame *frame;
  TirOp *divergent;  // the innermost enclosing op under thread-dependent control, or NULL
  TirOp *reported;   // the divergent op that was reported last
  Meeting wanted;    // what a walk without insertion would have needed under divergent control
  int met;           // meetings so far
  int loops;         // around
  bool insert;       // false: only follow the state (to find a loop's entry state)
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

static bool same_threads(TirThreads a, TirThreads b) {
  return a.lo == b.lo && a.hi == b.hi;
}

static const char *own_name(Barriers *s, Path path, TirThreads threads) {
  const char *stem = path == PATH_MMA ? "mma" : "tma";
  bool all = tir_thread_count(threads) == s->kernel->threads;
  return all ? text_printf(s->cx->module->arena, "%s_barrier", stem)
             : text_printf(s->cx->module->arena, "%s_barrier_%d_%d", stem, threads.lo, threads.hi);
}

static TirValue *own_barrier(Barriers *s, const TirOp *op) {
  TirThreads threads = tir_active_threads(op->parent);
  for (int i = 0; i < s->own.len; i++)
    if (s->own.data[i].path == op_path(op) && same_threads(s->own.data[i].threads, threads))
      return s->own.data[i].barrier;
  const int64_t one_arrival = 1;
  TirBuilder b = at_entry(s, op->span);
  Name name = intern(s->cx->module->names, own_name(s, op_path(op), threads));
  OwnBarrier own = {threads, op_path(op), tir_alloc_barrier(&b, name, 1, &one_arrival)};
  vec_push(s->cx->scratch, &s->own, own);
  return own.barrier;
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

static int barrier_operand(const TirOp *op) {
  const OpDef *def = op_def(op->kind);
  for (int i = 0; i < def->noperands; i++)
    if (def->operands[i].spaces == 1u << SPACE_BARRIER) return i;
  BUG("%s has no barrier operand", def->name);
}

// The barrier operand of the explicit form is the author's: bytes are announced, and the author arrives and waits.
static void lower_tma_load(Barriers *s, TirOp *op) {
  TirOp *region;
  bool is_explicit = tile_attr(op, "explicit", 0);
  int slot = barrier_operand(op);
  TirValue *barrier = is_explicit ? op->args[slot] : own_barrier(s, op);
  into_one_thread(s, op, &region);
  TirBuilder inside = tir_builder_before(s->cx->module, op);
  TirValue *announce[] = {barrier, tir_int(&inside, type_bytes(&op->args[1]->type))};
  tir_op(&inside, OP_mbar_expect_tx, 2, announce, 0, NULL)->attrs[EXPECT_arrive] = !is_explicit;
  op->args[slot] = barrier;
  if (is_explicit) return;
  TirBuilder after = tir_builder_after(s->cx->module, region);
  emit_wait(&after, barrier, step_phase(s, &after, barrier));
}

static void lower_tma_store(Barriers *s, TirOp *op, bool waited) {
  TirOp *region;
  TirBuilder b = into_one_thread(s, op, &region);
  emit(&b, OP_bulk_commit);
  if (waited) tir_op(&b, OP_bulk_wait, 0, NULL, 0, NULL)->attrs[BULK_pending] = 0;
}

// Without a wait the author counts the phases of the barrier, if there is one: no other op waits on it implicitly.
static void lower_mma(Barriers *s, TirOp *op, bool waited) {
  TirOp *region;
  int slot = barrier_operand(op);
  TirValue *barrier = op->args[slot] || !waited ? op->args[slot] : own_barrier(s, op);
  op->args[slot] = NULL;
  TirBuilder b = into_one_thread(s, op, &region);
  TirBuilder before = tir_builder_before(s->cx->module, op);
  emit(&before, OP_tcgen05_fence_after);
  if (barrier) tir_op(&b, OP_tcgen05_commit, 1, &barrier, 0, NULL);
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

// The barrier on which an asynchronous op will complete, as far as this pass arranges that.
static TirValue *barrier_of(Barriers *s, const TirOp *op) {
  if (op_path(op) != PATH_TMA_LOAD && op_path(op) != PATH_MMA) return NULL;
  TirValue *barrier = op->args[barrier_operand(op)];
  return barrier || !wait_of(op) ? barrier : own_barrier(s, op);
}

static int accumulator_operand(const TirOp *op) {
  for (int i = 0; i < op->nargs; i++)
    if (tile_access(op, i) == ACCUMULATES && op->args[i]->type.space == SPACE_FRAGMENT) return i;
  BUG("%s accumulates in no fragment", op_def(op->kind)->name);
}

// Every thread waits for the groups of its own warpgroup: no barrier tells of them.
static void lower_wgmma(Barriers *s, TirOp *op, bool waited) {
  TirBuilder b = tir_builder_after(s->cx->module, op);
  op->args[barrier_operand(op)] = NULL;
  op->nresults = 0;
  if (waited) tir_op(&b, OP_mma_wait, 1, &op->args[accumulator_operand(op)], 0, NULL);
}

static void lower_async(Barriers *s, TirOp *op) {
  TirOp *wait = wait_of(op);
  if (wait) tir_remove(wait);
  switch (op_path(op)) {
  case PATH_TMA_LOAD:
    lower_tma_load(s, op);
    return;
  case PATH_TMA_STORE:
    lower_tma_store(s, op, wait != NULL);
    return;
  case PATH_MMA:
    lower_mma(s, op, wait != NULL);
    return;
  case PATH_WGMMA:
    lower_wgmma(s, op, wait != NULL);
    return;
  case PATH_NONE:
  case PATH_THREADS:
  case PATH_TMEM_LOAD:
  case PATH_TMEM_STORE:
  case PATH_PANELS:
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
  TirThreads threads = s->frame->threads;
  bool all = tir_thread_count(threads) == s->kernel->threads;
  diag_error(s->cx->ds, DIAG_divergent_barrier, op->span,
             "all threads %s must %s, but it runs under a condition that differs between threads",
             all ? "of the block" : text_printf(s->cx->scratch, "from %d to %d", threads.lo, threads.hi - 1),
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

static void merge(Meeting *into, Meeting meeting) {
  into->sync |= meeting.sync;
  into->proxy_fence |= meeting.proxy_fence;
  into->tmem_fence |= meeting.tmem_fence;
}

// The threads of the current range meet before an op, or only fence.
static void meet(Barriers *s, TirOp *before, Meeting meeting, Touch *state) {
  if (!meeting.sync && !meeting.proxy_fence) return;
  if (meeting.sync) meeting.tmem_fence |= hazards_in_tmem(&s->hazards, state, s->frame->range);
  hazards_met(&s->hazards, state, s->frame->range, meeting);
  s->met += meeting.sync;
  if (!s->insert) return;
  TirBuilder b = tir_builder_before(s->cx->module, before);
  if (meeting.proxy_fence) emit(&b, OP_fence_proxy_async);
  if (!meeting.sync) return;
  if (meeting.tmem_fence) emit(&b, OP_tcgen05_fence_before);
  if (!meet_threads(&s->meetings, &b, s->frame->threads, before)) s->ok = false;
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
  hazards_set(&s->hazards, state, joined);
}

// --- loops ---

// The state at the head of a loop holds for its first and for every later turn. Returns the meetings of such a turn.
static int settle_loop(Barriers *s, TirOp *op, Touch *state) {
  bool insert = s->insert;
  int before = s->met, met = 0;
  s->insert = false;
  for (bool grew = true; grew;) {
    s->met = 0;
    Touch *turn = hazards_copy(&s->hazards, state);
    walk_block(s, op->bodies[0], turn);
    met = s->met;
    grew = hazards_join(&s->hazards, state, turn);
  }
  s->insert = insert;
  s->met = before + met;
  return met;
}

// What was done before a loop may ask for a meeting in its first turn that no later one needs: one in front of the loop
// is then cheaper than one in each turn.
static bool meet_before_loop(Barriers *s, TirOp *op, Touch *state) {
  enum { MAX_LOOPS_AROUND = 2 };  // the question is asked again for each turn of the loops around
  Meeting all = {.sync = true, .proxy_fence = hazards_unfenced(&s->hazards, state, s->frame->range)};
  if (s->divergent || s->loops > MAX_LOOPS_AROUND) return false;
  int before = s->met;
  Touch *met = hazards_copy(&s->hazards, state), *unmet = hazards_copy(&s->hazards, state);
  all.tmem_fence = hazards_in_tmem(&s->hazards, state, s->frame->range);
  hazards_met(&s->hazards, met, s->frame->range, all);
  bool pays = settle_loop(s, op, met) < settle_loop(s, op, unmet);
  s->met = before;
  if (pays) meet(s, op, all, state);
  return pays;
}

static void walk_loop(Barriers *s, TirOp *op, Touch *state) {
  s->loops++;
  meet_before_loop(s, op, state);
  settle_loop(s, op, state);
  // A turn has just led back to this very state. To walk once more at each level would double the work with
  // every loop around.
  if (s->insert) walk_bodies(s, op, state, true);
  s->loops--;
}

// --- threads that part ---

static bool parts_threads(const Barriers *s, const TirOp *op) {
  for (int i = 0; i < op->nargs; i++)
    if (op->args[i] && tir_differs_among(op->args[i], s->frame->threads)) return true;
  return false;
}

static void walk_into(Barriers *s, TirOp *op, Touch *state) {
  if (tir_is_loop(op))
    walk_loop(s, op, state);
  else
    walk_bodies(s, op, state, op->kind == OP_one_thread);
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
  bool parts = op->kind == OP_one_thread || parts_threads(s, op);
  if (parts) s->divergent = op;
  if (parts && !outer) meet_before_parting(s, op, state);
  walk_into(s, op, state);
  s->divergent = outer;
}

// --- roles ---

static void walk_role(Barriers *s, TirOp *role, Touch *state, Meeting *wanted) {
  TirThreads threads = tir_active_threads(role->bodies[0]);
  Frame frame = {.outer = s->frame, .threads = threads, .range = hazards_range(&s->hazards, threads)};
  s->frame = &frame;
  walk_block(s, role->bodies[0], state);
  s->frame = frame.outer;
  merge(wanted, frame.wanted);
}

// The next arm of the branch that this role belongs to, or NULL.
static TirOp *next_arm(const TirOp *role) {
  TirOp *next = role->next;
  while (next && op_def(next->kind)->pure) next = next->next;
  return next && next->kind == OP_role && next->attrs[ROLE_arm] ? next : NULL;
}

// All arms of a branch; what they need of the threads around is met before the first. Returns the last.
static TirOp *walk_roles(Barriers *s, TirOp *first, Touch *state) {
  bool insert = s->insert;
  int met = s->met;
  Meeting wanted = {0}, ignored = {0};
  TirOp *last = first;
  s->insert = false;
  for (TirOp *role = first; role; role = next_arm(role)) {
    walk_role(s, role, hazards_copy(&s->hazards, state), &wanted);
    last = role;
  }
  s->insert = insert;
  s->met = met;
  meet(s, first, wanted, state);
  for (TirOp *role = first, *next; role; role = next) {
    next = next_arm(role);
    walk_role(s, role, state, &ignored);
  }
  return last;
}

// --- ops ---

// What the author's own meeting or arrival hands over goes with the fences that it needs.
static void fence_before(Barriers *s, TirOp *op, Touch *state) {
  Meeting fence = {.proxy_fence = hazards_unfenced(&s->hazards, state, s->frame->range)};
  if (s->divergent)
    merge(&s->wanted, fence);
  else
    meet(s, op, fence, state);
}

static void walk_sync_threads(Barriers *s, TirOp *op, Touch *state) {
  bool named = op->attrs[SYNC_id] > 0, fenced = op->prev && op->prev->kind == OP_tcgen05_fence_before;
  fence_before(s, op, state);
  if (fenced) hazards_met(&s->hazards, state, s->frame->range, (Meeting){.sync = true, .tmem_fence = true});
  if (!named) {
    meet(s, op, (Meeting){.sync = true}, state);
    if (s->insert) tir_remove(op);
    return;
  }
  hazards_met(&s->hazards, state, s->frame->range, (Meeting){.sync = true});
}

static void walk_arrive(Barriers *s, TirOp *op, Touch *state) {
  fence_before(s, op, state);
  bool fenced = op->prev && op->prev->kind == OP_tcgen05_fence_before;
  if (!s->insert || fenced || !hazards_in_tmem(&s->hazards, state, s->frame->range)) return;
  TirBuilder b = tir_builder_before(s->cx->module, op);
  emit(&b, OP_tcgen05_fence_before);
}

static void walk_wait(Barriers *s, TirOp *op, Touch *state) {
  hazards_waited(&s->hazards, state, op->args[0], s->frame->range);
  if (!s->insert || !s->kernel->tmem_columns) return;
  TirBuilder after = tir_builder_after(s->cx->module, op);
  emit(&after, OP_tcgen05_fence_after);
}

static void walk_sync(Barriers *s, TirOp *op, Touch *state) {
  if (!check_together(s, op)) return;
  if (op->kind == OP_sync_threads) walk_sync_threads(s, op, state);
  if (op->kind == OP_fence_proxy_async && !s->divergent)
    hazards_met(&s->hazards, state, s->frame->range, (Meeting){.proxy_fence = true});
  if (op->kind == OP_mbar_arrive || (op->kind == OP_mbar_expect_tx && op->attrs[EXPECT_arrive]))
    walk_arrive(s, op, state);
  if (op->kind == OP_mbarrier_wait_parity) walk_wait(s, op, state);
}

// What the op needs of the active threads; what it needs of those around them is noted at the role that parts them.
static Meeting meeting_before(Barriers *s, const Touch *state, TirOp *op) {
  Meeting here = {0};
  for (int range = 0; range < s->hazards.ranges.len; range++) {
    Meeting meeting = hazards_between(&s->hazards, state, op, s->frame->range, range);
    if (!meeting.sync) continue;
    TirThreads earlier = s->hazards.ranges.data[range].threads;
    Frame *frame = s->frame, *inner = NULL;
    for (; !threads_contain(frame->threads, earlier); frame = frame->outer) inner = frame;
    merge(inner ? &inner->wanted : &here, meeting);
  }
  return here;
}

static void walk_effect(Barriers *s, TirOp *op, Touch *state) {
  if (!check_together(s, op)) return;
  bool async = path_is_async(op_path(op));
  int range = s->frame->range;
  Meeting meeting = meeting_before(s, state, op);
  TirValue *armed = async ? barrier_of(s, op) : NULL;
  if (armed && hazards_may_lap(&s->hazards, state, armed, range)) meeting.sync = true;
  if (meeting.sync && s->divergent) {
    if (s->insert) report_meeting(s, op);
    merge(&s->wanted, meeting);
    return;
  }
  meet(s, op, meeting, state);
  hazards_after(&s->hazards, state, op, range);
  if (armed && wait_of(op)) hazards_waited(&s->hazards, state, armed, range);
  if (async && s->insert) lower_async(s, op);
}

static void walk_block(Barriers *s, TirBlock *block, Touch *state) {
  for (TirOp *op = block->first, *next; op; op = next) {
    next = op->next;
    while (next && next->kind == OP_wait) next = next->next;  // goes with its op
    OpGroup group = op_def(op->kind)->group;
    if (op->kind == OP_role)
      next = walk_roles(s, op, state)->next;
    else if (op->kind == OP_parallel || tile_is_element(op))
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

static const char *barrier_name(const TirValue *root) {
  return root->name ? root->name : "the barrier";
}

// Only the threads that wait for a barrier implicitly count its phases.
static void check_one_range(Barriers *s, const TirValue *root, const TirOp *op, const TirOp *other) {
  TirThreads here = tir_active_threads(op->parent), there = tir_active_threads(other->parent);
  if (same_threads(here, there)) return;
  s->ok = false;
  diag_error(
      s->cx->ds, DIAG_barrier_shared, op->span,
      "%s is waited for by threads %d to %d here and by %d to %d elsewhere: neither sees all its phases",
      barrier_name(root), here.lo, here.hi - 1, there.lo, there.hi - 1);
  diag_note(s->cx->ds, other->span, "the other wait is here");
  diag_hint(s->cx->ds, "use a barrier of its own for each role");
}

static bool find_implicit(void *context, TirOp *op) {
  Uses *uses = context;
  if ((op_path(op) != PATH_TMA_LOAD && op_path(op) != PATH_MMA) || !wait_of(op)) return true;
  TirValue *barrier = op->args[barrier_operand(op)];
  if (!barrier) {
    own_barrier(uses->s, op);
    return true;
  }
  TirValue *root = tir_root(barrier);
  const TirOp *other = map_get(uses->implicit, root);
  if (!other) map_put(uses->implicit, root, op);
  if (other) check_one_range(uses->s, root, op, other);
  return true;
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
  if (op->kind == OP_mbar_arrive || op->kind == OP_mbar_expect_tx || op->kind == OP_tcgen05_commit)
    return op->args[0];
  if ((op_path(op) != PATH_MMA && op_path(op) != PATH_TMA_LOAD) || wait_of(op)) return NULL;
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
  if (s->kernel->maps.len) emit(&inside, OP_prefetch_maps);
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
  s.meetings = meetings_new(cx, kernel);
  Frame all = {.threads = {0, kernel->threads}};
  s.frame = &all;
  walk_block(&s, kernel->body, hazards_state(&s.hazards));
  if (s.ok) emit_prologue(&s);
  return s.ok;
}

// An access is a box of elements in a buffer, made by threads or by an engine. Two that meet in a box, one of them
// writing, must be ordered: by what the accessing threads know of each other, for the async proxy also by a fence
// of ordinary writes (PTX ISA 8.6), in tensor memory by the tcgen05 fences (PTX ISA 9.7.16.6). What one op spreads
// over a team of threads, each thread may have kept to its own part: two such ops of one team are not compared.
#include "passes/sync_check/memory.h"

#include "passes/hazards.h"
#include "passes/sync_check/explain.h"
#include "passes/sync_check/plan.h"
#include "passes/sync_check/run.h"
#include "passes/tile.h"

enum { FAR = INT32_MAX };
enum { ACCESSES_A_STEP = 8 };  // comparisons count among the steps that a proof may take

int64_t memory_bytes(const TirOp *op) {
  const OpDef *def = op_def(op->kind);
  for (int i = 0; i < op->nargs && i < def->noperands; i++)
    if (op->args[i] && (def->operands[i].access & WRITES) && op->args[i]->type.space == SPACE_SHARED)
      return type_bytes(&op->args[i]->type);
  return 0;
}

// --- boxes ---

static int64_t last_of(const Type *type, int dim) {
  return type->shape[dim] == DIM_DYNAMIC ? FAR : type->shape[dim] - 1;
}

static void clip(Box *box, const Type *type) {
  for (int d = 0; d < type->rank; d++) {
    if (box->lo[d] < 0) box->lo[d] = 0;
    if (box->hi[d] > last_of(type, d)) box->hi[d] = last_of(type, d);
  }
}

static Box whole_box(const TirValue *buffer) {
  Box box = {.rank = buffer->type.rank, .dense = true};
  for (int d = 0; d < box.rank; d++) box.hi[d] = last_of(&buffer->type, d);
  return box;
}

static Box element_box(const Leaves *leaves, const Effect *effect) {
  Box box = {.rank = effect->buffer->type.rank, .dense = true};
  for (int d = 0; d < box.rank; d++) {
    Val index = val_of(leaves, effect->indices[d]);
    box.lo[d] = index.lo;
    box.hi[d] = index.hi;
    if (!val_is_point(index) && effect->indices[d]->op->kind != OP_parallel) box.dense = false;
  }
  clip(&box, &effect->buffer->type);
  return box;
}

static int64_t sum(int64_t a, int64_t b) {
  int64_t out;
  return __builtin_add_overflow(a, b, &out) ? (a < 0 ? INT64_MIN : INT64_MAX) : out;
}

// The box in the buffer that the view is taken of.
static Box through_view(const Leaves *leaves, const TirOp *view, const Box *inner) {
  const Type *type = &view->args[0]->type;
  Box box = {.rank = type->rank, .dense = inner->dense};
  for (int d = 0, k = 0; d < type->rank; d++) {
    Val offset = val_of(leaves, view->args[1 + d]);
    bool dropped = view->attrs[VIEW_drop] >> d & 1;
    box.lo[d] = dropped ? offset.lo : sum(offset.lo, inner->lo[k]);
    box.hi[d] = dropped ? offset.hi : sum(offset.hi, inner->hi[k]);
    k += !dropped;
    if (!val_is_point(offset)) box.dense = false;
  }
  clip(&box, type);
  return box;
}

// The rows of a shared tile that these threads move: as the fragment on the other side gives them out.
static void keep_to_rows(Box *box, const TirOp *op, const Effect *effect, const ThreadClass *threads) {
  enum { ROWS, COLUMNS, RANK };
  TirValue *src, *dst;
  if (op_path(op) != PATH_THREADS || !tile_move(op, &src, &dst)) return;
  TirValue *fragment = tile_is_fragment(src) ? src : dst;
  if (!tile_is_fragment(fragment) || effect->buffer->type.space != SPACE_SHARED) return;
  const Type *type = &tir_root(fragment)->type;
  const Layout *layout = tir_layout(fragment);
  bool rows = box->rank == RANK && type->rank == RANK && fragment->type.rank == RANK && layout &&
              fragment->type.shape[ROWS] == type->shape[ROWS] && box->hi[ROWS] + 1 == type->shape[ROWS];
  TirThreads active = tir_active_threads(op->parent);
  if (!rows || layout_threads(layout) != tir_thread_count(active)) return;
  int64_t lo = box->hi[ROWS], hi = 0, last = layout_registers(layout) - 1;
  for (int t = threads->first; t <= threads->last; t++) {
    if (!threads->member[t] || t < active.lo || t >= active.hi) continue;
    int64_t first = layout_element(layout, t - active.lo, 0) / type->shape[COLUMNS];
    int64_t end = layout_element(layout, t - active.lo, last) / type->shape[COLUMNS];
    if (first < lo) lo = first;
    if (end > hi) hi = end;
  }
  box->lo[ROWS] = lo;
  if (hi < box->hi[ROWS]) box->hi[ROWS] = hi;
}

static Box box_of(const Leaves *leaves, const TirOp *op, const Effect *effect, const ThreadClass *threads) {
  Box box = effect->indices ? element_box(leaves, effect) : whole_box(effect->buffer);
  if (!effect->indices) keep_to_rows(&box, op, effect, threads);
  const TirValue *buffer = effect->buffer;
  for (; buffer->op->kind == OP_view; buffer = buffer->op->args[0])
    box = through_view(leaves, buffer->op, &box);
  const TirValue *root = tir_root(effect->buffer);
  if (buffer == root) return box;
  box = whole_box(root);
  box.dense = false;
  return box;
}

static bool boxes_meet(const Box *a, const Box *b) {
  for (int d = 0; d < a->rank && d < b->rank; d++)
    if (a->lo[d] > b->hi[d] || b->lo[d] > a->hi[d]) return false;
  return true;
}

static bool box_holds(const Box *outer, const Box *inner) {
  for (int d = 0; d < outer->rank && d < inner->rank; d++)
    if (inner->lo[d] < outer->lo[d] || inner->hi[d] > outer->hi[d]) return false;
  return true;
}

static bool surely_meet(const Box *a, const Box *b) {
  if (a->dense && b->dense) return true;
  return (a->dense && box_holds(a, b)) || (b->dense && box_holds(b, a));
}

// --- order ---

static bool after_threads(const Agent *agent, const Touched *before, const Touched *now) {
  int c = before->component;
  bool own = before->class_index == agent->class_index;
  if (before->tmem) return own || agent->acquired[c] >= before->at;
  if (!own && agent->clock.knows[c] < before->at) return false;
  if (now->engine == BY_THREADS || now->own || !before->writes) return true;
  return agent->clock.async[c] >= before->at;
}

static DType type_of_first(const TirOp *op) {
  return op->nargs && op->args[0] ? op->args[0]->type.dtype : DTYPE_f32;
}

// Products of one thread are carried out in order where they add to the same accumulator in the same form.
static bool in_order(const Touched *before, const Touched *now) {
  if (!before->tmem || !before->writes || !now->writes) return true;
  bool same_box = box_holds(&before->box, &now->box) && box_holds(&now->box, &before->box);
  return same_box && type_of_first(before->op) == type_of_first(now->op);
}

static bool is_ordered(const Agent *agent, const Touched *before, const Touched *now) {
  if (before->engine == BY_THREADS) return after_threads(agent, before, now);
  int c = before->component;
  bool one_engine = before->engine == now->engine && c == now->component && before->engine != BY_LOAD;
  if (one_engine && in_order(before, now)) return true;
  if (one_engine) return agent->clock.knows[c] >= before->at;
  if (before->tmem) return agent->acquired[c] >= before->at;
  return agent->clock.knows[c] >= before->at;
}

// One team did both: each of its threads a part, or each the same.
static bool one_team(const Touched *a, const Touched *b) {
  return a->engine == BY_THREADS && b->engine == BY_THREADS && a->spread == b->spread && a->team == b->team;
}

typedef enum { SHARES_EQUAL, SHARES_UNKNOWN, SHARES_DIFFER } Shares;

// Whether each thread of the team keeps to the same part in both ops, or all do the same thing. By position, neighbours in a row belong to
// different threads; a fragment that gives a thread whole rows does not fit that.
static Shares compare_shares(const Touched *a, const Touched *b) {
  if (a->op == b->op || a->tmem) return SHARES_EQUAL;
  if (!a->tile || !b->tile) return SHARES_UNKNOWN;
  if (a->share && b->share) return layout_equal(a->share, b->share) ? SHARES_EQUAL : SHARES_DIFFER;
  const Touched *held = a->share ? a : b;
  const Layout *share = held->share;
  if (!share) return SHARES_EQUAL;
  int last = held->box.rank - 1;
  int64_t row = held->box.hi[last] - held->box.lo[last] + 1;
  return share->nthread_modes && share->thread[0].stride >= row ? SHARES_DIFFER : SHARES_UNKNOWN;
}

static void compare(Run *run, const Agent *agent, const Touched *before, const Touched *now) {
  if (!(before->writes || now->writes) || !boxes_meet(&before->box, &now->box)) return;
  if (now->own && before->class_index != now->class_index) return;
  if ((before->atomic && now->atomic) || is_ordered(agent, before, now)) return;
  bool team = one_team(before, now);
  Shares shares = team ? compare_shares(before, now) : SHARES_DIFFER;
  if (shares == SHARES_EQUAL) return;
  bool certain =
      shares == SHARES_DIFFER && before->certain && now->certain && surely_meet(&before->box, &now->box);
  explain_conflict(run, agent, before, now, certain);
}

// --- what happened ---

// Whoever comes after `newer` also comes after `older`.
static bool replaces(const Agent *agent, const Touched *newer, const Touched *older) {
  if (!box_holds(&newer->box, &older->box) || !newer->box.dense || !newer->certain) return false;
  bool same = newer->component == older->component && newer->engine == older->engine &&
              newer->spread == older->spread && newer->team == older->team;
  if (same && newer->atomic <= older->atomic && newer->reads >= older->reads &&
      newer->writes >= older->writes)
    return true;
  // Others of the team need not come after it.
  if (newer->engine == BY_THREADS && newer->team != UINT64_C(1) << newer->class_index) return false;
  return newer->writes && is_ordered(agent, older, newer);
}

static void record(Run *run, const Agent *agent, History *history, const Touched *access) {
  int kept = 0;
  for (int i = 0; i < history->list.len; i++)
    if (!replaces(agent, access, &history->list.data[i])) history->list.data[kept++] = history->list.data[i];
  history->list.len = kept;
  vec_push(run->arena, &history->list, *access);
}

static const Layout *share_of(const TirOp *op) {
  for (int i = 0; i < op->nargs; i++)
    if (op->args[i] && op->args[i]->type.kind == TYPE_BUFFER && op->args[i]->type.space == SPACE_FRAGMENT)
      return tir_layout(op->args[i]);
  return NULL;
}

static void check_allocated(Run *run, const TirOp *op, const TirValue *buffer) {
  if (run->tmem_allocated > 0) return;
  bool freed = run->tmem_allocated < 0;
  if (!explain(run, DIAG_tmem_lifetime, op, "%s is used %s", explain_buffer(buffer),
               freed ? "after the tensor memory was released" : "before tensor memory is allocated"))
    return;
  if (freed) diag_note(run->plan->cx->ds, run->tmem_op->span, "released here");
  diag_hint(run->plan->cx->ds, freed ? "release it after the last use" : "allocate it first");
  explain_run(run);
}

// A team of one, though all threads come by.
static bool is_single(const TirOp *op) {
  return op->kind == OP_tmem_alloc;
}

static void touch(Run *run, Agent *agent, const TirOp *op, const Effect *effect, Touched access) {
  TirValue *root = tir_root(effect->buffer);
  Leaves leaves = run_leaves(run, agent);
  access.reads = effect->reads;
  access.writes = effect->writes;
  access.atomic = effect->atomic;
  access.tmem = root->type.space == SPACE_TMEM;
  access.own = root->type.space == SPACE_FRAGMENT;
  access.certain = effect->certain && !agent->uncertain;
  access.tile = op_def(op->kind)->group == GROUP_TILE;
  access.share = access.tile ? share_of(op) : NULL;
  access.spread = effect->spread && access.engine == BY_THREADS;
  access.box = box_of(&leaves, op, effect, &run->plan->classes[agent->class_index]);
  if (access.engine == BY_STORE)
    access.component = effect->writes ? plan_stores(run->plan, agent->class_index)
                                      : plan_sources(run->plan, agent->class_index);
  if (access.tmem) check_allocated(run, op, root);
  History *history = &run->histories[plan_buffer(run->plan, root)];
  run->plan->steps_left -= history->list.len / ACCESSES_A_STEP;
  for (int i = 0; i < history->list.len && run->result == RUN_FINE; i++)
    compare(run, agent, &history->list.data[i], &access);
  record(run, agent, history, &access);
}

void memory_touch(Run *run, Agent *agent, const TirOp *op, Engine engine, int component, int at) {
  Effects effects = plan_effects(run->plan, op);
  if (!effects.len) return;
  agent->clock.knows[agent->class_index] = ++agent->now;
  Touched access = {.op = op,
                    .engine = engine,
                    .team = is_single(op) ? UINT64_C(1) << agent->class_index : run_team(run, agent, op),
                    .class_index = agent->class_index,
                    .component = engine == BY_THREADS ? agent->class_index : component,
                    .at = engine == BY_THREADS ? agent->now : at};
  for (int i = 0; i < effects.len && run->result == RUN_FINE; i++)
    touch(run, agent, op, &effects.at[i], access);
}

void memory_release_tmem(Run *run, Agent *agent, const TirOp *op) {
  for (int i = 0; i < run->plan->roots.len && run->result == RUN_FINE; i++) {
    const TirValue *root = run->plan->roots.data[i];
    if (root->type.space != SPACE_TMEM) continue;
    Touched all = {.op = op,
                   .engine = BY_THREADS,
                   .writes = true,
                   .tmem = true,
                   .certain = true,
                   .class_index = agent->class_index,
                   .component = agent->class_index,
                   .at = agent->now,
                   .box = whole_box(root)};
    History *history = &run->histories[i];
    for (int k = 0; k < history->list.len && run->result == RUN_FINE; k++)
      compare(run, agent, &history->list.data[k], &all);
  }
}

// Threads are told apart by what the text says about them: ranges of roles, the one thread of a region, values of
// conditions that are made of the thread index. Two threads that agree in all of these take the same way.
#include "passes/sync_check/plan.h"

#include <string.h>

#include "passes/hazards.h"
#include "passes/sync_check/value.h"
#include "passes/tile.h"
#include "tir/roles.h"

int plan_products(const Plan *plan, int class_index) {
  return plan->nclasses + class_index;
}
int plan_sources(const Plan *plan, int class_index) {
  return 2 * plan->nclasses + class_index;
}
int plan_stores(const Plan *plan, int class_index) {
  return 3 * plan->nclasses + class_index;
}
int plan_phases(const Plan *plan, int barrier) {
  return 4 * plan->nclasses + barrier;
}

int plan_threads(const TirKernel *kernel) {
  return kernel->threads < MAX_THREADS ? kernel->threads : MAX_THREADS;
}

int plan_buffer(const Plan *plan, TirValue *buffer) {
  return (int)(intptr_t)map_get(plan->buffers, tir_root(buffer)) - 1;
}

unsigned plan_content(const Plan *plan, const TirOp *op) {
  return (unsigned)(uintptr_t)map_get(plan->content, op);
}

Effects plan_effects(const Plan *plan, const TirOp *op) {
  const Effects *effects = map_get(plan->effects, op);
  return effects ? *effects : (Effects){0};
}

// --- buffers: all that threads share, and registers that an engine writes; tensors only when the kernel does ---

static void number_buffer(Plan *plan, TirValue *root) {
  if (map_has(plan->buffers, root)) return;
  vec_push(plan->arena, &plan->roots, root);
  map_put(plan->buffers, root, (void *)(intptr_t)plan->roots.len);
}

static bool number_buffers(void *context, TirOp *op) {
  Plan *plan = context;
  const OpDef *def = op_def(op->kind);
  for (int i = 0; i < op->nargs && i < def->noperands; i++) {
    TirValue *arg = op->args[i];
    if (!arg || arg->type.kind != TYPE_BUFFER || !def->operands[i].access) continue;
    Space space = arg->type.space;
    bool writes = def->operands[i].access & WRITES;
    bool accumulator = space == SPACE_FRAGMENT && writes && path_is_async(op_path(op));
    if (space == SPACE_SHARED || space == SPACE_TMEM || (space == SPACE_GLOBAL && writes) || accumulator)
      number_buffer(plan, tir_root(arg));
  }
  return true;
}

static bool number_barriers(void *context, TirOp *op) {
  Plan *plan = context;
  if (op->kind != OP_alloc_barrier) return true;
  map_put(plan->first_barrier, op->results[0], (void *)(intptr_t)(plan->barriers.len + 1));
  for (int i = 0; i < op->nlist; i++) {
    BarrierPlan barrier = {op->results[0], i, op->list[i]};
    vec_push(plan->arena, &plan->barriers, barrier);
  }
  return true;
}

// --- effects and content ---

typedef struct {
  Plan *plan;
  bool in_parallel;
  VEC(Effect) list;
} Collect;

static bool depends_on_thread(const TirOp *op, int first) {
  for (int i = first; i < op->nargs; i++)
    if (tir_thread_dependent(op->args[i])) return true;
  return false;
}

static void collect_op(Collect *collect, TirOp *op, bool certain) {
  const OpDef *def = op_def(op->kind);
  for (int i = 0; i < op->nargs && i < def->noperands; i++) {
    TirValue *arg = op->args[i];
    unsigned access = def->operands[i].access;
    if (!arg || arg->type.kind != TYPE_BUFFER || !access || arg->type.space == SPACE_BARRIER) continue;
    if (plan_buffer(collect->plan, arg) < 0) continue;
    bool element = tile_is_element(op);
    Effect effect = {.buffer = arg,
                     .indices = element ? op->args + def->noperands : NULL,
                     .reads = access & READS,
                     .writes = access & WRITES,
                     .atomic = access & ATOMIC,
                     .certain = certain,
                     .spread = !element || collect->in_parallel || depends_on_thread(op, def->noperands)};
    vec_push(collect->plan->arena, &collect->list, effect);
  }
  for (int body = 0; body < op->nbodies; body++)
    for (TirOp *inner = op->bodies[body]->first; inner; inner = inner->next)
      collect_op(collect, inner, certain && op->kind != OP_if && op->kind != OP_for && op->kind != OP_while);
}

static void note_effects(Plan *plan, TirOp *op) {
  Collect collect = {.plan = plan, .in_parallel = op->kind == OP_parallel};
  collect_op(&collect, op, true);
  if (!collect.list.len) return;
  Effects *effects = ARENA_NEW(plan->arena, Effects);
  *effects = (Effects){collect.list.data, collect.list.len};
  map_put(plan->effects, op, effects);
}

static unsigned content_of_leaf(const Plan *plan, const TirOp *op) {
  OpGroup group = op_def(op->kind)->group;
  if (group == GROUP_SYNC) return HAS_SYNC;
  if (path_is_async(op_path(op))) return HAS_SYNC | HAS_ACCESS;
  if (op->kind == OP_set && !dtype_is_float(op->args[0]->type.dtype)) return HAS_SET;
  return map_has(plan->effects, op) ? HAS_ACCESS : 0;
}

static bool parts_warps(const TirOp *op) {
  if (op->kind == OP_role) return op->attrs[ROLE_lo] % WARP || op->attrs[ROLE_hi] % WARP;
  if (op->kind == OP_one_thread) return true;
  for (int i = 0; i < op->nargs && op->nbodies; i++)
    if (op->args[i] && tir_differs_among(op->args[i], tir_active_threads(op->parent))) return true;
  return false;
}

static unsigned note_content(Plan *plan, TirOp *op, bool converged) {
  bool whole = op->kind == OP_parallel || !op->nbodies, parts = !whole && parts_warps(op);
  if (whole) note_effects(plan, op);
  unsigned content = content_of_leaf(plan, op);
  for (int i = 0; i < op->nbodies && !whole; i++)
    for (TirOp *inner = op->bodies[i]->first; inner; inner = inner->next)
      content |= note_content(plan, inner, converged && !parts);
  bool leaves_together = converged && (op->kind == OP_mbarrier_wait_parity || op->kind == OP_sync_warp ||
                                       op->kind == OP_one_thread || op->kind == OP_role);
  unsigned own = content && leaves_together ? content | CONVERGED : content;
  if (own) map_put(plan->content, op, (void *)(uintptr_t)own);
  return content;
}

// --- classes of threads ---

// Parts every class by key[thread]. False, and nothing changed: there would be too many.
static bool split(Plan *plan, const int64_t *key) {
  ThreadClass *parts = ARENA_ARRAY(plan->arena, ThreadClass, MAX_CLASSES);
  int64_t keys[MAX_CLASSES];
  int from[MAX_CLASSES], count = 0;
  for (int c = 0; c < plan->nclasses; c++) {
    for (int t = 0; t < MAX_THREADS; t++) {
      if (!plan->classes[c].member[t]) continue;
      int part = 0;
      while (part < count && (from[part] != c || keys[part] != key[t])) part++;
      if (part == MAX_CLASSES) return false;
      if (part == count) {
        from[part] = c, keys[part] = key[t], parts[part].first = t;
        count++;
      }
      parts[part].member[t] = true;
      parts[part].last = t;
      parts[part].threads++;
    }
  }
  plan->classes = parts;
  plan->nclasses = count;
  return true;
}

static bool split_by_range(Plan *plan, int64_t lo, int64_t hi) {
  int64_t key[MAX_THREADS];
  for (int t = 0; t < MAX_THREADS; t++) key[t] = t >= lo && t < hi;
  return split(plan, key);
}

// Whether the value is made of the thread index and constants alone: then what it is for each thread.
static bool values_of_threads(const Plan *plan, const TirValue *value, int64_t *key) {
  for (int t = 0; t < plan_threads(plan->kernel); t++) {
    Leaves leaves = {.thread = val_point(t)};
    for (int i = 0; i < 3; i++) leaves.block[i] = val_unknown();
    if (!val_known(&leaves, value, &key[t])) return false;
  }
  return true;
}

static void split_by_value(Plan *plan, const TirValue *value, int depth) {
  int64_t key[MAX_THREADS] = {0};
  const TirOp *op = value->op;
  if (depth == 0 || op->kind == OP_const || value->type.kind != TYPE_SCALAR) return;
  if (values_of_threads(plan, value, key)) {
    split(plan, key);
    return;
  }
  if (!op_def(op->kind)->pure) return;
  for (int i = 0; i < op->nargs; i++)
    if (op->args[i]) split_by_value(plan, op->args[i], depth - 1);
}

typedef struct {
  Plan *plan;
  bool ok;
} Splitting;

static bool split_by_op(void *context, TirOp *op) {
  Splitting *splitting = context;
  Plan *plan = splitting->plan;
  if (!plan_content(plan, op) || op->kind == OP_parallel) return true;
  TirThreads active = tir_active_threads(op->parent);
  if (op->kind == OP_one_thread)
    splitting->ok = split_by_range(plan, active.lo, active.lo + 1);
  else if (op->kind == OP_role)
    splitting->ok = split_by_range(plan, op->attrs[ROLE_lo], op->attrs[ROLE_hi]);
  else if (op->kind == OP_if || op->kind == OP_for)
    for (int i = 0; i < op->nargs && i < FOR_GO; i++)
      if (tir_thread_dependent(op->args[i])) split_by_value(plan, op->args[i], 8);
  return splitting->ok;
}

// A warp whose threads part now and then is followed by itself: its parts meet again, not those of other warps.
static bool split_by_warp(Plan *plan) {
  int64_t key[MAX_THREADS];
  int class_of[MAX_THREADS] = {0};
  for (int c = 0; c < plan->nclasses; c++)
    for (int t = 0; t < MAX_THREADS; t++)
      if (plan->classes[c].member[t]) class_of[t] = c;
  for (int first = 0; first < MAX_THREADS; first += WARP) {
    bool mixed = false;
    for (int t = first; t < first + WARP; t++) mixed |= class_of[t] != class_of[first];
    for (int t = first; t < first + WARP; t++) key[t] = mixed ? first + 1 : 0;
  }
  return split(plan, key);
}

static bool make_classes(Plan *plan) {
  plan->classes = ARENA_NEW(plan->arena, ThreadClass);
  plan->nclasses = 1;
  plan->classes[0].threads = plan_threads(plan->kernel);
  plan->classes[0].last = plan->classes[0].threads - 1;
  for (int t = 0; t < plan->classes[0].threads; t++) plan->classes[0].member[t] = true;
  Splitting splitting = {plan, true};
  tir_walk(plan->kernel->body, split_by_op, &splitting);
  return splitting.ok && split_by_warp(plan);
}

static bool note_issuer(void *context, TirOp *op) {
  Plan *plan = context;
  if (!path_is_async(op_path(op)) || op_path(op) == PATH_TMA_STORE) return true;
  int leader = tir_active_threads(op->parent).lo, rank = op_path(op) == PATH_MMA || op_path(op) == PATH_WGMMA;
  for (int c = 0; c < plan->nclasses; c++)
    if (plan->classes[c].first == leader && plan->classes[c].rank > rank) plan->classes[c].rank = rank;
  return true;
}

// The parts of a warp wait for each other, so that none is ahead of the rest.
static void rank_warps(Plan *plan) {
  for (int c = 0; c < plan->nclasses; c++)
    for (int mate = 0; mate < plan->nclasses; mate++) {
      const ThreadClass *of = &plan->classes[mate];
      bool together = of->threads < WARP && of->first / WARP == plan->classes[c].first / WARP;
      if (together && plan->classes[c].threads < WARP && of->rank < plan->classes[c].rank)
        plan->classes[c].rank = of->rank;
    }
}

// --- how far to run ---

static bool find_rounds(void *context, TirOp *op) {
  int *stages = context;
  int found = op->kind == OP_alloc_barrier ? op->nlist : 0;
  if (op->kind == OP_for && op->attrs[FOR_stages] < 8) found = (int)op->attrs[FOR_stages];
  if (found > *stages) *stages = found < 8 ? found : 8;
  return true;
}

bool plan_make(Plan *plan) {
  plan->first_barrier = map_new(plan->arena);
  plan->buffers = map_new(plan->arena);
  plan->content = map_new(plan->arena);
  plan->effects = map_new(plan->arena);
  tir_walk(plan->kernel->body, number_buffers, plan);
  tir_walk(plan->kernel->body, number_barriers, plan);
  for (TirOp *op = plan->kernel->body->first; op; op = op->next) note_content(plan, op, true);
  int stages = 2;  // a parity tells two phases apart
  tir_walk(plan->kernel->body, find_rounds, &stages);
  plan->rounds = 2 * stages + 1;
  if (!make_classes(plan)) return false;
  for (int c = 0; c < plan->nclasses; c++) plan->classes[c].rank = LAST_RANK;
  tir_walk(plan->kernel->body, note_issuer, plan);
  rank_warps(plan);
  plan->ncomponents = 4 * plan->nclasses + plan->barriers.len;
  return true;
}

const char *plan_class_name(const Plan *plan, int class_index) {
  const ThreadClass *of = &plan->classes[class_index];
  if (of->threads == 1) return text_printf(plan->arena, "thread %d", of->first);
  bool range = of->last - of->first + 1 == of->threads;
  return text_printf(plan->arena, range ? "threads %d to %d" : "threads %d, …, %d", of->first, of->last);
}

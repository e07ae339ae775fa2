// Sizes are found from the loops: for a number of turns the largest size that gives them, which is a multiple of the
// tile. Each loop takes 0 to plan->rounds turns while the others take one; loops that depend on different sizes are
// also tried together. A launch with these sizes exists, so that what goes wrong in the run is a mistake.
#include "passes/sync_check/scenario.h"

#include "passes/sync_check/plan.h"
#include "passes/sync_check/value.h"

enum { MOST = 1 << 22, MAX_LOOPS = 6, MAX_SCENARIOS = 96, PLAIN_SIZE = 1024 };

typedef struct {
  Plan *plan;
  Scenario base;
  const TirOp *loops[MAX_LOOPS];
  int driver[MAX_LOOPS];  // the variable that decides the turns
  int nloops;
  Scenarios out;
} Making;

static Leaves leaves_of(const Scenario *scenario) {
  Leaves leaves = {.scenario = scenario, .thread = val_unknown()};
  for (int i = 0; i < 3; i++) leaves.block[i] = val_point(0);
  return leaves;
}

static int64_t turns_with(Scenario *scenario, int variable, int64_t size, const TirOp *loop) {
  scenario->variables[variable].is = size;
  Leaves leaves = leaves_of(scenario);
  int64_t turns;
  return val_turns(&leaves, loop, &turns) ? turns : -1;
}

// The largest size of the variable for which the loop takes `turns` turns. False: there is none.
static bool solve(Scenario *scenario, int variable, const TirOp *loop, int64_t turns) {
  int64_t lo = 0, hi = MOST;
  if (turns_with(scenario, variable, MOST, loop) <= turns) return false;
  while (lo + 1 < hi) {
    int64_t middle = (lo + hi) / 2;
    if (turns_with(scenario, variable, middle, loop) <= turns)
      lo = middle;
    else
      hi = middle;
  }
  return turns_with(scenario, variable, lo, loop) == turns;
}

static int64_t blocks_with(Scenario *scenario, int variable, int64_t size, const TirKernel *kernel) {
  scenario->variables[variable].is = size;
  Leaves leaves = leaves_of(scenario);
  int64_t product = 1;
  for (const TirOp *op = kernel->launch->first; op; op = op->next)
    for (int i = 0; op->kind == OP_grid && i < op->nargs; i++) {
      int64_t extent;
      if (!val_known(&leaves, op->args[i], &extent) || extent > INT32_MAX || extent < 0) return -1;
      product = product > INT32_MAX ? product : product * extent;
    }
  return product;
}

// A size that no loop asks about: as large as the grid stays as small as it can be.
static void settle(Making *making, int variable) {
  Scenario *base = &making->base;
  const TirKernel *kernel = making->plan->kernel;
  int64_t least = blocks_with(base, variable, 1, kernel), size = 1;
  if (blocks_with(base, variable, PLAIN_SIZE, kernel) == least) size = PLAIN_SIZE;
  while (size < PLAIN_SIZE && blocks_with(base, variable, size * 2, kernel) == least) size *= 2;
  for (int64_t add = size / 2; add > 0; add /= 2)
    if (size < PLAIN_SIZE && blocks_with(base, variable, size + add, kernel) == least) size += add;
  base->variables[variable].is = size;
}

static void find_variables(Making *making) {
  for (TirOp *op = making->plan->kernel->launch->first; op; op = op->next) {
    bool size = op->kind == OP_size;
    bool number = op->kind == OP_param && !dtype_is_float(op->results[0]->type.dtype);
    if ((size || number) && making->base.nvariables < MAX_VARIABLES)
      making->base.variables[making->base.nvariables++] = (Variable){op->results[0], 1};
  }
}

static bool same_bounds(const TirOp *a, const TirOp *b) {
  return a->args[0] == b->args[0] && a->args[1] == b->args[1] && a->args[2] == b->args[2];
}

// The loop's turns depend on one of the variables: remember which.
static void note_loop(Making *making, const TirOp *loop) {
  for (int i = 0; i < making->nloops; i++)
    if (same_bounds(making->loops[i], loop)) return;
  for (int v = 0; v < making->base.nvariables && making->nloops < MAX_LOOPS; v++) {
    Scenario probe = making->base;
    if (turns_with(&probe, v, 1, loop) == turns_with(&probe, v, MOST, loop)) continue;
    making->loops[making->nloops] = loop;
    making->driver[making->nloops++] = v;
    return;
  }
}

static bool find_loop(void *context, TirOp *op) {
  Making *making = context;
  if (op->kind == OP_for && (plan_content(making->plan, op) & (HAS_SYNC | HAS_ACCESS))) note_loop(making, op);
  return true;
}

static bool same_scenario(const Scenario *a, const Scenario *b) {
  if (a->last_block != b->last_block) return false;
  for (int i = 0; i < a->nvariables; i++)
    if (a->variables[i].is != b->variables[i].is) return false;
  return true;
}

static void add(Making *making, const Scenario *scenario) {
  if (making->out.len == MAX_SCENARIOS) return;
  for (int i = 0; i < making->out.len; i++)
    if (same_scenario(&making->out.data[i], scenario)) return;
  vec_push(making->plan->arena, &making->out, *scenario);
}

static void add_last_block(Making *making, const Scenario *scenario) {
  Scenario last = *scenario;
  last.last_block = true;
  add(making, &last);
}

static void add_turns(Making *making, int loop, int64_t turns) {
  Scenario scenario = making->base;
  if (!solve(&scenario, making->driver[loop], making->loops[loop], turns)) return;
  add(making, &scenario);
  if (turns == 2) add_last_block(making, &scenario);
}

static void add_pair(Making *making, int outer, int inner) {
  static const int some[] = {2, 3};
  int stages = making->plan->rounds / 2;
  int of_inner[] = {0, 2, 3, stages, stages + 1};
  if (making->driver[outer] == making->driver[inner]) return;
  for (int i = 0; i < 2; i++)
    for (int k = 0; k < 5; k++) {
      Scenario scenario = making->base;
      if (solve(&scenario, making->driver[outer], making->loops[outer], some[i]) &&
          solve(&scenario, making->driver[inner], making->loops[inner], of_inner[k]))
        add(making, &scenario);
    }
}

Scenarios scenario_list(Plan *plan) {
  Making making = {.plan = plan};
  find_variables(&making);
  tir_walk(plan->kernel->body, find_loop, &making);
  for (int v = 0; v < making.base.nvariables; v++) settle(&making, v);
  for (int i = 0; i < making.nloops; i++) {
    Scenario scenario = making.base;
    if (solve(&scenario, making.driver[i], making.loops[i], 1)) making.base = scenario;
  }
  add(&making, &making.base);
  add_last_block(&making, &making.base);
  for (int turns = 0; turns <= plan->rounds; turns++)
    for (int i = 0; i < making.nloops; i++) add_turns(&making, i, turns);
  for (int i = 0; i < making.nloops; i++)
    for (int k = i + 1; k < making.nloops; k++) add_pair(&making, i, k);
  return making.out;
}

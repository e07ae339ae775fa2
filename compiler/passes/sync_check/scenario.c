// Sizes are found from the loops: for a number of turns the largest size that gives them, which is a multiple of the
// tile. Each loop takes 0 to plan->rounds turns while the others take one; loops that depend on different sizes are
// also tried together. Where a loop goes on as long as a cell says, the quotients of sizes (tiles of a dimension) stand
// for its turns. A launch with these sizes exists, so that what goes wrong in the run is a mistake.
#include "passes/sync_check/scenario.h"

#include "passes/sync_check/plan.h"
#include "passes/sync_check/value.h"
#include "tir/ranges.h"

enum { MOST = 1 << 22, MAX_LOOPS = 6, MAX_SCENARIOS = 96, PLAIN_SIZE = 1024 };

typedef struct {
  Plan *plan;
  Scenario base;
  const TirOp *loops[MAX_LOOPS];  // or quotients
  int driver[MAX_LOOPS];          // the variable that decides the turns
  int nloops;
  bool open;  // some loop's turns are not counted
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
  bool known =
      loop->kind == OP_for ? val_turns(&leaves, loop, &turns) : val_known(&leaves, loop->results[0], &turns);
  return known ? turns : -1;
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
  // A variant may be for launches without empty tensors only.
  if (lo < tir_known_range(scenario->variables[variable].value).lo) return false;
  return turns_with(scenario, variable, lo, loop) == turns;
}

static bool is_quotient(const TirOp *op) {
  return op->kind == OP_ceildiv || op->kind == OP_floordiv || op->kind == OP_truncdiv;
}

// Whether the grid and all quotients of the launch are the same for two sizes of a variable.
static bool same_launch(Scenario *scenario, int variable, int64_t a, int64_t b, const TirKernel *kernel) {
  Leaves leaves = leaves_of(scenario);
  for (const TirOp *op = kernel->launch->first; op; op = op->next) {
    if (!is_quotient(op) && op->kind != OP_grid) continue;
    for (int i = 0; i < (op->kind == OP_grid ? op->nargs : 1); i++) {
      const TirValue *value = op->kind == OP_grid ? op->args[i] : op->results[0];
      scenario->variables[variable].is = a;
      Val with_a = val_of(&leaves, value);
      scenario->variables[variable].is = b;
      Val with_b = val_of(&leaves, value);
      if (with_a.lo != with_b.lo || with_a.hi != with_b.hi) return false;
    }
  }
  return true;
}

// A size that no loop asks about: as large as the launch stays as it is with 1.
static void settle(Making *making, int variable) {
  const TirKernel *kernel = making->plan->kernel;
  Scenario probe = making->base;
  int64_t size = 1;
  for (int64_t add = PLAIN_SIZE; add > 0; add /= 2)
    if (size + add <= PLAIN_SIZE && same_launch(&probe, variable, 1, size + add, kernel)) size += add;
  making->base.variables[variable].is = size;
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
  if (a->kind != OP_for || b->kind != OP_for) return a == b;
  return a->args[0] == b->args[0] && a->args[1] == b->args[1] && a->args[2] == b->args[2];
}

static bool has_driver(const Making *making, int variable) {
  for (int i = 0; i < making->nloops; i++)
    if (making->driver[i] == variable) return true;
  return false;
}

// The loop's turns depend on one of the variables: remember which.
static void note_loop(Making *making, const TirOp *loop) {
  for (int i = 0; i < making->nloops; i++)
    if (same_bounds(making->loops[i], loop)) return;
  for (int v = 0; v < making->base.nvariables && making->nloops < MAX_LOOPS; v++) {
    Scenario probe = making->base;
    if (turns_with(&probe, v, 1, loop) == turns_with(&probe, v, MOST, loop)) continue;
    if (loop->kind != OP_for && has_driver(making, v)) continue;
    making->loops[making->nloops] = loop;
    making->driver[making->nloops++] = v;
    return;
  }
}

static bool find_loop(void *context, TirOp *op) {
  Making *making = context;
  if (op->kind == OP_while || (op->kind == OP_for && op->nargs > FOR_GO && op->args[FOR_GO]))
    making->open = true;
  if (op->kind == OP_for && (plan_content(making->plan, op) & (HAS_SYNC | HAS_ACCESS))) note_loop(making, op);
  return true;
}

static void find_quotients(Making *making) {
  for (const TirOp *op = making->plan->kernel->launch->first; op && making->open; op = op->next)
    if (is_quotient(op)) note_loop(making, op);
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

// Tiles of one dimension are as good as of another; two accumulators in turn show what they do in five.
static bool is_spare(const Making *making, int loop, int64_t turns) {
  if (making->loops[loop]->kind == OP_for) return false;
  bool second = loop > 0 && making->loops[loop - 1]->kind != OP_for;
  return turns == 4 || turns > 5 || (second && turns != 2);
}

static void add_turns(Making *making, int loop, int64_t turns) {
  Scenario scenario = making->base;
  if (is_spare(making, loop, turns)) return;
  if (!solve(&scenario, making->driver[loop], making->loops[loop], turns)) return;
  add(making, &scenario);
  if (turns == 2) add_last_block(making, &scenario);
}

static void add_pair(Making *making, int outer, int inner) {
  int stages = making->plan->rounds / 2;
  int of_inner[] = {0, 2, 3, stages + 1}, of_outer[] = {2, 3, 2, 2};
  bool quotients = making->loops[outer]->kind != OP_for && making->loops[inner]->kind != OP_for;
  if (making->driver[outer] == making->driver[inner] || quotients) return;
  for (int k = 0; k < 4; k++) {
    Scenario scenario = making->base;
    if (solve(&scenario, making->driver[outer], making->loops[outer], of_outer[k]) &&
        solve(&scenario, making->driver[inner], making->loops[inner], of_inner[k]))
      add(making, &scenario);
  }
}

// Two blocks that share three tiles, where a variable is the number of blocks.
static void add_two_blocks(Making *making, int variable) {
  Scenario scenario = making->base;
  if (has_driver(making, variable) || same_launch(&scenario, variable, 1, 2, making->plan->kernel)) return;
  for (int i = 0; i < making->nloops; i++) {
    scenario = making->base;
    if (making->loops[i]->kind == OP_for) continue;
    if (!solve(&scenario, making->driver[i], making->loops[i], 3)) continue;
    scenario.variables[variable].is = 2;
    add(making, &scenario);
    add_last_block(making, &scenario);
    return;
  }
}

// The last of several blocks: conditions on the block's number often pick the first.
static void add_other_block(Making *making, int variable) {
  Scenario scenario = making->base;
  int64_t size = scenario.variables[variable].is;
  if (size <= 0 || size > MOST || same_launch(&scenario, variable, size, 2 * size, making->plan->kernel))
    return;
  scenario.variables[variable].is = 2 * size;
  add_last_block(making, &scenario);
}

Scenarios scenario_list(Plan *plan) {
  Making making = {.plan = plan};
  find_variables(&making);
  tir_walk(plan->kernel->body, find_loop, &making);
  find_quotients(&making);
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
    for (int k = i + 1; k < making.nloops; k++) {
      bool inside = making.loops[i]->kind == OP_for && making.loops[k]->kind != OP_for;
      add_pair(&making, inside ? k : i, inside ? i : k);
    }
  for (int v = 0; v < making.base.nvariables; v++) add_other_block(&making, v);
  for (int v = 0; v < making.base.nvariables && making.open; v++) add_two_blocks(&making, v);
  return making.out;
}

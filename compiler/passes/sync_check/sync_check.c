// Needs    TIR_SMEM_PLACED: tile IR as code generation will read it; barriers, waits and fences are literal.
// Does     Follows the kernel's threads through bounded runs and proves that every access finds its predecessors done.
// Leaves   The kernel as it is.
// Reports  E0410 to E0425: a protocol that some schedule of a run that can be launched breaks. What rests on data
//          that the compiler does not know, and what was not followed to the end, is a remark.
#include "passes/sync_check/plan.h"
#include "passes/sync_check/run.h"
#include "passes/sync_check/scenario.h"

enum { STEPS = 1000000, RUNS_OF_GUESSES = 16 };

// The next combination of guesses. False: all have been tried.
static bool next_guesses(Decisions *decisions) {
  while (decisions->len > 0) {
    Decision *last = &decisions->data[decisions->len - 1];
    if (++last->option < last->options) return true;
    decisions->len--;
  }
  return false;
}

static RunResult run_scenario(Plan *plan, const Scenario *scenario) {
  Decisions decisions = {0};
  RunResult result = RUN_FINE;
  for (int i = 0; i < RUNS_OF_GUESSES && result != RUN_FOUND && plan->steps_left > 0; i++) {
    ArenaMark mark = arena_mark(plan->arena);
    result = run_once(plan, scenario, plan->arena, &decisions);
    arena_reset(plan->arena, mark);
    if (result == RUN_INFEASIBLE || !next_guesses(&decisions)) break;
  }
  return result;
}

static bool check_runs(Plan *plan) {
  Scenarios scenarios = scenario_list(plan);
  for (int i = 0; i < scenarios.len && plan->steps_left > 0; i++)
    if (run_scenario(plan, &scenarios.data[i]) == RUN_FOUND) return false;
  return true;
}

// Without barriers, asynchronous work or shared buffers there is nothing to prove.
static bool has_protocol(const Plan *plan) {
  return plan->roots.len > 0 || plan->barriers.len > 0;
}

bool pass_sync_check(PassCx *cx, TirKernel *kernel) {
  Plan plan = {.cx = cx, .kernel = kernel, .arena = cx->scratch, .steps_left = STEPS};
  if (!plan_make(&plan)) {
    diag_remark(cx->ds, kernel->span,
                "the order of accesses was not proved: the threads part in too many ways");
    return true;
  }
  return !has_protocol(&plan) || check_runs(&plan);
}

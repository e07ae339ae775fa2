// The threads of a class run one after another through bodies, loops and branches, as a stack of frames. Order
// between classes is only what synchronisation makes it: the clocks find what another schedule could do, so that
// one schedule is enough.
#include "passes/sync_check/run.h"

#include "passes/hazards.h"
#include "passes/sync_check/explain.h"
#include "passes/sync_check/memory.h"
#include "passes/sync_check/plan.h"
#include "tir/roles.h"

enum { TURNS_WITHOUT_SYNC = 48, OPTIONS_OF_LOOP = 4 };

Leaves run_leaves(const Run *run, const Agent *agent) {
  const ThreadClass *class = &run->plan->classes[agent->class_index];
  Leaves leaves = {.scenario = run->scenario, .env = agent->env, .thread = {class->first, class->last}};
  for (int i = 0; i < 3; i++) leaves.block[i] = run->block[i];
  return leaves;
}

void run_unproved(Run *run, const TirOp *op, const char *format, ...) {
  if (run->result != RUN_FINE) return;
  run->result = RUN_UNPROVED;
  va_list args;
  va_start(args, format);
  const char *why = text_vprintf(run->arena, format, args);
  va_end(args);
  diag_remark(run->plan->cx->ds, op->span, "the order of what follows was not proved: %s", why);
}

uint64_t run_team(const Run *run, const Agent *agent, const TirOp *op) {
  const TirOp *parent = tir_parent(op);
  if (parent && parent->kind == OP_one_thread) return UINT64_C(1) << agent->class_index;
  TirThreads active = tir_active_threads(op->parent);
  uint64_t team = 0;
  for (int c = 0; c < run->plan->nclasses; c++)
    if (run->plan->classes[c].first >= active.lo && run->plan->classes[c].first < active.hi)
      team |= UINT64_C(1) << c;
  return team;
}

// --- frames ---

static Frame *top(Agent *agent) {
  return &agent->frames.data[agent->frames.len - 1];
}

static void push(Run *run, Agent *agent, Frame frame) {
  agent->uncertain += frame.uncertain;
  vec_push(run->arena, &agent->frames, frame);
}

static void pop(Agent *agent) {
  agent->uncertain -= top(agent)->uncertain;
  agent->frames.len--;
}

static void enter(Run *run, Agent *agent, const TirOp *owner, int body, bool uncertain) {
  Frame frame = {.owner = owner, .next = owner->bodies[body]->first, .turns = 1, .uncertain = uncertain};
  if (frame.next) push(run, agent, frame);
}

static bool forget_set(void *context, TirOp *op) {
  Agent *agent = context;
  if (op->kind == OP_set) agent->env[op->args[0]->id] = val_unknown();
  return true;
}

// What the loop sets is not known any more, since not all of its turns were followed.
static void forget_cells(Agent *agent, const TirOp *loop) {
  tir_walk(loop->bodies[0], forget_set, agent);
}

// --- guesses ---

static int instance_of(Run *run, Agent *agent, const TirOp *op) {
  for (int i = 0; i < agent->chosen.len; i++)
    if (agent->chosen.data[i].op == op) return agent->chosen.data[i].count++;
  Chosen chosen = {op, 1};
  vec_push(run->arena, &agent->chosen, chosen);
  return 0;
}

// All classes that come to the same op the same number of times decide alike.
static int decide(Run *run, Agent *agent, const TirOp *op, int options) {
  Decisions *decisions = run->decisions;
  int instance = instance_of(run, agent, op);
  run->guessed = true;
  for (int i = 0; i < decisions->len; i++)
    if (decisions->data[i].op == op && decisions->data[i].instance == instance)
      return decisions->data[i].option;
  if (decisions->len == MAX_DECISIONS)
    run_unproved(run, op, "too much depends on data");
  else
    decisions->data[decisions->len++] = (Decision){op, instance, 0, options};
  return 0;
}

// --- control ---

// A condition as all threads of the class decide it, one by one where their range says too little.
static Val decided(const Run *run, const Agent *agent, const TirValue *condition) {
  const ThreadClass *class = &run->plan->classes[agent->class_index];
  Leaves leaves = run_leaves(run, agent);
  Val all = val_of(&leaves, condition);
  if (val_is_point(all) || class->threads == 1) return all;
  leaves.thread = val_point(class->first);
  Val first = val_of(&leaves, condition);
  for (int t = class->first; t <= class->last && val_is_point(first); t++) {
    leaves.thread = val_point(t);
    Val other = val_of(&leaves, condition);
    if (class->member[t] && (!val_is_point(other) || other.lo != first.lo)) return all;
  }
  return val_is_point(first) ? first : all;
}

static void step_if(Run *run, Agent *agent, const TirOp *op, unsigned content) {
  Val condition = decided(run, agent, op->args[0]);
  if (val_is_point(condition)) {
    enter(run, agent, op, condition.lo ? 0 : 1, false);
  } else if (content & HAS_SYNC && !tir_thread_dependent(op->args[0])) {
    enter(run, agent, op, decide(run, agent, op, 2), false);
  } else if (content & HAS_SYNC) {
    run_unproved(run, op, "the threads part here in a way that depends on more than their numbers");
  } else {
    enter(run, agent, op, 1, true);
    enter(run, agent, op, 0, true);
  }
}

static const TirValue *go_of(const TirOp *loop) {
  if (loop->kind == OP_while) return loop->args[0];
  return loop->nargs > FOR_GO ? loop->args[FOR_GO] : NULL;
}

// Whether the loop's cell lets it take another turn.
static bool goes_on(Run *run, Agent *agent, const TirOp *loop, unsigned content) {
  const TirValue *go = go_of(loop);
  Val value = go ? agent->env[go->id] : val_point(1);
  if (val_is_point(value)) return value.lo != 0;
  if (!(content & HAS_SYNC)) return false;
  if (!tir_thread_dependent(go)) return decide(run, agent, loop, 2);
  run_unproved(run, loop, "the threads leave this loop at different times");
  return false;
}

// A turn whose number, or whether it runs at all, is not known.
static void enter_uncertain(Run *run, Agent *agent, const TirOp *op, Val variable) {
  Frame frame = {.owner = op,
                 .next = op->bodies[0]->first,
                 .variable = variable,
                 .turns = 1,
                 .uncertain = true,
                 .cut = true};
  if (op->nresults) agent->env[op->results[0]->id] = variable;
  if (frame.next) push(run, agent, frame);
}

// A loop without synchronisation need not be followed to its end.
static void push_loop(Run *run, Agent *agent, Frame frame, unsigned content) {
  const TirOp *op = frame.owner;
  const TirValue *go = go_of(op);
  if (!frame.turns || !frame.next) return;
  if (!(content & HAS_SYNC) && frame.turns > TURNS_WITHOUT_SYNC) {
    frame.turns = TURNS_WITHOUT_SYNC;
    frame.cut = true;
  }
  if (go && !val_is_point(agent->env[go->id]) && !(content & HAS_SYNC)) {
    enter_uncertain(run, agent, op, val_unknown());
    return;
  }
  if (!goes_on(run, agent, op, content)) return;
  if (op->nresults) agent->env[op->results[0]->id] = frame.variable;
  push(run, agent, frame);
}

static void step_for(Run *run, Agent *agent, const TirOp *op, unsigned content) {
  Leaves leaves = run_leaves(run, agent);
  Val lo = val_of(&leaves, op->args[FOR_LO]), hi = val_of(&leaves, op->args[FOR_HI]);
  Frame frame = {.owner = op, .next = op->bodies[0]->first, .variable = lo};
  if (val_turns(&leaves, op, &frame.turns)) {
    push_loop(run, agent, frame, content);
    return;
  }
  frame.variable = (Val){lo.lo, hi.hi == INT64_MAX ? hi.hi : hi.hi - 1};
  if (!(content & HAS_SYNC)) {
    enter_uncertain(run, agent, op, frame.variable);
  } else if (tir_thread_dependent(op->args[FOR_LO]) || tir_thread_dependent(op->args[FOR_HI])) {
    run_unproved(run, op, "the threads run this loop different numbers of times");
  } else {
    frame.turns = decide(run, agent, op, OPTIONS_OF_LOOP);
    push_loop(run, agent, frame, content);
  }
}

static void step_while(Run *run, Agent *agent, const TirOp *op, unsigned content) {
  Frame frame = {.owner = op, .next = op->bodies[0]->first, .turns = INT64_MAX};
  push_loop(run, agent, frame, content);
}

static bool is_loop(const TirOp *op) {
  return op && (op->kind == OP_for || op->kind == OP_while);
}

// Where part of a warp goes its own way, the others wait for it.
static bool rejoins(const Run *run, const TirOp *op) {
  if (!op || (op->kind != OP_one_thread && op->kind != OP_role)) return false;
  if (op->kind == OP_role && op->attrs[ROLE_lo] % WARP == 0 && op->attrs[ROLE_hi] % WARP == 0) return false;
  return plan_content(run->plan, op) & CONVERGED;
}

static void end_of_body(Run *run, Agent *agent) {
  Frame *frame = top(agent);
  const TirOp *op = frame->owner;
  frame->turn++;
  const TirValue *go = is_loop(op) ? go_of(op) : NULL;
  if (go && !val_is_point(agent->env[go->id])) frame->cut = true;
  if (!is_loop(op) || frame->turn >= frame->turns || !goes_on(run, agent, op, plan_content(run->plan, op))) {
    if (is_loop(op) && frame->cut) forget_cells(agent, op);
    pop(agent);
    if (rejoins(run, op)) sync_warp(run, agent, op);
    return;
  }
  frame->next = op->bodies[0]->first;
  if (op->kind == OP_while) return;
  Leaves leaves = run_leaves(run, agent);
  Val step = val_of(&leaves, op->args[FOR_STEP]);
  if (val_is_point(frame->variable) && val_is_point(step))
    frame->variable = val_point(frame->variable.lo + step.lo);
  agent->env[op->results[0]->id] = frame->variable;
}

static void enter_part(Run *run, Agent *agent, const TirOp *op, bool enters) {
  if (enters && op->bodies[0]->first)
    enter(run, agent, op, 0, false);
  else if (rejoins(run, op))
    sync_warp(run, agent, op);
}

static void step_control(Run *run, Agent *agent, const TirOp *op) {
  unsigned content = plan_content(run->plan, op);
  const ThreadClass *class = &run->plan->classes[agent->class_index];
  TirThreads active = tir_active_threads(op->parent);
  if (!content) return;
  if (op->kind == OP_if)
    step_if(run, agent, op, content);
  else if (op->kind == OP_for)
    step_for(run, agent, op, content);
  else if (op->kind == OP_while)
    step_while(run, agent, op, content);
  else if (op->kind == OP_one_thread)
    enter_part(run, agent, op, class->first == active.lo);
  else if (op->kind == OP_role)
    enter_part(run, agent, op, class->first >= op->attrs[ROLE_lo] && class->first < op->attrs[ROLE_hi]);
  else if (op->kind == OP_parallel)
    memory_touch(run, agent, op, BY_THREADS, 0, 0);
}

static void step_cell(Run *run, Agent *agent, const TirOp *op) {
  Leaves leaves = run_leaves(run, agent);
  if (op->kind == OP_cell)
    agent->env[op->results[0]->id] = op->args[0] ? val_of(&leaves, op->args[0]) : val_unknown();
  else if (op->kind == OP_get)
    agent->env[op->results[0]->id] = agent->env[op->args[0]->id];
  else if (agent->uncertain)
    agent->env[op->args[0]->id] = val_unknown();
  else
    agent->env[op->args[0]->id] = val_of(&leaves, op->args[1]);
}

// False: the agent waits in this op.
static bool step_op(Run *run, Agent *agent, const TirOp *op) {
  OpGroup group = op_def(op->kind)->group;
  if (group == GROUP_CONTROL) {
    step_control(run, agent, op);
  } else if (op->kind == OP_cell || op->kind == OP_get || op->kind == OP_set) {
    step_cell(run, agent, op);
  } else if (group == GROUP_SYNC || path_is_async(op_path(op))) {
    if (!agent->uncertain) return sync_step(run, agent, op);
    run_unproved(run, op, "not all of these threads may come here");
  } else if (plan_content(run->plan, op) & HAS_ACCESS) {
    memory_touch(run, agent, op, BY_THREADS, 0, 0);
  }
  return true;
}

// --- the schedule ---

// Ops that only compute are free: they are looked at where they are needed.
static void skip_values(Frame *frame) {
  while (frame->next && op_def(frame->next->kind)->pure) frame->next = frame->next->next;
}

// Moves one class as far as it goes. False: it did not move at all.
static bool move(Run *run, Agent *agent) {
  if (agent->state == AGENT_DONE || agent->state == AGENT_LINGERS) return false;
  if (agent->state != AGENT_RUNS && !sync_can_go_on(run, agent)) return false;
  while (agent->state == AGENT_RUNS && run->result == RUN_FINE) {
    if (agent->frames.len) skip_values(top(agent));
    if (--run->plan->steps_left < 0) {
      run_unproved(run, run->plan->kernel->body->first, "the kernel takes too many steps to follow them all");
    } else if (agent->frames.len == 0) {
      agent->state = AGENT_DONE;
    } else if (!top(agent)->next) {
      end_of_body(run, agent);
    } else {
      const TirOp *op = top(agent)->next;
      top(agent)->next = op->next;
      step_op(run, agent, op);
      if (op->kind == OP_sync_threads) return true;  // who comes last does not run ahead
    }
  }
  return true;
}

static bool move_one(Run *run, int rank) {
  for (int c = 0; c < run->plan->nclasses; c++)
    if (run->plan->classes[c].rank == rank && move(run, &run->agents[c])) return true;
  return false;
}

static bool all_done(const Run *run) {
  for (int c = 0; c < run->plan->nclasses; c++)
    if (run->agents[c].state != AGENT_DONE) return false;
  return true;
}

// A wait that taught nothing is over, but who passed it lingers until nobody else can move.
static bool end_lingering(Run *run) {
  for (int c = 0; c < run->plan->nclasses; c++) {
    if (run->agents[c].state != AGENT_LINGERS) continue;
    run->agents[c].state = AGENT_RUNS;
    return true;
  }
  return false;
}

// Those who issue copies go first, then products; those who pass a wait at once go last: what comes too early is then
// found where it is, not where the work is issued.
static void run_to_end(Run *run) {
  while (run->result == RUN_FINE &&
         (move_one(run, 0) || move_one(run, 1) || move_one(run, LAST_RANK) || end_lingering(run))) {
  }
  if (run->result != RUN_FINE) return;
  if (all_done(run))
    sync_at_exit(run);
  else
    explain_stuck(run);
}

// --- the start ---

static Clock new_clock(const Run *run) {
  int n = run->plan->ncomponents;
  int *numbers = ARENA_ARRAY(run->arena, int, 3 * (size_t)n);
  return (Clock){numbers, numbers + n, numbers + 2 * (size_t)n};
}

static void start_agent(Run *run, int class_index) {
  const Plan *plan = run->plan;
  Agent *agent = &run->agents[class_index];
  *agent = (Agent){.class_index = class_index, .clock = new_clock(run)};
  int *numbers = ARENA_ARRAY(run->arena, int, 3 * (size_t)plan->ncomponents);
  agent->acquired = numbers;
  agent->incoming = numbers + plan->ncomponents;
  agent->piped = numbers + 2 * (size_t)plan->ncomponents;
  agent->waited = ARENA_ARRAY(run->arena, Waited, plan->barriers.len + 1);
  agent->env = ARENA_ARRAY(run->arena, Val, plan->kernel->next_id + 1);
  for (int i = 0; i <= plan->kernel->next_id; i++) agent->env[i] = val_unknown();
  Frame frame = {.next = plan->kernel->body->first, .turns = 1};
  push(run, agent, frame);
}

// Whether a launch with these sizes exists; then which block of the grid is followed.
static bool choose_block(Run *run) {
  Leaves leaves = {.scenario = run->scenario, .thread = val_unknown()};
  for (int i = 0; i < 3; i++) run->block[i] = val_point(0), leaves.block[i] = val_unknown();
  for (const TirOp *op = run->plan->kernel->launch->first; op; op = op->next) {
    Val condition = op->kind == OP_check ? val_of(&leaves, op->args[0]) : val_point(1);
    if (condition.hi == 0) return false;
    for (int i = 0; op->kind == OP_grid && i < op->nargs; i++) {
      Val extent = val_of(&leaves, op->args[i]);
      if (extent.hi <= 0) return false;
      if (run->scenario->last_block)
        run->block[i] = val_is_point(extent) ? val_point(extent.lo - 1) : val_unknown();
    }
  }
  return true;
}

RunResult run_once(Plan *plan, const Scenario *scenario, Arena *arena, Decisions *decisions) {
  Run run = {.plan = plan, .scenario = scenario, .arena = arena, .decisions = decisions, .result = RUN_FINE};
  if (!choose_block(&run)) return RUN_INFEASIBLE;
  run.agents = ARENA_ARRAY(arena, Agent, plan->nclasses);
  run.barriers = ARENA_ARRAY(arena, Barrier, plan->barriers.len + 1);
  run.histories = ARENA_ARRAY(arena, History, plan->roots.len + 1);
  for (int i = 0; i < MEETING_POINTS; i++) run.meets[i].clock = new_clock(&run);
  for (int i = 0; i < plan->barriers.len; i++) {
    run.barriers[i].collecting = new_clock(&run);
    for (int k = 0; k < KEPT_PHASES; k++) run.barriers[i].done[k] = new_clock(&run);
  }
  for (int c = 0; c < plan->nclasses; c++) start_agent(&run, c);
  run_to_end(&run);
  return run.result;
}

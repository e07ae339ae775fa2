// What barriers, fences and engines do to the clocks.
//
// A wait for a parity says less than it seems: it returns when the phase before the current one has that parity. So
// it is modelled by what the waiter can rely on: the smallest number of completed phases that it does not know to be
// passed and that fits the parity. Everything else follows: a wait with the wrong parity teaches nothing, and what it
// should have protected is found unprotected. A phase may complete only after all who wait for the one before have
// seen it (else the parity comes round and they wait for ever), and an arrival must know in which phase it falls;
// a kernel that keeps both rules does the same under every schedule.
#include "passes/hazards.h"
#include "passes/sync_check/explain.h"
#include "passes/sync_check/memory.h"
#include "passes/sync_check/plan.h"
#include "passes/sync_check/run.h"
#include "tir/roles.h"

typedef bool (*Step)(Run *run, Agent *agent, const TirOp *op);

static void join(int *into, const int *from, int count) {
  for (int i = 0; i < count; i++)
    if (from[i] > into[i]) into[i] = from[i];
}

static void join_clock(const Run *run, Clock *into, const Clock *from) {
  int count = run->plan->ncomponents;
  join(into->knows, from->knows, count);
  join(into->async, from->async, count);
  join(into->tmem, from->tmem, count);
}

static void receive(const Run *run, Agent *agent, const Clock *from) {
  int count = run->plan->ncomponents;
  join(agent->clock.knows, from->knows, count);
  join(agent->clock.async, from->async, count);
  join(agent->incoming, from->tmem, count);
}

static void clear_clock(const Run *run, Clock *clock) {
  int count = run->plan->ncomponents;
  for (int i = 0; i < count; i++) clock->knows[i] = clock->async[i] = clock->tmem[i] = 0;
}

static int threads_of(const Run *run, const Agent *agent) {
  return run->plan->classes[agent->class_index].threads;
}

static void tick(Agent *agent) {
  agent->clock.knows[agent->class_index] = ++agent->now;
}

// Whether this class holds the first thread of those that run the op: the one that acts for its warp.
static bool acts_first(const Run *run, const Agent *agent, const TirOp *op) {
  return run->plan->classes[agent->class_index].first == tir_active_threads(op->parent).lo;
}

// --- which barrier ---

// -1: not known, and the run has ended.
static int barrier_of(Run *run, const Agent *agent, const TirOp *op, const TirValue *barrier) {
  Leaves leaves = run_leaves(run, agent);
  const TirValue *root = tir_root((TirValue *)barrier);
  int64_t index = 0;
  for (const TirValue *at = barrier; at->op->kind == OP_view; at = at->op->args[0]) {
    int64_t offset;
    if (!val_known(&leaves, at->op->args[1], &offset)) {
      run_unproved(run, op, "which barrier of %s this is depends on data", explain_buffer(root));
      return -1;
    }
    index += offset;
  }
  int first = (int)(intptr_t)map_get(run->plan->first_barrier, root) - 1;
  if (first >= 0 && index >= 0 && index < root->type.shape[0]) return first + (int)index;
  run_unproved(run, op, "%s has no barrier %lld", explain_buffer(root), (long long)index);
  return -1;
}

static bool check_initialised(Run *run, const Agent *agent, const TirOp *op, int number, bool by_engine) {
  const Barrier *barrier = &run->barriers[number];
  const char *name = explain_barrier(run, number);
  bool seen = barrier->live && agent->clock.knows[barrier->init_class] >= barrier->init_at;
  if (seen && (barrier->fenced || !by_engine)) return true;
  bool found = explain(run, DIAG_barrier_init, op,
                       seen ? "%s is used by an engine that may not see it initialised"
                            : "%s is used by threads that may not see it initialised",
                       name);
  if (!found) return false;
  if (barrier->init) diag_note(run->plan->cx->ds, barrier->init->span, "initialised here");
  diag_hint(run->plan->cx->ds,
            !barrier->init ? "initialise it before the roles part"
            : seen         ? "a fence of the initialisation, by the thread that made it, before threads meet"
                           : "sync_threads() between the initialisation and the first use");
  explain_run(run);
  return false;
}

// --- phases ---

static void check_announced(Run *run, int number) {
  Barrier *barrier = &run->barriers[number];
  for (int i = 0; i < barrier->announced.len; i++) {
    const Announced *announced = &barrier->announced.data[i];
    if (barrier->collecting.knows[announced->class_index] >= announced->at) continue;
    if (!explain(run, DIAG_bytes_announced, announced->op,
                 "the phase of %s may complete before these bytes are announced: no arrival of the phase "
                 "comes after "
                 "this",
                 explain_barrier(run, number)))
      return;
    diag_note(run->plan->cx->ds, barrier->arrived->span, "this arrival may be the last one of the phase");
    diag_hint(run->plan->cx->ds, "arrive after announcing, in the same thread: mbarrier_arrive_expect_tx");
    explain_run(run);
    return;
  }
}

// A class that waits for phase target - 1 may do so when the next one is complete as well.
static void explain_lapped(Run *run, const TirOp *wait, int class_index, int number, int target) {
  const char *who = plan_class_name(run->plan, class_index), *name = explain_barrier(run, number);
  bool found =
      target ? explain(run, DIAG_phase_lapped, wait,
                       "%s may still wait here for phase %d of %s when phase %d completes as well, and then "
                       "wait for "
                       "ever",
                       who, target - 1, name, target)
             : explain(run, DIAG_wait_early, wait,
                       "this wait of %s on %s returns at once before phase 0 is complete, and never after it",
                       who, name);
  if (!found) return;
  diag_note(run->plan->cx->ds, run->barriers[number].arrived->span,
            "phase %d completes with this, whoever waits", target);
  diag_hint(run->plan->cx->ds,
            target ? "let all who wait arrive, or meet, before the barrier can complete another phase"
                   : "phase 0 is waited for with parity 0, phase 1 with parity 1, and so on");
  explain_run(run);
}

// Threads that wait for the phase before must have seen it when this one completes.
static void check_lapped(Run *run, int number) {
  const Barrier *barrier = &run->barriers[number];
  for (int c = 0; c < run->plan->nclasses; c++) {
    const Waited *waited = &run->agents[c].waited[number];
    if (!waited->op || waited->target != barrier->phase || barrier->collecting.knows[c] >= waited->at)
      continue;
    explain_lapped(run, waited->op, c, number, waited->target);
    return;
  }
}

static void complete_if_done(Run *run, int number) {
  Barrier *barrier = &run->barriers[number];
  if (barrier->pending > 0 || run->result != RUN_FINE) return;
  if (barrier->bytes < 0) {
    const TirOp *op = barrier->loaded ? barrier->loaded : barrier->arrived;
    if (!explain(run, DIAG_bytes_announced, op, "%lld bytes more are copied than phase %d of %s announces",
                 (long long)-barrier->bytes, barrier->phase, explain_barrier(run, number)))
      return;
    if (barrier->announced.len)
      diag_note(run->plan->cx->ds, barrier->announced.data[0].op->span, "announced here");
    diag_hint(run->plan->cx->ds, "announce exactly the bytes of the tiles that the phase copies");
    explain_run(run);
  }
  if (barrier->bytes != 0) return;
  check_announced(run, number);
  check_lapped(run, number);
  Clock *before = &barrier->done[barrier->phase % KEPT_PHASES];
  Clock *after = &barrier->done[(barrier->phase + 1) % KEPT_PHASES];
  clear_clock(run, after);
  join_clock(run, after, before);
  join_clock(run, after, &barrier->collecting);
  clear_clock(run, &barrier->collecting);
  barrier->phase++;
  after->knows[plan_phases(run->plan, number)] = barrier->phase;
  barrier->pending = run->plan->barriers.data[number].count;
  barrier->arrivals = 0;
  barrier->announced.len = 0;
}

// Whether whoever arrives knows which phase it arrives in.
static bool check_phase_known(Run *run, const TirOp *op, int number, int known) {
  Barrier *barrier = &run->barriers[number];
  if (known >= barrier->phase) return true;
  if (!explain(run, DIAG_arrivals_surplus, op,
               "this may arrive on %s before phase %d is complete, and then count in it: nothing makes it "
               "wait for "
               "that phase",
               explain_barrier(run, number), barrier->phase - 1))
    return false;
  if (barrier->arrived && barrier->arrived != op)
    diag_note(run->plan->cx->ds, barrier->arrived->span, "that phase completes with this arrival");
  diag_hint(run->plan->cx->ds,
            "wait for the phase before (or be waited for by those who complete it) before arriving "
            "again");
  explain_run(run);
  return false;
}

// The phase that was to hold the bytes may be complete without them.
static bool check_in_announced_phase(Run *run, const TirOp *op, int number, int known, const char *what) {
  const Barrier *barrier = &run->barriers[number];
  if (known >= barrier->phase) return true;
  if (!explain(run, DIAG_bytes_announced, op, "phase %d of %s may complete before %s", barrier->phase - 1,
               explain_barrier(run, number), what))
    return false;
  diag_note(run->plan->cx->ds, barrier->arrived->span, "it completes with this arrival");
  diag_hint(run->plan->cx->ds,
            "announce a phase's bytes before it is arrived on, and only when the stage is free again");
  explain_run(run);
  return false;
}

static void arrive(Run *run, const TirOp *op, int number, int64_t arrivals) {
  Barrier *barrier = &run->barriers[number];
  int64_t count = run->plan->barriers.data[number].count;
  if (arrivals > barrier->pending) {
    if (!explain(run, DIAG_arrivals_surplus, op,
                 "%lld arrivals come to a phase of %s that lacks %lld of its %lld", (long long)arrivals,
                 explain_barrier(run, number), (long long)barrier->pending, (long long)count))
      return;
    diag_note(run->plan->cx->ds, run->plan->barriers.data[number].root->op->span, "the count is given here");
    if (barrier->arrived && barrier->arrived != op)
      diag_note(run->plan->cx->ds, barrier->arrived->span, "arrived before");
    diag_hint(run->plan->cx->ds,
              "give the barrier as many arrivals as a phase gets: each thread that runs the "
              "arrival counts");
    explain_run(run);
    return;
  }
  barrier->pending -= arrivals;
  barrier->arrivals += (int)arrivals;
  barrier->arrived = op;
  complete_if_done(run, number);
}

static void send(const Run *run, const Agent *agent, Clock *into) {
  join_clock(run, into, &agent->clock);
}

// --- barriers ---

static void init_one(Run *run, Agent *agent, const TirOp *op, int number) {
  Barrier *barrier = &run->barriers[number];
  if (barrier->live || threads_of(run, agent) > 1) {
    if (!explain(run, DIAG_barrier_init, op, "%s is initialised twice", explain_barrier(run, number))) return;
    if (barrier->init) diag_note(run->plan->cx->ds, barrier->init->span, "initialised before");
    diag_hint(run->plan->cx->ds, "let one thread initialise each barrier once");
    explain_run(run);
    return;
  }
  barrier->live = true;
  barrier->init = op;
  barrier->init_class = agent->class_index;
  barrier->init_at = agent->now;
  barrier->pending = run->plan->barriers.data[number].count;
}

static bool step_init(Run *run, Agent *agent, const TirOp *op) {
  tick(agent);
  if (op->args[0]->op->kind == OP_view) {
    int number = barrier_of(run, agent, op, op->args[0]);
    if (number >= 0) init_one(run, agent, op, number);
    return true;
  }
  int first = barrier_of(run, agent, op, op->args[0]);
  for (int i = 0; first >= 0 && i < op->args[0]->type.shape[0]; i++) init_one(run, agent, op, first + i);
  return true;
}

static bool step_fence_init(Run *run, Agent *agent, const TirOp *op) {
  (void)op;
  for (int i = 0; i < run->plan->barriers.len; i++)
    if (run->barriers[i].live && run->barriers[i].init_class == agent->class_index)
      run->barriers[i].fenced = true;
  return true;
}

static bool step_arrive(Run *run, Agent *agent, const TirOp *op) {
  int number = barrier_of(run, agent, op, op->args[0]);
  if (number < 0 || !check_initialised(run, agent, op, number, false)) return true;
  tick(agent);
  if (!check_phase_known(run, op, number, agent->clock.knows[plan_phases(run->plan, number)])) return true;
  send(run, agent, &run->barriers[number].collecting);
  arrive(run, op, number, threads_of(run, agent));
  return true;
}

static bool step_expect(Run *run, Agent *agent, const TirOp *op) {
  int number = barrier_of(run, agent, op, op->args[0]);
  Leaves leaves = run_leaves(run, agent);
  int64_t bytes;
  if (number < 0 || !check_initialised(run, agent, op, number, false)) return true;
  if (!val_known(&leaves, op->args[1], &bytes)) {
    run_unproved(run, op, "the number of bytes depends on data");
    return true;
  }
  tick(agent);
  int known = agent->clock.knows[plan_phases(run->plan, number)];
  if (!op->attrs[EXPECT_arrive] &&
      !check_in_announced_phase(run, op, number, known, "these bytes are announced"))
    return true;
  if (!check_phase_known(run, op, number, known)) return true;
  Barrier *barrier = &run->barriers[number];
  Announced announced = {agent->class_index, agent->now, op};
  vec_push(run->arena, &barrier->announced, announced);
  barrier->bytes += bytes * threads_of(run, agent);
  if (!op->attrs[EXPECT_arrive]) return true;
  send(run, agent, &barrier->collecting);
  arrive(run, op, number, threads_of(run, agent));
  return true;
}

static void pass_wait(Run *run, Agent *agent, const TirOp *op) {
  Barrier *barrier = &run->barriers[agent->barrier];
  int target = agent->target;
  if (barrier->phase > target) {
    explain_lapped(run, op, agent->class_index, agent->barrier, target);
    return;
  }
  tick(agent);
  receive(run, agent, &barrier->done[target % KEPT_PHASES]);
  agent->waited[agent->barrier] = (Waited){op, target, agent->now};
  if (plan_content(run->plan, op) & CONVERGED) sync_warp(run, agent, op);
}

static bool step_wait(Run *run, Agent *agent, const TirOp *op) {
  int number = barrier_of(run, agent, op, op->args[0]);
  Leaves leaves = run_leaves(run, agent);
  int64_t parity;
  if (number < 0 || !check_initialised(run, agent, op, number, false)) return true;
  if (!val_known(&leaves, op->args[1], &parity)) {
    run_unproved(run, op, "the parity depends on data");
    return true;
  }
  int known = agent->clock.knows[plan_phases(run->plan, number)];
  agent->target = known + ((known & 1) == (parity & 1));
  agent->barrier = number;
  agent->at = op;
  if (run->barriers[number].phase >= agent->target) {
    pass_wait(run, agent, op);
    bool first = run->plan->classes[agent->class_index].rank == 0;
    if (agent->target == known && !first && agent->state == AGENT_RUNS) agent->state = AGENT_LINGERS;
    return true;
  }
  agent->state = AGENT_WAITS;
  return false;
}

// --- meetings ---

static void release_meeting(Run *run, int id) {
  Meet *meet = &run->meets[id];
  for (int c = 0; c < run->plan->nclasses; c++) {
    Agent *agent = &run->agents[c];
    if (agent->state != AGENT_MEETS || agent->barrier != id) continue;
    receive(run, agent, &meet->clock);
    agent->state = AGENT_RUNS;
  }
  clear_clock(run, &meet->clock);
  meet->arrived = 0;
}

static bool step_sync(Run *run, Agent *agent, const TirOp *op) {
  int id = (int)op->attrs[SYNC_id] % NAMED_POINTS;
  int64_t needed = op->attrs[SYNC_count] ? op->attrs[SYNC_count] : plan_threads(run->plan->kernel);
  Meet *meet = &run->meets[id];
  tick(agent);
  if (meet->arrived && meet->needed != needed) {
    if (explain(run, DIAG_sync_divergent, op,
                "%lld threads are to meet here, but others meet at the same barrier with %lld",
                (long long)needed, (long long)meet->needed)) {
      diag_note(run->plan->cx->ds, meet->op->span, "these");
      diag_hint(run->plan->cx->ds, "give each group of threads a barrier id of its own");
      explain_run(run);
    }
    return true;
  }
  meet->needed = needed;
  meet->arrived += threads_of(run, agent);
  meet->op = op;
  send(run, agent, &meet->clock);
  agent->state = AGENT_MEETS;
  agent->barrier = id;
  agent->at = op;
  if (meet->arrived < needed) return false;
  if (meet->arrived == needed) {
    release_meeting(run, id);
    return true;
  }
  if (explain(run, DIAG_sync_divergent, op, "%lld threads come to a barrier that is for %lld",
              (long long)meet->arrived, (long long)needed)) {
    diag_hint(run->plan->cx->ds, "sync_threads(id, n) with n = the threads that run it");
    explain_run(run);
  }
  return true;
}

// --- warps ---

// The threads of the agent's warp among those that the op is for.
static int threads_of_warp(const Run *run, const Agent *agent, const TirOp *op) {
  int warp = run->plan->classes[agent->class_index].first / WARP, count = 0;
  uint64_t team = run_team(run, agent, op);
  for (int c = 0; c < run->plan->nclasses; c++)
    if (team >> c & 1 && run->plan->classes[c].first / WARP == warp) count += run->plan->classes[c].threads;
  return count;
}

// Where the lanes of a warp that run the op meet. Roles of parts of it meet at points of their own: their masks differ.
// -1: there are too many, and the run has ended.
static int warp_point(Run *run, const TirOp *op, int warp) {
  TirThreads active = tir_active_threads(op->parent);
  if (active.lo % WARP == 0 && active.hi % WARP == 0) return NAMED_POINTS + warp;
  for (int i = 0; i < run->nparts; i++)
    if (run->parts[i].lo == active.lo && run->parts[i].hi == active.hi) return PART_POINTS + i;
  if (run->nparts < MAX_PARTS) {
    run->parts[run->nparts] = active;
    return PART_POINTS + run->nparts++;
  }
  run_unproved(run, op, "too many parts of warps meet");
  return -1;
}

bool sync_warp(Run *run, Agent *agent, const TirOp *op) {
  int own = threads_of(run, agent), warp = run->plan->classes[agent->class_index].first / WARP;
  if (own >= WARP) return true;
  int needed = threads_of_warp(run, agent, op);
  if (own >= needed) return true;
  int point = warp_point(run, op, warp);
  if (point < 0) return true;
  Meet *meet = &run->meets[point];
  tick(agent);
  meet->needed = needed;
  meet->arrived += own;
  meet->op = op;
  send(run, agent, &meet->clock);
  agent->state = AGENT_MEETS;
  agent->barrier = point;
  agent->at = op;
  if (meet->arrived < needed) return false;
  release_meeting(run, point);
  return true;
}

static bool step_sync_warp(Run *run, Agent *agent, const TirOp *op) {
  return sync_warp(run, agent, op);
}

// --- fences ---

static bool step_proxy_fence(Run *run, Agent *agent, const TirOp *op) {
  join(agent->clock.async, agent->clock.knows, run->plan->nclasses);
  return step_fence_init(run, agent, op);
}

static bool step_fence_before(Run *run, Agent *agent, const TirOp *op) {
  (void)op;
  join(agent->clock.tmem, agent->acquired, run->plan->ncomponents);
  agent->clock.tmem[agent->class_index] = agent->now;
  return true;
}

static bool step_fence_after(Run *run, Agent *agent, const TirOp *op) {
  (void)op;
  join(agent->acquired, agent->incoming, run->plan->ncomponents);
  return true;
}

// --- engines ---

static bool step_bulk_commit(Run *run, Agent *agent, const TirOp *op) {
  (void)run;
  (void)op;
  agent->bulk_groups++;
  agent->bulk_open = false;
  return true;
}

static bool step_bulk_wait(Run *run, Agent *agent, const TirOp *op) {
  int done = agent->bulk_groups - (int)op->attrs[BULK_pending];
  int sources = plan_sources(run->plan, agent->class_index),
      stores = plan_stores(run->plan, agent->class_index);
  if (done > agent->clock.knows[sources]) agent->clock.knows[sources] = done;
  if (!op->attrs[BULK_read] && done > agent->clock.knows[stores]) agent->clock.knows[stores] = done;
  return true;
}

// Products of a warpgroup's own threads complete in order.
static bool step_mma_wait(Run *run, Agent *agent, const TirOp *op) {
  int done = agent->products - (int)op->attrs[MMA_WAIT_pending];
  int products = plan_products(run->plan, agent->class_index);
  if (done > agent->clock.knows[products]) agent->clock.knows[products] = done;
  return true;
}

static bool step_commit(Run *run, Agent *agent, const TirOp *op) {
  int number = barrier_of(run, agent, op, op->args[0]);
  if (number < 0 || !check_initialised(run, agent, op, number, true)) return true;
  tick(agent);
  Barrier *barrier = &run->barriers[number];
  int known = agent->clock.knows[plan_phases(run->plan, number)];
  // Arrivals of one thread's commits come in the order of the commits.
  if (agent->piped[number] > known) known = agent->piped[number];
  if (!check_phase_known(run, op, number, known)) return true;
  Commit commit = {number, barrier->phase, agent->products, op};
  vec_push(run->arena, &agent->commits, commit);
  int products = plan_products(run->plan, agent->class_index);
  send(run, agent, &barrier->collecting);
  join(barrier->collecting.tmem, agent->acquired, run->plan->ncomponents);
  // It tells of all products so far, and hands them over: also those that the thread knows from others to be over.
  if (agent->products > barrier->collecting.knows[products])
    barrier->collecting.knows[products] = agent->products;
  if (agent->products > barrier->collecting.tmem[products])
    barrier->collecting.tmem[products] = agent->products;
  if (known < barrier->phase) return true;
  if (run->plan->barriers.data[number].count == 1) agent->piped[number] = barrier->phase + 1;
  arrive(run, op, number, threads_of(run, agent));
  return true;
}

static bool step_alloc(Run *run, Agent *agent, const TirOp *op) {
  if (!acts_first(run, agent, op)) return true;
  memory_touch(run, agent, op, BY_THREADS, 0, 0);
  run->tmem_allocated = (int)op->attrs[TMEM_columns];
  run->tmem_op = op;
  return true;
}

static bool step_dealloc(Run *run, Agent *agent, const TirOp *op) {
  if (!acts_first(run, agent, op)) return true;
  if (run->tmem_allocated <= 0) {
    if (!explain(run, DIAG_tmem_lifetime, op,
                 run->tmem_op ? "tensor memory is released twice"
                              : "tensor memory is released before it is allocated"))
      return true;
    if (run->tmem_op) diag_note(run->plan->cx->ds, run->tmem_op->span, "released before");
    diag_hint(run->plan->cx->ds, "release it once, after the last use");
    explain_run(run);
    return true;
  }
  tick(agent);
  memory_release_tmem(run, agent, op);
  run->tmem_allocated = -1;
  run->tmem_op = op;
  return true;
}

static bool issue_load(Run *run, Agent *agent, const TirOp *op) {
  const TirValue *barrier_value = NULL;
  for (int i = 0; i < op->nargs; i++)
    if (op->args[i] && op->args[i]->type.kind == TYPE_BUFFER && op->args[i]->type.space == SPACE_BARRIER)
      barrier_value = op->args[i];
  if (!barrier_value) {
    run_unproved(run, op, "the copy has no barrier");
    return true;
  }
  int number = barrier_of(run, agent, op, barrier_value);
  if (number < 0 || !check_initialised(run, agent, op, number, true)) return true;
  Barrier *barrier = &run->barriers[number];
  int component = plan_phases(run->plan, number);
  tick(agent);
  if (!check_in_announced_phase(run, op, number, agent->clock.knows[component], "this copy brings its bytes"))
    return true;
  barrier->bytes -= memory_bytes(op) * threads_of(run, agent);
  barrier->loaded = op;
  barrier->loads = barrier->phase + 1;
  memory_touch(run, agent, op, BY_LOAD, component, barrier->phase + 1);
  complete_if_done(run, number);
  return true;
}

static bool issue_store(Run *run, Agent *agent, const TirOp *op) {
  agent->bulk_open = true;
  agent->bulk_op = op;
  memory_touch(run, agent, op, BY_STORE, 0, agent->bulk_groups + 1);
  return true;
}

static bool issue_product(Run *run, Agent *agent, const TirOp *op) {
  agent->products++;
  agent->product_op = op;
  memory_touch(run, agent, op, BY_PRODUCT, plan_products(run->plan, agent->class_index), agent->products);
  return true;
}

static const Step issues[PATH_COUNT] = {[PATH_TMA_LOAD] = issue_load,
                                        [PATH_TMA_STORE] = issue_store,
                                        [PATH_MMA] = issue_product,
                                        [PATH_WGMMA] = issue_product};

static const Step steps[OP_COUNT] = {
    [OP_sync_threads] = step_sync,
    [OP_sync_warp] = step_sync_warp,
    [OP_mbar_init] = step_init,
    [OP_fence_mbarrier_init] = step_fence_init,
    [OP_mbar_arrive] = step_arrive,
    [OP_mbar_expect_tx] = step_expect,
    [OP_mbarrier_wait_parity] = step_wait,
    [OP_fence_proxy_async] = step_proxy_fence,
    [OP_bulk_commit] = step_bulk_commit,
    [OP_bulk_wait] = step_bulk_wait,
    [OP_mma_wait] = step_mma_wait,
    [OP_tmem_alloc] = step_alloc,
    [OP_tmem_dealloc] = step_dealloc,
    [OP_tcgen05_commit] = step_commit,
    [OP_tcgen05_fence_before] = step_fence_before,
    [OP_tcgen05_fence_after] = step_fence_after,
};

bool sync_step(Run *run, Agent *agent, const TirOp *op) {
  Step step = path_is_async(op_path(op)) ? issues[op_path(op)] : steps[op->kind];
  return step ? step(run, agent, op) : true;
}

bool sync_can_go_on(Run *run, Agent *agent) {
  if (agent->state != AGENT_WAITS || run->barriers[agent->barrier].phase < agent->target) return false;
  agent->state = AGENT_RUNS;
  pass_wait(run, agent, agent->at);
  return true;
}

// --- the end ---

static bool somebody_knows(const Run *run, int component, int at) {
  for (int c = 0; c < run->plan->nclasses; c++)
    if (run->agents[c].clock.knows[component] >= at) return true;
  return false;
}

static void explain_in_flight(Run *run, const TirOp *op, const char *what, const char *hint) {
  if (!explain(run, DIAG_in_flight, op, "the block may end while %s: nobody waits for it", what)) return;
  diag_hint(run->plan->cx->ds, "%s", hint);
  explain_run(run);
}

void sync_at_exit(Run *run) {
  const Plan *plan = run->plan;
  for (int i = 0; i < plan->barriers.len && run->result == RUN_FINE; i++)
    if (run->barriers[i].loads && !somebody_knows(run, plan_phases(plan, i), run->barriers[i].loads))
      explain_in_flight(run, run->barriers[i].loaded, "this copy is still writing shared memory",
                        "wait for the phase of its barrier before the end");
  for (int c = 0; c < plan->nclasses && run->result == RUN_FINE; c++) {
    const Agent *agent = &run->agents[c];
    if (agent->products && !somebody_knows(run, plan_products(plan, c), agent->products))
      explain_in_flight(run, agent->product_op, "this product is still being computed",
                        "commit it to a barrier, and wait for that before the end");
    else if (agent->bulk_op &&
             agent->clock.knows[plan_sources(plan, c)] < agent->bulk_groups + agent->bulk_open)
      explain_in_flight(run, agent->bulk_op, "this store is still reading shared memory",
                        agent->bulk_open
                            ? "commit the group of bulk copies, and wait for it in the same thread"
                            : "wait for the group of bulk copies in the same thread: tma_store_wait(0)");
  }
  if (run->result != RUN_FINE || run->tmem_allocated <= 0) return;
  if (!explain(run, DIAG_tmem_lifetime, run->tmem_op, "tensor memory is allocated here and never released"))
    return;
  diag_hint(plan->cx->ds, "release it on every path before the end");
  explain_run(run);
}

// The report of a mistake: what may happen, at the op that it happens to; the other place as a note; what to type as a
// hint; and the sizes of the run that shows it.
#include "passes/sync_check/explain.h"

#include "passes/hazards.h"
#include "passes/sync_check/plan.h"
#include "passes/sync_check/run.h"
#include "tir/roles.h"

const char *explain_buffer(const TirValue *buffer) {
  return tir_buffer_name(buffer);
}

const char *explain_barrier(const Run *run, int barrier) {
  const BarrierPlan *plan = &run->plan->barriers.data[barrier];
  const char *name = plan->root->name ? plan->root->name : "the barrier";
  if (plan->root->type.shape[0] == 1) return name;
  return text_printf(run->plan->arena, "%s[%d]", name, plan->index);
}

bool explain(Run *run, DiagCode code, const TirOp *op, const char *format, ...) {
  if (run->result != RUN_FINE) return false;
  va_list args;
  va_start(args, format);
  const char *text = text_vprintf(run->plan->arena, format, args);
  va_end(args);
  run->result = run->guessed ? RUN_UNPROVED : RUN_FOUND;
  if (run->guessed)
    diag_remark(run->plan->cx->ds, op->span, "if the data make it so, %s", text);
  else
    diag_error(run->plan->cx->ds, code, op->span, "%s", text);
  return true;
}

void explain_run(const Run *run) {
  const Scenario *scenario = run->scenario;
  if (!scenario->nvariables) return;
  TextBuf text = {.arena = run->plan->arena};
  for (int i = 0; i < scenario->nvariables; i++) {
    const Variable *variable = &scenario->variables[i];
    textbuf_printf(&text, "%s%s = %lld", i ? ", " : "", variable->value->op->name, (long long)variable->is);
  }
  diag_note(run->plan->cx->ds, run->plan->kernel->span, "seen in a run with %s", text.data);
}

// --- conflicts ---

static const char *verb_of(const Touched *access) {
  if (access->engine == BY_PRODUCT)
    return access->writes ? "the tensor core accumulates" : "the tensor core reads";
  if (access->engine != BY_THREADS) return access->writes ? "a copy writes" : "a copy reads";
  return access->writes ? "threads write" : "threads read";
}

static const TirValue *buffer_of(const Run *run, const Touched *access) {
  Effects effects = plan_effects(run->plan, access->op);
  for (int i = 0; i < effects.len; i++)
    if (effects.at[i].reads == access->reads && effects.at[i].writes == access->writes)
      return effects.at[i].buffer;
  return NULL;
}

// Where the end of an asynchronous access can be waited for: the barrier, and the phase (from 0); false: nowhere.
static bool completion_of(const Run *run, const Touched *access, int *barrier, int *phase,
                          const TirOp **commit) {
  *commit = NULL;
  if (access->engine == BY_LOAD) {
    *barrier = access->component - plan_phases(run->plan, 0);
    *phase = access->at - 1;
    return true;
  }
  if (access->engine != BY_PRODUCT) return false;
  const Agent *issuer = &run->agents[access->class_index];
  for (int i = 0; i < issuer->commits.len; i++) {
    if (issuer->commits.data[i].issued < access->at) continue;
    *barrier = issuer->commits.data[i].barrier;
    *phase = issuer->commits.data[i].phase;
    *commit = issuer->commits.data[i].op;
    return true;
  }
  return false;
}

typedef struct {
  DiagCode code;
  const char *because, *hint;
  const TirOp *place;  // of the note about the wait
  const char *note;
} Reason;

// The outermost loop around the product that does not hold the other access too.
static const TirOp *loop_left(const TirOp *product, const TirOp *now) {
  const TirOp *left = NULL;
  for (const TirOp *op = tir_parent(product); op; op = tir_parent(op))
    if (tir_is_loop(op) && !tir_inside(now, op)) left = op;
  return left;
}

// What tells a barrier behind the loop that all products before are done; NULL: nothing does.
static const TirOp *commit_behind(const TirOp *loop) {
  for (const TirOp *op = loop->next; op; op = op->next) {
    if (op->kind == OP_tcgen05_commit) return op;
    for (const TirOp *inner = op->kind == OP_one_thread ? op->bodies[0]->first : NULL; inner;
         inner = inner->next)
      if (inner->kind == OP_tcgen05_commit) return inner;
  }
  return NULL;
}

static const TirOp *role_around(const TirOp *op) {
  while (op && op->kind != OP_role) op = tir_parent(op);
  return op;
}

// The parity that a wait in the same round as the commit asks for, when it counts rounds of one loop or is alone; else NULL.
static const char *parity_beside(Arena *arena, const TirOp *commit) {
  const TirOp *loop = NULL;
  int64_t first, step;
  if (tir_root(commit->args[0])->type.shape[0] != 1) return NULL;
  for (const TirOp *op = tir_parent(commit); op; op = tir_parent(op)) {
    if (!tir_is_loop(op)) continue;
    if (loop || op->kind != OP_for) return NULL;
    loop = op;
  }
  if (!loop) return "0";
  if (!tir_const_int(loop->args[FOR_LO], &first) || !tir_const_int(loop->args[FOR_STEP], &step) || first ||
      step != 1 || !loop->results[0]->name)
    return NULL;
  return text_printf(arena, "%s %% 2", loop->results[0]->name);
}

// The hint where no wait for the product stands. A barrier of the loop's rounds says little behind the loop.
static void hint_wait(const Run *run, const Touched *before, const Touched *now, const TirOp *commit,
                      Reason *reason) {
  Arena *arena = run->plan->arena;
  const TirOp *loop = loop_left(before->op, now->op), *behind = loop ? commit_behind(loop) : NULL;
  const char *parity = behind ? parity_beside(arena, behind) : parity_beside(arena, commit);
  const char *name = tir_root((behind ? behind : commit)->args[0])->name;
  bool together = role_around(before->op) == role_around(now->op);
  if (behind) {
    reason->place = behind;
    reason->note =
        text_printf(arena, "%s is told here, behind the loop, when all products before it are done", name);
    reason->hint = text_printf(arena, "mbarrier_wait_parity(%s, %s) before the access", name,
                               parity ? parity : "the parity of that phase");
  } else if (together && parity && *parity != '0') {
    reason->hint =
        text_printf(arena, "mbarrier_wait_parity(%s, %s) in the loop, behind the product", name, parity);
  } else if (loop) {
    reason->hint =
        "tcgen05_mma_arrive(barrier) behind the loop of the products, and mbarrier_wait_parity(barrier, "
        "0) before the access";
  }
}

// An engine is not known to be done.
static Reason unfinished(const Run *run, const Agent *agent, const Touched *before, const Touched *now) {
  int barrier, phase;
  const TirOp *commit;
  Arena *arena = run->plan->arena;
  if (before->engine == BY_STORE) {
    Reason reason = {
        DIAG_store_source, "which may still be going on",
        "tma_store_arrive() and tma_store_wait() by the thread that stores, then let the others know", NULL,
        NULL};
    return reason;
  }
  bool reuse = !before->writes;
  Reason reason = {reuse ? DIAG_reused_early : DIAG_wait_missing, "which may still be going on", NULL, NULL,
                   NULL};
  if (before->engine == BY_PRODUCT && now->engine == BY_PRODUCT && before->component == now->component)
    reason.because = "in another form, and products of two forms need not come in order";
  bool by_group = op_path(before->op) == PATH_WGMMA;
  if (by_group || !completion_of(run, before, &barrier, &phase, &commit)) {
    reason.hint =
        by_group ? "wait for the product in each thread that takes part, and let the others know"
                 : "tell a barrier when the product is done, tcgen05_mma_arrive(barrier), and wait for it";
    return reason;
  }
  const char *name = explain_barrier(run, barrier);
  reason.hint =
      text_printf(arena, "mbarrier_wait_parity(%s, %d) in this round, before this", name, phase & 1);
  const Waited *waited = &agent->waited[barrier];
  if (!waited->op && commit) hint_wait(run, before, now, commit, &reason);
  if (!waited->op || waited->target > phase) return reason;
  reason.code = DIAG_wait_early;
  reason.place = waited->op;
  reason.because = "and the wait for it returns too early";
  reason.note =
      waited->target
          ? text_printf(arena, "this wait returns when phase %d of %s is complete; it takes phase %d",
                        waited->target - 1, name, phase)
          : text_printf(arena, "this wait on %s returns at once; it takes phase %d", name, phase);
  return reason;
}

static Reason reason_of(const Run *run, const Agent *agent, const Touched *before, const Touched *now) {
  bool known =
      agent->clock.knows[before->component] >= before->at || before->class_index == agent->class_index;
  if (before->engine != BY_THREADS) known = agent->clock.knows[before->component] >= before->at;
  if (!known && now->op->kind == OP_tmem_dealloc) {
    Reason reason = {DIAG_in_flight, "which may still be going on", "wait for it before the end", NULL, NULL};
    return reason;
  }
  if (!known && before->engine != BY_THREADS) return unfinished(run, agent, before, now);
  if (!known && !before->writes) {
    Reason reason = {DIAG_reused_early, "which they may not have finished",
                     "let the readers arrive on a barrier, and wait for that before this", NULL, NULL};
    return reason;
  }
  if (!known) {
    Reason reason = {DIAG_unordered, "and nothing orders the two",
                     "let these threads arrive on a barrier after it, or meet, before this", NULL, NULL};
    return reason;
  }
  if (before->tmem) {
    bool published = agent->incoming[before->component] >= before->at;
    Reason reason = {
        DIAG_tmem_fence, "without the tcgen05 fences that hand tensor memory over",
        published ? "tcgen05_after_thread_sync() after the wait"
                  : "tcgen05_before_thread_sync() before the threads arrive, tcgen05_after_thread_sync() "
                    "after the wait",
        NULL, NULL};
    return reason;
  }
  Reason reason = {
      DIAG_proxy_fence, "without a fence towards the async proxy",
      "fence_proxy_async() by the writing threads, after the writes and before they arrive or meet", NULL,
      NULL};
  return reason;
}

void explain_conflict(Run *run, const Agent *agent, const Touched *before, const Touched *now, bool certain) {
  Reason reason = reason_of(run, agent, before, now);
  const TirValue *buffer = buffer_of(run, before);
  const char *name = buffer ? explain_buffer(buffer) : "the buffer";
  Diags *ds = run->plan->cx->ds;
  if (!certain) {
    diag_remark(ds, now->op->span, "not proved: %s %s here, %s it elsewhere, %s", verb_of(now), name,
                verb_of(before), reason.because);
    diag_note(ds, before->op->span, "here");
    return;
  }
  bool release = now->op->kind == OP_tmem_dealloc;
  const char *when = before->engine == BY_THREADS ? "after" : "while";
  bool found = release ? explain(run, reason.code, now->op, "%s is released %s %s it, %s", name, when,
                                 verb_of(before), reason.because)
                       : explain(run, reason.code, now->op, "%s %s %s %s it, %s", verb_of(now), name, when,
                                 verb_of(before), reason.because);
  if (!found) return;
  diag_note(ds, before->op->span, "the other access is here, by %s",
            plan_class_name(run->plan, before->class_index));
  if (reason.place) diag_note(ds, reason.place->span, "%s", reason.note);
  if (reason.hint) diag_hint(ds, "%s", reason.hint);
  explain_run(run);
}

// --- nobody can go on ---

static bool enters(const Run *run, const Agent *agent, const TirOp *op) {
  int first = run->plan->classes[agent->class_index].first;
  if (op->kind == OP_role) return first >= op->attrs[ROLE_lo] && first < op->attrs[ROLE_hi];
  return op->kind != OP_one_thread || first == tir_active_threads(op->parent).lo;
}

// Whether the class would arrive on a barrier of the array in this op or one behind it.
static bool arrives_from(const Run *run, const Agent *agent, const TirValue *root, const TirOp *op) {
  for (; op; op = op->next) {
    bool arrives =
        op->kind == OP_mbar_arrive || op->kind == OP_mbar_expect_tx || op->kind == OP_tcgen05_commit;
    if (arrives && tir_root(op->args[0]) == root) return true;
    for (int i = 0; i < op->nbodies && enters(run, agent, op); i++)
      if (arrives_from(run, agent, root, op->bodies[i]->first)) return true;
  }
  return false;
}

// Whether somebody who waits now would arrive later: in what is left of its bodies, or in a later turn of a loop.
static bool somebody_would_arrive(const Run *run, const TirValue *root) {
  for (int c = 0; c < run->plan->nclasses; c++) {
    const Agent *agent = &run->agents[c];
    for (int i = 0; agent->state != AGENT_DONE && i < agent->frames.len; i++) {
      const Frame *frame = &agent->frames.data[i];
      bool again = frame->turn + 1 < frame->turns;
      if (arrives_from(run, agent, root, again ? frame->owner->bodies[0]->first : frame->next)) return true;
    }
  }
  return false;
}

// The classes that wait in the same op for the same.
static const char *names_at(const Run *run, const Agent *agent) {
  TextBuf text = {.arena = run->arena};
  for (int c = 0; c < run->plan->nclasses; c++) {
    const Agent *other = &run->agents[c];
    if (other->state != agent->state || other->at != agent->at || other->barrier != agent->barrier) continue;
    textbuf_printf(&text, "%s%s", text.len ? ", " : "", plan_class_name(run->plan, c));
  }
  return text.data;
}

static void note_waiting(const Run *run, const Agent *agent) {
  const Plan *plan = run->plan;
  const char *who = names_at(run, agent);
  // The rest of a warp whose thread waits elsewhere says nothing new.
  if (agent->state == AGENT_MEETS && agent->barrier >= NAMED_POINTS) return;
  if (agent->state == AGENT_MEETS) {
    const Meet *meet = &run->meets[agent->barrier];
    diag_note(plan->cx->ds, agent->at->span, "%s: waiting here for %lld more of %lld threads", who,
              (long long)(meet->needed - meet->arrived), (long long)meet->needed);
    return;
  }
  const Barrier *barrier = &run->barriers[agent->barrier];
  int64_t count = plan->barriers.data[agent->barrier].count;
  const char *bytes =
      barrier->bytes > 0 ? text_printf(run->arena, " and %lld bytes", (long long)barrier->bytes) : "";
  diag_note(plan->cx->ds, agent->at->span,
            "%s: waiting here for phase %d of %s, which has %lld of %lld arrivals%s%s", who,
            agent->target - 1, explain_barrier(run, agent->barrier), (long long)(count - barrier->pending),
            (long long)count, *bytes ? " and lacks" : "", *bytes ? bytes + 4 : "");
}

static void note_others(const Run *run, const Agent *first) {
  for (int c = 0; c < run->plan->nclasses; c++) {
    const Agent *agent = &run->agents[c];
    bool noted = agent == first || agent->state == AGENT_DONE || agent->at == first->at;
    for (int before = 0; before < c; before++)
      if (run->agents[before].state != AGENT_DONE) noted |= run->agents[before].at == agent->at;
    if (!noted) note_waiting(run, agent);
  }
}

static bool stuck_for_bytes(Run *run, const Agent *agent) {
  const Barrier *barrier = &run->barriers[agent->barrier];
  if (agent->state != AGENT_WAITS || barrier->pending || barrier->bytes <= 0) return false;
  if (!explain(run, DIAG_bytes_announced, agent->at,
               "phase %d of %s never completes: %lld bytes more are announced than copied", agent->target - 1,
               explain_barrier(run, agent->barrier), (long long)barrier->bytes))
    return true;
  if (barrier->announced.len)
    diag_note(run->plan->cx->ds, barrier->announced.data[barrier->announced.len - 1].op->span,
              "announced here");
  if (barrier->loaded) diag_note(run->plan->cx->ds, barrier->loaded->span, "copied here");
  diag_hint(run->plan->cx->ds, "announce exactly the bytes of the tiles that the phase copies");
  return true;
}

static bool stuck_for_count(Run *run, const Agent *agent) {
  const Barrier *barrier = &run->barriers[agent->barrier];
  const Plan *plan = run->plan;
  if (agent->state != AGENT_WAITS) return false;
  const TirOp *declared = plan->barriers.data[agent->barrier].root->op;
  if (!barrier->arrivals && somebody_would_arrive(run, declared->results[0])) return false;
  if (!explain(run, DIAG_arrivals_missing, agent->at,
               "phase %d of %s never completes: it gets %d of %lld arrivals", agent->target - 1,
               explain_barrier(run, agent->barrier), barrier->arrivals,
               (long long)plan->barriers.data[agent->barrier].count))
    return true;
  diag_note(plan->cx->ds, declared->span, "the count is given here");
  if (barrier->arrived) diag_note(plan->cx->ds, barrier->arrived->span, "arrived here");
  if (barrier->bytes < 0)
    diag_note(plan->cx->ds, barrier->loaded->span, "%lld bytes are copied that were not announced",
              (long long)-barrier->bytes);
  diag_hint(plan->cx->ds,
            barrier->arrivals
                ? "give the barrier as many arrivals as a phase gets, or let the missing threads arrive"
                : "arrive on it where what it stands for is done");
  return true;
}

static int count_threads(const Run *run, uint64_t team) {
  int count = 0;
  for (int c = 0; c < run->plan->nclasses; c++)
    if (team >> c & 1) count += run->plan->classes[c].threads;
  return count;
}

static bool stuck_in_meeting(Run *run, const Agent *agent) {
  const Meet *meet = &run->meets[agent->barrier];
  if (agent->state != AGENT_MEETS || agent->barrier >= NAMED_POINTS) return false;
  bool others_done = false;
  for (int c = 0; c < run->plan->nclasses; c++) others_done |= run->agents[c].state == AGENT_DONE;
  bool meets_alone = true;
  for (int c = 0; c < run->plan->nclasses; c++) meets_alone &= run->agents[c].state != AGENT_WAITS;
  uint64_t team = run_team(run, agent, agent->at);
  if (!others_done && !meets_alone && count_threads(run, team) >= meet->needed) return false;
  if (!explain(run, DIAG_sync_divergent, agent->at, "%lld threads are to meet here, but only %lld come",
               (long long)meet->needed, (long long)meet->arrived))
    return true;
  diag_hint(run->plan->cx->ds, "let all threads run it, or sync_threads(id, n) with n = the threads that do");
  return true;
}

static bool wait_in_one_place(const Run *run, const Agent *first) {
  for (int c = 0; c < run->plan->nclasses; c++)
    if (run->agents[c].state != AGENT_DONE && run->agents[c].at != first->at) return false;
  return true;
}

typedef bool (*Explanation)(Run *run, const Agent *agent);

void explain_stuck(Run *run) {
  static const Explanation explanations[] = {stuck_for_bytes, stuck_for_count, stuck_in_meeting};
  const Agent *first = NULL;
  for (int i = 0; i < 3; i++)
    for (int c = 0; c < run->plan->nclasses; c++) {
      const Agent *agent = &run->agents[c];
      if (agent->state == AGENT_DONE) continue;
      if (!first || (first->state == AGENT_MEETS && agent->state == AGENT_WAITS)) first = agent;
      if (!explanations[i](run, agent)) continue;
      note_others(run, agent);
      explain_run(run);
      return;
    }
  if (!first ||
      !explain(run, DIAG_deadlock, first->at, "%s",
               wait_in_one_place(run, first) ? "the threads wait for what they would do after the wait"
                                             : "the threads wait for each other and none can go on"))
    return;
  note_waiting(run, first);
  note_others(run, first);
  diag_hint(run->plan->cx->ds,
            "a wait that is to return at once in the first round has the parity of the phase before: 1");
  explain_run(run);
}

// if, elif, else. A condition known now is Python's; a staged one becomes a branch of tile IR whose arms are
// elaborated once each, in a region of their own.
//
// A condition on the thread index alone picks a set of the active threads, found by evaluating it for each. Where the
// set is a range, the arm is a `role`: what stands in it is spread over exactly those threads. The arms of one such
// `if` stand one behind the other in tile IR, since no thread runs two of them.
#include "elab/elab_internal.h"

bool elab_known_truth(const Value *value, bool *out) {
  int64_t number;
  if (value->kind == VALUE_STAGED && tir_const_int(value->staged, &number)) {
    *out = number != 0;
    return true;
  }
  if (value_is_staged(value)) return false;
  *out = value_truth(value);
  return true;
}

// ---- bodies

typedef struct {
  Region *region;
  TirBlock *block;
} Outside;

static Outside enter_body(Elab *e, TirBlock *body, Span span, bool dependent) {
  Outside outside = {e->region, e->b.block};
  e->b.block = body;
  elab_region_push(e, REGION_BRANCH, span, dependent);
  return outside;
}

static void leave_body(Elab *e, Outside outside) {
  e->region = outside.region;
  e->b.block = outside.block;
}

static Flow exec_arms(Elab *e, const Stmt *stmt, int index);

static const Block *block_of(const Stmt *stmt, int index) {
  return index < stmt->branch.narms ? &stmt->branch.arms[index].body : &stmt->branch.otherwise;
}

static Span span_of(const Stmt *stmt, int index) {
  return index < stmt->branch.narms ? stmt->branch.arms[index].span : stmt->span;
}

// An ordinary branch: `test` decides between this arm and those behind it. Where one side ends with a jump, the other
// goes on with what follows the branch.
static Flow exec_staged_if(Elab *e, const Stmt *stmt, int index, TirValue *test) {
  Span span = span_of(stmt, index);
  bool dependent = tir_differs_among(test, elab_active(e));
  e->b.span = span;
  TirOp *branch = tir_if(&e->b, test);
  Outside outside = enter_body(e, branch->bodies[0], span, dependent);
  int jumps = e->frame->jumps;
  Flow yes = exec_block(e, block_of(stmt, index));
  TirBlock *end = e->b.block;
  bool settled = elab_is_settled(e, jumps);
  leave_body(e, outside);
  outside = enter_body(e, branch->bodies[1], span, dependent);
  jumps = e->frame->jumps;
  Flow no = exec_arms(e, stmt, index + 1);
  if (no == FLOW_NEXT) end = e->b.block;
  if (no == FLOW_NEXT) settled = elab_is_settled(e, jumps);
  leave_body(e, outside);
  if (yes != FLOW_NEXT && no != FLOW_NEXT) return FLOW_LEFT;
  if ((yes == FLOW_NEXT) != (no == FLOW_NEXT)) elab_go_on_in(e, end, span, dependent, settled);
  return FLOW_NEXT;
}

// ---- roles

enum { MAX_TESTS = 64 };

// The arms of one `if` so far, and the threads that took none of them.
typedef struct {
  TirThreads active;
  TirThreadSet rest;
  TirValue *tests[MAX_TESTS];
  int ntests;
  TirOp *last;              // the last role made
  TirThreadSet gone;        // threads whose arm ended with a jump
  int left[MAX_TESTS + 1];  // which arms that were
  int nleft;
  bool unsettled;  // an arm that goes on may have been left on some path
} Chain;

static TirThreadSet whole(TirThreads threads) {
  TirThreadSet set = {{false}};
  for (int t = threads.lo; t < threads.hi; t++) set.has[t] = true;
  return set;
}

static int set_size(const TirThreadSet *set) {
  int size = 0;
  for (int t = 0; t < TIR_MAX_THREADS; t++) size += set->has[t];
  return size;
}

static void intersect(TirThreadSet *set, const TirThreadSet *with) {
  for (int t = 0; t < TIR_MAX_THREADS; t++) set->has[t] = set->has[t] && with->has[t];
}

static void subtract(TirThreadSet *set, const TirThreadSet *what) {
  for (int t = 0; t < TIR_MAX_THREADS; t++) set->has[t] = set->has[t] && !what->has[t];
}

// What tells the threads of arm number `arm` from the others: its own condition (none for `else`) and none of those
// before.
static TirValue *membership(Elab *e, const Chain *chain, int arm) {
  TirValue *value = arm < chain->ntests ? chain->tests[arm] : NULL;
  for (int i = 0; i < arm; i++) {
    TirValue *other = tir_unary(&e->b, OP_not, chain->tests[i]);
    value = value ? tir_binary(&e->b, OP_and, value, other) : other;
  }
  return value;
}

// How the arm of `set` ends.
static void note_flow(Elab *e, Chain *chain, Flow flow, int jumps, const TirThreadSet *set, int arm) {
  if (flow == FLOW_NEXT && !elab_is_settled(e, jumps)) chain->unsettled = true;
  if (flow == FLOW_NEXT) return;
  for (int t = 0; t < TIR_MAX_THREADS; t++) chain->gone.has[t] = chain->gone.has[t] || set->has[t];
  chain->left[chain->nleft++] = arm;
}

static TirValue *has_stayed(Elab *e, const Chain *chain) {
  TirValue *value = NULL;
  for (int i = 0; i < chain->nleft; i++) {
    TirValue *other = tir_unary(&e->b, OP_not, membership(e, chain, chain->left[i]));
    value = value ? tir_binary(&e->b, OP_and, value, other) : other;
  }
  return value;
}

static Outside enter_role(Elab *e, Chain *chain, TirThreads threads, Span span) {
  e->b.span = span;
  TirOp *role = tir_role(&e->b, threads);
  role->attrs[ROLE_arm] = chain->last != NULL;
  chain->last = role;
  return enter_body(e, role->bodies[0], span, false);
}

// Where the threads of `set` go on: in a role, in a branch, or right here when they are all.
static Outside enter_set(Elab *e, Chain *chain, const TirThreadSet *set, int arm, Span span) {
  TirThreads range;
  if (tir_thread_range(set, &range)) return enter_role(e, chain, range, span);
  e->b.span = span;
  TirOp *branch = tir_if(&e->b, membership(e, chain, arm));
  return enter_body(e, branch->bodies[0], span, true);
}

static void remark_idle(Elab *e, const Chain *chain, Span span) {
  diag_remark(e->ds, span, "no thread runs this branch: the condition is false for threads %d to %d",
              chain->active.lo, chain->active.hi - 1);
}

// The arm for the threads of `set` that are left. An arm of all threads needs no branch.
static Flow exec_set(Elab *e, const Stmt *stmt, int index, Chain *chain, TirThreadSet *set) {
  intersect(set, &chain->rest);
  const Block *block = block_of(stmt, index);
  if (set_size(set) == tir_thread_count(chain->active)) {
    subtract(&chain->rest, set);
    return exec_block(e, block);
  }
  if (set_size(set) == 0) {
    if (index < stmt->branch.narms) remark_idle(e, chain, span_of(stmt, index));
    return FLOW_NEXT;
  }
  if (block->count == 0) return FLOW_NEXT;
  int arm = index < stmt->branch.narms ? chain->ntests - 1 : chain->ntests;
  Outside outside = enter_set(e, chain, set, arm, span_of(stmt, index));
  int jumps = e->frame->jumps;
  Flow flow = exec_block(e, block);
  note_flow(e, chain, flow, jumps, set, arm);
  leave_body(e, outside);
  return FLOW_NEXT;
}

// The arms from `index` on, whose conditions depend on more than the thread, for the threads that are left.
static void exec_rest(Elab *e, const Stmt *stmt, int index, Chain *chain) {
  if (set_size(&chain->rest) == 0) return;
  TirThreadSet rest = chain->rest;
  Outside outside = enter_set(e, chain, &rest, chain->ntests, span_of(stmt, index));
  int jumps = e->frame->jumps;
  Flow flow = exec_arms(e, stmt, index);
  note_flow(e, chain, flow, jumps, &rest, chain->ntests);
  leave_body(e, outside);
}

// What follows the branch, for the threads that have not left: in a role of theirs, or under a condition.
static Flow go_on(Elab *e, Chain *chain, Span span) {
  TirThreads range;
  if (chain->nleft == 0) return FLOW_NEXT;
  TirThreadSet left = whole(chain->active);
  subtract(&left, &chain->gone);
  if (set_size(&left) == 0) return FLOW_LEFT;
  e->b.span = span;
  if (tir_thread_range(&left, &range))
    elab_go_on_in(e, tir_role(&e->b, range)->bodies[0], span, false, !chain->unsettled);
  else
    elab_go_on_in(e, tir_if(&e->b, has_stayed(e, chain))->bodies[0], span, true, !chain->unsettled);
  return FLOW_NEXT;
}

typedef enum { ARM_FAILED, ARM_SET, ARM_OTHER } ArmKind;

// The set of an arm's condition. Other conditions are evaluated again, by the threads that come to them.
static ArmKind eval_arm(Elab *e, const IfArm *arm, const Chain *chain, TirThreadSet *set, TirValue **test) {
  TirOp *mark = e->b.block->last;
  bool truth;
  Value condition = eval(e, arm->condition);
  if (value_is_poison(&condition)) return ARM_FAILED;
  if (condition.kind != VALUE_BUFFER && condition.kind != VALUE_TILE) {
    if (elab_known_truth(&condition, &truth)) {
      *set = truth ? whole(chain->active) : (TirThreadSet){{false}};
      *test = tir_bool(&e->b, truth);
      return ARM_SET;
    }
    *test = staged_condition(e, &condition, arm->condition->span);
    if (!*test) return ARM_FAILED;
    if (chain->ntests < MAX_TESTS && tir_thread_set(*test, chain->active, set)) return ARM_SET;
  }
  while (e->b.block->last != mark) tir_remove(e->b.block->last);
  return ARM_OTHER;
}

// `else:` that holds one `if` and nothing else is `elif`.
static const Stmt *only_if(const Block *block) {
  return block->count == 1 && block->stmts[0]->kind == STMT_IF ? block->stmts[0] : NULL;
}

static Flow exec_chain(Elab *e, const Stmt *stmt, int index, TirValue *test, TirThreadSet *set) {
  Chain chain = {.active = elab_active(e)};
  Span span = span_of(stmt, index);
  TirThreads rest;
  chain.rest = whole(chain.active);
  for (;;) {
    chain.tests[chain.ntests++] = test;
    Flow flow = exec_set(e, stmt, index, &chain, set);
    subtract(&chain.rest, set);
    if (flow != FLOW_NEXT) return flow;
    if (set_size(&chain.rest) == 0) return go_on(e, &chain, span);
    if (++index == stmt->branch.narms) {
      const Stmt *more = only_if(&stmt->branch.otherwise);
      if (!more || tir_thread_range(&chain.rest, &rest)) break;
      stmt = more;
      index = 0;
    }
    ArmKind kind = eval_arm(e, &stmt->branch.arms[index], &chain, set, &test);
    if (kind == ARM_OTHER) exec_rest(e, stmt, index, &chain);
    if (kind != ARM_SET) return go_on(e, &chain, span);
  }
  *set = chain.rest;
  Flow flow = exec_set(e, stmt, stmt->branch.narms, &chain, set);
  return flow != FLOW_NEXT ? flow : go_on(e, &chain, span);
}

// ---- `thread condition and another condition`

// The set of the conjuncts that depend on the thread alone; the others, joined.
static bool split(Elab *e, TirValue *test, TirThreads active, TirThreadSet *set, TirValue **others) {
  TirThreadSet one;
  if (tir_thread_set(test, active, &one)) {
    intersect(set, &one);
    return true;
  }
  if (test->op->kind == OP_and && test->type.dtype == DTYPE_bool) {
    bool left = split(e, test->op->args[0], active, set, others);
    bool right = split(e, test->op->args[1], active, set, others);
    return left || right;
  }
  *others = *others ? tir_binary(&e->b, OP_and, *others, test) : test;
  return false;
}

static bool exec_split(Elab *e, const Stmt *stmt, int index, TirValue *test) {
  Chain chain = {.active = elab_active(e)};
  TirThreadSet set = whole(chain.active);
  TirThreads range;
  TirValue *others = NULL;
  bool last = index + 1 == stmt->branch.narms && stmt->branch.otherwise.count == 0;
  if (!last || !split(e, test, chain.active, &set, &others)) return false;
  if (!tir_thread_range(&set, &range) || tir_thread_count(range) == tir_thread_count(chain.active))
    return false;
  Outside outside = enter_role(e, &chain, range, span_of(stmt, index));
  exec_staged_if(e, stmt, index, others);
  leave_body(e, outside);
  return true;
}

// ---- all arms

bool elab_is_condition(Elab *e, const Value *condition, Span span) {
  if (condition->kind != VALUE_BUFFER && condition->kind != VALUE_TILE) return true;
  diag_error(e->ds, DIAG_value_kind, span, "a condition must be a number, not %s",
             value_describe(e->arena, condition));
  return false;
}

static Flow exec_staged(Elab *e, const Stmt *stmt, int index, const Value *condition) {
  const IfArm *arm = &stmt->branch.arms[index];
  TirThreadSet set;
  if (e->region->kind == REGION_HOST) {
    report_not_compile_time(e, condition, arm->condition->span, "a condition outside `with Kernel(…)`");
    return FLOW_NEXT;
  }
  TirValue *test = staged_condition(e, condition, arm->condition->span);
  if (!test || !elab_may_nest(e, arm->span)) return FLOW_NEXT;
  bool together = !e->region->thread_dependent;
  if (together && tir_thread_set(test, elab_active(e), &set)) return exec_chain(e, stmt, index, test, &set);
  if (together && exec_split(e, stmt, index, test)) return FLOW_NEXT;
  return exec_staged_if(e, stmt, index, test);
}

// The arms from `index` on, then `else`.
static Flow exec_arms(Elab *e, const Stmt *stmt, int index) {
  for (; index < stmt->branch.narms; index++) {
    const IfArm *arm = &stmt->branch.arms[index];
    bool truth;
    Value condition = eval(e, arm->condition);
    if (value_is_poison(&condition) || !elab_is_condition(e, &condition, arm->condition->span))
      return FLOW_NEXT;
    if (!elab_known_truth(&condition, &truth)) return exec_staged(e, stmt, index, &condition);
    if (truth) return exec_block(e, &arm->body);
  }
  return exec_block(e, &stmt->branch.otherwise);
}

Flow exec_if(Elab *e, const Stmt *stmt) {
  return exec_arms(e, stmt, 0);
}

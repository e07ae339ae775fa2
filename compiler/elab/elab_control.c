// Loops, and the jumps that leave them: break, continue, return.
//
// Tile IR is structured: every path of a body ends at its end. What a jump that the device decides on skips is put
// where it is skipped. In the usual case a branch ends with the jump, and the rest of the body simply goes into the
// other arm (elab_branch.c). Where a jump lies deeper, it clears a flag of each loop and function that it leaves, and
// what follows stands under an `if` on that flag. A loop that is left for good has a flag of its own, which it tests
// before each round.
//
// Neither form closes before the body does, so the names that the rest binds are those of the body itself. Only in a
// function or a compile-time loop, whose body ends in the middle of another, the rest is a region of its own.
#include "elab/elab_internal.h"

#include <inttypes.h>

#include "tir/ranges.h"
#include "tir/roles.h"

// ---- frames

void elab_frame_enter(Elab *e, Frame *frame, FrameKind kind) {
  *frame = (Frame){.outer = e->frame, .kind = kind, .region = e->region, .block = e->b.block};
  frame->begin = frame->first = (Position){e->b.block, e->b.block ? e->b.block->last : NULL};
  frame->around = e->region;
  e->frame = frame;
}

void elab_frame_leave(Elab *e, const Frame *frame) {
  e->b.block = frame->block;
  e->region = frame->around;
  e->frame = frame->outer;
}

static TirValue *make_flag(Elab *e, TirBuilder b, const char *name, Span span) {
  b.span = span;
  return tir_cell(&b, intern(e->names, name), DTYPE_bool, tir_bool(&b, true));
}

// A flag that holds true from `at` on.
static TirValue *flag_at(Elab *e, Position at, const char *name, Span span) {
  TirBuilder b = tir_builder_at_end(e->module, at.block, span);
  b.before = at.op ? at.op->next : at.block->first;
  return make_flag(e, b, name, span);
}

static void clear_flag(Elab *e, TirValue *flag) {
  tir_set(&e->b, flag, tir_bool(&e->b, false));
}

// A body ends where its frame does, or in the middle of another body.
static bool has_own_region(const Frame *frame) {
  return frame->kind == FRAME_LOOP || frame->kind == FRAME_PARALLEL || frame->kind == FRAME_KERNEL;
}

bool elab_is_settled(const Elab *e, int jumps) {
  const Frame *frame = e->frame;
  return frame->jumps == jumps || (frame->settled == e->b.block && frame->settled_jumps == frame->jumps);
}

void elab_go_on_in(Elab *e, TirBlock *block, Span span, bool dependent, bool settled) {
  const Frame *frame = e->frame;
  e->b.block = block;
  if (!has_own_region(frame) && e->region == frame->region)
    elab_region_push(e, frame->kind == FRAME_FUNCTION ? REGION_REST : REGION_BRANCH, span, dependent);
  if (dependent && !e->region->thread_dependent) {
    e->region->thread_dependent = true;
    e->region->parted = span;
  }
  e->frame->settled = settled ? block : NULL;
  e->frame->settled_jumps = frame->jumps;
}

static TirOp *branch_on(Elab *e, TirValue *flag, Span span, bool *dependent) {
  e->b.span = span;
  TirValue *goes_on = tir_get(&e->b, flag);
  *dependent = tir_differs_among(goes_on, elab_active(e));
  return tir_if(&e->b, goes_on);
}

void elab_before_statement(Elab *e, int *jumps, Span span) {
  bool settled = elab_is_settled(e, *jumps), dependent;
  *jumps = e->frame->jumps;
  if (settled || !elab_may_nest(e, span)) return;
  TirOp *branch = branch_on(e, e->frame->runs, span, &dependent);
  elab_go_on_in(e, branch->bodies[0], span, dependent, true);
}

// ---- jumps

// Whether what follows the jump in this frame's body is skipped without a flag: it is nothing, or goes into the other
// arm of the branch that the jump stands in.
static bool is_skipped(const Elab *e, const Frame *frame) {
  const Region *region = e->region;
  if (frame != e->frame) return false;
  if (region != frame->region && region->kind == REGION_BRANCH) region = region->parent;
  while (region != frame->region && region->kind == REGION_REST) region = region->parent;
  return region == frame->region;
}

static TirValue *loop_flag(Elab *e, Frame *frame, Span span) {
  if (frame->go) return frame->go;
  if (frame->kind == FRAME_UNROLLED) return flag_at(e, frame->first, "go", span);
  return make_flag(e, tir_builder_before(e->module, frame->loops[0]), "go", span);
}

static void leave_for_good(Elab *e, Frame *frame, Span span) {
  if (frame->kind == FRAME_FUNCTION || frame->kind == FRAME_KERNEL) return;
  frame->go = loop_flag(e, frame, span);
  for (int i = 0; i < frame->nloops; i++)
    if (frame->loops[i]->kind == OP_for) frame->loops[i]->args[FOR_GO] = frame->go;
  clear_flag(e, frame->go);
  frame->broken = true;
}

static void leave_body(Elab *e, Frame *frame, Span span) {
  if (is_skipped(e, frame)) return;
  if (!frame->runs) frame->runs = flag_at(e, frame->begin, "runs", span);
  clear_flag(e, frame->runs);
  frame->jumps++;
}

// Leaves the frames around up to `target`: those inside it for good.
static Flow jump(Elab *e, Frame *target, bool for_good, Span span) {
  e->b.span = span;
  for (Frame *frame = e->frame;; frame = frame->outer) {
    leave_body(e, frame, span);
    if (for_good || frame != target) leave_for_good(e, frame, span);
    if (frame == target) return FLOW_LEFT;
  }
}

// Whether nothing that the device decides lies between the start of the frame's body and here.
static bool is_known_to_run(const Elab *e, const Frame *frame) {
  return e->region == frame->region && e->b.block == frame->begin.block;
}

static Flow refuse_in_parallel(Elab *e, const Frame *parallel, Span span, const char *word) {
  diag_error(e->ds, DIAG_placement, span,
             "'%s' cannot stand in Parallel: its iterations have no order, so none can end the others", word);
  diag_note(e->ds, parallel->region->span, "Parallel is here");
  diag_hint(e->ds, "use a serial loop, or 'continue' to skip an iteration");
  return FLOW_NEXT;
}

Flow exec_jump(Elab *e, bool is_break, Span span) {
  Frame *frame = e->frame;
  if (frame->kind == FRAME_FUNCTION || frame->kind == FRAME_KERNEL) {
    diag_error(e->ds, DIAG_placement, span, "'%s' stands outside a loop", is_break ? "break" : "continue");
    return FLOW_NEXT;
  }
  if (frame->kind == FRAME_PARALLEL && is_break) return refuse_in_parallel(e, frame, span, "break");
  if (frame->kind == FRAME_UNROLLED && is_known_to_run(e, frame))
    return is_break ? FLOW_BREAK : FLOW_CONTINUE;
  return jump(e, frame, is_break, span);
}

// A function that the device may leave in several ways has no value: that would be another one for each way.
static void refuse_value(Elab *e, const Stmt *stmt, Frame *frame) {
  if (frame->refused) return;
  frame->refused = true;
  if (frame->kind == FRAME_KERNEL) {
    diag_error(e->ds, DIAG_kernel_form, stmt->span, "a kernel returns nothing from inside a loop or branch");
    return;
  }
  diag_error(e->ds, DIAG_staged_assignment, stmt->span,
             "a value is returned where the device decides whether to return");
  if (e->region != frame->region) diag_note(e->ds, e->region->span, "the loop or branch is here");
  diag_hint(e->ds, "return one value at the end: result = alloc_var(dtype, init=…), set in each branch");
}

Flow exec_return(Elab *e, const Stmt *stmt) {
  Frame *target = e->frame;
  bool known = true;
  for (; target->kind != FRAME_FUNCTION && target->kind != FRAME_KERNEL; target = target->outer)
    if (target->kind == FRAME_PARALLEL) return refuse_in_parallel(e, target, stmt->span, "return");
  for (const Frame *frame = e->frame; frame != target; frame = frame->outer)
    known = known && frame->kind == FRAME_UNROLLED;
  e->returned = stmt->value ? eval(e, stmt->value) : value_none();
  if (known && is_known_to_run(e, target)) return FLOW_RETURN;
  if (e->returned.kind != VALUE_NONE && !value_is_poison(&e->returned)) refuse_value(e, stmt, target);
  e->returned = value_none();
  return jump(e, target, true, stmt->span);
}

// ---- compile-time loops

// The next turn begins where the loop does; once some path may have left the loop, under its flag.
static void begin_turn(Elab *e, Frame *frame, Span span) {
  bool dependent = false;
  frame->begin.block = frame->block;
  if (frame->broken && elab_may_nest(e, span)) {
    frame->begin.block = branch_on(e, frame->go, span, &dependent)->bodies[0];
    frame->region = elab_region_push(e, REGION_BRANCH, span, dependent);
  }
  e->b.block = frame->begin.block;
  frame->begin.op = e->b.block->last;
  frame->runs = NULL;
}

static void end_turn(Elab *e, Frame *frame) {
  e->b.block = frame->block;
  e->region = frame->region = frame->around;
}

static Flow exec_turn(Elab *e, Frame *frame, const Block *body, Span span) {
  begin_turn(e, frame, span);
  Flow flow = exec_block(e, body);
  end_turn(e, frame);
  return flow;
}

static bool ends_loop(Flow flow) {
  return flow == FLOW_BREAK || flow == FLOW_RETURN;
}

static Flow exec_unrolled(Elab *e, const Stmt *stmt, const Value *items, int count) {
  Frame frame;
  Flow flow = FLOW_NEXT;
  elab_frame_enter(e, &frame, FRAME_UNROLLED);
  for (int i = 0; i < count && !e->stopped && !ends_loop(flow); i++) {
    if (!elab_step(e, stmt->span)) break;
    assign_target(e, stmt->loop.target, &items[i]);
    flow = exec_turn(e, &frame, &stmt->loop.body, stmt->span);
  }
  elab_frame_leave(e, &frame);
  return flow == FLOW_RETURN ? FLOW_RETURN : FLOW_NEXT;
}

// ---- loops of the device

static void bind_variable(Elab *e, const Expr *target, TirValue *variable) {
  if (target->kind != EXPR_NAME) {
    diag_error(e->ds, DIAG_value_kind, target->span, "this loop has one variable");
    return;
  }
  if (variable->op->kind != OP_const) variable->name = target->name;
  scope_bind(e->scope, target->name, value_staged(variable), e->region, target->span);
}

static void bind_variables(Elab *e, const Expr *target, TirValue *const *variables, int count) {
  if (count == 1 && target->kind == EXPR_NAME) {
    bind_variable(e, target, variables[0]);
    return;
  }
  bool tuple = target->kind == EXPR_TUPLE || target->kind == EXPR_LIST;
  if (!tuple || target->elements.count != count) {
    diag_error(e->ds, DIAG_value_kind, target->span, "%d loop variable%s for %d extent%s",
               tuple ? target->elements.count : 1, tuple && target->elements.count != 1 ? "s" : "", count,
               count == 1 ? "" : "s");
    e->stopped = e->stopped || diags_at_limit(e->ds);
    const Value poison = value_poison();
    for (int i = 0; tuple && i < target->elements.count; i++)
      assign_target(e, target->elements.items[i], &poison);
    if (!tuple) assign_target(e, target, &poison);
    return;
  }
  for (int i = 0; i < count; i++) bind_variable(e, target->elements.items[i], variables[i]);
}

// A step of 0 is refused now or at launch; one that the device computes has no round then.
static bool check_step(Elab *e, TirValue *step, Span span) {
  int64_t number;
  TirRange range = tir_known_range(step);
  if (range.lo > 0 || range.hi < 0) return true;
  if (!tir_const_int(step, &number)) {
    e->b.span = span;
    if (tir_in_launch(step))
      launch_check(e, tir_binary(&e->b, OP_ne, step, tir_int(&e->b, 0)), span,
                   "the step of a loop must not be 0");
    return true;
  }
  diag_error(e->ds, DIAG_arithmetic, span, "the step of a loop is 0");
  return false;
}

static bool loop_varies(Elab *e, const TirOp *op) {
  for (int i = 0; i < op->nargs; i++)
    if (op->args[i] && tir_differs_among(op->args[i], elab_active(e))) return true;
  return false;
}

// The body of a loop, from inside to outside: `loops` are those of one `for`, the last innermost.
static void enter_loop(Elab *e, Frame *frame, TirOp *op, Span span) {
  bool parallel = op->kind == OP_parallel;
  frame->region =
      elab_region_push(e, parallel ? REGION_PARALLEL : REGION_LOOP, span, parallel || loop_varies(e, op));
  frame->begin = (Position){op->bodies[0], NULL};
  frame->loops[frame->nloops++] = op;
  e->b.block = op->bodies[0];
}

static bool open_loop(Elab *e, Frame *frame, const LoopSpec *loop, const Stmt *stmt) {
  Span span = stmt->loop.iterable->span;
  TirValue *lo = staged_index(e, loop->lo, span, "the first value of a loop");
  TirValue *hi = lo ? staged_index(e, loop->hi, span, "the bound of a loop") : NULL;
  TirValue *step = hi ? staged_index(e, loop->step, span, "the step of a loop") : NULL;
  if (!step || !check_step(e, step, span)) return false;
  e->b.span = stmt->span;
  TirOp *op = tir_for(&e->b, loop->kind, lo, hi, step);
  op->attrs[FOR_stages] = loop->stages;
  enter_loop(e, frame, op, stmt->span);
  return true;
}

// grid(a, b, …): serial loops, the last innermost.
static int open_grid(Elab *e, Frame *frame, const LoopSpec *loop, const Stmt *stmt, TirValue **variables) {
  Value zero = value_int(0), one = value_int(1);
  for (int i = 0; i < loop->nextents; i++) {
    LoopSpec level = {.kind = LOOP_SERIAL, .lo = &zero, .hi = &loop->extents[i], .step = &one};
    if (!open_loop(e, frame, &level, stmt)) return 0;
    variables[i] = frame->loops[i]->results[0];
  }
  return loop->nextents;
}

static int open_parallel(Elab *e, Frame *frame, const LoopSpec *loop, const Stmt *stmt,
                         TirValue **variables) {
  TirValue *extents[TYPE_MAX_RANK];
  if (!elab_placed(e, stmt->span, "Parallel", true)) return 0;
  for (int i = 0; i < loop->nextents; i++) {
    extents[i] = staged_index(e, &loop->extents[i], stmt->span, "an extent of Parallel");
    if (!extents[i]) return 0;
  }
  e->b.span = stmt->span;
  TirOp *op = tir_parallel(&e->b, loop->nextents, extents);
  frame->kind = FRAME_PARALLEL;
  enter_loop(e, frame, op, stmt->span);
  for (int i = 0; i < loop->nextents; i++) variables[i] = op->results[i];
  return loop->nextents;
}

// The number of variables; 0: reported.
static int open_device_loop(Elab *e, Frame *frame, const LoopSpec *loop, const Stmt *stmt,
                            TirValue **variables) {
  if (loop->parallel) return open_parallel(e, frame, loop, stmt, variables);
  if (loop->grid) return open_grid(e, frame, loop, stmt, variables);
  if (!open_loop(e, frame, loop, stmt)) return 0;
  if (loop->persistent) {
    schedule_coordinates(e, loop, frame->loops[0]->results[0], variables);
    return loop->nextents;
  }
  variables[0] = frame->loops[0]->results[0];
  return 1;
}

static void exec_device_loop(Elab *e, const Stmt *stmt, const LoopSpec *loop) {
  Frame frame;
  TirValue *variables[TYPE_MAX_RANK];
  elab_frame_enter(e, &frame, FRAME_LOOP);
  int count = open_device_loop(e, &frame, loop, stmt, variables);
  if (count > 0) {
    bind_variables(e, stmt->loop.target, variables, count);
    exec_block(e, &stmt->loop.body);
  }
  elab_frame_leave(e, &frame);
}

static bool runs_now(Elab *e, const LoopSpec *range) {
  bool known = range->lo->kind == VALUE_INT && range->hi->kind == VALUE_INT && range->step->kind == VALUE_INT;
  return e->region->kind == REGION_HOST || (e->python_range && known);
}

static bool may_loop(Elab *e, Span span) {
  return elab_placed(e, span, "a loop that runs on the device", false) && elab_may_nest(e, span);
}

Flow exec_for(Elab *e, const Stmt *stmt) {
  const Value *items;
  int count;
  if (stmt->loop.otherwise.count > 0) elab_not_supported(e, stmt->span, "'else' of a loop");
  Value iterable = eval_raw(e, stmt->loop.iterable);
  if (value_is_poison(&iterable)) return FLOW_NEXT;
  bool staged = iterable.kind == VALUE_LOOP || (iterable.kind == VALUE_RANGE && !runs_now(e, iterable.loop));
  if (staged) {
    if (may_loop(e, stmt->span)) exec_device_loop(e, stmt, iterable.loop);
    return FLOW_NEXT;
  }
  if (!eval_iterable(e, &iterable, stmt->loop.iterable->span, &items, &count)) return FLOW_NEXT;
  return exec_unrolled(e, stmt, items, count);
}

// ---- while

static bool read_condition(Elab *e, const Expr *expr, Value *out) {
  *out = eval(e, expr);
  return !value_is_poison(out) && elab_is_condition(e, out, expr->span);
}

static Flow exec_unrolled_while(Elab *e, const Stmt *stmt, bool truth) {
  Frame frame;
  Flow flow = FLOW_NEXT;
  elab_frame_enter(e, &frame, FRAME_UNROLLED);
  while (truth && !e->stopped && elab_step(e, stmt->span)) {
    Value condition;
    flow = exec_turn(e, &frame, &stmt->while_loop.body, stmt->span);
    if (ends_loop(flow) || e->stopped || !read_condition(e, stmt->while_loop.condition, &condition)) break;
    if (elab_known_truth(&condition, &truth)) continue;
    report_not_compile_time(e, &condition, stmt->while_loop.condition->span,
                            "the condition of a loop that began at compile time");
    break;
  }
  elab_frame_leave(e, &frame);
  return flow == FLOW_RETURN ? FLOW_RETURN : FLOW_NEXT;
}

// The condition once more, at the end of a round; a round that has left the loop does not ask.
static void test_again(Elab *e, Frame *frame, const Expr *expr) {
  Value condition;
  bool dependent;
  e->b.block = frame->begin.block;
  e->region = frame->region;
  if (frame->broken) e->b.block = branch_on(e, frame->go, expr->span, &dependent)->bodies[0];
  if (!read_condition(e, expr, &condition)) return;
  TirValue *test = staged_condition(e, &condition, expr->span);
  e->b.span = expr->span;
  if (test) tir_set(&e->b, frame->go, test);
}

// `test` NULL: `while True`.
static void exec_device_while(Elab *e, const Stmt *stmt, TirValue *test) {
  Frame frame;
  const Expr *condition = stmt->while_loop.condition;
  elab_frame_enter(e, &frame, FRAME_LOOP);
  e->b.span = stmt->span;
  frame.go = tir_cell(&e->b, intern(e->names, "go"), DTYPE_bool, test ? test : tir_bool(&e->b, true));
  enter_loop(e, &frame, tir_while(&e->b, frame.go), stmt->span);
  int errors = diags_errors(e->ds);
  exec_block(e, &stmt->while_loop.body);
  if (test) {
    test_again(e, &frame, condition);
  } else if (!frame.broken && diags_errors(e->ds) == errors && !e->stopped) {
    diag_error(e->ds, DIAG_endless_loop, stmt->span,
               "this loop never ends: its condition is always true, and nothing inside leaves it");
    diag_hint(e->ds, "leave it with: if …: break");
  }
  elab_frame_leave(e, &frame);
}

// In a kernel, a condition that is literally true makes a loop of the device.
static bool is_endless(Elab *e, const Expr *condition) {
  bool truth = condition->kind == EXPR_TRUE || (condition->kind == EXPR_INT && condition->integer != 0);
  return truth && e->region->kind != REGION_HOST && !e->python_range;
}

Flow exec_while(Elab *e, const Stmt *stmt) {
  const Expr *expr = stmt->while_loop.condition;
  Value condition = value_none();
  bool truth, endless = is_endless(e, expr);
  TirValue *test = NULL;
  if (stmt->while_loop.otherwise.count > 0) elab_not_supported(e, stmt->span, "'else' of a loop");
  if (!endless && !read_condition(e, expr, &condition)) return FLOW_NEXT;
  if (!endless && elab_known_truth(&condition, &truth)) return exec_unrolled_while(e, stmt, truth);
  if (!may_loop(e, stmt->span)) return FLOW_NEXT;
  if (!endless && !(test = staged_condition(e, &condition, expr->span))) return FLOW_NEXT;
  exec_device_while(e, stmt, test);
  return FLOW_NEXT;
}

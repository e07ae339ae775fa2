// Control flow: blocks of ops, loops, branches, the one-thread region.
//
// Loops stay rolled, in the form "test, body, step, test", so that LICM has a place to hoist to; an unroll
// loop of constant trip count is unrolled here, as long as that makes no more than MAX_UNROLLED_OPS ops: LLVM
// and ptxas take longer than linearly for long straight code. Where some lanes of a warp may have skipped a
// region, the warp is made to meet again before any instruction that wants it whole (rules S9).
#include "codegen/cg.h"

#include "codegen/nvvm.h"
#include "passes/hazards.h"
#include "tir/ranges.h"

enum { MAX_UNROLL = 64, MAX_UNROLLED_OPS = 4096, MAX_STRAIGHT_OPS = 16384, WARP = 32, WARP_BITS = 5 };

static void emit_op(Cg *cg, const TirOp *op) {
  CgEmit emit = cg_find_emit(cg->emitters, op->kind, op_path(op));
  if (!emit) {
    cg_unsupported(cg, op, op_path(op) ? "the target has no such path" : "the target has no such operation");
    return;
  }
  cg_debug_location(cg, op->span);
  emit(cg, op);
}

void cg_block(Cg *cg, const TirBlock *block) {
  for (const TirOp *op = block->first; op && !cg->failed; op = op->next) emit_op(cg, op);
}

LLVMBasicBlockRef cg_new_block(Cg *cg, const char *name) {
  return LLVMAppendBasicBlockInContext(cg->context, cg->function, name);
}

LLVMValueRef cg_alloca(Cg *cg, LLVMTypeRef type, const char *name) {
  LLVMBasicBlockRef here = LLVMGetInsertBlock(cg->builder);
  LLVMPositionBuilderAtEnd(cg->builder, cg->entry);
  LLVMValueRef slot = LLVMBuildAlloca(cg->builder, type, name);
  LLVMPositionBuilderAtEnd(cg->builder, here);
  return slot;
}

CgIf cg_begin_if(Cg *cg, LLVMValueRef condition) {
  CgIf branch = {NULL};
  if (!condition) return branch;
  LLVMBasicBlockRef then = cg_new_block(cg, "then");
  branch.after = cg_new_block(cg, "after");
  LLVMBuildCondBr(cg->builder, condition, then, branch.after);
  LLVMPositionBuilderAtEnd(cg->builder, then);
  return branch;
}

void cg_end_if(Cg *cg, CgIf branch) {
  if (!branch.after) return;
  LLVMBuildBr(cg->builder, branch.after);
  LLVMPositionBuilderAtEnd(cg->builder, branch.after);
}

// One of two answers, by the sign of the step; neither for a step of 0. The answer that cannot be asked for is NULL.
static LLVMValueRef by_direction(Cg *cg, const CgLoop *loop, LLVMValueRef up, LLVMValueRef down) {
  LLVMBuilderRef b = cg->builder;
  if (!up || !down) return up ? up : down;
  LLVMValueRef zero = cg_i32(cg, 0);
  LLVMValueRef rises = LLVMBuildAnd(b, LLVMBuildICmp(b, LLVMIntSGT, loop->step, zero, ""), up, "");
  LLVMValueRef falls = LLVMBuildAnd(b, LLVMBuildICmp(b, LLVMIntSLT, loop->step, zero, ""), down, "");
  return LLVMBuildOr(b, rises, falls, "");
}

static LLVMValueRef before_end(Cg *cg, const CgLoop *loop, LLVMValueRef index) {
  bool up = loop->direction != CG_DOWN, down = loop->direction != CG_UP;
  return by_direction(cg, loop, up ? LLVMBuildICmp(cg->builder, LLVMIntSLT, index, loop->hi, "") : NULL,
                      down ? LLVMBuildICmp(cg->builder, LLVMIntSGT, index, loop->hi, "") : NULL);
}

static LLVMValueRef and_go(Cg *cg, LLVMValueRef condition, LLVMValueRef go) {
  if (!go) return condition;
  return LLVMBuildAnd(cg->builder, condition, LLVMBuildLoad2(cg->builder, cg->i1, go, ""), "");
}

CgLoop cg_thread_loop(Cg *cg, LLVMValueRef total) {
  int64_t end = 0, by = tir_thread_count(cg->active);
  bool wraps = cg_const(total, &end) && end + by > INT32_MAX;
  return (CgLoop){.lo = cg->position, .hi = total, .step = cg_i32(cg, by), .may_wrap = wraps};
}

CgLoop cg_begin_loop(Cg *cg, CgLoop loop) {
  loop.body = cg_new_block(cg, "loop");
  loop.after = cg_new_block(cg, "done");
  LLVMBasicBlockRef before = LLVMGetInsertBlock(cg->builder);
  LLVMValueRef first = loop.enters ? LLVMConstInt(cg->i1, 1, false) : before_end(cg, &loop, loop.lo);
  LLVMValueRef enter = and_go(cg, first, loop.go);
  LLVMBuildCondBr(cg->builder, enter, loop.body, loop.after);
  LLVMPositionBuilderAtEnd(cg->builder, loop.body);
  loop.index = LLVMBuildPhi(cg->builder, cg->i32, "");
  LLVMAddIncoming(loop.index, &loop.lo, &before, 1);
  return loop;
}

// ptxas unrolls small loops by itself; the loops of tile ops it must leave alone.
static void forbid_unrolling(Cg *cg, LLVMValueRef branch) {
  LLVMMetadataRef name = LLVMMDStringInContext2(cg->context, "llvm.loop.unroll.disable", 24);
  LLVMMetadataRef placeholder = LLVMTemporaryMDNode(cg->context, NULL, 0);
  LLVMMetadataRef operands[] = {placeholder, LLVMMDNodeInContext2(cg->context, &name, 1)};
  LLVMMetadataRef loop = LLVMMDNodeInContext2(cg->context, operands, 2);
  LLVMMetadataReplaceAllUsesWith(placeholder, loop);  // a loop's node names itself first
  LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(cg->context, "llvm.loop", 9),
                  LLVMMetadataAsValue(cg->context, loop));
}

// Where the next index may leave i32, what is left is compared with the step: in the body both ends are apart.
static LLVMValueRef goes_on(Cg *cg, const CgLoop *loop, LLVMValueRef next) {
  LLVMBuilderRef b = cg->builder;
  if (!loop->may_wrap) return before_end(cg, loop, next);
  LLVMValueRef up = NULL, down = NULL;
  if (loop->direction != CG_DOWN) {
    LLVMValueRef left = LLVMBuildSub(b, loop->hi, loop->index, "");
    up = LLVMBuildICmp(b, LLVMIntUGT, left, loop->step, "");
  }
  if (loop->direction != CG_UP) {
    LLVMValueRef left = LLVMBuildSub(b, loop->index, loop->hi, ""), step = LLVMBuildNeg(b, loop->step, "");
    down = LLVMBuildICmp(b, LLVMIntUGT, left, step, "");
  }
  return by_direction(cg, loop, up, down);
}

static LLVMValueRef end_loop(Cg *cg, CgLoop loop) {
  LLVMValueRef next = LLVMBuildAdd(cg->builder, loop.index, loop.step, "");
  LLVMValueRef again = and_go(cg, goes_on(cg, &loop, next), loop.go);
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(cg->builder);
  LLVMValueRef branch = LLVMBuildCondBr(cg->builder, again, loop.body, loop.after);
  LLVMAddIncoming(loop.index, &next, &latch, 1);
  LLVMPositionBuilderAtEnd(cg->builder, loop.after);
  return branch;
}

void cg_end_loop(Cg *cg, CgLoop loop) {
  end_loop(cg, loop);
}

static bool visit_tile_op(void *context, TirOp *op) {
  (void)context;
  return op_def(op->kind)->group != GROUP_TILE && op->kind != OP_parallel;
}

static bool is_large(const TirOp *loop) {
  return !tir_walk(loop->bodies[0], visit_tile_op, NULL);
}

static int64_t count_trips(int64_t lo, int64_t hi, int64_t step) {
  int64_t trips = step > 0 ? (hi - lo + step - 1) / step : (lo - hi - step - 1) / -step;
  return trips > 0 ? trips : 0;
}

// How often an unroll loop repeats its body in the code; 1 when it stays a loop.
static int64_t copies_of(const TirOp *op) {
  int64_t lo, hi, step;
  if (op->kind != OP_for || op->attrs[FOR_kind] != LOOP_UNROLL || op->args[FOR_GO]) return 1;
  if (!tir_const_int(op->args[FOR_LO], &lo) || !tir_const_int(op->args[FOR_HI], &hi)) return 1;
  if (!tir_const_int(op->args[FOR_STEP], &step) || step == 0) return 1;
  int64_t trips = count_trips(lo, hi, step);
  return trips <= MAX_UNROLL ? trips : 1;
}

static int64_t ops_in(const TirBlock *block) {
  int64_t sum = 0;
  for (const TirOp *op = block->first; op && sum <= MAX_UNROLLED_OPS; op = op->next) {
    int64_t inside = 0;
    for (int i = 0; i < op->nbodies; i++) inside += ops_in(op->bodies[i]);
    int64_t copies = copies_of(op);
    sum += 1 + (inside * copies <= MAX_UNROLLED_OPS ? inside * copies : inside);
  }
  return sum;
}

static bool may_repeat(const TirBlock *body, int64_t times, int64_t limit) {
  return times <= limit && ops_in(body) * times <= limit;
}

bool cg_may_repeat(const TirBlock *body, int64_t times) {
  return may_repeat(body, times, MAX_STRAIGHT_OPS);
}

static bool unroll(Cg *cg, const TirOp *op) {
  int64_t lo = 0, hi = 0, step = 0;
  if (op->attrs[FOR_kind] != LOOP_UNROLL) return false;
  if (op->args[FOR_GO] || !cg_const(cg_value(cg, op->args[FOR_LO]), &lo) ||
      !cg_const(cg_value(cg, op->args[FOR_HI]), &hi) || !cg_const(cg_value(cg, op->args[FOR_STEP]), &step)) {
    diag_remark(cg->ds, op->span, "the loop stays rolled: how often it runs is not known at compile time");
    return false;
  }
  int64_t trips = count_trips(lo, hi, step);
  if (trips > MAX_UNROLL || !may_repeat(op->bodies[0], trips, MAX_UNROLLED_OPS)) {
    diag_remark(cg->ds, op->span, "the loop stays rolled: unrolled, its body would be too long");
    return false;
  }
  for (int64_t i = 0; i < trips; i++) {
    cg_set_value(cg, op->results[0], cg_i32(cg, lo + i * step));
    cg_block(cg, op->bodies[0]);
  }
  return true;
}

static bool visit_wait(void *context, TirOp *op) {
  (void)context;
  return op->kind != OP_mbarrier_wait_parity;
}

static bool contains_wait(const TirBlock *block) {
  return !tir_walk((TirBlock *)block, visit_wait, NULL);
}

// Direction and bounds of a loop; whether the step after the last round may lead past the end of i32.
static CgLoop loop_of(Cg *cg, const TirOp *op) {
  TirRange lo = tir_known_range(op->args[FOR_LO]), hi = tir_known_range(op->args[FOR_HI]),
           step = tir_known_range(op->args[FOR_STEP]);
  CgLoop loop = {.lo = cg_value(cg, op->args[FOR_LO]), .hi = cg_value(cg, op->args[FOR_HI])};
  loop.step = cg_value(cg, op->args[FOR_STEP]);
  loop.go = op->args[FOR_GO] ? cg->storage[op->args[FOR_GO]->id] : NULL;
  loop.direction = step.lo > 0 ? CG_UP : step.hi < 0 ? CG_DOWN : CG_EITHER;
  loop.enters = loop.direction == CG_UP && lo.hi < hi.lo;
  loop.may_wrap = (loop.direction != CG_DOWN && hi.hi > INT32_MAX - (step.hi - 1)) ||
                  (loop.direction != CG_UP && hi.lo < INT32_MIN - (step.lo + 1));
  return loop;
}

static bool control_varies(const Cg *cg, const TirOp *op) {
  for (int i = 0; i < op->nargs; i++)
    if (op->args[i] && tir_differs_among(op->args[i], cg->active)) return true;
  return false;
}

static void loop_body(Cg *cg, const TirOp *op, bool varies) {
  cg->divergent += varies;
  cg_block(cg, op->bodies[0]);
  cg->divergent -= varies;
}

static void after_loop(Cg *cg, const TirOp *op, LLVMValueRef branch, bool varies) {
  if (is_large(op)) forbid_unrolling(cg, branch);
  if (varies && cg->divergent == 0 && contains_wait(op->bodies[0])) nvvm_warp_sync(cg, ALL_LANES);
}

void emit_for(Cg *cg, const TirOp *op) {
  if (unroll(cg, op)) return;
  bool varies = control_varies(cg, op);
  CgLoop loop = cg_begin_loop(cg, loop_of(cg, op));
  cg_set_value(cg, op->results[0], loop.index);
  loop_body(cg, op, varies);
  if (!cg->failed) after_loop(cg, op, end_loop(cg, loop), varies);
}

// Tested before the first round and after each.
void emit_while(Cg *cg, const TirOp *op) {
  bool varies = control_varies(cg, op);
  LLVMValueRef go = cg->storage[op->args[0]->id];
  LLVMBasicBlockRef body = cg_new_block(cg, "loop"), after = cg_new_block(cg, "done");
  LLVMBuildCondBr(cg->builder, LLVMBuildLoad2(cg->builder, cg->i1, go, ""), body, after);
  LLVMPositionBuilderAtEnd(cg->builder, body);
  loop_body(cg, op, varies);
  if (cg->failed) return;
  LLVMValueRef branch =
      LLVMBuildCondBr(cg->builder, LLVMBuildLoad2(cg->builder, cg->i1, go, ""), body, after);
  LLVMPositionBuilderAtEnd(cg->builder, after);
  after_loop(cg, op, branch, varies);
}

void emit_if(Cg *cg, const TirOp *op) {
  bool varies = tir_differs_among(op->args[0], cg->active);
  bool has_else = op->bodies[1]->first != NULL;
  LLVMBasicBlockRef then = cg_new_block(cg, "then"), after = cg_new_block(cg, "after");
  LLVMBasicBlockRef otherwise = has_else ? cg_new_block(cg, "else") : after;
  LLVMBuildCondBr(cg->builder, cg_value(cg, op->args[0]), then, otherwise);
  cg->divergent += varies;
  for (int i = 0; i <= has_else; i++) {
    LLVMPositionBuilderAtEnd(cg->builder, i == 0 ? then : otherwise);
    cg_block(cg, op->bodies[i]);
    LLVMBuildBr(cg->builder, after);
  }
  cg->divergent -= varies;
  LLVMPositionBuilderAtEnd(cg->builder, after);
  if (varies && cg->divergent == 0 && (contains_wait(op->bodies[0]) || contains_wait(op->bodies[1])))
    nvvm_warp_sync(cg, ALL_LANES);
}

// ---- threads

static bool visit_role(void *context, TirOp *op) {
  (void)context;
  return op->kind != OP_role;
}

void cg_flow_begin(Cg *cg) {
  cg->thread = cg->position = nvvm_thread_idx(cg);
  cg->active = (TirThreads){0, cg->kernel->threads};
  cg->warp = NULL;
  cg->arms_end = NULL;
  if (!tir_walk(cg->kernel->body, visit_role, NULL))
    cg->warp = nvvm_shfl_idx(cg, LLVMBuildLShr(cg->builder, cg->thread, cg_i32(cg, WARP_BITS), ""), 0);
}

// lo <= number < hi, of a number that lies in `around`.
static LLVMValueRef lies_in(Cg *cg, LLVMValueRef number, TirThreads range, TirThreads around) {
  LLVMValueRef lo = cg_i32(cg, range.lo), hi = cg_i32(cg, range.hi),
               count = cg_i32(cg, tir_thread_count(range));
  if (tir_thread_count(range) == 1) return LLVMBuildICmp(cg->builder, LLVMIntEQ, number, lo, "");
  if (range.lo == around.lo) return LLVMBuildICmp(cg->builder, LLVMIntULT, number, hi, "");
  if (range.hi == around.hi) return LLVMBuildICmp(cg->builder, LLVMIntUGE, number, lo, "");
  return LLVMBuildICmp(cg->builder, LLVMIntULT, LLVMBuildSub(cg->builder, number, lo, ""), count, "");
}

static bool is_whole_warps(TirThreads threads) {
  return threads.lo % WARP == 0 && threads.hi % WARP == 0;
}

static TirThreads warps_of(TirThreads threads) {
  return (TirThreads){threads.lo / WARP, (threads.hi + WARP - 1) / WARP};
}

static TirThreads threads_of(const TirOp *role) {
  return (TirThreads){(int)role->attrs[ROLE_lo], (int)role->attrs[ROLE_hi]};
}

// Whether the next op is another arm of the branch, both of whole warps: then this arm's threads go past it.
static bool has_next_arm(const TirOp *role) {
  const TirOp *next = role->next;
  return next && next->kind == OP_role && next->attrs[ROLE_arm] && is_whole_warps(threads_of(role)) &&
         is_whole_warps(threads_of(next));
}

// Whether this arm is for all threads that the arms before it are not for.
static bool is_rest(const TirOp *role, TirThreads all) {
  int rest = tir_thread_count(all);
  for (const TirOp *arm = role;; arm = arm->prev) {
    rest -= tir_thread_count(threads_of(arm));
    if (!arm->attrs[ROLE_arm] || !arm->prev || !has_next_arm(arm->prev)) return rest == 0;
  }
}

// Arms become one chain of branches: ptxas looks for set_max_nreg in the arms of one, and takes what stands in a second
// branch behind it for divergent (C7518).
static void end_arm(Cg *cg, CgIf branch, LLVMBasicBlockRef end, bool goes_on) {
  if (!end && !goes_on) {
    cg_end_if(cg, branch);
    return;
  }
  if (!end) end = cg_new_block(cg, "met");
  LLVMBuildBr(cg->builder, end);
  cg->arms_end = goes_on ? end : NULL;
  if (branch.after) LLVMPositionBuilderAtEnd(cg->builder, branch.after);
  if (goes_on) return;
  if (branch.after) LLVMBuildBr(cg->builder, end);
  LLVMPositionBuilderAtEnd(cg->builder, end);
}

// Whole warps branch on a warp number that all lanes share (rules S9).
void emit_role(Cg *cg, const TirOp *op) {
  TirThreads outer = cg->active, inner = threads_of(op);
  LLVMBasicBlockRef end = cg->arms_end;
  LLVMValueRef position = cg->position;
  bool whole = is_whole_warps(inner);
  bool rest = end && is_rest(op, outer);
  CgIf branch = cg_begin_if(cg, rest    ? NULL
                                : whole ? lies_in(cg, cg->warp, warps_of(inner), warps_of(outer))
                                        : lies_in(cg, cg->thread, inner, outer));
  cg->active = inner;
  cg->arms_end = NULL;
  cg->position = LLVMBuildSub(cg->builder, cg->thread, cg_i32(cg, inner.lo), "");
  cg->divergent += !whole;
  cg_block(cg, op->bodies[0]);
  cg->divergent -= !whole;
  cg->active = outer;
  cg->position = position;
  end_arm(cg, branch, end, has_next_arm(op));
  if (!whole && cg->divergent == 0) nvvm_warp_sync(cg, ALL_LANES);
}

void emit_one_thread(Cg *cg, const TirOp *op) {
  bool alone = tir_thread_count(cg->active) == 1;
  CgIf branch = cg_begin_if(
      cg, alone ? NULL : LLVMBuildICmp(cg->builder, LLVMIntEQ, cg->thread, cg_i32(cg, cg->active.lo), ""));
  cg->divergent++;
  cg_block(cg, op->bodies[0]);
  cg->divergent--;
  cg_end_if(cg, branch);
  if (cg->divergent == 0) nvvm_warp_sync(cg, ALL_LANES);
}

void emit_sync_threads(Cg *cg, const TirOp *op) {
  nvvm_barrier_sync(cg, (int)op->attrs[SYNC_id], (int)op->attrs[SYNC_count], cg->divergent == 0);
}

// The lanes of the active threads, which are no more than one warp's, or all.
void emit_sync_warp(Cg *cg, const TirOp *op) {
  (void)op;
  uint32_t lanes = ALL_LANES;
  int count = tir_thread_count(cg->active);
  if (count < WARP) lanes = ((UINT32_C(1) << count) - 1) << cg->active.lo % WARP;
  nvvm_warp_sync(cg, lanes);
}

void emit_set_max_nreg(Cg *cg, const TirOp *op) {
  nvvm_set_max_registers(cg, (int)op->attrs[NREG_count], op->attrs[NREG_inc] != 0);
}

// Roles: ranges of threads. A condition on the thread index alone is no property to be derived by rules on
// comparisons and divisions: a block has at most 1024 threads, so it is evaluated for each.
#include "tir/roles.h"

#include <string.h>

#include "tir/fold.h"

TirOp *tir_role_of(const TirBlock *block) {
  for (TirOp *at = block ? block->owner : NULL; at; at = tir_parent(at))
    if (at->kind == OP_role) return at;
  return NULL;
}

TirThreads tir_active_threads(const TirBlock *block) {
  const TirOp *role = tir_role_of(block);
  if (role) return (TirThreads){(int)role->attrs[ROLE_lo], (int)role->attrs[ROLE_hi]};
  return (TirThreads){0, block->kernel->threads};
}

int tir_thread_count(TirThreads threads) {
  return threads.hi - threads.lo;
}

// ---- evaluation

enum { MAX_STEPS = 128 };

// The ops behind a value, operands before their users.
typedef struct {
  const TirOp *ops[MAX_STEPS];
  FoldValue values[MAX_STEPS];
  int count;
} Program;

static int step_of(const Program *program, const TirOp *op) {
  for (int i = 0; i < program->count; i++)
    if (program->ops[i] == op) return i;
  return -1;
}

static bool computes(const TirOp *op) {
  OpGroup group = op_def(op->kind)->group;
  return op->kind == OP_const || op->kind == OP_thread_idx || op->kind == OP_cast || op->kind == OP_select ||
         group == GROUP_BINARY || group == GROUP_COMPARE || group == GROUP_UNARY;
}

static bool plan(Program *program, const TirValue *value, int depth) {
  const TirOp *op = value->op;
  if (step_of(program, op) >= 0) return true;
  if (depth > MAX_STEPS || !computes(op)) return false;
  for (int i = 0; i < op->nargs; i++)
    if (!plan(program, op->args[i], depth + 1)) return false;
  if (program->count == MAX_STEPS) return false;
  program->ops[program->count++] = op;
  return true;
}

static FoldValue operand(const Program *program, const TirOp *op, int i) {
  return program->values[step_of(program, op->args[i]->op)];
}

static bool compute(const Program *program, const TirOp *op, int thread, FoldValue *out) {
  DType dtype = op->results[0]->type.dtype;
  if (op->kind == OP_thread_idx) {
    *out = (FoldValue){DTYPE_i32, thread};
    return true;
  }
  if (op->kind == OP_const) {
    *out = (FoldValue){dtype, op->attrs[CONST_bits]};
    return true;
  }
  if (op->kind == OP_select) {
    *out = operand(program, op, operand(program, op, 0).bits ? 1 : 2);
    return true;
  }
  if (op->kind == OP_cast) return fold_cast(dtype, operand(program, op, 0), out);
  if (op->nargs == 1) return fold_unary(op->kind, operand(program, op, 0), out);
  return fold_binary(op->kind, operand(program, op, 0), operand(program, op, 1), out);
}

static bool evaluate(Program *program, int thread, int64_t *out) {
  for (int i = 0; i < program->count; i++)
    if (!compute(program, program->ops[i], thread, &program->values[i])) return false;
  *out = program->values[program->count - 1].bits;
  return true;
}

// ---- sets

bool tir_thread_set(const TirValue *condition, TirThreads among, TirThreadSet *out) {
  Program program = {.count = 0};
  memset(out, 0, sizeof *out);
  if (condition->type.kind != TYPE_SCALAR || !plan(&program, condition, 0)) return false;
  for (int t = among.lo; t < among.hi && t < TIR_MAX_THREADS; t++) {
    int64_t value;
    if (!evaluate(&program, t, &value)) return false;
    out->has[t] = value != 0;
  }
  return true;
}

bool tir_thread_range(const TirThreadSet *set, TirThreads *out) {
  int lo = 0;
  while (lo < TIR_MAX_THREADS && !set->has[lo]) lo++;
  int hi = lo;
  while (hi < TIR_MAX_THREADS && set->has[hi]) hi++;
  *out = (TirThreads){lo, hi};
  for (int t = hi; t < TIR_MAX_THREADS; t++)
    if (set->has[t]) return false;
  return hi > lo;
}

bool tir_threads_agree(const TirValue *value, TirThreads threads) {
  Program program = {.count = 0};
  int64_t first, other;
  if (value->type.kind != TYPE_SCALAR || !plan(&program, value, 0)) return false;
  if (!evaluate(&program, threads.lo, &first)) return false;
  for (int t = threads.lo + 1; t < threads.hi; t++)
    if (!evaluate(&program, t, &other) || other != first) return false;
  return true;
}

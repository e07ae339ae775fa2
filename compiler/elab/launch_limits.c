// Sums, products and shifts of sizes that the device computes in 32 bits. The runtime computes them in 64, so it can say
// when one would wrap on the device: each that might gets a launch-time check. What only the grid or a
// dimension needs is the runtime's alone.
#include <inttypes.h>

#include "elab/elab_internal.h"
#include "tir/ranges.h"

enum { MAX_PARTS = 64 };  // of an expression that is written out

typedef struct {
  bool *used;  // by value id: the device computes it
  int count;
} Usage;

static bool mark_operands(void *context, TirOp *op) {
  Usage *usage = context;
  for (int i = 0; i < op->nargs; i++)
    if (op->args[i] && op->args[i]->id < usage->count) usage->used[op->args[i]->id] = true;
  return true;
}

static Usage find_usage(Elab *e) {
  Usage usage = {.count = e->kernel->next_id};
  usage.used = ARENA_ARRAY(e->arena, bool, usage.count);
  tir_walk(e->kernel->body, mark_operands, &usage);
  for (TirOp *op = e->kernel->launch->last; op; op = op->prev) {  // operands stand before their users
    bool computes = op->nresults == 1 && op->kind != OP_tensor;
    if (computes && usage.used[op->results[0]->id]) mark_operands(&usage, op);
  }
  return usage;
}

// Whether the runtime can compute it: from sizes and scalars. `parts` counts down.
static bool computable(const TirValue *value, int *parts) {
  static const OpKind kinds[] = {OP_add,      OP_sub,      OP_mul,     OP_floordiv, OP_floormod,
                                 OP_truncdiv, OP_truncmod, OP_ceildiv, OP_min,      OP_max,
                                 OP_shl,      OP_shr,      OP_neg,     OP_abs,      OP_select};
  const TirOp *op = value->op;
  bool boolean = value->type.dtype == DTYPE_bool,
       wanted = boolean && op_def(op->kind)->group == GROUP_COMPARE;
  if (--*parts < 0 || (value->type.dtype != DTYPE_i32 && !boolean)) return false;
  if (op->kind == OP_size || op->kind == OP_param || op->kind == OP_const) return true;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    wanted = wanted || (op->kind == kinds[i] && !boolean);
  wanted = wanted || (op->kind == OP_cast && op->args[0]->type.dtype == DTYPE_bool);
  for (int i = 0; wanted && i < op->nargs; i++) wanted = computable(op->args[i], parts);
  return wanted;
}

static int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static bool shifted_out(const TirOp *op) {
  TirRange a = tir_known_range(op->args[0]), b = tir_known_range(op->args[1]);
  return b.lo < 0 || b.hi > 30 || a.hi > INT32_MAX >> b.hi;
}

// The largest magnitude of the result; operands are within 32 bits, or have a check of their own.
static bool may_wrap(const TirOp *op) {
  if (op->kind == OP_shl) return tir_known_range(op->args[0]).lo < 0 || shifted_out(op);
  if (op->kind == OP_neg || op->kind == OP_abs) return tir_known_range(op->args[0]).lo == INT32_MIN;
  if (op->kind != OP_add && op->kind != OP_sub && op->kind != OP_mul) return false;
  TirRange a = tir_known_range(op->args[0]), b = tir_known_range(op->args[1]);
  if (op->kind == OP_add) return a.hi + b.hi > INT32_MAX || a.lo + b.lo < INT32_MIN;
  if (op->kind == OP_sub) return a.hi - b.lo > INT32_MAX || a.lo - b.hi < INT32_MIN;
  return larger(larger(a.lo * b.lo, a.hi * b.hi), larger(-(a.lo * b.hi), -(a.hi * b.lo))) > INT32_MAX;
}

static void add_check(Elab *e, TirOp *op) {
  TirValue *value = op->results[0];
  e->b.span = op->span;
  TirValue *most = tir_binary(&e->b, OP_le, value, tir_int(&e->b, INT32_MAX));
  TirValue *least = tir_binary(&e->b, OP_ge, value, tir_int(&e->b, INT32_MIN));
  TirValue *fits = tir_known_range(value).lo >= 0 ? most : tir_binary(&e->b, OP_and, most, least);
  const char *text = text_printf(e->arena, "%s must fit 32 bits", elab_text(e, op->span));
  tir_check(&e->b, fits, intern(e->names, text));
}

void launch_check_limits(Elab *e) {
  Usage usage = find_usage(e);
  TirOp *last = e->kernel->launch->last;
  for (TirOp *op = e->kernel->launch->first; op; op = op == last ? NULL : op->next) {
    int parts = MAX_PARTS;
    if (op->nresults != 1 || !usage.used[op->results[0]->id] || op->results[0]->type.dtype != DTYPE_i32)
      continue;
    if (may_wrap(op) && computable(op->results[0], &parts)) add_check(e, op);
  }
}

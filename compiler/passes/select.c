// Needs    TIR_TYPED.
// Does     Moves accumulators into TMEM (accumulators.c), then asks the target's rule for the path of every
//          tile op. Where TMA is legal only if the launch's addresses are aligned, the kernel is kept twice:
//          with TMA, and with threads only.
// Leaves   TIR_SELECTED: a path on every tile op; asynchronous ones yield a token that a `wait` right behind
//          them consumes.
// Reports  Ops the target lacks or cannot do with these types and extents.
#include "passes/hazards.h"
#include "passes/tile.h"
#include "passes/accumulators.h"
#include "target/rules.h"

static bool choose_path(PassCx *cx, TirOp *op, bool tma) {
  RuleFn rule = cx->target->rules[op->kind];
  if (rule) return rule(cx->target, op, tma, cx->ds);
  diag_error(cx->ds, DIAG_no_rule, op->span, "%s has no %s", cx->target->name, op_def(op->kind)->name);
  return false;
}

// Where the source asks for the TMA, a copy that threads would have to do is refused.
static bool check_asked(const PassCx *cx, const TirKernel *kernel, const TirOp *op, bool tma) {
  TirValue *src, *dst;
  if (!tma || !tir_asks_for(kernel, CHOICE_tma) || tile_attr(op, "no_tma", false) ||
      op_path(op) != PATH_THREADS || !tile_move(op, &src, &dst))
    return true;
  bool loads = src->type.space == SPACE_GLOBAL && dst->type.space == SPACE_SHARED;
  bool stores = src->type.space == SPACE_SHARED && dst->type.space == SPACE_GLOBAL;
  if (!loads && !stores) return true;
  const char *why = rule_tma_obstacle(cx->target, src, dst);
  return pass_refuse_choice(cx, kernel, CHOICE_tma, op->span, why ? why : "the TMA cannot do this copy");
}

static bool choose_paths(PassCx *cx, TirKernel *kernel, bool tma) {
  TirOpList ops = tile_collect(cx->scratch, kernel->body);
  bool ok = true;
  tma = tma && !tir_forbids(kernel, CHOICE_tma);
  for (int i = 0; i < ops.len; i++)
    if (tile_is(ops.data[i]))
      ok = choose_path(cx, ops.data[i], tma) && check_asked(cx, kernel, ops.data[i], tma) && ok;
  return ok;
}

// The op again, with a token; a result cannot be added to an op in place.
static void add_wait(PassCx *cx, TirOp *op) {
  TirBuilder b = tir_builder_before(cx->module, op);
  Type token = type_token();
  TirOp *asynchronous = tir_op(&b, op->kind, op->nargs, op->args, 1, &token);
  for (int i = 0; i < OP_MAX_ATTRS; i++) asynchronous->attrs[i] = op->attrs[i];
  asynchronous->name = op->name;
  tir_op(&b, OP_wait, 1, asynchronous->results, 0, NULL);
  tir_remove(op);
}

static void add_waits(PassCx *cx, TirKernel *kernel) {
  TirOpList ops = tile_collect(cx->scratch, kernel->body);
  for (int i = 0; i < ops.len; i++) {
    TirOp *op = ops.data[i];
    if (tile_is(op) && path_is_async(op_path(op)) && !tile_attr(op, "explicit", 0)) add_wait(cx, op);
  }
}

// Guards for every TMA copy; true when threads would do one of them for launches that it does not hold for: a copy that
// does not ask for TMA, of a tensor with sizes known only at launch.
static bool add_guards(PassCx *cx, TirKernel *kernel) {
  TirOpList ops = tile_collect(cx->scratch, kernel->body);
  bool launch_decides = false;
  for (int i = 0; i < ops.len; i++) {
    TirOp *op = ops.data[i];
    Path path = op_path(op);
    TirValue *src, *dst;
    if ((path != PATH_TMA_LOAD && path != PATH_TMA_STORE) || !tile_move(op, &src, &dst)) continue;
    TirValue *tensor = tir_root(path == PATH_TMA_LOAD ? src : dst);
    tile_guard(cx, kernel, tensor, path == PATH_TMA_STORE);
    bool asked = tile_attr(op, "explicit", 0);
    launch_decides = launch_decides || (!asked && !type_is_static(&tensor->type));
  }
  return launch_decides;
}

// ptxas serialises wgmma in a kernel that calls a function (its advisory C7510).
static void warn_of_prints(PassCx *cx, const TirKernel *kernel) {
  TirOpList ops = tile_collect(cx->scratch, kernel->body);
  const TirOp *print = NULL, *product = NULL;
  for (int i = 0; i < ops.len; i++) {
    if (ops.data[i]->kind == OP_print && !print) print = ops.data[i];
    if (op_path(ops.data[i]) == PATH_WGMMA && !product) product = ops.data[i];
  }
  if (!print || !product) return;
  diag_warning(cx->ds, DIAG_print_serialises, print->span,
               "printing makes the matrix products of this kernel wait for each other on %s",
               cx->target->name);
  diag_note(cx->ds, product->span, "the first product is here");
}

static bool lower(PassCx *cx, TirKernel *kernel, bool tma) {
  if (!place_accumulators(cx, kernel) || !choose_paths(cx, kernel, tma)) return false;
  warn_of_prints(cx, kernel);
  add_waits(cx, kernel);
  return true;
}

// The copy of the kernel is made before anything is changed, and dropped when it turns out not to be needed;
// the pipeline then brings it through this pass like any other kernel.
bool pass_select(PassCx *cx, TirKernel *kernel) {
  if (kernel->variant == VARIANT_GENERAL) {
    bool lowered = lower(cx, kernel, false);
    if (lowered) add_guards(cx, kernel);
    return lowered;
  }
  int before = cx->module->kernels.len;
  TirKernel *general = kernel->variant == VARIANT_ONLY ? tir_kernel_clone(cx->module, kernel) : NULL;
  bool ok = lower(cx, kernel, true);
  bool launch_decides = ok && add_guards(cx, kernel);
  if (!general) return ok;
  if (launch_decides) {
    kernel->variant = VARIANT_TMA;
    general->variant = VARIANT_GENERAL;
  } else {
    cx->module->kernels.len = before;
  }
  return ok;
}

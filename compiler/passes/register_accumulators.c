// Accumulators in registers, on a target without TMEM. `alloc_tmem` says where Blackwell keeps an accumulator; when
// every use of it is whole (products, copies, fills), a fragment serves as well and the same source runs on both. A
// copy of the accumulator into a fragment is then no copy:
//
//   gemm %A, %B, %C; copy %C, %L; … %L …      ->      gemm %A, %B, %C; … %C …
//
// And since a warpgroup's registers hold less than TMEM does, the kernel may get more warpgroups (warpgroups.c).
#include "passes/accumulators.h"

#include "passes/hazards.h"
#include "passes/tile.h"
#include "passes/warpgroups.h"

// ---- from TMEM to fragments

static bool is_tmem(const TirValue *value) {
  return value && value->type.kind == TYPE_BUFFER && value->type.space == SPACE_TMEM;
}

static bool whole_use(const TirOp *op, int i) {
  if (!tile_is(op) || op->args[i]->op->kind != OP_alloc) return false;
  TirValue *src, *dst;
  return tile_move(op, &src, &dst) || op_def(op->kind)->operands[i].spaces & 1u << SPACE_FRAGMENT;
}

static bool report_use(PassCx *cx, const TirOp *op, const TirValue *root) {
  diag_error(
      cx->ds, DIAG_mma_space, op->span,
      "%s has no TMEM, and this use of %s does not let it live in registers: only whole products, copies and "
      "fills do",
      cx->target->name, tir_buffer_name(root));
  diag_note(cx->ds, root->op->span, "allocated in TMEM here");
  return false;
}

// The explicit form is refused by its rule, which knows the better reason.
static bool check_uses(PassCx *cx, TirOpList ops) {
  for (int i = 0; i < ops.len; i++)
    if (tile_attr(ops.data[i], "explicit", 0) &&
        !cx->target->rules[ops.data[i]->kind](cx->target, ops.data[i], true, cx->ds))
      return false;
  for (int i = 0; i < ops.len; i++)
    for (int a = 0; a < ops.data[i]->nargs; a++)
      if (is_tmem(ops.data[i]->args[a]) && !whole_use(ops.data[i], a))
        return report_use(cx, ops.data[i], tir_root(ops.data[i]->args[a]));
  return true;
}

static void move_to_fragments(TirOpList ops) {
  for (int i = 0; i < ops.len; i++)
    if (ops.data[i]->kind == OP_alloc && is_tmem(ops.data[i]->results[0]))
      ops.data[i]->results[0]->type.space = SPACE_FRAGMENT;
}

// ---- copies that need not be

static bool writes_root(const TirOp *op, const TirValue *root) {
  for (int a = 0; a < op->nargs; a++)
    if (tile_access(op, a) & WRITES && op->args[a] && tir_root(op->args[a]) == root) return true;
  return false;
}

static bool mentions(const TirOp *op, const TirValue *root) {
  for (int a = 0; a < op->nargs; a++)
    if (op->args[a] && op->args[a]->type.kind == TYPE_BUFFER && tir_root(op->args[a]) == root) return true;
  return false;
}

// Whether `to` is nothing but the value of `from` at the copy ops.data[at]: no other op writes it, all others that use it
// follow in the copy's block, and until the last of them nothing writes `from`.
static bool is_alias(TirOpList ops, int at, const TirValue *from, const TirValue *to) {
  int last = at;
  for (int i = 0; i < ops.len; i++) {
    if (i == at || !mentions(ops.data[i], to)) continue;
    bool behind = false;
    for (const TirOp *op = ops.data[i]; op; op = tir_parent((TirOp *)op))
      behind = behind || op->parent == ops.data[at]->parent;
    if (i < at || !behind || writes_root(ops.data[i], to)) return false;
    last = i;
  }
  for (int i = at + 1; i <= last; i++)
    if (writes_root(ops.data[i], from)) return false;
  return true;
}

// Whether nothing reads `from` after the copy: then it may be changed through the copy's name. In a loop around both, the
// next turn must not see it; only an accumulator of the loop's own body is surely fresh there.
static bool is_last_use(TirOpList ops, int at, const TirValue *from, const TirValue *to) {
  for (int i = 0; i < ops.len; i++) {
    if (i > at && mentions(ops.data[i], from)) return false;
    if (i < at && mentions(ops.data[i], to)) return false;
  }
  for (const TirOp *loop = tir_parent(ops.data[at]); loop; loop = tir_parent((TirOp *)loop))
    if (loop->kind != OP_if && !tir_inside(from->op, loop)) return false;
  return true;
}

static bool forward_one(PassCx *cx, TirKernel *kernel) {
  TirOpList ops = tile_collect(cx->scratch, kernel->body);
  for (int i = 0; i < ops.len; i++) {
    TirValue *from, *to;
    if (!tile_move(ops.data[i], &from, &to) || !tile_is_fragment(from) || !tile_is_fragment(to)) continue;
    bool allocs = from->op->kind == OP_alloc && to->op->kind == OP_alloc;
    if (!allocs || from == to || !type_equal(&from->type, &to->type)) continue;
    if (!is_alias(ops, i, from, to) && !is_last_use(ops, i, from, to)) continue;
    tir_remove(ops.data[i]);
    tir_remove(to->op);
    tir_replace_uses(kernel, to, from);
    return true;
  }
  return false;
}

bool place_in_registers(PassCx *cx, TirKernel *kernel) {
  TirOpList ops = tile_collect(cx->scratch, kernel->body);
  if (!check_uses(cx, ops)) return false;
  move_to_fragments(ops);
  while (forward_one(cx, kernel)) continue;
  return add_warpgroups(cx, kernel);
}

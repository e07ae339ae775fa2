// Needs    TIR_SELECTED, after persistent: blocks stay and compute tile after tile.
// Does     Decides which results leave late. While threads store, the tensor core has nothing to do; between issuing products and
//          waiting for them, threads have nothing to do. So where whole warpgroups issue the products, a tile's results are only
//          converted and kept at its end, and leave under the next tile's products, a panel every few rounds. They are marked,
//
//            copy %acc, %C[…], _, %S {path = panels}     ->     copy %acc, %C[…], _, %S {path = panels, late = true}
//
//          which roles carries out (late.c). Their ring has one slot: a panel has left when the next is due, so shared memory
//          is better used for a stage more.
// Leaves   TIR_SELECTED.
// Reports  Results that cannot leave late though the source asks for it; a remark says which do, and why others leave at once.
//
// The rule: threads do nothing but multiply in the loop, so that its products run on from round to round; the rounds of the
// loop around it were blocks once, so that nothing orders their stores; and a thread has the registers, for what products
// add to and for what is kept, beside BESIDE that it needs anyway.
#include "passes/roles/plan.h"

enum { BESIDE = 40, BESIDE_SHARED = 72, REGISTER_BYTES = 4, PAIRED_BITS = 16, ROWS = 64 };

static bool refuse(const RolePlan *p, const TirOp *op, const char *why) {
  if (tir_asks_for(p->kernel, CHOICE_defer))
    return pass_refuse_choice(p->cx, p->kernel, CHOICE_defer, op->span, why);
  diag_remark(p->cx->ds, op->span, "%s is stored before the next tile begins: %s",
              tir_buffer_name(op->args[0]), why);
  return false;
}

// Whether another op's panels go through the same slots or to the same tensor, whose order would change.
static bool is_shared(const RolePlan *p, const TirOp *op) {
  for (int i = 0; i < p->all.len; i++) {
    const TirOp *other = p->all.data[i];
    if (other == op || !tile_ring(other)) continue;
    if (tile_ring(other) == tile_ring(op) || tir_root(other->args[1]) == tir_root(op->args[1])) return true;
  }
  return false;
}

// What the next tile's rounds leave no time for leaves at once (late.c): they must be as many as this one's.
static bool is_steady(const TirOp *loop) {
  return tir_in_launch(loop->args[FOR_LO]) && tir_in_launch(loop->args[FOR_HI]);
}

static bool is_placed_by_views(const TirValue *tile) {
  while (tile->op->kind == OP_view) tile = tile->op->args[0];
  return tile->op->kind == OP_tensor;
}

// Warpgroups that share the columns of rows look for the panels that they have a part of: addresses, and branches.
static int64_t beside(const RolePlan *p, const TirOp *op) {
  int64_t blocks = op->args[1]->type.shape[0] / ROWS;
  return blocks % (p->kernel->threads / GROUP) ? BESIDE_SHARED : BESIDE;
}

// Two elements of 16 bits share a register, any others have one each.
int64_t plan_kept_registers(const RolePlan *p, const TirOp *op) {
  const Type *type = &op->args[1]->type;
  int64_t bytes = dtype_bits(type->dtype) == PAIRED_BITS ? 2 : REGISTER_BYTES;
  return type_elements(type) * bytes / REGISTER_BYTES / p->kernel->threads;
}

static bool is_used_by(const TirOp *op, const TirValue *fragment) {
  for (int a = 0; a < op->nargs; a++)
    if (op->args[a] && op->args[a]->type.kind == TYPE_BUFFER && tir_root(op->args[a]) == fragment)
      return true;
  return false;
}

// Whether something sets the fragment before the loop of products and something uses it behind.
static bool lasts_through(const RolePlan *p, const TirValue *fragment) {
  const TirOp *loop = p->rings.data[0].loop;
  bool before = false, behind = false, now_behind = false;
  for (int i = 0; i < p->all.len; i++) {
    const TirOp *op = p->all.data[i];
    now_behind = now_behind || op == loop;
    if (!is_used_by(op, fragment) || tir_inside(op, loop)) continue;
    before = before || !now_behind;
    behind = behind || now_behind;
  }
  return before && behind;
}

// Of a thread, about: a vector along the columns has two elements of eight, one along rows hardly any.
static int64_t registers_of(const RolePlan *p, const Type *fragment, const Type *result) {
  enum { COLUMNS_PER_VALUE = 4, ROWS_PER_VALUE = 32 };
  if (fragment->rank >= 2) return type_elements(fragment) / p->kernel->threads;
  bool along = fragment->rank == 1 && fragment->shape[0] == result->shape[1];
  return type_elements(fragment) / (along ? COLUMNS_PER_VALUE : ROWS_PER_VALUE);
}

// What else threads hold while the loop runs, for the epilogue.
static int64_t held(const RolePlan *p, const TirOp *result) {
  int64_t sum = 0;
  for (int i = 0; i < p->all.len; i++) {
    const TirOp *op = p->all.data[i];
    if (op->kind != OP_alloc || !tile_is_fragment(op->results[0]) || op->results[0] == result->args[0])
      continue;
    if (plan_is_accumulator(p, op->results[0]) || !lasts_through(p, op->results[0])) continue;
    sum += registers_of(p, &op->results[0]->type, &result->args[1]->type);
  }
  return sum;
}

// `taken`: by results that are kept already.
static bool can_wait(const RolePlan *p, const TirOp *op, int64_t taken) {
  if (is_shared(p, op))
    return refuse(p, op, "another result has its tensor or its tile in shared memory too");
  if (!is_steady(p->rings.data[0].loop))
    return refuse(p, op, "its sum has more rounds in one tile than in another");
  if (op->args[0]->op->kind != OP_alloc || !is_placed_by_views(op->args[1]))
    return refuse(p, op, "it is a part of something");
  int64_t needed = taken + plan_kept_registers(p, op) + plan_accumulators(p) + held(p, op) + beside(p, op);
  if (needed <= plan_most_registers(p)) return true;
  return refuse(p, op,
                text_printf(p->cx->module->arena, "to keep it a thread would need %lld registers of %lld",
                            (long long)needed, (long long)plan_most_registers(p)));
}

static bool is_in_tiles(const Ring *ring) {
  const TirOp *around = ring->loop->parent->owner;
  return around && around->kind == OP_for && around->attrs[FOR_kind] == LOOP_TILES;
}

// Marks results behind the one ring. False: reported.
static bool mark(RolePlan *p, const Ring *ring, int *marked) {
  int64_t taken = 0;
  bool ok = true;
  for (TirOp *op = ring->loop->next; op; op = op->next) {
    if (!tile_ring(op)) continue;
    if (!can_wait(p, op, taken)) {
      ok = ok && !tir_asks_for(p->kernel, CHOICE_defer);
      continue;
    }
    taken += plan_kept_registers(p, op);
    diag_remark(p->cx->ds, op->span, "%s leaves under the next tile's products, in %lld panels",
                tir_buffer_name(op->args[0]),
                (long long)(op->args[0]->type.shape[1] / tile_ring(op)->type.shape[2]));
    tile_set_attr(op, "late", true);
    tile_ring(op)->type.shape[0] = 1;
    ++*marked;
  }
  return ok;
}

// A target whose products one thread issues overlaps tiles by itself: nothing is late there.
static bool check_asked(const PassCx *cx, const TirKernel *kernel, const char *why) {
  bool means_something = !cx->target->tmem_columns && kernel->variant != VARIANT_GENERAL;
  return !tir_asks_for(kernel, CHOICE_defer) || !means_something ||
         pass_refuse_choice(cx, kernel, CHOICE_defer, (Span){0, 0}, why);
}

bool pass_defer(PassCx *cx, TirKernel *kernel) {
  RolePlan plan;
  int marked = 0;
  if (tir_forbids(kernel, CHOICE_roles) || !plan_roles(&plan, cx, kernel, true) || plan.rings.len != 1)
    return check_asked(cx, kernel, "the kernel has no warp roles around one pipelined loop");
  const Ring *ring = &plan.rings.data[0];
  if (!is_in_tiles(ring)) return check_asked(cx, kernel, "a block computes one tile");
  if (!ring->straight) return check_asked(cx, kernel, "threads do more than multiply in the loop");
  if (!mark(&plan, ring, &marked)) return false;
  return marked || check_asked(cx, kernel, "no result leaves by panels behind the loop");
}

// set_max_nreg moves registers between the warpgroups of a block. A group that asks for more waits until others have given
// them back, so the sum of what the groups end with must be what they start with (PTX ISA 9.7.19.5). ptxas compiles a
// wgmma only where the accumulator of one instruction fits into what every thread starts with.
#include "passes/register_pool.h"

#include "passes/hazards.h"
#include "passes/tile.h"

// A wgmma of 128 registers of accumulator needs 154 in all (ptxas 13.0, C7602).
enum { WARPGROUP = 128, MAX_GROUPS = 8, MOST = 256, STEP = 8, BESIDE_ACCUMULATOR = 26 };

int pool_registers_at_entry(const Target *target, int threads) {
  int share = target->registers / threads / STEP * STEP;
  return share < MOST ? share : MOST;
}

// What a thread that runs the op has: its role's share where registers are shared out.
static int registers_of(const PassCx *cx, const TirKernel *kernel, const TirOp *op) {
  for (const TirOp *role = tir_role_of(op->parent); role; role = tir_role_of(role->parent))
    for (const TirOp *first = role->bodies[0]->first; first; first = first->next)
      if (first->kind == OP_set_max_nreg) return (int)first->attrs[NREG_count];
  return pool_registers_at_entry(cx->target, kernel->threads);
}

// ptxas counts whole warpgroups.
int pool_fragment_registers(const Target *target, int threads) {
  int whole = (threads + WARPGROUP - 1) / WARPGROUP * WARPGROUP;
  int left = pool_registers_at_entry(target, whole) - (MOST - target->fragment_registers);
  return left < target->fragment_registers ? left : target->fragment_registers;
}

static int64_t accumulator_registers(const TirValue *fragment) {
  return layout_registers(fragment->layout) * dtype_bits(fragment->type.dtype) / 32;
}

// Of one instruction, which covers 64 rows and at most 256 columns.
static int64_t instruction_registers(const Type *accumulator, int64_t all) {
  int64_t columns = accumulator->shape[accumulator->rank - 1], most = 256;
  int64_t words = (columns < most ? columns : most) / 2 * dtype_bits(accumulator->dtype) / 32;
  return words < all ? words : all;
}

bool pool_holds(const Target *target, int threads, int later, const Type *accumulator, int64_t own) {
  int entry = pool_registers_at_entry(target, threads);
  return instruction_registers(accumulator, own) + BESIDE_ACCUMULATOR <= entry &&
         own + BESIDE_ACCUMULATOR <= (later ? later : entry);
}

static bool check_accumulator(PassCx *cx, const TirKernel *kernel, const TirOp *product,
                              const TirValue *acc) {
  int entry = pool_registers_at_entry(cx->target, kernel->threads), later = registers_of(cx, kernel, product);
  int64_t all = accumulator_registers(acc), one = instruction_registers(&acc->type, all);
  bool starts = one + BESIDE_ACCUMULATOR <= entry;
  if (pool_holds(cx->target, kernel->threads, later, &acc->type, all)) return true;
  diag_error(cx->ds, DIAG_fragment_registers, acc->op->span,
             "accumulator %s takes %lld registers of each thread and a product %d beside it; each of %d "
             "threads has %d",
             tir_buffer_name(acc), (long long)(starts ? all : one), BESIDE_ACCUMULATOR, kernel->threads,
             starts ? later : entry);
  diag_note(cx->ds, product->span, "the product is here");
  diag_hint(cx->ds, "use smaller tiles: there are %d registers for all threads", cx->target->registers);
  return false;
}

bool check_accumulators(PassCx *cx, TirKernel *kernel) {
  TirOpList ops = tile_collect(cx->scratch, kernel->body);
  for (int i = 0; i < ops.len; i++) {
    const TirOp *op = ops.data[i];
    for (int a = 0; a < op->nargs && op_path(op) == PATH_WGMMA; a++)
      if (tile_is_fragment(op->args[a]) && tile_access(op, a) == ACCUMULATES &&
          !check_accumulator(cx, kernel, op, op->args[a]))
        return false;
  }
  return true;
}

bool check_register_pool(PassCx *cx, TirKernel *kernel) {
  TirOpList ops = tile_collect(cx->scratch, kernel->body);
  int groups = kernel->threads / WARPGROUP, entry = pool_registers_at_entry(cx->target, kernel->threads),
      sum = 0;
  const TirOp *last[MAX_GROUPS] = {NULL}, *any = NULL;
  for (int i = 0; i < ops.len; i++) {
    if (ops.data[i]->kind != OP_set_max_nreg) continue;
    TirThreads threads = tir_active_threads(ops.data[i]->parent);
    for (int g = threads.lo / WARPGROUP; g < threads.hi / WARPGROUP; g++) last[g] = ops.data[i];
    if (!any || ops.data[i]->attrs[NREG_count] > any->attrs[NREG_count]) any = ops.data[i];
  }
  if (!any) return true;
  for (int g = 0; g < groups; g++) sum += last[g] ? (int)last[g]->attrs[NREG_count] : entry;
  if (sum <= groups * entry) return true;
  diag_error(cx->ds, DIAG_register_pool, any->span,
             "the groups of 4 warps would have %d registers a thread together; the block starts with %d for "
             "each of its %d, "
             "%d in all, and this would wait for ever",
             sum, entry, groups, groups * entry);
  for (int g = 0; g < groups; g++)
    if (last[g] && last[g] != any)
      diag_note(cx->ds, last[g]->span, "threads %d to %d have %d", g * WARPGROUP,
                g * WARPGROUP + WARPGROUP - 1, (int)last[g]->attrs[NREG_count]);
    else if (!last[g])
      diag_note(cx->ds, kernel->span, "threads %d to %d keep %d", g * WARPGROUP,
                g * WARPGROUP + WARPGROUP - 1, entry);
  return false;
}

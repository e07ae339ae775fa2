// set_max_nreg moves registers between the warpgroups of a block. A group that asks for more waits until others have given
// them back, so the sum of what the groups end with must be what they start with (PTX ISA 9.7.19.5).
#include "passes/register_pool.h"

#include "passes/tile.h"

enum { WARPGROUP = 128, MAX_GROUPS = 8, MOST = 256, STEP = 8 };

// What ptxas gives each thread of a block that has its SM alone.
static int registers_at_entry(const PassCx *cx, const TirKernel *kernel) {
  int share = cx->target->registers / kernel->threads / STEP * STEP;
  return share < MOST ? share : MOST;
}

bool check_register_pool(PassCx *cx, TirKernel *kernel) {
  TirOpList ops = tile_collect(cx->scratch, kernel->body);
  int groups = kernel->threads / WARPGROUP, entry = registers_at_entry(cx, kernel), sum = 0;
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

// Who has how many registers. Threads that hold accumulators need more than the same share for all, a loader nearly none: where
// several warpgroups multiply, the loader becomes a warpgroup of its own, one warp of which works, and gives registers away
// (PTX ISA, setmaxnreg: by whole warpgroups, in steps of 8, what they end with together no more than they start with).
#include "passes/register_pool.h"
#include "passes/roles/plan.h"

enum { STEP = 8, LEAST = 24, FEW = 40, MOST = 240, BESIDE = 72 };

int plan_loader_threads(const RolePlan *p) {
  return p->spare ? GROUP : WARP;
}

int plan_extra_threads(const RolePlan *p) {
  return p->by_warpgroups ? plan_loader_threads(p) : 2 * WARP;
}

bool plan_is_accumulator(const RolePlan *p, const TirValue *fragment) {
  for (int i = 0; i < p->all.len; i++)
    for (int a = 0; a < p->all.data[i]->nargs; a++)
      if (plan_is_product(p->all.data[i]) && tile_access(p->all.data[i], a) == ACCUMULATES &&
          tir_root(p->all.data[i]->args[a]) == fragment)
        return true;
  return false;
}

int64_t plan_accumulators(const RolePlan *p) {
  int64_t sum = 0;
  for (int i = 0; i < p->all.len; i++) {
    const TirOp *op = p->all.data[i];
    if (op->kind != OP_alloc || !tile_is_fragment(op->results[0])) continue;
    if (plan_is_accumulator(p, op->results[0]))
      sum += type_bytes(&op->results[0]->type) / 4 / p->kernel->threads;
  }
  return sum;
}

// And results that wait for the next tile (defer.c), of which pairs of 16 bits share a register.
static int64_t kept(const RolePlan *p) {
  int64_t sum = 0;
  for (int i = 0; i < p->all.len; i++)
    if (tile_ring(p->all.data[i]) && tile_attr(p->all.data[i], "late", false))
      sum += plan_kept_registers(p, p->all.data[i]);
  return sum;
}

static bool refuse(const RolePlan *p, const char *why) {
  if (p->quiet || !tir_asks_for(p->kernel, CHOICE_registers)) return true;
  return pass_refuse_choice(p->cx, p->kernel, CHOICE_registers, (Span){0, 0}, why);
}

// Of a thread of the author's, when all have as many.
static int64_t share(const RolePlan *p) {
  return pool_registers_at_entry(p->cx->target, p->kernel->threads + plan_extra_threads(p));
}

// When a loader's threads keep `least`; 0: no more than all have.
static int ample_beside(const RolePlan *p, int least) {
  int groups = p->kernel->threads / GROUP,
      even = pool_registers_at_entry(p->cx->target, p->kernel->threads + GROUP);
  int ample = (even * (groups + 1) - least) / groups / STEP * STEP;
  return ample <= even ? 0 : ample < MOST ? ample : MOST;
}

int64_t plan_most_registers(const RolePlan *p) {
  int64_t most = p->ample ? ample_beside(p, LEAST) : share(p);
  return most < MOST ? most : MOST;
}

static bool share_out(RolePlan *p) {
  if (!p->by_warpgroups || tir_forbids(p->kernel, CHOICE_registers)) return true;
  if (p->kernel->threads / GROUP < 2)
    return refuse(p, "one warpgroup multiplies, beside a loader of one warp, which has none to give");
  bool heavy = plan_accumulators(p) + kept(p) + BESIDE > ample_beside(p, FEW);
  int least = heavy ? LEAST : FEW, ample = ample_beside(p, least);
  if (!ample) return refuse(p, "all threads have as many as the loader can give away");
  p->spare = least;
  p->ample = ample;
  return true;
}

// The first product whose accumulator would not fit any more when other roles have taken registers.
static const TirOp *find_cramped(const RolePlan *p) {
  int threads = p->kernel->threads;
  for (int i = 0; i < p->all.len && p->by_warpgroups; i++) {
    const TirOp *op = p->all.data[i];
    for (int a = 0; a < op->nargs; a++) {
      if (!plan_is_product(op) || !tile_is_fragment(op->args[a]) || tile_access(op, a) != ACCUMULATES)
        continue;
      const Type *type = &op->args[a]->type;
      int64_t own = type_bytes(type) / 4 / threads;
      if (!pool_holds(p->cx->target, threads + plan_extra_threads(p), p->ample, type, own)) return op;
    }
  }
  return NULL;
}

bool plan_registers(RolePlan *p) {
  if (!share_out(p)) return false;
  const TirOp *cramped = find_cramped(p);
  return !cramped ||
         plan_refuse(p, cramped, "the loader's threads would leave its accumulator too few registers");
}

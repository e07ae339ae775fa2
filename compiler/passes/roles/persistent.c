// Needs    TIR_SELECTED.
// Does     Lets as many blocks as the device has SMs compute all tiles, one after the other, where the loop of a kernel will be
//          cut into roles: then a tile's epilogue runs under the next one's products, and its first loads even earlier.
//
//            grid X, Y; body(block_idx)   ->   grid workers; for tile = block_idx, X * Y, workers { body(tile's place) }
//
//          Tiles are taken in groups of a few rows, so that the workers of one moment share rows and columns in L2; the
//          author's own order of blocks becomes the order of tiles. Not all SMs work when fewer finish in as many waves.
// Leaves   TIR_SELECTED.
// Reports  A kernel that cannot be so though the source asks for it; a remark says what became of a kernel with roles.
//
// The rule: a kernel whose blocks fill more than half of an SM's shared memory. Of smaller ones several run on an SM, and the
// hardware overlaps their phases by itself. Where the source asks, any kernel whose blocks can follow each other.
#include "passes/roles/plan.h"
#include "tir/ranges.h"
#include "tir/tiles.h"

#include <string.h>

enum { ROWS_OF_GROUP = 8, DIMENSIONS = 3 };

static TirOp *find_grid(const TirKernel *kernel) {
  for (TirOp *op = kernel->launch->first; op; op = op->next)
    if (op->kind == OP_grid) return op;
  return NULL;
}

static bool counts_sms(const TirKernel *kernel) {
  for (const TirOp *op = kernel->launch->first; op; op = op->next)
    if (op->kind == OP_size && !strcmp(op->name, TIR_SM_COUNT)) return true;
  return false;
}

static bool refuse(const PassCx *cx, const TirKernel *kernel, Span at, const char *why) {
  if (tir_asks_for(kernel, CHOICE_persistent))
    return pass_refuse_choice(cx, kernel, CHOICE_persistent, at, why);
  diag_remark(cx->ds, kernel->span, "a block computes one tile: %s", why);
  return false;
}

// Whether a block of any kernel may compute tile after tile: what the author counts, hands over or waits for is that of one.
static bool can_follow(const PassCx *cx, const TirKernel *kernel) {
  TirOpList all = tile_collect(cx->scratch, kernel->body);
  for (int i = 0; i < all.len; i++) {
    const TirOp *op = all.data[i];
    const char *why = NULL;
    if (plan_by_hand(op)) why = "the kernel has barriers that are used by hand";
    if (op->kind == OP_tmem_release) why = "tensor memory is released by hand";
    if (op->kind == OP_set_max_nreg) why = "registers are shared out by hand";
    if (op->kind == OP_while || op->kind == OP_atomic_load) why = "the kernel waits for other blocks";
    if (why) return refuse(cx, kernel, op->span, why);
  }
  return true;
}

static bool is_worth_it(PassCx *cx, TirKernel *kernel) {
  RolePlan plan;
  bool asked = tir_asks_for(kernel, CHOICE_persistent);
  bool roles = !tir_forbids(kernel, CHOICE_roles) && plan_roles(&plan, cx, kernel, true);
  if (!find_grid(kernel) || (!roles && !asked)) return false;
  if (counts_sms(kernel))
    return refuse(cx, kernel, (Span){0, 0}, "the kernel looks at the number of SMs itself");
  if (asked) return can_follow(cx, kernel);
  if (plan_shared_bytes(&plan) * 2 <= cx->target->shared_bytes)
    return refuse(cx, kernel, (Span){0, 0}, "several blocks share an SM, which overlaps them");
  return true;
}

typedef struct {
  TirValue *extents[DIMENSIONS], *layer, *tiles, *workers;
} Domain;

// As many workers as the longest-working one's number of tiles needs.
static Domain measure(TirBuilder *b, const TirOp *grid) {
  Domain d = {.tiles = tir_int(b, 1)};
  for (int i = 0; i < DIMENSIONS; i++) d.extents[i] = i < grid->nargs ? grid->args[i] : tir_int(b, 1);
  d.layer = tir_binary(b, OP_mul, d.extents[0], d.extents[1]);
  d.tiles = tir_binary(b, OP_mul, d.layer, d.extents[2]);
  TirValue *one = tir_int(b, 1), *waves = tir_binary(b, OP_ceildiv, d.tiles, tir_sm_count(b));
  d.workers = tir_binary(b, OP_ceildiv, d.tiles, tir_binary(b, OP_max, waves, one));
  return d;
}

// Workers number tiles in 32 bits. The hardware would take a grid of more blocks than that.
static void check_product(PassCx *cx, TirBuilder *b, TirValue *product, const TirValue *x,
                          const TirValue *y) {
  int64_t most;
  if (!__builtin_mul_overflow(tir_known_range(x).hi, tir_known_range(y).hi, &most) && most <= INT32_MAX)
    return;
  TirValue *fits = tir_binary(b, OP_le, product, tir_int(b, INT32_MAX));
  tir_check(b, fits, intern(cx->module->names, "the number of tiles must fit 32 bits"));
}

// Rows of tiles that go together, or columns where the author's order is by columns.
static int64_t group_of(const TirKernel *kernel) {
  const TirChoice *asked = &kernel->choices[CHOICE_group_rows];
  if (asked->given) return asked->value;
  return kernel->block_order == BLOCKS_AS_LAUNCHED ? ROWS_OF_GROUP : kernel->panel;
}

static void place_of(const TirKernel *kernel, TirBuilder *b, const Domain *d, TirValue *tile, TirValue **at) {
  bool columns = kernel->block_order == BLOCKS_BY_COLUMNS;
  TirValue *group = tir_int(b, group_of(kernel)), *rest = tir_binary(b, OP_truncmod, tile, d->layer);
  int64_t layers;
  bool flat = tir_const_int(d->extents[2], &layers) && layers == 1;
  at[2] = flat ? tir_int(b, 0) : tir_binary(b, OP_truncdiv, tile, d->layer);
  tir_tile_at(b, flat ? tile : rest, d->extents[columns], d->extents[!columns], group, &at[columns],
              &at[!columns]);
}

static void replace_block_indices(PassCx *cx, TirKernel *kernel, TirBlock *body, TirValue *const *at) {
  TirOpList all = tile_collect(cx->scratch, body);
  for (int i = 0; i < all.len; i++) {
    TirOp *op = all.data[i];
    if (op->kind != OP_block_idx) continue;
    TirValue *value = at[op->attrs[INDEX_dim]];
    if (!value->name) value->name = op->results[0]->name;
    tir_replace_uses(kernel, op->results[0], value);
    tir_remove(op);
  }
}

static void loop_over_tiles(PassCx *cx, TirKernel *kernel) {
  TirOp *grid = find_grid(kernel), *first = kernel->body->first;
  TirBuilder b = tir_builder_before(cx->module, first);
  b.span = grid->span;
  Domain domain = measure(&b, grid);
  check_product(cx, &b, domain.layer, domain.extents[0], domain.extents[1]);
  if (domain.tiles != domain.layer) check_product(cx, &b, domain.tiles, domain.layer, domain.extents[2]);
  TirValue *block = tir_block_idx(&b, 0), *at[DIMENSIONS];
  block->name = intern(cx->module->names, "worker");
  TirOp *loop = tir_for(&b, LOOP_TILES, block, domain.tiles, tir_block_count(&b, 0));
  loop->results[0]->name = intern(cx->module->names, "tile");
  for (TirOp *op = first, *next; op; op = next) {
    next = op->next;
    if (op->kind == OP_alloc || op->kind == OP_alloc_barrier) {
      tir_remove(op);
      tir_insert_before(loop, op);
      continue;
    }
    tir_remove(op);
    tir_append(loop->bodies[0], op);
  }
  TirBuilder inside = tir_builder_before(cx->module, loop->bodies[0]->first);
  inside.span = grid->span;
  place_of(kernel, &inside, &domain, loop->results[0], at);
  replace_block_indices(cx, kernel, loop->bodies[0], at);
  tir_remove(grid);
  tir_grid(&b, 1, &domain.workers);
  kernel->block_order = BLOCKS_AS_LAUNCHED;
  kernel->panel = 0;
}

// As this pass leaves it: only its loop counts blocks.
static bool stays_already(PassCx *cx, const TirKernel *kernel) {
  TirOpList all = tile_collect(cx->scratch, kernel->body);
  for (int i = 0; i < all.len; i++)
    if (all.data[i]->kind == OP_block_count) return true;
  return false;
}

static void remark_order(const PassCx *cx, const TirKernel *kernel, bool stays) {
  const TirChoice *rows = &kernel->choices[CHOICE_group_rows];
  if (stays)
    diag_remark(cx->ds, kernel->span, "blocks stay and compute tile after tile, in groups of %lld %s",
                (long long)group_of(kernel), kernel->block_order == BLOCKS_BY_COLUMNS ? "columns" : "rows");
  else if (rows->given)
    diag_remark(cx->ds, rows->span,
                "group_rows has no effect where a block computes one tile; use_swizzle(%d) orders blocks",
                rows->value);
}

bool pass_persistent(PassCx *cx, TirKernel *kernel) {
  if (kernel->variant == VARIANT_GENERAL || stays_already(cx, kernel)) return true;
  fold_clears(cx, kernel);
  bool stays = is_worth_it(cx, kernel);
  remark_order(cx, kernel, stays);
  if (stays) loop_over_tiles(cx, kernel);
  return stays || !tir_asks_for(kernel, CHOICE_persistent);
}

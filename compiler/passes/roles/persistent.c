// Needs    TIR_SELECTED.
// Does     Lets as many blocks as the device has SMs compute all tiles, one after the other, where the loop of a kernel will be
//          cut into roles: then a tile's epilogue runs under the next one's products, and its first loads even earlier.
//
//            grid X, Y; body(block_idx)   ->   grid workers; for tile = block_idx, X * Y, workers { body(tile's place) }
//
//          Tiles are taken in groups of a few rows, so that the workers of one moment share rows and columns in L2; the
//          author's own order of blocks becomes the order of tiles. Not all SMs work when fewer finish in as many waves.
// Leaves   TIR_SELECTED.
// Reports  Nothing; a remark says why a kernel with roles stays as it is.
//
// The rule: a kernel whose blocks fill more than half of an SM's shared memory. Of smaller ones several run on an SM, and the
// hardware overlaps their phases by itself.
#include "passes/roles/plan.h"
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

static bool refuse(const PassCx *cx, const TirKernel *kernel, const char *why) {
  diag_remark(cx->ds, kernel->span, "a block computes one tile: %s", why);
  return false;
}

static bool is_worth_it(PassCx *cx, TirKernel *kernel) {
  RolePlan plan;
  if (!plan_roles(&plan, cx, kernel, true) || !find_grid(kernel)) return false;
  if (counts_sms(kernel)) return refuse(cx, kernel, "the kernel looks at the number of SMs itself");
  if (plan_shared_bytes(&plan) * 2 <= cx->target->shared_bytes)
    return refuse(cx, kernel, "several blocks share an SM, which overlaps them");
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

static void place_of(const TirKernel *kernel, TirBuilder *b, const Domain *d, TirValue *tile, TirValue **at) {
  bool columns = kernel->block_order == BLOCKS_BY_COLUMNS;
  int64_t rows = kernel->block_order == BLOCKS_AS_LAUNCHED ? ROWS_OF_GROUP : kernel->panel;
  TirValue *group = tir_int(b, rows), *rest = tir_binary(b, OP_truncmod, tile, d->layer);
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
  TirValue *block = tir_block_idx(&b, 0), *at[DIMENSIONS];
  block->name = intern(cx->module->names, "worker");
  TirOp *loop = tir_for(&b, LOOP_SERIAL, block, domain.tiles, tir_block_count(&b, 0));
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

bool pass_persistent(PassCx *cx, TirKernel *kernel) {
  if (kernel->variant == VARIANT_GENERAL) return true;
  fold_clears(cx, kernel);
  if (is_worth_it(cx, kernel)) loop_over_tiles(cx, kernel);
  return true;
}

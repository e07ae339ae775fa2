// Needs    TIR_SYNCED.
// Does     Lets each warpgroup leave its part of a result on its own. Where the results of products go out by panels
//          (stores.c) and every warpgroup holds rows of its own, the threads of all of them would meet at each panel for nothing:
//
//            sync_threads; copy %acc, %slot; fence; sync_threads; one_thread { copy %slot, %C; … }
//
//          becomes, with as many rows of the slot and of the box as a warpgroup has,
//
//            role 0-127 { sync }, 128-255 { sync }; copy %acc, %slot; fence;
//            role 0-127 { sync; one_thread { copy %slot[0:64], %C[0:64]; … } }, 128-255 { sync; one_thread { … } }
//
//          So one warpgroup's results leave while another still multiplies: the tensor core does not wait for either.
// Leaves   TIR_SYNCED. That nothing needed the wider meetings is for sync-check to find, which knows who holds which rows.
// Reports  That no warpgroup can, where the source asks for it; a remark says why others meet.
#include "passes/hazards.h"
#include "passes/meet.h"
#include "passes/tile.h"
#include "target/rules.h"

enum { GROUP = 128, ROWS = 0, COLUMNS = 1, MOST_GROUPS = 4 };

typedef struct {
  PassCx *cx;
  TirKernel *kernel;
  TirOp *role;
  int lo, groups;  // first thread; warpgroups
  int64_t rows;    // of a warpgroup
  int ids[MOST_GROUPS];
  bool *maps;  // of the kernel: whether these stores use it
  const TirOp *at;
  const char
      *why;  // the role's warpgroups meet about its panels, and where that is seen; NULL: they need not
} Narrow;

static bool refuse(Narrow *n, const TirOp *at, const char *why) {
  n->at = at;
  n->why = why;
  return false;
}

// ---- whether a role's meetings are only for its panels

static bool is_panel_copy(const TirOp *op) {
  TirValue *src, *dst;
  return op_path(op) == PATH_THREADS && tile_move(op, &src, &dst) && tile_is_fragment(src) &&
         dst->type.space == SPACE_SHARED && src->type.rank == 2 && dst->type.rank == 2;
}

// Threads g * 128 up to (g + 1) * 128 hold rows g * n up to (g + 1) * n of the whole fragment, for all g.
static bool holds_rows(const TirValue *fragment, int groups) {
  const Type *type = &tir_root((TirValue *)fragment)->type;
  const Layout *layout = tir_layout(fragment);
  if (type->rank != 2 || type->shape[ROWS] % groups || layout_threads(layout) != groups * GROUP) return false;
  int64_t share = type->shape[ROWS] / groups * type->shape[COLUMNS], last = layout_registers(layout) - 1;
  for (int t = 0; t < groups * GROUP; t++)
    if (layout_element(layout, t, 0) / share != t / GROUP ||
        layout_element(layout, t, last) / share != t / GROUP)
      return false;
  return fragment->type.shape[ROWS] == type->shape[ROWS];
}

static bool touches_memory(const TirOp *op) {
  for (int i = 0; i < op->nargs; i++) {
    if (!tile_access(op, i)) continue;
    Space space = op->args[i]->type.space;
    if (space == SPACE_SHARED || (space == SPACE_GLOBAL && tile_access(op, i) & WRITES)) return true;
  }
  return false;
}

// Tiles of a tensor that are apart or the same, not shifted: then a row is always the same warpgroup's, and its thread stores in
// order what it stores there.
static bool keeps_rows(const TirOp *store) {
  TirValue *src, *dst;
  if (!tile_move(store, &src, &dst)) return false;
  RuleTile tile = rule_tile(dst);
  int row = tile.root->type.rank - 2;
  return row >= 0 && tile.start[row].multiple % tile.extent[row] == 0;
}

static bool fits_panel(Narrow *n, const TirOp *op) {
  int64_t rows = op->args[0]->type.shape[ROWS] / n->groups;
  if (n->rows != 0 && n->rows != rows) return refuse(n, op, "its panels have different numbers of rows");
  n->rows = rows;
  return holds_rows(op->args[0], n->groups) || refuse(n, op, "they do not each hold rows of their own");
}

static bool fits_store(Narrow *n, const TirOp *op) {
  int64_t map = tile_attr(op, "map", -1);
  if (map < 0 || !keeps_rows(op))
    return refuse(
        n, op, "tiles of the tensor may lie over a part of each other, and a row be another one's next time");
  n->maps[map] = true;
  return true;
}

static bool fits(Narrow *n, const TirOp *op) {
  if (op->kind == OP_role) return refuse(n, op, "a branch on the thread index stands beside the stores");
  if (op->kind == OP_sync_warp) return true;
  if (op->kind == OP_atomic || op->kind == OP_atomic_load || op->kind == OP_atomic_store)
    return refuse(n, op, "an atomic may tell of what all of them have stored");
  if (op->kind == OP_print) return refuse(n, op, "lines are printed here");
  if (op_path(op) == PATH_TMA_LOAD) return refuse(n, op, "their role loads tiles too");
  if (is_panel_copy(op)) return fits_panel(n, op);
  if (op_path(op) == PATH_TMA_STORE) return fits_store(n, op);
  return path_is_mma(op_path(op)) || !touches_memory(op) ||
         refuse(n, op, "threads read or write shared memory, or write a tensor, here too");
}

// The boxes of these stores have all rows of a panel, and no other store has them.
static bool boxes_fit(Narrow *n, TirOpList all) {
  for (int i = 0; i < all.len; i++) {
    int64_t number = tile_attr(all.data[i], "map", -1);
    if (number < 0 || !n->maps[number]) continue;
    if (!tir_inside(all.data[i], n->role)) return refuse(n, all.data[i], "another role has the same box");
    const TirMap *map = &n->kernel->maps.data[number];
    int rank = map->tensor->type.rank;
    if (rank < 2 || map->box[rank - 2] != n->rows * n->groups)
      return refuse(n, all.data[i], "the box of the store is not as high as a panel");
  }
  return true;
}

static bool is_region(const TirOp *op) {
  return op->kind == OP_one_thread || (op->kind == OP_sync_threads && op->attrs[SYNC_id]);
}

// What one thread does by itself: only what concerns the stores.
static bool regions_fit(Narrow *n, TirOpList ops) {
  for (int i = 0; i < ops.len; i++) {
    if (ops.data[i]->kind != OP_one_thread) continue;
    for (const TirOp *op = ops.data[i]->bodies[0]->first; op; op = op->next) {
      bool store = op_path(op) == PATH_TMA_STORE || op->kind == OP_bulk_commit || op->kind == OP_bulk_wait;
      if (!store && !op_def(op->kind)->pure) return refuse(n, op, "one thread does more than store here");
    }
  }
  return true;
}

static bool find_ids(Narrow *n, TirOpList all) {
  bool taken[NAMED_BARRIERS] = {true};
  int found = 0;
  for (int i = 0; i < all.len; i++)
    if (all.data[i]->kind == OP_sync_threads && !tir_inside(all.data[i], n->role))
      taken[all.data[i]->attrs[SYNC_id] % NAMED_BARRIERS] = true;
  for (int id = NAMED_BARRIERS - 1; id > 0 && found < n->groups; id--)
    if (!taken[id]) n->ids[found++] = id;
  return found == n->groups || refuse(n, n->role, "there are no named barriers left for each");
}

// Whether products read the tile that a copy from a fragment writes: then every warpgroup waits for all of it.
static bool feeds_products(TirOpList ops, const TirOp *write) {
  const TirValue *tile = tir_root(write->args[1]);
  for (int i = 0; i < ops.len; i++)
    for (int a = 0; a < ops.data[i]->nargs && path_is_mma(op_path(ops.data[i])); a++)
      if (tile_access(ops.data[i], a) && tir_root(ops.data[i]->args[a]) == tile) return true;
  return false;
}

static bool has_panels(TirOpList ops) {
  bool writes = false, stores = false;
  for (int i = 0; i < ops.len; i++) {
    writes = writes || is_panel_copy(ops.data[i]);
    stores = stores || op_path(ops.data[i]) == PATH_TMA_STORE;
  }
  return writes && stores;
}

static bool can_narrow(Narrow *n, TirOpList all) {
  TirOpList ops = tile_collect(n->cx->scratch, n->role->bodies[0]);
  if (!has_panels(ops)) return false;
  if (n->groups > MOST_GROUPS) return refuse(n, n->role, "they are more than four");
  for (int i = 0; i < ops.len; i++) {
    if (!fits(n, ops.data[i])) return false;
    if (is_panel_copy(ops.data[i]) && feeds_products(ops, ops.data[i]))
      return refuse(n, ops.data[i], "products read what is written here");
  }
  return regions_fit(n, ops) && boxes_fit(n, all) && find_ids(n, all);
}

// Says why, in the variant that is told of, unless the source asks and pass_narrow answers.
static void remark(const Narrow *n) {
  if (n->why && n->kernel->variant != VARIANT_GENERAL && !tir_asks_for(n->kernel, CHOICE_narrow))
    diag_remark(n->cx->ds, n->at->span, "warpgroups meet before they store: %s", n->why);
}

// ---- carrying it out

static TirValue *rows_of(TirBuilder *b, TirValue *tile, int64_t first, int64_t count) {
  TirValue *offsets[TYPE_MAX_RANK];
  int64_t extents[TYPE_MAX_RANK];
  int rank = tile->type.rank;
  for (int d = 0; d < rank; d++) {
    offsets[d] = tir_int(b, d == rank - 2 ? first : 0);
    extents[d] = d == rank - 2 ? count : tile->type.shape[d];
  }
  return tir_view(b, tile, offsets, extents, 0);
}

static void repeat_for(const Narrow *n, TirBuilder *b, const TirOp *op, int group) {
  TirValue *args[OP_MAX_OPERANDS];
  b->span = op->span;
  for (int i = 0; i < op->nargs; i++)
    args[i] = tile_access(op, i) ? rows_of(b, op->args[i], group * n->rows, n->rows) : op->args[i];
  TirOp *copy = tir_op(b, op->kind, op->nargs, args, 0, NULL);
  for (int i = 0; i < OP_MAX_ATTRS; i++) copy->attrs[i] = op->attrs[i];
  if (op->kind != OP_sync_threads) return;
  copy->attrs[SYNC_id] = n->ids[group];
  copy->attrs[SYNC_count] = GROUP;
}

static void emit_group(const Narrow *n, TirBuilder *at, TirOp *const *run, int count, int group) {
  int lo = n->lo + group * GROUP;
  TirOp *role = tir_role(at, (TirThreads){lo, lo + GROUP});
  role->attrs[ROLE_arm] = group > 0;
  TirBuilder b = tir_builder_at_end(n->cx->module, role->bodies[0], at->span);
  for (int i = 0; i < count; i++) {
    if (run[i]->kind == OP_sync_threads) {
      repeat_for(n, &b, run[i], group);
      continue;
    }
    TirOp *one = tir_one_thread(&b);
    TirBuilder inside = tir_builder_at_end(n->cx->module, one->bodies[0], b.span);
    for (const TirOp *op = run[i]->bodies[0]->first; op; op = op->next)
      if (!op_def(op->kind)->pure) repeat_for(n, &inside, op, group);
  }
}

// What the regions compute with is computed in front of them.
static void hoist(TirOp *before, TirOp *const *run, int count) {
  for (int i = 0; i < count; i++)
    for (TirOp *op = run[i]->nbodies ? run[i]->bodies[0]->first : NULL, *next; op; op = next) {
      next = op->next;
      if (!op_def(op->kind)->pure) continue;
      tir_remove(op);
      tir_insert_before(before, op);
    }
}

static void narrow_block(const Narrow *n, TirBlock *block) {
  for (TirOp *op = block->first, *next; op; op = next) {
    next = op->next;
    if (!is_region(op)) {
      for (int i = 0; i < op->nbodies; i++) narrow_block(n, op->bodies[i]);
      continue;
    }
    VEC(TirOp *) run = {0};
    TirOp *end = op;
    for (; end && (is_region(end) || op_def(end->kind)->pure); end = end->next)
      if (is_region(end)) vec_push(n->cx->scratch, &run, end);
    next = end;
    for (TirOp *pure = op, *after; pure != end; pure = after) {
      after = pure->next;
      if (is_region(pure) || pure == op) continue;
      tir_remove(pure);
      tir_insert_before(op, pure);
    }
    hoist(op, run.data, run.len);
    TirBuilder at = tir_builder_before(n->cx->module, op);
    for (int g = 0; g < n->groups; g++) emit_group(n, &at, run.data, run.len, g);
    for (int i = 0; i < run.len; i++) tir_remove(run.data[i]);
  }
}

static void narrow_boxes(const Narrow *n) {
  for (int m = 0; m < n->kernel->maps.len; m++) {
    TirMap *map = &n->kernel->maps.data[m];
    if (n->maps[m]) map->box[map->tensor->type.rank - 2] = n->rows;
  }
}

// The role's first thread and warpgroups; false: fewer than two, or no whole ones.
static bool is_of_warpgroups(Narrow *n) {
  int threads = (int)n->role->attrs[ROLE_hi] - n->lo;
  n->groups = threads / GROUP;
  return threads % GROUP == 0 && n->lo % GROUP == 0 && n->groups >= 2;
}

bool pass_narrow(PassCx *cx, TirKernel *kernel) {
  TirOpList all = tile_collect(cx->scratch, kernel->body);
  bool narrowed = false;
  Span at = {0, 0};
  const char *why = "no role of several warpgroups stores, by panels, rows that each of them holds alone";
  for (int i = 0; i < all.len; i++) {
    TirOp *role = all.data[i];
    if (role->kind != OP_role || role->parent != kernel->body) continue;
    Narrow n = {.cx = cx, .kernel = kernel, .role = role, .lo = (int)role->attrs[ROLE_lo]};
    n.maps = ARENA_ARRAY(cx->scratch, bool, kernel->maps.len + 1);
    if (!is_of_warpgroups(&n)) continue;
    if (!can_narrow(&n, all)) {
      remark(&n);
      if (n.why) at = n.at->span, why = n.why;
      continue;
    }
    narrow_block(&n, role->bodies[0]);
    narrow_boxes(&n);
    narrowed = true;
  }
  if (narrowed || kernel->variant == VARIANT_GENERAL || !tir_asks_for(kernel, CHOICE_narrow)) return true;
  return pass_refuse_choice(cx, kernel, CHOICE_narrow, at, why);
}

// Carries out what pass defer decided, when the roles are there:
//
//   for tile {                              for tile {
//     for k { products }                      for k { products; if not the first tile and a panel is due { that panel of kept } }
//     copy acc, C[…], _, S {late}     ->      copy acc, kept
//   }                                         if it is the last tile, or rounds are fewer than panels { all panels of kept }
//                                           }
//
// The place in the tensor depends on the tile, so what it is computed from waits in cells. Panels are due every round, or every
// other one where rounds are enough: then the panel before has left its slot, and no round has to do more than one.
#include "passes/hazards.h"
#include "passes/roles/plan.h"
#include "target/rules.h"

enum { MOST_APART = 2 };  // rounds from one panel to the next; more gained nothing

typedef struct {
  TirOp *op;       // the copy by panels
  TirValue *kept;  // a fragment in the type of the tensor
  int64_t panels;
} Result;

typedef struct {
  TirValue *value, *cell;
} Carried;

typedef struct {
  PassCx *cx;
  TirKernel *kernel;
  TirOp *role, *tiles, *rounds;  // threads; the loop over tiles in it; the loop of products in that
  VEC(Result) results;
  VEC(Carried) carried;  // what of a tile the next one must know
  int64_t panels;        // the most of any result
  TirValue *count;       // of rounds
  TirValue *apart;       // rounds from one panel to the next
} Late;

static TirOp *find_loop(const TirBlock *block, bool (*fits)(const TirOp *)) {
  for (TirOp *op = block->first; op; op = op->next)
    if (op->kind == OP_for && fits(op)) return op;
  return NULL;
}

// Products that run on into the next round: another loop may step or end otherwise than panels are counted.
static bool multiplies(const TirOp *loop) {
  for (const TirOp *op = loop->bodies[0]->first; op; op = op->next)
    if (path_is_mma(op_path(op)) && tile_attr(op, "explicit", false)) return true;
  return false;
}

static bool takes_tiles(const TirOp *loop) {
  return loop->attrs[FOR_kind] == LOOP_TILES && find_loop(loop->bodies[0], multiplies);
}

static void find_results(Late *l) {
  for (TirOp *op = l->rounds; op; op = op->next) {
    if (!tile_ring(op) || !tile_attr(op, "late", false)) continue;
    int64_t panels = op->args[1]->type.shape[1] / tile_ring(op)->type.shape[2];
    vec_push(l->cx->scratch, &l->results, ((Result){.op = op, .panels = panels}));
    if (panels > l->panels) l->panels = panels;
  }
}

// ---- what the next tile must know

static TirValue *cell_of(Late *l, TirValue *value) {
  for (int i = 0; i < l->carried.len; i++)
    if (l->carried.data[i].value == value) return l->carried.data[i].cell;
  TirBuilder b = tir_builder_before(l->cx->module, l->tiles);
  Name name = value->name ? value->name : intern(l->cx->module->names, "place");
  TirValue *cell = tir_cell(&b, name, value->type.dtype, tir_int_typed(&b, value->type.dtype, 0));
  vec_push(l->cx->scratch, &l->carried, ((Carried){value, cell}));
  return cell;
}

// The value that it had in the tile before. What is a known multiple stays one: factors and terms known at launch are applied anew.
static TirValue *carry(Late *l, TirBuilder *b, TirValue *value) {
  const TirOp *op = value->op;
  if (!tir_inside(op, l->tiles) && op != l->tiles) return value;
  if ((op->kind == OP_mul || op->kind == OP_add) && tir_in_launch(op->args[1]))
    return tir_binary(b, op->kind, carry(l, b, op->args[0]), op->args[1]);
  return tir_get(b, cell_of(l, value));
}

static TirValue *carry_place(Late *l, TirBuilder *b, TirValue *tile) {
  const TirOp *op = tile->op;
  TirValue *offsets[TYPE_MAX_RANK];
  int64_t extents[TYPE_MAX_RANK];
  if (op->kind != OP_view || !tir_inside(op, l->tiles)) return tile;
  TirValue *whole = carry_place(l, b, op->args[0]);
  for (int i = 0, kept = 0; i < whole->type.rank; i++) {
    bool dropped = op->attrs[VIEW_drop] >> i & 1;
    offsets[i] = carry(l, b, op->args[1 + i]);
    extents[i] = dropped ? 1 : tile->type.shape[kept++];
  }
  return tir_view(b, whole, offsets, extents, (unsigned)op->attrs[VIEW_drop]);
}

// ---- carrying it out

static TirBuilder inside_if(Late *l, TirBuilder *b, TirValue *condition) {
  TirOp *branch = tir_if(b, condition);
  return tir_builder_at_end(l->cx->module, branch->bodies[0], b->span);
}

// Of each result that has so many panels; `place` is its tile of the tensor.
static void store_panel(Late *l, TirBuilder *b, int64_t panel,
                        TirValue *(*place)(Late *, TirBuilder *, TirValue *)) {
  for (int i = 0; i < l->results.len; i++) {
    const Result *result = &l->results.data[i];
    if (panel >= result->panels) continue;
    b->span = result->op->span;
    TirValue *args[] = {result->kept, place(l, b, result->op->args[1]), NULL, tile_ring(result->op)};
    TirOp *store = tir_op(b, result->op->kind, 4, args, 0, NULL);
    tile_set_attr(store, "path", PATH_PANELS);
    tile_set_attr(store, "panel", panel);
  }
}

static TirValue *this_place(Late *l, TirBuilder *b, TirValue *tile) {
  (void)l, (void)b;
  return tile;
}

// How far apart panels are, at most so that all find a round.
static void measure(Late *l, TirBuilder *b) {
  l->count = tir_binary(b, OP_sub, l->rounds->args[FOR_HI], l->rounds->args[FOR_LO]);
  TirValue *fitting = tir_binary(b, OP_floordiv, l->count, tir_int(b, l->panels));
  TirValue *least = tir_int(b, 1), *most = tir_int(b, MOST_APART);
  l->apart = tir_binary(b, OP_min, tir_binary(b, OP_max, fitting, least), most);
}

// The round, counted from 0, in which a panel is due: the last of its share.
static TirValue *due(const Late *l, TirBuilder *b, int64_t panel) {
  TirValue *next = tir_binary(b, OP_mul, l->apart, tir_int(b, panel + 1));
  return tir_binary(b, OP_sub, next, tir_int(b, 1));
}

static void store_under_products(Late *l, TirValue *later) {
  TirBuilder b = tir_builder_at_end(l->cx->module, l->rounds->bodies[0], l->rounds->span);
  TirValue *round = tir_binary(&b, OP_sub, l->rounds->results[0], l->rounds->args[FOR_LO]);
  TirValue *any = tir_binary(&b, OP_le, round, due(l, &b, l->panels - 1));
  TirBuilder some = inside_if(l, &b, tir_binary(&b, OP_and, later, any));
  for (int64_t p = 0; p < l->panels; p++) {
    TirBuilder one = inside_if(l, &some, tir_binary(&some, OP_eq, round, due(l, &some, p)));
    store_panel(l, &one, p, carry_place);
  }
}

// Behind the last tile there are no products to leave under.
static void store_at_once(Late *l, TirValue *few) {
  TirBuilder b = tir_builder_at_end(l->cx->module, l->tiles->bodies[0], l->tiles->span);
  TirValue *left = tir_binary(&b, OP_sub, l->tiles->args[FOR_HI], l->tiles->results[0]);
  TirValue *last = tir_binary(&b, OP_le, left, l->tiles->args[FOR_STEP]);
  TirBuilder now = inside_if(l, &b, tir_binary(&b, OP_or, last, few));
  for (int64_t p = 0; p < l->panels; p++) store_panel(l, &now, p, this_place);
}

static void declare(Late *l, Result *result) {
  const char *tensor = tir_buffer_name(result->op->args[1]);
  const Type *to = &result->op->args[1]->type;
  TirBuilder b = tir_builder_before(l->cx->module, l->role);
  b.span = result->op->span;
  Name name = intern(l->cx->module->names, text_printf(l->cx->module->arena, "%s_late", tensor));
  result->kept = tir_alloc(&b, name, type_buffer(to->dtype, SPACE_FRAGMENT, to->rank, to->shape));
  result->kept->name = name;
  result->kept->op->attrs[ALLOC_late] = true;
}

static void keep(Late *l, const Result *result) {
  TirBuilder b = tir_builder_before(l->cx->module, result->op);
  b.span = result->op->span;
  tile_set_attr(rule_make_copy(&b, result->op->args[0], result->kept), "path", PATH_THREADS);
}

static void carry_on(Late *l) {
  TirBuilder b = tir_builder_at_end(l->cx->module, l->tiles->bodies[0], l->tiles->span);
  for (int i = 0; i < l->carried.len; i++) tir_set(&b, l->carried.data[i].cell, l->carried.data[i].value);
}

static void rewrite(Late *l) {
  TirBuilder b = tir_builder_before(l->cx->module, l->rounds);
  TirValue *follows = tir_binary(&b, OP_ne, l->tiles->results[0], l->tiles->args[FOR_LO]);
  measure(l, &b);
  TirValue *few = tir_binary(&b, OP_lt, l->count, tir_int(&b, l->panels));
  for (int i = 0; i < l->results.len; i++) declare(l, &l->results.data[i]);
  store_under_products(l, tir_binary(&b, OP_and, follows, tir_unary(&b, OP_not, few)));
  for (int i = 0; i < l->results.len; i++) keep(l, &l->results.data[i]);
  store_at_once(l, few);
  carry_on(l);
  for (int i = 0; i < l->results.len; i++) tir_remove(l->results.data[i].op);
}

void send_late(PassCx *cx, TirKernel *kernel) {
  TirOpList all = tile_collect(cx->scratch, kernel->body);
  for (int i = 0; i < all.len; i++) {
    Late l = {.cx = cx, .kernel = kernel, .role = all.data[i]};
    if (l.role->kind != OP_role || l.role->parent != kernel->body) continue;
    l.tiles = find_loop(l.role->bodies[0], takes_tiles);
    if (!l.tiles) continue;
    l.rounds = find_loop(l.tiles->bodies[0], multiplies);
    find_results(&l);
    if (l.results.len) rewrite(&l);
  }
}

// Needs    TIR_SELECTED.
// Does     Results of products leave by panels. Where a fragment goes to a tensor through a tile in shared memory that does nothing
//          else, or straight,
//
//            copy %acc, %S {path = threads}; …; %t = copy %S, %C[i, j] {path = tma_store}; wait %t
//            copy %acc, %C[i, j] {path = threads}
//
//          it becomes one op, and the tile a ring of slots as wide as the swizzle of a box:
//
//            copy %acc, %C[i, j], _, %S {path = panels}                     (S: slots x rows x columns of a panel)
//
//          Threads write a panel without bank conflicts while the one before is on its way; shared memory that is not taken
//          goes to the stages of the loads. The steps are written out when fragments have their layouts
//          (store_panels.c): until then this is one op like any other.
// Leaves   Paths `panels`; guards for tensors that are stored so.
// Reports  A result that cannot though the source asks for it; a remark says why another goes another way.
#include "passes/fragment_layouts.h"
#include "passes/hazards.h"
#include "passes/tile.h"
#include "target/rules.h"

enum { SLOTS = 2, ROWS_OF_SWIZZLE = 8 };

// A fragment's way to a tensor: into the tile and out, or one op that is both.
typedef struct {
  TirOp *write, *store;
} Pair;

typedef struct {
  TirValue *tile;  // NULL: threads store the fragment straight to the tensor
  Type type;       // of what is stored, in shared memory
  VEC(Pair) pairs;
  const TirOp *at;  // what `why` is about
  const char *why;  // it goes another way; NULL: by panels
} Candidate;

typedef struct {
  PassCx *cx;
  TirKernel *kernel;
  TirOpList all;
  VEC(TirValue *) products;  // fragments that hold results of products
  VEC(Candidate) candidates;
  int64_t room;  // shared memory for rings that the author has no tile for
} Stores;

// ---- fragments with results of products

static bool is_product(const Stores *s, const TirValue *fragment) {
  for (int i = 0; i < s->products.len; i++)
    if (s->products.data[i] == fragment) return true;
  return false;
}

static bool add_product(Stores *s, TirValue *fragment) {
  if (!tile_is_fragment(fragment) || is_product(s, fragment)) return false;
  vec_push(s->cx->scratch, &s->products, fragment);
  return true;
}

static bool is_accumulator(const TirOp *op, int i) {
  return path_is_mma(op_path(op)) && tile_access(op, i) == ACCUMULATES;
}

static bool is_own_element(const TirOp *parallel, const TirOp *op, OpKind kind) {
  return op->kind == kind && tile_is_fragment(op->args[0]) &&
         fragment_access(parallel, op).kind == ACCESS_IDENTITY;
}

// What is computed element by element from such a fragment will be spread over the threads like it.
static bool follow_loop(Stores *s, TirOp *parallel) {
  TirOpList body = tile_collect(s->cx->scratch, parallel->bodies[0]);
  bool reads = false, grew = false;
  for (int i = 0; i < body.len; i++)
    reads =
        reads || (is_own_element(parallel, body.data[i], OP_load) && is_product(s, body.data[i]->args[0]));
  for (int i = 0; i < body.len && reads; i++)
    if (is_own_element(parallel, body.data[i], OP_store))
      grew = add_product(s, body.data[i]->args[0]) || grew;
  return grew;
}

static bool follow(Stores *s, TirOp *op) {
  TirValue *src, *dst;
  bool grew = false;
  for (int i = 0; i < op->nargs; i++)
    if (is_accumulator(op, i)) grew = add_product(s, op->args[i]) || grew;
  if (op->kind == OP_parallel) return follow_loop(s, op) || grew;
  if (tile_is(op) && tile_move(op, &src, &dst) && (op_path(op) == PATH_TMEM_LOAD || is_product(s, src)))
    grew = add_product(s, dst) || grew;
  return grew;
}

static void find_products(Stores *s) {
  for (bool grew = true; grew;) {
    grew = false;
    for (int i = 0; i < s->all.len; i++) grew = follow(s, s->all.data[i]) || grew;
  }
}

// ---- tiles between a fragment and the TMA

static bool refuse(Candidate *c, const TirOp *at, const char *why) {
  c->at = at;
  c->why = why;
  return false;
}

static bool is_write(const TirOp *op, const TirValue *tile) {
  TirValue *src, *dst;
  return tile_is(op) && op_path(op) == PATH_THREADS && tile_move(op, &src, &dst) && dst == tile &&
         tile_is_fragment(src) && src->op->kind == OP_alloc && tile_access(op, 1) == WRITES;
}

static bool is_store(const TirOp *op, const TirValue *tile) {
  TirValue *src, *dst;
  return tile_is(op) && op_path(op) == PATH_TMA_STORE && op->nresults == 1 && tile_move(op, &src, &dst) &&
         src == tile && tile_access(op, 1) == WRITES;
}

static bool uses(const TirOp *op, TirValue *root) {
  for (int i = 0; i < op->nargs; i++)
    if (op->args[i] && op->args[i]->type.kind == TYPE_BUFFER && tir_root(op->args[i]) == root) return true;
  return false;
}

static bool writes(const TirOp *op, const TirValue *root) {
  for (int i = 0; i < op->nargs; i++)
    if (tile_access(op, i) & WRITES && tir_root(op->args[i]) == root) return true;
  return false;
}

// The uses of the tile are such pairs, one after another.
static bool find_pairs(Stores *s, Candidate *c) {
  TirOp *write = NULL;
  for (int i = 0; i < s->all.len; i++) {
    TirOp *op = s->all.data[i];
    if (!uses(op, c->tile)) continue;
    if (is_write(op, c->tile) && !write) {
      write = op;
    } else if (is_store(op, c->tile) && write) {
      vec_push(s->cx->scratch, &c->pairs, ((Pair){write, op}));
      write = NULL;
    } else {
      return refuse(c, op, "it is used here too");
    }
  }
  return !write || refuse(c, write, "what is written here is not stored at once");
}

// The fragment is read where the store stands, so it must still hold what it held at the write.
static bool check_pair(Stores *s, Candidate *c, const Pair *pair) {
  TirValue *fragment = pair->write->args[0];
  if (pair->write->parent != pair->store->parent)
    return refuse(c, pair->store, "it is written in another block than it is stored in");
  for (TirOp *op = pair->write; op != pair->store; op = op->next) {
    if (!op) return refuse(c, pair->store, "it is stored before it is written");
    bool written = writes(op, fragment);
    for (int i = 0; i < op->nbodies && !written; i++) {
      TirOpList inside = tile_collect(s->cx->scratch, op->bodies[i]);
      for (int k = 0; k < inside.len; k++) written = written || writes(inside.data[k], fragment);
    }
    if (written) return refuse(c, op, "the fragment changes before the tile is stored");
  }
  TirThreads here = tir_active_threads(pair->store->parent),
             first = tir_active_threads(c->pairs.data[0].store->parent);
  return (here.lo == first.lo && here.hi == first.hi) ||
         refuse(c, pair->store, "threads of several roles store it");
}

static int64_t panel_columns(const Type *type) {
  return rule_row_span(type) / dtype_bytes(type->dtype);
}

static Type ring_type(const Type *type) {
  int64_t columns = panel_columns(type), panels = type->shape[1] / columns;
  int64_t shape[] = {panels < SLOTS ? panels : SLOTS, type->shape[0], columns};
  return type_buffer(type->dtype, SPACE_SHARED, 3, shape);
}

static bool check_shape(Candidate *c) {
  const Type *type = &c->type;
  if (c->tile) c->at = c->tile->op;
  if (type->rank != 2 || (c->tile && c->tile->op->attrs[ALLOC_plain]))
    return refuse(c, c->at, "it is no matrix");
  if (type->shape[0] % ROWS_OF_SWIZZLE) return refuse(c, c->at, "its rows are no multiple of 8");
  if (dtype_bytes(type->dtype) == 0 || rule_row_span(type) == 0)
    return refuse(c, c->at, "the bytes of a row are no multiple of 32");
  return true;
}

// A box of the tensor map is a panel.
static bool check_box(Stores *s, Candidate *c, const Pair *pair) {
  RuleTile to = rule_tile(pair->store->args[1]);
  int64_t box[TYPE_MAX_RANK], columns = panel_columns(&c->type);
  int last = to.root->type.rank - 1;
  const char *why = rule_tensor_obstacle(&to, true);
  if (why) return refuse(c, pair->store, why);
  if (to.dim[1] != last) return refuse(c, pair->store, "its rows lie across those of the tensor");
  to.extent[last] = columns;
  return rule_tma_box(s->cx->target, &to, rule_row_span(&c->type), box) ||
         refuse(c, pair->store, "the TMA has no box for its panels");
}

static void examine(Stores *s, Candidate *c) {
  bool ok = c->pairs.len > 0 && check_shape(c);
  for (int i = 0; i < c->pairs.len && ok; i++)
    ok = check_pair(s, c, &c->pairs.data[i]) && check_box(s, c, &c->pairs.data[i]);
}

// ---- tiles of the author

static TirOp *first_store(const Stores *s, const TirValue *tile) {
  for (int i = 0; i < s->all.len; i++)
    if (is_store(s->all.data[i], tile)) return s->all.data[i];
  return NULL;
}

static bool holds_product(const Stores *s, const TirValue *tile) {
  for (int i = 0; i < s->all.len; i++) {
    TirValue *src, *dst;
    if (tile_move(s->all.data[i], &src, &dst) && tir_root(dst) == tile && is_product(s, tir_root(src)))
      return true;
  }
  return false;
}

static void find_tile(Stores *s, const TirOp *alloc) {
  TirValue *tile = alloc->results[0];
  if (tile->type.space != SPACE_SHARED || !first_store(s, tile) || !holds_product(s, tile)) return;
  Candidate c = {.tile = tile, .type = tile->type};
  if (find_pairs(s, &c)) examine(s, &c);
  vec_push(s->cx->scratch, &s->candidates, c);
}

// ---- fragments stored straight

// Whether other launches than those for which the TMA reaches the tensor have a kernel.
static bool may_guard(const Stores *s, const TirValue *tensor) {
  bool guarded = s->kernel->variant == VARIANT_TMA;
  for (int i = 0; i < s->kernel->guards.len; i++)
    guarded = guarded || (s->kernel->guards.data[i].tensor == tensor && s->kernel->guards.data[i].store);
  return guarded;
}

static void find_direct(Stores *s, TirOp *op) {
  TirValue *src, *dst;
  if (!tile_is(op) || op_path(op) != PATH_THREADS || !tile_move(op, &src, &dst) || !is_product(s, src) ||
      tile_attr(op, "no_tma", false))
    return;
  if (dst->type.space != SPACE_GLOBAL || tile_access(op, 1) != WRITES || src->op->kind != OP_alloc) return;
  Candidate c = {.type = dst->type, .at = op};
  c.type.space = SPACE_SHARED;
  vec_push(s->cx->scratch, &c.pairs, ((Pair){op, op}));
  examine(s, &c);
  if (!c.why && !may_guard(s, tir_root(dst)))
    refuse(&c, op, "no copy by the TMA asks for a kernel of its own");
  Type ring = c.why ? c.type : ring_type(&c.type);
  if (!c.why && type_bytes(&ring) > s->room) refuse(&c, op, "shared memory has no room for them");
  if (!c.why) s->room -= type_bytes(&ring);
  vec_push(s->cx->scratch, &s->candidates, c);
}

// What is left when the author's tiles stand there twice, for two stages of them.
static int64_t room_for_rings(const Stores *s) {
  int64_t room = s->cx->target->shared_bytes - RESERVED_BYTES;
  for (int i = 0; i < s->all.len; i++)
    if (s->all.data[i]->kind == OP_alloc && s->all.data[i]->results[0]->type.space == SPACE_SHARED)
      room -= 2 * type_bytes(&s->all.data[i]->results[0]->type);
  return room;
}

// ---- tensors

static bool leaves_by_panels(const Stores *s, const TirOp *store) {
  for (int i = 0; i < s->candidates.len; i++)
    for (int p = 0; p < s->candidates.data[i].pairs.len; p++)
      if (s->candidates.data[i].pairs.data[p].store == store) return !s->candidates.data[i].why;
  return false;
}

// Nobody waits for a panel to arrive but the next store of the same thread: an op that looks at the tensor, or writes it in
// another way, would have to.
static bool check_tensor(const Stores *s, Candidate *c, TirValue *tensor) {
  for (int i = 0; i < s->all.len; i++) {
    const TirOp *op = s->all.data[i];
    if (op->kind == OP_view || !uses(op, tensor) || leaves_by_panels(s, op)) continue;
    return refuse(c, op, "the kernel uses the tensor here too");
  }
  return true;
}

// Tells other kernels that what was written before is there: a panel may still be on its way.
static bool releases(const TirOp *op) {
  int64_t order = op->kind == OP_atomic_load ? ORDER_RELAXED : tile_attr(op, "order", ORDER_RELAXED);
  return (order == ORDER_RELEASE || order == ORDER_ACQ_REL || order == ORDER_SEQ_CST) &&
         op->args[0]->type.space == SPACE_GLOBAL;
}

static void check_releases(Stores *s) {
  const TirOp *release = NULL;
  for (int i = 0; i < s->all.len && !release; i++)
    if (releases(s->all.data[i])) release = s->all.data[i];
  for (int i = 0; i < s->candidates.len && release; i++)
    if (!s->candidates.data[i].why)
      refuse(&s->candidates.data[i], release, "other kernels are told here that results are there");
}

static void check_tensors(Stores *s) {
  for (bool refused = true; refused;) {
    refused = false;
    for (int i = 0; i < s->candidates.len; i++) {
      Candidate *c = &s->candidates.data[i];
      for (int p = 0; p < c->pairs.len && !c->why; p++)
        refused = !check_tensor(s, c, tir_root(c->pairs.data[p].store->args[1])) || refused;
    }
  }
}

// ---- rewriting

static TirValue *make_ring(Stores *s, const Candidate *c) {
  const TirValue *tensor = tir_root(c->pairs.data[0].store->args[1]);
  TirOp *at = c->tile ? c->tile->op : s->kernel->body->first;
  TirBuilder b = tir_builder_before(s->cx->module, at);
  Name name = c->tile ? c->tile->op->name
                      : intern(s->cx->module->names,
                               text_printf(s->cx->module->arena, "%s_panels", tir_buffer_name(tensor)));
  b.span = c->pairs.data[0].write->span;
  TirValue *ring = tir_alloc(&b, name, ring_type(&c->type));
  ring->op->attrs[ALLOC_ordered] = true;
  ring->name = c->tile ? c->tile->name : name;
  return ring;
}

static void drop_store(TirOp *store) {
  for (TirOp *wait = store->next; wait && store->nresults; wait = wait->next) {
    if (wait->kind != OP_wait || wait->args[0] != store->results[0]) continue;
    tir_remove(wait);
    break;
  }
  tir_remove(store);
}

static void join(Stores *s, const Pair *pair, TirValue *ring) {
  TirBuilder b = tir_builder_before(s->cx->module, pair->store);
  TirValue *args[] = {pair->write->args[0], pair->store->args[1], NULL, ring};
  TirOp *op = tir_op(&b, pair->write->kind, 4, args, 0, NULL);
  tile_set_attr(op, "path", PATH_PANELS);
  tile_guard(s->cx, s->kernel, tir_root(args[1]), true);
  if (pair->write != pair->store) tir_remove(pair->write);
  drop_store(pair->store);
}

static void rewrite(Stores *s, const Candidate *c) {
  TirValue *ring = make_ring(s, c);
  for (int i = 0; i < c->pairs.len; i++) join(s, &c->pairs.data[i], ring);
  if (c->tile) tir_remove(c->tile->op);
}

static bool report(const Stores *s, const Candidate *c) {
  if (tir_asks_for(s->kernel, CHOICE_stores))
    return pass_refuse_choice(s->cx, s->kernel, CHOICE_stores, c->at->span, c->why);
  if (c->tile)
    diag_remark(s->cx->ds, c->at->span, "%s leaves whole, not by panels: %s", tir_buffer_name(c->tile),
                c->why);
  else
    diag_remark(s->cx->ds, c->at->span, "%s is stored by threads, not by panels: %s",
                tir_buffer_name(c->pairs.data[0].write->args[0]), c->why);
  return true;
}

static bool leaves_already(const Stores *s) {
  for (int i = 0; i < s->all.len; i++)
    if (op_path(s->all.data[i]) == PATH_PANELS) return true;
  return false;
}

static bool check_asked(const Stores *s) {
  if (!tir_asks_for(s->kernel, CHOICE_stores) || s->candidates.len || leaves_already(s)) return true;
  return pass_refuse_choice(s->cx, s->kernel, CHOICE_stores, (Span){0, 0},
                            "no result of a product goes from a fragment to a tensor");
}

bool pass_stores(PassCx *cx, TirKernel *kernel) {
  Stores s = {.cx = cx, .kernel = kernel, .all = tile_collect(cx->scratch, kernel->body)};
  if (kernel->variant == VARIANT_GENERAL) return true;
  find_products(&s);
  s.room = room_for_rings(&s);
  for (int i = 0; i < s.all.len; i++) {
    if (s.all.data[i]->kind == OP_alloc)
      find_tile(&s, s.all.data[i]);
    else
      find_direct(&s, s.all.data[i]);
  }
  check_releases(&s);
  check_tensors(&s);
  bool ok = check_asked(&s);
  for (int i = 0; i < s.candidates.len; i++) {
    if (s.candidates.data[i].why)
      ok = report(&s, &s.candidates.data[i]) && ok;
    else
      rewrite(&s, &s.candidates.data[i]);
  }
  return ok;
}

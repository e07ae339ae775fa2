// Needs    TIR_SELECTED: paths say which engine carries out an op; asynchronous ops yield tokens.
// Does     Warp specialisation of a pipelined loop that loads tiles by TMA and multiplies them:
//
//            for k { copy A -> S; copy B -> T; gemm S, T, C }; rest        (every op waited for)
//
//          becomes warps that work at the same time and hand the tiles over through a ring of stages. The author's threads
//          keep everything but the loop's copies (and, where a single thread issues products, the products); the roles are
//          extra warps behind them:
//
//            role loader   { for k { wait empty[s]; tma_copy A -> S[s], full[s]; … ; arrive full[s] } }
//            role products { for k { wait full[s]; gemm S[s], T[s], C; commit empty[s] }; commit finished }
//            role author   { wait finished; rest }
//
//          On a target whose products are issued by whole warpgroups the author's threads run the second loop, with one
//          product in flight: stage s - 1 is given back when product s has been issued and the one before is done.
//          A stage is s = round mod stages and its use is round / stages: who waits for it to be filled waits for the parity of
//          the use, who waits for it to be read for the opposite one (rules P12, P5).
// Leaves   The explicit forms of copies and products, whose barriers are written out.
// Reports  Nothing; a remark says why a pipelined loop stays as it is.
#include "passes/hazards.h"
#include "passes/tile.h"
#include "target/rules.h"

enum { WARP = 32, GROUP = 128, MOST_THREADS = 1024, RESERVED_BYTES = 2048 };

typedef struct {
  TirValue *buffer, *ring;  // what the author allocated; its stages
} Ring;

typedef struct {
  PassCx *cx;
  TirKernel *kernel;
  TirOp *loop;
  TirOpList all;
  VEC(Ring) rings;
  int ngemms;
  bool by_warpgroups;  // PATH_WGMMA
  int stages, threads;
  TirValue *full, *empty, *finished;
  Name round, stage, use;
} Split;

// ---- whether the loop can be split

static bool refuse(const Split *s, const TirOp *op, const char *why) {
  diag_remark(s->cx->ds, op->span, "no warp roles for this loop: %s", why);
  return false;
}

static bool is_load(const TirOp *op) {
  return op_path(op) == PATH_TMA_LOAD && op->nresults == 1 && !tile_attr(op, "explicit", 0);
}

static bool is_product(const TirOp *op) {
  return path_is_mma(op_path(op)) && op->nresults == 1;
}

static Ring *ring_of(Split *s, const TirValue *buffer) {
  for (int i = 0; i < s->rings.len; i++)
    if (s->rings.data[i].buffer == buffer) return &s->rings.data[i];
  return NULL;
}

static bool add_load(Split *s, TirOp *op) {
  TirValue *src, *dst;
  if (!tile_move(op, &src, &dst) || dst->op->kind != OP_alloc)
    return refuse(s, op, "a copy fills only a part of its tile");
  if (ring_of(s, dst)) return refuse(s, op, "two copies fill the same tile");
  vec_push(s->cx->scratch, &s->rings, ((Ring){dst, NULL}));
  return true;
}

static bool check_product(Split *s, const TirOp *op) {
  for (int i = 0; i < op->nargs; i++) {
    const TirValue *arg = op->args[i];
    if (!arg || arg->type.kind != TYPE_BUFFER) continue;
    bool shared = arg->type.space == SPACE_SHARED, accumulates = tile_access(op, i) == ACCUMULATES;
    if (shared && !ring_of(s, tir_root((TirValue *)arg)))
      return refuse(s, op, "an operand is not loaded in the same round before it");
    if (!shared && !accumulates && arg->type.space != SPACE_BARRIER)
      return refuse(s, op, "an operand is computed by threads");
    // Two values share a register: what unpacks them would touch it while the product runs.
    if (op_path(op) == PATH_WGMMA && accumulates && dtype_bits(arg->type.dtype) < 32)
      return refuse(s, op, "its accumulator packs values into registers");
  }
  s->by_warpgroups = op_path(op) == PATH_WGMMA;
  s->ngemms++;
  return true;
}

static bool check_body(Split *s) {
  for (TirOp *op = s->loop->bodies[0]->first; op; op = op->next) {
    if (op_def(op->kind)->pure || op->kind == OP_wait || op->kind == OP_alloc) continue;
    if (is_load(op) ? !add_load(s, op) : is_product(op) ? !check_product(s, op) : true) {
      if (is_load(op) || is_product(op)) return false;
      return refuse(s, op, "this is neither a copy by TMA nor a product");
    }
  }
  return (s->rings.len && s->ngemms) || refuse(s, s->loop, "it does not load tiles by TMA and multiply them");
}

// What the loop touches: its tiles nowhere else, a product's barrier nowhere else, no value that an op with effects makes.
static bool check_uses(Split *s) {
  for (int i = 0; i < s->all.len; i++) {
    TirOp *op = s->all.data[i];
    bool inside = tir_inside(op, s->loop);
    for (int a = 0; a < op->nargs; a++) {
      TirValue *arg = op->args[a];
      if (!arg) continue;
      bool buffer = arg->type.kind == TYPE_BUFFER;
      if (!inside && op != s->loop && buffer && ring_of(s, tir_root(arg)))
        return refuse(s, op, "one of its tiles is used outside it");
      if (inside && buffer && arg->type.space == SPACE_BARRIER && !is_product(op))
        return refuse(s, op, "a barrier of its own");
      if (!inside && buffer && arg->type.space == SPACE_BARRIER && op->kind != OP_view)
        return refuse(s, op, "the kernel has barriers that are used by hand");
      if ((inside || op == s->loop) && !buffer && !tir_inside(arg->op, s->loop) &&
          !op_def(arg->op->kind)->pure && !tir_in_launch(arg) && arg->type.kind != TYPE_TOKEN &&
          arg->op != s->loop)
        return refuse(s, op, "it depends on a value that is read or changed while the kernel runs");
    }
  }
  return true;
}

// Ops before the loop whose results are used behind them cannot move into a role of their own.
static bool check_prefix(const Split *s) {
  for (TirOp *op = s->kernel->body->first; op != s->loop; op = op->next)
    if (op->nresults > 0 && op->kind != OP_alloc && op->kind != OP_alloc_barrier && !op_def(op->kind)->pure &&
        op_def(op->kind)->group != GROUP_CONTROL && op->results[0]->type.kind != TYPE_TOKEN)
      return refuse(s, op, "a value is read or changed before it");
  return true;
}

static int64_t bytes_of_stage(const Split *s) {
  int64_t sum = 0;
  for (int i = 0; i < s->rings.len; i++) sum += type_bytes(&s->rings.data[i].buffer->type);
  return sum;
}

static int64_t other_bytes(Split *s) {
  int64_t sum = RESERVED_BYTES;
  for (int i = 0; i < s->all.len; i++) {
    TirOp *op = s->all.data[i];
    if (op->kind == OP_alloc && op->results[0]->type.space == SPACE_SHARED && !ring_of(s, op->results[0]))
      sum += type_bytes(&op->results[0]->type);
  }
  return sum;
}

// As many stages as were asked for, or fewer where shared memory ends.
static bool choose_stages(Split *s) {
  int64_t asked = s->loop->attrs[FOR_stages], room = s->cx->target->shared_bytes - other_bytes(s);
  if (asked < 2) return refuse(s, s->loop, "num_stages is less than 2");
  int64_t fit = room > 0 ? room / bytes_of_stage(s) : 0;
  s->stages = (int)(asked < fit ? asked : fit);
  if (s->stages < 2) return refuse(s, s->loop, "two stages of its tiles do not fit into shared memory");
  if (s->stages < asked)
    diag_remark(s->cx->ds, s->loop->span,
                "%d stages of %lld bytes instead of %lld: shared memory has no more", s->stages,
                (long long)bytes_of_stage(s), (long long)asked);
  return true;
}

static bool can_split(Split *s) {
  int64_t step;
  if (!tir_const_int(s->loop->args[2], &step) || step != 1) return refuse(s, s->loop, "its step is not 1");
  if (!check_body(s) || !check_uses(s) || !check_prefix(s)) return false;
  int extra = s->by_warpgroups ? WARP : 2 * WARP;
  if (s->threads % GROUP || s->threads + extra > MOST_THREADS)
    return refuse(s, s->loop,
                  "the author's threads are not whole warpgroups, or leave no warp for its roles");
  return choose_stages(s);
}

// ---- one role's copy of the loop

typedef struct {
  Split *s;
  Map *now;  // values of the original loop -> of the copy
  TirBuilder b;
  TirValue *stage, *use;
} Copy;

static TirValue *now(const Copy *c, TirValue *value) {
  TirValue *found = value ? map_get(c->now, value) : NULL;
  return found ? found : value;
}

static TirOp *repeat(Copy *c, const TirOp *op) {
  TirValue *args[OP_MAX_OPERANDS + TYPE_MAX_RANK];
  Type types[OP_MAX_RESULTS];
  int nresults = op_def(op->kind)->group == GROUP_TILE ? 0 : op->nresults;
  for (int i = 0; i < op->nargs; i++) args[i] = now(c, op->args[i]);
  for (int i = 0; i < nresults; i++) types[i] = op->results[i]->type;
  c->b.span = op->span;
  TirOp *copy = tir_op(&c->b, op->kind, op->nargs, args, nresults, types);
  for (int i = 0; i < OP_MAX_ATTRS; i++) copy->attrs[i] = op->attrs[i];
  copy->name = op->name;
  for (int i = 0; i < nresults; i++) {
    copy->results[i]->name = op->results[i]->name;
    map_put(c->now, op->results[i], copy->results[i]);
  }
  return copy;
}

static TirValue *stage_of(Copy *c, TirValue *array) {
  const int64_t one[] = {1};
  return tir_view(&c->b, array, &c->stage, one, 0);
}

static TirValue *tile_of(Copy *c, const Ring *ring) {
  TirValue *offsets[TYPE_MAX_RANK] = {c->stage};
  int64_t extents[TYPE_MAX_RANK] = {1};
  int rank = ring->buffer->type.rank;
  for (int d = 0; d < rank; d++) {
    offsets[d + 1] = tir_int(&c->b, 0);
    extents[d + 1] = ring->buffer->type.shape[d];
  }
  return tir_view(&c->b, ring->ring, offsets, extents, 1);
}

static void wait_for(Copy *c, TirValue *barrier, TirValue *parity) {
  TirValue *args[] = {barrier, parity};
  tir_op(&c->b, OP_mbarrier_wait_parity, 2, args, 0, NULL);
}

// The loop's head in a role: its round, stage and use, and its tiles there.
static Copy begin_loop(Split *s, TirBuilder *role, TirOp **loop) {
  TirOp *from = s->loop;
  role->span = from->span;
  *loop = tir_for(role, LOOP_SERIAL, from->args[0], from->args[1], from->args[2]);
  (*loop)->results[0]->name = from->results[0]->name;
  Copy c = {.s = s,
            .now = map_new(s->cx->scratch),
            .b = tir_builder_at_end(s->cx->module, (*loop)->bodies[0], from->span)};
  map_put(c.now, from->results[0], (*loop)->results[0]);
  TirValue *round = tir_binary(&c.b, OP_sub, (*loop)->results[0], from->args[0]),
           *depth = tir_int(&c.b, s->stages);
  c.stage = tir_binary(&c.b, OP_floormod, round, depth);
  c.use = tir_binary(&c.b, OP_and, tir_binary(&c.b, OP_floordiv, round, depth), tir_int(&c.b, 1));
  c.stage->name = s->stage;
  c.use->name = s->use;
  return c;
}

static void copy_tiles(Copy *c) {
  for (int i = 0; i < c->s->rings.len; i++)
    map_put(c->now, c->s->rings.data[i].buffer, tile_of(c, &c->s->rings.data[i]));
}

static TirBuilder begin_role(Split *s, TirBuilder *at, int lo, int hi) {
  TirOp *role = tir_role(at, (TirThreads){lo, hi});
  return tir_builder_at_end(s->cx->module, role->bodies[0], s->loop->span);
}

static void arrive_once(Split *s, TirBuilder *b, int thread, TirValue *barrier) {
  TirBuilder one = begin_role(s, b, thread, thread + 1);
  tir_op(&one, OP_mbar_arrive, 1, &barrier, 0, NULL);
}

static void emit_loader(Split *s, TirBuilder *at, int lo) {
  TirBuilder role = begin_role(s, at, lo, lo + WARP);
  TirOp *loop;
  Copy c = begin_loop(s, &role, &loop);
  wait_for(&c, stage_of(&c, s->empty), tir_binary(&c.b, OP_xor, c.use, tir_int(&c.b, 1)));
  copy_tiles(&c);
  for (TirOp *op = s->loop->bodies[0]->first; op; op = op->next) {
    if (op_def(op->kind)->pure) repeat(&c, op);
    if (!is_load(op)) continue;
    TirOp *copy = repeat(&c, op);
    tile_set_attr(copy, "explicit", true);
    copy->args[2] = stage_of(&c, s->full);
    TirOp *view = copy->args[2]->op;  // built behind its user
    tir_remove(view);
    tir_insert_before(copy, view);
  }
  arrive_once(s, &c.b, lo, stage_of(&c, s->full));
}

static TirOp *last_product(const Split *s) {
  TirOp *last = NULL;
  for (TirOp *op = s->loop->bodies[0]->first; op; op = op->next)
    if (is_product(op)) last = op;
  return last;
}

static int barrier_slot(const TirOp *op) {
  for (int i = 0; i < op_def(op->kind)->noperands; i++)
    if (op_def(op->kind)->operands[i].spaces == 1u << SPACE_BARRIER) return i;
  BUG("%s has no barrier operand", op_def(op->kind)->name);
}

static void emit_products(Split *s, Copy *c) {
  TirValue *done = s->by_warpgroups ? NULL : stage_of(c, s->empty);
  wait_for(c, stage_of(c, s->full), c->use);
  copy_tiles(c);
  for (TirOp *op = s->loop->bodies[0]->first; op; op = op->next) {
    if (op_def(op->kind)->pure) repeat(c, op);
    if (!is_product(op)) continue;
    TirOp *copy = repeat(c, op);
    tile_set_attr(copy, "explicit", true);
    copy->args[barrier_slot(copy)] = op == last_product(s) ? done : NULL;
  }
}

static void emit_issuer(Split *s, TirBuilder *at, int lo) {
  TirBuilder role = begin_role(s, at, lo, lo + WARP);
  TirOp *loop;
  Copy c = begin_loop(s, &role, &loop);
  emit_products(s, &c);
  TirOp *one = tir_one_thread(&role);
  TirBuilder inside = tir_builder_at_end(s->cx->module, one->bodies[0], s->loop->span);
  tir_op(&inside, OP_tcgen05_commit, 1, &s->finished, 0, NULL);
}

// ---- products by the author's threads

static void wait_for_products(Split *s, TirBuilder *b, int pending) {
  VEC(TirValue *) seen = {0};
  for (TirOp *op = s->loop->bodies[0]->first; op; op = op->next)
    for (int i = 0; i < op->nargs && is_product(op); i++) {
      bool known = !tile_is_fragment(op->args[i]) || tile_access(op, i) != ACCUMULATES;
      for (int k = 0; k < seen.len; k++) known = known || seen.data[k] == op->args[i];
      if (known) continue;
      vec_push(s->cx->scratch, &seen, op->args[i]);
      tir_op(b, OP_mma_wait, 1, &op->args[i], 0, NULL)->attrs[MMA_WAIT_pending] = pending;
    }
}

// A warp has read the stage when each of its threads has waited: they meet, and the first lane tells.
static void arrive_by_warps(Split *s, TirBuilder *b, TirValue *barrier) {
  tir_op(b, OP_sync_warp, 0, NULL, 0, NULL);
  TirValue *lane = tir_binary(b, OP_and, tir_thread_idx(b), tir_int(b, WARP - 1));
  TirOp *first = tir_if(b, tir_binary(b, OP_eq, lane, tir_int(b, 0)));
  TirBuilder inside = tir_builder_at_end(s->cx->module, first->bodies[0], s->loop->span);
  tir_op(&inside, OP_mbar_arrive, 1, &barrier, 0, NULL);
}

static void emit_warpgroups(Split *s, TirBuilder *role) {
  TirOp *loop;
  Copy c = begin_loop(s, role, &loop);
  emit_products(s, &c);
  wait_for_products(s, &c.b, s->ngemms);
  TirValue *round = tir_binary(&c.b, OP_sub, loop->results[0], s->loop->args[0]);
  TirOp *later = tir_if(&c.b, tir_binary(&c.b, OP_gt, round, tir_int(&c.b, 0)));
  TirBuilder inside = tir_builder_at_end(s->cx->module, later->bodies[0], s->loop->span);
  TirValue *before = tir_binary(&inside, OP_sub, round, tir_int(&inside, 1));
  before = tir_binary(&inside, OP_floormod, before, tir_int(&inside, s->stages));
  const int64_t one[] = {1};
  TirValue *barrier = tir_view(&inside, s->empty, &before, one, 0);
  arrive_by_warps(s, &inside, barrier);
  wait_for_products(s, role, 0);
}

// ---- the kernel around the loop

static Name name_of(const Split *s, const char *text) {
  return intern(s->cx->module->names, text);
}

static TirValue *new_barriers(Split *s, TirBuilder *b, const char *name, int count, int arrivals) {
  int64_t *counts = ARENA_ARRAY(s->cx->module->arena, int64_t, count);
  for (int i = 0; i < count; i++) counts[i] = arrivals;
  return tir_alloc_barrier(b, name_of(s, name), count, counts);
}

static void allocate(Split *s) {
  TirBuilder b = tir_builder_before(s->cx->module, s->kernel->body->first);
  b.span = s->loop->span;
  for (int i = 0; i < s->rings.len; i++) {
    Ring *ring = &s->rings.data[i];
    int64_t shape[TYPE_MAX_RANK] = {s->stages};
    for (int d = 0; d < ring->buffer->type.rank; d++) shape[d + 1] = ring->buffer->type.shape[d];
    b.span = ring->buffer->op->span;
    ring->ring =
        tir_alloc(&b, ring->buffer->op->name,
                  type_buffer(ring->buffer->type.dtype, SPACE_SHARED, ring->buffer->type.rank + 1, shape));
    ring->ring->name = ring->buffer->name;
  }
  b.span = s->loop->span;
  s->full = new_barriers(s, &b, "full", s->stages, 1);
  s->empty = new_barriers(s, &b, "empty", s->stages, s->by_warpgroups ? s->threads / WARP : 1);
  if (!s->by_warpgroups) s->finished = new_barriers(s, &b, "finished", 1, 1);
}

static bool stays(const TirOp *op) {
  return op_def(op->kind)->pure || op->kind == OP_alloc || op->kind == OP_alloc_barrier;
}

// Moves the ops from `first` up to `end` that do something to the end of a block.
static void move_into(TirOp *first, const TirOp *end, TirBlock *block) {
  for (TirOp *op = first, *next; op && op != end; op = next) {
    next = op->next;
    if (stays(op) && end) continue;
    tir_remove(op);
    tir_append(block, op);
  }
}

static bool has_effects(const TirOp *first, const TirOp *end) {
  for (const TirOp *op = first; op && op != end; op = op->next)
    if (!stays(op)) return true;
  return false;
}

// The barriers that only the loop's products knew are gone with them.
static void drop_old(Split *s) {
  tir_remove(s->loop);
  for (int i = 0; i < s->rings.len; i++) tir_remove(s->rings.data[i].buffer->op);
  for (int i = 0; i < s->all.len; i++) {
    TirOp *op = s->all.data[i];
    bool barrier =
        op->kind == OP_alloc_barrier ||
        (op->kind == OP_view && op->args[0]->type.space == SPACE_BARRIER && !tir_inside(op, s->loop));
    if (barrier) tir_remove(op);
  }
}

// What the author's threads did before the loop, other roles and the engines they start see: writes of operands' tensors,
// flags waited for, accumulators set.
static void meet_before_roles(Split *s, TirBuilder *b) {
  bool tmem = s->cx->target->tmem_columns > 0;
  tir_op(b, OP_fence_proxy_async, 0, NULL, 0, NULL);
  if (tmem) tir_op(b, OP_tcgen05_fence_before, 0, NULL, 0, NULL);
  tir_op(b, OP_sync_threads, 0, NULL, 0, NULL);
  if (tmem) tir_op(b, OP_tcgen05_fence_after, 0, NULL, 0, NULL);
}

static void split(Split *s) {
  TirOp *before = s->kernel->body->first, *after = s->loop->next;
  if (has_effects(before, s->loop)) {
    TirBuilder at = tir_builder_before(s->cx->module, s->loop);
    TirBuilder first = begin_role(s, &at, 0, s->threads);
    move_into(before, first.block->owner, first.block);
    meet_before_roles(s, &at);
  }
  allocate(s);
  TirBuilder at = tir_builder_before(s->cx->module, s->loop);
  emit_loader(s, &at, s->threads);
  if (!s->by_warpgroups) emit_issuer(s, &at, s->threads + WARP);
  TirBuilder author = begin_role(s, &at, 0, s->threads);
  if (s->by_warpgroups) {
    emit_warpgroups(s, &author);
  } else {
    TirValue *args[] = {s->finished, tir_int(&author, 0)};
    tir_op(&author, OP_mbarrier_wait_parity, 2, args, 0, NULL);
  }
  move_into(after, NULL, author.block);
  drop_old(s);
  s->kernel->threads += s->by_warpgroups ? WARP : 2 * WARP;
}

// The kernel's one pipelined loop, at its top level; NULL when there is none, another place or several.
static TirOp *find_loop(const Split *s) {
  TirOp *found = NULL;
  int count = 0;
  for (int i = 0; i < s->all.len; i++) {
    TirOp *op = s->all.data[i];
    if (op->kind != OP_for || op->attrs[FOR_kind] != LOOP_PIPELINED) continue;
    found = op;
    if (++count == 1 && op->parent == s->kernel->body) continue;
    refuse(s, op,
           count > 1 ? "it is not the only pipelined loop of the kernel"
                     : "it stands in another loop or branch");
    return NULL;
  }
  return found;
}

bool pass_roles(PassCx *cx, TirKernel *kernel) {
  Split s = {.cx = cx,
             .kernel = kernel,
             .threads = kernel->threads,
             .stage = intern(cx->module->names, "stage"),
             .use = intern(cx->module->names, "use")};
  if (kernel->variant == VARIANT_GENERAL) return true;
  s.all = tile_collect(cx->scratch, kernel->body);
  s.loop = find_loop(&s);
  if (s.loop && can_split(&s)) split(&s);
  return true;
}

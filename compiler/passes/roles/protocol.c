// The barriers by which roles hand work to each other, as plan.h describes them: where each role waits, and where it arrives.
#include "passes/roles/copy.h"

#include "tir/ranges.h"

// ---- clocks

static TirBuilder builder_in(const RoleCopy *c, TirBlock *block) {
  return tir_builder_at_end(c->plan->cx->module, block, c->b.span);
}

static Name name_of(const RoleCopy *c, const char *text) {
  return intern(c->plan->cx->module->names, text);
}

static Clock *clock_of(RoleCopy *c, const void *of, int depth) {
  for (int i = 0; i < c->clocks.len; i++)
    if (c->clocks.data[i].of == of && c->clocks.data[i].depth == depth) return &c->clocks.data[i];
  return NULL;
}

static void make_clock(RoleCopy *c, const void *of, int depth, bool runs, const char *name) {
  Clock clock = {.of = of, .depth = depth};
  if (clock_of(c, of, depth)) return;
  if (runs && depth > 1) clock.index = tir_cell(&c->b, name_of(c, name), DTYPE_i32, tir_int(&c->b, 0));
  if (runs) clock.use = tir_cell(&c->b, name_of(c, "use"), DTYPE_i32, tir_int(&c->b, 0));
  vec_push(c->plan->cx->scratch, &c->clocks, clock);
}

static bool takes_part(const RoleCopy *c, const Ring *ring) {
  return c->role == ROLE_loader || ring->readers >> c->role & 1;
}

void clocks_make(RoleCopy *c) {
  for (int i = 0; i < c->plan->rings.len; i++) {
    Ring *ring = &c->plan->rings.data[i];
    if (takes_part(c, ring)) make_clock(c, ring, ring->stages, true, "stage");
  }
  for (int i = 0; i < c->plan->channels.len && c->role != ROLE_loader; i++) {
    const Channel *channel = &c->plan->channels.data[i];
    make_clock(c, channel->home, channel->count, channel->repeats, "turn");
  }
}

static void read_clock(RoleCopy *c, Clock *clock) {
  clock->at = clock->index ? tir_get(&c->b, clock->index) : tir_int(&c->b, 0);
  clock->parity = clock->use ? tir_get(&c->b, clock->use) : tir_int(&c->b, 0);
}

// The remainder says what a cell cannot: that there is a barrier of that number.
static void step_clock(RoleCopy *c, const Clock *clock) {
  TirBuilder *b = &c->b;
  TirValue *one = tir_int(b, 1);
  if (!clock->use) return;
  TirValue *other = tir_binary(b, OP_xor, clock->parity, one);
  if (clock->index) {
    TirValue *next =
        tir_binary(b, OP_floormod, tir_binary(b, OP_add, clock->at, one), tir_int(b, clock->depth));
    tir_set(b, clock->index, next);
    other = tir_select(b, tir_binary(b, OP_eq, next, tir_int(b, 0)), other, clock->parity);
  }
  tir_set(b, clock->use, other);
}

// ---- waiting and arriving

// A clock's index stays below its depth. A branch to a trap among products would serialise them (ptxas: C7518).
static TirValue *in_bounds(TirValue *view) {
  if (view->op->kind == OP_view) view->op->attrs[VIEW_in_bounds] = true;
  return view;
}

static TirValue *one_of(TirBuilder *b, TirValue *barriers, TirValue *at) {
  const int64_t one[] = {1};
  return in_bounds(tir_view(b, barriers, &at, one, 0));
}

static void wait_for(RoleCopy *c, TirValue *barriers, const Clock *clock, bool opposite) {
  TirValue *parity = opposite ? tir_binary(&c->b, OP_xor, clock->parity, tir_int(&c->b, 1)) : clock->parity;
  TirValue *args[] = {one_of(&c->b, barriers, clock->at), parity};
  tir_op(&c->b, OP_mbarrier_wait_parity, 2, args, 0, NULL);
}

// What the tensor core has finished arrives by itself.
static void commit(RoleCopy *c, TirValue *barriers, TirValue *at) {
  TirOp *one = tir_one_thread(&c->b);
  TirBuilder inside = builder_in(c, one->bodies[0]);
  TirValue *barrier = one_of(&inside, barriers, at);
  tir_op(&inside, OP_tcgen05_commit, 1, &barrier, 0, NULL);
}

// A warp is done when each of its threads is: they meet, and the first lane tells. `tmem`: of tensor memory, which the first
// lane takes over from the others before it hands it on.
static void arrive_by_warps(RoleCopy *c, TirValue *barriers, TirValue *at, bool tmem) {
  TirBuilder *b = &c->b;
  tir_op(b, OP_sync_warp, 0, NULL, 0, NULL);
  if (tmem) tir_op(b, OP_tcgen05_fence_after, 0, NULL, 0, NULL);
  TirValue *lane = tir_binary(b, OP_and, tir_thread_idx(b), tir_int(b, WARP - 1));
  TirOp *first = tir_if(b, tir_binary(b, OP_eq, lane, tir_int(b, 0)));
  TirBuilder inside = builder_in(c, first->bodies[0]);
  TirValue *barrier = one_of(&inside, barriers, at);
  if (tmem) tir_op(&inside, OP_tcgen05_fence_before, 0, NULL, 0, NULL);
  tir_op(&inside, OP_mbar_arrive, 1, &barrier, 0, NULL);
}

static void arrive(RoleCopy *c, TirValue *barriers, TirValue *at) {
  if (c->role == ROLE_products) {
    commit(c, barriers, at);
    return;
  }
  bool tmem = c->plan->cx->target->tmem_columns > 0;
  tir_op(&c->b, OP_fence_proxy_async, 0, NULL, 0, NULL);
  if (tmem) tir_op(&c->b, OP_tcgen05_fence_before, 0, NULL, 0, NULL);
  arrive_by_warps(c, barriers, at, tmem);
}

// ---- channels

static TirValue *version(TirBuilder *b, TirValue *array, const Type *type, TirValue *at) {
  TirValue *offsets[TYPE_MAX_RANK] = {at};
  int64_t extents[TYPE_MAX_RANK] = {1};
  for (int d = 0; d < type->rank; d++) {
    offsets[d + 1] = tir_int(b, 0);
    extents[d + 1] = type->shape[d];
  }
  return in_bounds(tir_view(b, array, offsets, extents, 1));
}

static void begin_channels(RoleCopy *c, const TirBlock *block) {
  for (int i = 0; i < c->plan->channels.len; i++) {
    const Channel *channel = &c->plan->channels.data[i];
    if (channel->home != block || c->role == ROLE_loader) continue;
    Clock *clock = clock_of(c, block, channel->count);
    if (!clock->at) read_clock(c, clock);
    if (channel->versions)
      map_put(c->now, channel->buffer, version(&c->b, channel->versions, &channel->buffer->type, clock->at));
  }
}

// Threads that drain an accumulator do so in pieces, and other ops of theirs join each piece (passes/pieces.c): the turn's end
// is the first place that is behind all of them.
static bool ends_turn(const RoleCopy *c, const Channel *channel, const Segment *segment) {
  return c->role == ROLE_author && segment == &channel->segments.data[channel->segments.len - 1];
}

static void end_channels(RoleCopy *c, const TirBlock *block) {
  for (int i = 0; i < c->plan->channels.len && c->role == ROLE_author; i++) {
    const Channel *channel = &c->plan->channels.data[i];
    const Segment *last = &channel->segments.data[channel->segments.len - 1];
    if (channel->home == block && last->role == c->role && last->passed)
      arrive(c, last->passed, clock_of(c, block, channel->count)->at);
  }
  for (int i = 0; i < c->clocks.len; i++) {
    Clock *clock = &c->clocks.data[i];
    if (clock->of != block || !clock->at) continue;
    step_clock(c, clock);
    clock->at = NULL;
  }
}

// The segment of this role that the op begins or ends, and the one before it.
static void hand_over(RoleCopy *c, const TirOp *op, bool begins) {
  for (int i = 0; i < c->plan->channels.len; i++) {
    Channel *channel = &c->plan->channels.data[i];
    if (channel->home != op->parent || c->role == ROLE_loader) continue;
    const Clock *clock = clock_of(c, channel->home, channel->count);
    int n = channel->segments.len;
    for (int s = 0; s < n; s++) {
      const Segment *here = &channel->segments.data[s], *before = &channel->segments.data[(s + n - 1) % n];
      if (here->role != c->role) continue;
      if (begins && here->first == op && before->passed) wait_for(c, before->passed, clock, s == 0);
      if (!begins && here->last == op && here->passed && !ends_turn(c, channel, here))
        arrive(c, here->passed, clock->at);
    }
  }
}

// ---- rings

static Ring *ring_of_body(const RoleCopy *c, const TirBlock *block) {
  return block->owner ? plan_ring_of_loop(c->plan, block->owner) : NULL;
}

static void begin_ring(RoleCopy *c, Ring *ring) {
  Clock *clock = clock_of(c, ring, ring->stages);
  bool threads_first = ring->handed && c->role == ROLE_products;
  read_clock(c, clock);
  if (c->role == ROLE_loader)
    wait_for(c, ring->empty, clock, true);
  else
    wait_for(c, threads_first ? ring->ready : ring->full, clock, false);
  for (int i = 0; i < ring->tiles.len; i++)
    map_put(c->now, ring->tiles.data[i],
            version(&c->b, ring->rings.data[i], &ring->tiles.data[i]->type, clock->at));
}

static void wait_for_products(RoleCopy *c, const TirOp *loop, int pending) {
  VEC(TirValue *) seen = {0};
  for (TirOp *op = loop->bodies[0]->first; op; op = op->next)
    for (int i = 0; i < op->nargs && plan_is_product(op); i++) {
      bool known = !tile_is_fragment(op->args[i]) || tile_access(op, i) != ACCUMULATES;
      for (int k = 0; k < seen.len; k++) known = known || seen.data[k] == op->args[i];
      if (known) continue;
      vec_push(c->plan->cx->scratch, &seen, op->args[i]);
      tir_op(&c->b, OP_mma_wait, 1, &op->args[i], 0, NULL)->attrs[MMA_WAIT_pending] = pending;
    }
}

static TirValue *stage_before(TirBuilder *b, TirValue *stage, int stages) {
  TirValue *first = tir_binary(b, OP_eq, stage, tir_int(b, 0)), *one = tir_int(b, 1);
  return tir_select(b, first, tir_int(b, stages - 1), tir_binary(b, OP_sub, stage, one));
}

// Gives back the stage before the one at `stage`, if there was a round that used it.
static void release_before(RoleCopy *c, const Ring *ring, TirValue *stage, TirValue *was) {
  TirBuilder outer = c->b;
  int64_t known;
  if (tir_const_int(was, &known) && known) {
    arrive_by_warps(c, ring->empty, stage_before(&c->b, stage, ring->stages), false);
    return;
  }
  TirOp *later = tir_if(&outer, was);
  c->b = builder_in(c, later->bodies[0]);
  arrive_by_warps(c, ring->empty, stage_before(&c->b, stage, ring->stages), false);
  c->b = outer;
}

static void end_straight_round(RoleCopy *c, const Ring *ring, const Clock *clock) {
  TirValue *round = copy_value(c, ring->loop->results[0]), *lo = copy_value(c, ring->loop->args[FOR_LO]);
  wait_for_products(c, ring->loop, ring->nproducts);
  release_before(c, ring, clock->at, tir_binary(&c->b, OP_gt, round, lo));
}

static void end_ring(RoleCopy *c, Ring *ring) {
  Clock *clock = clock_of(c, ring, ring->stages);
  if (c->role == ROLE_products)
    commit(c, ring->empty, clock->at);
  else if (c->role == ROLE_author && ring->straight)
    end_straight_round(c, ring, clock);
  else if (c->role == ROLE_author)
    arrive_by_warps(c, ring->empty, clock->at, false);
  step_clock(c, clock);
}

// The last round's products are still running; nobody has given back its stage.
static void drain(RoleCopy *c, Ring *ring) {
  const Clock *clock = clock_of(c, ring, ring->stages);
  TirValue *lo = copy_value(c, ring->loop->args[FOR_LO]), *hi = copy_value(c, ring->loop->args[FOR_HI]);
  wait_for_products(c, ring->loop, 0);
  bool always = tir_known_range(hi).lo > tir_known_range(lo).hi;
  TirValue *was = always ? tir_bool(&c->b, true) : tir_binary(&c->b, OP_lt, lo, hi);
  release_before(c, ring, tir_get(&c->b, clock->index), was);
}

// ---- where the copies call

void turn_begins(RoleCopy *c, TirBlock *block) {
  Ring *ring = ring_of_body(c, block);
  if (ring && takes_part(c, ring)) begin_ring(c, ring);
  begin_channels(c, block);
}

void turn_ends(RoleCopy *c, TirBlock *block) {
  Ring *ring = ring_of_body(c, block);
  end_channels(c, block);
  if (ring && takes_part(c, ring)) end_ring(c, ring);
}

void hand_in(RoleCopy *c, const TirOp *op) {
  hand_over(c, op, true);
}

void hand_on(RoleCopy *c, const TirOp *op) {
  Ring *ring = ring_of_body(c, op->parent), *done = plan_ring_of_loop(c->plan, op);
  hand_over(c, op, false);
  if (ring && ring->handed == op && c->role == ROLE_author)
    arrive(c, ring->ready, clock_of(c, ring, ring->stages)->at);
  if (done && done->straight && c->role == ROLE_author) drain(c, done);
}

static void arrive_filled(RoleCopy *c, const Ring *ring, TirValue *at) {
  TirOp *one = tir_one_thread(&c->b);
  TirBuilder inside = builder_in(c, one->bodies[0]);
  TirValue *barrier = one_of(&inside, ring->full, at);
  tir_op(&inside, OP_mbar_arrive, 1, &barrier, 0, NULL);
}

void copy_load(RoleCopy *c, const TirOp *op) {
  Ring *ring = ring_of_body(c, op->parent);
  TirValue *at = clock_of(c, ring, ring->stages)->at, *barrier = one_of(&c->b, ring->full, at);
  TirOp *copy = copy_op(c, op, false);
  tile_set_attr(copy, "explicit", true);
  for (int i = 0; i < op_def(op->kind)->noperands; i++)
    if (op_def(op->kind)->operands[i].spaces == 1u << SPACE_BARRIER) copy->args[i] = barrier;
  if (op == ring->filled) arrive_filled(c, ring, at);
}

// Products of the tensor core's thread, and those that run on into the next round, are waited for by the protocol alone.
void copy_product(RoleCopy *c, const TirOp *op) {
  const Ring *ring = ring_of_body(c, op->parent);
  bool is_explicit = c->role == ROLE_products || (ring && ring->straight);
  TirOp *copy = copy_op(c, op, !is_explicit);
  if (is_explicit) tile_set_attr(copy, "explicit", true);
  for (int i = 0; i < op_def(op->kind)->noperands; i++)
    if (op_def(op->kind)->operands[i].spaces == 1u << SPACE_BARRIER) copy->args[i] = NULL;
}

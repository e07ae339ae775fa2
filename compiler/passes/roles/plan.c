// Which loops become rings, and which role does what; every reason to leave a kernel alone (rules.md 2: what is refused).
#include "passes/roles/plan.h"

#include "tir/ranges.h"

bool plan_refuse(const RolePlan *p, const TirOp *op, const char *why) {
  if (p->quiet) return false;
  if (tir_asks_for(p->kernel, CHOICE_roles))
    pass_refuse_choice(p->cx, p->kernel, CHOICE_roles, op->span, why);
  else
    diag_remark(p->cx->ds, op->span, "no warp roles for this loop: %s", why);
  return false;
}

// ---- questions

bool plan_is_load(const TirOp *op) {
  return op_path(op) == PATH_TMA_LOAD && op->nresults == 1 && !tile_attr(op, "explicit", 0);
}

bool plan_is_product(const TirOp *op) {
  return path_is_mma(op_path(op)) && op->nresults == 1;
}

static bool holds_ops(const TirOp *op) {
  return op->kind == OP_for || op->kind == OP_while || op->kind == OP_if || op->kind == OP_one_thread;
}

bool plan_is_work(const TirOp *op) {
  return !op_def(op->kind)->pure && !holds_ops(op) && op->kind != OP_alloc && op->kind != OP_alloc_barrier &&
         op->kind != OP_wait;
}

TirOp *plan_child(const TirBlock *block, TirOp *op) {
  while (op && op->parent != block) op = tir_parent(op);
  return op;
}

bool plan_in_loop(const TirBlock *block) {
  for (const TirOp *op = block->owner; op; op = tir_parent(op))
    if (tir_is_loop(op)) return true;
  return false;
}

RoleSet plan_roles_of(const RolePlan *p, const TirOp *op) {
  return (RoleSet)(uintptr_t)map_get(p->sets, op);
}

bool plan_has(const RolePlan *p, const TirOp *op, Role role) {
  return plan_roles_of(p, op) >> role & 1;
}

Ring *plan_ring_of_loop(const RolePlan *p, const TirOp *loop) {
  for (int i = 0; i < p->rings.len; i++)
    if (p->rings.data[i].loop == loop) return &p->rings.data[i];
  return NULL;
}

Ring *plan_ring_of_tile(const RolePlan *p, const TirValue *buffer) {
  const TirValue *root = tir_root((TirValue *)buffer);
  for (int i = 0; i < p->rings.len; i++)
    for (int k = 0; k < p->rings.data[i].tiles.len; k++)
      if (p->rings.data[i].tiles.data[k] == root) return &p->rings.data[i];
  return NULL;
}

unsigned plan_access(TirOp *op, const TirValue *root) {
  unsigned access = 0;
  for (int i = 0; i < op->nargs; i++)
    if (tile_access(op, i) && tir_root(op->args[i]) == root) access |= tile_access(op, i) & ACCUMULATES;
  for (int i = 0; i < op->nbodies; i++)
    for (TirOp *inner = op->bodies[i]->first; inner; inner = inner->next) access |= plan_access(inner, root);
  return access;
}

RoleSet plan_users(const RolePlan *p, TirOp *op, const TirValue *root) {
  if (!plan_access(op, root)) return 0;
  if (plan_is_work(op)) return plan_roles_of(p, op);
  RoleSet set = 0;
  for (int i = 0; i < op->nbodies; i++)
    for (TirOp *inner = op->bodies[i]->first; inner; inner = inner->next) set |= plan_users(p, inner, root);
  return set;
}

// ---- rings

static bool is_tile(const Ring *ring, const TirValue *value) {
  for (int i = 0; i < ring->tiles.len; i++)
    if (ring->tiles.data[i] == value) return true;
  return false;
}

static bool add_load(RolePlan *p, Ring *ring, TirOp *op) {
  TirValue *src, *dst;
  if (!tile_move(op, &src, &dst) || dst->op->kind != OP_alloc)
    return plan_refuse(p, op, "a copy fills only a part of its tile");
  if (is_tile(ring, dst) || plan_ring_of_tile(p, dst))
    return plan_refuse(p, op, "two copies fill the same tile");
  vec_push(p->cx->scratch, &ring->tiles, dst);
  ring->filled = op;
  return true;
}

static bool has_product(const TirOp *op) {
  if (plan_is_product(op)) return true;
  for (int i = 0; i < op->nbodies; i++)
    for (const TirOp *inner = op->bodies[i]->first; inner; inner = inner->next)
      if (has_product(inner)) return true;
  return false;
}

static bool add_ring(RolePlan *p, TirOp *loop) {
  Ring ring = {.loop = loop};
  int64_t step;
  for (TirOp *op = loop->bodies[0]->first; op; op = op->next)
    if (plan_is_load(op) && !add_load(p, &ring, op)) return false;
  if (!ring.tiles.len || !has_product(loop))
    return plan_refuse(p, loop, "it does not load tiles by TMA and multiply them");
  if (loop->attrs[FOR_stages] == 1) return plan_refuse(p, loop, "num_stages is less than 2");
  if (!tir_const_int(loop->args[FOR_STEP], &step) || step != 1)
    return plan_refuse(p, loop, "its step is not 1");
  if (loop->args[FOR_GO]) return plan_refuse(p, loop, "it may end early");
  vec_push(p->cx->scratch, &p->rings, ring);
  return true;
}

static bool is_pipelined(const TirOp *op) {
  return op->kind == OP_for && op->attrs[FOR_kind] == LOOP_PIPELINED;
}

// Readers wait for all tiles of a round at its start. The loader would bring the last one only when it is through a ring in between, for
// which it needs the readers.
static bool check_nesting(RolePlan *p, const Ring *outer) {
  for (int i = 0; i < p->rings.len; i++) {
    TirOp *inner = plan_child(outer->loop->bodies[0], p->rings.data[i].loop);
    for (const TirOp *op = inner; op; op = op->next)
      if (op == outer->filled) return plan_refuse(p, op, "a tile is loaded behind a loop that loads others");
  }
  return true;
}

static bool find_rings(RolePlan *p) {
  for (int i = 0; i < p->all.len; i++)
    if (is_pipelined(p->all.data[i]) && !add_ring(p, p->all.data[i])) return false;
  for (int i = 0; i < p->rings.len; i++)
    if (!check_nesting(p, &p->rings.data[i])) return false;
  if (p->rings.len || p->quiet || !tir_asks_for(p->kernel, CHOICE_roles)) return p->rings.len > 0;
  return pass_refuse_choice(p->cx, p->kernel, CHOICE_roles, (Span){0, 0}, "the kernel has no pipelined loop");
}

// ---- roles

static Role role_of(const RolePlan *p, const TirOp *op) {
  if (plan_is_load(op) && op->parent->owner && plan_ring_of_loop(p, op->parent->owner)) return ROLE_loader;
  if (plan_is_product(op) && op_path(op) == PATH_MMA) return ROLE_products;
  return ROLE_author;
}

static void add_role(RolePlan *p, TirOp *op, Role role) {
  RoleSet bit = 1u << role;
  for (TirOp *at = op; at; at = tir_parent(at))
    map_put(p->sets, at, (void *)(uintptr_t)(plan_roles_of(p, at) | bit));
}

static void assign_roles(RolePlan *p) {
  for (int i = 0; i < p->all.len; i++) {
    TirOp *op = p->all.data[i];
    if (!plan_is_work(op) || tile_outermost(op, OP_parallel) != (op->kind == OP_parallel ? op : NULL))
      continue;
    if (op_path(op) == PATH_WGMMA) p->by_warpgroups = true;
    add_role(p, op, role_of(p, op));
  }
}

// ---- what each role must be able to work out for itself

// Whether the value follows from the launch, the block and the rounds of loops.
static bool recomputable(const RolePlan *p, const TirValue *value) {
  const TirOp *op = value->op;
  if (tir_in_launch(value) || op->kind == OP_alloc || op->kind == OP_alloc_barrier) return true;
  if (op->kind != OP_for && !op_def(op->kind)->pure) return false;
  if (op->kind == OP_thread_idx) return false;
  for (int i = 0; i < op->nargs; i++)
    if (op->args[i] && !recomputable(p, op->args[i])) return false;
  return true;
}

static bool is_shared_control(const RolePlan *p, const TirOp *op) {
  return holds_ops(op) && plan_roles_of(p, op) & ~(1u << ROLE_author);
}

static bool check_values(RolePlan *p) {
  for (int i = 0; i < p->all.len; i++) {
    TirOp *op = p->all.data[i];
    RoleSet set = plan_roles_of(p, op);
    if (!(set & ~(1u << ROLE_author)) || !(plan_is_work(op) || is_shared_control(p, op))) continue;
    if (op->kind == OP_while || op->kind == OP_one_thread)
      return plan_refuse(p, op, "it stands in a loop or branch whose way data decide");
    if (is_shared_control(p, op) && op->kind == OP_for && op->args[FOR_GO])
      return plan_refuse(p, op, "a loop around it may end early");
    for (int a = 0; a < op->nargs; a++)
      if (op->args[a] && !recomputable(p, op->args[a]))
        return plan_refuse(p, op, "it depends on a value that is read or changed while the kernel runs");
  }
  return true;
}

// ---- what the author ordered by hand, or must stay in order with memory

bool plan_by_hand(const TirOp *op) {
  bool barrier_view = op->kind == OP_view && op->args[0]->type.space == SPACE_BARRIER;
  if (tile_attr(op, "explicit", 0) || op->kind == OP_mbar_arrive || op->kind == OP_mbar_expect_tx ||
      op->kind == OP_mbarrier_wait_parity || op->kind == OP_tcgen05_commit || op->kind == OP_mbar_init)
    return true;
  for (int i = 0; i < op->nargs && !barrier_view; i++)
    if (op->args[i] && op->args[i]->type.kind == TYPE_BUFFER && op->args[i]->type.space == SPACE_BARRIER &&
        !plan_is_product(op) && !plan_is_load(op))
      return true;
  return false;
}

// A role of the source is a branch on the thread index. One thread can be had without.
static bool refuse_branch(RolePlan *p, const TirOp *branch) {
  int lo = (int)branch->attrs[ROLE_lo], last = (int)branch->attrs[ROLE_hi] - 1;
  const char *who = lo == last ? text_printf(p->cx->scratch, "thread %d", lo)
                               : text_printf(p->cx->scratch, "threads %d to %d", lo, last);
  plan_refuse(p, branch, text_printf(p->cx->scratch, "a branch on the thread index makes a role of %s", who));
  if (!p->quiet)
    diag_hint(p->cx->ds, lo == last ? "`for i in Parallel(1):` in its place lets one thread do it"
                                    : "let all threads share the work, in a Parallel loop");
  return false;
}

static bool check_order(RolePlan *p) {
  const TirOp *loop = p->rings.data[0].loop;
  for (int i = 0; i < p->all.len; i++)
    if (plan_by_hand(p->all.data[i]))
      return plan_refuse(p, p->all.data[i], "the kernel has barriers that are used by hand");
  for (int i = 0; i < p->all.len; i++) {
    TirOp *op = p->all.data[i];
    if (op->kind == OP_role) return refuse_branch(p, op);
    if (op->kind == OP_tmem_release) return plan_refuse(p, op, "tensor memory is released by hand");
    if (op->kind == OP_set_max_nreg) return plan_refuse(p, op, "registers are shared out by hand");
    if (op->kind == OP_while || op->kind == OP_atomic_load)
      return plan_refuse(p, loop, "the kernel waits for other blocks");
    if (op->kind == OP_sync_threads && op->attrs[SYNC_id])
      return plan_refuse(p, op, "threads meet at a named barrier");
    TirOp *outer = op->kind == OP_sync_threads ? tir_parent(op) : NULL;
    if (outer && plan_roles_of(p, outer) & ~(1u << ROLE_author) && plan_ring_of_loop(p, outer))
      return plan_refuse(p, op, "its threads meet in it");
  }
  return true;
}

static bool writes_tensor(TirOpList all, const TirValue *tensor) {
  for (int i = 0; i < all.len; i++)
    for (int a = 0; a < all.data[i]->nargs; a++)
      if (tile_access(all.data[i], a) & WRITES && tir_root(all.data[i]->args[a]) == tensor) return true;
  return false;
}

// A load may run ahead of everything but a write of its tensor (rule P9).
static bool check_sources(RolePlan *p) {
  for (int i = 0; i < p->all.len; i++) {
    TirValue *src, *dst;
    TirOp *op = p->all.data[i];
    if (plan_roles_of(p, op) == 1u << ROLE_loader && plan_is_load(op) && tile_move(op, &src, &dst) &&
        writes_tensor(p->all, tir_root(src)))
      return plan_refuse(p, op, "the kernel writes the tensor that is loaded");
  }
  return true;
}

// ---- tiles

// Whether something in the body before `end` touches the tile.
static bool touched_before(const Ring *ring, const TirValue *tile, const TirOp *end) {
  for (TirOp *op = ring->loop->bodies[0]->first; op != end; op = op->next)
    if (plan_access(op, tile)) return true;
  return false;
}

static TirOp *load_of(const Ring *ring, const TirValue *tile) {
  for (TirOp *op = ring->loop->bodies[0]->first; op; op = op->next) {
    TirValue *src, *dst;
    if (plan_is_load(op) && tile_move(op, &src, &dst) && dst == tile) return op;
  }
  return NULL;
}

static bool used_outside(const RolePlan *p, const TirOp *loop, const TirValue *root, TirOp **user) {
  for (int i = 0; i < p->all.len; i++) {
    *user = p->all.data[i];
    if (tir_inside(*user, loop) || tile_outermost(*user, OP_parallel) == *user) continue;
    for (int a = 0; a < (*user)->nargs; a++)
      if (tile_access(*user, a) && tir_root((*user)->args[a]) == root) return true;
  }
  return false;
}

// The one of two ops of a block that comes later; NULL is none.
static TirOp *later(const TirBlock *block, TirOp *a, TirOp *b) {
  for (TirOp *op = block->last; op; op = op->prev)
    if (op == a || op == b) return op;
  return NULL;
}

// The last op before `end` by which threads work on the tile.
static TirOp *thread_before(const RolePlan *p, const Ring *ring, const TirValue *tile, const TirOp *end) {
  TirOp *found = NULL;
  for (TirOp *op = ring->loop->bodies[0]->first; op != end; op = op->next)
    if (plan_users(p, op, tile) >> ROLE_author & 1) found = op;
  return found;
}

// Threads that change a tile do so before products read it, and products then wait for them.
static bool order_tile(RolePlan *p, Ring *ring, const TirValue *tile, const TirOp *load) {
  const TirOp *product = NULL, *writer = NULL;
  for (TirOp *op = load ? load->next : ring->loop->bodies[0]->first; op; op = op->next) {
    unsigned access = plan_access(op, tile);
    RoleSet set = plan_users(p, op, tile);
    if (!access) continue;
    bool both = set >> ROLE_products & 1 && set >> ROLE_author & 1;
    if (both) return plan_refuse(p, op, "threads and products use one of its tiles in turn");
    ring->readers |= set;
    if (set >> ROLE_products & 1) {
      if (!product) product = op;
      continue;
    }
    if (access & WRITES && product)
      return plan_refuse(p, op, "a tile is changed after a product has read it");
    if (access & WRITES) writer = op;
  }
  if (writer && product)
    ring->handed = later(ring->loop->bodies[0], ring->handed, thread_before(p, ring, tile, product));
  return true;
}

static bool check_tiles(RolePlan *p, Ring *ring) {
  for (int i = 0; i < ring->tiles.len; i++) {
    const TirValue *tile = ring->tiles.data[i];
    TirOp *load = load_of(ring, tile), *user = NULL;
    if (used_outside(p, ring->loop, tile, &user))
      return plan_refuse(p, user, "one of its tiles is used outside it");
    if (touched_before(ring, tile, load))
      return plan_refuse(p, load, "a tile is used before it is loaded, so its last round's value is");
    if (!order_tile(p, ring, tile, load)) return false;
  }
  return true;
}

// ---- what the author's threads do in the loop

static bool accumulates_in_words(const TirOp *op) {
  for (int i = 0; i < op->nargs; i++) {
    bool fragment = tile_is_fragment(op->args[i]);
    // Two values share a register: what unpacks them would touch it while the product runs.
    if (fragment && tile_access(op, i) == ACCUMULATES && dtype_bits(op->args[i]->type.dtype) < 32)
      return false;
    if (fragment && tile_access(op, i) == READS) return false;  // operands in registers are set in each round
  }
  return true;
}

static void look_at_body(RolePlan *p, Ring *ring) {
  ring->straight = p->by_warpgroups;
  for (TirOp *op = ring->loop->bodies[0]->first; op; op = op->next) {
    if (plan_is_product(op)) ring->nproducts++;
    if (op_def(op->kind)->pure || op->kind == OP_wait || op->kind == OP_alloc) continue;
    if (plan_is_load(op) && plan_has(p, op, ROLE_loader)) continue;
    if (!plan_is_product(op) || !accumulates_in_words(op)) ring->straight = false;
  }
}

static bool check_rings(RolePlan *p) {
  for (int i = 0; i < p->rings.len; i++) {
    if (!check_tiles(p, &p->rings.data[i])) return false;
    look_at_body(p, &p->rings.data[i]);
  }
  return true;
}

static bool check_threads(RolePlan *p) {
  if (p->kernel->threads % GROUP == 0 && p->kernel->threads + plan_extra_threads(p) <= MOST_THREADS)
    return true;
  return plan_refuse(p, p->rings.data[0].loop,
                     "the author's threads are not whole warpgroups, or leave no warp for its roles");
}

bool plan_roles(RolePlan *p, PassCx *cx, TirKernel *kernel, bool quiet) {
  *p = (RolePlan){.cx = cx, .kernel = kernel, .quiet = quiet, .sets = map_new(cx->scratch)};
  if (kernel->variant == VARIANT_GENERAL) return false;
  p->all = tile_collect(cx->scratch, kernel->body);
  if (!find_rings(p)) return false;
  assign_roles(p);
  if (!check_order(p) || !check_values(p) || !check_sources(p) || !check_rings(p) || !plan_channels(p))
    return false;
  return plan_registers(p) && check_threads(p) && plan_depths(p);
}

// Buffers that products and threads use in turn (channels), and how often everything exists (depths).
#include "passes/roles/plan.h"

Channel *plan_channel_of(const RolePlan *p, const TirValue *buffer) {
  const TirValue *root = tir_root((TirValue *)buffer);
  for (int i = 0; i < p->channels.len; i++)
    if (p->channels.data[i].buffer == root) return &p->channels.data[i];
  return NULL;
}

// ---- where a buffer is used

static TirBlock *common(TirBlock *block, TirOp *op) {
  while (!plan_child(block, op)) block = block->owner->parent;
  return block;
}

typedef struct {
  TirBlock *home;
  RoleSet roles;
} Uses;

static Uses uses_of(const RolePlan *p, const TirValue *root) {
  Uses uses = {0};
  for (int i = 0; i < p->all.len; i++) {
    TirOp *op = p->all.data[i];
    if (!plan_is_work(op) || !plan_users(p, op, root)) continue;
    uses.home = uses.home ? common(uses.home, op) : op->parent;
    uses.roles |= plan_users(p, op, root);
  }
  return uses;
}

static bool cut_into_segments(RolePlan *p, Channel *channel) {
  for (TirOp *op = channel->home->first; op; op = op->next) {
    if (!plan_access(op, channel->buffer)) continue;
    RoleSet set = plan_users(p, op, channel->buffer);
    if (set & (set - 1)) return plan_refuse(p, op, "threads and products use a buffer in turn inside it");
    Role role = set >> ROLE_products & 1 ? ROLE_products : ROLE_author;
    Segment *last = channel->segments.len ? &channel->segments.data[channel->segments.len - 1] : NULL;
    if (last && last->role == role)
      last->last = op;
    else
      vec_push(p->cx->scratch, &channel->segments, ((Segment){.role = role, .first = op, .last = op}));
  }
  return true;
}

static bool add_channel(RolePlan *p, TirValue *root) {
  Uses uses = uses_of(p, root);
  if (!(uses.roles & (uses.roles - 1))) return true;
  Channel channel = {.buffer = root, .home = uses.home, .count = 1, .repeats = plan_in_loop(uses.home)};
  if (!cut_into_segments(p, &channel)) return false;
  vec_push(p->cx->scratch, &p->channels, channel);
  return true;
}

bool plan_channels(RolePlan *p) {
  for (int i = 0; i < p->all.len; i++) {
    TirOp *op = p->all.data[i];
    if (op->kind != OP_alloc || plan_ring_of_tile(p, op->results[0])) continue;
    Space space = op->results[0]->type.space;
    if ((space == SPACE_SHARED || space == SPACE_TMEM) && !add_channel(p, op->results[0])) return false;
  }
  return true;
}

// ---- how often

// Columns of 32 bits that a buffer takes at most: what the tmem pass counts, packing apart. 64 rows take as many as 128.
static int64_t columns_of(const Type *type) {
  enum { LANES = 128 };
  int64_t rows = type->rank < 2 ? 1 : type->shape[type->rank - 2];
  return type_elements(type) / (rows == LANES / 2 ? rows : LANES);
}

static int64_t columns_in_use(const RolePlan *p) {
  int64_t sum = 0;
  for (int i = 0; i < p->all.len; i++) {
    const TirOp *op = p->all.data[i];
    if (op->kind == OP_alloc && op->results[0]->type.space == SPACE_TMEM)
      sum += columns_of(&op->results[0]->type);
  }
  return sum;
}

static bool is_clear(const TirValue *value, const TirOp *loop) {
  int64_t always;
  if (!value) return false;
  if (tir_const_int(value, &always)) return always;
  return loop && value->op->kind == OP_eq && value->op->args[0] == loop->results[0] &&
         value->op->args[1] == loop->args[FOR_LO];
}

// Whether each turn begins with a product that clears the buffer, if it has one at all: then nothing in it is of use to the
// next turn (rule P8).
static bool starts_afresh(const Channel *channel) {
  TirOp *op = channel->segments.data[0].first;
  const TirOp *loop = op->kind == OP_for ? op : NULL;
  for (op = loop ? loop->bodies[0]->first : op; op; op = op->next) {
    int clear = tile_slot(op, "clear");
    for (int i = 0; i < op->nargs; i++)
      if (tile_access(op, i) == ACCUMULATES && op->args[i] == channel->buffer)
        return clear >= 0 && clear < op->nargs && is_clear(op->args[clear], loop);
    if (op->nbodies || !loop) return false;
  }
  return false;
}

// Accumulators that are filled by products, then drained by threads, turn after turn: twice, if all of them fit so.
static bool is_drained(const Channel *channel) {
  return channel->repeats && starts_afresh(channel) && channel->segments.len == 2 &&
         channel->buffer->type.space == SPACE_TMEM && channel->segments.data[0].role == ROLE_products &&
         channel->buffer->type.rank < TYPE_MAX_RANK && channel->buffer->type.rank >= 2 &&
         channel->buffer->type.shape[channel->buffer->type.rank - 2] >= 64;
}

// Whether the source leaves it at that. False: it asks for two.
static bool may_be_single(const RolePlan *p, const char *why) {
  const TirChoice *asked = &p->kernel->choices[CHOICE_accumulators];
  if (p->quiet || !asked->given || asked->value < 2 || !p->cx->target->tmem_columns) return true;
  return pass_refuse_choice(p->cx, p->kernel, CHOICE_accumulators, (Span){0, 0}, why);
}

static bool double_accumulators(RolePlan *p) {
  const TirChoice *said = &p->kernel->choices[CHOICE_accumulators];
  int64_t columns = columns_in_use(p), before = columns;
  for (int i = 0; i < p->channels.len; i++)
    if (is_drained(&p->channels.data[i])) columns += columns_of(&p->channels.data[i].buffer->type);
  if (said->given && said->value == 1) return true;
  if (columns == before)
    return may_be_single(p, "no accumulator is filled by products and drained by threads, turn after turn");
  if (columns > p->cx->target->tmem_columns)
    return may_be_single(p, "tensor memory has no room for two of each");
  for (int i = 0; i < p->channels.len; i++)
    if (is_drained(&p->channels.data[i])) p->channels.data[i].count = 2;
  return true;
}

int64_t plan_stage_bytes(const Ring *ring) {
  int64_t sum = 0;
  for (int i = 0; i < ring->tiles.len; i++) sum += type_bytes(&ring->tiles.data[i]->type);
  return sum;
}

static int64_t bytes_of_rings(const RolePlan *p) {
  int64_t sum = 0;
  for (int i = 0; i < p->rings.len; i++) sum += p->rings.data[i].stages * plan_stage_bytes(&p->rings.data[i]);
  return sum;
}

static int64_t other_bytes(const RolePlan *p) {
  int64_t sum = RESERVED_BYTES;
  for (int i = 0; i < p->all.len; i++) {
    const TirOp *op = p->all.data[i];
    if (op->kind == OP_alloc && op->results[0]->type.space == SPACE_SHARED &&
        !plan_ring_of_tile(p, op->results[0]))
      sum += type_bytes(&op->results[0]->type);
  }
  return sum;
}

static int64_t wanted(const Ring *ring) {
  return ring->loop->attrs[FOR_stages] ? ring->loop->attrs[FOR_stages] : MOST_STAGES;
}

// Rings grow by a stage in turn until shared memory ends.
static void grow(RolePlan *p, int64_t room) {
  for (bool grew = true; grew;) {
    grew = false;
    for (int i = 0; i < p->rings.len; i++) {
      Ring *ring = &p->rings.data[i];
      if (ring->stages >= wanted(ring) || bytes_of_rings(p) + plan_stage_bytes(ring) > room) continue;
      ring->stages++;
      grew = true;
    }
  }
}

static void remark_fewer(const RolePlan *p, const Ring *ring) {
  int64_t asked = ring->loop->attrs[FOR_stages];
  if (p->quiet || ring->stages >= asked) return;
  diag_remark(p->cx->ds, ring->loop->span,
              "%d stages of %lld bytes instead of %lld: shared memory has no more", ring->stages,
              (long long)plan_stage_bytes(ring), (long long)asked);
}

int64_t plan_shared_bytes(const RolePlan *p) {
  return bytes_of_rings(p) + other_bytes(p);
}

// What rings leave goes to slots of results that leave by panels, up to one for each panel: then threads that write them wait
// for none.
void plan_slots(const RolePlan *p) {
  int64_t room = p->cx->target->shared_bytes - plan_shared_bytes(p);
  for (int i = 0; i < p->all.len; i++) {
    TirValue *ring = tile_ring(p->all.data[i]);
    if (!ring) continue;
    int64_t panels = p->all.data[i]->args[0]->type.shape[1] / ring->type.shape[2];
    int64_t slot = type_bytes(&ring->type) / ring->type.shape[0];
    for (; ring->type.shape[0] < panels && slot <= room; room -= slot) ring->type.shape[0]++;
  }
}

bool plan_depths(RolePlan *p) {
  int64_t room = p->cx->target->shared_bytes - other_bytes(p);
  for (int i = 0; i < p->rings.len; i++) p->rings.data[i].stages = 2;
  if (bytes_of_rings(p) > room)
    return plan_refuse(p, p->rings.data[0].loop, "two stages of its tiles do not fit into shared memory");
  grow(p, room);
  for (int i = 0; i < p->rings.len; i++) remark_fewer(p, &p->rings.data[i]);
  return double_accumulators(p);
}

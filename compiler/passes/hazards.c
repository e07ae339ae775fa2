// Effects are collected from the op tables: operands that are read or written, by ordinary threads or by an
// engine (TMA, MMA) on behalf of one thread. Two accesses of a root conflict when one writes; which elements
// they touch is not compared. Engines are waited for where they are issued, except that a TMA store is waited
// for by its thread alone and an explicit MMA by the author: its reads of shared memory and its accumulator
// are then the author's to protect.
//
// Each range of active threads has its own record: threads that meet as a role are in order among themselves, and not
// with others. Roles whose author arrives and waits on barriers are in order by those; the compiler adds none between
// them.
//
// One case is told apart by elements: an op that writes tile after tile of a buffer, in a loop over pieces. Each thread writes
// the same elements of a tile each time, so tiles on a grid of their own extents never conflict with themselves.
#include "passes/hazards.h"

#include "passes/tile.h"
#include "target/rules.h"

enum {
  GENERIC_READ = 1 << 0,
  GENERIC_WRITE = 1 << 1,
  ASYNC_READ = 1 << 2,   // seen complete by one thread only
  ASYNC_WRITE = 1 << 3,  // likewise
  UNFENCED = 1 << 4,     // generic writes that the async proxy may not see (PTX ISA 9.7.13.4)
  ATOMIC_ACCESS = 1 << 8,
  TMEM_READ = 1 << 5,
  TMEM_WRITE = 1 << 6,
  WAITED = 1 << 7,
  FLAGS = 0xFFFF,
  WRITER_SHIFT = 16,  // above: the number of the one op that wrote, 0 when none has,
  MANY = 0xFFFF,      // or this
};

typedef struct {
  int slot;
  unsigned access;
  Space space;
  bool ordered;  // ALLOC_ordered
} Effect;

typedef struct {
  const Hazards *hazards;
  Arena *arena;
  VEC(Effect) list;
  bool async;
} Effects;

Path op_path(const TirOp *op) {
  int index = op_attr_index(op_def(op->kind), "path");
  return index < 0 ? PATH_NONE : (Path)op->attrs[index];
}

bool path_is_mma(Path path) {
  return path == PATH_MMA || path == PATH_WGMMA;
}

bool path_is_async(Path path) {
  return path == PATH_TMA_LOAD || path == PATH_TMA_STORE || path_is_mma(path);
}

static int slot_of(const Hazards *hazards, TirValue *buffer) {
  return (int)(intptr_t)map_get(hazards->index, tir_root(buffer)) - 1;
}

static bool number_root(void *context, TirOp *op) {
  Hazards *hazards = context;
  for (int i = 0; i < op->nresults; i++) {
    TirValue *value = op->results[i];
    bool shared_state = value->type.kind == TYPE_BUFFER && value->type.space != SPACE_FRAGMENT &&
                        value->type.space != SPACE_LOCAL;
    if (shared_state && op->kind != OP_view && op->kind != OP_reshape)
      map_put(hazards->index, value, (void *)(intptr_t)++hazards->count);
  }
  return true;
}

// ---- ranges

static int find_range(const Hazards *hazards, TirThreads threads) {
  for (int i = 0; i < hazards->ranges.len; i++) {
    TirThreads other = hazards->ranges.data[i].threads;
    if (other.lo == threads.lo && other.hi == threads.hi) return i;
  }
  return -1;
}

int hazards_range(const Hazards *hazards, TirThreads threads) {
  int range = find_range(hazards, threads);
  if (range < 0) BUG("threads %d to %d are no range of the kernel", threads.lo, threads.hi - 1);
  return range;
}

bool threads_contain(TirThreads outer, TirThreads inner) {
  return outer.lo <= inner.lo && outer.hi >= inner.hi;
}

static void add_range(Hazards *hazards, TirThreads threads) {
  HazardRange range = {.threads = threads};
  if (find_range(hazards, threads) < 0) vec_push(hazards->arena, &hazards->ranges, range);
}

// Arrivals, waits and asynchronous work that the author ordered.
static bool orders_itself(const TirOp *op) {
  int index = op_attr_index(op_def(op->kind), "explicit");
  if (index >= 0 && op->attrs[index]) return true;
  return op->kind == OP_mbarrier_wait_parity || op->kind == OP_mbar_arrive || op->kind == OP_mbar_expect_tx ||
         op->kind == OP_tcgen05_commit || (op->kind == OP_sync_threads && op->attrs[SYNC_id] > 0);
}

static bool number_range(void *context, TirOp *op) {
  Hazards *hazards = context;
  if (op->kind == OP_role) add_range(hazards, tir_active_threads(op->bodies[0]));
  if (!orders_itself(op)) return true;
  for (const TirOp *role = tir_role_of(op->parent); role; role = tir_role_of(role->parent))
    hazards->ranges.data[hazards_range(hazards, tir_active_threads(role->bodies[0]))].protocol = true;
  return true;
}

// A part of a role that orders itself does so too.
static void inherit_protocols(Hazards *hazards) {
  for (int i = 1; i < hazards->ranges.len; i++)
    for (int k = 1; k < hazards->ranges.len; k++)
      if (hazards->ranges.data[k].protocol &&
          threads_contain(hazards->ranges.data[k].threads, hazards->ranges.data[i].threads))
        hazards->ranges.data[i].protocol = true;
}

static bool number_async(void *context, TirOp *op) {
  Hazards *hazards = context;
  if (!path_is_async(op_path(op))) return true;
  for (int i = 0; i < op->nargs; i++)
    if (op->args[i] && op->args[i]->type.kind == TYPE_BUFFER && slot_of(hazards, op->args[i]) >= 0)
      hazards->used_by_async[slot_of(hazards, op->args[i])] = true;
  return true;
}

static bool on_own_grid(TirValue *buffer) {
  RuleTile tile = rule_tile(buffer);
  for (int d = 0; d < tile.root->type.rank; d++)
    if (tile.start[d].multiple % tile.extent[d]) return false;
  return true;
}

static bool number_writer(void *context, TirOp *op) {
  Hazards *hazards = context;
  if (!tile_is(op) || path_is_async(op_path(op)) || map_count(hazards->writers) + 1 >= MANY) return true;
  for (int i = 0; i < op->nargs; i++)
    if (tile_access(op, i) & WRITES && !on_own_grid(op->args[i])) return true;
  map_put(hazards->writers, op, (void *)(intptr_t)(map_count(hazards->writers) + 1));
  return true;
}

Hazards hazards_new(Arena *arena, TirKernel *kernel) {
  Hazards hazards = {.arena = arena, .index = map_new(arena), .writers = map_new(arena)};
  tir_walk(kernel->body, number_writer, &hazards);
  tir_walk(kernel->launch, number_root, &hazards);
  tir_walk(kernel->body, number_root, &hazards);
  add_range(&hazards, (TirThreads){0, kernel->threads});
  tir_walk(kernel->body, number_range, &hazards);
  inherit_protocols(&hazards);
  hazards.used_by_async = ARENA_ARRAY(arena, bool, hazards.count + 1);
  tir_walk(kernel->body, number_async, &hazards);
  return hazards;
}

// ---- states

static int state_size(const Hazards *hazards) {
  return hazards->count * hazards->ranges.len;
}

static int at(const Hazards *hazards, int range, int slot) {
  return range * hazards->count + slot;
}

Touch *hazards_state(const Hazards *hazards) {
  return ARENA_ARRAY(hazards->arena, Touch, state_size(hazards) + 1);
}

Touch *hazards_copy(const Hazards *hazards, const Touch *state) {
  Touch *copy = hazards_state(hazards);
  hazards_set(hazards, copy, state);
  return copy;
}

void hazards_set(const Hazards *hazards, Touch *into, const Touch *from) {
  for (int i = 0; i < state_size(hazards); i++) into[i] = from[i];
}

static Touch join(Touch a, Touch b) {
  Touch first = a >> WRITER_SHIFT, second = b >> WRITER_SHIFT;
  Touch writer = first == second || second == 0 ? first : first == 0 ? second : (Touch)MANY;
  return ((a | b) & FLAGS) | writer << WRITER_SHIFT;
}

bool hazards_join(const Hazards *hazards, Touch *into, const Touch *from) {
  bool grew = false;
  for (int i = 0; i < state_size(hazards); i++) {
    Touch joined = join(into[i], from[i]);
    grew = grew || joined != into[i];
    into[i] = joined;
  }
  return grew;
}

// The number of an op that writes its buffer by tiles on a grid of their extents; MANY for any other.
static Touch writer_of(const Hazards *hazards, const TirOp *op) {
  Touch number = (Touch)(intptr_t)map_get(hazards->writers, op);
  return number ? number : MANY;
}

// ---- effects

static bool collect(void *context, TirOp *op) {
  Effects *effects = context;
  const OpDef *def = op_def(op->kind);
  for (int i = 0; i < op->nargs && i < def->noperands; i++) {
    TirValue *arg = op->args[i];
    if (!arg || arg->type.kind != TYPE_BUFFER || !def->operands[i].access) continue;
    if (arg->type.space == SPACE_FRAGMENT || arg->type.space == SPACE_BARRIER ||
        arg->type.space == SPACE_LOCAL)
      continue;
    const TirOp *root = tir_root(arg)->op;
    Effect effect = {slot_of(effects->hazards, arg), def->operands[i].access, arg->type.space,
                     root->kind == OP_alloc && root->attrs[ALLOC_ordered]};
    vec_push(effects->arena, &effects->list, effect);
  }
  return true;
}

static Effects effects_of(const Hazards *hazards, TirOp *op) {
  Effects effects = {.hazards = hazards, .arena = hazards->arena, .async = path_is_async(op_path(op))};
  collect(&effects, op);
  if (op->kind == OP_parallel) tir_walk(op->bodies[0], collect, &effects);
  return effects;
}

static void meet_for_tmem(Touch touch, unsigned access, bool async, Meeting *out) {
  // A whole-CTA layout may differ between a store and a later load, so even those meet.
  Touch conflicts = async || (access & WRITES) ? TMEM_READ | TMEM_WRITE : TMEM_WRITE;
  if (touch & conflicts) out->sync = out->tmem_fence = true;
}

static void meet_for_memory(Touch touch, unsigned access, bool async, Meeting *out) {
  Touch conflicts = GENERIC_WRITE | ASYNC_WRITE;
  if (access & WRITES) conflicts |= GENERIC_READ | ASYNC_READ;
  if (async || !(access & ATOMIC)) conflicts |= ATOMIC_ACCESS;
  if (touch & conflicts) out->sync = true;
  if (async && (touch & UNFENCED)) out->sync = out->proxy_fence = true;
}

// Whether the compiler leaves the order between two ranges to the author.
static bool leaves_to_author(const Hazards *hazards, int by, int earlier) {
  const HazardRange *a = &hazards->ranges.data[by], *b = &hazards->ranges.data[earlier];
  if (threads_contain(a->threads, b->threads) || threads_contain(b->threads, a->threads)) return false;
  return a->protocol || b->protocol;
}

Meeting hazards_between(const Hazards *hazards, const Touch *state, TirOp *op, int by, int earlier) {
  Meeting meeting = {0};
  if (leaves_to_author(hazards, by, earlier)) return meeting;
  Effects effects = effects_of(hazards, op);
  for (int i = 0; i < effects.list.len; i++) {
    const Effect *effect = &effects.list.data[i];
    Touch touch = state[at(hazards, earlier, effect->slot)], writer = writer_of(hazards, op);
    if (by == earlier && effect->access == WRITES && writer != MANY && touch >> WRITER_SHIFT == writer)
      touch &= ~(Touch)(GENERIC_WRITE | TMEM_WRITE);
    // One thread issues all stores of a range; a meeting would not order what its engine does.
    if (by == earlier && effect->access == WRITES && op_path(op) == PATH_TMA_STORE)
      touch &= ~(Touch)ASYNC_WRITE;
    if (effect->space == SPACE_TMEM)
      meet_for_tmem(touch, effect->access, effects.async, &meeting);
    else
      meet_for_memory(touch, effect->access, effects.async, &meeting);
  }
  return meeting;
}

static bool within(const Hazards *hazards, int range, int part) {
  return threads_contain(hazards->ranges.data[range].threads, hazards->ranges.data[part].threads);
}

bool hazards_in_tmem(const Hazards *hazards, const Touch *state, int range) {
  Touch any = 0;
  for (int r = 0; r < hazards->ranges.len; r++)
    for (int i = 0; i < hazards->count && within(hazards, range, r); i++) any |= state[at(hazards, r, i)];
  return any & (TMEM_READ | TMEM_WRITE);
}

bool hazards_unfenced(const Hazards *hazards, const Touch *state, int range) {
  for (int r = 0; r < hazards->ranges.len; r++)
    for (int i = 0; i < hazards->count && within(hazards, range, r); i++)
      if (hazards->used_by_async[i] && state[at(hazards, r, i)] & UNFENCED) return true;
  return false;
}

static void settle(Touch *touch, Touch settled) {
  *touch &= ~settled;
  if (!(*touch & (GENERIC_WRITE | TMEM_WRITE))) *touch &= FLAGS;
}

void hazards_met(const Hazards *hazards, Touch *state, int range, Meeting meeting) {
  Touch settled = meeting.proxy_fence ? UNFENCED : 0;
  if (meeting.sync) settled |= FLAGS & ~(Touch)(UNFENCED | TMEM_READ | TMEM_WRITE);
  if (meeting.sync && meeting.tmem_fence) settled |= TMEM_READ | TMEM_WRITE;
  for (int r = 0; r < hazards->ranges.len; r++)
    for (int i = 0; i < hazards->count && within(hazards, range, r); i++)
      settle(&state[at(hazards, r, i)], settled);
}

static Touch touch_of(const Effect *effect, Path path) {
  Touch touch = 0;
  if (effect->space == SPACE_TMEM) {
    if (path == PATH_MMA) return 0;  // waited for by all, or the author's to wait for
    if (effect->access & READS) touch |= TMEM_READ;
    if (effect->access & WRITES) touch |= TMEM_WRITE;
    return touch;
  }
  if (path == PATH_TMA_LOAD || path == PATH_MMA) return 0;
  if (path == PATH_WGMMA) return GENERIC_READ;  // each thread waits for its own warpgroup's reads
  bool store = path == PATH_TMA_STORE;
  if (effect->access & ATOMIC && !store) return ATOMIC_ACCESS | (effect->access & WRITES ? UNFENCED : 0);
  if (effect->access & READS) touch |= !store ? GENERIC_READ : effect->ordered ? 0 : ASYNC_READ;
  if (effect->access & WRITES) touch |= store ? ASYNC_WRITE : GENERIC_WRITE | UNFENCED;
  return touch;
}

void hazards_after(const Hazards *hazards, Touch *state, TirOp *op, int range) {
  Effects effects = effects_of(hazards, op);
  for (int i = 0; i < effects.list.len; i++) {
    Touch *state_of = &state[at(hazards, range, effects.list.data[i].slot)];
    Touch touch = touch_of(&effects.list.data[i], op_path(op));
    if (touch & (GENERIC_WRITE | TMEM_WRITE)) touch |= writer_of(hazards, op) << WRITER_SHIFT;
    *state_of = join(*state_of, touch);
  }
}

bool hazards_may_lap(const Hazards *hazards, const Touch *state, TirValue *barrier, int range) {
  return state[at(hazards, range, slot_of(hazards, barrier))] & WAITED;
}

void hazards_waited(const Hazards *hazards, Touch *state, TirValue *barrier, int range) {
  state[at(hazards, range, slot_of(hazards, barrier))] |= WAITED;
}

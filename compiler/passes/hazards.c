// Effects are collected from the op tables: operands that are read or written, by ordinary threads or by an
// engine (TMA, MMA) on behalf of one thread. Two accesses of a root conflict when one writes; which elements
// they touch is not compared. Engines are waited for where they are issued, except that a TMA store is waited
// for by its thread alone and an explicit MMA by the author: its reads of shared memory and its accumulator
// are then the author's to protect.
#include "passes/hazards.h"

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
};

typedef struct {
  int slot;
  unsigned access;
  Space space;
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

bool path_is_async(Path path) {
  return path == PATH_TMA_LOAD || path == PATH_TMA_STORE || path == PATH_MMA;
}

static int slot_of(const Hazards *hazards, TirValue *buffer) {
  return (int)(intptr_t)map_get(hazards->index, tir_root(buffer)) - 1;
}

static bool number_root(void *context, TirOp *op) {
  Hazards *hazards = context;
  for (int i = 0; i < op->nresults; i++) {
    TirValue *value = op->results[i];
    bool shared_state = value->type.kind == TYPE_BUFFER && value->type.space != SPACE_FRAGMENT;
    if (shared_state && op->kind != OP_view)
      map_put(hazards->index, value, (void *)(intptr_t)++hazards->count);
  }
  return true;
}

Hazards hazards_new(Arena *arena, TirKernel *kernel) {
  Hazards hazards = {arena, map_new(arena), 0};
  tir_walk(kernel->launch, number_root, &hazards);
  tir_walk(kernel->body, number_root, &hazards);
  return hazards;
}

Touch *hazards_state(const Hazards *hazards) {
  return ARENA_ARRAY(hazards->arena, Touch, hazards->count + 1);
}

Touch *hazards_copy(const Hazards *hazards, const Touch *state) {
  Touch *copy = hazards_state(hazards);
  for (int i = 0; i < hazards->count; i++) copy[i] = state[i];
  return copy;
}

bool hazards_join(const Hazards *hazards, Touch *into, const Touch *from) {
  bool grew = false;
  for (int i = 0; i < hazards->count; i++) {
    if (from[i] & ~into[i]) grew = true;
    into[i] |= from[i];
  }
  return grew;
}

static bool collect(void *context, TirOp *op) {
  Effects *effects = context;
  const OpDef *def = op_def(op->kind);
  for (int i = 0; i < op->nargs && i < def->noperands; i++) {
    TirValue *arg = op->args[i];
    if (!arg || arg->type.kind != TYPE_BUFFER || !def->operands[i].access) continue;
    if (arg->type.space == SPACE_FRAGMENT || arg->type.space == SPACE_BARRIER) continue;
    Effect effect = {slot_of(effects->hazards, arg), def->operands[i].access, arg->type.space};
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

Meeting hazards_before(const Hazards *hazards, const Touch *state, TirOp *op) {
  Meeting meeting = {0};
  Effects effects = effects_of(hazards, op);
  for (int i = 0; i < effects.list.len; i++) {
    const Effect *effect = &effects.list.data[i];
    Touch touch = state[effect->slot];
    if (effect->space == SPACE_TMEM)
      meet_for_tmem(touch, effect->access, effects.async, &meeting);
    else
      meet_for_memory(touch, effect->access, effects.async, &meeting);
  }
  return meeting;
}

bool hazards_in_tmem(const Hazards *hazards, const Touch *state) {
  Touch any = 0;
  for (int i = 0; i < hazards->count; i++) any |= state[i];
  return any & (TMEM_READ | TMEM_WRITE);
}

void hazards_met(const Hazards *hazards, Touch *state, Meeting meeting) {
  Touch settled = meeting.proxy_fence ? UNFENCED : 0;
  if (meeting.sync) settled |= ~(Touch)(UNFENCED | TMEM_READ | TMEM_WRITE);
  if (meeting.sync && meeting.tmem_fence) settled |= TMEM_READ | TMEM_WRITE;
  for (int i = 0; i < hazards->count; i++) state[i] &= ~settled;
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
  bool store = path == PATH_TMA_STORE;
  if (effect->access & ATOMIC && !store) return ATOMIC_ACCESS | (effect->access & WRITES ? UNFENCED : 0);
  if (effect->access & READS) touch |= store ? ASYNC_READ : GENERIC_READ;
  if (effect->access & WRITES) touch |= store ? ASYNC_WRITE : GENERIC_WRITE | UNFENCED;
  return touch;
}

void hazards_after(const Hazards *hazards, Touch *state, TirOp *op) {
  Effects effects = effects_of(hazards, op);
  for (int i = 0; i < effects.list.len; i++)
    state[effects.list.data[i].slot] |= touch_of(&effects.list.data[i], op_path(op));
}

bool hazards_may_lap(const Hazards *hazards, const Touch *state, TirValue *barrier) {
  return state[slot_of(hazards, barrier)] & WAITED;
}

void hazards_waited(const Hazards *hazards, Touch *state, TirValue *barrier) {
  state[slot_of(hazards, barrier)] |= WAITED;
}

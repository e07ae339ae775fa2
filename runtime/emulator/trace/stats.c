// A wait is reached when its instruction is issued by lanes that do not come from having waited there; it
// blocks when the handler says so. Bytes are counted where they are written, so that a multicast counts in each CTA and
// what lies outside of a tensor does not leave.
#include "trace/stats.h"

#include <string.h>

#include "async/tcgen05_mma.h"

typedef struct {
  const uint8_t *kinds, *waits;  // per instruction; waits: 1 + StatWait
  Counters *counters;
} State;

static const struct {
  const char *name;
  StatWait wait;
} wait_names[] = {
    {"mbarrier.try_wait", STAT_WAIT_MBARRIER},   {"mbarrier.test_wait", STAT_WAIT_MBARRIER},
    {"barrier.cluster.wait", STAT_WAIT_CLUSTER}, {"cp.async.wait_group", STAT_WAIT_GROUP},
    {"cp.async.wait_all", STAT_WAIT_GROUP},      {"cp.async.bulk.wait_group", STAT_WAIT_GROUP},
    {"wgmma.wait_group", STAT_WAIT_GROUP},       {"tcgen05.wait::ld", STAT_WAIT_GROUP},
    {"tcgen05.wait::st", STAT_WAIT_GROUP},       {"tcgen05.alloc", STAT_WAIT_TMEM},
};

static uint8_t wait_of(const Inst *inst) {
  if (inst->def == NULL) return 0;
  const char *name = inst->def->name;
  for (size_t i = 0; i < sizeof wait_names / sizeof *wait_names; i++)
    if (strcmp(name, wait_names[i].name) == 0) return (uint8_t)(1 + wait_names[i].wait);
  bool named = strncmp(name, "bar", 3) == 0 && strncmp(name, "barrier.cluster", 15) != 0;
  bool waits = named && !inst_has(inst, MOD_warp) && !inst_has(inst, MOD_arrive);
  return waits ? 1 + STAT_WAIT_BARRIER : 0;
}

static void *begin(Machine *machine) {
  State *self = ARENA_NEW(machine->arena, State);
  const Module *module = machine->module;
  uint8_t *waits = ARENA_ARRAY(machine->arena, uint8_t, module->ninsts + 1);
  for (uint32_t i = 0; i < module->ninsts; i++) waits[i] = wait_of(&module->insts[i]);
  self->kinds = inst_kinds(machine);
  self->waits = waits;
  self->counters = machine->counters;
  return self;
}

static void count_product(Counters *c, MmaFamily family, uint64_t m, uint64_t n, uint64_t k) {
  c->mma[family]++;
  c->flop[family] += 2 * m * n * k;
}

// The scheduler says so until the instruction is over.
static bool has_waited(const Warp *warp) {
  return warp->groups[warp->current].resumed;
}

static void on_issue(State *self, Machine *machine, const Event *event) {
  Counters *c = self->counters;
  const Inst *inst = event->inst;
  size_t index = (size_t)(inst - machine->module->insts);
  if (has_waited(event->warp)) return;
  InstKind kind = (InstKind)self->kinds[index];
  c->issued[kind]++;
  c->fences += kind == KIND_FENCE;
  if (self->waits[index] > 0) c->reached[self->waits[index] - 1]++;
  if (kind == KIND_MMA && strcmp(inst->def->name, "mma") == 0)
    count_product(c, MMA_SYNC, inst->shape[0], inst->shape[1], inst->shape[2]);
}

static void on_wait(Counters *c, const Wait *wait, bool again) {
  switch (wait->kind) {
  case WAIT_MBARRIER:
    c->blocked[STAT_WAIT_MBARRIER] += !again;
    break;
  case WAIT_BARRIER:
    c->blocked[STAT_WAIT_BARRIER] += !again;
    break;
  case WAIT_CLUSTER:
    c->blocked[STAT_WAIT_CLUSTER] += !again;
    break;
  case WAIT_GROUP:
    c->blocked[STAT_WAIT_GROUP] += !again;
    break;
  case WAIT_TMEM_ALLOC:
  case WAIT_PEER:
    c->blocked[STAT_WAIT_TMEM] += !again;
    break;
  case WAIT_LANES:
    c->blocked[STAT_WAIT_LANES]++;
    break;
  case WAIT_TURN:
    c->polls++;
    break;
  case WAIT_NONE:
  case WAIT_OTHER:
    break;
  }
}

static void on_start(Counters *c, const EngineOp *op) {
  const Inst *inst = op->origin.inst;
  if (op->engine == ENGINE_TMA_LOAD) c->tma_in.count++;
  if (op->engine == ENGINE_TMA_STORE) c->tma_out.count++;
  if (op->engine == ENGINE_CP_ASYNC && strncmp(inst->def->name, "cp.async.mbarrier", 17) != 0)
    c->cp_async.count++;
  if (op->engine != ENGINE_TENSOR) return;
  if (op->complete == mma_complete) {
    const Idesc *shape = &((const MmaOp *)(const void *)op)->idesc;
    count_product(c, MMA_TCGEN05, (uint64_t)shape->m, (uint64_t)shape->n, (uint64_t)shape->k);
  } else if (strcmp(inst->def->name, "wgmma.mma_async") == 0) {
    count_product(c, MMA_WGMMA, 16, inst->shape[1], inst->shape[2]);  // one of the four warps
  }
}

static void on_write(Counters *c, const EngineOp *op, const Event *event) {
  if (op == NULL) return;
  if (op->engine == ENGINE_TMA_LOAD) c->tma_in.bytes += event->bytes;
  if (op->engine == ENGINE_TMA_STORE) c->tma_out.bytes += event->bytes;
  if (op->engine == ENGINE_CP_ASYNC) c->cp_async.bytes += event->bytes;
}

static void on_event(void *state, Machine *machine, const Event *event) {
  State *self = state;
  Counters *c = self->counters;
  if (event->kind == EVENT_ISSUE) on_issue(self, machine, event);
  if (event->kind == EVENT_WAIT) on_wait(c, (const Wait *)(uintptr_t)event->address, has_waited(event->warp));
  if (event->kind == EVENT_ASYNC_START) on_start(c, machine->op);
  if (event->kind == EVENT_ASYNC_WRITE) on_write(c, machine->op, event);
  if (event->kind == EVENT_ARRIVE && event->space == SPACE_SHARED) c->arrivals++;
  if (event->kind == EVENT_PHASE) c->phases++;
  if (event->kind == EVENT_BARRIER && event->space == SPACE_GENERIC) c->barriers++;
  if (event->kind == EVENT_BARRIER && event->space == SPACE_SHARED_CLUSTER) c->clusters_in++;
}

const Observer stats_observer = {
    .name = "stats",
    .events = 1u << EVENT_ISSUE | 1u << EVENT_WAIT | 1u << EVENT_ASYNC_START | 1u << EVENT_ASYNC_WRITE |
              1u << EVENT_ARRIVE | 1u << EVENT_PHASE | 1u << EVENT_BARRIER,
    .begin = begin,
    .on_event = on_event,
};

void counters_add(Counters *into, const Counters *from) {
  uint64_t *to = (uint64_t *)(void *)into;
  const uint64_t *source = (const uint64_t *)(const void *)from;
  for (size_t i = 0; i < sizeof *into / sizeof *to; i++) to[i] += source[i];
}

// ---- text

static void line(TextBuf *out, const char *name, uint64_t value) {
  if (value > 0) textbuf_printf(out, "  %-36s %14llu\n", name, (unsigned long long)value);
}

static void transfers(TextBuf *out, const char *name, const Transfers *t) {
  if (t->count == 0) return;
  textbuf_printf(out, "  %-36s %14llu  %llu bytes\n", name, (unsigned long long)t->count,
                 (unsigned long long)t->bytes);
}

static void products(TextBuf *out, const Counters *c) {
  static const char *const names[MMA_FAMILY_COUNT] = {
      [MMA_TCGEN05] = "tcgen05.mma", [MMA_WGMMA] = "wgmma (a warp's quarter)", [MMA_SYNC] = "mma.sync"};
  for (int i = 0; i < MMA_FAMILY_COUNT; i++) {
    if (c->mma[i] == 0) continue;
    textbuf_printf(out, "  %-36s %14llu  %llu FLOP\n", names[i], (unsigned long long)c->mma[i],
                   (unsigned long long)c->flop[i]);
  }
}

static void waits(TextBuf *out, const Counters *c) {
  static const char *const names[STAT_WAIT_COUNT] = {
      [STAT_WAIT_MBARRIER] = "for mbarriers",
      [STAT_WAIT_BARRIER] = "at barriers of the CTA",
      [STAT_WAIT_CLUSTER] = "at cluster barriers",
      [STAT_WAIT_GROUP] = "for groups and tensor memory traffic",
      [STAT_WAIT_TMEM] = "for room in tensor memory",
      [STAT_WAIT_LANES] = "for lanes of the warp"};
  for (int i = 0; i < STAT_WAIT_COUNT; i++) {
    if (c->reached[i] == 0 && c->blocked[i] == 0) continue;
    textbuf_printf(out, "  %-36s ", names[i]);
    if (i == STAT_WAIT_LANES)
      textbuf_printf(out, "%14s", "");
    else
      textbuf_printf(out, "%14llu", (unsigned long long)c->reached[i]);
    textbuf_printf(out, "  %llu blocked\n", (unsigned long long)c->blocked[i]);
  }
  line(out, "polls that found nothing", c->polls);
}

const char *counters_text(Arena *arena, const Counters *c, uint64_t ctas, uint64_t steps,
                          uint64_t lane_steps) {
  TextBuf out = {.arena = arena};
  textbuf_printf(&out, "%llu CTAs, %llu warp instructions, %.1f lanes in each\ninstructions\n",
                 (unsigned long long)ctas, (unsigned long long)steps,
                 steps > 0 ? (double)lane_steps / (double)steps : 0.0);
  for (int i = 0; i < KIND_COUNT; i++) line(&out, inst_kind_name((InstKind)i), c->issued[i]);
  textbuf_puts(&out, "operations\n");
  products(&out, c);
  transfers(&out, "TMA and bulk copies to shared memory", &c->tma_in);
  transfers(&out, "TMA and bulk copies to global memory", &c->tma_out);
  transfers(&out, "cp.async", &c->cp_async);
  line(&out, "mbarrier arrivals", c->arrivals);
  line(&out, "mbarrier phases completed", c->phases);
  line(&out, "warps through barriers of the CTA", c->barriers);
  line(&out, "warps through cluster barriers", c->clusters_in);
  textbuf_puts(&out, "waits\n");
  waits(&out, c);
  return out.data;
}

// Misuse of mbarriers that hardware does not notice: initialised twice, overwritten, lapped, bytes that never
// match, invalidated while in use. Also remembers who arrived, for the explanation of a hang.
#include <stdlib.h>
#include <string.h>

#include "async/engine.h"
#include "check/class.h"
#include "check/cta_table.h"
#include "check/observers.h"
#include "exec/report.h"

enum { MOST_BARRIERS = 256, MOST_ARRIVERS = 6 };

typedef struct {
  uint32_t offset;
  bool live;
  const Inst *init;
  const Inst *arrivers[MOST_ARRIVERS];
  uint32_t phases;
} Barrier;

typedef struct {
  int n;
  uint32_t lowest, highest;  // offsets of barriers lie in between
  Barrier barriers[MOST_BARRIERS];
} Barriers;

typedef struct {
  CtaTable ctas;
} State;

static Barriers *barriers_of(State *self, const Cta *cta) {
  return cta_table_get(&self->ctas, cta, sizeof(Barriers));
}

static Barrier *find(Barriers *list, uint32_t offset) {
  for (int i = 0; list && i < list->n; i++)
    if (list->barriers[i].offset == offset) return &list->barriers[i];
  return NULL;
}

static Origin origin_of(const Event *event) {
  return (Origin){(Cta *)(uintptr_t)event->cta, event->warp ? event->warp->index : 0,
                  event->lanes ? first_lane(event->lanes) : -1, event->inst};
}

static MbarrierState state_of(const Cta *cta, uint32_t offset) {
  uint64_t word = 0;
  if (offset + 8 <= cta->smem_bytes) memcpy(&word, cta->smem + offset, sizeof word);
  return mbarrier_decode(word);
}

static void on_init(State *self, Machine *machine, const Event *event) {
  Barriers *list = barriers_of(self, event->cta);
  uint32_t offset = (uint32_t)event->address;
  Barrier *barrier = find(list, offset);
  if (barrier && barrier->live && finding_is_new(machine, CHECK_MBARRIER, event->inst, barrier->init)) {
    Origin origin = origin_of(event);
    OtherSide other = {"it was initialised here", {NULL, 0, -1, barrier->init}, event->cta->cluster->linear};
    other.origin.cta = origin.cta;
    machine_finding_pair(machine, CHECK_MBARRIER, &origin, &other,
                         "initialise in one thread, once; mbarrier.inval before the memory is used again",
                         "mbarrier %s is initialised while it lives",
                         machine_symbolize(machine, event->cta, SPACE_SHARED, offset));
  }
  if (!barrier && list && list->n < MOST_BARRIERS) {
    barrier = &list->barriers[list->n++];
    barrier->offset = offset;
    if (list->n == 1) list->lowest = list->highest = offset;
    if (offset < list->lowest) list->lowest = offset;
    if (offset > list->highest) list->highest = offset;
  }
  if (barrier) *barrier = (Barrier){.offset = offset, .live = true, .init = event->inst};
}

static bool waits_here(const LaneGroup *group, const Cta *cta, uint32_t offset) {
  return group->wait.kind == WAIT_MBARRIER && group->wait.cta == cta &&
         (uint32_t)group->wait.address == offset && !group->resumed;
}

static void on_inval(State *self, Machine *machine, const Event *event) {
  Barrier *barrier = find(barriers_of(self, event->cta), (uint32_t)event->address);
  if (barrier) barrier->live = false;
  for (int w = 0; w < event->cta->nwarps; w++) {
    const Warp *warp = &event->cta->warps[w];
    for (int g = 0; g < warp->ngroups; g++) {
      if (!waits_here(&warp->groups[g], event->cta, (uint32_t)event->address)) continue;
      const Inst *inst = &machine->module->insts[warp->groups[g].pc];
      if (!finding_is_new(machine, CHECK_MBARRIER, event->inst, inst)) continue;
      Origin origin = origin_of(event);
      OtherSide other = {"it waits here", {origin.cta, w, -1, inst}, 0};
      machine_finding_pair(machine, CHECK_MBARRIER, &origin, &other,
                           "a barrier of the CTA before mbarrier.inval",
                           "mbarrier %s is invalidated while warp %d waits for it",
                           machine_symbolize(machine, event->cta, SPACE_SHARED, event->address), w);
    }
  }
}

// A group that waits for this parity was free to go before the phase that just completed began to be over: it
// was not fast enough.
static void on_phase(State *self, Machine *machine, const Event *event) {
  uint32_t offset = (uint32_t)event->address, parity = state_of(event->cta, offset).phase;
  Barrier *barrier = find(barriers_of(self, event->cta), offset);
  if (barrier) barrier->phases++;
  for (int w = 0; w < event->cta->nwarps; w++) {
    const Warp *warp = &event->cta->warps[w];
    for (int g = 0; g < warp->ngroups; g++) {
      const LaneGroup *group = &warp->groups[g];
      if (!waits_here(group, event->cta, offset) || group->wait.number != parity) continue;
      const Inst *inst = &machine->module->insts[group->pc];
      if (!finding_is_new(machine, CHECK_MBARRIER, inst, event->inst)) continue;
      Origin origin = {(Cta *)(uintptr_t)event->cta, w, first_lane(group->lanes), inst};
      OtherSide other = {"this completed the next phase", origin_of(event), 0};
      other.origin.cta = (Cta *)(uintptr_t)event->cta;
      machine_finding_pair(
          machine, CHECK_MBARRIER, &origin, &other,
          "let every waiter of a phase arrive somewhere before the next phase can complete",
          "mbarrier %s lapped a waiter: the phase after the one that it waits for is over before it was seen",
          machine_symbolize(machine, event->cta, SPACE_SHARED, offset));
    }
  }
}

static void on_arrive(State *self, const Event *event) {
  Barrier *barrier =
      event->space == SPACE_SHARED ? find(barriers_of(self, event->cta), (uint32_t)event->address) : NULL;
  for (int i = 0; barrier && i < MOST_ARRIVERS; i++) {
    if (barrier->arrivers[i] == event->inst) return;
    if (barrier->arrivers[i]) continue;
    barrier->arrivers[i] = event->inst;
    return;
  }
}

static void on_write(State *self, Machine *machine, const Event *event) {
  if (event->space != SPACE_SHARED) return;
  Barriers *list = barriers_of(self, event->cta);
  uint64_t from = event->address & ((1u << SHARED_RANK_SHIFT) - 1), to = from + event->bytes;
  if (!list || list->n == 0 || from >= list->highest + 8 || to <= list->lowest) return;
  for (int i = 0; i < list->n; i++) {
    Barrier *barrier = &list->barriers[i];
    if (!barrier->live || from >= barrier->offset + 8 || to <= barrier->offset) continue;
    barrier->live = false;
    if (!finding_is_new(machine, CHECK_MBARRIER, event->inst, barrier->init)) return;
    Origin origin = machine->op ? machine->op->origin : origin_of(event);
    OtherSide other = {"it was initialised here", {origin.cta, 0, -1, barrier->init}, 0};
    machine_finding_pair(machine, CHECK_MBARRIER, &origin, &other,
                         "mbarrier.inval before the memory is used for data, or another offset",
                         "a write overwrites the live mbarrier %s",
                         machine_symbolize(machine, event->cta, SPACE_SHARED, barrier->offset));
  }
}

static void on_cta_end(State *self, Machine *machine, const Event *event) {
  Barriers *list = cta_table_take(&self->ctas, event->cta);
  for (int i = 0; list && i < list->n; i++) {
    const Barrier *barrier = &list->barriers[i];
    MbarrierState state = state_of(event->cta, barrier->offset);
    if (!barrier->live || !state.valid || state.tx == 0) continue;
    if (!finding_is_new(machine, CHECK_MBARRIER, barrier->init, NULL)) continue;
    Origin origin = {(Cta *)(uintptr_t)event->cta, 0, -1, barrier->init};
    machine_finding_pair(machine, CHECK_MBARRIER, &origin, NULL,
                         "expect exactly the bytes that the copies of a phase bring (boxes count whole, also "
                         "beyond the tensor)",
                         "mbarrier %s ends with %lld bytes %s: expected and copied bytes do not match",
                         machine_symbolize(machine, event->cta, SPACE_SHARED, barrier->offset),
                         (long long)(state.tx < 0 ? -state.tx : state.tx),
                         state.tx < 0 ? "more than were expected" : "expected and never copied");
  }
  free(list);
}

static void on_event(void *state, Machine *machine, const Event *event) {
  State *self = state;
  if (event->kind == EVENT_MBARRIER_INIT) on_init(self, machine, event);
  if (event->kind == EVENT_MBARRIER_INVAL) on_inval(self, machine, event);
  if (event->kind == EVENT_PHASE) on_phase(self, machine, event);
  if (event->kind == EVENT_ARRIVE) on_arrive(self, event);
  if (event->kind == EVENT_WRITE || event->kind == EVENT_ASYNC_WRITE) on_write(self, machine, event);
  if (event->kind == EVENT_CTA_END) on_cta_end(self, machine, event);
}

static void *begin(Machine *machine) {
  return ARENA_NEW(machine->arena, State);
}

static void end(void *state, Machine *machine) {
  (void)machine;
  State *self = state;
  cta_table_free(&self->ctas);
}

const Observer mbarrier_observer = {
    .name = "mbarrier",
    .events = 1u << EVENT_MBARRIER_INIT | 1u << EVENT_MBARRIER_INVAL | 1u << EVENT_PHASE |
              1u << EVENT_ARRIVE | 1u << EVENT_WRITE | 1u << EVENT_ASYNC_WRITE | 1u << EVENT_CTA_END,
    .begin = begin,
    .on_event = on_event,
    .end = end,
};

const char *mbarrier_describe_arrivals(Machine *machine, const Cta *cta, uint32_t offset) {
  for (int o = 0; machine->observers && o < machine->observers->count; o++) {
    if (machine->observers->observer[o] != &mbarrier_observer) continue;
    const Barrier *barrier = find(barriers_of(machine->observers->self[o], cta), offset);
    if (!barrier) return NULL;
    TextBuf out = {.arena = machine->arena};
    textbuf_printf(&out, "%u phases are over", barrier->phases);
    for (int i = 0; i < MOST_ARRIVERS && barrier->arrivers[i]; i++)
      textbuf_printf(&out, i == 0 ? "; arrivals so far came from line %d" : ", %d",
                     barrier->arrivers[i]->line);
    return out.data;
  }
  return NULL;
}

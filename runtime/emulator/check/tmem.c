// Tensor memory beyond what faults: an access that reaches from one allocation into another, and an mma whose D lies over its A or
// its scale factors. (Leaks, wrong deallocation, allocation after relinquish, foreign lanes and unallocated columns are faults.)
#include <stdlib.h>

#include "async/async_internal.h"
#include "check/cta_table.h"
#include "check/observers.h"
#include "exec/report.h"

typedef struct {
  uint8_t owner[TMEM_COLUMNS];  // 0: free, otherwise 1 + the number of the allocation modulo 255
  uint32_t allocations;
} Columns;

enum { MOST_READS = 4 };

typedef struct {
  CtaTable ctas;
  const EngineOp *op;  // completing, with the ranges of tensor memory that it has read
  const Cta *cta[MOST_READS];
  uint32_t address[MOST_READS], columns[MOST_READS], bands[MOST_READS];
  int nreads;
} State;

static Origin origin_of(const Machine *machine, const Event *event) {
  if (machine->op) return machine->op->origin;
  return (Origin){(Cta *)(uintptr_t)event->cta, event->warp ? event->warp->index : 0, -1, event->inst};
}

static void check_span(State *self, Machine *machine, const Event *event) {
  const Columns *columns = cta_table_get(&self->ctas, event->cta, sizeof *columns);
  uint64_t first = event->address & 0xFFFF, end = first + event->bytes;
  if (!columns || event->bytes == 0 || end > TMEM_COLUMNS) return;
  uint8_t owner = columns->owner[first];
  for (uint64_t column = first + 1; column < end; column++) {
    if (columns->owner[column] == owner) continue;
    if (!finding_is_new(machine, CHECK_TMEM, event->inst, NULL)) return;
    Origin origin = origin_of(machine, event);
    machine_finding_pair(
        machine, CHECK_TMEM, &origin, NULL, "keep each access within the columns of one tcgen05.alloc",
        "columns %llu to %llu of tensor memory belong to different allocations, from column %llu on",
        (unsigned long long)first, (unsigned long long)end - 1, (unsigned long long)column);
    return;
  }
}

static void remember_read(State *self, const Machine *machine, const Event *event) {
  if (self->op != machine->op) self->nreads = 0;
  self->op = machine->op;
  if (self->nreads == MOST_READS) return;
  int i = self->nreads++;
  self->cta[i] = event->cta;
  self->address[i] = (uint32_t)event->address & 0xFFFF;
  self->columns[i] = (uint32_t)event->bytes;
  self->bands[i] = event->bands;
}

// What an operation reads where it writes is D itself, or a mistake.
static void check_overlap(State *self, Machine *machine, const Event *event) {
  uint32_t first = (uint32_t)event->address & 0xFFFF, end = first + (uint32_t)event->bytes;
  for (int i = 0; self->op == machine->op && i < self->nreads; i++) {
    bool apart = self->address[i] >= end || self->address[i] + self->columns[i] <= first;
    bool is_d = self->address[i] == first && self->columns[i] == event->bytes;
    if (apart || is_d || self->cta[i] != event->cta || !(self->bands[i] & event->bands)) continue;
    if (!finding_is_new(machine, CHECK_TMEM, event->inst, NULL)) return;
    Origin origin = origin_of(machine, event);
    machine_finding_pair(
        machine, CHECK_TMEM, &origin, NULL, "give D, A and the scale factors columns of their own",
        "D, columns %u to %u, lies over an operand of the same instruction in columns %u to %u", first,
        end - 1, self->address[i], self->address[i] + self->columns[i] - 1);
    return;
  }
}

static void on_alloc(State *self, const Event *event, bool free) {
  Columns *columns = cta_table_get(&self->ctas, event->cta, sizeof *columns);
  if (!columns || event->address + event->bytes > TMEM_COLUMNS) return;
  uint8_t owner = free ? 0 : (uint8_t)(1 + columns->allocations++ % 255);
  for (uint64_t i = 0; i < event->bytes; i++) columns->owner[event->address + i] = owner;
}

static void on_event(void *state, Machine *machine, const Event *event) {
  State *self = state;
  if (event->kind == EVENT_TMEM_ALLOC || event->kind == EVENT_TMEM_FREE) {
    on_alloc(self, event, event->kind == EVENT_TMEM_FREE);
  } else if (event->kind == EVENT_ASYNC_DONE) {
    self->op = NULL;
  } else if (event->kind == EVENT_CTA_END) {
    free(cta_table_take(&self->ctas, event->cta));
  } else if (event->space == SPACE_TMEM) {
    check_span(self, machine, event);
    if (event->kind == EVENT_ASYNC_READ) remember_read(self, machine, event);
    if (event->kind == EVENT_ASYNC_WRITE) check_overlap(self, machine, event);
  }
}

static void *begin(Machine *machine) {
  return ARENA_NEW(machine->arena, State);
}

static void end(void *state, Machine *machine) {
  (void)machine;
  State *self = state;
  cta_table_free(&self->ctas);
}

const Observer tmem_observer = {
    .name = "tmem",
    .events = 1u << EVENT_READ | 1u << EVENT_ASYNC_READ | 1u << EVENT_ASYNC_WRITE | 1u << EVENT_TMEM_ALLOC |
              1u << EVENT_TMEM_FREE | 1u << EVENT_ASYNC_DONE | 1u << EVENT_CTA_END,
    .begin = begin,
    .on_event = on_event,
    .end = end,
};

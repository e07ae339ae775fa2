// Reads of shared and tensor memory that nobody has written. A thread's access counts when all of its bytes
// are unwritten, and a tcgen05.ld when all of its cells are: kernels read a little too much and ignore it.
// Global memory is zeroed when it is allocated.
#include <stdlib.h>
#include <string.h>

#include "async/engine.h"
#include "check/cta_table.h"
#include "check/observers.h"
#include "exec/report.h"
#include "mem/tmem.h"

enum { UNIT = 16 };

typedef struct {
  uint8_t tmem[TMEM_COLUMNS];  // bands of 16 lanes that are written
  uint16_t shared[];           // bytes that are written, per 16
} Written;

typedef struct {
  CtaTable ctas;
} Uninit;

static Written *written_of(Uninit *self, const Cta *cta) {
  return cta_table_get(&self->ctas, cta, sizeof(Written) + (cta->smem_bytes / UNIT + 1) * sizeof(uint16_t));
}

static uint16_t mask_of(uint64_t at, uint64_t address, uint64_t end) {
  uint64_t from = address > at ? address - at : 0, to = end - at < UNIT ? end - at : UNIT;
  return (uint16_t)((0xFFFFu >> (UNIT - (to - from))) << from);
}

static void set_written(Uninit *self, const Cta *cta, uint64_t address, uint64_t bytes) {
  Written *written = written_of(self, cta);
  uint64_t end = address + bytes;
  if (!written || end > cta->smem_bytes) return;
  for (uint64_t at = address / UNIT * UNIT; at < end; at += UNIT)
    written->shared[at / UNIT] |= mask_of(at, address, end);
}

static bool any_written(Uninit *self, const Cta *cta, uint64_t address, uint64_t bytes) {
  const Written *written = written_of(self, cta);
  uint64_t end = address + bytes;
  if (!written || end > cta->smem_bytes) return true;
  for (uint64_t at = address / UNIT * UNIT; at < end; at += UNIT)
    if (written->shared[at / UNIT] & mask_of(at, address, end)) return true;
  return false;
}

static Origin origin_of(const Machine *machine, const Event *event) {
  if (machine->op) return machine->op->origin;
  return (Origin){(Cta *)(uintptr_t)event->cta, event->warp ? event->warp->index : 0,
                  event->lanes ? first_lane(event->lanes) : -1, event->inst};
}

static void report_shared(Machine *machine, const Cta *cta, const Event *event, uint64_t address,
                          uint64_t bytes) {
  if (!finding_is_new(machine, CHECK_UNINIT, event->inst, NULL)) return;
  Origin origin = origin_of(machine, event);
  machine_finding_pair(
      machine, CHECK_UNINIT, &origin, NULL,
      "write it first, or check the offset; a copy that writes it must come before in every path",
      "%llu bytes of shared memory at %s are read, which nobody in the CTA's life has written",
      (unsigned long long)bytes, machine_symbolize(machine, cta, SPACE_SHARED, address));
}

static void on_shared(Uninit *self, Machine *machine, const Cta *cta, const Event *event, uint64_t address,
                      bool write) {
  if (write) {
    set_written(self, cta, address, event->bytes);
    return;
  }
  // What an engine reads at once is long: look at it in units.
  uint64_t step = event->kind == EVENT_ASYNC_READ ? UNIT : event->bytes;
  for (uint64_t at = 0; at < event->bytes; at += step) {
    if (any_written(self, cta, address + at, step)) continue;
    report_shared(machine, cta, event, address + at, step);
    return;
  }
}

static void on_tmem(Uninit *self, Machine *machine, const Event *event, bool write) {
  Written *written = written_of(self, event->cta);
  uint64_t first = event->address & 0xFFFF, end = first + event->bytes;
  bool some = false, all = true;
  for (uint64_t column = first; written && column < end && column < TMEM_COLUMNS; column++) {
    if (write) written->tmem[column] |= (uint8_t)event->bands;
    some |= (written->tmem[column] & event->bands) != 0;
    all &= (written->tmem[column] & event->bands) == event->bands;
  }
  bool engine = event->kind == EVENT_ASYNC_READ;
  if (write || !written || (engine ? all : some)) return;
  if (!finding_is_new(machine, CHECK_UNINIT, event->inst, NULL)) return;
  Origin origin = origin_of(machine, event);
  machine_finding_pair(
      machine, CHECK_UNINIT, &origin, NULL,
      engine ? "the first mma of a sum needs enable-input-d = false; A and scale factors must be stored first"
             : "wait for what writes it, and check column and lane",
      "tensor memory from lane %llu, column %llu, %llu columns, is read, which nobody has written since its "
      "allocation",
      (unsigned long long)(event->address >> 16), (unsigned long long)first,
      (unsigned long long)event->bytes);
}

// The CTA whose shared memory the event names, and the offset; NULL: other memory.
static const Cta *shared_of(Machine *machine, const Event *event, uint64_t *offset) {
  uint32_t at;
  *offset = event->address & ((1u << SHARED_RANK_SHIFT) - 1);
  if (event->space == SPACE_SHARED) return event->cta;
  if (event->space != SPACE_SHARED_CLUSTER && event->space != SPACE_GENERIC) return NULL;
  if (event->space == SPACE_GENERIC && !space_is_shared(event->address)) return NULL;
  return space_shared_cta(machine, event->cta, event->address, &at);
}

static void reset_tmem(Uninit *self, const Event *event) {
  Written *written = written_of(self, event->cta);
  if (written && event->address + event->bytes <= TMEM_COLUMNS)
    memset(written->tmem + event->address, 0, (size_t)event->bytes);
}

static void on_event(void *state, Machine *machine, const Event *event) {
  Uninit *self = state;
  bool write =
      event->kind == EVENT_WRITE || event->kind == EVENT_ASYNC_WRITE || event->kind == EVENT_MBARRIER_INIT;
  if (event->kind == EVENT_CTA_END) {
    free(cta_table_take(&self->ctas, event->cta));
  } else if (event->kind == EVENT_TMEM_ALLOC) {
    reset_tmem(self, event);
  } else if (event->space == SPACE_TMEM) {
    on_tmem(self, machine, event, write);
  } else {
    uint64_t offset;
    const Cta *cta = shared_of(machine, event, &offset);
    if (cta) on_shared(self, machine, cta, event, offset, write);
  }
}

static void *begin(Machine *machine) {
  return ARENA_NEW(machine->arena, Uninit);
}

static void end(void *state, Machine *machine) {
  (void)machine;
  Uninit *self = state;
  cta_table_free(&self->ctas);
}

const Observer uninit_observer = {
    .name = "uninit",
    .events = 1u << EVENT_READ | 1u << EVENT_WRITE | 1u << EVENT_ASYNC_READ | 1u << EVENT_ASYNC_WRITE |
              1u << EVENT_MBARRIER_INIT | 1u << EVENT_TMEM_ALLOC | 1u << EVENT_CTA_END,
    .begin = begin,
    .on_event = on_event,
    .end = end,
};

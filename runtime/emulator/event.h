// What observers see: every memory access, barrier, fence and asynchronous operation, as it happens. Whoever
// emits an event knows no observer; machine_event() costs one test when nobody listens.
#ifndef PTXEMU_EVENT_H
#define PTXEMU_EVENT_H

#include <stdint.h>

typedef enum {
  EVENT_ISSUE,  // an instruction starts, lanes = who
  EVENT_READ,   // space, address, bytes (per lane; generic proxy)
  EVENT_WRITE,
  EVENT_ASYNC_START,  // an engine took an operation
  EVENT_ASYNC_READ,   // the async proxy reads space/address/bytes
  EVENT_ASYNC_WRITE,
  EVENT_ASYNC_DONE,
  EVENT_BARRIER,     // lanes passed a barrier; space SHARED: the mbarrier at address; GENERIC: a named one;
                     // SHARED_CLUSTER
  EVENT_ARRIVE,      // the same for arrivals; cta = the barrier's; an engine's arrival has no warp
  EVENT_TX,          // mbarrier at address: bytes (int64_t) are added to what the phase waits for
  EVENT_PHASE,       // a phase of the mbarrier at address completed
  EVENT_GROUP_WAIT,  // the lane passed a wait for groups: its first `bytes` operations of that kind are
                     // complete
  EVENT_FENCE,
  EVENT_MBARRIER_INIT,
  EVENT_MBARRIER_INVAL,
  EVENT_TMEM_ALLOC,  // address = first column, bytes = columns
  EVENT_TMEM_FREE,
  EVENT_WAIT,  // lanes begin to wait at the instruction, or find once more that they must; address: the Wait
  EVENT_THREAD_EXIT,
  EVENT_CTA_BEGIN,
  EVENT_CTA_END,  // its engines are drained, its memories are still there
  EVENT_STOP,     // fault, hang or breakpoint; what was resident still is
  EVENT_COUNT,
} EventKind;

typedef struct {
  EventKind kind;
  const struct Cta *cta;
  const struct Warp *warp;  // NULL for engines
  const struct Inst *inst;  // the instruction that caused it
  uint32_t lanes;
  int space;  // Space
  uint64_t address;
  uint64_t bytes;
  uint32_t bands;  // TMEM: which groups of 16 lanes; address = first lane << 16 | column, bytes = columns
} Event;

#endif

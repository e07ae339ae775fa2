// What an instruction means to the checks, worked out once per module.
#ifndef PTXEMU_CHECK_CLASS_H
#define PTXEMU_CHECK_CLASS_H

#include "machine.h"

typedef enum {
  CLASS_NONE,
  CLASS_STRONG,          // atomics, volatile, relaxed, acquire, release accesses
  CLASS_FENCE_ASYNC,     // fence.proxy.async of any space
  CLASS_FENCE_MBARRIER,  // fence.mbarrier_init
  CLASS_FENCE_MEMORY,
  CLASS_FENCE_BEFORE,  // tcgen05.fence::before_thread_sync
  CLASS_FENCE_AFTER,
  CLASS_WAIT_LD,
  CLASS_WAIT_ST,
  CLASS_WAIT_COPIES,  // cp.async.wait_group, wait_all
  CLASS_WAIT_BULK,
  CLASS_WAIT_BULK_READ,
  CLASS_WAIT_WGMMA,
  CLASS_FENCE_WGMMA,
  CLASS_MOVE,
  CLASS_ST_ASYNC,
  CLASS_WGMMA,
  CLASS_COMMIT,  // tcgen05.commit
  CLASS_TMEM_LD,
  CLASS_REDUCE,     // red.async, cp.reduce.async.bulk
  CLASS_WAIT_GRID,  // griddepcontrol.wait
  CLASS_ARRIVE,     // any instruction that can arrive at an mbarrier or complete its bytes
} InstClass;

InstClass inst_class(const Inst *inst);
// The classes of all instructions of the module, in its order; in the launch arena.
const uint8_t *inst_classes(Machine *machine);

#endif

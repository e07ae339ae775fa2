// The ops of a kernel by the range of threads that they are for.
#ifndef TILEC_PASSES_THREAD_GROUPS_H
#define TILEC_PASSES_THREAD_GROUPS_H

#include "passes/tile.h"

typedef struct {
  TirThreads threads;
  TirOpList ops;  // in order; the allocation of a fragment is among those that use it
} ThreadGroup;

typedef VEC(ThreadGroup) ThreadGroups;

// False: a fragment is used by two ranges, or a range does not suit an access to TMEM; reported.
bool thread_groups(PassCx *cx, TirKernel *kernel, TirOpList ops, ThreadGroups *out);

#endif

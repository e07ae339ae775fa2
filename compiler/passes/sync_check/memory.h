// Accesses of buffers and what must lie between two that meet in the same place.
#ifndef TILEC_PASSES_SYNC_CHECK_MEMORY_H
#define TILEC_PASSES_SYNC_CHECK_MEMORY_H

#include "passes/sync_check/model.h"

// Every effect of the op, by this class of threads. How the op is carried out is read from its path. `component`
// and `at`: what to know for an asynchronous op to be over; of no meaning for others.
void memory_touch(Run *run, Agent *agent, const TirOp *op, Engine engine, int component, int at);
// The release of the tensor memory: as if all of it were written.
void memory_release_tmem(Run *run, Agent *agent, const TirOp *op);
// Bytes that the op moves into shared memory.
int64_t memory_bytes(const TirOp *op);

#endif

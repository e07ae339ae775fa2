// How a tile leaves by panels (path `panels`), step by step: for each panel
//
//   one_thread { bulk_wait }          # the store that last read the slot has done so; not for a slot that is free
//   sync_threads
//   copy %acc[:, p], %ring[slot]      # fence and meeting behind it: pass barriers
//   copy %ring[slot], %C[:, p] {path = tma_store}
//
// and at the end of the threads' work one more wait, so that no store reads the memory of a block that is gone.
#ifndef TILEC_PASSES_STORE_PANELS_H
#define TILEC_PASSES_STORE_PANELS_H

#include "passes/tile.h"

// Adds the waits at the end, while the kernel has its ops by panels.
void await_panels(PassCx *cx, TirKernel *kernel);
// Replaces the op. `loop` goes over the columns of the tile and the op has those of its round; without a loop (NULL) it has
// all. Threads wait for the slot of the first panel in front of `first`, which is the op or stands before it.
void store_panels(PassCx *cx, TirOp *op, TirOp *loop, TirOp *first);
// Replaces all that are left: those whose fragment is needed whole.
void store_remaining_panels(PassCx *cx, TirKernel *kernel);

#endif

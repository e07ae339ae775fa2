// How the threads of a range meet: all of the CTA at barrier 0, whole warps at a named barrier, part of a warp or one
// warp with a warp barrier, a single thread not at all.
#ifndef TILEC_PASSES_MEET_H
#define TILEC_PASSES_MEET_H

#include "passes/pass.h"

enum { NAMED_BARRIERS = 16 };

typedef struct {
  PassCx *cx;
  TirKernel *kernel;
  const TirOp *taken[NAMED_BARRIERS];  // by id: the author's first use, NULL
  struct {
    TirThreads threads;
    int id;
  } named[NAMED_BARRIERS];  // the compiler's
  int nnamed;
} Meetings;

// Finds the named barriers of the author.
Meetings meetings_new(PassCx *cx, TirKernel *kernel);
// Emits a meeting of the threads on behalf of `at`. False: reported, they cannot meet.
bool meet_threads(Meetings *meetings, TirBuilder *b, TirThreads threads, const TirOp *at);

#endif

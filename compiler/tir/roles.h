// Which threads of a block run an op, and which threads a condition is true for.
#ifndef TILEC_TIR_ROLES_H
#define TILEC_TIR_ROLES_H

#include "tir/tir.h"

enum { TIR_MAX_THREADS = 1024 };

// Threads lo to hi - 1 of the block.
typedef struct {
  int lo, hi;
} TirThreads;

// The threads that ops of this block are for: those of the innermost `role` around it, or all that the author
// sees. Under an `if` or `one_thread` in between fewer may run.
TirThreads tir_active_threads(const TirBlock *block);
int tir_thread_count(TirThreads threads);
// The innermost `role` around the block, or NULL.
TirOp *tir_role_of(const TirBlock *block);

// A set of threads, by number.
typedef struct {
  bool has[TIR_MAX_THREADS];
} TirThreadSet;

// Evaluates a value that depends on nothing but constants and the thread index, for each of these threads.
// False: it depends on something else, or the arithmetic is not exact.
bool tir_thread_set(const TirValue *condition, TirThreads among, TirThreadSet *out);
// Whether the set is a range; then which. An empty set is none.
bool tir_thread_range(const TirThreadSet *set, TirThreads *out);
// Whether the value may differ among these threads.
bool tir_differs_among(const TirValue *value, TirThreads threads);
// Whether it is the same for all of these threads because it depends on nothing but the thread index.
bool tir_threads_agree(const TirValue *value, TirThreads threads);

#endif

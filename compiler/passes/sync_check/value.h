// Integers of tile IR as intervals: exact where everything they depend on is fixed in this run.
#ifndef TILEC_PASSES_SYNC_CHECK_VALUE_H
#define TILEC_PASSES_SYNC_CHECK_VALUE_H

#include "passes/sync_check/model.h"

// What the leaves of an expression are.
typedef struct {
  const Scenario *scenario;  // sizes and parameters; NULL: not known
  const Val *env;            // loop variables, reads of cells, by value id; NULL: not known
  Val thread, block[3];
} Leaves;

Val val_point(int64_t value);
Val val_unknown(void);
bool val_is_point(Val value);
Val val_union(Val a, Val b);

Val val_of(const Leaves *leaves, const TirValue *value);
// The number, when it is known; else false.
bool val_known(const Leaves *leaves, const TirValue *value, int64_t *out);
// How many turns a `for` takes from lo to hi by step; unknown ones give false.
bool val_turns(const Leaves *leaves, const TirOp *loop, int64_t *out);

#endif

// Diagnostics of sync-check: a code, the place, the other place, what would mend it.
#ifndef TILEC_PASSES_SYNC_CHECK_EXPLAIN_H
#define TILEC_PASSES_SYNC_CHECK_EXPLAIN_H

#include "passes/sync_check/model.h"

// Two accesses that nothing keeps apart: `before` was made or started, `now` is about to be.
void explain_conflict(Run *run, const Agent *agent, const Touched *before, const Touched *now, bool certain);
// Begins a report at an op: an error, or a remark when the run rests on a guess. The first of a run ends it. False:
// nothing is to be added.
__attribute__((format(printf, 4, 5))) bool explain(Run *run, DiagCode code, const TirOp *op,
                                                   const char *format, ...);
// With which sizes the run was made: the last note of every report.
void explain_run(const Run *run);
// Nobody can go on.
void explain_stuck(Run *run);
const char *explain_barrier(const Run *run, int barrier);  // "full[1]"
const char *explain_buffer(const TirValue *buffer);

#endif

// One bounded run: every class of threads is moved as far as it can go, in turn, until all are done or none can go on.
#ifndef TILEC_PASSES_SYNC_CHECK_RUN_H
#define TILEC_PASSES_SYNC_CHECK_RUN_H

#include "passes/sync_check/model.h"
#include "passes/sync_check/value.h"

enum { MAX_DECISIONS = 64 };

typedef struct Decisions {
  Decision data[MAX_DECISIONS];
  int len;
} Decisions;

// Runs the kernel once. `decisions` are the guesses to make where data decides; new ones are appended.
RunResult run_once(Plan *plan, const Scenario *scenario, Arena *arena, Decisions *decisions);

Leaves run_leaves(const Run *run, const Agent *agent);
// Ends the run: what follows cannot be known. A remark says why.
__attribute__((format(printf, 3, 4))) void run_unproved(Run *run, const TirOp *op, const char *format, ...);
uint64_t run_team(const Run *run, const Agent *agent,
                  const TirOp *op);  // the classes that do the op together

// --- synchronisation (sync.c) ---

// Carries out an op of the synchronisation group or an asynchronous tile op. False: the agent has to wait; it is then
// asked again.
bool sync_step(Run *run, Agent *agent, const TirOp *op);
// The parts of a warp meet where it comes together again. False: the agent waits for the others.
bool sync_warp(Run *run, Agent *agent, const TirOp *op);
bool sync_can_go_on(Run *run, Agent *agent);
// After all threads have ended.
void sync_at_exit(Run *run);

#endif

// With which sizes to run a kernel, so that its loops take few turns: none, one, and up to past the last stage.
#ifndef TILEC_PASSES_SYNC_CHECK_SCENARIO_H
#define TILEC_PASSES_SYNC_CHECK_SCENARIO_H

#include "passes/sync_check/model.h"

typedef VEC(Scenario) Scenarios;

// In the order of size, without repetition.
Scenarios scenario_list(Plan *plan);

#endif

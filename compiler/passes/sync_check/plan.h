// What the kernel's text gives before anything runs: classes of threads, numbers of barriers and buffers, what
// each op touches.
#ifndef TILEC_PASSES_SYNC_CHECK_PLAN_H
#define TILEC_PASSES_SYNC_CHECK_PLAN_H

#include "passes/sync_check/model.h"

// False: the threads part in more ways than can be followed.
bool plan_make(Plan *plan);

unsigned plan_content(const Plan *plan, const TirOp *op);  // HAS_… of an op and its bodies
Effects plan_effects(const Plan *plan, const TirOp *op);   // on buffers that more than one thread sees
int plan_buffer(const Plan *plan, TirValue *buffer);       // its number; -1: not followed
int plan_threads(const TirKernel *kernel);                 // of a block

// Components of clocks.
int plan_products(const Plan *plan, int class_index);  // asynchronous products issued by the class
int plan_sources(const Plan *plan, int class_index);   // its bulk groups whose sources have been read
int plan_stores(const Plan *plan, int class_index);    // its bulk groups that are done
int plan_phases(const Plan *plan, int barrier);        // completed phases
// "thread 0", "threads 1 to 127", "threads 0, 32, 64, …"
const char *plan_class_name(const Plan *plan, int class_index);

#endif

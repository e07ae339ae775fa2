// The ordered pass table and its runner: asserts facts, verifies after every pass, prints and stops on
// request.
#ifndef TILEC_PASSES_PIPELINE_H
#define TILEC_PASSES_PIPELINE_H

#include "passes/pass.h"

typedef struct {
  int level;                // -O0 … -O3
  const char *print_after;  // pass name or "all"; NULL: none
  const char *stop_after;
  const char *const *only;  // tile-opt --pass=NAME…, in order; NULL: the whole pipeline
  int nonly;
  const char *const *disabled;  // passes to leave out
  int ndisabled;
  FILE *print_to;
} PipelineOptions;

bool run_pipeline(TirModule *module, const Target *target, const PipelineOptions *options, Diags *ds);
const Pass *pipeline_find(const char *name);
int pipeline_count(void);
const Pass *pipeline_at(int index);

#endif

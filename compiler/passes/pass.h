// What a pass is: a function over one kernel and a row of the pipeline table (pipeline.c).
#ifndef TILEC_PASSES_PASS_H
#define TILEC_PASSES_PASS_H

#include "base/diag.h"
#include "target/target.h"
#include "tir/build.h"
#include "tir/tir.h"

typedef struct {
  TirModule *module;
  const Target *target;
  Arena *scratch;  // reset after each pass
  Diags *ds;
} PassCx;

// False: reported.
typedef bool (*PassFn)(PassCx *cx, TirKernel *kernel);

typedef struct {
  const char *name;
  PassFn run;
  unsigned needs, gives;  // TirFacts
  int level;              // the least -O that runs it
  const char *with;       // another pass without which it does not run; NULL: it always does
} Pass;

// Reports that what the source asks for cannot be had; `at`: the place of the reason, {0, 0} when it has none. False.
bool pass_refuse_choice(const PassCx *cx, const TirKernel *kernel, ChoiceKind choice, Span at,
                        const char *why);

bool pass_select(PassCx *cx, TirKernel *kernel);
bool pass_stores(PassCx *cx, TirKernel *kernel);
bool pass_persistent(PassCx *cx, TirKernel *kernel);
bool pass_defer(PassCx *cx, TirKernel *kernel);
bool pass_roles(PassCx *cx, TirKernel *kernel);
bool pass_memory_layout(PassCx *cx, TirKernel *kernel);
bool pass_fragments(PassCx *cx, TirKernel *kernel);
bool pass_tmem(PassCx *cx, TirKernel *kernel);
bool pass_barriers(PassCx *cx, TirKernel *kernel);
bool pass_narrow(PassCx *cx, TirKernel *kernel);
bool pass_regions(PassCx *cx, TirKernel *kernel);
bool pass_overlap(PassCx *cx, TirKernel *kernel);
bool pass_smem(PassCx *cx, TirKernel *kernel);
bool pass_sync_check(PassCx *cx, TirKernel *kernel);

#endif

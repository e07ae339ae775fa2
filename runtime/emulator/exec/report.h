// Texts of faults and findings, and the list of findings of a launch.
#ifndef PTXEMU_EXEC_REPORT_H
#define PTXEMU_EXEC_REPORT_H

#include "base/vec.h"
#include "machine.h"

typedef struct {
  Check check;
  const Inst *inst;
  uint32_t cluster;
  const char *text;
} Finding;

typedef struct Findings {
  VEC(Finding) list;
} Findings;

// Adds copies of what `from` has and `into` lacks; of two with the same check and instruction the one of the
// lower cluster stays.
void findings_merge(Arena *arena, Findings *into, const Findings *from);
// All texts in order of clusters, cut after the first hundred; NULL when there are none.
const char *findings_text(Arena *arena, Findings *findings);

// The name that --check uses.
const char *check_name(Check check);
// "CTA (0,0,0), warp 2, lane 5 (thread 69,0,0)"; without the lane when it is negative.
void report_thread(TextBuf *out, const Machine *machine, const Cta *cta, int warp, int lane);
// Statement with its PTX line, thread, and source line.
void report_place(TextBuf *out, const Machine *machine, const Origin *origin);

#endif

// Texts of faults and findings, and the list of findings of a launch.
#ifndef PTXEMU_EXEC_REPORT_H
#define PTXEMU_EXEC_REPORT_H

#include "base/vec.h"
#include "machine.h"

typedef struct {
  Check check;
  const Inst *inst;
} FindingKey;

typedef struct Findings {
  VEC(FindingKey) seen;
  int count;
  TextBuf text;
} Findings;

// The name that --check uses.
const char *check_name(Check check);
// "CTA (0,0,0), warp 2, lane 5 (thread 69,0,0)"; without the lane when it is negative.
void report_thread(TextBuf *out, const Machine *machine, const Cta *cta, int warp, int lane);
// Statement with its PTX line, thread, and source line.
void report_place(TextBuf *out, const Machine *machine, const Origin *origin);

#endif

// Texts of faults and findings, and the list of findings of a launch.
#ifndef PTXEMU_EXEC_REPORT_H
#define PTXEMU_EXEC_REPORT_H

#include "base/vec.h"
#include "machine.h"

// What a check found: one per check and pair of instructions, however often it happened.
typedef struct {
  Check check;
  const Inst *inst, *other;
  uint64_t count;
  uint32_t cluster;
  const char *text;
} Finding;

typedef struct Findings {
  VEC(Finding) list;
  bool full;  // more were found than are listed
} Findings;

// Adds copies of what `from` has and `into` lacks; of two with the same check and instructions the one of the
// lower cluster stays.
void findings_merge(Arena *arena, Findings *into, const Findings *from);
// All texts in order of clusters, cut after the first hundred; NULL when there are none.
const char *findings_text(Arena *arena, Findings *findings);

// The name that --check uses.
const char *check_name(Check check);
// "CTA (0,0,0), warp 2, lane 5 (thread 69,0,0)"; without the lane when it is negative.
void report_thread(TextBuf *out, const Machine *machine, const Cta *cta, int warp, int lane);
// One line: module, PTX line, the statement on a single line and at most 160 characters of it.
void report_statement(TextBuf *out, const Module *module, const Inst *inst);
// Statement with its PTX line, thread, and source line.
void report_place(TextBuf *out, const Machine *machine, const Origin *origin);

// The other side of a finding.
typedef struct {
  const char *what;  // "read by", "written by"
  Origin origin;     // cta NULL: of another cluster
  uint32_t cluster;  // its number
} OtherSide;

// True when the finding is the first of its kind and the check is asked for: then machine_finding_pair says
// it. Otherwise it is counted, and no text need be made.
bool finding_is_new(Machine *machine, Check check, const Inst *inst, const Inst *other);
// A finding with its other side (NULL: none) and a sentence on what to do about it.
__attribute__((format(printf, 6, 7))) void machine_finding_pair(Machine *machine, Check check,
                                                                const Origin *origin, const OtherSide *other,
                                                                const char *advice, const char *format, ...);
#endif

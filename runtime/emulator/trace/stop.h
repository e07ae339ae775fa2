// Breakpoints: the launch stops when a line of the PTX, or of its source, is reached first.
#ifndef PTXEMU_TRACE_STOP_H
#define PTXEMU_TRACE_STOP_H

#include "exec/observer.h"

typedef struct Breakpoint {
  int line;  // PTX line; of a source line: 0
  int source_file, source_line;
} Breakpoint;

// "LINE", or "FILE:LINE" of a source that .loc names; FILE may leave out leading folders. A line without an
// instruction stands for the next that has one. NULL, or an error text.
const char *breakpoint_parse(Arena *arena, const Module *module, const char *text, Breakpoint *out);

// Sets a fault that is `stopped`: thread, statement, neighbouring statements, registers, where the CTA's warps are.
extern const Observer stop_observer;

#endif

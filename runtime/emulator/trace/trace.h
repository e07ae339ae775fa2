// The observers that a launch's Watch asks for.
#ifndef PTXEMU_TRACE_TRACE_H
#define PTXEMU_TRACE_TRACE_H

#include "machine.h"

void trace_begin(Machine *machine);
// True when one worker must run all clusters: a trace has one time, and a breakpoint is reached first by one thread.
bool trace_needs_one_worker(const Watch *watch);

#endif

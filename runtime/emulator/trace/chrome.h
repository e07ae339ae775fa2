// A trace in Chrome's trace-event format, --trace: a process a CTA, a track a warp, and tracks for the operations of
// its engines. Time is the number of warp instructions executed so far.
#ifndef PTXEMU_TRACE_CHROME_H
#define PTXEMU_TRACE_CHROME_H

#include "exec/observer.h"

// Writes a complete JSON text into machine->trace; at most watch->trace_events events, then a note says where it was cut.
extern const Observer chrome_observer;

#endif

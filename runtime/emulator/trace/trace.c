// Each observer writes into a text or table of the machine, which is made here.
#include "trace/trace.h"

#include "exec/observer.h"
#include "trace/chrome.h"
#include "trace/dump.h"
#include "trace/stats.h"
#include "trace/stop.h"

static TextBuf *new_text(Machine *machine) {
  TextBuf *text = ARENA_NEW(machine->arena, TextBuf);
  text->arena = machine->arena;
  return text;
}

void trace_begin(Machine *machine) {
  const Watch *watch = &machine->launch->watch;
  if (watch->stats) {
    machine->counters = ARENA_NEW(machine->arena, Counters);
    observers_add(machine, &stats_observer);
  }
  if (watch->trace_events > 0) {
    machine->trace = new_text(machine);
    observers_add(machine, &chrome_observer);
  }
  if (watch->nranges > 0) {
    machine->dump = new_text(machine);
    observers_add(machine, &dump_observer);
  }
  if (watch->stop != NULL) observers_add(machine, &stop_observer);
}

bool trace_needs_one_worker(const Watch *watch) {
  return watch->trace_events > 0 || watch->stop != NULL;
}

// Observers watch a launch through events: checks report findings, trace/ counts and draws. They change no result; one
// may only stop the launch, as a breakpoint does.
#ifndef PTXEMU_EXEC_OBSERVER_H
#define PTXEMU_EXEC_OBSERVER_H

#include "machine.h"

typedef struct {
  const char *name;
  uint32_t events;  // bit per EventKind that it listens to
  void *(*begin)(Machine *machine);
  void (*on_event)(void *self, Machine *machine, const Event *event);
  void (*end)(void *self, Machine *machine);
} Observer;

enum { MOST_OBSERVERS = 16 };

typedef struct Observers {
  const Observer *observer[MOST_OBSERVERS];
  void *self[MOST_OBSERVERS];
  int count;
} Observers;

// Adds an observer and starts it.
void observers_add(Machine *machine, const Observer *observer);
void observers_end(Machine *machine);

#endif

// Observers watch a launch through events and report findings; they change no result.
#ifndef PTXEMU_CHECK_OBSERVER_H
#define PTXEMU_CHECK_OBSERVER_H

#include "machine.h"

typedef struct {
  const char *name;
  uint32_t events;  // bit per EventKind that it listens to
  void *(*begin)(Machine *machine);
  void (*on_event)(void *self, Machine *machine, const Event *event);
  void (*end)(void *self, Machine *machine);
} Observer;

enum { MOST_OBSERVERS = 8 };

typedef struct Observers {
  const Observer *observer[MOST_OBSERVERS];
  void *self[MOST_OBSERVERS];
  int count;
} Observers;

// Adds an observer and starts it.
void observers_add(Machine *machine, const Observer *observer);
void observers_end(Machine *machine);
// Adds the observers of machine->checks.
void checks_begin(Machine *machine);

// True when clusters must run in one machine, since their accesses to global memory are compared.
bool checks_compare_clusters(uint32_t checks);

// Parses a --check list into a set of bits (1 << Check). NULL, or an error text that names the bad word.
const char *checks_parse(Arena *arena, const char *list, uint32_t *checks);

#endif

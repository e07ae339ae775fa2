// The list of observers of a launch.
#include "exec/observer.h"

#include <assert.h>

void observers_add(Machine *machine, const Observer *observer) {
  Observers *list = machine->observers;
  if (list == NULL) return;
  assert(list->count < MOST_OBSERVERS);
  list->self[list->count] = observer->begin != NULL ? observer->begin(machine) : NULL;
  list->observer[list->count++] = observer;
  machine->event_mask |= observer->events;
}

void observers_end(Machine *machine) {
  for (int i = 0; machine->observers != NULL && i < machine->observers->count; i++) {
    const Observer *observer = machine->observers->observer[i];
    if (observer->end != NULL) observer->end(machine->observers->self[i], machine);
  }
}

void machine_emit(Machine *machine, const Event *event) {
  for (int i = 0; i < machine->observers->count; i++) {
    const Observer *observer = machine->observers->observer[i];
    if (observer->events >> event->kind & 1) observer->on_event(machine->observers->self[i], machine, event);
  }
}

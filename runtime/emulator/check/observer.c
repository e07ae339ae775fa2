// The list of observers of a launch, and what --check names. A name whose check isn't written yet is an
// error: it must not look as if it had passed.
#include "check/observer.h"

#include <string.h>

#include "exec/report.h"

void observers_add(Machine *machine, const Observer *observer) {
  Observers *list = machine->observers;
  if (list == NULL || list->count == MOST_OBSERVERS) return;
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

// ---- --check

static const uint32_t written =
    1u << CHECK_MBARRIER | 1u << CHECK_TMEM | 1u << CHECK_EXIT | 1u << CHECK_BOUNDS;

static bool word_is(const char *word, size_t length, const char *text) {
  return strlen(text) == length && memcmp(word, text, length) == 0;
}

static int find_check(const char *word, size_t length) {
  for (int c = 0; c < CHECK_COUNT; c++) {
    if (word_is(word, length, check_name((Check)c))) return c;
  }
  return -1;
}

const char *checks_parse(Arena *arena, const char *list, uint32_t *checks) {
  *checks = 0;
  for (const char *word = list; *word != '\0';) {
    size_t length = strcspn(word, ",");
    int check = find_check(word, length);
    if (word_is(word, length, "default")) {
      *checks |= written;
    } else if (word_is(word, length, "none")) {
      *checks = 0;
    } else if (word_is(word, length, "all")) {
      return "--check all: the checks uninit, race, proxy and tcgen05 are not supported yet; there are "
             "mbarrier, tmem, exit, "
             "bounds";
    } else if (check < 0) {
      return text_printf(arena, "--check: no check is called '%.*s'", (int)length, word);
    } else if (!(written >> check & 1)) {
      return text_printf(arena, "--check %s is not supported yet", check_name((Check)check));
    } else {
      *checks |= 1u << check;
    }
    word += length;
    if (*word == ',') word++;
  }
  return NULL;
}

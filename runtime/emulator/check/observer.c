// What --check names, and the observers that it adds.
#include "check/observer.h"

#include <string.h>

#include "check/class.h"
#include "check/observers.h"
#include "exec/report.h"

// ---- --check

// What the field's correct kernels pass; all adds what the manual asks for.
static const uint32_t by_default =
    1u << CHECK_MBARRIER | 1u << CHECK_TMEM | 1u << CHECK_EXIT | 1u << CHECK_BOUNDS | 1u << CHECK_UNINIT;
static const uint32_t ordering = 1u << CHECK_RACE | 1u << CHECK_PROXY | 1u << CHECK_TCGEN05;

static bool word_is(const char *word, size_t length, const char *text) {
  return strlen(text) == length && memcmp(word, text, length) == 0;
}

static int find_check(const char *word, size_t length) {
  for (int c = 0; c < CHECK_COUNT; c++) {
    if (word_is(word, length, check_name((Check)c))) return c;
  }
  return -1;
}

static const char *unknown_check(Arena *arena, const char *word, size_t length) {
  TextBuf text = {.arena = arena};
  textbuf_printf(&text, "no check is called '%.*s'; there are", (int)length, word);
  for (int c = 0; c < CHECK_COUNT; c++) textbuf_printf(&text, " %s", check_name((Check)c));
  textbuf_puts(&text, ", and default, all, none");
  return text.data;
}

const char *checks_parse(Arena *arena, const char *list, uint32_t *checks) {
  *checks = 0;
  for (const char *word = list; *word != '\0';) {
    size_t length = strcspn(word, ",");
    int check = find_check(word, length);
    if (word_is(word, length, "default")) {
      *checks |= by_default;
    } else if (word_is(word, length, "none")) {
      *checks = 0;
    } else if (word_is(word, length, "all")) {
      *checks |= by_default | ordering | 1u << CHECK_GRID;
    } else if (check < 0) {
      return unknown_check(arena, word, length);
    } else {
      *checks |= 1u << check;
    }
    word += length;
    if (*word == ',') word++;
  }
  return NULL;
}

static bool has_asynchronous_registers(const Module *module) {
  for (uint32_t i = 0; i < module->ninsts; i++) {
    InstClass kind = inst_class(&module->insts[i]);
    if (kind == CLASS_TMEM_LD || kind == CLASS_WGMMA) return true;
  }
  return false;
}

void checks_begin(Machine *machine) {
  uint32_t checks = machine->checks;
  if (checks & ordering) observers_add(machine, &order_observer);
  if (checks & ordering && has_asynchronous_registers(machine->module))
    observers_add(machine, &registers_observer);
  if (checks >> CHECK_UNINIT & 1) observers_add(machine, &uninit_observer);
  if (checks >> CHECK_MBARRIER & 1) observers_add(machine, &mbarrier_observer);
  if (checks >> CHECK_TMEM & 1) observers_add(machine, &tmem_observer);
  if (checks >> CHECK_EXIT & 1) observers_add(machine, &exit_observer);
  if (checks >> CHECK_GRID & 1 && grid_waits(machine)) observers_add(machine, &grid_observer);
}

bool checks_compare_clusters(uint32_t checks) {
  return checks >> CHECK_RACE & 1;
}

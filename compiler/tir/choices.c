#include "tir/choices.h"

#include <stdio.h>
#include <string.h>

enum { MOST_ROWS = 65535, MOST_ACCUMULATORS = 2 };

static const ChoiceDef defs[] = {
    [CHOICE_roles] = {"roles", "roles", 0},
    [CHOICE_persistent] = {"persistent", "persistent", 0},
    [CHOICE_defer] = {"defer", "defer", 0},
    [CHOICE_stores] = {"stores", "stores", 0},
    [CHOICE_narrow] = {"narrow", "narrow", 0},
    [CHOICE_regions] = {"regions", "regions", 0},
    [CHOICE_tma] = {"tma", "select", 0},
    [CHOICE_registers] = {"registers", "roles", 0},
    [CHOICE_warpgroups] = {"warpgroups", "select", 0},
    [CHOICE_accumulators] = {"accumulators", "roles", MOST_ACCUMULATORS},
    [CHOICE_group_rows] = {"group_rows", "persistent", MOST_ROWS},
};

const ChoiceDef *choice_def(ChoiceKind kind) {
  return &defs[kind];
}

bool choice_find(const char *name, ChoiceKind *out) {
  for (int kind = 0; kind < CHOICE_COUNT; kind++) {
    if (strcmp(defs[kind].name, name) != 0) continue;
    *out = (ChoiceKind)kind;
    return true;
  }
  return false;
}

const char *choice_text(ChoiceKind kind, int value, bool source, char text[16]) {
  if (!defs[kind].most) return value ? (source ? "True" : "true") : (source ? "False" : "false");
  snprintf(text, 16, "%d", value);
  return text;
}

// What the source may say of the decisions that passes make by rule (docs/roles.md): `annotate(persistent=False)`. A kernel
// holds the values that were given, and shows them in its heading; what is left out is decided by the rules.
#ifndef TILEC_TIR_CHOICES_H
#define TILEC_TIR_CHOICES_H

#include <stdbool.h>

#include "base/source.h"

typedef enum {
  CHOICE_roles,
  CHOICE_persistent,
  CHOICE_defer,
  CHOICE_stores,
  CHOICE_narrow,
  CHOICE_regions,
  CHOICE_tma,
  CHOICE_registers,
  CHOICE_warpgroups,
  CHOICE_group_rows,
  CHOICE_accumulators,
  CHOICE_COUNT
} ChoiceKind;

typedef struct {
  const char *name;  // in the source and in text
  const char *pass;  // that decides; of the same name: False leaves the pass out
  int most;          // a number from 1 to that; 0: True or False
} ChoiceDef;

typedef struct {
  bool given;
  int value;
  Span span;
} TirChoice;

const ChoiceDef *choice_def(ChoiceKind kind);
bool choice_find(const char *name, ChoiceKind *out);
// A value as source and text write it, with different words for True and False; `text` has room for 16 characters.
const char *choice_text(ChoiceKind kind, int value, bool source, char text[16]);

#endif

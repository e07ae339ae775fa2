// How a collected diagnostic looks inside: what diag.c fills, diag_print.c shows to people and diag_json.c to programs.
#ifndef TILEC_BASE_DIAG_INTERNAL_H
#define TILEC_BASE_DIAG_INTERNAL_H

#include "base/diag.h"
#include "base/vec.h"

enum { ERROR_LIMIT = 50, FRAMES_SHOWN = 8 };

typedef struct {
  Span span;
  const char *text;
} Extra;  // a note, a hint (without a place) or a frame

typedef VEC(Extra) ExtraVec;

typedef struct {
  DiagLevel level;
  DiagCode code;  // of no meaning for DIAG_REMARK
  Span span;
  const char *text;
  ExtraVec notes, hints, frames;
} Diag;

struct Diags {
  Arena *arena;
  const Source *source;
  VEC(Diag *) list;
  ExtraVec frames;
  Diag *last;  // where notes go; NULL after a dropped diagnostic
  int errors, repeated;
  bool dropped_errors;
};

// Whether a span names a place that can be shown.
bool diag_has_place(const Diags *ds, Span span);
// One diagnostic as a line of JSON (docs/diagnostics.md).
void diag_json(const Diags *ds, FILE *out, const Diag *diag);
// A message that is no diagnostic of the source, as the same object.
void diag_json_plain(FILE *out, const char *severity, const char *text);

#endif

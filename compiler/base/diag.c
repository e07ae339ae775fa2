// Diagnostics are collected here; diag_print.c prints them. Notes, hints and the frames that were open at the
// time belong to the diagnostic reported last. A diagnostic that is dropped (the same code at the same span
// again, or beyond the limit) takes its notes along.
#include "base/diag.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/diag_internal.h"

static const char *const code_texts[] = {
#define DIAG(code, name, summary) #code,
#include "base/diag.def"
#undef DIAG
};

static const char *const code_summaries[] = {
#define DIAG(code, name, summary) summary,
#include "base/diag.def"
#undef DIAG
};

const char *diag_code_text(DiagCode code) {
  return code_texts[code];
}
const char *diag_code_summary(DiagCode code) {
  return code_summaries[code];
}

bool diag_code_find(const char *text, DiagCode *out) {
  for (int i = 0; i < DIAG_COUNT; i++) {
    if (strcasecmp(text, code_texts[i]) != 0) continue;
    *out = (DiagCode)i;
    return true;
  }
  return false;
}

Diags *diags_new(Arena *arena, const Source *source) {
  Diags *ds = ARENA_NEW(arena, Diags);
  ds->arena = arena;
  ds->source = source;
  return ds;
}

void diags_set_source(Diags *ds, const Source *source) {
  ds->source = source;
}

int diags_errors(const Diags *ds) {
  return ds->errors;
}
int diags_repeated(const Diags *ds) {
  return ds->repeated;
}
bool diags_at_limit(const Diags *ds) {
  return ds->errors >= ERROR_LIMIT;
}

static bool reported_before(const Diags *ds, const Diag *diag) {
  for (int i = 0; i < ds->list.len; i++) {
    const Diag *other = ds->list.data[i];
    if (other->level != diag->level || other->span.begin != diag->span.begin ||
        other->span.end != diag->span.end)
      continue;
    bool by_text =
        diag->level == DIAG_REMARK || diag->span.end == 0;  // options have no place, and may all be wrong
    if (by_text ? strcmp(other->text, diag->text) == 0 : other->code == diag->code) return true;
  }
  return false;
}

// The frames innermost first, as a reader follows them outwards.
static ExtraVec open_frames(Diags *ds) {
  ExtraVec frames = {0};
  for (int i = ds->frames.len - 1; i >= 0; i--) vec_push(ds->arena, &frames, ds->frames.data[i]);
  return frames;
}

static void report(Diags *ds, DiagLevel level, DiagCode code, Span span, const char *format, va_list args) {
  ds->last = NULL;
  Diag diag = {.level = level, .code = code, .span = span, .text = text_vprintf(ds->arena, format, args)};
  if (reported_before(ds, &diag)) {
    if (level == DIAG_ERROR) ds->repeated++;
    return;
  }
  if (level == DIAG_ERROR && diags_at_limit(ds)) {
    ds->dropped_errors = true;
    return;
  }
  diag.frames = open_frames(ds);
  ds->last = ARENA_NEW(ds->arena, Diag);
  *ds->last = diag;
  vec_push(ds->arena, &ds->list, ds->last);
  if (level == DIAG_ERROR) ds->errors++;
}

void diag_error(Diags *ds, DiagCode code, Span span, const char *format, ...) {
  va_list args;
  va_start(args, format);
  report(ds, DIAG_ERROR, code, span, format, args);
  va_end(args);
}

void diag_warning(Diags *ds, DiagCode code, Span span, const char *format, ...) {
  va_list args;
  va_start(args, format);
  report(ds, DIAG_WARNING, code, span, format, args);
  va_end(args);
}

void diag_remark(Diags *ds, Span span, const char *format, ...) {
  va_list args;
  va_start(args, format);
  report(ds, DIAG_REMARK, DIAG_COUNT, span, format, args);
  va_end(args);
}

void diag_note(Diags *ds, Span span, const char *format, ...) {
  if (!ds->last) return;
  va_list args;
  va_start(args, format);
  Extra note = {span, text_vprintf(ds->arena, format, args)};
  va_end(args);
  vec_push(ds->arena, &ds->last->notes, note);
}

void diag_hint(Diags *ds, const char *format, ...) {
  if (!ds->last) return;
  va_list args;
  va_start(args, format);
  Extra hint = {.text = text_vprintf(ds->arena, format, args)};
  va_end(args);
  vec_push(ds->arena, &ds->last->hints, hint);
}

void diag_push_frame(Diags *ds, Span span, const char *format, ...) {
  va_list args;
  va_start(args, format);
  Extra frame = {span, text_vprintf(ds->arena, format, args)};
  va_end(args);
  vec_push(ds->arena, &ds->frames, frame);
}

void diag_pop_frame(Diags *ds) {
  if (ds->frames.len == 0) BUG("a diagnostic frame was popped twice");
  ds->frames.len--;
}

bool diag_has_place(const Diags *ds, Span span) {
  return ds->source && (span.begin != 0 || span.end != 0);
}

void bug_at(const char *file, int line, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fprintf(stderr, "internal error at %s:%d: ", file, line);
  vfprintf(stderr, format, args);
  fputs("\nThis is a fault of the compiler, not of your program; please report it.\n", stderr);
  va_end(args);
  abort();
}

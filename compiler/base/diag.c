// Diagnostics are collected, then printed in the order of their places. Notes, hints and the frames that were
// open at the time belong to the diagnostic reported last. A diagnostic that is dropped (the same code at the
// same span again, or beyond the limit) takes its notes along. How a source line is drawn is diag_excerpt.c's
// business.
#include "base/diag.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag_excerpt.h"
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
  int errors;
  bool dropped_errors;
};

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
bool diags_at_limit(const Diags *ds) {
  return ds->errors >= ERROR_LIMIT;
}

static bool reported_before(const Diags *ds, const Diag *diag) {
  for (int i = 0; i < ds->list.len; i++) {
    const Diag *other = ds->list.data[i];
    if (other->level != diag->level || other->span.begin != diag->span.begin ||
        other->span.end != diag->span.end)
      continue;
    if (diag->level == DIAG_REMARK ? strcmp(other->text, diag->text) == 0 : other->code == diag->code)
      return true;
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
  if (reported_before(ds, &diag)) return;
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

static bool has_place(const Diags *ds, Span span) {
  return ds->source && (span.begin != 0 || span.end != 0);
}

// `path:line:col: ` as far as it is known.
static void print_place(const Diags *ds, FILE *out, Span span) {
  if (!ds->source) return;
  excerpt_print_text(out, ds->source->path);
  if (has_place(ds, span)) {
    Place place = source_place(ds->source, span.begin);
    fprintf(out, ":%d:%d", place.line, place.column);
  }
  fputs(": ", out);
}

static void print_message(const Diags *ds, FILE *out, Span span, const char *label, const char *text) {
  print_place(ds, out, span);
  fprintf(out, "%s: ", label);
  excerpt_print_text(out, text);
  fputc('\n', out);
  if (has_place(ds, span)) excerpt_print(out, ds->source, span);
}

static void print_frames(const Diags *ds, FILE *out, const ExtraVec *frames) {
  for (int i = 0; i < frames->len && i < FRAMES_SHOWN; i++)
    print_message(ds, out, frames->data[i].span, "note", frames->data[i].text);
  if (frames->len > FRAMES_SHOWN)
    fprintf(out, "note: and %d more calls outside these\n", frames->len - FRAMES_SHOWN);
}

static const char *label_of(Arena *arena, const Diag *diag) {
  switch (diag->level) {
  case DIAG_ERROR:
    return text_printf(arena, "error[%s]", diag_code_text(diag->code));
  case DIAG_WARNING:
    return text_printf(arena, "warning[%s]", diag_code_text(diag->code));
  case DIAG_REMARK:
    return "remark";
  }
  return "";
}

static void print_diag(const Diags *ds, FILE *out, const Diag *diag) {
  print_message(ds, out, diag->span, label_of(ds->arena, diag), diag->text);
  for (int i = 0; i < diag->notes.len; i++)
    print_message(ds, out, diag->notes.data[i].span, "note", diag->notes.data[i].text);
  for (int i = 0; i < diag->hints.len; i++) {
    fputs("  hint: ", out);
    excerpt_print_text(out, diag->hints.data[i].text);
    fputc('\n', out);
  }
  print_frames(ds, out, &diag->frames);
}

static bool comes_later(const Diag *a, const Diag *b) {
  return a->span.begin > b->span.begin;
}

// Insertion sort: stable, and the list is short and nearly sorted.
static Diag **sorted(const Diags *ds) {
  Diag **list = ARENA_ARRAY(ds->arena, Diag *, ds->list.len);
  for (int i = 0; i < ds->list.len; i++) {
    int at = i;
    for (; at > 0 && comes_later(list[at - 1], ds->list.data[i]); at--) list[at] = list[at - 1];
    list[at] = ds->list.data[i];
  }
  return list;
}

void diags_print(const Diags *ds, FILE *out, bool remarks) {
  Diag **list = sorted(ds);
  for (int i = 0; i < ds->list.len; i++)
    if (remarks || list[i]->level != DIAG_REMARK) print_diag(ds, out, list[i]);
  if (ds->dropped_errors) fprintf(out, "note: stopped after %d errors\n", ERROR_LIMIT);
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

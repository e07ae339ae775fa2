// Diagnostics for people: sorted by place, each with its source line, its notes, its hints and the calls
// around it. Colours are laid over the same text; how a source line is drawn is diag_excerpt.c's business.
#include "base/diag_excerpt.h"
#include "base/diag_internal.h"

typedef struct {
  const Diags *ds;
  FILE *out;
  bool color;
} Printer;

// Escape sequences (ECMA-48, select graphic rendition).
#define COLOR_BOLD "\033[1m"
#define COLOR_ERROR "\033[1;31m"
#define COLOR_WARNING "\033[1;35m"
#define COLOR_REMARK "\033[1;34m"
#define COLOR_NOTE "\033[1;36m"
#define COLOR_HINT "\033[1;32m"
#define COLOR_END "\033[0m"

static void paint(const Printer *p, const char *color) {
  if (p->color) fputs(color, p->out);
}

// `path:line:col: ` as far as it is known.
static void print_place(const Printer *p, Span span) {
  if (!p->ds->source) return;
  paint(p, COLOR_BOLD);
  excerpt_print_text(p->out, p->ds->source->path);
  if (diag_has_place(p->ds, span)) {
    Place place = source_place(p->ds->source, span.begin);
    fprintf(p->out, ":%d:%d", place.line, place.column);
  }
  fputs(":", p->out);
  paint(p, COLOR_END);
  fputs(" ", p->out);
}

static void print_message(const Printer *p, Span span, const char *label, const char *color,
                          const char *text) {
  print_place(p, span);
  paint(p, color);
  fprintf(p->out, "%s:", label);
  paint(p, COLOR_END);
  fputs(" ", p->out);
  excerpt_print_text(p->out, text);
  fputc('\n', p->out);
  if (diag_has_place(p->ds, span)) excerpt_print(p->out, p->ds->source, span, p->color ? color : NULL);
}

static void print_notes(const Printer *p, const ExtraVec *notes, int limit) {
  for (int i = 0; i < notes->len && i < limit; i++)
    print_message(p, notes->data[i].span, "note", COLOR_NOTE, notes->data[i].text);
}

static void print_frames(const Printer *p, const ExtraVec *frames) {
  print_notes(p, frames, FRAMES_SHOWN);
  if (frames->len > FRAMES_SHOWN)
    fprintf(p->out, "note: and %d more calls outside these\n", frames->len - FRAMES_SHOWN);
}

static const char *label_of(const Diag *diag, const char **color, char label[static 32]) {
  switch (diag->level) {
  case DIAG_ERROR:
    *color = COLOR_ERROR;
    snprintf(label, 32, "error[%s]", diag_code_text(diag->code));
    return label;
  case DIAG_WARNING:
    *color = COLOR_WARNING;
    snprintf(label, 32, "warning[%s]", diag_code_text(diag->code));
    return label;
  case DIAG_REMARK:
    break;
  }
  *color = COLOR_REMARK;
  return "remark";
}

static void print_diag(const Printer *p, const Diag *diag) {
  char buffer[32];
  const char *color, *label = label_of(diag, &color, buffer);
  print_message(p, diag->span, label, color, diag->text);
  print_notes(p, &diag->notes, diag->notes.len);
  for (int i = 0; i < diag->hints.len; i++) {
    paint(p, COLOR_HINT);
    fputs("  hint:", p->out);
    paint(p, COLOR_END);
    fputs(" ", p->out);
    excerpt_print_text(p->out, diag->hints.data[i].text);
    fputc('\n', p->out);
  }
  print_frames(p, &diag->frames);
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

void diags_print(const Diags *ds, FILE *out, const DiagStyle *style) {
  Printer p = {ds, out, style->color};
  Diag **list = sorted(ds);
  for (int i = 0; i < ds->list.len; i++) {
    if (list[i]->level == DIAG_REMARK && !style->remarks) continue;
    if (style->json)
      diag_json(ds, out, list[i]);
    else
      print_diag(&p, list[i]);
  }
  if (!ds->dropped_errors) return;
  const char *text = text_printf(ds->arena, "stopped after %d errors", ERROR_LIMIT);
  if (style->json)
    diag_json_plain(out, "note", text);
  else
    fprintf(out, "note: %s\n", text);
}

void diag_print_plain(FILE *out, const DiagStyle *style, const char *program, const char *text) {
  if (style->json)
    diag_json_plain(out, "error", text);
  else
    fprintf(out, "%s: %s\n", program, text);
}

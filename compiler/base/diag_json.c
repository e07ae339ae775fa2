// Diagnostics for programs: one JSON object (RFC 8259) a diagnostic a line, always with the same keys. Text is
// UTF-8 already; a broken byte of a source that is none becomes U+FFFD.
#include "base/diag_excerpt.h"
#include "base/diag_internal.h"

static void put_string(FILE *out, const char *text) {
  fputc('"', out);
  for (int bytes; *text; text += bytes) {
    int c = excerpt_decode(text, &bytes);
    if (c == '"' || c == '\\')
      fprintf(out, "\\%c", c);
    else if (c == '\n')
      fputs("\\n", out);
    else if (c < 0)
      fputs("\\ufffd", out);
    else if (c < 0x20)
      fprintf(out, "\\u%04x", (unsigned)c);
    else
      fwrite(text, 1, (size_t)bytes, out);
  }
  fputc('"', out);
}

static void put_place(FILE *out, const Source *source, uint32_t offset) {
  Place place = source_place(source, offset);
  fprintf(out, "\"line\":%d,\"col\":%d", place.line, place.column);
}

// "file", "line", "col" and "end" (the place behind the last character), null where there is none.
static void put_span(const Diags *ds, FILE *out, Span span) {
  fputs("\"file\":", out);
  if (ds->source)
    put_string(out, ds->source->path);
  else
    fputs("null", out);
  fputs(",", out);
  if (!diag_has_place(ds, span)) {
    fputs("\"line\":null,\"col\":null,\"end\":null", out);
    return;
  }
  put_place(out, ds->source, span.begin);
  fputs(",\"end\":{", out);
  put_place(out, ds->source, span.end);
  fputs("}", out);
}

static void put_notes(const Diags *ds, FILE *out, const ExtraVec *notes, bool first) {
  for (int i = 0; i < notes->len; i++) {
    fputs(first && i == 0 ? "{\"message\":" : ",{\"message\":", out);
    put_string(out, notes->data[i].text);
    fputs(",", out);
    put_span(ds, out, notes->data[i].span);
    fputs("}", out);
  }
}

static const char *severity_of(DiagLevel level) {
  switch (level) {
  case DIAG_ERROR:
    return "error";
  case DIAG_WARNING:
    return "warning";
  case DIAG_REMARK:
    break;
  }
  return "remark";
}

void diag_json(const Diags *ds, FILE *out, const Diag *diag) {
  if (diag->level == DIAG_REMARK)
    fputs("{\"code\":null,", out);
  else
    fprintf(out, "{\"code\":\"%s\",", diag_code_text(diag->code));
  fprintf(out, "\"severity\":\"%s\",", severity_of(diag->level));
  put_span(ds, out, diag->span);
  fputs(",\"message\":", out);
  put_string(out, diag->text);
  fputs(",\"notes\":[", out);
  put_notes(ds, out, &diag->notes, true);
  put_notes(ds, out, &diag->frames, diag->notes.len == 0);
  fputs("],\"hints\":[", out);
  for (int i = 0; i < diag->hints.len; i++) {
    if (i) fputs(",", out);
    put_string(out, diag->hints.data[i].text);
  }
  fputs("]}\n", out);
}

void diag_json_plain(FILE *out, const char *severity, const char *text) {
  fprintf(
      out,
      "{\"code\":null,\"severity\":\"%s\",\"file\":null,\"line\":null,\"col\":null,\"end\":null,\"message\":",
      severity);
  put_string(out, text);
  fputs(",\"notes\":[],\"hints\":[]}\n", out);
}

// Diagnostics: a code, a span, a sentence with the numbers in it; notes with their own spans; a hint to type.
// Functions that can fail return bool or a pointer: false or NULL means "already reported here".
#ifndef TILEC_BASE_DIAG_H
#define TILEC_BASE_DIAG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/source.h"
#include "base/text.h"

typedef enum {
#define DIAG(code, name, summary) DIAG_##name,
#include "base/diag.def"
#undef DIAG
  DIAG_COUNT
} DiagCode;

typedef enum { DIAG_ERROR, DIAG_WARNING, DIAG_REMARK } DiagLevel;

typedef struct Diags Diags;

// `source` may be NULL until diags_set_source: then messages carry the path alone or nothing.
Diags *diags_new(Arena *arena, const Source *source);
void diags_set_source(Diags *ds, const Source *source);

// Reports; later notes and hints attach to it. Same code at the same span is reported once.
__attribute__((format(printf, 4, 5))) void diag_error(Diags *ds, DiagCode code, Span span, const char *format,
                                                      ...);
__attribute__((format(printf, 4, 5))) void diag_warning(Diags *ds, DiagCode code, Span span,
                                                        const char *format, ...);
__attribute__((format(printf, 3, 4))) void diag_remark(Diags *ds, Span span, const char *format, ...);
// Attaches to the diagnostic reported last.
__attribute__((format(printf, 3, 4))) void diag_note(Diags *ds, Span span, const char *format, ...);
__attribute__((format(printf, 2, 3))) void diag_hint(Diags *ds, const char *format, ...);

// A frame that every diagnostic reported until the matching pop carries as a trailing note ("in macro 'f'
// called here").
__attribute__((format(printf, 3, 4))) void diag_push_frame(Diags *ds, Span span, const char *format, ...);
void diag_pop_frame(Diags *ds);

int diags_errors(const Diags *ds);
int diags_repeated(const Diags *ds);   // errors dropped since their place had the same one
bool diags_at_limit(const Diags *ds);  // 50 errors: stop looking for more

const char *diag_code_text(DiagCode code);             // "E0304"
const char *diag_code_summary(DiagCode code);          // the row's sentence
bool diag_code_find(const char *text, DiagCode *out);  // by its text, in upper or lower case

// How diagnostics are printed. Remarks print only when asked for.
typedef struct {
  bool json;   // an object a line for programs, instead of text with the source's lines
  bool color;  // escape sequences of a terminal, in text
  bool remarks;
} DiagStyle;

// Prints everything sorted by place: `path:line:col: error[E0304]: …`, the source line with carets, notes,
// hints; or as JSON, see docs/diagnostics.md.
void diags_print(const Diags *ds, FILE *out, const DiagStyle *style);
// An error that is not about the source ("tilec: cannot write …"), in the same style.
void diag_print_plain(FILE *out, const DiagStyle *style, const char *program, const char *text);

// A broken invariant of ours: prints where and aborts. Never reached by user input.
#define BUG(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)
__attribute__((noreturn, format(printf, 3, 4))) void bug_at(const char *file, int line, const char *format,
                                                            ...);

#endif

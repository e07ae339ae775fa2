// What the commands share about messages: their form (--error-format), their colours (--color), and the
// explanation of a code (--explain), which is its paragraph of docs/diagnostics.md.
#ifndef TILEC_DRIVER_MESSAGES_H
#define TILEC_DRIVER_MESSAGES_H

#include "base/diag.h"

typedef struct {
  const char *format, *color;  // as given; NULL: text, auto
} MessageOptions;

// False: *error is a sentence.
bool messages_check(Arena *arena, const MessageOptions *options, const char **error);
// `auto` colours a terminal, unless NO_COLOR is set or TERM is dumb.
DiagStyle messages_style(const MessageOptions *options, FILE *out, bool remarks);

// The title and paragraphs of a code, by its text ("E0205", "e0205") or its name ("staged_assignment"). NULL: *error
// is a sentence.
const char *messages_explain(Arena *arena, const char *code, const char **error);

#endif

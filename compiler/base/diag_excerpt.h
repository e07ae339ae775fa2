// How a message shows text that may hold anything: source lines with carets under them, and names taken from
// a program.
#ifndef TILEC_BASE_DIAG_EXCERPT_H
#define TILEC_BASE_DIAG_EXCERPT_H

#include <stdio.h>

#include "base/source.h"

// Prints the first line of the span with its number, and carets below it; "..." follows a span that goes on.
void excerpt_print(FILE *out, const Source *source, Span span);

// Prints text with control characters escaped; newlines stay, for messages that are tables.
void excerpt_print_text(FILE *out, const char *text);

#endif

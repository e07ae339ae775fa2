// How a message shows text that may hold anything: source lines with carets under them, and names taken from
// a program.
#ifndef TILEC_BASE_DIAG_EXCERPT_H
#define TILEC_BASE_DIAG_EXCERPT_H

#include <stdio.h>

#include "base/source.h"

// Prints the first line of the span with its number, and carets below it; "..." follows a span that goes on.
// `color` is the escape sequence before the carets, or NULL.
void excerpt_print(FILE *out, const Source *source, Span span, const char *color);
// The character at the start of a text that is not empty, and how many bytes it takes; negative (and 1) where the text is not UTF-8.
int excerpt_decode(const char *text, int *bytes);

// Prints text with control characters escaped; newlines stay, for messages that are tables.
void excerpt_print_text(FILE *out, const char *text);

#endif

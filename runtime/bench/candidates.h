// The settings that a tuning tries: every combination of the values that a specification gives (docs/tuning.md).
#ifndef TILE_BENCH_CANDIDATES_H
#define TILE_BENCH_CANDIDATES_H

#include "bench/problem.h"

enum { CANDIDATES_MOST = 1024, SETTINGS_MOST = 16 };

// One combination: "NAME=VALUE" and options, sorted by name, options last.
typedef struct {
  char *settings[SETTINGS_MOST];
  int count;
  char *text;  // the settings with a blank between them: what a tuning file holds
} Candidate;

typedef struct {
  Candidate *all;
  int count;
  Sizes *sizes;  // NULL: the specification names none
  int nsizes;
} Candidates;

// Reads the text; `name` stands for it in messages. TILE_INVALID: "name:line:column: what is wrong".
TileError *candidates_parse(const char *name, const char *text, Candidates *out);
// A file's text, or `spec` itself when there is no such file and it has the form of one.
TileError *candidates_read(const char *spec, Candidates *out);
void candidates_free(Candidates *candidates);

#endif

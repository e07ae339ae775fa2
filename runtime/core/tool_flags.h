// A tool's command line as a table, a row a flag: `--flag value` and `--flag=value` are the same, as are `-D N=1` and
// `-DN=1`. A row's kind says what its value is and what the slot in the tool's options holds.
#ifndef TILE_CORE_TOOL_FLAGS_H
#define TILE_CORE_TOOL_FLAGS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum {
  FLAG_TEXT,     // const char *
  FLAG_COUNT,    // int, from 1
  FLAG_NUMBER,   // double, from 0
  FLAG_SECONDS,  // double, from 0 to an hour
  FLAG_SEED,     // uint64_t
  FLAG_PAIRS,    // ToolPairs: NAME=VALUE, each name once
  FLAG_SPECIAL,  // what `set` makes of it
  FLAG_LEVEL,    // const char *: the flag itself, -O0 to -O3
  FLAG_ON,       // bool, without a value
  FLAG_OFF,      // the same, the other way
  FLAG_LAST,     // FLAG_ON, and the rest of the command line is not read
} FlagKind;

typedef struct {
  char *name;         // a copy
  const char *value;  // in `text`
  const char *text;   // NAME=VALUE, in argv
} ToolPair;

typedef struct {
  ToolPair *data;
  int count;
} ToolPairs;

void tool_pairs_free(ToolPairs *pairs);

typedef struct {
  const char *name;
  FlagKind kind;
  size_t at;                                                           // of the slot
  bool (*set)(const char *program, const char *value, void *options);  // FLAG_SPECIAL
} FlagRow;

typedef struct {
  const char *program;
  const FlagRow *rows;
  int nrows;
  bool (*file)(const char *program, const char *file, void *options);  // an argument that is no flag
} Flags;

// False: printed what is wrong. Strings point into argv.
bool flags_parse(const Flags *flags, int argc, char **argv, void *options);

#endif

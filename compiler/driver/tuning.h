// Files of settings that were measured to be best (docs/tuning.md), and which entry a compilation takes.
#ifndef TILEC_DRIVER_TUNING_H
#define TILEC_DRIVER_TUNING_H

#include "base/diag.h"
#include "base/vec.h"

typedef struct {
  const char *name;
  int64_t value;  // 1 to 2^31 - 1
  Span span;
} TuningSize;

// NAME=VALUE as -D takes it, or an option of tilec's (then `value` is NULL).
typedef struct {
  const char *name, *value;
  Span span;
} TuningSetting;

typedef VEC(TuningSize) TuningSizes;

typedef struct {
  Span span;  // the line
  const char *kernel, *arch;
  TuningSizes sizes;
  VEC(TuningSetting) settings;
} TuningEntry;

typedef struct {
  const Source *source;
  VEC(TuningEntry *) entries;  // in the file's order
} TuningFile;

// NULL when something is wrong, and reported in ds, whose source is the file.
TuningFile *tuning_parse(Arena *arena, const Source *source, Diags *ds);

bool tuning_has(const TuningFile *file, const char *kernel, const char *arch);
// The entry of these sizes, or else the nearest: sum over the sizes that both name of |log2(size / entry's size)|, the
// earlier one where two are as near. NULL: no entry of this kernel and target names one of the sizes. *distance is 0 for the
// entry itself.
const TuningEntry *tuning_choose(const TuningFile *file, const char *kernel, const char *arch,
                                 const TuningSizes *sizes, double *distance);
// "M=4096 N=4096 K=4096", "block_M=128 -O3".
const char *tuning_sizes_text(Arena *arena, const TuningSizes *sizes);
const char *tuning_settings_text(Arena *arena, const TuningEntry *entry);

// One NAME=NUMBER of a size; false when it is none.
bool tuning_size_parse(Arena *arena, const char *text, size_t len, TuningSize *out);

#endif

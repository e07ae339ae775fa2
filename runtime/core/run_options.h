// tile-run's command line.
#ifndef TILE_CORE_RUN_OPTIONS_H
#define TILE_CORE_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/tool_flags.h"

typedef struct {
  const char *file;
  const char *kernel, *arch, *optimise;  // optimise: "-O2"; NULL: not given
  const char *error_format, *color;      // for tilec; NULL: not given
  const char *tuning, *sizes;            // for tilec: --tuning and --for
  const char *device, *order, *checks;   // NULL: not given
  int sms;                               // 0: not given
  ToolPairs defines, inputs, outputs, expects, pitches;
  uint64_t seed;
  double rtol, atol;  // negative: not given
  int bench;          // 0: no timing
  bool convert, help, version;
} RunOptions;

// False: printed what is wrong. The pairs are freed with run_options_free; strings point into argv.
bool run_options_parse(int argc, char **argv, RunOptions *out);
void run_options_free(RunOptions *options);
void run_options_help(void);

// Whether it can only be the emulator: by --device, or by an option of the emulator's.
bool run_options_emulated(const RunOptions *options);

#endif

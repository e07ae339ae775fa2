// What tile-run shows while the emulator is at work for long.
#ifndef TILE_CORE_RUN_PROGRESS_H
#define TILE_CORE_RUN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
  double start, last;  // seconds; 0 before the launch
  uint64_t ctas;       // of the launch
  bool terminal, shown;
} RunProgress;

// Before a launch of so many CTAs.
void run_progress_begin(RunProgress *progress, uint64_t ctas);
// For TileDeviceOptions: `user` is a RunProgress. A line that is overwritten twice a second on a terminal; elsewhere a line
// every ten seconds.
void run_progress_show(void *user, uint64_t ctas_done, uint64_t instructions);
// For TileDeviceOptions: what a kernel printed goes to standard output, after the line of progress is gone.
void run_progress_print(void *user, const char *text);
void run_progress_end(RunProgress *progress);

#endif

// Progress goes to standard error, so that results can be read from standard output.
#include "core/run_progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

void run_progress_begin(RunProgress *progress, uint64_t ctas) {
  double time = now();
  *progress = (RunProgress){time, time, ctas, isatty(STDERR_FILENO) == 1, false};
}

void run_progress_show(void *user, uint64_t ctas_done, uint64_t instructions) {
  RunProgress *p = user;
  double time = now();
  if (time - p->last < (p->terminal ? 0.5 : 10)) return;
  p->last = time;
  p->shown = true;
  fprintf(stderr, "%s%" PRIu64 " of %" PRIu64 " CTAs done, %.1f million instructions, %.0f s%s",
          p->terminal ? "\r\033[K" : "", ctas_done, p->ctas, (double)instructions * 1e-6, time - p->start,
          p->terminal ? "" : "\n");
}

void run_progress_end(RunProgress *progress) {
  if (progress->shown && progress->terminal) fputs("\r\033[K", stderr);
  progress->shown = false;
}

void run_progress_print(void *user, const char *text) {
  run_progress_end(user);
  fputs(text, stdout);
}

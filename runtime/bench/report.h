// What was measured, as text for people, as JSON for programs, and as a plot.
#ifndef TILE_BENCH_REPORT_H
#define TILE_BENCH_REPORT_H

#include <stdio.h>

#include "bench/trial.h"

// What holds for all rows.
typedef struct {
  const char *program;       // version of tile-bench
  const char *gpu, *driver;  // "" when not known
  int sms, clock_mhz;
  double power_limit;     // W; 0: not known
  const char *peer_path;  // "": no peer
  size_t peer_version;
  const char *product;           // problem_describe
  const char *operand, *result;  // element types
  uint64_t seed;
  bool measured_clocks;
} ReportHead;

void report_head(FILE *file, const ReportHead *head);
// One size; the first call prints the names of the columns.
void report_row(FILE *file, const Row *row, bool first);
void report_json(FILE *file, const ReportHead *head, const Row *rows, int count);
// TFLOP/s of each arm over the sizes, in their order, as an SVG that is readable on light and dark pages.
void report_svg(FILE *file, const ReportHead *head, const Row *rows, int count);
// A string in quotes as JSON and SVG attributes want it.
void report_quoted(FILE *file, const char *text);

#endif

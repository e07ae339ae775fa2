// A file on the command line as a subject: a cubin is opened, a source compiled, once or for each size.
#ifndef TILE_BENCH_SOURCE_H
#define TILE_BENCH_SOURCE_H

#include "bench/compile.h"
#include "bench/subject.h"

typedef struct {
  const char *file;
  Subject subject;  // with sizes that are given at launch, if the file leaves them open
  Subject fixed;    // compiled for one size, where that was asked for
} Source;

// A mistake in the source is TILE_FINDING, with what tilec said as the message.
TileError *source_open(const BenchOptions *options, const Gpu *gpu, const char *file, Source *out);
// The subject for these sizes; it lives until the next call.
TileError *source_at(const BenchOptions *options, const Gpu *gpu, Source *source, Sizes sizes, Subject **out);
void source_close(Source *source);

bool source_is_text(const char *file);
// The command line of tilec: what the options say for every compilation of `file` into `output`. The GPU may be NULL
// where --arch is given or tilec's own choice is right.
TileError *source_command(const BenchOptions *options, const Gpu *gpu, const char *file, const char *output,
                          ArgList *out);

#endif

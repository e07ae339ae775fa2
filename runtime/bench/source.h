// A file on the command line as a subject: a cubin is opened, a source compiled, once or for each size, or stands for a
// folder of candidates of which the best is known.
#ifndef TILE_BENCH_SOURCE_H
#define TILE_BENCH_SOURCE_H

#include "bench/compile.h"
#include "bench/cubins.h"
#include "bench/subject.h"
#include "bench/tuning_file.h"
#include "core/tool_args.h"

typedef struct {
  const char *file;
  Subject subject;  // with sizes that are given at launch, if the file leaves them open
  Subject fixed;    // compiled or chosen for one size, where that was asked for
  Cubins cubins;    // with --cubins and --tuning: what there is to choose from, and what was best
  TuningLines best;
} Source;

// A mistake in the source is TILE_FINDING, with what tilec said as the message.
TileError *source_open(const BenchOptions *options, const Gpu *gpu, const char *file, Source *out);
// The subject for these sizes; it lives until the next call.
TileError *source_at(const BenchOptions *options, const Gpu *gpu, Source *source, Sizes sizes, Subject **out);
void source_close(Source *source);

// The command line of tilec: what the options say for every compilation of `file` into `output`. The GPU may be NULL
// where --arch is given or tilec's own choice is right.
TileError *source_command(const BenchOptions *options, const Gpu *gpu, const char *file, const char *output,
                          ArgList *out);

#endif

// Compiled files lie in a folder of their own until they are opened.
#include "bench/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/run_tilec.h"

bool source_is_text(const char *file) {
  const char *dot = strrchr(file, '.');
  return dot && (strcmp(dot, ".tile") == 0 || strcmp(dot, ".py") == 0);
}

TileError *source_command(const BenchOptions *options, const Gpu *gpu, const char *file, const char *output,
                          ArgList *out) {
  char compiler[PATH_MAX];
  *out = (ArgList){0};
  TileError *error = run_find_tilec(compiler);
  if (error) return error;
  args_add(out, "%s", compiler);
  args_add(out, "%s", file);
  args_add(out, "-o");
  args_add(out, "%s", output);
  if (options->kernel) args_add(out, "--kernel=%s", options->kernel);
  if (options->arch)
    args_add(out, "--arch=%s", options->arch);
  else if (gpu)
    args_add(out, "--arch=sm_%d%da", gpu->major, gpu->minor);
  if (options->optimise) args_add(out, "%s", options->optimise);
  for (int i = 0; i < options->defines.count; i++) args_add(out, "-D%s", options->defines.data[i]);
  return out->failed ? error_no_memory() : NULL;
}

static void add_sizes(const BenchOptions *options, const Problem *problem, Sizes sizes, ArgList *args) {
  const char *names[3] = {problem->m, problem->n, problem->k};
  const int64_t values[3] = {sizes.m, sizes.n, sizes.k};
  for (int i = 0; i < 3; i++)
    if (options->fix_sizes) args_add(args, "-D%s=%lld", names[i], (long long)values[i]);
}

static TileError *complaint(const char *file, const CompileJob *job) {
  if (job->status == 0) return NULL;
  return error_new(job->status == 1 ? TILE_FINDING : TILE_UNAVAILABLE, "%s does not compile\n%s", file,
                   job->messages ? job->messages : "");
}

// Compiles into the folder and opens what came out; `sizes` is NULL for all sizes.
static TileError *compile_in(const BenchOptions *options, const Gpu *gpu, const char *folder,
                             const Source *source, const Sizes *sizes, Subject *out) {
  char path[PATH_MAX];
  ArgList args;
  snprintf(path, sizeof path, "%s/kernel.cubin", folder);
  TileError *error = source_command(options, gpu, source->file, path, &args);
  if (!error && sizes) add_sizes(options, &source->subject.problem, *sizes, &args);
  CompileJob job = {.argv = args.data};
  if (!error && args.failed) error = error_no_memory();
  if (!error) error = compile_run(&job, 1, 1);
  if (!error) error = complaint(source->file, &job);
  // tilec compiled the kernel that was asked for, perhaps under an inner function's name.
  if (!error) error = subject_open(path, source->file, NULL, options->layout, out);
  unlink(path);
  free(job.messages);
  args_free(&args);
  return error;
}

static TileError *compile(const BenchOptions *options, const Gpu *gpu, const Source *source,
                          const Sizes *sizes, Subject *out) {
  const char *temporary = getenv("TMPDIR");
  char folder[PATH_MAX - 32];
  snprintf(folder, sizeof folder, "%s/tile-bench-XXXXXX", temporary && *temporary ? temporary : "/tmp");
  if (!mkdtemp(folder))
    return error_new(TILE_UNAVAILABLE, "no temporary folder %s: %s", folder, strerror(errno));
  TileError *error = compile_in(options, gpu, folder, source, sizes, out);
  rmdir(folder);
  return error;
}

TileError *source_open(const BenchOptions *options, const Gpu *gpu, const char *file, Source *out) {
  *out = (Source){.file = file};
  if (source_is_text(file)) return compile(options, gpu, out, NULL, &out->subject);
  const char *dot = strrchr(file, '.');
  if (!dot || strcmp(dot, ".cubin") != 0)
    return error_new(TILE_INVALID, "%s: not a .tile, .py or .cubin file", file);
  return subject_open(file, file, options->kernel, options->layout, &out->subject);
}

TileError *source_at(const BenchOptions *options, const Gpu *gpu, Source *source, Sizes sizes,
                     Subject **out) {
  bool anew = options->fix_sizes && source_is_text(source->file);
  *out = anew ? &source->fixed : &source->subject;
  if (!anew) return NULL;
  subject_close(&source->fixed);
  return compile(options, gpu, source, &sizes, &source->fixed);
}

void source_close(Source *source) {
  subject_close(&source->subject);
  subject_close(&source->fixed);
}

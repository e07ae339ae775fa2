// Compiled files lie in a folder of their own until they are opened.
#include "bench/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/tool.h"

TileError *source_command(const BenchOptions *options, const Gpu *gpu, const char *file, const char *output,
                          ArgList *out) {
  char compiler[PATH_MAX];
  *out = (ArgList){0};
  TileError *error = tool_find_tilec(compiler);
  if (error) return error;
  args_add(out, "%s", compiler);
  args_add(out, "%s", file);
  args_add(out, "-o");
  args_add(out, "%s", output);
  args_add_flag(out, "--kernel", options->kernel);
  args_add_flag(out, "--arch", options->arch);
  if (!options->arch && gpu) args_add(out, "--arch=sm_%d%da", gpu->major, gpu->minor);
  if (options->optimise) args_add(out, "%s", options->optimise);
  for (int i = 0; i < options->defines.count; i++) args_add(out, "-D%s", options->defines.data[i].text);
  return out->failed ? error_no_memory() : NULL;
}

static void add_sizes(const BenchOptions *options, const Problem *problem, Sizes sizes, ArgList *args) {
  const char *names[3] = {problem->m, problem->n, problem->k};
  const int64_t values[3] = {sizes.m, sizes.n, sizes.k};
  for (int i = 0; i < 3; i++)
    if (options->fix_sizes) args_add(args, "-D%s=%lld", names[i], (long long)values[i]);
  if (!options->tuning) return;
  args_add_flag(args, "--tuning", options->tuning);
  if (!options->fix_sizes)
    args_add(args, "--for=%s=%lld,%s=%lld,%s=%lld", names[0], (long long)values[0], names[1],
             (long long)values[1], names[2], (long long)values[2]);
}

static TileError *complaint(const char *file, const CompileJob *job) {
  if (job->status == 0) return NULL;
  return error_new(job->status == 1 ? TILE_FINDING : TILE_UNAVAILABLE, "%s does not compile\n%s", file,
                   job->messages ? job->messages : "");
}

// Compiles into the folder and opens what came out; `sizes` is NULL for all sizes.
static TileError *compile_in(const BenchOptions *options, const Gpu *gpu, const char *folder,
                             const Source *source, const Sizes *sizes, Subject *out) {
  char path[PATH_MAX + sizeof "/kernel.cubin"];
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
  char folder[PATH_MAX];
  TileError *error = tool_folder("tile-bench", folder);
  if (error) return error;
  error = compile_in(options, gpu, folder, source, sizes, out);
  rmdir(folder);
  return error;
}

// ---- Candidates that were compiled before

static TileError *open_numbered(const BenchOptions *options, const char *file, int number, Subject *out) {
  char path[PATH_MAX];
  cubins_path(options->cubins, number, path, sizeof path);
  TileError *error = subject_open(path, path, NULL, options->layout, out);
  if (!error) subject_name(file, out);
  return error;
}

static TileError *open_candidates(const BenchOptions *options, Source *source) {
  TileError *error = cubins_read(options->cubins, &source->cubins);
  if (!error) error = tuning_lines_read(options->tuning, false, &source->best);
  if (!error && source->cubins.count == 0)
    error = error_new(TILE_INVALID, "%s holds no cubins", options->cubins);
  return error ? error : open_numbered(options, source->file, source->cubins.numbers[0], &source->subject);
}

static TileError *choose_candidate(const BenchOptions *options, Source *source, Sizes sizes) {
  char key[400];
  const TileKernel *kernel = source->subject.kernel;
  tuning_key(options->kernel ? options->kernel : tile_kernel_name(kernel), tile_kernel_arch(kernel),
             &source->subject.problem, sizes, key, sizeof key);
  char *settings = tuning_lines_find(&source->best, key);
  if (!settings) return error_new(TILE_INVALID, "%s has no entry for %s", options->tuning, key);
  int number = cubins_find(&source->cubins, settings);
  TileError *error = number < 0
                         ? error_new(TILE_INVALID, "%s has no cubin with %s", options->cubins, settings)
                         : open_numbered(options, source->file, number, &source->fixed);
  free(settings);
  return error;
}

TileError *source_open(const BenchOptions *options, const Gpu *gpu, const char *file, Source *out) {
  *out = (Source){.file = file};
  if (tool_is_source(file) && options->cubins) return open_candidates(options, out);
  if (tool_is_source(file)) return compile(options, gpu, out, NULL, &out->subject);
  const char *dot = strrchr(file, '.');
  if (!dot || strcmp(dot, ".cubin") != 0)
    return error_new(TILE_INVALID, "%s: not a .tile, .py or .cubin file", file);
  return subject_open(file, file, options->kernel, options->layout, &out->subject);
}

TileError *source_at(const BenchOptions *options, const Gpu *gpu, Source *source, Sizes sizes,
                     Subject **out) {
  bool anew = (options->fix_sizes || options->tuning) && tool_is_source(source->file);
  *out = anew ? &source->fixed : &source->subject;
  if (!anew) return NULL;
  subject_close(&source->fixed);
  if (options->cubins) return choose_candidate(options, source, sizes);
  return compile(options, gpu, source, &sizes, &source->fixed);
}

void source_close(Source *source) {
  subject_close(&source->subject);
  subject_close(&source->fixed);
  cubins_free(&source->cubins);
  tuning_lines_free(&source->best);
}

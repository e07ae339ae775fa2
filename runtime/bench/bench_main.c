// tile-bench: opens or compiles kernels, finds the product that they compute, and measures size after size.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/report.h"
#include "bench/source.h"
#include "bench/tune.h"
#include "core/tool.h"

typedef struct {
  BenchOptions options;
  Gpu gpu;
  Monitor *monitor;
  CublasLt *lt;
  TileDevice *device;
  Source sources[BENCH_MOST_FILES];
  Row *rows;
  int nrows;
} Program;

static TileError *open_all(Program *program) {
  const BenchOptions *options = &program->options;
  TileError *error = gpu_open(&program->gpu);
  if (error) return error;
  TileDeviceOptions device = {.backend = "cuda"};
  error = tile_device_open(&device, &program->device);
  program->monitor = calloc(1, sizeof *program->monitor);
  program->lt = options->peer ? calloc(1, sizeof *program->lt) : NULL;
  if (!error && (!program->monitor || (options->peer && !program->lt))) error = error_no_memory();
  if (!error) monitor_open(program->monitor, program->gpu.bus);
  if (!error && options->peer) error = cublaslt_open(options->cublaslt, &program->gpu, program->lt);
  return error;
}

static TileError *open_sources(Program *program) {
  const BenchOptions *options = &program->options;
  TileError *error = NULL;
  for (int i = 0; i < options->nfiles && !error; i++) {
    error = source_open(options, &program->gpu, options->files[i], &program->sources[i]);
    if (!error && !subject_alike(&program->sources[0].subject, &program->sources[i].subject))
      error = error_new(TILE_INVALID, "%s and %s compute different products; measure them one by one",
                        options->files[0], options->files[i]);
  }
  return error;
}

// Without --sizes: those the kernel was compiled for, else four cubes.
static TileError *settle_sizes(Program *program) {
  BenchOptions *options = &program->options;
  Sizes fixed;
  const char *wrong;
  if (options->sizes) return NULL;
  if (!problem_fixed_sizes(&program->sources[0].subject.problem, &fixed))
    return sizes_parse_list("1024,2048,4096,8192", &options->sizes, &options->nsizes, &wrong)
               ? NULL
               : error_no_memory();
  options->sizes = calloc(1, sizeof fixed);
  if (!options->sizes) return error_no_memory();
  options->sizes[0] = fixed;
  options->nsizes = 1;
  return NULL;
}

// The texts that a head points to.
typedef struct {
  char product[200], operands[PROBLEM_OPERANDS];
} HeadText;

static ReportHead head_of(const Program *program, const Problem *problem, HeadText *text) {
  problem_describe(problem, text->product, sizeof text->product);
  return (ReportHead){.program = TILE_VERSION,
                      .gpu = tile_device_name(program->device),
                      .driver = program->monitor->driver,
                      .sms = program->gpu.sms,
                      .clock_mhz = program->gpu.clock_mhz,
                      .power_limit = program->monitor->power_limit,
                      .peer_path = program->lt ? program->lt->path : "",
                      .peer_version = program->lt ? program->lt->version : 0,
                      .product = text->product,
                      .operand = problem_operands(problem, text->operands),
                      .result = tile_dtype_name(problem->c->dtype),
                      .seed = program->options.seed,
                      .measured_clocks = program->monitor->device != NULL};
}

static TileError *measure_size(Program *program, Sizes sizes, Row *row) {
  const BenchOptions *options = &program->options;
  Subject *subjects[BENCH_MOST_FILES];
  Bench bench = {options, &program->gpu, program->monitor, program->device, program->lt};
  TileError *error = NULL;
  for (int i = 0; i < options->nfiles && !error; i++)
    error = source_at(options, &program->gpu, &program->sources[i], sizes, &subjects[i]);
  return error ? error : trial_run(&bench, subjects, options->nfiles, sizes, row);
}

typedef void (*Writer)(FILE *file, const ReportHead *head, const Row *rows, int count);

static TileError *write_file(const char *path, Writer writer, const ReportHead *head,
                             const Program *program) {
  FILE *file = path ? fopen(path, "w") : NULL;
  if (!path) return NULL;
  if (!file) return error_new(TILE_INVALID, "%s: %s", path, strerror(errno));
  writer(file, head, program->rows, program->nrows);
  bool failed = ferror(file) != 0;
  if (fclose(file) != 0 || failed) return error_new(TILE_INVALID, "%s: %s", path, strerror(errno));
  return NULL;
}

// A size that fails ends the run, but what was measured before it is written.
static TileError *measure_all(Program *program) {
  const BenchOptions *options = &program->options;
  HeadText text;
  ReportHead head = head_of(program, &program->sources[0].subject.problem, &text);
  TileError *error = NULL;
  program->rows = calloc((size_t)options->nsizes, sizeof *program->rows);
  if (!program->rows) return error_no_memory();
  report_head(stdout, &head);
  for (int i = 0; i < options->nsizes && !error; i++) {
    error = measure_size(program, options->sizes[i], &program->rows[i]);
    if (error) break;
    report_row(stdout, &program->rows[program->nrows++], i == 0);
    fflush(stdout);
  }
  if (program->nrows) puts("(*) of the tensor cores at their highest clock / at the clock that was measured");
  TileError *json = write_file(options->json, report_json, &head, program);
  TileError *svg = write_file(options->svg, report_svg, &head, program);
  if (error || json) tile_error_free(svg);
  if (error) tile_error_free(json);
  return error ? error : json ? json : svg;
}

static void close_all(Program *program) {
  for (int i = 0; i < BENCH_MOST_FILES; i++) source_close(&program->sources[i]);
  if (program->lt) cublaslt_close(program->lt);
  if (program->monitor) monitor_close(program->monitor);
  free(program->lt);
  free(program->monitor);
  free(program->rows);
  tile_device_close(program->device);
  gpu_close(&program->gpu);
  bench_options_free(&program->options);
}

static void print_head(const Program *program, const Problem *problem) {
  HeadText text;
  ReportHead head = head_of(program, problem, &text);
  report_head(stdout, &head);
}

// Compiling needs no GPU.
static TileError *tune(Program *program) {
  const BenchOptions *options = &program->options;
  Tuner tuner = {0};
  TileError *error = options->compile_only ? NULL : open_all(program);
  if (!error) error = tune_open(options, options->compile_only ? NULL : &program->gpu, &tuner);
  Bench bench = {options, &program->gpu, program->monitor, program->device, program->lt};
  if (!error && !options->compile_only) {
    print_head(program, &tune_subject(&tuner)->problem);
    error = tune_run(&tuner, &bench);
  }
  tune_close(&tuner);
  return error;
}

static int run(Program *program) {
  if (program->options.tune) return tool_report("tile-bench", tune(program));
  TileError *error = open_all(program);
  if (!error) error = open_sources(program);
  if (!error) error = settle_sizes(program);
  if (!error) error = measure_all(program);
  return tool_report("tile-bench", error);
}

int main(int argc, char **argv) {
  Program program = {0};
  int status = TOOL_USAGE;
  if (bench_options_parse(argc, argv, &program.options)) {
    status = TOOL_OK;
    if (program.options.help)
      bench_options_help();
    else if (program.options.version)
      puts("tile-bench " TILE_VERSION);
    else
      status = run(&program);
  }
  close_all(&program);
  if (fflush(stdout) != 0 && status == TOOL_OK) status = TOOL_USAGE;
  return status;
}

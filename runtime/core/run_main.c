// tile-run: opens or compiles a kernel, binds arrays by parameter name, launches, compares, times. What is
// not given is random and said so.
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/run_array.h"
#include "core/run_compare.h"
#include "core/run_compile.h"
#include "core/run_options.h"
#include "core/run_progress.h"
#include "core/tool.h"
#include "npy/npy.h"
#include "tile.h"

enum { DEFAULT_SIZE = 256 };

typedef struct {
  const RunOptions *options;
  TileModule *module;
  const TileKernel *kernel;
  TileDevice *device;
  TileCall *call;
  RunArray *arrays;  // one for each tensor parameter
  int narrays;
  bool from_source;
  RunProgress progress;
} Run;

// ---- Errors

// Prints and frees the error; its exit status.
static int report(TileError *error) {
  bool emulated = error && strstr(tile_error_message(error), "backend \"emu\"");
  int status = tool_report("tile-run", error);
  if (status == TOOL_USAGE && emulated) fputs("tile-run: --device emu chooses it\n", stderr);
  return status;
}

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), end_length = strlen(end);
  return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

// ---- Opening

// Who names no architecture means the GPU that is here, which then stays open. NULL: there is none, or (for whom any
// device will do) none that tilec compiles for.
static const char *find_gpu(Run *run) {
  const RunOptions *options = run->options;
  bool any = !options->device || strcmp(options->device, "auto") == 0;
  if (options->arch || run_options_emulated(options)) return NULL;
  TileDeviceOptions gpu = {.backend = any ? "cuda" : options->device};
  TileError *error = tile_device_open(&gpu, &run->device);
  if (!error && (!any || run_compile_knows(tile_device_arch(run->device))))
    return tile_device_arch(run->device);
  tile_error_free(error);
  tile_device_close(run->device);
  run->device = NULL;
  return NULL;
}

static int open_module(Run *run) {
  const RunOptions *options = run->options;
  run->from_source = tool_is_source(options->file);
  if (run->from_source) return run_compile(options, find_gpu(run), &run->module);
  if (!ends_with(options->file, ".cubin") && !ends_with(options->file, ".ptx"))
    return report(error_new(TILE_INVALID, "%s: not a .tile, .py, .cubin or .ptx file", options->file));
  if (options->arch || options->optimise || options->tuning || options->sizes)
    return report(error_new(TILE_INVALID,
                            "%s is compiled already; --arch, -O, --tuning and --for are for source files",
                            options->file));
  return report(tile_module_open(options->file, &run->module));
}

static TileError *open_device(Run *run) {
  const RunOptions *options = run->options;
  bool emulated = run_options_emulated(options);
  TileDeviceOptions device = {.backend = options->device,
                              .arch = tile_kernel_arch(run->kernel),
                              .order = options->order,
                              .checks = options->checks,
                              .sms = options->sms,
                              .progress = run_progress_show,
                              .print = run_progress_print,
                              .user = &run->progress};
  if (emulated && options->device && strncmp(options->device, "cuda", 4) == 0)
    return error_new(TILE_INVALID,
                     "--order, --check and --sms only make sense in the emulator (--device emu)");
  if (emulated) device.backend = "emu";
  TileError *error = run->device ? NULL : tile_device_open(&device, &run->device);
  return error ? error : tile_module_load(run->module, run->device);
}

// ---- Arguments

static RunArray *find_array(Run *run, const char *name) {
  for (int i = 0; i < run->narrays; i++)
    if (strcmp(run->arrays[i].param->name, name) == 0) return &run->arrays[i];
  return NULL;
}

static TileError *no_array(Run *run, const char *flag, const char *name) {
  const char *names[64];
  int count = 0;
  for (int i = 0; i < run->narrays && count < 64; i++) names[count++] = run->arrays[i].param->name;
  const char *near = error_nearest(name, names, count);
  ErrorText text = {0};
  error_text(&text, "%s %s: kernel %s has no tensor of that name", flag, name, tile_kernel_name(run->kernel));
  if (near)
    error_text(&text, "; did you mean %s?", near);
  else
    for (int i = 0; i < count; i++) error_text(&text, "%s%s", i ? ", " : "; it has ", names[i]);
  return error_of_text(TILE_INVALID, &text);
}

// Names on the command line are known, and results are asked of tensors that are written, before anything
// runs.
static TileError *check_names(Run *run) {
  const struct {
    const char *flag;
    const ToolPairs *pairs;
    bool results;
  } all[] = {{"--in", &run->options->inputs, false},
             {"--out", &run->options->outputs, true},
             {"--expect", &run->options->expects, true},
             {"--pitch", &run->options->pitches, false}};
  for (int k = 0; k < 4; k++) {
    for (int i = 0; i < all[k].pairs->count; i++) {
      const RunArray *array = find_array(run, all[k].pairs->data[i].name);
      if (!array) return no_array(run, all[k].flag, all[k].pairs->data[i].name);
      if (all[k].results && !(array->param->access & TILE_WRITE))
        return error_new(TILE_INVALID, "%s %s: the kernel does not write it", all[k].flag,
                         array->param->name);
    }
  }
  return NULL;
}

static bool parse_int(const char *text, int64_t *out) {
  char *end;
  *out = strtoll(text, &end, 0);
  return end != text && !*end;
}

static TileError *set_pitches(Run *run) {
  for (int i = 0; i < run->options->pitches.count; i++) {
    const ToolPair *pitch = &run->options->pitches.data[i];
    RunArray *array = find_array(run, pitch->name);
    if (!parse_int(pitch->value, &array->pitch) || array->pitch < 1 || array->pitch > INT32_MAX)
      return error_new(TILE_INVALID, "--pitch %s=%s: a pitch is a number of elements", pitch->name,
                       pitch->value);
  }
  return NULL;
}

static const TileParam *find_scalar(const Run *run, const char *name) {
  for (int i = 0; i < tile_kernel_param_count(run->kernel); i++) {
    const TileParam *param = tile_kernel_param(run->kernel, i);
    if (param->kind == TILE_PARAM_SCALAR && strcmp(param->name, name) == 0) return param;
  }
  return NULL;
}

static TileError *set_scalar(Run *run, const TileParam *param, const char *text) {
  int64_t integer;
  char *end;
  if (parse_int(text, &integer)) return tile_call_int(run->call, param->name, integer);
  double number = strtod(text, &end);
  if (end == text || *end) return error_new(TILE_INVALID, "-D %s=%s: no number", param->name, text);
  return tile_call_float(run->call, param->name, number);
}

// Of a compiled kernel, -D fixes a size or a scalar; of a source file, tilec had it.
static TileError *apply_defines(Run *run) {
  TileError *error = NULL;
  for (int i = 0; i < run->options->defines.count && !run->from_source && !error; i++) {
    const ToolPair *define = &run->options->defines.data[i];
    const TileParam *scalar = find_scalar(run, define->name);
    int64_t size;
    if (scalar)
      error = set_scalar(run, scalar, define->value);
    else if (parse_int(define->value, &size))
      error = tile_call_size(run->call, define->name, size);
    else
      error = error_new(TILE_INVALID, "-D %s=%s: a size is an integer", define->name, define->value);
  }
  return error;
}

static TileError *read_inputs(Run *run) {
  TileError *error = NULL;
  for (int i = 0; i < run->options->inputs.count && !error; i++) {
    const ToolPair *input = &run->options->inputs.data[i];
    RunArray *array = find_array(run, input->name);
    array->given = true;
    error = run_array_read(array, input->value);
    if (!error) error = run_array_place(array, run->device, run->call);
  }
  return error;
}

// A size that nothing else settles is what an expected result has.
static TileError *settle_by_expected(Run *run, const RunArray *array, const Npy *npy) {
  TileError *error = NULL;
  for (int d = 0; d < array->param->rank && d < npy->ndim && !error; d++)
    for (int i = 0; i < tile_kernel_size_count(run->kernel) && !error; i++) {
      const char *name = tile_kernel_size_name(run->kernel, i);
      int64_t value;
      bool known;
      if (strcmp(name, array->param->shape[d]) != 0) continue;
      error = tile_call_size_value(run->call, name, &known, &value);
      if (!error && !known) error = tile_call_size(run->call, name, (int64_t)npy->shape[d]);
    }
  return error;
}

static TileError *sizes_of_expected(Run *run) {
  TileError *error = NULL;
  for (int i = 0; i < run->options->expects.count && !error; i++) {
    const ToolPair *expect = &run->options->expects.data[i];
    const RunArray *array = find_array(run, expect->name);
    Npy npy;
    NpyError reason;
    if (!npy_read(expect->value, &npy, &reason))
      return error_new(TILE_INVALID, "--expect %s: %s", expect->name, reason.text);
    bool packed = tile_dtype_bits(array->param->dtype) < 8 && npy.item_bytes == 1;
    if (!packed && npy.ndim == array->param->rank) error = settle_by_expected(run, array, &npy);
    npy_free(&npy);
  }
  return error;
}

static TileError *check_expected(Run *run) {
  TileError *error = NULL;
  for (int i = 0; i < run->options->expects.count && !error; i++) {
    const ToolPair *expect = &run->options->expects.data[i];
    error = run_expect_check(find_array(run, expect->name), expect->value);
  }
  return error;
}

// Whether the results can be written, before the work that makes them.
static TileError *check_outputs(Run *run) {
  for (int i = 0; i < run->options->outputs.count; i++) {
    const ToolPair *output = &run->options->outputs.data[i];
    struct stat status;
    bool exists = stat(output->value, &status) == 0;
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", output->value);
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = '\0';
    const char *place = exists ? output->value : slash ? folder : ".";
    int reason = access(place, exists ? W_OK : W_OK | X_OK) == 0 ? 0 : errno;
    if (exists && S_ISDIR(status.st_mode)) reason = EISDIR;
    if (reason)
      return error_new(TILE_INVALID, "--out %s=%s: %s", output->name, output->value, strerror(reason));
  }
  return NULL;
}

static TileError *default_sizes(Run *run) {
  for (int i = 0; i < tile_kernel_size_count(run->kernel); i++) {
    const char *name = tile_kernel_size_name(run->kernel, i);
    int64_t value;
    bool known;
    TileError *error = tile_call_size_value(run->call, name, &known, &value);
    if (!error && !known) error = tile_call_size(run->call, name, DEFAULT_SIZE);
    if (error) return error;
    if (known) continue;
    printf("%s = %d (default; choose with -D %s=… or --in)\n", name, DEFAULT_SIZE, name);
  }
  return NULL;
}

static bool is_defined(const Run *run, const char *name) {
  for (int i = 0; i < run->options->defines.count; i++)
    if (strcmp(run->options->defines.data[i].name, name) == 0) return true;
  return false;
}

static TileError *default_scalars(Run *run) {
  TileError *error = NULL;
  for (int i = 0; i < tile_kernel_param_count(run->kernel) && !error; i++) {
    const TileParam *param = tile_kernel_param(run->kernel, i);
    if (param->kind != TILE_PARAM_SCALAR || (is_defined(run, param->name) && !run->from_source)) continue;
    error = tile_call_int(run->call, param->name, 1);
    printf("%s = 1 (default; choose with -D %s=…)\n", param->name, param->name);
  }
  return error;
}

// Tensors that --in does not give: random where the kernel reads, poison where it only writes.
static TileError *fill_rest(Run *run) {
  int random = 0;
  for (int i = 0; i < run->narrays; i++) {
    RunArray *array = &run->arrays[i];
    if (array->given) continue;
    TileError *error = tile_call_shape(run->call, array->param->name, array->shape);
    if (!error) error = run_array_shape(array);
    if (error) return error;
    bool reads = array->param->access & TILE_READ;
    if (reads)
      run_array_random(array, run->options->seed + ((uint64_t)(i + 1) << 32));
    else
      run_array_poison(array);
    if (reads) printf("%s%s", random++ ? ", " : "random numbers (seed ", "");
    if (reads && random == 1) printf("%" PRIu64 ") in ", run->options->seed);
    if (reads) printf("%s", array->param->name);
    error = run_array_place(array, run->device, run->call);
    if (error) return error;
  }
  if (random) putchar('\n');
  return NULL;
}

static TileError *prepare(Run *run) {
  int count = tile_kernel_param_count(run->kernel);
  run->arrays = calloc((size_t)count + 1, sizeof *run->arrays);
  if (!run->arrays) return error_no_memory();
  for (int i = 0; i < count; i++) {
    const TileParam *param = tile_kernel_param(run->kernel, i);
    if (param->kind != TILE_PARAM_TENSOR) continue;
    run->arrays[run->narrays].convert = run->options->convert;
    run->arrays[run->narrays++].param = param;
  }
  TileError *error = check_names(run);
  if (!error) error = set_pitches(run);
  if (!error) error = check_outputs(run);
  if (!error) error = open_device(run);
  if (!error) error = tile_call_new(run->kernel, &run->call);
  if (!error) error = apply_defines(run);
  if (!error) error = read_inputs(run);
  if (!error) error = sizes_of_expected(run);
  if (!error) error = default_sizes(run);
  if (!error) error = default_scalars(run);
  if (!error) error = fill_rest(run);
  return error ? error : check_expected(run);
}

// ---- Launch

static TileError *print_plan(Run *run) {
  TilePlan plan;
  TileError *error = tile_call_plan(run->call, &plan);
  if (error) return error;
  const char *name = tile_kernel_name(run->kernel), *arch = tile_kernel_arch(run->kernel);
  if (plan.nothing) {
    printf("kernel %s (%s): nothing to launch, a size is 0\n", name, arch);
    return NULL;
  }
  printf("kernel %s (%s, %s) on %s: ", name, plan.variant, arch, tile_device_name(run->device));
  printf("grid %ux%ux%u, block %u", plan.grid[0], plan.grid[1], plan.grid[2], plan.block[0]);
  if (plan.cluster[0] * plan.cluster[1] * plan.cluster[2] > 1)
    printf(", cluster %ux%ux%u", plan.cluster[0], plan.cluster[1], plan.cluster[2]);
  printf(", %u bytes of shared memory\n", plan.shared);
  fflush(stdout);
  run_progress_begin(&run->progress, (uint64_t)plan.grid[0] * plan.grid[1] * plan.grid[2]);
  return NULL;
}

static bool expected(const Run *run, const char *name) {
  for (int i = 0; i < run->options->expects.count; i++)
    if (strcmp(run->options->expects.data[i].name, name) == 0) return true;
  return false;
}

// Hopper's tensor cores add products of 8-bit floats in fewer bits than a reference does (docs/emulator.md), and more of them
// the longer K is; the default tolerance, a part of each result, knows nothing of what cancelled in it.
static void note_short_sums(Run *run, const char *name) {
  enum { HOPPER = 9 };  // major compute capability
  const double share = 0x1p-11;
  const RunArray *array = find_array(run, name);
  bool short_sums = false;
  double largest = 0;
  for (int i = 0; i < run->narrays; i++) {
    TileDType dtype = run->arrays[i].param->dtype;
    short_sums = short_sums || dtype == TILE_E4M3 || dtype == TILE_E5M2;
  }
  int number = 0;
  sscanf(tile_kernel_arch(run->kernel), "sm_%d", &number);
  if (!short_sums || number / 10 != HOPPER) return;
  for (uint64_t i = 0; i < array->elements; i++) largest = fmax(largest, fabs(run_array_value(array, i)));
  if (isfinite(largest))
    printf("%s: Hopper cuts products of 8-bit floats to 13 bits behind the largest, so that sums that cancel "
           "are off by more; --atol %.2g, 2^-11 of the largest result, allows for it\n",
           name, share * largest);
}

// Reads results back, writes them, compares them or says a line about them. Goes on after a wrong one.
static int results(Run *run) {
  int status = TOOL_OK;
  for (int i = 0; i < run->narrays && status == TOOL_OK; i++)
    if (run->arrays[i].param->access & TILE_WRITE)
      status = report(run_array_fetch(&run->arrays[i], run->device));
  for (int i = 0; i < run->options->outputs.count && status == TOOL_OK; i++) {
    const ToolPair *output = &run->options->outputs.data[i];
    status = report(run_array_write(find_array(run, output->name), output->value));
  }
  for (int i = 0; i < run->narrays && status == TOOL_OK; i++)
    if ((run->arrays[i].param->access & TILE_WRITE) && !expected(run, run->arrays[i].param->name))
      run_summary(&run->arrays[i]);
  bool any_wrong = false;
  for (int i = 0; i < run->options->expects.count && status == TOOL_OK; i++) {
    const ToolPair *expect = &run->options->expects.data[i];
    bool wrong = false;
    status = report(run_expect(find_array(run, expect->name), expect->value, run->options->rtol,
                               run->options->atol, &wrong));
    if (wrong) note_short_sums(run, expect->name);
    any_wrong = any_wrong || wrong;
  }
  return status == TOOL_OK && any_wrong ? TOOL_WRONG : status;
}

static int compare_times(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static int bench(Run *run) {
  int count = run->options->bench, status = TOOL_OK;
  double *seconds = calloc((size_t)count, sizeof *seconds);
  if (!seconds) return report(error_no_memory());
  for (int i = 0; i < count && status == TOOL_OK; i++)
    status = report(tile_call_time(run->call, NULL, &seconds[i]));
  run_progress_end(&run->progress);
  qsort(seconds, (size_t)count, sizeof *seconds, compare_times);
  bool emulated = strcmp(tile_device_backend(run->device), "emu") == 0;
  double median = count % 2 ? seconds[count / 2] : (seconds[count / 2 - 1] + seconds[count / 2]) / 2;
  if (status == TOOL_OK)
    printf("%d launches: median %.6g ms, fastest %.6g ms, slowest %.6g ms%s\n", count, 1e3 * median,
           1e3 * seconds[0], 1e3 * seconds[count - 1],
           emulated ? " (of the emulator, which says nothing about a GPU)" : "");
  free(seconds);
  return status;
}

static TileError *choose_kernel(Run *run) {
  int count = tile_module_kernel_count(run->module);
  // tilec compiled the kernel that was asked for, perhaps under an inner function's name.
  bool chosen = run->from_source && count == 1;
  if (chosen || run->options->kernel || count == 1)
    return tile_module_find(run->module, chosen ? NULL : run->options->kernel, &run->kernel);
  ErrorText text = {0};
  error_text(&text, "%s has %d kernels, choose one with --kernel: ", run->options->file, count);
  for (int i = 0; i < count; i++)
    error_text(&text, "%s%s", i ? ", " : "", tile_kernel_name(tile_module_kernel(run->module, i)));
  return error_of_text(TILE_INVALID, &text);
}

static int run_all(Run *run) {
  int status = open_module(run);
  if (status != TOOL_OK) return status;
  TileError *error = choose_kernel(run);
  if (!error) error = prepare(run);
  if (!error) error = print_plan(run);
  if (error) return report(error);
  error = tile_call_launch(run->call, NULL);
  if (!error) error = tile_synchronize(run->device, NULL);
  run_progress_end(&run->progress);
  // After a finding the kernel has run to its end: its results are worth seeing.
  int launched = report(error);
  if (launched != TOOL_OK && launched != TOOL_WRONG) return launched;
  status = results(run);
  if (status == TOOL_OK && launched == TOOL_OK && run->options->bench) status = bench(run);
  return status != TOOL_OK ? status : launched;
}

int main(int argc, char **argv) {
  RunOptions options;
  Run run = {.options = &options};
  int status = TOOL_USAGE;
  if (run_options_parse(argc, argv, &options)) {
    status = TOOL_OK;
    if (options.help)
      run_options_help();
    else if (options.version)
      puts("tile-run " TILE_VERSION);
    else
      status = run_all(&run);
  }
  for (int i = 0; i < run.narrays; i++) {
    run_array_unplace(&run.arrays[i], run.device);
    run_array_free(&run.arrays[i]);
  }
  free(run.arrays);
  tile_call_free(run.call);
  tile_module_close(run.module);
  tile_device_close(run.device);
  run_options_free(&options);
  if (fflush(stdout) != 0 && status == TOOL_OK) status = TOOL_USAGE;
  return status;
}

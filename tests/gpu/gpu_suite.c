// gpu_suite FILE.cubin [--device both|cuda|emu] [--cases N] [--large N] [--seed S] [--jobs N] [--only I]
//           [--fault address|assert] [--chain N]
//
// Runs the one kernel of a cubin on random shapes, on a GPU and in the emulator (on the PTX that the cubin
// carries), in one process. A case passes when every device gives what the reference says, writes nothing else,
// and, where results are exact, all devices agree in every byte. `--large` cases run on the GPU alone. The last line
// is a table row: name, cases, runs on the GPU, runs in the emulator, failures. With --fault the launch must fail,
// with the kernel's name; with --chain N launches of a product, each of the result of the one before, follow each other
// on one stream. Exit status 1: something failed; 2: usage or no device.
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "caller.h"
#include "case.h"
#include "chain.h"

enum { MAX_JOBS = 64, WHY = 600 };

typedef struct {
  const char *path, *device, *fault;
  int cases, large, jobs, only, chain;
  uint64_t seed;
} Options;

typedef struct {
  Options options;
  char name[100];
  Caller caller;
  TileDevice *gpu;       // NULL: not asked for
  TileDevice *emulator;  // of launches that must fail
  TileModule *gpu_module, *described;
  pthread_mutex_t lock;
  int next, failed, gpu_runs, emu_runs;
  int general;     // runs of the variant without TMA
  uint64_t drawn;  // the seed of this cubin's cases
} Suite;

// ---- One case on one device

typedef struct {
  TileDevice *device;
  const TileKernel *kernel;
  const char *label;
  void *stream;
  int64_t guard;
  uint8_t *image[MAX_ARRAYS];  // what the arrays hold after the run
  uint64_t memory[MAX_ARRAYS];
  bool general;
} Run;

static bool keep_text(TileError *error, char *why) {
  if (!error) return true;
  snprintf(why, WHY, "%s", tile_error_message(error));
  tile_error_free(error);
  return false;
}

// On a GPU between guards; in the emulator every byte outside of the allocation faults by itself.
static TileError *place(Run *run, TileCall *call, const Array *array, int i) {
  int64_t bytes = array_bytes(array) + 2 * run->guard;
  const uint8_t *from = array->image + GUARD - run->guard;
  TileError *error = tile_alloc(run->device, (uint64_t)bytes, array->param->name, &run->memory[i]);
  if (!error) error = tile_write(run->device, run->memory[i], from, (uint64_t)bytes);
  if (error) return error;
  uint64_t address = run->memory[i] + (uint64_t)(run->guard + array->offset);
  TileTensor tensor = {address, array->param->dtype, array->param->rank, array->shape, array->stride};
  return tile_call_tensor(call, array->param->name, &tensor);
}

static TileError *fetch(Run *run, const Array *array, int i) {
  int64_t bytes = array_bytes(array) + 2 * run->guard;
  run->image[i] = malloc((size_t)(array_bytes(array) + 2 * GUARD));
  if (!run->image[i]) return NULL;
  memcpy(run->image[i], array->image, (size_t)(array_bytes(array) + 2 * GUARD));
  return tile_read(run->device, run->memory[i], run->image[i] + GUARD - run->guard, (uint64_t)bytes);
}

// A kernel whose blocks stay takes several tiles in each when there are few.
static TileError *limit_blocks(TileCall *call, const Case *c, const TilePlan *plan) {
  static const char name[] = TILE_LAUNCH_INFO_SM_COUNT;
  for (int i = 0; c->clusters && i < tile_kernel_size_count(c->kernel); i++) {
    int64_t blocks = c->clusters * (int64_t)(plan->cluster[0] * plan->cluster[1] * plan->cluster[2]);
    if (strcmp(tile_kernel_size_name(c->kernel, i), name) == 0) return tile_call_size(call, name, blocks);
  }
  return NULL;
}

static bool run_case(Run *run, const Case *c, char *why) {
  TileCall *call = NULL;
  TilePlan plan;
  TileError *error = tile_call_new(run->kernel, &call);
  for (int i = 0; i < c->nsizes && !error; i++) error = tile_call_size(call, c->size_name[i], c->size[i]);
  for (int i = 0; i < c->narrays && !error; i++) error = place(run, call, &c->array[i], i);
  if (!error) error = tile_call_plan(call, &plan);
  if (!error) run->general = strcmp(plan.variant, "general") == 0;
  if (!error) error = limit_blocks(call, c, &plan);
  if (!error) error = tile_call_launch(call, run->stream);
  if (!error) error = tile_synchronize(run->device, run->stream);
  for (int i = 0; i < c->narrays && !error; i++) error = fetch(run, &c->array[i], i);
  for (int i = 0; i < c->narrays; i++)
    if (run->memory[i]) tile_error_free(tile_free(run->device, run->memory[i]));
  tile_call_free(call);
  if (!keep_text(error, why)) return false;
  for (int i = 0; i < c->narrays; i++)
    if (!run->image[i] || array_wrong(c, &c->array[i], run->image[i], why, WHY)) return false;
  return true;
}

static void end_run(Run *run) {
  for (int i = 0; i < MAX_ARRAYS; i++) free(run->image[i]);
}

// ---- Devices

static bool run_on_gpu(Suite *suite, Run *run, const Case *c, void *stream, char *why) {
  *run = (Run){.device = suite->gpu, .label = "GPU", .guard = GUARD, .stream = stream};
  return keep_text(tile_module_find(suite->gpu_module, NULL, &run->kernel), why) && run_case(run, c, why);
}

// An emulator of its own for each case: another order and another number of SMs, all checks on.
static bool run_in_emulator(const Suite *suite, Run *run, const Case *c, int index, char *why) {
  char order[40];
  Random random = {c->seed + (uint64_t)index};
  static const int sms[] = {1, 3, 4, 132};
  uint64_t draw = random_bits(&random);
  snprintf(order, sizeof order, "random:%llu", (unsigned long long)(draw >> 40));
  TileDeviceOptions options = {.backend = "emu",
                               .order = draw % 3 == 0   ? "fair"
                                        : draw % 3 == 1 ? "lazy"
                                                        : order,
                               .checks = "all",
                               .sms = sms[draw / 3 % 4]};
  *run = (Run){.label = "emulator"};
  TileModule *module = NULL;
  bool ok = keep_text(tile_device_open(&options, &run->device), why) &&
            keep_text(tile_module_open(suite->options.path, &module), why) &&
            keep_text(tile_module_load(module, run->device), why) &&
            keep_text(tile_module_find(module, NULL, &run->kernel), why) && run_case(run, c, why);
  if (!ok) {
    size_t n = strlen(why);
    snprintf(why + n, WHY - n, " [order %s, %d SMs]", options.order, options.sms);
  }
  tile_module_close(module);
  if (run->device) tile_device_close(run->device);
  return ok;
}

static bool same_bits(const Case *c, const Run *gpu, const Run *emu, char *why) {
  if (c->rtol != 0 || c->atol != 0) return true;
  for (int i = 0; i < c->narrays; i++) {
    const Array *array = &c->array[i];
    if (memcmp(gpu->image[i], emu->image[i], (size_t)array_bytes(array) + 2 * GUARD) == 0) continue;
    snprintf(why, WHY, "%s: GPU and emulator differ in bits", array->param->name);
    return false;
  }
  return true;
}

// ---- Cases by several threads

__attribute__((format(printf, 4, 5))) static void report(Suite *suite, const Case *c, int index,
                                                         const char *format, ...) {
  char text[WHY + 100], what[300];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  case_describe(c, what, sizeof what);
  pthread_mutex_lock(&suite->lock);
  printf("FAIL %s --seed %llu --only %d: %s: %s\n", suite->name, (unsigned long long)suite->options.seed,
         index, what, text);
  suite->failed++;
  pthread_mutex_unlock(&suite->lock);
}

static void count(Suite *suite, const Run *gpu, const Run *emu) {
  pthread_mutex_lock(&suite->lock);
  suite->gpu_runs += gpu->label != NULL;
  suite->emu_runs += emu->label != NULL;
  suite->general += gpu->general || emu->general;
  pthread_mutex_unlock(&suite->lock);
}

static void check_case(Suite *suite, int index, void *stream) {
  Case c;
  Run gpu = {0}, emu = {0};
  char why[WHY] = "";
  bool large = index >= suite->options.cases;
  bool emulate = strcmp(suite->options.device, "cuda") != 0 && (!large || suite->options.only == index);
  if (!case_draw(&c, tile_module_kernel(suite->described, 0), suite->drawn, index, large, why)) {
    report(suite, &c, index, "%s", why);
  } else {
    bool ok = true;
    if (suite->gpu && !run_on_gpu(suite, &gpu, &c, stream, why)) {
      report(suite, &c, index, "GPU: %s", why);
      ok = false;
    }
    if (emulate && !run_in_emulator(suite, &emu, &c, index, why)) {
      report(suite, &c, index, "emulator: %s", why);
      ok = false;
    }
    if (ok && suite->gpu && emulate && !same_bits(&c, &gpu, &emu, why)) report(suite, &c, index, "%s", why);
    count(suite, &gpu, &emu);
  }
  end_run(&gpu);
  end_run(&emu);
  case_free(&c);
}

// Each thread launches into a stream of its own, which waits for no other.
static void *work(void *state) {
  Suite *suite = state;
  const Options *options = &suite->options;
  int count = options->cases + (suite->gpu || options->only >= 0 ? options->large : 0);
  void *stream = suite->gpu ? caller_stream(&suite->caller) : NULL;
  for (;;) {
    pthread_mutex_lock(&suite->lock);
    int index = suite->next++;
    pthread_mutex_unlock(&suite->lock);
    if (index >= count) break;
    if (options->only < 0 || options->only == index) check_case(suite, index, stream);
  }
  return NULL;
}

static void run_all(Suite *suite) {
  pthread_t threads[MAX_JOBS];
  int started = 0;
  while (started < suite->options.jobs && pthread_create(&threads[started], NULL, work, suite) == 0)
    started++;
  if (started == 0) work(suite);
  for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
}

// ---- Launches that must fail

static bool faults(const Suite *suite, TileDevice *device, const TileKernel *kernel, bool bad_address,
                   char *why) {
  Case c;
  TileCall *call = NULL;
  const char *name = tile_kernel_name(kernel);
  if (!case_draw(&c, kernel, suite->drawn, 0, false, why)) return false;
  TileError *error = tile_call_new(kernel, &call);
  for (int i = 0; i < c.nsizes && !error; i++) error = tile_call_size(call, c.size_name[i], c.size[i]);
  for (int i = 0; i < c.narrays && !error; i++) {
    const Array *array = &c.array[i];
    uint64_t address = ((uint64_t)i + 1) << 32;  // nobody's
    if (!bad_address) error = tile_alloc(device, (uint64_t)array_bytes(array), array->param->name, &address);
    TileTensor tensor = {address, array->param->dtype, array->param->rank, array->shape, NULL};
    if (!error) error = tile_call_tensor(call, array->param->name, &tensor);
  }
  if (!error) error = tile_call_launch(call, NULL);
  if (!error) error = tile_synchronize(device, NULL);
  bool emulated = strcmp(tile_device_backend(device), "emu") == 0;
  bool ok = tile_error_status(error) == TILE_FAULT && (emulated || strstr(tile_error_message(error), name));
  printf("%s on %s ends with: %s\n", name, tile_device_name(device),
         error ? tile_error_message(error) : "success");
  if (!ok) snprintf(why, WHY, "no fault with the kernel's name on %s", tile_device_name(device));
  tile_error_free(error);
  // After a fault a GPU's context takes nothing more, and says why.
  uint64_t address;
  error = emulated || !ok ? NULL : tile_alloc(device, 16, "after", &address);
  if (error) printf("  and then: %s\n", tile_error_message(error));
  if (ok && !emulated && (!error || !strstr(tile_error_message(error), name))) {
    snprintf(why, WHY, "the call after the fault does not name the kernel");
    ok = false;
  }
  tile_error_free(error);
  tile_call_free(call);
  case_free(&c);
  return ok;
}

static void run_faults(Suite *suite) {
  char why[WHY] = "";
  bool bad_address = strcmp(suite->options.fault, "address") == 0;
  TileDeviceOptions emulator = {.backend = "emu"};
  bool ok = true;
  if (suite->gpu) {
    ok = faults(suite, suite->gpu, tile_module_kernel(suite->gpu_module, 0), bad_address, why);
    suite->gpu_runs++;
  }
  if (ok && strcmp(suite->options.device, "cuda") != 0) {
    ok = keep_text(tile_device_open(&emulator, &suite->emulator), why) &&
         keep_text(tile_module_load(suite->described, suite->emulator), why) &&
         faults(suite, suite->emulator, tile_module_kernel(suite->described, 0), bad_address, why);
    suite->emu_runs++;
  }
  suite->options.cases = 1;
  suite->options.large = 0;
  if (ok) return;
  suite->failed++;
  printf("FAIL %s --fault %s: %s\n", suite->name, suite->options.fault, why);
}

// ---- Launches that follow each other

static bool chain_on(TileDevice *device, TileModule *module, void *stream, const Chain *chain, char *why) {
  return chain_run(device, tile_module_kernel(module, 0), stream, chain, why, WHY);
}

// With arrays that TMA can reach, and with others.
static void run_chains(Suite *suite) {
  enum { GPU_SIDE = 2048, EMULATOR_SIDE = 192 };
  char why[WHY] = "";
  TileDeviceOptions emulator = {.backend = "emu", .checks = "all"};
  bool ok = true;
  void *stream = suite->gpu ? caller_stream(&suite->caller) : NULL;
  for (int64_t offset = 0; suite->gpu && ok && offset <= 8; offset += 8) {
    Chain chain = {.launches = suite->options.chain, .side = GPU_SIDE, .offset = offset};
    ok = chain_on(suite->gpu, suite->gpu_module, stream, &chain, why);
    suite->gpu_runs++;
  }
  if (ok && strcmp(suite->options.device, "cuda") != 0)
    ok = keep_text(tile_device_open(&emulator, &suite->emulator), why) &&
         keep_text(tile_module_load(suite->described, suite->emulator), why);
  for (int64_t offset = 0; suite->emulator && ok && offset <= 8; offset += 8) {
    Chain chain = {.launches = 3, .side = EMULATOR_SIDE, .offset = offset};
    ok = chain_on(suite->emulator, suite->described, NULL, &chain, why);
    suite->emu_runs++;
  }
  suite->options.cases = 2;
  suite->options.large = 0;
  if (ok) return;
  suite->failed++;
  printf("FAIL %s --chain %d: %s\n", suite->name, suite->options.chain, why);
}

// ---- Main

static int usage(const char *what) {
  fprintf(stderr, "gpu_suite: %s\n", what);
  fputs(
      "gpu_suite FILE.cubin [--device both|cuda|emu] [--cases N] [--large N] [--seed S] [--jobs N] [--only I]"
      " [--fault address|assert] [--chain N]\n",
      stderr);
  return 2;
}

static bool set_option(Options *options, const char *name, const char *value) {
  const struct {
    const char *name, **text;
    int *number;
  } rows[] = {{"--device", &options->device, NULL}, {"--fault", &options->fault, NULL},
              {"--cases", NULL, &options->cases},   {"--large", NULL, &options->large},
              {"--jobs", NULL, &options->jobs},     {"--only", NULL, &options->only},
              {"--chain", NULL, &options->chain}};
  if (strcmp(name, "--seed") == 0) {
    options->seed = strtoull(value, NULL, 10);
    return true;
  }
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (strcmp(name, rows[i].name) != 0) continue;
    if (rows[i].text) *rows[i].text = value;
    if (rows[i].number) *rows[i].number = atoi(value);
    return true;
  }
  return false;
}

static bool parse(int argc, char **argv, Options *out) {
  *out = (Options){.device = "both", .cases = 12, .large = 2, .jobs = 2, .only = -1, .seed = 1};
  for (int i = 1; i < argc; i++) {
    if (argv[i][0] != '-' && !out->path) {
      out->path = argv[i];
    } else if (i + 1 >= argc || !set_option(out, argv[i], argv[i + 1])) {
      return false;
    } else {
      i++;
    }
  }
  if (out->jobs < 1) out->jobs = 1;
  if (out->jobs > MAX_JOBS) out->jobs = MAX_JOBS;
  return out->path &&
         (!strcmp(out->device, "both") || !strcmp(out->device, "cuda") || !strcmp(out->device, "emu"));
}

// The file's name without folder and suffix.
static void set_name(Suite *suite) {
  const char *slash = strrchr(suite->options.path, '/');
  snprintf(suite->name, sizeof suite->name, "%s", slash ? slash + 1 : suite->options.path);
  char *dot = strrchr(suite->name, '.');
  if (dot) *dot = '\0';
}

// Another name, other shapes: the seed that cases are drawn from.
static uint64_t seed_of(const Suite *suite) {
  uint64_t hash = suite->options.seed;
  for (const char *c = suite->name; *c; c++) hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001B3);
  return hash;
}

static bool open_all(Suite *suite, char *why) {
  const char *path = suite->options.path;
  if (!keep_text(tile_module_open(path, &suite->described), why)) return false;
  if (strcmp(suite->options.device, "emu") == 0) return true;
  if (!caller_open(&suite->caller)) return snprintf(why, WHY, "no CUDA driver, or no GPU"), false;
  TileDeviceOptions options = {.backend = "cuda",
                               .arch = tile_kernel_arch(tile_module_kernel(suite->described, 0))};
  return keep_text(tile_device_open(&options, &suite->gpu), why) &&
         keep_text(tile_module_open(path, &suite->gpu_module), why) &&
         keep_text(tile_module_load(suite->gpu_module, suite->gpu), why);
}

int main(int argc, char **argv) {
  Suite suite = {.lock = PTHREAD_MUTEX_INITIALIZER};
  char why[WHY] = "";
  if (!parse(argc, argv, &suite.options)) return usage("what is wanted?");
  set_name(&suite);
  suite.drawn = seed_of(&suite);
  bool ok = open_all(&suite, why);
  if (!ok) {
    fprintf(stderr, "gpu_suite: %s\n", why);
  } else {
    if (suite.options.fault)
      run_faults(&suite);
    else if (suite.options.chain > 0)
      run_chains(&suite);
    else
      run_all(&suite);
    int cases = suite.options.only >= 0 ? 1 : suite.options.cases + (suite.gpu ? suite.options.large : 0);
    printf("ROW %s %d %d %d %d %d\n", suite.name, cases, suite.gpu_runs, suite.emu_runs, suite.general,
           suite.failed);
  }
  tile_module_close(suite.gpu_module);
  tile_module_close(suite.described);
  tile_device_close(suite.gpu);
  tile_device_close(suite.emulator);
  caller_close(&suite.caller);
  return !ok ? 2 : suite.failed ? 1 : 0;
}

// The CUDA backend when something fails: every function of the driver at every call of a whole program, faults that
// are found later, contexts and devices, clusters, several threads. On the fake driver library.
#include <pthread.h>
#include <stdlib.h>

#include "fake_cuda.h"

// Two kernels, one in clusters.
static const char info[] =
    "tile-launch-info 1\nentry k_entry\nkernel k\nvariant only\narch sm_100a\nblock 128\n"
    "grid $sm_count 2 1\ncluster 2 1 1\nshared 70000\n"
    "tensor A bf16 readwrite (M) 64\nmap 0 A box 16 64 swizzle 128 load\n"
    "param ptr A\nparam size M\nparam stride A 0\nparam map 0\nparam scalar scale f32\nend\n"
    "entry j_entry\nkernel j\nvariant only\narch sm_100a\nblock 128\ngrid 1 1 1\ncluster 1 1 1\nshared 0\n"
    "tensor A bf16 readwrite (M) 64\nparam ptr A\nparam size M\nparam stride A 0\nparam ptr A\nparam scalar "
    "scale f32\n"
    "end\n";

static TileError *bind(TileModule *module, const char *name, uint64_t address, TileCall **out) {
  const TileKernel *kernel;
  *out = NULL;
  TileError *error = tile_module_find(module, name, &kernel);
  if (!error) error = tile_call_new(kernel, out);
  TileTensor tensor = {address, TILE_BF16, 2, (int64_t[]){120, 64}, NULL};
  if (!error) error = tile_call_tensor(*out, "A", &tensor);
  if (!error) error = tile_call_float(*out, "scale", 0.5);
  return error;
}

// ---- Every call fails once

// A whole program; its first error. Everything is given back whatever happens.
static TileError *program(void) {
  TileDevice *device = NULL;
  TileModule *module = NULL;
  TileCall *call = NULL;
  uint64_t address = 0;
  double seconds;
  char bytes[16] = "";
  TileError *error = fake_open(NULL, "sm_100a", &device);
  if (!error) error = fake_module(info, &module);
  if (!error) error = tile_module_load(module, device);
  if (!error) error = tile_alloc(device, 120 * 128, "A", &address);
  if (!error) error = tile_write(device, address, bytes, sizeof bytes);
  if (!error) error = bind(module, "k", address, &call);
  if (!error) error = tile_call_launch(call, NULL);
  if (!error) error = tile_synchronize(device, NULL);
  if (!error) error = tile_call_time(call, NULL, &seconds);
  if (!error) error = tile_read(device, address, bytes, sizeof bytes);
  tile_call_free(call);
  if (address) {
    TileError *freeing = tile_free(device, address);
    if (error)
      tile_error_free(freeing);
    else
      error = freeing;
  }
  tile_module_close(module);
  tile_device_close(device);
  return error;
}

// What a message calls it; NULL: nobody is told, since the thing is being given back.
static const char *told_as(const char *symbol) {
  if (strcmp(symbol, "push") == 0) return "cuCtxPushCurrent";
  if (strcmp(symbol, "pop") == 0) return "cuCtxPopCurrent";
  if (strcmp(symbol, "cuModuleUnload") == 0 || strcmp(symbol, "cuDevicePrimaryCtxRelease") == 0 ||
      strcmp(symbol, "cuEventDestroy") == 0)
    return NULL;
  return symbol;
}

static void fail_each(Checks *checks, const Fake *fake, const char *symbol) {
  fake->reset();
  ok(checks, program());
  int calls = fake->calls(symbol);
  if (!CHECK(checks, calls > 0)) fprintf(stderr, "  %s is never called\n", symbol);
  for (int i = 1; i <= calls; i++) {
    fake->reset();
    fake->fail_call(symbol, i, 1);
    TileError *error = program();
    const char *name = told_as(symbol);
    // The last push and pop belong to the unloading of the module.
    bool quiet = !name || (i == calls && (strcmp(symbol, "push") == 0 || strcmp(symbol, "pop") == 0));
    bool told = error && name && strstr(tile_error_message(error), name) &&
                strstr(tile_error_message(error), "CUDA_ERROR_INVALID_VALUE");
    if (!CHECK(checks, quiet ? !error : told))
      fprintf(stderr, "  %s, call %d: %s\n", symbol, i, tile_error_message(error));
    if (!CHECK(checks, fake->alive() == 0))
      fprintf(stderr, "  %s, call %d: %d alive\n", symbol, i, fake->alive());
    tile_error_free(error);
  }
}

static void test_each(Checks *checks, const Fake *fake) {
  static const char *const symbols[] = {"cuInit",
                                        "cuCtxGetCurrent",
                                        "cuDeviceGetCount",
                                        "cuDeviceGet",
                                        "cuDeviceGetName",
                                        "cuDeviceGetAttribute",
                                        "push",
                                        "cuDevicePrimaryCtxRetain",
                                        "pop",
                                        "cuModuleLoadDataEx",
                                        "cuModuleGetFunction",
                                        "cuFuncSetAttribute",
                                        "cuModuleUnload",
                                        "cuMemAlloc",
                                        "cuMemFree",
                                        "cuOccupancyMaxActiveClusters",
                                        "cuMemcpyHtoD",
                                        "cuMemcpyDtoH",
                                        "cuLaunchKernelEx",
                                        "cuTensorMapEncodeTiled",
                                        "cuStreamSynchronize",
                                        "cuEventCreate",
                                        "cuEventRecord",
                                        "cuEventSynchronize",
                                        "cuEventElapsedTime",
                                        "cuEventDestroy",
                                        "cuDevicePrimaryCtxRelease"};
  for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) fail_each(checks, fake, symbols[i]);
}

// ---- Faults

typedef struct {
  TileDevice *device;
  TileModule *module;
  TileCall *k, *j;
  uint64_t address;
} Fixture;

static void open_fixture(Checks *checks, const Fake *fake, Fixture *f) {
  fake->reset();
  ok(checks, fake_open(NULL, "sm_100a", &f->device));
  ok(checks, fake_module(info, &f->module));
  ok(checks, tile_module_load(f->module, f->device));
  ok(checks, tile_alloc(f->device, 120 * 128, "A", &f->address));
  ok(checks, bind(f->module, "k", f->address, &f->k));
  ok(checks, bind(f->module, "j", f->address, &f->j));
}

// After a fault too, everything is given back.
static void close_fixture(Checks *checks, const Fake *fake, Fixture *f) {
  tile_call_free(f->k);
  tile_call_free(f->j);
  tile_error_free(tile_free(f->device, f->address));
  tile_module_close(f->module);
  tile_device_close(f->device);
  CHECK_INT(checks, fake->alive(), 0);
}

static void test_fault(Checks *checks, const Fake *fake) {
  Fixture f;
  uint64_t address;
  open_fixture(checks, fake, &f);
  fake->fault(700);
  ok(checks, tile_call_launch(f.k, NULL));
  says(checks, tile_synchronize(f.device, NULL), TILE_FAULT,
       "kernel k: CUDA_ERROR_ILLEGAL_ADDRESS (700: some text); in the emulator the access has a place in the "
       "source "
       "(tile-run --device emu); found by cuStreamSynchronize. The CUDA context takes nothing more: every "
       "later "
       "call in it fails");
  // From here on every call says what happened, not what it was meant to do.
  const char *since =
      ": the CUDA context takes nothing more since kernel k ended with CUDA_ERROR_ILLEGAL_ADDRESS";
  says(checks, tile_synchronize(f.device, NULL), TILE_FAULT, since);
  says(checks, tile_alloc(f.device, 16, "B", &address), TILE_FAULT, since);
  says(checks, tile_call_launch(f.j, NULL), TILE_FAULT, since);
  says(checks, tile_read(f.device, f.address, &address, 8), TILE_FAULT, since);
  close_fixture(checks, fake, &f);
}

// Whoever comes first reports it; a launch does not take another's fault for its own.
static void test_found_by_others(Checks *checks, const Fake *fake) {
  Fixture f;
  char byte;
  open_fixture(checks, fake, &f);
  fake->fault(719);
  ok(checks, tile_call_launch(f.k, NULL));
  says(checks, tile_call_launch(f.j, NULL), TILE_FAULT,
       "kernel k: CUDA_ERROR_LAUNCH_FAILED (719: unspecified launch failure); a device_assert that failed "
       "ends so, "
       "after its message; found by ");
  close_fixture(checks, fake, &f);
  open_fixture(checks, fake, &f);
  fake->fault(716);
  ok(checks, tile_call_launch(f.k, NULL));
  says(checks, tile_read(f.device, f.address, &byte, 1), TILE_FAULT, "kernel k: ");
  close_fixture(checks, fake, &f);
  open_fixture(checks, fake, &f);
  fake->fault(702);
  double seconds;
  says(checks, tile_call_time(f.k, NULL, &seconds), TILE_HANG, "kernel k: ");
  close_fixture(checks, fake, &f);
  open_fixture(checks, fake, &f);
  fake->fail("cuMemAlloc", 700);  // none of ours
  uint64_t address;
  says(checks, tile_alloc(f.device, 16, "B", &address), TILE_FAULT, "a kernel launched by other means: ");
  close_fixture(checks, fake, &f);
}

// Suspects are what was launched since the last successful wait, by stream, the newest first.
static void test_suspects(Checks *checks, const Fake *fake) {
  Fixture f;
  void *one = (void *)0x10, *two = (void *)0x20;
  char byte;
  open_fixture(checks, fake, &f);
  ok(checks, tile_call_launch(f.k, NULL));
  fake->fault(700);
  ok(checks, tile_call_launch(f.j, NULL));
  says(checks, tile_synchronize(f.device, NULL), TILE_FAULT, "kernel j or k: CUDA_ERROR_ILLEGAL_ADDRESS");
  close_fixture(checks, fake, &f);

  open_fixture(checks, fake, &f);
  ok(checks, tile_call_launch(f.k, one));
  ok(checks, tile_call_launch(f.k, NULL));
  ok(checks, tile_read(f.device, f.address, &byte, 1));  // waits for the default stream alone
  ok(checks, tile_synchronize(f.device, one));
  fake->fault(700);
  ok(checks, tile_call_launch(f.j, two));
  says(checks, tile_synchronize(f.device, two), TILE_FAULT, "kernel j: CUDA_ERROR_ILLEGAL_ADDRESS");
  close_fixture(checks, fake, &f);

  open_fixture(checks, fake, &f);
  ok(checks, tile_call_launch(f.k, one));
  ok(checks, tile_call_launch(f.k, two));
  ok(checks, tile_synchronize(f.device, one));
  fake->fault(700);
  ok(checks, tile_call_launch(f.j, NULL));
  says(checks, tile_synchronize(f.device, NULL), TILE_FAULT, "kernel j or k: CUDA_ERROR_ILLEGAL_ADDRESS");
  close_fixture(checks, fake, &f);

  // More streams than are kept: the oldest are forgotten, and that is said.
  open_fixture(checks, fake, &f);
  for (uintptr_t i = 1; i <= 9; i++) ok(checks, tile_call_launch(f.j, (void *)i));
  fake->fault(700);
  ok(checks, tile_call_launch(f.k, NULL));
  says(checks, tile_synchronize(f.device, NULL), TILE_FAULT, "kernel k or j or an earlier one: ");
  close_fixture(checks, fake, &f);
}

// Errors that are no faults: the context works on.
static void test_no_faults(Checks *checks, const Fake *fake) {
  Fixture f;
  open_fixture(checks, fake, &f);
  static const int results[] = {1, 701, 709, 720};
  for (int i = 0; i < 4; i++) {
    fake->fail("cuLaunchKernelEx", results[i]);
    says(checks, tile_call_launch(f.k, NULL), TILE_INVALID, "kernel k: cuLaunchKernelEx: ");
    fake->reset();
    ok(checks, tile_call_launch(f.k, NULL));
    ok(checks, tile_synchronize(f.device, NULL));
  }
  close_fixture(checks, fake, &f);
}

// ---- Devices and drivers

static void test_devices(Checks *checks, const Fake *fake) {
  TileDevice *device;
  fake->reset();
  fake->gpu(2, 10, 0);
  fake->current((void *)0xAB);  // a number means that GPU, whatever the thread has
  ok(checks, fake_open("cuda:1", NULL, &device));
  CHECK(checks, strstr(fake->log(), "cuDeviceGet(1)\ncuDevicePrimaryCtxRetain(41)") != NULL);
  uint64_t address;
  ok(checks, tile_alloc(device, 16, "A", &address));
  CHECK(checks, strstr(fake->log(), "push(0xc1)") != NULL);
  ok(checks, tile_free(device, address));
  tile_device_close(device);
  CHECK_INT(checks, fake->alive(), 0);
  says(checks, fake_open("cuda:2", NULL, &device), TILE_UNAVAILABLE,
       "there is no GPU 2; the CUDA driver finds 2, counted from 0");
  CHECK_INT(checks, fake->alive(), 0);
  static const char *const wrong[] = {"cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda:12345", "gpu"};
  for (int i = 0; i < 6; i++)
    says(checks, tile_device_open(&(TileDeviceOptions){.backend = wrong[i]}, &device), TILE_INVALID,
         "there are auto, cuda, cuda:N and emu");
  TileDeviceOptions options = {0};
  void *state;
  says(checks, cuda_open_library(FAKE_OLD_CUDA, &options, &state), TILE_UNAVAILABLE,
       "the CUDA driver here, of CUDA 11.4, is too old: it has no cuTensorMapEncodeTiled and 1 more of its "
       "kind; the "
       "driver of CUDA 12.8 or a later one has all that is needed");
}

// ---- Clusters and shared memory

static TileError *load_with(const Fake *fake, const char *text, TileDevice **device, TileModule **module,
                            int active, int largest) {
  fake->reset();
  fake->clusters(active, largest);
  TileError *error = fake_open(NULL, "sm_100a", device);
  if (!error) error = fake_module(text, module);
  return error ? error : tile_module_load(*module, *device);
}

static void test_clusters(Checks *checks, const Fake *fake) {
  TileDevice *device = NULL;
  TileModule *module = NULL;
  TileCall *call;
  TilePlan plan;
  // $sm_count is what whole clusters can fill: 66 of the 74 pairs that 148 SMs would make. Never more than all SMs.
  static const int rows[][2] = {{66, 132}, {70, 140}, {74, 148}, {500, 148}};
  for (int i = 0; i < 4; i++) {
    ok(checks, load_with(fake, info, &device, &module, rows[i][0], 8));
    ok(checks, bind(module, "k", 4096, &call));
    ok(checks, tile_call_plan(call, &plan));
    CHECK_INT(checks, plan.grid[0], rows[i][1]);
    tile_call_free(call);
    tile_module_close(module);
    tile_device_close(device);
  }
  // Large clusters need permission, and room.
  char big[sizeof info + 40];
  const char *at = strstr(info, "cluster 2 1 1");
  snprintf(big, sizeof big, "%.*scluster 4 4 1%s", (int)(at - info), info, at + strlen("cluster 2 1 1"));
  ok(checks, load_with(fake, big, &device, &module, 8, 16));
  CHECK(checks,
        strstr(fake->log(), "cuFuncSetAttribute(0xf0, 14, 1)\ncuOccupancyMaxActiveClusters(0xf0)") != NULL);
  tile_module_close(module);
  tile_device_close(device);
  const char *no_room = "kernel k runs in clusters of 4x4x1 blocks; with 128 threads and 70000 bytes of "
                        "shared memory in each, Fake GPU "
                        "(sm_100) holds clusters of at most 8";
  says(checks, load_with(fake, big, &device, &module, 0, 8), TILE_INVALID, no_room);
  tile_module_close(module);
  tile_device_close(device);
  CHECK_INT(checks, fake->alive(), 0);
  fake->reset();
  fake->fail("cuOccupancyMaxActiveClusters", 912);  // cuda.h: invalid cluster size
  ok(checks, fake_open(NULL, NULL, &device));
  ok(checks, fake_module(big, &module));
  says(checks, tile_module_load(module, device), TILE_INVALID, no_room);
  tile_module_close(module);
  tile_device_close(device);
  CHECK_INT(checks, fake->alive(), 0);
}

static void test_shared(Checks *checks, const Fake *fake) {
  TileDevice *device = NULL;
  TileModule *module = NULL;
  char big[sizeof info + 40];
  const char *at = strstr(info, "shared 70000");
  snprintf(big, sizeof big, "%.*sshared 232449%s", (int)(at - info), info, at + strlen("shared 70000"));
  says(checks, load_with(fake, big, &device, &module, 66, 8), TILE_INVALID,
       "kernel k needs 232449 bytes of shared memory for a block; Fake GPU (sm_100) has 232448");
  tile_module_close(module);
  tile_device_close(device);
  CHECK_INT(checks, fake->alive(), 0);
}

// ---- Threads

enum { THREADS = 8, LAUNCHES = 100 };

typedef struct {
  Fixture *fixture;
  const Fake *fake;
  bool failed;
} Worker;

// Calls of its own of the one kernel, on a stream of its own.
static void *launch_many(void *state) {
  Worker *worker = state;
  TileCall *call = NULL;
  TileError *error = bind(worker->fixture->module, "k", worker->fixture->address, &call);
  for (int i = 0; i < LAUNCHES && !error; i++) {
    error = tile_call_launch(call, worker);
    if (!error && i % 10 == 0) error = tile_synchronize(worker->fixture->device, worker);
  }
  tile_call_free(call);
  worker->failed = error != NULL;
  tile_error_free(error);
  return NULL;
}

static void test_threads(Checks *checks, const Fake *fake) {
  Fixture f;
  Worker workers[THREADS];
  pthread_t threads[THREADS];
  open_fixture(checks, fake, &f);
  for (int i = 0; i < THREADS; i++) {
    workers[i] = (Worker){&f, fake, true};
    if (!CHECK(checks, pthread_create(&threads[i], NULL, launch_many, &workers[i]) == 0)) return;
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    CHECK(checks, !workers[i].failed);
  }
  CHECK_INT(checks, fake->calls("cuLaunchKernelEx"), THREADS * LAUNCHES);
  CHECK_INT(checks, fake->calls("push"), fake->calls("pop"));
  close_fixture(checks, fake, &f);
}

int main(void) {
  Checks checks = {0};
  Fake fake;
  if (!CHECK(&checks, fake_load(&fake))) return check_report(&checks);
  test_each(&checks, &fake);
  test_fault(&checks, &fake);
  test_found_by_others(&checks, &fake);
  test_suspects(&checks, &fake);
  test_no_faults(&checks, &fake);
  test_devices(&checks, &fake);
  test_clusters(&checks, &fake);
  test_shared(&checks, &fake);
  test_threads(&checks, &fake);
  return check_report(&checks);
}

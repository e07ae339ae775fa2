// The CUDA backend on a fake driver library (fake_cuda.c): which calls it makes, in which order, with which
// arguments; and what it says when one of them fails. FAKE_CUDA is the library's path.
#include <stdlib.h>

#include "fake_cuda.h"

#define KERNEL                                                                                               \
  "tile-launch-info 1\nentry k_entry\nkernel k\nvariant only\narch sm_100a\nblock 128\n"                     \
  "grid (ceildiv M 16) 2 1\nshared 70000\n"
#define ARGUMENTS                                                                                            \
  "tensor A bf16 readwrite (M) 64\nmap 0 A box 16 64 swizzle 128 load\n"                                     \
  "param ptr A\nparam size M\nparam stride A 0\nparam map 0\nparam scalar scale f32\nend\n"

static const char info[] = KERNEL "cluster 2 1 1\n" ARGUMENTS;
static const char overlapping[] = KERNEL "cluster 2 1 1\noverlap 1\n" ARGUMENTS;
static const char overlapping_alone[] = KERNEL "cluster 1 1 1\noverlap 1\n" ARGUMENTS;

static TileError *open_device(const char *library, const char *arch, TileDevice **out) {
  TileDeviceOptions options = {.arch = arch};
  void *state = NULL;
  *out = NULL;
  TileError *error = cuda_open_library(library, &options, &state);
  return error ? error : device_of(&backend_cuda, state, out);
}

static void logged(Checks *checks, const Fake *fake, const char *want) {
  CHECK_TEXT(checks, fake->log(), want);
  fake->reset();
}

static TileError *open_module(TileModule **out) {
  return fake_module(info, out);
}

static void test_opening(Checks *checks, const Fake *fake) {
  TileDevice *device;
  ok(checks, open_device(FAKE_CUDA, "sm_100a", &device));
  CHECK_TEXT(checks, tile_device_name(device), "Fake GPU (sm_100)");
  CHECK_TEXT(checks, tile_device_backend(device), "cuda");
  tile_device_close(device);
  logged(checks, fake,
         "cuInit(0)\ncuCtxGetCurrent()\ncuDeviceGetCount()\ncuDeviceGet(0)\ncuDevicePrimaryCtxRetain(40)"
         "\ncuDeviceGetName(40)\n"
         "cuDeviceGetAttribute(75, 40)\ncuDeviceGetAttribute(76, 40)\ncuDeviceGetAttribute(16, "
         "40)\ncuDeviceGetAttribute(97, 40)\n"
         "cuDevicePrimaryCtxRelease(40)\n");
  fake->current((void *)0xAB);  // the caller has a context: that one, and nothing is retained
  ok(checks, open_device(FAKE_CUDA, NULL, &device));
  tile_device_close(device);
  logged(checks, fake,
         "cuInit(0)\ncuCtxGetCurrent()\ncuCtxGetDevice()\ncuDeviceGetName(7)\ncuDeviceGetAttribute(75, "
         "7)\ncuDeviceGetAttribute(76, 7)\ncuDeviceGetAttribute(16, 7)\ncuDeviceGetAttribute(97, 7)\n");
}

static void test_refusals(Checks *checks, const Fake *fake) {
  TileDevice *device;
  says(checks, open_device("/nowhere/libcuda.so", NULL, &device), TILE_UNAVAILABLE, "no CUDA driver here");
  says(checks, open_device("libm.so.6", NULL, &device), TILE_UNAVAILABLE, "too old: it has no cuInit and ");
  fake->gpu(0, 0, 0);
  says(checks, open_device(FAKE_CUDA, NULL, &device), TILE_UNAVAILABLE, "finds no GPU");
  fake->fail("cuInit", 100);
  says(checks, open_device(FAKE_CUDA, NULL, &device), TILE_UNAVAILABLE, "no usable GPU: cuInit: ");
  fake->fail("", 0);
  fake->gpu(1, 9, 0);
  says(checks, open_device(FAKE_CUDA, "sm_100a", &device), TILE_UNAVAILABLE,
       "is for sm_100a; the GPU here is Fake GPU (sm_90), which cannot run it; use the emulator instead "
       "(backend \"emu\")");
  // …a is exact, …f and plain numbers allow later minors.
  fake->gpu(1, 10, 3);
  says(checks, open_device(FAKE_CUDA, "sm_100a", &device), TILE_UNAVAILABLE, "sm_103");
  ok(checks, open_device(FAKE_CUDA, "sm_100f", &device));
  tile_device_close(device);
  says(checks, open_device(FAKE_CUDA, "sm_90a", &device), TILE_UNAVAILABLE, "sm_90a");
  says(checks, open_device(FAKE_CUDA, "nonsense", &device), TILE_UNAVAILABLE, "nonsense");
  fake->reset();
}

typedef struct {
  TileDevice *device;
  TileModule *module;
  TileCall *call;
  uint64_t address;
} Fixture;

static void open_fixture_of(Checks *checks, const Fake *fake, Fixture *f, const char *text) {
  const TileKernel *kernel;
  fake->reset();
  ok(checks, open_device(FAKE_CUDA, "sm_100a", &f->device));
  ok(checks, fake_module(text, &f->module));
  fake->reset();
  ok(checks, tile_module_load(f->module, f->device));
  bool clusters = strstr(text, "cluster 2") != NULL;
  logged(
      checks, fake,
      clusters
          ? "push(0xc0)\ncuModuleLoadDataEx(\".version\", 2, 5 6 4095)\ncuModuleGetFunction(0xd0, k_entry)\n"
            "cuFuncSetAttribute(0xf0, 8, 70000)\ncuOccupancyMaxActiveClusters(0xf0)\npop()\n"
          : "push(0xc0)\ncuModuleLoadDataEx(\".version\", 2, 5 6 4095)\ncuModuleGetFunction(0xd0, k_entry)\n"
            "cuFuncSetAttribute(0xf0, 8, 70000)\npop()\n");
  ok(checks, tile_module_find(f->module, "k", &kernel));
  ok(checks, tile_call_new(kernel, &f->call));
  ok(checks, tile_alloc(f->device, 120 * 128, "A", &f->address));
  logged(checks, fake, "push(0xc0)\ncuMemAlloc(15360)\npop()\n");
  TileTensor tensor = {f->address, TILE_BF16, 2, (int64_t[]){120, 64}, NULL};
  ok(checks, tile_call_tensor(f->call, "A", &tensor));
  ok(checks, tile_call_float(f->call, "scale", 0.5));
}

static void open_fixture(Checks *checks, const Fake *fake, Fixture *f) {
  open_fixture_of(checks, fake, f, info);
}

static void close_fixture(Checks *checks, const Fake *fake, Fixture *f) {
  tile_call_free(f->call);
  ok(checks, tile_free(f->device, f->address));
  fake->reset();
  tile_module_close(f->module);
  tile_device_close(f->device);
  logged(checks, fake, "push(0xc0)\ncuModuleUnload(0xd0)\npop()\ncuDevicePrimaryCtxRelease(40)\n");
}

// The log of one launch of 120 rows, with `before` and `after` around the launch itself.
static void launched(Checks *checks, const Fake *fake, const Fixture *f, const char *stream,
                     const char *before, const char *after) {
  char want[2000];
  unsigned long long address = f->address;
  snprintf(want, sizeof want,
           "push(0xc0)\n"
           "cuTensorMapEncodeTiled(aligned 1, type 9, rank 2, 0x%llx, size 64 120, stride 128, box 64 16, "
           "step 1 1, 0 3 2 0)\n"
           "pop()\npush(0xc0)\n"
           "%scuLaunchKernelEx(0xf0, grid 8 2 1, block 128 1 1, shared 70000, stream %s, attribute 4: 2 1 1, "
           "(nil) | %llx 120 64 77 0.5)\n"
           "%spop()\n",
           address, before, stream, address, after);
  logged(checks, fake, want);
}

static void test_launch(Checks *checks, const Fake *fake) {
  Fixture f;
  open_fixture(checks, fake, &f);
  ok(checks, tile_call_launch(f.call, (void *)0x55));
  launched(checks, fake, &f, "0x55", "", "");
  ok(checks, tile_synchronize(f.device, (void *)0x55));
  logged(checks, fake, "push(0xc0)\ncuStreamSynchronize(0x55)\npop()\n");
  double seconds;
  ok(checks, tile_call_time(f.call, NULL, &seconds));
  CHECK(checks, seconds == 2.5e-3);
  launched(checks, fake, &f, "(nil)", "cuEventCreate(0)\ncuEventCreate(0)\ncuEventRecord(0xe0, (nil))\n",
           "cuEventRecord(0xe1, (nil))\ncuEventSynchronize(0xe1)\ncuEventElapsedTime(0xe0, "
           "0xe1)\ncuEventDestroy(0xe0)\n"
           "cuEventDestroy(0xe1)\n");
  close_fixture(checks, fake, &f);
}

// What the launches say of their attributes, one after the other.
static void attributes(Checks *checks, const Fake *fake, const char *first, const char *second) {
  const char *at = strstr(fake->log(), "attribute ");
  CHECK(checks, at && strncmp(at, first, strlen(first)) == 0);
  at = at ? strstr(at, "\ncuLaunchKernelEx") : NULL;
  at = at ? strstr(at, "attribute ") : NULL;
  CHECK(checks, second ? at && strncmp(at, second, strlen(second)) == 0 : !at);
  if (checks->failed) fprintf(stderr, "%s", fake->log());
  fake->reset();
}

// A launch that may overlap says so; where the driver refuses that, it is made again without.
static void test_overlap(Checks *checks, const Fake *fake) {
  Fixture f;
  open_fixture_of(checks, fake, &f, overlapping);
  ok(checks, tile_call_launch(f.call, NULL));
  attributes(checks, fake, "attribute 4: 2 1 1, attribute 6: 1 0 0, (nil)", NULL);
  fake->fail_call("cuLaunchKernelEx", 1, 801);
  ok(checks, tile_call_launch(f.call, NULL));
  attributes(checks, fake, "attribute 4: 2 1 1, attribute 6: 1 0 0, (nil)", "attribute 4: 2 1 1, (nil)");
  fake->fail("cuLaunchKernelEx", 1);  // it is not the attribute
  says(checks, tile_call_launch(f.call, NULL), TILE_INVALID, "cuLaunchKernelEx: CUDA_ERROR_INVALID_VALUE");
  attributes(checks, fake, "attribute 4: 2 1 1, attribute 6: 1 0 0, (nil)", "attribute 4: 2 1 1, (nil)");
  fake->fail("cuLaunchKernelEx", 2);
  says(checks, tile_call_launch(f.call, NULL), TILE_UNAVAILABLE, "CUDA_ERROR_OUT_OF_MEMORY");
  attributes(checks, fake, "attribute 4: 2 1 1, attribute 6: 1 0 0, (nil)", NULL);
  close_fixture(checks, fake, &f);
  open_fixture_of(checks, fake, &f, overlapping_alone);
  fake->fail_call("cuLaunchKernelEx", 1, 1);
  ok(checks, tile_call_launch(f.call, NULL));
  attributes(checks, fake, "attribute 6: 1 0 0, (nil)", "attribute -1: 0 0 0, (nil)");
  close_fixture(checks, fake, &f);
}

static void test_copies(Checks *checks, const Fake *fake) {
  Fixture f;
  char back[4] = "";
  open_fixture(checks, fake, &f);
  ok(checks, tile_write(f.device, f.address + 8, "abc", 4));
  ok(checks, tile_read(f.device, f.address + 8, back, 4));
  CHECK_TEXT(checks, back, "abc");
  logged(
      checks, fake,
      "push(0xc0)\ncuMemcpyHtoD(4)\ncuStreamSynchronize((nil))\npop()\npush(0xc0)\ncuMemcpyDtoH(4)\npop()\n");
  close_fixture(checks, fake, &f);
}

// Every failure is a value that names the call, and the context is popped all the same.
static void test_failures(Checks *checks, const Fake *fake) {
  Fixture f;
  uint64_t address;
  open_fixture(checks, fake, &f);
  fake->fail("cuMemAlloc", 2);
  says(checks, tile_alloc(f.device, 5, "B", &address), TILE_UNAVAILABLE,
       "cuMemAlloc of 5 bytes for B: CUDA_ERROR_OUT_OF_MEMORY");
  logged(checks, fake, "push(0xc0)\ncuMemAlloc(5)\npop()\n");
  fake->fail("cuTensorMapEncodeTiled", 1);
  says(checks, tile_call_launch(f.call, NULL), TILE_INVALID,
       "cuTensorMapEncodeTiled: CUDA_ERROR_INVALID_VALUE");
  CHECK(checks, strstr(fake->log(), "cuLaunchKernelEx") == NULL);
  fake->reset();
  fake->fail("cuLaunchKernelEx", 1);
  says(checks, tile_call_launch(f.call, NULL), TILE_INVALID, "kernel k: cuLaunchKernelEx");
  size_t length = strlen(fake->log());
  CHECK(checks, length > 6 && strcmp(fake->log() + length - 6, "pop()\n") == 0);
  fake->reset();
  TileModule *second;
  ok(checks, open_module(&second));
  fake->fail("cuModuleLoadDataEx", 218);
  says(checks, tile_module_load(second, f.device), TILE_INVALID, "ptxas says no");
  fake->reset();
  tile_module_close(second);
  logged(checks, fake, "");  // it was never loaded
  close_fixture(checks, fake, &f);
}

int main(void) {
  Checks checks = {0};
  Fake fake;
  if (!CHECK(&checks, fake_load(&fake))) return check_report(&checks);
  test_opening(&checks, &fake);
  test_refusals(&checks, &fake);
  test_launch(&checks, &fake);
  test_overlap(&checks, &fake);
  test_copies(&checks, &fake);
  test_failures(&checks, &fake);
  return check_report(&checks);
}

// A program that embeds the runtime: it includes tile.h and nothing else of ours. One kernel from memory, on
// the emulator, with strided tensors; and two threads with a module each on one device.
#include <pthread.h>
#include <stdlib.h>

#include "embedding.h"
#include "tile.h"

static const char info[] = "tile-launch-info 1\n"
                           "entry add\nkernel add\nvariant only\narch sm_100a\nblock 32\ngrid (ceildiv N 32) "
                           "M 1\ncluster 1 1 1\nshared 0\n"
                           "tensor x i32 read M N\ntensor y i32 readwrite M N\n"
                           "param ptr x\nparam ptr y\nparam size N\nparam stride x 0\nparam stride y "
                           "0\nparam scalar factor i32\nend\n";

// y[i, j] += factor * x[i, j]
static const char code[] =
    ".visible .entry add(.param .u64 x, .param .u64 y, .param .u32 N, .param .u64 sx, .param .u64 sy, .param "
    ".u32 factor)\n"
    "{\n"
    "  .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<9>;\n"
    "  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r1, %r1, 32, %r2;\n"
    "  ld.param.u32 %r3, [N]; setp.ge.u32 %p, %r1, %r3; @%p ret;\n"
    "  mov.u32 %r4, %ctaid.y; cvt.u64.u32 %d1, %r4; cvt.u64.u32 %d2, %r1;\n"
    "  ld.param.u64 %d3, [sx]; ld.param.u64 %d4, [sy]; ld.param.u64 %d5, [x]; ld.param.u64 %d6, [y];\n"
    "  mad.lo.u64 %d7, %d1, %d3, %d2; mad.lo.u64 %d8, %d1, %d4, %d2;\n"
    "  shl.b64 %d7, %d7, 2; shl.b64 %d8, %d8, 2; add.u64 %d7, %d7, %d5; add.u64 %d8, %d8, %d6;\n"
    "  ld.global.u32 %r5, [%d7]; ld.global.u32 %r6, [%d8]; ld.param.u32 %r7, [factor];\n"
    "  mad.lo.u32 %r6, %r5, %r7, %r6; st.global.u32 [%d8], %r6;\n"
    "  ret;\n"
    "}\n";

enum { ROWS = 3, COLUMNS = 40, PITCH = 50 };

// Runs the kernel on `device` with tensors of ROWS x COLUMNS, x compact, y with a pitch.
static void run(Checks *checks, TileDevice *device, int32_t factor) {
  TileModule *module = NULL;
  TileCall *call = NULL;
  const TileKernel *kernel;
  uint64_t x = 0, y = 0;
  int32_t x_host[ROWS * COLUMNS], y_host[ROWS * PITCH];
  for (int i = 0; i < ROWS * COLUMNS; i++) x_host[i] = i;
  for (int i = 0; i < ROWS * PITCH; i++) y_host[i] = 1000;
  char *file = embed_file(info, code);
  if (!embed_ok(checks, tile_module_open_memory(file, strlen(file), "add.ptx", &module))) return;
  free(file);
  embed_ok(checks, tile_module_find(module, NULL, &kernel));
  embed_ok(checks, tile_module_load(module, device));
  embed_ok(checks, tile_call_new(kernel, &call));
  embed_ok(checks, tile_alloc(device, sizeof x_host, "x", &x));
  embed_ok(checks, tile_alloc(device, sizeof y_host, "y", &y));
  embed_ok(checks, tile_write(device, x, x_host, sizeof x_host));
  embed_ok(checks, tile_write(device, y, y_host, sizeof y_host));
  int64_t shape[] = {ROWS, COLUMNS}, strides[] = {PITCH, 1}, wanted[2];
  TileTensor x_tensor = {x, TILE_I32, 2, shape, NULL}, y_tensor = {y, TILE_I32, 2, shape, strides};
  embed_ok(checks, tile_call_tensor(call, "x", &x_tensor));
  embed_ok(checks, tile_call_shape(call, "y", wanted));
  CHECK(checks, wanted[0] == ROWS && wanted[1] == COLUMNS);
  embed_ok(checks, tile_call_tensor(call, "y", &y_tensor));
  embed_ok(checks, tile_call_int(call, "factor", factor));
  embed_ok(checks, tile_call_launch(call, NULL));
  double seconds;
  embed_ok(checks, tile_call_time(call, NULL, &seconds));  // a second launch adds again
  CHECK(checks, seconds > 0);
  embed_ok(checks, tile_synchronize(device, NULL));
  embed_ok(checks, tile_read(device, y, y_host, sizeof y_host));
  int wrong = 0;
  for (int i = 0; i < ROWS * PITCH; i++) {
    bool inside = i % PITCH < COLUMNS;
    wrong += y_host[i] != 1000 + (inside ? 2 * factor * (i / PITCH * COLUMNS + i % PITCH) : 0);
  }
  CHECK_INT(checks, wrong, 0);
  embed_ok(checks, tile_free(device, x));
  embed_ok(checks, tile_free(device, y));
  tile_call_free(call);
  tile_module_close(module);
}

typedef struct {
  Checks checks;
  TileDevice *device;
  int32_t factor;
} Worker;

static void *work(void *data) {
  Worker *worker = data;
  for (int i = 0; i < 10; i++) run(&worker->checks, worker->device, worker->factor);
  return NULL;
}

static void test_threads(Checks *checks, TileDevice *device) {
  Worker workers[2] = {{.device = device, .factor = 3}, {.device = device, .factor = -7}};
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) CHECK_INT(checks, pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  for (int i = 0; i < 2; i++) {
    pthread_join(threads[i], NULL);
    checks->done += workers[i].checks.done;
    checks->failed += workers[i].checks.failed;
  }
}

static void misses(Checks *checks, TileError *error, const char *part) {
  CHECK_INT(checks, tile_error_status(error), TILE_INVALID);
  if (!CHECK(checks, strstr(tile_error_message(error), part) != NULL))
    fprintf(stderr, "  '%s' does not say '%s'\n", tile_error_message(error), part);
  tile_error_free(error);
}

static void test_copies_outside(Checks *checks, TileDevice *device) {
  uint64_t address;
  static char bytes[200];
  embed_ok(checks, tile_alloc(device, 100, "weights", &address));
  misses(checks, tile_write(device, address + 8, bytes, 100),
         "the nearest allocation below, 'weights', has 100 bytes, the access begins at its byte 8");
  misses(checks, tile_read(device, address, bytes, 101), "101 bytes at device address 0x");
  misses(checks, tile_write(device, 999, bytes, 4), "4 bytes at device address 0x3e7: a null pointer");
  misses(checks, tile_free(device, address + 4), "is not the start of an allocation");
  embed_ok(checks, tile_free(device, address));
}

static void test_errors(Checks *checks) {
  TileDevice *device;
  TileDeviceOptions options = {.backend = "opencl"};
  TileError *error = tile_device_open(&options, &device);
  CHECK_INT(checks, tile_error_status(error), TILE_INVALID);
  CHECK_TEXT(checks, tile_error_message(error),
             "no backend \"opencl\"; there are auto, cuda, cuda:N and emu");
  tile_error_free(error);
  CHECK_INT(checks, tile_error_status(NULL), TILE_OK);
  CHECK_TEXT(checks, tile_error_message(NULL), "");
  TileModule *module;
  error = tile_module_open("/nowhere/k.cubin", &module);
  CHECK_INT(checks, tile_error_status(error), TILE_INVALID);
  CHECK(checks, module == NULL);
  tile_error_free(error);
  tile_error_free(NULL);
  tile_module_close(NULL);
  tile_device_close(NULL);
  tile_call_free(NULL);
}

int main(void) {
  Checks checks = {0};
  TileDevice *device;
  TileDeviceOptions options = {.backend = "emu", .order = "random:3", .checks = "mbarrier,exit", .sms = 2};
  if (embed_ok(&checks, tile_device_open(&options, &device))) {
    CHECK_TEXT(&checks, tile_device_backend(device), "emu");
    run(&checks, device, 2);
    test_threads(&checks, device);
    test_copies_outside(&checks, device);
    tile_device_close(device);
  }
  test_errors(&checks);
  return check_report(&checks);
}

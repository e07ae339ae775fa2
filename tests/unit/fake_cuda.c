// A libcuda that has no GPU: a shared library with the symbols that the runtime loads. It writes each call
// into a log, keeps device memory in host memory, counts what is alive, and fails where it is told to. Layouts are
// written down by offset, not taken from the runtime. With FAKE_OLD it is a driver that lacks two functions.
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BLOCKS = 256, MAX_COUNTED = 64 };

typedef struct {
  char symbol[40];
  int calls;
} Counted;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char log_text[1 << 16];
static size_t log_length;
static char failing[64];
static int failing_call;  // 0: every call of it
static int failure, major, minor, devices;
static int next_fault, fault;  // of the next launch; what every call returns since it
static int active_clusters, largest_cluster;
static bool shows_params;
static void *current_context;
static void *blocks[MAX_BLOCKS];  // device memory
static int modules, events, primaries;
static Counted counted[MAX_COUNTED];
static _Thread_local int pushed;
static int unbalanced;  // pops without a push

static void free_blocks(void) {
  for (int i = 0; i < MAX_BLOCKS; i++) {
    free(blocks[i]);
    blocks[i] = NULL;
  }
}

// All but what is alive.
void fake_reset(void) {
  log_length = 0;
  log_text[0] = failing[0] = '\0';
  failure = failing_call = next_fault = fault = unbalanced = 0;
  major = 10;
  minor = 0;
  devices = 1;
  active_clusters = 70;
  largest_cluster = 8;
  shows_params = true;
  current_context = NULL;
  memset(counted, 0, sizeof counted);
}

const char *fake_log(void) {
  return log_text;
}

// Every call of `symbol` fails.
void fake_fail(const char *symbol, int result) {
  snprintf(failing, sizeof failing, "%s", symbol);
  failing_call = 0;
  failure = result;
}

// One call of `symbol` fails, counted from 1 since the last reset.
void fake_fail_call(const char *symbol, int call, int result) {
  fake_fail(symbol, result);
  failing_call = call;
}

// The kernel of the next launch faults: the launch succeeds, and what comes later returns `result`.
void fake_fault(int result) {
  next_fault = result;
}

void fake_gpu(int count, int new_major, int new_minor) {
  devices = count;
  major = new_major;
  minor = new_minor;
}

void fake_clusters(int active, int largest) {
  active_clusters = active;
  largest_cluster = largest;
}

void fake_current(void *context) {
  current_context = context;
}

// Whether launches show the parameters of the kernel of cuda_test.c.
void fake_params(bool shown) {
  shows_params = shown;
}

static Counted *count_of(const char *symbol) {
  int i = 0;
  while (counted[i].calls && strcmp(counted[i].symbol, symbol) != 0) i++;
  snprintf(counted[i].symbol, sizeof counted[i].symbol, "%s", symbol);
  return &counted[i];
}

// Since the last reset.
int fake_calls(const char *symbol) {
  pthread_mutex_lock(&lock);
  int calls = count_of(symbol)->calls;
  pthread_mutex_unlock(&lock);
  return calls;
}

// Things made and not given back, and contexts that were pushed and not popped or the other way round.
int fake_alive(void) {
  int alive = modules + events + primaries + pushed + unbalanced;
  for (int i = 0; i < MAX_BLOCKS; i++) alive += blocks[i] != NULL;
  return alive;
}

// Logs a call; its result.
#define CALL(symbol, ...) add_call(symbol, __VA_ARGS__)

__attribute__((format(printf, 2, 3))) static int add_call(const char *symbol, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  pthread_mutex_lock(&lock);
  size_t room = sizeof log_text - log_length;
  if (room > sizeof text + 64)
    log_length += (size_t)snprintf(log_text + log_length, room, "%s(%s)\n", symbol, text);
  int call = ++count_of(symbol)->calls;
  bool fails = strcmp(failing, symbol) == 0 && (failing_call == 0 || failing_call == call);
  // Switching contexts tells nothing of what runs in them.
  bool switches = strcmp(symbol, "push") == 0 || strcmp(symbol, "pop") == 0;
  int result = fails ? failure : switches ? 0 : fault;
  pthread_mutex_unlock(&lock);
  return result;
}

static void *handle(uintptr_t number) {
  return (void *)number;
}

int cuInit(unsigned flags) {
  return CALL("cuInit", "%u", flags);
}

int cuDriverGetVersion(int *version) {
#ifdef FAKE_OLD
  *version = 11040;
#else
  *version = 12080;
#endif
  return 0;
}

int cuGetErrorName(int result, const char **text) {
  *text = result == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == 719 ? "CUDA_ERROR_LAUNCH_FAILED"
          : result == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                          : "CUDA_ERROR_INVALID_VALUE";
  return 0;
}

int cuGetErrorString(int result, const char **text) {
  *text = result == 719 ? "unspecified launch failure" : "some text";
  return 0;
}

int cuDeviceGetCount(int *count) {
  *count = devices;
  return CALL("cuDeviceGetCount", "%s", "");
}

int cuDeviceGet(int *device, int ordinal) {
  *device = 40 + ordinal;
  return CALL("cuDeviceGet", "%d", ordinal);
}

int cuDeviceGetName(char *name, int length, int device) {
  snprintf(name, (size_t)length, "Fake GPU");
  return CALL("cuDeviceGetName", "%d", device);
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
  *value = attribute == 75   ? major
           : attribute == 76 ? minor
           : attribute == 16 ? 148
           : attribute == 97 ? 232448
                             : -1;
  return CALL("cuDeviceGetAttribute", "%d, %d", attribute, device);
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
  *context = handle(0xC0 + (unsigned)device - 40);
  int result = CALL("cuDevicePrimaryCtxRetain", "%d", device);
  primaries += result == 0;
  return result;
}

// What was in the context goes with it.
int cuDevicePrimaryCtxRelease_v2(int device) {
  primaries--;
  modules = events = 0;
  free_blocks();
  return CALL("cuDevicePrimaryCtxRelease", "%d", device);
}

int cuCtxGetCurrent(void **context) {
  *context = current_context;
  return CALL("cuCtxGetCurrent", "%s", "");
}

int cuCtxGetDevice(int *device) {
  *device = 7;
  return CALL("cuCtxGetDevice", "%s", "");
}

int cuCtxPushCurrent_v2(void *context) {
  int result = CALL("push", "%p", context);
  pushed += result == 0;
  return result;
}

int cuCtxPopCurrent_v2(void **context) {
  *context = NULL;
  if (pushed > 0)
    pushed--;
  else
    unbalanced++;
  return CALL("pop", "%s", "");
}

int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
  *module = handle(0xD0);
  int result = CALL("cuModuleLoadDataEx", "\"%.8s\", %u, %d %d %zu", (const char *)image, count, options[0],
                    options[1], (size_t)values[1]);
  if (result == 218) strcpy(values[0], "ptxas says no");
  modules += result == 0;
  return result;
}

int cuModuleUnload(void *module) {
  modules--;
  return CALL("cuModuleUnload", "%p", module);
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
  *function = handle(0xF0);
  return CALL("cuModuleGetFunction", "%p, %s", module, name);
}

int cuFuncSetAttribute(void *function, int attribute, int value) {
  return CALL("cuFuncSetAttribute", "%p, %d, %d", function, attribute, value);
}

int cuOccupancyMaxActiveClusters(int *clusters, void *function, const void *config) {
  (void)config;
  *clusters = active_clusters;
  return CALL("cuOccupancyMaxActiveClusters", "%p", function);
}

int cuOccupancyMaxPotentialClusterSize(int *size, void *function, const void *config) {
  (void)config;
  *size = largest_cluster;
  return CALL("cuOccupancyMaxPotentialClusterSize", "%p", function);
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  int result = CALL("cuMemAlloc", "%zu", bytes), i = 0;
  *address = 0;
  if (result) return result;
  pthread_mutex_lock(&lock);
  while (blocks[i]) i++;
  // As the driver does: a multiple of 256.
  blocks[i] = aligned_alloc(256, (bytes + 255) / 256 * 256);
  *address = (uint64_t)(uintptr_t)blocks[i];
  pthread_mutex_unlock(&lock);
  return 0;
}

int cuMemFree_v2(uint64_t address) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < MAX_BLOCKS; i++) {
    if ((uint64_t)(uintptr_t)blocks[i] != address) continue;
    free(blocks[i]);
    blocks[i] = NULL;
  }
  pthread_mutex_unlock(&lock);
  return CALL("cuMemFree", "%s", "");
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
  memcpy(handle((uintptr_t)to), from, bytes);
  return CALL("cuMemcpyHtoD", "%zu", bytes);
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
  memcpy(to, handle((uintptr_t)from), bytes);
  return CALL("cuMemcpyDtoH", "%zu", bytes);
}

#ifndef FAKE_OLD
int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *size,
                           const uint64_t *stride, const uint32_t *box, const uint32_t *element_stride,
                           int interleave, int swizzle, int promotion, int fill) {
  char sizes[120] = "", strides[120] = "", boxes[120] = "", steps[120] = "";
  memset(map, 0x77, 128);
  for (uint32_t i = 0; i < rank; i++) {
    sprintf(sizes + strlen(sizes), " %llu", (unsigned long long)size[i]);
    sprintf(boxes + strlen(boxes), " %u", box[i]);
    sprintf(steps + strlen(steps), " %u", element_stride[i]);
    if (i) sprintf(strides + strlen(strides), " %llu", (unsigned long long)stride[i - 1]);
  }
  return CALL("cuTensorMapEncodeTiled",
              "aligned %d, type %d, rank %u, %p, size%s, stride%s, box%s, step%s, %d %d %d %d",
              (uintptr_t)map % 64 == 0, type, rank, address, sizes, strides, boxes, steps, interleave,
              swizzle, promotion, fill);
}

// CUlaunchConfig: grid at 0, block at 12, shared at 24, stream at 32, attributes at 40, their count at 48; an
// attribute has 72 bytes, its number at 0, its value at 8.
int cuLaunchKernelEx(const void *config, void *function, void **params, void **extra) {
  uint32_t words[7], count, value[3] = {0};
  void *stream, *attributes;
  char shown[200] = "attribute -1: 0 0 0";
  memcpy(words, config, sizeof words);
  memcpy(&stream, (const char *)config + 32, sizeof stream);
  memcpy(&attributes, (const char *)config + 40, sizeof attributes);
  memcpy(&count, (const char *)config + 48, sizeof count);
  for (size_t i = 0, n = 0; i < count; i++) {
    const char *attribute = (const char *)attributes + i * 72;
    int id;
    memcpy(&id, attribute, sizeof id);
    memcpy(value, attribute + 8, sizeof value);
    n += (size_t)snprintf(shown + n, sizeof shown - n, "%sattribute %d: %u %u %u", i ? ", " : "", id,
                          value[0], value[1], value[2]);
  }
  // The test's kernel: ptr, size, stride, map, scalar f32.
  uint64_t pointer = 0, stride = 0;
  uint32_t size = 0;
  float scale = 0;
  uint8_t map = 0;
  if (shows_params) {
    memcpy(&pointer, params[0], 8);
    memcpy(&size, params[1], 4);
    memcpy(&stride, params[2], 8);
    memcpy(&map, params[3], 1);
    memcpy(&scale, params[4], 4);
  }
  int result =
      CALL("cuLaunchKernelEx",
           "%p, grid %u %u %u, block %u %u %u, shared %u, stream %p, %s, %p | %llx %u %llu %x %g", function,
           words[0], words[1], words[2], words[3], words[4], words[5], words[6], stream, shown, (void *)extra,
           (unsigned long long)pointer, size, (unsigned long long)stride, map, (double)scale);
  pthread_mutex_lock(&lock);
  if (result == 0 && next_fault) {
    fault = next_fault;
    next_fault = 0;
  }
  pthread_mutex_unlock(&lock);
  return result;
}
#endif

int cuStreamSynchronize(void *stream) {
  return CALL("cuStreamSynchronize", "%p", stream);
}

int cuEventCreate(void **event, unsigned flags) {
  static uintptr_t next;
  int result = CALL("cuEventCreate", "%u", flags);
  *event = result ? NULL : handle(0xE0 + next++ % 2);
  events += result == 0;
  return result;
}

int cuEventRecord(void *event, void *stream) {
  return CALL("cuEventRecord", "%p, %p", event, stream);
}

int cuEventSynchronize(void *event) {
  return CALL("cuEventSynchronize", "%p", event);
}

int cuEventElapsedTime(float *milliseconds, void *start, void *end) {
  *milliseconds = 2.5f;
  return CALL("cuEventElapsedTime", "%p, %p", start, end);
}

int cuEventDestroy_v2(void *event) {
  events--;
  return CALL("cuEventDestroy", "%p", event);
}

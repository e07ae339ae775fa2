// A libcuda that has no GPU: a shared library with the symbols that the runtime loads. It writes each call
// into a log, keeps device memory in host memory, and fails where it is told to. Layouts are written down by
// offset, not taken from the runtime.
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char log_text[1 << 16];
static size_t log_length;
static char failing[64];
static int failure, major = 10, minor = 0, devices = 1;
static void *current_context;

void fake_reset(void) {
  log_length = 0;
  log_text[0] = failing[0] = '\0';
  failure = 0;
  major = 10;
  minor = 0;
  devices = 1;
  current_context = NULL;
}

const char *fake_log(void) {
  return log_text;
}

void fake_fail(const char *symbol, int result) {
  snprintf(failing, sizeof failing, "%s", symbol);
  failure = result;
}

void fake_gpu(int count, int new_major, int new_minor) {
  devices = count;
  major = new_major;
  minor = new_minor;
}

void fake_current(void *context) {
  current_context = context;
}

// Logs a call; its result.
#define CALL(symbol, ...) (add_call(symbol, __VA_ARGS__), strcmp(failing, symbol) == 0 ? failure : 0)

__attribute__((format(printf, 2, 3))) static void add_call(const char *symbol, const char *format, ...) {
  va_list args;
  size_t room = sizeof log_text - log_length;
  log_length += (size_t)snprintf(log_text + log_length, room, "%s(", symbol);
  va_start(args, format);
  log_length += (size_t)vsnprintf(log_text + log_length, sizeof log_text - log_length, format, args);
  va_end(args);
  log_length += (size_t)snprintf(log_text + log_length, sizeof log_text - log_length, ")\n");
}

static void *handle(uintptr_t number) {
  return (void *)number;
}

int cuInit(unsigned flags) {
  return CALL("cuInit", "%u", flags);
}

int cuDriverGetVersion(int *version) {
  *version = 12080;
  return 0;
}

int cuGetErrorName(int result, const char **text) {
  *text = result == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == 719 ? "CUDA_ERROR_LAUNCH_FAILED"
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
  *value = attribute == 75 ? major : attribute == 76 ? minor : attribute == 16 ? 148 : -1;
  return CALL("cuDeviceGetAttribute", "%d, %d", attribute, device);
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
  *context = handle(0xC0);
  return CALL("cuDevicePrimaryCtxRetain", "%d", device);
}

int cuDevicePrimaryCtxRelease_v2(int device) {
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
  return CALL("push", "%p", context);
}

int cuCtxPopCurrent_v2(void **context) {
  *context = NULL;
  return CALL("pop", "%s", "");
}

int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
  *module = handle(0xD0);
  int result = CALL("cuModuleLoadDataEx", "\"%.8s\", %u, %d %d %zu", (const char *)image, count, options[0],
                    options[1], (size_t)values[1]);
  if (result) strcpy(values[0], "ptxas says no");
  return result;
}

int cuModuleUnload(void *module) {
  return CALL("cuModuleUnload", "%p", module);
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
  *function = handle(0xF0);
  return CALL("cuModuleGetFunction", "%p, %s", module, name);
}

int cuFuncSetAttribute(void *function, int attribute, int value) {
  return CALL("cuFuncSetAttribute", "%p, %d, %d", function, attribute, value);
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  int result = CALL("cuMemAlloc", "%zu", bytes);
  *address = result ? 0 : (uint64_t)(uintptr_t)calloc(bytes, 1);
  return result;
}

int cuMemFree_v2(uint64_t address) {
  free(handle((uintptr_t)address));
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

int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *size,
                           const uint64_t *stride, const uint32_t *box, const uint32_t *element_stride,
                           int interleave, int swizzle, int promotion, int fill) {
  memset(map, 0x77, 128);
  return CALL(
      "cuTensorMapEncodeTiled",
      "aligned %d, type %d, rank %u, %p, size %llu %llu, stride %llu, box %u %u, step %u %u, %d %d %d %d",
      (uintptr_t)map % 64 == 0, type, rank, address, (unsigned long long)size[0], (unsigned long long)size[1],
      (unsigned long long)stride[0], box[0], box[1], element_stride[0], element_stride[1], interleave,
      swizzle, promotion, fill);
}

// CUlaunchConfig: grid at 0, block at 12, shared at 24, stream at 32, attributes at 40, their count at 48; an
// attribute has 72 bytes, its number at 0, its value at 8.
int cuLaunchKernelEx(const void *config, void *function, void **params, void **extra) {
  uint32_t words[7], count, cluster[3] = {0};
  void *stream, *attributes;
  int id = -1;
  memcpy(words, config, sizeof words);
  memcpy(&stream, (const char *)config + 32, sizeof stream);
  memcpy(&attributes, (const char *)config + 40, sizeof attributes);
  memcpy(&count, (const char *)config + 48, sizeof count);
  if (count) {
    memcpy(&id, attributes, sizeof id);
    memcpy(cluster, (const char *)attributes + 8, sizeof cluster);
  }
  // The test's kernel: ptr, size, stride, map, scalar f32.
  uint64_t pointer, stride;
  uint32_t size;
  float scale;
  uint8_t map;
  memcpy(&pointer, params[0], 8);
  memcpy(&size, params[1], 4);
  memcpy(&stride, params[2], 8);
  memcpy(&map, params[3], 1);
  memcpy(&scale, params[4], 4);
  return CALL("cuLaunchKernelEx",
              "%p, grid %u %u %u, block %u %u %u, shared %u, stream %p, attribute %d: %u %u %u, %p | %llx %u "
              "%llu %x %g",
              function, words[0], words[1], words[2], words[3], words[4], words[5], words[6], stream, id,
              cluster[0], cluster[1], cluster[2], (void *)extra, (unsigned long long)pointer, size,
              (unsigned long long)stride, map, (double)scale);
}

int cuStreamSynchronize(void *stream) {
  return CALL("cuStreamSynchronize", "%p", stream);
}

int cuEventCreate(void **event, unsigned flags) {
  static uintptr_t next;
  *event = handle(0xE0 + next++ % 2);
  return CALL("cuEventCreate", "%u", flags);
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
  return CALL("cuEventDestroy", "%p", event);
}

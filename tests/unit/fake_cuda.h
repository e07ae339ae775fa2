// The fake driver library (fake_cuda.c) as the tests of the CUDA backend load it, and what they all do with it.
// FAKE_CUDA is its path.
#ifndef TILEC_TESTS_FAKE_CUDA_H
#define TILEC_TESTS_FAKE_CUDA_H

#include <dlfcn.h>

#include "check.h"
#include "core/module.h"
#include "cuda/backend_cuda.h"

typedef struct {
  void *library;
  void (*reset)(void);
  const char *(*log)(void);
  void (*fail)(const char *symbol, int result);
  void (*fail_call)(const char *symbol, int call, int result);
  void (*fault)(int result);
  void (*gpu)(int count, int major, int minor);
  void (*clusters)(int active, int largest);
  void (*current)(void *context);
  void (*params)(bool shown);
  int (*calls)(const char *symbol);
  int (*alive)(void);
} Fake;

static inline bool fake_load(Fake *fake) {
  fake->library = dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
  if (!fake->library) {
    fprintf(stderr, "  %s\n", dlerror());
    return false;
  }
  const struct {
    const char *name;
    void *slot;
  } symbols[] = {
      {"fake_reset", &fake->reset},         {"fake_log", &fake->log},         {"fake_fail", &fake->fail},
      {"fake_fail_call", &fake->fail_call}, {"fake_fault", &fake->fault},     {"fake_gpu", &fake->gpu},
      {"fake_clusters", &fake->clusters},   {"fake_current", &fake->current}, {"fake_params", &fake->params},
      {"fake_calls", &fake->calls},         {"fake_alive", &fake->alive}};
  for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
    void *symbol = dlsym(fake->library, symbols[i].name);
    if (!symbol) return false;
    memcpy(symbols[i].slot, &symbol, sizeof symbol);
  }
  fake->reset();
  return true;
}

// Through the fake library; `backend` and `arch` may be NULL.
static inline TileError *fake_open(const char *backend, const char *arch, TileDevice **out) {
  TileDeviceOptions options = {.backend = backend, .arch = arch};
  void *state = NULL;
  *out = NULL;
  TileError *error = cuda_open_library(FAKE_CUDA, &options, &state);
  return error ? error : device_of(&backend_cuda, state, out);
}

// PTX that holds nothing but launch information.
static inline TileError *fake_module(const char *info, TileModule **out) {
  size_t length = strlen(info);
  char *ptx = malloc(4 * length + 200);
  if (!ptx) return error_no_memory();
  int n = sprintf(ptx, ".version 8.6\n.const .align 1 .b8 __tile_launch_info[%zu] = {", length);
  for (size_t i = 0; i < length; i++) n += sprintf(ptx + n, "%s%d", i ? "," : "", info[i]);
  sprintf(ptx + n, "};\n");
  TileError *error = tile_module_open_memory(ptx, strlen(ptx), "k.ptx", out);
  free(ptx);
  return error;
}

static inline void ok(Checks *checks, TileError *error) {
  if (!CHECK(checks, error == NULL)) fprintf(stderr, "  %s\n", tile_error_message(error));
  tile_error_free(error);
}

static inline void says(Checks *checks, TileError *error, TileStatus status, const char *part) {
  CHECK_INT(checks, tile_error_status(error), status);
  if (!CHECK(checks, strstr(tile_error_message(error), part) != NULL))
    fprintf(stderr, "  %s\n", tile_error_message(error));
  tile_error_free(error);
}

#endif

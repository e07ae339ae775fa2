// dlopen, and a symbol for each row of driver.def.
#include "cuda/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

// ISO C has no cast from an object to a function pointer; POSIX says that copying the bits is what dlsym is
// for.
bool driver_load(void *library, const char *symbol, void *function) {
  void *found = dlsym(library, symbol);
  memcpy(function, &found, sizeof found);
  return found != NULL;
}

static TileError *too_old(const char *missing, int others, int version) {
  char which[40] = "", rest[40] = "";
  if (version) snprintf(which, sizeof which, ", of CUDA %d.%d,", version / 1000, version % 1000 / 10);
  if (others) snprintf(rest, sizeof rest, " and %d more of its kind", others);
  return error_new(
      TILE_UNAVAILABLE,
      "the CUDA driver here%s is too old: it has no %s%s; the driver of CUDA 12.8 or a later one "
      "has all that is needed",
      which, missing, rest);
}

TileError *driver_open(Driver *driver, const char *library) {
  *driver = (Driver){0};
  driver->library = dlopen(library ? library : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver->library) return error_new(TILE_UNAVAILABLE, "no CUDA driver here (%s)", dlerror());
  // The first that is missing, and how many more.
  const char *missing = NULL;
  int others = -1;
#define DRIVER(name, symbol, parameters)                                                                     \
  if (!driver_load(driver->library, symbol, &driver->name)) missing = others++ < 0 ? symbol : missing;
#include "cuda/driver.def"
#undef DRIVER
  if (!missing) return NULL;
  int version = 0;
  if (driver->driver_version) driver->driver_version(&version);
  TileError *error = too_old(missing, others, version);
  driver_close(driver);
  return error;
}

void driver_close(Driver *driver) {
  if (driver->library) dlclose(driver->library);
  *driver = (Driver){0};
}

#define TRAPPED "; a device_assert that failed ends so, after its message"

// Results after which a context is unusable (cuda.h: "the process must be terminated and relaunched").
static const CudaFault faults[] = {
    {214, TILE_FAULT, "CUDA_ERROR_ECC_UNCORRECTABLE", ""},
    {700, TILE_FAULT, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "; in the emulator the access has a place in the source (tile-run --device emu)"},
    {702, TILE_HANG, "CUDA_ERROR_LAUNCH_TIMEOUT", ""},
    {710, TILE_FAULT, "CUDA_ERROR_ASSERT", ""},
    {714, TILE_FAULT, "CUDA_ERROR_HARDWARE_STACK_ERROR", ""},
    {715, TILE_FAULT, "CUDA_ERROR_ILLEGAL_INSTRUCTION", TRAPPED},
    {716, TILE_FAULT, "CUDA_ERROR_MISALIGNED_ADDRESS", ""},
    {717, TILE_FAULT, "CUDA_ERROR_INVALID_ADDRESS_SPACE", ""},
    {718, TILE_FAULT, "CUDA_ERROR_INVALID_PC", ""},
    {719, TILE_FAULT, "CUDA_ERROR_LAUNCH_FAILED", TRAPPED},
    {721, TILE_FAULT, "CUDA_ERROR_TENSOR_MEMORY_LEAK", ""},
};

const CudaFault *driver_fault(CudaResult result) {
  for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
    if (faults[i].result == result) return &faults[i];
  return NULL;
}

TileError *driver_error(const Driver *driver, CudaResult result, const char *what) {
  if (result == 0) return NULL;
  const char *name = NULL, *text = NULL;
  if (driver->error_name(result, &name) != 0 || !name) name = "an unknown CUDA error";
  if (driver->error_string(result, &text) != 0 || !text) text = "no description";
  const CudaFault *fault = driver_fault(result);
  TileStatus status = fault ? fault->status : result == CUDA_OUT_OF_MEMORY ? TILE_UNAVAILABLE : TILE_INVALID;
  return error_new(status, "%s%s%s (%d: %s)", what ? what : "", what ? ": " : "", name, result, text);
}

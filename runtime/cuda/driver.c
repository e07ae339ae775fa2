// dlopen, and a symbol for each row of driver.def.
#include "cuda/driver.h"

#include <dlfcn.h>
#include <string.h>

// ISO C has no cast from an object to a function pointer; POSIX says that copying the bits is what dlsym is
// for.
static bool load(void *library, const char *symbol, void *function) {
  void *found = dlsym(library, symbol);
  memcpy(function, &found, sizeof found);
  return found != NULL;
}

TileError *driver_open(Driver *driver, const char *library) {
  *driver = (Driver){0};
  driver->library = dlopen(library ? library : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver->library)
    return error_new(TILE_UNAVAILABLE, "no CUDA driver here (%s); the emulator (backend \"emu\") needs none",
                     dlerror());
  const char *missing = NULL;
#define DRIVER(name, symbol, parameters)                                                                     \
  if (!load(driver->library, symbol, &driver->name) && !missing) missing = symbol;
#include "cuda/driver.def"
#undef DRIVER
  if (!missing) return NULL;
  driver_close(driver);
  return error_new(TILE_UNAVAILABLE, "the CUDA driver here is too old: it has no %s", missing);
}

void driver_close(Driver *driver) {
  if (driver->library) dlclose(driver->library);
  *driver = (Driver){0};
}

static TileStatus status_of(CudaResult result) {
  if (result == CUDA_OUT_OF_MEMORY) return TILE_UNAVAILABLE;
  if (result == CUDA_LAUNCH_TIMEOUT) return TILE_HANG;
  return result >= CUDA_FIRST_FAULT && result <= CUDA_LAST_FAULT ? TILE_FAULT : TILE_INVALID;
}

TileError *driver_error(const Driver *driver, CudaResult result, const char *what) {
  if (result == 0) return NULL;
  const char *name = NULL, *text = NULL;
  if (driver->error_name(result, &name) != 0 || !name) name = "an unknown CUDA error";
  if (driver->error_string(result, &text) != 0 || !text) text = "no description";
  return error_new(status_of(result), "%s: %s (%d: %s)", what, name, result, text);
}

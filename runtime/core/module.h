// A module as the API holds it.
#ifndef TILE_CORE_MODULE_H
#define TILE_CORE_MODULE_H

#include "core/launch.h"

struct TileDevice {
  const Backend *backend;
  void *state;  // the backend's
};

struct TileModule {
  Pool pool;
  Artifact artifact;
  LaunchInfo info;
  TileKernel *kernels;
  int nkernels;
  TileDevice *device;  // where the code is, or NULL
  void *code;          // the backend's
};

// tile_module_open, where `name` stands for the file in messages.
TileError *module_open_named(const char *path, const char *name, TileModule **out);

// A device with a state that the caller opened (a test's own driver library).
TileError *device_of(const Backend *backend, void *state, TileDevice **out);

#endif

// What a device must do, as a table of functions; the two tables are named here. `device` and `code` are the
// backend's own.
#ifndef TILE_CORE_BACKEND_H
#define TILE_CORE_BACKEND_H

#include "core/artifact.h"
#include "core/tensor_map.h"

// A launch with everything decided but the encoding of its tensor maps.
typedef struct {
  const InfoEntry *entry;  // NULL: nothing to launch
  uint32_t grid[3];
  uint8_t *block;         // the parameter block, aligned to 64, maps not filled in yet
  const TensorMap *maps;  // entry->nmaps of them
} LaunchPlan;

typedef struct {
  const char *name;
  TileError *(*open)(const TileDeviceOptions *options, void **device);
  void (*close)(void *device);
  // For people; lives as long as the device.
  const char *(*describe)(const void *device);
  // Of the GPU, as tilec spells it; NULL: any. Lives as long as the device.
  const char *(*arch)(const void *device);
  // The code of `info`'s entries, in a cubin or (PTX) to be compiled now. `info` lives as long as the code.
  TileError *(*load)(void *device, const Artifact *artifact, const LaunchInfo *info, void **code);
  // What $sm_count is for an entry of loaded code: the number of SMs, or of those that whole clusters can fill.
  int (*sm_count)(const void *device, const void *code, int entry);
  void (*unload)(void *device, void *code);
  TileError *(*alloc)(void *device, uint64_t bytes, const char *name, uint64_t *address);
  TileError *(*release)(void *device, uint64_t address);
  TileError *(*write)(void *device, uint64_t address, const void *data, uint64_t bytes);
  TileError *(*read)(void *device, uint64_t address, void *data, uint64_t bytes);
  TileError *(*encode_map)(void *device, const TensorMap *map, uint8_t *out);
  // With `seconds` it waits for the end and measures.
  TileError *(*launch)(void *device, void *code, const LaunchPlan *plan, void *stream, double *seconds);
  TileError *(*synchronize)(void *device, void *stream);
} Backend;

extern const Backend backend_cuda;
extern const Backend backend_emu;

#endif

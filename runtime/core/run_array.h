// A tensor argument of tile-run: on the host compact and as bytes, on the device between red zones, with gaps between
// its rows when it has a pitch.
#ifndef TILE_CORE_RUN_ARRAY_H
#define TILE_CORE_RUN_ARRAY_H

#include "tile.h"

typedef struct {
  const TileParam *param;
  int64_t shape[TILE_MAX_RANK];
  uint64_t elements, bytes;
  uint8_t *data;
  uint64_t address;  // of the first element on the device
  int64_t pitch;     // elements from one row to the next on the device; 0: rows are adjacent
  uint64_t zone;     // bytes of each of the two red zones; 0: none
  bool given;        // by --in
  bool convert;      // files hold float32 where numpy lacks the type; floats of another width are rounded
} RunArray;

// Settles `elements` and `bytes` from the shape, and gets zeroed host memory.
TileError *run_array_shape(RunArray *array);
// Reads a .npy file of the parameter's dtype (of any float type, to convert); the array takes its shape. For 4-bit types a byte holds two
// elements.
TileError *run_array_read(RunArray *array, const char *path);
TileError *run_array_write(const RunArray *array, const char *path);
void run_array_free(RunArray *array);

// Numbers around 0: normally distributed floats, integers from -8 to 8 (0 to 15 without sign).
void run_array_random(RunArray *array, uint64_t seed);
// Bytes of ones: NaN in floats, so that an element that is never written shows.
void run_array_poison(RunArray *array);

// Allocates on the device and copies in; `bind` in the call.
TileError *run_array_place(RunArray *array, TileDevice *device, TileCall *call);
// Gives its memory on the device back; nothing where it was not placed. What the device says is not of interest any more.
void run_array_unplace(RunArray *array, TileDevice *device);
// Copies back. TILE_FAULT: the kernel wrote into a red zone.
TileError *run_array_fetch(RunArray *array, TileDevice *device);

uint64_t run_array_bits(const RunArray *array, uint64_t index);
double run_array_value(const RunArray *array, uint64_t index);

#endif

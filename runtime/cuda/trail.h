// What has been started and not yet waited for, so that a fault that the driver reports later can be given the
// name of a kernel; and the fault itself, after which a context takes nothing more.
#ifndef TILE_CUDA_TRAIL_H
#define TILE_CUDA_TRAIL_H

#include <pthread.h>

#include "cuda/driver.h"

enum { TRAIL_LENGTH = 8, TRAIL_NAME = 64 };

typedef struct {
  char kernel[TRAIL_NAME];
  CudaStream stream;
  uint64_t ticket;  // of its newest launch
} TrailLaunch;

typedef struct {
  pthread_mutex_t lock;
  uint64_t ticket;  // of the newest launch
  TrailLaunch launch[TRAIL_LENGTH];
  int count;
  bool more;        // older ones did not fit
  char cause[512];  // what ended the context; "": it works
} Trail;

// False without memory. A trail may be used by several threads.
bool trail_init(Trail *trail);
void trail_free(Trail *trail);

// After a launch that the driver took.
void trail_launched(Trail *trail, const char *kernel, CudaStream stream);
// A number to take before waiting for a stream, and to hand in when the wait has succeeded: what was launched on
// the stream until then is over.
uint64_t trail_now(Trail *trail);
void trail_finished(Trail *trail, CudaStream stream, uint64_t before);

// The error for a result that the call `what` returned; NULL for success. A fault names the kernels that can have
// caused it, and, from the second time on, what ended the context.
TileError *trail_error(Trail *trail, const Driver *driver, CudaResult result, const char *what);

#endif

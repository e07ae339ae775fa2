// The part of a program that uses CUDA by itself, beside tile.h: it makes a context current before a device is opened,
// and streams of its own.
#ifndef TESTS_GPU_CALLER_H
#define TESTS_GPU_CALLER_H

#include <stdbool.h>

typedef struct {
  void *library, *context;
  int device;
  int (*set_current)(void *context);
  int (*stream_create)(void **stream, unsigned flags);
  int (*release)(int device);
} Caller;

// Makes the first GPU's primary context the calling thread's. False: no driver, no GPU.
bool caller_open(Caller *caller);
// A stream that does not wait for the default stream, for the calling thread; NULL when there is none. It lives as long as
// the context.
void *caller_stream(const Caller *caller);
void caller_close(Caller *caller);

#endif

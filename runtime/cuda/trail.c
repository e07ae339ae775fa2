// Launches are kept by kernel and stream, with the ticket of the newest one.
#include "cuda/trail.h"

#include <stdio.h>
#include <string.h>

bool trail_init(Trail *trail) {
  *trail = (Trail){0};
  return pthread_mutex_init(&trail->lock, NULL) == 0;
}

void trail_free(Trail *trail) {
  pthread_mutex_destroy(&trail->lock);
}

static TrailLaunch *find(Trail *trail, const char *kernel, CudaStream stream) {
  for (int i = 0; i < trail->count; i++)
    if (trail->launch[i].stream == stream && strncmp(trail->launch[i].kernel, kernel, TRAIL_NAME - 1) == 0)
      return &trail->launch[i];
  return NULL;
}

static void drop(Trail *trail, int index) {
  trail->count--;
  memmove(&trail->launch[index], &trail->launch[index + 1],
          (size_t)(trail->count - index) * sizeof trail->launch[0]);
}

void trail_launched(Trail *trail, const char *kernel, CudaStream stream) {
  pthread_mutex_lock(&trail->lock);
  TrailLaunch *launch = find(trail, kernel, stream);
  if (!launch) {
    if (trail->count == TRAIL_LENGTH) {
      drop(trail, 0);
      trail->more = true;
    }
    launch = &trail->launch[trail->count++];
    snprintf(launch->kernel, sizeof launch->kernel, "%s", kernel);
    launch->stream = stream;
  }
  launch->ticket = ++trail->ticket;
  pthread_mutex_unlock(&trail->lock);
}

uint64_t trail_now(Trail *trail) {
  pthread_mutex_lock(&trail->lock);
  uint64_t now = trail->ticket;
  pthread_mutex_unlock(&trail->lock);
  return now;
}

void trail_finished(Trail *trail, CudaStream stream, uint64_t before) {
  pthread_mutex_lock(&trail->lock);
  for (int i = trail->count - 1; i >= 0; i--)
    if (trail->launch[i].stream == stream && trail->launch[i].ticket <= before) drop(trail, i);
  if (trail->count == 0) trail->more = false;
  pthread_mutex_unlock(&trail->lock);
}

// "kernel gemm", "kernel gemm or softmax": the newest first, each once.
static void print_suspects(const Trail *trail, char *text, size_t room) {
  size_t n = (size_t)snprintf(text, room, trail->count ? "kernel " : "a kernel launched by other means");
  for (int i = trail->count - 1; i >= 0 && n < room; i--) {
    bool again = false;
    for (int k = i + 1; k < trail->count; k++)
      again = again || strcmp(trail->launch[k].kernel, trail->launch[i].kernel) == 0;
    if (!again)
      n += (size_t)snprintf(text + n, room - n, "%s%s", i < trail->count - 1 ? " or " : "",
                            trail->launch[i].kernel);
  }
  if (trail->more && n < room) snprintf(text + n, room - n, " or an earlier one");
}

static TileError *first_fault(Trail *trail, TileError *plain, const CudaFault *fault, const char *what) {
  char suspects[TRAIL_LENGTH * (TRAIL_NAME + 4) + 40];
  print_suspects(trail, suspects, sizeof suspects);
  snprintf(trail->cause, sizeof trail->cause, "%.300s ended with %s", suspects, fault->name);
  return error_new(fault->status,
                   "%s: %s%s; found by %s. The CUDA context takes nothing more: every later call in it fails",
                   suspects, tile_error_message(plain), fault->hint, what);
}

TileError *trail_error(Trail *trail, const Driver *driver, CudaResult result, const char *what) {
  const CudaFault *fault = driver_fault(result);
  if (!fault) return driver_error(driver, result, what);
  TileError *plain = driver_error(driver, result, NULL), *error;
  pthread_mutex_lock(&trail->lock);
  if (trail->cause[0])
    error = error_new(fault->status, "%s: the CUDA context takes nothing more since %s", what, trail->cause);
  else
    error = first_fault(trail, plain, fault, what);
  pthread_mutex_unlock(&trail->lock);
  tile_error_free(plain);
  return error;
}

// The driver's functions by name, as the runtime finds them too.
#include "caller.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

static bool load(void *library, const char *symbol, void *function) {
  void *found = dlsym(library, symbol);
  memcpy(function, &found, sizeof found);
  return found != NULL;
}

bool caller_open(Caller *caller) {
  int (*init)(unsigned flags);
  int (*get)(int *device, int ordinal);
  int (*retain)(void **context, int device);
  *caller = (Caller){.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)};
  void *library = caller->library;
  return library && load(library, "cuInit", &init) && load(library, "cuDeviceGet", &get) &&
         load(library, "cuDevicePrimaryCtxRetain", &retain) &&
         load(library, "cuDevicePrimaryCtxRelease_v2", &caller->release) &&
         load(library, "cuCtxSetCurrent", &caller->set_current) &&
         load(library, "cuStreamCreate", &caller->stream_create) && init(0) == 0 &&
         get(&caller->device, 0) == 0 && retain(&caller->context, caller->device) == 0 &&
         caller->set_current(caller->context) == 0;
}

void *caller_stream(const Caller *caller) {
  enum { NON_BLOCKING = 1 };
  void *stream = NULL;
  caller->set_current(caller->context);
  return caller->stream_create(&stream, NON_BLOCKING) == 0 ? stream : NULL;
}

void caller_close(Caller *caller) {
  if (caller->context) caller->release(caller->device);
  if (caller->library) dlclose(caller->library);
  *caller = (Caller){0};
}

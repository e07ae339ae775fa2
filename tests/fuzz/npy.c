// Bytes as a .npy file.
#include "npy/npy.h"

#include <stdlib.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Npy npy;
  NpyError error;
  uint64_t count;
  if (!npy_parse("input.npy", data, size, &npy, &error)) return 0;
  if (!npy_count(&npy, &count) || count * npy.item_bytes != npy.bytes) abort();
  volatile uint32_t all = fuzz_hash(npy.data, npy.bytes);
  (void)all;
  npy_free(&npy);
  return 0;
}

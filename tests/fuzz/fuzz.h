// What a target is: a function that reads bytes from outside and returns, whatever they are. Under libFuzzer the fuzzer calls it,
// in replay programs main() of replay.c does.
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

// Always 0. A crash, a sanitizer's finding, a leak or an abort() of the target's own is a failure.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// FNV-1a: choices that an input makes for itself, the same on every machine.
static inline uint32_t fuzz_hash(const uint8_t *data, size_t size) {
  uint32_t h = 2166136261u;
  for (size_t i = 0; i < size; i++) h = (h ^ data[i]) * 16777619u;
  return h;
}

#endif

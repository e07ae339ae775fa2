// NumPy's .npy files: how tools exchange arrays with Python. Versions 1 to 3 are read, version 1 is written.
// Types that NumPy lacks (bf16, fp8) travel as unsigned integers or as raw bytes, V1 and V2. Errors are
// values with a text; nothing is printed.
#ifndef TILE_NPY_NPY_H
#define TILE_NPY_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NPY_MAX_DIMS = 8, NPY_ERROR_BYTES = 512 };

typedef struct {
  char descr[16];  // "<f4", "|u1", "|V2": byte order, kind, bytes of an element
  int ndim;        // 0: a scalar
  uint64_t shape[NPY_MAX_DIMS];
  size_t item_bytes;
  uint64_t bytes;  // of data
  void *data;      // row-major; malloc-ed by npy_read, freed by npy_free
} Npy;

typedef struct {
  char text[NPY_ERROR_BYTES];
} NpyError;

// Reads a row-major little-endian array of numbers or raw bytes.
bool npy_read(const char *path, Npy *out, NpyError *error);
// The same from memory; `name` is for the error text.
bool npy_parse(const char *name, const void *file, size_t length, Npy *out, NpyError *error);
void npy_free(Npy *npy);

// Writes descr, ndim, shape and data; item_bytes and bytes need not be set.
bool npy_write(const char *path, const Npy *npy, NpyError *error);

// Bytes of an element of this descr, 0 when it is none that these functions handle.
size_t npy_item_bytes(const char *descr);
// Elements of the shape; false on overflow.
bool npy_count(const Npy *npy, uint64_t *count);

#endif

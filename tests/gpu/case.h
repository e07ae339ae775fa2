// One launch of the suite: sizes, arrays with what is in them, and what must come out.
#ifndef TESTS_GPU_CASE_H
#define TESTS_GPU_CASE_H

#include "tile.h"

enum { MAX_ARRAYS = 8, MAX_SIZES = 8, GUARD = 512 };  // GUARD: bytes before and behind an array on a GPU

typedef struct {
  uint64_t state;
} Random;

uint64_t random_bits(Random *random);
// From `low` to `high`, both included.
int64_t random_range(Random *random, int64_t low, int64_t high);
bool random_chance(Random *random, int percent);

typedef struct {
  const TileParam *param;
  int64_t shape[TILE_MAX_RANK], stride[TILE_MAX_RANK];  // elements
  int64_t count;                                        // elements
  int64_t offset, extent;  // bytes before the first element, and from there to behind the last
  double *value;           // by element, outermost dimension first; of a result: what must come out
  uint8_t *image;          // GUARD, offset, extent, GUARD bytes
} Array;

typedef struct Spec Spec;
typedef enum { FILL_INTEGERS, FILL_REALS, FILL_POSITIVE } Fill;

typedef struct {
  const Spec *spec;
  Fill fill;          // as the spec says, but for some cases
  double rtol, atol;  // both 0: results are exact, and equal bit for bit on all devices
  const TileKernel *kernel;
  int nsizes, narrays;
  const char *size_name[MAX_SIZES];
  int64_t size[MAX_SIZES];
  Array array[MAX_ARRAYS];
  uint64_t seed;
  int clusters;  // how many the device is told to hold at once, for kernels that ask; 0: what it says itself
} Case;

// Draws case `index` of a kernel. False with a sentence in `why` when the kernel is beyond what the suite can make.
bool case_draw(Case *out, const TileKernel *kernel, uint64_t seed, int index, bool large, char why[200]);
void case_free(Case *c);
// The size of that name, or 0.
int64_t case_size(const Case *c, const char *name);
// "M=120 N=7 K=0, A pitch 128 offset 2"
void case_describe(const Case *c, char *text, size_t room);
int64_t array_bytes(const Array *array);  // of the image without the guards
// What is wrong with `image` (as array->image) after the run; false when nothing is.
bool array_wrong(const Case *c, const Array *array, const uint8_t *image, char *why, size_t room);

// ---- Kernels that the suite knows (kernels.c)

struct Spec {
  const char *kernel;
  Fill fill;
  double rtol, atol;
  void (*reference)(Case *c);
  bool reals;     // some of the large cases have real numbers, where the types are floats
  bool tma_only;  // written with explicit TMA copies: refuses tensors that TMA cannot take
};

// NULL: no such kernel.
const Spec *spec_find(const char *kernel);

#endif

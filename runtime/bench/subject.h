// A kernel that is measured: its module on the device, the product it computes, and a call for each set of buffers.
#ifndef TILE_BENCH_SUBJECT_H
#define TILE_BENCH_SUBJECT_H

#include "bench/data.h"
#include "bench/options.h"

enum { BUFFERS_MOST_SETS = 64, SUBJECT_MOST_EXTRAS = 32 };

// Operands and results, several times over, so that a launch does not find its data in the L2 cache because the one
// before left them there.
typedef struct {
  const Gpu *gpu;
  int sets;
  uint64_t a_elements, b_elements, c_elements;
  uint64_t a_bytes, b_bytes, c_bytes;
  CudaAddress a[BUFFERS_MOST_SETS], b[BUFFERS_MOST_SETS], c[BUFFERS_MOST_SETS];
} Buffers;

// As many sets as make three times the L2 cache, filled from the blocks.
TileError *buffers_open(const Gpu *gpu, const Problem *problem, Sizes sizes, Buffers *out);
void buffers_close(Buffers *buffers);
TileError *buffers_fill(const Buffers *buffers, const Block *a, const Block *b);
// Zeros in all A and B.
TileError *buffers_zero(const Buffers *buffers);

typedef struct {
  char name[64];  // of the file, without folder and suffix
  TileModule *module;
  const TileKernel *kernel;
  Problem problem;
  const Buffers *buffers;
  int ncalls;
  TileCall *calls[BUFFERS_MOST_SETS];
  int nextras;
  CudaAddress extras[SUBJECT_MOST_EXTRAS];
} Subject;

// Opens a compiled module; `name` stands for the file.
TileError *subject_open(const char *path, const char *name, const char *kernel, const char *layout,
                        Subject *out);
// Names it by a file, without folder and suffix.
void subject_name(const char *file, Subject *out);
void subject_close(Subject *subject);
// Binds buffers, sizes and, by --fill, whatever else the kernel takes.
TileError *subject_bind(Subject *subject, TileDevice *device, const Buffers *buffers, Sizes sizes,
                        const ToolPairs *fills);
void subject_unbind(Subject *subject);
// An arm's launch.
TileError *subject_launch(void *subject, int set, CudaStream stream);
// Whether both compute the same product of the same types.
bool subject_alike(const Subject *a, const Subject *b);

#endif

// From bound arguments to a launch: sizes, checks, the choice of a variant, the parameter block. Touches no
// device.
#ifndef TILE_CORE_LAUNCH_H
#define TILE_CORE_LAUNCH_H

#include "core/backend.h"

// A tensor as the caller gave it.
typedef struct {
  bool bound;
  int device_type;  // of a DLPack tensor, else 0
  int rank;
  TileDType dtype;
  uint64_t address;
  int64_t shape[TILE_MAX_RANK], stride[TILE_MAX_RANK];
} TensorArg;

typedef struct {
  bool bound;
  uint64_t bits;    // as it goes into the parameter block
  int64_t integer;  // of an integer type: the value
} ScalarArg;

// A size's value and who gave it: a tensor's name, or NULL for the caller.
typedef struct {
  bool known;
  int64_t value;
  const char *by;
} SizeValue;

struct TileKernel {
  const char *name, *arch;
  TileModule *module;
  const InfoEntry **variants;  // in the file's order, at least one
  int nvariants;
  TileParam *params;
  int nparams;
  const char **sizes;
  int nsizes;
  int sm_count;  // of the device that the module is on; 0 before
};

struct TileCall {
  const TileKernel *kernel;
  TensorArg *tensors;  // one for each tensor of the kernel
  ScalarArg *scalars;
  SizeValue *given;  // sizes that the caller fixed
  Pool pool;
};

// Checks a tensor by itself (dtype, rank, strides, alignment) and makes the strides canonical.
TileError *launch_bind(const InfoTensor *declared, const TileTensor *tensor, TensorArg *out);
// Sizes by what is bound so far: `values` has kernel->nsizes elements.
TileError *launch_sizes(const TileCall *call, SizeValue *values);
TileError *launch_shape(const TileCall *call, const InfoTensor *declared, const SizeValue *values,
                        int64_t *shape);
// Everything; the plan's block and maps go to `pool`.
TileError *launch_plan(const TileCall *call, Pool *pool, LaunchPlan *out);

#endif

// Tensor maps as both backends encode them.
#ifndef TILE_CORE_TENSOR_MAP_H
#define TILE_CORE_TENSOR_MAP_H

#include "core/launch_info.h"

// A tensor as bound: sizes and strides in elements, outermost first, strides canonical.
typedef struct {
  uint64_t address;
  int64_t size[TILE_MAX_RANK], stride[TILE_MAX_RANK];
} BoundTensor;

// The arguments of the driver's cuTensorMapEncodeTiled; dimension 0 is the innermost. `type`, `swizzle` and
// `l2_promotion` are the driver's own codes.
typedef struct {
  int type, rank;
  uint64_t address;
  uint64_t size[TILE_MAX_MAP_RANK];        // elements
  uint64_t stride[TILE_MAX_MAP_RANK - 1];  // bytes; stride[i] is the pitch of dimension i + 1
  uint32_t box[TILE_MAX_MAP_RANK];
  uint32_t element_stride[TILE_MAX_MAP_RANK];
  int interleave, swizzle, l2_promotion, fill;
} TensorMap;

// NULL error: filled. Not every dtype has a tensor map.
TileError *tensor_map_fill(const InfoEntry *entry, const InfoMap *map, const BoundTensor *tensor,
                           TensorMap *out);

// Whether a TMA of the tensor is legal (PTX ISA 5.5; cuTensorMapEncodeTiled): 0 dimensions empty, base and
// strides multiples of 16 bytes, and for a store the row too, since clipping works on 16 bytes. If not,
// appends the reason to `why` (may be NULL).
bool tensor_map_guard(const InfoTensor *declared, const BoundTensor *tensor, bool store, ErrorText *why);

#endif

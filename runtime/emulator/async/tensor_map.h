// The 128-byte tensor map as hardware and driver lay it out (measured: thousands of driver encodings
// matched), so that recorded maps and maps made on the device by tensormap.replace work unchanged.
#ifndef PTXEMU_ASYNC_TENSOR_MAP_H
#define PTXEMU_ASYNC_TENSOR_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "async/smem_desc.h"
#include "mem/space.h"

// Codes of the object and of tensormap.replace .elemtype; not the driver's enumeration.
typedef enum {
  ELEMENT_U8,
  ELEMENT_U16,
  ELEMENT_U32,
  ELEMENT_S32,
  ELEMENT_U64,
  ELEMENT_S64,
  ELEMENT_F16,
  ELEMENT_F32,
  ELEMENT_F32_FTZ,
  ELEMENT_F64,
  ELEMENT_BF16,
  ELEMENT_B4X16 = 13,
  ELEMENT_B4X16_P64 = 14,
  ELEMENT_B6X16_P32 = 15,
} ElementCode;

typedef struct {
  bool im2col;
  int rank;
  int element;                   // ElementCode
  int global_bits, shared_bits;  // of one element in global and in shared memory (padding counted)
  int interleave;
  Swizzle swizzle;
  bool fill_nan, to_tf32;
  uint64_t address;
  uint64_t size[5];    // elements
  uint64_t stride[5];  // bytes; stride[0] is not used
  uint32_t box[5];     // elements along the tensor, before element strides
  uint32_t step[5];    // element strides
} TensorMap;

// What cuTensorMapEncodeTiled takes; dimension 0 is the innermost, codes are the driver API's.
typedef struct {
  int type, rank;
  uint64_t address;
  uint64_t size[5], stride[5];  // elements; bytes, stride[0] is not used
  uint32_t box[5], element_stride[5];
  int interleave, swizzle, l2_promotion, fill_nan;
} TensorMapSpec;

// False with the reason when the bytes are no tensor map that can be executed.
bool tensor_map_decode(const uint8_t bytes[128], TensorMap *map, SpaceError *why);
// As cuTensorMapEncodeTiled: false with the broken rule.
bool tensor_map_encode(const TensorMapSpec *spec, uint8_t out[128], SpaceError *why);

// Elements of the box in a dimension after element strides (dimension 0 has none), and the pitch of the
// shared tile's rows.
uint32_t tensor_map_box(const TensorMap *map, int dimension);
uint32_t tensor_map_pitch(const TensorMap *map);
// Bytes that a load of the whole box adds to a transaction count.
uint64_t tensor_map_bytes(const TensorMap *map);

#endif

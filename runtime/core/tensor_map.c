// From a bound tensor and a map's box to what the encoder takes; and the rules under which that is legal.
#include "core/tensor_map.h"

#include <stdarg.h>
#include <stdio.h>

enum { L2_PROMOTION_128B = 2, MAX_STRIDE_BITS = 40 };

// CUtensorMapDataType. Types of one byte that TMA does not compute with are UINT8; -1: no such map.
static int data_type(TileDType dtype) {
  switch (dtype) {
  case TILE_U8:
  case TILE_I8:
  case TILE_BOOL:
  case TILE_E4M3:
  case TILE_E5M2:
  case TILE_UE8M0:
    return 0;
  case TILE_U16:
  case TILE_I16:
    return 1;
  case TILE_U32:
    return 2;
  case TILE_I32:
    return 3;
  case TILE_U64:
    return 4;
  case TILE_I64:
    return 5;
  case TILE_F16:
    return 6;
  case TILE_F32:
  case TILE_TF32:
    return 7;
  case TILE_F64:
    return 8;
  case TILE_BF16:
    return 9;
  case TILE_E2M3:
  case TILE_E3M2:
  case TILE_E2M1:
  case TILE_DTYPE_COUNT:
    break;
  }
  return -1;
}

static int swizzle_code(int bytes) {
  return bytes == 128 ? 3 : bytes == 64 ? 2 : bytes == 32 ? 1 : 0;
}

TileError *tensor_map_fill(const InfoEntry *entry, const InfoMap *map, const BoundTensor *tensor,
                           TensorMap *out) {
  const InfoTensor *declared = &entry->tensors[map->tensor];
  int rank = declared->rank;
  *out = (TensorMap){.type = data_type(declared->dtype),
                     .rank = rank,
                     .address = tensor->address,
                     .swizzle = swizzle_code(map->swizzle),
                     .l2_promotion = L2_PROMOTION_128B};
  if (out->type < 0)
    return error_new(TILE_INVALID, "%s: this runtime has no tensor maps of %s", declared->name,
                     tile_dtype_name(declared->dtype));
  for (int i = 0; i < rank; i++) {
    int dim = rank - 1 - i;
    if (tensor->size[dim] < 1)
      return error_new(TILE_INVALID, "%s: dimension %d is empty, and no tensor map can say so",
                       declared->name, dim);
    out->size[i] = (uint64_t)tensor->size[dim];
    out->box[i] = map->box[dim];
    out->element_stride[i] = 1;
    if (i)
      out->stride[i - 1] = (uint64_t)tensor->stride[dim] * (uint64_t)tile_dtype_bits(declared->dtype) / 8;
  }
  return NULL;
}

__attribute__((format(printf, 2, 3))) static bool no(ErrorText *why, const char *format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (why) error_text(why, "%s", text);
  return false;
}

bool tensor_map_guard(const InfoTensor *declared, const BoundTensor *tensor, bool store, ErrorText *why) {
  const char *name = declared->name;
  int bits = tile_dtype_bits(declared->dtype), last = declared->rank - 1;
  for (int i = 0; i <= last; i++)
    if (tensor->size[i] < 1) return no(why, "%s: dimension %d is empty", name, i);
  if (tensor->address % 16)
    return no(why, "%s: its address 0x%llx is not a multiple of 16", name,
              (unsigned long long)tensor->address);
  for (int i = 0; i < last; i++) {
    uint64_t stride = (uint64_t)tensor->stride[i] * (uint64_t)bits;
    if (stride % 128)
      return no(why, "%s: its stride of dimension %d, %lld elements of %s, is not a multiple of 16 bytes",
                name, i, (long long)tensor->stride[i], tile_dtype_name(declared->dtype));
    if (stride >> (MAX_STRIDE_BITS + 3))
      return no(why, "%s: its stride of dimension %d reaches 2^%d bytes", name, i, MAX_STRIDE_BITS);
  }
  if (store && tensor->size[last] * bits % 128)
    return no(why, "%s: its rows of %lld elements of %s are not a multiple of 16 bytes", name,
              (long long)tensor->size[last], tile_dtype_name(declared->dtype));
  return true;
}

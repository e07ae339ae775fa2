// Where operands lie in shared memory: swizzles on absolute address bits and the 64-bit matrix descriptors of
// tcgen05 and wgmma (PTX ISA 9.7.16.4.1, 9.7.15.5). Addresses are byte offsets in one CTA's shared memory.
#ifndef PTXEMU_ASYNC_SMEM_DESC_H
#define PTXEMU_ASYNC_SMEM_DESC_H

#include <stdbool.h>
#include <stdint.h>

#include "mem/space.h"

typedef enum {
  SWIZZLE_NONE,
  SWIZZLE_32B,
  SWIZZLE_64B,
  SWIZZLE_128B,
  SWIZZLE_128B_ATOM_32B,
  SWIZZLE_128B_ATOM_32B_FLIP_8B,  // TMA only
  SWIZZLE_128B_ATOM_64B,          // TMA only
} Swizzle;

// Bytes of one swizzled row: 16 without swizzle, then 32, 64, 128.
int swizzle_span(Swizzle swizzle);
// The address after swizzling; `base_offset` in units of 128 bytes, 0 for TMA. The 8-byte flip is not
// included.
uint32_t swizzle_address(Swizzle swizzle, uint32_t address, int base_offset);

typedef struct {
  uint32_t start, leading, stride;  // bytes; `leading` and `stride` are LBO and SBO
  int base_offset;
  Swizzle swizzle;
} SmemDesc;

// False with the reason when constant or reserved bits are wrong.
bool smem_desc_tcgen05(uint64_t word, SmemDesc *desc, SpaceError *why);
bool smem_desc_wgmma(uint64_t word, SmemDesc *desc, SpaceError *why);

// Address of a 16-byte unit of an operand. K-major: the `unit`-th of row `line` (line counts M or N).
// MN-major: the `unit`-th along M or N of the K row `line`. `wide_elements`: 4-byte elements, whose MN-major
// atoms are 4 rows deep.
uint32_t smem_desc_unit(const SmemDesc *desc, bool mn_major, bool wide_elements, int line, int unit);

#endif

// Eight rows by 16 bytes make a core matrix, or 8 rows by the swizzle span an atom; LBO and SBO step between
// them, and swap their roles between the two MN-major cases. Measured on hardware for every mode but the
// 32-byte atoms.
#include "async/smem_desc.h"

#include <stdio.h>

int swizzle_span(Swizzle swizzle) {
  switch (swizzle) {
  case SWIZZLE_NONE:
    return 16;
  case SWIZZLE_32B:
    return 32;
  case SWIZZLE_64B:
    return 64;
  case SWIZZLE_128B:
  case SWIZZLE_128B_ATOM_32B:
  case SWIZZLE_128B_ATOM_32B_FLIP_8B:
  case SWIZZLE_128B_ATOM_64B:
    break;
  }
  return 128;
}

uint32_t swizzle_address(Swizzle swizzle, uint32_t address, int base_offset) {
  uint32_t phase = (address >> 7) - (uint32_t)base_offset;
  switch (swizzle) {
  case SWIZZLE_NONE:
    return address;
  case SWIZZLE_32B:
    return address ^ (phase & 1) << 4;
  case SWIZZLE_64B:
    return address ^ (phase & 3) << 4;
  case SWIZZLE_128B:
    return address ^ (phase & 7) << 4;
  case SWIZZLE_128B_ATOM_32B:
  case SWIZZLE_128B_ATOM_32B_FLIP_8B:
    return address ^ (phase & 3) << 5;
  case SWIZZLE_128B_ATOM_64B:
    break;
  }
  return address ^ (phase & 1) << 6;
}

static void decode_common(uint64_t word, SmemDesc *desc) {
  desc->start = (uint32_t)(word & 0x3FFF) << 4;
  desc->leading = (uint32_t)(word >> 16 & 0x3FFF) << 4;
  desc->stride = (uint32_t)(word >> 32 & 0x3FFF) << 4;
  desc->base_offset = (int)(word >> 49 & 7);
}

bool smem_desc_tcgen05(uint64_t word, SmemDesc *desc, SpaceError *why) {
  static const Swizzle codes[8] = {[0] = SWIZZLE_NONE,
                                   [1] = SWIZZLE_128B_ATOM_32B,
                                   [2] = SWIZZLE_128B,
                                   [4] = SWIZZLE_64B,
                                   [6] = SWIZZLE_32B};
  unsigned constant = word >> 46 & 7, code = (unsigned)(word >> 61), zeros = (unsigned)(word >> 53 & 0xFF);
  decode_common(word, desc);
  if (constant != 1) {
    snprintf(why->text, sizeof why->text,
             "shared-memory descriptor 0x%016llx: bits 46-48 must be 0b001, but are %u",
             (unsigned long long)word, constant);
    return false;
  }
  if (code == 3 || code == 5 || code == 7) {
    snprintf(why->text, sizeof why->text,
             "shared-memory descriptor 0x%016llx: swizzle code %u in bits 61-63 is reserved",
             (unsigned long long)word, code);
    return false;
  }
  if (word >> 52 & 1) {
    snprintf(
        why->text, sizeof why->text,
        "shared-memory descriptor 0x%016llx: bit 52 (absolute leading address) exists on a later target only",
        (unsigned long long)word);
    return false;
  }
  if (zeros || (word >> 14 & 3) || (word >> 30 & 3)) {
    snprintf(why->text, sizeof why->text,
             "shared-memory descriptor 0x%016llx: bits 14-15, 30-31 and 53-60 must be 0",
             (unsigned long long)word);
    return false;
  }
  desc->swizzle = codes[code];
  return true;
}

bool smem_desc_wgmma(uint64_t word, SmemDesc *desc, SpaceError *why) {
  static const Swizzle codes[4] = {SWIZZLE_NONE, SWIZZLE_128B, SWIZZLE_64B, SWIZZLE_32B};
  decode_common(word, desc);
  desc->swizzle = codes[word >> 62];
  // Bits outside of the fields, 46-48 (which tcgen05 sets) among them, must be zero.
  if (!(word & 0x3FF1C000C000C000u)) return true;
  snprintf(why->text, sizeof why->text,
           "wgmma descriptor 0x%016llx has bits set outside of its fields (mask 0x%llx)",
           (unsigned long long)word, (unsigned long long)(word & 0x3FF1C000C000C000u));
  return false;
}

static uint32_t linear_k_major(const SmemDesc *desc, int line, int unit) {
  uint32_t row = (uint32_t)line, column = (uint32_t)unit;
  if (desc->swizzle == SWIZZLE_NONE) return row % 8 * 16 + row / 8 * desc->stride + column * desc->leading;
  return row % 8 * (uint32_t)swizzle_span(desc->swizzle) + row / 8 * desc->stride + column * 16;
}

static uint32_t linear_mn_major(const SmemDesc *desc, bool wide_elements, int line, int unit) {
  uint32_t k = (uint32_t)line, column = (uint32_t)unit, span = (uint32_t)swizzle_span(desc->swizzle);
  uint32_t depth = wide_elements && desc->swizzle == SWIZZLE_128B_ATOM_32B ? 4 : 8, units = span / 16;
  if (desc->swizzle == SWIZZLE_NONE) return column * desc->stride + k % 8 * 16 + k / 8 * desc->leading;
  return column % units * 16 + column / units * desc->leading + k % depth * span + k / depth * desc->stride;
}

uint32_t smem_desc_unit(const SmemDesc *desc, bool mn_major, bool wide_elements, int line, int unit) {
  uint32_t linear =
      mn_major ? linear_mn_major(desc, wide_elements, line, unit) : linear_k_major(desc, line, unit);
  return swizzle_address(desc->swizzle, desc->start + linear, desc->base_offset);
}

// Shared-memory descriptors: the worked example of a 128 x 64 bf16 tile, rejected words, and that a tile
// written with a swizzle is read back through the descriptor of the same swizzle.
#include "async/smem_desc.h"

#include "check.h"

// One 16-byte unit holds 8 bf16: element (9, 20) is in unit 2 of row 9, 8 bytes in.
static void test_worked_example(Checks *checks) {
  SmemDesc desc;
  SpaceError why;
  CHECK(checks, smem_desc_tcgen05(0x4000404000000840u, &desc, &why));
  CHECK_INT(checks, desc.start, 0x8400);
  CHECK_INT(checks, desc.stride, 1024);
  CHECK_INT(checks, desc.swizzle, SWIZZLE_128B);
  CHECK_INT(checks, smem_desc_unit(&desc, false, false, 9, 2) + 8, 0x88B8);
  // The second K-step adds 2 to the low field, and reads what the first reads 32 bytes on.
  SmemDesc step;
  CHECK(checks, smem_desc_tcgen05(0x4000404000000842u, &step, &why));
  CHECK_INT(checks, smem_desc_unit(&step, false, false, 9, 0), smem_desc_unit(&desc, false, false, 9, 2));
}

static void test_rejected(Checks *checks) {
  SmemDesc desc;
  SpaceError why;
  CHECK(checks, !smem_desc_tcgen05(0x4000004000000840u, &desc, &why));
  CHECK(checks, strstr(why.text, "0b001") != NULL);
  CHECK(checks, !smem_desc_tcgen05(0x6000404000000840u, &desc, &why));
  CHECK(checks, strstr(why.text, "reserved") != NULL);
  CHECK(checks, !smem_desc_tcgen05(0x4010404000000840u, &desc, &why));
  CHECK(checks, !smem_desc_tcgen05(0x4000404000004840u, &desc, &why));
  CHECK(checks, smem_desc_wgmma(0x4000004000000840u, &desc, &why));
  CHECK_INT(checks, desc.swizzle, SWIZZLE_128B);
  CHECK(checks, !smem_desc_wgmma(0x4000404000000840u, &desc, &why));
}

// Row pitch and swizzle of a K-major tile as TMA writes it: row r at r * span, XORed with its absolute
// address.
static void test_k_major(Checks *checks) {
  static const Swizzle modes[] = {SWIZZLE_32B, SWIZZLE_64B, SWIZZLE_128B, SWIZZLE_128B_ATOM_32B};
  for (int m = 0; m < 4; m++) {
    uint32_t span = (uint32_t)swizzle_span(modes[m]);
    SmemDesc desc = {.start = 0x2000, .stride = 8 * span, .swizzle = modes[m]};
    for (int row = 0; row < 64; row++)
      for (int unit = 0; unit < (int)span / 16; unit++)
        CHECK_INT(checks, smem_desc_unit(&desc, false, false, row, unit),
                  swizzle_address(modes[m], 0x2000 + (uint32_t)row * span + (uint32_t)unit * 16, 0));
  }
  CHECK_INT(checks, swizzle_address(SWIZZLE_32B, 0x80, 0), 0x90);
  CHECK_INT(checks, swizzle_address(SWIZZLE_64B, 0x190, 0), 0x1A0);
  CHECK_INT(checks, swizzle_address(SWIZZLE_128B, 0x3F0, 0), 0x380);
  CHECK_INT(checks, swizzle_address(SWIZZLE_128B, 0x3F0, 7), 0x3F0);
  CHECK_INT(checks, swizzle_address(SWIZZLE_128B_ATOM_32B, 0x180, 0), 0x1E0);
  CHECK_INT(checks, swizzle_address(SWIZZLE_128B_ATOM_64B, 0x80, 0), 0xC0);
}

static void test_no_swizzle(Checks *checks) {
  SmemDesc desc = {.start = 0x400, .leading = 128, .stride = 256};
  CHECK_INT(checks, smem_desc_unit(&desc, false, false, 11, 1), 0x400 + 3 * 16 + 256 + 128);
  // MN-major: the two strides swap their roles.
  CHECK_INT(checks, smem_desc_unit(&desc, true, false, 11, 1), 0x400 + 3 * 16 + 128 + 256);
  SmemDesc wide = {.start = 0, .leading = 0x4000, .stride = 1024, .swizzle = SWIZZLE_128B};
  CHECK_INT(checks, smem_desc_unit(&wide, true, false, 9, 10), (0x4000 + 2 * 16 + 128 + 1024) ^ 0x10);
}

int main(void) {
  Checks checks = {0};
  test_worked_example(&checks);
  test_rejected(&checks);
  test_k_major(&checks);
  test_no_swizzle(&checks);
  return check_report(&checks);
}

// Tensor maps: a driver's own words, every field through encode and decode, and each rule broken once.
#include "async/tensor_map.h"

#include "check.h"

static TensorMapSpec plain(void) {
  return (TensorMapSpec){.type = 6,
                         .rank = 2,
                         .address = 0x7f0000000000,
                         .size = {64, 128},
                         .stride = {0, 128},
                         .box = {64, 64},
                         .element_stride = {1, 1},
                         .swizzle = 3};
}

static void test_driver_words(Checks *checks) {
  static const uint64_t want[16] = {[0] = 0x00007f0000000000,
                                    [1] = 0x0000000800006310,
                                    [4] = 0x0000007f0000003f,
                                    [6] = 0x3f00000000000000,
                                    [7] = 0x3f,
                                    [8] = 0x2000,
                                    [9] = 0x400};
  TensorMapSpec map = plain();
  uint64_t words[16];
  SpaceError why;
  CHECK(checks, tensor_map_encode(&map, (uint8_t *)words, &why));
  for (int i = 0; i < 16; i++) CHECK_INT(checks, words[i], want[i]);
}

static void test_round_trip(Checks *checks) {
  TensorMapSpec map = {.type = 12,
                       .rank = 5,
                       .address = 0x123456789ab0,
                       .size = {1u << 20, 7, (uint64_t)1 << 32, 3, 99},
                       .stride = {0, 0x1000, 0xF123456780, 16, 0xABCDE0},
                       .box = {32, 5, 1, 2, 11},
                       .element_stride = {1, 2, 3, 8, 5},
                       .swizzle = 4,
                       .l2_promotion = 2,
                       .fill_nan = 1};
  uint8_t bytes[128];
  TensorMap out;
  SpaceError why;
  CHECK(checks, tensor_map_encode(&map, bytes, &why));
  CHECK(checks, tensor_map_decode(bytes, &out, &why));
  CHECK_INT(checks, out.rank, 5);
  CHECK_INT(checks, out.element, ELEMENT_F32_FTZ);
  CHECK_INT(checks, out.address, map.address);
  CHECK_INT(checks, out.swizzle, SWIZZLE_128B_ATOM_32B);
  CHECK(checks, out.fill_nan && out.to_tf32 && !out.im2col);
  for (int i = 0; i < 5; i++) {
    CHECK_INT(checks, out.size[i], map.size[i]);
    CHECK_INT(checks, out.box[i], map.box[i]);
    CHECK_INT(checks, out.step[i], map.element_stride[i]);
    if (i) CHECK_INT(checks, out.stride[i], map.stride[i]);
  }
  CHECK_INT(checks, tensor_map_box(&out, 1), 3);
  CHECK_INT(checks, tensor_map_pitch(&out), 128);
  CHECK_INT(checks, tensor_map_bytes(&out), 32 * 4 * 3 * 1 * 1 * 3);
}

static void rejects(Checks *checks, TensorMapSpec map, const char *word) {
  uint8_t bytes[128];
  SpaceError why = {""};
  CHECK(checks, !tensor_map_encode(&map, bytes, &why));
  if (!CHECK(checks, strstr(why.text, word) != NULL)) fprintf(stderr, "  %s: %s\n", word, why.text);
}

static void test_rules(Checks *checks) {
  TensorMapSpec map;
  map = plain(), map.rank = 6, rejects(checks, map, "rank");
  map = plain(), map.type = 16, rejects(checks, map, "type");
  map = plain(), map.address += 8, rejects(checks, map, "address");
  map = plain(), map.stride[1] = 120, rejects(checks, map, "stride 120");
  map = plain(), map.stride[1] = (uint64_t)1 << 40, rejects(checks, map, "2^40");
  map = plain(), map.size[1] = 0, rejects(checks, map, "size 0");
  map = plain(), map.box[1] = 257, rejects(checks, map, "box size 257");
  map = plain(), map.box[0] = 4, rejects(checks, map, "8 bytes wide");
  map = plain(), map.swizzle = 2, rejects(checks, map, "swizzle's 64");
  map = plain(), map.element_stride[1] = 9, rejects(checks, map, "element stride 9");
  map = plain(), map.interleave = 1, rejects(checks, map, "interleave");
  map = plain(), map.type = 0, map.swizzle = 0, map.fill_nan = 1, rejects(checks, map, "NaN fill");
  map = plain(), map.type = 7, map.swizzle = 0, map.box[0] = map.box[1] = 256,
  rejects(checks, map, "128 KiB");
  map = plain(), map.type = 14, map.size[0] = 128, map.stride[1] = 64, rejects(checks, map, "128 elements");
}

static void test_padded(Checks *checks) {
  TensorMapSpec map = plain();
  map.type = 14, map.size[0] = 256, map.box[0] = 128;
  uint8_t bytes[128];
  TensorMap out;
  SpaceError why;
  CHECK(checks, tensor_map_encode(&map, bytes, &why));
  CHECK(checks, tensor_map_decode(bytes, &out, &why));
  CHECK_INT(checks, out.global_bits, 4);
  CHECK_INT(checks, out.shared_bits, 8);
  CHECK_INT(checks, tensor_map_bytes(&out), 128 * 64 / 2);
  memset(bytes, 0xFF, sizeof bytes);
  CHECK(checks, !tensor_map_decode(bytes, &out, &why));
}

int main(void) {
  Checks checks = {0};
  test_driver_words(&checks);
  test_round_trip(&checks);
  test_rules(&checks);
  test_padded(&checks);
  return check_report(&checks);
}

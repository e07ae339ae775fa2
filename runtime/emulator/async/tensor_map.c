// Bit fields of the tensor map, seen as sixteen 64-bit words. Words 8 and 9 are derived by the driver and not
// read by hardware: the encoder writes them, the decoder ignores them.
#include "async/tensor_map.h"

#include <stdio.h>
#include <string.h>

typedef struct {
  const char *name;
  int code, global_bits, shared_bits;
  bool is_float, is_tf32;
} TypeRow;

// By the driver's enumeration.
static const TypeRow types[16] = {
    {"u8", ELEMENT_U8, 8, 8, false, false},
    {"u16", ELEMENT_U16, 16, 16, false, false},
    {"u32", ELEMENT_U32, 32, 32, false, false},
    {"s32", ELEMENT_S32, 32, 32, false, false},
    {"u64", ELEMENT_U64, 64, 64, false, false},
    {"s64", ELEMENT_S64, 64, 64, false, false},
    {"f16", ELEMENT_F16, 16, 16, true, false},
    {"f32", ELEMENT_F32, 32, 32, true, false},
    {"f64", ELEMENT_F64, 64, 64, true, false},
    {"bf16", ELEMENT_BF16, 16, 16, true, false},
    {"f32.ftz", ELEMENT_F32_FTZ, 32, 32, true, false},
    {"tf32", ELEMENT_F32, 32, 32, true, true},
    {"tf32.ftz", ELEMENT_F32_FTZ, 32, 32, true, true},
    {"b4x16", ELEMENT_B4X16, 4, 4, false, false},
    {"b4x16_p64", ELEMENT_B4X16_P64, 4, 8, false, false},
    {"b6x16_p32", ELEMENT_B6X16_P32, 6, 8, false, false},
};

static uint64_t get(const uint64_t *words, int word, int low, int bits) {
  uint64_t value = words[word] >> low;
  return bits == 64 ? value : value & (((uint64_t)1 << bits) - 1);
}

static void put(uint64_t *words, int word, int low, uint64_t value) {
  words[word] |= value << low;
}

static bool fail(SpaceError *why, const char *text) {
  snprintf(why->text, sizeof why->text, "%s", text);
  return false;
}

static const TypeRow *type_of_code(int code) {
  for (int i = 0; i < 16; i++)
    if (types[i].code == code) return &types[i];
  return NULL;
}

bool tensor_map_decode(const uint8_t bytes[128], TensorMap *map, SpaceError *why) {
  static const Swizzle atoms[4] = {SWIZZLE_128B, SWIZZLE_128B_ATOM_32B, SWIZZLE_128B_ATOM_32B_FLIP_8B,
                                   SWIZZLE_128B_ATOM_64B};
  uint64_t w[16];
  memcpy(w, bytes, sizeof w);
  *map = (TensorMap){.im2col = w[1] & 1, .rank = (int)get(w, 1, 4, 3) + 1, .element = (int)get(w, 1, 7, 4)};
  const TypeRow *type = type_of_code(map->element);
  if (!type || map->rank > 5) {
    snprintf(why->text, sizeof why->text, "these 128 bytes are no tensor map: rank %d, element code %d",
             map->rank, map->element);
    return false;
  }
  map->global_bits = type->global_bits;
  map->shared_bits = type->shared_bits;
  map->interleave = (int)get(w, 1, 11, 2);
  map->swizzle = (Swizzle)get(w, 1, 13, 2);
  if (map->swizzle == SWIZZLE_128B) map->swizzle = atoms[get(w, 1, 19, 2)];
  map->fill_nan = get(w, 1, 15, 1);
  map->to_tf32 = get(w, 1, 16, 1);
  map->address = w[0];
  for (int i = 0; i < map->rank; i++) {
    map->size[i] = get(w, 4 + i / 2, i % 2 * 32, 32) + 1;
    map->step[i] = (uint32_t)get(w, 6, 32 + 3 * i, 3) + 1;
    map->box[i] = (uint32_t)(i == 0 ? get(w, 6, 56, 8) : get(w, 7, 8 * (i - 1), 8)) + 1;
    if (i == 0) continue;
    int half = i + 2;  // 32-bit words 3 to 6 hold the low parts
    map->stride[i] = (get(w, half / 2, half % 2 * 32, 32) | get(w, 3, 32 + 4 * (i - 1), 4) << 32) << 4;
  }
  if (map->im2col) return fail(why, "im2col tensor maps are not supported");
  if (map->interleave) return fail(why, "interleaved tensor maps are not supported");
  return true;
}

uint32_t tensor_map_box(const TensorMap *map, int dimension) {
  if (dimension == 0) return map->box[0];
  return (map->box[dimension] + map->step[dimension] - 1) / map->step[dimension];
}

uint32_t tensor_map_pitch(const TensorMap *map) {
  // With a swizzle the rows of the tile are a span apart, even when the box is narrower.
  if (map->swizzle == SWIZZLE_NONE) return map->box[0] * (uint32_t)map->shared_bits / 8;
  return (uint32_t)swizzle_span(map->swizzle);
}

uint64_t tensor_map_bytes(const TensorMap *map) {
  uint64_t elements = 1;
  for (int i = 0; i < map->rank; i++) elements *= tensor_map_box(map, i);
  return elements * (uint64_t)map->global_bits / 8;
}

// ---- encoding

typedef struct {
  const TensorMapSpec *map;
  const TypeRow *type;
  SpaceError *why;
} Encoding;

#define RULE(encoding, holds, ...)                                                                           \
  ((holds) || (snprintf((encoding)->why->text, sizeof(encoding)->why->text, __VA_ARGS__), false))

static bool check_enums(const Encoding *e) {
  const TensorMapSpec *m = e->map;
  return RULE(e, m->rank >= 1 && m->rank <= 5, "tensor map: rank %d is not in 1 to 5", m->rank) &&
         RULE(e, m->interleave >= 0 && m->interleave <= 2, "tensor map: interleave %d is not in 0 to 2",
              m->interleave) &&
         RULE(e, m->swizzle >= 0 && m->swizzle <= 6, "tensor map: swizzle %d is not in 0 to 6", m->swizzle) &&
         RULE(e, m->l2_promotion >= 0 && m->l2_promotion <= 3, "tensor map: L2 promotion %d is not in 0 to 3",
              m->l2_promotion) &&
         RULE(e, m->interleave == 0 || m->rank >= 3, "tensor map: interleave needs rank 3 to 5, not %d",
              m->rank) &&
         RULE(e, !m->fill_nan || e->type->is_float, "tensor map: NaN fill needs a float type, not %s",
              e->type->name);
}

static bool check_dimension(const Encoding *e, int i, uint64_t align) {
  const TensorMapSpec *m = e->map;
  return RULE(e, m->size[i] >= 1 && m->size[i] <= (uint64_t)1 << 32,
              "tensor map: size %llu of dimension %d is not in 1 to 2^32", (unsigned long long)m->size[i],
              i) &&
         RULE(e, m->box[i] >= 1 && m->box[i] <= 256,
              "tensor map: box size %u of dimension %d is not in 1 to 256", m->box[i], i) &&
         RULE(e, m->element_stride[i] >= 1 && m->element_stride[i] <= 8,
              "tensor map: element stride %u of dimension %d is not in 1 to 8", m->element_stride[i], i) &&
         RULE(e, i == 0 || m->stride[i] % align == 0,
              "tensor map: stride %llu bytes of dimension %d is not a multiple of %llu",
              (unsigned long long)m->stride[i], i, (unsigned long long)align) &&
         RULE(e, i == 0 || m->stride[i] < (uint64_t)1 << 40,
              "tensor map: stride %llu of dimension %d is 2^40 or more", (unsigned long long)m->stride[i], i);
}

static bool check_box(const Encoding *e) {
  const TensorMapSpec *m = e->map;
  static const int spans[7] = {0, 32, 64, 128, 128, 128, 128};
  uint32_t inner = m->box[0] * (uint32_t)e->type->shared_bits / 8;
  uint64_t total = inner;
  for (int i = 1; i < m->rank; i++) total *= m->box[i];
  bool padded = e->type->shared_bits != e->type->global_bits;
  return RULE(e, inner % 16 == 0,
              "tensor map: the box is %u bytes wide (dimension 0), which is no multiple of 16", inner) &&
         RULE(e, m->swizzle == 0 || m->interleave || inner <= (uint32_t)spans[m->swizzle],
              "tensor map: the box is %u bytes wide (dimension 0), more than the swizzle's %d", inner,
              spans[m->swizzle]) &&
         RULE(e, !padded || m->box[0] == 128,
              "tensor map: %s needs a box of 128 elements in dimension 0, not %u", e->type->name,
              m->box[0]) &&
         RULE(e, !padded || m->size[0] % 128 == 0,
              "tensor map: %s needs a multiple of 128 elements, not %llu", e->type->name,
              (unsigned long long)m->size[0]) &&
         RULE(e, total < (uint64_t)1 << 18, "tensor map: the box has %llu bytes, more than 128 KiB",
              (unsigned long long)total);
}

static bool check_rules(const Encoding *e) {
  const TensorMapSpec *m = e->map;
  bool padded = e->type->shared_bits != e->type->global_bits;
  uint64_t align = m->interleave == 2 || padded ? 32 : 16;
  if (!check_enums(e)) return false;
  if (!RULE(e, m->address % align == 0, "tensor map: address 0x%llx is not a multiple of %llu",
            (unsigned long long)m->address, (unsigned long long)align))
    return false;
  for (int i = 0; i < m->rank; i++)
    if (!check_dimension(e, i, align)) return false;
  return check_box(e);
}

static void write_header(uint64_t *w, const TensorMapSpec *m, const TypeRow *type) {
  w[0] = m->address;
  put(w, 1, 4, (uint64_t)m->rank - 1);
  put(w, 1, 7, (uint64_t)type->code);
  put(w, 1, 11, (uint64_t)m->interleave);
  put(w, 1, 13, m->swizzle > 3 ? 3 : (uint64_t)m->swizzle);
  put(w, 1, 15, m->fill_nan ? 1 : 0);
  put(w, 1, 16, type->is_tf32 ? 1 : 0);
  put(w, 1, 17, (uint64_t)m->l2_promotion);
  put(w, 1, 19, m->swizzle > 3 ? (uint64_t)m->swizzle - 3 : 0);
}

bool tensor_map_encode(const TensorMapSpec *map, uint8_t out[128], SpaceError *why) {
  if (map->type < 0 || map->type > 15) return fail(why, "tensor map: the data type is not in 0 to 15");
  Encoding encoding = {map, &types[map->type], why};
  if (!check_rules(&encoding)) return false;
  uint64_t w[16] = {0}, bytes = (uint64_t)encoding.type->shared_bits;
  write_header(w, map, encoding.type);
  for (int i = 0; i < map->rank; i++) {
    put(w, 4 + i / 2, i % 2 * 32, map->size[i] - 1);
    put(w, 6, 32 + 3 * i, map->element_stride[i] - 1);
    if (i == 0)
      put(w, 6, 56, map->box[0] - 1);
    else
      put(w, 7, 8 * (i - 1), map->box[i] - 1);
    bytes *= i == 0 ? map->box[0] : (map->box[i] + map->element_stride[i] - 1) / map->element_stride[i];
    if (i == 0) continue;
    put(w, (i + 2) / 2, (i + 2) % 2 * 32, map->stride[i] >> 4 & 0xFFFFFFFF);
    put(w, 3, 32 + 4 * (i - 1), map->stride[i] >> 36);
  }
  static const uint64_t patterns[7] = {0x10, 0x100, 0x200, 0x400, 0x400, 0x400, 0x400};
  w[8] = bytes / 8;
  w[9] = patterns[map->swizzle];
  memcpy(out, w, sizeof w);
  return true;
}

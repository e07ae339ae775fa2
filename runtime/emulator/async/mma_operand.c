// Shared memory is read in units of 16 bytes: along K when K-major, along M or N otherwise (PTX
// ISA 9.7.16.10.4).
#include "async/mma_operand.h"

#include <string.h>

#include "num/num.h"

typedef struct {
  const char *name;
  int per_unit, per_word, min_exponent;
} TypeRow;

static const TypeRow rows_of_types[] = {
    [MMA_F16] = {"f16", 8, 2, -14},
    [MMA_BF16] = {"bf16", 8, 2, -126},
    [MMA_TF32] = {"tf32", 4, 1, -126},
    [MMA_E4M3] = {"e4m3", 16, 4, -6},
    [MMA_E5M2] = {"e5m2", 16, 4, -14},
    [MMA_E2M3] = {"e2m3", 16, 4, 0},
    [MMA_E3M2] = {"e3m2", 16, 4, -2},
    [MMA_E2M1] = {"e2m1", 16, 4, 0},
    [MMA_E2M1_PACKED] = {"e2m1", 32, 8, 0},
    [MMA_U8] = {"u8", 16, 4, 0},
    [MMA_S8] = {"s8", 16, 4, 0},
    [MMA_U4] = {"u4", 32, 8, 0},
    [MMA_S4] = {"s4", 32, 8, 0},
};

const char *mma_type_name(MmaType type) {
  return rows_of_types[type].name;
}
bool mma_type_is_int(MmaType type) {
  return type >= MMA_U8;
}
int mma_type_per_unit(MmaType type) {
  return rows_of_types[type].per_unit;
}
int mma_type_per_word(MmaType type) {
  return rows_of_types[type].per_word;
}

static unsigned packed_bits(const uint8_t *bytes, int index, int width) {
  int at = index * width;
  unsigned pair = bytes[at / 8] | (at / 8 < 15 ? (unsigned)bytes[at / 8 + 1] << 8 : 0);
  return pair >> at % 8 & ((1u << width) - 1);
}

static float half_at(const uint8_t *bytes, int index, bool is_bf16) {
  uint16_t code;
  memcpy(&code, bytes + 2 * index, 2);
  return is_bf16 ? num_bf16_to_f32(code) : num_f16_to_f32(code);
}

static float tf32_at(const uint8_t *bytes, int index) {
  uint32_t code;
  memcpy(&code, bytes + 4 * index, 4);
  return num_f32_from_bits(code & ~0x1FFFu);
}

// All elements of a unit as they lie in shared memory.
static void decode_unit(const Scratch *tables, MmaType type, const uint8_t unit[16], float *out) {
  int count = rows_of_types[type].per_unit;
  for (int i = 0; i < count; i++) {
    switch (type) {
    case MMA_F16:
      out[i] = half_at(unit, i, false);
      break;
    case MMA_BF16:
      out[i] = half_at(unit, i, true);
      break;
    case MMA_TF32:
      out[i] = tf32_at(unit, i);
      break;
    case MMA_E4M3:
      out[i] = tables->e4m3[unit[i]];
      break;
    case MMA_E5M2:
      out[i] = tables->e5m2[unit[i]];
      break;
    case MMA_E2M3:
      out[i] = tables->e2m3[packed_bits(unit, i, 6)];
      break;
    case MMA_E3M2:
      out[i] = tables->e3m2[packed_bits(unit, i, 6)];
      break;
    case MMA_E2M1:
    case MMA_E2M1_PACKED:
      out[i] = tables->e2m1[packed_bits(unit, i, 4)];
      break;
    case MMA_U8:
      out[i] = unit[i];
      break;
    case MMA_S8:
      out[i] = (int8_t)unit[i];
      break;
    case MMA_U4:
      out[i] = (float)packed_bits(unit, i, 4);
      break;
    case MMA_S4:
      out[i] = (float)((int)(packed_bits(unit, i, 4) ^ 8) - 8);
      break;
    }
  }
}

static void put(const MmaTarget *target, int row, int k, float value) {
  if (target->ints)
    target->ints[row * target->k + k] = (int16_t)value;
  else
    num_tile_set(target->tile, row, k, target->negate ? -value : value,
                 rows_of_types[target->type].min_exponent);
}

// The common case, without a detour: eight 16-bit elements along K into a row of the tile.
static void put_halves(const MmaTarget *target, const uint8_t unit[16], int row, int k) {
  bool is_bf16 = target->type == MMA_BF16;
  int at = row * NUM_TILE_MAX_K + k, bias = is_bf16 ? 127 : 15, mantissa = is_bf16 ? 7 : 10;
  int special = is_bf16 ? 255 : 31;
  for (int i = 0; i < 8; i++) {
    uint16_t code;
    memcpy(&code, unit + 2 * i, 2);
    float value = is_bf16 ? num_bf16_to_f32(code) : num_f16_to_f32(code);
    int field = (code & 0x7FFF) >> mantissa, exponent = (field ? field : 1) - bias;
    exponent = (code & 0x7FFF) == 0 ? NUM_EXPONENT_ZERO_FACTOR : exponent;
    target->tile->value[at + i] = target->negate ? -value : value;
    target->tile->exponent[at + i] = (int16_t)(field == special ? NUM_EXPONENT_SPECIAL : exponent);
  }
}

typedef struct {
  bool mn_major;
  int line, unit;  // within what is loaded
  int first;       // row of the target
} Place;

static void put_unit(const Scratch *tables, const MmaTarget *target, const uint8_t *host,
                     const Place *place) {
  int per_unit = mma_type_per_unit(target->type);
  bool halves = target->type == MMA_F16 || target->type == MMA_BF16;
  if (halves && !place->mn_major) {
    put_halves(target, host, place->first + place->line, place->unit * per_unit);
    return;
  }
  float values[32];
  decode_unit(tables, target->type, host, values);
  for (int i = 0; i < per_unit; i++) {
    if (place->mn_major)
      put(target, place->first + place->unit * per_unit + i, place->line, values[i]);
    else
      put(target, place->first + place->line, place->unit * per_unit + i, values[i]);
  }
}

bool mma_load_shared(Machine *machine, const Origin *origin, const Cta *cta, const SmemDesc *desc,
                     bool mn_major, int from, int first, int rows, const MmaTarget *target) {
  int per_unit = mma_type_per_unit(target->type);
  int lines = mn_major ? target->k : rows, units = (mn_major ? rows : target->k) / per_unit;
  int from_line = mn_major ? 0 : from, from_unit = mn_major ? from / per_unit : 0;
  const Scratch *tables = engine_scratch(machine);
  bool watched = machine->event_mask >> EVENT_ASYNC_READ & 1;
  for (int line = 0; line < lines; line++) {
    for (int unit = 0; unit < units; unit++) {
      uint32_t address =
          smem_desc_unit(desc, mn_major, target->type == MMA_TF32, from_line + line, from_unit + unit);
      const uint8_t *host = async_shared(machine, origin, cta, address, 16, "matrix operand");
      if (!host) return false;
      if (watched) engine_event(machine, machine->op, EVENT_ASYNC_READ, cta, SPACE_SHARED, address, 16);
      put_unit(tables, target, host, &(Place){mn_major, line, unit, first});
    }
  }
  return true;
}

void mma_load_word(Machine *machine, uint32_t word, int row, int k, const MmaTarget *target) {
  const Scratch *tables = engine_scratch(machine);
  uint8_t bytes[16] = {(uint8_t)word, (uint8_t)(word >> 8), (uint8_t)(word >> 16), (uint8_t)(word >> 24)};
  float values[32];
  switch (target->type) {
  case MMA_E2M3:
  case MMA_E3M2:
    for (int i = 0; i < 4; i++)
      values[i] = (target->type == MMA_E2M3 ? tables->e2m3 : tables->e3m2)[bytes[i] & 63];
    break;
  case MMA_E2M1:  // bits 2-5 of the container, as for warp-level mma
    for (int i = 0; i < 4; i++) values[i] = tables->e2m1[bytes[i] >> 2 & 15];
    break;
  case MMA_F16:
  case MMA_BF16:
  case MMA_TF32:
  case MMA_E4M3:
  case MMA_E5M2:
  case MMA_E2M1_PACKED:
  case MMA_U8:
  case MMA_S8:
  case MMA_U4:
  case MMA_S4:
    decode_unit(tables, target->type, bytes, values);
    break;
  }
  for (int i = 0; i < mma_type_per_word(target->type); i++) put(target, row, k + i, values[i]);
}

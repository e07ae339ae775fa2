// tensormap.replace writes one field of a 128-byte tensor map that lies in shared or global memory;
// tensormap.cp_fenceproxy copies a finished map from shared to global memory (PTX ISA 9.7.9.26,
// 9.7.13.4). Fields are given in true sizes and stored as the object wants them.
#include <string.h>

#include "async/async_internal.h"

enum { MAP_BYTES = 128 };

typedef enum { PLAIN, MINUS_ONE, STRIDE, ELEMENT, SWIZZLE } FieldCoding;

// Where a field lies: 32-bit word, lowest bit, width; an ordinal moves `step` bits on, from `base`.
typedef struct {
  Mod mod;
  FieldCoding coding;
  int word, low, bits, step, ordinals;
  uint64_t most;  // largest value that can be given
} FieldRow;

static const FieldRow fields[] = {
    {MOD_global_address, PLAIN, 0, 0, 64, 0, 0, UINT64_MAX},
    {MOD_rank, PLAIN, 2, 4, 3, 0, 0, 4},
    {MOD_box_dim, MINUS_ONE, 13, 24, 8, 8, 5, 256},
    {MOD_global_dim, MINUS_ONE, 8, 0, 32, 32, 5, (uint64_t)1 << 32},
    {MOD_global_stride, STRIDE, 3, 0, 32, 32, 4, ((uint64_t)1 << 40) - 1},
    {MOD_element_stride, MINUS_ONE, 13, 0, 3, 3, 5, 8},
    {MOD_elemtype, ELEMENT, 2, 7, 4, 0, 0, 15},
    {MOD_interleave_layout, PLAIN, 2, 11, 2, 0, 0, 2},
    {MOD_swizzle_mode, SWIZZLE, 2, 13, 2, 0, 0, 3},
    {MOD_swizzle_atomicity, PLAIN, 2, 19, 2, 0, 0, 3},
    {MOD_fill_mode, PLAIN, 2, 15, 1, 0, 0, 1},
};

static void put(uint8_t *map, int at, int bits, uint64_t value) {
  for (int i = 0; i < bits; i++, at++) {
    uint8_t bit = (uint8_t)(1u << at % 8);
    map[at / 8] = (uint8_t)(value >> i & 1 ? map[at / 8] | bit : map[at / 8] & ~bit);
  }
}

static void write_field(uint8_t *map, const FieldRow *field, int ordinal, uint64_t value) {
  int at = field->word * 32 + field->low + field->step * ordinal;
  switch (field->coding) {
  case PLAIN:
  case SWIZZLE:
    put(map, at, field->bits, value);
    break;
  case MINUS_ONE:
    put(map, at, field->bits, value - 1);
    break;
  case STRIDE:
    put(map, at, 32, value >> 4);
    put(map, 7 * 32 + 4 * ordinal, 4, value >> 36);
    break;
  case ELEMENT:  // tf32 is f32 (or f32.ftz) with a bit of its own
    put(map, at, 4, value == 11 ? 7 : value == 12 ? 8 : value);
    put(map, 2 * 32 + 16, 1, value == 11 || value == 12);
    break;
  }
}

static ExecResult exec_replace(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  const FieldRow *field = &fields[inst->aux];
  FOR_LANES(lane, lanes) {
    uint64_t address = op_address(warp, &inst->ops[0], (int)lane);
    uint64_t ordinal = field->ordinals ? op_get(warp, &inst->ops[1], (int)lane) : 0;
    uint64_t value = op_get(warp, &inst->ops[field->ordinals ? 2 : 1], (int)lane);
    if (field->ordinals && ordinal >= (uint64_t)field->ordinals)
      return machine_fault(machine, warp, (int)lane, "tensormap.replace: ordinal %llu is not in 0 to %d",
                           (unsigned long long)ordinal, field->ordinals - 1);
    if (value > field->most)
      return machine_fault(machine, warp, (int)lane, "tensormap.replace.%s: the value %llu is too large",
                           mod_spelling(field->mod), (unsigned long long)value);
    uint8_t *map =
        machine_address(machine, warp, (int)lane, inst_space(inst, 0), address, MAP_BYTES, MAP_BYTES, true);
    if (!map) return EXEC_FAULT;
    write_field(map, field, (int)ordinal, value);
    machine_event(machine, EVENT_WRITE, warp, 1u << lane, inst_space(inst, 0), address, MAP_BYTES);
  }
  machine->progress++;
  return EXEC_NEXT;
}

static const char *select_replace(Inst *inst) {
  if (!inst_has(inst, MOD_tile)) return "only .tile maps";
  if (!inst_has(inst, MOD_b1024)) return "needs .b1024";
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    if (!inst_has(inst, fields[i].mod)) continue;
    inst->aux = (int32_t)i;
    int operands = fields[i].ordinals ? 3 : 2;
    return inst->nops == operands ? NULL : "the number of operands does not fit the field";
  }
  return "no field is named";
}

static ExecResult exec_copy(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  if (!warp_meet(machine, warp, lanes, ~0u)) return EXEC_BLOCK;
  int lane = first_lane(lanes);
  if (op_get(warp, &inst->ops[2], lane) != MAP_BYTES)
    return machine_fault(machine, warp, lane, "tensormap.cp_fenceproxy copies 128 bytes");
  uint64_t to = op_address(warp, &inst->ops[0], lane), from = op_address(warp, &inst->ops[1], lane);
  const uint8_t *source =
      machine_address(machine, warp, lane, SPACE_SHARED, from, MAP_BYTES, MAP_BYTES, false);
  uint8_t *host =
      source ? machine_address(machine, warp, lane, SPACE_GLOBAL, to, MAP_BYTES, MAP_BYTES, true) : NULL;
  if (!host) return EXEC_FAULT;
  memcpy(host, source, MAP_BYTES);
  machine_event(machine, EVENT_READ, warp, 1u << lane, SPACE_SHARED, from, MAP_BYTES);
  machine_event(machine, EVENT_WRITE, warp, 1u << lane, SPACE_GLOBAL, to, MAP_BYTES);
  machine->progress++;
  return EXEC_NEXT;
}

const InstDef tensormap_insts[] = {
    {.name = "tensormap.replace",
     .classes = MC(TILE) | MC(TENSORMAP) | MC(SPACE),
     .operands = "mr?r",
     .min_sm = 90,
     .exec = exec_replace,
     .select = select_replace},
    {.name = "tensormap.cp_fenceproxy",
     .classes = MC(SPACE) | MC(PROXY) | MC(ORDER) | MC(SCOPE) | MC(ALIGNED),
     .operands = "mmi",
     .min_sm = 90,
     .exec = exec_copy},
    {0},
};

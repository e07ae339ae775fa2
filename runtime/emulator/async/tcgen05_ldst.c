// tcgen05.ld and st: a warp reads or writes its own quarter of the lanes in one of five register maps (PTX
// ISA 9.7.16.8). Loads deliver at once, since kernels exist that never wait for them; stores are queued per
// warp and land at wait::st at the latest.
#include <stdlib.h>

#include "async/async_internal.h"

typedef enum { MAP_32X32B, MAP_16X64B, MAP_16X128B, MAP_16X256B, MAP_16X32BX2 } Map;

// A warp's access once its operands are read.
typedef struct {
  Map map;
  int registers;
  int lane, column;  // first ones
  int split;         // 16x32bx2: columns to the second half
  bool packed;       // two columns share a register
} Access;

static int lane_of(const Access *a, int thread, int reg) {
  switch (a->map) {
  case MAP_32X32B:
    return a->lane + thread;
  case MAP_16X64B:
    return a->lane + thread / 4 + 8 * (thread % 2);
  case MAP_16X128B:
    return a->lane + thread / 4 + 8 * (reg % 2);
  case MAP_16X256B:
    return a->lane + thread / 4 + 8 * (reg / 2 % 2);
  case MAP_16X32BX2:
    break;
  }
  return a->lane + thread % 16;
}

static int column_of(const Access *a, int thread, int reg) {
  int wide = a->packed ? 2 : 1;
  switch (a->map) {
  case MAP_32X32B:
    return a->column + reg * wide;
  case MAP_16X64B:
    return a->column + (thread / 2 % 2 + 2 * reg) * wide;
  case MAP_16X128B:
    return a->column + (thread % 4 + 4 * (reg / 2)) * wide;
  case MAP_16X256B:
    return a->column + (2 * (thread % 4) + reg % 2 + 8 * (reg / 4)) * wide;
  case MAP_16X32BX2:
    break;
  }
  return a->column + thread / 16 * a->split + reg * wide;
}

// Columns touched from a->column on (the first half of 16x32bx2).
static int columns_of(const Access *a) {
  int wide = a->packed ? 2 : 1;
  switch (a->map) {
  case MAP_32X32B:
  case MAP_16X32BX2:
    return a->registers * wide;
  case MAP_16X64B:
  case MAP_16X128B:
  case MAP_16X256B:
    break;
  }
  return 2 * a->registers * wide;
}

// Registers per .x1 of each map.
static int registers_per_count(Map map) {
  return map == MAP_16X256B ? 4 : map == MAP_16X128B ? 2 : 1;
}

static const char *select_map(Inst *inst, int list) {
  static const struct {
    Mod mod;
    Map map;
    int most;
  } rows[] = {{MOD_shape_32x32b, MAP_32X32B, 128},
              {MOD_shape_16x64b, MAP_16X64B, 128},
              {MOD_shape_16x128b, MAP_16X128B, 64},
              {MOD_shape_16x256b, MAP_16X256B, 32},
              {MOD_shape_16x32bx2, MAP_16X32BX2, 128}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (!inst_has(inst, rows[i].mod)) continue;
    int count = inst->count, registers = count * registers_per_count(rows[i].map);
    const Operand *operand = &inst->ops[list];
    int given = operand->kind == OPERAND_VECTOR ? operand->nelems : 1;
    inst->aux = (int32_t)rows[i].map;
    inst->bytes = (uint16_t)registers;
    if (count < 1 || count > rows[i].most || (count & (count - 1)))
      return "this count is not possible for the shape";
    if (given != registers) return "the number of registers does not fit shape and count";
    if (rows[i].map == MAP_16X32BX2 && inst->nops < 3) return "16x32bx2 needs the offset of its second half";
    return NULL;
  }
  return "the shape is missing";
}

static const Operand *list_element(const Operand *list, int index) {
  return list->kind == OPERAND_VECTOR ? &list->elems[index] : list;
}

// Checks quarter and columns; false after a fault.
static bool read_access(Machine *machine, Warp *warp, const Inst *inst, uint32_t address, int64_t split,
                        bool packed, Access *a) {
  int quarter = warp->index % 4, lane = tmem_lane(address);
  *a = (Access){(Map)inst->aux, inst->bytes, 0, tmem_column(address), (int)split, packed};
  if (lane >= TMEM_LANES || (lane / 32 != 0 && lane / 32 != quarter)) {
    machine_fault(
        machine, warp, -1,
        "%s at 0x%x: lane %d belongs to another warp; warp %d (%d of its four) reaches lanes %d to %d",
        inst->def->name, address, lane, warp->index, quarter, quarter * 32, quarter * 32 + 31);
    return false;
  }
  int rest = lane % 32;
  if (rest != 0 && !(rest == 16 && a->map != MAP_32X32B)) {
    machine_fault(machine, warp, -1, "%s at 0x%x: lane %d does not start a quarter%s", inst->def->name,
                  address, lane, a->map == MAP_32X32B ? "" : " or its upper half");
    return false;
  }
  a->lane = quarter * 32 + rest;
  Origin origin = origin_here(machine, warp, -1);
  if (!tcgen05_columns(machine, &origin, warp->cta, a->column, columns_of(a), inst->def->name)) return false;
  return a->map != MAP_16X32BX2 ||
         tcgen05_columns(machine, &origin, warp->cta, a->column + a->split, columns_of(a), inst->def->name);
}

static uint32_t load_cell(const Tmem *tmem, const Access *a, int thread, int reg) {
  const uint32_t *cell = tmem_cell(tmem, lane_of(a, thread, reg), column_of(a, thread, reg));
  return a->packed ? (cell[0] & 0xFFFF) | cell[1] << 16 : cell[0];
}

static void store_cell(const Tmem *tmem, const Access *a, int thread, int reg, uint32_t value) {
  uint32_t *cell = tmem_cell(tmem, lane_of(a, thread, reg), column_of(a, thread, reg));
  cell[0] = a->packed ? value & 0xFFFF : value;
  if (a->packed) cell[1] = value >> 16;
}

static uint32_t bands_of(const Access *a) {
  return (a->map == MAP_32X32B ? 3u : 1u) << a->lane / 16;
}

static void access_event(Machine *machine, const Warp *warp, EventKind kind, uint32_t lanes,
                         const Access *a) {
  if (!(machine->event_mask >> kind & 1)) return;
  Event event = {.kind = kind,
                 .cta = warp->cta,
                 .warp = warp,
                 .inst = machine->inst,
                 .lanes = lanes,
                 .space = SPACE_TMEM};
  event.address = (uint64_t)a->lane << 16 | (uint64_t)a->column;
  event.bytes = (uint64_t)columns_of(a);
  event.bands = bands_of(a);
  machine_emit(machine, &event);
  event.address += (uint64_t)a->split;
  if (a->map == MAP_16X32BX2) machine_emit(machine, &event);
}

static ExecResult exec_ld(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  if (!warp_meet(machine, warp, lanes, ~0u)) return EXEC_BLOCK;
  Access access;
  int lane = first_lane(lanes);
  int64_t split = inst->nops > 2 ? (int64_t)op_get(warp, &inst->ops[2], lane) : 0;
  if (!read_access(machine, warp, inst, (uint32_t)op_address(warp, &inst->ops[1], lane), split,
                   inst_has(inst, MOD_pack_16b), &access))
    return EXEC_FAULT;
  const Tmem *tmem = &cta_async(warp->cta)->tmem;
  for (int reg = 0; reg < access.registers; reg++) {
    const Operand *operand = list_element(&inst->ops[0], reg);
    if (operand->kind != OPERAND_REG) continue;
    uint32_t *row = row32(warp, operand);
    FOR_LANES(thread, lanes) row[thread] = load_cell(tmem, &access, (int)thread, reg);
  }
  access_event(machine, warp, EVENT_READ, lanes, &access);
  return EXEC_NEXT;
}

typedef struct {
  EngineOp op;
  Access access;
  uint32_t lanes;
} StoreOp;  // buffer: [register][32]

static bool complete_store(Machine *machine, EngineOp *base) {
  StoreOp *op = (StoreOp *)base;
  const Cta *cta = base->origin.cta;
  const uint32_t *values = base->buffer;
  if (!tcgen05_columns(machine, &base->origin, cta, op->access.column, columns_of(&op->access), "tcgen05.st"))
    return false;
  for (int reg = 0; reg < op->access.registers; reg++) FOR_LANES(thread, op->lanes)
  store_cell(&cta_async(cta)->tmem, &op->access, (int)thread, reg, values[reg * WARP_LANES + (int)thread]);
  uint32_t first = (uint32_t)op->access.lane << 16 | (uint32_t)op->access.column;
  int columns = columns_of(&op->access);
  engine_tmem_event(machine, base, EVENT_ASYNC_WRITE, cta, first, columns, bands_of(&op->access));
  if (op->access.map == MAP_16X32BX2)
    engine_tmem_event(machine, base, EVENT_ASYNC_WRITE, cta, first + (uint32_t)op->access.split, columns,
                      bands_of(&op->access));
  return true;
}

static ExecResult exec_st(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  if (!warp_meet(machine, warp, lanes, ~0u)) return EXEC_BLOCK;
  Access access;
  int lane = first_lane(lanes), list = inst->nops - 1;
  int64_t split = inst->nops > 2 ? (int64_t)op_get(warp, &inst->ops[1], lane) : 0;
  if (!read_access(machine, warp, inst, (uint32_t)op_address(warp, &inst->ops[0], lane), split,
                   inst_has(inst, MOD_unpack_16b), &access))
    return EXEC_FAULT;
  StoreOp *op = engine_op_new(machine, warp, -1, ENGINE_OTHER, sizeof *op, complete_store);
  uint32_t *values = malloc((size_t)access.registers * WARP_LANES * sizeof *values);
  if (!op || !values) {
    free(op);
    free(values);
    return machine_fault(machine, warp, -1, "the emulator is out of memory");
  }
  op->op.buffer = values;
  op->access = access;
  op->lanes = lanes;
  for (int reg = 0; reg < access.registers; reg++) {
    const Operand *operand = list_element(&inst->ops[list], reg);
    FOR_LANES(thread, lanes)
    values[reg * WARP_LANES + (int)thread] = (uint32_t)op_get(warp, operand, (int)thread);
  }
  AsyncGroup *group = &cta_async(warp->cta)->tmem_stores[warp->index];
  op->op.groups = group;
  op->op.group_lanes = 1;
  engine_queue(machine, &op->op);
  group_commit(group);
  return EXEC_NEXT;
}

static const char *select_ld(Inst *inst) {
  return select_map(inst, 0);
}
static const char *select_st(Inst *inst) {
  return select_map(inst, inst->nops - 1);
}

// Loads have delivered already.
static ExecResult exec_wait_ld(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)inst;
  if (!warp_meet(machine, warp, lanes, ~0u)) return EXEC_BLOCK;
  machine_event(machine, EVENT_FENCE, warp, lanes, SPACE_TMEM, 0, 0);
  return EXEC_NEXT;
}

static ExecResult exec_wait_st(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)inst;
  if (!warp_meet(machine, warp, lanes, ~0u)) return EXEC_BLOCK;
  machine_event(machine, EVENT_FENCE, warp, lanes, SPACE_TMEM, 0, 0);
  return group_wait(machine, warp, lanes, &cta_async(warp->cta)->tmem_stores[warp->index], true, 0, false,
                    "tcgen05.wait::st");
}

#define LDST_CLASSES (MC(ALIGNED) | MC(TMEM_SHAPE) | MC(COUNT) | MC(PACK))

const InstDef tcgen05_ldst_insts[] = {
    {.name = "tcgen05.ld",
     .classes = LDST_CLASSES,
     .operands = "xm?i",
     .min_sm = 100,
     .exec = exec_ld,
     .select = select_ld},
    {.name = "tcgen05.st",
     .classes = LDST_CLASSES,
     .operands = "mx?x",
     .min_sm = 100,
     .exec = exec_st,
     .select = select_st},
    {.name = "tcgen05.wait::ld", .classes = MC(ALIGNED), .operands = "", .min_sm = 100, .exec = exec_wait_ld},
    {.name = "tcgen05.wait::st", .classes = MC(ALIGNED), .operands = "", .min_sm = 100, .exec = exec_wait_st},
    {0},
};

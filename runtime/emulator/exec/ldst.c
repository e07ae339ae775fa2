// Loads and stores. Memory is always up to date in program order, so ordering and cache modifiers change
// nothing here; they are kept for observers. A register may be wider than the type: loads extend, stores
// truncate.
#include "exec/exec.h"

#include <string.h>

uint8_t *machine_address(Machine *machine, Warp *warp, int lane, Space space, uint64_t address,
                         uint64_t bytes, uint64_t align, bool write) {
  if (address % align != 0) {
    machine_fault(machine, warp, lane, "address 0x%llx is not aligned to %llu bytes",
                  (unsigned long long)address, (unsigned long long)align);
    return NULL;
  }
  SpaceError why;
  uint8_t *host = space_find(machine, warp, lane, space, address, bytes, write, &why);
  if (host == NULL) machine_fault(machine, warp, lane, "%s", why.text);
  return host;
}

// The common cases without a call: own shared memory, and the global block that was hit last.
static inline uint8_t *quick_address(const Machine *machine, const Warp *warp, Space space, uint64_t address,
                                     uint64_t bytes) {
  if (space == SPACE_SHARED) {
    uint64_t offset = address - ((uint64_t)warp->cta->rank << SHARED_RANK_SHIFT);
    return offset + bytes <= warp->cta->smem_bytes && offset < warp->cta->smem_bytes
               ? warp->cta->smem + offset
               : NULL;
  }
  const GmemBlock *block = machine->gmem_hint;
  if (block == NULL || space > SPACE_GLOBAL) return NULL;
  uint64_t offset = address - block->base;
  return offset < block->bytes && bytes <= block->bytes - offset ? block->host + offset : NULL;
}

static inline uint8_t *address_of(Machine *machine, Warp *warp, int lane, Space space, uint64_t address,
                                  uint64_t bytes, bool write) {
  uint8_t *host = quick_address(machine, warp, space, address, bytes);
  if (host != NULL && address % bytes == 0) return host;
  return machine_address(machine, warp, lane, space, address, bytes, bytes, write);
}

static int64_t extend(uint64_t value, int bits) {
  return (int64_t)(value << (64 - bits)) >> (64 - bits);
}

static uint64_t read_value(const uint8_t *from, int size) {
  uint64_t value = 0;
  switch (size) {
  case 1:
    return *from;
  case 2:
    memcpy(&value, from, 2);
    return value;
  case 4:
    memcpy(&value, from, 4);
    return value;
  default:
    memcpy(&value, from, 8);
    return value;
  }
}

static const Operand *element(const Operand *op, int index) {
  return op->kind == OPERAND_VECTOR ? &op->elems[index] : op;
}

static int element_count(const Operand *op) {
  return op->kind == OPERAND_VECTOR ? op->nelems : 1;
}

static void load_element(Warp *warp, const Inst *inst, const Operand *d, int lane, const uint8_t *from,
                         int size) {
  if (d->kind != OPERAND_REG) return;
  if (size == 16) {
    op_set128(warp, d, lane, read_value(from, 8), read_value(from + 8, 8));
    return;
  }
  uint64_t value = read_value(from, size);
  if (ptx_type_signed((PtxType)inst->types[0])) value = (uint64_t)extend(value, size * 8);
  if (d->row == ROW_32 && ptx_type_bits((PtxType)d->type) == 32) {
    row32(warp, d)[lane] = (uint32_t)value;
  } else {
    op_set(warp, d, lane, value);
  }
}

static ExecResult exec_ld(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  Space space = (Space)inst->aux;
  const Operand *d = &inst->ops[0], *a = &inst->ops[1];
  int count = element_count(d), size = ptx_type_bits((PtxType)inst->types[0]) / 8;
  uint64_t bytes = inst->bytes;
  FOR_LANES(lane, lanes) {
    uint64_t address = op_address(warp, a, (int)lane);
    const uint8_t *from = address_of(machine, warp, (int)lane, space, address, bytes, false);
    if (from == NULL) return EXEC_FAULT;
    for (int i = 0; i < count; i++) load_element(warp, inst, element(d, i), (int)lane, from + i * size, size);
    machine_event(machine, EVENT_READ, warp, 1u << lane, space, address, bytes);
  }
  return EXEC_NEXT;
}

// 32-bit elements into 32-bit registers, one or more
static ExecResult exec_ld32(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  Space space = (Space)inst->aux;
  const Operand *d = &inst->ops[0], *a = &inst->ops[1];
  int count = element_count(d);
  uint64_t bytes = inst->bytes;
  uint32_t *rows[8];
  for (int i = 0; i < count; i++) rows[i] = row32(warp, element(d, i));
  FOR_LANES(lane, lanes) {
    uint64_t address = op_address(warp, a, (int)lane);
    const uint8_t *from = address_of(machine, warp, (int)lane, space, address, bytes, false);
    if (from == NULL) return EXEC_FAULT;
    for (int i = 0; i < count; i++) memcpy(&rows[i][lane], from + 4 * i, 4);
    machine_event(machine, EVENT_READ, warp, 1u << lane, space, address, bytes);
  }
  return EXEC_NEXT;
}

// A polled flag: other threads or engines must get their turn.
static ExecResult exec_ld_poll(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  machine_poll(warp);
  return exec_ld(machine, warp, inst, lanes);
}

static void store_element(const Warp *warp, const Operand *a, int lane, uint8_t *to, int size) {
  uint64_t value = op_get(warp, a, lane);
  memcpy(to, &value, (size_t)(size > 8 ? 8 : size));
  if (size < 16) return;
  value = op_get_hi(warp, a, lane);
  memcpy(to + 8, &value, 8);
}

static ExecResult exec_st(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  Space space = (Space)inst->aux;
  const Operand *a = &inst->ops[0], *s = &inst->ops[1];
  int count = element_count(s), size = ptx_type_bits((PtxType)inst->types[0]) / 8;
  uint64_t bytes = inst->bytes;
  machine->progress += space != SPACE_LOCAL && space != SPACE_PARAM;
  FOR_LANES(lane, lanes) {
    uint64_t address = op_address(warp, a, (int)lane);
    uint8_t *to = address_of(machine, warp, (int)lane, space, address, bytes, true);
    if (to == NULL) return EXEC_FAULT;
    for (int i = 0; i < count; i++) store_element(warp, element(s, i), (int)lane, to + i * size, size);
    machine_event(machine, EVENT_WRITE, warp, 1u << lane, space, address, bytes);
  }
  return EXEC_NEXT;
}

static ExecResult exec_st32(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  Space space = (Space)inst->aux;
  const Operand *a = &inst->ops[0], *s = &inst->ops[1];
  int count = element_count(s);
  uint64_t bytes = inst->bytes;
  const uint32_t *rows[8];
  for (int i = 0; i < count; i++) rows[i] = row32(warp, element(s, i));
  machine->progress += space != SPACE_LOCAL && space != SPACE_PARAM;
  FOR_LANES(lane, lanes) {
    uint64_t address = op_address(warp, a, (int)lane);
    uint8_t *to = address_of(machine, warp, (int)lane, space, address, bytes, true);
    if (to == NULL) return EXEC_FAULT;
    for (int i = 0; i < count; i++) memcpy(to + 4 * i, &rows[i][lane], 4);
    machine_event(machine, EVENT_WRITE, warp, 1u << lane, space, address, bytes);
  }
  return EXEC_NEXT;
}

// ---- which handler

static const char *check_access(Inst *inst, const Operand *registers) {
  int bits = inst->ntypes > 0 ? ptx_type_bits((PtxType)inst->types[0]) : 0, count = element_count(registers);
  if (bits < 8 || bits % 8 != 0) return "this type is not supported";
  if (registers->kind == OPERAND_VECTOR ? count != inst->vec : inst->vec != 1)
    return "the vector's length differs from the braces";
  if (count > 8 || count * bits > 256) return "at most 32 bytes a lane";
  for (int i = 0; i < count; i++) {
    const Operand *op = element(registers, i);
    if (op->kind != OPERAND_REG && op->kind != OPERAND_SINK) return "registers expected";
    if (op->kind == OPERAND_REG && op->row == ROW_PRED) return "a predicate cannot be loaded or stored";
  }
  inst->bytes = (uint16_t)(count * bits / 8);
  inst->aux = (int32_t)inst_space(inst, 0);
  return NULL;
}

static bool all_32(const Inst *inst, const Operand *registers) {
  if (ptx_type_bits((PtxType)inst->types[0]) != 32) return false;
  for (int i = 0; i < element_count(registers); i++) {
    const Operand *op = element(registers, i);
    if (op->kind != OPERAND_REG || op->row != ROW_32) return false;
  }
  return true;
}

static const char *select_ld(Inst *inst) {
  const char *why = check_access(inst, &inst->ops[0]);
  if (why != NULL) return why;
  bool polls = inst_has(inst, MOD_volatile) || inst_has(inst, MOD_relaxed) || inst_has(inst, MOD_acquire) ||
               inst_has(inst, MOD_mmio);
  inst->exec = polls ? exec_ld_poll : all_32(inst, &inst->ops[0]) ? exec_ld32 : exec_ld;
  return NULL;
}

static const char *select_st(Inst *inst) {
  const char *why = check_access(inst, &inst->ops[1]);
  if (why != NULL) return why;
  inst->exec = all_32(inst, &inst->ops[1]) ? exec_st32 : exec_st;
  return NULL;
}

// ---- hints

static ExecResult exec_hint(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine, (void)warp, (void)inst, (void)lanes;
  return EXEC_NEXT;
}

// createpolicy writes some value: nobody looks inside
static ExecResult exec_policy(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  FOR_LANES(lane, lanes) op_set(warp, &inst->ops[0], (int)lane, 0x10000000u);
  return EXEC_NEXT;
}

#define MEMORY (MC(SPACE) | MC(ORDER) | MC(SCOPE) | MC(NC) | MC(CACHE) | MC(HINT) | MC(VECTOR))

const InstDef ldst_insts[] = {
    {"ld", MEMORY, "rm?l", 0, NULL, NULL, select_ld},
    {"ldu", MEMORY, "rm", 0, NULL, NULL, select_ld},
    {"st", MEMORY, "mr?l", 0, NULL, NULL, select_st},
    {"prefetch", MEMORY, "m", 0, exec_hint, NULL, NULL},
    {"prefetch.tensormap", MEMORY, "m", 0, exec_hint, NULL, NULL},
    {"prefetch.param.tensormap", MEMORY, "m", 0, exec_hint, NULL, NULL},
    {"prefetch.const.tensormap", MEMORY, "m", 0, exec_hint, NULL, NULL},
    {"prefetchu", MEMORY, "m", 0, exec_hint, NULL, NULL},
    {"applypriority", MEMORY, "mi", 0, exec_hint, NULL, NULL},
    {"createpolicy", MEMORY, "l?**", 0, exec_policy, NULL, NULL},
    {.name = NULL},
};

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

typedef struct {
  uint8_t *at[WARP_LANES];
} Hosts;

// The common cases without a call: own shared memory, and the global block that was hit last. NULL: the long
// way.
static inline uint8_t *quick(const Machine *machine, const Warp *warp, Space space, uint64_t address,
                             uint64_t bytes) {
  if (space == SPACE_SHARED) {
    uint64_t offset = address - ((uint64_t)warp->cta->rank << SHARED_RANK_SHIFT), end = warp->cta->smem_bytes;
    return offset < end && bytes <= end - offset ? warp->cta->smem + offset : NULL;
  }
  const GmemBlock *block = machine->gmem_hint;
  if (block == NULL || space > SPACE_GLOBAL) return NULL;
  uint64_t offset = address - block->base;
  return offset < block->bytes && bytes <= block->bytes - offset ? block->host + offset : NULL;
}

static void addresses(const Warp *warp, const Operand *op, uint64_t out[WARP_LANES]) {
  if (op->row == ROW_64) {
    const uint64_t *base = row64(warp, op);
    for (int i = 0; i < WARP_LANES; i++) out[i] = base[i] + (uint64_t)op->value;
  } else if (op->row == ROW_32) {
    const uint32_t *base = row32(warp, op);
    for (int i = 0; i < WARP_LANES; i++) out[i] = (uint32_t)(base[i] + (uint32_t)op->value);
  } else {
    for (int i = 0; i < WARP_LANES; i++) out[i] = (uint64_t)op->value;
  }
}

static void emit(Machine *machine, const Warp *warp, EventKind kind, const Inst *inst, uint32_t lanes,
                 const uint64_t address[WARP_LANES]) {
  FOR_LANES(lane, lanes)
  machine_event(machine, kind, warp, 1u << lane, (Space)inst->aux, address[lane], inst->bytes);
}

// Observers of a write look at what was written: they hear of it afterwards.
static void emit_stores(Machine *machine, const Warp *warp, const Inst *inst, uint32_t lanes) {
  uint64_t address[WARP_LANES];
  addresses(warp, &inst->ops[0], address);
  emit(machine, warp, EVENT_WRITE, inst, lanes, address);
}

// Where each lane's access goes; false after reporting a fault.
static bool resolve(Machine *machine, Warp *warp, const Inst *inst, const Operand *op, uint32_t lanes,
                    bool write, Hosts *hosts) {
  Space space = (Space)inst->aux;
  uint64_t bytes = inst->bytes, address[WARP_LANES];
  addresses(warp, op, address);
  FOR_LANES(lane, lanes) {
    uint8_t *host = quick(machine, warp, space, address[lane], bytes);
    if (host == NULL || (address[lane] & (bytes - 1)) != 0) {
      host = machine_address(machine, warp, (int)lane, space, address[lane], bytes, bytes, write);
    }
    if (host == NULL) return false;
    hosts->at[lane] = host;
  }
  if (!write && machine->event_mask >> EVENT_READ & 1) emit(machine, warp, EVENT_READ, inst, lanes, address);
  return true;
}

static int64_t extend(uint64_t value, int bits) {
  return (int64_t)(value << (64 - bits)) >> (64 - bits);
}

static uint64_t read_value(const uint8_t *from, int size) {
  uint64_t value = 0;
  memcpy(&value, from, (size_t)size);
  return value;
}

static const Operand *element(const Operand *op, int index) {
  return op->kind == OPERAND_VECTOR ? &op->elems[index] : op;
}

static int element_count(const Operand *op) {
  return op->kind == OPERAND_VECTOR ? op->nelems : 1;
}

// Any register, any size.
static void load_any(Warp *warp, const Operand *d, uint32_t lanes, const Hosts *hosts, int at, int size,
                     bool is_signed) {
  FOR_LANES(lane, lanes) {
    const uint8_t *from = hosts->at[lane] + at;
    if (size == 16) {
      op_set128(warp, d, (int)lane, read_value(from, 8), read_value(from + 8, 8));
    } else {
      uint64_t value = read_value(from, size);
      op_set(warp, d, (int)lane, is_signed ? (uint64_t)extend(value, size * 8) : value);
    }
  }
}

#define LOAD_LANES(row, T, lanes, hosts, offset)                                                             \
  FOR_LANES(lane, lanes) {                                                                                   \
    T value_;                                                                                                \
    memcpy(&value_, (hosts)->at[lane] + (offset), sizeof value_);                                            \
    (row)[lane] = value_;                                                                                    \
  }

static ExecResult exec_ld(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  const Operand *d = &inst->ops[0];
  int count = element_count(d), size = inst->bytes / count;
  bool is_signed = ptx_type_signed((PtxType)inst->types[0]);
  Hosts hosts;
  if (!resolve(machine, warp, inst, &inst->ops[1], lanes, false, &hosts)) return EXEC_FAULT;
  for (int i = 0; i < count; i++) {
    const Operand *op = element(d, i);
    int at = i * size;
    if (op->kind != OPERAND_REG) continue;
    if (op->row == ROW_32 && size == 4) {
      LOAD_LANES(row32(warp, op), uint32_t, lanes, &hosts, at)
    } else if (op->row == ROW_32 && size == 2 && !is_signed) {
      LOAD_LANES(row32(warp, op), uint16_t, lanes, &hosts, at)
    } else if (op->row == ROW_32 && size == 1 && !is_signed) {
      LOAD_LANES(row32(warp, op), uint8_t, lanes, &hosts, at)
    } else if (op->row == ROW_64 && size == 8) {
      LOAD_LANES(row64(warp, op), uint64_t, lanes, &hosts, at)
    } else {
      load_any(warp, op, lanes, &hosts, at, size, is_signed);
    }
  }
  return EXEC_NEXT;
}

// A polled flag: other threads or engines must get their turn.
static ExecResult exec_ld_poll(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  machine_poll(warp);
  return exec_ld(machine, warp, inst, lanes);
}

static void store_any(const Warp *warp, const Operand *s, uint32_t lanes, const Hosts *hosts, int at,
                      int size) {
  FOR_LANES(lane, lanes) {
    uint64_t parts[2] = {op_get(warp, s, (int)lane), op_get_hi(warp, s, (int)lane)};
    memcpy(hosts->at[lane] + at, parts, (size_t)size);
  }
}

#define STORE_LANES(row, T, lanes, hosts, offset)                                                            \
  FOR_LANES(lane, lanes) {                                                                                   \
    T value_ = (T)(row)[lane];                                                                               \
    memcpy((hosts)->at[lane] + (offset), &value_, sizeof value_);                                            \
  }

static ExecResult exec_st(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  const Operand *s = &inst->ops[1];
  int count = element_count(s), size = inst->bytes / count;
  machine->progress += inst->aux != SPACE_LOCAL && inst->aux != SPACE_PARAM;
  Hosts hosts;
  if (!resolve(machine, warp, inst, &inst->ops[0], lanes, true, &hosts)) return EXEC_FAULT;
  for (int i = 0; i < count; i++) {
    const Operand *op = element(s, i);
    int at = i * size;
    if (op->row == ROW_32 && size == 4) {
      STORE_LANES(row32(warp, op), uint32_t, lanes, &hosts, at)
    } else if (op->row == ROW_32 && size == 2) {
      STORE_LANES(row32(warp, op), uint16_t, lanes, &hosts, at)
    } else if (op->row == ROW_32 && size == 1) {
      STORE_LANES(row32(warp, op), uint8_t, lanes, &hosts, at)
    } else if (op->row == ROW_64 && size == 8) {
      STORE_LANES(row64(warp, op), uint64_t, lanes, &hosts, at)
    } else {
      store_any(warp, op, lanes, &hosts, at, size);
    }
  }
  if (machine->event_mask >> EVENT_WRITE & 1) emit_stores(machine, warp, inst, lanes);
  return EXEC_NEXT;
}

// ---- which handler

static const char *check_access(Inst *inst, const Operand *registers) {
  int bits = inst->ntypes > 0 ? ptx_type_bits((PtxType)inst->types[0]) : 0, count = element_count(registers);
  if (bits < 8 || bits % 8 != 0) return "this type is not supported";
  if (registers->kind == OPERAND_VECTOR ? count != inst->vec : inst->vec != 1)
    return "the vector's length differs from the braces";
  if (count < 1) return "no registers";
  if (count > 8 || count * bits > 256) return "at most 32 bytes a lane";
  for (int i = 0; i < count; i++) {
    const Operand *op = element(registers, i);
    if (op->kind != OPERAND_REG && op->kind != OPERAND_SINK) return "registers expected";
    if (op->kind == OPERAND_REG && op->row == ROW_PRED) return "a predicate cannot be loaded or stored";
    if (op->kind == OPERAND_REG && op->bank == BANK_CONST && registers == &inst->ops[0])
      return "the destination is no register";
  }
  inst->bytes = (uint16_t)(count * bits / 8);
  inst->aux = (int32_t)inst_space(inst, 0);
  return NULL;
}

static const char *select_ld(Inst *inst) {
  const char *why = check_access(inst, &inst->ops[0]);
  if (why != NULL) return why;
  bool polls = inst_has(inst, MOD_volatile) || inst_has(inst, MOD_relaxed) || inst_has(inst, MOD_acquire) ||
               inst_has(inst, MOD_mmio);
  inst->exec = polls ? exec_ld_poll : exec_ld;
  return NULL;
}

static const char *select_st(Inst *inst) {
  const char *why = check_access(inst, &inst->ops[1]);
  if (why != NULL) return why;
  inst->exec = exec_st;
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
    {"discard", MEMORY, "mi", 0, exec_hint, NULL, NULL},
    {"applypriority", MEMORY, "mi", 0, exec_hint, NULL, NULL},
    {"createpolicy.cvt", MEMORY, "ll", 0, exec_policy, NULL, NULL},
    {"createpolicy", MEMORY, "l?**", 0, exec_policy, NULL, NULL},
    {.name = NULL},
};

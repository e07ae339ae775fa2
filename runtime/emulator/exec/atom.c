// Atomics and reductions. Lanes act one after another in lane order, each on the memory that the last one
// left.
#include "exec/exec.h"

#include <math.h>
#include <string.h>

#include "num/num.h"

static float flushed(float x) {
  return fabsf(x) < 1.17549435e-38f ? copysignf(0, x) : x;
}

// `ftz`: global memory's adders flush subnormal f32 (PTX ISA 9.7.13.6, and measured).
static uint64_t add_floats(PtxType type, uint64_t a, uint64_t b, bool ftz) {
  if (type == PT_f64) {
    double x, y;
    memcpy(&x, &a, 8);
    memcpy(&y, &b, 8);
    x += y;
    memcpy(&a, &x, 8);
    return a;
  }
  if (type == PT_f32) {
    float x = num_f32_from_bits((uint32_t)a), y = num_f32_from_bits((uint32_t)b);
    return num_f32_bits(ftz ? flushed(flushed(x) + flushed(y)) : x + y);
  }
  const NumFormat *format = type == PT_f16 || type == PT_f16x2 ? &num_f16 : &num_bf16;
  uint64_t low =
      num_encode(format, num_decode(format, a & 0xffff) + num_decode(format, b & 0xffff), NUM_RN, false);
  if (type == PT_f16 || type == PT_bf16) return low;
  uint32_t ah = (uint32_t)(a >> 16), bh = (uint32_t)(b >> 16);
  return low | (uint64_t)num_encode(format, num_decode(format, ah) + num_decode(format, bh), NUM_RN, false)
                   << 16;
}

static uint64_t minmax_floats(PtxType type, uint64_t a, uint64_t b, bool least) {
  const NumFormat *format = type == PT_f16 || type == PT_f16x2 ? &num_f16 : &num_bf16;
  uint64_t result = 0;
  for (int i = 0; i < (type == PT_f16x2 || type == PT_bf16x2 ? 2 : 1); i++) {
    uint32_t x = (uint32_t)(a >> 16 * i & 0xffff), y = (uint32_t)(b >> 16 * i & 0xffff);
    double u = num_decode(format, x), v = num_decode(format, y);
    bool first = u != u ? false : v != v ? true : least ? u < v : u > v;
    result |= (uint64_t)(first ? x : y) << 16 * i;
  }
  return result;
}

static uint64_t minmax(PtxType type, uint64_t a, uint64_t b, bool least) {
  if (ptx_type_float(type)) return minmax_floats(type, a, b, least);
  bool less;
  switch (type) {
  case PT_s32:
    less = (int32_t)a < (int32_t)b;
    break;
  case PT_s64:
    less = (int64_t)a < (int64_t)b;
    break;
  default:
    less = a < b;
    break;
  }
  return less == least ? a : b;
}

static uint64_t apply(const Inst *inst, PtxType type, uint64_t old, uint64_t b, uint64_t c, bool global) {
  switch ((Mod)inst->aux) {
  case MOD_and:
    return old & b;
  case MOD_or:
    return old | b;
  case MOD_xor:
    return old ^ b;
  case MOD_exch:
    return b;
  case MOD_cas:
    return old == b ? c : old;
  case MOD_add:
    return ptx_type_float(type) ? add_floats(type, old, b, global) : old + b;
  case MOD_inc:
    return old >= b ? 0 : old + 1;
  case MOD_dec:
    return old == 0 || old > b ? b : old - 1;
  case MOD_min:
    return minmax(type, old, b, true);
  default:
    return minmax(type, old, b, false);
  }
}

static const Operand *element(const Operand *op, int index) {
  return op->kind == OPERAND_VECTOR ? &op->elems[index] : op;
}

static ExecResult exec_atomic(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  bool returns = inst->def->name[0] == 'a';
  const Operand *address = &inst->ops[returns ? 1 : 0], *b = address + 1;
  PtxType type = type0(inst);
  Space space = inst_space(inst, 0);
  uint64_t size = (uint64_t)ptx_type_bits(type) / 8, bytes = size * inst->vec;
  bool changed = false;
  FOR_LANES(lane, lanes) {
    uint64_t at = op_address(warp, address, (int)lane);
    uint8_t *host = machine_address(machine, warp, (int)lane, space, at, bytes, bytes, true);
    if (host == NULL) return EXEC_FAULT;
    bool global = space == SPACE_GLOBAL || (space == SPACE_GENERIC && !space_is_shared(at));
    for (int i = 0; i < inst->vec; i++) {
      uint64_t old = 0, value = op_get(warp, element(b, i), (int)lane);
      uint64_t c = inst->aux == MOD_cas ? op_get(warp, &b[1], (int)lane) : 0;
      memcpy(&old, host + (uint64_t)i * size, size);
      uint64_t result = apply(inst, type, old, value, c, global);
      memcpy(host + (uint64_t)i * size, &result, size);
      changed |= memcmp(&result, &old, size) != 0;
      if (returns) op_set(warp, element(&inst->ops[0], i), (int)lane, old);
    }
    machine_event(machine, EVENT_READ, warp, 1u << lane, space, at, bytes);
    machine_event(machine, EVENT_WRITE, warp, 1u << lane, space, at, bytes);
  }
  if (changed) {
    machine->progress++;
  } else {
    machine_poll(warp);
  }
  return EXEC_NEXT;
}

// 128-bit exchange and compare-and-swap
static ExecResult exec_atomic128(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  FOR_LANES(lane, lanes) {
    uint64_t at = op_address(warp, &inst->ops[1], (int)lane), old[2];
    uint8_t *host = machine_address(machine, warp, (int)lane, inst_space(inst, 0), at, 16, 16, true);
    if (host == NULL) return EXEC_FAULT;
    memcpy(old, host, 16);
    const Operand *value = &inst->ops[inst->aux == MOD_cas ? 3 : 2];
    uint64_t next[2] = {op_get(warp, value, (int)lane), op_get_hi(warp, value, (int)lane)};
    bool same = old[0] == op_get(warp, &inst->ops[2], (int)lane) &&
                old[1] == op_get_hi(warp, &inst->ops[2], (int)lane);
    if (inst->aux == MOD_exch || same) memcpy(host, next, 16);
    op_set128(warp, &inst->ops[0], (int)lane, old[0], old[1]);
  }
  machine->progress++;
  return EXEC_NEXT;
}

static bool type_fits(Mod op, PtxType type) {
  bool is_float = ptx_type_float(type);
  bool half = type == PT_f16 || type == PT_bf16 || type == PT_f16x2 || type == PT_bf16x2;
  switch (op) {
  case MOD_add:
    return !is_float || half || type == PT_f32 || type == PT_f64;
  case MOD_min:
  case MOD_max:
    return !is_float || half;
  default:
    return !is_float;
  }
}

static const char *select_atomic(Inst *inst) {
  Mod op = inst_mod_in(inst, MC_OPERATION);
  PtxType type = type0(inst);
  bool returns = inst->def->name[0] == 'a';
  int address = returns ? 1 : 0;
  inst->aux = (int32_t)op;
  if (op == MOD_COUNT || op == MOD_popc || !type_fits(op, type))
    return "this operation on this type is not supported";
  if (inst->ops[address].kind != OPERAND_ADDRESS) return "expected an address";
  if (type == PT_b128)
    return inst->exec = exec_atomic128, returns && (op == MOD_exch || op == MOD_cas) ? NULL : "unsupported";
  inst->exec = exec_atomic;
  int bits = ptx_type_bits(type);
  if (bits != 16 && bits != 32 && bits != 64) return "this type is not supported";
  for (int i = 0; i < inst->nops; i++) {
    if (inst->ops[i].kind == OPERAND_VECTOR && inst->ops[i].nelems != inst->vec)
      return "the vector's length differs from the braces";
  }
  return inst->nops >= address + (op == MOD_cas ? 3 : 2) ? NULL : "too few operands";
}

#define ATOMIC                                                                                               \
  (MC(SPACE) | MC(ORDER) | MC(SCOPE) | MC(CACHE) | MC(HINT) | MC(OPERATION) | MC(NOFTZ) | MC(VECTOR))

const InstDef atom_insts[] = {
    {"atom", ATOMIC, "rmx?xx", 0, NULL, NULL, select_atomic},
    {"red", ATOMIC, "mx?x", 0, NULL, NULL, select_atomic},
    {.name = NULL},
};

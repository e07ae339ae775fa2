// mov in all its forms: registers, constants, addresses of variables, packing and unpacking with braces,
// clocks; address-space conversions. Types are loose: a move takes any register of the right width.
#include "exec/exec.h"

#include <string.h>
#include <time.h>

// ---- whole rows

UNARY(mov32, uint32_t, a)
UNARY(mov64, uint64_t, a)

static ExecResult mov_pred(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  op_set_pred(warp, &inst->ops[0], lanes, row_pred(warp, &inst->ops[1]));
  return EXEC_NEXT;
}

static ExecResult mov128(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  FOR_LANES(lane, lanes) {
    uint64_t low = op_get(warp, &inst->ops[1], (int)lane), high = op_get_hi(warp, &inst->ops[1], (int)lane);
    op_set128(warp, &inst->ops[0], (int)lane, low, high);
  }
  return EXEC_NEXT;
}

// ---- packing: the first element is the low part

static ExecResult mov_pack(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  const Operand *vector = &inst->ops[1];
  int bits = inst->aux;
  uint64_t mask = bits == 64 ? ~(uint64_t)0 : ((uint64_t)1 << bits) - 1;
  FOR_LANES(lane, lanes) {
    uint64_t parts[2] = {0, 0};
    for (int i = 0; i < vector->nelems; i++) {
      int at = i * bits;
      parts[at / 64] |= (op_get(warp, &vector->elems[i], (int)lane) & mask) << at % 64;
    }
    op_set128(warp, &inst->ops[0], (int)lane, parts[0], parts[1]);
  }
  return EXEC_NEXT;
}

static ExecResult mov_unpack(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  const Operand *vector = &inst->ops[0];
  int bits = inst->aux;
  uint64_t mask = bits == 64 ? ~(uint64_t)0 : ((uint64_t)1 << bits) - 1;
  FOR_LANES(lane, lanes) {
    uint64_t parts[2] = {op_get(warp, &inst->ops[1], (int)lane), op_get_hi(warp, &inst->ops[1], (int)lane)};
    for (int i = 0; i < vector->nelems; i++) {
      int at = i * bits;
      op_set(warp, &vector->elems[i], (int)lane, parts[at / 64] >> at % 64 & mask);
    }
  }
  return EXEC_NEXT;
}

// ---- clocks: any increasing number will do

static uint64_t clock_value(const Machine *machine, int sreg) {
  switch (sreg) {
  case SREG_CLOCK_HI:
    return machine->steps >> 32;
  case SREG_GLOBALTIMER_HI:
    return (machine->steps * 2) >> 32;
  case SREG_GLOBALTIMER:
  case SREG_GLOBALTIMER_LO:
    return machine->steps * 2;
  default:
    return machine->steps;
  }
}

static ExecResult mov_clock(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  uint64_t value = clock_value(machine, (int)inst->ops[1].value);
  FOR_LANES(lane, lanes) op_set(warp, &inst->ops[0], (int)lane, value);
  return EXEC_NEXT;
}

static const char *select_vector(Inst *inst, const Operand *vector, ExecFn exec) {
  int bits = ptx_type_bits(type0(inst));
  if (vector->nelems < 2 || bits % vector->nelems != 0) return "the braces don't divide the type";
  inst->aux = bits / vector->nelems;
  inst->exec = exec;
  return NULL;
}

// 16 and 32 bits share a row, 64 have another.
static bool has_width(const Operand *op, int bits) {
  int own = ptx_type_bits((PtxType)op->type);
  return op->kind != OPERAND_REG || own == 0 || own == bits || own > 32 || own < 16 || bits > 32;
}

static const char *select_mov(Inst *inst) {
  const Operand *d = &inst->ops[0], *a = &inst->ops[1];
  if (d->kind == OPERAND_REG && d->bank == BANK_CONST) return "the destination is no register";
  if (d->kind == OPERAND_VECTOR) return select_vector(inst, d, mov_unpack);
  if (a->kind == OPERAND_VECTOR) return select_vector(inst, a, mov_pack);
  if (a->kind == OPERAND_CLOCK) return inst->exec = mov_clock, NULL;
  if (a->kind != OPERAND_REG || (d->kind != OPERAND_REG && d->kind != OPERAND_SINK))
    return "operands expected to be registers";
  if (d->kind == OPERAND_SINK) return inst->exec = mov128, NULL;
  int bits = ptx_type_bits(type0(inst));
  if (d->row != a->row || bits == 0 || !has_width(d, bits) || !has_width(a, bits))
    return "the registers differ in width";
  inst->exec = d->row == ROW_PRED ? mov_pred : d->row == ROW_128 ? mov128 : d->row == ROW_64 ? mov64 : mov32;
  return NULL;
}

// ---- cvta mapa isspacep getctarank

static uint64_t window_of(Space space) {
  switch (space) {
  case SPACE_SHARED:
  case SPACE_SHARED_CLUSTER:
    return SHARED_WINDOW;
  case SPACE_LOCAL:
    return LOCAL_WINDOW;
  case SPACE_PARAM:
    return PARAM_WINDOW;
  case SPACE_GENERIC:
  case SPACE_GLOBAL:
  case SPACE_CONST:
  case SPACE_TMEM:
    break;
  }
  return 0;
}

static ExecResult exec_cvta(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  uint64_t window = window_of(inst_space(inst, 0));
  bool to = inst_has(inst, MOD_to);
  FOR_LANES(lane, lanes) {
    uint64_t a = op_get(warp, &inst->ops[1], (int)lane);
    // A null pointer stays null in windows whose addresses begin at 0.
    if (window != 0) a = to ? (uint32_t)a : window | (uint32_t)a;
    op_set(warp, &inst->ops[0], (int)lane, a);
  }
  return EXEC_NEXT;
}

static ExecResult exec_mapa(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  bool shared = inst->nspaces > 0;
  FOR_LANES(lane, lanes) {
    uint64_t a = op_get(warp, &inst->ops[1], (int)lane), rank = op_get(warp, &inst->ops[2], (int)lane);
    if (rank >= (uint64_t)warp->cta->cluster->nctas) {
      return machine_fault(machine, warp, (int)lane, "mapa to rank %llu in a cluster of %d",
                           (unsigned long long)rank, warp->cta->cluster->nctas);
    }
    if (!shared && !space_is_shared(a)) {
      return machine_fault(machine, warp, (int)lane, "mapa of 0x%llx, which is no shared address",
                           (unsigned long long)a);
    }
    uint64_t keep = shared ? 0x00ffffffu : 0xffffffff00ffffffu;
    op_set(warp, &inst->ops[0], (int)lane, (a & keep) | rank << SHARED_RANK_SHIFT);
  }
  return EXEC_NEXT;
}

static ExecResult exec_getctarank(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  FOR_LANES(lane, lanes) {
    op_set(warp, &inst->ops[0], (int)lane,
           (uint32_t)op_get(warp, &inst->ops[1], (int)lane) >> SHARED_RANK_SHIFT);
  }
  return EXEC_NEXT;
}

static bool in_space(const Warp *warp, Space space, uint64_t a) {
  bool window = space_is_shared(a) || a >> 32 == LOCAL_WINDOW >> 32 || a >> 32 == PARAM_WINDOW >> 32;
  switch (space) {
  case SPACE_SHARED:
    return space_is_shared(a) && (uint32_t)a >> SHARED_RANK_SHIFT == warp->cta->rank;
  case SPACE_SHARED_CLUSTER:
    return space_is_shared(a);
  case SPACE_LOCAL:
    return a >> 32 == LOCAL_WINDOW >> 32;
  case SPACE_PARAM:
    return a >> 32 == PARAM_WINDOW >> 32;
  case SPACE_GLOBAL:
    return !window;
  case SPACE_GENERIC:
  case SPACE_CONST:
  case SPACE_TMEM:
    break;
  }
  return false;
}

static ExecResult exec_isspacep(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  uint32_t mask = 0;
  FOR_LANES(lane, lanes) {
    mask |= (uint32_t)in_space(warp, inst_space(inst, 0), op_get(warp, &inst->ops[1], (int)lane)) << lane;
  }
  op_set_pred(warp, &inst->ops[0], lanes, mask);
  return EXEC_NEXT;
}

// Constants lie among the global variables here, without a window of their own.
static const char *select_isspacep(Inst *inst) {
  return inst_has(inst, MOD_const) ? "constant memory has no window of its own here" : NULL;
}

Space inst_space(const Inst *inst, int index) {
  if (index >= inst->nspaces) return SPACE_GENERIC;
  switch ((Mod)inst->spaces[index]) {
  case MOD_global:
    return SPACE_GLOBAL;
  case MOD_shared:
  case MOD_shared_cta:
    return SPACE_SHARED;
  case MOD_shared_cluster:
    return SPACE_SHARED_CLUSTER;
  case MOD_local:
    return SPACE_LOCAL;
  case MOD_param:
  case MOD_param_entry:
  case MOD_param_func:
    return SPACE_PARAM;
  case MOD_const:
    return SPACE_CONST;
  default:
    return SPACE_GENERIC;
  }
}

const InstDef mov_insts[] = {
    {"mov", 0, "xx", 0, NULL, NULL, select_mov},
    {"cvta", MC(TO) | MC(SPACE), "r0", 0, exec_cvta, NULL, NULL},
    {"mapa", MC(SPACE), "00i", 90, exec_mapa, NULL, NULL},
    {"getctarank", MC(SPACE), "i0", 90, exec_getctarank, NULL, NULL},
    {"isspacep", MC(SPACE), "pl", 0, exec_isspacep, NULL, select_isspacep},
    {.name = NULL},
};

// Instructions in which lanes of a warp look at each other: shfl, vote, match, redux, elect, activemask.
// Lanes named by the member mask meet first.
#include "exec/exec.h"

#include <math.h>

#include "num/num.h"

// ---- shfl

// The source lane, and whether it lies in range (PTX ISA 9.7.9.6).
static int source_lane(Mod mode, int lane, uint32_t b, uint32_t c, bool *valid) {
  int segment = (int)(c >> 8 & 31), bound = (int)(c & 31), from = (int)(b & 31);
  int most = (lane & segment) | (bound & ~segment), least = lane & segment, source;
  switch (mode) {
  case MOD_up:
    source = lane - from;
    *valid = source >= most;
    break;
  case MOD_down:
    source = lane + from;
    *valid = source <= most;
    break;
  case MOD_bfly:
    source = lane ^ from;
    *valid = source <= most;
    break;
  default:
    source = least | (from & ~segment);
    *valid = source <= most;
    break;
  }
  if (!*valid) source = lane;
  return source & 31;
}

static ExecResult exec_shfl(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  uint32_t others = 0;
  bool sync = inst_has(inst, MOD_sync);
  if (sync && warp_meet_masked(machine, warp, &inst->ops[4], &lanes, &others) == 0) return EXEC_BLOCK;
  Mod mode = (Mod)inst->aux;
  const Operand *pair = inst->ops[0].kind == OPERAND_PAIR ? &inst->ops[0] : NULL,
                *d = pair ? &pair->elems[0] : &inst->ops[0];
  uint32_t values[WARP_LANES], inside = 0;
  const uint32_t *a = row32(warp, &inst->ops[1]), *b = row32(warp, &inst->ops[2]),
                 *c = row32(warp, &inst->ops[3]);
  FOR_LANES(lane, lanes) {
    bool valid;
    values[lane] = a[source_lane(mode, (int)lane, b[lane], c[lane], &valid)];
    inside |= (uint32_t)valid << lane;
  }
  FOR_LANES(lane, lanes) op_set(warp, d, (int)lane, values[lane]);
  if (pair != NULL) op_set_pred(warp, &pair->elems[1], lanes, inside);
  return warp_done(machine, warp, others);
}

static const char *select_shfl(Inst *inst) {
  Mod mode = inst_mod_in(inst, MC_SHUFFLE);
  inst->aux = (int32_t)mode;
  if (mode == MOD_COUNT) return "no mode";
  return inst->nops == (inst_has(inst, MOD_sync) ? 5 : 4) ? NULL : "wrong number of operands";
}

// ---- vote activemask elect

static ExecResult exec_vote(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  uint32_t members = lanes, others = 0;
  if (inst->nops > 2) members = warp_meet_masked(machine, warp, &inst->ops[2], &lanes, &others);
  if (members == 0) return EXEC_BLOCK;
  uint32_t votes = row_pred(warp, &inst->ops[1]) & members;
  if (inst_has(inst, MOD_ballot)) {
    FOR_LANES(lane, lanes) op_set(warp, &inst->ops[0], (int)lane, votes);
    return warp_done(machine, warp, others);
  }
  bool result = inst_has(inst, MOD_all)   ? votes == members
                : inst_has(inst, MOD_any) ? votes != 0
                                          : votes == 0 || votes == members;
  op_set_pred(warp, &inst->ops[0], lanes, result ? 0xffffffffu : 0);
  return warp_done(machine, warp, others);
}

static const char *select_vote(Inst *inst) {
  return inst_mod_in(inst, MC_VOTE) == MOD_COUNT ? "no mode" : NULL;
}

static ExecResult exec_activemask(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  FOR_LANES(lane, lanes) op_set(warp, &inst->ops[0], (int)lane, lanes);
  return EXEC_NEXT;
}

// The lowest lane in the mask leads, live or not (measured); all lanes get its number.
static ExecResult exec_elect(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  uint32_t mask = (uint32_t)op_get(warp, &inst->ops[1], first_lane(lanes)), others;
  if (mask == 0) return machine_fault(machine, warp, first_lane(lanes), "elect.sync with an empty mask");
  if (warp_meet_masked(machine, warp, &inst->ops[1], &lanes, &others) == 0) return EXEC_BLOCK;
  int leader = first_lane(mask);
  const Operand *d = &inst->ops[0];
  if (d->kind == OPERAND_PAIR) {
    op_set_pred(warp, &d->elems[1], lanes, 1u << leader);
    d = &d->elems[0];
  }
  FOR_LANES(lane, lanes) op_set(warp, d, (int)lane, (uint32_t)leader);
  return warp_done(machine, warp, others);
}

// ---- match

static ExecResult exec_match(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  uint32_t others, members = warp_meet_masked(machine, warp, &inst->ops[2], &lanes, &others);
  if (members == 0) return EXEC_BLOCK;
  const Operand *pair = inst->ops[0].kind == OPERAND_PAIR ? &inst->ops[0] : NULL,
                *d = pair ? &pair->elems[0] : &inst->ops[0];
  uint32_t result[WARP_LANES];
  bool all = inst_has(inst, MOD_all);
  FOR_LANES(lane, lanes) {
    uint64_t value = op_get(warp, &inst->ops[1], (int)lane);
    result[lane] = 0;
    FOR_LANES(other, members)
    result[lane] |= (uint32_t)(op_get(warp, &inst->ops[1], (int)other) == value) << other;
    if (all && result[lane] != members) result[lane] = 0;
  }
  FOR_LANES(lane, lanes) op_set(warp, d, (int)lane, result[lane]);
  if (pair != NULL)
    op_set_pred(warp, &pair->elems[1], lanes, result[first_lane(lanes)] != 0 ? 0xffffffffu : 0);
  return warp_done(machine, warp, others);
}

// ---- redux

static uint32_t reduce_float(const Inst *inst, uint32_t a, uint32_t b) {
  float x = num_f32_from_bits(a), y = num_f32_from_bits(b);
  if (inst_has(inst, MOD_abs)) x = fabsf(x), y = fabsf(y);
  if (x != x || y != y) {
    if (inst_has(inst, MOD_nan) || (x != x && y != y)) return 0x7fffffffu;
    return x != x ? num_f32_bits(y) : num_f32_bits(x);
  }
  return num_f32_bits(inst_has(inst, MOD_min) ? (x < y ? x : y) : (x > y ? x : y));
}

static uint32_t reduce(const Inst *inst, uint32_t a, uint32_t b) {
  if (type0(inst) == PT_f32) return reduce_float(inst, a, b);
  bool is_signed = type0(inst) == PT_s32, less = is_signed ? (int32_t)a < (int32_t)b : a < b;
  switch ((Mod)inst->aux) {
  case MOD_and:
    return a & b;
  case MOD_or:
    return a | b;
  case MOD_xor:
    return a ^ b;
  case MOD_add:
    return a + b;
  case MOD_min:
    return less ? a : b;
  default:
    return less ? b : a;
  }
}

static ExecResult exec_redux(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  uint32_t others, members = warp_meet_masked(machine, warp, &inst->ops[2], &lanes, &others);
  if (members == 0) return EXEC_BLOCK;
  const uint32_t *a = row32(warp, &inst->ops[1]);
  uint32_t result = a[first_lane(members)];
  if (type0(inst) == PT_f32 && inst_has(inst, MOD_abs)) result &= 0x7fffffffu;
  FOR_LANES(lane, members & (members - 1)) result = reduce(inst, result, a[lane]);
  FOR_LANES(lane, lanes) op_set(warp, &inst->ops[0], (int)lane, result);
  return warp_done(machine, warp, others);
}

static const char *select_redux(Inst *inst) {
  Mod op = inst_mod_in(inst, MC_OPERATION);
  inst->aux = (int32_t)op;
  return op == MOD_COUNT || op == MOD_popc || op == MOD_exch || op == MOD_cas ? "no operation" : NULL;
}

const InstDef warp_insts[] = {
    {"shfl", MC(ALIGNED) | MC(SHUFFLE) | MC(PAIR), "iiii?i", 0, exec_shfl, NULL, select_shfl},
    {"vote", MC(ALIGNED) | MC(VOTE), "xp?i", 0, exec_vote, NULL, select_vote},
    {"activemask", 0, "i", 0, exec_activemask, NULL, NULL},
    {"elect", MC(ALIGNED) | MC(PAIR), "ii", 90, exec_elect, NULL, NULL},
    {"match", MC(ALIGNED) | MC(VOTE) | MC(PAIR), "i0i", 0, exec_match, NULL, NULL},
    {"redux", MC(ALIGNED) | MC(OPERATION) | MC(NAN) | MC(XORSIGN), "iii", 0, exec_redux, NULL, select_redux},
    {.name = NULL},
};

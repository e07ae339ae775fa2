// cp.async.bulk.tensor and its kin: operands are read and checked when the instruction executes, the copy
// itself is queued. The bulk groups of stores are per thread (PTX ISA 9.7.9.25).
#include <stdlib.h>
#include <string.h>

#include "async/tma.h"

static Reduce reduce_of(const Inst *inst) {
  static const struct {
    Mod mod;
    Reduce reduce;
  } rows[] = {{MOD_add, REDUCE_ADD}, {MOD_min, REDUCE_MIN}, {MOD_max, REDUCE_MAX}, {MOD_inc, REDUCE_INC},
              {MOD_dec, REDUCE_DEC}, {MOD_and, REDUCE_AND}, {MOD_or, REDUCE_OR},   {MOD_xor, REDUCE_XOR}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (inst_has(inst, rows[i].mod)) return rows[i].reduce;
  return REDUCE_NONE;
}

static TileMode mode_of(const Inst *inst) {
  if (inst_has(inst, MOD_tile_gather4)) return TILE_GATHER4;
  return inst_has(inst, MOD_tile_scatter4) ? TILE_SCATTER4 : TILE_BOX;
}

// Map and coordinates of operand `index`; false after a fault.
static bool read_map(Machine *machine, Warp *warp, const Inst *inst, int index, int lane, TmaOp *op) {
  const Operand *operand = &inst->ops[index];
  uint64_t address = op_address(warp, operand, lane);
  const uint8_t *bytes = machine_address(machine, warp, lane, SPACE_GENERIC, address, 128, 64, false);
  SpaceError why;
  if (!bytes) return false;
  if (!tensor_map_decode(bytes, &op->map, &why)) {
    machine_fault(machine, warp, lane, "%s", why.text);
    return false;
  }
  op->mode = mode_of(inst);
  int rank = op->mode == TILE_BOX ? op->map.rank : 5;
  if (operand->nelems != rank || (op->mode == TILE_BOX && inst->dims != op->map.rank) ||
      (op->mode != TILE_BOX && op->map.rank != 2)) {
    machine_fault(machine, warp, lane,
                  "the tensor map has rank %d, the instruction %d dimensions and %d coordinates",
                  op->map.rank, inst->dims, operand->nelems);
    return false;
  }
  if (op->mode != TILE_BOX && op->map.box[1] != 1) {
    machine_fault(machine, warp, lane, "gather4 and scatter4 need a box of 1 in dimension 1, not %u",
                  op->map.box[1]);
    return false;
  }
  for (int i = 0; i < rank; i++) op->at[i] = (int32_t)op_get(warp, &operand->elems[i], lane);
  return true;
}

static bool check_coordinates(Machine *machine, Warp *warp, int lane, const TmaOp *op, bool store) {
  int64_t bits = (int64_t)op->at[0] * op->map.global_bits;
  bool padded = op->map.global_bits != op->map.shared_bits;
  if (bits % 128 || (padded && op->at[0] % 128)) {
    machine_fault(machine, warp, lane,
                  "TMA: coordinate 0 is %d; times %d bits an element that is no multiple of 16 bytes%s",
                  op->at[0], op->map.global_bits, padded ? ", or it is no multiple of 128 elements" : "");
    return false;
  }
  for (int i = 0; store && i < (op->mode == TILE_BOX ? op->map.rank : 5); i++) {
    if (op->at[i] >= 0) continue;
    machine_fault(machine, warp, lane, "TMA store: coordinate %d is %d; stores take no negative coordinates",
                  i, op->at[i]);
    return false;
  }
  return true;
}

// Destination CTAs: the one named, or those of the multicast mask (the operand after the barrier).
static bool destinations(Machine *machine, Warp *warp, const Inst *inst, int lane, const Cta *named,
                         int mask_operand, uint32_t *ranks) {
  *ranks = 1u << named->rank;
  if (!inst_has(inst, MOD_multicast_cluster)) return true;
  *ranks = (uint32_t)op_get(warp, &inst->ops[mask_operand], lane) & 0xFFFF;
  uint32_t all = (1u << warp->cta->cluster->nctas) - 1;
  if (*ranks && !(*ranks & ~all)) return true;
  machine_fault(machine, warp, lane, "multicast mask 0x%x: the cluster has %d CTAs", *ranks,
                warp->cta->cluster->nctas);
  return false;
}

// The barrier must be in the destination CTA, or with .cta_group::2 in its pair.
static bool set_barrier(Machine *machine, Warp *warp, const Inst *inst, int operand, int lane,
                        const Cta *destination, EngineOp *op) {
  Cta *cta = async_shared_target(machine, warp, lane, op_address(warp, &inst->ops[operand], lane), 8,
                                 "mbarrier", &op->barrier);
  if (!cta) return false;
  bool pair = inst_has(inst, MOD_cta_group_2), many = inst_has(inst, MOD_multicast_cluster);
  if (!many && cta != destination && !(pair && cta->rank == (destination->rank ^ 1))) {
    machine_fault(machine, warp, lane, "the mbarrier is in CTA %u, the data goes to CTA %u%s", cta->rank,
                  destination->rank, pair ? ", which is not of the same pair" : "");
    return false;
  }
  op->barrier_cta = cta;
  return true;
}

static bool issue_load(Machine *machine, Warp *warp, const Inst *inst, int lane) {
  TmaOp *op = engine_op_new(machine, warp, lane, ENGINE_TMA_LOAD, sizeof *op, tma_complete_load);
  if (!op) return false;
  Cta *cta = NULL;
  if (!read_map(machine, warp, inst, 1, lane, op) || !check_coordinates(machine, warp, lane, op, false) ||
      !(cta = async_shared_target(machine, warp, lane, op_address(warp, &inst->ops[0], lane), 128,
                                  "destination of a TMA load", &op->shared)) ||
      !destinations(machine, warp, inst, lane, cta, 3, &op->ranks) ||
      !set_barrier(machine, warp, inst, 2, lane, cta, &op->op)) {
    free(op);
    return false;
  }
  op->pair_signal = inst_has(inst, MOD_cta_group_2);
  if (inst_has(inst, MOD_multicast_cluster)) op->op.barrier_ranks = op->ranks;
  engine_queue(machine, &op->op);
  return true;
}

static bool issue_store(Machine *machine, Warp *warp, const Inst *inst, int lane) {
  TmaOp *op = engine_op_new(machine, warp, lane, ENGINE_TMA_STORE, sizeof *op, tma_complete_store);
  if (!op) return false;
  Cta *cta = NULL;
  bool ok = read_map(machine, warp, inst, 0, lane, op) && check_coordinates(machine, warp, lane, op, true) &&
            (cta = async_shared_target(machine, warp, lane, op_address(warp, &inst->ops[1], lane), 128,
                                       "source of a TMA store", &op->shared)) != NULL;
  if (ok && cta != warp->cta) {
    machine_fault(machine, warp, lane,
                  "a TMA store reads the own CTA's shared memory; the address is in CTA %u", cta->rank);
    ok = false;
  }
  op->reduce = reduce_of(inst);
  if (ok && !tma_reduce_known(op->map.element, op->reduce)) {
    machine_fault(machine, warp, lane,
                  "this reduction does not exist for the tensor map's element type (code %d)",
                  op->map.element);
    ok = false;
  }
  if (!ok) {
    free(op);
    return false;
  }
  op->op.groups = cta_async(warp->cta)->bulks + warp->index * WARP_LANES;
  op->op.group_lanes = 1u << lane;
  engine_queue(machine, &op->op);
  return true;
}

static ExecResult exec_load(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  FOR_LANES(lane, lanes) {
    if (!issue_load(machine, warp, inst, (int)lane)) return EXEC_FAULT;
  }
  return EXEC_NEXT;
}

static ExecResult exec_store(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  FOR_LANES(lane, lanes) {
    if (!issue_store(machine, warp, inst, (int)lane)) return EXEC_FAULT;
  }
  return EXEC_NEXT;
}

static ExecResult exec_prefetch(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  FOR_LANES(lane, lanes) {
    TmaOp op = {0};
    if (!read_map(machine, warp, inst, 0, (int)lane, &op) ||
        !check_coordinates(machine, warp, (int)lane, &op, false))
      return EXEC_FAULT;
  }
  return EXEC_NEXT;
}

static const char *select_tensor(Inst *inst) {
  if (inst_has(inst, MOD_im2col) || inst_has(inst, MOD_im2col_w) || inst_has(inst, MOD_im2col_w128) ||
      inst_has(inst, MOD_im2col_no_offs))
    return "im2col is not supported";
  if (inst->nspaces != 2) return "needs a destination and a source space";
  if (inst_space(inst, 0) == SPACE_GLOBAL) {
    inst->exec = exec_store;
    return inst->nops < 2 ? "needs a map and a source" : NULL;
  }
  inst->exec = exec_load;
  if (inst->nops < 3 + inst_has(inst, MOD_multicast_cluster))
    return "needs destination, map, mbarrier and mask";
  return inst->ops[2].kind == OPERAND_ADDRESS ? NULL : "the third operand must be the mbarrier's address";
}

// ---- groups

static ExecResult exec_commit(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine, (void)inst;
  FOR_LANES(lane, lanes) group_commit(cta_async(warp->cta)->bulks + warp->index * WARP_LANES + lane);
  return EXEC_NEXT;
}

static ExecResult exec_wait(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  AsyncGroup *groups = cta_async(warp->cta)->bulks + warp->index * WARP_LANES;
  uint32_t allowed = (uint32_t)op_get(warp, &inst->ops[0], first_lane(lanes));
  bool read = inst_has(inst, MOD_read);
  return group_wait(machine, warp, lanes, groups, false, allowed, read,
                    read ? "cp.async.bulk.wait_group.read" : "cp.async.bulk.wait_group");
}

#define TENSOR_CLASSES                                                                                       \
  (MC(SPACE) | MC(TILE) | MC(COMPLETION) | MC(MULTICAST) | MC(CTA_GROUP) | MC(HINT) | MC(DIM) | MC(CACHE))

const InstDef tma_insts[] = {
    {.name = "cp.async.bulk.tensor",
     .classes = TENSOR_CLASSES,
     .operands = "mm*",
     .min_sm = 90,
     .select = select_tensor},
    {.name = "cp.reduce.async.bulk.tensor",
     .classes = TENSOR_CLASSES | MC(OPERATION),
     .operands = "mm*",
     .min_sm = 90,
     .exec = exec_store},
    {.name = "cp.async.bulk.prefetch.tensor",
     .classes = TENSOR_CLASSES,
     .operands = "m*",
     .min_sm = 90,
     .exec = exec_prefetch},
    {.name = "cp.async.bulk.commit_group", .operands = "", .min_sm = 90, .exec = exec_commit},
    {.name = "cp.async.bulk.wait_group",
     .classes = MC(READ),
     .operands = "i",
     .min_sm = 90,
     .exec = exec_wait},
    {0},
};

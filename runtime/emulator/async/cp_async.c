// cp.async: 4, 8 or 16 bytes a lane from global to shared memory. One queued operation serves a whole warp,
// since the lanes' copies are issued together; groups stay per thread (PTX ISA 9.7.9.24).
#include <stdlib.h>
#include <string.h>

#include "async/async_internal.h"

typedef struct {
  EngineOp op;
  uint32_t lanes;
  uint32_t bytes;
  struct {
    uint8_t *to;
    const uint8_t *from;
    uint64_t global;
    uint32_t shared, count;  // `count` bytes are copied, the rest is zero
  } lane[WARP_LANES];
} CopyOp;

static bool complete_copy(Machine *machine, EngineOp *base) {
  CopyOp *op = (CopyOp *)base;
  bool watched = machine->event_mask >> EVENT_ASYNC_WRITE & 1;
  FOR_LANES(lane, op->lanes) {
    memcpy(op->lane[lane].to, op->lane[lane].from, op->lane[lane].count);
    memset(op->lane[lane].to + op->lane[lane].count, 0, op->bytes - op->lane[lane].count);
    if (!watched) continue;
    Event event = {EVENT_ASYNC_READ,      base->origin.cta,     NULL,
                   base->origin.inst,     1u << lane,           SPACE_GLOBAL,
                   op->lane[lane].global, op->lane[lane].count, 0};
    if (event.bytes > 0) machine_emit(machine, &event);
    event.kind = EVENT_ASYNC_WRITE;
    event.space = SPACE_SHARED;
    event.address = op->lane[lane].shared;
    event.bytes = op->bytes;
    machine_emit(machine, &event);
  }
  return true;
}

static uint32_t source_size(const Warp *warp, const Inst *inst, uint32_t bytes, int lane) {
  if (inst->nops < 4) return bytes;
  const Operand *operand = &inst->ops[3];
  if (operand->row == ROW_PRED) return op_get(warp, operand, lane) ? 0 : bytes;  // ignore-src
  if (inst->nops == 4 && inst_has(inst, MOD_L2_cache_hint)) return bytes;        // that is the policy
  uint32_t size = (uint32_t)op_get(warp, operand, lane);
  return size < bytes ? size : bytes;
}

static bool read_lane(Machine *machine, Warp *warp, const Inst *inst, int lane, CopyOp *op) {
  uint64_t to = op_address(warp, &inst->ops[0], lane), from = op_address(warp, &inst->ops[1], lane);
  Cta *cta = async_shared_target(machine, warp, lane, to, op->bytes, "destination of cp.async",
                                 &op->lane[lane].shared);
  if (!cta) return false;
  op->lane[lane].to =
      async_shared(machine, &op->op.origin, cta, op->lane[lane].shared, op->bytes, "cp.async");
  if (!op->lane[lane].to) return false;
  op->lane[lane].count = source_size(warp, inst, op->bytes, lane);
  op->lane[lane].global = from;
  op->lane[lane].from = op->lane[lane].to;  // nothing to read
  if (op->lane[lane].count == 0) return true;
  op->lane[lane].from =
      machine_address(machine, warp, lane, SPACE_GLOBAL, from, op->lane[lane].count, op->bytes, false);
  return op->lane[lane].from != NULL;
}

static ExecResult exec_copy(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  CopyOp *op = engine_op_new(machine, warp, -1, ENGINE_CP_ASYNC, sizeof *op, complete_copy);
  if (!op) return EXEC_FAULT;
  op->lanes = op->op.group_lanes = lanes;
  op->op.groups = cta_async(warp->cta)->copies + warp->index * WARP_LANES;
  op->bytes = (uint32_t)op_get(warp, &inst->ops[2], first_lane(lanes));
  if (op->bytes != 4 && op->bytes != 8 && op->bytes != 16) {
    free(op);
    return machine_fault(machine, warp, -1, "cp.async copies 4, 8 or 16 bytes");
  }
  FOR_LANES(lane, lanes) {
    if (read_lane(machine, warp, inst, (int)lane, op)) continue;
    free(op);
    return EXEC_FAULT;
  }
  engine_queue(machine, &op->op);
  return EXEC_NEXT;
}

// ---- groups

static ExecResult exec_commit(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine, (void)inst;
  FOR_LANES(lane, lanes) group_commit(cta_async(warp->cta)->copies + warp->index * WARP_LANES + lane);
  return EXEC_NEXT;
}

static ExecResult exec_wait_group(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  AsyncGroup *groups = cta_async(warp->cta)->copies + warp->index * WARP_LANES;
  uint32_t allowed = (uint32_t)op_get(warp, &inst->ops[0], first_lane(lanes));
  return group_wait(machine, warp, lanes, groups, false, allowed, false, "cp.async.wait_group");
}

// Commits what is open, then waits for all; a lane that comes back from blocking has nothing open.
static ExecResult exec_wait_all(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  AsyncGroup *groups = cta_async(warp->cta)->copies + warp->index * WARP_LANES;
  exec_commit(machine, warp, inst, lanes);
  return group_wait(machine, warp, lanes, groups, false, 0, false, "cp.async.wait_all");
}

// ---- cp.async.mbarrier.arrive: an arrive queued behind the lane's copies

typedef struct {
  EngineOp op;
  uint32_t lanes;
  Cta *cta[WARP_LANES];
  uint32_t offset[WARP_LANES];
} ArriveOp;

static bool complete_arrive(Machine *machine, EngineOp *base) {
  ArriveOp *op = (ArriveOp *)base;
  FOR_LANES(lane, op->lanes) {
    Origin origin = base->origin;
    origin.lane = (int)lane;
    if (!mbarrier_arrive(machine, &origin, op->cta[lane], op->offset[lane], 1)) return false;
  }
  return true;
}

static ExecResult exec_arrive(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  ArriveOp *op = engine_op_new(machine, warp, -1, ENGINE_CP_ASYNC, sizeof *op, complete_arrive);
  if (!op) return EXEC_FAULT;
  op->lanes = lanes;
  FOR_LANES(lane, lanes) {
    Origin origin = origin_here(machine, warp, (int)lane);
    op->cta[lane] = async_shared_target(machine, warp, (int)lane, op_address(warp, &inst->ops[0], (int)lane),
                                        8, "mbarrier", &op->offset[lane]);
    if (op->cta[lane] && (inst_has(inst, MOD_noinc) ||
                          mbarrier_add_pending(machine, &origin, op->cta[lane], op->offset[lane])))
      continue;
    free(op);
    return EXEC_FAULT;
  }
  op->op.barrier_cta = op->cta[first_lane(lanes)];
  op->op.barrier = op->offset[first_lane(lanes)];
  engine_queue(machine, &op->op);
  return EXEC_NEXT;
}

const InstDef cp_async_insts[] = {
    {.name = "cp.async",
     .classes = MC(SPACE) | MC(CACHE) | MC(HINT),
     .operands = "mmi?rr",
     .exec = exec_copy},
    {.name = "cp.async.commit_group", .operands = "", .exec = exec_commit},
    {.name = "cp.async.wait_group", .operands = "i", .exec = exec_wait_group},
    {.name = "cp.async.wait_all", .operands = "", .exec = exec_wait_all},
    {.name = "cp.async.mbarrier.arrive",
     .classes = MC(SPACE) | MC(MBARRIER),
     .operands = "m",
     .exec = exec_arrive},
    {0},
};

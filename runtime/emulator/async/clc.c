// clusterlaunchcontrol: a running cluster asks for one that has not started and does its work (PTX ISA
// 9.7.13.16). The 16 response bytes are opaque to programs; here they are the first CTA's x, y, z as 32-bit
// words and a last word that is 1 when a cluster was handed out.
#include <stdlib.h>
#include <string.h>

#include "async/async_internal.h"

enum { RESPONSE_BYTES = 16 };

typedef struct {
  EngineOp op;
  uint32_t ranks;  // CTAs that get the response
  uint32_t shared;
} CancelOp;

// Takes the next cluster of the grid away from the launch. False: there is none.
static bool take_cluster(Machine *machine, uint32_t response[4]) {
  const Launch *launch = machine->launch;
  uint32_t count[3];
  for (int i = 0; i < 3; i++) count[i] = launch->grid[i] / launch->cluster[i];
  uint32_t next = machine->next_cluster;
  if (next >= count[0] * count[1] * count[2]) return false;
  machine->next_cluster += machine->cluster_step;
  response[0] = next % count[0] * launch->cluster[0];
  response[1] = next / count[0] % count[1] * launch->cluster[1];
  response[2] = next / count[0] / count[1] * launch->cluster[2];
  response[3] = 1;
  return true;
}

static bool complete_cancel(Machine *machine, EngineOp *base) {
  CancelOp *op = (CancelOp *)base;
  Cluster *cluster = base->origin.cta->cluster;
  uint32_t response[4] = {0};
  take_cluster(machine, response);
  for (int rank = 0; rank < cluster->nctas; rank++) {
    if (!(op->ranks >> rank & 1)) continue;
    Cta *cta = &cluster->ctas[rank];
    uint8_t *host =
        async_shared(machine, &base->origin, cta, op->shared, RESPONSE_BYTES, "response of try_cancel");
    if (!host) return false;
    if (cta_async(cta)->ended) {
      machine_fault_at(machine, &base->origin, "try_cancel answers CTA %d of the cluster, which has exited",
                       rank);
      return false;
    }
    memcpy(host, response, RESPONSE_BYTES);
    engine_event(machine, base, EVENT_ASYNC_WRITE, cta, SPACE_SHARED, op->shared, RESPONSE_BYTES);
    if (!mbarrier_complete_tx(machine, &base->origin, cta, base->barrier, RESPONSE_BYTES)) return false;
  }
  return true;
}

static bool own_cta(Machine *machine, Warp *warp, int lane, const Cta *cta, const char *what) {
  if (cta == warp->cta) return true;
  machine_fault(machine, warp, lane, "the %s of try_cancel must be in the own CTA; it is in CTA %u", what,
                cta->rank);
  return false;
}

static bool issue_cancel(Machine *machine, Warp *warp, const Inst *inst, int lane) {
  CancelOp *op = engine_op_new(machine, warp, lane, ENGINE_OTHER, sizeof *op, complete_cancel);
  if (!op) return false;
  const Cta *to = async_shared_target(machine, warp, lane, op_address(warp, &inst->ops[0], lane),
                                      RESPONSE_BYTES, "response of try_cancel", &op->shared);
  op->op.barrier_cta = async_shared_target(machine, warp, lane, op_address(warp, &inst->ops[1], lane), 8,
                                           "mbarrier", &op->op.barrier);
  if (!to || !op->op.barrier_cta || !own_cta(machine, warp, lane, to, "response") ||
      !own_cta(machine, warp, lane, op->op.barrier_cta, "mbarrier")) {
    free(op);
    return false;
  }
  op->ranks = 1u << warp->cta->rank;
  if (inst_has(inst, MOD_multicast_cluster_all))
    op->op.barrier_ranks = op->ranks = (uint32_t)(((uint64_t)1 << warp->cta->cluster->nctas) - 1);
  engine_queue(machine, &op->op);
  return true;
}

static ExecResult exec_cancel(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  FOR_LANES(lane, lanes) {
    if (!issue_cancel(machine, warp, inst, (int)lane)) return EXEC_FAULT;
  }
  return EXEC_NEXT;
}

static ExecResult exec_is_canceled(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  uint32_t yes = 0;
  FOR_LANES(lane, lanes) {
    if (op_get_hi(warp, &inst->ops[1], (int)lane) >> 32 == 1) yes |= 1u << lane;
  }
  op_set_pred(warp, &inst->ops[0], lanes, yes);
  return EXEC_NEXT;
}

// aux: 0 to 2 for one coordinate, 3 for the vector
static ExecResult exec_first_ctaid(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  FOR_LANES(lane, lanes) {
    uint64_t low = op_get(warp, &inst->ops[1], (int)lane), high = op_get_hi(warp, &inst->ops[1], (int)lane);
    uint32_t words[4] = {(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, 0};
    if (high >> 32 != 1)
      return machine_fault(machine, warp, (int)lane,
                           "get_first_ctaid of a response that says no cluster was cancelled");
    if (inst->aux < 3) {
      op_set(warp, &inst->ops[0], (int)lane, words[inst->aux]);
      continue;
    }
    for (int i = 0; i < inst->ops[0].nelems && i < 4; i++)
      op_set(warp, &inst->ops[0].elems[i], (int)lane, words[i]);
  }
  return EXEC_NEXT;
}

static const char *select_query(Inst *inst) {
  if (inst->ops[1].kind != OPERAND_REG || inst->ops[1].row != ROW_128)
    return "the response must be a .b128 register";
  if (inst_has(inst, MOD_is_canceled)) {
    inst->exec = exec_is_canceled;
    if (inst->ops[0].kind != OPERAND_SINK && inst->ops[0].row != ROW_PRED) return "needs a predicate";
    return NULL;
  }
  inst->exec = exec_first_ctaid;
  inst->aux = inst_has(inst, MOD_get_first_ctaid_x)   ? 0
              : inst_has(inst, MOD_get_first_ctaid_y) ? 1
              : inst_has(inst, MOD_get_first_ctaid_z) ? 2
                                                      : 3;
  if (inst->aux < 3) return NULL;
  if (!inst_has(inst, MOD_get_first_ctaid)) return "is_canceled or get_first_ctaid is missing";
  return inst->ops[0].kind == OPERAND_VECTOR ? NULL : "the coordinates need braces";
}

const InstDef clc_insts[] = {
    {.name = "clusterlaunchcontrol.try_cancel",
     .classes = MC(PROXY) | MC(SPACE) | MC(COMPLETION) | MC(MULTICAST),
     .operands = "mm",
     .min_sm = 100,
     .exec = exec_cancel},
    {.name = "clusterlaunchcontrol.query_cancel",
     .classes = MC(CLC) | MC(VECTOR),
     .operands = "xr",
     .min_sm = 100,
     .select = select_query},
    {0},
};

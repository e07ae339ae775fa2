// st.async and red.async: a store or reduction into the shared memory of a CTA of the cluster that counts its
// bytes on an mbarrier there (PTX ISA 9.7.9.12, 9.7.13.7). st.bulk, which fills own shared memory with zeros,
// is synchronous.
#include <stdlib.h>
#include <string.h>

#include "async/tma.h"

typedef struct {
  EngineOp op;
  uint32_t shared, bytes;
  int element;
  Reduce reduce;
  uint8_t value[16];
} StoreOp;

static bool complete_store(Machine *machine, EngineOp *base) {
  StoreOp *op = (StoreOp *)base;
  Cta *cta = base->barrier_cta;
  uint8_t *host = async_shared(machine, &base->origin, cta, op->shared, op->bytes, "asynchronous store");
  if (!host) return false;
  if (cta_async(cta)->ended) {
    machine_fault_at(machine, &base->origin, "an asynchronous store goes to CTA %u, which has exited",
                     cta->rank);
    return false;
  }
  if (op->reduce == REDUCE_NONE)
    memcpy(host, op->value, op->bytes);
  else
    tma_reduce_element(op->element, op->reduce, host, op->value);
  engine_event(machine, base, EVENT_ASYNC_WRITE, cta, SPACE_SHARED, op->shared, op->bytes);
  return mbarrier_complete_tx(machine, &base->origin, cta, base->barrier, op->bytes);
}

static bool issue(Machine *machine, Warp *warp, const Inst *inst, int lane) {
  StoreOp *op = engine_op_new(machine, warp, lane, ENGINE_OTHER, sizeof *op, complete_store);
  if (!op) return false;
  const Operand *value = &inst->ops[1];
  int count = value->kind == OPERAND_VECTOR ? value->nelems : 1, size = inst->bytes / count;
  for (int i = 0; i < count; i++) {
    uint64_t bits = op_get(warp, value->kind == OPERAND_VECTOR ? &value->elems[i] : value, lane);
    memcpy(op->value + i * size, &bits, (size_t)size);
  }
  op->bytes = inst->bytes;
  op->element = inst->aux & 0xFF;
  op->reduce = (Reduce)(inst->aux >> 8);
  const Cta *to = async_shared_target(machine, warp, lane, op_address(warp, &inst->ops[0], lane), op->bytes,
                                      "asynchronous store", &op->shared);
  op->op.barrier_cta = async_shared_target(machine, warp, lane, op_address(warp, &inst->ops[2], lane), 8,
                                           "mbarrier", &op->op.barrier);
  bool ok = to && op->op.barrier_cta;
  if (ok && to != op->op.barrier_cta) {
    machine_fault(machine, warp, lane, "the mbarrier is in CTA %u, the data goes to CTA %u",
                  op->op.barrier_cta->rank, to->rank);
    ok = false;
  }
  if (ok)
    engine_queue(machine, &op->op);
  else
    free(op);
  return ok;
}

static ExecResult exec_async(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  FOR_LANES(lane, lanes) {
    if (!issue(machine, warp, inst, (int)lane)) return EXEC_FAULT;
  }
  return EXEC_NEXT;
}

static const char *select_store(Inst *inst) {
  const Operand *value = &inst->ops[1];
  int bits = inst->ntypes > 0 ? ptx_type_bits((PtxType)inst->types[0]) : 0;
  int count = value->kind == OPERAND_VECTOR ? value->nelems : 1;
  if (!inst_has(inst, MOD_mbarrier_complete_tx)) return "only the form that completes on an mbarrier";
  if (bits != 32 && bits != 64) return "this type is not supported";
  if (count != inst->vec || count * bits > 128) return "the vector's length does not fit";
  inst->bytes = (uint16_t)(count * bits / 8);
  inst->aux = REDUCE_NONE << 8;
  return NULL;
}

static const char *select_reduce(Inst *inst) {
  static const struct {
    Mod mod;
    Reduce reduce;
  } rows[] = {{MOD_add, REDUCE_ADD}, {MOD_min, REDUCE_MIN}, {MOD_max, REDUCE_MAX}, {MOD_inc, REDUCE_INC},
              {MOD_dec, REDUCE_DEC}, {MOD_and, REDUCE_AND}, {MOD_or, REDUCE_OR},   {MOD_xor, REDUCE_XOR}};
  int element = -1;
  Reduce reduce = REDUCE_NONE;
  PtxType type = inst->ntypes > 0 ? (PtxType)inst->types[0] : PT_none;
  const char *error = select_store(inst);
  if (error) return error;
  if (type == PT_u32 || type == PT_b32) element = ELEMENT_U32;
  if (type == PT_s32) element = ELEMENT_S32;
  if (type == PT_u64 || type == PT_b64) element = ELEMENT_U64;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (inst_has(inst, rows[i].mod)) reduce = rows[i].reduce;
  if (element < 0 || reduce == REDUCE_NONE || !tma_reduce_known(element, reduce) ||
      (element == ELEMENT_U64 && reduce != REDUCE_ADD))
    return "this operation does not exist for the type";
  inst->aux = element | (int32_t)reduce << 8;
  return NULL;
}

static ExecResult exec_bulk_zero(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  FOR_LANES(lane, lanes) {
    uint64_t address = op_address(warp, &inst->ops[0], (int)lane),
             bytes = op_get(warp, &inst->ops[1], (int)lane);
    if (bytes % 8 != 0)
      return machine_fault(machine, warp, (int)lane, "st.bulk of %llu bytes: no multiple of 8",
                           (unsigned long long)bytes);
    if (bytes == 0) continue;
    uint8_t *host = machine_address(machine, warp, (int)lane, inst_space(inst, 0), address, bytes, 8, true);
    if (!host) return EXEC_FAULT;
    memset(host, 0, bytes);
    machine_event(machine, EVENT_WRITE, warp, 1u << lane, inst_space(inst, 0), address, bytes);
  }
  machine->progress++;
  return EXEC_NEXT;
}

static const char *select_bulk_zero(Inst *inst) {
  return inst->ops[2].kind == OPERAND_REG && inst->ops[2].bank == BANK_CONST ? NULL : "the value must be 0";
}

#define ASYNC_CLASSES (MC(SPACE) | MC(ORDER) | MC(SCOPE) | MC(COMPLETION) | MC(VECTOR))

const InstDef st_async_insts[] = {
    {.name = "st.async",
     .classes = ASYNC_CLASSES,
     .operands = "mrm",
     .min_sm = 90,
     .exec = exec_async,
     .select = select_store},
    {.name = "red.async",
     .classes = ASYNC_CLASSES | MC(OPERATION),
     .operands = "mrm",
     .min_sm = 90,
     .exec = exec_async,
     .select = select_reduce},
    {.name = "st.bulk",
     .classes = MC(SPACE) | MC(ORDER),
     .operands = "mll",
     .min_sm = 100,
     .exec = exec_bulk_zero,
     .select = select_bulk_zero},
    {0},
};

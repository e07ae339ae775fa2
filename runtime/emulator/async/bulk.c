// cp.async.bulk and cp.reduce.async.bulk without a tensor map: contiguous bytes, sizes and addresses
// multiples of 16. To shared memory they complete on an mbarrier, to global memory in a bulk group (PTX
// ISA 9.7.9.25.3-4).
#include <stdlib.h>
#include <string.h>

#include "async/tma.h"

typedef struct {
  EngineOp op;
  uint64_t global;    // address, when one side is global
  const Cta *source;  // or shared memory of this CTA
  uint32_t source_offset, shared;
  uint32_t bytes, ranks;  // destinations of a copy to shared memory
  uint32_t mask;          // bytes of each 16 that are written: bit i for byte i
  int element, element_bytes;
  Reduce reduce;
} BulkOp;

enum { CHUNK = 16, WHOLE_CHUNK = 0xFFFF };

static void combine(const BulkOp *op, uint8_t *memory, const uint8_t *data) {
  if (op->mask != WHOLE_CHUNK) {
    for (uint32_t i = 0; i < op->bytes; i++)
      if (op->mask >> i % CHUNK & 1) memory[i] = data[i];
    return;
  }
  if (op->reduce == REDUCE_NONE) {
    memcpy(memory, data, op->bytes);
    return;
  }
  for (uint32_t i = 0; i + (uint32_t)op->element_bytes <= op->bytes; i += (uint32_t)op->element_bytes)
    tma_reduce_element(op->element, op->reduce, memory + i, data + i);
}

static uint8_t *global_bytes(Machine *machine, const BulkOp *op, const char *what) {
  uint8_t *host = gmem_find(machine->gmem, op->global, op->bytes, &machine->gmem_hint);
  if (!host)
    machine_fault_at(machine, &op->op.origin,
                     "a bulk copy %s 0x%llx to 0x%llx, which is no allocated global memory", what,
                     (unsigned long long)op->global, (unsigned long long)(op->global + op->bytes));
  return host;
}

static const uint8_t *source_bytes(Machine *machine, const BulkOp *op) {
  if (!op->source) return global_bytes(machine, op, "reads");
  return async_shared(machine, &op->op.origin, op->source, op->source_offset, op->bytes, "bulk copy source");
}

static bool complete_to_shared(Machine *machine, EngineOp *base) {
  BulkOp *op = (BulkOp *)base;
  Cluster *cluster = base->origin.cta->cluster;
  const uint8_t *data = source_bytes(machine, op);
  if (!data) return false;
  engine_event(machine, base, EVENT_ASYNC_READ, op->source ? op->source : base->origin.cta,
               op->source ? SPACE_SHARED : SPACE_GLOBAL, op->source ? op->source_offset : op->global,
               op->bytes);
  for (uint32_t rank = 0; rank < (uint32_t)cluster->nctas; rank++) {
    if (!(op->ranks >> rank & 1)) continue;
    Cta *cta = &cluster->ctas[rank];
    uint8_t *host = async_shared(machine, &base->origin, cta, op->shared, op->bytes, "bulk copy destination");
    if (!host) return false;
    if (cta_async(cta)->ended) {
      machine_fault_at(machine, &base->origin,
                       "a bulk copy writes to CTA %u of the cluster, which has exited", rank);
      return false;
    }
    combine(op, host, data);
    engine_event(machine, base, EVENT_ASYNC_WRITE, cta, SPACE_SHARED, op->shared, op->bytes);
    Cta *signal = base->barrier_ranks ? cta : base->barrier_cta;
    if (!mbarrier_complete_tx(machine, &base->origin, signal, base->barrier, op->bytes)) return false;
  }
  return true;
}

// What a copy to global memory writes; under a mask the bytes of each chunk from the first to the last.
static void written_event(Machine *machine, const BulkOp *op) {
  const Cta *cta = op->op.origin.cta;
  if (op->mask == WHOLE_CHUNK) {
    engine_event(machine, &op->op, EVENT_ASYNC_WRITE, cta, SPACE_GLOBAL, op->global, op->bytes);
    return;
  }
  uint32_t first = 0, last = CHUNK;
  if (op->mask == 0) return;
  while (!(op->mask >> first & 1)) first++;
  while (!(op->mask >> (last - 1) & 1)) last--;
  for (uint32_t at = 0; at < op->bytes; at += CHUNK)
    engine_event(machine, &op->op, EVENT_ASYNC_WRITE, cta, SPACE_GLOBAL, op->global + at + first,
                 last - first);
}

static bool complete_to_global(Machine *machine, EngineOp *base) {
  BulkOp *op = (BulkOp *)base;
  if (!base->buffer) {
    const uint8_t *data = source_bytes(machine, op);
    if (!data) return false;
    base->buffer = malloc(op->bytes ? op->bytes : 1);
    if (!base->buffer) {
      machine_fault_at(machine, &base->origin, "the emulator is out of memory");
      return false;
    }
    memcpy(base->buffer, data, op->bytes);
    engine_event(machine, base, EVENT_ASYNC_READ, op->source, SPACE_SHARED, op->source_offset, op->bytes);
    FOR_LANES(lane, base->group_lanes) base->groups[lane].read++;
    return base->again = true;
  }
  uint8_t *host = global_bytes(machine, op, "writes");
  if (!host) return false;
  combine(op, host, base->buffer);
  written_event(machine, op);
  return true;
}

static bool check_sizes(Machine *machine, Warp *warp, int lane, uint64_t global, uint32_t bytes) {
  if (global % 16 == 0 && bytes % 16 == 0) return true;
  machine_fault(machine, warp, lane,
                "bulk copy of %u bytes, global address 0x%llx: both must be multiples of 16", bytes,
                (unsigned long long)global);
  return false;
}

static Cta *shared_operand(Machine *machine, Warp *warp, const Inst *inst, int index, int lane,
                           uint32_t *offset) {
  return async_shared_target(machine, warp, lane, op_address(warp, &inst->ops[index], lane), 16, "bulk copy",
                             offset);
}

static void set_reduce(const Inst *inst, BulkOp *op) {
  static const struct {
    Mod mod;
    Reduce reduce;
  } rows[] = {{MOD_add, REDUCE_ADD}, {MOD_min, REDUCE_MIN}, {MOD_max, REDUCE_MAX}, {MOD_inc, REDUCE_INC},
              {MOD_dec, REDUCE_DEC}, {MOD_and, REDUCE_AND}, {MOD_or, REDUCE_OR},   {MOD_xor, REDUCE_XOR}};
  op->reduce = REDUCE_NONE;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (inst_has(inst, rows[i].mod)) op->reduce = rows[i].reduce;
  op->element = inst->aux;
  op->element_bytes = inst->bytes;
}

static bool issue_to_global(Machine *machine, Warp *warp, const Inst *inst, int lane, BulkOp *op) {
  op->global = op_address(warp, &inst->ops[0], lane);
  op->bytes = (uint32_t)op_get(warp, &inst->ops[2], lane);
  op->source = shared_operand(machine, warp, inst, 1, lane, &op->source_offset);
  if (!op->source || !check_sizes(machine, warp, lane, op->global, op->bytes)) return false;
  if (inst_has(inst, MOD_cp_mask))
    op->mask = (uint32_t)op_get(warp, &inst->ops[inst->nops - 1], lane) & WHOLE_CHUNK;
  op->op.groups = cta_async(warp->cta)->bulks + warp->index * WARP_LANES;
  op->op.group_lanes = 1u << lane;
  return true;
}

static bool issue_to_shared(Machine *machine, Warp *warp, const Inst *inst, int lane, BulkOp *op) {
  Cta *cta = shared_operand(machine, warp, inst, 0, lane, &op->shared);
  op->bytes = (uint32_t)op_get(warp, &inst->ops[2], lane);
  if (!cta) return false;
  if (inst_space(inst, 1) == SPACE_GLOBAL)
    op->global = op_address(warp, &inst->ops[1], lane);
  else if (!(op->source = shared_operand(machine, warp, inst, 1, lane, &op->source_offset)))
    return false;
  if (!check_sizes(machine, warp, lane, op->global, op->bytes)) return false;
  op->op.barrier_cta = async_shared_target(machine, warp, lane, op_address(warp, &inst->ops[3], lane), 8,
                                           "mbarrier", &op->op.barrier);
  if (!op->op.barrier_cta) return false;
  op->ranks = 1u << cta->rank;
  bool many = inst_has(inst, MOD_multicast_cluster);
  if (many) op->op.barrier_ranks = op->ranks = (uint32_t)op_get(warp, &inst->ops[4], lane) & 0xFFFF;
  if (many && (op->ranks >> warp->cta->cluster->nctas || !op->ranks)) {
    machine_fault(machine, warp, lane, "multicast mask 0x%x: the cluster has %d CTAs", op->ranks,
                  warp->cta->cluster->nctas);
    return false;
  }
  if (many || op->op.barrier_cta == cta) return true;
  machine_fault(machine, warp, lane, "the mbarrier is in CTA %u, the data goes to CTA %u",
                op->op.barrier_cta->rank, cta->rank);
  return false;
}

static ExecResult exec_bulk(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  bool to_global = inst_space(inst, 0) == SPACE_GLOBAL;
  FOR_LANES(lane, lanes) {
    BulkOp *op = engine_op_new(machine, warp, (int)lane, to_global ? ENGINE_TMA_STORE : ENGINE_TMA_LOAD,
                               sizeof *op, to_global ? complete_to_global : complete_to_shared);
    if (!op) return EXEC_FAULT;
    set_reduce(inst, op);
    op->mask = WHOLE_CHUNK;
    if (!(to_global ? issue_to_global : issue_to_shared)(machine, warp, inst, (int)lane, op)) {
      free(op);
      return EXEC_FAULT;
    }
    engine_queue(machine, &op->op);
  }
  return EXEC_NEXT;
}

// A hint, but its rules hold.
static ExecResult exec_prefetch(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  FOR_LANES(lane, lanes) {
    uint64_t address = op_address(warp, &inst->ops[0], (int)lane);
    if (!check_sizes(machine, warp, (int)lane, address, (uint32_t)op_get(warp, &inst->ops[1], (int)lane)))
      return EXEC_FAULT;
  }
  return EXEC_NEXT;
}

static const char *select_bulk(Inst *inst) {
  inst->exec = exec_bulk;
  if (inst_has(inst, MOD_ignore_src)) return ".ignore_src is not supported";
  if (inst->nspaces != 2) return "needs a destination and a source space";
  if (inst_space(inst, 0) == SPACE_GLOBAL)
    return inst->nops < 3 + inst_has(inst, MOD_cp_mask) + inst_has(inst, MOD_L2_cache_hint)
               ? "needs destination, source, size, and the policy and mask that it names"
               : NULL;
  if (inst_has(inst, MOD_cp_mask)) return ".cp_mask is for copies from shared to global memory";
  return inst->nops < 4 + inst_has(inst, MOD_multicast_cluster)
             ? "needs destination, source, size, mbarrier and mask"
             : NULL;
}

static int element_of(PtxType type) {
  static const struct {
    PtxType type;
    int element;
  } rows[] = {{PT_u32, ELEMENT_U32}, {PT_s32, ELEMENT_S32}, {PT_b32, ELEMENT_U32}, {PT_u64, ELEMENT_U64},
              {PT_s64, ELEMENT_S64}, {PT_b64, ELEMENT_U64}, {PT_f16, ELEMENT_F16}, {PT_bf16, ELEMENT_BF16},
              {PT_f32, ELEMENT_F32}, {PT_f64, ELEMENT_F64}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].type == type) return rows[i].element;
  return -1;
}

static const char *select_reduce(Inst *inst) {
  const char *error = inst_has(inst, MOD_cp_mask) ? "reductions take no .cp_mask" : select_bulk(inst);
  if (error) return error;
  BulkOp op = {0};
  inst->aux = inst->ntypes ? element_of((PtxType)inst->types[0]) : -1;
  inst->bytes = inst->ntypes ? (uint16_t)(ptx_type_bits((PtxType)inst->types[0]) / 8) : 0;
  set_reduce(inst, &op);
  if (op.reduce == REDUCE_NONE || inst->aux < 0 || !tma_reduce_known(inst->aux, op.reduce))
    return "this operation does not exist for this type";
  return NULL;
}

#define BULK_CLASSES (MC(SPACE) | MC(COMPLETION) | MC(MULTICAST) | MC(HINT) | MC(TILE) | MC(CACHE))

const InstDef bulk_insts[] = {
    {.name = "cp.async.bulk",
     .classes = BULK_CLASSES,
     .operands = "mmi*",
     .min_sm = 90,
     .select = select_bulk},
    {.name = "cp.async.bulk.prefetch",
     .classes = BULK_CLASSES,
     .operands = "mi?l",
     .min_sm = 90,
     .exec = exec_prefetch},
    {.name = "cp.reduce.async.bulk",
     .classes = BULK_CLASSES | MC(OPERATION) | MC(NOFTZ),
     .operands = "mmi*",
     .min_sm = 90,
     .select = select_reduce},
    {0},
};

// tcgen05.cp (shared to tensor memory), commit, shift and fences. cp and commit stand in the issuing thread's queue
// behind its mmas; with cta_group::2 each CTA's tensor memory is filled from its own shared memory (PTX
// ISA 9.7.16.9, .11).
#include <stdlib.h>
#include <string.h>

#include "async/async_internal.h"
#include "async/smem_desc.h"

typedef enum {
  COPY_128X256B,
  COPY_4X256B,
  COPY_128X128B,
  COPY_64X128B_02_13,
  COPY_64X128B_01_23,
  COPY_32X128B_X4
} CopyShape;

typedef struct {
  int rows, units;  // rows of 16-byte units in shared memory
  int copies;
  int first[4];  // lane of row 0 in each copy
  int pitch;     // lanes from one row to the next
} ShapeRow;

static const ShapeRow shapes[] = {
    [COPY_128X256B] = {128, 2, 1, {0}, 1},
    [COPY_4X256B] = {4, 2, 1, {0}, 32},
    [COPY_128X128B] = {128, 1, 1, {0}, 1},
    [COPY_64X128B_02_13] = {64, 1, 2, {0, 64}, 1},
    [COPY_64X128B_01_23] = {64, 1, 2, {0, 32}, 1},  // rows 32 and up 32 lanes further: see lane_of
    [COPY_32X128B_X4] = {32, 1, 4, {0, 32, 64, 96}, 1},
};

typedef struct {
  EngineOp op;
  CopyShape shape;
  int group;
  uint32_t address;
  SmemDesc source;
  int packed_bits;  // 4 or 6: padded groups of 16 become 8-bit containers; 0: plain bytes
} CopyOp;

static int lane_of(CopyShape shape, int copy, int row) {
  int lane = shapes[shape].first[copy] + row * shapes[shape].pitch;
  return shape == COPY_64X128B_01_23 && row >= 32 ? lane + 32 : lane;
}

// 16 packed elements to 16 containers: e2m1 in bits 2-5, 6-bit types in bits 0-5, as warp-level mma wants
// them.
static void unpack(const uint8_t *unit, int bits, uint8_t out[16]) {
  for (int i = 0; i < 16; i++) {
    int at = i * bits;
    unsigned pair = unit[at / 8] | (unsigned)unit[at / 8 + 1] << 8;
    unsigned code = pair >> at % 8 & ((1u << bits) - 1);
    out[i] = (uint8_t)(bits == 4 ? code << 2 : code);
  }
}

static bool copy_row(Machine *machine, const CopyOp *op, const Cta *cta, int row) {
  const ShapeRow *shape = &shapes[op->shape];
  int column = tmem_column(op->address);
  for (int unit = 0; unit < shape->units; unit++) {
    uint8_t bytes[16];
    uint32_t from = smem_desc_unit(&op->source, false, false, row, unit);
    const uint8_t *host = async_shared(machine, &op->op.origin, cta, from, 16, "source of tcgen05.cp");
    if (!host) return false;
    engine_event(machine, &op->op, EVENT_ASYNC_READ, cta, SPACE_SHARED, from, 16);
    if (op->packed_bits)
      unpack(host, op->packed_bits, bytes);
    else
      memcpy(bytes, host, 16);
    for (int copy = 0; copy < shape->copies; copy++)
      memcpy(tmem_cell(&cta_async(cta)->tmem, lane_of(op->shape, copy, row), column + 4 * unit), bytes, 16);
  }
  return true;
}

static bool complete_copy(Machine *machine, EngineOp *base) {
  CopyOp *op = (CopyOp *)base;
  Cta *own = base->origin.cta;
  const ShapeRow *shape = &shapes[op->shape];
  for (int half = 0; half < op->group; half++) {
    Cta *cta = op->group == 1 ? own : &own->cluster->ctas[(own->rank & ~1u) + (uint32_t)half];
    if (cta_async(cta)->ended) {
      machine_fault_at(machine, &base->origin, "tcgen05.cp.cta_group::2: CTA %u of the pair has exited",
                       cta->rank);
      return false;
    }
    if (!tcgen05_columns(machine, &base->origin, cta, tmem_column(op->address), 4 * shape->units,
                         "tcgen05.cp"))
      return false;
    for (int row = 0; row < shape->rows; row++)
      if (!copy_row(machine, op, cta, row)) return false;
    uint32_t bands = 0;
    for (int copy = 0; copy < shape->copies; copy++)
      for (int row = 0; row < shape->rows; row++) bands |= 1u << lane_of(op->shape, copy, row) / 16;
    engine_tmem_event(machine, base, EVENT_ASYNC_WRITE, cta, op->address, shape->units * 4, bands);
  }
  return true;
}

static ExecResult exec_cp(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  FOR_LANES(lane, lanes) {
    SpaceError why;
    CopyOp *op = engine_op_new(machine, warp, (int)lane, ENGINE_TENSOR, sizeof *op, complete_copy);
    if (!op) return EXEC_FAULT;
    op->shape = (CopyShape)inst->aux;
    op->packed_bits = inst_has(inst, MOD_b4x16_p64) ? 4 : inst_has(inst, MOD_b6x16_p32) ? 6 : 0;
    op->group = tcgen05_group(machine, warp, (int)lane, inst);
    op->address = (uint32_t)op_address(warp, &inst->ops[0], (int)lane);
    bool ok = op->group != 0;
    if (ok && tmem_lane(op->address)) {
      machine_fault(machine, warp, (int)lane, "tcgen05.cp: the address 0x%x must be in lane 0", op->address);
      ok = false;
    }
    if (ok && !smem_desc_tcgen05(op_get(warp, &inst->ops[1], (int)lane), &op->source, &why)) {
      machine_fault(machine, warp, (int)lane, "tcgen05.cp: %s", why.text);
      ok = false;
    }
    if (!ok) {
      free(op);
      return EXEC_FAULT;
    }
    engine_queue(machine, &op->op);
  }
  return EXEC_NEXT;
}

static const char *select_cp(Inst *inst) {
  static const struct {
    Mod shape, rule;
    CopyShape copy;
  } rows[] = {{MOD_shape_128x256b, MOD_COUNT, COPY_128X256B},
              {MOD_shape_4x256b, MOD_COUNT, COPY_4X256B},
              {MOD_shape_128x128b, MOD_COUNT, COPY_128X128B},
              {MOD_shape_64x128b, MOD_warpx2_02_13, COPY_64X128B_02_13},
              {MOD_shape_64x128b, MOD_warpx2_01_23, COPY_64X128B_01_23},
              {MOD_shape_32x128b, MOD_warpx4, COPY_32X128B_X4}};
  if (inst_has(inst, MOD_b8x16) != (inst_has(inst, MOD_b4x16_p64) || inst_has(inst, MOD_b6x16_p32)))
    return "b8x16 needs a source format and the reverse";
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (!inst_has(inst, rows[i].shape) || (rows[i].rule != MOD_COUNT && !inst_has(inst, rows[i].rule)))
      continue;
    inst->aux = (int32_t)rows[i].copy;
    return NULL;
  }
  return "unknown shape, or its multicast (.warpx2::…, .warpx4) is missing";
}

// ---- commit

typedef struct {
  EngineOp op;
} CommitOp;

static bool complete_commit(Machine *machine, EngineOp *base) {
  Cluster *cluster = base->origin.cta->cluster;
  for (uint32_t rank = 0; rank < (uint32_t)cluster->nctas; rank++) {
    Cta *cta = &cluster->ctas[rank];
    if (base->barrier_ranks ? !(base->barrier_ranks >> rank & 1) : cta != base->barrier_cta) continue;
    if (cta_async(cta)->ended) {
      machine_fault_at(machine, &base->origin,
                       "tcgen05.commit arrives at an mbarrier of CTA %u, which has exited", rank);
      return false;
    }
    if (!mbarrier_arrive(machine, &base->origin, cta, base->barrier, 1)) return false;
  }
  return true;
}

static bool read_commit(Machine *machine, Warp *warp, const Inst *inst, int lane, CommitOp *op) {
  if (!tcgen05_group(machine, warp, lane, inst)) return false;
  // Generic addresses occur with a zero-extended 32-bit address: only the low half counts.
  uint64_t address = op_address(warp, &inst->ops[0], lane) & 0xFFFFFFFF;
  op->op.barrier_cta =
      async_shared_target(machine, warp, lane, address, 8, "mbarrier of tcgen05.commit", &op->op.barrier);
  if (!op->op.barrier_cta) return false;
  if (!inst_has(inst, MOD_multicast_cluster)) return true;
  op->op.barrier_ranks = (uint32_t)op_get(warp, &inst->ops[1], lane) & 0xFFFF;
  if (op->op.barrier_ranks && !(op->op.barrier_ranks >> warp->cta->cluster->nctas)) return true;
  machine_fault(machine, warp, lane, "tcgen05.commit: multicast mask 0x%x, the cluster has %d CTAs",
                op->op.barrier_ranks, warp->cta->cluster->nctas);
  return false;
}

static ExecResult exec_commit(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  FOR_LANES(lane, lanes) {
    CommitOp *op = engine_op_new(machine, warp, (int)lane, ENGINE_TENSOR, sizeof *op, complete_commit);
    if (!op) return EXEC_FAULT;
    if (!read_commit(machine, warp, inst, (int)lane, op)) {
      free(op);
      return EXEC_FAULT;
    }
    engine_queue(machine, &op->op);
  }
  return EXEC_NEXT;
}

static const char *select_commit(Inst *inst) {
  if (!inst_has(inst, MOD_mbarrier_arrive_one)) return ".mbarrier::arrive::one is missing";
  return inst_has(inst, MOD_multicast_cluster) && inst->nops < 2 ? "the multicast mask is missing" : NULL;
}

// Order between queues and threads is the engine's own; observers hear of fences.
static ExecResult exec_fence(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)inst;
  machine_event(machine, EVENT_FENCE, warp, lanes, SPACE_TMEM, 0, 0);
  return EXEC_NEXT;
}

// ---- shift: the rows of one quarter move down, to the next higher lane, eight columns wide (shape 31x256b). The first row stays;
// cp.4x256b, whose rows go to the first lanes of the quarters, is what renews it (PTX ISA 9.7.16.9.3).

enum { SHIFT_COLUMNS = 8, QUARTER_LANES = 32 };

typedef struct {
  EngineOp op;
  int group;
  uint32_t address;
} ShiftOp;

static bool shift_rows(Machine *machine, const ShiftOp *op, Cta *cta) {
  int first = tmem_lane(op->address), column = tmem_column(op->address);
  if (!tcgen05_columns(machine, &op->op.origin, cta, column, SHIFT_COLUMNS, "tcgen05.shift")) return false;
  Tmem *tmem = &cta_async(cta)->tmem;
  uint32_t bands = 3u << first / 16;
  engine_tmem_event(machine, &op->op, EVENT_ASYNC_READ, cta, (uint32_t)column, SHIFT_COLUMNS, bands);
  for (int lane = first + QUARTER_LANES - 1; lane > first; lane--)
    memcpy(tmem_cell(tmem, lane, column), tmem_cell(tmem, lane - 1, column),
           SHIFT_COLUMNS * sizeof(uint32_t));
  engine_tmem_event(machine, &op->op, EVENT_ASYNC_WRITE, cta, (uint32_t)column, SHIFT_COLUMNS, bands);
  return true;
}

static bool complete_shift(Machine *machine, EngineOp *base) {
  ShiftOp *op = (ShiftOp *)base;
  Cta *own = base->origin.cta;
  if (op->group == 1) return shift_rows(machine, op, own);
  for (uint32_t half = 0; half < 2; half++) {
    Cta *cta = &own->cluster->ctas[(own->rank & ~1u) + half];
    if (cta_async(cta)->ended) {
      machine_fault_at(machine, &base->origin, "tcgen05.shift.cta_group::2: CTA %u of the pair has exited",
                       cta->rank);
      return false;
    }
    if (!shift_rows(machine, op, cta)) return false;
  }
  return true;
}

static ExecResult exec_shift(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  FOR_LANES(lane, lanes) {
    ShiftOp *op = engine_op_new(machine, warp, (int)lane, ENGINE_TENSOR, sizeof *op, complete_shift);
    if (!op) return EXEC_FAULT;
    op->group = tcgen05_group(machine, warp, (int)lane, inst);
    op->address = (uint32_t)op_address(warp, &inst->ops[0], (int)lane);
    bool aligned = tmem_lane(op->address) % QUARTER_LANES == 0;
    if (op->group && aligned) {
      engine_queue(machine, &op->op);
      continue;
    }
    if (op->group)
      machine_fault(machine, warp, (int)lane,
                    "tcgen05.shift: the lane of the address 0x%x must be a multiple of 32", op->address);
    free(op);
    return EXEC_FAULT;
  }
  return EXEC_NEXT;
}

static const char *select_shift(Inst *inst) {
  return inst_has(inst, MOD_down) ? NULL : ".down is missing";
}

#define COPY_CLASSES (MC(CTA_GROUP) | MC(TMEM_SHAPE) | MC(TMEM_COPY))

const InstDef tcgen05_cp_insts[] = {
    {.name = "tcgen05.cp",
     .classes = COPY_CLASSES,
     .operands = "ml",
     .min_sm = 100,
     .exec = exec_cp,
     .select = select_cp},
    {.name = "tcgen05.commit",
     .classes = MC(CTA_GROUP) | MC(MBARRIER) | MC(SPACE) | MC(MULTICAST),
     .operands = "m?h",
     .min_sm = 100,
     .exec = exec_commit,
     .select = select_commit},
    {.name = "tcgen05.fence::before_thread_sync", .operands = "", .min_sm = 100, .exec = exec_fence},
    {.name = "tcgen05.fence::after_thread_sync", .operands = "", .min_sm = 100, .exec = exec_fence},
    {.name = "tcgen05.shift",
     .classes = MC(CTA_GROUP) | MC(SHUFFLE),
     .operands = "m",
     .min_sm = 100,
     .exec = exec_shift,
     .select = select_shift},
    {0},
};

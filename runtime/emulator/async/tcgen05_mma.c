// tcgen05.mma as an instruction: operands and descriptors are read and checked here, the work is queued for
// the tensor engine, in order for each issuing thread (PTX ISA 9.7.16.10).
#include <stdlib.h>

#include "async/tcgen05_mma.h"

static int scale_vector_of(const Inst *inst, MmaKind kind) {
  if (!kind_is_scaled(kind)) return 0;
  if (inst_has(inst, MOD_scale_vec_4X) || inst_has(inst, MOD_block16)) return 4;
  if (inst_has(inst, MOD_scale_vec_2X)) return 2;
  if (inst_has(inst, MOD_scale_vec_1X)) return 1;
  return kind == KIND_MXF8F6F4 ? 1 : 2;  // block32 and the defaults
}

static MmaKind kind_of(const Inst *inst) {
  static const struct {
    Mod mod;
    MmaKind kind;
  } rows[] = {{MOD_kind_tf32, KIND_TF32}, {MOD_kind_f8f6f4, KIND_F8F6F4},
              {MOD_kind_i8, KIND_I8},     {MOD_kind_mxf8f6f4, KIND_MXF8F6F4},
              {MOD_kind_mxf4, KIND_MXF4}, {MOD_kind_mxf4nvf4, KIND_MXF4NVF4}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (inst_has(inst, rows[i].mod)) return rows[i].kind;
  return KIND_F16;
}

static bool fail(Machine *machine, Warp *warp, int lane, const SpaceError *why) {
  machine_fault(machine, warp, lane, "tcgen05.mma: %s", why->text);
  return false;
}

// D's lane must be 0, or 16 where a layout leaves half of each quarter free; A in tensor memory has the same.
static bool check_lanes(Machine *machine, Warp *warp, int lane, const MmaOp *op) {
  int d = tmem_lane(op->d), a = op->a_in_tmem ? tmem_lane(op->a_address) : d;
  if ((d != 0 && !(d == 16 && op->layout == LAYOUT_F)) || a != d) {
    machine_fault(machine, warp, lane, "tcgen05.mma: D starts in lane %d%s; it must be 0%s", d,
                  a != d ? " and A in another" : "", op->layout == LAYOUT_F ? " or 16" : "");
    return false;
  }
  return true;
}

// Legal combinations of element size, major-ness and swizzle for one shared operand.
static bool check_major(Machine *machine, Warp *warp, int lane, const char *name, MmaType type,
                        bool transposed, Swizzle swizzle) {
  bool wide = type == MMA_TF32, atoms = swizzle == SWIZZLE_128B_ATOM_32B;
  if (!transposed || (wide ? atoms : !atoms)) return true;
  machine_fault(machine, warp, lane, "tcgen05.mma: %s, transposed %s, cannot have %s", name,
                mma_type_name(type),
                wide ? "a swizzle other than 128B with 32-byte atoms" : "128B swizzle with 32-byte atoms");
  return false;
}

static bool read_operands(Machine *machine, Warp *warp, const Inst *inst, int lane, MmaOp *op) {
  SpaceError why;
  MmaKind kind = kind_of(inst);
  bool ws = inst_has(inst, MOD_ws);
  op->scale_vector = scale_vector_of(inst, kind);
  op->d = (uint32_t)op_address(warp, &inst->ops[0], lane);
  if (!idesc_decode((uint32_t)op_get(warp, &inst->ops[3], lane), kind, op->group, ws, op->scale_vector,
                    &op->idesc, &why) ||
      !smem_desc_tcgen05(op_get(warp, &inst->ops[2], lane), &op->b, &why))
    return fail(machine, warp, lane, &why);
  op->layout = mma_layout(&op->idesc, op->group, ws);
  op->a_in_tmem = inst->ops[1].kind == OPERAND_ADDRESS;
  if (op->a_in_tmem)
    op->a_address = (uint32_t)op_address(warp, &inst->ops[1], lane);
  else if (!smem_desc_tcgen05(op_get(warp, &inst->ops[1], lane), &op->a, &why))
    return fail(machine, warp, lane, &why);
  if (op->a_in_tmem && op->idesc.transpose_a) {
    machine_fault(machine, warp, lane,
                  "tcgen05.mma: A in tensor memory cannot be transposed (bit 15 of the descriptor)");
    return false;
  }
  return check_lanes(machine, warp, lane, op) &&
         (op->a_in_tmem ||
          check_major(machine, warp, lane, "A", op->idesc.a, op->idesc.transpose_a, op->a.swizzle)) &&
         check_major(machine, warp, lane, "B", op->idesc.b, op->idesc.transpose_b, op->b.swizzle);
}

// What follows the instruction descriptor: scale addresses, lane mask, enable-input-d, scale-input-d or, with
// .ws, the zero-column mask.
static bool read_tail(Machine *machine, Warp *warp, const Inst *inst, int lane, MmaOp *op) {
  int scales = 0;
  bool enable_seen = false;
  for (int i = 4; i < inst->nops; i++) {
    const Operand *operand = &inst->ops[i];
    if (operand->kind == OPERAND_ADDRESS) {
      *(scales++ == 0 ? &op->scale_a : &op->scale_b) = (uint32_t)op_address(warp, operand, lane);
    } else if (operand->kind == OPERAND_VECTOR) {
      op->masked = true;
      for (int w = 0; w < operand->nelems && w < 8; w++)
        op->mask[w] = (uint32_t)op_get(warp, &operand->elems[w], lane);
    } else if (!enable_seen) {
      enable_seen = true;
      op->read_d = op_get(warp, operand, lane) & 1;
    } else if (inst_has(inst, MOD_ws)) {
      op->zero_columns = op_get(warp, operand, lane);
      if (!(op->zero_columns >> 56 & 0x3F)) continue;
      machine_fault(machine, warp, lane,
                    "tcgen05.mma.ws: a zero-column mask that shifts columns (bits 56-61) is not supported");
      return false;
    } else {
      op->d_scale_down = (int)op_get(warp, operand, lane);
    }
  }
  if (op->d_scale_down < 0 || op->d_scale_down > 15) {
    machine_fault(machine, warp, lane, "tcgen05.mma: scale-input-d is %d, not in 0 to 15", op->d_scale_down);
    return false;
  }
  // An all-zero mask, which most code passes, costs nothing.
  bool any = false;
  for (int w = 0; w < 8; w++) any |= op->mask[w] != 0;
  op->masked &= any;
  return true;
}

static ExecResult exec_mma(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  FOR_LANES(lane, lanes) {
    int group = tcgen05_group(machine, warp, (int)lane, inst);
    if (!group) return EXEC_FAULT;
    MmaOp *op = engine_op_new(machine, warp, (int)lane, ENGINE_TENSOR, sizeof *op, mma_complete);
    if (!op) return EXEC_FAULT;
    op->group = group;
    if (!read_operands(machine, warp, inst, (int)lane, op) ||
        !read_tail(machine, warp, inst, (int)lane, op)) {
      free(op);
      return EXEC_FAULT;
    }
    engine_queue(machine, &op->op);
  }
  return EXEC_NEXT;
}

static int tail_count(const Inst *inst, OperandKind kind) {
  int count = 0;
  for (int i = 4; i < inst->nops; i++) count += inst->ops[i].kind == kind;
  return count;
}

// What follows enable-input-d under .ws: the mask of zero columns, which only a register can hold.
static bool has_narrow_mask(const Inst *inst) {
  int seen = 0;
  for (int i = 4; i < inst->nops; i++)
    if (inst->ops[i].kind == OPERAND_REG && ++seen == 2) return inst->ops[i].row != ROW_64;
  return false;
}

static const char *select_mma(Inst *inst) {
  MmaKind kind = kind_of(inst);
  if (inst_mod_in(inst, MC_KIND) == MOD_COUNT) return "the kind is missing";
  if (inst_has(inst, MOD_sp)) return "sparse instructions are not supported";
  if (inst->ops[3].kind != OPERAND_REG || inst->ops[3].row != ROW_32)
    return "the instruction descriptor must be a 32-bit register";
  if (inst_has(inst, MOD_ashift))
    return ".ashift is not supported: nothing documents what its first row receives";
  if (inst_has(inst, MOD_ws) && (inst_has(inst, MOD_cta_group_2) || kind_is_scaled(kind)))
    return ".ws is for cta_group::1 and unscaled kinds";
  if (inst_has(inst, MOD_ws) && has_narrow_mask(inst))
    return "the zero-column mask must be a 64-bit register";
  if (kind_is_scaled(kind) != inst_has(inst, MOD_block_scale))
    return "block_scale and kind do not go together";
  if (inst_has(inst, MOD_block16) && kind != KIND_MXF4NVF4) return "block16 is for kind::mxf4nvf4";
  if (tail_count(inst, OPERAND_ADDRESS) != (kind_is_scaled(kind) ? 2 : 0))
    return "scaled kinds take two scale addresses";
  if (tail_count(inst, OPERAND_REG) < 1) return "enable-input-d is missing";
  return NULL;
}

#define MMA_CLASSES (MC(CTA_GROUP) | MC(KIND) | MC(BLOCK_SCALE) | MC(COLLECTOR) | MC(SPARSE))

const InstDef tcgen05_mma_insts[] = {
    {.name = "tcgen05.mma",
     .classes = MMA_CLASSES,
     .operands = "mxlx*",
     .min_sm = 100,
     .exec = exec_mma,
     .select = select_mma},
    {0},
};

// ldmatrix, stmatrix, movmatrix: 8x8 tiles of 16-bit elements moved between shared memory and fragments.
// Thread t holds row t/4, columns 2(t%4) and 2(t%4)+1 of a tile; thread 8i+r gives the address of row r of
// tile i.
#include "exec/exec.h"

#include <string.h>

typedef struct {
  uint16_t at[8][8];
} Tile;

static uint8_t *row_address(Machine *machine, Warp *warp, const Inst *inst, const Operand *address, int lane,
                            bool write) {
  Space space = inst->nspaces > 0 ? inst_space(inst, 0) : SPACE_GENERIC;
  return machine_address(machine, warp, lane, space, op_address(warp, address, lane), 16, 16, write);
}

static const Operand *fragment(const Operand *op, int tile) {
  return op->kind == OPERAND_VECTOR ? &op->elems[tile] : op;
}

static ExecResult exec_ldmatrix(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  if (!warp_meet(machine, warp, lanes, 0xffffffffu)) return EXEC_BLOCK;
  bool trans = inst_has(inst, MOD_trans);
  for (int tile = 0; tile < inst->count; tile++) {
    Tile t;
    for (int r = 0; r < 8; r++) {
      const uint8_t *from = row_address(machine, warp, inst, &inst->ops[1], tile * 8 + r, false);
      if (from == NULL) return EXEC_FAULT;
      memcpy(t.at[r], from, 16);
      Space space = inst->nspaces > 0 ? inst_space(inst, 0) : SPACE_GENERIC;
      machine_event(machine, EVENT_READ, warp, 1u << (tile * 8 + r), space,
                    op_address(warp, &inst->ops[1], tile * 8 + r), 16);
    }
    uint32_t *d = row32(warp, fragment(&inst->ops[0], tile));
    for (int lane = 0; lane < WARP_LANES; lane++) {
      int r = lane / 4, c = lane % 4 * 2;
      d[lane] =
          trans ? t.at[c][r] | (uint32_t)t.at[c + 1][r] << 16 : t.at[r][c] | (uint32_t)t.at[r][c + 1] << 16;
    }
  }
  return EXEC_NEXT;
}

static ExecResult exec_stmatrix(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  if (!warp_meet(machine, warp, lanes, 0xffffffffu)) return EXEC_BLOCK;
  bool trans = inst_has(inst, MOD_trans);
  for (int tile = 0; tile < inst->count; tile++) {
    Tile t;
    const uint32_t *s = row32(warp, fragment(&inst->ops[1], tile));
    for (int lane = 0; lane < WARP_LANES; lane++) {
      int r = lane / 4, c = lane % 4 * 2;
      uint16_t low = (uint16_t)s[lane], high = (uint16_t)(s[lane] >> 16);
      if (trans) {
        t.at[c][r] = low;
        t.at[c + 1][r] = high;
      } else {
        t.at[r][c] = low;
        t.at[r][c + 1] = high;
      }
    }
    for (int r = 0; r < 8; r++) {
      uint8_t *to = row_address(machine, warp, inst, &inst->ops[0], tile * 8 + r, true);
      if (to == NULL) return EXEC_FAULT;
      memcpy(to, t.at[r], 16);
      machine_event(machine, EVENT_WRITE, warp, 1u << (tile * 8 + r), SPACE_SHARED,
                    op_address(warp, &inst->ops[0], tile * 8 + r), 16);
    }
  }
  machine->progress++;
  return EXEC_NEXT;
}

static ExecResult exec_movmatrix(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  if (!warp_meet(machine, warp, lanes, 0xffffffffu)) return EXEC_BLOCK;
  Tile t;
  const uint32_t *a = row32(warp, &inst->ops[1]);
  for (int lane = 0; lane < WARP_LANES; lane++) {
    t.at[lane / 4][lane % 4 * 2] = (uint16_t)a[lane];
    t.at[lane / 4][lane % 4 * 2 + 1] = (uint16_t)(a[lane] >> 16);
  }
  uint32_t *d = row32(warp, &inst->ops[0]);
  for (int lane = 0; lane < WARP_LANES; lane++) {
    int r = lane / 4, c = lane % 4 * 2;
    d[lane] = t.at[c][r] | (uint32_t)t.at[c + 1][r] << 16;
  }
  return EXEC_NEXT;
}

static const char *select_matrix(Inst *inst, const Operand *registers) {
  if (inst->count == 0) inst->count = 1;
  bool square = inst->shape[0] == 8 && inst->shape[1] == 8,
       b16 = inst->ntypes > 0 && inst->types[0] == PT_b16;
  if (!square || !b16 || (inst->count != 1 && inst->count != 2 && inst->count != 4))
    return "only .m8n8 .x1/.x2/.x4 .b16";
  int count = registers->kind == OPERAND_VECTOR ? registers->nelems : 1;
  if (count != inst->count) return "the braces don't hold as many registers as there are tiles";
  for (int i = 0; i < count; i++) {
    const Operand *op = fragment(registers, i);
    if (op->kind != OPERAND_REG || op->row != ROW_32) return "32-bit registers expected";
  }
  return NULL;
}

static const char *select_ldmatrix(Inst *inst) {
  return select_matrix(inst, &inst->ops[0]);
}
static const char *select_stmatrix(Inst *inst) {
  return select_matrix(inst, &inst->ops[1]);
}
static const char *select_movmatrix(Inst *inst) {
  return inst_has(inst, MOD_trans) && inst->shape[0] == 8 && inst->shape[1] == 8 ? NULL : "only .m8n8.trans";
}

#define MATRIX (MC(ALIGNED) | MC(SHAPE) | MC(COUNT) | MC(TRANS) | MC(SPACE))

const InstDef matrix_insts[] = {
    {"ldmatrix", MATRIX, "rm", 0, exec_ldmatrix, NULL, select_ldmatrix},
    {"stmatrix", MATRIX, "mr", 90, exec_stmatrix, NULL, select_stmatrix},
    {"movmatrix", MATRIX, "ii", 0, exec_movmatrix, NULL, select_movmatrix},
    {.name = NULL},
};

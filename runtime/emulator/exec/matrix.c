// ldmatrix, stmatrix, movmatrix: 8x8 tiles of 16-bit elements moved between shared memory and fragments.
// Thread t holds row t/4, columns 2(t%4) and 2(t%4)+1 of a tile; thread 8i+r gives the address of row r of
// tile i. Tiles of bytes (sm_100) are further below.
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

// ---- bytes. A line of shared memory has 16 bytes, plain or packed (4 or 6 bits an element, then padding). m8n16: thread
// t takes columns 4(t%4) and up of line t/4. m16n16, always transposed: lines are columns; register j holds row t/4 + 8j,
// columns 4(t%4) and up. stmatrix m16n8, always transposed: a register holds rows t/4 and t/4 + 8 of columns 2(t%4), +1.

enum { LINE_BYTES = 16 };

// 16 elements of 4 or 6 bits, each into a byte: 4-bit ones in bits 2-5, as mma takes them.
static void unpack_line(const Inst *inst, const uint8_t *from, uint8_t line[LINE_BYTES]) {
  int bits = inst_has(inst, MOD_b4x16_p64) ? 4 : inst_has(inst, MOD_b6x16_p32) ? 6 : 8;
  for (int i = 0; i < LINE_BYTES; i++) {
    int at = i * bits;
    unsigned next = at / 8 + 1 < LINE_BYTES ? from[at / 8 + 1] : 0;
    unsigned code = (from[at / 8] | next << 8) >> at % 8 & ((1u << bits) - 1);
    line[i] = (uint8_t)(bits == 4 ? code << 2 : code);
  }
}

static ExecResult exec_ldmatrix_bytes(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  if (!warp_meet(machine, warp, lanes, 0xffffffffu)) return EXEC_BLOCK;
  bool tall = inst->shape[0] == 16;
  int lines = inst->shape[0];
  Space space = inst->nspaces > 0 ? inst_space(inst, 0) : SPACE_GENERIC;
  for (int tile = 0; tile < inst->count; tile++) {
    uint8_t line[16][LINE_BYTES];
    for (int r = 0; r < lines; r++) {
      int lane = tile * lines + r;
      const uint8_t *from = row_address(machine, warp, inst, &inst->ops[1], lane, false);
      if (from == NULL) return EXEC_FAULT;
      unpack_line(inst, from, line[r]);
      machine_event(machine, EVENT_READ, warp, 1u << lane, space, op_address(warp, &inst->ops[1], lane),
                    LINE_BYTES);
    }
    for (int j = 0; j < lines / 8; j++) {
      uint32_t *d = row32(warp, fragment(&inst->ops[0], tile * lines / 8 + j));
      for (int t = 0; t < WARP_LANES; t++) {
        d[t] = 0;
        for (int b = 0; b < 4; b++) {
          int column = t % 4 * 4 + b;
          d[t] |= (uint32_t)(tall ? line[column][t / 4 + 8 * j] : line[t / 4][column]) << 8 * b;
        }
      }
    }
  }
  return EXEC_NEXT;
}

static ExecResult exec_stmatrix_bytes(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  if (!warp_meet(machine, warp, lanes, 0xffffffffu)) return EXEC_BLOCK;
  for (int tile = 0; tile < inst->count; tile++) {
    uint8_t line[8][LINE_BYTES];
    const uint32_t *s = row32(warp, fragment(&inst->ops[1], tile));
    for (int t = 0; t < WARP_LANES; t++)
      for (int b = 0; b < 4; b++) line[t % 4 * 2 + b % 2][t / 4 + b / 2 * 8] = (uint8_t)(s[t] >> 8 * b);
    for (int r = 0; r < 8; r++) {
      int lane = tile * 8 + r;
      uint8_t *to = row_address(machine, warp, inst, &inst->ops[0], lane, true);
      if (to == NULL) return EXEC_FAULT;
      memcpy(to, line[r], LINE_BYTES);
      machine_event(machine, EVENT_WRITE, warp, 1u << lane, SPACE_SHARED,
                    op_address(warp, &inst->ops[0], lane), LINE_BYTES);
    }
  }
  machine->progress++;
  return EXEC_NEXT;
}

static bool is_bytes(const Inst *inst) {
  return inst_has(inst, MOD_b8x16) || (inst->ntypes > 0 && inst->types[0] == PT_b8);
}

// Whether the braces hold `expected` registers of 32 bits.
static const char *check_fragments(const Operand *registers, int expected) {
  int count = registers->kind == OPERAND_VECTOR ? registers->nelems : 1;
  if (count != expected) return "the braces don't hold as many registers as the tiles need";
  for (int i = 0; i < count; i++) {
    const Operand *op = fragment(registers, i);
    if (op->kind != OPERAND_REG || op->row != ROW_32) return "32-bit registers expected";
  }
  return NULL;
}

static const char *select_ldmatrix_bytes(Inst *inst) {
  bool packed = inst_has(inst, MOD_b8x16), trans = inst_has(inst, MOD_trans), tall = inst->shape[0] == 16;
  inst->exec = exec_ldmatrix_bytes;
  if (packed != (inst_has(inst, MOD_b4x16_p64) || inst_has(inst, MOD_b6x16_p32)))
    return ".b8x16 needs a source format and the reverse";
  bool exists =
      inst->shape[1] == 16 && (tall ? trans && inst->count <= 2 : inst->shape[0] == 8 && packed && !trans);
  if (!exists) return "bytes come as .m16n16.trans .x1/.x2, packed ones as .m8n16 .x1/.x2/.x4 too";
  return check_fragments(&inst->ops[0], inst->count * inst->shape[0] / 8);
}

static const char *select_stmatrix_bytes(Inst *inst) {
  inst->exec = exec_stmatrix_bytes;
  if (inst->shape[0] != 16 || inst->shape[1] != 8 || !inst_has(inst, MOD_trans))
    return "bytes are stored as .m16n8.trans .x1/.x2/.x4";
  return check_fragments(&inst->ops[1], inst->count);
}

// ---- which handler

static const char *select_matrix(Inst *inst, const Operand *registers) {
  bool square = inst->shape[0] == 8 && inst->shape[1] == 8,
       b16 = inst->ntypes > 0 && inst->types[0] == PT_b16;
  if (!square || !b16) return "only .m8n8 of .b16, and tiles of .b8";
  return check_fragments(registers, inst->count);
}

static const char *check_count(Inst *inst) {
  if (inst->count == 0) inst->count = 1;
  return inst->count == 1 || inst->count == 2 || inst->count == 4 ? NULL : "only .x1, .x2 and .x4";
}

static const char *select_ldmatrix(Inst *inst) {
  const char *error = check_count(inst);
  if (error) return error;
  return is_bytes(inst) ? select_ldmatrix_bytes(inst) : select_matrix(inst, &inst->ops[0]);
}
static const char *select_stmatrix(Inst *inst) {
  const char *error = check_count(inst);
  if (error) return error;
  return is_bytes(inst) ? select_stmatrix_bytes(inst) : select_matrix(inst, &inst->ops[1]);
}
static const char *select_movmatrix(Inst *inst) {
  return inst_has(inst, MOD_trans) && inst->shape[0] == 8 && inst->shape[1] == 8 ? NULL : "only .m8n8.trans";
}

#define MATRIX (MC(ALIGNED) | MC(SHAPE) | MC(COUNT) | MC(TRANS) | MC(SPACE) | MC(TMEM_COPY))

const InstDef matrix_insts[] = {
    {"ldmatrix", MATRIX, "rm", 0, exec_ldmatrix, NULL, select_ldmatrix},
    {"stmatrix", MATRIX, "mr", 90, exec_stmatrix, NULL, select_stmatrix},
    {"movmatrix", MATRIX, "ii", 0, exec_movmatrix, NULL, select_movmatrix},
    {.name = NULL},
};

// mma.sync: one warp's 16 x 8 product from register fragments (PTX ISA 9.7.14.5). Thread t = 4 g + q holds,
// of A, rows g and g + 8; of B, column g; of C and D, rows g and g + 8, columns 2 q and 2 q + 1. A 32-bit
// register holds `pack` neighbours along K, and register r of A covers row g + 8 (r & 1), register r / 2 of
// the K halves.
#include "exec/exec.h"

#include "num/accumulate.h"
#include "num/num.h"

enum { ROWS = 16, COLUMNS = 8 };

typedef struct {
  const NumFormat *format;  // NULL: integers
  int pack;                 // elements in a register
  int min_exponent;
} Element;

static Element element_of(PtxType type) {
  switch (type) {
  case PT_f16:
    return (Element){&num_f16, 2, -14};
  case PT_bf16:
    return (Element){&num_bf16, 2, -126};
  case PT_tf32:
    return (Element){&num_tf32, 1, -126};
  case PT_e4m3:
    return (Element){&num_e4m3, 4, -6};
  case PT_e5m2:
    return (Element){&num_e5m2, 4, -14};
  case PT_s8:
  case PT_u8:
    return (Element){NULL, 4, 0};
  default:
    return (Element){NULL, 0, 0};
  }
}

static uint32_t code_at(uint32_t word, int index, int pack) {
  return pack == 1 ? word >> 13 : word >> (index * 32 / pack) & (pack == 2 ? 0xffff : 0xff);
}

static float value_of(const Element *e, uint32_t word, int index) {
  return (float)num_decode(e->format, code_at(word, index, e->pack));
}

static int16_t integer_of(PtxType type, uint32_t word, int index) {
  uint32_t code = code_at(word, index, 4);
  return type == PT_s8 ? (int8_t)code : (int16_t)code;
}

typedef struct {
  NumTile a, b;
  int16_t int_a[ROWS * NUM_TILE_MAX_K], int_b[COLUMNS * NUM_TILE_MAX_K];
  uint32_t d[ROWS * COLUMNS];
} Work;

static const Operand *part(const Operand *op, int index) {
  return op->kind == OPERAND_VECTOR ? &op->elems[index] : op;
}
static int part_count(const Operand *op) {
  return op->kind == OPERAND_VECTOR ? op->nelems : 1;
}

// A (or B) from its registers; `rows_per` is 2 for A, whose registers alternate between the row halves.
static void gather(const Warp *warp, const Operand *op, PtxType type, int k, bool is_a, Work *work) {
  Element e = element_of(type);
  NumTile *tile = is_a ? &work->a : &work->b;
  int16_t *ints = is_a ? work->int_a : work->int_b;
  tile->rows = is_a ? ROWS : COLUMNS;
  tile->k = k;
  for (int row = 0; row < tile->rows; row++) tile->scale[row] = 0, tile->scale_is_nan[row] = false;
  for (int r = 0; r < part_count(op); r++) {
    const uint32_t *words = row32(warp, part(op, r));
    int half = is_a ? r & 1 : 0, block = is_a ? r >> 1 : r;
    for (int lane = 0; lane < WARP_LANES; lane++) {
      int row = lane / 4 + 8 * half, column = lane % 4 * e.pack + block * 4 * e.pack;
      for (int i = 0; i < e.pack; i++) {
        if (e.format == NULL) {
          ints[row * k + column + i] = integer_of(type, words[lane], i);
        } else {
          num_tile_set(tile, row, column + i, value_of(&e, words[lane], i), e.min_exponent);
        }
      }
    }
  }
}

// Accumulators: 32-bit words, or pairs of f16.
static void move_d(Warp *warp, const Operand *op, bool f16, uint32_t d[ROWS * COLUMNS], bool store) {
  for (int lane = 0; lane < WARP_LANES; lane++) {
    for (int half = 0; half < 2; half++) {
      uint32_t *at = &d[(lane / 4 + 8 * half) * COLUMNS + lane % 4 * 2];
      if (f16) {
        uint32_t *word = &row32(warp, part(op, half))[lane];
        if (store) {
          *word = (at[0] & 0xffff) | at[1] << 16;
        } else {
          at[0] = *word & 0xffff;
          at[1] = *word >> 16;
        }
        continue;
      }
      for (int i = 0; i < 2; i++) {
        uint32_t *word = &row32(warp, part(op, half * 2 + i))[lane];
        if (store) {
          *word = at[i];
        } else {
          at[i] = *word;
        }
      }
    }
  }
}

static ExecResult exec_mma(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  if (!warp_meet(machine, warp, lanes, 0xffffffffu)) return EXEC_BLOCK;
  Work work;
  PtxType a = (PtxType)inst->types[1], b = (PtxType)inst->types[2];
  bool f16 = inst->types[0] == PT_f16;
  int k = inst->shape[2];
  gather(warp, &inst->ops[1], a, k, true, &work);
  gather(warp, &inst->ops[2], b, k, false, &work);
  move_d(warp, &inst->ops[3], f16, work.d, false);
  if (element_of(a).format == NULL) {
    num_mma_int(work.int_a, work.int_b, ROWS, COLUMNS, k, inst_has(inst, MOD_satfinite), true, work.d,
                COLUMNS);
  } else {
    NumSum sum = {.window = 25, .f16_result = f16, .result_bits = 23, .read_d = true};
    num_mma(&work.a, &work.b, &sum, work.d, COLUMNS);
  }
  move_d(warp, &inst->ops[0], f16, work.d, true);
  return EXEC_NEXT;
}

static bool registers(const Operand *op, int count) {
  if (part_count(op) != count) return false;
  for (int i = 0; i < count; i++) {
    if (part(op, i)->kind != OPERAND_REG || part(op, i)->row != ROW_32) return false;
  }
  return true;
}

static const char *select_mma(Inst *inst) {
  if (inst->ntypes != 4) return "four types expected";
  PtxType d = (PtxType)inst->types[0], a = (PtxType)inst->types[1], b = (PtxType)inst->types[2];
  Element e = element_of(a);
  int pack = e.pack, k = inst->shape[2];
  bool is_int = e.format == NULL, int_d = d == PT_s32;
  if (inst->shape[0] != ROWS || inst->shape[1] != COLUMNS || pack == 0 || element_of(b).pack != pack ||
      d != inst->types[3]) {
    return "this shape or these types are not supported";
  }
  bool shape_fits = k == 8 * pack || k == 4 * pack, type_fits = is_int ? int_d : d == PT_f32 || d == PT_f16;
  if (!shape_fits || !type_fits || is_int != (element_of(b).format == NULL))
    return "this shape or these types are not supported";
  if (!inst_has(inst, MOD_row) || !inst_has(inst, MOD_col)) return "only .row.col";
  int words = k / (4 * pack), accumulators = d == PT_f16 ? 2 : 4;
  bool fit = registers(&inst->ops[0], accumulators) && registers(&inst->ops[1], 2 * words) &&
             registers(&inst->ops[2], words) && registers(&inst->ops[3], accumulators);
  return fit ? NULL : "the braces don't hold the registers that the shape asks for";
}

const InstDef mma_insts[] = {
    {"mma", MC(ALIGNED) | MC(SHAPE) | MC(LAYOUT) | MC(SAT), "xxxx", 0, exec_mma, NULL, select_mma},
    {.name = NULL},
};

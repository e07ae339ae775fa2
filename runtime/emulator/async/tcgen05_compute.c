// The tensor engine: when a queued tcgen05.mma comes to its turn, operands are read from shared and tensor
// memory as they are then, the product is summed into D, and for cta_group::2 both CTAs of the pair take part
// with the same addresses: each holds half of A's rows, half of B's columns and half of D's rows.
#include <math.h>
#include <string.h>

#include "async/tcgen05_mma.h"
#include "num/num.h"

DLayout mma_layout(const Idesc *idesc, int group, bool ws) {
  if (group == 2) return idesc->m == 256 ? LAYOUT_A : LAYOUT_B;
  if (idesc->m == 128) return LAYOUT_D;
  if (idesc->m == 32) return LAYOUT_G;
  return ws ? LAYOUT_E : LAYOUT_F;
}

void mma_place(DLayout layout, int columns, int row, int n, int *lane, int *column) {
  *lane = row;
  *column = n;
  switch (layout) {
  case LAYOUT_A:
  case LAYOUT_D:
    break;
  case LAYOUT_B:
  case LAYOUT_E:
    *lane = row + 64 * (n >= columns / 2);
    *column = n % (columns / 2);
    break;
  case LAYOUT_F:
    *lane = row / 16 * 32 + row % 16;
    break;
  case LAYOUT_G:
    *lane = row + 32 * (n / (columns / 4));
    *column = n % (columns / 4);
    break;
  }
}

int mma_d_columns(DLayout layout, int columns) {
  switch (layout) {
  case LAYOUT_A:
  case LAYOUT_D:
  case LAYOUT_F:
    return columns;
  case LAYOUT_B:
  case LAYOUT_E:
    return columns / 2;
  case LAYOUT_G:
    break;
  }
  return columns / 4;
}

typedef struct {
  Machine *machine;
  MmaOp *op;
  Scratch *scratch;
  Cta *ctas[2];
} Compute;

static const Origin *origin_of(const Compute *c) {
  return &c->op->op.origin;
}

static MmaTarget target_of(const Compute *c, bool is_a) {
  const Idesc *idesc = &c->op->idesc;
  MmaType type = is_a ? idesc->a : idesc->b;
  bool ints = mma_type_is_int(type);
  return (MmaTarget){.tile = is_a ? &c->scratch->a : &c->scratch->b,
                     .ints = !ints  ? NULL
                             : is_a ? c->scratch->int_a
                                    : c->scratch->int_b,
                     .k = idesc->k,
                     .type = type,
                     .negate = is_a ? idesc->negate_a : idesc->negate_b};
}

static void begin_tile(NumTile *tile, int rows, int k) {
  tile->rows = rows;
  tile->k = k;
  memset(tile->scale, 0, sizeof tile->scale);
  memset(tile->scale_is_nan, 0, sizeof tile->scale_is_nan);
}

static void clear_column(const Compute *c, int n) {
  const Idesc *idesc = &c->op->idesc;
  for (int k = 0; k < idesc->k; k++) {
    if (mma_type_is_int(idesc->b))
      c->scratch->int_b[n * idesc->k + k] = 0;
    else
      num_tile_set(&c->scratch->b, n, k, 0, 0);
  }
}

// The mask has 1, 2 or 4 parts, for M of 128, 64 and 32. A part alternates between runs of columns that are used and
// runs that are zero, begins with the kind that its bit of the first-span field names, and leaves out as many columns of
// that sequence as its start count says (PTX ISA 9.7.16.4.3; which span field is which the ISA's table and its examples
// tell differently, and this follows the examples).
static void clear_masked_columns(const Compute *c) {
  uint64_t word = c->op->zero_columns;
  if (!(word >> 39 & 1)) return;
  int zeroed = (int)(word >> 40 & 0xFF) + 1, used = (int)(word >> 48 & 0xFF) + 1, n = c->op->idesc.n;
  int parts = 128 / c->op->idesc.m, columns = n / parts;
  for (int part = 0; part < parts; part++) {
    bool first = word >> (32 + part) & 1;
    int start = (int)(word >> 8 * part & 0xFF);
    for (int i = 0; i < columns; i++) {
      int at = (i + start) % (zeroed + used);
      bool zero = first ? at < zeroed : at >= used;
      if (zero) clear_column(c, part * columns + i);
    }
  }
}

static bool load_b(const Compute *c) {
  const Idesc *idesc = &c->op->idesc;
  int rows = idesc->n / c->op->group;
  MmaTarget target = target_of(c, false);
  begin_tile(&c->scratch->b, idesc->n, idesc->k);
  for (int half = 0; half < c->op->group; half++) {
    if (!mma_load_shared(c->machine, origin_of(c), c->ctas[half], &c->op->b, idesc->transpose_b, 0,
                         half * rows, rows, &target))
      return false;
  }
  clear_masked_columns(c);
  return true;
}

// Which groups of 16 lanes rows of D (or A) lie in; columns beyond the first may lie in others.
static uint32_t bands_of(const MmaOp *op, int rows, int first_lane) {
  uint32_t bands = 0;
  int lane, column, n = op->idesc.n;
  for (int row = 0; row < rows; row += 16) {
    for (int quarter = 0; quarter < 4; quarter++) {
      mma_place(op->layout, n, row, quarter * n / 4, &lane, &column);
      bands |= 1u << (lane + first_lane) / 16;
    }
  }
  return bands;
}

static bool load_a_tmem(const Compute *c, const Cta *cta, int rows, const MmaTarget *target) {
  const MmaOp *op = c->op;
  int per_word = mma_type_per_word(op->idesc.a), words = op->idesc.k / per_word,
      first = tmem_column(op->a_address);
  if (!tcgen05_columns(c->machine, origin_of(c), cta, first, words, "A of tcgen05.mma")) return false;
  for (int row = 0; row < rows; row++) {
    int lane, column;
    mma_place(op->layout, op->idesc.n, row, 0, &lane, &column);
    lane += tmem_lane(op->a_address);
    if (lane >= TMEM_LANES) {
      machine_fault_at(c->machine, origin_of(c),
                       "tcgen05.mma: row %d of A would be in lane %d of tensor memory", row, lane);
      return false;
    }
    for (int word = 0; word < words; word++)
      mma_load_word(c->machine, *tmem_cell(&cta_async(cta)->tmem, lane, first + word), row, word * per_word,
                    target);
  }
  engine_tmem_event(c->machine, &op->op, EVENT_ASYNC_READ, cta, op->a_address, words,
                    bands_of(op, rows, tmem_lane(op->a_address)));
  return true;
}

static bool load_a(const Compute *c, const Cta *cta, int rows) {
  MmaTarget target = target_of(c, true);
  begin_tile(&c->scratch->a, rows, c->op->idesc.k);
  if (c->op->a_in_tmem) return load_a_tmem(c, cta, rows, &target);
  return mma_load_shared(c->machine, origin_of(c), cta, &c->op->a, c->op->idesc.transpose_a, 0, 0, rows,
                         &target);
}

// ---- block scales

// The scale word of a row. Addresses may carry a selector in bits 30-31, so only 7 lane bits and 9 column
// bits count.
static bool scale_word(const Compute *c, const Cta *cta, uint32_t address, int row, int extra_lanes,
                       uint32_t *word) {
  int lane = (int)(address >> 16 & 0x7F) + row % 32 + extra_lanes, column = (int)(address & 0x1FF) + row / 32;
  if (!tcgen05_columns(c->machine, origin_of(c), cta, column, 1, "scale factors of tcgen05.mma"))
    return false;
  if (lane >= TMEM_LANES) {
    machine_fault_at(c->machine, origin_of(c), "scale factors of tcgen05.mma would be in lane %d", lane);
    return false;
  }
  *word = *tmem_cell(&cta_async(cta)->tmem, lane, column);
  if (row % 16 == 0)
    engine_tmem_event(c->machine, &c->op->op, EVENT_ASYNC_READ, cta, (uint32_t)column, 1, 1u << lane / 16);
  return true;
}

static void set_row_scale(NumTile *tile, int row, uint8_t code) {
  tile->scale[row] = (int16_t)(code - 127);
  tile->scale_is_nan[row] = code == 0xFF;
}

static void set_group_scale(NumGroupScales *scales, int index, uint8_t code, bool ue8m0) {
  if (ue8m0) {
    scales->significand[index] = code == 0xFF ? NAN : 1;
    scales->exponent[index] = (int16_t)(code - 127);
    return;
  }
  code &= 0x7F;
  float value = (float)num_decode(&num_ue4m3, code);
  int exponent = code >> 3 ? (code >> 3) - 7 : -6;
  scales->exponent[index] = (int16_t)(value == 0 ? NUM_EXPONENT_ZERO_FACTOR : exponent);
  scales->significand[index] = value == 0 ? 0 : (float)ldexp((double)value, -exponent);
}

static void set_scales(const Compute *c, bool is_a, int row, uint32_t word) {
  const Idesc *idesc = &c->op->idesc;
  int id = is_a ? idesc->scale_a : idesc->scale_b, vector = c->op->scale_vector;
  if (idesc->kind == KIND_MXF8F6F4) {
    set_row_scale(is_a ? &c->scratch->a : &c->scratch->b, row, (uint8_t)(word >> 8 * id));
    return;
  }
  NumGroupScales *scales = is_a ? &c->scratch->scale_a : &c->scratch->scale_b;
  for (int group = 0; group < 4; group++) {
    int byte = id + group * vector / 4;
    set_group_scale(scales, row * 4 + group, (uint8_t)(word >> 8 * byte), idesc->scale_ue8m0);
  }
}

static bool load_scales(const Compute *c, const Cta *cta, int rows) {
  const MmaOp *op = c->op;
  uint32_t word;
  for (int row = 0; row < rows; row++) {
    if (!scale_word(c, cta, op->scale_a, row, 0, &word)) return false;
    set_scales(c, true, row, word);
  }
  bool split = op->layout == LAYOUT_B;  // columns N/2 and up have their scales in lanes 64 and up
  int half = op->idesc.n / 2;
  for (int n = 0; n < op->idesc.n; n++) {
    bool upper = split && n >= half;
    if (!scale_word(c, cta, op->scale_b, upper ? n - half : n, upper ? 64 : 0, &word)) return false;
    set_scales(c, false, n, word);
  }
  return true;
}

// ---- the product

static void multiply(const Compute *c, uint32_t *d, int stride) {
  const MmaOp *op = c->op;
  const Idesc *idesc = &op->idesc;
  Scratch *s = c->scratch;
  NumSum sum = {.window = 25,
                .f16_result = idesc->d == D_F16,
                .result_bits = 23,
                .read_d = op->read_d,
                .d_scale_down = op->d_scale_down};
  if (idesc->kind == KIND_I8)
    num_mma_int(s->int_a, s->int_b, s->a.rows, s->b.rows, idesc->k, idesc->saturate, op->read_d, d, stride);
  else if (idesc->kind == KIND_MXF4 || idesc->kind == KIND_MXF4NVF4)
    num_mma_fp4(&s->a, &s->scale_a, &s->b, &s->scale_b, op->read_d, d, stride);
  else
    num_mma(&s->a, &s->b, &sum, d, stride);
}

static uint32_t *d_cell(const Compute *c, const Cta *cta, int row, int n, int *lane) {
  int column;
  mma_place(c->op->layout, c->op->idesc.n, row, n, lane, &column);
  *lane += tmem_lane(c->op->d);
  return tmem_cell(&cta_async(cta)->tmem, *lane, tmem_column(c->op->d) + column);
}

// D to the dense copy or back. In every layout a quarter of a row's columns lies in neighbouring cells of one lane.
static void move_dense(const Compute *c, const Cta *cta, int half, bool store) {
  int rows = c->scratch->a.rows, columns = c->op->idesc.n, quarter = columns / 4, lane;
  for (int row = 0; row < rows; row++) {
    for (int n = 0; n < columns; n += quarter) {
      uint32_t *cells = d_cell(c, cta, row, n, &lane), *dense = c->scratch->d + row * columns + n;
      int bit = half * TMEM_LANES + lane;
      if (!store)
        memcpy(dense, cells, (size_t)quarter * sizeof *cells);
      else if (!c->op->masked || !(c->op->mask[bit / 32] >> bit % 32 & 1))
        memcpy(cells, dense, (size_t)quarter * sizeof *cells);
    }
  }
}

// Through a dense copy, for the layouts whose rows aren't simply lanes, and with a lane mask.
static void multiply_scattered(const Compute *c, const Cta *cta, int half) {
  move_dense(c, cta, half, false);
  multiply(c, c->scratch->d, c->op->idesc.n);
  move_dense(c, cta, half, true);
}

static bool compute_half(const Compute *c, int half) {
  const MmaOp *op = c->op;
  const Cta *cta = c->ctas[half];
  int rows = op->idesc.m / op->group, first = tmem_column(op->d),
      columns = mma_d_columns(op->layout, op->idesc.n);
  if (!tcgen05_columns(c->machine, origin_of(c), cta, first, columns, "D of tcgen05.mma")) return false;
  if (!load_a(c, cta, rows) || (op->scale_vector && !load_scales(c, cta, rows))) return false;
  bool direct = (op->layout == LAYOUT_A || op->layout == LAYOUT_D) && !op->masked;
  if (direct)
    multiply(c, tmem_cell(&cta_async(cta)->tmem, 0, first), TMEM_COLUMNS);
  else
    multiply_scattered(c, cta, half);
  uint32_t bands = bands_of(op, rows, tmem_lane(op->d));
  if (op->read_d) engine_tmem_event(c->machine, &op->op, EVENT_ASYNC_READ, cta, op->d, columns, bands);
  engine_tmem_event(c->machine, &op->op, EVENT_ASYNC_WRITE, cta, op->d, columns, bands);
  return true;
}

bool mma_complete(Machine *machine, EngineOp *base) {
  MmaOp *op = (MmaOp *)base;
  Cta *own = base->origin.cta;
  Compute c = {machine, op, engine_scratch(machine), {own, NULL}};
  if (op->group == 2) {
    Cta *even = &own->cluster->ctas[own->rank & ~1u];
    c.ctas[0] = even;
    c.ctas[1] = even + 1;
    if (cta_async(cta_pair_peer(own))->ended) {
      machine_fault_at(machine, &base->origin, "tcgen05.mma.cta_group::2: CTA %u of the pair has exited",
                       cta_pair_peer(own)->rank);
      return false;
    }
  }
  if (!load_b(&c)) return false;
  for (int half = 0; half < op->group; half++)
    if (!compute_half(&c, half)) return false;
  return true;
}

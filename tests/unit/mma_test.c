// tcgen05.mma through the engine, every kind and D layout, against plain dot products of small integers,
// which any order of summation gets exactly. Operands are placed through the descriptors, D is read by the
// table of layouts.
#include "async/tcgen05_mma.h"

#include <math.h>
#include <stdlib.h>

#include "check.h"
#include "num/num.h"

typedef struct {
  const char *name;
  MmaKind kind;
  uint32_t types;  // bits of the instruction descriptor: D, A and B types
  int m, n, group;
  bool ws, a_in_tmem, transpose_a, transpose_b;
  unsigned swizzle;  // code of the shared-memory descriptor
  int scale_vector;
} Case;

static const Case cases[] = {
    {"f16 bf16 D", KIND_F16, 0x490, 128, 64, 1, false, false, false, false, 2, 0},
    {"f16 64B", KIND_F16, 0x010, 128, 40, 1, false, false, false, false, 4, 0},
    {"f16 32B, f16 result", KIND_F16, 0x000, 128, 16, 1, false, false, false, false, 6, 0},
    {"f16 no swizzle", KIND_F16, 0x490, 128, 8, 1, false, false, false, false, 0, 0},
    {"F", KIND_F16, 0x490, 64, 24, 1, false, false, false, false, 2, 0},
    {"A in tmem", KIND_F16, 0x490, 128, 32, 1, false, true, false, false, 2, 0},
    {"F, A in tmem", KIND_F16, 0x490, 64, 32, 1, false, true, false, false, 2, 0},
    {"transposed", KIND_F16, 0x490, 128, 64, 1, false, false, true, true, 2, 0},
    {"transposed, none", KIND_F16, 0x490, 128, 64, 1, false, false, true, true, 0, 0},
    {"transposed 64B", KIND_F16, 0x490, 64, 64, 1, false, false, true, true, 4, 0},
    {"A pair", KIND_F16, 0x490, 256, 64, 2, false, false, false, false, 2, 0},
    {"B pair", KIND_F16, 0x490, 128, 64, 2, false, false, false, false, 2, 0},
    {"E ws", KIND_F16, 0x490, 64, 64, 1, true, false, false, false, 2, 0},
    {"G ws", KIND_F16, 0x490, 32, 128, 1, true, false, false, false, 2, 0},
    {"tf32", KIND_TF32, 0x910, 128, 32, 1, false, false, false, false, 2, 0},
    {"tf32 A in tmem", KIND_TF32, 0x910, 128, 32, 1, false, true, false, false, 2, 0},
    {"tf32 transposed", KIND_TF32, 0x910, 128, 32, 1, false, false, true, true, 1, 0},
    {"e4m3", KIND_F8F6F4, 0x010, 128, 32, 1, false, false, false, false, 2, 0},
    {"e5m2 e4m3 f16", KIND_F8F6F4, 0x080, 128, 32, 1, false, false, false, false, 2, 0},
    {"e2m3 e3m2", KIND_F8F6F4, 0x010 | 3 << 7 | 4 << 10, 128, 32, 1, false, false, false, false, 2, 0},
    {"e2m1 e5m2", KIND_F8F6F4, 0x010 | 5 << 7 | 1 << 10, 128, 32, 1, false, false, false, false, 2, 0},
    {"e2m1 A in tmem", KIND_F8F6F4, 0x010 | 5 << 7, 128, 32, 1, false, true, false, false, 2, 0},
    {"e4m3 transposed", KIND_F8F6F4, 0x010, 128, 32, 1, false, false, true, true, 2, 0},
    {"s8 u8", KIND_I8, 0x0A0, 128, 32, 1, false, false, false, false, 2, 0},
    {"s8 pair", KIND_I8, 0x4A0, 256, 32, 2, false, false, false, false, 2, 0},
    {"mxf8f6f4", KIND_MXF8F6F4, 0x800000, 128, 32, 1, false, false, false, false, 2, 1},
    {"mxf8f6f4 ids 2, 1", KIND_MXF8F6F4, 0x40800010, 128, 64, 1, false, false, false, false, 2, 1},
    {"mxf8f6f4 pair", KIND_MXF8F6F4, 0x800000, 256, 64, 2, false, false, false, false, 2, 1},
    {"mxf8f6f4 B pair", KIND_MXF8F6F4, 0x800000, 128, 64, 2, false, false, false, false, 2, 1},
    {"mxf4", KIND_MXF4, 0x800480, 128, 32, 1, false, false, false, false, 2, 2},
    {"mxf4 ids 2", KIND_MXF4, 0x40800480 | 2 << 4, 128, 32, 1, false, false, false, false, 2, 2},
    {"mxf4nvf4", KIND_MXF4NVF4, 0x480, 128, 32, 1, false, false, false, false, 2, 4},
    {"mxf4nvf4 ue8m0", KIND_MXF4NVF4, 0x800480, 128, 32, 1, false, false, false, false, 2, 4},
};

enum {
  SMEM = 128 * 1024,
  A_AT = 0x2000,
  B_AT = 0x10000,
  MAX_K = 64,
  A_COLUMN = 384,
  SFA_COLUMN = 448,
  SFB_COLUMN = 464
};

typedef struct {
  Machine machine;
  Cluster cluster;
  Cta ctas[2];
  double a[256 * MAX_K], b[256 * MAX_K];
  double sa[256 * 4], sb[256 * 4];
} Rig;

static bool rig_begin(Rig *rig) {
  rig->cluster.ctas = rig->ctas;
  rig->cluster.nctas = 2;
  if (!engine_begin(&rig->machine)) return false;
  for (uint32_t rank = 0; rank < 2; rank++) {
    Cta *cta = &rig->ctas[rank];
    *cta = (Cta){
        .cluster = &rig->cluster, .rank = rank, .smem = calloc(1, SMEM), .smem_bytes = SMEM, .nwarps = 1};
    if (!cta->smem || !engine_cta_begin(&rig->machine, cta)) return false;
    Tmem *tmem = &cta_async(cta)->tmem;
    tmem->cells = calloc(TMEM_LANES * TMEM_COLUMNS, 4);
    tmem_take(tmem, 0, TMEM_COLUMNS);
  }
  return true;
}

static void rig_end(Rig *rig) {
  engine_end(&rig->machine);
  for (int i = 0; i < 2; i++) free(rig->ctas[i].smem);
}

static const NumFormat *format_of(MmaType type) {
  switch (type) {
  case MMA_F16:
    return &num_f16;
  case MMA_BF16:
    return &num_bf16;
  case MMA_TF32:
    return &num_tf32;
  case MMA_E4M3:
    return &num_e4m3;
  case MMA_E5M2:
    return &num_e5m2;
  case MMA_E2M3:
    return &num_e2m3;
  case MMA_E3M2:
    return &num_e3m2;
  case MMA_E2M1:
  case MMA_E2M1_PACKED:
    return &num_e2m1;
  case MMA_U8:
  case MMA_S8:
  case MMA_U4:
  case MMA_S4:
    break;
  }
  return NULL;
}

static uint32_t code_of(MmaType type, double value) {
  if (mma_type_is_int(type)) return (uint32_t)(int)value & 0xFF;
  uint32_t code = num_encode(format_of(type), value, NUM_RN, true);
  return type == MMA_TF32 ? code << 13 | 0x155 : code;  // the low 13 bits must not count
}

static int bits_of(MmaType type) {
  static const int bits[] = {
      [MMA_F16] = 16, [MMA_BF16] = 16, [MMA_TF32] = 32,       [MMA_E4M3] = 8, [MMA_E5M2] = 8, [MMA_E2M3] = 6,
      [MMA_E3M2] = 6, [MMA_E2M1] = 4,  [MMA_E2M1_PACKED] = 4, [MMA_U8] = 8,   [MMA_S8] = 8};
  return bits[type];
}

static void set_bits(uint8_t *bytes, int at, int width, uint32_t value) {
  for (int i = 0; i < width; i++)
    if (value >> i & 1)
      bytes[(at + i) / 8] |= (uint8_t)(1 << (at + i) % 8);
    else
      bytes[(at + i) / 8] &= (uint8_t) ~(1 << (at + i) % 8);
}

// Element (mn, k) of an operand into a CTA's shared memory.
static void store_shared(Cta *cta, const SmemDesc *desc, MmaType type, bool transposed, int mn, int k,
                         double value) {
  int per_unit = mma_type_per_unit(type), along = transposed ? mn : k, line = transposed ? k : mn;
  uint32_t at = smem_desc_unit(desc, transposed, type == MMA_TF32, line, along / per_unit);
  set_bits(cta->smem + at, along % per_unit * bits_of(type), bits_of(type), code_of(type, value));
}

static void store_a_tmem(Cta *cta, DLayout layout, MmaType type, int row, int k, double value) {
  int per_word = mma_type_per_word(type), lane = layout == LAYOUT_F ? row / 16 * 32 + row % 16 : row;
  uint32_t code = code_of(type, value);
  if (type == MMA_E2M1) code <<= 2;
  int width = 32 / per_word;
  set_bits((uint8_t *)tmem_cell(&cta_async(cta)->tmem, lane, A_COLUMN + k / per_word), k % per_word * width,
           width, code);
}

// Descriptor word of a tile at `start` with K-major rows of one span, or MN-major blocks.
static uint64_t desc_word(const Case *c, uint32_t start, bool transposed, int rows, int k) {
  static const uint32_t spans[8] = {16, 128, 128, 0, 64, 0, 32, 0};
  uint32_t span = spans[c->swizzle], leading = 0, stride = 8 * span;
  if (c->swizzle == 0) leading = 128, stride = 256;
  if (transposed) leading = (uint32_t)k * span, stride = c->swizzle == 1 ? 512 : 8 * span;
  if (transposed && c->swizzle == 0) leading = (uint32_t)rows / 8 * 128, stride = 128;
  return start >> 4 | (uint64_t)(leading >> 4) << 16 | (uint64_t)(stride >> 4) << 32 | (uint64_t)1 << 46 |
         (uint64_t)c->swizzle << 61;
}

static double small_value(int seed, bool is_unsigned) {
  return is_unsigned ? seed * 7 % 5 : seed * 7 % 5 - 2;
}

static void fill_operands(Rig *rig, const Case *c, const MmaOp *op) {
  const Idesc *i = &op->idesc;
  int rows = i->m / c->group, columns = i->n / c->group;
  for (int m = 0; m < i->m; m++)
    for (int k = 0; k < i->k; k++) {
      double value = rig->a[m * MAX_K + k] = small_value(m * 3 + k * 5 + m * k, i->a == MMA_U8);
      Cta *cta = &rig->ctas[m / rows];
      if (c->a_in_tmem)
        store_a_tmem(cta, op->layout, i->a, m % rows, k, value);
      else
        store_shared(cta, &op->a, i->a, c->transpose_a, m % rows, k, value);
    }
  for (int n = 0; n < i->n; n++)
    for (int k = 0; k < i->k; k++) {
      double value = rig->b[n * MAX_K + k] = small_value(n * 11 + k + n * k * 2, i->b == MMA_U8);
      store_shared(&rig->ctas[n / columns], &op->b, i->b, c->transpose_b, n % columns, k, value);
    }
}

static uint32_t scale_code(const Idesc *i, double scale) {
  return i->scale_ue8m0 ? num_ue8m0_encode(scale, NUM_RZ, true) : num_encode(&num_ue4m3, scale, NUM_RN, true);
}

static void put_scale(Cta *cta, int column, int row, int lane, int byte, uint32_t code) {
  ((uint8_t *)tmem_cell(&cta_async(cta)->tmem, row % 32 + lane, column + row / 32))[byte] = (uint8_t)code;
}

static void fill_scales(Rig *rig, const Case *c, const MmaOp *op) {
  const Idesc *i = &op->idesc;
  int rows = i->m / c->group;
  for (int v = 0; v < c->scale_vector; v++) {
    for (int m = 0; m < i->m; m++) {
      double scale = rig->sa[m * 4 + v] = ldexp(1, (m + v) % 5 - 2);
      put_scale(&rig->ctas[m / rows], SFA_COLUMN, m % rows, 0, i->scale_a + v, scale_code(i, scale));
    }
    for (int n = 0; n < i->n; n++) {
      double scale = rig->sb[n * 4 + v] = ldexp(1, (n * 3 + v) % 4 - 1);
      bool upper = op->layout == LAYOUT_B && n >= i->n / 2;
      for (int g = 0; g < c->group; g++)
        put_scale(&rig->ctas[g], SFB_COLUMN, upper ? n - i->n / 2 : n, upper ? 64 : 0, i->scale_b + v,
                  scale_code(i, scale));
    }
  }
}

static double expected(const Rig *rig, const Case *c, const Idesc *i, int m, int n) {
  double sum = 0;
  for (int k = 0; k < i->k; k++) {
    double product = rig->a[m * MAX_K + k] * rig->b[n * MAX_K + k];
    int v = c->scale_vector ? k / (i->k / c->scale_vector) : 0;
    sum += c->scale_vector ? product * rig->sa[m * 4 + v] * rig->sb[n * 4 + v] : product;
  }
  return sum;
}

// Lane, column and CTA of D's element by the table of data-path layouts, restated.
static uint32_t *d_cell(Rig *rig, const Case *c, const MmaOp *op, int m, int n) {
  int per_cta = op->idesc.m / c->group, r = m % per_cta, lane = r, column = n, columns = op->idesc.n;
  if (op->layout == LAYOUT_B || op->layout == LAYOUT_E)
    lane = r + (n >= columns / 2 ? 64 : 0), column = n % (columns / 2);
  if (op->layout == LAYOUT_F) lane = 32 * (r / 16) + r % 16;
  if (op->layout == LAYOUT_G) lane = r + 32 * (n / (columns / 4)), column = n % (columns / 4);
  return tmem_cell(&cta_async(&rig->ctas[m / per_cta])->tmem, lane, column);
}

static double d_value(const Idesc *i, uint32_t word) {
  if (i->d == D_S32) return (int32_t)word;
  return i->d == D_F16 ? (double)num_f16_to_f32((uint16_t)word) : (double)num_f32_from_bits(word);
}

static bool make_op(Checks *checks, const Case *c, Rig *rig, MmaOp *op) {
  SpaceError why = {""};
  uint32_t word = c->types | (uint32_t)(c->n >> 3) << 17 | (uint32_t)(c->m >> 4) << 24 |
                  (c->transpose_a ? 1u << 15 : 0) | (c->transpose_b ? 1u << 16 : 0);
  *op = (MmaOp){.group = c->group,
                .a_in_tmem = c->a_in_tmem,
                .a_address = A_COLUMN,
                .scale_a = SFA_COLUMN,
                .scale_b = SFB_COLUMN,
                .scale_vector = c->scale_vector};
  bool ok = CHECK(checks, idesc_decode(word, c->kind, c->group, c->ws, c->scale_vector, &op->idesc, &why));
  int rows = c->m / c->group, columns = c->n / c->group;
  if (ok)
    ok = CHECK(checks,
               smem_desc_tcgen05(desc_word(c, A_AT, c->transpose_a, rows, op->idesc.k), &op->a, &why)) &&
         CHECK(checks,
               smem_desc_tcgen05(desc_word(c, B_AT, c->transpose_b, columns, op->idesc.k), &op->b, &why));
  if (!ok) fprintf(stderr, "  %s: %s\n", c->name, why.text);
  op->layout = mma_layout(&op->idesc, c->group, c->ws);
  op->op.origin.cta = &rig->ctas[0];
  return ok;
}

static void check_d(Checks *checks, Rig *rig, const Case *c, const MmaOp *op, double times, double plus) {
  int wrong = 0;
  for (int m = 0; m < c->m; m++)
    for (int n = 0; n < c->n; n++)
      wrong +=
          d_value(&op->idesc, *d_cell(rig, c, op, m, n)) != times * expected(rig, c, &op->idesc, m, n) + plus;
  if (!CHECK(checks, wrong == 0))
    fprintf(stderr, "  %s: %d of %d elements wrong\n", c->name, wrong, c->m * c->n);
}

static void test_case(Checks *checks, Rig *rig, const Case *c) {
  MmaOp op;
  if (!make_op(checks, c, rig, &op)) return;
  fill_operands(rig, c, &op);
  fill_scales(rig, c, &op);
  for (int m = 0; m < c->m; m++)
    for (int n = 0; n < c->n; n++)
      *d_cell(rig, c, &op, m, n) = 0x7FC07E00;  // not read without enable-input-d
  CHECK(checks, mma_complete(&rig->machine, &op.op));
  check_d(checks, rig, c, &op, 1, 0);
  op.read_d = true;
  CHECK(checks, mma_complete(&rig->machine, &op.op));
  check_d(checks, rig, c, &op, 2, 0);
}

static void test_modifiers(Checks *checks, Rig *rig) {
  MmaOp op;
  const Case *c = &cases[0];
  if (!make_op(checks, c, rig, &op)) return;
  fill_operands(rig, c, &op);
  for (int m = 0; m < c->m; m++)
    for (int n = 0; n < c->n; n++) *d_cell(rig, c, &op, m, n) = num_f32_bits(64);
  op.read_d = true;
  op.d_scale_down = 3;
  op.idesc.negate_b = true;
  CHECK(checks, mma_complete(&rig->machine, &op.op));
  check_d(checks, rig, c, &op, -1, 8);
  // Lanes 0 and 127 are not written.
  op.idesc.negate_b = op.read_d = false;
  op.masked = true;
  op.mask[0] = 1;
  op.mask[3] = 1u << 31;
  CHECK(checks, mma_complete(&rig->machine, &op.op));
  for (int m = 0; m < c->m; m++) {
    double sum = expected(rig, c, &op.idesc, m, 5), got = d_value(&op.idesc, *d_cell(rig, c, &op, m, 5));
    CHECK(checks, got == (m == 0 || m == 127 ? 8 - sum : sum));
  }
}

int main(void) {
  Checks checks = {0};
  Rig *rig = calloc(1, sizeof *rig);
  if (!rig || !rig_begin(rig)) return 1;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) test_case(&checks, rig, &cases[i]);
  test_modifiers(&checks, rig);
  rig_end(rig);
  free(rig);
  return check_report(&checks);
}

// TMEM: addresses, copies to and from fragments, fills, allocation and fences.
//
// A buffer of r x c elements of 32 bits takes c columns for each block of 128 rows; row r of a block is lane
// r. Dimensions before the rows number such tiles. Warp w of a warpgroup reaches lanes 32 w to 32 w + 31 (PTX ISA
// 9.7.16.8.1), thread t of it lane 32 w + t, so a fragment that is copied has its rows spread that way and each thread
// holds columns of its row. Further warpgroups take further columns. A buffer of 64 rows has 16 in the lower half of
// each warp's lanes; the access with two halves (16x32bx2) gives the upper 16 threads the second half of the columns. Of
// 32 rows each warp's lanes hold another quarter of the columns. Elements of 8 and 16 bits are packed into words, the
// first in the low bits; an f16 accumulator's element takes the low half of a word alone.
#include "codegen/sm100a/sm100a.h"

#include "codegen/fragment.h"
#include "codegen/nvvm.h"

enum { LANES = 128, WARP = 32, MAX_CHUNK = 64 };

// Which tile of the buffer, by its dimensions before the rows.
static LLVMValueRef tile_number(Cg *cg, const CgPlace *place) {
  const Type *type = &place->root->type;
  LLVMValueRef number = cg_i32(cg, 0);
  for (int d = 0; d < type->rank - 2; d++) {
    number = LLVMBuildMul(cg->builder, number, cg_i32(cg, type->shape[d]), "");
    number = LLVMBuildAdd(cg->builder, number, place->offset[d], "");
  }
  return number;
}

// Columns of one block of rows of a buffer.
static int64_t block_columns(const TirValue *root) {
  const Type *type = &root->type;
  int parts = type->shape[type->rank - 2] == WARP ? LANES / WARP : 1;
  return type->shape[type->rank - 1] / root->layout->packed / parts;
}

static int64_t block_count(const TirValue *root) {
  return (root->type.shape[root->type.rank - 2] + LANES - 1) / LANES;
}

static LLVMValueRef words_of(Cg *cg, const TirValue *root, LLVMValueRef columns) {
  int packed = root->layout->packed;
  return packed == 1 ? columns : LLVMBuildUDiv(cg->builder, columns, cg_i32(cg, packed), "");
}

LLVMValueRef sm100a_tmem_address(Cg *cg, const TirOp *op, const CgPlace *place, int64_t row, int64_t column) {
  const TirValue *root = place->root;
  int rows = root->type.rank - 2, columns = root->type.rank - 1;
  int64_t start = 0, width = block_columns(root);
  if (place->rank != 2 || place->dim[0] != rows || !cg_const(place->offset[rows], &start) || start % LANES) {
    cg_unsupported(cg, op, "it takes rows and columns of TMEM, the rows from a constant multiple of %d",
                   LANES);
    return cg_i32(cg, 0);
  }
  LLVMValueRef tile =
      LLVMBuildMul(cg->builder, tile_number(cg, place), cg_i32(cg, block_count(root) * width), "");
  LLVMValueRef address =
      LLVMBuildAdd(cg->builder, cg->storage[root->id], words_of(cg, root, place->offset[columns]), "");
  address = LLVMBuildAdd(cg->builder, address, tile, "");
  int64_t within = (start + row) / LANES * width + column / root->layout->packed;
  return LLVMBuildAdd(cg->builder, address, cg_i32(cg, within), "");
}

static LLVMValueRef warp_index(Cg *cg) {
  if (cg->warp) return cg->warp;
  return nvvm_shfl_idx(cg, LLVMBuildLShr(cg->builder, cg->thread, cg_i32(cg, 5), ""), 0);
}

static LLVMValueRef add_lane_quarter(Cg *cg, LLVMValueRef address, LLVMValueRef warp) {
  LLVMValueRef lane =
      LLVMBuildShl(cg->builder, LLVMBuildAnd(cg->builder, warp, cg_i32(cg, 3), ""), cg_i32(cg, 21), "");
  return LLVMBuildAdd(cg->builder, address, lane, "");
}

// A copy between a TMEM buffer and the fragment that a thread's registers hold.
typedef struct {
  const TirOp *op;
  const TirValue *fragment;
  const CgPlace *place;
  int64_t registers, groups, share;  // share: columns from one warpgroup to the next
  int64_t split;                     // columns from the lower to the upper half of a warp; 0: each has lanes
  int64_t quarter;     // columns from one warp's lanes to the next one's; 0: they are other rows
  int packed;          // elements in a column
  LLVMValueRef start;  // what differs between the warps
} TmemMove;

static void position(const TmemMove *m, int64_t thread, int64_t reg, int64_t *row, int64_t *column) {
  int64_t element = layout_element(m->fragment->layout, thread, reg), columns = m->fragment->type.shape[1];
  *row = element / columns;
  *column = element % columns;
}

// Every thread's registers lie in its lane, and a warpgroup's columns are those of the first one moved by its
// share.
static bool suits_lanes(const TmemMove *m, int64_t threads) {
  for (int64_t r = 0; r < m->registers; r++) {
    int64_t first_row, first_column;
    position(m, 0, r, &first_row, &first_column);
    for (int64_t t = 0; t < threads; t += t % LANES < LANES / 2 ? 1 : 5) {
      int64_t row, column, warp = t % LANES / WARP;
      position(m, t, r, &row, &column);
      int64_t lane = m->split ? warp * (WARP / 2) + t % (WARP / 2) : m->quarter ? t % WARP : t % LANES;
      int64_t beside = t % WARP / (WARP / 2) * m->split + warp * m->quarter;
      if (row != first_row + lane || column != first_column + t / LANES * m->share + beside ||
          first_row % LANES)
        return false;
    }
  }
  return true;
}

// Registers that share a word are neighbours in it, in every thread.
static bool fills_words(const TmemMove *m) {
  if (m->registers % m->packed || m->share % m->packed || m->split % m->packed) return false;
  for (int64_t r = 0; r < m->registers; r++) {
    int64_t first_row, first_column, row, column;
    position(m, 0, r - r % m->packed, &first_row, &first_column);
    position(m, 0, r, &row, &column);
    if (first_column % m->packed || row != first_row || column != first_column + r % m->packed) return false;
  }
  return true;
}

static bool begin_move(Cg *cg, const TirOp *op, const TirValue *tmem, const TirValue *fragment, TmemMove *m) {
  *m = (TmemMove){.op = op, .fragment = fragment, .place = cg_place(cg, tmem)};
  int64_t threads = tir_thread_count(cg->active), row;
  if (fragment->op->kind != OP_alloc || !fragment->layout || threads % LANES) {
    cg_unsupported(cg, op, "it takes a whole fragment and whole warpgroups");
    return false;
  }
  m->registers = layout_registers(fragment->layout);
  m->packed = m->place->root->layout->packed;
  m->groups = threads / LANES;
  if (m->groups > 1) position(m, LANES, 0, &row, &m->share);
  if (fragment->type.shape[0] == LANES / 2) position(m, WARP / 2, 0, &row, &m->split);
  if (fragment->type.shape[0] == WARP) position(m, WARP, 0, &row, &m->quarter);
  if (!suits_lanes(m, threads) || !fills_words(m)) {
    cg_unsupported(cg, op, "the fragment's rows are not spread over the threads as TMEM lanes are");
    return false;
  }
  LLVMValueRef warp = warp_index(cg);
  m->start = add_lane_quarter(cg, cg_i32(cg, 0), warp);
  LLVMValueRef group = LLVMBuildLShr(
      cg->builder, LLVMBuildSub(cg->builder, warp, cg_i32(cg, cg->active.lo / WARP), ""), cg_i32(cg, 2), "");
  m->start = LLVMBuildAdd(cg->builder, m->start,
                          LLVMBuildMul(cg->builder, group, cg_i32(cg, m->share / m->packed), ""), "");
  return true;
}

static LLVMValueRef address_of(Cg *cg, const TmemMove *m, int64_t reg) {
  int64_t row, column;
  position(m, 0, reg, &row, &column);
  return LLVMBuildAdd(cg->builder, sm100a_tmem_address(cg, m->op, m->place, row, column), m->start, "");
}

// Words from that of register `reg` on that lie in consecutive columns: a power of two.
static int chunk_at(const TmemMove *m, int64_t reg) {
  int64_t row, column, next_row, next_column;
  int run = 1;
  position(m, 0, reg, &row, &column);
  for (; run < MAX_CHUNK * m->packed && reg + run < m->registers; run++) {
    position(m, 0, reg + run, &next_row, &next_column);
    if (next_row != row || next_column != column + run) break;
  }
  run /= m->packed;
  while (run & (run - 1)) run &= run - 1;
  return run;
}

static unsigned width_of(LLVMTypeRef type) {
  LLVMTypeKind kind = LLVMGetTypeKind(type);
  if (kind == LLVMIntegerTypeKind) return LLVMGetIntTypeWidth(type);
  return kind == LLVMHalfTypeKind || kind == LLVMBFloatTypeKind ? 16 : 32;
}

// Element number `at` of a 32-bit word.
static LLVMValueRef from_word(Cg *cg, LLVMValueRef word, int at, LLVMTypeRef type) {
  LLVMTypeRef bits = LLVMIntTypeInContext(cg->context, width_of(type));
  if (at) word = LLVMBuildLShr(cg->builder, word, cg_i32(cg, at * (int)width_of(type)), "");
  return LLVMBuildBitCast(cg->builder, LLVMBuildTrunc(cg->builder, word, bits, ""), type, "");
}

static LLVMValueRef to_word(Cg *cg, LLVMValueRef value) {
  LLVMTypeRef bits = LLVMIntTypeInContext(cg->context, width_of(LLVMTypeOf(value)));
  return LLVMBuildZExt(cg->builder, LLVMBuildBitCast(cg->builder, value, bits, ""), cg->i32, "");
}

static LLVMValueRef element(Cg *cg, LLVMValueRef registers, int n, int i) {
  return n == 1 ? registers : LLVMBuildExtractElement(cg->builder, registers, cg_i32(cg, i), "");
}

// Nothing in LLVM ties the registers of tcgen05.ld to the wait that makes them valid; an empty assembly after
// it does.
static void tie_registers(Cg *cg, LLVMValueRef *values, int n) {
  LLVMTypeRef types[MAX_CHUNK];
  TextBuf constraints = {.arena = cg->arena};
  for (int i = 0; i < n; i++) {
    types[i] = cg->i32;
    textbuf_puts(&constraints, i ? ",=r" : "=r");
  }
  for (int i = 0; i < n; i++) textbuf_printf(&constraints, ",%d", i);
  LLVMTypeRef result = n == 1 ? cg->i32 : LLVMStructTypeInContext(cg->context, types, (unsigned)n, false);
  LLVMTypeRef type = LLVMFunctionType(result, types, (unsigned)n, false);
  LLVMValueRef empty = LLVMGetInlineAsm(type, "", 0, constraints.data, constraints.len, true, false,
                                        LLVMInlineAsmDialectATT, false);
  LLVMValueRef tied = LLVMBuildCall2(cg->builder, type, empty, values, (unsigned)n, "");
  for (int i = 0; i < n; i++)
    values[i] = n == 1 ? tied : LLVMBuildExtractValue(cg->builder, tied, (unsigned)i, "");
}

void sm100a_tmem_load(Cg *cg, const TirOp *op) {
  TmemMove m;
  if (!begin_move(cg, op, op->args[0], op->args[1], &m)) return;
  int64_t words = m.registers / m.packed;
  LLVMValueRef *values = ARENA_ARRAY(cg->arena, LLVMValueRef, words);
  for (int64_t w = 0; w < words;) {
    int n = chunk_at(&m, w * m.packed);
    LLVMValueRef loaded = nvvm_tcgen05_ld(cg, address_of(cg, &m, w * m.packed), n, (int)m.split / m.packed);
    for (int i = 0; i < n; i++) values[w + i] = element(cg, loaded, n, i);
    w += n;
  }
  nvvm_tcgen05_wait_ld(cg);
  LLVMTypeRef type = cg_memory_type(cg, m.fragment->type.dtype);
  for (int64_t w = 0; w < words; w += MAX_CHUNK)
    tie_registers(cg, values + w, (int)(words - w < MAX_CHUNK ? words - w : MAX_CHUNK));
  for (int64_t r = 0; r < m.registers; r++)
    LLVMBuildStore(cg->builder, from_word(cg, values[r / m.packed], (int)(r % m.packed), type),
                   cg_register(cg, m.fragment, cg_i32(cg, r)));
}

static LLVMValueRef pack(Cg *cg, LLVMValueRef const *values, int n) {
  if (n == 1) return values[0];
  LLVMValueRef vector = LLVMGetPoison(LLVMVectorType(cg->i32, (unsigned)n));
  for (int i = 0; i < n; i++)
    vector = LLVMBuildInsertElement(cg->builder, vector, values[i], cg_i32(cg, i), "");
  return vector;
}

// The word that register `reg` and those behind it make up.
static LLVMValueRef word_at(Cg *cg, const TmemMove *m, int64_t reg) {
  LLVMTypeRef type = cg_memory_type(cg, m->fragment->type.dtype);
  LLVMValueRef word = NULL;
  for (int i = 0; i < m->packed; i++) {
    LLVMValueRef slot = cg_register(cg, m->fragment, cg_i32(cg, reg + i));
    LLVMValueRef value = to_word(cg, LLVMBuildLoad2(cg->builder, type, slot, ""));
    if (i) value = LLVMBuildShl(cg->builder, value, cg_i32(cg, i * (int)width_of(type)), "");
    word = i ? LLVMBuildOr(cg->builder, word, value, "") : value;
  }
  return word;
}

void sm100a_tmem_store(Cg *cg, const TirOp *op) {
  TmemMove m;
  if (!begin_move(cg, op, op->args[1], op->args[0], &m)) return;
  for (int64_t r = 0; r < m.registers;) {
    int n = chunk_at(&m, r);
    LLVMValueRef values[MAX_CHUNK];
    for (int i = 0; i < n; i++) values[i] = word_at(cg, &m, r + i * m.packed);
    nvvm_tcgen05_st(cg, address_of(cg, &m, r), pack(cg, values, n), n, (int)m.split / m.packed);
    r += n * m.packed;
  }
  nvvm_tcgen05_wait_st(cg);
}

static void fill_columns(Cg *cg, LLVMValueRef start, int64_t columns, LLVMValueRef word) {
  LLVMValueRef values[MAX_CHUNK];
  for (int i = 0; i < MAX_CHUNK; i++) values[i] = word;
  for (int64_t column = 0; column < columns;) {
    int n = MAX_CHUNK;
    while (n > columns - column) n /= 2;
    LLVMValueRef address = LLVMBuildAdd(cg->builder, start, cg_i32(cg, column), "");
    nvvm_tcgen05_st(cg, address, pack(cg, values, n), n, 0);
    column += n;
  }
}

// A whole buffer is a run of columns; a slice is one for each block of rows.
static void fill_tile(Cg *cg, const TirOp *op, LLVMValueRef quarter, LLVMValueRef word) {
  const TirValue *buffer = op->args[0];
  const CgPlace *place = cg_place(cg, buffer);
  if (buffer == place->root) {
    LLVMValueRef start = LLVMBuildAdd(cg->builder, cg->storage[buffer->id], quarter, "");
    fill_columns(cg, start, buffer->layout->columns, word);
    return;
  }
  bool narrow = place->root->type.shape[place->root->type.rank - 2] == WARP;
  int64_t columns = narrow ? block_columns(place->root) : buffer->type.shape[1] / place->root->layout->packed;
  for (int64_t row = 0; row < buffer->type.shape[0]; row += LANES) {
    LLVMValueRef address = sm100a_tmem_address(cg, op, place, row, 0);
    fill_columns(cg, LLVMBuildAdd(cg->builder, address, quarter, ""), columns, word);
  }
}

// A word of equal elements.
static LLVMValueRef fill_word(Cg *cg, const TirOp *op) {
  LLVMValueRef value = cg_to_memory(cg, op->args[0]->type.dtype, cg_value(cg, op->args[1]));
  unsigned width = width_of(LLVMTypeOf(value));
  LLVMValueRef word = to_word(cg, value);
  bool packed = cg_place(cg, op->args[0])->root->layout->packed > 1;
  int64_t ones = !packed ? 1 : width == 8 ? 0x01010101 : 0x00010001;
  return ones == 1 ? word : LLVMBuildMul(cg->builder, word, cg_i32(cg, ones), "");
}

// The first warpgroup fills.
void sm100a_tmem_fill(Cg *cg, const TirOp *op) {
  if (tir_thread_count(cg->active) < LANES) {
    cg_unsupported(cg, op, "it takes a warpgroup");
    return;
  }
  LLVMValueRef word = fill_word(cg, op);
  LLVMValueRef warp = warp_index(cg), quarter = add_lane_quarter(cg, cg_i32(cg, 0), warp);
  bool all = tir_thread_count(cg->active) == LANES;
  CgIf branch = cg_begin_if(
      cg, all ? NULL
              : LLVMBuildICmp(cg->builder, LLVMIntULT, warp, cg_i32(cg, (cg->active.lo + LANES) / WARP), ""));
  fill_tile(cg, op, quarter, word);
  nvvm_tcgen05_wait_st(cg);
  cg_end_if(cg, branch);
}

static CgIf begin_warp_0(Cg *cg) {
  return cg_begin_if(cg, LLVMBuildICmp(cg->builder, LLVMIntEQ, warp_index(cg), cg_i32(cg, 0), ""));
}

// The permit is given back at once: a kernel allocates one time (rules S7).
void sm100a_tmem_alloc(Cg *cg, const TirOp *op) {
  const CgPlace *slot = cg_place(cg, op->args[0]);
  LLVMValueRef address = cg_address(cg, slot, slot->offset);
  CgIf branch = begin_warp_0(cg);
  nvvm_tcgen05_alloc(cg, address, (int)op->attrs[TMEM_columns]);
  nvvm_tcgen05_relinquish(cg);
  cg_end_if(cg, branch);
}

void sm100a_tmem_dealloc(Cg *cg, const TirOp *op) {
  CgIf branch = begin_warp_0(cg);
  nvvm_tcgen05_dealloc(cg, cg_value(cg, op->args[0]), (int)op->attrs[TMEM_columns]);
  cg_end_if(cg, branch);
}

void sm100a_commit(Cg *cg, const TirOp *op) {
  nvvm_tcgen05_commit(cg, cg_barrier(cg, op->args[0]));
}

void sm100a_fence_before(Cg *cg, const TirOp *op) {
  (void)op;
  nvvm_tcgen05_fence_before(cg);
}

void sm100a_fence_after(Cg *cg, const TirOp *op) {
  (void)op;
  nvvm_tcgen05_fence_after(cg);
}

// Needs    TIR_FRAGMENTS: accumulators are TMEM buffers.
// Does     Gives each TMEM buffer columns of one allocation, and puts that allocation at the kernel's start
//          and its release at the end, or where the author has released all of it: by one warp, and then the permit
//          is given up, since a CTA that waits for columns on the same SM waits for that too (PTX ISA,
//          tcgen05.relinquish_alloc_permit).
// Leaves   TIR_TMEM_PLACED: layouts of TMEM buffers, tmem_columns of the kernel.
// Reports  Buffers used after their release, rows and elements that do not fit lanes and columns, an f16 buffer that is packed here and not there, too
//          many columns with a table of who takes what.
//
// A buffer of r rows takes one 32-bit column for each of its columns and each block of 128 rows (PTX ISA 9.7.16.1: 128
// lanes, allocations are powers of two of at least 32 columns); of 32 rows a quarter, since each warp's lanes hold
// another quarter of the columns. Elements of 8 and 16 bits are packed into columns, as an MMA reads them as operand A;
// only accumulators of f16 take a column each (9.7.16.10.4). Nothing overlaps: every buffer lives for the whole kernel.
// Buffers are placed by the power of two that divides their columns, the largest first: then each starts at a
// multiple of it and no column is lost between them.
#include "passes/hazards.h"
#include "passes/tile.h"

enum { ALLOC_UNIT = 32, COLUMN_BITS = 32 };

typedef struct {
  TirOp *alloc;
  const TirOp *operand,
      *accumulator;  // an MMA that reads it as A, one that accumulates in it; NULL: none does
  int packed;
  int64_t columns;
} Buffer;

typedef struct {
  PassCx *cx;
  VEC(Buffer) buffers;
  VEC(TirOp *) releases, reshapes, products;
} Found;

static Buffer *buffer_of(Found *found, TirValue *value) {
  for (int i = 0; i < found->buffers.len; i++)
    if (found->buffers.data[i].alloc->results[0] == tir_root(value)) return &found->buffers.data[i];
  return NULL;
}

static void note_uses(Found *found, const TirOp *op) {
  for (int i = 0; i < op->nargs && op_path(op) == PATH_MMA; i++) {
    unsigned access = tile_access(op, i);
    Buffer *buffer = access && op->args[i]->type.space == SPACE_TMEM ? buffer_of(found, op->args[i]) : NULL;
    if (!buffer) continue;
    const TirOp **use = access == READS ? &buffer->operand : &buffer->accumulator;
    if (!*use) *use = op;
  }
}

static bool find_tmem(void *context, TirOp *op) {
  Found *found = context;
  if (op->kind == OP_alloc && op->results[0]->type.space == SPACE_TMEM)
    vec_push(found->cx->scratch, &found->buffers, ((Buffer){.alloc = op}));
  if (op->kind == OP_tmem_release) vec_push(found->cx->scratch, &found->releases, op);
  if (op->kind == OP_reshape && op->results[0]->type.space == SPACE_TMEM)
    vec_push(found->cx->scratch, &found->reshapes, op);
  note_uses(found, op);
  if (op_path(op) == PATH_MMA) vec_push(found->cx->scratch, &found->products, op);
  return true;
}

static int64_t power_of_two(int64_t columns) {
  int64_t power = ALLOC_UNIT;
  while (power < columns) power *= 2;
  return power;
}

static const char *buffer_name(const TirOp *op) {
  return op->name ? op->name : "accumulator";
}

// Rows are lanes and the last dimension is columns; those before the rows number equal tiles, one behind the other.
static int64_t rows_of(const Type *type) {
  return type->shape[type->rank - 2];
}

static bool check_rows(PassCx *cx, const TirOp *op) {
  int64_t rows = rows_of(&op->results[0]->type), lanes = cx->target->tmem_lanes;
  if (rows > 0 && (rows == lanes / 4 || rows == lanes / 2 || rows % lanes == 0)) return true;
  diag_error(cx->ds, DIAG_tmem_rows, op->span,
             "%s has %lld rows; TMEM has %d lanes, so rows are %d, %d or a multiple of %d", buffer_name(op),
             (long long)rows, (int)lanes, (int)lanes / 4, (int)lanes / 2, (int)lanes);
  return false;
}

static bool report_type(PassCx *cx, const TirOp *op, const char *sentence) {
  TextBuf text = {.arena = cx->scratch};
  type_print(&text, &op->results[0]->type);
  diag_error(cx->ds, DIAG_tmem_type, op->span, "%s is %s; %s", buffer_name(op), text.data, sentence);
  return false;
}

static bool check_type(PassCx *cx, const TirOp *op) {
  const Type *type = &op->results[0]->type;
  int bits = dtype_bits(type->dtype);
  if (type->rank >= 2 && (bits == 32 || bits == 16 || bits == 8) && type->dtype != DTYPE_bool) return true;
  return report_type(cx, op, "TMEM buffers have two dimensions or more, and numbers of 8, 16 or 32 bits");
}

// How many elements a column holds, and with that how many columns the buffer takes.
static bool measure(PassCx *cx, Buffer *buffer) {
  const TirOp *op = buffer->alloc;
  const Type *type = &op->results[0]->type;
  if (!check_type(cx, op) || !check_rows(cx, op)) return false;
  int64_t lanes = cx->target->tmem_lanes, rows = rows_of(type), blocks = (rows + lanes - 1) / lanes;
  bool single = type->dtype == DTYPE_f16 && !buffer->operand;
  buffer->packed = single ? 1 : COLUMN_BITS / dtype_bits(type->dtype);
  int64_t share = (rows == lanes / 4 ? 4 : 1) * buffer->packed;
  if (type->shape[type->rank - 1] % share)
    return report_type(cx, op,
                       rows == lanes / 4
                           ? "of 32 rows each warp holds a quarter of the columns, in whole words"
                           : "its rows must fill whole columns of 32 bits");
  if (buffer->packed > 1 && buffer->accumulator && buffer->operand) {
    report_type(cx, op, "as an operand its elements are packed, as an accumulator they are not");
    diag_note(cx->ds, buffer->operand->span, "it is operand A here");
    diag_note(cx->ds, buffer->accumulator->span, "it is accumulated here");
    diag_hint(cx->ds, "use two buffers, and copy from one to the other through a fragment");
    return false;
  }
  buffer->columns = type_elements(type) / rows * blocks / share;
  return true;
}

static void report_overflow(PassCx *cx, const Found *found, int64_t total) {
  const TirOp *last = found->buffers.data[found->buffers.len - 1].alloc;
  diag_error(cx->ds, DIAG_tmem_overflow, last->span, "live tiles need %lld TMEM columns, %s has %d",
             (long long)total, cx->target->name, cx->target->tmem_columns);
  for (int i = 0; i < found->buffers.len; i++) {
    const Buffer *buffer = &found->buffers.data[i];
    diag_note(cx->ds, buffer->alloc->span, "%s takes %lld", buffer_name(buffer->alloc),
              (long long)buffer->columns);
  }
  diag_hint(cx->ds, "tiles with fewer columns, or fewer of them, need less");
}

static void give_columns(PassCx *cx, const Buffer *buffer, int64_t start) {
  Layout *layout = ARENA_NEW(cx->module->arena, Layout);
  *layout = (Layout){
      .kind = LAYOUT_TMEM, .column = (int)start, .columns = (int)buffer->columns, .packed = buffer->packed};
  buffer->alloc->results[0]->layout = layout;
}

static int64_t alignment_of(const Buffer *buffer) {
  int64_t power = buffer->columns & -buffer->columns;
  return power < ALLOC_UNIT ? power : ALLOC_UNIT;
}

// The columns of all buffers together, or -1 when something was reported.
static int64_t place(PassCx *cx, Found *found) {
  int64_t total = 0, at = 0;
  bool ok = true;
  for (int i = 0; i < found->buffers.len; i++) {
    ok = measure(cx, &found->buffers.data[i]) && ok;
    total += found->buffers.data[i].columns;
  }
  if (ok && total > cx->target->tmem_columns) {
    report_overflow(cx, found, total);
    ok = false;
  }
  for (int64_t alignment = ALLOC_UNIT; ok && alignment > 0; alignment /= 2) {
    for (int i = 0; i < found->buffers.len; i++) {
      const Buffer *buffer = &found->buffers.data[i];
      if (alignment_of(buffer) != alignment) continue;
      give_columns(cx, buffer, at);
      at += buffer->columns;
    }
  }
  return ok ? total : -1;
}

// 32-bit columns of a block of rows.
static int64_t block_columns(const Type *type, int packed, int64_t lanes) {
  return type->shape[type->rank - 1] / packed / (rows_of(type) == lanes / 4 ? 4 : 1);
}

// The same lanes and columns under another shape: rows stay rows, or whole blocks of lanes are counted otherwise, and the
// columns of a block stay as many.
static bool give_shape(PassCx *cx, TirOp *op) {
  const Type *from = &op->args[0]->type, *to = &op->results[0]->type;
  const Layout *layout = op->args[0]->layout;
  int64_t lanes = cx->target->tmem_lanes;
  if (!check_type(cx, op) || !check_rows(cx, op)) return false;
  bool same_type = from->dtype == to->dtype, words = layout->packed == COLUMN_BITS / dtype_bits(from->dtype);
  int packed = same_type ? layout->packed : COLUMN_BITS / dtype_bits(to->dtype);
  bool blocks = rows_of(from) == rows_of(to) || (rows_of(from) % lanes == 0 && rows_of(to) % lanes == 0);
  bool columns = (same_type || words) && to->shape[to->rank - 1] % packed == 0 &&
                 block_columns(from, layout->packed, lanes) == block_columns(to, packed, lanes);
  if (!blocks || !columns) {
    diag_error(
        cx->ds, DIAG_reshape, op->span,
        "%s is in tensor memory: in another shape its rows have as many 32-bit columns, and are as many "
        "or whole blocks of %d",
        tir_buffer_name(op->args[0]), (int)lanes);
    return false;
  }
  Layout *copy = ARENA_NEW(cx->module->arena, Layout);
  *copy = *layout;
  copy->packed = packed;
  op->results[0]->layout = copy;
  return true;
}

// Packed elements cannot be accumulated in: only a shape of narrower elements can bring them about here.
static bool check_accumulator(PassCx *cx, const TirOp *op) {
  for (int i = 0; i < op->nargs; i++) {
    bool accumulates = tile_access(op, i) == ACCUMULATES && op->args[i]->type.space == SPACE_TMEM;
    if (!accumulates || tir_layout(op->args[i])->packed == 1) continue;
    diag_error(
        cx->ds, DIAG_reshape, op->span,
        "%s is accumulated in, but its elements share columns with others in the shape it is allocated in",
        tir_buffer_name(op->args[i]));
    diag_note(cx->ds, tir_root(op->args[i])->op->span, "it is allocated here");
    return false;
  }
  return true;
}

// Whether this op, behind the release of a buffer, still uses it.
static bool check_released(PassCx *cx, const TirOp *release, const TirOp *op) {
  for (int i = 0; i < op->nargs; i++) {
    TirValue *arg = op->args[i];
    if (!arg || arg->type.kind != TYPE_BUFFER || tir_root(arg) != tir_root(release->args[0])) continue;
    diag_error(cx->ds, DIAG_tmem_released, op->span, "%s is used after it was released",
               tir_buffer_name(arg));
    diag_note(cx->ds, release->span, "it was released here");
    return false;
  }
  return true;
}

// Releases stand in no loop: what comes later in the text runs later.
static bool check_releases(PassCx *cx, TirKernel *kernel, const Found *found) {
  TirOpList ops = tile_collect(cx->scratch, kernel->body);
  bool ok = true;
  for (int r = 0; r < found->releases.len; r++) {
    const TirOp *release = found->releases.data[r];
    bool behind = false;
    for (int i = 0; i < ops.len && ok; i++) {
      if (behind) ok = check_released(cx, release, ops.data[i]);
      behind = behind || ops.data[i] == release;
    }
  }
  return ok;
}

static TirValue *emit_allocation(PassCx *cx, TirKernel *kernel) {
  TirBuilder b = tir_builder_before(cx->module, kernel->body->first);
  b.span = kernel->span;
  const int64_t one = 1;
  TirValue *slot =
      tir_alloc(&b, intern(cx->module->names, "tmem_slot"), type_buffer(DTYPE_u32, SPACE_SHARED, 1, &one));
  slot->layout = ARENA_NEW(cx->module->arena, Layout);
  *slot->layout = (Layout){.kind = LAYOUT_SHARED, .offset = -1};
  tir_op(&b, OP_tmem_alloc, 1, &slot, 0, NULL)->attrs[TMEM_columns] = kernel->tmem_columns;
  tir_op(&b, OP_sync_threads, 0, NULL, 0, NULL);
  TirValue *zero = tir_int(&b, 0);
  TirValue *base = tir_load(&b, slot, &zero, 1);
  base->name = intern(cx->module->names, "tmem_base");
  return base;
}

// Where the last of the buffers is released, when the author releases every one; else the end of the kernel, which blocks
// that return early reach too.
static TirBuilder release_place(PassCx *cx, TirKernel *kernel, Found *found) {
  for (int i = 0; i < found->buffers.len; i++) {
    bool released = false;
    for (int k = 0; k < found->releases.len && !released; k++)
      released = buffer_of(found, found->releases.data[k]->args[0]) == &found->buffers.data[i];
    if (!released) return tir_builder_at_end(cx->module, kernel->body, kernel->span);
  }
  TirOp *last = found->releases.data[found->releases.len - 1];
  if (last->parent != kernel->body) return tir_builder_at_end(cx->module, kernel->body, kernel->span);
  return tir_builder_before(cx->module, last);
}

static void emit_release(PassCx *cx, TirKernel *kernel, Found *found, TirValue *base) {
  TirBuilder b = release_place(cx, kernel, found);
  tir_op(&b, OP_tcgen05_fence_before, 0, NULL, 0, NULL);
  tir_op(&b, OP_sync_threads, 0, NULL, 0, NULL);
  tir_op(&b, OP_tcgen05_fence_after, 0, NULL, 0, NULL);
  tir_op(&b, OP_tmem_dealloc, 1, &base, 0, NULL)->attrs[TMEM_columns] = kernel->tmem_columns;
  for (int i = 0; i < found->releases.len; i++) tir_remove(found->releases.data[i]);
}

static void set_base(PassCx *cx, TirOp *op, TirValue *base) {
  op->args = ARENA_ARRAY(cx->module->arena, TirValue *, 1);
  op->args[0] = base;
  op->nargs = 1;
}

// Tile IR may be read for another target than it was made for.
static bool report_none(PassCx *cx, const TirOp *op) {
  diag_error(cx->ds, DIAG_tmem_overflow, op->span, "%s is in tensor memory, and %s has none", buffer_name(op),
             cx->target->name);
  return false;
}

bool pass_tmem(PassCx *cx, TirKernel *kernel) {
  Found found = {.cx = cx};
  tir_walk(kernel->body, find_tmem, &found);
  if (found.buffers.len == 0) return true;
  if (cx->target->tmem_columns == 0) return report_none(cx, found.buffers.data[0].alloc);
  if (!check_releases(cx, kernel, &found)) return false;
  int64_t total = place(cx, &found);
  if (total < 0) return false;
  for (int i = 0; i < found.reshapes.len; i++)
    if (!give_shape(cx, found.reshapes.data[i])) return false;
  for (int i = 0; i < found.products.len; i++)
    if (!check_accumulator(cx, found.products.data[i])) return false;
  kernel->tmem_columns = (int)power_of_two(total);
  TirValue *base = emit_allocation(cx, kernel);
  for (int i = 0; i < found.buffers.len; i++) set_base(cx, found.buffers.data[i].alloc, base);
  emit_release(cx, kernel, &found, base);
  return true;
}

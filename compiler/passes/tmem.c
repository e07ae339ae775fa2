// Needs    TIR_FRAGMENTS: accumulators are TMEM buffers.
// Does     Gives each TMEM buffer columns of one allocation, and puts that allocation at the kernel's start
//          and its release at the end: by one warp, and then the permit is given up, since a CTA that waits for
//          columns on the same SM waits for that too (PTX ISA, tcgen05.relinquish_alloc_permit).
// Leaves   TIR_TMEM_PLACED: layouts of TMEM buffers, tmem_columns of the kernel.
// Reports  Rows that are not 64 or a multiple of 128, too many columns with a table of who takes what,
//          rounding.
//
// A buffer of r rows takes one 32-bit column for each of its columns, f16 too, and each block of 128 rows (PTX
// ISA 9.7.16.1: 128 lanes, allocations are powers of two of at least 32 columns). Nothing overlaps: every
// buffer lives for the whole kernel.
#include "passes/pass.h"

enum { ALLOC_UNIT = 32 };

typedef struct {
  PassCx *cx;
  VEC(TirOp *) buffers;
} Found;

static bool find_tmem(void *context, TirOp *op) {
  Found *found = context;
  if (op->kind == OP_alloc && op->results[0]->type.space == SPACE_TMEM)
    vec_push(found->cx->scratch, &found->buffers, op);
  return true;
}

static int64_t round_up(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
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
  int64_t rows = rows_of(&op->results[0]->type);
  if (rows == 64 || (rows > 0 && rows % cx->target->tmem_lanes == 0)) return true;
  diag_error(cx->ds, DIAG_tmem_rows, op->span,
             "%s has %lld rows; TMEM has %d lanes, so rows are 64 or a multiple of %d", buffer_name(op),
             (long long)rows, cx->target->tmem_lanes, cx->target->tmem_lanes);
  return false;
}

static bool check_type(PassCx *cx, const TirOp *op) {
  const Type *type = &op->results[0]->type;
  if (type->rank >= 2 && (dtype_bits(type->dtype) == 32 || type->dtype == DTYPE_f16)) return true;
  TextBuf text = {.arena = cx->scratch};
  type_print(&text, type);
  diag_error(cx->ds, DIAG_tmem_type, op->span,
             "%s is %s; TMEM buffers have two dimensions or more, and elements of 32 bits or f16 for now",
             buffer_name(op), text.data);
  return false;
}

static int64_t columns_of(PassCx *cx, const TirOp *op) {
  const Type *type = &op->results[0]->type;
  int64_t blocks = round_up(rows_of(type), cx->target->tmem_lanes) / cx->target->tmem_lanes;
  return type_elements(type) / rows_of(type) * blocks;
}

static void warn_rounded(PassCx *cx, const TirOp *op, int64_t columns) {
  if (power_of_two(columns) == columns) return;
  diag_warning(
      cx->ds, DIAG_tmem_rounded, op->span,
      "%s takes %lld columns; TMEM is allocated in powers of two of at least %d, so the kernel's one "
      "allocation is rounded up",
      buffer_name(op), (long long)columns, ALLOC_UNIT);
}

static void report_overflow(PassCx *cx, const Found *found, int64_t total) {
  TirOp *last = found->buffers.data[found->buffers.len - 1];
  diag_error(cx->ds, DIAG_tmem_overflow, last->span, "live tiles need %lld TMEM columns, %s has %d",
             (long long)total, cx->target->name, cx->target->tmem_columns);
  for (int i = 0; i < found->buffers.len; i++) {
    const TirOp *op = found->buffers.data[i];
    diag_note(cx->ds, op->span, "%s takes %lld", buffer_name(op), (long long)columns_of(cx, op));
  }
  diag_hint(cx->ds, "tiles with fewer columns, or fewer of them, need less");
}

// Columns in order of declaration; the total, or -1 when something was reported.
static int64_t place(PassCx *cx, const Found *found) {
  int64_t total = 0;
  bool ok = true;
  for (int i = 0; i < found->buffers.len; i++) {
    TirOp *op = found->buffers.data[i];
    if (!check_type(cx, op) || !check_rows(cx, op)) {
      ok = false;
      continue;
    }
    int64_t columns = columns_of(cx, op);
    warn_rounded(cx, op, columns);
    Layout *layout = ARENA_NEW(cx->module->arena, Layout);
    layout->kind = LAYOUT_TMEM;
    layout->column = (int)total;
    layout->columns = (int)columns;
    op->results[0]->layout = layout;
    total += round_up(columns, ALLOC_UNIT);
  }
  if (ok && total > cx->target->tmem_columns) {
    report_overflow(cx, found, total);
    ok = false;
  }
  return ok ? total : -1;
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

static void emit_release(PassCx *cx, TirKernel *kernel, TirValue *base) {
  TirBuilder b = tir_builder_at_end(cx->module, kernel->body, kernel->span);
  tir_op(&b, OP_tcgen05_fence_before, 0, NULL, 0, NULL);
  tir_op(&b, OP_sync_threads, 0, NULL, 0, NULL);
  tir_op(&b, OP_tcgen05_fence_after, 0, NULL, 0, NULL);
  tir_op(&b, OP_tmem_dealloc, 1, &base, 0, NULL)->attrs[TMEM_columns] = kernel->tmem_columns;
}

static void set_base(PassCx *cx, TirOp *op, TirValue *base) {
  op->args = ARENA_ARRAY(cx->module->arena, TirValue *, 1);
  op->args[0] = base;
  op->nargs = 1;
}

bool pass_tmem(PassCx *cx, TirKernel *kernel) {
  Found found = {.cx = cx};
  tir_walk(kernel->body, find_tmem, &found);
  if (found.buffers.len == 0) return true;
  int64_t total = place(cx, &found);
  if (total < 0) return false;
  kernel->tmem_columns = (int)power_of_two(total);
  TirValue *base = emit_allocation(cx, kernel);
  for (int i = 0; i < found.buffers.len; i++) set_base(cx, found.buffers.data[i], base);
  emit_release(cx, kernel, base);
  return true;
}

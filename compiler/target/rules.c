// What ops need of a GPU with TMA and TMEM. A rule writes the op's path, or reports the numbers and the legal
// set.
#include "target/rules.h"

#include <stdio.h>
#include <string.h>

#include "base/gcd.h"
#include "base/text.h"

TirOp *rule_make_copy(TirBuilder *b, TirValue *src, TirValue *dst) {
  TirValue *args[] = {src, dst, NULL};
  return tir_op(b, OP_copy, 3, args, 0, NULL);
}

static Path copy_path(const Target *target, TirValue *src, TirValue *dst, bool variant_tma) {
  if (src->type.space == SPACE_TMEM) return dst->type.space == SPACE_FRAGMENT ? PATH_TMEM_LOAD : PATH_NONE;
  if (dst->type.space == SPACE_TMEM) return src->type.space == SPACE_FRAGMENT ? PATH_TMEM_STORE : PATH_NONE;
  if (variant_tma && rule_tma_legal(target, src, dst))
    return dst->type.space == SPACE_SHARED ? PATH_TMA_LOAD : PATH_TMA_STORE;
  return PATH_THREADS;
}

// A side of a copy lies inside its root for every value of its offsets.
static bool inside(TirValue *buffer) {
  RuleTile tile = rule_tile(buffer);
  for (int d = 0; d < tile.root->type.rank; d++) {
    int64_t size = tile.root->type.shape[d];
    if (size == DIM_DYNAMIC || tile.start[d].lo < 0 || tile.start[d].hi > size - tile.extent[d]) return false;
  }
  return true;
}

// Threads address whole bytes.
static bool check_addressable(const Target *target, const TirOp *op, const TirValue *buffer, Diags *ds) {
  if (dtype_bytes(buffer->type.dtype) > 0) return true;
  diag_error(ds, DIAG_no_rule, op->span, "%s has no %s of %s (%s): its elements are narrower than a byte",
             target->name, op_def(op->kind)->name, tir_buffer_name(buffer), dtype_name(buffer->type.dtype));
  return false;
}

// Threads number the elements of a tile in 32 bits.
static bool check_countable(const TirOp *op, const TirValue *buffer, Diags *ds) {
  if (type_elements(&buffer->type) <= INT32_MAX) return true;
  diag_error(ds, DIAG_no_rule, op->span, "a %s of %lld elements of %s; a tile has fewer than 2^31",
             op_def(op->kind)->name, (long long)type_elements(&buffer->type), tir_buffer_name(buffer));
  return false;
}

// Whether both sides are surely parts of one buffer that share elements, but not all of them: threads would
// read some elements after others have written them. Starts known only later are the author's to keep apart.
static bool sides_overlap(TirValue *src, TirValue *dst) {
  RuleTile from = rule_tile(src), to = rule_tile(dst);
  bool same = true;
  if (from.root != to.root) return tir_root(src) == tir_root(dst);
  if (from.root->type.space == SPACE_FRAGMENT) return false;
  for (int d = 0; d < from.root->type.rank; d++) {
    TirRange a = from.start[d], b = to.start[d];
    if (a.lo != a.hi || b.lo != b.hi || a.lo - b.lo >= to.extent[d] || b.lo - a.lo >= from.extent[d])
      return false;
    same = same && a.lo == b.lo;
  }
  return !same;
}

static bool is_dense(const RuleTile *tile) {
  return tile->dim[0] == tile->root->type.rank - 2 && tile->dim[1] == tile->root->type.rank - 1;
}

// Whether a tile of TMEM has all rows and columns, where each warp's lanes hold another part of the columns.
static bool is_cut(const Target *target, const RuleTile *tile) {
  const Type *root = &tile->root->type;
  int rows = root->rank - 2;
  if (root->shape[rows] != target->tmem_lanes / 4) return false;
  return tile->extent[rows] != root->shape[rows] || tile->extent[rows + 1] != root->shape[rows + 1];
}

// Columns in words of 32 bits.
static bool fills_words(const RuleTile *tile) {
  int columns = tile->root->type.rank - 1, in_word = 32 / dtype_bits(tile->root->type.dtype);
  return in_word <= 1 ||
         (tile->start[columns].multiple % in_word == 0 && tile->extent[columns] % in_word == 0);
}

// Threads reach one tile of TMEM at a time, its rows and columns.
static bool check_tmem_tile(const Target *target, const TirOp *op, TirValue *buffer, Diags *ds) {
  if (buffer->type.space != SPACE_TMEM || buffer->op->kind != OP_view) return true;
  RuleTile tile = rule_tile(buffer);
  const char *why = NULL;
  if (buffer->type.rank != 2 || !is_dense(&tile))
    why = "takes its last two dimensions, rows and columns: index those before them";
  else if (is_cut(target, &tile))
    why = "takes all its rows and columns: of 32 rows, each warp's lanes hold another quarter of the columns";
  else if (!fills_words(&tile))
    why = "must start and end at words of 32 bits";
  if (!why) return true;
  diag_error(ds, DIAG_no_rule, op->span, "a %s of %s %s", op_def(op->kind)->name, tir_buffer_name(buffer),
             why);
  return false;
}

// A whole buffer of several tiles can be filled, and not copied at once.
static bool check_tmem_rank(const TirOp *op, TirValue *buffer, Diags *ds) {
  if (buffer->type.space != SPACE_TMEM || buffer->type.rank == 2) return true;
  diag_error(ds, DIAG_no_rule, op->span,
             "a %s of %s takes its last two dimensions, rows and columns: index those before them",
             op_def(op->kind)->name, tir_buffer_name(buffer));
  return false;
}

bool rule_copy(const Target *target, TirOp *op, bool variant_tma, Diags *ds) {
  TirValue *src = op->args[0], *dst = op->args[1];
  if (!check_addressable(target, op, src, ds) || !check_addressable(target, op, dst, ds)) return false;
  if (!check_countable(op, dst, ds)) return false;
  if (!check_tmem_rank(op, src, ds) || !check_tmem_rank(op, dst, ds)) return false;
  if (!check_tmem_tile(target, op, src, ds) || !check_tmem_tile(target, op, dst, ds)) return false;
  if (op->attrs[COPY_explicit] && !rule_check_tma(target, op, ds)) return false;
  bool tma = op->attrs[COPY_explicit] || (variant_tma && !op->attrs[COPY_no_tma]);
  op->attrs[COPY_path] = copy_path(target, src, dst, tma);
  op->attrs[COPY_bounded] = inside(src) && inside(dst);
  if (op->attrs[COPY_path] == PATH_THREADS && sides_overlap(src, dst)) {
    diag_error(ds, DIAG_no_rule, op->span,
               "the two sides of this copy overlap in %s: some elements would be read after they are written",
               tir_buffer_name(src));
    diag_hint(ds, "copy to a fragment first, and from there");
    return false;
  }
  if (op->attrs[COPY_path] != PATH_NONE) return true;
  diag_error(ds, DIAG_no_rule, op->span, "%s has no way to copy from %s to %s", target->name,
             space_name(src->type.space), space_name(dst->type.space));
  return false;
}

// TMA adds where it lies (PTX ISA 9.7.9.25.5.3) what threads would add with an atomic each.
bool rule_atomic_add(const Target *target, TirOp *op, bool variant_tma, Diags *ds) {
  TirValue *src = op->args[0], *dst = op->args[1];
  if (!check_addressable(target, op, src, ds) || !check_countable(op, dst, ds)) return false;
  bool tma = variant_tma && src->type.space == SPACE_SHARED && dst->type.space == SPACE_GLOBAL &&
             rule_tma_legal(target, src, dst);
  op->attrs[ATOMIC_ADD_path] = tma ? PATH_TMA_STORE : PATH_THREADS;
  op->attrs[ATOMIC_ADD_bounded] = inside(src) && inside(dst);
  return true;
}

bool rule_fill(const Target *target, TirOp *op, bool variant_tma, Diags *ds) {
  (void)variant_tma;
  if (!check_addressable(target, op, op->args[0], ds) || !check_countable(op, op->args[0], ds)) return false;
  if (!check_tmem_tile(target, op, op->args[0], ds)) return false;
  op->attrs[FILL_path] = op->args[0]->type.space == SPACE_TMEM ? PATH_TMEM_STORE : PATH_THREADS;
  return true;
}

// Fragments by the threads that hold them; the fragments pass finds out how these can meet.
bool rule_reduce(const Target *target, TirOp *op, bool variant_tma, Diags *ds) {
  (void)target, (void)variant_tma, (void)ds;
  op->attrs[REDUCE_path] = PATH_THREADS;
  return true;
}

// How much a row has of the types that were asked for: both operands, one, none.
static int likeness(const MmaShape *shape, DType a, DType b) {
  bool same_a = shape->a == a, same_b = shape->b == b;
  return same_a && same_b ? 2 : same_a || same_b ? 1 : 0;
}

static bool check_triple(const Target *target, const TirOp *op, Diags *ds) {
  DType a = op->args[0]->type.dtype, b = op->args[1]->type.dtype, c = op->args[2]->type.dtype;
  if (target_find_mma(target, a, b, c)) return true;
  char legal[1024] = "";
  int best = 0;
  for (int i = 0; i < target->nmma; i++) {
    int like = likeness(&target->mma[i], a, b);
    if (like > best) best = like;
  }
  for (int i = 0; i < target->nmma; i++) {
    const MmaShape *shape = &target->mma[i];
    size_t used = strlen(legal);
    if (likeness(shape, a, b) < best) continue;
    snprintf(legal + used, sizeof legal - used, "%s%s x %s -> %s", used ? ", " : "", dtype_name(shape->a),
             dtype_name(shape->b), dtype_name(shape->c));
  }
  diag_error(ds, DIAG_mma_types, op->span, "%s has no %s of %s x %s -> %s; it has %s", target->name,
             op_def(op->kind)->name, dtype_name(a), dtype_name(b), dtype_name(c), legal);
  return false;
}

static bool check_spaces(const Target *target, const TirOp *op, Diags *ds) {
  for (int i = 0; i < 2; i++) {
    const TirValue *operand = op->args[i];
    bool in_tmem = i == 0 && target->tmem_columns > 0;
    if (operand->type.space == SPACE_SHARED || (in_tmem && operand->type.space == SPACE_TMEM)) continue;
    diag_error(ds, DIAG_mma_space, op->span, "operand %s of %s is in %s; %s takes it from shared%s",
               tir_buffer_name(operand), op_def(op->kind)->name, space_name(operand->type.space),
               target->name, in_tmem ? " or tmem" : "");
    return false;
  }
  if (op->args[2]->type.space == SPACE_TMEM) return true;
  diag_error(ds, DIAG_mma_space, op->span, "accumulator %s of %s is in %s; %s accumulates in tmem",
             tir_buffer_name(op->args[2]), op_def(op->kind)->name, space_name(op->args[2]->type.space),
             target->name);
  return false;
}

static bool is_mn_major(const TirOp *op, int i) {
  return i == 0 ? op->attrs[GEMM_trans_a] != 0 : op->attrs[GEMM_trans_b] == 0;
}

// Whether an operand may be stored with M or N innermost.
static bool check_major(const Target *target, const MmaShape *shape, const TirOp *op, Diags *ds) {
  if (op->args[0]->type.space == SPACE_TMEM && is_mn_major(op, 0)) {
    diag_error(ds, DIAG_mma_major, op->span, "operand %s is in tmem, where %s takes it only as [m, k]",
               tir_buffer_name(op->args[0]), target->name);
    return false;
  }
  static const char *const stored[] = {"[k, m]", "[k, n]"}, *const takes[] = {"[m, k]", "[n, k]"},
                           *const remedy[] = {"transpose_A=False", "transpose_B=True"};
  for (int i = 0; i < 2 && !shape->mn_major; i++) {
    if (!is_mn_major(op, i)) continue;
    diag_error(ds, DIAG_mma_major, op->span, "operand %s is stored %s; %s takes %s operands only as %s",
               tir_buffer_name(op->args[i]), stored[i], target->name, dtype_name(op->args[i]->type.dtype),
               takes[i]);
    diag_hint(ds, "store it as %s and write %s", takes[i], remedy[i]);
    return false;
  }
  return true;
}

static bool check_m(const Target *target, const MmaShape *shape, const TirOp *op, Diags *ds) {
  int64_t m = op->args[2]->type.shape[0];
  if (target_mma_extents(target, shape, m)) return true;
  char single[64] = "";
  int64_t next = 0;  // the least legal M that is large enough
  for (const MmaExtents *e = shape->extents; e->m; e++) {
    bool repeats = e->m >= target->tmem_lanes;
    size_t used = strlen(single);
    if (!repeats) snprintf(single + used, sizeof single - used, "%s%d", used ? ", " : "M = ", e->m);
    if (repeats)
      next = (m + e->m - 1) / e->m * e->m;
    else if (m <= e->m)
      next = e->m;
  }
  diag_error(ds, DIAG_mma_m, op->span, "M = %lld is not made of %d rows; %s takes %s%smultiples of %d",
             (long long)m, shape->extents[0].m, target->name, single, *single ? " and " : "",
             shape->extents[0].m);
  diag_hint(ds,
            "make the tile %lld rows high; rows past the end of the tensor read zeros and are not written",
            (long long)next);
  return false;
}

// The form whose accumulator has a quarter of its columns in each warp's lanes.
static bool check_ws(const Target *target, const MmaExtents *extents, const TirOp *op, Diags *ds) {
  int64_t n = op->args[2]->type.shape[1];
  if (op->args[0]->type.space == SPACE_TMEM) {
    diag_error(ds, DIAG_mma_m, op->span,
               "M = %d with operand %s in tmem; %s takes it from there for M = 64 and multiples of 128",
               extents->m, tir_buffer_name(op->args[0]), target->name);
    return false;
  }
  if (n >= extents->n_min && n <= extents->n_max && (n & (n - 1)) == 0) return true;
  diag_error(ds, DIAG_mma_n, op->span, "N = %lld with M = %d; %s takes N = 64, 128 or 256", (long long)n,
             extents->m, target->name);
  return false;
}

static bool check_n(const Target *target, const MmaShape *shape, const TirOp *op, Diags *ds) {
  int64_t n = op->args[2]->type.shape[1];
  const MmaExtents *extents = target_mma_extents(target, shape, op->args[2]->type.shape[0]);
  if (!extents) return true;  // check_m has said so
  if (extents->ws) return check_ws(target, extents, op, ds);
  int step = target_mma_n_step(shape, extents, is_mn_major(op, 1));
  int least = extents->n_min > step ? extents->n_min : step;
  if (n >= least && n % step == 0) return true;
  diag_error(
      ds, DIAG_mma_n, op->span,
      "N = %lld is not a multiple of %d; %s takes N = %d to %d in steps of %d, and multiples of %d beyond",
      (long long)n, step, target->name, least, extents->n_max, step, step);
  return false;
}

static bool check_k(const Target *target, const MmaShape *shape, const TirOp *op, Diags *ds) {
  int64_t k = op->args[0]->type.shape[is_mn_major(op, 0) ? 0 : 1];
  if (k > 0 && k % shape->k_atom == 0) return true;
  diag_error(ds, DIAG_mma_k, op->span,
             "K = %lld is not a multiple of %d, the elements of %s that one instruction of %s takes",
             (long long)k, shape->k_atom, dtype_name(shape->a), target->name);
  diag_hint(ds, "use a tile with K = %lld; columns past the end of the tensor read zeros",
            (long long)(k + shape->k_atom - 1) / shape->k_atom * shape->k_atom);
  return false;
}

// Rows of an operand are cut into panels of a swizzle, the narrowest of 32 bytes.
static bool check_panels(const Target *target, const TirOp *op, int i, Diags *ds) {
  enum { NARROWEST = 32 };
  const Type *root = &rule_tile(op->args[i]).root->type;
  int64_t elements = root->shape[root->rank - 1], bytes = elements * dtype_bytes(root->dtype);
  if (rule_shared_span(target, op->args[i], true)) return true;
  const TirOp *alloc = tir_root(op->args[i])->op;
  if (alloc->attrs[ALLOC_plain]) {
    diag_error(ds, DIAG_reshape, op->span,
               "%s is an operand, whose rows are swizzled; it cannot be seen with rows of another length",
               tir_buffer_name(op->args[i]));
    diag_note(ds, alloc->span, "it is allocated here with rows of %lld bytes",
              (long long)(alloc->results[0]->type.shape[alloc->results[0]->type.rank - 1] *
                          dtype_bytes(alloc->results[0]->type.dtype)));
    return false;
  }
  diag_error(ds, DIAG_mma_panel, op->span,
             "rows of %s have %lld elements (%lld bytes); rows of an operand are a multiple of %d elements "
             "(%d bytes)",
             tir_buffer_name(op->args[i]), (long long)elements, (long long)bytes,
             NARROWEST / dtype_bytes(root->dtype), NARROWEST);
  return false;
}

// Where a slice starts, as far as it is known.
static const char *start_text(TirRange start, char out[32]) {
  if (start.lo != start.hi) return "a value that cannot be proven to be one";
  snprintf(out, 32, "%lld", (long long)start.lo);
  return out;
}

// The step in which columns of an operand may start: K atoms, or, with M or N innermost, the panels of the swizzle,
// since only the first panel's end is known to the hardware. A tile inside one panel may start anywhere on a
// power of two that is no less than its width.
static int64_t column_step(const Target *target, const MmaShape *shape, const RuleTile *tile, bool mn_major) {
  if (!mn_major) return shape->k_atom;
  int64_t panel = rule_shared_span(target, tile->root, true) / dtype_bytes(tile->root->type.dtype), step = 8;
  while (step < tile->extent[tile->dim[1]]) step *= 2;
  return step < panel ? step : panel;
}

// A slice of a shared operand must start on a swizzle atom (8 rows) and where instructions can begin along its
// rows; leading dimensions count in rows.
static bool check_operand_slice(const Target *target, const MmaShape *shape, const TirOp *op, int i,
                                Diags *ds) {
  RuleTile tile = rule_tile(op->args[i]);
  if (!check_panels(target, op, i, ds)) return false;
  int rank = tile.root->type.rank;
  int64_t rows = 0, columns = tile.start[tile.dim[1]].multiple, stride = 1;
  for (int d = rank - 2; d >= 0; stride *= tile.root->type.shape[d--])
    rows = base_gcd(rows, tile.start[d].multiple * stride);
  int64_t step = column_step(target, shape, &tile, is_mn_major(op, i));
  if (is_dense(&tile) && rows % 8 == 0 && columns % step == 0) return true;
  char row[32], column[32];
  diag_error(ds, DIAG_mma_slice, op->span,
             "the slice of %s must start at a multiple of 8 rows and of %lld columns, in its last two "
             "dimensions; it starts at row %s and column %s",
             tir_buffer_name(tile.root), (long long)step, start_text(tile.start[tile.dim[0]], row),
             start_text(tile.start[tile.dim[1]], column));
  return false;
}

// A slice of an accumulator, or of operand A in TMEM, of which columns may start at a multiple of `step`.
// Instructions of fewer rows than TMEM has lanes spread them over all lanes: such a buffer has no other rows.
static bool check_tmem_slice(const Target *target, const MmaExtents *extents, const TirOp *op, int i,
                             int step, Diags *ds) {
  RuleTile tile = rule_tile(op->args[i]);
  int64_t m = op->args[i]->type.shape[0];
  bool cut = extents->ws && is_cut(target, &tile);
  if (cut || (extents->m < target->tmem_lanes && tile.root->type.shape[tile.root->type.rank - 2] != m)) {
    diag_error(ds, DIAG_mma_slice, op->span,
               "a slice of %lld %s of %s: a product of %lld rows takes a whole %s of as many",
               (long long)(cut ? op->args[i]->type.shape[1] : m), cut ? "columns" : "rows",
               tir_buffer_name(tile.root), (long long)m, i == 2 ? "accumulator" : "buffer");
    return false;
  }
  TirRange rows = tile.start[tile.dim[0]], columns = tile.start[tile.dim[1]];
  if (is_dense(&tile) && rows.multiple % extents->m == 0 && columns.multiple % step == 0) return true;
  char row[32], column[32];
  diag_error(ds, DIAG_mma_slice, op->span,
             "the slice of %s must start at a multiple of %d rows and of %d columns; it starts at row %s and "
             "column %s",
             tir_buffer_name(tile.root), extents->m, step, start_text(rows, row),
             start_text(columns, column));
  return false;
}

static bool check_slices(const Target *target, const MmaShape *shape, const TirOp *op, Diags *ds) {
  const MmaExtents *extents = target_mma_extents(target, shape, op->args[2]->type.shape[0]);
  for (int i = 0; i < 2; i++) {
    bool ok = op->args[i]->type.space == SPACE_TMEM
                  ? check_tmem_slice(target, extents, op, i, shape->k_atom, ds)
                  : check_operand_slice(target, shape, op, i, ds);
    if (!ok) return false;
  }
  return check_tmem_slice(target, extents, op, 2, extents->n_min, ds);
}

bool rule_gemm(const Target *target, TirOp *op, bool variant_tma, Diags *ds) {
  (void)variant_tma;
  if (!check_spaces(target, op, ds) || !check_triple(target, op, ds)) return false;
  const MmaShape *shape =
      target_find_mma(target, op->args[0]->type.dtype, op->args[1]->type.dtype, op->args[2]->type.dtype);
  bool ok = check_major(target, shape, op, ds) && check_m(target, shape, op, ds);
  ok = check_n(target, shape, op, ds) && ok;
  ok = check_k(target, shape, op, ds) && ok;
  ok = ok && check_slices(target, shape, op, ds);
  if (ok) op->attrs[GEMM_path] = PATH_MMA;
  return ok;
}

// ---- wgmma: registers instead of TMEM

static bool check_register_spaces(const Target *target, const TirOp *op, Diags *ds) {
  const TirValue *a = op->args[0], *b = op->args[1], *c = op->args[2];
  const TirValue *wrong = b->type.space != SPACE_SHARED ? b : a->type.space == SPACE_TMEM ? a : NULL;
  if (wrong) {
    diag_error(ds, DIAG_mma_space, op->span, "operand %s of %s is in %s; %s takes it from shared%s",
               tir_buffer_name(wrong), op_def(op->kind)->name, space_name(wrong->type.space), target->name,
               wrong == a ? " or a fragment" : "");
    return false;
  }
  if (a->type.space == SPACE_FRAGMENT && op->attrs[GEMM_trans_a]) {
    diag_error(ds, DIAG_mma_major, op->span, "operand %s is a fragment stored [k, m]; %s takes [m, k]",
               tir_buffer_name(a), target->name);
    return false;
  }
  if (a->type.space == SPACE_FRAGMENT && dtype_bits(a->type.dtype) != 16) {
    diag_error(ds, DIAG_mma_space, op->span,
               "operand %s of %s is a fragment of %s; %s takes only 16-bit elements from a fragment",
               tir_buffer_name(a), op_def(op->kind)->name, dtype_name(a->type.dtype), target->name);
    diag_hint(ds, "copy it to shared memory");
    return false;
  }
  if (c->type.space == SPACE_FRAGMENT && c->op->kind == OP_alloc) return true;
  diag_error(ds, DIAG_mma_space, op->span, "accumulator %s of %s is %s; %s accumulates in a whole fragment",
             tir_buffer_name(c), op_def(op->kind)->name,
             c->type.space == SPACE_FRAGMENT ? "part of a fragment" : space_name(c->type.space),
             target->name);
  return false;
}

// Products of warpgroups arrive on no barrier, so nobody could wait for the explicit form.
static bool check_waited(const Target *target, const TirOp *op, Diags *ds) {
  if (!op->attrs[GEMM_explicit]) return true;
  diag_error(ds, DIAG_no_rule, op->span, "%s has no tcgen05_gemm: its products do not arrive on a barrier",
             target->name);
  diag_hint(ds, "write gemm(...), whose result is there when the next statement starts");
  return false;
}

bool rule_wgmma(const Target *target, TirOp *op, bool variant_tma, Diags *ds) {
  (void)variant_tma;
  if (!check_waited(target, op, ds)) return false;
  if (!check_register_spaces(target, op, ds) || !check_triple(target, op, ds)) return false;
  const MmaShape *shape =
      target_find_mma(target, op->args[0]->type.dtype, op->args[1]->type.dtype, op->args[2]->type.dtype);
  bool ok = check_major(target, shape, op, ds) && check_m(target, shape, op, ds);
  ok = check_n(target, shape, op, ds) && ok;
  ok = check_k(target, shape, op, ds) && ok;
  for (int i = 0; i < 2 && ok; i++)
    if (op->args[i]->type.space == SPACE_SHARED) ok = check_operand_slice(target, shape, op, i, ds);
  if (ok) op->attrs[GEMM_path] = PATH_WGMMA;
  return ok;
}

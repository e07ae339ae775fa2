// What ops need of a GPU with TMA and TMEM. A rule writes the op's path, or reports the numbers and the legal
// set.
#include "target/rules.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

// How messages call a buffer: by what is behind its views.
static const char *label(const TirValue *value) {
  const TirValue *root = value;
  while (root->op->kind == OP_view) root = root->op->args[0];
  if (root->op->name) return root->op->name;
  return root->name ? root->name : "a buffer";
}

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
             target->name, op_def(op->kind)->name, label(buffer), dtype_name(buffer->type.dtype));
  return false;
}

// Threads number the elements of a tile in 32 bits.
static bool check_countable(const TirOp *op, const TirValue *buffer, Diags *ds) {
  if (type_elements(&buffer->type) <= INT32_MAX) return true;
  diag_error(ds, DIAG_no_rule, op->span, "a %s of %lld elements of %s; a tile has fewer than 2^31",
             op_def(op->kind)->name, (long long)type_elements(&buffer->type), label(buffer));
  return false;
}

// Whether both sides are surely parts of one buffer that share elements, but not all of them: threads would
// read some elements after others have written them. Starts known only later are the author's to keep apart.
static bool sides_overlap(TirValue *src, TirValue *dst) {
  RuleTile from = rule_tile(src), to = rule_tile(dst);
  bool same = true;
  if (from.root != to.root || from.root->type.space == SPACE_FRAGMENT) return false;
  for (int d = 0; d < from.root->type.rank; d++) {
    TirRange a = from.start[d], b = to.start[d];
    if (a.lo != a.hi || b.lo != b.hi || a.lo - b.lo >= to.extent[d] || b.lo - a.lo >= from.extent[d])
      return false;
    same = same && a.lo == b.lo;
  }
  return !same;
}

bool rule_copy(const Target *target, TirOp *op, bool variant_tma, Diags *ds) {
  TirValue *src = op->args[0], *dst = op->args[1];
  if (!check_addressable(target, op, src, ds) || !check_addressable(target, op, dst, ds)) return false;
  if (!check_countable(op, dst, ds)) return false;
  op->attrs[COPY_path] = copy_path(target, src, dst, variant_tma);
  op->attrs[COPY_bounded] = inside(src) && inside(dst);
  if (op->attrs[COPY_path] == PATH_THREADS && sides_overlap(src, dst)) {
    diag_error(ds, DIAG_no_rule, op->span,
               "the two sides of this copy overlap in %s: some elements would be read after they are written",
               label(src));
    diag_hint(ds, "copy to a fragment first, and from there");
    return false;
  }
  if (op->attrs[COPY_path] != PATH_NONE) return true;
  diag_error(ds, DIAG_no_rule, op->span, "%s has no way to copy from %s to %s", target->name,
             space_name(src->type.space), space_name(dst->type.space));
  return false;
}

bool rule_fill(const Target *target, TirOp *op, bool variant_tma, Diags *ds) {
  (void)variant_tma;
  if (!check_addressable(target, op, op->args[0], ds) || !check_countable(op, op->args[0], ds)) return false;
  op->attrs[FILL_path] = op->args[0]->type.space == SPACE_TMEM ? PATH_TMEM_STORE : PATH_THREADS;
  return true;
}

static bool check_triple(const Target *target, const TirOp *op, Diags *ds) {
  DType a = op->args[0]->type.dtype, b = op->args[1]->type.dtype, c = op->args[2]->type.dtype;
  if (target_find_mma(target, a, b, c)) return true;
  char legal[256] = "";
  for (int i = 0; i < target->nmma; i++) {
    const MmaShape *shape = &target->mma[i];
    size_t used = strlen(legal);
    snprintf(legal + used, sizeof legal - used, "%s%s x %s -> %s", i ? ", " : "", dtype_name(shape->a),
             dtype_name(shape->b), dtype_name(shape->c));
  }
  diag_error(ds, DIAG_mma_types, op->span, "%s has no %s of %s x %s -> %s; it has %s", target->name,
             op_def(op->kind)->name, dtype_name(a), dtype_name(b), dtype_name(c), legal);
  return false;
}

static bool check_spaces(const Target *target, const TirOp *op, Diags *ds) {
  for (int i = 0; i < 2; i++) {
    const TirValue *operand = op->args[i];
    if (operand->type.space == SPACE_SHARED) continue;
    diag_error(ds, DIAG_mma_space, op->span, "operand %s of %s is in %s; %s takes it from shared",
               label(operand), op_def(op->kind)->name, space_name(operand->type.space), target->name);
    return false;
  }
  if (op->args[2]->type.space == SPACE_TMEM) return true;
  diag_error(ds, DIAG_mma_space, op->span, "accumulator %s of %s is in %s; %s accumulates in tmem",
             label(op->args[2]), op_def(op->kind)->name, space_name(op->args[2]->type.space), target->name);
  return false;
}

// Operands whose rows run along K only: the other order needs other descriptors.
static bool check_major(const TirOp *op, Diags *ds) {
  if (op->attrs[GEMM_trans_a]) {
    diag_error(ds, DIAG_mma_major, op->span, "operand %s is stored [k, m]; only [m, k] is supported yet",
               label(op->args[0]));
    return false;
  }
  if (!op->attrs[GEMM_trans_b]) {
    diag_error(ds, DIAG_mma_major, op->span, "operand %s is stored [k, n]; only [n, k] is supported yet",
               label(op->args[1]));
    diag_hint(ds, "store it as [n, k] and write transpose_B=True");
    return false;
  }
  return true;
}

static bool check_m(const Target *target, const MmaShape *shape, const TirOp *op, Diags *ds) {
  int64_t m = op->args[2]->type.shape[0];
  if (m > 0 && m % shape->m[0] == 0) return true;
  diag_error(ds, DIAG_mma_m, op->span, "M = %lld is not made of %d rows; %s multiplies %d rows at a time",
             (long long)m, shape->m[0], target->name, shape->m[0]);
  diag_hint(ds,
            "make the tile %lld rows high; rows past the end of the tensor read zeros and are not written",
            (long long)(m + shape->m[0] - 1) / shape->m[0] * shape->m[0]);
  return false;
}

static bool check_n(const Target *target, const MmaShape *shape, const TirOp *op, Diags *ds) {
  int64_t n = op->args[2]->type.shape[1];
  if (n >= shape->n_min && n % shape->n_step == 0) return true;
  diag_error(
      ds, DIAG_mma_n, op->span,
      "N = %lld is not a multiple of %d; %s takes N = %d to %d in steps of %d, and multiples of %d beyond",
      (long long)n, shape->n_step, target->name, shape->n_min, shape->n_max, shape->n_step, shape->n_step);
  return false;
}

static bool check_k(const Target *target, const MmaShape *shape, const TirOp *op, Diags *ds) {
  int64_t k = op->args[0]->type.shape[1];
  if (k > 0 && k % shape->k_atom == 0) return true;
  diag_error(ds, DIAG_mma_k, op->span,
             "K = %lld is not a multiple of %d, the elements of %s that one instruction of %s takes",
             (long long)k, shape->k_atom, dtype_name(shape->a), target->name);
  diag_hint(ds, "use a tile with K = %lld; columns past the end of the tensor read zeros",
            (long long)(k + shape->k_atom - 1) / shape->k_atom * shape->k_atom);
  return false;
}

// Where a slice starts, as far as it is known.
static const char *start_text(TirRange start, char out[32]) {
  if (start.lo != start.hi) return "a value that cannot be proven to be one";
  snprintf(out, 32, "%lld", (long long)start.lo);
  return out;
}

// A slice of a shared operand must start on a swizzle atom (8 rows) and on a K atom; leading dimensions count
// in rows.
static bool check_operand_slice(const MmaShape *shape, const TirOp *op, int i, Diags *ds) {
  RuleTile tile = rule_tile(op->args[i]);
  int rank = tile.root->type.rank;
  int64_t rows = 0, columns = tile.start[tile.dim[1]].multiple, stride = 1;
  for (int d = rank - 2; d >= 0; stride *= tile.root->type.shape[d--])
    rows = tir_gcd(rows, tile.start[d].multiple * stride);
  bool in_place = tile.dim[0] == rank - 2 && tile.dim[1] == rank - 1;
  if (in_place && rows % 8 == 0 && columns % shape->k_atom == 0) return true;
  char row[32], column[32];
  diag_error(ds, DIAG_mma_slice, op->span,
             "the slice of %s must start at a multiple of 8 rows and of %d columns, in its last two "
             "dimensions; it starts at row %s and column %s",
             label(tile.root), shape->k_atom, start_text(tile.start[tile.dim[0]], row),
             start_text(tile.start[tile.dim[1]], column));
  return false;
}

static bool check_accumulator_slice(const MmaShape *shape, const TirOp *op, Diags *ds) {
  RuleTile tile = rule_tile(op->args[2]);
  if (tile.start[0].multiple % shape->m[0] == 0 && tile.start[1].multiple % shape->n_min == 0) return true;
  char row[32], column[32];
  diag_error(ds, DIAG_mma_slice, op->span,
             "the slice of %s must start at a multiple of %d rows and of %d columns; it starts at row %s and "
             "column %s",
             label(tile.root), shape->m[0], shape->n_min, start_text(tile.start[0], row),
             start_text(tile.start[1], column));
  return false;
}

bool rule_gemm(const Target *target, TirOp *op, bool variant_tma, Diags *ds) {
  (void)variant_tma;
  if (!check_spaces(target, op, ds) || !check_triple(target, op, ds) || !check_major(op, ds)) return false;
  const MmaShape *shape =
      target_find_mma(target, op->args[0]->type.dtype, op->args[1]->type.dtype, op->args[2]->type.dtype);
  bool ok = check_m(target, shape, op, ds);
  ok = check_n(target, shape, op, ds) && ok;
  ok = check_k(target, shape, op, ds) && ok;
  for (int i = 0; i < 2; i++) ok = check_operand_slice(shape, op, i, ds) && ok;
  ok = check_accumulator_slice(shape, op, ds) && ok;
  if (ok) op->attrs[GEMM_path] = PATH_MMA;
  return ok;
}

// reduce: dst is src with one dimension folded into one value by an associative function; without `clear` what dst
// holds is folded in too. Where threads of several warps share a row, dst is shared memory with one more dimension: a
// partial result for each group of threads that cannot meet by shuffles.
#include <inttypes.h>

#include "ops/ops.h"
#include "ops/ops_internal.h"

static const char *const kinds[] = {"sum", "max", "min", "abssum", "absmax", "and", "or", "xor", NULL};

DType op_reduce_type(DType dtype) {
  if (dtype_is_float(dtype)) return DTYPE_f32;
  return dtype_class(dtype) == DTYPE_CLASS_SIGNED ? DTYPE_i32 : DTYPE_u32;
}

static bool check_types(const OpCall *call) {
  DType src = call->types[0]->dtype, dst = call->types[1]->dtype;
  bool bits = call->attrs[REDUCE_kind] >= REDUCE_AND;
  bool ok = src != DTYPE_bool && dst != DTYPE_bool && dtype_bits(src) >= 8 && dtype_bits(src) <= 32 &&
            dtype_is_float(src) == dtype_is_float(dst);
  if (dtype_is_float(src)) ok = ok && !bits && dtype_bits(src) >= 16 && dtype_bits(dst) >= 16;
  if (ok) return true;
  diag_error(call->ds, DIAG_operand_type, call->span,
             "reduce (%s) cannot fold %s, which holds %s, into %s, which holds %s: it takes %s",
             kinds[call->attrs[REDUCE_kind]], op_operand_name(call, 0), dtype_name(src),
             op_operand_name(call, 1), dtype_name(dst),
             bits ? "integers" : "floats of 16 or 32 bits to such, and integers to integers");
  return false;
}

// Whether dst's extents are src's without the folded dimension, or with 1 in its place.
static bool extents_fit(const Type *src, const Type *dst, int dim, bool partial) {
  int n = 0;
  bool same_rank = dst->rank == src->rank && !partial;
  for (int d = 0; d < src->rank; d++) {
    if (d == dim && !same_rank) continue;
    if (n == dst->rank || dst->shape[n] != (d == dim ? 1 : src->shape[d])) return false;
    n++;
  }
  if (n == 0) return dst->rank == 1 && (partial || dst->shape[0] == 1);
  return n == dst->rank - partial;
}

static bool check_reduce(const OpCall *call) {
  const Type *src = call->types[0], *dst = call->types[1];
  int64_t dim = call->attrs[REDUCE_dim];
  if (dim < 0 || dim >= src->rank) {
    diag_error(call->ds, DIAG_operand_rank, call->span, "dimension %" PRId64 " of %s, which has %d", dim,
               op_operand_name(call, 0), src->rank);
    return false;
  }
  if (!check_types(call)) return false;
  if (type_is_static(src) && extents_fit(src, dst, (int)dim, dst->space == SPACE_SHARED)) return true;
  diag_error(call->ds, DIAG_shapes_disagree, call->span,
             "%s is %s, %s is %s: without dimension %" PRId64 " the extents differ", op_operand_name(call, 0),
             op_shape_text(src).text, op_operand_name(call, 1), op_shape_text(dst).text, dim);
  return false;
}

const OpDef op_reduce = {
    .name = "reduce",
    .group = GROUP_TILE,
    .operands =
        {
            {.name = "src", .access = READS, .spaces = IN_FRAGMENT},
            {.name = "dst", .access = READS | WRITES, .spaces = IN_FRAGMENT | IN_SHARED},
        },
    .noperands = 2,
    .attrs = {{.name = "path", .kind = ATTR_ENUM, .names = op_path_names},
              {.name = "kind", .kind = ATTR_ENUM, .names = kinds},
              {.name = "dim"},
              {.name = "clear", .kind = ATTR_BOOL, .initial = 1}},
    .check = check_reduce,
};

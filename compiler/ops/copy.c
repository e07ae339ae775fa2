// copy: dst = cast(src), over tiles of one shape. Which pairs of spaces have a path is the target's business.
#include "ops/ops.h"

#include <inttypes.h>

#include "ops/ops_internal.h"

static bool check_dtypes(const OpCall *call) {
  DType src = call->types[0]->dtype, dst = call->types[1]->dtype;
  if (src == dst || (src != DTYPE_bool && dst != DTYPE_bool)) return true;
  diag_error(call->ds, DIAG_operand_type, call->span, "copy cannot convert %s (%s) to %s (%s)",
             op_operand_name(call, 0), dtype_name(src), op_operand_name(call, 1), dtype_name(dst));
  return false;
}

static bool check_static(const OpCall *call, int i) {
  if (type_is_static(call->types[i])) return true;
  diag_error(call->ds, DIAG_shapes_disagree, call->spans[i],
             "%s is %s: the extents of a copy must be known at compile time; take a tile of it",
             op_operand_name(call, i), op_shape_text(call->types[i]).text);
  return false;
}

static bool check_copy(const OpCall *call) {
  const Type *src = call->types[0], *dst = call->types[1];
  if (!check_dtypes(call)) return false;
  if (src->rank != dst->rank) {
    diag_error(call->ds, DIAG_shapes_disagree, call->span, "%s is %s, %s is %s: their ranks are %d and %d",
               op_operand_name(call, 0), op_shape_text(src).text, op_operand_name(call, 1),
               op_shape_text(dst).text, src->rank, dst->rank);
    return false;
  }
  if (!check_static(call, 0) || !check_static(call, 1)) return false;
  for (int d = 0; d < src->rank; d++) {
    if (src->shape[d] == dst->shape[d]) continue;
    diag_error(call->ds, DIAG_shapes_disagree, call->span,
               "%s is %s, %s is %s: dimension %d is %" PRId64 " and %" PRId64, op_operand_name(call, 0),
               op_shape_text(src).text, op_operand_name(call, 1), op_shape_text(dst).text, d, src->shape[d],
               dst->shape[d]);
    return false;
  }
  return true;
}

const OpDef op_copy = {
    .name = "copy",
    .group = GROUP_TILE,
    .operands =
        {
            {.name = "src", .access = READS, .spaces = IN_MEMORY},
            {.name = "dst", .access = WRITES, .spaces = IN_MEMORY},
            {.name = "barrier", .access = READS | WRITES, .spaces = IN_BARRIER, .optional = true},
            // Of PATH_PANELS: slots x rows x columns of a panel. No access of anybody else meets those of this op.
            {.name = "ring", .spaces = IN_SHARED, .optional = true},
        },
    .noperands = 4,
    .attrs = {{.name = "path", .kind = ATTR_ENUM, .names = op_path_names},
              {.name = "map", .initial = -1},
              {.name = "bounded", .kind = ATTR_BOOL},
              {.name = "explicit", .kind = ATTR_BOOL},
              {.name = "panel", .initial = -1},
              {.name = "late", .kind = ATTR_BOOL},
              {.name = "no_tma", .kind = ATTR_BOOL}},
    .check = check_copy,
};

// fill: every element of dst becomes one scalar.
#include "ops/ops.h"

#include "ops/ops_internal.h"

static bool check_fill(const OpCall *call) {
  const Type *dst = call->types[0], *value = call->types[1];
  if (!type_is_static(dst)) {
    diag_error(call->ds, DIAG_shapes_disagree, call->spans[0],
               "%s is %s: the extents of a fill must be known at compile time; take a tile of it",
               op_operand_name(call, 0), op_shape_text(dst).text);
    return false;
  }
  if (value->kind == TYPE_SCALAR && value->dtype == dst->dtype) return true;
  diag_error(call->ds, DIAG_operand_type, call->spans[1],
             "fill of %s, which holds %s, needs a value of that type%s%s", op_operand_name(call, 0),
             dtype_name(dst->dtype), value->kind == TYPE_SCALAR ? ", not " : "",
             value->kind == TYPE_SCALAR ? dtype_name(value->dtype) : "");
  return false;
}

const OpDef op_fill = {
    .name = "fill",
    .group = GROUP_TILE,
    .operands =
        {
            {.name = "dst", .access = WRITES, .spaces = IN_MEMORY},
            {.name = "value"},
        },
    .noperands = 2,
    .attrs = {{.name = "path", .kind = ATTR_ENUM, .names = op_path_names}},
    .check = check_fill,
};

// gemm: c = (clear ? 0 : c) + a @ b, a[m, k] and b[k, n], each transposed on request. Which triples of
// element types and which extents an MMA takes is the target's business.
#include "ops/ops.h"

#include "ops/ops_internal.h"

enum { OPERAND_a, OPERAND_b, OPERAND_c, OPERAND_barrier, OPERAND_clear };

static bool check_dtypes(const OpCall *call) {
  DType a = call->types[OPERAND_a]->dtype, b = call->types[OPERAND_b]->dtype;
  if (a != DTYPE_bool && b != DTYPE_bool && dtype_is_float(a) == dtype_is_float(b)) return true;
  diag_error(call->ds, DIAG_operand_type, call->span, "gemm cannot multiply %s (%s) by %s (%s)",
             op_operand_name(call, OPERAND_a), dtype_name(a), op_operand_name(call, OPERAND_b),
             dtype_name(b));
  return false;
}

static bool check_clear(const OpCall *call) {
  const Type *clear = call->types[OPERAND_clear];
  if (!clear || (clear->kind == TYPE_SCALAR && clear->dtype == DTYPE_bool)) return true;
  diag_error(call->ds, DIAG_operand_type, call->spans[OPERAND_clear],
             "operand clear of gemm must be a boolean");
  return false;
}

static bool check_barrier(const OpCall *call) {
  const Type *barrier = call->types[OPERAND_barrier];
  if (!barrier || (barrier->rank == 1 && barrier->shape[0] == 1)) return true;
  diag_error(call->ds, DIAG_operand_type, call->spans[OPERAND_barrier],
             "%s holds %s barriers; gemm arrives on one: index it", op_operand_name(call, OPERAND_barrier),
             op_shape_text(barrier).text);
  return false;
}

static bool check_gemm(const OpCall *call) {
  if (!check_dtypes(call) || !check_clear(call) || !check_barrier(call)) return false;
  for (int i = OPERAND_a; i <= OPERAND_c; i++) {
    if (type_is_static(call->types[i])) continue;
    diag_error(call->ds, DIAG_shapes_disagree, call->spans[i],
               "%s is %s: the extents of a gemm must be known at compile time", op_operand_name(call, i),
               op_shape_text(call->types[i]).text);
    return false;
  }
  return true;
}

const OpDef op_gemm = {
    .name = "gemm",
    .group = GROUP_TILE,
    .operands =
        {
            {.name = "a",
             .access = READS,
             .spaces = IN_SHARED | IN_TMEM | IN_FRAGMENT,
             .index = "mk",
             .transposed_by = "trans_a"},
            {.name = "b",
             .access = READS,
             .spaces = IN_SHARED | IN_TMEM,
             .index = "kn",
             .transposed_by = "trans_b"},
            {.name = "c", .access = ACCUMULATES, .spaces = IN_TMEM | IN_FRAGMENT, .index = "mn"},
            {.name = "barrier", .access = READS | WRITES, .spaces = IN_BARRIER, .optional = true},
            {.name = "clear", .optional = true},
        },
    .noperands = 5,
    .attrs = {{.name = "path", .kind = ATTR_ENUM, .names = op_path_names},
              {.name = "trans_a", .kind = ATTR_BOOL},
              {.name = "trans_b", .kind = ATTR_BOOL},
              {.name = "explicit", .kind = ATTR_BOOL}},
    .check = check_gemm,
};

// Atomic access to elements, and atomic_add of a whole tile: which element types and orders there are. What PTX
// has is the same on every target (PTX ISA 9.7.13.13 and 9.7.13.14): integers of 32 and 64 bits add and compare,
// f32, f16 and bf16 add. max and min of f32 are made of those of integers.
#include "ops/ops_internal.h"

const char *const op_order_names[] = {"relaxed", "acquire", "release", "acq_rel", "seq_cst", NULL};

static bool is_wide_integer(DType dtype) {
  return !dtype_is_float(dtype) && dtype != DTYPE_bool && dtype_bits(dtype) >= 32;
}

bool op_check_atomic_type(const OpCall *call, AtomicOp op) {
  static const char *const verbs[] = {"added to", "compared with", "compared with"};
  int dst = call->kind == OP_atomic_add;
  DType dtype = call->types[dst]->dtype;
  bool half = dtype == DTYPE_f16 || dtype == DTYPE_bf16;
  if (is_wide_integer(dtype) || dtype == DTYPE_f32 || (half && op == ATOMIC_ADD)) return true;
  diag_error(call->ds, DIAG_operand_type, call->spans[dst],
             "elements of %s are %s; atomically %s are i32, u32%s and f32", op_operand_name(call, dst),
             dtype_name(dtype), verbs[op], op == ATOMIC_ADD ? ", f16, bf16" : "");
  return false;
}

static bool check_order(const OpCall *call) {
  static const unsigned legal[2] = {
      1u << ORDER_RELAXED | 1u << ORDER_ACQUIRE | 1u << ORDER_SEQ_CST,
      1u << ORDER_RELAXED | 1u << ORDER_RELEASE | 1u << ORDER_SEQ_CST,
  };
  int64_t order = call->attrs[ATOMIC_order];
  bool load = call->kind == OP_atomic_load;
  if (call->kind == OP_atomic || legal[!load] >> order & 1) return true;
  diag_error(call->ds, DIAG_value_kind, call->span,
             "an atomic %s has no order '%s'; it has relaxed, %s and seq_cst", load ? "load" : "store",
             op_order_names[order], load ? "acquire" : "release");
  return false;
}

bool op_check_atomic(const OpCall *call) {
  if (call->kind == OP_atomic) return op_check_atomic_type(call, (AtomicOp)call->attrs[ATOMIC_op]);
  if (dtype_bytes(call->types[0]->dtype) > 0) return check_order(call);
  diag_error(call->ds, DIAG_operand_type, call->spans[0],
             "elements of %s are %s, narrower than a byte: there is no atomic access to them",
             op_operand_name(call, 0), dtype_name(call->types[0]->dtype));
  return false;
}

static bool check_atomic_add(const OpCall *call) {
  return op_copy.check(call) && op_check_atomic_type(call, ATOMIC_ADD);
}

const OpDef op_atomic_add = {
    .name = "atomic_add",
    .group = GROUP_TILE,
    .operands =
        {
            {.name = "value", .access = READS, .spaces = IN_GLOBAL | IN_SHARED | IN_FRAGMENT | IN_TMEM},
            {.name = "dst", .access = READS | WRITES | ATOMIC, .spaces = IN_GLOBAL | IN_SHARED},
        },
    .noperands = 2,
    .attrs = {{.name = "path", .kind = ATTR_ENUM, .names = op_path_names},
              {.name = "map", .initial = -1},
              {.name = "bounded", .kind = ATTR_BOOL}},
    .check = check_atomic_add,
};

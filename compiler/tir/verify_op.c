// What the operands and results of each core op must be. Tile ops answer for themselves with the check that
// the user's calls went through.
#include <inttypes.h>

#include "tir/fold.h"
#include "tir/roles.h"
#include "tir/verify_internal.h"

enum { MAX_BUFFER_ELEMENTS = INT32_MAX, MAX_BARRIER_COUNT = (1 << 20) - 1 };  // PTX ISA 9.7.13.15.2

static const Type *arg_type(const TirOp *op, int i) {
  return i < op->nargs && op->args[i] ? &op->args[i]->type : NULL;
}

static bool is_scalar(const Type *type, DType dtype) {
  return type && type->kind == TYPE_SCALAR && type->dtype == dtype;
}

static bool is_int_scalar(const Type *type) {
  return type && type->kind == TYPE_SCALAR && dtype_is_int(type->dtype);
}

static bool all_i32(const TirOp *op, int first) {
  for (int i = first; i < op->nargs; i++)
    if (!is_scalar(arg_type(op, i), DTYPE_i32)) return false;
  return true;
}

// ---- launch block

static bool verify_tensor(Verifier *v, const TirOp *op) {
  const Type *type = &op->results[0]->type;
  if (type->kind != TYPE_BUFFER || type->space != SPACE_GLOBAL || type->rank != op->nargs || !all_i32(op, 0))
    return verify_fail(v, op, "takes one i32 a dimension and gives a global buffer");
  for (int i = 0; i < type->rank; i++) {
    int64_t size = DIM_DYNAMIC;
    tir_const_int(op->args[i], &size);
    if (size != type->shape[i]) return verify_fail(v, op, "dimension %d is not what its operand says", i);
  }
  return true;
}

static bool verify_grid(Verifier *v, const TirOp *op) {
  if (op->nargs >= 1 && op->nargs <= 3 && all_i32(op, 0)) return true;
  return verify_fail(v, op, "takes one to three i32");
}

static bool verify_launch_op(Verifier *v, const TirOp *op) {
  if (op->kind == OP_tensor) return verify_tensor(v, op);
  if (op->kind == OP_grid) return verify_grid(v, op);
  if (op->kind == OP_check)
    return is_scalar(arg_type(op, 0), DTYPE_bool) || verify_fail(v, op, "takes a bool");
  if (op->kind == OP_size)
    return is_scalar(&op->results[0]->type, DTYPE_i32) || verify_fail(v, op, "is an i32");
  return op->results[0]->type.kind == TYPE_SCALAR || verify_fail(v, op, "is a scalar");
}

// ---- values

static bool takes_dtype(OpKind kind, DType dtype) {
  bool is_float = dtype_is_float(dtype), boolean = dtype == DTYPE_bool;
  if (kind == OP_floordiv || kind == OP_floormod || kind == OP_truncdiv || kind == OP_truncmod ||
      kind == OP_ceildiv || kind == OP_shl || kind == OP_shr)
    return dtype_is_int(dtype);
  if (kind == OP_and || kind == OP_or || kind == OP_xor || kind == OP_not) return !is_float;
  if (kind == OP_div) return is_float;
  if (kind == OP_eq || kind == OP_ne) return true;
  if (op_def(kind)->group == GROUP_UNARY && kind != OP_neg && kind != OP_abs) return is_float;
  return !boolean;
}

static bool verify_arithmetic(Verifier *v, const TirOp *op) {
  const Type *operand = arg_type(op, 0);
  for (int i = 0; i < op->nargs; i++)
    if (arg_type(op, i)->kind != TYPE_SCALAR || !type_equal(arg_type(op, i), operand))
      return verify_fail(v, op, "takes scalars of one type");
  if (!takes_dtype(op->kind, operand->dtype))
    return verify_fail(v, op, "does not take %s", dtype_name(operand->dtype));
  Type result = op_def(op->kind)->group == GROUP_COMPARE ? type_scalar(DTYPE_bool) : *operand;
  return type_equal(&op->results[0]->type, &result) || verify_fail(v, op, "has a result of the wrong type");
}

static bool verify_const(Verifier *v, const TirOp *op) {
  const Type *type = &op->results[0]->type;
  if (type->kind != TYPE_SCALAR) return verify_fail(v, op, "is a scalar");
  if (dtype_is_float(type->dtype) || fold_fits(type->dtype, op->attrs[CONST_bits])) return true;
  return verify_fail(v, op, "%" PRId64 " is no %s", op->attrs[CONST_bits], dtype_name(type->dtype));
}

static bool verify_value(Verifier *v, const TirOp *op) {
  const Type *result = &op->results[0]->type;
  if (op->kind == OP_const) return verify_const(v, op);
  bool of_grid = op->kind == OP_block_idx || op->kind == OP_block_count;
  if (of_grid && (op->attrs[INDEX_dim] < 0 || op->attrs[INDEX_dim] > 2))
    return verify_fail(v, op, "dim is 0, 1 or 2");
  if (of_grid || op->kind == OP_thread_idx)
    return is_scalar(result, DTYPE_i32) || verify_fail(v, op, "is an i32");
  if (op->kind == OP_cast)
    return (arg_type(op, 0)->kind == TYPE_SCALAR && result->kind == TYPE_SCALAR) ||
           verify_fail(v, op, "takes a scalar to a scalar");
  bool ok = is_scalar(arg_type(op, 0), DTYPE_bool) && result->kind == TYPE_SCALAR &&
            type_equal(arg_type(op, 1), result) && type_equal(arg_type(op, 2), result);
  return ok || verify_fail(v, op, "takes a bool and two scalars of the result's type");
}

// ---- control

static bool is_bool_cell(const Type *type) {
  return type && type->kind == TYPE_CELL && type->dtype == DTYPE_bool;
}

static bool verify_for(Verifier *v, const TirOp *op) {
  const Type *variable = &op->results[0]->type;
  for (int i = 0; i < FOR_GO; i++)
    if (!is_int_scalar(arg_type(op, i)) || !type_equal(arg_type(op, i), variable))
      return verify_fail(v, op, "takes integers of its variable's type");
  int64_t step;
  if (tir_const_int(op->args[FOR_STEP], &step) && step == 0) return verify_fail(v, op, "has a step of 0");
  if (op->args[FOR_GO] && !is_bool_cell(arg_type(op, FOR_GO)))
    return verify_fail(v, op, "goes on by a bool cell");
  if (op->attrs[FOR_stages] < 0) return verify_fail(v, op, "has fewer than no stages");
  return true;
}

static bool verify_parallel(Verifier *v, const TirOp *op) {
  if (op->nargs < 1 || op->nargs > TYPE_MAX_RANK || !all_i32(op, 0))
    return verify_fail(v, op, "takes one to five i32");
  for (int i = 0; i < op->nresults; i++)
    if (!is_scalar(&op->results[i]->type, DTYPE_i32)) return verify_fail(v, op, "its variables are i32");
  return true;
}

static const TirOp *role_before(const TirOp *op) {
  do op = op->prev;
  while (op && op->kind != OP_role);
  return op;
}

// No thread runs two arms of one branch: passes order nothing between them, and code jumps from the end of one past the others.
static bool verify_arm(Verifier *v, const TirOp *op) {
  int64_t lo = op->attrs[ROLE_lo], hi = op->attrs[ROLE_hi];
  for (const TirOp *arm = op; arm && arm->attrs[ROLE_arm];) {
    arm = role_before(arm);
    if (!arm || arm->attrs[ROLE_hi] <= lo || arm->attrs[ROLE_lo] >= hi) continue;
    verify_fail(v, op,
                "has threads %" PRId64 " to %" PRId64 ", and an arm of the same branch has %" PRId64
                " to %" PRId64,
                lo, hi - 1, arm->attrs[ROLE_lo], arm->attrs[ROLE_hi] - 1);
    diag_note(v->ds, arm->span, "that arm is here");
    return false;
  }
  return true;
}

// A role narrows the threads that run it, and they are not parted in any other way.
static bool verify_role(Verifier *v, const TirOp *op) {
  TirThreads around = tir_active_threads(op->parent);
  int64_t lo = op->attrs[ROLE_lo], hi = op->attrs[ROLE_hi];
  if (lo < around.lo || hi > around.hi || lo >= hi)
    return verify_fail(
        v, op, "has threads %" PRId64 " to %" PRId64 ", which are no part of the active ones, %d to %d", lo,
        hi - 1, around.lo, around.hi - 1);
  for (const TirOp *at = tir_parent(op); at; at = tir_parent(at))
    if (at->kind == OP_parallel || at->kind == OP_one_thread)
      return verify_fail(v, op, "cannot stand in %s", op_def(at->kind)->name);
  return verify_arm(v, op);
}

static bool verify_control(Verifier *v, const TirOp *op) {
  if (op->kind == OP_for) return verify_for(v, op);
  if (op->kind == OP_role) return verify_role(v, op);
  if (op->kind == OP_while)
    return is_bool_cell(arg_type(op, 0)) || verify_fail(v, op, "goes on by a bool cell");
  if (op->kind == OP_parallel) return verify_parallel(v, op);
  if (op->kind == OP_if) return is_scalar(arg_type(op, 0), DTYPE_bool) || verify_fail(v, op, "takes a bool");
  return true;
}

// ---- memory

static bool verify_alloc(Verifier *v, const TirOp *op) {
  const Type *type = &op->results[0]->type;
  bool place = type->kind == TYPE_BUFFER && (type->space == SPACE_SHARED || type->space == SPACE_FRAGMENT ||
                                             type->space == SPACE_TMEM || type->space == SPACE_LOCAL);
  if (!place) return verify_fail(v, op, "gives a shared, fragment, TMEM or local buffer");
  if (type->rank < 1 || !type_is_static(type) || type_elements(type) < 1 ||
      type_elements(type) > MAX_BUFFER_ELEMENTS)
    return verify_fail(v, op, "has no extents, extents known only at launch, or too large ones");
  const Type *base = arg_type(op, 0);
  if (base && (type->space != SPACE_TMEM || !is_scalar(base, DTYPE_u32)))
    return verify_fail(v, op, "only a TMEM buffer has a base, a u32");
  return true;
}

static bool verify_alloc_barrier(Verifier *v, const TirOp *op) {
  const Type *type = &op->results[0]->type;
  if (type->kind != TYPE_BUFFER || type->space != SPACE_BARRIER || type->dtype != DTYPE_u64 ||
      type->rank != 1)
    return verify_fail(v, op, "gives u64[n] barrier");
  if (op->nlist < 1 || op->nlist != type->shape[0]) return verify_fail(v, op, "has one count a barrier");
  for (int i = 0; i < op->nlist; i++)
    if (op->list[i] < 1 || op->list[i] > MAX_BARRIER_COUNT)
      return verify_fail(v, op, "count %" PRId64 " is not from 1 to %d", op->list[i], MAX_BARRIER_COUNT);
  return true;
}

static bool view_dimension(Verifier *v, const TirOp *op, int d, int64_t extent) {
  int64_t offset, whole = arg_type(op, 0)->shape[d];
  if (extent < 0 && whole >= 0) return verify_fail(v, op, "dimension %d has no extent", d);
  if (!tir_const_int(op->args[1 + d], &offset) || arg_type(op, 0)->space == SPACE_GLOBAL) return true;
  if (offset >= 0 && offset + extent <= whole) return true;
  return verify_fail(v, op, "elements %" PRId64 " to %" PRId64 " of dimension %d, which has %" PRId64, offset,
                     offset + extent - 1, d, whole);
}

static bool verify_view(Verifier *v, const TirOp *op) {
  const Type *source = arg_type(op, 0), *result = &op->results[0]->type;
  if (op->nargs != 1 + source->rank || !all_i32(op, 1))
    return verify_fail(v, op, "takes one i32 a dimension");
  if (result->kind != TYPE_BUFFER || result->dtype != source->dtype || result->space != source->space ||
      result->rank < 1)
    return verify_fail(v, op, "gives a buffer of the same type and space");
  int next = 0;
  for (int d = 0; d < source->rank; d++) {
    bool dropped = (op->attrs[VIEW_drop] >> d & 1) != 0;
    if (!dropped && next == result->rank) return verify_fail(v, op, "has fewer dimensions than it keeps");
    if (!view_dimension(v, op, d, dropped ? 1 : result->shape[next])) return false;
    next += !dropped;
  }
  return (next == result->rank && op->attrs[VIEW_drop] >> source->rank == 0) ||
         verify_fail(v, op, "has more dimensions than it keeps");
}

static bool verify_reshape(Verifier *v, const TirOp *op) {
  const Type *source = arg_type(op, 0), *result = &op->results[0]->type;
  OpKind made_by = op->args[0]->op->kind;
  if (made_by != OP_alloc && made_by != OP_reshape) return verify_fail(v, op, "takes a whole buffer");
  if (result->kind != TYPE_BUFFER || result->space != source->space || result->rank < 1)
    return verify_fail(v, op, "gives a buffer of the same space");
  if (!type_is_static(result) || type_elements(result) < 1 || type_elements(result) > MAX_BUFFER_ELEMENTS)
    return verify_fail(v, op, "has no extents, extents known only at launch, or too large ones");
  return type_elements(result) * dtype_bits(result->dtype) ==
             type_elements(source) * dtype_bits(source->dtype) ||
         verify_fail(v, op, "gives a buffer of as many bits");
}

static bool verify_access(Verifier *v, const TirOp *op, const Type *element, int first_index) {
  const Type *buffer = arg_type(op, 0);
  if (op->nargs - first_index != buffer->rank || !all_i32(op, first_index))
    return verify_fail(v, op, "takes one i32 a dimension");
  if (!is_scalar(element, buffer->dtype))
    return verify_fail(v, op, "the element is a %s", dtype_name(buffer->dtype));
  return true;
}

static bool verify_cell(Verifier *v, const TirOp *op) {
  const Type *cell = op->kind == OP_cell ? &op->results[0]->type : arg_type(op, 0);
  const Type *value = op->kind == OP_cell  ? arg_type(op, 0)
                      : op->kind == OP_get ? &op->results[0]->type
                                           : arg_type(op, 1);
  if (!cell || cell->kind != TYPE_CELL) return verify_fail(v, op, "takes a cell");
  if (op->kind == OP_cell && !value) return true;
  return is_scalar(value, cell->dtype) || verify_fail(v, op, "the cell holds a %s", dtype_name(cell->dtype));
}

// Every value is a number; there is one for each conversion of the format.
static bool verify_print(Verifier *v, const TirOp *op) {
  int conversions = 0;
  for (const char *p = op->name ? op->name : ""; *p; p++) {
    if (*p != '%') continue;
    if (p[1] == '%')
      p++;
    else
      conversions++;
  }
  for (int i = 0; i < op->nargs; i++)
    if (op->args[i]->type.kind != TYPE_SCALAR) return verify_fail(v, op, "prints numbers");
  return conversions == op->nargs ||
         verify_fail(v, op, "the text has %d conversions for %d values", conversions, op->nargs);
}

static bool verify_memory(Verifier *v, const TirOp *op) {
  const OpDef *def = op_def(op->kind);
  const Type *buffer = def->operands[0].spaces ? arg_type(op, 0) : NULL;
  if (def->operands[0].spaces &&
      (!buffer || buffer->kind != TYPE_BUFFER || !(def->operands[0].spaces & 1u << buffer->space)))
    return verify_fail(v, op, "cannot take that operand, or not from that space");
  if (op->kind == OP_print) return verify_print(v, op);
  if (op->kind == OP_trap) return true;
  if (op->kind == OP_alloc) return verify_alloc(v, op);
  if (op->kind == OP_alloc_barrier) return verify_alloc_barrier(v, op);
  if (op->kind == OP_view) return verify_view(v, op);
  if (op->kind == OP_reshape) return verify_reshape(v, op);
  if (op->kind == OP_load) return verify_access(v, op, &op->results[0]->type, 1);
  if (op->kind == OP_store || op->kind == OP_atomic_store) return verify_access(v, op, arg_type(op, 1), 2);
  if (op->kind == OP_atomic_load) return verify_access(v, op, &op->results[0]->type, 1);
  if (op->kind == OP_atomic)
    return is_scalar(&op->results[0]->type, buffer->dtype) ? verify_access(v, op, arg_type(op, 1), 2)
                                                           : verify_fail(v, op, "the result is an element");
  return verify_cell(v, op);
}

// ---- synchronisation

static bool verify_barrier(Verifier *v, const TirOp *op) {
  const Type *barrier = arg_type(op, 0);
  if (!barrier || barrier->kind != TYPE_BUFFER || barrier->space != SPACE_BARRIER)
    return verify_fail(v, op, "takes a barrier");
  bool one = op->kind == OP_mbar_init || (barrier->rank == 1 && barrier->shape[0] == 1);
  return one || verify_fail(v, op, "takes one barrier, not an array");
}

static bool verify_tmem(Verifier *v, const TirOp *op) {
  int64_t columns = op->attrs[TMEM_columns];
  const Type *operand = arg_type(op, 0);
  if (columns < 32 || columns > 512 || (columns & (columns - 1)))
    return verify_fail(v, op, "columns are a power of two from 32 to 512");
  bool slot = operand->kind == TYPE_BUFFER && operand->space == SPACE_SHARED && operand->dtype == DTYPE_u32 &&
              operand->rank == 1 && operand->shape[0] == 1;
  bool ok = op->kind == OP_tmem_alloc ? slot : is_scalar(operand, DTYPE_u32);
  return ok || verify_fail(v, op, "takes %s", op->kind == OP_tmem_alloc ? "u32[1] shared" : "a u32");
}

// PTX ISA 9.7.13.1: 16 barriers, whole warps; barrier 0 without a count is that of all threads.
static bool verify_sync_threads(Verifier *v, const TirOp *op) {
  int64_t id = op->attrs[SYNC_id], count = op->attrs[SYNC_count];
  bool all = id == 0 && count == 0, named = id >= 1 && id <= 15 && count >= 32 && count <= 1024;
  if (all || (named && count % 32 == 0)) return true;
  return verify_fail(v, op,
                     "barrier %" PRId64 " of %" PRId64 " threads: ids are 1 to 15, counts multiples of 32",
                     id, count);
}

static bool verify_mma_wait(Verifier *v, const TirOp *op) {
  const Type *c = arg_type(op, 0);
  bool whole = c->kind == TYPE_BUFFER && c->space == SPACE_FRAGMENT && op->args[0]->op->kind == OP_alloc;
  if (!whole) return verify_fail(v, op, "takes a whole fragment");
  return op->attrs[MMA_WAIT_pending] >= 0 || verify_fail(v, op, "pending is not negative");
}

static bool is_only_one(const Verifier *v, const TirOp *op) {
  for (const TirOp *other = v->kernel->body->first; other; other = other->next)
    if (other != op && other->kind == op->kind) return false;
  return true;
}

// Every thread of every block comes to it, once.
static bool verify_grid_order(Verifier *v, const TirOp *op) {
  if (op->parent != v->kernel->body) return verify_fail(v, op, "stands in no loop, branch or role");
  return is_only_one(v, op) || verify_fail(v, op, "stands once in a kernel");
}

static bool verify_sync(Verifier *v, const TirOp *op) {
  const OpDef *def = op_def(op->kind);
  if (op->kind == OP_grid_wait || op->kind == OP_grid_release) return verify_grid_order(v, op);
  if (op->kind == OP_sync_threads) return verify_sync_threads(v, op);
  if (op->kind == OP_wait) return arg_type(op, 0)->kind == TYPE_TOKEN || verify_fail(v, op, "takes a token");
  if (op->kind == OP_mma_wait) return verify_mma_wait(v, op);
  if (op->kind == OP_tmem_alloc || op->kind == OP_tmem_dealloc) return verify_tmem(v, op);
  if (op->kind == OP_tmem_release)
    return (arg_type(op, 0)->kind == TYPE_BUFFER && arg_type(op, 0)->space == SPACE_TMEM) ||
           verify_fail(v, op, "takes a TMEM buffer");
  if (op->kind == OP_bulk_wait && op->attrs[BULK_pending] < 0)
    return verify_fail(v, op, "pending is not negative");
  if (def->noperands == 0) return true;
  if (!verify_barrier(v, op)) return false;
  return op->nargs < 2 || is_int_scalar(arg_type(op, 1)) ||
         verify_fail(v, op, "%s is an integer", def->operands[1].name);
}

// ---- tile ops

static bool verify_tile(Verifier *v, const TirOp *op) {
  OpCall call = {.kind = op->kind, .nargs = op->nargs, .attrs = op->attrs, .span = op->span, .ds = v->ds};
  for (int i = 0; i < op->nargs && i < OP_MAX_OPERANDS; i++) {
    call.types[i] = arg_type(op, i);
    call.spans[i] = op->span;
    call.names[i] = op->args[i] ? op->args[i]->name : NULL;
  }
  return op_check(&call);
}

bool verify_op(Verifier *v, const TirOp *op) {
  switch (op_def(op->kind)->group) {
  case GROUP_DECLARE:
  case GROUP_LAUNCH:
    return verify_launch_op(v, op);
  case GROUP_VALUE:
    return verify_value(v, op);
  case GROUP_BINARY:
  case GROUP_COMPARE:
  case GROUP_UNARY:
    return verify_arithmetic(v, op);
  case GROUP_CONTROL:
    return verify_control(v, op);
  case GROUP_MEMORY:
    return verify_memory(v, op);
  case GROUP_SYNC:
    return verify_sync(v, op);
  case GROUP_TILE:
    return verify_tile(v, op);
  }
  return false;
}

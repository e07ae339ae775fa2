// The builder. Every pure scalar op goes through make_pure: it folds, then looks whether the operands are
// known at launch; if so the op goes to the launch block, where equal ops are made once, else to the
// insertion point.
#include "tir/build.h"

#include <assert.h>
#include <string.h>

#include "tir/fold.h"

TirBuilder tir_builder_at_end(TirModule *module, TirBlock *block, Span span) {
  return (TirBuilder){.module = module, .kernel = block->kernel, .block = block, .span = span};
}

TirBuilder tir_builder_before(TirModule *module, TirOp *op) {
  return (TirBuilder){
      .module = module, .kernel = op->parent->kernel, .block = op->parent, .before = op, .span = op->span};
}

TirBuilder tir_builder_after(TirModule *module, TirOp *op) {
  TirBuilder b = tir_builder_before(module, op);
  b.before = op->next;
  return b;
}

static void insert(TirBuilder *b, TirOp *op) {
  if (b->before)
    tir_insert_before(b->before, op);
  else
    tir_append(b->block, op);
}

static TirOp *make(TirBuilder *b, OpKind kind, int nargs, TirValue *const *args, int nresults) {
  TirOp *op = tir_op_new(b->module, b->kernel, kind, b->span, nargs, nresults);
  for (int i = 0; i < nargs; i++) op->args[i] = args[i];
  return op;
}

TirOp *tir_op(TirBuilder *b, OpKind kind, int nargs, TirValue *const *args, int nresults, const Type *types) {
  TirOp *op = make(b, kind, nargs, args, nresults);
  for (int i = 0; i < nresults; i++) op->results[i]->type = types[i];
  insert(b, op);
  return op;
}

// ---- the launch block

// Ops with the same hash, the last made first.
typedef struct LaunchOp {
  TirOp *op;
  struct LaunchOp *next;
} LaunchOp;

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
  return hash ^ hash >> 29;
}

static uint64_t hash_op(OpKind kind, Type type, int nargs, TirValue *const *args, int64_t attr, Name name) {
  uint64_t hash = mix((uint64_t)kind + 1, (uint64_t)type.kind * 64 + (uint64_t)type.dtype);
  hash = mix(mix(hash, (uint64_t)attr), (uint64_t)(uintptr_t)name);
  for (int i = 0; i < nargs; i++) hash = mix(hash, (uint64_t)args[i]->id);
  return hash | 1;
}

static bool same_op(const TirOp *op, OpKind kind, Type type, int nargs, TirValue *const *args, int64_t attr,
                    Name name) {
  if (op->kind != kind || op->nargs != nargs || op->attrs[0] != attr || op->name != name) return false;
  for (int i = 0; i < nargs; i++)
    if (op->args[i] != args[i]) return false;
  return type_equal(&op->results[0]->type, &type) && tir_in_launch(op->results[0]);
}

static void remember(TirBuilder *b, TirOp *op) {
  const void *key = (const void *)(uintptr_t)hash_op(op->kind, op->results[0]->type, op->nargs, op->args,
                                                     op->attrs[0], op->name);
  LaunchOp *entry = ARENA_NEW(b->module->arena, LaunchOp);
  *entry = (LaunchOp){op, map_get(b->kernel->launch_ops, key)};
  map_put(b->kernel->launch_ops, key, entry);
}

// The table of a kernel that was cloned or parsed is made when it is first needed.
static void index_launch_block(TirBuilder *b) {
  b->kernel->launch_ops = map_new(b->module->arena);
  for (TirOp *op = b->kernel->launch->first; op; op = op->next)
    if (op->nresults == 1) remember(b, op);
}

// One result, made once for equal operands. `attr` is the op's first attribute.
static TirValue *make_in_launch(TirBuilder *b, OpKind kind, Type type, int nargs, TirValue *const *args,
                                int64_t attr, Name name) {
  if (!b->kernel->launch_ops) index_launch_block(b);
  const void *key = (const void *)(uintptr_t)hash_op(kind, type, nargs, args, attr, name);
  LaunchOp *chain = map_get(b->kernel->launch_ops, key);
  bool among_launch_ops = b->block == b->kernel->launch && b->before;
  for (LaunchOp *at = chain; at && !among_launch_ops; at = at->next)
    if (same_op(at->op, kind, type, nargs, args, attr, name)) return at->op->results[0];
  TirOp *op = make(b, kind, nargs, args, 1);
  op->attrs[0] = attr;
  op->name = name;
  op->results[0]->type = type;
  op->results[0]->name = name;
  if (among_launch_ops) {
    tir_insert_before(b->before, op);
  } else {
    tir_append(b->kernel->launch, op);
    remember(b, op);
  }
  return op->results[0];
}

static bool known_at_launch(int nargs, TirValue *const *args) {
  for (int i = 0; i < nargs; i++)
    if (!tir_in_launch(args[i])) return false;
  return true;
}

static TirValue *make_pure(TirBuilder *b, OpKind kind, Type type, int nargs, TirValue *const *args) {
  if (known_at_launch(nargs, args)) return make_in_launch(b, kind, type, nargs, args, 0, NULL);
  return tir_op(b, kind, nargs, args, 1, &type)->results[0];
}

// ---- constants

static TirValue *make_const(TirBuilder *b, FoldValue value) {
  return make_in_launch(b, OP_const, type_scalar(value.dtype), 0, NULL, value.bits, NULL);
}

TirValue *tir_int(TirBuilder *b, int64_t value) {
  return tir_int_typed(b, DTYPE_i32, value);
}

TirValue *tir_int_typed(TirBuilder *b, DType dtype, int64_t value) {
  assert(fold_fits(dtype, value));
  return make_const(b, (FoldValue){dtype, value});
}

TirValue *tir_float(TirBuilder *b, DType dtype, double value) {
  assert(dtype_is_float(dtype));
  fold_round(dtype, value, &value);
  return make_const(b, (FoldValue){dtype, fold_bits(value)});
}

TirValue *tir_bool(TirBuilder *b, bool value) {
  return make_const(b, (FoldValue){DTYPE_bool, value});
}

static bool constant_of(const TirValue *value, FoldValue *out) {
  if (value->op->kind != OP_const) return false;
  *out = (FoldValue){value->type.dtype, value->op->attrs[CONST_bits]};
  return true;
}

static bool is_int(const TirValue *value, int64_t wanted) {
  int64_t got;
  return tir_const_int(value, &got) && got == wanted;
}

// ---- arithmetic

// x+0, x-0, x*1, x*0, x//1, x%1 and what is like them, on integers and booleans. NULL: none applies.
static TirValue *identity(TirBuilder *b, OpKind kind, TirValue *lhs, TirValue *rhs) {
  DType dtype = lhs->type.dtype;
  bool boolean = dtype == DTYPE_bool;
  if (dtype_is_float(dtype)) return NULL;
  if (kind == OP_add || kind == OP_or || kind == OP_xor) {
    if (is_int(rhs, 0)) return lhs;
    if (is_int(lhs, 0)) return rhs;
    if (kind == OP_or && boolean && (is_int(lhs, 1) || is_int(rhs, 1))) return tir_bool(b, true);
  }
  if (kind == OP_mul || kind == OP_and) {
    if (is_int(lhs, 0) || is_int(rhs, 0)) return tir_int_typed(b, dtype, 0);
    if ((kind == OP_mul || boolean) && is_int(rhs, 1)) return lhs;
    if ((kind == OP_mul || boolean) && is_int(lhs, 1)) return rhs;
  }
  if ((kind == OP_sub || kind == OP_shl || kind == OP_shr) && is_int(rhs, 0)) return lhs;
  if ((kind == OP_floordiv || kind == OP_truncdiv || kind == OP_ceildiv) && is_int(rhs, 1)) return lhs;
  if ((kind == OP_floormod || kind == OP_truncmod) && is_int(rhs, 1)) return tir_int_typed(b, dtype, 0);
  if ((kind == OP_min || kind == OP_max) && lhs == rhs) return lhs;
  return NULL;
}

TirValue *tir_binary(TirBuilder *b, OpKind kind, TirValue *lhs, TirValue *rhs) {
  OpGroup group = op_def(kind)->group;
  assert(group == GROUP_BINARY || group == GROUP_COMPARE);
  assert(type_equal(&lhs->type, &rhs->type) && lhs->type.kind == TYPE_SCALAR);
  FoldValue x, y, folded;
  if (constant_of(lhs, &x) && constant_of(rhs, &y) && fold_binary(kind, x, y, &folded))
    return make_const(b, folded);
  TirValue *same = group == GROUP_BINARY ? identity(b, kind, lhs, rhs) : NULL;
  if (same) return same;
  TirValue *args[] = {lhs, rhs};
  return make_pure(b, kind, group == GROUP_COMPARE ? type_scalar(DTYPE_bool) : lhs->type, 2, args);
}

TirValue *tir_unary(TirBuilder *b, OpKind kind, TirValue *operand) {
  assert(op_def(kind)->group == GROUP_UNARY && operand->type.kind == TYPE_SCALAR);
  FoldValue x, folded;
  if (constant_of(operand, &x) && fold_unary(kind, x, &folded)) return make_const(b, folded);
  bool twice = kind == OP_not || kind == OP_neg;
  if (twice && operand->op->kind == kind) return operand->op->args[0];
  return make_pure(b, kind, operand->type, 1, &operand);
}

TirValue *tir_select(TirBuilder *b, TirValue *condition, TirValue *yes, TirValue *no) {
  assert(type_equal(&yes->type, &no->type));
  int64_t known;
  if (yes == no) return yes;
  if (tir_const_int(condition, &known)) return known ? yes : no;
  TirValue *args[] = {condition, yes, no};
  return make_pure(b, OP_select, yes->type, 3, args);
}

TirValue *tir_cast(TirBuilder *b, DType dtype, TirValue *operand) {
  assert(operand->type.kind == TYPE_SCALAR);
  if (operand->type.dtype == dtype) return operand;
  FoldValue x, folded;
  if (constant_of(operand, &x) && fold_cast(dtype, x, &folded)) return make_const(b, folded);
  return make_pure(b, OP_cast, type_scalar(dtype), 1, &operand);
}

// ---- launch

TirValue *tir_size(TirBuilder *b, Name name) {
  return make_in_launch(b, OP_size, type_scalar(DTYPE_i32), 0, NULL, 0, name);
}

TirValue *tir_sm_count(TirBuilder *b) {
  TirValue *count = tir_size(b, intern(b->module->names, TIR_SM_COUNT));
  count->name = intern(b->module->names, "sm_count");
  return count;
}

TirValue *tir_param(TirBuilder *b, Name name, DType dtype) {
  return make_in_launch(b, OP_param, type_scalar(dtype), 0, NULL, 0, name);
}

TirValue *tir_tensor(TirBuilder *b, Name name, DType dtype, int rank, TirValue *const *dims) {
  int64_t shape[TYPE_MAX_RANK];
  assert(rank <= TYPE_MAX_RANK);
  for (int i = 0; i < rank; i++)
    if (!tir_const_int(dims[i], &shape[i])) shape[i] = DIM_DYNAMIC;
  return make_in_launch(b, OP_tensor, type_buffer(dtype, SPACE_GLOBAL, rank, shape), rank, dims, 0, name);
}

void tir_grid(TirBuilder *b, int rank, TirValue *const *extents) {
  tir_append(b->kernel->launch, make(b, OP_grid, rank, extents, 0));
}

void tir_check(TirBuilder *b, TirValue *condition, Name message) {
  TirOp *op = make(b, OP_check, 1, &condition, 0);
  op->name = message;
  tir_append(b->kernel->launch, op);
}

static TirValue *of_grid(TirBuilder *b, OpKind kind, int dim) {
  Type type = type_scalar(DTYPE_i32);
  TirOp *op = tir_op(b, kind, 0, NULL, 1, &type);
  op->attrs[INDEX_dim] = dim;
  return op->results[0];
}

TirValue *tir_block_idx(TirBuilder *b, int dim) {
  return of_grid(b, OP_block_idx, dim);
}

TirValue *tir_block_count(TirBuilder *b, int dim) {
  return of_grid(b, OP_block_count, dim);
}

TirValue *tir_thread_idx(TirBuilder *b) {
  Type type = type_scalar(DTYPE_i32);
  return tir_op(b, OP_thread_idx, 0, NULL, 1, &type)->results[0];
}

// ---- memory

static TirValue *named(TirOp *op, Name name) {
  op->name = name;
  op->results[0]->name = name;
  return op->results[0];
}

TirValue *tir_alloc(TirBuilder *b, Name name, Type type) {
  TirValue *no_base = NULL;
  return named(tir_op(b, OP_alloc, 1, &no_base, 1, &type), name);
}

TirValue *tir_alloc_barrier(TirBuilder *b, Name name, int n, const int64_t *counts) {
  int64_t shape = n;
  Type type = type_buffer(DTYPE_u64, SPACE_BARRIER, 1, &shape);
  TirOp *op = tir_op(b, OP_alloc_barrier, 0, NULL, 1, &type);
  op->nlist = n;
  op->list = ARENA_ARRAY(b->module->arena, int64_t, n);
  for (int i = 0; i < n; i++) op->list[i] = counts[i];
  return named(op, name);
}

static bool is_whole(const TirValue *buffer, TirValue *const *offsets, const int64_t *extents,
                     unsigned drop) {
  const Type *type = &buffer->type;
  for (int i = 0; i < type->rank; i++)
    if (!is_int(offsets[i], 0) || extents[i] != type->shape[i]) return false;
  return drop == 0;
}

TirValue *tir_view(TirBuilder *b, TirValue *buffer, TirValue *const *offsets, const int64_t *extents,
                   unsigned drop) {
  const Type *source = &buffer->type;
  assert(source->kind == TYPE_BUFFER);
  if (is_whole(buffer, offsets, extents, drop)) return buffer;
  int64_t shape[TYPE_MAX_RANK];
  int rank = 0;
  TirValue *args[1 + TYPE_MAX_RANK] = {buffer};
  for (int i = 0; i < source->rank; i++) {
    args[1 + i] = offsets[i];
    assert(!(drop & 1u << i) || extents[i] == 1);
    if (!(drop & 1u << i)) shape[rank++] = extents[i];
  }
  Type type = type_buffer(source->dtype, source->space, rank, shape);
  TirOp *op = tir_op(b, OP_view, 1 + source->rank, args, 1, &type);
  op->attrs[VIEW_drop] = drop;
  return op->results[0];
}

TirValue *tir_reshape(TirBuilder *b, TirValue *buffer, Type type) {
  return tir_op(b, OP_reshape, 1, &buffer, 1, &type)->results[0];
}

TirValue *tir_load(TirBuilder *b, TirValue *buffer, TirValue *const *indices, int n) {
  TirValue *args[1 + TYPE_MAX_RANK] = {buffer};
  assert(n <= TYPE_MAX_RANK);
  for (int i = 0; i < n; i++) args[1 + i] = indices[i];
  Type type = type_scalar(buffer->type.dtype);
  return tir_op(b, OP_load, 1 + n, args, 1, &type)->results[0];
}

TirOp *tir_store(TirBuilder *b, TirValue *buffer, TirValue *value, TirValue *const *indices, int n) {
  TirValue *args[2 + TYPE_MAX_RANK] = {buffer, value};
  assert(n <= TYPE_MAX_RANK);
  for (int i = 0; i < n; i++) args[2 + i] = indices[i];
  return tir_op(b, OP_store, 2 + n, args, 0, NULL);
}

TirValue *tir_cell(TirBuilder *b, Name name, DType dtype, TirValue *initial) {
  Type type = type_cell(dtype);
  return named(tir_op(b, OP_cell, 1, &initial, 1, &type), name);
}

TirValue *tir_get(TirBuilder *b, TirValue *cell) {
  Type type = type_scalar(cell->type.dtype);
  return tir_op(b, OP_get, 1, &cell, 1, &type)->results[0];
}

TirOp *tir_set(TirBuilder *b, TirValue *cell, TirValue *value) {
  TirValue *args[] = {cell, value};
  return tir_op(b, OP_set, 2, args, 0, NULL);
}

// ---- control

TirOp *tir_for(TirBuilder *b, LoopKind kind, TirValue *lo, TirValue *hi, TirValue *step) {
  TirValue *args[FOR_OPERANDS] = {lo, hi, step, NULL};
  TirOp *op = tir_op(b, OP_for, FOR_OPERANDS, args, 1, &lo->type);
  op->attrs[FOR_kind] = kind;
  return op;
}

TirOp *tir_while(TirBuilder *b, TirValue *go) {
  return tir_op(b, OP_while, 1, &go, 0, NULL);
}

TirOp *tir_parallel(TirBuilder *b, int n, TirValue *const *extents) {
  Type types[TYPE_MAX_RANK];
  assert(n <= TYPE_MAX_RANK);
  for (int i = 0; i < n; i++) types[i] = type_scalar(DTYPE_i32);
  return tir_op(b, OP_parallel, n, extents, n, types);
}

TirOp *tir_if(TirBuilder *b, TirValue *condition) {
  return tir_op(b, OP_if, 1, &condition, 0, NULL);
}

TirOp *tir_role(TirBuilder *b, TirThreads threads) {
  TirOp *op = tir_op(b, OP_role, 0, NULL, 0, NULL);
  op->attrs[ROLE_lo] = threads.lo;
  op->attrs[ROLE_hi] = threads.hi;
  return op;
}

TirOp *tir_one_thread(TirBuilder *b) {
  return tir_op(b, OP_one_thread, 0, NULL, 0, NULL);
}

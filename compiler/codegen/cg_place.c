// Buffers: where views lie in their roots, addresses in global and shared memory, loads and stores of one
// element.
//
// A global address is base + sum of index x stride, in 64 bits. A shared address follows the layout:
// row-major, or panels whose bytes are XORed; the XOR is taken from the offset, which equals the address bits
// it needs because the smem pass aligns the buffer to the pattern (PTX ISA 5.5.7, blackwell 7.3).
#include "codegen/cg.h"

#include "codegen/fragment.h"
#include "codegen/nvvm.h"
#include "target/rules.h"

LLVMValueRef cg_offset_pointer(Cg *cg, LLVMValueRef base, LLVMValueRef bytes) {
  return LLVMBuildGEP2(cg->builder, cg->i8, base, &bytes, 1, "");
}

const CgPlace *cg_place(Cg *cg, const TirValue *buffer) {
  const CgPlace *place = cg->places[buffer->id];
  if (!place) BUG("buffer %%%d of '%s' has no place yet", buffer->id, op_def(buffer->op->kind)->name);
  return place;
}

void cg_root_place(Cg *cg, const TirValue *root) {
  CgPlace *place = ARENA_NEW(cg->arena, CgPlace);
  place->root = root;
  place->rank = root->type.rank;
  for (int d = 0; d < place->rank; d++) {
    place->dim[d] = d;
    place->offset[d] = cg_i32(cg, 0);
    place->multiple[d] = 1 << 20;
  }
  cg->places[root->id] = place;
}

void cg_root_index(Cg *cg, const CgPlace *place, LLVMValueRef const *index, LLVMValueRef *root_index) {
  for (int d = 0; d < place->root->type.rank; d++) root_index[d] = place->offset[d];
  for (int i = 0; i < place->rank; i++) {
    int d = place->dim[i];
    root_index[d] = LLVMBuildAdd(cg->builder, root_index[d], index[i], "");
  }
}

LLVMValueRef cg_in_bounds(Cg *cg, const CgPlace *place, LLVMValueRef const *root_index) {
  if (place->root->type.space != SPACE_GLOBAL) return NULL;
  const TirOp *tensor = place->root->op;
  LLVMValueRef inside = LLVMConstInt(cg->i1, 1, false);
  for (int d = 0; d < tensor->nargs; d++) {
    LLVMValueRef below =
        LLVMBuildICmp(cg->builder, LLVMIntULT, root_index[d], cg_value(cg, tensor->args[d]), "");
    inside = LLVMBuildAnd(cg->builder, inside, below, "");
  }
  int64_t constant = 0;
  return cg_const(inside, &constant) && constant ? NULL : inside;
}

static LLVMValueRef global_address(Cg *cg, const CgPlace *place, LLVMValueRef const *root_index) {
  const Type *type = &place->root->type;
  LLVMValueRef *strides = cg->strides[place->root->id];
  LLVMValueRef element = cg_i64(cg, 0);
  for (int d = 0; d < type->rank; d++) {
    LLVMValueRef index = LLVMBuildSExt(cg->builder, root_index[d], cg->i64, "");
    if (d + 1 < type->rank) index = LLVMBuildMul(cg->builder, index, strides[d], "");
    element = LLVMBuildAdd(cg->builder, element, index, "");
  }
  LLVMTypeRef memory = cg_memory_type(cg, type->dtype);
  return LLVMBuildGEP2(cg->builder, memory, cg->storage[place->root->id], &element, 1, "");
}

static LLVMValueRef row_number(Cg *cg, const Type *type, LLVMValueRef const *root_index) {
  LLVMValueRef row = cg_i32(cg, 0);
  for (int d = 0; d + 1 < type->rank; d++) {
    row = LLVMBuildNUWMul(cg->builder, row, cg_i32(cg, type->shape[d]), "");
    row = LLVMBuildNUWAdd(cg->builder, row, root_index[d], "");
  }
  return row;
}

LLVMValueRef cg_shared_linear(Cg *cg, const CgPlace *place, LLVMValueRef const *root_index) {
  LLVMBuilderRef b = cg->builder;
  const Type *type = &place->root->type;
  const Layout *layout = place->root->layout;
  int bytes = dtype_bytes(type->dtype), last = type->rank - 1;
  LLVMValueRef row = row_number(cg, type, root_index), column = root_index[last];
  if (layout->span == 0) {
    LLVMValueRef element =
        LLVMBuildNUWAdd(b, LLVMBuildNUWMul(b, row, cg_i32(cg, type->shape[last]), ""), column, "");
    return LLVMBuildNUWMul(b, element, cg_i32(cg, bytes), "");
  }
  int64_t columns = layout->span / bytes;
  LLVMValueRef line = row;
  if (type->shape[last] > columns) {
    LLVMValueRef panel = LLVMBuildUDiv(b, column, cg_i32(cg, columns), "");
    column = LLVMBuildURem(b, column, cg_i32(cg, columns), "");
    line = LLVMBuildNUWAdd(b, row, LLVMBuildNUWMul(b, panel, cg_i32(cg, type_rows(type)), ""), "");
  }
  LLVMValueRef start = LLVMBuildNUWMul(b, line, cg_i32(cg, layout->span), "");
  return LLVMBuildNUWAdd(b, start, LLVMBuildNUWMul(b, column, cg_i32(cg, bytes), ""), "");
}

LLVMValueRef cg_shared_swizzled(Cg *cg, const CgPlace *place, LLVMValueRef linear) {
  int span = place->root->layout->span;
  if (span == 0) return linear;
  LLVMValueRef phase = LLVMBuildLShr(cg->builder, linear, cg_i32(cg, LAYOUT_SWIZZLE_FROM), "");
  phase = LLVMBuildAnd(cg->builder, phase, cg_i32(cg, layout_swizzle_mask(span)), "");
  phase = LLVMBuildShl(cg->builder, phase, cg_i32(cg, LAYOUT_SWIZZLE_TO), "");
  return LLVMBuildXor(cg->builder, linear, phase, "");
}

static LLVMValueRef local_address(Cg *cg, const CgPlace *place, LLVMValueRef const *root_index) {
  const Type *type = &place->root->type;
  LLVMValueRef element = row_number(cg, type, root_index);
  element = LLVMBuildMul(cg->builder, element, cg_i32(cg, type->shape[type->rank - 1]), "");
  element = LLVMBuildAdd(cg->builder, element, root_index[type->rank - 1], "");
  return cg_register(cg, place->root, element);
}

LLVMValueRef cg_address(Cg *cg, const CgPlace *place, LLVMValueRef const *root_index) {
  if (place->root->type.space == SPACE_GLOBAL) return global_address(cg, place, root_index);
  if (place->root->type.space == SPACE_LOCAL) return local_address(cg, place, root_index);
  LLVMValueRef offset = cg_shared_swizzled(cg, place, cg_shared_linear(cg, place, root_index));
  return cg_offset_pointer(cg, cg->storage[place->root->id], offset);
}

LLVMValueRef cg_barrier(Cg *cg, const TirValue *barrier) {
  enum { BARRIER_BYTES = 8 };
  const CgPlace *place = cg_place(cg, barrier);
  LLVMValueRef bytes = LLVMBuildMul(cg->builder, place->offset[0], cg_i32(cg, BARRIER_BYTES), "");
  return cg_offset_pointer(cg, cg->storage[place->root->id], bytes);
}

// ---- ops

static LLVMValueRef shared_start(Cg *cg, const TirValue *root) {
  if (!root->layout || root->layout->offset < 0)
    BUG("'%s' has no offset in shared memory", root->name ? root->name : "?");
  return cg_offset_pointer(cg, cg->shared, cg_i64(cg, root->layout->offset));
}

static LLVMValueRef tmem_start(Cg *cg, const TirOp *op) {
  const Layout *layout = op->results[0]->layout;
  if (!layout || layout->column < 0 || !cg_arg(op, 0)) BUG("a TMEM buffer has no columns yet");
  return LLVMBuildAdd(cg->builder, cg_value(cg, op->args[0]), cg_i32(cg, layout->column), "");
}

enum { WORD = 4 };

static LLVMValueRef fragment_registers(Cg *cg, const TirValue *root) {
  if (!root->layout) BUG("fragment '%s' has no layout", root->name ? root->name : "?");
  LLVMTypeRef element = cg_memory_type(cg, root->type.dtype);
  LLVMTypeRef array = LLVMArrayType2(element, (uint64_t)layout_registers(root->layout));
  LLVMValueRef registers = cg_alloca(cg, array, "fragment");
  LLVMSetAlignment(registers, WORD);  // narrow elements are also read and written a word at a time
  return registers;
}

void emit_alloc(Cg *cg, const TirOp *op) {
  const TirValue *root = op->results[0];
  cg_root_place(cg, root);
  LLVMValueRef storage = NULL;
  switch (root->type.space) {
  case SPACE_SHARED:
  case SPACE_BARRIER:
    storage = shared_start(cg, root);
    break;
  case SPACE_TMEM:
    storage = tmem_start(cg, op);
    break;
  case SPACE_FRAGMENT:
    storage = fragment_registers(cg, root);
    break;
  case SPACE_LOCAL:
    storage = cg_alloca(
        cg, LLVMArrayType2(cg_memory_type(cg, root->type.dtype), (uint64_t)type_elements(&root->type)),
        "local");
    break;
  case SPACE_GLOBAL:
  case SPACE_COUNT:
    BUG("alloc in space %s", space_name(root->type.space));
  }
  cg->storage[root->id] = storage;
}

void emit_reshape(Cg *cg, const TirOp *op) {
  const TirValue *result = op->results[0];
  if (!result->layout) BUG("'%s' has no layout in its other shape", tir_buffer_name(result));
  cg_root_place(cg, result);
  cg->storage[result->id] = cg->storage[op->args[0]->id];
}

// A view of shared memory, TMEM or barriers that may reach past its root stops the kernel: a neighbour would
// change in silence, or the wrong one be waited for.
static void trap_outside(Cg *cg, const TirOp *view, const CgPlace *place) {
  const RuleTile tile = rule_tile(view->results[0]);
  if (view->attrs[VIEW_in_bounds]) return;
  if (place->root->type.space == SPACE_GLOBAL || place->root->type.space == SPACE_FRAGMENT) return;
  LLVMValueRef outside = NULL;
  for (int d = 0; d < place->root->type.rank; d++) {
    int64_t last = place->root->type.shape[d] - tile.extent[d];
    if (tile.start[d].lo >= 0 && tile.start[d].hi <= last) continue;
    LLVMValueRef past = LLVMBuildICmp(cg->builder, LLVMIntUGT, place->offset[d], cg_i32(cg, last), "");
    outside = outside ? LLVMBuildOr(cg->builder, outside, past, "") : past;
  }
  CgIf branch = cg_begin_if(cg, outside);
  if (outside) nvvm_trap(cg);
  cg_end_if(cg, branch);
}

void emit_view(Cg *cg, const TirOp *op) {
  const CgPlace *source = cg_place(cg, op->args[0]);
  CgPlace *place = ARENA_NEW(cg->arena, CgPlace);
  *place = *source;
  place->rank = 0;
  for (int i = 0; i < source->rank; i++) {
    int d = source->dim[i];
    const TirValue *offset = op->args[i + 1];
    int64_t multiple = cg_multiple(offset);
    place->offset[d] = LLVMBuildAdd(cg->builder, source->offset[d], cg_value(cg, offset), "");
    if (multiple < place->multiple[d]) place->multiple[d] = multiple;
    if (!(op->attrs[VIEW_drop] >> i & 1)) place->dim[place->rank++] = d;
  }
  cg->places[op->results[0]->id] = place;
  trap_outside(cg, op, place);
}

static void index_of(Cg *cg, const TirOp *op, int first, const CgPlace *place, LLVMValueRef *root_index) {
  LLVMValueRef index[TYPE_MAX_RANK];
  for (int i = 0; i < place->rank; i++) index[i] = cg_value(cg, op->args[first + i]);
  cg_root_index(cg, place, index, root_index);
}

static LLVMValueRef size_of(Cg *cg, const TirValue *root, int d) {
  int64_t size = root->type.shape[d];
  return size == DIM_DYNAMIC ? cg_value(cg, root->op->args[d]) : cg_i32(cg, size);
}

// Whether an element lies in its buffer; NULL where that is known. `first` is the operand of the first index.
static LLVMValueRef element_inside(Cg *cg, const TirOp *op, int first, const CgPlace *place,
                                   LLVMValueRef const *root_index) {
  if (op->attrs[ACCESS_in_bounds]) return NULL;
  RuleTile tile = rule_tile(op->args[0]);
  for (int i = 0; i < place->rank; i++) {
    int d = place->dim[i];
    tile.start[d] = tir_range_add(tile.start[d], tir_known_range(op->args[first + i]));
  }
  LLVMValueRef inside = NULL;
  for (int d = 0; d < place->root->type.rank; d++) {
    int64_t size = place->root->type.shape[d];
    if (size != DIM_DYNAMIC && tile.start[d].lo >= 0 && tile.start[d].hi < size) continue;
    LLVMValueRef below =
        LLVMBuildICmp(cg->builder, LLVMIntULT, root_index[d], size_of(cg, place->root, d), "");
    inside = inside ? LLVMBuildAnd(cg->builder, inside, below, "") : below;
  }
  return inside;
}

// Zero where the condition does not hold.
static LLVMValueRef guarded_load(Cg *cg, LLVMValueRef condition, LLVMTypeRef type, LLVMValueRef address) {
  if (!condition) return LLVMBuildLoad2(cg->builder, type, address, "");
  LLVMBasicBlockRef before = LLVMGetInsertBlock(cg->builder);
  CgIf branch = cg_begin_if(cg, condition);
  LLVMValueRef loaded = LLVMBuildLoad2(cg->builder, type, address, "");
  LLVMBasicBlockRef inside = LLVMGetInsertBlock(cg->builder);
  cg_end_if(cg, branch);
  LLVMValueRef value = LLVMBuildPhi(cg->builder, type, ""), zero = LLVMConstNull(type);
  LLVMAddIncoming(value, &loaded, &inside, 1);
  LLVMAddIncoming(value, &zero, &before, 1);
  return value;
}

CgElement cg_element(Cg *cg, const TirOp *op, int first) {
  const CgPlace *place = cg_place(cg, op->args[0]);
  LLVMValueRef root_index[TYPE_MAX_RANK];
  index_of(cg, op, first, place, root_index);
  CgElement element = {.inside = element_inside(cg, op, first, place, root_index)};
  element.address = cg_address(cg, place, root_index);
  return element;
}

LLVMValueRef cg_both(Cg *cg, LLVMValueRef a, LLVMValueRef b) {
  if (!a || !b) return a ? a : b;
  return LLVMBuildAnd(cg->builder, a, b, "");
}

static bool in_fragment(Cg *cg, const TirValue *buffer) {
  return cg_place(cg, buffer)->root->type.space == SPACE_FRAGMENT;
}

void emit_load(Cg *cg, const TirOp *op) {
  const TirValue *buffer = op->args[0];
  DType dtype = buffer->type.dtype;
  LLVMTypeRef type = cg_memory_type(cg, dtype);
  CgElement element = {NULL, NULL};
  if (in_fragment(cg, buffer))
    element.address = cg_fragment_slot(cg, op, buffer, op->args + 1, cg_place(cg, buffer)->rank);
  else
    element = cg_element(cg, op, 1);
  if (!element.address) return;
  cg_set_value(cg, op->results[0],
               cg_from_memory(cg, dtype, guarded_load(cg, element.inside, type, element.address)));
}

void emit_store(Cg *cg, const TirOp *op) {
  const TirValue *buffer = op->args[0];
  LLVMValueRef value = cg_to_memory(cg, buffer->type.dtype, cg_value(cg, op->args[1]));
  if (in_fragment(cg, buffer)) {
    LLVMValueRef slot = cg_fragment_slot(cg, op, buffer, op->args + 2, cg_place(cg, buffer)->rank);
    if (slot) LLVMBuildStore(cg->builder, value, slot);
    return;
  }
  CgElement element = cg_element(cg, op, 2);
  bool own = cg_place(cg, buffer)->root->type.space == SPACE_LOCAL;  // each thread stores to its own
  CgIf branch = cg_begin_if(cg, own ? element.inside : cg_both(cg, element.inside, cg->may_store));
  LLVMBuildStore(cg->builder, value, element.address);
  cg_end_if(cg, branch);
}

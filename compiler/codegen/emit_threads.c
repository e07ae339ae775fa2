// copy and fill by ordinary loads and stores of all threads.
//
// Elements move in runs of up to 16 bytes along the last dimension where both sides allow it: offsets are
// multiples of the run, a tensor's base and strides are multiples of 16 bytes (its guard says so, else a test here), no run
// crosses the edge of a panel. Between global and shared memory the loop over runs is rolled, consecutive
// threads taking consecutive runs; a fragment's registers are visited one run after another. Outside a tensor
// zeros are read and nothing is written.
#include "codegen/emit.h"

#include "codegen/fragment.h"
#include "codegen/matrices.h"

enum { MAX_RUN = 16, RUN_BYTES = 16 };

// One side of a copy, or the target of a fill.
typedef struct {
  const TirValue *buffer;
  const CgPlace *place;
  DType dtype;
  LLVMTypeRef memory;
  bool bounded;
  LLVMValueRef aligned;  // whether runs of the tensor lie on multiples of their size; NULL: yes
} Side;

typedef struct {
  Cg *cg;
  const TirOp *op;
  bool fills, adds;    // adds: atomic_add, one element at a time
  LLVMValueRef value;  // of a fill
  Side src, dst;
  int run;
} Move;

static Side side_of(Cg *cg, const TirValue *buffer, bool bounded) {
  DType dtype = buffer->type.dtype;
  return (Side){buffer, cg_place(cg, buffer), dtype, cg_memory_type(cg, dtype), bounded, NULL};
}

static bool is_fragment(const Side *side) {
  return side->place->root->type.space == SPACE_FRAGMENT;
}

static bool has_guard(const TirKernel *kernel, const TirValue *tensor) {
  for (int i = 0; i < kernel->guards.len; i++)
    if (kernel->guards.data[i].tensor == tensor) return true;
  return false;
}

// The longest run that this side can move at once, up to `run`.
static int fit_run(const Side *side, int run) {
  const CgPlace *place = side->place;
  const Type *root = &place->root->type;
  int last = root->rank - 1, bytes = dtype_bytes(side->dtype);
  if (is_fragment(side)) return run;
  if (bytes == 0 || place->rank == 0 || place->dim[place->rank - 1] != last) return 1;
  while (run > 1 && (run * bytes > RUN_BYTES || place->multiple[last] % run)) run /= 2;
  if (root->space == SPACE_GLOBAL) return run;
  int64_t row = place->root->layout->span ? place->root->layout->span / bytes : root->shape[last];
  while (run > 1 && row % run) run /= 2;
  return run;
}

static int alignment_of(const Side *side, int run) {
  return run * dtype_bytes(side->dtype);
}

// A tensor's address and strides are known at launch only; where a guard does not promise, they are looked at.
static void look_at_alignment(Cg *cg, Side *side, int run) {
  const TirValue *root = side->place ? side->place->root : NULL;
  if (!root || root->type.space != SPACE_GLOBAL || run == 1 || has_guard(cg->kernel, root)) return;
  LLVMValueRef bits = LLVMBuildPtrToInt(cg->builder, cg->storage[root->id], cg->i64, "");
  for (int d = 0; d + 1 < root->type.rank; d++) {
    LLVMValueRef pitch =
        LLVMBuildMul(cg->builder, cg->strides[root->id][d], cg_i64(cg, dtype_bytes(side->dtype)), "");
    bits = LLVMBuildOr(cg->builder, bits, pitch, "");
  }
  bits = LLVMBuildAnd(cg->builder, bits, cg_i64(cg, alignment_of(side, run) - 1), "");
  side->aligned = LLVMBuildICmp(cg->builder, LLVMIntEQ, bits, cg_i64(cg, 0), "");
}

// ---- loads

static LLVMValueRef from_memory(const Move *m, LLVMValueRef loaded) {
  return cg_from_memory(m->cg, m->src.dtype, loaded);
}

static LLVMValueRef load_one(const Move *m, LLVMValueRef const *root_index) {
  Cg *cg = m->cg;
  LLVMValueRef inside = m->src.bounded ? NULL : cg_in_bounds(cg, m->src.place, root_index);
  LLVMValueRef zero = LLVMConstNull(m->src.memory);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(cg->builder);
  CgIf branch = cg_begin_if(cg, inside);
  LLVMValueRef loaded =
      LLVMBuildLoad2(cg->builder, m->src.memory, cg_address(cg, m->src.place, root_index), "");
  LLVMBasicBlockRef here = LLVMGetInsertBlock(cg->builder);
  cg_end_if(cg, branch);
  if (!inside) return loaded;
  LLVMValueRef value = LLVMBuildPhi(cg->builder, m->src.memory, "");
  LLVMAddIncoming(value, &loaded, &here, 1);
  LLVMAddIncoming(value, &zero, &before, 1);
  return value;
}

static void step_index(Cg *cg, const Side *side, LLVMValueRef const *root_index, int by, LLVMValueRef *out) {
  int last = side->place->root->type.rank - 1;
  for (int d = 0; d < last; d++) out[d] = root_index[d];
  out[last] = LLVMBuildAdd(cg->builder, root_index[last], cg_i32(cg, by), "");
}

// Whether the run can be moved at once: it is aligned and all of it lies in the tensor; NULL when it always can.
static LLVMValueRef run_inside(const Move *m, const Side *side, LLVMValueRef const *root_index) {
  Cg *cg = m->cg;
  if (side->bounded) return side->aligned;
  LLVMValueRef first = cg_in_bounds(cg, side->place, root_index), end[TYPE_MAX_RANK];
  step_index(cg, side, root_index, m->run - 1, end);
  return cg_both(cg, side->aligned, cg_both(cg, first, cg_in_bounds(cg, side->place, end)));
}

static LLVMValueRef load_vector(const Move *m, LLVMValueRef const *root_index) {
  Cg *cg = m->cg;
  LLVMTypeRef type = LLVMVectorType(m->src.memory, (unsigned)m->run);
  LLVMValueRef loaded = LLVMBuildLoad2(cg->builder, type, cg_address(cg, m->src.place, root_index), "");
  LLVMSetAlignment(loaded, (unsigned)alignment_of(&m->src, m->run));
  return loaded;
}

static LLVMValueRef load_singly(const Move *m, LLVMValueRef const *root_index) {
  Cg *cg = m->cg;
  LLVMValueRef vector = LLVMGetPoison(LLVMVectorType(m->src.memory, (unsigned)m->run)), at[TYPE_MAX_RANK];
  for (int i = 0; i < m->run; i++) {
    step_index(cg, &m->src, root_index, i, at);
    vector = LLVMBuildInsertElement(cg->builder, vector, load_one(m, at), cg_i32(cg, i), "");
  }
  return vector;
}

static LLVMValueRef load_run(const Move *m, LLVMValueRef const *root_index) {
  Cg *cg = m->cg;
  LLVMValueRef inside = run_inside(m, &m->src, root_index);
  if (!inside) return load_vector(m, root_index);
  LLVMBasicBlockRef whole = cg_new_block(cg, "whole"), edge = cg_new_block(cg, "edge"),
                    after = cg_new_block(cg, "after");
  LLVMBuildCondBr(cg->builder, inside, whole, edge);
  LLVMPositionBuilderAtEnd(cg->builder, whole);
  LLVMValueRef values[2] = {load_vector(m, root_index)};
  LLVMBuildBr(cg->builder, after);
  LLVMPositionBuilderAtEnd(cg->builder, edge);
  values[1] = load_singly(m, root_index);
  LLVMBasicBlockRef from[2] = {whole, LLVMGetInsertBlock(cg->builder)};
  LLVMBuildBr(cg->builder, after);
  LLVMPositionBuilderAtEnd(cg->builder, after);
  LLVMValueRef phi = LLVMBuildPhi(cg->builder, LLVMTypeOf(values[0]), "");
  LLVMAddIncoming(phi, values, from, 2);
  return phi;
}

static void load_memory(const Move *m, LLVMValueRef const *index, LLVMValueRef *values) {
  Cg *cg = m->cg;
  LLVMValueRef root_index[TYPE_MAX_RANK];
  cg_root_index(cg, m->src.place, index, root_index);
  if (m->run == 1) {
    values[0] = from_memory(m, load_one(m, root_index));
    return;
  }
  LLVMValueRef vector = load_run(m, root_index);
  for (int i = 0; i < m->run; i++)
    values[i] = from_memory(m, LLVMBuildExtractElement(cg->builder, vector, cg_i32(cg, i), ""));
}

// ---- stores

static void store_one(const Move *m, LLVMValueRef const *root_index, LLVMValueRef value) {
  Cg *cg = m->cg;
  CgIf branch = cg_begin_if(cg, m->dst.bounded ? NULL : cg_in_bounds(cg, m->dst.place, root_index));
  LLVMValueRef address = cg_address(cg, m->dst.place, root_index);
  if (m->adds)
    cg_atomic_add(cg, m->dst.place->root->type.space, m->dst.dtype, address, value);
  else
    LLVMBuildStore(cg->builder, value, address);
  cg_end_if(cg, branch);
}

static void store_vector(const Move *m, LLVMValueRef const *root_index, LLVMValueRef const *values) {
  Cg *cg = m->cg;
  LLVMValueRef vector = LLVMGetPoison(LLVMVectorType(m->dst.memory, (unsigned)m->run));
  for (int i = 0; i < m->run; i++)
    vector = LLVMBuildInsertElement(cg->builder, vector, values[i], cg_i32(cg, i), "");
  LLVMValueRef store = LLVMBuildStore(cg->builder, vector, cg_address(cg, m->dst.place, root_index));
  LLVMSetAlignment(store, (unsigned)alignment_of(&m->dst, m->run));
}

static void store_singly(const Move *m, LLVMValueRef const *root_index, LLVMValueRef const *values) {
  LLVMValueRef at[TYPE_MAX_RANK];
  for (int i = 0; i < m->run; i++) {
    step_index(m->cg, &m->dst, root_index, i, at);
    store_one(m, at, values[i]);
  }
}

static void store_run(const Move *m, LLVMValueRef const *root_index, LLVMValueRef const *values) {
  Cg *cg = m->cg;
  LLVMValueRef inside = run_inside(m, &m->dst, root_index);
  if (!inside) {
    store_vector(m, root_index, values);
    return;
  }
  LLVMBasicBlockRef whole = cg_new_block(cg, "whole"), edge = cg_new_block(cg, "edge"),
                    after = cg_new_block(cg, "after");
  LLVMBuildCondBr(cg->builder, inside, whole, edge);
  LLVMPositionBuilderAtEnd(cg->builder, whole);
  store_vector(m, root_index, values);
  LLVMBuildBr(cg->builder, after);
  LLVMPositionBuilderAtEnd(cg->builder, edge);
  store_singly(m, root_index, values);
  LLVMBuildBr(cg->builder, after);
  LLVMPositionBuilderAtEnd(cg->builder, after);
}

static void store_memory(const Move *m, LLVMValueRef const *index, LLVMValueRef *values) {
  Cg *cg = m->cg;
  LLVMValueRef root_index[TYPE_MAX_RANK];
  cg_root_index(cg, m->dst.place, index, root_index);
  for (int i = 0; i < m->run; i++) values[i] = cg_to_memory(cg, m->dst.dtype, values[i]);
  if (m->run == 1 || m->adds)
    store_singly(m, root_index, values);
  else
    store_run(m, root_index, values);
}

// ---- between global and shared memory

static void convert(const Move *m, LLVMValueRef *values) {
  for (int i = 0; i < m->run && m->fills; i++) values[i] = m->value;
  if (!m->fills) cg_cast_run(m->cg, m->op, values, m->run, m->src.dtype, m->dst.dtype);
}

static int largest_run(const Type *tile) {
  int64_t inner = tile->rank ? tile->shape[tile->rank - 1] : 1;
  int run = MAX_RUN;
  while (run > 1 && inner % run) run /= 2;
  return run;
}

static void move_in_memory(Move *m) {
  Cg *cg = m->cg;
  const Type *tile = &m->dst.buffer->type;
  m->run = fit_run(&m->dst, largest_run(tile));
  if (!m->fills) m->run = fit_run(&m->src, m->run);
  look_at_alignment(cg, &m->src, m->run);
  look_at_alignment(cg, &m->dst, m->run);
  LLVMValueRef runs = cg_i32(cg, type_elements(tile) / m->run), index[TYPE_MAX_RANK],
               values[MAX_RUN] = {NULL};
  CgLoop loop = cg_begin_loop(cg, cg_thread_loop(cg, runs));
  LLVMValueRef rest = loop.index;
  for (int d = tile->rank - 1; d >= 0; d--) {
    bool last = d == tile->rank - 1;
    LLVMValueRef extent = cg_i32(cg, last ? tile->shape[d] / m->run : tile->shape[d]);
    index[d] = d > 0 ? LLVMBuildURem(cg->builder, rest, extent, "") : rest;
    rest = LLVMBuildUDiv(cg->builder, rest, extent, "");
    if (last) index[d] = LLVMBuildMul(cg->builder, index[d], cg_i32(cg, m->run), "");
  }
  if (!m->fills) load_memory(m, index, values);
  convert(m, values);
  store_memory(m, index, values);
  cg_end_loop(cg, loop);
}

// ---- fragments

static LLVMValueRef register_slot(Cg *cg, const Side *side, int64_t reg) {
  return cg_register(cg, side->place->root, cg_i32(cg, reg));
}

static void move_registers(const Move *m, const CgFragment *fragment, const CgSlice *slice, int64_t reg) {
  Cg *cg = m->cg;
  LLVMValueRef at[TYPE_MAX_RANK], values[MAX_RUN];
  cg_fragment_coordinates(cg, fragment, reg, at);
  CgOwned owned = cg_fragment_owned(fragment, reg);
  LLVMValueRef owns = owned == OWNED_BY_ALL ? NULL : cg_fragment_owns(cg, fragment, at);
  CgIf branch = cg_begin_if(cg, cg_both(cg, owns, cg_slice_take(cg, fragment, slice, reg, at)));
  if (is_fragment(&m->src))
    for (int i = 0; i < m->run; i++)
      values[i] =
          from_memory(m, LLVMBuildLoad2(cg->builder, m->src.memory, register_slot(cg, &m->src, reg + i), ""));
  else
    load_memory(m, at, values);
  convert(m, values);
  if (is_fragment(&m->dst))
    for (int i = 0; i < m->run; i++)
      LLVMBuildStore(cg->builder, cg_to_memory(cg, m->dst.dtype, values[i]),
                     register_slot(cg, &m->dst, reg + i));
  else
    store_memory(m, at, values);
  cg_end_if(cg, branch);
}

static bool is_whole(const Side *side) {
  return side->buffer == side->place->root;
}

// Between a fragment, or a slice of one at a constant place, and memory.
static void move_fragment(Move *m, const Side *registers, const Side *memory) {
  Cg *cg = m->cg;
  CgSlice slice;
  if (!cg_slice(registers->place, &registers->buffer->type, &slice)) {
    cg_unsupported(cg, m->op, "a slice of a fragment");
    return;
  }
  const TirValue *whole = registers->place->root;
  CgFragment fragment = cg_fragment(cg, whole->layout, &whole->type);
  m->run = fit_run(memory, cg_fragment_run(&fragment, MAX_RUN));
  // Unrolled as it is, the code for both cases would be long.
  const TirValue *root = memory->place->root;
  if (root->type.space == SPACE_GLOBAL && !has_guard(cg->kernel, root)) m->run = 1;
  bool stores = memory == &m->dst;
  CgIf holder = cg_begin_if(cg, stores ? cg_fragment_first_holder(cg, fragment.layout) : NULL);
  for (int64_t r = 0; r < fragment.registers; r += m->run)
    if (cg_fragment_owned(&fragment, r) != OWNED_BY_NONE &&
        cg_slice_holds(&fragment, &slice, r) != OWNED_BY_NONE)
      move_registers(m, &fragment, &slice, r);
  cg_end_if(cg, holder);
}

// Of the two, the source may instead be held whole by every thread; its element is then picked by number.
static LLVMValueRef source_slot(const Move *m, const CgFragment *fragment, int64_t reg) {
  Cg *cg = m->cg;
  if (layout_equal(m->src.buffer->layout, fragment->layout)) return register_slot(cg, &m->src, reg);
  LLVMValueRef at[TYPE_MAX_RANK], element = cg_i32(cg, 0);
  cg_fragment_coordinates(cg, fragment, reg, at);
  for (int d = 0; d < fragment->type.rank; d++) {
    element = LLVMBuildMul(cg->builder, element, cg_i32(cg, fragment->type.shape[d]), "");
    element = LLVMBuildAdd(cg->builder, element, at[d], "");
  }
  LLVMValueRef last = cg_i32(cg, type_elements(&fragment->type) - 1), args[] = {element, last};
  return cg_register(cg, m->src.place->root, cg_intrinsic(cg, "llvm.umin", cg->i32, 2, args));
}

// Two elements of 16 bits as one word, which one register then holds.
static void move_pairs(Move *m, int64_t registers) {
  Cg *cg = m->cg;
  enum { PAIR = 2 };
  m->run = PAIR;
  for (int64_t r = 0; r < registers; r += PAIR) {
    LLVMValueRef values[MAX_RUN], slot = register_slot(cg, &m->dst, r);
    for (int i = 0; i < PAIR; i++)
      values[i] =
          from_memory(m, LLVMBuildLoad2(cg->builder, m->src.memory, register_slot(cg, &m->src, r + i), ""));
    convert(m, values);
    LLVMValueRef word = LLVMGetPoison(LLVMVectorType(LLVMTypeOf(values[0]), PAIR));
    for (int i = 0; i < PAIR; i++)
      word = LLVMBuildInsertElement(cg->builder, word, values[i], cg_i32(cg, i), "");
    LLVMBuildStore(cg->builder, LLVMBuildBitCast(cg->builder, word, cg->i32, ""), slot);
  }
}

static void move_between_fragments(Move *m) {
  Cg *cg = m->cg;
  bool same = layout_equal(m->src.buffer->layout, m->dst.buffer->layout);
  if (!is_whole(&m->src) || !is_whole(&m->dst) || (!same && !cg_fragment_replicated(m->src.buffer->layout))) {
    cg_unsupported(cg, m->op, "the two fragments are spread over the threads in different ways");
    return;
  }
  CgFragment fragment = cg_fragment(cg, m->dst.buffer->layout, &m->dst.buffer->type);
  bool late = m->dst.place->root->op->attrs[ALLOC_late] != 0, pairs = fragment.registers % 2 == 0;
  if (late && pairs && same && dtype_bits(m->dst.dtype) == 16) {
    move_pairs(m, fragment.registers);
    return;
  }
  m->run = 1;
  for (int64_t r = 0; r < fragment.registers; r++) {
    LLVMValueRef value =
        from_memory(m, LLVMBuildLoad2(cg->builder, m->src.memory, source_slot(m, &fragment, r), ""));
    convert(m, &value);
    LLVMBuildStore(cg->builder, cg_to_memory(cg, m->dst.dtype, value), register_slot(cg, &m->dst, r));
  }
}

static void fill_fragment(Move *m) {
  Cg *cg = m->cg;
  if (!is_whole(&m->dst)) {
    cg_unsupported(cg, m->op, "a slice of a fragment");
    return;
  }
  int64_t registers = layout_registers(m->dst.buffer->layout);
  LLVMValueRef value = cg_to_memory(cg, m->dst.dtype, m->value);
  for (int64_t r = 0; r < registers; r++) LLVMBuildStore(cg->builder, value, register_slot(cg, &m->dst, r));
}

// copy and atomic_add, whose operands and attributes are the same.
void cg_copy_threads(Cg *cg, const TirOp *op) {
  bool bounded = op->attrs[COPY_bounded] != 0;
  Move m = {.cg = cg,
            .op = op,
            .adds = op->kind == OP_atomic_add,
            .src = side_of(cg, op->args[0], bounded),
            .dst = side_of(cg, op->args[1], bounded),
            .run = 1};
  if (m.src.dtype == m.dst.dtype && dtype_bytes(m.src.dtype) == 0) {
    cg_unsupported(cg, op, "elements of %d bits", dtype_bits(m.src.dtype));
    return;
  }
  if (cg_store_matrices(cg, op)) return;
  if (is_fragment(&m.src) && is_fragment(&m.dst))
    move_between_fragments(&m);
  else if (is_fragment(&m.src))
    move_fragment(&m, &m.src, &m.dst);
  else if (is_fragment(&m.dst))
    move_fragment(&m, &m.dst, &m.src);
  else
    move_in_memory(&m);
}

void cg_fill_threads(Cg *cg, const TirOp *op) {
  Move m = {.cg = cg,
            .op = op,
            .fills = true,
            .value = cg_value(cg, op->args[1]),
            .dst = side_of(cg, op->args[0], false),
            .run = 1};
  if (is_fragment(&m.dst))
    fill_fragment(&m);
  else
    move_in_memory(&m);
}

// TMA copies, mbarriers, the async proxy's fence and bulk groups.
//
// A TMA copy is one instruction a box: the tile is cut into boxes of the tensor map, along rows where it is
// longer than a box may be, and along columns into the panels of the swizzle (PTX ISA 9.7.9.25.5,
// blackwell 7.3).
#include "codegen/emit.h"

#include "codegen/nvvm.h"

typedef struct {
  const TirMap *map;
  const CgPlace *tensor, *shared;
  int64_t tile[TYPE_MAX_RANK];    // extents along the tensor's dimensions
  int shared_dim[TYPE_MAX_RANK];  // which dimension of the shared tile that is; -1: dropped
  LLVMValueRef map_pointer, barrier;
  bool adds;
} Transfer;

static bool begin_transfer(Cg *cg, const TirOp *op, Transfer *t) {
  bool load = op->attrs[COPY_path] == PATH_TMA_LOAD;
  const TirValue *tensor = op->args[load ? 0 : 1], *shared = op->args[load ? 1 : 0];
  int64_t map = op->attrs[COPY_map];
  if (map < 0 || map >= cg->kernel->maps.len) BUG("a TMA copy without a map");
  *t = (Transfer){
      .map = &cg->kernel->maps.data[map], .tensor = cg_place(cg, tensor), .shared = cg_place(cg, shared)};
  for (int d = 0; d < t->tensor->root->type.rank; d++) t->tile[d] = 1, t->shared_dim[d] = -1;
  for (int i = 0; i < t->tensor->rank; i++) {
    t->tile[t->tensor->dim[i]] = tensor->type.shape[i];
    t->shared_dim[t->tensor->dim[i]] = i;
  }
  t->map_pointer = cg->maps[map];
  t->adds = op->kind == OP_atomic_add;
  t->barrier = load && cg_arg(op, 2) ? cg_barrier(cg, op->args[2]) : NULL;
  return true;
}

static void transfer_box(Cg *cg, const Transfer *t, const int64_t *start) {
  int rank = t->tensor->root->type.rank;
  LLVMValueRef coordinates[TYPE_MAX_RANK], index[TYPE_MAX_RANK], root_index[TYPE_MAX_RANK];
  for (int d = 0; d < rank; d++) {
    coordinates[rank - 1 - d] = LLVMBuildAdd(cg->builder, t->tensor->offset[d], cg_i32(cg, start[d]), "");
    if (t->shared_dim[d] >= 0) index[t->shared_dim[d]] = cg_i32(cg, start[d]);
  }
  cg_root_index(cg, t->shared, index, root_index);
  LLVMValueRef linear = cg_shared_linear(cg, t->shared, root_index);
  LLVMValueRef address = cg_offset_pointer(cg, cg->storage[t->shared->root->id], linear);
  if (t->barrier)
    nvvm_tma_load(cg, address, t->barrier, t->map_pointer, rank, coordinates);
  else
    nvvm_tma_store(cg, address, t->map_pointer, rank, coordinates, t->adds);
}

void cg_copy_tma(Cg *cg, const TirOp *op) {
  Transfer t;
  if (!begin_transfer(cg, op, &t)) return;
  int rank = t.tensor->root->type.rank;
  int64_t start[TYPE_MAX_RANK] = {0};
  for (int d = 0; d >= 0;) {
    transfer_box(cg, &t, start);
    for (d = rank - 1; d >= 0; d--) {  // the next box, like an odometer
      start[d] += t.map->box[d];
      if (start[d] < t.tile[d]) break;
      start[d] = 0;
    }
  }
}

void emit_prefetch_maps(Cg *cg, const TirOp *op) {
  (void)op;
  for (int i = 0; i < cg->kernel->maps.len; i++) nvvm_prefetch_map(cg, cg->maps[i]);
}

void emit_grid_wait(Cg *cg, const TirOp *op) {
  (void)op;
  nvvm_grid_wait(cg);
}

void emit_grid_release(Cg *cg, const TirOp *op) {
  (void)op;
  nvvm_grid_release(cg);
}

void emit_mbar_init(Cg *cg, const TirOp *op) {
  const TirOp *alloc = tir_root(op->args[0])->op;
  LLVMValueRef base = cg_barrier(cg, op->args[0]);
  if (op->args[0] != alloc->results[0]) {
    cg_unsupported(cg, op, "it takes whole arrays of barriers");
    return;
  }
  for (int i = 0; i < alloc->nlist; i++)
    nvvm_mbar_init(cg, cg_offset_pointer(cg, base, cg_i64(cg, 8 * i)), (int)alloc->list[i]);
}

void emit_fence_mbarrier_init(Cg *cg, const TirOp *op) {
  (void)op;
  nvvm_fence_mbarrier_init(cg);
}

void emit_mbar_arrive(Cg *cg, const TirOp *op) {
  nvvm_mbar_arrive(cg, cg_barrier(cg, op->args[0]));
}

void emit_mbar_expect_tx(Cg *cg, const TirOp *op) {
  LLVMValueRef barrier = cg_barrier(cg, op->args[0]), bytes = cg_value(cg, op->args[1]);
  if (op->attrs[EXPECT_arrive])
    nvvm_mbar_arrive_expect_tx(cg, barrier, bytes);
  else
    nvvm_mbar_expect_tx(cg, barrier, bytes);
}

// try_wait may give up at any time, so it is asked again; lanes leave the loop at different times.
void emit_mbarrier_wait_parity(Cg *cg, const TirOp *op) {
  LLVMValueRef barrier = cg_barrier(cg, op->args[0]), parity = cg_value(cg, op->args[1]);
  LLVMBasicBlockRef again = cg_new_block(cg, "wait"), done = cg_new_block(cg, "passed");
  LLVMBuildBr(cg->builder, again);
  LLVMPositionBuilderAtEnd(cg->builder, again);
  LLVMBuildCondBr(cg->builder, nvvm_mbar_try_wait_parity(cg, barrier, parity), done, again);
  LLVMPositionBuilderAtEnd(cg->builder, done);
  if (cg->divergent == 0) nvvm_warp_sync(cg, ALL_LANES);
}

static bool visit_plain_store(void *tensor, TirOp *op) {
  const OpDef *def = op_def(op->kind);
  bool move = op->kind == OP_copy || op->kind == OP_atomic_add;
  if (move && op->attrs[COPY_path] == PATH_TMA_STORE) return true;
  for (int i = 0; i < op->nargs && i < def->noperands; i++)
    if ((def->operands[i].access & WRITES) && op->args[i] && tir_root(op->args[i]) == tensor) return false;
  return true;
}

// Whether TMA reads or writes a tensor that ordinary stores write too: then the fence is needed for global
// memory as well.
static bool shares_tensor(const TirKernel *kernel) {
  for (int i = 0; i < kernel->maps.len; i++)
    if (!tir_walk(kernel->body, visit_plain_store, kernel->maps.data[i].tensor)) return true;
  return false;
}

void emit_fence_proxy_async(Cg *cg, const TirOp *op) {
  (void)op;
  if (shares_tensor(cg->kernel))
    nvvm_fence_proxy_async(cg);
  else
    nvvm_fence_proxy_async_shared(cg);
}

void emit_bulk_commit(Cg *cg, const TirOp *op) {
  (void)op;
  nvvm_bulk_commit(cg);
}

void emit_bulk_wait(Cg *cg, const TirOp *op) {
  nvvm_bulk_wait(cg, (int)op->attrs[BULK_pending], op->attrs[BULK_read] != 0);
}

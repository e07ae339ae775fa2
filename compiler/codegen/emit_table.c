// Emitters of what every target has alike. A target's own table (codegen/<sm>/emit_table.c) adds the paths of its engines
// and their synchronisation.
#include "codegen/emit.h"

static const CgEmit common_emit[OP_COUNT] = {
    // launch block: bound at entry, or the runtime's business
    [OP_tensor] = emit_declared,
    [OP_size] = emit_declared,
    [OP_param] = emit_declared,
    [OP_grid] = emit_declared,
    [OP_check] = emit_declared,
    // values
    [OP_const] = emit_const,
    [OP_block_idx] = emit_block_idx,
    [OP_block_count] = emit_block_count,
    [OP_thread_idx] = emit_thread_idx,
    [OP_add] = emit_binary,
    [OP_sub] = emit_binary,
    [OP_mul] = emit_binary,
    [OP_div] = emit_binary,
    [OP_floordiv] = emit_binary,
    [OP_floormod] = emit_binary,
    [OP_truncdiv] = emit_binary,
    [OP_truncmod] = emit_binary,
    [OP_ceildiv] = emit_binary,
    [OP_min] = emit_binary,
    [OP_max] = emit_binary,
    [OP_and] = emit_binary,
    [OP_or] = emit_binary,
    [OP_xor] = emit_binary,
    [OP_shl] = emit_binary,
    [OP_shr] = emit_binary,
    [OP_lt] = emit_compare,
    [OP_le] = emit_compare,
    [OP_gt] = emit_compare,
    [OP_ge] = emit_compare,
    [OP_eq] = emit_compare,
    [OP_ne] = emit_compare,
    [OP_neg] = emit_unary,
    [OP_not] = emit_unary,
    [OP_abs] = emit_unary,
    [OP_floor] = emit_unary,
    [OP_ceil] = emit_unary,
    [OP_exp] = emit_unary,
    [OP_exp2] = emit_unary,
    [OP_log] = emit_unary,
    [OP_log2] = emit_unary,
    [OP_sqrt] = emit_unary,
    [OP_rsqrt] = emit_unary,
    [OP_tanh] = emit_unary,
    [OP_sin] = emit_unary,
    [OP_cos] = emit_unary,
    [OP_select] = emit_select,
    [OP_cast] = emit_cast,
    // control
    [OP_for] = emit_for,
    [OP_while] = emit_while,
    [OP_parallel] = emit_parallel,
    [OP_if] = emit_if,
    [OP_role] = emit_role,
    [OP_one_thread] = emit_one_thread,
    // memory
    [OP_alloc] = emit_alloc,
    [OP_alloc_barrier] = emit_alloc,
    [OP_view] = emit_view,
    [OP_reshape] = emit_reshape,
    [OP_load] = emit_load,
    [OP_store] = emit_store,
    [OP_print] = emit_print,
    [OP_trap] = emit_trap,
    [OP_atomic] = emit_atomic,
    [OP_atomic_load] = emit_atomic_load,
    [OP_atomic_store] = emit_atomic_store,
    [OP_cell] = emit_cell,
    [OP_get] = emit_get,
    [OP_set] = emit_set,
    // synchronisation; a `wait` is gone by now
    [OP_sync_threads] = emit_sync_threads,
    [OP_sync_warp] = emit_sync_warp,
    [OP_set_max_nreg] = emit_set_max_nreg,
    [OP_prefetch_maps] = emit_prefetch_maps,
    [OP_grid_wait] = emit_grid_wait,
    [OP_grid_release] = emit_grid_release,
    [OP_mbar_init] = emit_mbar_init,
    [OP_fence_mbarrier_init] = emit_fence_mbarrier_init,
    [OP_mbar_arrive] = emit_mbar_arrive,
    [OP_mbar_expect_tx] = emit_mbar_expect_tx,
    [OP_mbarrier_wait_parity] = emit_mbarrier_wait_parity,
    [OP_fence_proxy_async] = emit_fence_proxy_async,
    [OP_bulk_commit] = emit_bulk_commit,
    [OP_bulk_wait] = emit_bulk_wait,
};

static const CgPathEmit common_paths[] = {
    {OP_copy, PATH_THREADS, cg_copy_threads},     {OP_copy, PATH_TMA_LOAD, cg_copy_tma},
    {OP_copy, PATH_TMA_STORE, cg_copy_tma},       {OP_fill, PATH_THREADS, cg_fill_threads},
    {OP_reduce, PATH_THREADS, cg_reduce_threads}, {OP_atomic_add, PATH_THREADS, cg_copy_threads},
    {OP_atomic_add, PATH_TMA_STORE, cg_copy_tma},
};

static CgEmit find_path(const CgPathEmit *rows, int count, OpKind kind, Path path) {
  for (int i = 0; i < count; i++)
    if (rows[i].op == kind && rows[i].path == path) return rows[i].emit;
  return NULL;
}

CgEmit cg_find_emit(const CgTarget *target, OpKind kind, Path path) {
  if (op_def(kind)->group != GROUP_TILE) return target->emit[kind] ? target->emit[kind] : common_emit[kind];
  CgEmit own = find_path(target->paths, target->npaths, kind, path);
  return own ? own : find_path(common_paths, sizeof common_paths / sizeof *common_paths, kind, path);
}

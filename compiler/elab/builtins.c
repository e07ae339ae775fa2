// The names of the language, with or without a prefix (T., tl., tilelang.). Names that TileLang has and this
// compiler will have later are listed too, so that they get one clear answer instead of "not defined".
#include "elab/elab_internal.h"

#include <string.h>

static const char *const modules[] = {"T",     "tl",     "tilelang",  "language",       "math",
                                      "torch", "driver", "transform", "GemmWarpPolicy", "PassConfigKey"};

static const Builtin *const tables[] = {builtins_tile,  builtins_fragment, builtins_memory,  builtins_loop,
                                        builtins_sync,  builtins_math,     builtins_python,  builtins_atomic,
                                        builtins_debug, builtins_schedule, builtins_annotate};

enum { TABLE_COUNT = sizeof tables / sizeof *tables, MODULE_COUNT = sizeof modules / sizeof *modules };

#define LATER(name)                                                                                          \
  { #name, "", NULL }
static const Builtin later[] = {LATER(access_ptr),
                                LATER(address_of),
                                LATER(all_of),
                                LATER(alloc_buffer),
                                LATER(alloc_cluster_barrier),
                                LATER(alloc_descriptor),
                                LATER(alloc_global),
                                LATER(alloc_reducer),
                                LATER(annotate_compile_flags),
                                LATER(annotate_l2_hit_ratio),
                                LATER(annotate_layout),
                                LATER(annotate_min_blocks_per_sm),
                                LATER(annotate_padding),
                                LATER(annotate_safe_value),
                                LATER(annotate_ws_schedule),
                                LATER(any_of),
                                LATER(any_sync),
                                LATER(async_copy),
                                LATER(atomic_addx2),
                                LATER(atomic_addx4),
                                LATER(attr),
                                LATER(ballot_sync),
                                LATER(block_rank_in_cluster),
                                LATER(Broadcast),
                                LATER(c2d_im2col),
                                LATER(call_extern),
                                LATER(call_intrin),
                                LATER(cluster_sync),
                                LATER(ClusterKernel),
                                LATER(comm_reducer),
                                LATER(contiguous),
                                LATER(copy_cluster),
                                LATER(cp_async),
                                LATER(cummax),
                                LATER(decl_buffer),
                                LATER(dp4a),
                                LATER(env_thread),
                                LATER(erf),
                                LATER(evaluate),
                                LATER(finalize_reducer),
                                LATER(fma),
                                LATER(Fragment),
                                LATER(FragmentBuffer),
                                LATER(gemm_blockscaled),
                                LATER(gemm_sp),
                                LATER(handle),
                                LATER(ieee_add),
                                LATER(im2col),
                                LATER(import_source),
                                LATER(int4),
                                LATER(isfinite),
                                LATER(isinf),
                                LATER(isnan),
                                LATER(launch_thread),
                                LATER(Layout),
                                LATER(ldg128),
                                LATER(ldg256),
                                LATER(ldg64),
                                LATER(make_tensor),
                                LATER(match_buffer),
                                LATER(named_barrier_arrive),
                                LATER(parallel),
                                LATER(pdl_sync),
                                LATER(pdl_trigger),
                                LATER(pow),
                                LATER(ptr),
                                LATER(ptx_commit_group),
                                LATER(ptx_cp_async),
                                LATER(ptx_wait_group),
                                LATER(ptx_wgmma_ss),
                                LATER(Ramp),
                                LATER(reducer_init),
                                LATER(reducer_update),
                                LATER(Ref),
                                LATER(reinterpret),
                                LATER(rng_init),
                                LATER(rng_rand),
                                LATER(rng_rand_float),
                                LATER(round),
                                LATER(SharedBuffer),
                                LATER(shfl_down),
                                LATER(shfl_sync),
                                LATER(shfl_up),
                                LATER(shfl_xor),
                                LATER(Shuffle),
                                LATER(sigmoid),
                                LATER(StridedTensor),
                                LATER(sync_grid),
                                LATER(syncthreads_and),
                                LATER(syncthreads_or),
                                LATER(tcgen05_cp_warpx4),
                                LATER(tcgen05_gemm_blockscaled),
                                LATER(tcgen05_sf_warp_transpose),
                                LATER(thread_binding),
                                LATER(tma_load),
                                LATER(type_annotation),
                                LATER(wait_wgmma),
                                LATER(warp_reduce_max),
                                LATER(warp_reduce_sum),
                                LATER(warpgroup_arrive),
                                LATER(warpgroup_fence_operand),
                                LATER(wgmma_gemm),
                                LATER(While),
                                LATER(ws),
                                LATER(ws_op),
                                LATER(WSID),
                                LATER(WSPipeline),
                                LATER(WSRole),
                                LATER(WSSchedule),
                                LATER(WSScope),
                                LATER(WSSync),
                                {NULL, NULL, NULL}};
#undef LATER

static const Builtin *find_in(const Builtin *table, const char *name) {
  for (; table->name; table++)
    if (strcmp(table->name, name) == 0) return table;
  return NULL;
}

const Builtin *builtin_find(const char *name) {
  for (int i = 0; i < TABLE_COUNT; i++) {
    const Builtin *found = find_in(tables[i], name);
    if (found) return found;
  }
  return find_in(later, name);
}

bool builtin_is_module(const char *name) {
  for (int i = 0; i < MODULE_COUNT; i++)
    if (strcmp(modules[i], name) == 0) return true;
  return false;
}

const char *builtin_nearest(const char *name) {
  enum { MAX_NAMES = 400 };
  const char *names[MAX_NAMES];
  int count = 0;
  for (int i = 0; i < TABLE_COUNT; i++)
    for (const Builtin *row = tables[i]; row->name && count < MAX_NAMES; row++) names[count++] = row->name;
  for (int d = 0; d < DTYPE_COUNT && count < MAX_NAMES; d++) names[count++] = dtype_name((DType)d);
  static const char *const spellings[] = {"float32", "float16", "bfloat16", "int32",
                                          "uint32",  "int8",    "uint8"};
  for (int i = 0; i < 7 && count < MAX_NAMES; i++) names[count++] = spellings[i];
  return text_nearest(name, names, count);
}

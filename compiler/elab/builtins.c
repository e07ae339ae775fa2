// The names of the language, with or without a prefix (T., tl., tilelang.). Names that TileLang has and this
// compiler will have later are listed too, so that they get one clear answer instead of "not defined".
#include "elab/internal.h"

#include <string.h>

static const char *const modules[] = {"T", "tl", "tilelang", "language", "math", "torch", "GemmWarpPolicy"};

static const Builtin *const tables[] = {builtins_tile, builtins_memory, builtins_loop,
                                        builtins_sync, builtins_math,   builtins_python};

enum { TABLE_COUNT = sizeof tables / sizeof *tables, MODULE_COUNT = sizeof modules / sizeof *modules };

static const Builtin later[] = {
    {"Persistent", "", NULL},
    {"alloc_local", "", NULL},
    {"alloc_descriptor", "", NULL},
    {"alloc_reducer", "", NULL},
    {"alloc_cluster_barrier", "", NULL},
    {"annotate_l2_hit_ratio", "", NULL},
    {"annotate_layout", "", NULL},
    {"annotate_padding", "", NULL},
    {"annotate_safe_value", "", NULL},
    {"async_copy", "", NULL},
    {"atomic_add", "", NULL},
    {"atomic_addx2", "", NULL},
    {"atomic_addx4", "", NULL},
    {"atomic_load", "", NULL},
    {"atomic_max", "", NULL},
    {"atomic_min", "", NULL},
    {"atomic_store", "", NULL},
    {"barrier_arrive", "", NULL},
    {"barrier_wait", "", NULL},
    {"c2d_im2col", "", NULL},
    {"call_extern", "", NULL},
    {"call_intrin", "", NULL},
    {"cluster_sync", "", NULL},
    {"cp_async", "", NULL},
    {"cumsum", "", NULL},
    {"deallocate_tmem", "", NULL},
    {"device_assert", "", NULL},
    {"disable_warp_group_reg_alloc", "", NULL},
    {"dp4a", "", NULL},
    {"elect_one", "", NULL},
    {"erf", "", NULL},
    {"fma", "", NULL},
    {"gemm_blockscaled", "", NULL},
    {"gemm_sp", "", NULL},
    {"import_source", "", NULL},
    {"isfinite", "", NULL},
    {"isinf", "", NULL},
    {"isnan", "", NULL},
    {"loop_break", "", NULL},
    {"mbarrier_expect_tx", "", NULL},
    {"no_set_max_nreg", "", NULL},
    {"pow", "", NULL},
    {"print", "", NULL},
    {"ptx_arrive_barrier", "", NULL},
    {"reduce", "", NULL},
    {"reduce_abssum", "", NULL},
    {"reduce_absmax", "", NULL},
    {"reduce_max", "", NULL},
    {"reduce_min", "", NULL},
    {"reduce_sum", "", NULL},
    {"reinterpret", "", NULL},
    {"reshape", "", NULL},
    {"round", "", NULL},
    {"set_max_nreg", "", NULL},
    {"shfl_down", "", NULL},
    {"shfl_sync", "", NULL},
    {"shfl_up", "", NULL},
    {"shfl_xor", "", NULL},
    {"shuffle_elect", "", NULL},
    {"sigmoid", "", NULL},
    {"StridedTensor", "", NULL},
    {"sync_grid", "", NULL},
    {"sync_warp", "", NULL},
    {"tma_copy", "", NULL},
    {"tma_store_arrive", "", NULL},
    {"tma_store_wait", "", NULL},
    {"transpose", "", NULL},
    {"view", "", NULL},
    {"warp_reduce_max", "", NULL},
    {"warp_reduce_sum", "", NULL},
    {"wgmma_gemm", "", NULL},
    {"ws", "", NULL},
    {NULL, NULL, NULL},
};

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

// Bytes as a compiled file (cubin or PTX text) and, if they begin so, as launch information alone: opened, and each kernel's call
// is planned with small arrays, which evaluates its expressions. No device is touched.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/launch_info.h"
#include "core/module.h"
#include "fuzz.h"

static void bind(TileCall *call, const TileParam *param, int64_t size) {
  int64_t shape[TILE_MAX_RANK];
  for (int i = 0; i < TILE_MAX_RANK; i++) shape[i] = size;
  TileTensor tensor = {.address = 1 << 20, .dtype = param->dtype, .rank = param->rank, .shape = shape};
  tile_error_free(param->kind == TILE_PARAM_TENSOR ? tile_call_tensor(call, param->name, &tensor)
                                                   : tile_call_int(call, param->name, size));
  tile_error_free(tile_call_shape(call, param->name, shape));
}

static void plan(const TileKernel *kernel, int64_t size) {
  TileCall *call = NULL;
  TilePlan out;
  TileError *error = tile_call_new(kernel, &call);
  if (error == NULL) {
    for (int i = 0; i < tile_kernel_param_count(kernel); i++) bind(call, tile_kernel_param(kernel, i), size);
    for (int i = 0; i < tile_kernel_size_count(kernel); i++)
      tile_error_free(tile_call_size(call, tile_kernel_size_name(kernel, i), size));
    error = tile_call_plan(call, &out);
  }
  tile_error_free(error);
  tile_call_free(call);
}

static void open_module(const uint8_t *data, size_t size) {
  TileModule *module = NULL;
  tile_error_free(tile_module_open_memory(data, size, "input", &module));
  for (int i = 0; module != NULL && i < tile_module_kernel_count(module) && i < 8; i++) {
    plan(tile_module_kernel(module, i), 0);
    plan(tile_module_kernel(module, i), 128 + (int64_t)(fuzz_hash(data, size) & 15));
  }
  tile_module_close(module);
}

// A file of PTX whose launch information is this text.
static void open_info(const uint8_t *data, size_t size) {
  static const char head[] = ".version 8.6\n.const .align 1 .b8 " TILE_LAUNCH_INFO_SYMBOL "[";
  char *ptx = malloc(sizeof head + 32 + size * 4);
  if (ptx == NULL) return;
  int at = sprintf(ptx, "%s%zu] = {", head, size);
  for (size_t i = 0; i < size; i++) at += sprintf(ptx + at, "%s%d", i > 0 ? "," : "", data[i]);
  at += sprintf(ptx + at, "};\n");
  open_module((const uint8_t *)ptx, (size_t)at);
  free(ptx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  size_t magic = strlen(TILE_LAUNCH_INFO_MAGIC);
  if (size >= magic && memcmp(data, TILE_LAUNCH_INFO_MAGIC, magic) == 0)
    open_info(data, size);
  else
    open_module(data, size);
  return 0;
}

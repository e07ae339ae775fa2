// The header restates the launch information as C: a struct of arguments, and a function that computes sizes,
// checks them, encodes tensor maps and launches the first variant whose guards hold. What every header needs
// is one fixed text.
#include "driver/header.h"

#include <inttypes.h>
#include <string.h>

#include "driver/launch_expr.h"
#include "tir/params.h"

static const char prelude_arithmetic[] =
    "#ifndef TILE_LAUNCH_PRELUDE\n"
    "#define TILE_LAUNCH_PRELUDE\n"
    "#include <stdint.h>\n"
    "#include <cuda.h>\n"
    "static inline int64_t tile_add(int64_t a, int64_t b) { return a + b; }\n"
    "static inline int64_t tile_sub(int64_t a, int64_t b) { return a - b; }\n"
    "static inline int64_t tile_mul(int64_t a, int64_t b) { return a * b; }\n"
    "static inline int64_t tile_truncdiv(int64_t a, int64_t b) { return b ? a / b : 0; }\n"
    "static inline int64_t tile_truncmod(int64_t a, int64_t b) { return b ? a % b : 0; }\n"
    "static inline int64_t tile_floordiv(int64_t a, int64_t b) { return b ? a / b - (a % b != 0 && (a < 0) "
    "!= (b < 0)) : 0; }\n"
    "static inline int64_t tile_floormod(int64_t a, int64_t b) { return a - tile_floordiv(a, b) * b; }\n"
    "static inline int64_t tile_ceildiv(int64_t a, int64_t b) { return b ? a / b + (a % b != 0 && (a < 0) == "
    "(b < 0)) : 0; }\n"
    "static inline int64_t tile_min(int64_t a, int64_t b) { return a < b ? a : b; }\n"
    "static inline int64_t tile_max(int64_t a, int64_t b) { return a > b ? a : b; }\n"
    "static inline int64_t tile_lt(int64_t a, int64_t b) { return a < b; }\n"
    "static inline int64_t tile_le(int64_t a, int64_t b) { return a <= b; }\n"
    "static inline int64_t tile_gt(int64_t a, int64_t b) { return a > b; }\n"
    "static inline int64_t tile_ge(int64_t a, int64_t b) { return a >= b; }\n"
    "static inline int64_t tile_eq(int64_t a, int64_t b) { return a == b; }\n"
    "static inline int64_t tile_ne(int64_t a, int64_t b) { return a != b; }\n"
    "static inline int64_t tile_and(int64_t a, int64_t b) { return a & b; }\n"
    "static inline int64_t tile_or(int64_t a, int64_t b) { return a | b; }\n"
    "static inline int64_t tile_xor(int64_t a, int64_t b) { return a ^ b; }\n"
    "static inline int64_t tile_not(int64_t a) { return !a; }\n"
    "static inline int64_t tile_neg(int64_t a) { return -a; }\n"
    "static inline int64_t tile_shl(int64_t a, int64_t b) { return b >= 0 && b < 63 ? a * (INT64_C(1) << b) "
    ": 0; }\n"
    "static inline int64_t tile_shr(int64_t a, int64_t b) { return b >= 0 && b < 63 ? a >> b : 0; }\n"
    "static inline int64_t tile_abs(int64_t a) { return a < 0 ? -a : a; }\n"
    "static inline int64_t tile_select(int64_t c, int64_t a, int64_t b) { return c ? a : b; }\n";

static const char prelude_launch[] =
    "// The number of SMs of the current context's device; 0: there is none.\n"
    "static inline int32_t tile_sm_count(void) {\n"
    "  CUdevice device;\n"
    "  int count = 0;\n"
    "  if (cuCtxGetDevice(&device) != CUDA_SUCCESS) return 0;\n"
    "  if (cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) != CUDA_SUCCESS) "
    "return 0;\n"
    "  return count;\n"
    "}\n"
    "static inline CUresult tile_refuse(const char **why, const char *text) {\n"
    "  if (why) *why = text;\n"
    "  return CUDA_ERROR_INVALID_VALUE;\n"
    "}\n"
    "// Strides in elements: those given as 0 become dense.\n"
    "static inline void tile_strides(int rank, const int64_t *size, const int64_t *given, int64_t *stride) "
    "{\n"
    "  stride[rank - 1] = 1;\n"
    "  for (int d = rank - 2; d >= 0; d--) stride[d] = given[d] ? given[d] : stride[d + 1] * size[d + 1];\n"
    "}\n"
    "// What TMA asks of a tensor: base and strides are multiples of 16 bytes, no dimension is 0; a store "
    "also needs rows of\n"
    "// whole 16 bytes.\n"
    "static inline int tile_tma_fits(CUdeviceptr base, int rank, const int64_t *size, const int64_t *stride, "
    "int bits, int store) {\n"
    "  if (base % 16 || (store && size[rank - 1] * bits % 128)) return 0;\n"
    "  for (int d = 0; d < rank; d++)\n"
    "    if (size[d] < 1 || (d < rank - 1 && size[d] > 1 && (stride[d] < 0 || stride[d] * bits % 128))) "
    "return 0;\n"
    "  return 1;\n"
    "}\n"
    "static inline CUresult tile_encode(CUtensorMap *map, CUtensorMapDataType type, CUdeviceptr base, int "
    "rank,\n"
    "                                   const int64_t *size, const int64_t *stride, int bits, const int "
    "*box, int swizzle) {\n"
    "  cuuint64_t sizes[5], strides[5];\n"
    "  cuuint32_t boxes[5], steps[5];\n"
    "  for (int i = 0; i < rank; i++) {\n"
    "    int d = rank - 1 - i;\n"
    "    sizes[i] = (cuuint64_t)size[d];\n"
    "    boxes[i] = (cuuint32_t)box[d];\n"
    "    steps[i] = 1;\n"
    "    if (i == 0) continue;\n"
    "    uint64_t dense = i == 1 ? (sizes[0] * (uint64_t)bits / 8 + 15) / 16 * 16 : strides[i - 2] * sizes[i "
    "- 1];\n"
    "    strides[i - 1] = size[d] > 1 ? (cuuint64_t)(stride[d] * bits / 8) : dense;\n"
    "  }\n"
    "  CUtensorMapSwizzle swizzles[] = {CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_32B, "
    "CU_TENSOR_MAP_SWIZZLE_64B,\n"
    "                                   CU_TENSOR_MAP_SWIZZLE_128B};\n"
    "  int which = swizzle == 128 ? 3 : swizzle == 64 ? 2 : swizzle == 32 ? 1 : 0;\n"
    "  return cuTensorMapEncodeTiled(map, type, (cuuint32_t)rank, (void *)(uintptr_t)base, sizes, strides, "
    "boxes, steps,\n"
    "                                CU_TENSOR_MAP_INTERLEAVE_NONE, swizzles[which], "
    "CU_TENSOR_MAP_L2_PROMOTION_L2_128B,\n"
    "                                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);\n"
    "}\n"
    "static inline CUresult tile_start(CUmodule module, const char *entry, const int64_t *grid, unsigned "
    "block, unsigned shared,\n"
    "                                  unsigned overlap, CUstream stream, void **params, const char **why) "
    "{\n"
    "  CUfunction function;\n"
    "  CUlaunchAttribute attribute;\n"
    "  CUlaunchConfig config;\n"
    "  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0) return CUDA_SUCCESS;\n"
    "  if (grid[0] < 0 || grid[0] > INT32_MAX || grid[1] < 0 || grid[1] > 65535 || grid[2] < 0 || grid[2] > "
    "65535)\n"
    "    return tile_refuse(why, \"the grid is too large\");\n"
    "  CUresult result = cuModuleGetFunction(&function, module, entry);\n"
    "  if (result == CUDA_SUCCESS)\n"
    "    result = cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, "
    "(int)shared);\n"
    "  if (result != CUDA_SUCCESS) return result;\n"
    "  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;\n"
    "  attribute.value.programmaticStreamSerializationAllowed = 1;\n"
    "  config.gridDimX = (unsigned)grid[0];\n"
    "  config.gridDimY = (unsigned)grid[1];\n"
    "  config.gridDimZ = (unsigned)grid[2];\n"
    "  config.blockDimX = block;\n"
    "  config.blockDimY = config.blockDimZ = 1;\n"
    "  config.sharedMemBytes = shared;\n"
    "  config.hStream = stream;\n"
    "  config.attrs = &attribute;\n"
    "  config.numAttrs = overlap;\n"
    "  result = cuLaunchKernelEx(&config, function, params, 0);\n"
    "  if (!overlap || (result != CUDA_ERROR_INVALID_VALUE && result != CUDA_ERROR_NOT_SUPPORTED)) return "
    "result;\n"
    "  config.numAttrs = 0;  // a driver that does not know the attribute\n"
    "  return cuLaunchKernelEx(&config, function, params, 0);\n"
    "}\n"
    "#endif\n";

// How C and the driver call an element type. Narrow floats travel as their bits.
typedef struct {
  const char *c_type, *map_type;
} TypeNames;

static const TypeNames type_names[DTYPE_COUNT] = {
    [DTYPE_f64] = {"double", "FLOAT64"},     [DTYPE_f32] = {"float", "FLOAT32"},
    [DTYPE_tf32] = {"float", "TFLOAT32"},    [DTYPE_f16] = {"uint16_t", "FLOAT16"},
    [DTYPE_bf16] = {"uint16_t", "BFLOAT16"}, [DTYPE_e4m3] = {"uint8_t", "UINT8"},
    [DTYPE_e5m2] = {"uint8_t", "UINT8"},     [DTYPE_e2m3] = {"uint8_t", "UINT8"},
    [DTYPE_e3m2] = {"uint8_t", "UINT8"},     [DTYPE_e2m1] = {"uint8_t", "UINT8"},
    [DTYPE_ue8m0] = {"uint8_t", "UINT8"},    [DTYPE_i64] = {"int64_t", "INT64"},
    [DTYPE_i32] = {"int32_t", "INT32"},      [DTYPE_i16] = {"int16_t", "UINT16"},
    [DTYPE_i8] = {"int8_t", "UINT8"},        [DTYPE_u64] = {"uint64_t", "UINT64"},
    [DTYPE_u32] = {"uint32_t", "UINT32"},    [DTYPE_u16] = {"uint16_t", "UINT16"},
    [DTYPE_u8] = {"uint8_t", "UINT8"},       [DTYPE_bool] = {"uint8_t", "UINT8"},
};

typedef struct {
  TextBuf out;
  const TirModule *module;
  const TirKernel *kernel;
  Diags *ds;
} Writer;

static const char *c_name(Writer *w, const TirOp *op) {
  return launch_c_name(w->out.arena, op->name);
}

static bool write_expr(Writer *w, const TirValue *value, Span span) {
  return launch_expr_print(&w->out, value, EXPR_C, span, w->ds);
}

static bool each(Writer *w, OpKind kind, bool (*write)(Writer *, const TirOp *)) {
  for (const TirOp *op = w->kernel->launch->first; op; op = op->next)
    if (op->kind == kind && !write(w, op)) return false;
  return true;
}

// ---- the arguments

static bool write_tensor_field(Writer *w, const TirOp *op) {
  static const char *const access_names[] = {"read", "read", "written", "read and written"};
  const TirValue *tensor = op->results[0];
  int rank = tensor->type.rank;
  textbuf_printf(&w->out, "  CUdeviceptr %s;  // %s, %s\n", c_name(w, op), dtype_name(tensor->type.dtype),
                 access_names[tir_access(w->kernel, tensor)]);
  if (rank > 1)
    textbuf_printf(&w->out, "  int64_t %s_stride[%d];  // in elements, outermost first; 0: dense\n",
                   c_name(w, op), rank - 1);
  return true;
}

static bool write_size_field(Writer *w, const TirOp *op) {
  if (launch_is_sm_count(op)) return true;
  textbuf_printf(&w->out, "  int32_t %s;\n", c_name(w, op));
  return true;
}

static bool write_scalar_field(Writer *w, const TirOp *op) {
  textbuf_printf(&w->out, "  %s %s;\n", type_names[op->results[0]->type.dtype].c_type, c_name(w, op));
  return true;
}

static void write_args(Writer *w) {
  textbuf_puts(&w->out, "\ntypedef struct {\n");
  each(w, OP_tensor, write_tensor_field);
  each(w, OP_size, write_size_field);
  each(w, OP_param, write_scalar_field);
  textbuf_printf(&w->out, "} %s_args;\n", w->kernel->name);
}

// ---- the function

static bool write_sm_count(Writer *w, const TirOp *op) {
  if (launch_is_sm_count(op)) textbuf_puts(&w->out, "  const int32_t tile_sms = tile_sm_count();\n");
  return true;
}

static bool write_tensor_locals(Writer *w, const TirOp *op) {
  const char *name = c_name(w, op);
  textbuf_printf(&w->out, "  int64_t %s_size[] = {", name);
  for (int i = 0; i < op->nargs; i++) {
    if (i) textbuf_puts(&w->out, ", ");
    if (!write_expr(w, op->args[i], op->span)) return false;
  }
  textbuf_printf(&w->out, "}, %s_strides[%d];\n", name, op->nargs);
  textbuf_printf(&w->out, "  tile_strides(%d, %s_size, %s%s%s, %s_strides);\n", op->nargs, name,
                 op->nargs > 1 ? "args->" : "", op->nargs > 1 ? name : "0", op->nargs > 1 ? "_stride" : "",
                 name);
  return true;
}

static void write_c_string(Writer *w, const char *text) {
  textbuf_puts(&w->out, "\"");
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\')
      textbuf_printf(&w->out, "\\%c", c);
    else if (c < 0x20 || c == 0x7f || c == '?')
      textbuf_printf(&w->out, "\\%03o", c);
    else
      textbuf_add(&w->out, text, 1);
  }
  textbuf_puts(&w->out, "\"");
}

static bool write_check(Writer *w, const TirOp *op) {
  textbuf_puts(&w->out, "  if (!");
  if (!write_expr(w, op->args[0], op->span)) return false;
  textbuf_puts(&w->out, ") return tile_refuse(why, ");
  write_c_string(w, op->name);
  textbuf_puts(&w->out, ");\n");
  return true;
}

static bool write_grid(Writer *w, const TirOp *op) {
  textbuf_puts(&w->out, "    int64_t grid[3] = {");
  for (int i = 0; i < 3; i++) {
    if (i) textbuf_puts(&w->out, ", ");
    if (i >= op->nargs)
      textbuf_puts(&w->out, "1");
    else if (!write_expr(w, op->args[i], op->span))
      return false;
  }
  textbuf_puts(&w->out, "};\n");
  return true;
}

static void write_guards(Writer *w) {
  textbuf_puts(&w->out, "  if (1");
  for (int i = 0; i < w->kernel->guards.len; i++) {
    const TirGuard *guard = &w->kernel->guards.data[i];
    const char *name = c_name(w, guard->tensor->op);
    textbuf_printf(&w->out, " &&\n      tile_tma_fits(args->%s, %d, %s_size, %s_strides, %d, %d)", name,
                   guard->tensor->type.rank, name, name, dtype_bits(guard->tensor->type.dtype), guard->store);
  }
  textbuf_puts(&w->out, ") {\n");
}

static void write_maps(Writer *w) {
  for (int i = 0; i < w->kernel->maps.len; i++) {
    const TirMap *map = &w->kernel->maps.data[i];
    const Type *type = &map->tensor->type;
    const char *name = c_name(w, map->tensor->op);
    textbuf_printf(&w->out, "    CUtensorMap map_%d;\n    int box_%d[] = {", i, i);
    for (int d = 0; d < type->rank; d++) textbuf_printf(&w->out, "%s%" PRId64, d ? ", " : "", map->box[d]);
    textbuf_printf(&w->out,
                   "};\n    if (tile_encode(&map_%d, CU_TENSOR_MAP_DATA_TYPE_%s, args->%s, %d, %s_size, "
                   "%s_strides, %d,\n"
                   "                    box_%d, %d) != CUDA_SUCCESS)\n"
                   "      return tile_refuse(why, \"the driver takes no tensor map of %s\");\n",
                   i, type_names[type->dtype].map_type, name, type->rank, name, name, dtype_bits(type->dtype),
                   i, map->swizzle, name);
  }
}

static void write_params(Writer *w) {
  TirParams params = tir_params(w->out.arena, w->kernel);
  textbuf_puts(&w->out, "    void *params[] = {");
  for (int i = 0; i < params.len; i++) {
    const TirParam *param = &params.data[i];
    const char *name = c_name(w, param->value->op);
    if (i) textbuf_puts(&w->out, ", ");
    switch (param->kind) {
    case PARAM_POINTER:
    case PARAM_SIZE:
    case PARAM_SCALAR:
      textbuf_printf(&w->out, "(void *)&%s", launch_c_size(w->out.arena, param->value->op));
      break;
    case PARAM_STRIDE:
      textbuf_printf(&w->out, "&%s_strides[%d]", name, param->index);
      break;
    case PARAM_MAP:
      textbuf_printf(&w->out, "&map_%d", param->index);
      break;
    }
  }
  textbuf_puts(&w->out, params.len ? "};\n" : "0};\n");
}

static bool write_variant(Writer *w) {
  write_guards(w);
  if (!each(w, OP_grid, write_grid)) return false;
  write_maps(w);
  write_params(w);
  textbuf_printf(&w->out,
                 "    return tile_start(module, \"%s\", grid, %d, %" PRId64
                 ", %d, stream, params, why);\n  }\n",
                 tir_entry_name(w->out.arena, w->kernel), w->kernel->threads, w->kernel->shared_bytes,
                 tir_may_overlap(w->kernel));
  return true;
}

// Variants of one kernel stand in the order in which they are tried.
static bool write_kernel(Writer *w, int first) {
  const TirKernel *kernel = w->kernel = w->module->kernels.data[first];
  write_args(w);
  textbuf_printf(&w->out,
                 "\n// Checks, then launches on the stream. CUDA_ERROR_INVALID_VALUE with a sentence in *why "
                 "(if why is not 0)\n"
                 "// when the arguments do not suit the kernel.\n"
                 "static inline CUresult %s_launch(CUmodule module, CUstream stream, const %s_args *args, "
                 "const char **why) {\n",
                 kernel->name, kernel->name);
  each(w, OP_size, write_sm_count);
  if (!each(w, OP_tensor, write_tensor_locals) || !each(w, OP_check, write_check)) return false;
  for (int i = first; i < w->module->kernels.len; i++) {
    w->kernel = w->module->kernels.data[i];
    if (w->kernel->name == kernel->name && !write_variant(w)) return false;
  }
  textbuf_puts(&w->out,
               "  return tile_refuse(why, \"a tensor is not aligned as the kernel needs it\");\n}\n");
  return true;
}

static bool is_first_of_name(const TirModule *module, int index) {
  for (int i = 0; i < index; i++)
    if (module->kernels.data[i]->name == module->kernels.data[index]->name) return false;
  return true;
}

const char *launch_header(Arena *arena, const TirModule *module, const Target *target, const Source *source,
                          Diags *ds) {
  Writer w = {.out = {.arena = arena}, .module = module, .ds = ds};
  const char *path = source ? source->path : "tile IR", *slash = strrchr(path, '/');
  textbuf_printf(
      &w.out,
      "// Made by tilec from %s for %s: how to launch its kernels with the CUDA driver API.\n"
      "// Needs cuda.h and libcuda; the module is the cubin of the same compilation.\n#pragma once\n",
      slash ? slash + 1 : path, target->name);
  textbuf_puts(&w.out, prelude_arithmetic);
  textbuf_puts(&w.out, prelude_launch);
  for (int i = 0; i < module->kernels.len; i++)
    if (is_first_of_name(module, i) && !write_kernel(&w, i)) return NULL;
  return w.out.data;
}

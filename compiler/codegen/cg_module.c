// The module: launch information, shared memory, one entry function a kernel, and its parameters in the order
// of tir_params.
//
// Shared memory is one external array without a size: with sized internal globals LLVM reasons about their
// contents as if one thread ran. A tensor is noalias only when no op of the kernel writes it: a read after a TMA
// store and its wait would be merged into an earlier read. Maps are grid constants, else LLVM copies them to local
// memory.
#include "codegen/cg.h"

#include <string.h>

#include "codegen/nvvm.h"

void cg_unsupported(Cg *cg, const TirOp *op, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *text = text_vprintf(cg->arena, format, args);
  va_end(args);
  diag_error(cg->ds, DIAG_codegen_unsupported, op->span, "no code for '%s' on %s: %s", op_def(op->kind)->name,
             cg->target->name, text);
  cg->failed = true;
}

const CgTarget *cg_find_emitters(const Target *target) {
  static const CgTarget *const all[] = {&cg_sm90a, &cg_sm100a};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (strcmp(all[i]->name, target->name) == 0) return all[i];
  return NULL;
}

static void add_launch_info(Cg *cg, const char *text) {
  if (!text) return;
  unsigned length = (unsigned)strlen(text);
  LLVMValueRef bytes = LLVMConstStringInContext2(cg->context, text, length, true);
  LLVMValueRef global = LLVMAddGlobalInAddressSpace(cg->module, LLVMTypeOf(bytes), "__tile_launch_info", 4);
  LLVMSetInitializer(global, bytes);
  LLVMSetGlobalConstant(global, true);
  LLVMSetAlignment(global, 1);
}

static void add_shared(Cg *cg) {
  cg->shared = LLVMAddGlobalInAddressSpace(cg->module, LLVMArrayType2(cg->i8, 0), "tile_shared", 3);
  LLVMSetLinkage(cg->shared, LLVMExternalLinkage);
  LLVMSetAlignment(cg->shared, 1024);
}

// ---- entry functions

static LLVMTypeRef param_type(Cg *cg, const TirParam *param) {
  switch (param->kind) {
  case PARAM_POINTER:
    return LLVMPointerTypeInContext(cg->context, 1);
  case PARAM_SIZE:
    return cg->i32;
  case PARAM_STRIDE:
    return cg->i64;
  case PARAM_MAP:
    return LLVMPointerTypeInContext(cg->context, 0);
  case PARAM_SCALAR:
    return cg_memory_type(cg, param->value->type.dtype);
  }
  return NULL;
}

static void add_attribute(Cg *cg, unsigned index, const char *name, uint64_t value) {
  unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
  if (!kind) BUG("LLVM knows no attribute %s", name);
  LLVMAddAttributeAtIndex(cg->function, index, LLVMCreateEnumAttribute(cg->context, kind, value));
}

static void add_string_attribute(Cg *cg, unsigned index, const char *name, const char *value) {
  LLVMAttributeRef attribute =
      LLVMCreateStringAttribute(cg->context, name, (unsigned)strlen(name), value, (unsigned)strlen(value));
  LLVMAddAttributeAtIndex(cg->function, index, attribute);
}

static void attribute_param(Cg *cg, const TirParam *param, unsigned index) {
  if (param->kind == PARAM_POINTER) {
    if (!(tir_access(cg->kernel, param->value) & WRITES)) add_attribute(cg, index, "noalias", 0);
  } else if (param->kind == PARAM_MAP) {
    unsigned byval = LLVMGetEnumAttributeKindForName("byval", 5);
    LLVMTypeRef map = LLVMArrayType2(cg->i8, 128);
    LLVMAddAttributeAtIndex(cg->function, index, LLVMCreateTypeAttribute(cg->context, byval, map));
    add_attribute(cg, index, "align", 64);
    add_string_attribute(cg, index, "nvvm.grid_constant", "");
  }
}

static void bind_param(Cg *cg, const TirParam *param, LLVMValueRef llvm) {
  int id = param->value->id;
  switch (param->kind) {
  case PARAM_POINTER:
    cg->storage[id] = llvm;
    break;
  case PARAM_SIZE:
    cg_set_value(cg, param->value, llvm);
    break;
  case PARAM_STRIDE:
    cg->strides[id][param->index] = llvm;
    break;
  case PARAM_MAP:
    cg->maps[param->index] = llvm;
    break;
  case PARAM_SCALAR:
    cg_set_value(cg, param->value, cg_from_memory(cg, param->value->type.dtype, llvm));
    break;
  }
}

// Symbols of the module share one space of names: LLVM would silently rename the second.
static void check_entry_name(Cg *cg, const char *name) {
  if (!LLVMGetNamedFunction(cg->module, name) && !LLVMGetNamedGlobal(cg->module, name)) return;
  diag_error(cg->ds, DIAG_codegen_unsupported, cg->kernel->span,
             "the name '%s' stands for something else in the compiled module; call the kernel otherwise",
             name);
  cg->failed = true;
}

static int param_bytes(const TirParam *param) {
  enum { POINTER_BYTES = 8, SIZE_BYTES = 4, STRIDE_BYTES = 8, MAP_BYTES = 128 };
  switch (param->kind) {
  case PARAM_POINTER:
    return POINTER_BYTES;
  case PARAM_SIZE:
    return SIZE_BYTES;
  case PARAM_STRIDE:
    return STRIDE_BYTES;
  case PARAM_MAP:
    return MAP_BYTES;
  case PARAM_SCALAR:
    return dtype_bytes(param->value->type.dtype);
  }
  return 0;
}

static void check_param_bytes(Cg *cg, const TirParams *params) {
  enum { MAP_ALIGN = 64 };
  int64_t bytes = 0;
  int maps = 0;
  for (int i = 0; i < params->len; i++) {
    int size = param_bytes(&params->data[i]), align = size > MAP_ALIGN ? MAP_ALIGN : size;
    if (align > 1) bytes = (bytes + align - 1) / align * align;
    bytes += size;
    maps += params->data[i].kind == PARAM_MAP;
  }
  if (bytes <= cg->target->param_bytes) return;
  diag_error(cg->ds, DIAG_param_overflow, cg->kernel->span,
             "the kernel's parameters take %lld bytes, %s has %d; among them are %d tensor maps",
             (long long)bytes, cg->target->name, cg->target->param_bytes, maps);
  diag_hint(cg->ds, "fewer tensors, or several of them in one of a higher rank");
  cg->failed = true;
}

static bool visit_set_max_nreg(void *context, TirOp *op) {
  (void)context;
  return op->kind != OP_set_max_nreg;
}

static bool add_fragment(void *context, TirOp *op) {
  int64_t *registers = context;
  bool fragment = op->kind == OP_alloc && op->results[0]->type.space == SPACE_FRAGMENT;
  if (fragment) *registers += layout_registers(op->results[0]->layout);
  return true;
}

// ptxas rather spills than lets fewer blocks on an SM than it thinks worth having, and does not see that tensor memory and
// shared memory have no room for them. How many there is room for; 0: nothing to tell it, or a thread might have too few
// registers then.
static int blocks_of_sm(const Cg *cg) {
  enum { ADDRESSES = 64 };
  const TirKernel *kernel = cg->kernel;
  if (kernel->tmem_columns == 0 || kernel->shared_bytes == 0) return 0;
  int64_t blocks = cg->target->tmem_columns / kernel->tmem_columns, fragments = 0;
  if (cg->target->shared_bytes / kernel->shared_bytes < blocks)
    blocks = cg->target->shared_bytes / kernel->shared_bytes;
  tir_walk(kernel->body, add_fragment, &fragments);
  return blocks > 0 && cg->target->registers / (blocks * kernel->threads) >= fragments + ADDRESSES
             ? (int)blocks
             : 0;
}

// setmaxnreg needs to know the registers at entry, which ptxas derives from the blocks of an SM.
static int least_blocks(const Cg *cg) {
  return tir_walk(cg->kernel->body, visit_set_max_nreg, NULL) ? blocks_of_sm(cg) : 1;
}

static void declare_entry(Cg *cg, const TirParams *params) {
  LLVMTypeRef *types = ARENA_ARRAY(cg->arena, LLVMTypeRef, params->len + 1);
  for (int i = 0; i < params->len; i++) types[i] = param_type(cg, &params->data[i]);
  LLVMTypeRef type = LLVMFunctionType(cg->none, types, (unsigned)params->len, false);
  const char *name = tir_entry_name(cg->arena, cg->kernel);
  check_entry_name(cg, name);
  check_param_bytes(cg, params);
  cg->function = LLVMAddFunction(cg->module, name, type);
  LLVMSetFunctionCallConv(cg->function, LLVMPTXKernelCallConv);
  add_string_attribute(cg, (unsigned)LLVMAttributeFunctionIndex, "nvvm.reqntid",
                       text_printf(cg->arena, "%d", cg->kernel->threads));
  int blocks = least_blocks(cg);
  if (blocks)
    add_string_attribute(cg, (unsigned)LLVMAttributeFunctionIndex, "nvvm.minctasm",
                         text_printf(cg->arena, "%d", blocks));
  add_attribute(cg, (unsigned)LLVMAttributeFunctionIndex, "nounwind", 0);
  for (int i = 0; i < params->len; i++) attribute_param(cg, &params->data[i], (unsigned)i + 1);
}

static void bind_tensors(Cg *cg) {
  for (const TirOp *op = cg->kernel->launch->first; op; op = op->next) {
    if (op->kind != OP_tensor) continue;
    const TirValue *tensor = op->results[0];
    cg->strides[tensor->id][tensor->type.rank - 1] = cg_i64(cg, 1);
    cg_root_place(cg, tensor);
  }
}

static void begin_kernel(Cg *cg, const TirKernel *kernel) {
  int n = kernel->next_id + 1;
  cg->kernel = kernel;
  cg->scalars = ARENA_ARRAY(cg->arena, LLVMValueRef, n);
  cg->places = ARENA_ARRAY(cg->arena, CgPlace *, n);
  cg->storage = ARENA_ARRAY(cg->arena, LLVMValueRef, n);
  cg->strides = arena_array(cg->arena, (size_t)n, sizeof *cg->strides);
  cg->maps = ARENA_ARRAY(cg->arena, LLVMValueRef, kernel->maps.len + 1);
  cg->parallel = NULL;
  cg->may_store = NULL;
  cg->divergent = 0;
}

// The entry block holds the allocas alone, so that every one of them is promoted.
static void emit_kernel(Cg *cg, const TirKernel *kernel) {
  begin_kernel(cg, kernel);
  TirParams params = tir_params(cg->arena, kernel);
  declare_entry(cg, &params);
  cg->entry = LLVMAppendBasicBlockInContext(cg->context, cg->function, "entry");
  LLVMBasicBlockRef start = cg_new_block(cg, "start");
  LLVMPositionBuilderAtEnd(cg->builder, start);
  cg_debug_kernel(cg, kernel);
  for (int i = 0; i < params.len; i++)
    bind_param(cg, &params.data[i], LLVMGetParam(cg->function, (unsigned)i));
  cg_flow_begin(cg);
  bind_tensors(cg);
  cg_block(cg, kernel->launch);
  cg_block(cg, kernel->body);
  LLVMBuildRetVoid(cg->builder);
  LLVMPositionBuilderAtEnd(cg->builder, cg->entry);
  LLVMBuildBr(cg->builder, start);
}

static void init_types(Cg *cg) {
  cg->i1 = LLVMInt1TypeInContext(cg->context);
  cg->i8 = LLVMInt8TypeInContext(cg->context);
  cg->i16 = LLVMInt16TypeInContext(cg->context);
  cg->i32 = LLVMInt32TypeInContext(cg->context);
  cg->i64 = LLVMInt64TypeInContext(cg->context);
  cg->f32 = LLVMFloatTypeInContext(cg->context);
  cg->none = LLVMVoidTypeInContext(cg->context);
}

static Cg *new_translation(const Target *target, const Source *source, Diags *ds) {
  Arena *arena = arena_new();
  if (!arena) return NULL;
  Cg *cg = ARENA_NEW(arena, Cg);
  cg->arena = arena;
  cg->ds = ds;
  cg->source = source;
  cg->target = target;
  cg->context = LLVMContextCreate();
  cg->module = LLVMModuleCreateWithNameInContext("tile", cg->context);
  cg->builder = LLVMCreateBuilderInContext(cg->context);
  cg->bundle = LLVMCreateOperandBundle("tile", 4, NULL, 0);
  init_types(cg);
  return cg;
}

Cg *cg_begin(const Target *target, const Source *source, Diags *ds) {
  const CgTarget *emitters = cg_find_emitters(target);
  if (!emitters) {
    Span nowhere = {0, 0};
    diag_error(ds, DIAG_codegen_unsupported, nowhere, "no code generator for the target %s", target->name);
    return NULL;
  }
  Cg *cg = new_translation(target, source, ds);
  if (!cg) BUG("out of memory");
  cg->emitters = emitters;
  if (cg_machine(cg)) return cg;
  cg_free(cg);
  return NULL;
}

CgModule *cg_module(const TirModule *module, const Target *target, const Source *source,
                    const char *launch_info, Diags *ds) {
  Cg *cg = cg_begin(target, source, ds);
  if (!cg) return NULL;
  cg_debug_begin(cg);
  add_launch_info(cg, launch_info);
  add_shared(cg);
  for (int i = 0; i < module->kernels.len; i++) emit_kernel(cg, module->kernels.data[i]);
  cg_debug_end(cg);
  if (!cg->failed && cg_verify(cg)) return cg;
  cg_free(cg);
  return NULL;
}

void cg_free(CgModule *cg) {
  if (!cg) return;
  LLVMDisposeOperandBundle(cg->bundle);
  LLVMDisposeBuilder(cg->builder);
  LLVMDisposeModule(cg->module);
  if (cg->machine) LLVMDisposeTargetMachine(cg->machine);
  LLVMContextDispose(cg->context);
  arena_free(cg->arena);
}

// What the files of this room share: the state of one translation and the helpers that emitters call.
//
// A Cg is one module on its way from tile IR to PTX. Kernels are emitted one after another; the fields below
// "the kernel" belong to the one being emitted. Every scalar value of the tile IR has an LLVM value
// (cg_value); every buffer has a place (cg_place): its root and where in the root it starts. i32 is the type
// of all indices; byte offsets are i64.
#ifndef TILEC_CODEGEN_CG_H
#define TILEC_CODEGEN_CG_H

#include <llvm-c/Core.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/TargetMachine.h>

#include "base/diag.h"
#include "codegen/codegen.h"
#include "target/target.h"
#include "tir/params.h"
#include "tir/roles.h"
#include "tir/tir.h"

typedef struct CgModule Cg;
typedef void (*CgEmit)(Cg *cg, const TirOp *op);

// How a tile op is emitted that goes a certain path.
typedef struct {
  OpKind op;
  Path path;
  CgEmit emit;
} CgPathEmit;

// One target's own emitters: core ops, a row an op, NULL where all targets share one or there is none; and paths of
// tile ops.
typedef struct {
  const char *name;  // of the Target
  CgEmit emit[OP_COUNT];
  const CgPathEmit *paths;
  int npaths;
} CgTarget;

extern const CgTarget cg_sm90a, cg_sm100a;

// Where a buffer lies in its root: dimension i of the buffer is dimension dim[i] of the root, which starts at
// offset[dim].
typedef struct {
  const TirValue *root;
  int rank;
  int dim[TYPE_MAX_RANK];
  LLVMValueRef offset[TYPE_MAX_RANK];  // i32, one a dimension of the root
  int64_t multiple[TYPE_MAX_RANK];     // a power of two that divides the offset
} CgPlace;

typedef struct CgParallel CgParallel;

struct CgModule {
  Arena *arena;
  Diags *ds;
  const Source *source;
  const Target *target;
  const CgTarget *emitters;
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef builder;
  LLVMTargetMachineRef machine;
  LLVMOperandBundleRef bundle;  // "tile"(), on every intrinsic with an effect (rules L1)
  LLVMTypeRef i1, i8, i16, i32, i64, f32, none;
  LLVMValueRef shared;  // all shared memory of the CTA
  LLVMDIBuilderRef di;
  LLVMMetadataRef di_file, di_unit, di_scope;
  bool failed, optimised;

  // The kernel.
  const TirKernel *kernel;
  LLVMValueRef function;
  LLVMBasicBlockRef entry;     // holds the allocas
  LLVMValueRef thread;         // thread_idx.x
  LLVMValueRef warp;           // its warp, the same in all lanes; NULL in a kernel without roles
  LLVMBasicBlockRef arms_end;  // where the arms of the branch in hand meet; NULL outside of one
  TirThreads active;           // the threads that the ops being emitted are for
  LLVMValueRef position;       // of this thread among them, from 0
  LLVMValueRef *scalars;       // by value id
  CgPlace **places;            // by value id
  LLVMValueRef *storage;       // by value id of a root: pointer, TMEM address, alloca; of a cell: alloca
  LLVMValueRef (*strides)[TYPE_MAX_RANK];  // by value id of a tensor: i64
  LLVMValueRef *maps;
  CgParallel *parallel;    // the parallel op being emitted over a fragment, or NULL
  LLVMValueRef may_store;  // i1: whether this thread stores to memory in the parallel op; NULL: yes
  int divergent;           // depth of regions that some threads of a warp may skip
};

// ---- cg_module.c
const CgTarget *cg_find_emitters(const Target *target);  // NULL: there is no code generator for it
// NULL: the op has no code on this target. A core op goes PATH_NONE.
CgEmit cg_find_emit(const CgTarget *target, OpKind kind, Path path);
// An empty translation with its target machine; NULL: reported.
Cg *cg_begin(const Target *target, const Source *source, Diags *ds);
// Reports that code generation cannot do this op; the module is then given up.
__attribute__((format(printf, 3, 4))) void cg_unsupported(Cg *cg, const TirOp *op, const char *format, ...);

// ---- cg_debug.c: line tables. Without a source all of them do nothing.
void cg_debug_begin(Cg *cg);
void cg_debug_kernel(Cg *cg, const TirKernel *kernel);
void cg_debug_location(Cg *cg, Span span);
void cg_debug_end(Cg *cg);

// ---- cg_flow.c
void cg_flow_begin(Cg *cg);  // who runs: all threads of the kernel
void cg_block(Cg *cg, const TirBlock *block);
LLVMBasicBlockRef cg_new_block(Cg *cg, const char *name);  // appended to the function
LLVMValueRef cg_alloca(Cg *cg, LLVMTypeRef type, const char *name);
// Whether so many copies of a body, where there must be copies, are short enough: the time of LLVM and ptxas is
// bounded.
bool cg_may_repeat(const TirBlock *body, int64_t times);
// A branch around what is emitted until cg_end_if. A NULL condition emits none.
typedef struct {
  LLVMBasicBlockRef after;
} CgIf;
CgIf cg_begin_if(Cg *cg, LLVMValueRef condition);
void cg_end_if(Cg *cg, CgIf branch);
// A rolled loop of i32 from lo by step: up while below hi, or down while above it; either way when only the
// running kernel knows the step's sign (a step of 0 has no round).
typedef enum { CG_UP, CG_DOWN, CG_EITHER } CgDirection;
// `may_wrap`: the step after the last round may leave i32. `go`: a slot of an i1 that must hold true, too; or NULL.
typedef struct {
  LLVMValueRef lo, hi, step, go;
  CgDirection direction;
  bool may_wrap;
  bool enters;         // there is a first round for sure
  LLVMValueRef index;  // from here on cg_begin_loop's
  LLVMBasicBlockRef body, after;
} CgLoop;
CgLoop cg_thread_loop(Cg *cg,
                      LLVMValueRef total);  // this thread's share of the numbers below total, to be begun
CgLoop cg_begin_loop(Cg *cg, CgLoop loop);
void cg_end_loop(Cg *cg, CgLoop loop);
void emit_for(Cg *cg, const TirOp *op);
void emit_while(Cg *cg, const TirOp *op);
void emit_if(Cg *cg, const TirOp *op);
void emit_role(Cg *cg, const TirOp *op);
void emit_one_thread(Cg *cg, const TirOp *op);
void emit_sync_threads(Cg *cg, const TirOp *op);
void emit_sync_warp(Cg *cg, const TirOp *op);
void emit_prefetch_maps(Cg *cg, const TirOp *op);
void emit_grid_wait(Cg *cg, const TirOp *op);
void emit_grid_release(Cg *cg, const TirOp *op);
void emit_set_max_nreg(Cg *cg, const TirOp *op);

// ---- cg_value.c
LLVMTypeRef cg_type(Cg *cg, DType dtype);         // of a value: bool is i1
LLVMTypeRef cg_memory_type(Cg *cg, DType dtype);  // in memory: bool is i8
LLVMValueRef cg_to_memory(Cg *cg, DType dtype, LLVMValueRef value);
LLVMValueRef cg_from_memory(Cg *cg, DType dtype, LLVMValueRef value);
LLVMValueRef cg_i32(Cg *cg, int64_t value);
LLVMValueRef cg_i64(Cg *cg, int64_t value);
LLVMValueRef cg_value(Cg *cg, const TirValue *value);
const TirValue *cg_arg(const TirOp *op, int i);  // NULL for an absent optional operand
void cg_set_value(Cg *cg, const TirValue *value, LLVMValueRef llvm);
bool cg_const(LLVMValueRef value, int64_t *out);  // an integer constant
bool cg_nonnegative(const TirValue *value);       // proven, for i32
int64_t cg_multiple(const TirValue *value);       // a power of two that divides it
void emit_const(Cg *cg, const TirOp *op);
void emit_block_idx(Cg *cg, const TirOp *op);
void emit_block_count(Cg *cg, const TirOp *op);
void emit_thread_idx(Cg *cg, const TirOp *op);
void emit_select(Cg *cg, const TirOp *op);
void emit_cell(Cg *cg, const TirOp *op);
void emit_get(Cg *cg, const TirOp *op);
void emit_set(Cg *cg, const TirOp *op);
void emit_declared(Cg *cg, const TirOp *op);  // tensor, size, param: bound at entry

// ---- cg_arith.c
void emit_binary(Cg *cg, const TirOp *op);
void emit_compare(Cg *cg, const TirOp *op);
void emit_unary(Cg *cg, const TirOp *op);
void emit_cast(Cg *cg, const TirOp *op);
// Each of n values of one op, in place; neighbours share an instruction where there is one.
void cg_cast_run(Cg *cg, const TirOp *op, LLVMValueRef *values, int n, DType from, DType to);
LLVMValueRef cg_cast(Cg *cg, const TirOp *op, LLVMValueRef value, DType from, DType to);
LLVMValueRef cg_intrinsic(Cg *cg, const char *name, LLVMTypeRef overload, int nargs, LLVMValueRef *args);

// ---- cg_math.c: functions of one f32, from the approximate instructions; errors in README.md
LLVMValueRef cg_math(Cg *cg, OpKind kind, LLVMValueRef x);

// ---- cg_place.c: buffers, and addresses in global and shared memory
const CgPlace *cg_place(Cg *cg, const TirValue *buffer);
void cg_root_place(Cg *cg, const TirValue *root);
// Indices of the root for indices of the buffer.
void cg_root_index(Cg *cg, const CgPlace *place, LLVMValueRef const *index, LLVMValueRef *root_index);
// Whether the element exists (tensors); NULL when it always does.
LLVMValueRef cg_in_bounds(Cg *cg, const CgPlace *place, LLVMValueRef const *root_index);
LLVMValueRef cg_address(Cg *cg, const CgPlace *place, LLVMValueRef const *root_index);
// Shared memory: byte offset from the buffer's start before the XOR of the swizzle, and after it.
LLVMValueRef cg_shared_linear(Cg *cg, const CgPlace *place, LLVMValueRef const *root_index);
LLVMValueRef cg_shared_swizzled(Cg *cg, const CgPlace *place, LLVMValueRef linear);
LLVMValueRef cg_barrier(Cg *cg, const TirValue *barrier);  // address of one mbarrier
LLVMValueRef cg_offset_pointer(Cg *cg, LLVMValueRef base, LLVMValueRef bytes);
// The element of args[0] in global or shared memory that the operands from `first` on index.
typedef struct {
  LLVMValueRef address, inside;  // inside: whether it exists; NULL when it always does
} CgElement;
CgElement cg_element(Cg *cg, const TirOp *op, int first);
LLVMValueRef cg_both(Cg *cg, LLVMValueRef a, LLVMValueRef b);  // a and b; NULL counts as true
void emit_alloc(Cg *cg, const TirOp *op);
void emit_view(Cg *cg, const TirOp *op);
void emit_reshape(Cg *cg, const TirOp *op);
void emit_load(Cg *cg, const TirOp *op);
void emit_store(Cg *cg, const TirOp *op);

// ---- cg_atomic.c: atomic access to elements
// Adds atomically, in no order, and gives nothing back.
void cg_atomic_add(Cg *cg, Space space, DType dtype, LLVMValueRef address, LLVMValueRef value);
void emit_atomic(Cg *cg, const TirOp *op);
void emit_atomic_load(Cg *cg, const TirOp *op);
void emit_atomic_store(Cg *cg, const TirOp *op);

// ---- cg_print.c: the device's printf, and giving up
void emit_print(Cg *cg, const TirOp *op);
void emit_trap(Cg *cg, const TirOp *op);

// ---- cg_parallel.c
void emit_parallel(Cg *cg, const TirOp *op);
// The stack slot that holds the fragment's element at these indices in the current iteration; NULL: reported.
LLVMValueRef cg_fragment_slot(Cg *cg, const TirOp *op, const TirValue *buffer, TirValue *const *indices,
                              int n);

// ---- ptx.c
bool cg_machine(Cg *cg);  // the LLVM target machine
bool cg_verify(Cg *cg);   // BUG when the module is broken

#endif

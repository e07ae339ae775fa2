// Typed builder: what elaboration and passes use to make ops. It folds constants, keeps integer arithmetic
// exact (floor semantics), and places pure ops whose operands are all known at launch into the launch block.
#ifndef TILEC_TIR_BUILD_H
#define TILEC_TIR_BUILD_H

#include "tir/roles.h"
#include "tir/tir.h"

typedef struct {
  TirModule *module;
  TirKernel *kernel;
  TirBlock *block;  // where new ops go: at its end,
  TirOp *before;    // or before this op of it when not NULL
  Span span;        // of the ops being built
} TirBuilder;

TirBuilder tir_builder_at_end(TirModule *module, TirBlock *block, Span span);
TirBuilder tir_builder_before(TirModule *module, TirOp *op);
TirBuilder tir_builder_after(TirModule *module, TirOp *op);

TirValue *tir_int(TirBuilder *b, int64_t value);  // i32
TirValue *tir_int_typed(TirBuilder *b, DType dtype, int64_t value);
TirValue *tir_float(TirBuilder *b, DType dtype, double value);
TirValue *tir_bool(TirBuilder *b, bool value);
// Both operands have the same dtype; the result too (COMPARE: bool). Folds constants and the identities x+0,
// x*1, x*0, x//1, x%1. Division of constants by zero is not folded.
TirValue *tir_binary(TirBuilder *b, OpKind kind, TirValue *lhs, TirValue *rhs);
TirValue *tir_unary(TirBuilder *b, OpKind kind, TirValue *operand);
TirValue *tir_select(TirBuilder *b, TirValue *condition, TirValue *yes, TirValue *no);
TirValue *tir_cast(TirBuilder *b, DType dtype, TirValue *operand);

TirValue *tir_size(TirBuilder *b, Name name);  // in the launch block, one op per name
TirValue *tir_sm_count(TirBuilder *b);
TirValue *tir_param(TirBuilder *b, Name name, DType dtype);
TirValue *tir_tensor(TirBuilder *b, Name name, DType dtype, int rank, TirValue *const *dims);
TirValue *tir_block_idx(TirBuilder *b, int dim);
TirValue *tir_block_count(TirBuilder *b, int dim);
TirValue *tir_thread_idx(TirBuilder *b);
void tir_grid(TirBuilder *b, int rank, TirValue *const *extents);  // launch block
void tir_check(TirBuilder *b, TirValue *condition, Name message);  // launch block

TirValue *tir_alloc(TirBuilder *b, Name name, Type type);
TirValue *tir_alloc_barrier(TirBuilder *b, Name name, int n, const int64_t *counts);
// offsets has one value per source dimension; extents likewise; bit d of `drop` removes dimension d (extent
// 1) from the result.
TirValue *tir_view(TirBuilder *b, TirValue *buffer, TirValue *const *offsets, const int64_t *extents,
                   unsigned drop);
// The whole buffer in another shape or with other elements of as many bits.
TirValue *tir_reshape(TirBuilder *b, TirValue *buffer, Type type);
TirValue *tir_load(TirBuilder *b, TirValue *buffer, TirValue *const *indices, int n);
TirOp *tir_store(TirBuilder *b, TirValue *buffer, TirValue *value, TirValue *const *indices, int n);
TirValue *tir_cell(TirBuilder *b, Name name, DType dtype, TirValue *initial);
TirValue *tir_get(TirBuilder *b, TirValue *cell);
TirOp *tir_set(TirBuilder *b, TirValue *cell, TirValue *value);

TirOp *tir_while(TirBuilder *b, TirValue *go);
TirOp *tir_for(TirBuilder *b, LoopKind kind, TirValue *lo, TirValue *hi,
               TirValue *step);                                       // results[0]: the variable
TirOp *tir_parallel(TirBuilder *b, int n, TirValue *const *extents);  // results[i]: the variables
TirOp *tir_if(TirBuilder *b, TirValue *condition);                    // bodies: then, else
TirOp *tir_role(TirBuilder *b, TirThreads threads);
TirOp *tir_one_thread(TirBuilder *b);

// Any op: args as given, result types as given.
TirOp *tir_op(TirBuilder *b, OpKind kind, int nargs, TirValue *const *args, int nresults, const Type *types);

#endif

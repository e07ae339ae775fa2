// What the language can do: one OpDef per op. The printer, parser, verifier, liveness and passes read these
// tables, so that a new op is one file here, a rule in target/ and an emitter in codegen/.
#ifndef TILEC_OPS_OPS_H
#define TILEC_OPS_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/intern.h"
#include "types/type.h"

typedef enum {
#define CORE_OP(name, group) OP_##name,
#include "ops/core.def"
#undef CORE_OP
#define TILE_OP(name) OP_##name,
#include "ops/tile.def"
#undef TILE_OP
  OP_COUNT
} OpKind;

typedef enum {
  GROUP_DECLARE,  // names something bound at launch
  GROUP_LAUNCH,   // evaluated by the runtime before the launch
  GROUP_VALUE,
  GROUP_BINARY,
  GROUP_COMPARE,
  GROUP_UNARY,
  GROUP_CONTROL,
  GROUP_MEMORY,
  GROUP_SYNC,
  GROUP_TILE,
} OpGroup;

// How a tile op is carried out; written by the select pass from the target's rule. Passes and emitters read
// it.
typedef enum {
  PATH_NONE,        // not selected yet
  PATH_THREADS,     // every thread moves or computes its share with ordinary loads and stores
  PATH_TMA_LOAD,    // one thread, cp.async.bulk.tensor global -> shared; completes on an mbarrier
  PATH_TMA_STORE,   // one thread, cp.async.bulk.tensor shared -> global; completes in a bulk group
  PATH_TMEM_LOAD,   // whole warps, tcgen05.ld TMEM -> fragment
  PATH_TMEM_STORE,  // whole warps, tcgen05.st fragment -> TMEM (also fill)
  PATH_MMA,         // one thread, tcgen05.mma; completes on an mbarrier by commit
  PATH_WGMMA,       // whole warpgroups, wgmma; one group of each thread, completes by mma_wait
  PATH_PANELS,      // fragment -> shared -> global: a ring of panels, see pass stores
  PATH_COUNT
} Path;

// tiles: the rounds were blocks once, so that nothing orders them
typedef enum { LOOP_SERIAL, LOOP_UNROLL, LOOP_PIPELINED, LOOP_TILES, LOOP_KIND_COUNT } LoopKind;

// How reduce folds: the attribute REDUCE_kind.
typedef enum {
  REDUCE_SUM,
  REDUCE_MAX,
  REDUCE_MIN,
  REDUCE_ABSSUM,
  REDUCE_ABSMAX,
  REDUCE_AND,
  REDUCE_OR,
  REDUCE_XOR
} ReduceKind;
// The type in which elements of `dtype` are folded: f32, i32 or u32.
DType op_reduce_type(DType dtype);

enum { OP_MAX_OPERANDS = 6, OP_MAX_ATTRS = 8, OP_MAX_RESULTS = TYPE_MAX_RANK };

// ATOMIC goes with the others: such accesses of one buffer need no order among themselves.
typedef enum { READS = 1, WRITES = 2, ACCUMULATES = 3, ATOMIC = 4 } Access;

// What `atomic` does to the element, and the memory orders, which are those of C11.
typedef enum { ATOMIC_ADD, ATOMIC_MAX, ATOMIC_MIN, ATOMIC_OP_COUNT } AtomicOp;
typedef enum {
  ORDER_RELAXED,
  ORDER_ACQUIRE,
  ORDER_RELEASE,
  ORDER_ACQ_REL,
  ORDER_SEQ_CST,
  ORDER_COUNT
} MemoryOrder;

typedef struct {
  const char *name;
  unsigned access;            // of a buffer operand: READS | WRITES
  unsigned spaces;            // bit mask (1u << SPACE_x) of allowed spaces; 0 for a scalar operand
  const char *index;          // index map, one letter a dimension ("mk"); NULL when the op has none
  bool optional;              // may be absent (NULL, printed as _)
  const char *transposed_by;  // the boolean attribute that swaps the two letters of `index`; NULL: none
} OperandDef;

typedef enum { ATTR_INT, ATTR_BOOL, ATTR_ENUM, ATTR_FLOAT_BITS, ATTR_MASK } AttrKind;

typedef struct {
  const char *name;
  AttrKind kind;
  int64_t initial;           // printed only when different
  const char *const *names;  // ATTR_ENUM: spelling of 0, 1, …, NULL-terminated
} AttrDef;

// A call as the checks see it, in elaboration (the user's mistake) and in the verifier (ours).
typedef struct {
  OpKind kind;
  int nargs;
  const Type *types[OP_MAX_OPERANDS];  // NULL for an absent optional operand
  Span spans[OP_MAX_OPERANDS];
  const char *names[OP_MAX_OPERANDS];  // how the user calls the operand ("A_shared"), or NULL
  const int64_t *attrs;
  Span span;
  Diags *ds;
} OpCall;

typedef struct {
  const char *name;
  OpGroup group;
  OperandDef operands[OP_MAX_OPERANDS];
  int noperands;  // fixed operands, including optional ones
  bool variadic;  // more operands may follow the fixed ones (indices, extents)
  AttrDef attrs[OP_MAX_ATTRS];
  int nresults;  // -1: as many as the variadic operands (parallel)
  int nbodies;
  bool pure;                          // no effect; may be duplicated, hoisted or dropped
  bool named;                         // carries a Name, printed as a string after the op's name
  bool listed;                        // carries a list of integers, printed in [ ]
  bool (*check)(const OpCall *call);  // NULL: the generic operand check alone
} OpDef;

const OpDef *op_def(OpKind kind);
bool op_lookup(Str name, OpKind *out);
int op_attr_index(const OpDef *def, const char *name);  // -1 when there is none
// The spelling of every Path in order, NULL-terminated: the names of an ATTR_ENUM.
extern const char *const op_path_names[];
extern const char *const op_order_names[];  // of every MemoryOrder, likewise
// The operand's index letters under these attributes. False: it has none.
bool op_operand_index(const OpDef *def, int operand, const int64_t *attrs, char out[TYPE_MAX_RANK + 1]);

// Operand spaces, ranks against index maps and equal extents per letter; then def->check. False: reported.
bool op_check(const OpCall *call);

// Attribute slots, so that code says attrs[GEMM_trans_b]; the tables in ops/ list them in this order (a unit
// test compares).
// Of shared memory. plain: its rows stay adjacent, since it is seen in another shape too; ordered: that stores by the TMA have read
// it before it is written again is said by the ops, so that pass barriers adds no meeting for it.
// Of a fragment. late: results that wait to leave; elements of 16 bits move by pairs, and pass defer has counted the registers.
enum { ALLOC_plain, ALLOC_ordered, ALLOC_late };
enum { CONST_bits };            // integer value, or the bits of a double for float types
enum { INDEX_dim };             // block_idx, block_count: 0 x, 1 y, 2 z
enum { FOR_kind, FOR_stages };  // LoopKind; num_stages, 0 when not given
// Operands of `for`; GO: a cell, or NULL.
enum { FOR_LO, FOR_HI, FOR_STEP, FOR_GO, FOR_OPERANDS };
enum { ROLE_lo, ROLE_hi, ROLE_arm };  // threads lo to hi - 1; arm: another arm of the branch before it
enum { SYNC_id, SYNC_count };         // sync_threads: named barrier and its threads; 0, 0: not chosen, or all
enum { NREG_count, NREG_inc };        // set_max_nreg: registers a thread; inc: more than before
enum { EXPECT_arrive };               // mbar_expect_tx
enum {
  VIEW_drop,
  VIEW_in_bounds
};                          // mask of source dimensions that the result lacks; proven, no guard needed
enum { ACCESS_in_bounds };  // load, store: proven, no guard needed
enum { ATOMIC_in_bounds, ATOMIC_order, ATOMIC_op, ATOMIC_prev };  // prev: the result is used
enum { BULK_pending, BULK_read };                                 // bulk_wait
enum { MMA_WAIT_pending };                                        // groups that may still run
enum { TMEM_columns };                                            // tmem_alloc, tmem_dealloc
// map: index into kernel->maps, -1 none; bounded: the tile lies inside the tensor; explicit: tma_copy, the author waits; panel: of
// those that PATH_PANELS stores, only this one; -1 all; no_tma: the source keeps the TMA from it.
enum { COPY_path, COPY_map, COPY_bounded, COPY_explicit, COPY_panel, COPY_late, COPY_no_tma };
enum { FILL_path };
enum { ATOMIC_ADD_path = COPY_path, ATOMIC_ADD_map = COPY_map, ATOMIC_ADD_bounded = COPY_bounded };
enum { REDUCE_path, REDUCE_kind, REDUCE_dim, REDUCE_clear };
enum { GEMM_path, GEMM_trans_a, GEMM_trans_b, GEMM_explicit };  // explicit: tcgen05_gemm, no wait is added

#endif

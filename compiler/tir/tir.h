// Tile IR: structured, typed, textual. docs/tile-ir.md is its reference.
//
// A module holds kernels. A kernel has a launch block (what the runtime evaluates: tensors, sizes, grid,
// checks) and a body. Loops, branches and one-thread regions are ops with bodies; there are no block
// arguments: a loop's induction variables are its results, visible in its body; mutable state is a cell.
// Everything lives in the module's arena.
#ifndef TILEC_TIR_TIR_H
#define TILEC_TIR_TIR_H

#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "ops/ops.h"
#include "tir/choices.h"
#include "types/layout.h"
#include "types/type.h"

typedef struct TirOp TirOp;
typedef struct TirBlock TirBlock;
typedef struct TirKernel TirKernel;

typedef struct TirValue {
  Type type;
  TirOp *op;  // the op that defines it
  int index;  // which of the op's results
  int id;     // number in the text form, unique in the kernel
  Name name;  // the user's name, a hint for printing; may be NULL
  Layout *
      layout;  // of alloc and reshape results, once decided; NULL before. A view has that of what it is a part of (tir_layout)
} TirValue;

struct TirOp {
  OpKind kind;
  Span span;  // kept to the end, so that a late pass can still point at the source
  TirOp *prev, *next;
  TirBlock *parent;
  int nargs, nresults, nbodies, nlist;
  TirValue **args;  // number, order and roles: op_def(kind); NULL for an absent optional operand
  TirValue **results;
  TirBlock **bodies;  // if: then, else; loop: one
  int64_t attrs[OP_MAX_ATTRS];
  int64_t *list;  // alloc_barrier: counts
  Name name;      // tensor, size, param, alloc, cell: the user's name; check: the message
};

struct TirBlock {
  TirOp *first, *last;
  TirOp *owner;  // the op whose body this is; NULL for a kernel's two blocks
  TirKernel *kernel;
};

// One tensor map: which tensor, the box (outermost first, rank of the tensor), the swizzle in bytes.
typedef struct {
  TirValue *tensor;
  int64_t box[TYPE_MAX_RANK];
  int swizzle;  // 0, 32, 64, 128
  bool store;
} TirMap;

// What must hold at launch for this variant of the kernel; all are about one tensor.
typedef struct {
  TirValue *tensor;
  bool store;  // also: bytes of a row are a multiple of 16
} TirGuard;    // base and strides are multiples of 16 bytes, all sizes at least 1

// In which order the blocks of a grid take its places, so that neighbours in time share operands in L2: as launched,
// or down (across) one panel of so many rows (columns) after another, to and fro.
typedef enum { BLOCKS_AS_LAUNCHED, BLOCKS_BY_ROWS, BLOCKS_BY_COLUMNS } BlockOrder;

// A size that no tensor settles: the device's number of SMs (docs/launch-info.md).
#define TIR_SM_COUNT "$sm_count"

typedef enum { VARIANT_ONLY, VARIANT_TMA, VARIANT_GENERAL } Variant;

struct TirKernel {
  Name name;  // of the kernel function
  Span span;
  Variant variant;
  int threads;  // that the author sees
  BlockOrder block_order;
  int panel;  // rows or columns of a panel
  TirChoice choices[CHOICE_COUNT];
  TirBlock *launch, *body;
  VEC(TirMap) maps;
  VEC(TirGuard) guards;
  int64_t shared_bytes;  // dynamic shared memory, after the smem pass
  int tmem_columns;      // allocated, after the tmem pass
  unsigned facts;        // TirFacts that hold
  int next_id;
  Map *launch_ops;  // the builder's: hash of a pure launch op -> a chain of such ops
};

typedef struct {
  Arena *arena;
  Interner *names;
  VEC(TirKernel *) kernels;
} TirModule;

// What the passes have established; each pass needs and gives some, the verifier checks what they promise.
enum {
  TIR_TYPED = 1 << 0,        // elaborated and checked
  TIR_SELECTED = 1 << 1,     // every tile op has a path; accumulators are in TMEM
  TIR_LAID_OUT = 1 << 2,     // every shared buffer has a layout, every TMA copy a map
  TIR_FRAGMENTS = 1 << 3,    // every fragment has a layout
  TIR_TMEM_PLACED = 1 << 4,  // every TMEM buffer has columns; alloc and dealloc stand
  TIR_SYNCED = 1 << 5,       // no tokens left: barriers, fences and waits are literal
  TIR_SMEM_PLACED = 1 << 6,  // every shared and barrier buffer has an offset
};

TirModule *tir_module_new(Arena *arena, Interner *names);
TirKernel *tir_kernel_new(TirModule *module, Name name, Span span);
// A deep copy within the module, appended to it (variants).
TirKernel *tir_kernel_clone(TirModule *module, const TirKernel *kernel);
TirBlock *tir_block_new(TirModule *module, TirKernel *kernel, TirOp *owner);

// A detached op with its attributes at their defaults and room for args, results and bodies (bodies are
// created empty).
TirOp *tir_op_new(TirModule *module, TirKernel *kernel, OpKind kind, Span span, int nargs, int nresults);
void tir_append(TirBlock *block, TirOp *op);
void tir_insert_before(TirOp *at, TirOp *op);
void tir_insert_after(TirOp *at, TirOp *op);
void tir_remove(TirOp *op);  // unlinks; it may be inserted elsewhere
// Whether the kernel waits for those before it in the stream itself (`grid_wait`), so that it may begin while they end.
bool tir_may_overlap(const TirKernel *kernel);
// Rewrites every use of `old` in the kernel.
void tir_replace_uses(TirKernel *kernel, const TirValue *old, TirValue *value);

// Visits every op of the kernel in order, bodies after their op; removal of the visited op is allowed.
// Stops when the visitor returns false and returns that.
typedef bool (*TirVisitor)(void *context, TirOp *op);
bool tir_walk(TirBlock *block, TirVisitor visitor, void *context);

// The alloc, tensor or alloc_barrier behind a chain of views and reshapes: two buffers may alias only if their
// roots are equal.
TirValue *tir_root(TirValue *buffer);
Layout *tir_layout(const TirValue *buffer);
// How messages call a buffer: the user's name of what is behind its views, or "a buffer".
const char *tir_buffer_name(const TirValue *buffer);
bool tir_const_int(const TirValue *value, int64_t *out);
bool tir_const_float(const TirValue *value, double *out);
bool tir_in_launch(
    const TirValue *value);  // defined in the launch block: same for all threads, known to the runtime
// Whether the value may differ between the threads that are active where it is defined (depends on thread_idx, a load,
// or a cell set from such). tir_differs_among (roles.h) asks the same for other threads.
bool tir_thread_dependent(const TirValue *value);
// Whether the source says that this shall be, that it shall not be; neither: the rules decide.
bool tir_asks_for(const TirKernel *kernel, ChoiceKind choice);
bool tir_forbids(const TirKernel *kernel, ChoiceKind choice);
bool tir_inside(const TirOp *op, const TirOp *ancestor);
bool tir_is_loop(const TirOp *op);   // `for` or `while`: its body runs any number of times
TirOp *tir_parent(const TirOp *op);  // the op whose body holds it, or NULL

#endif

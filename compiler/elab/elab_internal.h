// What the files of this room share: the state of an elaboration and the functions they call across files.
//
// Functions that return a Value return poison after reporting; those that return a pointer or bool return
// NULL or false then.
#ifndef TILEC_ELAB_INTERNAL_H
#define TILEC_ELAB_INTERNAL_H

#include "elab/elab.h"
#include "elab/scope.h"
#include "elab/value.h"
#include "tir/build.h"

// Bounds on compile-time work. Depth counts expressions, statements and calls together, since all of them
// recurse here.
enum {
  MAX_STEPS = 2000000,
  MAX_REPEATS = 500,
  MAX_DEPTH = 1200,
  MAX_CALLS = 64,
  MAX_REGIONS = 100,
  MAX_OPS = 30000,  // LLVM's time grows with the square
  MAX_LOOPS = 16,   // one in another, on the device: hazards are sought in each turn of each
  MAX_ITEMS = 100000
};

// How a block ends: at its end, by a jump known at compile time, or on every path by a jump of the device.
typedef enum { FLOW_NEXT, FLOW_RETURN, FLOW_BREAK, FLOW_CONTINUE, FLOW_LEFT } Flow;

// What a jump can leave: the body of a loop or of a function.
typedef enum { FRAME_KERNEL, FRAME_FUNCTION, FRAME_LOOP, FRAME_PARALLEL, FRAME_UNROLLED } FrameKind;

// A place in tile IR: behind an op, or at the start of the block.
typedef struct {
  TirBlock *block;
  TirOp *op;
} Position;

typedef struct Frame {
  struct Frame *outer;
  FrameKind kind;
  Region *around;               // where it stands
  TirBlock *block;              // likewise
  Region *region;               // of its body, or of the turn of a compile-time loop
  Position first, begin;        // start of the loop or function; of its body (or turn)
  TirOp *loops[TYPE_MAX_RANK];  // of the device
  int nloops;
  TirValue *runs,
      *go;      // flags, NULL until needed: nothing has left this body, nothing has left the loop for good
  bool broken;  // something may have left it for good
  int jumps;    // that cleared `runs`, so far
  TirBlock *settled;  // where what follows such jumps is skipped already,
  int settled_jumps;  // for so many of them
  bool refused;       // a value that it would return: reported
} Frame;

// In a call that prints: the values of the device that f-strings left marks for, in the order of the marks.
enum { DEVICE_TEXT_MARK = 1 };
typedef struct {
  TirValue *value;
  const char *spec;  // the format specification, or ""
} DeviceValue;
typedef struct {
  VEC(DeviceValue) values;
  int next;
} DeviceText;

typedef struct Elab {
  Arena *arena;
  Interner *names;
  const Module *ast;
  const ElabOptions *options;
  Diags *ds;
  TirModule *module;
  bool *define_used;  // one for each of options->defines
  Scope *globals;

  // The kernel being elaborated.
  TirKernel *kernel;
  TirBuilder b;
  Name kernel_name;     // of the outermost function
  Scope *kernel_scope;  // of the kernel function itself: where annotations put size names
  Region *host;         // the region outside `with Kernel`
  Span with_span;       // of the one `with Kernel`; {0, 0} before it
  Name blocks;          // what it calls several indices together, `as b`; NULL: it does not
  int threads;
  TirValue *block_idx[3], *thread_idx;
  Map *initialized;  // root buffer -> itself, once something has set it

  // Where we are.
  Scope *scope;
  Region *region;
  Frame *frame;             // the innermost loop or function
  Flow jumped;              // by a call in the running statement: loop_break()
  Span assigned;            // the value that is being assigned
  Name naming;              // the name that the value being computed is assigned to, or NULL
  bool python_range;        // in a plain function: `for … in range(…)` runs at compile time where it can
  DeviceText *device_text;  // of the call that prints whose arguments are evaluated; NULL: none does
  bool open_names;          // in the shape of an annotation: an unknown name is a size
  Value returned;           // of the innermost function, after FLOW_RETURN
  int depth, calls;
  int64_t steps;
  VEC(const char *) definable;  // names that a -D could have set
  bool params_in_error;         // of some kernel
  bool stopped;                 // a bound was exceeded: unwind quietly
} Elab;

// ---- builtins

enum { BUILTIN_MAX_ARGS = 12 };

// The arguments of a call to a builtin, in the order of its parameters. Values are raw: a tile stays a tile
// and a cell a cell.
typedef struct {
  const Builtin *builtin;
  Span span;    // of the whole call
  Span callee;  // of what is called
  Value self;   // of a method
  Value args[BUILTIN_MAX_ARGS];
  Span spans[BUILTIN_MAX_ARGS];
  Value *rest;  // arguments of a parameter "*name" or "**name"
  Span *rest_spans;
  Name *rest_names;  // of "**name": the keywords
  int nrest;
} Call;

typedef Value (*BuiltinFn)(Elab *e, const Call *call);

// `params` is one word a parameter: `name` or `name|alias`, then `?` when it may be left out, `~` when it is
// a hint without effect here, `!` when it is known but not supported yet; `*name` takes the other positional
// arguments, and what follows it is given by keyword only; `**name` takes the other keywords. A builtin without `run` is not supported yet.
struct Builtin {
  const char *name, *params;
  BuiltinFn run;
};

const Builtin *builtin_find(const char *name);
// Whether f-strings among its arguments may hold values of the device.
bool builtin_prints(const Builtin *builtin);
// The known name nearest to `name`, or NULL.
const char *builtin_nearest(const char *name);
bool builtin_is_module(const char *name);

extern const Builtin builtins_python[], builtins_math[], builtins_memory[], builtins_tile[], builtins_sync[],
    builtins_loop[], builtins_fragment[], builtins_method[], builtins_atomic[], builtins_debug[],
    builtins_schedule[], builtins_scheduler[], builtins_annotate[];

// ---- elab.c

// The -D value of a name as a value, marking it used; false when there is none or it is malformed (reported).
bool elab_define(Elab *e, Name name, Value *out);
// The same for a name that no -D may set.
bool elab_given(Elab *e, Name name, Value *out);
// As messages call what sets the name: "-D N=3", or where a tuning file does. `value` may be NULL.
const char *elab_spell_define(const Elab *e, Name name, const char *value);
// Counts a step of work. False: a bound is exceeded (reported once).
bool elab_step(Elab *e, Span span);
// The number of this thread, read once at the start of the kernel.
TirValue *elab_thread_idx(Elab *e);
// Descends a level; false: too deep (reported). elab_leave undoes it, also after false.
bool elab_enter(Elab *e, Span span);
void elab_leave(Elab *e);
Region *elab_region_push(Elab *e, RegionKind kind, Span span, bool thread_dependent);
// The threads that run what is emitted now, unless they part under a condition.
TirThreads elab_active(const Elab *e);
void elab_region_pop(Elab *e);
// Whether another region may be opened here; reports and stops when they are too deep.
bool elab_may_nest(Elab *e, Span span);
// Whether an effect may stand here: inside `with Kernel`, and (for what all threads do together) neither in
// Parallel nor under control that depends on the thread. False: reported.
bool elab_placed(Elab *e, Span span, const char *what, bool together);
// A kernel function, or one around a kernel function.
bool elab_makes_kernel(const FunctionDef *def);
// Reports "… is not supported yet".
Value elab_not_supported(Elab *e, Span span, const char *what);
// The source text of a span, on one line.
const char *elab_text(Elab *e, Span span);

// ---- define.c

// What the annotation of a parameter says of its value; VALUE_NONE: nothing, or nothing that is known here.
Value define_annotated_type(Elab *e, const Param *param);
// A -D as the value of a parameter of that type whose default is `initial`. Poison: it is not of its kind (reported).
Value define_convert(Elab *e, Name name, const Value *type, const Value *initial, const Value *given);
// Its default as a value of that type. Poison: likewise.
Value define_default(Elab *e, const Param *param, const Value *type, const Value *initial);

// ---- elab_expr.c

// The value of an expression as a name may hold it: elements are loaded, variables read.
Value eval(Elab *e, const Expr *expr);
// The same, but tiles stay tiles and cells cells: what tile operations and functions take.
Value eval_raw(Elab *e, const Expr *expr);
// Looks a name up; reports an unknown one.
Value eval_name(Elab *e, Name name, Span span);
// The value of a module-level name, run on first use.
Value eval_binding(Elab *e, Name name, Binding *binding, Span span);
Value eval_attribute(Elab *e, const Value *base, Name name, Span span);
// base[…] where base is no buffer.
Value eval_item(Elab *e, const Value *base, const Value *index, Span span, Span index_span);
// The items of a compile-time iterable; false: reported.
bool eval_iterable(Elab *e, const Value *value, Span span, const Value **items, int *count);
Value eval_binary(Elab *e, BinaryOp op, const Value *lhs, const Value *rhs, Span span);

Value eval_comprehension(Elab *e, const Expr *expr);
Value eval_fstring(Elab *e, const Expr *expr);
// base[begin:end] of a compile-time sequence.
Value eval_slice_of(Elab *e, const Value *base, const Expr *slice, Span span);

// ---- comptime.c

Value comptime_binary(Elab *e, BinaryOp op, const Value *lhs, const Value *rhs, Span span);
Value comptime_compare(Elab *e, CompareOp op, const Value *lhs, const Value *rhs, Span span);
Value comptime_unary(Elab *e, UnaryOp op, const Value *operand, Span span);
Value comptime_ceildiv(Elab *e, int64_t a, int64_t b, Span span);
int64_t comptime_floordiv(int64_t a, int64_t b);
int64_t comptime_floormod(int64_t a, int64_t b);

// "a value of kind X is needed": each reports why not. `what` names the thing for the message.
bool need_int(Elab *e, const Value *value, Span span, const char *what, int64_t *out);
bool need_bool(Elab *e, const Value *value, Span span, const char *what, bool *out);
bool need_dtype(Elab *e, const Value *value, Span span, const char *what, DType *out);
bool need_string(Elab *e, const Value *value, Span span, const char *what, Str *out);
// A tuple or list, or a single value as a sequence of one.
bool need_items(Elab *e, const Value *value, const Value **items, int *count);
// The dtype a value names (a dtype, its spelling, or Python's int, float, bool); false without a report.
bool value_names_dtype(const Value *value, DType *out);
// Reports that a staged value stands where a compile-time one is needed, with the -D that would settle it.
void report_not_compile_time(Elab *e, const Value *value, Span span, const char *what);

// ---- staged.c

// Any scalar as a tile IR value of its natural dtype (integers i32, floats f32). NULL: reported.
TirValue *staged_element(Elab *e, const Value *value, Span span);
// The same as computations take it: 8-bit floats become f32.
TirValue *staged_scalar(Elab *e, const Value *value, Span span);
// Converted to dtype; constants adapt, others are cast.
TirValue *staged_as(Elab *e, const Value *value, DType dtype, Span span);
// An index, size or count: an integer as i32.
TirValue *staged_index(Elab *e, const Value *value, Span span, const char *what);
// A condition: bool, or a number compared with 0.
TirValue *staged_condition(Elab *e, const Value *value, Span span);
Value staged_binary(Elab *e, BinaryOp op, const Value *lhs, const Value *rhs, Span span);
Value staged_compare(Elab *e, CompareOp op, const Value *lhs, const Value *rhs, Span span);
Value staged_unary(Elab *e, UnaryOp op, const Value *operand, Span span);
Value staged_select(Elab *e, const Value *condition, const Value *yes, const Value *no, Span span);
// One op on two scalars brought to a common type.
Value staged_op(Elab *e, OpKind op, const Value *lhs, const Value *rhs, Span span);
// Whether a - b is the same whatever the staged values in it are; that constant.
bool staged_difference(TirValue *a, TirValue *b, int64_t *out);
// The value with every loop variable at its first iteration, when that is a constant.
bool staged_first_value(const TirValue *value, int64_t *out);
// An op of several operands at the builder's place.
TirOp *staged_effect(Elab *e, OpKind kind, int nargs, TirValue *const *args, Span span);

// ---- region.c

// buffer[indices…]; an element, a tile, or a barrier of an array.
Value tile_subscript(Elab *e, const Value *base, const Expr *subscript);
TirValue *tile_load(Elab *e, const TileRef *tile, Span span);
bool tile_store(Elab *e, const TileRef *tile, const Value *value, Span span);
// The buffer or view that a tile operand stands for; extents of points come out as 1. NULL: reported.
TirValue *tile_operand(Elab *e, const Value *value, Span span, const char *what);
// Both sides of a copy, brought to the same shape.
bool tile_copy_operands(Elab *e, const Value *src, Span src_span, const Value *dst, Span dst_span,
                        TirValue **src_out, TirValue **dst_out);
// A single barrier. NULL: reported.
TirValue *tile_barrier(Elab *e, const Value *value, Span span, const char *what);

// ---- builtin_tile.c

// An op with its attributes: checked as ops/ wants it, then built; `spans` has one entry an operand. False: reported.
bool tile_emit(Elab *e, OpKind kind, int nargs, TirValue *const *args, const Span *spans,
               const int64_t *attrs, Span span);
void tile_initial_attrs(OpKind kind, int64_t *out);
void tile_set_by(Elab *e, TirValue *buffer);  // something has set the buffer

// ---- builtin_memory.c

// A buffer of the kernel that no name of the user stands for.
TirValue *memory_temporary(Elab *e, const char *name, Type type, Span span);

// ---- elab_call.c

Value eval_call(Elab *e, const Expr *expr);
Value make_function(Elab *e, const Stmt *stmt);
// What a decorator makes of a function.
bool is_kernel_decorator(const Expr *decorator);

// ---- elab_stmt.c

Flow exec_block(Elab *e, const Block *block);
// Binds or sets a target; `naming` says that a buffer or cell may be named after it.
void assign_target(Elab *e, const Expr *target, const Value *value);

// ---- elab_branch.c

Flow exec_if(Elab *e, const Stmt *stmt);
// Python's truth where it is known now.
bool elab_known_truth(const Value *value, bool *out);
// Whether the value can be a condition; reports.
bool elab_is_condition(Elab *e, const Value *condition, Span span);

// ---- elab_control.c

void elab_frame_enter(Elab *e, Frame *frame, FrameKind kind);
void elab_frame_leave(Elab *e, const Frame *frame);
// Before a statement of a block: where jumps in what came before it may have left the body, the rest of it is put
// under a condition. `jumps` is the frame's count when the block began.
void elab_before_statement(Elab *e, int *jumps, Span span);
// Whether all jumps since the frame's count was `jumps` have been seen to here: what follows is skipped after them.
bool elab_is_settled(const Elab *e, int jumps);
// The rest of the body goes into this block, which the threads may enter or not as `dependent` says; `settled`: no
// jump that cleared the flag leads there.
void elab_go_on_in(Elab *e, TirBlock *block, Span span, bool dependent, bool settled);
Flow exec_for(Elab *e, const Stmt *stmt);
Flow exec_while(Elab *e, const Stmt *stmt);
Flow exec_jump(Elab *e, bool is_break, Span span);  // break or continue
Flow exec_return(Elab *e, const Stmt *stmt);

// ---- builtin_schedule.c

// The coordinates, one a dimension of its domain, of the tile with this number in a Persistent loop.
void schedule_coordinates(Elab *e, const LoopSpec *loop, TirValue *tile, TirValue **out);
// The op that says how many blocks there are, once it stands.
const TirOp *schedule_grid(const Elab *e);
// Checks now or at launch that the number of blocks fits 32 bits; `what` numbers them.
void schedule_check_count(Elab *e, TirValue *blocks, Span span, const char *what);
// A number that a scheduler holds; VALUE_ABSENT when it has none of that name.
Value scheduler_attribute(Elab *e, const Scheduler *scheduler, const char *name);

// ---- builtin_annotate.c

// What the pass_configs of a kernel function's decorators say.
void annotate_by_decorators(Elab *e, const Function *function);
// Reports what contradicts itself, at the end of the kernel.
void annotate_check(Elab *e);
// The key that TileLang's PassConfigKey.NAME stands for.
Value annotate_config_key(Elab *e, Name name);

// ---- launch.c

// Runs a kernel function, its parameters taken from annotations, defaults and -D.
void run_kernel_function(Elab *e, const Function *function);
// A tensor parameter (or output) with the given name, from its declaration.
Value launch_declare_tensor(Elab *e, Name name, const TensorSpec *spec, Span span);
// A size bound at launch, or fixed by -D.
Value launch_size(Elab *e, Name name);
// Evaluates an annotation, in whose shapes unknown names are sizes.
Value eval_annotation(Elab *e, const Expr *annotation);
// `with Kernel(…) as target:` around its body.
Flow exec_kernel(Elab *e, const KernelSpec *spec, const Expr *target, const Block *body, Span span);
// Launch-time checks that sums and products of sizes, where the device computes them too, fit 32 bits.
void launch_check_limits(Elab *e);
// A check by the runtime; `what` follows the place in its message.
void launch_check(Elab *e, TirValue *condition, Span span, const char *what);
// Reports regions with staged starts that surely leave their buffer.
void elab_check_regions(Elab *e);
// Warns of stores of different values to one element.
void elab_check_same_element(Elab *e);
// Warns of fragments that are read before anything has set them.
void elab_check_unset(Elab *e);
// assume(condition).
Value launch_assume(Elab *e, const Call *call);
// `assert`.
void exec_assert(Elab *e, const Stmt *stmt);

#endif

// Values of elaboration. A value is known at compile time (a number, a string, a dtype, a list, a function…),
// or it is staged: a tile IR value, computed at launch or on the device.
//
// Values are copied freely; what has identity in Python (a list, a dict) is behind a pointer.
#ifndef TILEC_ELAB_VALUE_H
#define TILEC_ELAB_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "base/vec.h"
#include "syntax/ast.h"
#include "tir/tir.h"

typedef struct Scope Scope;
typedef struct Region Region;
typedef struct Builtin Builtin;
typedef struct Scheduler Scheduler;  // builtin_schedule.c

typedef enum {
  VALUE_POISON,  // the result of a failed expression: silences what follows
  VALUE_ABSENT,  // an optional argument that was not given
  VALUE_NONE,
  VALUE_ELLIPSIS,
  VALUE_BOOL,
  VALUE_INT,
  VALUE_FLOAT,
  VALUE_STRING,
  VALUE_DTYPE,
  VALUE_TUPLE,
  VALUE_LIST,
  VALUE_DICT,
  VALUE_RANGE,     // range(…): a sequence of integers, and a loop
  VALUE_FUNCTION,  // a def or lambda of the program, with the scope it closes over
  VALUE_BUILTIN,
  VALUE_METHOD,     // a builtin bound to the value it was looked up on
  VALUE_MODULE,     // T, tilelang, …: a prefix of builtins
  VALUE_LOOP,       // serial(…), Parallel(…), …: only a `for` can use it
  VALUE_KERNEL,     // Kernel(…): only a `with` can use it
  VALUE_SCHEDULER,  // PersistentTileScheduler(…)
  VALUE_TENSOR,     // Tensor[…]: an annotation; empty(…): a tensor before it has a name
  VALUE_PARAM,      // a parameter without a value, until an annotation makes it a tensor
  VALUE_STAGED,     // a scalar computed at launch or on the device
  VALUE_CELL,       // alloc_var: a mutable scalar
  VALUE_BUFFER,
  VALUE_TILE,  // a part of a buffer
} ValueKind;

typedef struct Value Value;

typedef struct {
  VEC(Value) items;
  const Region *region;  // where it was made: it can only change there
} Sequence;

typedef struct {
  VEC(Value) keys;
  VEC(Value) values;
  const Region *region;
} Dict;

// A def, or a lambda (def NULL).
typedef struct {
  const FunctionDef *def;
  const Expr *lambda;
  Scope *closure;
  Span span;
  bool is_kernel, is_macro;
} Function;

// Bounds of range() and of a loop; each is VALUE_INT or VALUE_STAGED.
typedef struct {
  LoopKind kind;
  bool parallel;
  bool grid;              // nested serial loops
  bool persistent;        // over the numbers of tiles of the domain `extents`
  Value *lo, *hi, *step;  // serial forms
  Value *extents;         // parallel, grid and persistent
  Value *group;           // persistent: how many tiles of the last dimension go together
  int nextents;
  int64_t stages;
} LoopSpec;

typedef struct {
  Value *grid;
  int rank;
  int threads;
} KernelSpec;

typedef struct {
  Value *dims;
  int rank;
  DType dtype;
  bool is_output;  // empty(…)
} TensorSpec;

// A part of a buffer: one start a dimension. extents[d] is 0 for a point. When no dimension is a slice
// (`points_only`), a copy takes the extents from its other side.
typedef struct {
  TirValue *buffer;
  TirValue *starts[TYPE_MAX_RANK];
  int64_t extents[TYPE_MAX_RANK];
  Span spans[TYPE_MAX_RANK];
  int rank;
  bool points_only;
} TileRef;

struct Value {
  ValueKind kind;
  union {
    bool boolean;
    int64_t integer;
    double real;
    Str string;
    DType dtype;
    Sequence *sequence;  // VALUE_TUPLE VALUE_LIST
    Dict *dict;
    const LoopSpec *loop;  // VALUE_RANGE VALUE_LOOP
    const Function *function;
    const Builtin *builtin;
    struct ValueMethod *method;
    const char *module;  // which prefix
    const KernelSpec *kernel;
    const Scheduler *scheduler;
    const TensorSpec *tensor;
    Name param;
    TirValue *staged;  // VALUE_STAGED VALUE_CELL VALUE_BUFFER
    const TileRef *tile;
  };
};

typedef struct ValueMethod {
  const Builtin *builtin;
  Value self;
} ValueMethod;

Value value_poison(void);
Value value_none(void);
Value value_bool(bool value);
Value value_int(int64_t value);
Value value_float(double value);
Value value_string(Str text);
Value value_dtype(DType dtype);
Value value_staged(TirValue *value);
Value value_of_buffer(TirValue *value);
Value value_sequence(Arena *arena, ValueKind kind, const Region *region, const Value *items, int count);

bool value_is_poison(const Value *value);
bool value_is_number(const Value *value);  // int, float or bool, known at compile time
bool value_is_scalar(const Value *value);  // a number, staged scalar, cell, or one element of a buffer
bool value_is_staged(const Value *value);  // a scalar that is not known at compile time
double value_as_real(const Value *number);
int64_t value_as_int(const Value *number);  // of an int or bool

// Python's equality of compile-time values; buffers are equal when they are the same.
bool value_equal(const Value *a, const Value *b);
// Python's truth of a compile-time value.
bool value_truth(const Value *value);

// What a message calls it: "the integer 5", "a list", "buffer 'A_shared'".
const char *value_describe(Arena *arena, const Value *value);
// Python's repr (or str, when not quoted) of a compile-time value.
const char *value_repr(Arena *arena, const Value *value, bool quoted);

#endif

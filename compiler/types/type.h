// Types of tile IR values: scalars, buffers (and views of them), cells (mutable scalars), tokens.
// Types are plain values compared by content; shapes are element counts, outermost dimension first.
#ifndef TILEC_TYPES_TYPE_H
#define TILEC_TYPES_TYPE_H

#include <stdint.h>

#include "base/text.h"
#include "types/dtype.h"

enum { TYPE_MAX_RANK = 5, DIM_DYNAMIC = -1 };

typedef enum {
  SPACE_GLOBAL,
  SPACE_SHARED,
  SPACE_TMEM,
  SPACE_FRAGMENT,
  SPACE_BARRIER,
  SPACE_LOCAL,
  SPACE_COUNT
} Space;

typedef enum {
  TYPE_NONE,    // an op without a value here
  TYPE_SCALAR,  // dtype
  TYPE_BUFFER,  // dtype, shape, space; a barrier buffer has dtype u64 and rank 1
  TYPE_CELL,    // a mutable scalar of dtype (alloc_var, phase counters), private to each thread
  TYPE_TOKEN,   // completion of an asynchronous op
} TypeKind;

typedef struct {
  TypeKind kind;
  DType dtype;
  Space space;
  int rank;
  int64_t shape[TYPE_MAX_RANK];  // DIM_DYNAMIC where known only at launch
} Type;

Type type_scalar(DType dtype);
Type type_cell(DType dtype);
Type type_token(void);
Type type_buffer(DType dtype, Space space, int rank, const int64_t *shape);

bool type_equal(const Type *a, const Type *b);
bool type_is_static(const Type *type);    // no dynamic dimension
int64_t type_elements(const Type *type);  // of a static buffer; saturates at INT64_MAX
int64_t type_rows(const Type *type);      // elements of all dimensions but the last
int64_t type_bytes(const Type *type);     // of a static buffer, sub-byte types packed
const char *space_name(Space space);      // "shared"
bool space_parse(Str text, Space *out);
// "bf16[128, 64] shared", "i32", "cell f32", "token"; dynamic dimensions print as "?".
void type_print(TextBuf *out, const Type *type);

#endif

// Values of the launch block as text: for launch information, and for the generated C header.
#ifndef TILEC_DRIVER_LAUNCH_EXPR_H
#define TILEC_DRIVER_LAUNCH_EXPR_H

#include "base/text.h"
#include "tir/tir.h"

typedef enum {
  EXPR_LISP,  // (ceildiv M 128)
  EXPR_C,     // tile_ceildiv(args->M, 128)
} ExprStyle;

// False: reported; the value depends on something the runtime cannot compute with (a float, a scalar
// argument), or its text would be too long. `span` is of the op that needs the value.
bool launch_expr_print(TextBuf *out, const TirValue *value, ExprStyle style, Span span, Diags *ds);

// The name as a C identifier: a keyword of C gets an underscore.
const char *launch_c_name(Arena *arena, const char *name);
// A size that the device gives, not the caller: its number of SMs.
bool launch_is_sm_count(const TirOp *op);
// How C names the size or scalar.
const char *launch_c_size(Arena *arena, const TirOp *op);

#endif

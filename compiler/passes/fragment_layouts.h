// Which thread holds which element of each fragment.
#ifndef TILEC_PASSES_FRAGMENT_LAYOUTS_H
#define TILEC_PASSES_FRAGMENT_LAYOUTS_H

#include "passes/tile.h"

// How an element access in a Parallel loop maps the loop's variables to the fragment's dimensions.
typedef enum {
  ACCESS_IDENTITY,    // all variables, in order: iteration and element are the same point
  ACCESS_PROJECTION,  // some variables, each indexing one dimension over its whole extent
  ACCESS_ANY,         // anything else
} AccessKind;

typedef struct {
  AccessKind kind;
  int dims[TYPE_MAX_RANK], ndims;  // the loop's variables that index, in the fragment's order of dimensions
} FragmentAccess;

// `access` is a load or store of a fragment inside `parallel`.
FragmentAccess fragment_access(const TirOp *parallel, const TirOp *access);
bool fragment_access_constant(const TirOp *access);  // every index is a constant
// The loop's iterations as the elements of a fragment.
Type fragment_loop_type(const TirOp *parallel);
// Whether, in the layouts of both, the thread that runs an iteration holds the element that it accesses in a register
// known at compile time.
bool fragment_access_fits(const TirOp *parallel, const TirOp *access);

// Gives every fragment a layout, and every Parallel loop that touches fragments the layout of its iterations (on its
// first result). False: reported.
bool lay_out_fragments(PassCx *cx, TirKernel *kernel);

#endif

// Which thread holds which element of each fragment.
#ifndef TILEC_PASSES_FRAGMENT_LAYOUTS_H
#define TILEC_PASSES_FRAGMENT_LAYOUTS_H

#include "passes/tile.h"

// How an element access in a Parallel loop maps the loop's variables to the fragment's dimensions.
typedef enum {
  ACCESS_IDENTITY,    // all variables, in order: iteration and element are the same point
  ACCESS_PROJECTION,  // some variables, each indexing one dimension over its whole extent
  ACCESS_EXTENT,      // a variable that does not run over its whole dimension
  ACCESS_ANY,         // anything else
} AccessKind;

typedef struct {
  AccessKind kind;
  int dims[TYPE_MAX_RANK], ndims;  // the loop's variables that index, in the fragment's order of dimensions
} FragmentAccess;

// `access` is a load or store of a fragment inside `parallel`.
FragmentAccess fragment_access(const TirOp *parallel, const TirOp *access);

// Gives every fragment a layout, and every Parallel loop that touches fragments the layout of its iterations
// (on its first result). Earlier layouts are forgotten. False: reported.
bool lay_out_fragments(PassCx *cx, TirKernel *kernel);

#endif

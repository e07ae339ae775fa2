// Fragments as code generation sees them: which coordinates a thread's register holds, as constants where
// possible.
#ifndef TILEC_CODEGEN_FRAGMENT_H
#define TILEC_CODEGEN_FRAGMENT_H

#include "codegen/cg.h"

typedef struct {
  const Layout *layout;
  Type type;  // shape of the elements
  int64_t registers;
  // Coordinates of the element in register 0: emitted, and their largest value over the threads.
  LLVMValueRef base[TYPE_MAX_RANK], element;
  int64_t most[TYPE_MAX_RANK];
  int64_t multiple;  // a power of two that divides the last coordinate of every thread
  bool additive;     // the coordinates of register r are base + those of (thread 0, r)
} CgFragment;

typedef enum { OWNED_BY_NONE, OWNED_BY_SOME, OWNED_BY_ALL } CgOwned;

// Emits what depends on the thread.
CgFragment cg_fragment(Cg *cg, const Layout *layout, const Type *type);
void cg_fragment_coordinates(Cg *cg, const CgFragment *fragment, int64_t reg, LLVMValueRef *out);
// Which threads hold an element in this register, and for some: whether this one does.
CgOwned cg_fragment_owned(const CgFragment *fragment, int64_t reg);
LLVMValueRef cg_fragment_owns(Cg *cg, const CgFragment *fragment, LLVMValueRef const *coordinates);
// Of the threads that hold the same elements, whether this is the first; NULL when no element is held twice.
LLVMValueRef cg_fragment_first_holder(Cg *cg, const Layout *layout);
// How many consecutive registers, a power of two up to `limit`, hold consecutive elements of the last
// dimension.
int cg_fragment_run(const CgFragment *fragment, int limit);
// The register in which a thread holds an element; -1 when it does not.
int64_t cg_fragment_find(const Layout *layout, int64_t thread, int64_t element);
// Whether every thread holds element e in register e.
bool cg_fragment_replicated(const Layout *layout);
// A part of a fragment: a rectangle at a constant place.
typedef struct {
  int64_t first[TYPE_MAX_RANK], extent[TYPE_MAX_RANK];
} CgSlice;

// False: it starts at a place that only the running kernel knows, or lacks a dimension.
bool cg_slice(const CgPlace *place, const Type *type, CgSlice *out);
// Which threads hold an element of the slice in this register.
CgOwned cg_slice_holds(const CgFragment *fragment, const CgSlice *slice, int64_t reg);
// Makes the coordinates of an element those in the slice. Returns whether it lies there; NULL when it always does.
LLVMValueRef cg_slice_take(Cg *cg, const CgFragment *fragment, const CgSlice *slice, int64_t reg,
                           LLVMValueRef *coordinates);
LLVMValueRef cg_register(Cg *cg, const TirValue *root, LLVMValueRef number);

#endif

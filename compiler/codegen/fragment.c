// The element a thread holds in a register is a sum of a part of the thread and a part of the register
// (types/layout.h). When no coordinate carries into the next dimension, the coordinates add up in the same
// way: the thread's part is computed once and a register adds constants. That is checked over all threads;
// otherwise the element number is taken apart each time.
#include "codegen/fragment.h"

static void coordinates_of(const Type *type, int64_t element, int64_t *out) {
  for (int d = type->rank - 1; d > 0; d--) {
    out[d] = element % type->shape[d];
    element /= type->shape[d];
  }
  out[0] = element;  // past the end on a ragged tail
}

// element = sum of digit x stride; the digits are those of the thread number.
static LLVMValueRef thread_element(Cg *cg, const Layout *layout) {
  LLVMBuilderRef b = cg->builder;
  LLVMValueRef element = cg_i32(cg, 0), rest = cg->position;
  for (int i = 0; i < layout->nthread_modes; i++) {
    LLVMValueRef extent = cg_i32(cg, layout->thread[i].extent);
    LLVMValueRef digit = LLVMBuildURem(b, rest, extent, "");
    rest = LLVMBuildUDiv(b, rest, extent, "");
    LLVMValueRef part = LLVMBuildNUWMul(b, digit, cg_i32(cg, layout->thread[i].stride), "");
    element = LLVMBuildNUWAdd(b, element, part, "");
  }
  return element;
}

static void split_element(Cg *cg, const Type *type, LLVMValueRef element, LLVMValueRef *out) {
  for (int d = type->rank - 1; d > 0; d--) {
    LLVMValueRef extent = cg_i32(cg, type->shape[d]);
    out[d] = LLVMBuildURem(cg->builder, element, extent, "");
    element = LLVMBuildUDiv(cg->builder, element, extent, "");
  }
  out[0] = element;
}

static int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static void look_at_threads(CgFragment *f) {
  int64_t threads = layout_threads(f->layout), last = f->type.rank - 1, bits = 1 << 20;
  for (int64_t t = 0; t < threads; t++) {
    int64_t at[TYPE_MAX_RANK];
    coordinates_of(&f->type, layout_element(f->layout, t, 0), at);
    for (int d = 0; d < f->type.rank; d++) f->most[d] = larger(f->most[d], at[d]);
    bits |= at[last];
  }
  f->multiple = bits & -bits;
}

static bool adds_up(const CgFragment *f) {
  for (int64_t r = 0; r < f->registers; r++) {
    int64_t at[TYPE_MAX_RANK];
    coordinates_of(&f->type, layout_element(f->layout, 0, r), at);
    for (int d = 1; d < f->type.rank; d++)
      if (at[d] + f->most[d] >= f->type.shape[d]) return false;
  }
  return true;
}

CgFragment cg_fragment(Cg *cg, const Layout *layout, const Type *type) {
  CgFragment f = {.layout = layout, .type = *type, .registers = layout_registers(layout)};
  look_at_threads(&f);
  f.additive = adds_up(&f);
  f.element = thread_element(cg, layout);
  split_element(cg, type, f.element, f.base);
  return f;
}

void cg_fragment_coordinates(Cg *cg, const CgFragment *f, int64_t reg, LLVMValueRef *out) {
  int64_t part = layout_element(f->layout, 0, reg), at[TYPE_MAX_RANK];
  if (!f->additive) {
    split_element(cg, &f->type, LLVMBuildAdd(cg->builder, f->element, cg_i32(cg, part), ""), out);
    return;
  }
  coordinates_of(&f->type, part, at);
  for (int d = 0; d < f->type.rank; d++)
    out[d] = LLVMBuildAdd(cg->builder, f->base[d], cg_i32(cg, at[d]), "");
}

CgOwned cg_fragment_owned(const CgFragment *f, int64_t reg) {
  int64_t elements = type_elements(&f->type), part = layout_element(f->layout, 0, reg);
  if (part >= elements) return OWNED_BY_NONE;
  int64_t last = 0;
  for (int i = 0; i < f->layout->nthread_modes; i++)
    last += (f->layout->thread[i].extent - 1) * f->layout->thread[i].stride;
  return part + last < elements ? OWNED_BY_ALL : OWNED_BY_SOME;
}

LLVMValueRef cg_fragment_owns(Cg *cg, const CgFragment *f, LLVMValueRef const *coordinates) {
  return LLVMBuildICmp(cg->builder, LLVMIntULT, coordinates[0], cg_i32(cg, f->type.shape[0]), "");
}

LLVMValueRef cg_fragment_first_holder(Cg *cg, const Layout *layout) {
  LLVMBuilderRef b = cg->builder;
  LLVMValueRef first = NULL, rest = cg->position;
  for (int i = 0; i < layout->nthread_modes; i++) {
    LLVMValueRef extent = cg_i32(cg, layout->thread[i].extent);
    LLVMValueRef digit = LLVMBuildURem(b, rest, extent, "");
    rest = LLVMBuildUDiv(b, rest, extent, "");
    if (layout->thread[i].stride != 0) continue;
    LLVMValueRef zero = LLVMBuildICmp(b, LLVMIntEQ, digit, cg_i32(cg, 0), "");
    first = first ? LLVMBuildAnd(b, first, zero, "") : zero;
  }
  if (layout_threads(layout) >= tir_thread_count(cg->active)) return first;
  LLVMValueRef inside = LLVMBuildICmp(b, LLVMIntEQ, rest, cg_i32(cg, 0), "");
  return first ? LLVMBuildAnd(b, first, inside, "") : inside;
}

int cg_fragment_run(const CgFragment *f, int limit) {
  const Layout *layout = f->layout;
  int64_t inner = f->type.shape[f->type.rank - 1];
  if (layout->nregister_modes == 0 || layout->reg[0].stride != 1) return 1;
  int run = limit;
  while (run > 1 && (layout->reg[0].extent % run || inner % run || f->multiple % run)) run /= 2;
  for (int i = 1; i < layout->nregister_modes; i++)
    while (run > 1 && layout->reg[i].stride % run) run /= 2;
  return run;
}

int64_t cg_fragment_find(const Layout *layout, int64_t thread, int64_t element) {
  int64_t registers = layout_registers(layout);
  for (int64_t r = 0; r < registers; r++)
    if (layout_element(layout, thread, r) == element) return r;
  return -1;
}

bool cg_fragment_replicated(const Layout *layout) {
  for (int i = 0; i < layout->nthread_modes; i++)
    if (layout->thread[i].stride != 0) return false;
  return layout->nregister_modes == 0 || (layout->nregister_modes == 1 && layout->reg[0].stride == 1);
}

bool cg_slice(const CgPlace *place, const Type *type, CgSlice *out) {
  if (place->rank != place->root->type.rank) return false;
  for (int d = 0; d < place->rank; d++) {
    if (!cg_const(place->offset[d], &out->first[d])) return false;
    out->extent[d] = type->shape[d];
  }
  return true;
}

CgOwned cg_slice_holds(const CgFragment *f, const CgSlice *slice, int64_t reg) {
  int64_t at[TYPE_MAX_RANK];
  CgOwned held = OWNED_BY_ALL;
  coordinates_of(&f->type, layout_element(f->layout, 0, reg), at);
  for (int d = 0; d < f->type.rank; d++) {
    int64_t end = slice->first[d] + slice->extent[d];
    if (slice->first[d] == 0 && end >= f->type.shape[d]) continue;
    if (f->additive && (at[d] >= end || at[d] + f->most[d] < slice->first[d])) return OWNED_BY_NONE;
    if (!f->additive || at[d] < slice->first[d] || at[d] + f->most[d] >= end) held = OWNED_BY_SOME;
  }
  return held;
}

LLVMValueRef cg_slice_take(Cg *cg, const CgFragment *f, const CgSlice *slice, int64_t reg,
                           LLVMValueRef *coordinates) {
  LLVMValueRef inside = NULL;
  bool all = cg_slice_holds(f, slice, reg) == OWNED_BY_ALL;
  for (int d = 0; d < f->type.rank; d++) {
    if (slice->first[d])
      coordinates[d] = LLVMBuildSub(cg->builder, coordinates[d], cg_i32(cg, slice->first[d]), "");
    if (all) continue;
    LLVMValueRef extent = cg_i32(cg, slice->extent[d]);
    inside = cg_both(cg, inside, LLVMBuildICmp(cg->builder, LLVMIntULT, coordinates[d], extent, ""));
  }
  return inside;
}

LLVMValueRef cg_register(Cg *cg, const TirValue *root, LLVMValueRef number) {
  LLVMTypeRef element = cg_memory_type(cg, root->type.dtype);
  return LLVMBuildGEP2(cg->builder, element, cg->storage[root->id], &number, 1, "");
}

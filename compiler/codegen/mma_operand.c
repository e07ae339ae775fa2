// The start address is that before the XOR of the swizzle: hardware applies it to the address itself.
#include "codegen/mma_operand.h"

#include "base/gcd.h"

enum { PATTERN_ROWS = 8 };

// Byte offset from the operand's first element. Both steps stay on multiples of what the formula needs.
static int64_t operand_offset(const MmaOperand *o, int64_t mn, int64_t k) {
  int64_t row = o->mn_major ? k : mn, column = o->mn_major ? mn : k, columns = o->span / o->bytes;
  return column / columns * o->rows * o->span + row * o->span + column % columns * o->bytes;
}

// Whether the tile starts with a panel or lies in one: then every step is a constant from its first element. A
// warpgroup's part along the rows of memory may start anywhere.
static bool keeps_to_panels(const MmaOperand *o, const Type *tile) {
  int64_t columns = o->span / o->bytes, multiple = o->place->multiple[o->place->root->type.rank - 1];
  if (o->first && o->mn_major) return false;
  return multiple % columns == 0 || tile->shape[1] <= multiple;
}

static LLVMValueRef make_descriptor(Cg *cg, const MmaOperand *o, int64_t mn, int64_t k) {
  LLVMBuilderRef b = cg->builder;
  LLVMValueRef index[2], root_index[TYPE_MAX_RANK];
  index[o->mn_major] = cg_i32(cg, mn);
  if (o->first) index[o->mn_major] = LLVMBuildAdd(b, o->first, index[o->mn_major], "");
  index[!o->mn_major] = cg_i32(cg, k);
  cg_root_index(cg, o->place, index, root_index);
  // In units of 16 bytes from the start, so that nothing but the sum depends on where shared memory lies.
  LLVMValueRef shared = LLVMBuildLShr(b, LLVMBuildPtrToInt(b, cg->shared, cg->i32, ""), cg_i32(cg, 4), "");
  LLVMValueRef offset = cg_i32(cg, o->place->root->layout->offset);
  offset = LLVMBuildNUWAdd(b, offset, cg_shared_linear(cg, o->place, root_index), "");
  LLVMValueRef start = LLVMBuildAdd(b, shared, LLVMBuildLShr(b, offset, cg_i32(cg, 4), ""), "");
  start = LLVMBuildAnd(b, start, cg_i32(cg, 0x3FFF), "");
  start = LLVMBuildZExt(b, start, cg->i64, "");
  return LLVMBuildOr(b, start, cg_i64(cg, (int64_t)o->descriptor), "");
}

bool mma_operand_begin(Cg *cg, const TirOp *op, int i, bool mn_major, MmaDescriptorFn descriptor,
                       LLVMValueRef first, MmaOperand *o) {
  const TirValue *value = op->args[i];
  const CgPlace *place = cg_place(cg, value);
  const Type *root = &place->root->type;
  const Layout *layout = place->root->layout;
  if (root->space != SPACE_SHARED || layout->span == 0 || place->rank != 2) {
    cg_unsupported(cg, op, "operand %d must be a swizzled matrix in shared memory", i);
    return false;
  }
  *o = (MmaOperand){.place = place,
                    .mn_major = mn_major,
                    .bytes = dtype_bytes(root->dtype),
                    .span = layout->span,
                    .rows = 1,
                    .first = first};
  for (int d = 0; d + 1 < root->rank; d++) o->rows *= root->shape[d];
  // K-major: 8-row groups follow each other. MN-major: so do groups of 8 K; the next panel is the leading dimension.
  o->descriptor = descriptor(o->span, mn_major ? o->rows * o->span : 0, PATTERN_ROWS * o->span);
  o->regular = keeps_to_panels(o, &value->type);
  o->base = make_descriptor(cg, o, 0, 0);
  return true;
}

LLVMValueRef mma_operand_step(Cg *cg, const MmaOperand *o, int64_t mn, int64_t k) {
  if (!o->regular) return make_descriptor(cg, o, mn, k);
  return LLVMBuildAdd(cg->builder, o->base, cg_i64(cg, operand_offset(o, mn, k) >> 4), "");
}

int64_t mma_piece_columns(int64_t n, int64_t most, int64_t step, const MmaOperand *b) {
  int64_t pieces = (n + most - 1) / most, columns = (n + pieces - 1) / pieces;
  if (b->mn_major && b->first && n % (b->span / b->bytes)) return base_gcd(n, b->span / b->bytes);
  if (pieces > 1 && b->mn_major && b->span / b->bytes > step) step = b->span / b->bytes;
  return (columns + step - 1) / step * step;
}

LLVMValueRef mma_first_accumulates(Cg *cg, const TirOp *op, int clear) {
  const TirValue *value = cg_arg(op, clear);
  return value ? LLVMBuildNot(cg->builder, cg_value(cg, value), "") : LLVMConstInt(cg->i1, 1, false);
}

// What the TMA can copy (PTX ISA 9.7.9.25.5.1, CUDA driver cuTensorMapEncodeTiled): rectangular tiles of
// tensors of up to five dimensions, cut into boxes of at most 256 elements a dimension.
//
// A copy is legal when the tensor's base and strides, which only the launch knows, are the sole open
// question; those become the guard of the kernel variant. Everything about the tile itself is proven here or
// the copy is left to the threads.
#include "target/rules.h"

#include <stdio.h>

#include "base/gcd.h"

enum { UNIT = 16, TILE_ALIGN = 128, MAX_BOXES = 64 };

RuleTile rule_tile(TirValue *buffer) {
  RuleTile tile = {.root = buffer};
  if (buffer->op->kind == OP_view) {
    tile = rule_tile(buffer->op->args[0]);
    const TirOp *view = buffer->op;
    int rank = view->args[0]->type.rank, kept = 0;
    for (int d = 0; d < rank; d++) {
      int root_dim = tile.dim[d];
      bool drop = view->attrs[VIEW_drop] >> d & 1;
      tile.start[root_dim] = tir_range_add(tile.start[root_dim], tir_known_range(view->args[1 + d]));
      tile.extent[root_dim] = drop ? 1 : buffer->type.shape[kept];
      if (!drop) tile.dim[kept++] = root_dim;
    }
    return tile;
  }
  for (int d = 0; d < buffer->type.rank; d++) {
    tile.extent[d] = buffer->type.shape[d];
    tile.dim[d] = d;
  }
  return tile;
}

static int64_t row_bytes(const Type *type) {
  return type->shape[type->rank - 1] * dtype_bytes(type->dtype);
}

static int widest_span(int64_t bytes) {
  for (int span = 128; span >= 32; span /= 2)
    if (bytes % span == 0) return span;
  return 0;
}

int rule_row_span(const Type *type) {
  return widest_span(row_bytes(type));
}

int rule_shared_span(const Target *target, TirValue *buffer, bool mma_operand) {
  const TirValue *root = tir_root(buffer);
  const Type *type = &root->type;
  if (type->rank == 0 || root->op->attrs[ALLOC_plain]) return 0;
  bool long_rows = type->rank > 1 && type->shape[type->rank - 1] > target->max_box;
  return mma_operand || long_rows ? widest_span(row_bytes(type)) : 0;
}

// The largest extent of a box in a dimension of `extent` elements, `below` bytes each, that divides it and
// keeps boxes aligned.
static int64_t box_extent(const Target *target, int64_t extent, int64_t below) {
  if (extent <= target->max_box) return extent;
  for (int64_t part = target->max_box; part > 0; part--)
    if (extent % part == 0 && part * below % TILE_ALIGN == 0) return part;
  return 0;
}

bool rule_tma_box(const Target *target, const RuleTile *tile, int span, int64_t *box) {
  const Type *tensor = &tile->root->type;
  int inner = tensor->rank - 1;
  int64_t bytes = dtype_bytes(tensor->dtype), boxes = 1;
  // With a swizzle the shared tile is panels of `span` bytes, one behind the other; a box is rows of one
  // panel.
  box[inner] = span ? span / bytes : box_extent(target, tile->extent[inner], bytes);
  if (!box[inner] || tile->extent[inner] % box[inner] || box[inner] * bytes % UNIT) return false;
  bool whole = span || box[inner] == tile->extent[inner];
  int64_t below = box[inner] * bytes;
  for (int d = inner - 1; d >= 0; d--) {
    box[d] = whole ? box_extent(target, tile->extent[d], below) : 1;
    if (!box[d]) return false;
    whole = whole && box[d] == tile->extent[d];
    below *= box[d];
  }
  for (int d = 0; d <= inner; d++) boxes *= tile->extent[d] / box[d];
  return boxes <= MAX_BOXES && (boxes == 1 || below % TILE_ALIGN == 0);
}

static bool tma_dtype(DType dtype) {
  switch (dtype) {
  case DTYPE_f64:
  case DTYPE_f32:
  case DTYPE_tf32:
  case DTYPE_f16:
  case DTYPE_bf16:
  case DTYPE_e4m3:
  case DTYPE_e5m2:
  case DTYPE_ue8m0:
  case DTYPE_i64:
  case DTYPE_i32:
  case DTYPE_i16:
  case DTYPE_i8:
  case DTYPE_u64:
  case DTYPE_u32:
  case DTYPE_u16:
  case DTYPE_u8:
  case DTYPE_bool:
    return true;
  case DTYPE_e2m3:
  case DTYPE_e3m2:
  case DTYPE_e2m1:
  case DTYPE_COUNT:
    return false;
  }
  return false;
}

static bool visit_product(void *root, TirOp *op) {
  const OpDef *def = op_def(op->kind);
  for (int i = 0; i < op->nargs && i < def->noperands; i++)
    if (def->operands[i].index && op->args[i] && tir_root(op->args[i]) == root) return false;
  return true;
}

// Whether the buffer may turn out to be laid out with a swizzle.
static bool may_swizzle(const Target *target, TirValue *buffer) {
  TirValue *root = tir_root(buffer);
  TirBlock *body = root->op->parent->kernel->body;
  return rule_shared_span(target, root, false) != 0 || !tir_walk(body, visit_product, root);
}

// The shared tile must be whole rows, one block of them, that starts on a TMA address whatever the span turns
// out to be: with a swizzle, at a multiple of its pattern's 8 rows. NULL: it is.
static const char *shared_obstacle(const Target *target, TirValue *buffer) {
  RuleTile tile = rule_tile(buffer);
  const Type *root = &tile.root->type;
  int inner = root->rank - 1;
  if (inner < 0 || tile.extent[inner] != root->shape[inner])
    return "the shared side is no whole rows of its buffer";
  if (row_bytes(root) % UNIT) return "a row of the shared buffer is no multiple of 16 bytes";
  int64_t start = 0, stride = 1;  // in rows
  bool partial = false;
  for (int d = inner - 1; d >= 0; d--) {
    if (partial && tile.extent[d] != 1) return "the shared side is no one block of rows";
    partial = partial || tile.extent[d] != root->shape[d];
    start = base_gcd(start, tile.start[d].multiple * stride);
    stride *= root->shape[d];
  }
  if (start * row_bytes(root) % TILE_ALIGN)
    return "the shared side does not start at a multiple of 128 bytes";
  if (start % 8 && may_swizzle(target, tile.root))
    return "the shared side does not start at a multiple of 8 rows, as its swizzle demands";
  return NULL;
}

static bool fixed_rows_legal(const RuleTile *tile) {
  const Type *tensor = &tile->root->type;
  int64_t inner = tensor->shape[tensor->rank - 1];
  return inner == DIM_DYNAMIC || tensor->rank == 1 || inner * dtype_bytes(tensor->dtype) % UNIT == 0;
}

const char *rule_tensor_obstacle(const RuleTile *tile, bool store) {
  const Type *tensor = &tile->root->type;
  int inner = tensor->rank - 1;
  if (tensor->rank < 1 || !tma_dtype(tensor->dtype)) return "TMA has no such tensor or element type";
  if (!fixed_rows_legal(tile)) return "a row of the tensor is no multiple of 16 bytes";
  if (tile->start[inner].multiple * dtype_bytes(tensor->dtype) % UNIT)
    return "its first column is not known to be a multiple of 16 bytes";
  for (int d = 0; d <= inner && store; d++)
    if (tile->start[d].lo < 0) return "where it is stored may be negative";
  // A store clips the innermost dimension at 16 bytes: it would write what lies behind the row.
  bool clips = store && tensor->shape[inner] != DIM_DYNAMIC &&
               tensor->shape[inner] * dtype_bytes(tensor->dtype) % UNIT != 0;
  return clips ? "a row of the tensor is no multiple of 16 bytes" : NULL;
}

const char *rule_tma_obstacle(const Target *target, TirValue *src, TirValue *dst) {
  bool store = dst->type.space == SPACE_GLOBAL;
  TirValue *global = store ? dst : src, *shared = store ? src : dst;
  if (global->type.space != SPACE_GLOBAL || shared->type.space != SPACE_SHARED)
    return "TMA copies between global and shared memory";
  if (src->type.dtype != dst->type.dtype) return "the element types differ";
  if (global->type.rank != shared->type.rank) return "the sides have different numbers of dimensions";
  RuleTile tile = rule_tile(global);
  const char *why = rule_tensor_obstacle(&tile, store);
  if (!why) why = shared_obstacle(target, shared);
  if (why) return why;
  // The tile's last dimension must be the tensor's: only there the elements are adjacent.
  if (tile.dim[global->type.rank - 1] != tile.root->type.rank - 1)
    return "its last dimension is not the tensor's: its elements are not adjacent";
  int64_t box[TYPE_MAX_RANK];
  int swizzled = rule_shared_span(target, shared, true);
  bool fits = rule_tma_box(target, &tile, rule_shared_span(target, shared, false), box) &&
              (!swizzled || rule_tma_box(target, &tile, swizzled, box));
  return fits ? NULL
              : "no boxes of at most 256 elements a dimension, each a multiple of 16 bytes wide, make up the "
                "tile";
}

bool rule_tma_legal(const Target *target, TirValue *src, TirValue *dst) {
  return rule_tma_obstacle(target, src, dst) == NULL;
}

// Where the tile's rows start in those of its root, in bytes, as far as it is known.
static const char *start_text(TirRange start, int64_t bytes, char *out, size_t room) {
  if (start.lo == start.hi)
    snprintf(out, room, "at byte %lld", (long long)(start.lo * bytes));
  else
    snprintf(out, room, "at multiples of %lld bytes, as far as is known",
             (long long)(start.multiple * bytes));
  return out;
}

bool rule_check_tma(const Target *target, const TirOp *op, Diags *ds) {
  TirValue *src = op->args[0], *dst = op->args[1];
  const char *why = rule_tma_obstacle(target, src, dst);
  if (!why) return true;
  bool moves = (src->type.space == SPACE_GLOBAL && dst->type.space == SPACE_SHARED) ||
               (src->type.space == SPACE_SHARED && dst->type.space == SPACE_GLOBAL);
  if (!moves) {
    diag_error(ds, DIAG_tma_copy, op->span, "TMA cannot do this copy from %s to %s memory: %s",
               space_name(src->type.space), space_name(dst->type.space), why);
    return false;
  }
  TirValue *global = src->type.space == SPACE_GLOBAL ? src : dst;
  RuleTile tile = rule_tile(global);
  int inner = tile.root->type.rank - 1;
  int64_t bytes = dtype_bytes(tile.root->type.dtype);
  char start[64];
  diag_error(ds, DIAG_tma_copy, op->span,
             "TMA cannot do this copy: %s; rows of the tile have %lld bytes and start %s, and TMA moves "
             "multiples of "
             "%d bytes from multiples of %d",
             why, (long long)(tile.extent[inner] * bytes),
             start_text(tile.start[inner], bytes, start, sizeof start), UNIT, UNIT);
  diag_hint(ds, "copy(…) does it with threads where TMA cannot");
  return false;
}

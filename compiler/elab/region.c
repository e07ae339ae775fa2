// Parts of buffers: what `A[i, j]`, `A[a:b, c:d]` and mixtures stand for, and the views that tile operations
// get.
//
// The start of a part may be staged; its extents may not. What is constant is checked against the buffer
// here. A tile of a global tensor may reach past the end (copies zero-fill and clip), but must start inside.
#include "elab/elab_internal.h"

#include <inttypes.h>

// ---- bounds

static bool out_of_bounds(Elab *e, const TileRef *tile) {
  diag_note(e->ds, tile->buffer->op->span, "'%s' is declared here", tir_buffer_name(tile->buffer));
  return false;
}

// A start that is known, against a dimension that is. `extent` 0: a point.
static bool check_bounds(Elab *e, const TileRef *tile, int d, int64_t extent) {
  int64_t start, size = tile->buffer->type.shape[d];
  if (!tir_const_int(tile->starts[d], &start)) return true;
  const char *name = tir_buffer_name(tile->buffer);
  Span span = tile->spans[d];
  if (start < 0) {
    diag_error(e->ds, DIAG_out_of_bounds, span, "index %" PRId64 " of dimension %d of '%s' is below 0", start,
               d, name);
    return out_of_bounds(e, tile);
  }
  if (size == DIM_DYNAMIC) return true;
  if (extent <= 1 && start >= size) {
    diag_error(e->ds, DIAG_out_of_bounds, span,
               "index %" PRId64 " is out of bounds: dimension %d of '%s' has %" PRId64
               " elements, 0 to %" PRId64,
               start, d, name, size, size - 1);
    return out_of_bounds(e, tile);
  }
  bool ragged = tile->buffer->type.space == SPACE_GLOBAL;
  if (ragged ? start < size : extent <= size - start) return true;
  diag_error(e->ds, DIAG_out_of_bounds, span,
             "the tile reaches past dimension %d of '%s': min %" PRId64 " + extent %" PRId64 " > %" PRId64, d,
             name, start, extent, size);
  return out_of_bounds(e, tile);
}

// ---- subscripts

static TirValue *dimension(Elab *e, const TirValue *buffer, int d) {
  if (buffer->type.shape[d] != DIM_DYNAMIC) return tir_int(&e->b, buffer->type.shape[d]);
  return buffer->op->args[d];
}

static TirValue *slice_bound(Elab *e, const Expr *expr, TirValue *absent) {
  if (!expr) return absent;
  Value value = eval(e, expr);
  if (value.kind == VALUE_NONE) return absent;
  return staged_index(e, &value, expr->span, "the bound of a slice");
}

static bool add_slice(Elab *e, TileRef *tile, int d, const Expr *slice) {
  if (slice->slice.step) {
    Value step = eval(e, slice->slice.step);
    if (step.kind != VALUE_INT || step.integer != 1) {
      elab_not_supported(e, slice->span, "a slice with a step other than 1");
      return false;
    }
  }
  TirValue *lo = slice_bound(e, slice->slice.begin, tir_int(&e->b, 0));
  TirValue *hi = lo ? slice_bound(e, slice->slice.end, dimension(e, tile->buffer, d)) : NULL;
  if (!hi) return false;
  tile->starts[d] = lo;
  if (!staged_difference(hi, lo, &tile->extents[d])) {
    Value extent = value_staged(tir_binary(&e->b, OP_sub, hi, lo));
    report_not_compile_time(e, &extent, slice->span, "the extent of a slice");
    return false;
  }
  if (tile->extents[d] >= 1) return true;
  diag_error(e->ds, DIAG_out_of_bounds, slice->span,
             "the slice has %" PRId64 " elements; it needs at least 1", tile->extents[d]);
  return false;
}

static bool add_rest(Elab *e, TileRef *tile, int from, Span span) {
  for (int d = from; d < tile->rank; d++) {
    tile->starts[d] = tir_int(&e->b, 0);
    tile->extents[d] = tile->buffer->type.shape[d];
    tile->spans[d] = span;
    if (tile->extents[d] != DIM_DYNAMIC) continue;
    Value size = value_staged(tile->buffer->op->args[d]);
    report_not_compile_time(e, &size, span, "the extent of a dimension without an index");
    return false;
  }
  return true;
}

static bool too_many(Elab *e, const TileRef *tile, int count, Span span) {
  if (count <= tile->rank) return false;
  diag_error(e->ds, DIAG_out_of_bounds, span, "'%s' has %d dimension%s, not %d",
             tir_buffer_name(tile->buffer), tile->rank, tile->rank == 1 ? "" : "s", count);
  out_of_bounds(e, tile);
  return true;
}

static bool add_point(Elab *e, TileRef *tile, int d, const Value *index, Span span) {
  tile->spans[d] = span;
  tile->starts[d] = staged_index(e, index, span, "an index");
  return tile->starts[d] && check_bounds(e, tile, d, 0);
}

// `A[p]` with a tuple p.
static bool add_tuple(Elab *e, TileRef *tile, const Value *tuple, Span span, int *count) {
  *count = tuple->sequence->items.len;
  if (too_many(e, tile, *count, span)) return false;
  for (int d = 0; d < *count; d++)
    if (!add_point(e, tile, d, &tuple->sequence->items.data[d], span)) return false;
  return true;
}

static bool add_index(Elab *e, TileRef *tile, int d, const Expr *index, int *count) {
  tile->spans[d] = index->span;
  if (index->kind == EXPR_SLICE) {
    tile->points_only = false;
    return add_slice(e, tile, d, index) && check_bounds(e, tile, d, tile->extents[d]);
  }
  Value value = eval(e, index);
  if (value_is_poison(&value)) return false;
  if (value.kind == VALUE_TUPLE && *count == 1) return add_tuple(e, tile, &value, index->span, count);
  if (value.kind == VALUE_ELLIPSIS) {
    elab_not_supported(e, index->span, "'...' as an index");
    return false;
  }
  return add_point(e, tile, d, &value, index->span);
}

static Value tile_of_tile(Elab *e, Span span) {
  return elab_not_supported(e, span, "a part of a part of a buffer");
}

Value tile_subscript(Elab *e, const Value *base, const Expr *expr) {
  if (base->kind == VALUE_TILE) return tile_of_tile(e, expr->span);
  TileRef *tile = ARENA_NEW(e->arena, TileRef);
  *tile = (TileRef){.buffer = base->staged, .rank = base->staged->type.rank, .points_only = true};
  const ExprList *indices = &expr->subscript.indices;
  int count = indices->count;
  if (too_many(e, tile, count, expr->span)) return value_poison();
  bool ok = true;
  for (int d = 0; d < indices->count; d++)
    if (!add_index(e, tile, d, indices->items[d], &count)) ok = false;
  if (!ok || !add_rest(e, tile, count, expr->span)) return value_poison();
  if (count < tile->rank) tile->points_only = false;
  return (Value){.kind = VALUE_TILE, .tile = tile};
}

// ---- elements

static bool element_allowed(Elab *e, const TirValue *buffer, Span span, const char *verb) {
  const char *name = tir_buffer_name(buffer);
  if (e->region->kind == REGION_HOST) {
    diag_error(e->ds, DIAG_kernel_form, span, "an element of '%s' is %s outside `with Kernel(…)`", name,
               verb);
    return false;
  }
  switch (buffer->type.space) {
  case SPACE_TMEM:
    diag_error(e->ds, DIAG_element_access, span,
               "'%s' is in tensor memory: its elements cannot be %s one by one", name, verb);
    diag_hint(e->ds, "copy it to a fragment first: copy(%s, fragment)", name);
    return false;
  case SPACE_BARRIER:
    diag_error(e->ds, DIAG_element_access, span, "'%s' is a barrier: it has no elements to be %s", name,
               verb);
    return false;
  case SPACE_FRAGMENT:  // the fragments pass knows which thread holds it
  case SPACE_GLOBAL:
  case SPACE_SHARED:
  case SPACE_LOCAL:
  case SPACE_COUNT:
    break;
  }
  return true;
}

TirValue *tile_load(Elab *e, const TileRef *tile, Span span) {
  if (!element_allowed(e, tile->buffer, span, "read")) return NULL;
  e->b.span = span;
  return tir_load(&e->b, tile->buffer, tile->starts, tile->rank);
}

bool tile_store(Elab *e, const TileRef *tile, const Value *value, Span span) {
  if (!element_allowed(e, tile->buffer, span, "written")) return false;
  TirValue *scalar = staged_as(e, value, tile->buffer->type.dtype, e->assigned);
  if (!scalar) return false;
  e->b.span = span;
  tir_store(&e->b, tile->buffer, scalar, tile->starts, tile->rank);
  map_put(e->initialized, tile->buffer, tile->buffer);
  return true;
}

// ---- views

static bool is_whole(const TileRef *tile, unsigned drop) {
  int64_t start;
  for (int d = 0; d < tile->rank; d++)
    if (!tir_const_int(tile->starts[d], &start) || start != 0 ||
        tile->extents[d] != tile->buffer->type.shape[d])
      return false;
  return drop == 0;
}

// The view of a tile whose extents are all known; dimensions in `drop` vanish.
static TirValue *make_view(Elab *e, const TileRef *tile, unsigned drop, Span span) {
  for (int d = 0; d < tile->rank; d++)
    if (!check_bounds(e, tile, d, tile->extents[d])) return NULL;
  if (is_whole(tile, drop)) return tile->buffer;
  e->b.span = span;
  TirValue *view = tir_view(&e->b, tile->buffer, tile->starts, tile->extents, drop);
  return view;
}

static bool not_a_buffer(Elab *e, const Value *value, Span span, const char *what) {
  if (!value_is_poison(value))
    diag_error(e->ds, DIAG_value_kind, span, "%s must be a buffer or a part of one, not %s", what,
               value_describe(e->arena, value));
  return false;
}

// All of a buffer as a tile.
static TileRef whole_tile(Elab *e, TirValue *buffer, Span span) {
  TileRef tile = {.buffer = buffer, .rank = buffer->type.rank};
  for (int d = 0; d < tile.rank; d++) {
    tile.starts[d] = tir_int(&e->b, 0);
    tile.extents[d] = buffer->type.shape[d];
    tile.spans[d] = span;
  }
  return tile;
}

// Points become extents of 1; returns the mask of those to drop, which never is all of them.
static unsigned close_points(TileRef *tile) {
  unsigned drop = 0;
  for (int d = 0; d < tile->rank; d++) {
    if (tile->extents[d] != 0) continue;
    tile->extents[d] = 1;
    drop |= 1u << d;
  }
  if (drop == (1u << tile->rank) - 1) drop &= ~(1u << (tile->rank - 1));
  return drop;
}

TirValue *tile_operand(Elab *e, const Value *value, Span span, const char *what) {
  if (value->kind == VALUE_BUFFER) return value->staged;
  if (value->kind != VALUE_TILE) {
    not_a_buffer(e, value, span, what);
    return NULL;
  }
  TileRef tile = *value->tile;
  unsigned drop = close_points(&tile);
  return make_view(e, &tile, drop, span);
}

// ---- copies

// One side of a copy. `open`: written as points, so the extents come from the other side.
typedef struct {
  TileRef tile;
  unsigned drop;
  bool open;
  Span span;
} Side;

static bool whole_side(Elab *e, TirValue *buffer, Side *out) {
  out->tile = whole_tile(e, buffer, out->span);
  for (int d = 0; d < buffer->type.rank; d++) {
    if (buffer->type.shape[d] != DIM_DYNAMIC) continue;
    Value size = value_staged(buffer->op->args[d]);
    report_not_compile_time(e, &size, out->span, "the extent of a copy");
    diag_hint(e->ds, "or name a tile by where it starts: %s[%s]", tir_buffer_name(buffer),
              buffer->type.rank == 1 ? "start" : "row, column");
    return false;
  }
  return true;
}

static bool read_side(Elab *e, const Value *value, Span span, const char *what, Side *out) {
  *out = (Side){.span = span};
  if (value->kind == VALUE_BUFFER) return whole_side(e, value->staged, out);
  if (value->kind != VALUE_TILE) return not_a_buffer(e, value, span, what);
  out->tile = *value->tile;
  out->open = value->tile->points_only;
  if (!out->open) out->drop = close_points(&out->tile);
  return true;
}

// The extents that count: those of dimensions not dropped, or (squeezed) those that are not 1.
static int list_extents(const Side *side, bool squeezed, int64_t *out) {
  int count = 0;
  for (int d = 0; d < side->tile.rank; d++)
    if (squeezed ? side->tile.extents[d] != 1 : !(side->drop >> d & 1)) out[count++] = side->tile.extents[d];
  return count;
}

// Gives an open side the extents of the other, aligned to its last dimensions.
static bool take_extents(Elab *e, Side *open, const Side *other) {
  int64_t extents[TYPE_MAX_RANK];
  int count = list_extents(other, false, extents);
  if (count > open->tile.rank) count = list_extents(other, true, extents);
  int shift = open->tile.rank - count;
  if (shift < 0) {
    diag_error(e->ds, DIAG_copy_extents, open->span, "'%s' has %d dimensions, the tile on the other side %d",
               tir_buffer_name(open->tile.buffer), open->tile.rank, count);
    return false;
  }
  for (int d = 0; d < open->tile.rank; d++) {
    open->tile.extents[d] = d < shift ? 1 : extents[d - shift];
    if (d < shift && count > 0) open->drop |= 1u << d;
  }
  return true;
}

static void squeeze(Side *side) {
  side->drop = 0;
  for (int d = 0; d < side->tile.rank; d++)
    if (side->tile.extents[d] == 1) side->drop |= 1u << d;
  if (side->drop == (1u << side->tile.rank) - 1) side->drop &= ~(1u << (side->tile.rank - 1));
}

static bool same_extents(const Side *a, const Side *b, bool squeezed) {
  int64_t x[TYPE_MAX_RANK], y[TYPE_MAX_RANK];
  int n = list_extents(a, squeezed, x), m = list_extents(b, squeezed, y);
  for (int i = 0; i < n && i < m; i++)
    if (x[i] != y[i]) return false;
  return n == m;
}

bool tile_copy_operands(Elab *e, const Value *src, Span src_span, const Value *dst, Span dst_span,
                        TirValue **src_out, TirValue **dst_out) {
  Side from, to;
  bool ok = read_side(e, src, src_span, "the source of a copy", &from);
  if (!read_side(e, dst, dst_span, "the destination of a copy", &to) || !ok) return false;
  if (from.open && to.open) {
    diag_error(e->ds, DIAG_copy_extents, span_join(src_span, dst_span),
               "both sides of the copy are points: nothing says how much to copy");
    diag_hint(e->ds, "give one side slices, or assign one element: B[i] = A[i]");
    return false;
  }
  if (from.open && !take_extents(e, &from, &to)) return false;
  if (to.open && !take_extents(e, &to, &from)) return false;
  if (!same_extents(&from, &to, false) && same_extents(&from, &to, true)) {
    squeeze(&from);
    squeeze(&to);
  }
  *src_out = make_view(e, &from.tile, from.drop, src_span);
  *dst_out = *src_out ? make_view(e, &to.tile, to.drop, dst_span) : NULL;
  return *dst_out != NULL;
}

// ---- barriers

TirValue *tile_barrier(Elab *e, const Value *value, Span span, const char *what) {
  const TirValue *buffer = value->kind == VALUE_BUFFER ? value->staged
                           : value->kind == VALUE_TILE ? value->tile->buffer
                                                       : NULL;
  if (!buffer || buffer->type.space != SPACE_BARRIER ||
      (value->kind == VALUE_TILE && !value->tile->points_only)) {
    if (!value_is_poison(value))
      diag_error(e->ds, DIAG_value_kind, span, "%s must be one barrier, not %s", what,
                 value_describe(e->arena, value));
    return NULL;
  }
  if (value->kind == VALUE_TILE) {
    TileRef tile = *value->tile;
    close_points(&tile);
    return make_view(e, &tile, 0, span);
  }
  if (buffer->type.shape[0] == 1) return value->staged;
  diag_error(e->ds, DIAG_value_kind, span, "%s must be one barrier; '%s' holds %" PRId64 ": index it, %s[i]",
             what, tir_buffer_name(buffer), buffer->type.shape[0], tir_buffer_name(buffer));
  return NULL;
}

// Layout arithmetic. Fragment layouts are mixed-radix digits times strides; shared layouts are row-major or
// panels with the XOR that TMA and the tensor core apply to address bits 4-6 from bits 7-9 (PTX ISA 5.5.7).
#include "types/layout.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/gcd.h"

enum { CHUNK_BITS = 128 };  // the widest access of one thread

static void add_mode(LayoutMode *modes, int *count, int64_t extent, int64_t stride) {
  if (extent == 1) return;
  assert(*count < LAYOUT_MAX_MODES);
  modes[(*count)++] = (LayoutMode){extent, stride};
}

static void add_thread(Layout *layout, int64_t extent, int64_t stride) {
  int last = layout->nthread_modes - 1;
  if (stride == 0 && last >= 0 && layout->thread[last].stride == 0)
    layout->thread[last].extent *= extent;  // replication has one form
  else
    add_mode(layout->thread, &layout->nthread_modes, extent, stride);
}

static void add_register(Layout *layout, int64_t extent, int64_t stride) {
  add_mode(layout->reg, &layout->nregister_modes, extent, stride);
}

// Elements that a thread moves at once: a power of two that divides the rows and leaves no thread without any.
static int64_t vector_of(const Type *type, int threads) {
  int64_t elements = type_elements(type), inner = type->shape[type->rank - 1];
  int64_t vector = CHUNK_BITS / dtype_bits(type->dtype);
  while (vector & (vector - 1)) vector &= vector - 1;  // 6-bit types: a power of two all the same
  while (vector > 1 && (inner % vector != 0 || vector * threads > elements)) vector /= 2;
  return vector;
}

Layout layout_flat(const Type *type, int threads) {
  assert(type->kind == TYPE_BUFFER && type->rank > 0 && threads > 0);
  int64_t elements = type_elements(type), vector = vector_of(type, threads), step = vector * threads;
  Layout layout = {.kind = LAYOUT_FRAGMENT};
  add_thread(&layout, threads, vector);
  add_register(&layout, vector, 1);
  add_register(&layout, elements / step + (elements % step != 0), step);
  return layout;
}

bool layout_row(const Type *type, int threads, Layout *out) {
  enum { LANES = 128, WARP = 32, WARPS = LANES / WARP };
  if (type->rank != 2 || type->shape[0] <= 0 || threads <= 0 || threads % LANES) return false;
  int64_t rows = type->shape[0], columns = type->shape[1], groups = threads / LANES;
  int64_t parts = rows == WARP ? WARPS : rows == LANES / 2 ? 2 : 1, share = columns / (groups * parts);
  if ((parts == 1 && rows % LANES) || columns <= 0 || columns % (groups * parts)) return false;
  *out = (Layout){.kind = LAYOUT_FRAGMENT};
  if (parts == 1) {
    add_thread(out, LANES, columns);
    add_thread(out, groups, share);
  } else if (parts == 2) {
    add_thread(out, WARP / 2, columns);
    add_thread(out, 2, share);
    add_thread(out, WARPS, WARP / 2 * columns);
    add_thread(out, groups, columns / groups);
  } else {
    add_thread(out, WARP, columns);
    add_thread(out, WARPS, columns / WARPS);
    add_thread(out, groups, share);
  }
  add_register(out, share, 1);
  if (parts == 1) add_register(out, rows / LANES, LANES * columns);
  return true;
}

Layout layout_blocked(const Type *type, int threads) {
  assert(type->kind == TYPE_BUFFER && type->rank > 0 && threads > 0);
  int64_t inner = type->shape[type->rank - 1], rows = type_elements(type) / inner;
  int64_t vector = vector_of(type, threads), across = base_gcd(inner / vector, threads);
  int64_t down = threads / across, width = across * vector;
  Layout layout = {.kind = LAYOUT_FRAGMENT};
  add_thread(&layout, across, vector);
  add_thread(&layout, down, inner);
  add_register(&layout, vector, 1);
  add_register(&layout, inner / width, width);
  add_register(&layout, rows / down + (rows % down != 0), down * inner);
  return layout;
}

bool layout_mma(const Type *type, int threads, Layout *out) {
  enum { GROUP = 128, ROWS = 64, QUAD = 4, PAIR = 2, EIGHT = 8 };
  if (type->rank != 2 || type->shape[0] % ROWS || threads % GROUP || threads == 0) return false;
  int64_t columns = type->shape[1], blocks = type->shape[0] / ROWS, groups = threads / GROUP;
  int64_t down = base_gcd(blocks, groups), across = groups / down;
  if (columns % (EIGHT * across)) return false;
  *out = (Layout){.kind = LAYOUT_FRAGMENT};
  add_thread(out, QUAD, PAIR);
  add_thread(out, EIGHT, columns);
  add_thread(out, ROWS / (2 * EIGHT), 2 * EIGHT * columns);
  add_thread(out, down, ROWS * columns);
  add_thread(out, across, columns / across);
  add_register(out, PAIR, 1);
  add_register(out, 2, EIGHT * columns);
  add_register(out, columns / across / EIGHT, EIGHT);
  add_register(out, blocks / down, down * ROWS * columns);
  return true;
}

Layout layout_replicated(const Type *type, int threads) {
  Layout layout = {.kind = LAYOUT_FRAGMENT};
  add_thread(&layout, threads, 0);
  add_register(&layout, type_elements(type), 1);
  return layout;
}

// ---- projection

typedef struct {
  int rank;
  int64_t extent[TYPE_MAX_RANK], stride[TYPE_MAX_RANK],
      projected[TYPE_MAX_RANK];  // projected: -1 when dropped
  int64_t reach[TYPE_MAX_RANK];  // largest coordinate that the modes seen so far can make
} Projection;

static Projection projection_of(const Type *shape, const int *dims, int ndims) {
  Projection p = {.rank = shape->rank};
  int64_t stride = 1;
  for (int d = shape->rank - 1; d >= 0; d--) {
    p.extent[d] = shape->shape[d];
    p.stride[d] = stride;
    p.projected[d] = -1;
    stride *= shape->shape[d];
  }
  stride = 1;
  for (int i = ndims - 1; i >= 0; i--) {
    assert(dims[i] >= 0 && dims[i] < shape->rank);
    p.projected[dims[i]] = stride;
    stride *= shape->shape[dims[i]];
  }
  return p;
}

// The innermost dimension whose range holds the stride; dimensions of extent 1 hold none.
static int dimension_of(const Projection *p, int64_t stride) {
  for (int d = p->rank - 1; d > 0; d--)
    if (stride < p->stride[d] * p->extent[d]) return d;
  return 0;
}

static bool put_digit(Projection *p, int d, LayoutMode mode, bool thread, Layout *out) {
  if (mode.stride % p->stride[d]) return false;
  int64_t step = mode.stride / p->stride[d];
  p->reach[d] += step * (mode.extent - 1);
  if (d > 0 && p->reach[d] >= p->extent[d]) return false;  // a carry into the next dimension
  bool kept = p->projected[d] >= 0;
  if (!kept && !thread) return true;
  if (mode.extent != 1 && (thread ? out->nthread_modes : out->nregister_modes) == LAYOUT_MAX_MODES)
    return false;
  if (thread)
    add_thread(out, mode.extent, kept ? step * p->projected[d] : 0);
  else
    add_register(out, mode.extent, step * p->projected[d]);
  return true;
}

// A mode may run through several dimensions; it is cut where it reaches the end of one.
static bool project_mode(Projection *p, LayoutMode mode, bool thread, Layout *out) {
  while (mode.stride > 0 && mode.extent > 1) {
    int d = dimension_of(p, mode.stride);
    int64_t end = p->stride[d] * p->extent[d];
    if (d == 0 || mode.extent * mode.stride <= end) break;
    if (end % mode.stride || mode.extent % (end / mode.stride)) return false;
    LayoutMode inner = {end / mode.stride, mode.stride};
    if (!put_digit(p, d, inner, thread, out)) return false;
    mode = (LayoutMode){mode.extent / inner.extent, end};
  }
  if (mode.extent == 1) return true;
  if (mode.stride == 0) {
    if (!thread) return true;
    if (out->nthread_modes == LAYOUT_MAX_MODES) return false;
    add_thread(out, mode.extent, 0);
    return true;
  }
  return put_digit(p, dimension_of(p, mode.stride), mode, thread, out);
}

bool layout_project(const Layout *over, const Type *shape, const int *dims, int ndims, Layout *out) {
  assert(over->kind == LAYOUT_FRAGMENT);
  Projection p = projection_of(shape, dims, ndims);
  *out = (Layout){.kind = LAYOUT_FRAGMENT};
  for (int i = 0; i < over->nthread_modes; i++)
    if (!project_mode(&p, over->thread[i], true, out)) return false;
  for (int i = 0; i < over->nregister_modes; i++)
    if (!project_mode(&p, over->reg[i], false, out)) return false;
  return true;
}

// ---- threads along a dimension

static bool is_power(int64_t n) {
  return n > 0 && (n & (n - 1)) == 0;
}

static bool add_across(LayoutAcross *out, int64_t extent, int64_t place) {
  enum { WARP = 32 };
  if (extent == 1) return true;
  if (out->nlane == LAYOUT_MAX_MODES || out->nslot == LAYOUT_MAX_MODES) return false;
  if (is_power(place) && is_power(extent) && place * extent <= WARP) {
    out->lane[out->nlane++] = (LayoutMode){extent, place};
    return true;
  }
  bool cut = place < WARP && is_power(place) && place * extent > WARP && extent % (WARP / place) == 0;
  if (cut) out->lane[out->nlane++] = (LayoutMode){WARP / place, place};
  if (cut) extent /= WARP / place, place = WARP;
  out->slot[out->nslot++] = (LayoutMode){extent, place};
  out->slots *= extent;
  return true;
}

bool layout_across(const Layout *over, const Type *shape, int dim, LayoutAcross *out) {
  const int only[] = {dim};
  Projection p = projection_of(shape, only, 1);
  Layout rest;
  int kept[TYPE_MAX_RANK], nkept = 0;
  int64_t place = 1;
  *out = (LayoutAcross){.slots = 1};
  for (int d = 0; d < shape->rank; d++)
    if (d != dim) kept[nkept++] = d;
  if (!layout_project(over, shape, kept, nkept, &rest)) return false;
  for (int i = 0; i < over->nthread_modes; i++) {
    Layout digits = {.kind = LAYOUT_FRAGMENT};
    if (!project_mode(&p, over->thread[i], true, &digits)) return false;
    for (int k = 0; k < digits.nthread_modes; k++) {
      if (digits.thread[k].stride != 0 && !add_across(out, digits.thread[k].extent, place)) return false;
      place *= digits.thread[k].extent;
    }
  }
  return true;
}

// ---- reading a layout

static bool modes_equal(const LayoutMode *a, const LayoutMode *b, int count) {
  for (int i = 0; i < count; i++)
    if (a[i].extent != b[i].extent || a[i].stride != b[i].stride) return false;
  return true;
}

bool layout_equal(const Layout *a, const Layout *b) {
  if (a->kind != b->kind) return false;
  switch (a->kind) {
  case LAYOUT_FRAGMENT:
    return a->nthread_modes == b->nthread_modes && a->nregister_modes == b->nregister_modes &&
           modes_equal(a->thread, b->thread, a->nthread_modes) &&
           modes_equal(a->reg, b->reg, a->nregister_modes);
  case LAYOUT_SHARED:
    return a->span == b->span && a->offset == b->offset;
  case LAYOUT_TMEM:
    return a->column == b->column && a->columns == b->columns && a->packed == b->packed;
  }
  return false;
}

static int64_t modes_count(const LayoutMode *modes, int count) {
  int64_t product = 1;
  for (int i = 0; i < count; i++) product *= modes[i].extent;
  return product;
}

bool layout_held_whole(const Layout *fragment) {
  for (int i = 0; i < fragment->nthread_modes; i++)
    if (fragment->thread[i].stride != 0) return false;
  return true;
}

int64_t layout_registers(const Layout *fragment) {
  return modes_count(fragment->reg, fragment->nregister_modes);
}

int64_t layout_threads(const Layout *fragment) {
  return modes_count(fragment->thread, fragment->nthread_modes);
}

static int64_t modes_element(const LayoutMode *modes, int count, int64_t number) {
  int64_t element = 0;
  for (int i = 0; i < count; i++) {
    element += number % modes[i].extent * modes[i].stride;
    number /= modes[i].extent;
  }
  return element;
}

int64_t layout_element(const Layout *fragment, int64_t thread, int64_t reg) {
  return modes_element(fragment->thread, fragment->nthread_modes, thread) +
         modes_element(fragment->reg, fragment->nregister_modes, reg);
}

int layout_swizzle_mask(int span) {
  return span ? span / 16 - 1 : 0;
}

static int64_t swizzled(int64_t offset, int span) {
  return offset ^ (offset >> LAYOUT_SWIZZLE_FROM & layout_swizzle_mask(span)) << LAYOUT_SWIZZLE_TO;
}

int64_t layout_shared_offset(const Layout *shared, const Type *type, const int64_t *index) {
  assert(shared->kind == LAYOUT_SHARED && type->rank > 0);
  int last = type->rank - 1, bits = dtype_bits(type->dtype);
  int64_t row = 0;
  for (int i = 0; i < last; i++) row = row * type->shape[i] + index[i];
  if (shared->span == 0) return (row * type->shape[last] + index[last]) * bits / 8;
  int64_t columns = (int64_t)shared->span * 8 / bits, panel = index[last] / columns;
  int64_t offset = (panel * type_rows(type) + row) * shared->span + index[last] % columns * bits / 8;
  return swizzled(offset, shared->span);
}

int64_t layout_shared_bytes(const Layout *shared, const Type *type) {
  assert(shared->kind == LAYOUT_SHARED);
  if (shared->span == 0 || type->rank == 0) return type_bytes(type);
  int64_t columns = (int64_t)shared->span * 8 / dtype_bits(type->dtype), inner = type->shape[type->rank - 1];
  return (inner / columns + (inner % columns != 0)) * type_rows(type) * shared->span;
}

int layout_shared_alignment(const Layout *shared) {
  enum { TMA_ALIGNMENT = 128, ROWS_OF_PATTERN = 8 };  // PTX ISA 5.5.6; the XOR repeats after eight spans
  int pattern = shared->span * ROWS_OF_PATTERN;
  return pattern > TMA_ALIGNMENT ? pattern : TMA_ALIGNMENT;
}

// ---- text

static void print_modes(TextBuf *out, const char *head, const LayoutMode *modes, int count) {
  textbuf_puts(out, head);
  for (int i = 0; i < count; i++)
    textbuf_printf(out, "%s%" PRId64 ":%" PRId64, i ? ", " : "", modes[i].extent, modes[i].stride);
  textbuf_puts(out, ")");
}

void layout_print(TextBuf *out, const Layout *layout) {
  switch (layout->kind) {
  case LAYOUT_FRAGMENT:
    print_modes(out, "frag t(", layout->thread, layout->nthread_modes);
    print_modes(out, " r(", layout->reg, layout->nregister_modes);
    return;
  case LAYOUT_SHARED:
    if (layout->span)
      textbuf_printf(out, "shared %dB", layout->span);
    else
      textbuf_puts(out, "shared rows");
    if (layout->offset >= 0) textbuf_printf(out, " +%" PRId64, layout->offset);
    return;
  case LAYOUT_TMEM:
    if (layout->column >= 0)
      textbuf_printf(out, "tmem cols %d+%d", layout->column, layout->columns);
    else
      textbuf_printf(out, "tmem cols ?+%d", layout->columns);
    if (layout->packed > 1) textbuf_printf(out, " x%d", layout->packed);
    return;
  }
}

// The readers below return the place after what they read, NULL when it is not there; NULL in gives NULL out.
static const char *skip(const char *text, const char *word) {
  if (!text) return NULL;
  while (*text == ' ') text++;
  size_t len = strlen(word);
  return strncmp(text, word, len) == 0 ? text + len : NULL;
}

static const char *read_number(const char *text, int64_t limit, int64_t *out) {
  if (!text) return NULL;
  while (*text == ' ') text++;
  if (*text < '0' || *text > '9') return NULL;
  *out = 0;
  for (; *text >= '0' && *text <= '9'; text++) {
    *out = *out * 10 + (*text - '0');
    if (*out > limit) return NULL;
  }
  return text;
}

static const char *read_modes(const char *text, LayoutMode *modes, int *count) {
  enum { MAX_EXTENT = 1 << 20 };
  const char *next;
  for (*count = 0; text && !(next = skip(text, ")")); (*count)++) {
    if (*count == LAYOUT_MAX_MODES) return NULL;
    if (*count) text = skip(text, ",");
    LayoutMode *mode = &modes[*count];
    text = read_number(text, MAX_EXTENT, &mode->extent);
    if (text && mode->extent < 1) return NULL;
    text = read_number(skip(text, ":"), INT32_MAX, &mode->stride);
  }
  return text ? next : NULL;
}

static bool counts_are_sane(const Layout *layout) {
  enum { MAX_SLOTS = 1 << 20 };
  int64_t threads = 1, registers = 1;
  for (int i = 0; i < layout->nthread_modes && threads <= MAX_SLOTS; i++) threads *= layout->thread[i].extent;
  for (int i = 0; i < layout->nregister_modes && registers <= MAX_SLOTS; i++)
    registers *= layout->reg[i].extent;
  return threads <= MAX_SLOTS && registers <= MAX_SLOTS;
}

static const char *parse_fragment(const char *text, Layout *out) {
  out->kind = LAYOUT_FRAGMENT;
  text = read_modes(skip(skip(text, "t"), "("), out->thread, &out->nthread_modes);
  text = read_modes(skip(skip(text, "r"), "("), out->reg, &out->nregister_modes);
  return text && counts_are_sane(out) ? text : NULL;
}

static const char *parse_shared(const char *text, Layout *out) {
  out->kind = LAYOUT_SHARED;
  out->offset = -1;
  const char *next = skip(text, "rows");
  if (!next) {
    int64_t span;
    next = skip(read_number(text, 128, &span), "B");
    if (!next || (span != 32 && span != 64 && span != 128)) return NULL;
    out->span = (int)span;
  }
  const char *offset = skip(next, "+");
  return offset ? read_number(offset, INT32_MAX, &out->offset) : next;
}

static const char *parse_tmem(const char *text, Layout *out) {
  out->kind = LAYOUT_TMEM;
  out->column = -1;
  out->packed = 1;
  int64_t number;
  const char *next = skip(text, "?");
  if (!next) {
    next = read_number(text, INT16_MAX, &number);
    if (!next) return NULL;
    out->column = (int)number;
  }
  next = read_number(skip(next, "+"), INT16_MAX, &number);
  if (!next) return NULL;
  out->columns = (int)number;
  const char *packed = skip(next, "x");
  if (!packed) return next;
  next = read_number(packed, 4, &number);
  if (!next || (number != 2 && number != 4)) return NULL;
  out->packed = (int)number;
  return next;
}

const char *layout_parse(const char *text, Layout *out) {
  *out = (Layout){.kind = LAYOUT_FRAGMENT};
  const char *rest = skip(text, "frag ");
  if (rest) return parse_fragment(rest, out);
  if ((rest = skip(text, "shared "))) return parse_shared(rest, out);
  if ((rest = skip(text, "tmem cols "))) return parse_tmem(rest, out);
  return NULL;
}

// Sizes come from the tensors' dimensions and must agree; then the first variant whose guards hold is taken,
// its checks are evaluated, and its parameter block is filled in the order of docs/launch-info.md.
#include "core/launch.h"

#include <stdio.h>
#include <string.h>

enum { MAX_SIZE = INT32_MAX, MAX_GRID_X = INT32_MAX, MAX_GRID_YZ = 65535 };
#define MAX_EXTENT (INT64_C(1) << 50)  // elements

// ---- One tensor by itself

static void print_declared(const InfoTensor *declared, ErrorText *out) {
  error_text(out, "%s[", tile_dtype_name(declared->dtype));
  for (int i = 0; i < declared->rank; i++) {
    if (i) error_text(out, ", ");
    expr_print(declared->dims[i], out);
  }
  error_text(out, "]");
}

static void print_given(const TileTensor *tensor, ErrorText *out) {
  const char *dtype = tile_dtype_name(tensor->dtype);
  error_text(out, "%s[", dtype ? dtype : "?");
  for (int i = 0; i < tensor->rank && i < TILE_MAX_RANK; i++)
    error_text(out, "%s%lld", i ? ", " : "", (long long)tensor->shape[i]);
  error_text(out, "]");
}

static TileError *misfit(const InfoTensor *declared, const TileTensor *tensor) {
  ErrorText text = {0};
  error_text(&text, "%s: expected ", declared->name);
  print_declared(declared, &text);
  error_text(&text, ", given ");
  print_given(tensor, &text);
  return error_of_text(TILE_INVALID, &text);
}

// A size-1 dimension's stride is never used; the compact one, rounded up to 16 bytes, lets the TMA variant
// take it.
static int64_t canonical_stride(int64_t compact, int bits) {
  int64_t unit = 128 % bits == 0 ? 128 / bits : 1;
  return (compact + unit - 1) / unit * unit;
}

static TileError *set_strides(const InfoTensor *declared, const TileTensor *tensor, TensorArg *out) {
  int bits = tile_dtype_bits(declared->dtype);
  int64_t compact = 1;
  for (int i = declared->rank - 1; i >= 0; i--) {
    int64_t size = tensor->shape[i], stride = tensor->strides ? tensor->strides[i] : compact;
    bool innermost = i == declared->rank - 1;
    if (size > 1 && stride < 0)
      return error_new(TILE_INVALID, "%s: stride %lld of dimension %d is negative", declared->name,
                       (long long)stride, i);
    if (size > 1 && innermost && stride != 1)
      return error_new(TILE_INVALID, "%s: the innermost stride must be 1, given %lld", declared->name,
                       (long long)stride);
    if (size <= 1) stride = innermost ? 1 : canonical_stride(compact, bits);
    out->shape[i] = size;
    out->stride[i] = stride;
    // The extent in bits must stay below 2^63.
    if (stride > MAX_EXTENT || (size > 1 && stride && size > MAX_EXTENT / stride))
      return error_new(TILE_INVALID, "%s: dimension %d of size %lld and stride %lld is too large",
                       declared->name, i, (long long)size, (long long)stride);
    if (size > 1) compact = stride * size;
  }
  return NULL;
}

// A tensor that is written must give every element its own address: by growing stride, each dimension begins
// where the smaller ones end.
static bool self_overlaps(const TensorArg *arg) {
  bool done[TILE_MAX_RANK] = {false};
  int64_t end = 1;
  for (int n = 0; n < arg->rank; n++) {
    int least = -1;
    for (int i = 0; i < arg->rank; i++)
      if (!done[i] && (least < 0 || arg->stride[i] < arg->stride[least])) least = i;
    done[least] = true;
    if (arg->shape[least] <= 1) continue;
    if (arg->stride[least] < end) return true;
    end = arg->stride[least] * (arg->shape[least] - 1) + end;
  }
  return false;
}

// What each dimension must be, whatever the others are.
static TileError *check_shape(const InfoTensor *declared, const TileTensor *tensor) {
  for (int i = 0; i < tensor->rank; i++)
    if (tensor->shape[i] < 0 || tensor->shape[i] > MAX_SIZE)
      return error_new(TILE_INVALID, "%s: dimension %d is %lld; a size is 0 to 2^31 - 1", declared->name, i,
                       (long long)tensor->shape[i]);
  int bits = tile_dtype_bits(declared->dtype);
  if (bits % 8 == 0 && tensor->address % (unsigned)(bits / 8))
    return error_new(TILE_INVALID, "%s: its address 0x%llx is not a multiple of the element's %d bytes",
                     declared->name, (unsigned long long)tensor->address, bits / 8);
  return NULL;
}

TileError *launch_bind(const InfoTensor *declared, const TileTensor *tensor, TensorArg *out) {
  if (tensor->rank < 1 || tensor->rank > TILE_MAX_RANK)
    return error_new(TILE_INVALID, "%s: a tensor has 1 to %d dimensions, given %d", declared->name,
                     TILE_MAX_RANK, tensor->rank);
  if (tensor->dtype != declared->dtype || tensor->rank != declared->rank) return misfit(declared, tensor);
  TensorArg arg = {.bound = true, .rank = tensor->rank, .dtype = tensor->dtype, .address = tensor->address};
  TileError *error = check_shape(declared, tensor);
  if (!error) error = set_strides(declared, tensor, &arg);
  if (!error && (declared->access & TILE_WRITE) && self_overlaps(&arg))
    error = error_new(TILE_INVALID, "%s is written, but its strides put several elements at one address",
                      declared->name);
  if (!error) *out = arg;
  return error;
}

// ---- Sizes

typedef struct {
  const TileCall *call;
  const SizeValue *values;
} Names;

static int find_size(const TileKernel *kernel, const char *name) {
  for (int i = 0; i < kernel->nsizes; i++)
    if (strcmp(kernel->sizes[i], name) == 0) return i;
  return -1;
}

// A name in an expression: an integer scalar, or else a size.
static bool lookup(const void *context, const char *name, int64_t *out) {
  const Names *names = context;
  const InfoEntry *entry = names->call->kernel->variants[0];
  for (int i = 0; i < entry->nscalars; i++) {
    if (strcmp(entry->scalars[i].name, name) != 0) continue;
    *out = names->call->scalars[i].integer;
    return names->call->scalars[i].bound;
  }
  int index = find_size(names->call->kernel, name);
  if (index < 0 || !names->values[index].known) return false;
  *out = names->values[index].value;
  return true;
}

static TileError *disagree(const char *size, const SizeValue *old, int64_t value, const char *by) {
  if (!old->by)
    return error_new(TILE_INVALID, "%s is %lld by %s and %lld as fixed by the caller", size, (long long)value,
                     by, (long long)old->value);
  return error_new(TILE_INVALID, "%s is %lld by %s and %lld by %s", size, (long long)old->value, old->by,
                   (long long)value, by);
}

TileError *launch_sizes(const TileCall *call, SizeValue *values) {
  const TileKernel *kernel = call->kernel;
  const InfoEntry *entry = kernel->variants[0];
  for (int i = 0; i < kernel->nsizes; i++) values[i] = call->given[i];
  int sms = find_size(kernel, TILE_LAUNCH_INFO_SM_COUNT);
  if (sms >= 0 && !values[sms].known && kernel->sm_count > 0)
    values[sms] = (SizeValue){true, kernel->sm_count, "the device"};
  for (int t = 0; t < entry->ntensors; t++) {
    if (!call->tensors[t].bound) continue;
    for (int d = 0; d < entry->tensors[t].rank; d++) {
      const Expr *dim = entry->tensors[t].dims[d];
      int index = dim->op == EXPR_NAME ? find_size(kernel, dim->name) : -1;
      if (index < 0) continue;
      int64_t value = call->tensors[t].shape[d];
      if (!values[index].known)
        values[index] = (SizeValue){true, value, entry->tensors[t].name};
      else if (values[index].value != value)
        return disagree(dim->name, &values[index], value, entry->tensors[t].name);
    }
  }
  return NULL;
}

// Evaluates for `what` ("the grid", "dimension 1 of C").
static TileError *evaluate(const Names *names, const Expr *expr, const char *what, int64_t *out) {
  const char *why = NULL;
  switch (expr_eval(expr, lookup, names, out, &why)) {
  case EXPR_VALUE:
    return NULL;
  case EXPR_UNKNOWN:
    return error_new(TILE_INVALID, "%s needs %s, which no bound tensor settles; fix it with a value", what,
                     why);
  case EXPR_ERROR:
    break;
  }
  ErrorText text = {0};
  error_text(&text, "%s, ", what);
  expr_print(expr, &text);
  error_text(&text, ": %s", why);
  return error_of_text(TILE_INVALID, &text);
}

static TileError *shape_of_dimension(const Names *names, const InfoTensor *declared, int dim, int64_t *out) {
  char what[128];
  snprintf(what, sizeof what, "dimension %d of %.80s", dim, declared->name);
  TileError *error = evaluate(names, declared->dims[dim], what, out);
  if (error || (*out >= 0 && *out <= MAX_SIZE)) return error;
  return error_new(TILE_INVALID, "%s would be %lld; a size is 0 to 2^31 - 1", what, (long long)*out);
}

TileError *launch_shape(const TileCall *call, const InfoTensor *declared, const SizeValue *values,
                        int64_t *shape) {
  Names names = {call, values};
  TileError *error = NULL;
  for (int i = 0; i < declared->rank && !error; i++)
    error = shape_of_dimension(&names, declared, i, &shape[i]);
  return error;
}

// Dimensions that are more than a name.
static TileError *check_dimensions(const TileCall *call, const SizeValue *values) {
  const InfoEntry *entry = call->kernel->variants[0];
  for (int t = 0; t < entry->ntensors; t++) {
    const InfoTensor *declared = &entry->tensors[t];
    int64_t shape[TILE_MAX_RANK];
    TileError *error = launch_shape(call, declared, values, shape);
    if (error) return error;
    for (int d = 0; d < declared->rank; d++) {
      if (shape[d] == call->tensors[t].shape[d]) continue;
      ErrorText text = {0};
      bool fixed = declared->dims[d]->op == EXPR_INT;
      error_text(&text, "%s: dimension %d is %s", declared->name, d, fixed ? "compiled for " : "");
      expr_print(declared->dims[d], &text);
      if (!fixed) error_text(&text, " = %lld", (long long)shape[d]);
      error_text(&text, ", given %lld", (long long)call->tensors[t].shape[d]);
      return error_of_text(TILE_INVALID, &text);
    }
  }
  return NULL;
}

// ---- Overlap

// Bytes from the first to behind the last element; 0 of an empty tensor.
static uint64_t extent_bytes(const TensorArg *arg) {
  int64_t last = 0;
  for (int i = 0; i < arg->rank; i++) {
    if (arg->shape[i] == 0) return 0;
    last += (arg->shape[i] - 1) * arg->stride[i];
  }
  return ((uint64_t)(last + 1) * (uint64_t)tile_dtype_bits(arg->dtype) + 7) / 8;
}

static uint64_t gcd(uint64_t a, uint64_t b) {
  while (b) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// The common pitch of all dimensions but the innermost, in bits; 0: there are none.
static uint64_t pitch_bits(const TensorArg *arg, uint64_t pitch) {
  for (int i = 0; i + 1 < arg->rank; i++)
    if (arg->shape[i] > 1)
      pitch = gcd(pitch, (uint64_t)arg->stride[i] * (uint64_t)tile_dtype_bits(arg->dtype));
  return pitch;
}

// Two column blocks of one matrix share a range but no byte: modulo the common pitch, their rows lie apart.
static bool interleave_without_touching(const TensorArg *a, const TensorArg *b) {
  uint64_t pitch = pitch_bits(b, pitch_bits(a, 0));
  if (pitch == 0 || pitch % 8) return false;
  pitch /= 8;
  uint64_t a_row = ((uint64_t)a->shape[a->rank - 1] * (uint64_t)tile_dtype_bits(a->dtype) + 7) / 8;
  uint64_t b_row = ((uint64_t)b->shape[b->rank - 1] * (uint64_t)tile_dtype_bits(b->dtype) + 7) / 8;
  uint64_t a_at = a->address % pitch, b_at = b->address % pitch;
  uint64_t distance = b_at >= a_at ? b_at - a_at : b_at + pitch - a_at;
  return distance >= a_row && b_row <= pitch && distance <= pitch - b_row;
}

static bool overlap(const TensorArg *a, const TensorArg *b) {
  uint64_t a_bytes = extent_bytes(a), b_bytes = extent_bytes(b);
  if (a_bytes == 0 || b_bytes == 0) return false;
  bool apart =
      a->address >= b->address ? a->address - b->address >= b_bytes : b->address - a->address >= a_bytes;
  return !apart && !interleave_without_touching(a, b);
}

static TileError *check_overlap(const TileCall *call) {
  const InfoEntry *entry = call->kernel->variants[0];
  for (int i = 0; i < entry->ntensors; i++) {
    if (!(entry->tensors[i].access & TILE_WRITE)) continue;
    for (int k = 0; k < entry->ntensors; k++)
      if (k != i && overlap(&call->tensors[i], &call->tensors[k]))
        return error_new(TILE_INVALID, "%s, which is written, overlaps %s in memory", entry->tensors[i].name,
                         entry->tensors[k].name);
  }
  return NULL;
}

// ---- Variant, checks, grid

static BoundTensor bound(const TensorArg *arg) {
  BoundTensor tensor = {.address = arg->address};
  memcpy(tensor.size, arg->shape, sizeof tensor.size);
  memcpy(tensor.stride, arg->stride, sizeof tensor.stride);
  return tensor;
}

static bool guards_hold(const TileCall *call, const InfoEntry *entry, ErrorText *why) {
  for (int i = 0; i < entry->nguards; i++) {
    int index = entry->guards[i].tensor;
    BoundTensor tensor = bound(&call->tensors[index]);
    if (!tensor_map_guard(&entry->tensors[index], &tensor, entry->guards[i].store, why)) return false;
  }
  return true;
}

static TileError *choose_variant(const TileCall *call, const InfoEntry **out) {
  const TileKernel *kernel = call->kernel;
  for (int i = 0; i < kernel->nvariants; i++) {
    *out = kernel->variants[i];
    if (guards_hold(call, *out, NULL)) return NULL;
  }
  ErrorText why = {0};
  error_text(&why, "kernel %s cannot run on these tensors: ", kernel->name);
  guards_hold(call, *out, &why);
  return error_of_text(TILE_INVALID, &why);
}

// Whether "NAME = " stands behind the parenthesis that opened last.
static bool is_listed(const ErrorText *text, const char *name) {
  char entry[128];
  snprintf(entry, sizeof entry, "%.120s = ", name);
  const char *list = strrchr(text->data, '(');
  for (const char *at = list ? strstr(list, entry) : NULL; at; at = strstr(at + 1, entry))
    if (at[-1] == '(' || at[-1] == ' ') return true;
  return false;
}

// "M = 3, K = 100": what a failed check depends on.
static bool print_name(void *context, const char *name) {
  void **both = context;
  ErrorText *text = both[0];
  int64_t value;
  if (!is_listed(text, name) && lookup(both[1], name, &value))
    error_text(text, "%s%s = %lld", text->data[text->len - 1] == '(' ? "" : ", ", name, (long long)value);
  return true;
}

static TileError *run_checks(const Names *names, const InfoEntry *entry) {
  for (int i = 0; i < entry->nchecks; i++) {
    const InfoCheck *check = &entry->checks[i];
    int64_t holds;
    TileError *error = evaluate(names, check->condition, "a check of the kernel", &holds);
    if (error) return error;
    if (holds) continue;
    ErrorText text = {0};
    error_text(&text, "%s (", *check->message ? check->message : "a check of the kernel fails");
    void *both[] = {&text, (void *)(uintptr_t)names};
    if (text.data) expr_names(check->condition, print_name, both);
    error_text(&text, ")");
    return error_of_text(TILE_INVALID, &text);
  }
  return NULL;
}

static TileError *set_grid(const Names *names, const InfoEntry *entry, LaunchPlan *out) {
  bool empty = false;
  int64_t grid[3];
  for (int i = 0; i < 3; i++) {
    TileError *error = evaluate(names, entry->grid[i], "the grid", &grid[i]);
    if (error) return error;
    if (grid[i] < 0)
      return error_new(TILE_INVALID, "grid %c of kernel %s is %lld", "xyz"[i], entry -> kernel,
                       (long long)grid[i]);
    empty = empty || grid[i] == 0;
  }
  for (int i = 0; i < 3 && !empty; i++) {
    int64_t limit = i == 0 ? MAX_GRID_X : MAX_GRID_YZ;
    if (grid[i] > limit)
      return error_new(TILE_INVALID, "grid %c of kernel %s is %lld, the limit is %lld", "xyz"[i],
                       entry -> kernel, (long long)grid[i], (long long)limit);
    if (grid[i] % entry->cluster[i])
      return error_new(TILE_INVALID, "grid %c of kernel %s is %lld, not a multiple of the cluster's %u",
                       "xyz"[i], entry -> kernel, (long long)grid[i], entry -> cluster[i]);
    out->grid[i] = (uint32_t)grid[i];
  }
  out->entry = empty ? NULL : entry;
  return NULL;
}

// ---- Parameters

static TileError *fill_maps(const TileCall *call, const InfoEntry *entry, TensorMap *maps) {
  TileError *error = NULL;
  for (int i = 0; i < entry->nmaps && !error; i++) {
    BoundTensor tensor = bound(&call->tensors[entry->maps[i].tensor]);
    error = tensor_map_fill(entry, &entry->maps[i], &tensor, &maps[i]);
  }
  return error;
}

static TileError *fill_block(const Names *names, const InfoEntry *entry, uint8_t *block) {
  for (int i = 0; i < entry->nparams; i++) {
    const InfoParam *param = &entry->params[i];
    int64_t value = 0;
    switch (param->kind) {
    case INFO_POINTER:
      value = (int64_t)names->call->tensors[param->index].address;
      break;
    case INFO_SIZE:
      if (!lookup(names, param->name, &value))
        return error_new(TILE_INVALID, "size %s is settled by no tensor; fix it with a value", param->name);
      break;
    case INFO_STRIDE:
      value = names->call->tensors[param->index].stride[param->dim];
      break;
    case INFO_MAP:
      continue;
    case INFO_SCALAR:
      value = (int64_t)names->call->scalars[param->index].bits;
      break;
    }
    memcpy(block + param->offset, &value, param->bytes);  // little-endian: the low bytes come first
  }
  return NULL;
}

static TileError *check_bound(const TileCall *call) {
  const InfoEntry *entry = call->kernel->variants[0];
  for (int i = 0; i < entry->ntensors; i++)
    if (!call->tensors[i].bound)
      return error_new(TILE_INVALID, "tensor %s is not bound", entry->tensors[i].name);
  for (int i = 0; i < entry->nscalars; i++)
    if (!call->scalars[i].bound)
      return error_new(TILE_INVALID, "scalar %s is not bound", entry->scalars[i].name);
  return NULL;
}

// An address of the pool that is a multiple of 64.
static uint8_t *aligned_block(Pool *pool, size_t bytes) {
  uint8_t *block = pool_alloc(pool, bytes + 63, 1);
  return block ? block + (64 - (uintptr_t)block % 64) % 64 : NULL;
}

TileError *launch_plan(const TileCall *call, Pool *pool, LaunchPlan *out) {
  *out = (LaunchPlan){0};
  SizeValue *values = pool_alloc(pool, (size_t)call->kernel->nsizes, sizeof *values);
  if (!values) return error_no_memory();
  Names names = {call, values};
  const InfoEntry *entry = NULL;
  TileError *error = check_bound(call);
  if (!error) error = launch_sizes(call, values);
  if (!error) error = check_dimensions(call, values);
  if (!error) error = check_overlap(call);
  if (!error) error = choose_variant(call, &entry);
  if (!error) error = run_checks(&names, entry);
  if (!error) error = set_grid(&names, entry, out);
  if (error || !out->entry) return error;
  TensorMap *maps = pool_alloc(pool, (size_t)entry->nmaps, sizeof *maps);
  out->block = aligned_block(pool, entry->param_bytes);
  out->maps = maps;
  if (!maps || !out->block) return error_no_memory();
  error = fill_block(&names, entry, out->block);
  return error ? error : fill_maps(call, entry, maps);
}

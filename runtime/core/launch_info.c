// A line at a time: the first word picks a row of the table, whose function reads the rest. A word is
// missing, unknown or left over: an error with the line's number. What lines say about each other is checked
// where they meet, and at `end`.
#include "core/launch_info.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct {
  Pool *pool;
  const char *file;
  const char *at, *end;         // what is left of the line
  const char *text, *text_end;  // what is left of the text
  int line;
  TileError *error;
  LaunchInfo *info;
  InfoEntry *entry;  // the open one, or NULL
  unsigned seen;     // bits of the rows that the open entry has
} Parser;

enum { MAX_THINGS = 4096 };  // entries of a text, lines of a kind of an entry

// The first error stays.
__attribute__((format(printf, 2, 3))) static bool fail(Parser *p, const char *format, ...) {
  if (p->error) return false;
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  p->error = error_new(TILE_INVALID, "%s: launch information, line %d: %s", p->file, p->line, text);
  return false;
}

static bool no_memory(Parser *p) {
  if (!p->error) p->error = error_no_memory();
  return false;
}

static bool name_char(char c) {
  return (unsigned char)c > 32 && c != 127 && c != '(' && c != ')';
}

// The next word of the line, or NULL at its end.
static const char *next_word(Parser *p) {
  while (p->at < p->end && *p->at == ' ') p->at++;
  const char *start = p->at;
  while (p->at < p->end && *p->at != ' ') p->at++;
  if (p->at == start) return NULL;
  char *word = pool_text(p->pool, start, (size_t)(p->at - start));
  if (!word) no_memory(p);
  return word;
}

static const char *need_word(Parser *p, const char *what) {
  const char *word = next_word(p);
  if (!word) fail(p, "%s is missing", what);
  return word;
}

static const char *need_name(Parser *p, const char *what) {
  const char *word = need_word(p, what);
  if (!word) return NULL;
  bool ok = *word != '-' && !(*word >= '0' && *word <= '9');
  for (const char *c = word; *c; c++) ok = ok && name_char(*c);
  if (ok) return word;
  fail(p, "\"%.60s\" cannot be %s", word, what);
  return NULL;
}

static bool need_number(Parser *p, const char *what, uint32_t low, uint32_t high, uint32_t *out) {
  const char *word = need_word(p, what);
  if (!word) return false;
  uint64_t value = 0;
  for (const char *c = word; *c; c++) {
    if (*c < '0' || *c > '9' || value > UINT32_MAX)
      return fail(p, "\"%.60s\" is no number for %s", word, what);
    value = 10 * value + (uint64_t)(*c - '0');
  }
  if (value < low || value > high) return fail(p, "%s is %s, not %u to %u", what, word, low, high);
  *out = (uint32_t)value;
  return true;
}

static bool need_choice(Parser *p, const char *what, const char *const *choices, int count, int *out) {
  const char *word = need_word(p, what);
  if (!word) return false;
  for (*out = 0; *out < count; ++*out)
    if (strcmp(word, choices[*out]) == 0) return true;
  return fail(p, "\"%.60s\" is no %s", word, what);
}

static bool need_expr(Parser *p, const Expr **out) {
  const char *why;
  *out = expr_parse(p->pool, &p->at, p->end, &why);
  return *out ? true : fail(p, "%s", why);
}

static bool need_dtype(Parser *p, TileDType *out) {
  const char *word = need_word(p, "a dtype");
  if (!word) return false;
  return tile_dtype_parse(word, out) ? true : fail(p, "\"%.60s\" is no dtype", word);
}

static int find_tensor(const InfoEntry *entry, const char *name) {
  for (int i = 0; i < entry->ntensors; i++)
    if (strcmp(entry->tensors[i].name, name) == 0) return i;
  return -1;
}

static bool need_tensor(Parser *p, int *out) {
  const char *name = need_name(p, "a tensor's name");
  if (!name) return false;
  *out = find_tensor(p->entry, name);
  return *out >= 0 ? true : fail(p, "no tensor \"%.60s\" is declared before this line", name);
}

// Appends a zeroed element to an array of the entry; NULL without memory.
static void *append(Parser *p, void *array_field, int *count, size_t size) {
  void *array;
  if (*count == MAX_THINGS) {
    fail(p, "more than %d of a kind", MAX_THINGS);
    return NULL;
  }
  memcpy(&array, array_field, sizeof array);
  array = pool_grow(p->pool, array, *count, size);
  if (!array) {
    no_memory(p);
    return NULL;
  }
  memcpy(array_field, &array, sizeof array);
  return (char *)array + (size_t)(*count)++ * size;
}

#define APPEND(p, entry, field, count) append((p), &(entry)->field, &(entry)->count, sizeof *(entry)->field)

static bool read_kernel(Parser *p) {
  return (p->entry->kernel = need_name(p, "a kernel's name")) != NULL;
}

static bool read_variant(Parser *p) {
  static const char *const variants[] = {"only", "tma", "general"};
  int which;
  if (!need_choice(p, "variant", variants, 3, &which)) return false;
  p->entry->variant = variants[which];
  return true;
}

static bool read_arch(Parser *p) {
  return (p->entry->arch = need_name(p, "an architecture")) != NULL;
}

static bool read_block(Parser *p) {
  return need_number(p, "the block", 1, 1024, &p->entry->block);
}

static bool read_grid(Parser *p) {
  for (int i = 0; i < 3; i++)
    if (!need_expr(p, &p->entry->grid[i])) return false;
  return true;
}

static bool read_cluster(Parser *p) {
  for (int i = 0; i < 3; i++)
    if (!need_number(p, "a cluster dimension", 1, 16, &p->entry->cluster[i])) return false;
  return true;
}

static bool read_shared(Parser *p) {
  return need_number(p, "shared memory", 0, 1 << 20, &p->entry->shared);
}

static bool read_overlap(Parser *p) {
  uint32_t value;
  if (!need_number(p, "whether launches overlap", 0, 1, &value)) return false;
  p->entry->overlap = value;
  return true;
}

static bool line_ended(const Parser *p) {
  const char *c = p->at;
  while (c < p->end && *c == ' ') c++;
  return c == p->end;
}

static bool read_tensor(Parser *p) {
  static const char *const accesses[] = {"", "read", "write", "readwrite"};
  InfoTensor tensor = {.name = need_name(p, "a tensor's name")};
  int access;
  if (!tensor.name || !need_dtype(p, &tensor.dtype)) return false;
  if (!need_choice(p, "access (read, write, readwrite)", accesses, 4, &access)) return false;
  tensor.access = (TileAccess)access;
  while (!line_ended(p)) {
    if (tensor.rank == TILE_MAX_RANK) return fail(p, "more than %d dimensions", TILE_MAX_RANK);
    if (!need_expr(p, &tensor.dims[tensor.rank++])) return false;
  }
  if (tensor.rank == 0) return fail(p, "tensor %.60s has no dimension", tensor.name);
  if (find_tensor(p->entry, tensor.name) >= 0) return fail(p, "tensor %.60s is declared twice", tensor.name);
  InfoTensor *slot = APPEND(p, p->entry, tensors, ntensors);
  if (slot) *slot = tensor;
  return slot != NULL;
}

// PTX ISA 5.5: the box has at most 256 elements a dimension, a whole number of 16-byte units in the
// innermost, which a swizzle limits to its span.
static bool check_box(Parser *p, const InfoTensor *tensor, const InfoMap *map) {
  uint64_t bits = (uint64_t)map->box[tensor->rank - 1] * (uint64_t)tile_dtype_bits(tensor->dtype);
  if (bits % 128 != 0) return fail(p, "the box's innermost dimension is not a multiple of 16 bytes");
  if (map->swizzle && bits > 8 * (uint64_t)map->swizzle)
    return fail(p, "the box's innermost dimension has %llu bytes, more than the swizzle of %d",
                (unsigned long long)(bits / 8), map->swizzle);
  return true;
}

static bool read_map(Parser *p) {
  static const char *const swizzles[] = {"0", "32", "64", "128"};
  static const char *const bytes[] = {"load", "store"};
  static const char *const box[] = {"box"}, *const swizzle[] = {"swizzle"};
  InfoMap map = {0};
  uint32_t index;
  int which;
  if (!need_number(p, "a map's index", 0, 1000, &index)) return false;
  if ((int)index != p->entry->nmaps) return fail(p, "map %u follows %d maps", index, p->entry->nmaps);
  if (!need_tensor(p, &map.tensor) || !need_choice(p, "word \"box\"", box, 1, &which)) return false;
  const InfoTensor *tensor = &p->entry->tensors[map.tensor];
  if (tensor->rank > TILE_MAX_MAP_RANK)
    return fail(p, "a tensor map has at most %d dimensions, %s has %d", TILE_MAX_MAP_RANK, tensor->name,
                tensor->rank);
  for (int i = 0; i < tensor->rank; i++)
    if (!need_number(p, "a box dimension", 1, 256, &map.box[i])) return false;
  if (!need_choice(p, "word \"swizzle\"", swizzle, 1, &which)) return false;
  if (!need_choice(p, "swizzle (0, 32, 64, 128)", swizzles, 4, &which)) return false;
  map.swizzle = which ? 16 << which : 0;
  if (!need_choice(p, "direction (load, store)", bytes, 2, &which) || !check_box(p, tensor, &map))
    return false;
  map.store = which;
  InfoMap *slot = APPEND(p, p->entry, maps, nmaps);
  if (slot) *slot = map;
  return slot != NULL;
}

static bool read_guard(Parser *p) {
  static const char *const directions[] = {"load", "store"};
  InfoGuard guard = {0};
  int which;
  if (!need_tensor(p, &guard.tensor) || !need_choice(p, "direction (load, store)", directions, 2, &which))
    return false;
  guard.store = which;
  InfoGuard *slot = APPEND(p, p->entry, guards, nguards);
  if (slot) *slot = guard;
  return slot != NULL;
}

static bool read_check(Parser *p) {
  InfoCheck check = {0};
  if (!need_expr(p, &check.condition)) return false;
  if (p->at < p->end && *p->at == ' ') p->at++;
  check.message = pool_text(p->pool, p->at, (size_t)(p->end - p->at));
  if (!check.message) return no_memory(p);
  p->at = p->end;
  InfoCheck *slot = APPEND(p, p->entry, checks, nchecks);
  if (slot) *slot = check;
  return slot != NULL;
}

static bool read_scalar(Parser *p, InfoParam *param) {
  InfoScalar scalar = {.name = need_name(p, "a scalar's name")};
  if (!scalar.name || !need_dtype(p, &scalar.dtype)) return false;
  if (tile_dtype_bits(scalar.dtype) % 8)
    return fail(p, "a scalar cannot be of type %s", tile_dtype_name(scalar.dtype));
  for (int i = 0; i < p->entry->nscalars; i++)
    if (strcmp(p->entry->scalars[i].name, scalar.name) == 0)
      return fail(p, "scalar %.60s stands twice", scalar.name);
  param->index = p->entry->nscalars;
  param->bytes = (uint32_t)tile_dtype_bits(scalar.dtype) / 8;
  InfoScalar *slot = APPEND(p, p->entry, scalars, nscalars);
  if (slot) *slot = scalar;
  return slot != NULL;
}

static bool read_stride(Parser *p, InfoParam *param) {
  uint32_t dim;
  if (!need_tensor(p, &param->index)) return false;
  int rank = p->entry->tensors[param->index].rank;
  if (rank < 2) return fail(p, "a tensor of one dimension has no stride to pass");
  if (!need_number(p, "a dimension with a stride", 0, (uint32_t)rank - 2, &dim)) return false;
  param->dim = (int)dim;
  param->bytes = 8;
  return true;
}

static bool read_map_param(Parser *p, InfoParam *param) {
  uint32_t index;
  if (p->entry->nmaps == 0) return fail(p, "no map is declared before this line");
  if (!need_number(p, "a map's index", 0, (uint32_t)p->entry->nmaps - 1, &index)) return false;
  param->index = (int)index;
  param->bytes = 128;
  return true;
}

// PTX ISA 5.2.2: a parameter stands at the next multiple of its alignment, which is its size but for a tensor
// map (64).
static bool place(Parser *p, InfoParam *param) {
  uint32_t align = param->bytes == 128 ? 64 : param->bytes;
  param->offset = (p->entry->param_bytes + align - 1) / align * align;
  if (param->offset + param->bytes > 32764) return fail(p, "the parameters need more than 32764 bytes");
  p->entry->param_bytes = param->offset + param->bytes;
  return true;
}

static bool read_param(Parser *p) {
  static const char *const kinds[] = {"ptr", "size", "stride", "map", "scalar"};
  InfoParam param = {0};
  int kind;
  bool ok = false;
  if (!need_choice(p, "kind of parameter", kinds, 5, &kind)) return false;
  param.kind = (InfoParamKind)kind;
  switch (param.kind) {
  case INFO_POINTER:
    ok = need_tensor(p, &param.index);
    param.bytes = 8;
    break;
  case INFO_SIZE:
    ok = (param.name = need_name(p, "a size's name")) != NULL;
    param.bytes = 4;
    break;
  case INFO_STRIDE:
    ok = read_stride(p, &param);
    break;
  case INFO_MAP:
    ok = read_map_param(p, &param);
    break;
  case INFO_SCALAR:
    ok = read_scalar(p, &param);
    break;
  }
  if (!ok || !place(p, &param)) return false;
  InfoParam *slot = APPEND(p, p->entry, params, nparams);
  if (slot) *slot = param;
  return slot != NULL;
}

typedef enum { ANY_TIMES, AT_MOST_ONCE, ONCE } LineCount;

typedef struct {
  const char *word;
  LineCount count;  // in an entry
  bool (*read)(Parser *p);
} LineRow;

static const LineRow line_rows[] = {
    {"kernel", ONCE, read_kernel},      {"variant", ONCE, read_variant},
    {"arch", ONCE, read_arch},          {"block", ONCE, read_block},
    {"grid", ONCE, read_grid},          {"cluster", ONCE, read_cluster},
    {"shared", ONCE, read_shared},      {"overlap", AT_MOST_ONCE, read_overlap},
    {"tensor", ANY_TIMES, read_tensor}, {"map", ANY_TIMES, read_map},
    {"guard", ANY_TIMES, read_guard},   {"check", ANY_TIMES, read_check},
    {"param", ANY_TIMES, read_param},
};

enum { LINE_ROWS = sizeof line_rows / sizeof line_rows[0] };

static bool read_entry(Parser *p) {
  if (p->entry) return fail(p, "entry %s has no \"end\"", p->entry->entry);
  const char *name = need_name(p, "an entry's name");
  if (!name) return false;
  for (int i = 0; i < p->info->nentries; i++)
    if (strcmp(p->info->entries[i].entry, name) == 0) return fail(p, "entry %.60s stands twice", name);
  InfoEntry *entry = APPEND(p, p->info, entries, nentries);
  if (!entry) return false;
  entry->entry = name;
  p->entry = entry;
  p->seen = 0;
  return true;
}

static bool same_tensor(const InfoTensor *a, const InfoTensor *b) {
  if (strcmp(a->name, b->name) != 0 || a->dtype != b->dtype || a->access != b->access || a->rank != b->rank)
    return false;
  for (int i = 0; i < a->rank; i++)
    if (!expr_equal(a->dims[i], b->dims[i])) return false;
  return true;
}

// Variants of a kernel take the same arguments.
static bool check_variants(Parser *p) {
  const InfoEntry *entry = p->entry;
  for (int i = 0; i + 1 < p->info->nentries; i++) {
    const InfoEntry *other = &p->info->entries[i];
    if (strcmp(other->kernel, entry->kernel) != 0) continue;
    bool same = other->ntensors == entry->ntensors && other->nscalars == entry->nscalars &&
                strcmp(other->arch, entry->arch) == 0;
    for (int k = 0; same && k < entry->ntensors; k++)
      same = same_tensor(&entry->tensors[k], &other->tensors[k]);
    for (int k = 0; same && k < entry->nscalars; k++)
      same = strcmp(entry->scalars[k].name, other->scalars[k].name) == 0 &&
             entry->scalars[k].dtype == other->scalars[k].dtype;
    if (!same)
      return fail(p, "entries %s and %s are variants of kernel %s, but differ in arguments or architecture",
                  other->entry, entry->entry, entry->kernel);
  }
  return true;
}

static bool read_end(Parser *p) {
  if (!p->entry) return fail(p, "\"end\" without an entry");
  for (int i = 0; i < LINE_ROWS; i++)
    if (line_rows[i].count == ONCE && !(p->seen & 1u << i))
      return fail(p, "entry %s has no line \"%s\"", p->entry->entry, line_rows[i].word);
  for (int i = 0; i < p->entry->nscalars; i++)
    if (find_tensor(p->entry, p->entry->scalars[i].name) >= 0)
      return fail(p, "%s is a tensor and a scalar", p->entry->scalars[i].name);
  if (!check_variants(p)) return false;
  p->entry = NULL;
  return true;
}

static bool read_row(Parser *p, const char *word) {
  if (strcmp(word, "entry") == 0) return read_entry(p);
  if (strcmp(word, "end") == 0) return read_end(p);
  for (int i = 0; i < LINE_ROWS; i++) {
    if (strcmp(word, line_rows[i].word) != 0) continue;
    if (!p->entry) return fail(p, "\"%s\" outside of an entry", word);
    if (line_rows[i].count != ANY_TIMES && (p->seen & 1u << i))
      return fail(p, "a second line \"%s\" in one entry", word);
    p->seen |= 1u << i;
    return line_rows[i].read(p);
  }
  return fail(p, "\"%.60s\" is unknown", word);
}

static bool next_line(Parser *p) {
  if (p->text == p->text_end) return false;
  p->line++;
  p->at = p->text;
  const char *newline = memchr(p->text, '\n', (size_t)(p->text_end - p->text));
  p->end = newline ? newline : p->text_end;
  p->text = newline ? newline + 1 : p->text_end;
  return true;
}

static bool read_header(Parser *p) {
  const char *magic = next_line(p) ? next_word(p) : NULL;
  if (!magic || strcmp(magic, TILE_LAUNCH_INFO_MAGIC) != 0)
    return fail(p, "does not start with \"%s\"", TILE_LAUNCH_INFO_MAGIC);
  uint32_t version;
  if (!need_number(p, "the format's version", 0, UINT32_MAX, &version)) return false;
  if (version != TILE_LAUNCH_INFO_VERSION)
    return fail(p, "format version %u; this runtime reads version %d", version, TILE_LAUNCH_INFO_VERSION);
  return line_ended(p) ? true : fail(p, "words after the version");
}

static bool read_all(Parser *p) {
  if (!read_header(p)) return false;
  while (next_line(p)) {
    if (memchr(p->at, '\0', (size_t)(p->end - p->at))) return fail(p, "a NUL in the text");
    if (line_ended(p)) continue;
    const char *word = next_word(p);
    if (!word || !read_row(p, word)) return false;
    if (!line_ended(p))
      return fail(p, "unexpected \"%.*s\"", (int)(p->end - p->at > 60 ? 60 : p->end - p->at), p->at);
  }
  if (p->entry) return fail(p, "entry %s has no \"end\"", p->entry->entry);
  return p->info->nentries ? true : fail(p, "no entry");
}

TileError *launch_info_parse(Pool *pool, const char *file, const char *text, size_t length, LaunchInfo *out) {
  *out = (LaunchInfo){0};
  if (length > TILE_LAUNCH_INFO_MAX_BYTES)
    return error_new(TILE_INVALID, "%s: launch information of %zu bytes is too long", file, length);
  while (length && text[length - 1] == '\0') length--;  // an array that PTX padded with zeros
  Parser parser = {.pool = pool, .file = file, .text = text, .text_end = text + length, .info = out};
  read_all(&parser);
  return parser.error;
}

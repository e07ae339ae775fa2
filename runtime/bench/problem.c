// C's dimensions are m and n; A is a tensor that has m and one other dimension, B one that has n and that dimension.
// Names make this unique. Where sizes are fixed only numbers are left, and the first reading that fits is taken, rows
// of K before columns.
#include "bench/problem.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/dtype.h"
#include "core/error.h"

enum { M_AT_C = 0, N_AT_C = 1 };

static const struct {
  const char *name;
  bool a_by_columns, b_by_columns;
} layouts[] = {{"tn", false, false}, {"nn", false, true}, {"tt", true, false}, {"nt", true, true}};

enum { LAYOUTS = sizeof layouts / sizeof *layouts };

static bool is_matrix(const TileParam *param, TileAccess access) {
  return param->kind == TILE_PARAM_TENSOR && param->rank == 2 && param->access == access;
}

static TileError *find_result(const TileKernel *kernel, Problem *out) {
  for (int i = 0; i < tile_kernel_param_count(kernel); i++) {
    const TileParam *param = tile_kernel_param(kernel, i);
    if (param->kind != TILE_PARAM_TENSOR || !(param->access & TILE_WRITE)) continue;
    if (out->c)
      return error_new(TILE_INVALID, "kernel %s writes %s and %s; a product has one result",
                       tile_kernel_name(kernel), out->c->name, param->name);
    if (param->rank != 2)
      return error_new(TILE_INVALID,
                       "kernel %s: its result %s has %d dimension%s; only C (M, N) = A B is measured%s",
                       tile_kernel_name(kernel), param->name, param->rank, param->rank == 1 ? "" : "s",
                       param->rank > 2 ? ", no batch of products" : "");
    if (param->access & TILE_READ)
      return error_new(TILE_INVALID, "kernel %s reads its result %s; only C = A B is measured, not C += A B",
                       tile_kernel_name(kernel), param->name);
    out->c = param;
  }
  if (out->c) return NULL;
  return error_new(TILE_INVALID, "kernel %s writes no tensor", tile_kernel_name(kernel));
}

// Whether (a, b) in this layout is the product; fills in the dimensions.
static bool fits(Problem *problem, const TileParam *a, const TileParam *b, int layout) {
  bool across_a = layouts[layout].a_by_columns, across_b = layouts[layout].b_by_columns;
  const char *m = problem->c->shape[M_AT_C], *n = problem->c->shape[N_AT_C], *k = a->shape[across_a ? 0 : 1];
  if (strcmp(a->shape[across_a ? 1 : 0], m) != 0 || strcmp(b->shape[across_b ? 1 : 0], n) != 0) return false;
  if (strcmp(b->shape[across_b ? 0 : 1], k) != 0) return false;
  *problem = (Problem){a, b, problem->c, across_a, across_b, m, n, k};
  return true;
}

static bool find_operands(const TileKernel *kernel, int layout, Problem *out) {
  int count = tile_kernel_param_count(kernel);
  for (int i = 0; i < count; i++) {
    const TileParam *a = tile_kernel_param(kernel, i);
    if (!is_matrix(a, TILE_READ)) continue;
    for (int j = 0; j < count; j++) {
      const TileParam *b = tile_kernel_param(kernel, j);
      if (j != i && is_matrix(b, TILE_READ) && fits(out, a, b, layout)) return true;
    }
  }
  return false;
}

static bool is_name(const char *text) {
  size_t length = 0;
  while (isalnum((unsigned char)text[length]) || text[length] == '_') length++;
  return !text[length];
}

static TileError *check_dimensions(const TileKernel *kernel, const Problem *problem) {
  const char *names[3] = {problem->m, problem->n, problem->k};
  for (int i = 0; i < 3; i++)
    if (!is_name(names[i]))
      return error_new(TILE_INVALID, "kernel %s: %c is %s; a size that is measured has a name or is a number",
                       tile_kernel_name(kernel), "MNK"[i], names[i]);
  return NULL;
}

static TileError *check_types(const TileKernel *kernel, const Problem *problem) {
  const TileParam *all[3] = {problem->a, problem->b, problem->c};
  bool integer = dtype_is_integer(problem->a->dtype);
  for (int i = 0; i < 3; i++) {
    if (tile_dtype_bits(all[i]->dtype) < 8)
      return error_new(TILE_INVALID, "kernel %s: %s is of %s; only elements of whole bytes are measured",
                       tile_kernel_name(kernel), all[i]->name, tile_dtype_name(all[i]->dtype));
    if (dtype_is_integer(all[i]->dtype) != integer)
      return error_new(TILE_INVALID,
                       "kernel %s: %s is of %s, %s of %s; products of integers and floats are not measured",
                       tile_kernel_name(kernel), problem->a->name, tile_dtype_name(problem->a->dtype),
                       all[i]->name, tile_dtype_name(all[i]->dtype));
  }
  if (!integer || tile_dtype_bits(problem->c->dtype) >= 32) return NULL;
  return error_new(TILE_INVALID,
                   "kernel %s: sums of %s need not fit into %s, of which %s is; measured are sums in i32",
                   tile_kernel_name(kernel), tile_dtype_name(problem->a->dtype),
                   tile_dtype_name(problem->c->dtype), problem->c->name);
}

static TileError *check(const TileKernel *kernel, const Problem *problem) {
  TileError *error = check_dimensions(kernel, problem);
  return error ? error : check_types(kernel, problem);
}

TileError *problem_find(const TileKernel *kernel, const char *layout, Problem *out) {
  *out = (Problem){0};
  TileError *error = find_result(kernel, out);
  if (error) return error;
  for (int i = 0; i < LAYOUTS; i++)
    if ((!layout || strcmp(layout, layouts[i].name) == 0) && find_operands(kernel, i, out))
      return check(kernel, out);
  return error_new(TILE_INVALID,
                   "kernel %s: no two input matrices A (%s, K) and B (%s, K), either stored the other way, "
                   "for its result %s (%s, %s)%s%s",
                   tile_kernel_name(kernel), out->c->shape[0], out->c->shape[1], out->c->name,
                   out->c->shape[0], out->c->shape[1], layout ? " in layout " : "", layout ? layout : "");
}

const char *problem_operands(const Problem *problem, char out[PROBLEM_OPERANDS]) {
  const char *a = tile_dtype_name(problem->a->dtype), *b = tile_dtype_name(problem->b->dtype);
  bool same = problem->a->dtype == problem->b->dtype;
  snprintf(out, PROBLEM_OPERANDS, "%s%s%s", a, same ? "" : " and ", same ? "" : b);
  return out;
}

bool problem_knows_layout(const char *layout) {
  for (int i = 0; i < LAYOUTS; i++)
    if (strcmp(layout, layouts[i].name) == 0) return true;
  return false;
}

void problem_describe(const Problem *problem, char *out, size_t size) {
  snprintf(out, size, "%s[%s] = %s[%s] %s[%s]", problem->c->name, "M, N", problem->a->name,
           problem->a_by_columns ? "K, M" : "M, K", problem->b->name,
           problem->b_by_columns ? "K, N" : "N, K");
}

static bool parse_number(const char **at, const char *end, int64_t *out) {
  *out = 0;
  const char *start = *at;
  while (*at < end && **at >= '0' && **at <= '9' && *out <= INT32_MAX) *out = *out * 10 + (*(*at)++ - '0');
  return *at > start && *out >= 1 && *out <= INT32_MAX;
}

bool sizes_parse(const char *text, size_t length, Sizes *out) {
  const char *at = text, *end = text + length;
  if (!parse_number(&at, end, &out->m)) return false;
  out->n = out->k = out->m;
  if (at == end) return true;
  if (*at++ != 'x' || !parse_number(&at, end, &out->n)) return false;
  if (at == end || *at++ != 'x' || !parse_number(&at, end, &out->k)) return false;
  return at == end;
}

bool sizes_parse_list(const char *text, Sizes **out, int *count, const char **wrong) {
  int room = 1;
  for (const char *at = text; *at; at++) room += *at == ',';
  Sizes *list = calloc((size_t)room, sizeof *list);
  *count = 0;
  for (const char *at = text; list; at++) {
    size_t length = strcspn(at, ",");
    if (!sizes_parse(at, length, &list[(*count)++])) {
      *wrong = at;
      free(list);
      return false;
    }
    at += length;
    if (!*at) break;
  }
  *out = list;
  *wrong = text;
  return list != NULL;
}

double sizes_flops(Sizes sizes) {
  return 2.0 * (double)sizes.m * (double)sizes.n * (double)sizes.k;
}

static bool is_fixed(const char *dimension, int64_t *value) {
  char *end;
  *value = strtoll(dimension, &end, 10);
  return end != dimension && !*end;
}

TileError *problem_fix(const Problem *problem, TileCall *call, Sizes sizes) {
  const char *names[3] = {problem->m, problem->n, problem->k};
  const int64_t values[3] = {sizes.m, sizes.n, sizes.k};
  TileError *error = NULL;
  for (int i = 0; i < 3 && !error; i++) {
    int64_t fixed;
    for (int j = 0; j < i; j++)
      if (strcmp(names[i], names[j]) == 0 && values[i] != values[j])
        return error_new(TILE_INVALID, "%c and %c are one size of the kernel, %s; %lld and %lld differ",
                         "MNK"[j], "MNK"[i], names[i], (long long)values[j], (long long)values[i]);
    if (!is_fixed(names[i], &fixed))
      error = tile_call_size(call, names[i], values[i]);
    else if (fixed != values[i])
      error = error_new(TILE_INVALID, "%c is %lld here, but the kernel was compiled for %lld", "MNK"[i],
                        (long long)values[i], (long long)fixed);
  }
  return error;
}

bool problem_fixed_sizes(const Problem *problem, Sizes *out) {
  return is_fixed(problem->m, &out->m) && is_fixed(problem->n, &out->n) && is_fixed(problem->k, &out->k);
}

// Expressions of launch information: values, floor semantics over all signs, refusals, bounds, printing.
#include <limits.h>
#include <stdlib.h>

#include "check.h"
#include "core/expr.h"

static bool lookup(const void *context, const char *name, int64_t *out) {
  const int64_t *values = context;
  if (strcmp(name, "M") == 0)
    *out = values[0];
  else if (strcmp(name, "N") == 0)
    *out = values[1];
  else
    return false;
  return true;
}

// The value of `text` with M and N; `result` tells what came of it.
static int64_t value(const char *text, int64_t m, int64_t n, ExprResult *result) {
  Pool pool = {0};
  const char *at = text, *why;
  int64_t values[] = {m, n}, out = 0;
  const Expr *expr = expr_parse(&pool, &at, text + strlen(text), &why);
  *result = expr ? expr_eval(expr, lookup, values, &out, &why) : EXPR_ERROR;
  pool_free(&pool);
  return out;
}

static void is(Checks *checks, const char *text, int64_t m, int64_t n, int64_t want) {
  ExprResult result;
  int64_t got = value(text, m, n, &result);
  if (!CHECK(checks, result == EXPR_VALUE) || !CHECK_INT(checks, got, want)) fprintf(stderr, "  %s\n", text);
}

static void fails(Checks *checks, const char *text, int64_t m, int64_t n, ExprResult want) {
  ExprResult result;
  value(text, m, n, &result);
  if (!CHECK_INT(checks, result, want)) fprintf(stderr, "  %s\n", text);
}

static void test_values(Checks *checks) {
  is(checks, "42", 0, 0, 42);
  is(checks, "-9223372036854775808", 0, 0, INT64_MIN);
  is(checks, "M", 7, 0, 7);
  is(checks, "(M)", 7, 0, 7);
  is(checks, "((M))", 7, 0, 7);
  is(checks, "(add M (mul N 2))", 3, 5, 13);
  is(checks, "(select (lt M N) M N)", 3, 5, 3);
  is(checks, "(min M (max N 4))", 9, 2, 4);
  is(checks, "(and (ge M 1) (eq (floormod M 64) 0))", 128, 0, 1);
  is(checks, "(not (eq M 0))", 0, 0, 0);
  is(checks, "(not M)", 5, 0, -6);
  is(checks, "(abs (neg M))", 5, 0, 5);
  is(checks, "(shl M 3)", 5, 0, 40);
  is(checks, "(shr M 1)", -5, 0, -3);
  is(checks, "(xor M N)", 6, 3, 5);
}

// Reference: exact floor by searching, no division.
static int64_t floor_by_search(int64_t a, int64_t b) {
  for (int64_t q = -20; q <= 20; q++)
    if (b > 0 ? q * b <= a && a < (q + 1) * b : q * b >= a && a > (q + 1) * b) return q;
  return 99;
}

static void test_division(Checks *checks) {
  for (int64_t a = -9; a <= 9; a++) {
    for (int64_t b = -4; b <= 4; b++) {
      if (b == 0) continue;
      int64_t floor = floor_by_search(a, b);
      is(checks, "(floordiv M N)", a, b, floor);
      is(checks, "(floormod M N)", a, b, a - floor * b);
      is(checks, "(ceildiv M N)", a, b, -floor_by_search(-a, b));
      is(checks, "(truncdiv M N)", a, b, a / b);
      is(checks, "(truncmod M N)", a, b, a % b);
    }
  }
  fails(checks, "(floordiv M N)", 1, 0, EXPR_ERROR);
  fails(checks, "(floormod M N)", 1, 0, EXPR_ERROR);
  fails(checks, "(truncdiv M N)", INT64_MIN, -1, EXPR_ERROR);
  is(checks, "(floormod M N)", INT64_MIN, -1, 0);
}

static void test_refusals(Checks *checks) {
  fails(checks, "(add M 1)", INT64_MAX, 0, EXPR_ERROR);
  fails(checks, "(mul M N)", INT64_C(1) << 40, INT64_C(1) << 40, EXPR_ERROR);
  fails(checks, "(neg M)", INT64_MIN, 0, EXPR_ERROR);
  fails(checks, "(shl M 62)", 4, 0, EXPR_ERROR);
  fails(checks, "(add M Q)", 1, 1, EXPR_UNKNOWN);
  // Arms that are not taken may be anything.
  is(checks, "(select (eq N 0) 0 (floordiv M N))", 5, 0, 0);
  is(checks, "(and (ne N 0) (eq (floormod M N) 0))", 5, 0, 0);
  is(checks, "(or (eq N 0) (eq (floormod M N) 0))", 5, 0, 1);
  static const char *const malformed[] = {"",        "(",           ")",         "()",
                                          "(add M)", "(add M N M)", "(foo M N)", "(add M N",
                                          "12x",     "-",           "--1",       "9223372036854775808",
                                          "(M N)",   "(select M N)"};
  for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++)
    fails(checks, malformed[i], 1, 1, EXPR_ERROR);
}

static void test_bounds(Checks *checks) {
  static char deep[200000];
  char *p = deep;
  for (int i = 0; i < 50000; i++) p += sprintf(p, "(");
  fails(checks, deep, 1, 1, EXPR_ERROR);
  p = deep;
  for (int i = 0; i < 20000; i++) p += sprintf(p, "(neg ");
  fails(checks, deep, 1, 1, EXPR_ERROR);
}

static void prints(Checks *checks, const char *text, const char *want) {
  Pool pool = {0};
  const char *at = text, *why;
  ErrorText out = {0};
  const Expr *expr = expr_parse(&pool, &at, text + strlen(text), &why);
  if (CHECK(checks, expr != NULL)) expr_print(expr, &out);
  CHECK_TEXT(checks, out.data, want);
  free(out.data);
  pool_free(&pool);
}

int main(void) {
  Checks checks = {0};
  test_values(&checks);
  test_division(&checks);
  test_refusals(&checks);
  test_bounds(&checks);
  prints(&checks, "(ceildiv N 256)", "ceildiv(N, 256)");
  prints(&checks, "(add (mul 2 K) 1)", "(2*K) + 1");
  return check_report(&checks);
}

// The unit programs' whole framework: CHECK prints what failed and where, and goes on; check_report is main's
// result. A program holds its count in a Checks on main's stack, so that there is no mutable global here
// either.
#ifndef TILEC_TESTS_CHECK_H
#define TILEC_TESTS_CHECK_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct {
  int done, failed;
} Checks;

static inline bool check_that(Checks *checks, bool ok, const char *file, int line, const char *what) {
  checks->done++;
  if (ok) return true;
  checks->failed++;
  fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
  return false;
}

static inline bool check_int(Checks *checks, long long got, long long want, const char *file, int line,
                             const char *what) {
  bool ok = check_that(checks, got == want, file, line, what);
  if (!ok) fprintf(stderr, "  got %lld (0x%llx), want %lld (0x%llx)\n", got, got, want, want);
  return ok;
}

static inline bool check_text(Checks *checks, const char *got, const char *want, const char *file, int line,
                              const char *what) {
  bool same = got && want ? strcmp(got, want) == 0 : got == want;
  bool ok = check_that(checks, same, file, line, what);
  if (!ok) fprintf(stderr, "--- got\n%s\n--- want\n%s\n---\n", got ? got : "(null)", want ? want : "(null)");
  return ok;
}

#define CHECK(checks, condition) check_that((checks), (condition), __FILE__, __LINE__, #condition)
#define CHECK_INT(checks, got, want)                                                                         \
  check_int((checks), (long long)(got), (long long)(want), __FILE__, __LINE__, #got " == " #want)
#define CHECK_TEXT(checks, got, want) check_text((checks), (got), (want), __FILE__, __LINE__, #got)

// A program that checked nothing has failed.
static inline int check_report(const Checks *checks) {
  fprintf(stderr, "%d checks, %d failed\n", checks->done, checks->failed);
  return checks->failed == 0 && checks->done > 0 ? 0 : 1;
}

#endif

// The key of a line is what stands before " set ". Comments and blank lines are not kept.
#include "bench/tuning_file.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"

static const char heading[] = "tile-tuning 1", separator[] = " set ";

static bool append(TuningLines *lines, char *line) {
  char **data = realloc(lines->lines, (size_t)(lines->count + 1) * sizeof *data);
  if (data) lines->lines = data;
  if (!data || !line) {
    free(line);
    return false;
  }
  lines->lines[lines->count++] = line;
  return true;
}

// Words with one blank between them, which is how keys are spelt.
static char *tidied(const char *line) {
  char *out = calloc(strlen(line) + 1, 1), *end = out;
  bool quoted = false;
  for (; out && *line; line++) {
    quoted ^= *line == '"';
    bool blank = !quoted && isspace((unsigned char)*line);
    if (blank && (end == out || end[-1] == ' ')) continue;
    *end++ = blank ? ' ' : *line;
  }
  while (out && end > out && end[-1] == ' ') *--end = '\0';
  return out;
}

static TileError *read_lines(FILE *file, const char *path, TuningLines *out) {
  char *line = NULL;
  size_t room = 0;
  bool first = true;
  TileError *error = NULL;
  while (!error && getline(&line, &room, file) >= 0) {
    char *text = tidied(line);
    if (first && (!text || strcmp(text, heading) != 0))
      error = error_new(TILE_INVALID, "%s is no tuning file: its first line is not '%s'", path, heading);
    bool entry = !first && !error && text && *text && *text != '#';
    first = false;
    if (!entry)
      free(text);
    else if (!append(out, text))
      error = error_no_memory();
  }
  free(line);
  return error;
}

TileError *tuning_lines_read(const char *path, bool missing, TuningLines *out) {
  *out = (TuningLines){0};
  FILE *file = fopen(path, "r");
  if (!file && missing && errno == ENOENT) return NULL;
  if (!file) return error_new(TILE_INVALID, "%s: %s", path, strerror(errno));
  TileError *error = read_lines(file, path, out);
  fclose(file);
  if (error) tuning_lines_free(out);
  return error;
}

void tuning_lines_free(TuningLines *lines) {
  for (int i = 0; i < lines->count; i++) free(lines->lines[i]);
  free(lines->lines);
  *lines = (TuningLines){0};
}

// Text as text, runs of digits as numbers.
static int compare_lines(const void *a, const void *b) {
  const char *x = *(char *const *)a, *y = *(char *const *)b;
  while (*x && *y) {
    if (isdigit((unsigned char)*x) && isdigit((unsigned char)*y)) {
      char *x_end, *y_end;
      unsigned long long p = strtoull(x, &x_end, 10), q = strtoull(y, &y_end, 10);
      if (p != q) return p < q ? -1 : 1;
      x = x_end;
      y = y_end;
    } else if (*x != *y) {
      return (unsigned char)*x < (unsigned char)*y ? -1 : 1;
    } else {
      x++;
      y++;
    }
  }
  return (*x != '\0') - (*y != '\0');
}

TileError *tuning_lines_write(TuningLines *lines, const char *path) {
  char temporary[PATH_MAX];
  if ((size_t)snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid()) >= sizeof temporary)
    return error_new(TILE_INVALID, "%s: the path is too long", path);
  FILE *file = fopen(temporary, "w");
  if (!file) return error_new(TILE_INVALID, "%s: %s", temporary, strerror(errno));
  qsort(lines->lines, (size_t)lines->count, sizeof *lines->lines, compare_lines);
  fprintf(file, "%s\n", heading);
  for (int i = 0; i < lines->count; i++) fprintf(file, "%s\n", lines->lines[i]);
  bool failed = ferror(file) != 0;
  failed = fclose(file) != 0 || failed;
  if (!failed && rename(temporary, path) == 0) return NULL;
  TileError *error = error_new(TILE_INVALID, "%s: %s", path, strerror(errno));
  unlink(temporary);
  return error;
}

void tuning_key(const char *kernel, const char *arch, const Problem *problem, Sizes sizes, char *out,
                size_t size) {
  snprintf(out, size, "%s %s %s=%lld %s=%lld %s=%lld", kernel, arch, problem->m, (long long)sizes.m,
           problem->n, (long long)sizes.n, problem->k, (long long)sizes.k);
}

static const char *settings_of(const char *line, const char *key) {
  size_t length = strlen(key);
  if (strncmp(line, key, length) != 0 || strncmp(line + length, separator, sizeof separator - 1) != 0)
    return NULL;
  return line + length + sizeof separator - 1;
}

bool tuning_lines_put(TuningLines *lines, const char *key, const char *settings, double tflops,
                      const char *gpu) {
  char *line;
  if (asprintf(&line, "%s%s%s rate %.1f gpu \"%s\"", key, separator, settings, tflops, gpu) < 0) return false;
  for (int i = 0; i < lines->count; i++) {
    if (!settings_of(lines->lines[i], key)) continue;
    free(lines->lines[i]);
    lines->lines[i] = line;
    return true;
  }
  return append(lines, line);
}

char *tuning_lines_find(const TuningLines *lines, const char *key) {
  for (int i = 0; i < lines->count; i++) {
    const char *settings = settings_of(lines->lines[i], key);
    if (!settings) continue;
    char *copy = strdup(settings);
    char *rate = copy ? strstr(copy, " rate ") : NULL, *gpu = copy ? strstr(copy, " gpu \"") : NULL;
    if (rate) *rate = '\0';
    if (gpu) *gpu = '\0';
    return copy;
  }
  return NULL;
}

// The index is text: a heading, then "NUMBER SETTINGS" in each line.
#include "bench/cubins.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

static const char heading[] = "tile-candidates 1\n";

void cubins_path(const char *folder, int number, char *out, size_t size) {
  snprintf(out, size, "%s/%04d.cubin", folder, number);
}

static FILE *open_index(const char *folder, const char *mode, char path[PATH_MAX]) {
  snprintf(path, PATH_MAX, "%s/index", folder);
  return fopen(path, mode);
}

TileError *cubins_write(const char *folder, const Candidates *candidates, const bool *compiled) {
  char path[PATH_MAX];
  FILE *file = open_index(folder, "w", path);
  if (!file) return error_new(TILE_INVALID, "%s: %s", path, strerror(errno));
  fputs(heading, file);
  for (int i = 0; i < candidates->count; i++)
    if (compiled[i]) fprintf(file, "%d %s\n", i, candidates->all[i].text);
  bool failed = ferror(file) != 0;
  failed = fclose(file) != 0 || failed;
  return failed ? error_new(TILE_INVALID, "%s: %s", path, strerror(errno)) : NULL;
}

static bool add(Cubins *out, int number, const char *settings) {
  int *numbers = realloc(out->numbers, (size_t)(out->count + 1) * sizeof *numbers);
  if (numbers) out->numbers = numbers;
  char **texts = realloc(out->settings, (size_t)(out->count + 1) * sizeof *texts);
  if (texts) out->settings = texts;
  char *copy = strdup(settings);
  if (!numbers || !texts || !copy) {
    free(copy);
    return false;
  }
  numbers[out->count] = number;
  texts[out->count++] = copy;
  return true;
}

static TileError *read_index(FILE *file, const char *path, Cubins *out) {
  char *line = NULL;
  size_t room = 0;
  TileError *error = NULL;
  if (getline(&line, &room, file) < 0 || strcmp(line, heading) != 0)
    error = error_new(TILE_INVALID,
                      "%s is no index of candidates (tile-bench --tune --compile-only writes one)", path);
  while (!error && getline(&line, &room, file) >= 0) {
    char *end;
    long number = strtol(line, &end, 10);
    line[strcspn(line, "\n")] = '\0';
    if (end == line || *end != ' ' || number < 0 || number > INT_MAX)
      error = error_new(TILE_INVALID, "%s: '%s' is not NUMBER SETTINGS", path, line);
    else if (!add(out, (int)number, end + 1))
      error = error_no_memory();
  }
  free(line);
  return error;
}

TileError *cubins_read(const char *folder, Cubins *out) {
  char path[PATH_MAX];
  *out = (Cubins){0};
  FILE *file = open_index(folder, "r", path);
  if (!file) return error_new(TILE_INVALID, "%s: %s", path, strerror(errno));
  TileError *error = read_index(file, path, out);
  fclose(file);
  if (error) cubins_free(out);
  return error;
}

void cubins_free(Cubins *cubins) {
  for (int i = 0; i < cubins->count; i++) free(cubins->settings[i]);
  free(cubins->settings);
  free(cubins->numbers);
  *cubins = (Cubins){0};
}

int cubins_find(const Cubins *cubins, const char *settings) {
  for (int i = 0; i < cubins->count; i++)
    if (strcmp(cubins->settings[i], settings) == 0) return cubins->numbers[i];
  return -1;
}

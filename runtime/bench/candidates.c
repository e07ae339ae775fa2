// Words NAME=V1,V2,… are axes; ';' ends a group. A group stands for the product of its axes, the specification for all
// groups together; what two groups both give counts once.
#include "bench/candidates.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

enum { VALUES_MOST = 64, TEXT_MOST = 1 << 20 };

typedef struct {
  const char *name, *values;  // in the text
  size_t name_length, values_length;
} Axis;

typedef struct {
  const char *name, *text, *at;
  Candidates *out;
  Axis axes[SETTINGS_MOST];
  int naxes;
} Reader;

static TileError *wrong(const Reader *r, const char *at, const char *what) {
  int line = 1, column = 1;
  for (const char *c = r->text; c < at; c++) {
    column = *c == '\n' ? 1 : column + 1;
    line += *c == '\n';
  }
  int length = (int)strcspn(at, " \t\r\n;");
  return error_new(TILE_INVALID,
                   "%s:%d:%d: %s%s%.*s%s; a specification is axes NAME=VALUE,VALUE,... and sizes=MxNxK,..., "
                   "groups end with ';'",
                   r->name, line, column, what, length ? ", not '" : "", length, at, length ? "'" : "");
}

static bool is_name(const char *text, size_t length) {
  for (size_t i = 0; i < length; i++)
    if (!isalpha((unsigned char)text[i]) && text[i] != '_' && !(i > 0 && isdigit((unsigned char)text[i])))
      return false;
  return length > 0;
}

static bool named(const Axis *axis, const char *name) {
  return strlen(name) == axis->name_length && memcmp(axis->name, name, axis->name_length) == 0;
}

static bool is_option(const Axis *axis) {
  return named(axis, "option");
}

// ---- One group's product

// The setting that an axis has with the value of this index: malloc-ed; "" for the option "none".
static char *setting_of(const Axis *axis, int index, int *count) {
  const char *at = axis->values, *end = axis->values + axis->values_length;
  char *made = NULL;
  *count = 0;
  while (at <= end) {
    size_t length = 0;
    while (at + length < end && at[length] != ',') length++;
    if ((*count)++ == index) {
      bool none = is_option(axis) && length == 4 && memcmp(at, "none", 4) == 0;
      int wrote = is_option(axis)
                      ? asprintf(&made, "%.*s", none ? 0 : (int)length, at)
                      : asprintf(&made, "%.*s=%.*s", (int)axis->name_length, axis->name, (int)length, at);
      if (wrote < 0) made = NULL;
    }
    at += length + 1;
  }
  return made;
}

static int compare_settings(const void *a, const void *b) {
  const char *x = *(char *const *)a, *y = *(char *const *)b;
  if ((*x == '-') != (*y == '-')) return *x == '-' ? 1 : -1;
  return strcmp(x, y);
}

static void free_candidate(Candidate *candidate) {
  for (int i = 0; i < candidate->count; i++) free(candidate->settings[i]);
  free(candidate->text);
  *candidate = (Candidate){0};
}

static bool make_text(Candidate *candidate) {
  size_t length = 1;
  for (int i = 0; i < candidate->count; i++) length += strlen(candidate->settings[i]) + 1;
  candidate->text = calloc(length, 1);
  for (int i = 0; candidate->text && i < candidate->count; i++) {
    if (i) strcat(candidate->text, " ");
    strcat(candidate->text, candidate->settings[i]);
  }
  return candidate->text != NULL;
}

// The combination of these indices, one for each axis.
static bool combine(const Reader *r, const int *indices, Candidate *out) {
  *out = (Candidate){0};
  for (int i = 0; i < r->naxes; i++) {
    int count;
    char *setting = setting_of(&r->axes[i], indices[i], &count);
    if (!setting) return false;
    if (*setting)
      out->settings[out->count++] = setting;
    else
      free(setting);
  }
  qsort(out->settings, (size_t)out->count, sizeof *out->settings, compare_settings);
  return make_text(out);
}

static bool is_known(const Candidates *candidates, const Candidate *candidate) {
  for (int i = 0; i < candidates->count; i++)
    if (strcmp(candidates->all[i].text, candidate->text) == 0) return true;
  return false;
}

static TileError *add(Reader *r, Candidate *candidate) {
  Candidates *out = r->out;
  if (is_known(out, candidate)) {
    free_candidate(candidate);
    return NULL;
  }
  if (out->count == CANDIDATES_MOST) {
    free_candidate(candidate);
    return error_new(TILE_INVALID, "%s: more than %d candidates", r->name, CANDIDATES_MOST);
  }
  Candidate *all = realloc(out->all, (size_t)(out->count + 1) * sizeof *all);
  if (!all) {
    free_candidate(candidate);
    return error_no_memory();
  }
  out->all = all;
  out->all[out->count++] = *candidate;
  return NULL;
}

// Counts through the indices, the last axis fastest.
static TileError *end_group(Reader *r) {
  int indices[SETTINGS_MOST] = {0}, counts[SETTINGS_MOST];
  TileError *error = NULL;
  if (r->naxes == 0) return NULL;
  for (int i = 0; i < r->naxes; i++) free(setting_of(&r->axes[i], 0, &counts[i]));
  for (int axis = 0; axis >= 0 && !error;) {
    Candidate candidate;
    if (!combine(r, indices, &candidate)) {
      free_candidate(&candidate);
      return error_no_memory();
    }
    error = add(r, &candidate);
    for (axis = r->naxes - 1; axis >= 0 && ++indices[axis] == counts[axis]; axis--) indices[axis] = 0;
  }
  r->naxes = 0;
  return error;
}

// ---- Words

static TileError *read_sizes(Reader *r, const char *values, size_t length) {
  const char *bad;
  char *text = strndup(values, length);
  if (!text) return error_no_memory();
  if (r->out->sizes) {
    free(text);
    return wrong(r, values, "sizes are given twice");
  }
  bool fine = sizes_parse_list(text, &r->out->sizes, &r->out->nsizes, &bad);
  size_t at = fine ? 0 : (size_t)(bad - text);
  free(text);
  return fine ? NULL : wrong(r, values + at, "expected MxNxK or a number");
}

static TileError *check_values(const Reader *r, const Axis *axis) {
  int count = 0;
  const char *end = axis->values + axis->values_length;
  for (const char *at = axis->values; at <= end; at++) {
    size_t length = 0;
    while (at + length < end && at[length] != ',') length++;
    if (length == 0) return wrong(r, at, "expected a value");
    if (is_option(axis) && *at != '-' && !(length == 4 && memcmp(at, "none", 4) == 0))
      return wrong(r, at, "expected an option of tilec, as -O3, or none");
    if (++count > VALUES_MOST) return wrong(r, at, "an axis has at most 64 values");
    at += length;
  }
  return NULL;
}

static TileError *read_word(Reader *r) {
  size_t length = strcspn(r->at, " \t\r\n;"), name = 0;
  const char *word = r->at;
  r->at += length;
  while (name < length && word[name] != '=') name++;
  if (name == length || !is_name(word, name)) return wrong(r, word, "expected NAME=VALUE,...");
  Axis axis = {word, word + name + 1, name, length - name - 1};
  if (named(&axis, "sizes")) return read_sizes(r, axis.values, axis.values_length);
  for (int i = 0; i < r->naxes; i++)
    if (!is_option(&axis) && r->axes[i].name_length == name && memcmp(r->axes[i].name, word, name) == 0)
      return wrong(r, word, "an axis is given twice in a group");
  if (r->naxes == SETTINGS_MOST) return wrong(r, word, "a group has at most 16 axes");
  TileError *error = check_values(r, &axis);
  if (!error) r->axes[r->naxes++] = axis;
  return error;
}

static TileError *read_all(Reader *r) {
  TileError *error = NULL;
  while (!error && *r->at) {
    if (isspace((unsigned char)*r->at)) {
      r->at++;
    } else if (*r->at == '#') {
      r->at += strcspn(r->at, "\n");
    } else if (*r->at == ';') {
      r->at++;
      error = end_group(r);
    } else {
      error = read_word(r);
    }
  }
  if (!error) error = end_group(r);
  if (!error && r->out->count == 0) error = wrong(r, r->at, "no candidates");
  return error;
}

TileError *candidates_parse(const char *name, const char *text, Candidates *out) {
  *out = (Candidates){0};
  Reader r = {.name = name, .text = text, .at = text, .out = out};
  TileError *error = read_all(&r);
  if (error) candidates_free(out);
  return error;
}

TileError *candidates_read(const char *spec, Candidates *out) {
  FILE *file = fopen(spec, "r");
  *out = (Candidates){0};
  if (!file && strchr(spec, '=')) return candidates_parse("--tune", spec, out);
  if (!file) return error_new(TILE_INVALID, "--tune %s: %s", spec, strerror(errno));
  char *text = calloc(TEXT_MOST + 1, 1);
  size_t length = text ? fread(text, 1, TEXT_MOST, file) : 0;
  bool failed = ferror(file) != 0 || length == TEXT_MOST;
  fclose(file);
  TileError *error = !text    ? error_no_memory()
                     : failed ? error_new(TILE_INVALID, "--tune %s: cannot be read, or is over 1 MiB", spec)
                              : candidates_parse(spec, text, out);
  free(text);
  return error;
}

void candidates_free(Candidates *candidates) {
  for (int i = 0; i < candidates->count; i++) free_candidate(&candidates->all[i]);
  free(candidates->all);
  free(candidates->sizes);
  *candidates = (Candidates){0};
}

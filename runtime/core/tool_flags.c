// Numbers are read as a whole or refused.
#include "core/tool_flags.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/tool.h"

enum { MOST_SECONDS = 3600, MOST_FLAGS = 64 };

typedef struct {
  const Flags *flags;
  int argc, at;
  char **argv;
  void *options;
  bool last;
} Args;

static bool set_count(const char *program, const char *flag, const char *value, int *out) {
  char *end;
  errno = 0;
  long number = strtol(value, &end, 10);
  if (end == value || *end || errno || number < 1 || number > INT_MAX)
    return tool_usage(program, "%s takes a number from 1, not \"%s\"", flag, value);
  *out = (int)number;
  return true;
}

static bool set_number(const char *program, const char *flag, const char *value, double *out) {
  char *end;
  *out = strtod(value, &end);
  if (end == value || *end || !(*out >= 0))
    return tool_usage(program, "%s takes a number from 0, not \"%s\"", flag, value);
  return true;
}

static bool set_seconds(const char *program, const char *flag, const char *value, double *out) {
  char *end;
  *out = strtod(value, &end);
  if (end == value || *end || !(*out >= 0) || *out > MOST_SECONDS)
    return tool_usage(program, "%s takes seconds from 0 to %d, not \"%s\"", flag, MOST_SECONDS, value);
  return true;
}

static bool set_seed(const char *program, const char *flag, const char *value, uint64_t *out) {
  char *end;
  errno = 0;
  *out = strtoull(value, &end, 10);
  if (end == value || *end || errno || *value == '-')
    return tool_usage(program, "%s takes a number from 0, not \"%s\"", flag, value);
  return true;
}

static bool add_pair(const char *program, const char *flag, const char *value, ToolPairs *out) {
  const char *equals = strchr(value, '=');
  if (!equals || equals == value || !equals[1])
    return tool_usage(program, "%s takes NAME=VALUE, not \"%s\"", flag, value);
  ToolPair *data = realloc(out->data, (size_t)(out->count + 1) * sizeof *data);
  if (data) out->data = data;
  char *name = data ? strndup(value, (size_t)(equals - value)) : NULL;
  if (!name) return tool_usage(program, "out of memory");
  out->data[out->count++] = (ToolPair){name, equals + 1, value};
  for (int i = 0; i + 1 < out->count; i++)
    if (strcmp(out->data[i].name, name) == 0) return tool_usage(program, "%s %s is given twice", flag, name);
  return true;
}

void tool_pairs_free(ToolPairs *pairs) {
  for (int i = 0; i < pairs->count; i++) free(pairs->data[i].name);
  free(pairs->data);
  *pairs = (ToolPairs){0};
}

static bool set_row(Args *args, const FlagRow *row, const char *value) {
  const char *program = args->flags->program;
  void *slot = (char *)args->options + row->at;
  switch (row->kind) {
  case FLAG_TEXT:
  case FLAG_LEVEL:
    *(const char **)slot = value;
    return true;
  case FLAG_COUNT:
    return set_count(program, row->name, value, slot);
  case FLAG_NUMBER:
    return set_number(program, row->name, value, slot);
  case FLAG_SECONDS:
    return set_seconds(program, row->name, value, slot);
  case FLAG_SEED:
    return set_seed(program, row->name, value, slot);
  case FLAG_PAIRS:
    return add_pair(program, row->name, value, slot);
  case FLAG_SPECIAL:
    return row->set(program, value, args->options);
  case FLAG_ON:
  case FLAG_OFF:
  case FLAG_LAST:
    break;
  }
  *(bool *)slot = row->kind != FLAG_OFF;
  args->last = row->kind == FLAG_LAST;
  return true;
}

static bool is_level(const char *arg) {
  return strncmp(arg, "-O", 2) == 0 && arg[2] >= '0' && arg[2] <= '3' && !arg[3];
}

// The row that an argument names with its first `length` characters.
static const FlagRow *find_row(const Flags *flags, const char *arg, size_t length) {
  for (int i = 0; i < flags->nrows; i++) {
    const FlagRow *row = &flags->rows[i];
    bool named = strlen(row->name) == length && memcmp(row->name, arg, length) == 0;
    if (row->kind == FLAG_LEVEL ? is_level(arg) : named) return row;
  }
  return NULL;
}

static bool unknown(const Flags *flags, const char *arg, size_t length) {
  char word[64];
  const char *names[MOST_FLAGS];
  int count = 0;
  for (int i = 0; i < flags->nrows && count < MOST_FLAGS; i++)
    if (flags->rows[i].kind != FLAG_LEVEL) names[count++] = flags->rows[i].name;
  snprintf(word, sizeof word, "%.*s", (int)length, arg);
  const char *near = error_nearest(word, names, count);
  bool compiles = find_row(flags, "-O0", 3) != NULL, negates = near && !strncmp(near, "--no-", 5);
  if (compiles && !strncmp(word, "--no-", 5) && !negates)
    return tool_usage(
        flags->program,
        "unknown option %s; passes are left out by tilec: `tilec FILE %s -o OUT.cubin`, then OUT.cubin here",
        word, word);
  return near ? tool_usage(flags->program, "unknown option %s; did you mean %s?", word, near)
              : tool_usage(flags->program, "unknown option %s", word);
}

static bool parse_flag(Args *args) {
  const char *arg = args->argv[args->at++], *program = args->flags->program;
  bool is_define = strncmp(arg, "-D", 2) == 0;
  const char *equals = is_define ? NULL : strchr(arg, '=');
  size_t length = is_define ? 2 : equals ? (size_t)(equals - arg) : strlen(arg);
  const FlagRow *row = find_row(args->flags, arg, length);
  if (!row) return unknown(args->flags, arg, length);
  if (row->kind == FLAG_LEVEL) return set_row(args, row, arg);
  bool alone = row->kind >= FLAG_ON;
  const char *value = equals ? equals + 1 : is_define && arg[2] ? arg + 2 : NULL;
  if (alone && value) return tool_usage(program, "%s takes no value", row->name);
  if (!alone && !value && args->at == args->argc) return tool_usage(program, "%s needs a value", row->name);
  return set_row(args, row, alone || value ? value : args->argv[args->at++]);
}

bool flags_parse(const Flags *flags, int argc, char **argv, void *options) {
  Args args = {flags, argc, 1, argv, options, false};
  while (args.at < argc && !args.last) {
    const char *arg = argv[args.at];
    bool is_flag = arg[0] == '-' && arg[1];
    if (!(is_flag ? parse_flag(&args) : flags->file(flags->program, argv[args.at++], options))) return false;
  }
  return true;
}

// A row a flag: `--flag value` and `--flag=value` are the same, as are `-D N=1` and `-DN=1`.
#include "bench/options.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"

__attribute__((format(printf, 1, 2))) static bool usage(const char *format, ...) {
  va_list args;
  va_start(args, format);
  fputs("tile-bench: ", stderr);
  vfprintf(stderr, format, args);
  fputs(" (tile-bench --help lists everything)\n", stderr);
  va_end(args);
  return false;
}

typedef enum { TEXT, COUNT, NUMBER, SEED, ON, OFF, LIST, SIZES, PEER, LAYOUT } Kind;

static const struct {
  const char *name;
  Kind kind;
  size_t at;  // in BenchOptions
} rows[] = {
    {"--kernel", TEXT, offsetof(BenchOptions, kernel)},
    {"--arch", TEXT, offsetof(BenchOptions, arch)},
    {"-D", LIST, offsetof(BenchOptions, defines)},
    {"--fill", LIST, offsetof(BenchOptions, fills)},
    {"--layout", LAYOUT, offsetof(BenchOptions, layout)},
    {"--sizes", SIZES, 0},
    {"--fix-sizes", ON, offsetof(BenchOptions, fix_sizes)},
    {"--peer", PEER, offsetof(BenchOptions, peer)},
    {"--cublaslt", TEXT, offsetof(BenchOptions, cublaslt)},
    {"--heuristics", COUNT, offsetof(BenchOptions, heuristics)},
    {"--repeat", COUNT, offsetof(BenchOptions, repeat)},
    {"--seconds", NUMBER, offsetof(BenchOptions, seconds)},
    {"--warmup", NUMBER, offsetof(BenchOptions, warmup)},
    {"--slice", NUMBER, offsetof(BenchOptions, slice)},
    {"--no-zeros", OFF, offsetof(BenchOptions, zeros)},
    {"--seed", SEED, offsetof(BenchOptions, seed)},
    {"--json", TEXT, offsetof(BenchOptions, json)},
    {"--svg", TEXT, offsetof(BenchOptions, svg)},
    {"--tune", TEXT, offsetof(BenchOptions, tune)},
    {"--tuning", TEXT, offsetof(BenchOptions, tuning)},
    {"--cubins", TEXT, offsetof(BenchOptions, cubins)},
    {"--compile-only", ON, offsetof(BenchOptions, compile_only)},
    {"--jobs", COUNT, offsetof(BenchOptions, jobs)},
    {"--help", ON, offsetof(BenchOptions, help)},
    {"-h", ON, offsetof(BenchOptions, help)},
    {"--version", ON, offsetof(BenchOptions, version)},
};

enum { ROWS = sizeof rows / sizeof *rows };

static bool set_count(const char *flag, const char *value, int *out) {
  char *end;
  errno = 0;
  long number = strtol(value, &end, 10);
  if (end == value || *end || errno || number < 1 || number > INT_MAX)
    return usage("%s takes a number from 1, not \"%s\"", flag, value);
  *out = (int)number;
  return true;
}

static bool set_number(const char *flag, const char *value, double *out) {
  char *end;
  *out = strtod(value, &end);
  if (end == value || *end || !(*out >= 0) || *out > 3600)
    return usage("%s takes seconds from 0 to 3600, not \"%s\"", flag, value);
  return true;
}

static bool set_seed(const char *flag, const char *value, uint64_t *out) {
  char *end;
  errno = 0;
  *out = strtoull(value, &end, 10);
  if (end == value || *end || errno || *value == '-')
    return usage("%s takes a number from 0, not \"%s\"", flag, value);
  return true;
}

static bool add_pair(const char *flag, const char *value, BenchList *out) {
  const char *equals = strchr(value, '=');
  if (!equals || equals == value || !equals[1]) return usage("%s takes NAME=VALUE, not \"%s\"", flag, value);
  if (out->count == BENCH_MOST_FLAGS) return usage("%s is given more than %d times", flag, BENCH_MOST_FLAGS);
  for (int i = 0; i < out->count; i++)
    if (strncmp(out->data[i], value, (size_t)(equals - value) + 1) == 0)
      return usage("%s %.*s is given twice", flag, (int)(equals - value), value);
  out->data[out->count++] = value;
  return true;
}

static bool set_sizes(const char *value, BenchOptions *out) {
  const char *wrong;
  free(out->sizes);
  out->sizes = NULL;
  if (!sizes_parse_list(value, &out->sizes, &out->nsizes, &wrong))
    return usage("--sizes takes MxNxK or one number for a cube, in a comma list, not \"%.*s\"",
                 (int)strcspn(wrong, ","), wrong);
  if (out->nsizes > BENCH_MOST_SIZES)
    return usage("--sizes takes at most %d sizes, not %d", BENCH_MOST_SIZES, out->nsizes);
  return true;
}

static bool set_peer(const char *value, bool *out) {
  *out = strcmp(value, "cublaslt") == 0;
  return *out || strcmp(value, "none") == 0 || usage("--peer is cublaslt or none, not \"%s\"", value);
}

static bool set_layout(const char *value, const char **out) {
  const char *const known[] = {"tn", "nn", "tt", "nt"};
  *out = value;
  for (int i = 0; i < 4; i++)
    if (strcmp(value, known[i]) == 0) return true;
  return usage("--layout is tn, nn, tt or nt, not \"%s\"", value);
}

static bool set_row(int row, const char *value, BenchOptions *out) {
  const char *name = rows[row].name;
  void *slot = (char *)out + rows[row].at;
  switch (rows[row].kind) {
  case TEXT:
    *(const char **)slot = value;
    return true;
  case COUNT:
    return set_count(name, value, slot);
  case NUMBER:
    return set_number(name, value, slot);
  case SEED:
    return set_seed(name, value, slot);
  case ON:
    return *(bool *)slot = true;
  case OFF:
    *(bool *)slot = false;
    return true;
  case LIST:
    return add_pair(name, value, slot);
  case SIZES:
    return set_sizes(value, out);
  case PEER:
    return set_peer(value, slot);
  case LAYOUT:
    break;
  }
  return set_layout(value, slot);
}

static bool unknown(const char *arg, size_t length) {
  char word[64];
  const char *names[ROWS];
  for (int i = 0; i < ROWS; i++) names[i] = rows[i].name;
  snprintf(word, sizeof word, "%.*s", (int)length, arg);
  const char *near = error_nearest(word, names, ROWS);
  return near ? usage("unknown option %s; did you mean %s?", word, near) : usage("unknown option %s", word);
}

static bool parse_flag(int argc, char **argv, int *at, BenchOptions *out) {
  const char *arg = argv[(*at)++];
  if (strncmp(arg, "-O", 2) == 0 && arg[2] >= '0' && arg[2] <= '3' && !arg[3]) {
    out->optimise = arg;
    return true;
  }
  bool is_define = strncmp(arg, "-D", 2) == 0;
  const char *equals = is_define ? NULL : strchr(arg, '=');
  size_t length = is_define ? 2 : equals ? (size_t)(equals - arg) : strlen(arg);
  for (int i = 0; i < ROWS; i++) {
    if (strlen(rows[i].name) != length || memcmp(rows[i].name, arg, length) != 0) continue;
    bool alone = rows[i].kind == ON || rows[i].kind == OFF;
    const char *value = equals ? equals + 1 : is_define && arg[2] ? arg + 2 : NULL;
    if (alone && value) return usage("%s takes no value", rows[i].name);
    if (!alone && !value && *at == argc) return usage("%s needs a value", rows[i].name);
    return set_row(i, alone || value ? value : argv[(*at)++], out);
  }
  return unknown(arg, length);
}

static bool check_together(const BenchOptions *options) {
  if (options->nfiles == 0) return usage("no file to measure");
  if (options->tune && options->nfiles != 1) return usage("--tune takes one file, not %d", options->nfiles);
  if (options->tune && options->fix_sizes)
    return usage("--tune tries candidates for sizes given at launch: leave out --fix-sizes");
  if (options->compile_only && (!options->tune || !options->cubins))
    return usage("--compile-only goes with --tune SPEC and --cubins DIR");
  if (options->tune && (options->json || options->svg))
    return usage("--json and --svg are for measurements: --tune records with --tuning FILE");
  if (options->cubins && !options->tune && !options->tuning)
    return usage("--cubins goes with --tune or --tuning");
  return true;
}

bool bench_options_parse(int argc, char **argv, BenchOptions *out) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  *out = (BenchOptions){.peer = true,
                        .heuristics = 16,
                        .seconds = 2,
                        .warmup = 1,
                        .slice = 0.005,
                        .zeros = true,
                        .jobs = cores > 0 ? (int)cores : 1};
  for (int at = 1; at < argc;) {
    const char *arg = argv[at];
    if (arg[0] == '-' && arg[1]) {
      if (!parse_flag(argc, argv, &at, out)) return false;
    } else if (out->nfiles == BENCH_MOST_FILES) {
      return usage("more than %d files", BENCH_MOST_FILES);
    } else {
      out->files[out->nfiles++] = argv[at++];
    }
    if (out->help || out->version) return true;
  }
  return check_together(out);
}

void bench_options_free(BenchOptions *options) {
  free(options->sizes);
  options->sizes = NULL;
}

void bench_options_help(void) {
  puts(
      "tile-bench FILE... [options]: times kernels that compute a product against cublasLt, in one process.\n"
      "\n"
      "  FILE                   .tile or .py (compiled by tilec), or .cubin; several are measured together\n"
      "  --kernel NAME          the kernel, where a file has several\n"
      "  --arch NAME, -O0..-O3, -D NAME=VALUE   given to tilec, for source files; --arch is the GPU's unless "
      "given\n"
      "  --sizes LIST           MxNxK, or one number for a cube; default 1024,2048,4096,8192\n"
      "  --fix-sizes            compile for each size (-D M=... -D N=... -D K=...) instead of once\n"
      "  --layout tn|nn|tt|nt   how A and B are stored, where fixed sizes do not tell "
      "(docs/benchmarking.md)\n"
      "  --fill NAME=VALUE      a tensor or scalar besides A, B and C; default 1 for scale..., alpha, else "
      "0\n"
      "  --peer cublaslt|none   what to compare with; default cublaslt\n"
      "  --cublaslt PATH        the library; default: searched for\n"
      "  --heuristics N         algorithms of cublasLt to try, the fastest is the peer; default 16\n"
      "  --warmup S             seconds of work before anything is timed; default 1\n"
      "  --seconds S            of timing for each size; default 2\n"
      "  --repeat N             that many repetitions instead\n"
      "  --slice S              seconds of one graph of launches; default 0.005\n"
      "  --no-zeros             leave out the second measurement, with zeros for A and B\n"
      "  --seed N               of random data and of the order of arms; default 0\n"
      "  --json FILE, --svg FILE   write everything, and a plot\n"
      "\n"
      "  --tune SPEC            try candidates (docs/tuning.md); SPEC is a file, or the text itself\n"
      "  --tuning FILE          with --tune: what to write; else: settings of source files come from it\n"
      "  --cubins DIR           candidates that were compiled before, or with --compile-only: where to put "
      "them\n"
      "  --compile-only         with --tune: compile the candidates, measure nothing\n"
      "  --jobs N               compilers at once; default: one for each core\n"
      "\n"
      "  --version, --help\n"
      "\n"
      "Exit status: 0; 1 a wrong result, or a mistake in the source; 2 usage, or no GPU or cublasLt; 3 fault "
      "or "
      "hang.");
}

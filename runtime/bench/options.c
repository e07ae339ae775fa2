// tile-bench's flags.
#include "bench/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/tool.h"

static bool set_sizes(const char *program, const char *value, void *options) {
  BenchOptions *out = options;
  const char *wrong;
  free(out->sizes);
  out->sizes = NULL;
  if (!sizes_parse_list(value, &out->sizes, &out->nsizes, &wrong))
    return tool_usage(program, "--sizes takes MxNxK or one number for a cube, in a comma list, not \"%.*s\"",
                      (int)strcspn(wrong, ","), wrong);
  if (out->nsizes > BENCH_MOST_SIZES)
    return tool_usage(program, "--sizes takes at most %d sizes, not %d", BENCH_MOST_SIZES, out->nsizes);
  return true;
}

static bool set_peer(const char *program, const char *value, void *options) {
  bool *peer = &((BenchOptions *)options)->peer;
  *peer = strcmp(value, "cublaslt") == 0;
  return *peer || strcmp(value, "none") == 0 ||
         tool_usage(program, "--peer is cublaslt or none, not \"%s\"", value);
}

static bool set_layout(const char *program, const char *value, void *options) {
  ((BenchOptions *)options)->layout = value;
  return problem_knows_layout(value) ||
         tool_usage(program, "--layout is tn, nn, tt or nt, not \"%s\"", value);
}

static bool add_file(const char *program, const char *file, void *options) {
  BenchOptions *out = options;
  if (out->nfiles == BENCH_MOST_FILES) return tool_usage(program, "more than %d files", BENCH_MOST_FILES);
  out->files[out->nfiles++] = file;
  return true;
}

static const FlagRow rows[] = {
    {"--kernel", FLAG_TEXT, offsetof(BenchOptions, kernel), NULL},
    {"--arch", FLAG_TEXT, offsetof(BenchOptions, arch), NULL},
    {"-O", FLAG_LEVEL, offsetof(BenchOptions, optimise), NULL},
    {"-D", FLAG_PAIRS, offsetof(BenchOptions, defines), NULL},
    {"--fill", FLAG_PAIRS, offsetof(BenchOptions, fills), NULL},
    {"--layout", FLAG_SPECIAL, 0, set_layout},
    {"--sizes", FLAG_SPECIAL, 0, set_sizes},
    {"--fix-sizes", FLAG_ON, offsetof(BenchOptions, fix_sizes), NULL},
    {"--peer", FLAG_SPECIAL, 0, set_peer},
    {"--cublaslt", FLAG_TEXT, offsetof(BenchOptions, cublaslt), NULL},
    {"--heuristics", FLAG_COUNT, offsetof(BenchOptions, heuristics), NULL},
    {"--repeat", FLAG_COUNT, offsetof(BenchOptions, repeat), NULL},
    {"--seconds", FLAG_SECONDS, offsetof(BenchOptions, seconds), NULL},
    {"--warmup", FLAG_SECONDS, offsetof(BenchOptions, warmup), NULL},
    {"--slice", FLAG_SECONDS, offsetof(BenchOptions, slice), NULL},
    {"--no-zeros", FLAG_OFF, offsetof(BenchOptions, zeros), NULL},
    {"--seed", FLAG_SEED, offsetof(BenchOptions, seed), NULL},
    {"--json", FLAG_TEXT, offsetof(BenchOptions, json), NULL},
    {"--svg", FLAG_TEXT, offsetof(BenchOptions, svg), NULL},
    {"--tune", FLAG_TEXT, offsetof(BenchOptions, tune), NULL},
    {"--tuning", FLAG_TEXT, offsetof(BenchOptions, tuning), NULL},
    {"--cubins", FLAG_TEXT, offsetof(BenchOptions, cubins), NULL},
    {"--compile-only", FLAG_ON, offsetof(BenchOptions, compile_only), NULL},
    {"--jobs", FLAG_COUNT, offsetof(BenchOptions, jobs), NULL},
    {"--help", FLAG_LAST, offsetof(BenchOptions, help), NULL},
    {"-h", FLAG_LAST, offsetof(BenchOptions, help), NULL},
    {"--version", FLAG_LAST, offsetof(BenchOptions, version), NULL},
};

static bool check_together(const BenchOptions *options) {
  if (options->nfiles == 0) return tool_usage("tile-bench", "no file to measure");
  if (options->tune && options->nfiles != 1)
    return tool_usage("tile-bench", "--tune takes one file, not %d", options->nfiles);
  if (options->tune && options->fix_sizes)
    return tool_usage("tile-bench",
                      "--tune tries candidates for sizes given at launch: leave out --fix-sizes");
  if (options->compile_only && (!options->tune || !options->cubins))
    return tool_usage("tile-bench", "--compile-only goes with --tune SPEC and --cubins DIR");
  if (options->tune && (options->json || options->svg))
    return tool_usage("tile-bench",
                      "--json and --svg are for measurements: --tune records with --tuning FILE");
  if (options->cubins && !options->tune && !options->tuning)
    return tool_usage("tile-bench", "--cubins goes with --tune or --tuning");
  return true;
}

bool bench_options_parse(int argc, char **argv, BenchOptions *out) {
  const Flags flags = {"tile-bench", rows, sizeof rows / sizeof *rows, add_file};
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  *out = (BenchOptions){.peer = true,
                        .heuristics = 16,
                        .seconds = 2,
                        .warmup = 1,
                        .slice = 0.005,
                        .zeros = true,
                        .jobs = cores > 0 ? (int)cores : 1};
  if (!flags_parse(&flags, argc, argv, out)) return false;
  return out->help || out->version || check_together(out);
}

void bench_options_free(BenchOptions *options) {
  tool_pairs_free(&options->defines);
  tool_pairs_free(&options->fills);
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

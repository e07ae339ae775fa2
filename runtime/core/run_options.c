// A table of flags; `--flag value` and `--flag=value` are the same, as are `-D N=1` and `-DN=1`.
#include "core/run_options.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

typedef struct {
  int argc, at;
  char **argv;
  RunOptions *out;
} Args;

__attribute__((format(printf, 1, 2))) static bool usage(const char *format, ...) {
  va_list args;
  va_start(args, format);
  fputs("tile-run: ", stderr);
  vfprintf(stderr, format, args);
  fputs(" (tile-run --help lists everything)\n", stderr);
  va_end(args);
  return false;
}

static bool set_text(const char **slot, const char *value) {
  *slot = value;
  return true;
}

static bool set_count(const char *flag, const char *value, int *out) {
  char *end;
  errno = 0;
  long number = strtol(value, &end, 10);
  if (end == value || *end || errno || number < 1 || number > INT_MAX)
    return usage("%s takes a number from 1, not \"%s\"", flag, value);
  *out = (int)number;
  return true;
}

static bool set_tolerance(const char *flag, const char *value, double *out) {
  char *end;
  *out = strtod(value, &end);
  if (end == value || *end || !(*out >= 0)) return usage("%s takes a number from 0, not \"%s\"", flag, value);
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

// Cuts NAME=VALUE in argv itself, which outlives the options.
static bool add_pair(const char *flag, char *value, RunPairs *out) {
  char *equals = strchr(value, '=');
  if (!equals || equals == value || !equals[1]) return usage("%s takes NAME=VALUE, not \"%s\"", flag, value);
  RunPair *data = realloc(out->data, (size_t)(out->count + 1) * sizeof *data);
  if (!data) return usage("out of memory");
  *equals = '\0';
  for (int i = 0; i < out->count; i++)
    if (strcmp(data[i].name, value) == 0) {
      out->data = data;
      return usage("%s %s is given twice", flag, value);
    }
  data[out->count++] = (RunPair){value, equals + 1};
  out->data = data;
  return true;
}

typedef enum {
  FLAG_KERNEL,
  FLAG_ARCH,
  FLAG_DEFINE,
  FLAG_DEVICE,
  FLAG_SMS,
  FLAG_ORDER,
  FLAG_CHECK,
  FLAG_IN,
  FLAG_OUT,
  FLAG_PITCH,
  FLAG_RANDOM,
  FLAG_EXPECT,
  FLAG_RTOL,
  FLAG_ATOL,
  FLAG_BENCH,
  FLAG_FORMAT,
  FLAG_COLOR,
  FLAG_TUNING,
  FLAG_FOR,
  FLAG_CONVERT,
  FLAG_HELP,
  FLAG_VERSION,
} Flag;

static const char *const flags[] = {
    [FLAG_KERNEL] = "--kernel",   [FLAG_ARCH] = "--arch",       [FLAG_DEFINE] = "-D",
    [FLAG_DEVICE] = "--device",   [FLAG_SMS] = "--sms",         [FLAG_ORDER] = "--order",
    [FLAG_CHECK] = "--check",     [FLAG_IN] = "--in",           [FLAG_OUT] = "--out",
    [FLAG_RANDOM] = "--random",   [FLAG_EXPECT] = "--expect",   [FLAG_RTOL] = "--rtol",
    [FLAG_ATOL] = "--atol",       [FLAG_BENCH] = "--bench",     [FLAG_HELP] = "--help",
    [FLAG_VERSION] = "--version", [FLAG_CONVERT] = "--convert", [FLAG_FORMAT] = "--error-format",
    [FLAG_COLOR] = "--color",     [FLAG_PITCH] = "--pitch",     [FLAG_TUNING] = "--tuning",
    [FLAG_FOR] = "--for",
};

enum { FLAGS = sizeof flags / sizeof flags[0] };

static bool set_device(const char *value, RunOptions *out) {
  bool numbered = strncmp(value, "cuda:", 5) == 0 && value[5] && !value[5 + strspn(value + 5, "0123456789")];
  if (!numbered && strcmp(value, "auto") != 0 && strcmp(value, "cuda") != 0 && strcmp(value, "emu") != 0)
    return usage("--device is auto, cuda, cuda:N or emu, not \"%s\"", value);
  return set_text(&out->device, value);
}

static bool set_flag(Flag flag, char *value, RunOptions *out) {
  const char *name = flags[flag];
  switch (flag) {
  case FLAG_KERNEL:
    return set_text(&out->kernel, value);
  case FLAG_ARCH:
    return set_text(&out->arch, value);
  case FLAG_DEFINE:
    return add_pair(name, value, &out->defines);
  case FLAG_DEVICE:
    return set_device(value, out);
  case FLAG_SMS:
    return set_count(name, value, &out->sms);
  case FLAG_ORDER:
    return set_text(&out->order, value);
  case FLAG_CHECK:
    return set_text(&out->checks, value);
  case FLAG_IN:
    return add_pair(name, value, &out->inputs);
  case FLAG_OUT:
    return add_pair(name, value, &out->outputs);
  case FLAG_RANDOM:
    return set_seed(name, value, &out->seed);
  case FLAG_PITCH:
    return add_pair(name, value, &out->pitches);
  case FLAG_EXPECT:
    return add_pair(name, value, &out->expects);
  case FLAG_RTOL:
    return set_tolerance(name, value, &out->rtol);
  case FLAG_ATOL:
    return set_tolerance(name, value, &out->atol);
  case FLAG_BENCH:
    return set_count(name, value, &out->bench);
  case FLAG_FORMAT:
    return set_text(&out->error_format, value);
  case FLAG_COLOR:
    return set_text(&out->color, value);
  case FLAG_TUNING:
    return set_text(&out->tuning, value);
  case FLAG_FOR:
    return set_text(&out->sizes, value);
  case FLAG_CONVERT:
    return out->convert = true;
  case FLAG_HELP:
    return out->help = true;
  case FLAG_VERSION:
    break;
  }
  return out->version = true;
}

static bool unknown(const char *arg, size_t length) {
  char word[64];
  snprintf(word, sizeof word, "%.*s", (int)length, arg);
  const char *near = error_nearest(word, flags, FLAGS);
  return near ? usage("unknown option %s; did you mean %s?", word, near) : usage("unknown option %s", word);
}

static bool parse_flag(Args *args) {
  char *arg = args->argv[args->at++];
  if (strncmp(arg, "-O", 2) == 0 && arg[2] >= '0' && arg[2] <= '3' && !arg[3])
    return set_text(&args->out->optimise, arg);
  if (strcmp(arg, "-h") == 0) return set_flag(FLAG_HELP, NULL, args->out);
  bool is_define = strncmp(arg, "-D", 2) == 0;
  char *equals = is_define ? NULL : strchr(arg, '=');
  size_t length = is_define ? 2 : equals ? (size_t)(equals - arg) : strlen(arg);
  for (int i = 0; i < FLAGS; i++) {
    if (strlen(flags[i]) != length || memcmp(flags[i], arg, length) != 0) continue;
    if (i == FLAG_HELP || i == FLAG_VERSION || i == FLAG_CONVERT) return set_flag((Flag)i, NULL, args->out);
    char *value = equals ? equals + 1 : is_define && arg[2] ? arg + 2 : NULL;
    if (!value && args->at == args->argc) return usage("%s needs a value", flags[i]);
    return set_flag((Flag)i, value ? value : args->argv[args->at++], args->out);
  }
  return unknown(arg, length);
}

bool run_options_parse(int argc, char **argv, RunOptions *out) {
  *out = (RunOptions){.rtol = -1, .atol = -1};
  Args args = {argc, 1, argv, out};
  while (args.at < argc) {
    char *arg = argv[args.at];
    if (arg[0] == '-' && arg[1]) {
      if (!parse_flag(&args)) return false;
    } else if (out->file) {
      return usage("one file at a time: %s and %s", out->file, arg);
    } else {
      out->file = argv[args.at++];
    }
    if (out->help || out->version) return true;
  }
  if (!out->file) return usage("no file to run");
  if (out->expects.count == 0 && (out->rtol >= 0 || out->atol >= 0))
    return usage("--rtol and --atol go with --expect");
  return true;
}

void run_options_free(RunOptions *options) {
  free(options->defines.data);
  free(options->inputs.data);
  free(options->outputs.data);
  free(options->expects.data);
  free(options->pitches.data);
}

void run_options_help(void) {
  puts("tile-run FILE [options]: launches a kernel of a .tile, .py, .cubin or .ptx file on .npy arrays.\n"
       "\n"
       "  --kernel NAME          the kernel, where the file has several\n"
       "  --arch NAME, -O0..-O3  given to tilec, for a source file; without --arch it is that of the GPU "
       "here\n"
       "  --error-format=FORM, --color=WHEN  given to tilec: json; auto, always or never\n"
       "  --tuning FILE, --for M=...,N=...  given to tilec: settings that were measured to be best "
       "(docs/tuning.md)\n"
       "  -D NAME=VALUE          source file: given to tilec; else: fixes a size or a scalar argument\n"
       "  --device auto|cuda|emu a GPU that fits, else the emulator (auto); cuda:1 is the second GPU\n"
       "  --in NAME=x.npy        the content of a tensor; others get random numbers\n"
       "  --pitch NAME=N         rows of a tensor are N elements apart on the device, not adjacent\n"
       "  --random SEED          seed of these numbers; default 0\n"
       "  --out NAME=y.npy       writes a result\n"
       "  --expect NAME=z.npy    compares a result\n"
       "  --convert              arrays of bf16, 8-bit and 4-bit floats are float32 in the files, rounded "
       "when read\n"
       "  --rtol R, --atol A     |result - expected| <= A + R * |expected|; default 1e-2 for floats, 0 for "
       "integers\n"
       "  --bench N              then times N launches and prints the median\n"
       "\n"
       "  For the emulator (without --device they choose it):\n"
       "  --order fair|lazy|random:SEED   when asynchronous engines finish\n"
       "  --check LIST                    uninit race proxy tcgen05 mbarrier tmem exit bounds, default, all, "
       "none\n"
       "  --sms N                         its SMs: CTAs resident at once; 148 for get_num_sms() when not "
       "given\n"
       "\n"
       "  --version, --help\n"
       "\n"
       "Arrays of bf16 are uint16 (or V2), of 8-bit floats uint8 (or V1), of 4-bit floats packed uint8, low "
       "nibble first (without --convert).\n"
       "Exit status: 0; 1 wrong result, a finding of the emulator, or a mistake in the source; 2 usage; 3 "
       "fault or hang.");
}

bool run_options_emulated(const RunOptions *options) {
  bool asked = options->device && strcmp(options->device, "emu") == 0;
  return asked || options->order || options->checks || options->sms;
}

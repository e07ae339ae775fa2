// tile-run's flags.
#include "core/run_options.h"

#include <stdio.h>
#include <string.h>

#include "core/tool.h"

static bool set_device(const char *program, const char *value, void *options) {
  RunOptions *out = options;
  bool numbered = strncmp(value, "cuda:", 5) == 0 && value[5] && !value[5 + strspn(value + 5, "0123456789")];
  if (!numbered && strcmp(value, "auto") != 0 && strcmp(value, "cuda") != 0 && strcmp(value, "emu") != 0)
    return tool_usage(program, "--device is auto, cuda, cuda:N or emu, not \"%s\"", value);
  out->device = value;
  return true;
}

static bool set_file(const char *program, const char *file, void *options) {
  RunOptions *out = options;
  if (out->file) return tool_usage(program, "one file at a time: %s and %s", out->file, file);
  out->file = file;
  return true;
}

static const FlagRow rows[] = {
    {"--kernel", FLAG_TEXT, offsetof(RunOptions, kernel), NULL},
    {"--arch", FLAG_TEXT, offsetof(RunOptions, arch), NULL},
    {"-O", FLAG_LEVEL, offsetof(RunOptions, optimise), NULL},
    {"-D", FLAG_PAIRS, offsetof(RunOptions, defines), NULL},
    {"--device", FLAG_SPECIAL, 0, set_device},
    {"--sms", FLAG_COUNT, offsetof(RunOptions, sms), NULL},
    {"--order", FLAG_TEXT, offsetof(RunOptions, order), NULL},
    {"--check", FLAG_TEXT, offsetof(RunOptions, checks), NULL},
    {"--in", FLAG_PAIRS, offsetof(RunOptions, inputs), NULL},
    {"--out", FLAG_PAIRS, offsetof(RunOptions, outputs), NULL},
    {"--pitch", FLAG_PAIRS, offsetof(RunOptions, pitches), NULL},
    {"--random", FLAG_SEED, offsetof(RunOptions, seed), NULL},
    {"--expect", FLAG_PAIRS, offsetof(RunOptions, expects), NULL},
    {"--rtol", FLAG_NUMBER, offsetof(RunOptions, rtol), NULL},
    {"--atol", FLAG_NUMBER, offsetof(RunOptions, atol), NULL},
    {"--bench", FLAG_COUNT, offsetof(RunOptions, bench), NULL},
    {"--error-format", FLAG_TEXT, offsetof(RunOptions, error_format), NULL},
    {"--color", FLAG_TEXT, offsetof(RunOptions, color), NULL},
    {"--tuning", FLAG_TEXT, offsetof(RunOptions, tuning), NULL},
    {"--for", FLAG_TEXT, offsetof(RunOptions, sizes), NULL},
    {"--convert", FLAG_ON, offsetof(RunOptions, convert), NULL},
    {"--help", FLAG_LAST, offsetof(RunOptions, help), NULL},
    {"-h", FLAG_LAST, offsetof(RunOptions, help), NULL},
    {"--version", FLAG_LAST, offsetof(RunOptions, version), NULL},
};

bool run_options_parse(int argc, char **argv, RunOptions *out) {
  const Flags flags = {"tile-run", rows, sizeof rows / sizeof *rows, set_file};
  *out = (RunOptions){.rtol = -1, .atol = -1};
  if (!flags_parse(&flags, argc, argv, out)) return false;
  if (out->help || out->version) return true;
  if (!out->file) return tool_usage("tile-run", "no file to run");
  if (out->expects.count == 0 && (out->rtol >= 0 || out->atol >= 0))
    return tool_usage("tile-run", "--rtol and --atol go with --expect");
  return true;
}

void run_options_free(RunOptions *options) {
  ToolPairs *all[] = {&options->defines, &options->inputs, &options->outputs, &options->expects,
                      &options->pitches};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) tool_pairs_free(all[i]);
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
       "  --check LIST                    uninit race proxy tcgen05 mbarrier tmem exit bounds grid, default, "
       "all, "
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

// tile-emu: runs any PTX on the CPU. Exit 0; 1: a check found something; 2: usage; 3: fault or hang.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu_args.h"
#include "emu_file.h"

enum { EXIT_FINDING = 1, EXIT_USAGE = 2, EXIT_FAULT = 3 };

typedef struct {
  const char *file, *entry;
  const char *args[MOST_ARGS];
  int nargs;
  bool stats, has_grid, has_block;
  PtxEmuLaunch launch;
} Options;

static const char usage_text[] =
    "usage: tile-emu FILE.ptx|FILE.cubin [--entry NAME] --grid X[,Y[,Z]] --block X[,Y[,Z]] [--cluster "
    "X[,Y[,Z]]] "
    "[--shared BYTES]\n"
    "                [--sms N] --arg ARG... [--order fair|lazy|random:SEED] [--check LIST] [--max-steps N] "
    "[--workers N] "
    "[--stats]\n"
    "ARG, one a kernel parameter in order:\n"
    "  in:NAME=x.npy  out:NAME=y.npy:DTYPE:D0xD1  inout:NAME=x.npy[:y.npy]   the array's address\n"
    "  tma:NAME,dtype=bf16,box=128x64,swizzle=128[,interleave=..][,oob=nan]  a tensor map over a named "
    "array\n"
    "  i32:5  i64:5  f32:0.5  null\n"
    "  in:a=a.npy;tma:a,...  declares the array and passes only the map\n";

static int complain(const char *what, const char *detail) {
  fprintf(stderr, "tile-emu: %s%s%s\n", what, detail[0] != '\0' ? ": " : "", detail);
  return EXIT_USAGE;
}

static bool parse_number(const char *text, uint64_t *value) {
  char *end;
  if (*text < '0' || *text > '9') return false;
  *value = strtoull(text, &end, 0);
  return *end == '\0';
}

static bool parse_order(const char *text, PtxEmuLaunch *launch) {
  if (strcmp(text, "fair") == 0) return launch->order = PTXEMU_ORDER_FAIR, true;
  if (strcmp(text, "lazy") == 0) return launch->order = PTXEMU_ORDER_LAZY, true;
  launch->order = PTXEMU_ORDER_RANDOM;
  return strncmp(text, "random:", 7) == 0 && parse_number(text + 7, &launch->seed);
}

// An option with a value; false: the value is wrong or the option unknown (*known).
static bool set_option(Options *o, const char *name, const char *value, bool *known) {
  uint64_t number = 0;
  *known = true;
  if (strcmp(name, "--entry") == 0) return o->entry = value, true;
  if (strcmp(name, "--grid") == 0) return o->has_grid = emu_parse_dims(value, o->launch.grid);
  if (strcmp(name, "--block") == 0) return o->has_block = emu_parse_dims(value, o->launch.block);
  if (strcmp(name, "--cluster") == 0) return emu_parse_dims(value, o->launch.cluster);
  if (strcmp(name, "--check") == 0) return o->launch.checks = value, true;
  if (strcmp(name, "--order") == 0) return parse_order(value, &o->launch);
  if (strcmp(name, "--arg") == 0) {
    if (o->nargs == MOST_ARGS) return false;
    o->args[o->nargs++] = value;
    return true;
  }
  uint32_t *small = strcmp(name, "--sms") == 0       ? &o->launch.sms
                    : strcmp(name, "--shared") == 0  ? &o->launch.dynamic_shared
                    : strcmp(name, "--workers") == 0 ? &o->launch.workers
                                                     : NULL;
  if (small != NULL) {
    bool ok = parse_number(value, &number) && number <= 0x7fffffff;
    *small = (uint32_t)number;
    return ok;
  }
  if (strcmp(name, "--max-steps") == 0) return parse_number(value, &o->launch.max_steps);
  return *known = false;
}

static int parse_options(int argc, char **argv, Options *o) {
  for (int i = 1; i < argc; i++) {
    const char *word = argv[i];
    if (strcmp(word, "--stats") == 0) {
      o->stats = true;
    } else if (strcmp(word, "--trace") == 0 || strcmp(word, "--break") == 0 || strcmp(word, "--dump") == 0) {
      return complain("not supported yet", word);
    } else if (strcmp(word, "--help") == 0) {
      fputs(usage_text, stdout);
      exit(0);
    } else if (strcmp(word, "--version") == 0) {
      puts("tile-emu " TILE_VERSION);
      exit(0);
    } else if (strncmp(word, "--", 2) == 0) {
      bool known;
      const char *value = i + 1 < argc ? argv[i + 1] : "";
      bool ok = set_option(o, word, value, &known);
      if (!known) return complain("unknown option", word);
      if (i + 1 == argc) return complain("a value is missing after", word);
      if (!ok) {
        fprintf(stderr, "tile-emu: bad value '%s' for %s\n", value, word);
        return EXIT_USAGE;
      }
      i++;
    } else if (o->file == NULL) {
      o->file = word;
    } else {
      return complain("more than one file", word);
    }
  }
  if (o->file == NULL) return fputs(usage_text, stderr), EXIT_USAGE;
  if (!o->has_grid || !o->has_block) return complain("--grid and --block are needed", "");
  return 0;
}

static void list_entries(const PtxEmuModule *module) {
  int count = ptxemu_entry_count(module);
  fputs(count == 0 ? "the module has no entry" : "its entries are:", stderr);
  for (int i = 0; i < count; i++) fprintf(stderr, " %s", ptxemu_entry_at(module, i)->name);
  fputc('\n', stderr);
}

static const PtxEmuEntry *choose_entry(const PtxEmuModule *module, const Options *o) {
  if (o->entry != NULL) {
    const PtxEmuEntry *entry = ptxemu_entry(module, o->entry);
    if (entry != NULL) return entry;
    fprintf(stderr, "tile-emu: no such entry in the module: %s; ", o->entry);
  } else {
    if (ptxemu_entry_count(module) == 1) return ptxemu_entry_at(module, 0);
    fputs("tile-emu: --entry is needed; ", stderr);
  }
  list_entries(module);
  return NULL;
}

// What is wrong with one argument is said before their count.
static int bind(EmuArgs *args, const PtxEmuEntry *entry, const Options *o) {
  for (int i = 0; i < o->nargs; i++) {
    const PtxEmuParam *param = i < entry->nparams ? &entry->params[i] : NULL;
    if (!emu_args_add(args, o->args[i], param)) return complain(args->error, "");
  }
  if (o->nargs == entry->nparams) return 0;
  fprintf(stderr, "tile-emu: '%s' takes %d parameter%s, %d --arg given\n", entry->name, entry->nparams,
          entry->nparams == 1 ? "" : "s", o->nargs);
  return EXIT_USAGE;
}

static int exit_status(PtxEmuStatus status) {
  switch (status) {
  case PTXEMU_OK:
    return 0;
  case PTXEMU_FINDING:
    return EXIT_FINDING;
  case PTXEMU_USAGE:
    return EXIT_USAGE;
  case PTXEMU_FAULT:
  case PTXEMU_HANG:
    break;
  }
  return EXIT_FAULT;
}

static int launch(EmuArgs *args, const PtxEmuModule *module, const PtxEmuEntry *entry, Options *o) {
  PtxEmuStats stats = {0, 0, 0};
  o->launch.params = args->params;
  o->launch.param_bytes = entry->param_bytes;
  PtxEmuStatus status = ptxemu_launch(args->emu, module, entry->name, &o->launch, &stats);
  fputs(ptxemu_output(args->emu), stdout);
  if (status == PTXEMU_USAGE) return complain(ptxemu_report(args->emu), "");
  if (status != PTXEMU_OK) fprintf(stderr, "%s", ptxemu_report(args->emu));
  if (o->stats) {
    fprintf(stderr, "CTAs %llu, warp instructions %llu, lanes per instruction %.1f\n",
            (unsigned long long)stats.ctas, (unsigned long long)stats.instructions,
            stats.instructions > 0 ? (double)stats.lanes / (double)stats.instructions : 0.0);
  }
  bool ended = status == PTXEMU_OK || status == PTXEMU_FINDING;
  if (ended && !emu_args_write(args)) return complain(args->error, "");
  return exit_status(status);
}

static int run(Options *o, PtxEmu *emu, EmuArgs *args) {
  EmuFile file = emu_file_read(o->file);
  if (file.bytes == NULL) return complain(o->file, file.error);
  char name[600];
  snprintf(name, sizeof name, "%s%.500s", file.is_cubin ? "PTX of " : "", o->file);
  const PtxEmuModule *module = ptxemu_load(emu, name, file.ptx, file.length);
  free(file.bytes);
  if (module == NULL) return complain(ptxemu_report(emu), "");
  const PtxEmuEntry *entry = choose_entry(module, o);
  if (entry == NULL) return EXIT_USAGE;
  args->emu = emu;
  int status = bind(args, entry, o);
  return status != 0 ? status : launch(args, module, entry, o);
}

int main(int argc, char **argv) {
  Options o = {0};
  int status = parse_options(argc, argv, &o);
  if (status != 0) return status;
  PtxEmu *emu = ptxemu_new();
  EmuArgs *args = calloc(1, sizeof *args);
  if (emu == NULL || args == NULL) {
    ptxemu_free(emu);
    free(args);
    return complain("out of memory", "");
  }
  status = run(&o, emu, args);
  emu_args_free(args);
  free(args);
  ptxemu_free(emu);
  return status;
}

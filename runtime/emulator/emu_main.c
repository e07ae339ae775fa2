// tile-emu: runs any PTX on the CPU. Exit 0; 1: a check found something; 2: usage; 3: fault or hang.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "emu_args.h"
#include "emu_file.h"

enum { EXIT_FINDING = 1, EXIT_USAGE = 2, EXIT_FAULT = 3, MOST_DUMPS = 64, TRACE_EVENTS = 200000 };

typedef struct {
  const char *file, *entry, *trace;
  const char *args[MOST_ARGS];
  const char *dumps[MOST_DUMPS];
  int nargs;
  bool has_grid, has_block;
  PtxEmuLaunch launch;
} Options;

static const char usage_text[] =
    "usage: tile-emu FILE.ptx|FILE.cubin [--entry NAME] --grid X[,Y[,Z]] --block X[,Y[,Z]] [--cluster "
    "X[,Y[,Z]]] "
    "[--shared BYTES]\n"
    "                [--sms N] --arg ARG... [--order fair|lazy|random:SEED] [--check LIST] [--max-steps N] "
    "[--workers N]\n"
    "                [--stats] [--trace t.json] [--trace-events N] [--break LINE|FILE:LINE] [--dump "
    "RANGE]...\n"
    "ARG, one a kernel parameter in order:\n"
    "  in:NAME=x.npy  out:NAME=y.npy:DTYPE:D0xD1  inout:NAME=x.npy[:y.npy]   the array's address\n"
    "  tma:NAME,dtype=bf16,box=128x64,swizzle=128[,interleave=..][,oob=nan]  a tensor map over a named "
    "array\n"
    "  i32:5  i64:5  f32:0.5  null\n"
    "  in:a=a.npy;tma:a,...  declares the array and passes only the map\n"
    "RANGE, shown at the end or where the launch stops:\n"
    "  shared[@CTA]:START+BYTES  tmem[@CTA]:C0-C1/L0-L1  global:START+BYTES  with :hex, i32, u8, f32, f16, "
    "bf16\n"
    "  or mbarrier behind it if wanted; START is a number or a name, with or without +OFFSET\n";

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
  if (strcmp(name, "--trace") == 0) return o->trace = value, true;
  if (strcmp(name, "--trace-events") == 0) return parse_number(value, &o->launch.watch.trace_events);
  if (strcmp(name, "--break") == 0) return o->launch.watch.stop_at = value, true;
  if (strcmp(name, "--dump") == 0) {
    if (o->launch.watch.ndumps == MOST_DUMPS) return false;
    o->dumps[o->launch.watch.ndumps++] = value;
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
      o->launch.watch.stats = true;
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

// ---- progress

typedef struct {
  double start, last;
  uint64_t ctas;
  bool terminal, shown;
} Progress;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// A line that is overwritten twice a second on a terminal; elsewhere a line every ten seconds.
static void show_progress(void *user, uint64_t ctas_done, uint64_t instructions) {
  Progress *p = user;
  double time = now();
  if (time - p->last < (p->terminal ? 0.5 : 10)) return;
  p->last = time;
  p->shown = true;
  fprintf(stderr, "%s%llu of %llu CTAs done, %.1f million instructions, %.0f s%s",
          p->terminal ? "\r\033[K" : "", (unsigned long long)ctas_done, (unsigned long long)p->ctas,
          (double)instructions * 1e-6, time - p->start, p->terminal ? "" : "\n");
}

static void end_progress(const Progress *p) {
  if (p->shown && p->terminal) fputs("\r\033[K", stderr);
}

// ---- launch

static int exit_status(PtxEmuStatus status) {
  switch (status) {
  case PTXEMU_OK:
  case PTXEMU_STOPPED:
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

static bool write_trace(const PtxEmu *emu, const Options *o) {
  size_t length;
  uint64_t cut;
  const char *text = ptxemu_trace(emu, &length, &cut);
  if (o->trace == NULL || length == 0) return true;
  FILE *file = fopen(o->trace, "wb");
  bool ok = file != NULL && fwrite(text, 1, length, file) == length;
  if (file != NULL) ok &= fclose(file) == 0;
  if (!ok) fprintf(stderr, "tile-emu: cannot write %s: %s\n", o->trace, strerror(errno));
  if (ok && cut > 0)
    fprintf(stderr, "%s: cut after %llu events, at instruction %llu (--trace-events)\n", o->trace,
            (unsigned long long)o->launch.watch.trace_events, (unsigned long long)cut);
  return ok;
}

static bool show_results(const PtxEmu *emu, PtxEmuStatus status, const Options *o) {
  const char *stop_at = o->launch.watch.stop_at;
  fputs(ptxemu_output(emu), stdout);
  fputs(ptxemu_report(emu), status == PTXEMU_STOPPED ? stdout : stderr);
  if (stop_at != NULL && status != PTXEMU_STOPPED)
    fprintf(stderr, "%s: line %s was not reached\n", o->file, stop_at);
  fputs(ptxemu_dump(emu), stdout);
  fputs(ptxemu_stats(emu), stderr);
  return write_trace(emu, o);
}

static int launch(EmuArgs *args, const PtxEmuModule *module, const PtxEmuEntry *entry, Options *o) {
  uint64_t ctas = (uint64_t)o->launch.grid[0] * o->launch.grid[1] * o->launch.grid[2];
  double start = now();
  Progress progress = {start, start, ctas, isatty(STDERR_FILENO) != 0, false};
  PtxEmuWatch *watch = &o->launch.watch;
  watch->progress = show_progress;
  watch->user = &progress;
  watch->dump = o->dumps;
  if (o->trace != NULL && watch->trace_events == 0) watch->trace_events = TRACE_EVENTS;
  if (o->trace == NULL) watch->trace_events = 0;
  o->launch.params = args->params;
  o->launch.param_bytes = entry->param_bytes;
  PtxEmuStatus status = ptxemu_launch(args->emu, module, entry->name, &o->launch, NULL);
  end_progress(&progress);
  if (status == PTXEMU_USAGE) return complain(ptxemu_report(args->emu), "");
  if (!show_results(args->emu, status, o)) return EXIT_USAGE;
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

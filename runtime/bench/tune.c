// Two rounds for each size: a short one for all candidates, a careful one, against cublasLt, for those that come close to
// the best of the first.
#include "bench/tune.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/cubins.h"
#include "bench/report.h"
#include "bench/source.h"
#include "bench/tuning_file.h"

enum { FINALISTS = 6 };

static const double close_enough = 1.1;         // of the best time of the first round
static const double indistinguishable = 1.003;  // then the earlier candidate is taken, so that runs agree

// ---- Compiling

static TileError *make_folder(Tuner *tuner) {
  const char *given = tuner->options->cubins, *temporary = getenv("TMPDIR");
  if (given) {
    if (strlen(given) >= sizeof tuner->folder)
      return error_new(TILE_INVALID, "--cubins: the path is too long");
    strcpy(tuner->folder, given);
    if (!tuner->options->compile_only || mkdir(given, 0777) == 0 || errno == EEXIST) return NULL;
    return error_new(TILE_INVALID, "--cubins %s: %s", given, strerror(errno));
  }
  snprintf(tuner->folder, sizeof tuner->folder, "%s/tile-bench-XXXXXX",
           temporary && *temporary && strlen(temporary) < 3000 ? temporary : "/tmp");
  tuner->temporary = mkdtemp(tuner->folder) != NULL;
  return tuner->temporary ? NULL : error_new(TILE_UNAVAILABLE, "no temporary folder: %s", strerror(errno));
}

static TileError *command_of(const Tuner *tuner, const Gpu *gpu, int index, ArgList *out) {
  char path[PATH_MAX];
  const Candidate *candidate = &tuner->candidates.all[index];
  cubins_path(tuner->folder, index, path, sizeof path);
  TileError *error = source_command(tuner->options, gpu, tuner->options->files[0], path, out);
  for (int i = 0; i < candidate->count && !error; i++)
    args_add(out, "%s%s", candidate->settings[i][0] == '-' ? "" : "-D", candidate->settings[i]);
  return !error && out->failed ? error_no_memory() : error;
}

// "error[E0344]: …", the first that tilec said, without its place.
static void first_error(const char *messages, char *out, size_t size) {
  const char *at = messages ? strstr(messages, "error") : NULL;
  if (!at) at = messages ? messages : "tilec was ended by a signal";
  snprintf(out, size, "%.*s", (int)strcspn(at, "\n"), at);
}

// Says each reason once, with how many candidates it is the reason of. Where all fail the first one's messages come in full
// (judge).
static void print_failures(const Tuner *tuner, const CompileJob *jobs, int failed) {
  int count = tuner->candidates.count;
  char reason[200], other[200];
  printf("%d candidate%s, %d do%s not compile%s\n", count, count == 1 ? "" : "s", failed,
         failed == 1 ? "es" : "", failed && failed < count ? ":" : "");
  for (int i = failed == count; i < count; i++) {
    if (tuner->compiled[i]) continue;
    int same = 0;
    bool said = false;
    first_error(jobs[i].messages, reason, sizeof reason);
    for (int k = 0; k < count; k++) {
      if (tuner->compiled[k]) continue;
      first_error(jobs[k].messages, other, sizeof other);
      bool equal = strcmp(reason, other) == 0;
      said = said || (equal && k < i);
      same += equal;
    }
    if (!said) printf("  %d: %s (%s)\n", same, reason, tuner->candidates.all[i].text);
  }
  fflush(stdout);
}

// A number that tells files apart; 0 for one that cannot be read.
static uint64_t fingerprint(const Tuner *tuner, int index) {
  char path[PATH_MAX];
  cubins_path(tuner->folder, index, path, sizeof path);
  FILE *file = fopen(path, "r");
  uint64_t hash = 14695981039346656037u, length = 0;
  for (int c; file && (c = getc(file)) != EOF; length++) hash = (hash ^ (uint64_t)c) * 1099511628211u;
  if (file) fclose(file);
  return length ? hash ^ length << 40 : 0;
}

// Settings that make the same code, such as more stages than fit, are one candidate: the first.
static bool drop_repeated(Tuner *tuner) {
  int count = tuner->candidates.count, dropped = 0;
  uint64_t *seen = calloc((size_t)count, sizeof *seen);
  if (!seen) return false;
  for (int i = 0; i < count; i++) {
    seen[i] = tuner->compiled[i] ? fingerprint(tuner, i) : 0;
    for (int k = 0; k < i && tuner->compiled[i]; k++) {
      if (!seen[i] || seen[k] != seen[i]) continue;
      tuner->compiled[i] = false;
      dropped++;
    }
  }
  free(seen);
  if (dropped) printf("%d make%s the same code as an earlier one\n", dropped, dropped == 1 ? "s" : "");
  fflush(stdout);
  return true;
}

static TileError *judge(Tuner *tuner, const CompileJob *jobs) {
  int failed = 0;
  for (int i = 0; i < tuner->candidates.count; i++) failed += !(tuner->compiled[i] = jobs[i].status == 0);
  print_failures(tuner, jobs, failed);
  if (failed < tuner->candidates.count) return drop_repeated(tuner) ? NULL : error_no_memory();
  return error_new(TILE_FINDING, "%s: no candidate compiles\n%s", tuner->options->files[0],
                   jobs[0].messages ? jobs[0].messages : "");
}

static TileError *compile_all(Tuner *tuner, const Gpu *gpu) {
  int count = tuner->candidates.count;
  CompileJob *jobs = calloc((size_t)count, sizeof *jobs);
  ArgList *args = calloc((size_t)count, sizeof *args);
  TileError *error = jobs && args ? NULL : error_no_memory();
  for (int i = 0; i < count && !error; i++) {
    error = command_of(tuner, gpu, i, &args[i]);
    jobs[i].argv = args[i].data;
  }
  if (!error) error = compile_run(jobs, count, tuner->options->jobs);
  if (!error) error = judge(tuner, jobs);
  if (!error && !tuner->temporary) error = cubins_write(tuner->folder, &tuner->candidates, tuner->compiled);
  for (int i = 0; i < count && jobs && args; i++) {
    free(jobs[i].messages);
    args_free(&args[i]);
  }
  free(jobs);
  free(args);
  return error;
}

// ---- Opening

static TileError *open_one(Tuner *tuner, int index, int number) {
  char path[PATH_MAX];
  Subject *subject = &tuner->subjects[index];
  cubins_path(tuner->folder, number, path, sizeof path);
  TileError *error = subject_open(path, path, NULL, tuner->options->layout, subject);
  if (!error) snprintf(subject->name, sizeof subject->name, "%s", tuner->candidates.all[index].text);
  return error;
}

static TileError *open_compiled(Tuner *tuner) {
  TileError *error = NULL;
  for (int i = 0; i < tuner->candidates.count && !error; i++)
    if (tuner->compiled[i]) error = open_one(tuner, i, i);
  return error;
}

static TileError *open_found(Tuner *tuner) {
  Cubins cubins;
  TileError *error = cubins_read(tuner->folder, &cubins);
  if (error) return error;
  int found = 0;
  for (int i = 0; i < tuner->candidates.count && !error; i++) {
    int number = cubins_find(&cubins, tuner->candidates.all[i].text);
    tuner->compiled[i] = number >= 0;
    found += number >= 0;
    if (number >= 0) error = open_one(tuner, i, number);
  }
  cubins_free(&cubins);
  printf("%d candidates, %d of them in %s\n", tuner->candidates.count, found, tuner->folder);
  if (!error && found == 0) error = error_new(TILE_INVALID, "%s holds none of the candidates", tuner->folder);
  return error;
}

TileError *tune_open(const BenchOptions *options, const Gpu *gpu, Tuner *out) {
  *out = (Tuner){.options = options};
  TileError *error = candidates_read(options->tune, &out->candidates);
  if (error) return error;
  out->compiled = calloc((size_t)out->candidates.count, sizeof *out->compiled);
  out->subjects = calloc((size_t)out->candidates.count, sizeof *out->subjects);
  if (!out->compiled || !out->subjects) return error_no_memory();
  error = make_folder(out);
  if (error) return error;
  if (options->cubins && !options->compile_only) return open_found(out);
  error = compile_all(out, gpu);
  return error || options->compile_only ? error : open_compiled(out);
}

const Subject *tune_subject(const Tuner *tuner) {
  int i = 0;
  while (!tuner->compiled[i]) i++;
  return &tuner->subjects[i];
}

void tune_close(Tuner *tuner) {
  char path[PATH_MAX];
  for (int i = 0; i < tuner->candidates.count; i++) {
    if (tuner->subjects) subject_close(&tuner->subjects[i]);
    cubins_path(tuner->folder, i, path, sizeof path);
    if (tuner->temporary) unlink(path);
  }
  if (tuner->temporary) rmdir(tuner->folder);
  free(tuner->subjects);
  free(tuner->compiled);
  candidates_free(&tuner->candidates);
}

// ---- Measuring

// Indices of the candidates that are worth a careful measurement: the fastest, but at most FINALISTS.
static int choose_finalists(const double *seconds, int count, int *out) {
  int chosen = 0;
  double best = 0;
  while (chosen < FINALISTS) {
    int next = -1;
    for (int i = 0; i < count; i++) {
      bool taken = seconds[i] <= 0;
      for (int k = 0; k < chosen; k++) taken = taken || out[k] == i;
      if (!taken && (next < 0 || seconds[i] < seconds[next])) next = i;
    }
    if (next < 0 || (chosen && seconds[next] > best * close_enough)) break;
    if (chosen == 0) best = seconds[next];
    out[chosen++] = next;
  }
  return chosen;
}

static int compare_ints(const void *a, const void *b) {
  return *(const int *)a - *(const int *)b;
}

// The fastest; of those that cannot be told apart the first.
static int choose_winner(const Row *row, int count) {
  double best = 0;
  for (int i = 0; i < count; i++) {
    double seconds = row->arms[i].random.seconds.median;
    if (best == 0 || seconds < best) best = seconds;
  }
  for (int i = 0; i < count; i++)
    if (row->arms[i].random.seconds.median <= best * indistinguishable) return i;
  return 0;
}

static TileError *record(const Tuner *tuner, const Bench *bench, Sizes sizes, const Subject *winner,
                         double flops, TuningLines *lines) {
  char key[400];
  const char *kernel = tuner->options->kernel ? tuner->options->kernel : tile_kernel_name(winner->kernel);
  tuning_key(kernel, tile_kernel_arch(winner->kernel), &winner->problem, sizes, key, sizeof key);
  return tuning_lines_put(lines, key, winner->name, flops / 1e12, bench->gpu->name) ? NULL
                                                                                    : error_no_memory();
}

static TileError *tune_size(const Tuner *tuner, const Bench *bench, Sizes sizes, Subject *const *subjects,
                            int count, double *seconds, bool first, TuningLines *lines) {
  int order[FINALISTS];
  Subject *finalists[FINALISTS];
  Row row;
  TileError *error = trial_rank(bench, subjects, count, sizes, seconds);
  if (error) return error;
  int chosen = choose_finalists(seconds, count, order);
  if (chosen == 0)
    return error_new(TILE_INVALID, "no candidate can run at %lldx%lldx%lld", (long long)sizes.m,
                     (long long)sizes.n, (long long)sizes.k);
  qsort(order, (size_t)chosen, sizeof *order, compare_ints);
  for (int i = 0; i < chosen; i++) finalists[i] = subjects[order[i]];
  error = trial_run(bench, finalists, chosen, sizes, &row);
  if (error) return error;
  report_row(stdout, &row, first);
  int winner = choose_winner(&row, chosen);
  printf("  best of %d: %s\n", count, finalists[winner]->name);
  fflush(stdout);
  return record(tuner, bench, sizes, finalists[winner], row.arms[winner].random.flops, lines);
}

static TileError *tune_sizes(const Tuner *tuner, const Bench *bench, Subject *const *subjects, int count,
                             TuningLines *lines) {
  const Sizes *sizes = tuner->options->sizes ? tuner->options->sizes : tuner->candidates.sizes;
  int nsizes = tuner->options->sizes ? tuner->options->nsizes : tuner->candidates.nsizes;
  double *seconds = calloc((size_t)count, sizeof *seconds);
  TileError *error = seconds ? NULL : error_no_memory();
  if (!error && nsizes == 0)
    error = error_new(TILE_INVALID, "sizes to tune for: sizes=... in the specification, or --sizes");
  for (int i = 0; i < nsizes && !error; i++)
    error = tune_size(tuner, bench, sizes[i], subjects, count, seconds, i == 0, lines);
  free(seconds);
  return error;
}

static TileError *check_open_sizes(const Subject *subject) {
  const char *const names[] = {subject->problem.m, subject->problem.n, subject->problem.k};
  for (int i = 0; i < 3; i++)
    if (names[i][0] >= '0' && names[i][0] <= '9')
      return error_new(TILE_INVALID, "%c is fixed to %s in the kernel: tuning is for sizes given at launch",
                       "MNK"[i], names[i]);
  return NULL;
}

// What was found for sizes before one that fails is recorded all the same.
TileError *tune_run(Tuner *tuner, const Bench *bench) {
  TuningLines lines = {0};
  Subject **subjects = calloc((size_t)tuner->candidates.count, sizeof(Subject *));
  int count = 0;
  if (!subjects) return error_no_memory();
  for (int i = 0; i < tuner->candidates.count; i++)
    if (tuner->compiled[i]) subjects[count++] = &tuner->subjects[i];
  const char *path = tuner->options->tuning;
  TileError *error = check_open_sizes(subjects[0]);
  if (!error && path) error = tuning_lines_read(path, true, &lines);
  if (!error) error = tune_sizes(tuner, bench, subjects, count, &lines);
  TileError *unwritten = path && lines.count ? tuning_lines_write(&lines, path) : NULL;
  if (path && lines.count && !unwritten) printf("%s: %d entries\n", path, lines.count);
  if (error) tile_error_free(unwritten);
  tuning_lines_free(&lines);
  free(subjects);
  return error ? error : unwritten;
}

// Results are compared before kernels are timed: each with sums in double precision at some elements, then everywhere with
// cublasLt's.
#include "bench/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  const Bench *bench;
  Subject *const *subjects;
  int nsubjects;
  Sizes sizes;
  const Problem *problem;
  Block a, b;
  Buffers buffers;
  CublasLtProduct product;
  Measurement measurement;
  Arm *arms;  // as many as subjects and the peer, or as algorithms
  Random random;
  Row *row;
} Trial;

// cublasLt as an arm: one of the product's algorithms.
typedef struct {
  CublasLtProduct product;  // a view: handles are the trial's
  const Buffers *buffers;
} Peer;

static TileError *peer_launch(void *context, int set, CudaStream stream) {
  const Peer *peer = context;
  const Buffers *buffers = peer->buffers;
  return cublaslt_launch(&peer->product, buffers->a[set], buffers->b[set], buffers->c[set], stream);
}

// ---- Right before fast

static TileError *result_of(const Trial *trial, TileError *(*launch)(void *, int, CudaStream), void *context,
                            uint8_t *out) {
  const Gpu *gpu = trial->bench->gpu;
  const Buffers *buffers = &trial->buffers;
  // Bytes of ones: NaN in floats, so that an element that is never written shows.
  TileError *error = gpu_error(gpu, gpu->set_bytes(buffers->c[0], 0xFF, buffers->c_bytes), "cuMemsetD8");
  if (!error) error = gpu_wait(gpu);
  if (!error) error = launch(context, 0, gpu->stream);
  if (!error)
    error = tile_synchronize(trial->bench->device, gpu->stream);  // which names the kernel of a fault
  if (!error)
    error = gpu_error(gpu, gpu->driver.copy_out(out, buffers->c[0], buffers->c_bytes), "cuMemcpyDtoH");
  return error;
}

static TileError *wrong(const Trial *trial, const char *name, const char *other,
                        const Difference *difference) {
  return error_new(
      TILE_FINDING,
      "%s computes something else than %s at %lldx%lldx%lld: %llu of %llu elements differ, the first "
      "at [%llu, %llu]: %g, not %g",
      name, other, (long long)trial->sizes.m, (long long)trial->sizes.n, (long long)trial->sizes.k,
      (unsigned long long)difference->wrong, (unsigned long long)difference->elements,
      (unsigned long long)(difference->first / (uint64_t)trial->sizes.n),
      (unsigned long long)(difference->first % (uint64_t)trial->sizes.n), difference->got, difference->want);
}

static void note_difference(Trial *trial, const Difference *difference) {
  if (difference->relative > trial->row->difference) trial->row->difference = difference->relative;
}

static TileError *check_samples(Trial *trial, const char *name, const uint8_t *result) {
  Difference difference;
  data_check_samples(trial->problem, trial->sizes, &trial->a, &trial->b, result, trial->bench->options->seed,
                     &difference);
  if (difference.wrong) return wrong(trial, name, "the sum of products", &difference);
  if (!trial->bench->lt) note_difference(trial, &difference);
  return NULL;
}

static TileError *check_everywhere(Trial *trial, const char *name, const uint8_t *got, const uint8_t *want) {
  Difference difference;
  if (!data_compare(trial->problem->c->dtype, got, want, trial->buffers.c_elements,
                    data_tolerance(trial->problem->a->dtype), &difference))
    return error_no_memory();
  if (difference.wrong) return wrong(trial, name, "cublasLt", &difference);
  note_difference(trial, &difference);
  return NULL;
}

static TileError *check_subjects(Trial *trial, uint8_t *got, const uint8_t *want) {
  TileError *error = NULL;
  for (int i = 0; i < trial->nsubjects && !error; i++) {
    Subject *subject = trial->subjects[i];
    error = result_of(trial, subject_launch, subject, got);
    if (!error) error = check_samples(trial, subject->name, got);
    if (!error && trial->bench->lt) error = check_everywhere(trial, subject->name, got, want);
  }
  return error;
}

static TileError *check_all(Trial *trial) {
  uint8_t *got = malloc(trial->buffers.c_bytes), *want = malloc(trial->buffers.c_bytes);
  TileError *error = got && want ? NULL : error_no_memory();
  if (!error && trial->bench->lt) {
    Peer peer = {trial->product, &trial->buffers};
    error = result_of(trial, peer_launch, &peer, want);
    if (!error) error = check_samples(trial, "cublasLt", want);
  }
  if (!error) error = check_subjects(trial, got, want);
  free(got);
  free(want);
  return error;
}

// ---- The peer's best algorithm

static void start_measurement(Trial *trial, int narms) {
  const Bench *bench = trial->bench;
  trial->measurement = (Measurement){.gpu = bench->gpu,
                                     .monitor = bench->monitor,
                                     .random = &trial->random,
                                     .arms = trial->arms,
                                     .narms = narms,
                                     .sets = trial->buffers.sets};
}

// Of the arms of a selection; -1 when nothing was timed.
static int fastest_arm(const Measurement *measurement) {
  int best = -1;
  double least = 0;
  for (int i = 0; i < measurement->narms; i++) {
    Spread spread;
    if (!measure_spread(&measurement->arms[i], &spread) || spread.median <= 0) continue;
    if (best < 0 || spread.median < least) {
      best = i;
      least = spread.median;
    }
  }
  return best;
}

// Algorithms that the heuristics offer but that then refuse are left out.
static int usable_algorithms(Trial *trial) {
  int kept = 0;
  Peer peer = {trial->product, &trial->buffers};
  for (int i = 0; i < trial->product.count; i++) {
    peer.product.chosen = i;
    TileError *error = peer_launch(&peer, 0, trial->bench->gpu->stream);
    if (!error) error = gpu_wait(trial->bench->gpu);
    if (!error) trial->product.algorithms[kept++] = trial->product.algorithms[i];
    tile_error_free(error);
  }
  return trial->product.count = kept;
}

static TileError *choose_algorithm(Trial *trial) {
  if (!trial->bench->lt) return NULL;
  int count = usable_algorithms(trial);
  if (count == 0) return error_new(TILE_UNAVAILABLE, "no algorithm that cublasLt offers runs");
  Peer *peers = calloc((size_t)count, sizeof *peers);
  if (!peers) return error_no_memory();
  for (int i = 0; i < count; i++) {
    peers[i] = (Peer){trial->product, &trial->buffers};
    peers[i].product.chosen = i;
    trial->arms[i] = (Arm){.name = "cublasLt", .launch = peer_launch, .context = &peers[i]};
  }
  start_measurement(trial, count);
  TileError *error = measure_prepare(&trial->measurement, trial->bench->options->slice);
  if (!error) error = measure_warm(&trial->measurement, trial->bench->options->warmup / 2);
  if (!error) error = measure_run(&trial->measurement, 11, 0);
  int best = error ? -1 : fastest_arm(&trial->measurement);
  measure_free(&trial->measurement);
  free(peers);
  if (!error && best < 0) error = error_new(TILE_UNAVAILABLE, "cublasLt could not be timed");
  trial->product.chosen = best < 0 ? 0 : best;
  return error;
}

// ---- Timing

static void fill_timing(const Trial *trial, int arm, int peer, Timing *out) {
  if (!measure_spread(&trial->arms[arm], &out->seconds)) return;
  if (peer >= 0) measure_ratio(&trial->arms[peer], &trial->arms[arm], &out->ratio);
  out->flops = out->seconds.median > 0 ? sizes_flops(trial->sizes) / out->seconds.median : 0;
}

static void fill_peaks(const Trial *trial, ArmResult *arm) {
  const Gpu *gpu = trial->bench->gpu;
  int bits = tile_dtype_bits(trial->problem->a->dtype);
  double each = gpu_flops_per_clock(gpu->major, bits) * gpu->sms;
  double clock = trial->row->monitor.sm.median;
  if (each > 0 && gpu->clock_mhz > 0) arm->of_peak = arm->random.flops / (each * gpu->clock_mhz * 1e6);
  if (each > 0 && clock > 0) arm->of_peak_clock = arm->random.flops / (each * clock * 1e6);
}

static TileError *time_data(Trial *trial, bool zeros) {
  const BenchOptions *options = trial->bench->options;
  Row *row = trial->row;
  int peer = trial->bench->lt ? trial->nsubjects : -1;
  TileError *error = measure_warm(&trial->measurement, zeros ? options->warmup / 2 : options->warmup);
  if (!error)
    error =
        measure_run(&trial->measurement, options->repeat, zeros ? options->seconds / 2 : options->seconds);
  if (error) return error;
  *(zeros ? &row->monitor_zeros : &row->monitor) = monitor_end(trial->bench->monitor);
  for (int i = 0; i < row->narms; i++) {
    fill_timing(trial, i, peer, zeros ? &row->arms[i].zeros : &row->arms[i].random);
    if (!zeros) fill_peaks(trial, &row->arms[i]);
  }
  if (!zeros) row->repetitions = trial->arms[0].count;
  return NULL;
}

static TileError *time_all(Trial *trial) {
  Row *row = trial->row;
  Peer peer = {trial->product, &trial->buffers};
  for (int i = 0; i < trial->nsubjects; i++) {
    trial->arms[i] =
        (Arm){.name = trial->subjects[i]->name, .launch = subject_launch, .context = trial->subjects[i]};
    snprintf(row->arms[i].name, sizeof row->arms[i].name, "%s", trial->subjects[i]->name);
  }
  row->narms = trial->nsubjects;
  row->has_peer = trial->bench->lt != NULL;
  if (row->has_peer) {
    ArmResult *arm = &row->arms[row->narms];
    snprintf(arm->name, sizeof arm->name, "cublasLt");
    snprintf(arm->detail, sizeof arm->detail, "algorithm %d of %d", trial->product.chosen + 1,
             trial->product.count);
    arm->is_peer = true;
    trial->arms[row->narms++] = (Arm){.name = "cublasLt", .launch = peer_launch, .context = &peer};
  }
  start_measurement(trial, row->narms);
  TileError *error = measure_prepare(&trial->measurement, trial->bench->options->slice);
  row->sets = trial->buffers.sets;
  row->launches = trial->measurement.launches;
  for (int i = 0; i < row->narms; i++) row->arms[i].nodes = trial->arms[i].nodes;
  if (!error) error = time_data(trial, false);
  row->has_zeros = trial->bench->options->zeros;
  if (!error && row->has_zeros) error = buffers_zero(&trial->buffers);
  if (!error && row->has_zeros) error = time_data(trial, true);
  measure_free(&trial->measurement);
  return error;
}

static TileError *bind_all(Trial *trial) {
  TileError *error = NULL;
  for (int i = 0; i < trial->nsubjects && !error; i++)
    error = subject_bind(trial->subjects[i], trial->bench->device, &trial->buffers, trial->sizes,
                         &trial->bench->options->fills);
  return error;
}

static TileError *prepare(Trial *trial) {
  const Bench *bench = trial->bench;
  uint64_t seed = bench->options->seed * 2;
  TileError *error = block_make(trial->problem->a->dtype, seed, &trial->a);
  if (!error) error = block_make(trial->problem->b->dtype, seed + 1, &trial->b);
  if (!error) error = buffers_open(bench->gpu, trial->problem, trial->sizes, &trial->buffers);
  return error ? error : buffers_fill(&trial->buffers, &trial->a, &trial->b);
}

static TileError *compare_and_time(Trial *trial) {
  const Bench *bench = trial->bench;
  TileError *error = bind_all(trial);
  if (!error && bench->lt)
    error = cublaslt_product(bench->lt, trial->problem, trial->sizes, bench->options->heuristics,
                             &trial->product);
  if (!error) error = choose_algorithm(trial);
  if (!error) error = check_all(trial);
  return error ? error : time_all(trial);
}

static TileError *trial_open(const Bench *bench, Subject *const *subjects, int nsubjects, Sizes sizes,
                             Trial **out) {
  Trial *trial = *out = calloc(1, sizeof *trial);
  if (!trial) return error_no_memory();
  trial->bench = bench;
  trial->subjects = subjects;
  trial->nsubjects = nsubjects;
  trial->sizes = sizes;
  trial->problem = &subjects[0]->problem;
  trial->random.state = bench->options->seed;
  trial->arms = calloc((size_t)nsubjects + 1 + CUBLASLT_MOST, sizeof *trial->arms);
  return trial->arms ? prepare(trial) : error_no_memory();
}

static void trial_close(Trial *trial) {
  if (!trial) return;
  for (int i = 0; i < trial->nsubjects; i++) subject_unbind(trial->subjects[i]);
  if (trial->product.lt) cublaslt_product_free(&trial->product);
  buffers_close(&trial->buffers);
  block_free(&trial->a);
  block_free(&trial->b);
  free(trial->arms);
  free(trial);
}

TileError *trial_run(const Bench *bench, Subject *const *subjects, int nsubjects, Sizes sizes, Row *out) {
  Trial *trial;
  memset(out, 0, sizeof *out);
  out->sizes = sizes;
  TileError *error = trial_open(bench, subjects, nsubjects, sizes, &trial);
  if (!error) trial->row = out;
  if (!error) error = compare_and_time(trial);
  trial_close(trial);
  return error;
}

// ---- Ranking

enum { RANK_REPETITIONS = 7 };
static const double rank_slice = 0.002;  // seconds

// Arms of those subjects that can be bound and launched; which one each is of is in `of`.
static TileError *rank_arms(Trial *trial, int *of, int *count) {
  *count = 0;
  for (int i = 0; i < trial->nsubjects; i++) {
    Subject *subject = trial->subjects[i];
    TileError *error = subject_bind(subject, trial->bench->device, &trial->buffers, trial->sizes,
                                    &trial->bench->options->fills);
    if (!error) error = subject_launch(subject, 0, trial->bench->gpu->stream);
    if (!error) error = gpu_wait(trial->bench->gpu);
    TileStatus status = tile_error_status(error);
    if (status == TILE_FAULT || status == TILE_HANG) return error;
    if (status == TILE_OK) {
      trial->arms[*count] = (Arm){.name = subject->name, .launch = subject_launch, .context = subject};
      of[(*count)++] = i;
    }
    tile_error_free(error);
  }
  return NULL;
}

static TileError *rank(Trial *trial, int *of, double *seconds) {
  int count;
  TileError *error = rank_arms(trial, of, &count);
  if (error || count == 0) return error;
  start_measurement(trial, count);
  error = measure_prepare(&trial->measurement, rank_slice);
  if (!error) error = measure_warm(&trial->measurement, trial->bench->options->warmup / 2);
  if (!error) error = measure_run(&trial->measurement, RANK_REPETITIONS, 0);
  for (int i = 0; i < count && !error; i++) {
    Spread spread;
    if (measure_spread(&trial->arms[i], &spread)) seconds[of[i]] = spread.median;
  }
  measure_free(&trial->measurement);
  return error;
}

TileError *trial_rank(const Bench *bench, Subject *const *subjects, int nsubjects, Sizes sizes,
                      double *seconds) {
  Trial *trial = NULL;
  int *of = calloc((size_t)nsubjects + 1, sizeof *of);
  memset(seconds, 0, (size_t)nsubjects * sizeof *seconds);
  TileError *error = of ? trial_open(bench, subjects, nsubjects, sizes, &trial) : error_no_memory();
  if (!error) error = rank(trial, of, seconds);
  trial_close(trial);
  free(of);
  return error;
}

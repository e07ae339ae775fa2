// The host runs a few repetitions ahead of the GPU, which so never waits for it: an event, a graph, an event for each
// arm. While it waits it reads the sensors.
#include "bench/measure.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  AHEAD = 4,
  MOST_LAUNCHES = 2000,
  LEAST_REPETITIONS = 20,
  MOST_REPETITIONS = 5000,
  CAPTURE_RELAXED = 2,
  NOT_READY = 600
};

static TileError *capture(Measurement *measurement, Arm *arm) {
  const Gpu *gpu = measurement->gpu;
  CudaGraph graph = NULL;
  if (arm->graph) gpu->exec_free(arm->graph);
  arm->graph = NULL;
  TileError *error = gpu_error(gpu, gpu->capture_begin(gpu->stream, CAPTURE_RELAXED), "cuStreamBeginCapture");
  if (error) return error;
  for (int i = 0; i < measurement->launches && !error; i++)
    error = arm->launch(arm->context, i % measurement->sets, gpu->stream);
  CudaResult ended = gpu->capture_end(gpu->stream, &graph);
  if (!error) error = gpu_error(gpu, ended, "cuStreamEndCapture");
  if (!error) error = gpu_error(gpu, gpu->graph_build(&arm->graph, graph, 0), "cuGraphInstantiate");
  if (!error) graph_nodes_find(gpu, graph, measurement->launches, &arm->nodes);
  if (graph) gpu->graph_free(graph);
  return error;
}

static TileError *capture_all(Measurement *measurement) {
  TileError *error = NULL;
  for (int i = 0; i < measurement->narms && !error; i++) error = capture(measurement, &measurement->arms[i]);
  return error;
}

// ---- Repetitions in flight

typedef struct {
  Measurement *measurement;
  CudaEvent *events;  // [AHEAD][narms][2]
  int *order;
} Flight;

static CudaEvent *events_of(const Flight *flight, int repetition, int arm) {
  return &flight->events[((repetition % AHEAD) * flight->measurement->narms + arm) * 2];
}

static void flight_close(Flight *flight) {
  const Gpu *gpu = flight->measurement->gpu;
  for (int i = 0; flight->events && i < AHEAD * flight->measurement->narms * 2; i++)
    if (flight->events[i]) gpu->driver.event_free(flight->events[i]);
  free(flight->events);
  free(flight->order);
}

static TileError *flight_open(Measurement *measurement, Flight *out) {
  const Gpu *gpu = measurement->gpu;
  int count = AHEAD * measurement->narms * 2;
  *out = (Flight){measurement, calloc((size_t)count, sizeof(CudaEvent)),
                  calloc((size_t)measurement->narms, sizeof(int))};
  TileError *error = out->events && out->order ? NULL : error_no_memory();
  for (int i = 0; i < count && !error; i++)
    error = gpu_error(gpu, gpu->driver.event_new(&out->events[i], 0), "cuEventCreate");
  for (int i = 0; i < measurement->narms && !error; i++) out->order[i] = i;
  if (error) flight_close(out);
  return error;
}

static TileError *send(Flight *flight, int repetition) {
  Measurement *measurement = flight->measurement;
  const Gpu *gpu = measurement->gpu;
  TileError *error = NULL;
  random_shuffle(measurement->random, flight->order, measurement->narms);
  for (int i = 0; i < measurement->narms && !error; i++) {
    int arm = flight->order[i];
    CudaEvent *events = events_of(flight, repetition, arm);
    error = gpu_error(gpu, gpu->driver.event_record(events[0], gpu->stream), "cuEventRecord");
    if (!error)
      error = gpu_error(gpu, gpu->graph_launch(measurement->arms[arm].graph, gpu->stream), "cuGraphLaunch");
    if (!error) error = gpu_error(gpu, gpu->driver.event_record(events[1], gpu->stream), "cuEventRecord");
  }
  return error;
}

static TileError *wait_for(const Measurement *measurement, CudaEvent event) {
  const Gpu *gpu = measurement->gpu;
  const struct timespec moment = {0, 200000};
  for (;;) {
    CudaResult result = gpu->event_query(event);
    if (result != NOT_READY) return gpu_error(gpu, result, "kernel (found by cuEventQuery)");
    if (measurement->monitor) monitor_sample(measurement->monitor);
    nanosleep(&moment, NULL);
  }
}

// The times of a repetition that was sent, when it has ended.
static TileError *collect(Flight *flight, int repetition, bool keep) {
  Measurement *measurement = flight->measurement;
  TileError *error = NULL;
  if (measurement->monitor) monitor_sample(measurement->monitor);
  for (int i = 0; i < measurement->narms && !error; i++) {
    Arm *arm = &measurement->arms[i];
    CudaEvent *events = events_of(flight, repetition, i);
    float milliseconds = 0;
    error = wait_for(measurement, events[1]);
    if (!error)
      error = gpu_error(measurement->gpu,
                        measurement->gpu->driver.event_elapsed(&milliseconds, events[0], events[1]),
                        "cuEventElapsedTime");
    if (keep) arm->seconds[arm->count++] = 1e-3 * (double)milliseconds / measurement->launches;
  }
  return error;
}

// ---- Preparing

static TileError *run_once(const Measurement *measurement) {
  TileError *error = NULL;
  for (int i = 0; i < measurement->narms && !error; i++)
    for (int set = 0; set < measurement->sets && !error; set++)
      error = measurement->arms[i].launch(measurement->arms[i].context, set, measurement->gpu->stream);
  return error ? error : gpu_wait(measurement->gpu);
}

// Drops earlier times and makes room; NULL seconds mean none.
static TileError *make_room(Measurement *measurement, int repetitions) {
  for (int i = 0; i < measurement->narms; i++) {
    Arm *arm = &measurement->arms[i];
    free(arm->seconds);
    arm->count = 0;
    arm->seconds = calloc((size_t)repetitions + 1, sizeof *arm->seconds);
    if (!arm->seconds) return error_no_memory();
  }
  return NULL;
}

static TileError *run_repetitions(Measurement *measurement, int repetitions) {
  Flight flight;
  TileError *error = make_room(measurement, repetitions);
  if (!error) error = flight_open(measurement, &flight);
  if (error) return error;
  for (int i = 0; i < repetitions + AHEAD && !error; i++) {
    if (i >= AHEAD) error = collect(&flight, i - AHEAD, true);
    if (i < repetitions && !error) error = send(&flight, i);
    if (i - AHEAD + 1 >= repetitions) break;
  }
  if (error) tile_error_free(gpu_wait(measurement->gpu));
  flight_close(&flight);
  return error;
}

// Seconds of one graph of the fastest arm.
static double fastest(const Measurement *measurement) {
  double least = 0;
  for (int i = 0; i < measurement->narms; i++) {
    Spread spread;
    if (!measure_spread(&measurement->arms[i], &spread)) continue;
    if (least == 0 || spread.median < least) least = spread.median;
  }
  return least * measurement->launches;
}

TileError *measure_prepare(Measurement *measurement, double slice) {
  measurement->launches = measurement->sets;
  TileError *error = run_once(measurement);
  // Twice: the first graph, of few launches, tells how many the second needs.
  for (int round = 0; round < 2 && !error; round++) {
    error = capture_all(measurement);
    if (!error) error = run_repetitions(measurement, 3);
    double seconds = error ? slice : fastest(measurement);
    if (seconds >= slice / 1.5 || round == 1) break;
    double factor = seconds > 0 ? slice / seconds : MOST_LAUNCHES;
    int most = MOST_LAUNCHES / measurement->sets > 1 ? MOST_LAUNCHES / measurement->sets : 1;
    measurement->launches *= factor < most ? (int)factor + 1 : most;
  }
  return error;
}

TileError *measure_warm(Measurement *measurement, double seconds) {
  double start = monitor_now();
  TileError *error = NULL;
  while (!error && monitor_now() - start < seconds) error = run_repetitions(measurement, AHEAD);
  return error;
}

TileError *measure_run(Measurement *measurement, int repetitions, double seconds) {
  TileError *error = NULL;
  if (repetitions == 0) {
    double start = monitor_now();
    error = run_repetitions(measurement, AHEAD * 2);
    double each = (monitor_now() - start) / (AHEAD * 2);
    double fit = each > 0 ? seconds / each : 0;
    repetitions = fit < LEAST_REPETITIONS  ? LEAST_REPETITIONS
                  : fit > MOST_REPETITIONS ? MOST_REPETITIONS
                                           : (int)fit;
  }
  if (measurement->monitor) monitor_begin(measurement->monitor);
  return error ? error : run_repetitions(measurement, repetitions);
}

void measure_free(Measurement *measurement) {
  for (int i = 0; i < measurement->narms; i++) {
    Arm *arm = &measurement->arms[i];
    if (arm->graph) measurement->gpu->exec_free(arm->graph);
    free(arm->seconds);
    arm->graph = NULL;
    arm->seconds = NULL;
    arm->count = 0;
  }
}

// ---- What came out

static bool spread_of(double *values, int count, Spread *out) {
  if (!values) return false;
  *out = stats_spread(values, count);
  free(values);
  return true;
}

bool measure_ratio(const Arm *over, const Arm *under, Spread *out) {
  int count = over->count < under->count ? over->count : under->count;
  double *values = calloc((size_t)count + 1, sizeof *values);
  for (int i = 0; values && i < count; i++)
    values[i] = under->seconds[i] > 0 ? over->seconds[i] / under->seconds[i] : 0;
  return spread_of(values, count, out);
}

bool measure_spread(const Arm *arm, Spread *out) {
  double *values = calloc((size_t)arm->count + 1, sizeof *values);
  if (values) memcpy(values, arm->seconds, (size_t)arm->count * sizeof *values);
  return spread_of(values, arm->count, out);
}

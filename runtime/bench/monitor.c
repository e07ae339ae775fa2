// Sensors are slow and need no precision: they are read between launches, a few times in a second.
#include "bench/monitor.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cuda/driver.h"

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, SENSOR_GPU = 0 };

static const double interval = 0.02;  // seconds

static const struct {
  unsigned long long bit;
  const char *name;
} reason_names[] = {
    {0x1, "idle"},
    {0x2, "clocks set by the user"},
    {0x4, "power cap"},
    {0x8, "hardware slowdown"},
    {0x10, "sync boost"},
    {0x20, "hot (software)"},
    {0x40, "hot (hardware)"},
    {0x80, "power brake"},
    {0x100, "display clock"},
};

static bool load_rows(Monitor *monitor) {
  bool complete = true;
#define NVML(name, symbol, parameters)                                                                       \
  complete = driver_load(monitor->library, symbol, &monitor->name) && complete;
#include "bench/nvml.def"
#undef NVML
  return complete;
}

bool monitor_open(Monitor *monitor, const char *bus) {
  memset(monitor, 0, sizeof *monitor);
  monitor->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!monitor->library) return false;
  unsigned milliwatts = 0;
  bool running = load_rows(monitor) && monitor->init() == 0;
  if (running && monitor->by_bus(bus, &monitor->device) == 0 && monitor->device) {
    if (monitor->driver_version(monitor->driver, sizeof monitor->driver) != 0) monitor->driver[0] = '\0';
    if (monitor->limit(monitor->device, &milliwatts) == 0) monitor->power_limit = milliwatts / 1e3;
    return true;
  }
  if (running) monitor->shutdown();
  dlclose(monitor->library);
  memset(monitor, 0, sizeof *monitor);
  return false;
}

void monitor_close(Monitor *monitor) {
  if (!monitor->library) return;
  monitor->shutdown();
  dlclose(monitor->library);
  memset(monitor, 0, sizeof *monitor);
}

double monitor_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void monitor_begin(Monitor *monitor) {
  monitor->count = monitor->hottest = 0;
  monitor->reasons = 0;
  monitor->last = 0;
}

void monitor_sample(Monitor *monitor) {
  double now = monitor->device ? monitor_now() : 0;
  if (!monitor->device || now - monitor->last < interval || monitor->count == MONITOR_SAMPLES) return;
  unsigned sm = 0, memory = 0, milliwatts = 0, celsius = 0;
  unsigned long long reasons = 0;
  monitor->last = now;
  if (monitor->clock(monitor->device, CLOCK_SM, &sm) != 0) return;
  monitor->clock(monitor->device, CLOCK_MEMORY, &memory);
  monitor->usage(monitor->device, &milliwatts);
  monitor->temperature(monitor->device, SENSOR_GPU, &celsius);
  monitor->throttle(monitor->device, &reasons);
  int i = monitor->count++;
  monitor->sm[i] = sm;
  monitor->memory[i] = memory;
  monitor->power[i] = milliwatts / 1e3;
  monitor->reasons |= reasons;
  if ((int)celsius > monitor->hottest) monitor->hottest = (int)celsius;
}

MonitorSummary monitor_end(Monitor *monitor) {
  return (MonitorSummary){.samples = monitor->count,
                          .sm = stats_spread(monitor->sm, monitor->count),
                          .memory = stats_spread(monitor->memory, monitor->count),
                          .power = stats_spread(monitor->power, monitor->count),
                          .hottest = monitor->hottest,
                          .reasons = monitor->reasons};
}

void monitor_reasons(unsigned long long reasons, char *out, size_t size) {
  size_t length = 0;
  snprintf(out, size, "none");
  for (size_t i = 0; i < sizeof reason_names / sizeof *reason_names; i++) {
    if (!(reasons & reason_names[i].bit) || length >= size) continue;
    length += (size_t)snprintf(out + length, size - length, "%s%s", length ? ", " : "", reason_names[i].name);
  }
}

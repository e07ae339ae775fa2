// What the GPU does while it is measured: clocks, power, temperature, and why it is slower than it could be, read
// through NVML. Without NVML there is simply nothing to say.
#ifndef TILE_BENCH_MONITOR_H
#define TILE_BENCH_MONITOR_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/stats.h"

enum { MONITOR_SAMPLES = 4096 };

typedef struct {
  void *library, *device;
#define NVML(name, symbol, parameters) int(*name) parameters;
#include "bench/nvml.def"
#undef NVML
  char driver[80];     // its version; "" without NVML
  double power_limit;  // W
  double last;         // seconds, when it was last read
  int count;
  double sm[MONITOR_SAMPLES], memory[MONITOR_SAMPLES], power[MONITOR_SAMPLES];  // MHz, MHz, W
  int hottest;                                                                  // degrees Celsius
  unsigned long long reasons;                                                   // of any sample
} Monitor;

// What was seen since monitor_begin.
typedef struct {
  int samples;
  Spread sm, memory, power;
  int hottest;
  unsigned long long reasons;
} MonitorSummary;

// False: there is no NVML, or it does not know the GPU at this PCI bus id. Then the other functions do nothing.
bool monitor_open(Monitor *monitor, const char *bus);
void monitor_close(Monitor *monitor);

void monitor_begin(Monitor *monitor);
// Reads the sensors, when some time has passed since it last did.
void monitor_sample(Monitor *monitor);
MonitorSummary monitor_end(Monitor *monitor);

// Names of the reasons, separated by commas: "power cap, hot"; "none".
void monitor_reasons(unsigned long long reasons, char *out, size_t size);

// Seconds of a clock that only goes forward.
double monitor_now(void);

#endif

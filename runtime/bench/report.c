// Numbers are printed with as many digits as a repetition would give again, and medians always with their quartiles.
#include "bench/report.h"

#include <string.h>

static void size_text(Sizes sizes, char *out, size_t size) {
  snprintf(out, size, "%lldx%lldx%lld", (long long)sizes.m, (long long)sizes.n, (long long)sizes.k);
}

void report_head(FILE *file, const ReportHead *head) {
  fprintf(file, "%s, %d SMs of at most %d MHz", head->gpu, head->sms, head->clock_mhz);
  if (head->power_limit > 0) fprintf(file, ", limited to %.0f W", head->power_limit);
  if (*head->driver) fprintf(file, ", driver %s", head->driver);
  fprintf(file, "\n%s, %s to %s, normal random data (seed %llu)\n", head->product, head->operand,
          head->result, (unsigned long long)head->seed);
  if (*head->peer_path) fprintf(file, "cublasLt %zu: %s\n", head->peer_version, head->peer_path);
  if (!head->measured_clocks) fputs("no NVML here: clocks and power are not known\n", file);
}

static void print_ratio(FILE *file, const Timing *timing) {
  fprintf(file, "  %5.3f (%.3f-%.3f)", timing->ratio.median, timing->ratio.low, timing->ratio.high);
}

static void name_of(const ArmResult *arm, char *out, size_t size) {
  bool more = *arm->detail != '\0';
  snprintf(out, size, "%s%s%s%s", arm->name, more ? " (" : "", arm->detail, more ? ")" : "");
}

// Settings of a tuning make long names.
static int name_width(const Row *row) {
  char name[112];
  int width = 36;
  for (int i = 0; i < row->narms; i++) {
    name_of(&row->arms[i], name, sizeof name);
    if ((int)strlen(name) > width) width = (int)strlen(name);
  }
  return width;
}

static void print_arm(FILE *file, const Row *row, const ArmResult *arm) {
  const Timing *timing = &arm->random;
  char name[112], percent[32] = "";
  name_of(arm, name, sizeof name);
  if (arm->of_peak > 0) snprintf(percent, sizeof percent, "%.0f %%", 100 * arm->of_peak);
  if (arm->of_peak_clock > 0) {
    size_t length = strlen(percent);
    snprintf(percent + length, sizeof percent - length, " / %.0f %%", 100 * arm->of_peak_clock);
  }
  fprintf(file, "  %-*s %9.5f %8.1f %13s", name_width(row), name, 1e3 * timing->seconds.median,
          timing->flops / 1e12, percent);
  if (row->has_peer && !arm->is_peer)
    print_ratio(file, timing);
  else
    fprintf(file, "  %-19s", "");
  if (row->has_zeros) fprintf(file, "  %8.1f", arm->zeros.flops / 1e12);
  if (row->has_zeros && row->has_peer && !arm->is_peer) print_ratio(file, &arm->zeros);
  fputc('\n', file);
}

// Which kernels are behind an algorithm: a name tells tile, stages and cluster.
static void print_peer_nodes(FILE *file, const Row *row) {
  char text[320];
  for (int i = 0; i < row->narms; i++) {
    const GraphNodes *nodes = &row->arms[i].nodes;
    if (!row->arms[i].is_peer || nodes->nkernels == 0) continue;
    for (int k = 0; k < nodes->nkernels; k++) {
      graph_kernel_text(&nodes->kernels[k], text, sizeof text);
      fprintf(file, "  %s: %s\n", k == 0 ? "its kernel" : "and", text);
    }
    graph_others_text(nodes, text, sizeof text);
    if (*text) fprintf(file, "  and in each launch: %s\n", text);
  }
}

void report_row(FILE *file, const Row *row, bool first) {
  char sizes[80], reasons[160];
  size_text(row->sizes, sizes, sizeof sizes);
  if (first)
    fprintf(file, "\n  %-*s %9s %8s %13s  %-19s  %s\n", name_width(row), "", "ms", "TFLOP/s", "of peak (*)",
            "ratio (quartiles)", "zeros: TFLOP/s, ratio");
  fprintf(file, "%s  (%d launches a graph, %d repetitions, %d sets of buffers; largest difference %.1e)\n",
          sizes, row->launches, row->repetitions, row->sets, row->difference);
  for (int i = 0; i < row->narms; i++) print_arm(file, row, &row->arms[i]);
  print_peer_nodes(file, row);
  const MonitorSummary *seen = &row->monitor;
  if (seen->samples == 0) return;
  monitor_reasons(seen->reasons, reasons, sizeof reasons);
  fprintf(file, "  %.0f MHz (%.0f-%.0f), %.0f W, %d C, held back by: %s", seen->sm.median, seen->sm.low,
          seen->sm.high, seen->power.median, seen->hottest, reasons);
  if (row->has_zeros && row->monitor_zeros.samples)
    fprintf(file, "; with zeros %.0f MHz, %.0f W", row->monitor_zeros.sm.median,
            row->monitor_zeros.power.median);
  fputc('\n', file);
}

// ---- JSON

void report_quoted(FILE *file, const char *text) {
  fputc('"', file);
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\')
      fprintf(file, "\\%c", c);
    else if (c < 0x20)
      fprintf(file, "\\u%04x", c);
    else
      fputc(c, file);
  }
  fputc('"', file);
}

static void json_text(FILE *file, const char *key, const char *text) {
  fprintf(file, "\"%s\": ", key);
  report_quoted(file, text);
}

static void json_spread(FILE *file, const char *key, Spread spread) {
  fprintf(file, "\"%s\": [%.9g, %.9g, %.9g]", key, spread.low, spread.median, spread.high);
}

static void json_timing(FILE *file, const char *key, const Timing *timing, bool ratio) {
  fprintf(file, ", \"%s\": {", key);
  json_spread(file, "seconds", timing->seconds);
  if (ratio) fputs(", ", file), json_spread(file, "ratio", timing->ratio);
  fprintf(file, ", \"tflops\": %.6g}", timing->flops / 1e12);
}

static void json_numbers(FILE *file, const char *key, const unsigned *numbers) {
  fprintf(file, ", \"%s\": [%u, %u, %u]", key, numbers[0], numbers[1], numbers[2]);
}

static void json_kernel(FILE *file, const GraphKernel *kernel) {
  fputc('{', file);
  json_text(file, "name", kernel->name);
  json_numbers(file, "grid", kernel->grid);
  json_numbers(file, "block", kernel->block);
  if (kernel->cluster[0]) json_numbers(file, "cluster", kernel->cluster);
  fprintf(file, ", \"shared\": %u, \"each\": %.3g}", kernel->shared_bytes, kernel->each);
}

static void json_nodes(FILE *file, const GraphNodes *nodes) {
  if (nodes->nkernels == 0) return;
  fputs(", \"kernels\": [", file);
  for (int i = 0; i < nodes->nkernels; i++) {
    if (i) fputs(", ", file);
    json_kernel(file, &nodes->kernels[i]);
  }
  fprintf(file, "], \"fills\": %.3g, \"copies\": %.3g, \"others\": %.3g", nodes->fills, nodes->copies,
          nodes->others);
}

static void json_arm(FILE *file, const Row *row, const ArmResult *arm) {
  fputs("      {", file);
  json_text(file, "name", arm->name);
  fprintf(file, ", \"peer\": %s", arm->is_peer ? "true" : "false");
  if (*arm->detail) fputs(", ", file), json_text(file, "detail", arm->detail);
  json_nodes(file, &arm->nodes);
  bool ratio = row->has_peer && !arm->is_peer;
  json_timing(file, "random", &arm->random, ratio);
  if (row->has_zeros) json_timing(file, "zeros", &arm->zeros, ratio);
  if (arm->of_peak > 0) fprintf(file, ", \"of_peak\": %.4g", arm->of_peak);
  if (arm->of_peak_clock > 0) fprintf(file, ", \"of_peak_at_clock\": %.4g", arm->of_peak_clock);
  fputc('}', file);
}

static void json_monitor(FILE *file, const char *key, const MonitorSummary *seen) {
  char reasons[160];
  if (seen->samples == 0) return;
  monitor_reasons(seen->reasons, reasons, sizeof reasons);
  fprintf(file, ",\n     \"%s\": {\"samples\": %d, ", key, seen->samples);
  json_spread(file, "sm_mhz", seen->sm);
  fputs(", ", file);
  json_spread(file, "memory_mhz", seen->memory);
  fputs(", ", file);
  json_spread(file, "watts", seen->power);
  fprintf(file, ", \"celsius\": %d, ", seen->hottest);
  json_text(file, "held_back_by", reasons);
  fputc('}', file);
}

static void json_row(FILE *file, const Row *row) {
  fprintf(file,
          "    {\"m\": %lld, \"n\": %lld, \"k\": %lld, \"launches\": %d, \"repetitions\": %d, \"sets\": %d, "
          "\"difference\": %.3g,\n     \"arms\": [\n",
          (long long)row->sizes.m, (long long)row->sizes.n, (long long)row->sizes.k, row->launches,
          row->repetitions, row->sets, row->difference);
  for (int i = 0; i < row->narms; i++) {
    json_arm(file, row, &row->arms[i]);
    fputs(i + 1 < row->narms ? ",\n" : "]", file);
  }
  json_monitor(file, "gpu", &row->monitor);
  if (row->has_zeros) json_monitor(file, "gpu_zeros", &row->monitor_zeros);
  fputc('}', file);
}

void report_json(FILE *file, const ReportHead *head, const Row *rows, int count) {
  fputs("{\"format\": \"tile-bench 1\",\n ", file);
  json_text(file, "program", head->program);
  fputs(",\n ", file);
  json_text(file, "gpu", head->gpu);
  fprintf(file, ", \"sms\": %d, \"clock_mhz\": %d, \"power_limit\": %.0f, ", head->sms, head->clock_mhz,
          head->power_limit);
  json_text(file, "driver", head->driver);
  fputs(",\n ", file);
  json_text(file, "cublaslt", head->peer_path);
  fprintf(file, ", \"cublaslt_version\": %zu,\n ", head->peer_version);
  json_text(file, "product", head->product);
  fputs(", ", file);
  json_text(file, "operand", head->operand);
  fputs(", ", file);
  json_text(file, "result", head->result);
  fprintf(file, ", \"seed\": %llu,\n \"rows\": [\n", (unsigned long long)head->seed);
  for (int i = 0; i < count; i++) {
    json_row(file, &rows[i]);
    fputs(i + 1 < count ? ",\n" : "\n", file);
  }
  fputs(" ]}\n", file);
}

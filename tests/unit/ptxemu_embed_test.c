// A program that embeds the emulator: it includes ptxemu.h and nothing else of ours. One kernel from memory with its
// result, counts, a breakpoint, a dump, a trace and progress; a hang and what it says; two devices in two threads.
#include <pthread.h>
#include <stdlib.h>

#include "check.h"
#include "emulator/ptxemu.h"

// y[i] = factor * x[i] for 32 threads a CTA; the second entry waits for an mbarrier that nobody arrives at.
static const char code[] = ".version 8.6\n.target sm_100a\n.address_size 64\n"
                           ".visible .entry scale(.param .u64 x, .param .u64 y, .param .u32 factor) {\n"
                           "  .reg .b32 %r<6>; .reg .b64 %d<4>;\n"
                           "  mov.u32 %r1, %tid.x;\n"
                           "  mov.u32 %r2, %ctaid.x;\n"
                           "  mad.lo.u32 %r1, %r2, 32, %r1;\n"
                           "  ld.param.u64 %d1, [x];\n"
                           "  ld.param.u64 %d2, [y];\n"
                           "  ld.param.u32 %r3, [factor];\n"
                           "  mul.wide.u32 %d3, %r1, 4;\n"
                           "  add.u64 %d1, %d1, %d3;\n"
                           "  add.u64 %d2, %d2, %d3;\n"
                           "  ld.global.u32 %r4, [%d1];\n"
                           "  mul.lo.u32 %r4, %r4, %r3;\n"
                           "  st.global.u32 [%d2], %r4;\n"
                           "  ret;\n"
                           "}\n"
                           ".visible .entry forever() {\n"
                           "  .reg .pred p; .reg .b32 a; .shared .align 8 .b64 never;\n"
                           "  mov.u32 a, never;\n"
                           "  mbarrier.init.shared.b64 [a], 1;\n"
                           "AGAIN:\n"
                           "  mbarrier.try_wait.parity.shared.b64 p, [a], 0;\n"
                           "  @!p bra AGAIN;\n"
                           "  ret;\n"
                           "}\n";

enum { CTAS = 5, ELEMENTS = 32 * CTAS };

typedef struct {
  PtxEmu *emu;
  const PtxEmuModule *module;
  uint64_t x, y;
  uint8_t params[24];
  PtxEmuLaunch launch;
} Device;

static bool device_open(Checks *checks, Device *d, uint32_t factor) {
  memset(d, 0, sizeof *d);
  d->emu = ptxemu_new();
  if (!CHECK(checks, d->emu != NULL)) return false;
  d->module = ptxemu_load(d->emu, "scale.ptx", code, sizeof code - 1);
  if (!CHECK(checks, d->module != NULL)) return false;
  d->x = ptxemu_alloc(d->emu, 4 * ELEMENTS, "x");
  d->y = ptxemu_alloc(d->emu, 4 * ELEMENTS, "y");
  uint32_t data[ELEMENTS];
  for (uint32_t i = 0; i < ELEMENTS; i++) data[i] = i;
  CHECK(checks, ptxemu_write(d->emu, d->x, data, sizeof data));
  const PtxEmuEntry *entry = ptxemu_entry(d->module, "scale");
  if (!CHECK(checks, entry != NULL) || !CHECK_INT(checks, entry->nparams, 3)) return false;
  memcpy(d->params + entry->params[0].offset, &d->x, 8);
  memcpy(d->params + entry->params[1].offset, &d->y, 8);
  memcpy(d->params + entry->params[2].offset, &factor, 4);
  d->launch = (PtxEmuLaunch){
      .grid = {CTAS, 1, 1}, .block = {32, 1, 1}, .params = d->params, .param_bytes = entry->param_bytes};
  return true;
}

static bool result_is(const Device *d, uint32_t factor) {
  uint32_t data[ELEMENTS];
  bool same = ptxemu_read(d->emu, d->y, data, sizeof data);
  for (uint32_t i = 0; i < ELEMENTS; i++) same &= data[i] == factor * i;
  return same;
}

static void test_run(Checks *checks) {
  Device d;
  if (!device_open(checks, &d, 3)) return;
  PtxEmuStats stats;
  CHECK_INT(checks, ptxemu_launch(d.emu, d.module, "scale", &d.launch, &stats), PTXEMU_OK);
  CHECK(checks, result_is(&d, 3));
  CHECK_INT(checks, stats.ctas, CTAS);
  CHECK_INT(checks, stats.instructions, 13 * CTAS);
  CHECK_INT(checks, stats.lanes, 13 * CTAS * 32);
  size_t length = 1;
  CHECK_TEXT(checks, ptxemu_report(d.emu), "");
  CHECK_TEXT(checks, ptxemu_stats(d.emu), "");
  CHECK_TEXT(checks, ptxemu_dump(d.emu), "");
  CHECK_TEXT(checks, ptxemu_trace(d.emu, &length, NULL), "");
  CHECK_INT(checks, length, 0);
  CHECK_INT(checks, ptxemu_launch(d.emu, d.module, "absent", &d.launch, NULL), PTXEMU_USAGE);
  CHECK_TEXT(checks, ptxemu_report(d.emu), "the module has no entry 'absent'");
  CHECK(checks, ptxemu_load(d.emu, "bad.ptx", "entry", 5) == NULL);
  CHECK(checks, strncmp(ptxemu_report(d.emu), "bad.ptx:1: ", 11) == 0);
  CHECK(checks, !ptxemu_read(d.emu, d.y, d.params, 4 * ELEMENTS + 1));
  ptxemu_free(d.emu);
}

static void count_calls(void *user, uint64_t ctas_done, uint64_t instructions) {
  uint64_t *seen = user;
  seen[0]++;
  seen[1] = ctas_done > seen[1] ? ctas_done : seen[1];
  seen[2] = instructions > seen[2] ? instructions : seen[2];
}

// Watching changes no result; a stopped launch can be followed by another.
static void test_watch(Checks *checks) {
  Device d;
  if (!device_open(checks, &d, 5)) return;
  const char *ranges[] = {"global:x+4+4:i32"};
  uint64_t seen[3] = {0, 0, 0};
  size_t length;
  uint64_t cut;
  d.launch.watch = (PtxEmuWatch){.stats = true,
                                 .trace_events = 1000,
                                 .dump = ranges,
                                 .ndumps = 1,
                                 .progress = count_calls,
                                 .user = seen};
  CHECK_INT(checks, ptxemu_launch(d.emu, d.module, "scale", &d.launch, NULL), PTXEMU_OK);
  CHECK(checks, result_is(&d, 5));
  CHECK(checks, seen[0] > 0 && seen[1] <= CTAS && seen[2] <= 13 * CTAS);
  CHECK(checks, strstr(ptxemu_stats(d.emu), "5 CTAs, 65 warp instructions, 32.0 lanes in each\n") != NULL);
  CHECK(checks, strstr(ptxemu_dump(d.emu), ": 1\n") != NULL);
  const char *trace = ptxemu_trace(d.emu, &length, &cut);
  CHECK_INT(checks, length, strlen(trace));
  CHECK_INT(checks, cut, 0);
  CHECK(checks, length > 100 && trace[0] == '{' && strcmp(trace + length - 3, "}}\n") == 0);
  d.launch.watch = (PtxEmuWatch){.stop_at = "17"};
  CHECK_INT(checks, ptxemu_launch(d.emu, d.module, "scale", &d.launch, NULL), PTXEMU_STOPPED);
  CHECK(checks,
        strstr(ptxemu_report(d.emu), "scale.ptx:17: reached, after 11 instructions") == ptxemu_report(d.emu));
  CHECK(checks, strstr(ptxemu_report(d.emu), "%r3 0x5\n") != NULL);
  CHECK(checks, strstr(ptxemu_report(d.emu), "%r4 by lane: 0x0 0x5 0xa") != NULL);
  d.launch.watch = (PtxEmuWatch){.stop_at = "x"};
  CHECK_INT(checks, ptxemu_launch(d.emu, d.module, "scale", &d.launch, NULL), PTXEMU_USAGE);
  d.launch.watch = (PtxEmuWatch){0};
  CHECK_INT(checks, ptxemu_launch(d.emu, d.module, "scale", &d.launch, NULL), PTXEMU_OK);
  ptxemu_free(d.emu);
}

static void test_hang(Checks *checks) {
  Device d;
  if (!device_open(checks, &d, 1)) return;
  PtxEmuLaunch launch = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
  CHECK_INT(checks, ptxemu_launch(d.emu, d.module, "forever", &launch, NULL), PTXEMU_HANG);
  CHECK(checks, strstr(ptxemu_report(d.emu), "waits for mbarrier never+0, phase with parity 0") != NULL);
  CHECK(checks, strstr(ptxemu_report(d.emu), "1 of 1 arrivals missing") != NULL);
  CHECK_INT(checks, ptxemu_launch(d.emu, d.module, "scale", &d.launch, NULL), PTXEMU_OK);
  CHECK(checks, result_is(&d, 1));
  ptxemu_free(d.emu);
}

typedef struct {
  pthread_t thread;
  uint32_t factor;
  Checks checks;
} Client;

enum { ROUNDS = 50 };

static void *client_main(void *argument) {
  Client *client = argument;
  Device d;
  if (!device_open(&client->checks, &d, client->factor)) return NULL;
  for (int i = 0; i < ROUNDS; i++) {
    CHECK_INT(&client->checks, ptxemu_launch(d.emu, d.module, "scale", &d.launch, NULL), PTXEMU_OK);
    CHECK(&client->checks, result_is(&d, client->factor));
  }
  ptxemu_free(d.emu);
  return NULL;
}

static void test_threads(Checks *checks) {
  Client clients[2] = {{.factor = 7}, {.factor = 11}};
  for (int i = 0; i < 2; i++)
    if (!CHECK(checks, pthread_create(&clients[i].thread, NULL, client_main, &clients[i]) == 0)) return;
  for (int i = 0; i < 2; i++) {
    pthread_join(clients[i].thread, NULL);
    checks->done += clients[i].checks.done;
    checks->failed += clients[i].checks.failed;
  }
}

int main(void) {
  Checks checks = {0, 0};
  test_run(&checks);
  test_watch(&checks);
  test_hang(&checks);
  test_threads(&checks);
  return check_report(&checks);
}

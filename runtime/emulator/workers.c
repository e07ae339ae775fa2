// A worker is a Machine of its own on a thread of its own: worker w runs clusters w, w + n, w + 2n, … in that
// order, in an arena of its own. After a fault the others finish what comes before it in the grid, so that
// the fault reported is always the first.
#include "workers.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "async/engine.h"
#include "check/observer.h"
#include "exec/exec.h"
#include "exec/report.h"
#include "trace/stats.h"
#include "trace/trace.h"

enum { MOST_WORKERS = 64 };

typedef struct {
  pthread_t thread;
  Arena *arena;
  Machine *machine;
  Gmem *gmem;
  const Launch *launch;
  uint32_t checks, index, count;
  Progress *progress;
  atomic_uint *first_fault;
  bool out_of_memory;
} Worker;

// ---- what clusters may share

static bool own_memory(const Inst *inst) {
  Space space = inst_space(inst, 0);
  return space == SPACE_SHARED || space == SPACE_SHARED_CLUSTER || space == SPACE_LOCAL ||
         space == SPACE_PARAM;
}

static bool is_ordered(const Inst *inst) {
  return inst_has(inst, MOD_volatile) || inst_has(inst, MOD_relaxed) || inst_has(inst, MOD_acquire) ||
         inst_has(inst, MOD_release) || inst_has(inst, MOD_mmio);
}

static bool shares(const Inst *inst) {
  if (inst->def == NULL) return false;
  const char *name = inst->def->name;
  if (strcmp(name, "atom") == 0 || strcmp(name, "red") == 0) return !own_memory(inst);
  if (strcmp(name, "ld") == 0 || strcmp(name, "st") == 0) return is_ordered(inst) && !own_memory(inst);
  return strcmp(name, "call") == 0 || strncmp(name, "cp.reduce", 9) == 0 ||
         strncmp(name, "multimem", 8) == 0 || strncmp(name, "clusterlaunchcontrol", 20) == 0 ||
         strncmp(name, "tensormap", 9) == 0;
}

static bool launch_shares(const Launch *launch) {
  const Function *entry = launch->entry;
  for (uint32_t i = 0; i < entry->count; i++) {
    if (shares(&launch->module->insts[entry->first + i])) return true;
  }
  return false;
}

static uint32_t core_count(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  int count = CPU_COUNT(&set);
  return count < 1 ? 1 : (uint32_t)count;
}

static uint32_t worker_count(const Launch *launch, uint32_t checks, uint32_t wanted) {
  uint64_t clusters = 1;
  for (int i = 0; i < 3; i++) clusters *= launch->grid[i] / launch->cluster[i];
  if (launch->max_resident_ctas > 0 || launch->max_steps > 0 || launch_shares(launch) ||
      checks_compare_clusters(checks) || trace_needs_one_worker(&launch->watch))
    return 1;
  uint32_t count = wanted > 0 ? wanted : core_count();
  if (count > MOST_WORKERS) count = MOST_WORKERS;
  return count > clusters ? (uint32_t)clusters : count;
}

// ---- one worker

static void work(Worker *worker) {
  jmp_buf handler;
  arena_on_out_of_memory(worker->arena, &handler);
  if (setjmp(handler) != 0) {
    worker->out_of_memory = true;
    return;
  }
  Machine *m = worker->machine = ARENA_NEW(worker->arena, Machine);
  m->launch = worker->launch;
  m->module = worker->launch->module;
  m->gmem = worker->gmem;
  m->arena = worker->arena;
  m->checks = worker->checks;
  m->uninit_poison = m->checks >> CHECK_UNINIT & 1;
  m->next_cluster = worker->index;
  m->cluster_step = worker->count;
  m->first_fault = worker->first_fault;
  m->findings = ARENA_NEW(worker->arena, Findings);
  m->observers = ARENA_NEW(worker->arena, Observers);
  m->log = ARENA_NEW(worker->arena, TextBuf);
  m->log->arena = worker->arena;
  m->progress_of_all = worker->launch->watch.progress != NULL ? worker->progress : NULL;
  m->first_worker = worker->index == 0;
  if (!engine_begin(m)) {
    worker->out_of_memory = true;
    return;
  }
  checks_begin(m);
  trace_begin(m);
  launch_run(m);
  observers_end(m);
  engine_end(m);
}

static void *thread_main(void *argument) {
  work(argument);
  return NULL;
}

// The first worker runs on the caller's thread; a thread that can't be made is run there too, afterwards.
static void run_all(Worker *workers, uint32_t count) {
  bool started[MOST_WORKERS] = {false};
  for (uint32_t i = 1; i < count; i++)
    started[i] = pthread_create(&workers[i].thread, NULL, thread_main, &workers[i]) == 0;
  work(&workers[0]);
  for (uint32_t i = 1; i < count; i++) {
    if (started[i]) {
      pthread_join(workers[i].thread, NULL);
    } else {
      work(&workers[i]);
    }
  }
}

// ---- outcome

static void merge_watch(Arena *arena, const Machine *m, Counters *counters, LaunchOutcome *outcome) {
  if (m->counters != NULL) counters_add(counters, m->counters);
  if (m->trace != NULL && m->trace->len > 0) {
    outcome->trace = text_copy(arena, m->trace->data, m->trace->len);
    outcome->trace_bytes = m->trace->len;
    outcome->trace_cut = m->trace_cut;
  }
  if (m->dump != NULL && m->dump->len > 0)
    outcome->dump = text_printf(arena, "%s%s", outcome->dump != NULL ? outcome->dump : "", m->dump->data);
}

static void merge(Arena *arena, Worker *worker, Findings *findings, Counters *counters,
                  LaunchOutcome *outcome, uint32_t *fault_cluster) {
  Machine *m = worker->machine;
  outcome->out_of_memory |= worker->out_of_memory;
  if (m == NULL) return;
  outcome->steps += m->steps;
  outcome->lane_steps += m->lane_steps;
  merge_watch(arena, m, counters, outcome);
  if (m->fault.happened && m->fault.cluster < *fault_cluster) {
    *fault_cluster = m->fault.cluster;
    outcome->fault = m->fault;
    outcome->fault.text = text_copy(arena, m->fault.text, strlen(m->fault.text));
  }
  if (m->findings != NULL) findings_merge(arena, findings, m->findings);
  if (m->log != NULL && m->log->len > 0) outcome->output = text_copy(arena, m->log->data, m->log->len);
}

LaunchOutcome launch_on_workers(Arena *arena, Gmem *gmem, const Launch *launch, uint32_t checks,
                                uint32_t wanted) {
  LaunchOutcome outcome = {.output = ""};
  Worker workers[MOST_WORKERS];
  atomic_uint first_fault = 0xffffffffu;
  Progress progress = {0, 0};
  Counters counters = {0};
  uint32_t count = worker_count(launch, checks, wanted), made = 0, fault_cluster = 0xffffffffu;
  memset(workers, 0, sizeof workers);
  for (; made < count; made++) {
    Worker *w = &workers[made];
    *w = (Worker){.gmem = gmem, .launch = launch, .checks = checks, .index = made, .count = count};
    w->first_fault = &first_fault;
    w->progress = &progress;
    w->arena = arena_new();
    if (w->arena == NULL) break;
  }
  outcome.out_of_memory = made < count;
  if (made == count) run_all(workers, count);
  Findings *findings = ARENA_NEW(arena, Findings);
  for (uint32_t i = 0; i < made; i++)
    merge(arena, &workers[i], findings, &counters, &outcome, &fault_cluster);
  outcome.findings = findings_text(arena, findings);
  if (launch->watch.stats) {
    uint64_t ctas = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    outcome.stats = counters_text(arena, &counters, ctas, outcome.steps, outcome.lane_steps);
  }
  for (uint32_t i = 0; i < made; i++) arena_free(workers[i].arena);
  return outcome;
}

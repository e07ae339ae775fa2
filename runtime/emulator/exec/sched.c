// Which cluster and warp runs when. Clusters run one after another, or up to --sms CTAs side by side; within
// a cluster warps take turns in slices. When every warp waits, engines are asked to finish something; when
// there is nothing to finish, another cluster is admitted (it may be the one that a flag in global memory is
// waited for), and when there is none, that is a deadlock.
#include "exec/exec.h"

#include <stdlib.h>
#include <string.h>

#include "async/engine.h"

enum {
  SLICE = 512,      // instructions of a warp before the next has its turn
  PATIENCE = 4,     // quiet rounds before an engine is pushed on
  LIVELOCK = 4000,  // quiet rounds before it is a hang
};
#define NO_PROGRESS_STEPS 300000000u  // instructions without any store, barrier or completed operation

static uint64_t next_random(Cluster *cluster) {
  uint64_t x = cluster->rng += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

// ---- clusters

static void cta_free(Cta *cta) {
  for (int w = 0; cta->warps != NULL && w < cta->nwarps; w++) warp_end(&cta->warps[w]);
  free(cta->warps);
  free(cta->smem);
}

static void cluster_free(Cluster *cluster) {
  for (int i = 0; i < cluster->nctas; i++) cta_free(&cluster->ctas[i]);
  free(cluster->ctas);
  free(cluster);
}

static uint32_t shared_bytes(const Launch *launch) {
  uint64_t end = SHARED_FIRST + launch->module->shared_bytes + launch->entry->shared_bytes;
  uint32_t align = launch->entry->shared_align;
  if (launch->dynamic_shared > 0) end = (end + align - 1) / align * align;
  return (uint32_t)(end + launch->dynamic_shared);
}

// A NaN in every float format, a huge integer, no live mbarrier.
static void poison(Cta *cta) {
  static const uint8_t pattern[4] = {0xAD, 0xFB, 0xFF, 0x7F};
  for (uint32_t i = SHARED_FIRST; i < cta->smem_bytes; i++) cta->smem[i] = pattern[i % 4];
}

static bool cta_begin(Machine *machine, Cluster *cluster, Cta *cta, uint32_t rank) {
  const Launch *launch = machine->launch;
  const uint32_t *shape = launch->cluster;
  uint32_t within[3] = {rank % shape[0], rank / shape[0] % shape[1], rank / shape[0] / shape[1]};
  cta->cluster = cluster;
  cta->rank = rank;
  for (int axis = 0; axis < 3; axis++) cta->id[axis] = cluster->id[axis] * shape[axis] + within[axis];
  cta->linear = cta->id[0] + launch->grid[0] * (cta->id[1] + launch->grid[1] * cta->id[2]);
  cta->smem_bytes = shared_bytes(launch);
  cta->smem = calloc(1, cta->smem_bytes);
  cta->local_bytes =
      launch->entry->local_bytes + (launch->entry->calls ? launch->module->func_local_bytes : 0);
  uint32_t threads = launch->block[0] * launch->block[1] * launch->block[2];
  cta->nwarps = cta->live_warps = (int)((threads + WARP_LANES - 1) / WARP_LANES);
  cta->warps = calloc((size_t)cta->nwarps, sizeof *cta->warps);
  cluster->threads += threads;
  if (cta->smem == NULL || cta->warps == NULL) return false;
  if (machine->uninit_poison) poison(cta);
  for (int w = 0; w < cta->nwarps; w++) {
    if (!warp_begin(machine, cta, &cta->warps[w], w)) return false;
  }
  return engine_cta_begin(machine, cta);
}

static Cluster *cluster_new(Machine *machine, uint32_t index) {
  const Launch *launch = machine->launch;
  Cluster *cluster = calloc(1, sizeof *cluster);
  if (cluster == NULL) return NULL;
  uint32_t nx = launch->grid[0] / launch->cluster[0], ny = launch->grid[1] / launch->cluster[1];
  cluster->nctas = (int)(launch->cluster[0] * launch->cluster[1] * launch->cluster[2]);
  cluster->ctas = calloc((size_t)cluster->nctas, sizeof *cluster->ctas);
  if (cluster->ctas == NULL) {
    free(cluster);
    return NULL;
  }
  cluster->linear = index;
  cluster->id[0] = index % nx;
  cluster->id[1] = index / nx % ny;
  cluster->id[2] = index / nx / ny;
  cluster->rng = launch->seed * 0x2545f4914f6cdd1du + index;
  for (int i = 0; i < cluster->nctas; i++) {
    if (!cta_begin(machine, cluster, &cluster->ctas[i], (uint32_t)i)) {
      if (!machine->fault.happened) machine_fault(machine, NULL, -1, "no memory for a CTA");
      cluster_free(cluster);
      return NULL;
    }
  }
  return cluster;
}

static uint32_t cluster_count(const Launch *launch) {
  return launch->grid[0] / launch->cluster[0] * (launch->grid[1] / launch->cluster[1]) *
         (launch->grid[2] / launch->cluster[2]);
}

// Starts the next cluster of the grid. false: there is none left (or a fault).
static bool admit(Machine *machine) {
  if (machine->next_cluster >= cluster_count(machine->launch)) return false;
  if (machine->next_cluster > atomic_load(machine->first_fault)) return false;
  machine->running = machine->next_cluster;
  Cluster *cluster = cluster_new(machine, machine->next_cluster);
  if (cluster == NULL) {
    if (!machine->fault.happened) machine_fault(machine, NULL, -1, "no memory for a cluster");
    return false;
  }
  Cluster **grown = realloc(machine->clusters, ((size_t)machine->nclusters + 1) * sizeof(Cluster *));
  if (grown == NULL) {
    machine_fault(machine, NULL, -1, "no memory for a cluster");
    cluster_free(cluster);
    return false;
  }
  machine->clusters = grown;
  machine->clusters[machine->nclusters++] = cluster;
  machine->next_cluster += machine->cluster_step;
  for (int i = 0; i < cluster->nctas; i++) {
    if (machine->event_mask >> EVENT_CTA_BEGIN & 1) {
      machine_emit(machine, &(Event){.kind = EVENT_CTA_BEGIN, .cta = &cluster->ctas[i]});
    }
  }
  return true;
}

static bool finish_ctas(Machine *machine, Cluster *cluster) {
  cluster->ended = true;
  for (int i = 0; i < cluster->nctas; i++) {
    Cta *cta = &cluster->ctas[i];
    if (cta->live_warps > 0) {
      cluster->ended = false;
      continue;
    }
    if (cta->ended) continue;
    if (!engine_cta_end(machine, cta)) return false;
    cta->ended = true;
    machine->progress++;
    if (machine->progress_of_all != NULL) atomic_fetch_add(&machine->progress_of_all->ctas, 1);
    if (machine->event_mask >> EVENT_CTA_END & 1) {
      machine_emit(machine, &(Event){.kind = EVENT_CTA_END, .cta = cta});
    }
  }
  return true;
}

static void retire(Machine *machine) {
  int kept = 0;
  for (int i = 0; i < machine->nclusters; i++) {
    if (machine->clusters[i]->ended) {
      engine_cluster_end(machine, machine->clusters[i]);
      cluster_free(machine->clusters[i]);
    } else {
      machine->clusters[kept++] = machine->clusters[i];
    }
  }
  machine->nclusters = kept;
}

// ---- rounds

typedef enum { ROUND_FAULT, ROUND_STUCK, ROUND_QUIET, ROUND_RAN } Round;

// One turn for each warp. A round is quiet when all that ran were polls, without progress anywhere.
static Round run_round(Machine *machine, Cluster *cluster) {
  bool ran_any = false, computed = false, random = machine->launch->order == ORDER_RANDOM;
  uint64_t before = machine->progress;
  for (int c = 0; c < cluster->nctas; c++) {
    Cta *cta = &cluster->ctas[c];
    int start = random ? (int)(next_random(cluster) % (uint64_t)cta->nwarps) : 0;
    for (int k = 0; k < cta->nwarps; k++) {
      Warp *warp = &cta->warps[(start + k) % cta->nwarps];
      if (warp->live == 0) continue;
      bool ran = false;
      int budget = random ? 1 + (int)(next_random(cluster) % 64) : SLICE;
      if (!warp_slice(machine, warp, budget, &ran)) return ROUND_FAULT;
      ran_any |= ran;
      computed |= ran && warp->unpolled > SLICE;
    }
  }
  if (!engine_step(machine, cluster) || !finish_ctas(machine, cluster)) return ROUND_FAULT;
  if (machine->progress != before || computed) return ROUND_RAN;
  return ran_any ? ROUND_QUIET : ROUND_STUCK;
}

static bool over_limit(Machine *machine) {
  if (machine->progress != machine->last_progress) {
    machine->last_progress = machine->progress;
    machine->progress_step = machine->steps;
  }
  uint64_t limit = machine->launch->max_steps;
  if (limit > 0 && machine->steps > limit) {
    machine_fault(machine, NULL, -1, "the step limit of %llu instructions is reached",
                  (unsigned long long)limit);
    machine->fault.hang = true;
    return true;
  }
  if (machine->steps - machine->progress_step < NO_PROGRESS_STEPS) return false;
  hang_report(machine, true);
  return true;
}

// Nothing but an engine can help this cluster. *helped: one did.
static bool push_engine(Machine *machine, Cluster *cluster, bool *helped) {
  bool any = false;
  if (!engine_idle(machine, cluster, &any)) return false;
  if (any) cluster->quiet_rounds = 0;
  *helped |= any;
  return true;
}

// One round for every resident cluster. *alive: some cluster got on or may still.
static bool run_clusters(Machine *machine, bool *alive) {
  for (int i = 0; i < machine->nclusters; i++) {
    Cluster *cluster = machine->clusters[i];
    machine->running = cluster->linear;
    switch (run_round(machine, cluster)) {
    case ROUND_FAULT:
      return false;
    case ROUND_RAN:
      cluster->quiet_rounds = 0;
      *alive = true;
      break;
    case ROUND_QUIET:
      if (++cluster->quiet_rounds % PATIENCE == 0 && !push_engine(machine, cluster, alive)) return false;
      if (cluster->quiet_rounds < PATIENCE) *alive = true;
      break;
    case ROUND_STUCK:
      cluster->quiet_rounds = 0;
      if (cluster->ended) {
        *alive = true;
      } else if (!push_engine(machine, cluster, alive)) {
        return false;
      }
      break;
    }
  }
  return true;
}

static bool only_polling(const Machine *machine) {
  for (int i = 0; i < machine->nclusters; i++) {
    uint64_t quiet = machine->clusters[i]->quiet_rounds;
    if (quiet > 0 && quiet < LIVELOCK) return true;
  }
  return false;
}

static bool any_quiet(const Machine *machine) {
  for (int i = 0; i < machine->nclusters; i++) {
    if (machine->clusters[i]->quiet_rounds > 0) return true;
  }
  return false;
}

enum { MOST_WAKES = 100000 };

// try_wait may return false at any time. A program may count on that: it tries the next barrier first and releases the last one
// afterwards. So before it is called a deadlock, each try_wait fails once. false: that has been tried since anything moved, or
// nobody is at a try_wait.
static bool time_out(Machine *machine) {
  if (machine->wakes > 0 && (machine->progress == machine->wake_progress || machine->wakes > MOST_WAKES))
    return false;
  bool any = false;
  for (int i = 0; i < machine->nclusters; i++) {
    Cluster *cluster = machine->clusters[i];
    for (int w = 0; w < cluster->nctas * cluster->ctas[0].nwarps; w++) {
      Warp *warp = &cluster->ctas[w / cluster->ctas[0].nwarps].warps[w % cluster->ctas[0].nwarps];
      for (int g = 0; warp->live != 0 && g < warp->ngroups; g++) {
        if (warp->groups[g].wait.kind != WAIT_MBARRIER) continue;
        warp->groups[g].wait.timed_out = any = true;
      }
    }
  }
  machine->wakes++;
  machine->wake_progress = machine->progress;
  return any;
}

static bool has_room(const Machine *machine) {
  uint32_t size = machine->launch->cluster[0] * machine->launch->cluster[1] * machine->launch->cluster[2];
  return machine->nclusters == 0 ||
         ((uint32_t)machine->nclusters + 1) * size <= machine->launch->max_resident_ctas;
}

enum { ROUNDS_A_REPORT = 64 };

// Adds what this worker has done since `*told`; the launching thread's worker calls back.
static void tell_progress(Machine *machine, uint64_t *told) {
  const Watch *watch = &machine->launch->watch;
  Progress *all = machine->progress_of_all;
  uint64_t steps = atomic_fetch_add(&all->steps, machine->steps - *told) + machine->steps - *told;
  *told = machine->steps;
  if (machine->first_worker) watch->progress(watch->progress_user, atomic_load(&all->ctas), steps);
}

void launch_run(Machine *machine) {
  uint64_t told = 0;
  for (uint64_t round = 0;; round++) {
    if (machine->progress_of_all != NULL && round % ROUNDS_A_REPORT == 0) tell_progress(machine, &told);
    while (has_room(machine) && admit(machine)) {
    }
    if (machine->fault.happened || machine->nclusters == 0) break;
    bool alive = false;
    if (!run_clusters(machine, &alive) || over_limit(machine)) break;
    retire(machine);
    if (alive || (machine->nclusters == 0)) continue;
    if (admit(machine) || only_polling(machine) || time_out(machine)) continue;
    if (!machine->fault.happened) hang_report(machine, any_quiet(machine));
    break;
  }
  unsigned first = atomic_load(machine->first_fault), mine = machine->fault.cluster;
  while (machine->fault.happened && mine < first &&
         !atomic_compare_exchange_weak(machine->first_fault, &first, mine)) {
  }
  if (machine->fault.happened && machine->event_mask >> EVENT_STOP & 1) {
    machine_emit(machine, &(Event){.kind = EVENT_STOP});
  }
  for (int i = 0; i < machine->nclusters; i++) cluster_free(machine->clusters[i]);
  free(machine->clusters);
  machine->clusters = NULL;
  machine->nclusters = 0;
}

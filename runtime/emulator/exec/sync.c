// Barriers of the CTA and of the cluster, warp barriers, fences. Named barriers count warps: the lanes of a
// warp that have not exited meet first and then count as 32 threads, as on hardware. Fences order nothing
// here, since memory is always up to date.
#include "exec/exec.h"

#include "async/engine.h"

// ---- named barriers

static void complete(Machine *machine, NamedBarrier *barrier) {
  barrier->generation++;
  barrier->arrived = 0;
  barrier->expected = 0;
  barrier->whole_cta = false;
  barrier->result_and = barrier->votes_and;
  barrier->result_or = barrier->votes_or;
  barrier->result_popc = barrier->votes_popc;
  barrier->votes_and = 1;
  barrier->votes_or = barrier->votes_popc = 0;
  machine->progress++;
}

static bool barrier_ready(Machine *machine, Warp *warp, const Wait *wait) {
  (void)machine;
  return warp->cta->barriers[wait->number].generation != wait->count;
}

// One warp arrives with `threads` expected in all (0: every live warp of the CTA). Returns false when the
// counts disagree.
static bool arrive(Cta *cta, uint32_t id, uint32_t threads) {
  NamedBarrier *barrier = &cta->barriers[id];
  if (barrier->arrived == 0) {
    barrier->expected = threads;
    barrier->whole_cta = threads == 0;
    barrier->votes_and = 1;
    barrier->votes_or = barrier->votes_popc = 0;
  } else if (barrier->expected != threads) {
    return false;
  }
  barrier->arrived += WARP_LANES;
  return true;
}

static void complete_if_full(Machine *machine, Cta *cta, uint32_t id) {
  NamedBarrier *barrier = &cta->barriers[id];
  uint32_t expected = barrier->whole_cta ? (uint32_t)cta->live_warps * WARP_LANES : barrier->expected;
  if (barrier->arrived > 0 && barrier->arrived >= expected) complete(machine, barrier);
}

static void vote(NamedBarrier *barrier, uint32_t lanes, uint32_t mask) {
  barrier->votes_and &= (mask & lanes) == lanes;
  barrier->votes_or |= (mask & lanes) != 0;
  barrier->votes_popc += (uint32_t)__builtin_popcount(mask & lanes);
}

typedef struct {
  uint32_t id, threads;
} BarrierArgs;

static bool barrier_args(Machine *machine, Warp *warp, const Inst *inst, int id_at, int count_at,
                         uint32_t lanes, BarrierArgs *args) {
  int lane = first_lane(lanes);
  args->id = inst->nops > id_at ? (uint32_t)op_get(warp, &inst->ops[id_at], lane) : 0;
  args->threads = inst->nops > count_at ? (uint32_t)op_get(warp, &inst->ops[count_at], lane) : 0;
  if (args->id >= NAMED_BARRIERS) {
    machine_fault(machine, warp, lane, "barrier %u: there are %d", args->id, NAMED_BARRIERS);
    return false;
  }
  if (args->threads % WARP_LANES != 0) {
    machine_fault(machine, warp, lane, "barrier %u for %u threads: the count must be a multiple of 32",
                  args->id, args->threads);
    return false;
  }
  return true;
}

static ExecResult mismatch(Machine *machine, Warp *warp, const BarrierArgs *args) {
  const NamedBarrier *barrier = &warp->cta->barriers[args->id];
  return machine_fault(machine, warp, -1,
                       "barrier %u is used with %u threads while others wait there with %u (0: all)",
                       args->id, args->threads, barrier->expected);
}

static bool is_resumed(const Warp *warp) {
  return warp->groups[warp->current].resumed;
}

static ExecResult wait_barrier(Machine *machine, Warp *warp, uint32_t lanes, uint32_t id,
                               uint32_t generation) {
  Wait wait = {.kind = WAIT_BARRIER, .ready = barrier_ready, .what = "bar.sync", .cta = warp->cta};
  wait.number = id;
  wait.count = generation;
  return warp_block(machine, warp, lanes, 0, &wait);
}

static ExecResult exec_bar_sync(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  if (is_resumed(warp)) {
    machine_event(machine, EVENT_BARRIER, warp, lanes, SPACE_GENERIC, warp->groups[warp->current].wait.number,
                  0);
    return EXEC_NEXT;
  }
  if (!warp_meet(machine, warp, lanes, 0xffffffffu)) return EXEC_BLOCK;
  BarrierArgs args;
  if (!barrier_args(machine, warp, inst, 0, 1, lanes, &args)) return EXEC_FAULT;
  uint32_t generation = warp->cta->barriers[args.id].generation;
  machine_event(machine, EVENT_ARRIVE, warp, lanes, SPACE_GENERIC, args.id, args.threads);
  if (!arrive(warp->cta, args.id, args.threads)) return mismatch(machine, warp, &args);
  complete_if_full(machine, warp->cta, args.id);
  if (warp->cta->barriers[args.id].generation != generation) {
    machine_event(machine, EVENT_BARRIER, warp, lanes, SPACE_GENERIC, args.id, args.threads);
    return EXEC_NEXT;
  }
  return wait_barrier(machine, warp, lanes, args.id, generation);
}

static ExecResult exec_bar_arrive(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  if (!warp_meet(machine, warp, lanes, 0xffffffffu)) return EXEC_BLOCK;
  BarrierArgs args;
  if (!barrier_args(machine, warp, inst, 0, 1, lanes, &args)) return EXEC_FAULT;
  if (args.threads == 0) return machine_fault(machine, warp, -1, "an arrival needs the number of threads");
  machine_event(machine, EVENT_ARRIVE, warp, lanes, SPACE_GENERIC, args.id, args.threads);
  if (!arrive(warp->cta, args.id, args.threads)) return mismatch(machine, warp, &args);
  complete_if_full(machine, warp->cta, args.id);
  return EXEC_NEXT;
}

// bar.red.popc.u32 d, id{, n}, p;  bar.red.and.pred p, id{, n}, q
static ExecResult red_result(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes, uint32_t id) {
  const NamedBarrier *barrier = &warp->cta->barriers[id];
  machine_event(machine, EVENT_BARRIER, warp, lanes, SPACE_GENERIC, id, 0);
  if (inst_has(inst, MOD_popc)) {
    FOR_LANES(lane, lanes) op_set(warp, &inst->ops[0], (int)lane, barrier->result_popc);
  } else {
    uint32_t value = inst_has(inst, MOD_and) ? barrier->result_and : barrier->result_or;
    op_set_pred(warp, &inst->ops[0], lanes, value != 0 ? 0xffffffffu : 0);
  }
  return EXEC_NEXT;
}

static ExecResult exec_bar_red(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  int last = inst->nops - 1;
  BarrierArgs args;
  if (!barrier_args(machine, warp, inst, 1, last > 2 ? 2 : 99, lanes, &args)) return EXEC_FAULT;
  if (is_resumed(warp)) return red_result(machine, warp, inst, lanes, args.id);
  if (!warp_meet(machine, warp, lanes, 0xffffffffu)) return EXEC_BLOCK;
  NamedBarrier *barrier = &warp->cta->barriers[args.id];
  uint32_t generation = barrier->generation;
  machine_event(machine, EVENT_ARRIVE, warp, lanes, SPACE_GENERIC, args.id, args.threads);
  if (!arrive(warp->cta, args.id, args.threads)) return mismatch(machine, warp, &args);
  vote(barrier, lanes, row_pred(warp, &inst->ops[last]));
  complete_if_full(machine, warp->cta, args.id);
  if (barrier->generation != generation) return red_result(machine, warp, inst, lanes, args.id);
  return wait_barrier(machine, warp, lanes, args.id, generation);
}

static ExecResult exec_bar_warp(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes);

static bool waits_for(const Machine *machine, const LaneGroup *group, uint32_t members) {
  bool here = group->wait.kind == WAIT_LANES && machine->module->insts[group->pc].exec == exec_bar_warp;
  return here && group->wait.lanes == members;
}

// Lanes of a mask may stand at different bar.warp.sync instructions: when the last one comes, all of them
// pass.
static bool release_elsewhere(const Machine *machine, Warp *warp, uint32_t lanes, uint32_t members) {
  uint32_t waiting = lanes;
  for (int i = 0; i < warp->ngroups; i++) {
    if (waits_for(machine, &warp->groups[i], members)) waiting |= warp->groups[i].lanes;
  }
  if ((members & warp->live & ~waiting) != 0) return false;
  for (int i = 0; i < warp->ngroups; i++) {
    LaneGroup *g = &warp->groups[i];
    if (i == warp->current || !waits_for(machine, g, members)) continue;
    g->wait = (Wait){.kind = WAIT_NONE};
    g->pc++;
  }
  return true;
}

static ExecResult exec_bar_warp(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  uint32_t members = (uint32_t)op_get(warp, &inst->ops[0], first_lane(lanes)), same = 0, others;
  FOR_LANES(lane, lanes)
  same |= (uint32_t)((uint32_t)op_get(warp, &inst->ops[0], (int)lane) == members) << lane;
  if (release_elsewhere(machine, warp, same, members)) return warp_done(machine, warp, lanes & ~same);
  return warp_meet_masked(machine, warp, &inst->ops[0], &lanes, &others) != 0
             ? warp_done(machine, warp, others)
             : EXEC_BLOCK;
}

// ---- cluster barrier

static void complete_cluster(Machine *machine, Cluster *cluster) {
  if (cluster->barrier_arrived < cluster->threads) return;
  cluster->barrier_generation++;
  cluster->barrier_arrived = 0;
  machine->progress++;
}

static ExecResult exec_cluster_arrive(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  Cluster *cluster = warp->cta->cluster;
  if (inst_has(inst, MOD_aligned) && !warp_meet(machine, warp, lanes, 0xffffffffu)) return EXEC_BLOCK;
  if (warp->cluster_phase != cluster->barrier_generation) {
    warp->cluster_phase = cluster->barrier_generation;
    warp->cluster_arrived = 0;
  }
  if ((warp->cluster_arrived & lanes) != 0) {
    return machine_fault(machine, warp, first_lane(warp->cluster_arrived & lanes),
                         "barrier.cluster.arrive twice without a wait between");
  }
  warp->cluster_arrived |= lanes;
  cluster->barrier_arrived += (uint32_t)__builtin_popcount(lanes);
  machine_event(machine, EVENT_ARRIVE, warp, lanes, SPACE_SHARED_CLUSTER, 0, 0);
  complete_cluster(machine, cluster);
  return EXEC_NEXT;
}

static bool cluster_ready(Machine *machine, Warp *warp, const Wait *wait) {
  (void)machine;
  return warp->cta->cluster->barrier_generation != wait->count;
}

static ExecResult exec_cluster_wait(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  Cluster *cluster = warp->cta->cluster;
  if (is_resumed(warp)) {
    machine_event(machine, EVENT_BARRIER, warp, lanes, SPACE_SHARED_CLUSTER, 0, 0);
    return EXEC_NEXT;
  }
  if (inst_has(inst, MOD_aligned) && !warp_meet(machine, warp, lanes, 0xffffffffu)) return EXEC_BLOCK;
  if (warp->cluster_phase != cluster->barrier_generation) {
    machine_event(machine, EVENT_BARRIER, warp, lanes, SPACE_SHARED_CLUSTER, 0, 0);
    return EXEC_NEXT;
  }
  uint32_t waiting = lanes & warp->cluster_arrived;
  if (waiting == 0) return EXEC_NEXT;
  Wait wait = {
      .kind = WAIT_CLUSTER, .ready = cluster_ready, .what = "barrier.cluster.wait", .cta = warp->cta};
  wait.count = cluster->barrier_generation;
  return warp_block(machine, warp, waiting, 0, &wait);
}

void barriers_after_exit(Machine *machine, Warp *warp, uint32_t lanes) {
  Cta *cta = warp->cta;
  Cluster *cluster = cta->cluster;
  cluster->threads -= (uint32_t)__builtin_popcount(lanes);
  if (warp->cluster_phase == cluster->barrier_generation) {
    cluster->barrier_arrived -= (uint32_t)__builtin_popcount(lanes & warp->cluster_arrived);
    warp->cluster_arrived &= ~lanes;
  }
  if (cluster->barrier_arrived > 0) complete_cluster(machine, cluster);
  if (warp->live != 0) return;
  cta->live_warps--;
  for (uint32_t id = 0; id < NAMED_BARRIERS; id++) {
    if (cta->barriers[id].whole_cta) complete_if_full(machine, cta, id);
  }
}

// ---- fences and hints

static ExecResult exec_fence(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)inst;
  machine_event(machine, EVENT_FENCE, warp, lanes, SPACE_GENERIC, 0, 0);
  return EXEC_NEXT;
}

// Kernels run one after the other: those before this one have ended, and their memory is visible.
static ExecResult exec_griddepcontrol(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  if (inst_has(inst, MOD_wait)) machine_event(machine, EVENT_FENCE, warp, lanes, SPACE_GENERIC, 0, 0);
  return EXEC_NEXT;
}

static ExecResult exec_setmaxnreg(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  uint64_t count = op_get(warp, &inst->ops[0], first_lane(lanes));
  if (count < 24 || count > 256 || count % 8 != 0) {
    return machine_fault(machine, warp, -1, "setmaxnreg %llu: multiples of 8 from 24 to 256",
                         (unsigned long long)count);
  }
  return EXEC_NEXT;
}

static bool is_red(const Inst *inst) {
  return inst_has(inst, MOD_red);
}
static bool is_arrive(const Inst *inst) {
  return inst_has(inst, MOD_arrive);
}
static bool is_warp(const Inst *inst) {
  return inst_has(inst, MOD_warp);
}

#define FENCE_CLASSES (MC(ORDER) | MC(SCOPE) | MC(PROXY) | MC(SPACE) | MC(ALIGNED))

const InstDef sync_insts[] = {
    {.name = "bar",
     .classes = MC(ALIGNED) | MC(BARRIER),
     .operands = "i",
     .exec = exec_bar_warp,
     .accepts = is_warp},
    {.name = "bar",
     .classes = MC(ALIGNED) | MC(BARRIER) | MC(OPERATION),
     .operands = "xi?jp",
     .exec = exec_bar_red,
     .accepts = is_red},
    {.name = "bar",
     .classes = MC(ALIGNED) | MC(BARRIER),
     .operands = "ii",
     .exec = exec_bar_arrive,
     .accepts = is_arrive},
    {.name = "bar", .classes = MC(ALIGNED) | MC(BARRIER), .operands = "i?i", .exec = exec_bar_sync},
    {.name = "bar.cta",
     .classes = MC(ALIGNED) | MC(BARRIER) | MC(OPERATION),
     .operands = "xi?jp",
     .exec = exec_bar_red,
     .accepts = is_red},
    {.name = "bar.cta",
     .classes = MC(ALIGNED) | MC(BARRIER),
     .operands = "ii",
     .exec = exec_bar_arrive,
     .accepts = is_arrive},
    {.name = "bar.cta", .classes = MC(ALIGNED) | MC(BARRIER), .operands = "i?i", .exec = exec_bar_sync},
    {.name = "barrier",
     .classes = MC(ALIGNED) | MC(BARRIER) | MC(OPERATION),
     .operands = "xi?jp",
     .exec = exec_bar_red,
     .accepts = is_red},
    {.name = "barrier",
     .classes = MC(ALIGNED) | MC(BARRIER),
     .operands = "ii",
     .exec = exec_bar_arrive,
     .accepts = is_arrive},
    {.name = "barrier", .classes = MC(ALIGNED) | MC(BARRIER), .operands = "i?i", .exec = exec_bar_sync},
    {.name = "barrier.cta",
     .classes = MC(ALIGNED) | MC(BARRIER) | MC(OPERATION),
     .operands = "xi?jp",
     .exec = exec_bar_red,
     .accepts = is_red},
    {.name = "barrier.cta",
     .classes = MC(ALIGNED) | MC(BARRIER),
     .operands = "ii",
     .exec = exec_bar_arrive,
     .accepts = is_arrive},
    {.name = "barrier.cta", .classes = MC(ALIGNED) | MC(BARRIER), .operands = "i?i", .exec = exec_bar_sync},
    {.name = "barrier.cluster.arrive",
     .classes = MC(ALIGNED) | MC(ORDER),
     .operands = "",
     .min_sm = 90,
     .exec = exec_cluster_arrive},
    {.name = "barrier.cluster.wait",
     .classes = MC(ALIGNED) | MC(ORDER),
     .operands = "",
     .min_sm = 90,
     .exec = exec_cluster_wait},
    {.name = "fence", .classes = FENCE_CLASSES, .operands = "?mi", .exec = exec_fence},
    {.name = "membar", .classes = FENCE_CLASSES, .operands = "", .exec = exec_fence},
    {.name = "griddepcontrol",
     .classes = MC(BARRIER) | MC(GRIDDEP),
     .operands = "",
     .min_sm = 90,
     .exec = exec_griddepcontrol},
    {.name = "setmaxnreg",
     .classes = MC(ALIGNED) | MC(OPERATION),
     .operands = "i",
     .min_sm = 90,
     .exec = exec_setmaxnreg},
    {.name = NULL},
};

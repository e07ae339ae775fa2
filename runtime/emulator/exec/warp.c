// A warp: its register file, its groups of lanes, and the fetch loop. The group with the lowest program
// counter runs, so that lanes which parted meet again where their paths join; a group that uses up its slice
// gives way to the one that waited longest, so that a spinning lane can't starve its siblings.
#include "exec/exec.h"

#include <stdlib.h>
#include <string.h>

// ---- register values

uint64_t op_get(const Warp *warp, const Operand *op, int lane) {
  switch ((RowKind)op->row) {
  case ROW_PRED:
    return row_pred(warp, op) >> lane & 1;
  case ROW_32:
    return row32(warp, op)[lane];
  case ROW_64:
  case ROW_128:
    return row64(warp, op)[lane];
  case ROW_NONE:
    break;
  }
  return 0;
}

uint64_t op_get_hi(const Warp *warp, const Operand *op, int lane) {
  return op->row == ROW_128 ? row64(warp, op)[WARP_LANES + lane] : 0;
}

void op_set_pred(Warp *warp, const Operand *op, uint32_t lanes, uint32_t mask) {
  if (op->kind != OPERAND_REG || op->bank == BANK_CONST) return;
  uint32_t *row = row32(warp, op);
  *row = (*row & ~lanes) | (mask & lanes);
}

void op_set(Warp *warp, const Operand *op, int lane, uint64_t value) {
  if (op->kind != OPERAND_REG || op->bank == BANK_CONST) return;
  switch ((RowKind)op->row) {
  case ROW_PRED:
    op_set_pred(warp, op, 1u << lane, (uint32_t)(value & 1) << lane);
    break;
  case ROW_32: {
    int bits = ptx_type_bits((PtxType)op->type);
    row32(warp, op)[lane] = bits == 16 ? (uint16_t)value : bits == 8 ? (uint8_t)value : (uint32_t)value;
    break;
  }
  case ROW_128:
    row64(warp, op)[WARP_LANES + lane] = 0;  // fallthrough
  case ROW_64:
    row64(warp, op)[lane] = value;
    break;
  case ROW_NONE:
    break;
  }
}

void op_set128(Warp *warp, const Operand *op, int lane, uint64_t low, uint64_t high) {
  op_set(warp, op, lane, low);
  if (op->kind == OPERAND_REG && op->row == ROW_128) row64(warp, op)[WARP_LANES + lane] = high;
}

uint64_t op_address(const Warp *warp, const Operand *op, int lane) {
  switch ((RowKind)op->row) {
  case ROW_32:
    return (uint32_t)(row32(warp, op)[lane] + (uint32_t)op->value);
  case ROW_64:
    return row64(warp, op)[lane] + (uint64_t)op->value;
  case ROW_PRED:
  case ROW_128:
  case ROW_NONE:
    break;
  }
  return (uint64_t)op->value;
}

// ---- start and end

static uint32_t special_value(const Machine *machine, const Warp *warp, int sreg, int lane) {
  const Launch *launch = machine->launch;
  const Cta *cta = warp->cta;
  const Cluster *cluster = cta->cluster;
  uint32_t thread = thread_index(warp, lane), nx = launch->block[0], ny = launch->block[1];
  uint32_t tid[3] = {thread % nx, thread / nx % ny, thread / nx / ny};
  int axis = sreg < SREG_CLUSTER_CTARANK ? sreg % 3 : 0;
  switch ((SpecialRegister)(sreg < SREG_CLUSTER_CTARANK ? sreg - axis : sreg)) {
  case SREG_TID_X:
    return tid[axis];
  case SREG_NTID_X:
    return launch->block[axis];
  case SREG_CTAID_X:
    return cta->id[axis];
  case SREG_NCTAID_X:
    return launch->grid[axis];
  case SREG_CLUSTERID_X:
    return cluster->id[axis];
  case SREG_NCLUSTERID_X:
    return launch->grid[axis] / launch->cluster[axis];
  case SREG_CLUSTER_CTAID_X:
    return cta->id[axis] % launch->cluster[axis];
  case SREG_CLUSTER_NCTAID_X:
    return launch->cluster[axis];
  case SREG_CLUSTER_CTARANK:
    return cta->rank;
  case SREG_CLUSTER_NCTARANK:
    return (uint32_t)cluster->nctas;
  case SREG_LANEID:
    return (uint32_t)lane;
  case SREG_WARPID:
    return (uint32_t)warp->index;
  case SREG_NWARPID:
    return 64;  // that an SM can hold, on both targets (measured on sm_90)
  case SREG_SMID:
    return cta->linear % 132;
  case SREG_NSMID:
    return 132;
  case SREG_LANEMASK_EQ:
    return 1u << lane;
  case SREG_LANEMASK_LE:
    return 0xffffffffu >> (31 - lane);
  case SREG_LANEMASK_LT:
    return (1u << lane) - 1;
  case SREG_LANEMASK_GE:
    return 0xffffffffu << lane;
  case SREG_LANEMASK_GT:
    return 0xfffffffeu << lane;
  case SREG_TOTAL_SMEM:
  case SREG_AGGR_SMEM:
    return cta->smem_bytes - SHARED_FIRST;
  case SREG_DYNAMIC_SMEM:
    return launch->dynamic_shared;
  case SREG_EXPLICIT_CLUSTER:
    return cluster->nctas > 1;
  default:
    return 0;
  }
}

static uint32_t dynamic_start(const Machine *machine) {
  const Launch *launch = machine->launch;
  uint32_t end = SHARED_FIRST + launch->module->shared_bytes + launch->entry->shared_bytes;
  uint32_t align = launch->entry->shared_align;
  return (end + align - 1) / align * align;
}

static void init_row(const Machine *machine, Warp *warp, uint8_t *bank, const InitRow *init) {
  uint32_t *narrow = (uint32_t *)(void *)(bank + init->off);
  uint64_t *wide = (uint64_t *)(void *)(bank + init->off);
  uint64_t value = 0;
  if (init->row == ROW_PRED) {
    *narrow = special_value(machine, warp, init->sreg, 0) != 0 ? 0xffffffffu : 0;
    return;
  }
  if (init->kind == INIT_SHARED) value = init->variable->address;
  if (init->kind == INIT_DYNAMIC_SHARED) value = dynamic_start(machine);
  value = (value + (uint64_t)init->value) | (uint64_t)warp->cta->rank << SHARED_RANK_SHIFT;
  for (int lane = 0; lane < WARP_LANES; lane++) {
    if (init->kind == INIT_SREG) value = special_value(machine, warp, init->sreg, lane);
    if (init->row == ROW_64) {
      wide[lane] = value;
    } else {
      narrow[lane] = (uint32_t)value;
    }
  }
}

static bool allocate_banks(Machine *machine, Warp *warp) {
  const Module *module = machine->module;
  uint64_t own = machine->launch->entry->register_bytes + 64, functions = module->func_register_bytes;
  bool calls = machine->launch->entry->calls;
  uint64_t bytes = (own + (calls ? functions : 0) + 127) / 64 * 64;
  warp->bank[BANK_WARP] = aligned_alloc(64, bytes);
  if (warp->bank[BANK_WARP] == NULL) return false;
  memset(warp->bank[BANK_WARP], 0, bytes);
  warp->bank[BANK_CONST] = module->constants;
  warp->bank[BANK_FUNC] = warp->bank[BANK_WARP] + (own + 63) / 64 * 64;
  if (calls) warp->calls = calloc(WARP_LANES, sizeof *warp->calls);
  if (warp->cta->local_bytes > 0) warp->local = calloc(WARP_LANES, warp->cta->local_bytes);
  return (!calls || warp->calls != NULL) && (warp->cta->local_bytes == 0 || warp->local != NULL);
}

bool warp_begin(Machine *machine, Cta *cta, Warp *warp, int index) {
  const Launch *launch = machine->launch;
  memset(warp, 0, sizeof *warp);
  warp->cta = cta;
  warp->index = index;
  uint32_t threads = launch->block[0] * launch->block[1] * launch->block[2],
           first = (uint32_t)index * WARP_LANES;
  warp->all = threads - first >= WARP_LANES ? 0xffffffffu : (1u << (threads - first)) - 1;
  warp->live = warp->all;
  if (!allocate_banks(machine, warp)) return false;
  for (int i = 0; i < launch->entry->ninits; i++) {
    init_row(machine, warp, warp->bank[BANK_WARP], &launch->entry->inits[i]);
  }
  for (int f = 0; launch->entry->calls && f < launch->module->nfunctions; f++) {
    const Function *function = launch->module->functions[f];
    for (int i = 0; !function->is_entry && i < function->ninits; i++) {
      init_row(machine, warp, warp->bank[BANK_FUNC], &function->inits[i]);
    }
  }
  warp->ngroups = 1;
  warp->groups[0] = (LaneGroup){.pc = launch->entry->first, .lanes = warp->all};
  return true;
}

void warp_end(Warp *warp) {
  free(warp->bank[BANK_WARP]);
  free(warp->calls);
  free(warp->local);
}

// ---- groups

static LaneGroup *current(Warp *warp) {
  return &warp->groups[warp->current];
}

static void remove_group(Warp *warp, int index) {
  warp->ngroups--;
  warp->groups[index] = warp->groups[warp->ngroups];
  if (warp->current == warp->ngroups) warp->current = index;
}

static void add_group(Warp *warp, uint32_t pc, uint32_t lanes, const Wait *wait, uint64_t since) {
  LaneGroup *group = &warp->groups[warp->ngroups++];
  *group = (LaneGroup){.pc = pc, .lanes = lanes, .since = since};
  if (wait != NULL) group->wait = *wait;
}

// Lanes of the current group go different ways: `first` keeps the group's slot.
static void split(Warp *warp, uint32_t lanes, uint32_t pc, const Wait *wait, uint64_t since) {
  if (lanes == 0) return;
  LaneGroup *group = current(warp);
  if (group->lanes == lanes) {
    group->pc = pc;
    group->since = since;
    group->wait = wait != NULL ? *wait : (Wait){.kind = WAIT_NONE};
    return;
  }
  group->lanes &= ~lanes;
  add_group(warp, pc, lanes, wait, since);
}

ExecResult warp_branch(Warp *warp, uint32_t lanes, uint32_t target) {
  LaneGroup *group = current(warp);
  if (lanes == group->lanes) {
    group->pc = target;
    return EXEC_MOVED;
  }
  group->pc++;
  split(warp, lanes, target, NULL, 0);
  return EXEC_MOVED;
}

ExecResult warp_branch_each(Warp *warp, uint32_t lanes, const uint32_t target[WARP_LANES]) {
  LaneGroup *group = current(warp);
  uint32_t next = group->pc + 1, stay = group->lanes & ~lanes;
  split(warp, stay, next, NULL, 0);
  while (lanes != 0) {
    uint32_t to = target[first_lane(lanes)], same = 0;
    FOR_LANES(lane, lanes) {
      if (target[lane] == to) same |= 1u << lane;
    }
    split(warp, same, to, NULL, 0);
    lanes &= ~same;
  }
  return EXEC_MOVED;
}

ExecResult warp_block(Machine *machine, Warp *warp, uint32_t blocked, uint32_t again, const Wait *wait) {
  LaneGroup *group = current(warp);
  uint32_t pc = group->pc, rest = group->lanes & ~blocked & ~again;
  uint64_t now = machine->steps;
  if (wait != NULL) machine_event(machine, EVENT_WAIT, warp, blocked, SPACE_GENERIC, (uintptr_t)wait, 0);
  group->resumed = false;
  group->wait.kind = WAIT_NONE;
  split(warp, again, pc, NULL, now);
  split(warp, rest, pc + 1, NULL, now);
  split(warp, blocked, pc, wait, now);
  return EXEC_BLOCK;
}

static bool lanes_ready(Machine *machine, Warp *warp, const Wait *wait) {
  (void)machine;
  uint32_t here = 0;
  uint32_t pc = (uint32_t)wait->address;
  for (int i = 0; i < warp->ngroups; i++) {
    const LaneGroup *g = &warp->groups[i];
    if (g->pc == pc && (g->wait.kind == WAIT_NONE || g->wait.kind == WAIT_LANES)) here |= g->lanes;
  }
  return (wait->lanes & warp->live & ~here) == 0;
}

bool warp_meet(Machine *machine, Warp *warp, uint32_t lanes, uint32_t members) {
  if ((members & warp->live & ~lanes) == 0) return true;
  Wait wait = {
      .kind = WAIT_LANES, .ready = lanes_ready, .what = "the other lanes of the warp", .cta = warp->cta};
  wait.lanes = members;
  wait.address = current(warp)->pc;
  warp_block(machine, warp, lanes, 0, &wait);
  return false;
}

uint32_t warp_meet_masked(Machine *machine, Warp *warp, const Operand *mask, uint32_t *lanes,
                          uint32_t *others) {
  uint32_t members = (uint32_t)op_get(warp, mask, first_lane(*lanes)), same = 0;
  FOR_LANES(lane, *lanes) same |= (uint32_t)((uint32_t)op_get(warp, mask, (int)lane) == members) << lane;
  *others = *lanes & ~same;
  *lanes = same;
  if ((members & warp->live & ~same) == 0) return members & same;
  Wait wait = {
      .kind = WAIT_LANES, .ready = lanes_ready, .what = "the other lanes of its mask", .cta = warp->cta};
  wait.lanes = members;
  wait.address = current(warp)->pc;
  warp_block(machine, warp, same, *others, &wait);
  return 0;
}

ExecResult warp_done(Machine *machine, Warp *warp, uint32_t others) {
  return others == 0 ? EXEC_NEXT : warp_block(machine, warp, 0, others, NULL);
}

ExecResult warp_exit(Machine *machine, Warp *warp, uint32_t lanes) {
  LaneGroup *group = current(warp);
  group->pc++;
  warp->live &= ~lanes;
  group->lanes &= ~lanes;
  bool gone = group->lanes == 0;
  if (gone) remove_group(warp, warp->current);
  machine->progress++;
  machine_event(machine, EVENT_THREAD_EXIT, warp, lanes, SPACE_GENERIC, 0, 0);
  barriers_after_exit(machine, warp, lanes);
  return gone ? EXEC_BLOCK : EXEC_MOVED;  // another group has taken the slot, and may be waiting
}

static bool same_callers(const Warp *warp, uint32_t a, uint32_t b) {
  if (warp->calls == NULL) return true;
  const CallStack *x = &warp->calls[first_lane(a)], *y = &warp->calls[first_lane(b)];
  return x->depth == y->depth && memcmp(x->pc, y->pc, x->depth * sizeof *x->pc) == 0;
}

// Groups at the same place that can run become one.
static void merge_at(Warp *warp, int index) {
  for (int i = 0; i < warp->ngroups; i++) {
    LaneGroup *into = &warp->groups[index], *from = &warp->groups[i];
    bool fits = from->wait.kind == WAIT_NONE || from->wait.kind == WAIT_LANES;
    if (i == index || from->pc != into->pc || !fits || from->resumed || into->resumed) continue;
    if (!same_callers(warp, from->lanes, into->lanes)) continue;
    into->lanes |= from->lanes;
    if (warp->current == i) warp->current = index;
    bool index_is_last = index == warp->ngroups - 1;
    remove_group(warp, i);
    if (index_is_last) index = i;
    i = -1;
  }
  warp->current = index;
}

// Wakes groups whose wait is over; the group to run, or -1.
static int choose(Machine *machine, Warp *warp) {
  int best = -1;
  for (int i = 0; i < warp->ngroups; i++) {
    LaneGroup *g = &warp->groups[i];
    if (g->wait.kind != WAIT_NONE && !g->resumed) {
      if (!g->wait.timed_out && !g->wait.ready(machine, warp, &g->wait)) continue;
      g->resumed = g->wait.kind != WAIT_LANES && g->wait.kind != WAIT_TURN;
      if (!g->resumed) g->wait.kind = WAIT_NONE;
    }
    if (best < 0) {
      best = i;
      continue;
    }
    const LaneGroup *b = &warp->groups[best];
    if (warp->rotate ? g->since < b->since : g->pc < b->pc) best = i;
  }
  warp->rotate = false;
  return best;
}

// First program counter above the current group's at which another group stands.
static uint32_t next_meeting(const Warp *warp) {
  uint32_t here = warp->groups[warp->current].pc, meeting = 0xffffffffu;
  for (int i = 0; i < warp->ngroups; i++) {
    uint32_t pc = warp->groups[i].pc;
    if (i != warp->current && pc >= here && pc < meeting) meeting = pc;
  }
  return meeting;
}

static ExecResult execute(Machine *machine, Warp *warp, LaneGroup *group) {
  const Inst *inst = &machine->module->insts[group->pc];
  uint32_t lanes = group->lanes;
  machine->inst = inst;
  machine->steps++;
  machine->lane_steps += lanes == 0xffffffffu ? WARP_LANES : (uint32_t)__builtin_popcount(lanes);
  if (inst->guarded) lanes &= row_pred(warp, &inst->guard);
  if (lanes == 0) return EXEC_NEXT;
  if (inst->error != NULL)
    return machine_fault(machine, warp, first_lane(lanes), "cannot execute: %s", inst->error);
  if (machine->event_mask >> EVENT_ISSUE & 1) {
    machine_event(machine, EVENT_ISSUE, warp, lanes, SPACE_GENERIC, 0, 0);
    if (machine->fault.happened) return EXEC_FAULT;  // a breakpoint
  }
  return inst->exec(machine, warp, inst, lanes);
}

// Runs one group until it waits, leaves, meets another group, or the budget is gone.
static bool run_group(Machine *machine, Warp *warp) {
  uint32_t meeting = next_meeting(warp);
  while (warp->budget-- > 0) {
    LaneGroup *group = current(warp);
    bool resumed = group->resumed;
    ExecResult result = execute(machine, warp, group);
    if (resumed && result != EXEC_BLOCK && group->resumed) {
      group->resumed = false;
      group->wait.kind = WAIT_NONE;
    }
    switch (result) {
    case EXEC_NEXT:
      group->pc++;
      if (group->pc >= meeting) return true;
      break;
    case EXEC_MOVED:
      if (warp->ngroups != 1) return true;
      break;
    case EXEC_BLOCK:
      return true;
    case EXEC_FAULT:
      return false;
    }
  }
  warp->rotate = warp->ngroups > 1;
  return true;
}

bool warp_slice(Machine *machine, Warp *warp, int budget, bool *ran) {
  uint64_t before = machine->steps;
  warp->budget = budget;
  warp->polled = false;
  while (warp->budget > 0 && warp->live != 0) {
    int index = choose(machine, warp);
    if (index < 0) break;
    merge_at(warp, index);
    current(warp)->since = machine->steps;
    *ran = true;
    if (!run_group(machine, warp)) return false;
    if (warp->polled && warp->ngroups > 1) warp->rotate = true;
  }
  warp->unpolled = warp->polled ? 0 : warp->unpolled + (machine->steps - before);
  return true;
}

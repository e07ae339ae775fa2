// mbarriers live in emulated shared memory, all state in their 8 bytes, since kernels invalidate, overlay and
// re-initialise them: bit 0 phase, 1-20 pending, 21-40 expected, 41-61 tx (signed), 62-63 a mark (binary 10)
// that tells a barrier from other data. A state token is the word before the arrive (PTX ISA 9.7.13.15).
#include <string.h>

#include "async/async_internal.h"

enum { COUNT_MAX = (1 << 20) - 1, TX_MAX = (1 << 20) - 1 };
#define MBARRIER_MARK ((uint64_t)2 << 62)

MbarrierState mbarrier_decode(uint64_t word) {
  return (MbarrierState){
      .valid = word >> 62 == 2,
      .phase = word & 1,
      .pending = word >> 1 & COUNT_MAX,
      .expected = word >> 21 & COUNT_MAX,
      .tx = (int64_t)(word << 2) >> 43,
  };
}

static uint64_t mbarrier_encode(const MbarrierState *state) {
  return MBARRIER_MARK | ((uint64_t)state->tx & 0x1FFFFF) << 41 | (uint64_t)state->expected << 21 |
         (uint64_t)state->pending << 1 | state->phase;
}

static uint64_t load(const uint8_t *host) {
  uint64_t word;
  memcpy(&word, host, sizeof word);
  return word;
}

// Host address of a live mbarrier and its state, or NULL after the fault.
static uint8_t *find(Machine *machine, const Origin *origin, const Cta *cta, uint32_t offset,
                     MbarrierState *state) {
  uint8_t *host = async_shared(machine, origin, cta, offset, 8, "mbarrier");
  if (!host) return NULL;
  *state = mbarrier_decode(load(host));
  if (state->valid) return host;
  machine_fault_at(machine, origin,
                   "no mbarrier lives at shared address 0x%x of CTA %u: it was never initialised, "
                   "was invalidated or overwritten",
                   offset, cta->rank);
  return NULL;
}

typedef struct {
  uint32_t arrivals, dropped, added;
  int64_t tx;
} Change;

static void emit_change(Machine *machine, const Origin *origin, const Cta *cta, uint32_t offset,
                        const Change *change, bool flipped) {
  bool engine = machine->op != NULL;
  const Warp *warp = engine ? NULL : &origin->cta->warps[origin->warp];
  uint32_t lanes = origin->lane < 0 ? 0 : 1u << origin->lane;
  Event event = {EVENT_TX, cta, warp, origin->inst, lanes, SPACE_SHARED, offset, (uint64_t)change->tx, 0};
  if (change->tx && machine->event_mask >> EVENT_TX & 1) machine_emit(machine, &event);
  event.kind = EVENT_ARRIVE;
  event.bytes = change->arrivals;
  if (change->arrivals && machine->event_mask >> EVENT_ARRIVE & 1) machine_emit(machine, &event);
  event.kind = EVENT_PHASE;
  if (flipped && machine->event_mask >> EVENT_PHASE & 1) machine_emit(machine, &event);
}

static bool apply(Machine *machine, const Origin *origin, Cta *cta, uint32_t offset, const Change *change,
                  uint64_t *token) {
  MbarrierState state;
  uint8_t *host = find(machine, origin, cta, offset, &state);
  if (!host) return false;
  if (token) *token = load(host);
  if (change->arrivals > state.pending) {
    machine_fault_at(machine, origin,
                     "mbarrier 0x%x of CTA %u: %u arrivals, but its phase %u waits for %u more of %u "
                     "(%lld bytes missing): the phase is overrun",
                     offset, cta->rank, change->arrivals, state.phase, state.pending, state.expected,
                     (long long)state.tx);
    return false;
  }
  if (state.pending + change->added > COUNT_MAX) {
    machine_fault_at(machine, origin, "mbarrier 0x%x of CTA %u: the pending count would exceed %d", offset,
                     cta->rank, COUNT_MAX);
    return false;
  }
  state.pending += change->added;
  state.tx += change->tx;
  if (state.tx > TX_MAX || state.tx < -TX_MAX) {
    machine_fault_at(machine, origin,
                     "mbarrier 0x%x of CTA %u: the transaction count would be %lld, beyond %d", offset,
                     cta->rank, (long long)state.tx, TX_MAX);
    return false;
  }
  state.pending -= change->arrivals;
  state.expected -= change->dropped < state.expected ? change->dropped : state.expected;
  bool flips = state.pending == 0 && state.tx == 0;
  if (flips) {
    state.phase ^= 1;
    state.pending = state.expected;
    machine->progress++;
  }
  uint64_t word = mbarrier_encode(&state);
  memcpy(host, &word, sizeof word);
  if (machine->event_mask & (1u << EVENT_TX | 1u << EVENT_ARRIVE | 1u << EVENT_PHASE))
    emit_change(machine, origin, cta, offset, change, flips);
  return true;
}

bool mbarrier_arrive(Machine *machine, const Origin *origin, Cta *cta, uint32_t offset, uint32_t count) {
  return apply(machine, origin, cta, offset, &(Change){.arrivals = count}, NULL);
}

bool mbarrier_add_pending(Machine *machine, const Origin *origin, Cta *cta, uint32_t offset) {
  return apply(machine, origin, cta, offset, &(Change){.added = 1}, NULL);
}

bool mbarrier_complete_tx(Machine *machine, const Origin *origin, Cta *cta, uint32_t offset, uint64_t bytes) {
  return apply(machine, origin, cta, offset, &(Change){.tx = -(int64_t)bytes}, NULL);
}

// The barrier that operand `index` names. Local-only instructions refuse another CTA's.
static Cta *target(Machine *machine, Warp *warp, const Inst *inst, int index, int lane, bool local,
                   uint32_t *offset) {
  Cta *cta = async_shared_target(machine, warp, lane, op_address(warp, &inst->ops[index], lane), 8,
                                 "mbarrier", offset);
  if (cta && local && cta != warp->cta) {
    machine_fault(machine, warp, lane,
                  "this operation is for the CTA's own mbarriers; the address is in CTA %u", cta->rank);
    return NULL;
  }
  return cta;
}

static ExecResult exec_init(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  FOR_LANES(lane, lanes) {
    uint32_t offset, count = (uint32_t)op_get(warp, &inst->ops[1], (int)lane);
    Cta *cta = target(machine, warp, inst, 0, (int)lane, true, &offset);
    if (!cta) return EXEC_FAULT;
    if (count == 0 || count > COUNT_MAX)
      return machine_fault(machine, warp, (int)lane, "mbarrier.init: the count %u is not in 1 to %d", count,
                           COUNT_MAX);
    Origin origin = origin_here(machine, warp, (int)lane);
    uint8_t *host = async_shared(machine, &origin, cta, offset, 8, "mbarrier");
    if (!host) return EXEC_FAULT;
    uint64_t word = mbarrier_encode(&(MbarrierState){true, 0, count, count, 0});
    memcpy(host, &word, sizeof word);
    machine_event(machine, EVENT_MBARRIER_INIT, warp, 1u << lane, SPACE_SHARED, offset, 8);
  }
  return EXEC_NEXT;
}

static ExecResult exec_inval(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  FOR_LANES(lane, lanes) {
    uint32_t offset;
    MbarrierState state;
    Origin origin = origin_here(machine, warp, (int)lane);
    Cta *cta = target(machine, warp, inst, 0, (int)lane, true, &offset);
    uint8_t *host = cta ? find(machine, &origin, cta, offset, &state) : NULL;
    if (!host) return EXEC_FAULT;
    memset(host, 0, 8);
    machine_event(machine, EVENT_MBARRIER_INVAL, warp, 1u << lane, SPACE_SHARED, offset, 8);
  }
  return EXEC_NEXT;
}

// arrive, arrive_drop, with or without expect_tx. aux: 1 for arrive_drop.
static ExecResult exec_arrive(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  bool expect = inst_has(inst, MOD_expect_tx);
  FOR_LANES(lane, lanes) {
    uint32_t offset, value = inst->nops > 2 ? (uint32_t)op_get(warp, &inst->ops[2], (int)lane) : 1;
    bool keeps_token = inst->ops[0].kind != OPERAND_SINK;
    Cta *cta = target(machine, warp, inst, 1, (int)lane, keeps_token, &offset);
    if (!cta) return EXEC_FAULT;
    Change change = {.arrivals = expect ? 1 : value, .tx = expect ? value : 0};
    if (change.arrivals == 0 || (expect && value > TX_MAX))
      return machine_fault(machine, warp, (int)lane, "mbarrier.arrive: %s %u is out of range",
                           expect ? "transaction count" : "count", value);
    if (inst->aux) change.dropped = change.arrivals;
    uint64_t token;
    Origin origin = origin_here(machine, warp, (int)lane);
    if (!apply(machine, &origin, cta, offset, &change, &token)) return EXEC_FAULT;
    if (keeps_token) op_set(warp, &inst->ops[0], (int)lane, token);
  }
  return EXEC_NEXT;
}

static const char *select_arrive(Inst *inst) {
  inst->exec = exec_arrive;
  inst->aux = 0;
  return inst_has(inst, MOD_expect_tx) && inst->nops < 3 ? "arrive.expect_tx needs a transaction count"
                                                         : NULL;
}

static const char *select_arrive_drop(Inst *inst) {
  const char *error = select_arrive(inst);
  inst->aux = 1;
  return error;
}

// expect_tx and complete_tx; aux: the sign.
static ExecResult exec_tx(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  FOR_LANES(lane, lanes) {
    uint32_t offset, bytes = (uint32_t)op_get(warp, &inst->ops[1], (int)lane);
    Cta *cta = target(machine, warp, inst, 0, (int)lane, false, &offset);
    Origin origin = origin_here(machine, warp, (int)lane);
    if (!cta || !apply(machine, &origin, cta, offset, &(Change){.tx = (int64_t)inst->aux * bytes}, NULL))
      return EXEC_FAULT;
  }
  return EXEC_NEXT;
}

static const char *select_expect_tx(Inst *inst) {
  inst->exec = exec_tx;
  inst->aux = 1;
  return NULL;
}

static const char *select_complete_tx(Inst *inst) {
  inst->exec = exec_tx;
  inst->aux = -1;
  return NULL;
}

static bool phase_over(const Cta *cta, uint64_t offset, uint32_t parity) {
  MbarrierState state = mbarrier_decode(load(cta->smem + offset));
  return !state.valid || state.phase != parity;
}

static bool wait_ready(Machine *machine, Warp *warp, const Wait *wait) {
  (void)machine, (void)warp;
  return phase_over(wait->cta, wait->address, wait->number);
}

// The lanes whose phase is not over wait, together with those of the same barrier and parity; the others come
// back at once, to wait in a group of their own.
static ExecResult exec_wait(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  bool blocking = inst->aux, parity_form = inst_has(inst, MOD_parity);
  uint32_t over = 0, same = 0;
  Wait wait = {.kind = WAIT_NONE};
  FOR_LANES(lane, lanes) {
    uint32_t offset, parity = (uint32_t)op_get(warp, &inst->ops[2], (int)lane) & 1;
    MbarrierState state;
    Origin origin = origin_here(machine, warp, (int)lane);
    Cta *cta = target(machine, warp, inst, 1, (int)lane, true, &offset);
    if (!cta || !find(machine, &origin, cta, offset, &state)) return EXEC_FAULT;
    if (!parity_form && op_get(warp, &inst->ops[2], (int)lane) >> 62 != 2)
      return machine_fault(machine, warp, (int)lane, "the state operand is no token of an mbarrier.arrive");
    if (state.phase != parity) {
      over |= 1u << lane;
      continue;
    }
    if (wait.kind == WAIT_NONE)
      wait = (Wait){.kind = WAIT_MBARRIER,
                    .ready = wait_ready,
                    .what = "mbarrier wait",
                    .cta = cta,
                    .address = offset,
                    .number = parity};
    if (wait.address == offset && wait.number == parity) same |= 1u << lane;
  }
  op_set_pred(warp, &inst->ops[0], lanes, over);
  if (over)
    machine_event(machine, EVENT_BARRIER, warp, over, SPACE_SHARED,
                  op_address(warp, &inst->ops[1], first_lane(over)), 8);
  if (over == lanes) return EXEC_NEXT;
  const LaneGroup *group = &warp->groups[warp->current];
  if (!blocking || (group->resumed && group->wait.timed_out)) {
    machine_poll(warp);
    return EXEC_NEXT;
  }
  wait.lanes = same;
  return warp_block(machine, warp, same, lanes & ~over & ~same, &wait);
}

static const char *select_try_wait(Inst *inst) {
  inst->exec = exec_wait;
  inst->aux = 1;
  return NULL;
}

static ExecResult exec_pending_count(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  FOR_LANES(lane, lanes) {
    MbarrierState state = mbarrier_decode(op_get(warp, &inst->ops[1], (int)lane));
    op_set(warp, &inst->ops[0], (int)lane, state.pending);
  }
  return EXEC_NEXT;
}

#define MBARRIER_CLASSES (MC(MBARRIER) | MC(SPACE) | MC(ORDER) | MC(SCOPE))

const InstDef mbarrier_insts[] = {
    {.name = "mbarrier.init", .classes = MC(SPACE), .operands = "mi", .exec = exec_init},
    {.name = "mbarrier.inval", .classes = MC(SPACE), .operands = "m", .exec = exec_inval},
    {.name = "mbarrier.arrive", .classes = MBARRIER_CLASSES, .operands = "lm?i", .select = select_arrive},
    {.name = "mbarrier.arrive_drop",
     .classes = MBARRIER_CLASSES,
     .operands = "lm?i",
     .select = select_arrive_drop},
    {.name = "mbarrier.expect_tx",
     .classes = MBARRIER_CLASSES,
     .operands = "mi",
     .min_sm = 90,
     .select = select_expect_tx},
    {.name = "mbarrier.complete_tx",
     .classes = MBARRIER_CLASSES,
     .operands = "mi",
     .min_sm = 90,
     .select = select_complete_tx},
    {.name = "mbarrier.test_wait", .classes = MBARRIER_CLASSES, .operands = "pmr", .exec = exec_wait},
    {.name = "mbarrier.try_wait",
     .classes = MBARRIER_CLASSES,
     .operands = "pmr?i",
     .min_sm = 90,
     .select = select_try_wait},
    {.name = "mbarrier.pending_count", .operands = "il", .exec = exec_pending_count},
    {0},
};

// tcgen05.alloc, dealloc and relinquish_alloc_permit (PTX ISA 9.7.16.7). With cta_group::2 a warp of each CTA
// of the pair executes alloc: the first to come waits, the second takes the columns in both.
#include <stdlib.h>
#include <string.h>

#include "async/async_internal.h"

enum { POISON = 0x7FBADBAD };  // a NaN

int tcgen05_group(Machine *machine, const Warp *warp, int lane, const Inst *inst) {
  CtaAsync *async = cta_async(warp->cta);
  int group = inst_has(inst, MOD_cta_group_2) ? 2 : 1;
  if (async->cta_group == 0) async->cta_group = group;
  if (async->cta_group != group) {
    machine_fault(machine, warp, lane,
                  "cta_group::%d after cta_group::%d: all tcgen05 instructions of a kernel must agree", group,
                  async->cta_group);
    return 0;
  }
  if (group == 2 && !cta_pair_peer(warp->cta)) {
    machine_fault(machine, warp, lane, "cta_group::2 needs a cluster of pairs; this one has %d CTA%s",
                  warp->cta->cluster->nctas, warp->cta->cluster->nctas == 1 ? "" : "s");
    return 0;
  }
  return group;
}

bool tcgen05_columns(Machine *machine, const Origin *origin, const Cta *cta, int first, int count,
                     const char *what) {
  const Tmem *tmem = &cta_async(cta)->tmem;
  if (tmem->cells && tmem_allocated(tmem, first, count)) return true;
  machine_fault_at(machine, origin,
                   "%s: tensor memory columns %d to %d of CTA %u are not all allocated (%d columns are)",
                   what, first, first + count - 1, cta->rank, tmem_columns_held(tmem));
  return false;
}

static bool make_cells(Machine *machine, Tmem *tmem) {
  if (tmem->cells) return true;
  size_t count = TMEM_LANES * TMEM_COLUMNS;
  tmem->cells = calloc(count, sizeof *tmem->cells);
  if (tmem->cells && machine->uninit_poison)
    for (size_t i = 0; i < count; i++) tmem->cells[i] = POISON;
  return tmem->cells != NULL;
}

static void grant(Machine *machine, const Warp *warp, Cta *cta, int first, uint32_t columns) {
  tmem_take(&cta_async(cta)->tmem, first, columns);
  if (machine->event_mask >> EVENT_TMEM_ALLOC & 1)
    machine_emit(machine, &(Event){EVENT_TMEM_ALLOC, cta, warp, machine->inst, 0, SPACE_TMEM, (uint64_t)first,
                                   columns, 0xFF});
}

static bool columns_ready(Machine *machine, Warp *warp, const Wait *wait) {
  (void)machine;
  return tmem_fit(&cta_async(warp->cta)->tmem, wait->number) >= 0 &&
         (!wait->data || tmem_fit(&cta_async(wait->data)->tmem, wait->number) >= 0);
}

static bool pair_ready(Machine *machine, Warp *warp, const Wait *wait) {
  (void)machine, (void)wait;
  return cta_async(warp->cta)->pair == PAIR_GRANTED;
}

static ExecResult wait_for_columns(Machine *machine, Warp *warp, uint32_t lanes, uint32_t columns,
                                   Cta *peer) {
  Wait wait = {.kind = WAIT_TMEM_ALLOC,
               .ready = columns_ready,
               .what = "tcgen05.alloc",
               .cta = warp->cta,
               .number = columns,
               .lanes = lanes,
               .data = peer};
  return warp_block(machine, warp, lanes, 0, &wait);
}

static ExecResult wait_for_peer(Machine *machine, Warp *warp, uint32_t lanes, uint32_t columns) {
  Wait wait = {.kind = WAIT_PEER,
               .ready = pair_ready,
               .what = "tcgen05.alloc.cta_group::2 of the pair's other CTA",
               .cta = warp->cta,
               .number = columns,
               .lanes = lanes};
  return warp_block(machine, warp, lanes, 0, &wait);
}

static ExecResult store_address(Machine *machine, Warp *warp, const Inst *inst, int lane, int first) {
  uint32_t offset, address = (uint32_t)first;
  Origin origin = origin_here(machine, warp, lane);
  Cta *cta = async_shared_target(machine, warp, lane, op_address(warp, &inst->ops[0], lane), 4,
                                 "tcgen05.alloc", &offset);
  uint8_t *host = cta ? async_shared(machine, &origin, cta, offset, 4, "tcgen05.alloc") : NULL;
  if (!host) return EXEC_FAULT;
  memcpy(host, &address, 4);
  machine_event(machine, EVENT_WRITE, warp, 1u << lane, SPACE_SHARED, offset, 4);
  return EXEC_NEXT;
}

static ExecResult alloc_pair(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes,
                             uint32_t columns) {
  CtaAsync *own = cta_async(warp->cta);
  Cta *peer_cta = cta_pair_peer(warp->cta);
  CtaAsync *peer = cta_async(peer_cta);
  if (own->pair == PAIR_GRANTED) {
    own->pair = PAIR_NONE;
    return store_address(machine, warp, inst, first_lane(lanes), own->pair_first);
  }
  if (peer->pair != PAIR_WAITING) {
    own->pair = PAIR_WAITING;
    own->pair_columns = columns;
    return wait_for_peer(machine, warp, lanes, columns);
  }
  if (peer->pair_columns != columns)
    return machine_fault(machine, warp, -1, "the pair's CTAs allocate %u and %u columns: they must agree",
                         columns, peer->pair_columns);
  int first = tmem_fit(&own->tmem, columns);
  if (first < 0 || tmem_fit(&peer->tmem, columns) != first)
    return wait_for_columns(machine, warp, lanes, columns, peer_cta);
  grant(machine, warp, warp->cta, first, columns);
  grant(machine, warp, peer_cta, first, columns);
  peer->pair = PAIR_GRANTED;
  peer->pair_first = first;
  return store_address(machine, warp, inst, first_lane(lanes), first);
}

static ExecResult exec_alloc(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  if (!warp_meet(machine, warp, lanes, ~0u)) return EXEC_BLOCK;
  int lane = first_lane(lanes), group = tcgen05_group(machine, warp, lane, inst);
  if (!group) return EXEC_FAULT;
  Tmem *tmem = &cta_async(warp->cta)->tmem;
  uint32_t columns = (uint32_t)op_get(warp, &inst->ops[1], lane);
  bool granted =
      cta_async(warp->cta)->pair == PAIR_GRANTED;  // already checked, and counted as the last allocation
  const char *error = granted ? NULL : tmem_alloc_error(tmem, columns);
  if (error) return machine_fault(machine, warp, -1, "tcgen05.alloc of %u columns: %s", columns, error);
  if (!make_cells(machine, tmem)) return machine_fault(machine, warp, -1, "the emulator is out of memory");
  if (group == 2) return alloc_pair(machine, warp, inst, lanes, columns);
  int first = tmem_fit(tmem, columns);
  if (first < 0) return wait_for_columns(machine, warp, lanes, columns, NULL);
  grant(machine, warp, warp->cta, first, columns);
  return store_address(machine, warp, inst, lane, first);
}

static ExecResult exec_dealloc(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  if (!warp_meet(machine, warp, lanes, ~0u)) return EXEC_BLOCK;
  int lane = first_lane(lanes);
  if (!tcgen05_group(machine, warp, lane, inst)) return EXEC_FAULT;
  uint32_t address = (uint32_t)op_get(warp, &inst->ops[0], lane),
           columns = (uint32_t)op_get(warp, &inst->ops[1], lane);
  if (tmem_lane(address) || !tmem_release(&cta_async(warp->cta)->tmem, address, columns))
    return machine_fault(machine, warp, -1,
                         "tcgen05.dealloc of address 0x%x, %u columns: that is no allocation of this CTA",
                         address, columns);
  machine_event(machine, EVENT_TMEM_FREE, warp, lanes, SPACE_TMEM, address, columns);
  return EXEC_NEXT;
}

static ExecResult exec_relinquish(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  if (!warp_meet(machine, warp, lanes, ~0u)) return EXEC_BLOCK;
  if (!tcgen05_group(machine, warp, first_lane(lanes), inst)) return EXEC_FAULT;
  cta_async(warp->cta)->tmem.relinquished = true;
  return EXEC_NEXT;
}

const InstDef tcgen05_alloc_insts[] = {
    {.name = "tcgen05.alloc",
     .classes = MC(ALIGNED) | MC(CTA_GROUP) | MC(SPACE),
     .operands = "mi",
     .min_sm = 100,
     .exec = exec_alloc},
    {.name = "tcgen05.dealloc",
     .classes = MC(ALIGNED) | MC(CTA_GROUP),
     .operands = "ii",
     .min_sm = 100,
     .exec = exec_dealloc},
    {.name = "tcgen05.relinquish_alloc_permit",
     .classes = MC(ALIGNED) | MC(CTA_GROUP),
     .operands = "",
     .min_sm = 100,
     .exec = exec_relinquish},
    {0},
};

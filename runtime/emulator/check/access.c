// Accesses to shared and global memory against what is remembered: races, and generic writes that the async
// proxy reads.
#include <string.h>

#include "check/order.h"
#include "exec/report.h"

Origin access_origin(const Order *order, const Domain *domain, const Access *access) {
  Origin origin = {.inst = &order->machine->module->insts[access->inst], .warp = access->warp};
  origin.lane = access->lane == NO_LANE ? -1 : access->lane;
  if (access->cluster == domain->number && access->rank < domain->cluster->nctas)
    origin.cta = &domain->cluster->ctas[access->rank];
  return origin;
}

// ---- words

static const char *who_text(const Access *access) {
  switch ((AccessBy)access->by) {
  case BY_THREAD:
  case BY_STRONG:
    return "a thread";
  case BY_COPY:
    return "cp.async";
  case BY_INIT:
    return "mbarrier.init";
  case BY_INVAL:
    return "mbarrier.inval";
  case BY_REDUCE:
  case BY_TMA:
    return "an asynchronous copy";
  case BY_TENSOR:
    return "the tensor core";
  case BY_WGMMA:
    return "wgmma";
  case BY_LD:
    return "tcgen05.ld";
  case BY_ST:
    return "tcgen05.st";
  case BY_DEALLOC:
    break;
  }
  return "tcgen05.dealloc";
}

static const char *after_write_advice(const Access *before) {
  switch ((AccessBy)before->by) {
  case BY_REDUCE:
  case BY_TMA:
    return "wait on the mbarrier that the copy signals, with the parity of its phase and all its bytes "
           "expected (stores: "
           "cp.async.bulk.wait_group), and hand that on to other threads with a barrier";
  case BY_COPY:
    return "cp.async.wait_group in the thread that issued the copy, then a barrier, before others touch the "
           "data";
  case BY_TENSOR:
  case BY_WGMMA:
    return "wait for the tensor core: tcgen05.commit and its mbarrier, or wgmma.wait_group";
  case BY_THREAD:
  case BY_STRONG:
  case BY_INIT:
  case BY_INVAL:
  case BY_LD:
  case BY_ST:
  case BY_DEALLOC:
    break;
  }
  return "put a barrier, or an arrive and a wait on an mbarrier, between the two";
}

static const char *after_read_advice(const Access *before) {
  switch ((AccessBy)before->by) {
  case BY_REDUCE:
  case BY_TMA:
    return "cp.async.bulk.wait_group.read in the thread that issued the copy, then a barrier, before the "
           "buffer is written again";
  case BY_TENSOR:
    return "let the mma's tcgen05.commit arrive at the buffer's 'empty' mbarrier and wait for that phase "
           "before the buffer is "
           "written again";
  case BY_WGMMA:
    return "wgmma.wait_group, then arrive at the buffer's 'empty' mbarrier, before the buffer is written "
           "again";
  case BY_COPY:
    return "cp.async.wait_group before the source is written";
  case BY_THREAD:
  case BY_STRONG:
  case BY_INIT:
  case BY_INVAL:
  case BY_LD:
  case BY_ST:
  case BY_DEALLOC:
    break;
  }
  return "let every reader arrive at a barrier after its last read, and wait for it before writing again";
}

// An operation that was in flight while a thread did something: either came too early.
static const char *in_flight_advice(const Accessor *who, bool is_write) {
  if (is_write)
    return "readers must wait on the mbarrier that this copy signals (parity and bytes of its phase), and "
           "the copy must not be "
           "issued before they have arrived at the buffer's 'empty' barrier";
  if (who->tag.by == BY_TMA || who->tag.by == BY_REDUCE)
    return "write before the copy is issued, with a barrier between; write again only after "
           "cp.async.bulk.wait_group.read (or the "
           "copy's mbarrier)";
  return "write before the mma is issued, with a barrier between; write again only after its tcgen05.commit "
         "or wgmma.wait_group";
}

static const char *advice_for(const Accessor *who, const Access *before, bool was_write, bool is_write) {
  bool thread = before->by == BY_THREAD || before->by == BY_STRONG;
  if (who->engine && thread) return in_flight_advice(who, is_write);
  return was_write ? after_write_advice(before) : after_read_advice(before);
}

// ---- findings

static void report(Order *order, OrderCta *cta, uint64_t address, const Accessor *who, const Access *before,
                   bool was_write, bool is_write) {
  Machine *machine = order->machine;
  const Inst *insts = machine->module->insts;
  if (!finding_is_new(machine, CHECK_RACE, &insts[who->tag.inst], &insts[before->inst])) return;
  Origin origin = access_origin(order, who->domain, &who->tag);
  OtherSide other = {was_write ? "it was written here" : "it is read here",
                     access_origin(order, who->domain, before), before->cluster};
  const char *place = machine_symbolize(machine, cta ? cta->cta : who->warp->cta->cta,
                                        cta ? SPACE_SHARED : SPACE_GLOBAL, address);
  machine_finding_pair(machine, CHECK_RACE, &origin, &other, advice_for(who, before, was_write, is_write),
                       "%s %s %s memory %s, which %s %s; nothing orders the two", who_text(&who->tag),
                       is_write ? "writes" : "reads", cta ? "shared" : "global", place, who_text(before),
                       was_write ? (is_write ? "has written" : "writes") : "may still be reading");
}

// The writer's fence: in the lane that wrote, after the write, before what it handed on. Too long ago to
// remember counts as there.
static bool is_fenced(const Accessor *who, const Access *write) {
  if (write->cluster != who->domain->number) return true;
  const OrderWarp *writer = &who->domain->ctas[write->rank].warps[write->warp];
  uint32_t known = clock_get(who->now, writer->actor);
  uint32_t first = writer->nfences > FENCES ? writer->nfences - FENCES : 0;
  if (write->by == BY_COPY) {
    uint32_t fenced = write->lane < WARP_LANES ? writer->copies_fenced[write->lane] : 0;
    return fenced != 0 && clock_get(who->now, fenced) >= write->clock;
  }
  for (uint32_t i = first; i < writer->nfences; i++) {
    const FenceRecord *fence = &writer->fences[i % FENCES];
    if (i == first && first > 0 && fence->clock > known) return true;
    bool kind = fence->kind == CLASS_FENCE_ASYNC || write->by == BY_INIT;
    bool lane = write->lane == NO_LANE || fence->lanes >> write->lane & 1;
    if (kind && lane && fence->clock >= write->clock && fence->clock <= known) return true;
  }
  return false;
}

// cp.async, st.async and red.async are asynchronous, but not in the async proxy.
static bool in_async_proxy(const Order *order, const Accessor *who) {
  const Inst *inst = &order->machine->module->insts[who->tag.inst];
  return who->engine && who->tag.by != BY_COPY && order_class(order, inst) != CLASS_ST_ASYNC &&
         strcmp(inst->def->name, "red.async") != 0;
}

static void check_proxy(Order *order, OrderCta *cta, uint64_t address, const Accessor *who,
                        const Access *write, bool is_write) {
  bool generic = write->by == BY_THREAD || write->by == BY_COPY || write->by == BY_STRONG;
  if (!in_async_proxy(order, who) || !generic || is_fenced(who, write)) return;
  Machine *machine = order->machine;
  const Inst *insts = machine->module->insts;
  if (!finding_is_new(machine, CHECK_PROXY, &insts[who->tag.inst], &insts[write->inst])) return;
  Origin origin = access_origin(order, who->domain, &who->tag);
  OtherSide other = {"the generic proxy wrote it here", access_origin(order, who->domain, write),
                     write->cluster};
  const char *place = machine_symbolize(machine, cta ? cta->cta : who->warp->cta->cta,
                                        cta ? SPACE_SHARED : SPACE_GLOBAL, address);
  machine_finding_pair(
      machine, CHECK_PROXY, &origin, &other,
      cta ? "fence.proxy.async.shared::cta in every writing thread, after its writes and before the barrier"
          : "fence.proxy.async.global in every writing thread, after its writes and before the barrier",
      "the async proxy %s %s memory %s, which %s wrote, without a proxy fence by the writer",
      is_write ? "overwrites" : "reads", cta ? "shared" : "global", place, who_text(write));
}

// ---- accesses

static bool may_race(const Accessor *who, const Access *before) {
  return !(who->tag.by == before->by && (before->by == BY_STRONG || before->by == BY_REDUCE));
}

// Threads that write the same bytes at the same place do no harm, and compilers let them.
static bool same_value(const Accessor *who, const Cell *cell, const uint8_t *data, uint16_t mask) {
  const Access *before = &cell->write;
  if (!data || who->tag.by != BY_THREAD || before->by != BY_THREAD) return false;
  for (int i = 0; i < GRANULE; i++)
    if (mask & before->mask & 1u << i && cell->data[i] != data[i]) return false;
  return true;
}

static void keep_data(Cell *cell, const uint8_t *data, uint16_t mask) {
  for (int i = 0; i < GRANULE; i++)
    if (mask >> i & 1) cell->data[i] = data[i];
}

// The granule's bytes; those outside of the mask may not exist.
static const uint8_t *bytes_at(Machine *machine, const OrderCta *cta, uint64_t at, uint16_t mask) {
  if (cta) return cta->cta->smem + at;
  uint64_t skip = (uint64_t)__builtin_ctz(mask), bytes = 32 - (uint64_t)__builtin_clz(mask) - skip;
  const uint8_t *host = gmem_find(machine->gmem, at + skip, bytes, &machine->gmem_hint);
  return host ? host - skip : NULL;
}

static void check_cell(Order *order, OrderCta *cta, uint64_t address, const Cell *cell, uint16_t mask,
                       bool write, const Accessor *who, const uint8_t *data) {
  const Access *last = &cell->write;
  if (last->clock != 0 && (last->mask & mask) && may_race(who, last)) {
    if (!order_is_over(order, who, last) && !(write && same_value(who, cell, data, mask)))
      report(order, cta, address, who, last, true, write);
    else if (who->engine)
      check_proxy(order, cta, address, who, last, write);
  }
  if (!write) return;
  for (int i = 0; i < READERS; i++) {
    const Access *reader = &cell->reads[i];
    if (reader->clock == 0 || !(reader->mask & mask) || !may_race(who, reader)) continue;
    if (!order_is_over(order, who, reader)) report(order, cta, address, who, reader, false, true);
  }
}

static void note_outside(const Accessor *who, OrderCta *cta) {
  const Access *tag = &who->tag;
  if (cta->last_outside < cta->outside.len && cta->outside.data[cta->last_outside].actor == tag->actor) {
    cta->outside.data[cta->last_outside] = *tag;
    return;
  }
  for (int i = 0; i < cta->outside.len; i++) {
    if (cta->outside.data[i].actor != tag->actor) continue;
    cta->outside.data[cta->last_outside = i] = *tag;
    return;
  }
  cta->last_outside = cta->outside.len;
  vec_push(who->domain->arena, &cta->outside, *tag);
}

typedef struct {
  uint64_t at;    // address of the granule
  uint16_t mask;  // bytes of it
} Part;

static bool next_part(uint64_t *address, uint64_t end, Part *part) {
  if (*address >= end) return false;
  uint64_t at = *address / GRANULE * GRANULE, from = *address - at,
           to = end - at < GRANULE ? end - at : GRANULE;
  *part = (Part){at, (uint16_t)((0xFFFFu >> (GRANULE - (to - from))) << from)};
  *address = at + GRANULE;
  return true;
}

static Cell *cell_of(Order *order, OrderCta *cta, uint64_t address) {
  if (!cta) return shadow_cell(order->global, address);
  return address < cta->cta->smem_bytes ? &cta->cells[address / GRANULE] : NULL;
}

static void note(Cell *cell, const Accessor *who, uint16_t mask, bool write) {
  Access access = who->tag;
  access.mask = mask;
  if (write)
    cell_note_write(cell, &access);
  else
    cell_note_read(cell, &access, who->now);
}

void order_access(Order *order, OrderCta *cta, uint64_t address, uint64_t bytes, bool write, Accessor *who) {
  uint64_t end = address + bytes;
  for (Part part; next_part(&address, end, &part);) {
    Cell *cell = cell_of(order, cta, part.at);
    if (!cell) return;
    const uint8_t *data = NULL;
    if (write && who->tag.by == BY_THREAD) data = bytes_at(order->machine, cta, part.at, part.mask);
    check_cell(order, cta, part.at, cell, part.mask, write, who, data);
    if (data) keep_data(cell, data, part.mask);
    if (who->tag.clock != 0) note(cell, who, part.mask, write);
  }
  if (cta && who->tag.clock != 0 && (who->engine || who->warp->cta != cta)) note_outside(who, cta);
}

void order_note(Order *order, OrderCta *cta, uint64_t address, uint64_t bytes, bool write,
                const Accessor *who) {
  uint64_t end = address + bytes;
  for (Part part; next_part(&address, end, &part);) {
    Cell *cell = cell_of(order, cta, part.at);
    if (!cell) return;
    note(cell, who, part.mask, write);
  }
  if (cta) note_outside(who, cta);
}

void order_use_mbarrier(Order *order, OrderCta *cta, uint32_t offset, const Accessor *who) {
  Cell *cell = cell_of(order, cta, offset);
  if (who->warp->cta != cta && who->tag.clock != 0) note_outside(who, cta);
  if (cell && who->tag.clock != 0) note(cell, who, (uint16_t)(0xFF << offset % GRANULE), false);
  if (!cell || cell->write.clock == 0 || cell->write.by != BY_INIT) return;
  const Access *init = &cell->write;
  bool over = order_is_over(order, who, init);
  Machine *machine = order->machine;
  const Inst *insts = machine->module->insts;
  bool needs_fence = in_async_proxy(order, who) || who->warp->cta != cta;
  if (over && (!needs_fence || is_fenced(who, init))) return;
  Check check = over ? CHECK_PROXY : CHECK_RACE;
  if (!finding_is_new(machine, check, &insts[who->tag.inst], &insts[init->inst])) return;
  Origin origin = access_origin(order, who->domain, &who->tag);
  OtherSide other = {"it is initialised here", access_origin(order, who->domain, init), init->cluster};
  const char *place = machine_symbolize(machine, cta->cta, SPACE_SHARED, offset);
  machine_finding_pair(
      machine, check, &origin, &other,
      over ? "fence.mbarrier_init.release.cluster after the mbarrier.init and before the barrier that hands "
             "it on"
           : "put a barrier (of the cluster, if other CTAs use it) between mbarrier.init and the first use",
      over ? "mbarrier %s is used by %s, and no fence followed its initialisation"
           : "mbarrier %s is used by %s, and nothing orders that after its initialisation",
      place, over ? "an asynchronous operation or another CTA" : who_text(&who->tag));
}

// ---- exit

void order_exit(Order *order, Domain *domain, OrderCta *cta, const Clock *now) {
  Machine *machine = order->machine;
  const Inst *insts = machine->module->insts;
  for (int i = 0; i < cta->outside.len; i++) {
    const Access *access = &cta->outside.data[i];
    if (clock_get(now, access->actor) >= access->clock) continue;
    bool own = access->rank == cta->cta->rank;
    if (own && order_class(order, &insts[access->inst]) == CLASS_COMMIT) continue;
    if (!finding_is_new(machine, CHECK_EXIT, &insts[access->inst], NULL)) continue;
    Origin origin = access_origin(order, domain, access);
    machine_finding_pair(
        machine, CHECK_EXIT, &origin, NULL,
        own ? "wait for the operation before the CTA's last warp exits"
            : "end with a cluster barrier after the last access to another CTA",
        "CTA (%u,%u,%u) exits, and nothing tells that this access of %s to its shared memory is over",
        cta->cta->id[0], cta->cta->id[1], cta->cta->id[2], who_text(access));
  }
}

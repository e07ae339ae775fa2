// Tensor memory: accesses of different threads need a wait, a barrier and the two tcgen05 fences around it
// (PTX ISA 9.7.16.6).
#include <string.h>

#include "check/order.h"
#include "exec/report.h"
#include "mem/tmem.h"

typedef enum { LINK_FENCED, LINK_NO_AFTER, LINK_NO_BEFORE, LINK_NO_WAIT, LINK_NONE } Link;

// What connects an earlier access with the accessor.
static Link link_between(const Order *order, const Accessor *who, const Access *before) {
  const OrderWarp *warp = &who->domain->ctas[before->rank].warps[before->warp];
  if (!order_is_over(order, who, before)) {
    // The load came before, but nobody waited for it: hardware seems to deliver loads at once.
    bool issued = before->by == BY_LD && clock_get(who->now, warp->actor) >= before->issued;
    return issued ? LINK_NO_WAIT : LINK_NONE;
  }
  if (before->actor == who->tag.actor) return LINK_FENCED;
  bool tensor = before->by == BY_TENSOR, dealloc = who->tag.by == BY_DEALLOC;
  if (warp == who->warp && !tensor) return LINK_FENCED;
  uint32_t actor = tensor ? before->actor : before->by == BY_LD ? warp->ld_fenced : warp->st_fenced;
  if (clock_get(who->now, actor) < before->clock) return LINK_NO_BEFORE;
  return dealloc || clock_get(who->after, actor) >= before->clock ? LINK_FENCED : LINK_NO_AFTER;
}

static const char *name_of(const Access *access) {
  switch ((AccessBy)access->by) {
  case BY_TENSOR:
    return "the tensor core";
  case BY_LD:
    return "tcgen05.ld";
  case BY_ST:
    return "tcgen05.st";
  case BY_DEALLOC:
    return "tcgen05.dealloc";
  case BY_THREAD:
  case BY_COPY:
  case BY_INIT:
  case BY_INVAL:
  case BY_REDUCE:
  case BY_TMA:
  case BY_WGMMA:
  case BY_STRONG:
    break;
  }
  return "somebody";
}

static const char *advice_for(Link link, const Access *before) {
  switch (link) {
  case LINK_NO_AFTER:
    return "tcgen05.fence::after_thread_sync between the wait and this instruction";
  case LINK_NO_BEFORE:
    return "tcgen05.fence::before_thread_sync between that instruction (and its tcgen05.wait) and the arrive "
           "or barrier";
  case LINK_NO_WAIT:
    return "tcgen05.wait::ld after the load, before it is handed on or what it reads is written";
  case LINK_NONE:
  case LINK_FENCED:
    break;
  }
  if (before->by == BY_TENSOR) return "tcgen05.commit to an mbarrier after the mma, and wait for that phase";
  return before->by == BY_LD ? "tcgen05.wait::ld, tcgen05.fence::before_thread_sync, and a barrier or "
                               "arrive; here wait for it"
                             : "tcgen05.wait::st, tcgen05.fence::before_thread_sync, and a barrier or "
                               "arrive; here wait for it";
}

static void report(Order *order, const Accessor *who, const Access *before, Link link, uint32_t address,
                   bool was_write, bool write) {
  Machine *machine = order->machine;
  const Inst *insts = machine->module->insts;
  Check check = link == LINK_NONE ? CHECK_RACE : CHECK_TCGEN05;
  if (!finding_is_new(machine, check, &insts[who->tag.inst], &insts[before->inst])) return;
  Origin origin = access_origin(order, who->domain, &who->tag);
  OtherSide other = {was_write ? "it was written here" : "it is read here",
                     access_origin(order, who->domain, before), before->cluster};
  const char *missing = link == LINK_NO_AFTER    ? "tcgen05.fence::after_thread_sync is missing"
                        : link == LINK_NO_BEFORE ? "tcgen05.fence::before_thread_sync is missing"
                        : link == LINK_NO_WAIT   ? "tcgen05.wait::ld is missing"
                                                 : "nothing orders the two";
  machine_finding_pair(machine, check, &origin, &other, advice_for(link, before),
                       "%s %s tensor memory from lane %u, column %u, which %s %s; %s", name_of(&who->tag),
                       who->tag.by == BY_DEALLOC ? "frees"
                       : write                   ? "writes"
                                                 : "reads",
                       address >> 16, address & 0xFFFF, name_of(before),
                       was_write ? (write ? "has written" : "writes") : "may still be reading", missing);
}

static void check_record(Order *order, const Accessor *who, const Access *before, uint32_t address,
                         bool was_write, bool write) {
  if (before->clock == 0) return;
  Link link = link_between(order, who, before);
  if (link != LINK_FENCED) report(order, who, before, link, address, was_write, write);
}

void tmem_access(Order *order, OrderCta *cta, const Event *event, bool write, Accessor *who) {
  if (!cta->tmem) cta->tmem = ARENA_ARRAY(who->domain->arena, Cell, TMEM_COLUMNS * TMEM_BANDS);
  uint32_t first = (uint32_t)tmem_column((uint32_t)event->address);
  for (uint32_t column = first; column < first + event->bytes && column < TMEM_COLUMNS; column++) {
    for (uint32_t band = 0; band < TMEM_BANDS; band++) {
      if (!(event->bands >> band & 1)) continue;
      Cell *cell = &cta->tmem[column * TMEM_BANDS + band];
      uint32_t address = band << 20 | column;
      check_record(order, who, &cell->write, address, true, write);
      for (int i = 0; write && i < READERS; i++)
        check_record(order, who, &cell->reads[i], address, false, true);
      Access access = who->tag;
      access.mask = 1;
      if (who->tag.by == BY_DEALLOC) continue;
      if (write)
        cell_note_write(cell, &access);
      else
        cell_note_read(cell, &access, who->now);
    }
  }
}

void tmem_reset(OrderCta *cta, int first, int columns) {
  if (cta->tmem && first >= 0 && first + columns <= TMEM_COLUMNS)
    memset(&cta->tmem[first * TMEM_BANDS], 0, (size_t)(columns * TMEM_BANDS) * sizeof *cta->tmem);
}

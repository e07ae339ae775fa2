// Why nothing moves: each waiting group of lanes with what it waits for, and the state of every mbarrier that
// somebody waits for.
#include "exec/exec.h"

#include <string.h>

#include "async/engine.h"
#include "check/observers.h"
#include "check/supply.h"
#include "exec/report.h"

enum { MOST_GROUPS = 24 };

static void describe_mbarrier(TextBuf *out, Machine *machine, const Wait *wait) {
  Cta *cta = wait->cta;
  uint32_t offset = (uint32_t)wait->address & ((1u << SHARED_RANK_SHIFT) - 1);
  textbuf_printf(out, "mbarrier %s, phase with parity %u",
                 machine_symbolize(machine, cta, SPACE_SHARED, wait->address), wait->number & 1);
  if (offset + 8 > cta->smem_bytes) return;
  uint64_t word;
  memcpy(&word, cta->smem + offset, sizeof word);
  MbarrierState state = mbarrier_decode(word);
  if (!state.valid) {
    textbuf_puts(out, "; it is not initialised");
    return;
  }
  textbuf_printf(out, "; its current phase has parity %u: %u of %u arrivals missing, %lld bytes outstanding",
                 state.phase, state.pending, state.expected, (long long)state.tx);
  const char *pending = engine_describe_pending(machine, cta, wait->address);
  if (pending != NULL) textbuf_printf(out, "; %s", pending);
  const char *past = mbarrier_describe_arrivals(machine, cta, offset);
  if (past != NULL) textbuf_printf(out, "; %s", past);
  supply_describe(out, machine, cta, offset);
}

static void describe_barrier(TextBuf *out, const Wait *wait) {
  const Cta *cta = wait->cta;
  const NamedBarrier *barrier = &cta->barriers[wait->number];
  uint32_t expected = barrier->whole_cta ? (uint32_t)cta->live_warps * WARP_LANES : barrier->expected;
  textbuf_printf(out, "barrier %u: %u of %u threads have arrived; absent:", wait->number, barrier->arrived,
                 expected);
  for (int w = 0; w < cta->nwarps; w++) {
    const Warp *warp = &cta->warps[w];
    bool here = false;
    for (int i = 0; i < warp->ngroups; i++) {
      const Wait *other = &warp->groups[i].wait;
      here |= other->kind == WAIT_BARRIER && other->number == wait->number;
    }
    if (!here) textbuf_printf(out, warp->live == 0 ? " %d (exited)" : " %d", w);
  }
}

static void describe_wait(TextBuf *out, Machine *machine, const Warp *warp, const Wait *wait) {
  const Cluster *cluster = warp->cta->cluster;
  switch (wait->kind) {
  case WAIT_NONE:
    textbuf_puts(out, "nothing: it runs, but only polls");
    break;
  case WAIT_TURN:
    textbuf_puts(out, "nothing: it polls");
    break;
  case WAIT_LANES:
    textbuf_printf(out, "lanes 0x%08x of the warp", wait->lanes & warp->live);
    break;
  case WAIT_BARRIER:
    describe_barrier(out, wait);
    break;
  case WAIT_CLUSTER:
    textbuf_printf(out, "the cluster barrier: %u of %u threads have arrived", cluster->barrier_arrived,
                   cluster->threads);
    break;
  case WAIT_MBARRIER:
    describe_mbarrier(out, machine, wait);
    break;
  case WAIT_GROUP:
    textbuf_printf(out, "%s", wait->what != NULL ? wait->what : "a group");
    break;
  case WAIT_TMEM_ALLOC:
    textbuf_printf(out, "%u free columns of tensor memory", wait->number);
    break;
  case WAIT_PEER:
  case WAIT_OTHER:
    textbuf_printf(out, "%s", wait->what != NULL ? wait->what : "something else");
    break;
  }
  textbuf_puts(out, "\n");
}

static void describe_group(TextBuf *out, Machine *machine, const Warp *warp, const LaneGroup *group) {
  const Inst *inst = &machine->module->insts[group->pc];
  Origin origin = {warp->cta, warp->index, -1, inst};
  textbuf_puts(out, "- ");
  report_thread(out, machine, warp->cta, warp->index, -1);
  textbuf_printf(out, ", lanes 0x%08x waits for ", group->lanes);
  describe_wait(out, machine, warp, &group->wait);
  origin.cta = NULL;
  report_place(out, machine, &origin);
}

static void describe_cluster(TextBuf *out, Machine *machine, const Cluster *cluster, int *shown,
                             int *hidden) {
  for (int c = 0; c < cluster->nctas; c++) {
    for (int w = 0; w < cluster->ctas[c].nwarps; w++) {
      const Warp *warp = &cluster->ctas[c].warps[w];
      for (int g = 0; warp->live != 0 && g < warp->ngroups; g++) {
        if (*shown == MOST_GROUPS) {
          ++*hidden;
          continue;
        }
        ++*shown;
        describe_group(out, machine, warp, &warp->groups[g]);
      }
    }
  }
}

void hang_report(Machine *machine, bool livelock) {
  TextBuf out = {.arena = machine->arena};
  textbuf_printf(&out,
                 livelock ? "%s: hang: threads poll, and nothing that they could wait for moves\n"
                          : "%s: hang: every thread waits, and nothing is in flight that could wake one\n",
                 machine->module->name);
  int shown = 0, hidden = 0;
  for (int i = 0; i < machine->nclusters; i++)
    describe_cluster(&out, machine, machine->clusters[i], &shown, &hidden);
  if (hidden > 0) textbuf_printf(&out, "- and %d more groups of lanes\n", hidden);
  machine->fault = (Fault){.happened = true, .hang = true, .cluster = machine->running, .text = out.data};
}

// Windows and bounds. Everything that an address can be wrong about is said here, once.
#include "mem/space.h"

#include <stdio.h>

#include "machine.h"

static uint8_t *fail(SpaceError *why, const char *what, uint64_t address, uint64_t bytes, const char *more) {
  snprintf(why->text, sizeof why->text, "%llu bytes at %s address 0x%llx: %s", (unsigned long long)bytes,
           what, (unsigned long long)address, more);
  return NULL;
}

static uint8_t *find_shared(Cta *cta, uint64_t address, uint64_t bytes, SpaceError *why) {
  uint32_t offset = (uint32_t)address & ((1u << SHARED_RANK_SHIFT) - 1);
  if (offset + bytes > cta->smem_bytes) {
    char text[120];
    snprintf(text, sizeof text,
             "the CTA's shared memory ends at 0x%x (statics and dynamic, after the system's 0x%x)",
             cta->smem_bytes, SHARED_FIRST);
    return fail(why, "shared", address, bytes, text);
  }
  return cta->smem + offset;
}

static uint8_t *find_own_shared(Warp *warp, uint64_t address, uint64_t bytes, SpaceError *why) {
  uint32_t rank = (uint32_t)address >> SHARED_RANK_SHIFT;
  if (rank != warp->cta->rank || address >> 32 != 0) {
    char text[100];
    snprintf(text, sizeof text,
             "it names the CTA of rank %u, this one has rank %u, and the access is not to shared::cluster",
             rank, warp->cta->rank);
    return fail(why, "shared", address, bytes, text);
  }
  return find_shared(warp->cta, address, bytes, why);
}

Cta *space_shared_cta(Machine *machine, const Cta *from, uint64_t address, uint32_t *offset) {
  (void)machine;
  if (address >> 32 != 0 && !space_is_shared(address)) return NULL;
  uint32_t rank = (uint32_t)address >> SHARED_RANK_SHIFT;
  *offset = (uint32_t)address & ((1u << SHARED_RANK_SHIFT) - 1);
  return rank < (uint32_t)from->cluster->nctas ? &from->cluster->ctas[rank] : NULL;
}

static uint8_t *find_cluster_shared(Machine *machine, Warp *warp, uint64_t address, uint64_t bytes,
                                    SpaceError *why) {
  uint32_t offset;
  Cta *cta = space_shared_cta(machine, warp->cta, address, &offset);
  if (cta == NULL) return fail(why, "shared::cluster", address, bytes, "no CTA of the cluster has that rank");
  if (cta->ended) return fail(why, "shared::cluster", address, bytes, "that CTA has exited");
  return find_shared(cta, address, bytes, why);
}

static uint8_t *find_local(Machine *machine, Warp *warp, int lane, uint64_t address, uint64_t bytes,
                           SpaceError *why) {
  uint64_t entry = machine->launch->entry->local_bytes, total = warp->cta->local_bytes;
  uint64_t offset = address & LOCAL_FUNC ? entry + (address & ~(uint64_t)LOCAL_FUNC) : address;
  uint64_t end = address & LOCAL_FUNC ? total : entry;
  if (offset > end || bytes > end - offset)
    return fail(why, "local", address, bytes, "outside of the thread's local memory");
  return warp->local + (uint64_t)lane * total + offset;
}

static uint8_t *find_param(Machine *machine, Warp *warp, int lane, uint64_t address, uint64_t bytes,
                           bool write, SpaceError *why) {
  if (address >= PARAM_LOCAL) return find_local(machine, warp, lane, address - PARAM_LOCAL, bytes, why);
  uint64_t end = machine->launch->param_bytes;
  if (address > end || bytes > end - address)
    return fail(why, "parameter", address, bytes, "outside of the parameters");
  if (write) return fail(why, "parameter", address, bytes, "kernel parameters are read-only");
  return (uint8_t *)(uintptr_t)(machine->launch->params + address);
}

static uint8_t *find_global(Machine *machine, uint64_t address, uint64_t bytes, SpaceError *why) {
  uint8_t *host = gmem_find(machine->gmem, address, bytes, &machine->gmem_hint);
  if (host != NULL) return host;
  char text[160];
  gmem_explain(machine->gmem, address, text, sizeof text);
  return fail(why, "global", address, bytes, text);
}

static uint8_t *find_generic(Machine *machine, Warp *warp, int lane, uint64_t address, uint64_t bytes,
                             bool write, SpaceError *why) {
  switch (address >> 32) {
  case SHARED_WINDOW >> 32:
    return find_cluster_shared(machine, warp, address, bytes, why);
  case LOCAL_WINDOW >> 32:
    return find_local(machine, warp, lane, (uint32_t)address, bytes, why);
  case PARAM_WINDOW >> 32:
    return find_param(machine, warp, lane, (uint32_t)address, bytes, write, why);
  default:
    return find_global(machine, address, bytes, why);
  }
}

uint8_t *space_find(Machine *machine, Warp *warp, int lane, Space space, uint64_t address, uint64_t bytes,
                    bool write, SpaceError *why) {
  switch (space) {
  case SPACE_GENERIC:
    return find_generic(machine, warp, lane, address, bytes, write, why);
  case SPACE_GLOBAL:
  case SPACE_CONST:
    return find_global(machine, address, bytes, why);
  case SPACE_SHARED:
    return find_own_shared(warp, address, bytes, why);
  case SPACE_SHARED_CLUSTER:
    return find_cluster_shared(machine, warp, address, bytes, why);
  case SPACE_LOCAL:
    return find_local(machine, warp, lane, address, bytes, why);
  case SPACE_PARAM:
    return find_param(machine, warp, lane, address, bytes, write, why);
  case SPACE_TMEM:
    break;
  }
  return fail(why, "tensor memory", address, bytes, "no load or store reaches it");
}

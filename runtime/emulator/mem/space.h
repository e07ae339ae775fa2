// Address windows: one 64-bit generic address space with shared, local and parameter windows, everything else
// is global. A 32-bit shared address is rank << 24 | offset, also for plain symbols; the first KiB of each
// CTA's shared memory belongs to the system, statics start at 0x400, the dynamic array follows (measured on
// hardware).
#ifndef PTXEMU_MEM_SPACE_H
#define PTXEMU_MEM_SPACE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Machine Machine;
typedef struct Warp Warp;
typedef struct Cta Cta;

typedef enum {
  SPACE_GENERIC,
  SPACE_GLOBAL,
  SPACE_SHARED,  // shared::cta: another CTA's bits fault
  SPACE_SHARED_CLUSTER,
  SPACE_LOCAL,
  SPACE_PARAM,
  SPACE_CONST,  // lives in global memory
  SPACE_TMEM,   // events only
} Space;

#define SHARED_WINDOW 0x00007e0000000000u  // 2^32-aligned: generic = window + 32-bit shared address
#define LOCAL_WINDOW 0x00007d0000000000u
#define PARAM_WINDOW 0x00007c0000000000u
#define GLOBAL_BASE 0x0000001000000000u  // first address that gmem hands out
#define SHARED_RANK_SHIFT 24
#define SHARED_FIRST 0x400u

// Why an access is illegal: filled by the lookups below, printed by machine_fault.
typedef struct {
  char text[256];
} SpaceError;

// Host address of `bytes` bytes at `address` of `space` as seen by a lane, or NULL with the reason.
// Checks bounds only; alignment is the instruction's affair. `write` refuses read-only memory (parameters of
// entries).
uint8_t *space_find(Machine *machine, Warp *warp, int lane, Space space, uint64_t address, uint64_t bytes,
                    bool write, SpaceError *why);

// The CTA that a shared::cluster address (32 bits, or generic inside the shared window) names, or NULL;
// *offset within it.
Cta *space_shared_cta(Machine *machine, const Cta *from, uint64_t address, uint32_t *offset);

// True and the 32-bit shared address when a generic address lies in the shared window.
static inline bool space_is_shared(uint64_t generic) {
  return generic >> 32 == SHARED_WINDOW >> 32;
}

#endif

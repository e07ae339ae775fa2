// Global memory: allocations of their own calloc each, spread over emulated addresses with unmapped gaps
// between them, so that an access outside of an allocation is a fault however far it goes. Shared by all
// workers of a launch.
#ifndef PTXEMU_MEM_GMEM_H
#define PTXEMU_MEM_GMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Gmem Gmem;

typedef struct {
  uint64_t base, bytes;
  uint8_t *host;
  const char *name;  // owned; for reports
} GmemBlock;

Gmem *gmem_new(void);
void gmem_free(Gmem *gmem);

// A zeroed block, aligned to 256 bytes; 0 when there is no memory. `name` is copied, may be NULL.
uint64_t gmem_alloc(Gmem *gmem, uint64_t bytes, const char *name);
bool gmem_release(Gmem *gmem, uint64_t base);

// Where the next block will lie; and giving back all blocks from there on.
uint64_t gmem_mark(const Gmem *gmem);
void gmem_reset(Gmem *gmem, uint64_t mark);

// The block that holds the address (bytes == 0: nearest block below, for reports), or NULL.
const GmemBlock *gmem_block(const Gmem *gmem, uint64_t address, uint64_t bytes);

// What lies near an address that is in no block, for reports.
void gmem_explain(const Gmem *gmem, uint64_t address, char *text, size_t size);

// The live block of that name, the latest of several; or NULL.
const GmemBlock *gmem_named(const Gmem *gmem, const char *name, size_t length);

// Host address, or NULL when any byte lies outside of one block. `*hint` is a caller-owned cache of the last
// block (may start as NULL).
uint8_t *gmem_find(const Gmem *gmem, uint64_t address, uint64_t bytes, const GmemBlock **hint);

#endif

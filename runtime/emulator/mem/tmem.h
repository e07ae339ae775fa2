// Tensor memory of one CTA: 128 lanes x 512 columns of 32-bit cells, handed out in units of 32 columns (PTX
// ISA 9.7.16.1, 9.7.16.7). An address is lane << 16 | column. Each emulated CTA has an SM's tensor memory for
// itself.
#ifndef PTXEMU_MEM_TMEM_H
#define PTXEMU_MEM_TMEM_H

#include <stdbool.h>
#include <stdint.h>

enum { TMEM_LANES = 128, TMEM_COLUMNS = 512, TMEM_UNIT = 32, TMEM_UNITS = TMEM_COLUMNS / TMEM_UNIT };

typedef struct {
  uint32_t *cells;            // [lane][column]; NULL until the first allocation
  uint8_t owner[TMEM_UNITS];  // 0: free, otherwise 1 + first unit of the allocation
  uint32_t last_columns;      // of the latest allocation, 0: none yet
  bool relinquished;
} Tmem;

static inline int tmem_lane(uint32_t address) {
  return (int)(address >> 16);
}
static inline int tmem_column(uint32_t address) {
  return (int)(address & 0xFFFF);
}
static inline uint32_t *tmem_cell(const Tmem *tmem, int lane, int column) {
  return tmem->cells + lane * TMEM_COLUMNS + column;
}

// Why an allocation of so many columns is illegal whatever is free, or NULL. The text has no numbers of the
// request.
const char *tmem_alloc_error(const Tmem *tmem, uint32_t columns);
// First fit: the first column, or -1 when nothing fits now.
int tmem_fit(const Tmem *tmem, uint32_t columns);
void tmem_take(Tmem *tmem, int first, uint32_t columns);
// False when `first` and `columns` are not those of one live allocation.
bool tmem_release(Tmem *tmem, uint32_t first, uint32_t columns);

// True when all of the columns are allocated.
bool tmem_allocated(const Tmem *tmem, int first, int columns);
int tmem_columns_held(const Tmem *tmem);

#endif

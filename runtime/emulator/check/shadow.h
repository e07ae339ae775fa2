// What is remembered of memory: for each 16 bytes (in tensor memory: 16 lanes of a column) who wrote last and
// who has read since. A record names an actor of its cluster and a clock value: it is over for everyone whose
// clock has that value.
#ifndef PTXEMU_CHECK_SHADOW_H
#define PTXEMU_CHECK_SHADOW_H

#include "base/vec.h"
#include "check/clock.h"
#include "machine.h"

enum { GRANULE = 16, READERS = 3, TMEM_BANDS = 8, NO_LANE = 255 };

typedef enum {
  BY_THREAD,  // generic proxy
  BY_COPY,    // cp.async: generic proxy, asynchronous
  BY_INVAL,   // mbarrier.inval
  BY_INIT,    // mbarrier.init
  BY_REDUCE,  // the same, as an atomic sum
  BY_TMA,     // loads and stores, async proxy
  BY_TENSOR,  // tcgen05.mma, cp
  BY_WGMMA,
  BY_LD,  // tcgen05.ld and st
  BY_ST,
  BY_STRONG,  // atomics and the like
  BY_DEALLOC,
} AccessBy;

typedef struct {
  uint32_t clock;  // 0: no record
  uint16_t actor;
  uint16_t mask;     // bytes of the granule
  uint32_t inst;     // index in the module
  uint32_t cluster;  // its number
  uint32_t issued;   // tcgen05.ld: the warp's clock then
  uint8_t rank, warp, lane;
  uint8_t by;  // AccessBy
} Access;

typedef struct {
  Access write, reads[READERS];
  uint8_t data[GRANULE];        // what a thread wrote
  uint32_t sync, sync_cluster;  // 1 + index of the domain's clock that strong accesses to it share; 0: none
} Cell;

// Cells of global memory, made as they are touched.
typedef struct Shadow Shadow;
Shadow *shadow_new(Arena *arena);
Cell *shadow_cell(Shadow *shadow, uint64_t address);

// Notes an access in a cell; `now` tells which older readers it makes superfluous.
void cell_note_read(Cell *cell, const Access *access, const Clock *now);
void cell_note_write(Cell *cell, const Access *access);

#endif

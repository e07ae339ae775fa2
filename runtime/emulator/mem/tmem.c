// The allocator: a map of 16 units. Nothing documents which columns hardware picks; kernels in the field rely
// on column 0 for the first allocation, so this is first fit.
#include "mem/tmem.h"

const char *tmem_alloc_error(const Tmem *tmem, uint32_t columns) {
  if (columns < TMEM_UNIT || columns > TMEM_COLUMNS || (columns & (columns - 1)))
    return "the number of columns must be 32, 64, 128, 256 or 512";
  if (tmem->relinquished) return "the CTA has given up its permit (relinquish_alloc_permit)";
  if (tmem->last_columns && columns > tmem->last_columns)
    return "a CTA's allocations must not grow from one to the next";
  return 0;
}

int tmem_fit(const Tmem *tmem, uint32_t columns) {
  int units = (int)columns / TMEM_UNIT, run = 0;
  for (int unit = 0; unit < TMEM_UNITS; unit++) {
    run = tmem->owner[unit] ? 0 : run + 1;
    if (run == units) return (unit - units + 1) * TMEM_UNIT;
  }
  return -1;
}

void tmem_take(Tmem *tmem, int first, uint32_t columns) {
  int unit = first / TMEM_UNIT;
  for (int i = 0; i < (int)columns / TMEM_UNIT; i++) tmem->owner[unit + i] = (uint8_t)(1 + unit);
  tmem->last_columns = columns;
}

bool tmem_release(Tmem *tmem, uint32_t first, uint32_t columns) {
  if (first >= TMEM_COLUMNS || first % TMEM_UNIT || columns % TMEM_UNIT || columns == 0) return false;
  unsigned unit = first / TMEM_UNIT, count = columns / TMEM_UNIT;
  if (unit + count > TMEM_UNITS) return false;
  for (unsigned i = 0; i < count; i++)
    if (tmem->owner[unit + i] != 1 + unit) return false;
  if (unit + count < TMEM_UNITS && tmem->owner[unit + count] == 1 + unit) return false;
  for (unsigned i = 0; i < count; i++) tmem->owner[unit + i] = 0;
  return true;
}

bool tmem_allocated(const Tmem *tmem, int first, int columns) {
  if (first < 0 || columns < 0 || first + columns > TMEM_COLUMNS) return false;
  for (int unit = first / TMEM_UNIT; unit * TMEM_UNIT < first + columns; unit++)
    if (!tmem->owner[unit]) return false;
  return true;
}

int tmem_columns_held(const Tmem *tmem) {
  int held = 0;
  for (int unit = 0; unit < TMEM_UNITS; unit++) held += tmem->owner[unit] ? TMEM_UNIT : 0;
  return held;
}

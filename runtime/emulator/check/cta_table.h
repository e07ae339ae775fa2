// A small map from live CTAs to what an observer keeps of them.
#ifndef PTXEMU_CHECK_CTA_TABLE_H
#define PTXEMU_CHECK_CTA_TABLE_H

#include "machine.h"

typedef struct {
  const Cta **ctas;
  void **values;
  int n, cap, last;
} CtaTable;

// The value of a CTA: zeroed memory of `bytes` when it is new; NULL when there is no memory.
void *cta_table_get(CtaTable *table, const Cta *cta, size_t bytes);
// Forgets the CTA and returns its value, which the caller frees, or NULL.
void *cta_table_take(CtaTable *table, const Cta *cta);
// Frees the table and the values in it.
void cta_table_free(CtaTable *table);

#endif

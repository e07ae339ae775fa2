// Few CTAs live at once: a list, with the one of the last call at hand.
#include "check/cta_table.h"

#include <stdlib.h>

static int find(CtaTable *table, const Cta *cta) {
  if (table->last < table->n && table->ctas[table->last] == cta) return table->last;
  for (int i = 0; i < table->n; i++)
    if (table->ctas[i] == cta) return table->last = i;
  return -1;
}

void *cta_table_get(CtaTable *table, const Cta *cta, size_t bytes) {
  int at = find(table, cta);
  if (at >= 0) return table->values[at];
  if (table->n == table->cap) {
    int cap = table->cap ? 2 * table->cap : 16;
    const Cta **ctas = realloc(table->ctas, (size_t)cap * sizeof *ctas);
    if (ctas) table->ctas = ctas;
    void **values = realloc(table->values, (size_t)cap * sizeof *values);
    if (values) table->values = values;
    if (!ctas || !values) return NULL;
    table->cap = cap;
  }
  void *value = calloc(1, bytes);
  if (!value) return NULL;
  table->ctas[table->n] = cta;
  table->values[table->n] = value;
  table->last = table->n;
  return table->values[table->n++];
}

void *cta_table_take(CtaTable *table, const Cta *cta) {
  int at = find(table, cta);
  if (at < 0) return NULL;
  void *value = table->values[at];
  table->n--;
  table->ctas[at] = table->ctas[table->n];
  table->values[at] = table->values[table->n];
  return value;
}

void cta_table_free(CtaTable *table) {
  for (int i = 0; i < table->n; i++) free(table->values[i]);
  free(table->ctas);
  free(table->values);
  *table = (CtaTable){0};
}

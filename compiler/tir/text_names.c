// Words that printer and parser share.
#include "tir/text_names.h"

#include <stddef.h>

const char *const tir_fact_names[] = {"typed",       "selected", "laid_out",    "fragments",
                                      "tmem_placed", "synced",   "smem_placed", NULL};
const char *const tir_variant_names[] = {"only", "tma", "general", NULL};
const char *const tir_block_order_names[] = {"launched", "rows", "columns", NULL};

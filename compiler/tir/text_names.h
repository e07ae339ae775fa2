// Words that printer and parser share.
#ifndef TILEC_TIR_TEXT_NAMES_H
#define TILEC_TIR_TEXT_NAMES_H

// In the order of the bits of TirFacts, of Variant and of BlockOrder, NULL-terminated.
extern const char *const tir_fact_names[];
extern const char *const tir_variant_names[];
extern const char *const tir_block_order_names[];

#endif

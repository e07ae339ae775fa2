// Limits of a target, restated here on purpose: the emulator is a second opinion on the compiler's table.
#ifndef PTXEMU_ARCH_ARCH_H
#define PTXEMU_ARCH_ARCH_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Arch {
  const char *name;
  int sm;
  uint32_t shared_per_cta;  // bytes a CTA may use, without the system's KiB
  uint32_t threads_per_cta;
  uint32_t cluster_ctas;  // opt-in maximum; 8 are portable
  uint32_t tmem_columns;
  bool has_wgmma;
} Arch;

// The table row for a module's .target, or NULL: nothing is known of it.
const Arch *arch_find(int sm);

#endif

// Limits of the two targets, from the tuning guides and, for the older one, measured.
#include "arch/arch.h"

#include <stddef.h>

static const Arch archs[] = {
    {"sm_90a", 90, 232448, 1024, 16, 0, true},
    {"sm_100a", 100, 232448, 1024, 16, 512, false},
};

const Arch *arch_find(int sm) {
  for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
    if (archs[i].sm == sm) return &archs[i];
  return NULL;
}

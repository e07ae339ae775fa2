// Which code could still complete a phase that somebody waits for: for the explanation of a hang.
#ifndef PTXEMU_CHECK_SUPPLY_H
#define PTXEMU_CHECK_SUPPLY_H

#include "machine.h"

// Adds to `out` which instructions that arrive at this mbarrier, or bring bytes to it, some thread of the cluster can still reach from
// where it stands, and from whom; or that there is none. Addresses are those that the registers hold now.
void supply_describe(TextBuf *out, Machine *machine, const Cta *cta, uint32_t offset);

#endif

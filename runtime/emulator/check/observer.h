// The observers behind --check.
#ifndef PTXEMU_CHECK_OBSERVER_H
#define PTXEMU_CHECK_OBSERVER_H

#include "exec/observer.h"

// Adds the observers of machine->checks.
void checks_begin(Machine *machine);

// True when clusters must run in one machine, since their accesses to global memory are compared.
bool checks_compare_clusters(uint32_t checks);

// Parses a --check list into a set of bits (1 << Check). NULL, or an error text that names the bad word.
const char *checks_parse(Arena *arena, const char *list, uint32_t *checks);

#endif

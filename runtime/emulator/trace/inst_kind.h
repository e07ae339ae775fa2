// What sort of instruction it is, for counts and for a warp's role.
#ifndef PTXEMU_TRACE_INST_KIND_H
#define PTXEMU_TRACE_INST_KIND_H

#include "machine.h"

typedef enum {
  KIND_OTHER,
  KIND_MOVE,
  KIND_INTEGER,
  KIND_FLOAT,
  KIND_CONVERT,
  KIND_COMPARE,
  KIND_BRANCH,
  KIND_WARP,
  KIND_GLOBAL,  // loads and stores by space
  KIND_SHARED,
  KIND_MEMORY,  // local, parameters, constants, generic
  KIND_ATOMIC,
  KIND_COPY,  // TMA, bulk and cp.async, with their commits and waits
  KIND_MBARRIER,
  KIND_BARRIER,
  KIND_FENCE,
  KIND_MMA,
  KIND_TMEM,  // tcgen05 but the MMA
  KIND_COUNT,
} InstKind;

// A few words: "loads and stores, shared".
const char *inst_kind_name(InstKind kind);
// The kinds of all instructions of the module, in its order; in the launch arena.
const uint8_t *inst_kinds(Machine *machine);
// The same for one; `kinds` is what inst_kinds gave.
static inline InstKind inst_kind(const Machine *machine, const uint8_t *kinds, const Inst *inst) {
  return (InstKind)kinds[inst - machine->module->insts];
}

#endif

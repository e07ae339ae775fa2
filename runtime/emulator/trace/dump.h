// Ranges of memory in figures, --dump: shared and tensor memory of a CTA when it ends or the launch stops, global
// memory afterwards.
#ifndef PTXEMU_TRACE_DUMP_H
#define PTXEMU_TRACE_DUMP_H

#include "exec/observer.h"

typedef enum { DUMP_HEX, DUMP_I32, DUMP_U8, DUMP_F32, DUMP_F16, DUMP_BF16, DUMP_MBARRIER } DumpType;

typedef struct DumpRange {
  const char *text;  // as given
  Space space;       // SPACE_SHARED, SPACE_TMEM or SPACE_GLOBAL
  uint32_t cta;      // linear number
  uint64_t address, bytes;
  int column, columns, lane, lanes;  // tensor memory
  DumpType type;
  bool shown;  // set by the worker that runs the CTA
} DumpRange;

// "shared[@CTA]:START+BYTES", "tmem[@CTA]:C0-C1/L0-L1", "global:START+BYTES", each with ":TYPE" after it if
// wanted. START is a number, or a name with or without "+OFFSET". NULL, or an error text.
const char *dump_parse(Arena *arena, const Module *module, const Function *entry, const Gmem *gmem,
                       const char *text, DumpRange *out);

// The ranges of shared and tensor memory, into machine->dump.
extern const Observer dump_observer;
// A range of global memory.
void dump_global(TextBuf *out, const Gmem *gmem, const DumpRange *range);

#endif

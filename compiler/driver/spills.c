// Registers that ptxas has to keep in memory ("spills") cost a kernel much of its speed and are seen nowhere else. Only ptxas
// knows of them, so this reads its words: a line for each entry,
//
//   ptxas warning : Registers are spilled to local memory in function 'NAME', 152 bytes spill stores, 168 bytes spill loads
#include "driver/spills.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tir/params.h"

typedef struct {
  const char *entry;
  int length;  // of its name
  long long stores, loads;
} Spill;

// False: the line says something else.
static bool read_line(const char *line, Spill *out) {
  static const char before[] = "Registers are spilled to local memory in function '";
  const char *end = line + strcspn(line, "\n"), *at = strstr(line, before);
  if (!at || at >= end) return false;
  out->entry = at + strlen(before);
  out->length = (int)strcspn(out->entry, "'\n");
  return sscanf(out->entry + out->length, "', %lld bytes spill stores, %lld", &out->stores, &out->loads) == 2;
}

static const TirKernel *find_kernel(Arena *arena, const TirModule *module, const Spill *spill) {
  for (int i = 0; i < module->kernels.len; i++) {
    const char *entry = tir_entry_name(arena, module->kernels.data[i]);
    if ((int)strlen(entry) == spill->length && !strncmp(entry, spill->entry, strlen(entry)))
      return module->kernels.data[i];
  }
  return NULL;
}

static void report(const TirKernel *kernel, const Spill *spill, Diags *ds) {
  if (kernel->variant == VARIANT_GENERAL) {
    diag_remark(ds, kernel->span,
                "kernel %s, for launches without TMA: ptxas spills %lld bytes of registers of each thread",
                kernel->name, spill->stores);
    return;
  }
  diag_warning(
      ds, DIAG_registers_spilled, kernel->span,
      "kernel %s needs more registers than its %d threads have: each keeps values in memory instead, %lld "
      "bytes stored and %lld loaded",
      kernel->name, kernel->threads, spill->stores, spill->loads);
  diag_hint(
      ds, "let more threads share the work (threads=, annotate(warpgroups=True)), or make its tiles smaller");
}

void spills_report(Arena *arena, const TirModule *module, const char *says, Diags *ds) {
  TextBuf rest = {.arena = arena};
  for (const char *line = says; *line;) {
    int length = (int)strcspn(line, "\n");
    Spill spill;
    const TirKernel *kernel = read_line(line, &spill) ? find_kernel(arena, module, &spill) : NULL;
    if (kernel)
      report(kernel, &spill, ds);
    else if (length)
      textbuf_printf(&rest, "%.*s\n", length, line);
    line += length + (line[length] == '\n');
  }
  if (rest.data) diag_remark(ds, (Span){0, 0}, "ptxas says:\n%s", rest.data);
}

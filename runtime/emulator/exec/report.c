// Faults and findings in words: PTX line and statement, thread, source line. Findings are deduplicated by
// check and instruction.
#include "exec/report.h"

#include <stdlib.h>
#include <string.h>

#include "exec/exec.h"

static const char *const check_names[CHECK_COUNT] = {
    [CHECK_UNINIT] = "uninit",   [CHECK_RACE] = "race",         [CHECK_PROXY] = "proxy",
    [CHECK_TCGEN05] = "tcgen05", [CHECK_MBARRIER] = "mbarrier", [CHECK_TMEM] = "tmem",
    [CHECK_EXIT] = "exit",       [CHECK_BOUNDS] = "bounds",     [CHECK_GRID] = "grid",
};

const char *check_name(Check check) {
  return check_names[check];
}

// ---- places

void report_statement(TextBuf *out, const Module *module, const Inst *inst) {
  if (inst == NULL || inst->text == NULL) return;
  int length = inst->text_length > 160 ? 160 : inst->text_length;
  char line[164];
  int n = 0;
  for (int i = 0; i < length; i++) {
    char c = inst->text[i];
    bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\0';
    if (blank && (n == 0 || line[n - 1] == ' ')) continue;
    line[n++] = blank ? ' ' : c;
  }
  textbuf_printf(out, "  %s:%d: %.*s%s\n", module->name, inst->line, n, line,
                 inst->text_length > length ? "..." : "");
}

static const char *file_name(const Module *module, int number) {
  for (int i = 0; i < module->nfiles; i++) {
    if (module->files[i].number == number) return module->files[i].name;
  }
  return "?";
}

static void add_source(TextBuf *out, const Module *module, const Inst *inst) {
  if (inst == NULL || inst->loc < 0 || inst->loc >= module->nlocs) return;
  const Loc *loc = &module->locs[inst->loc];
  if (loc->line <= 0) return;
  textbuf_printf(out, "  source: %s:%d", file_name(module, loc->file), loc->line);
  textbuf_printf(out, loc->column > 0 ? ":%d\n" : "\n", loc->column);
}

void report_thread(TextBuf *out, const Machine *machine, const Cta *cta, int warp, int lane) {
  const uint32_t *id = cta->id, *block = machine->launch->block;
  textbuf_printf(out, "CTA (%u,%u,%u)", id[0], id[1], id[2]);
  if (cta->cluster->nctas > 1)
    textbuf_printf(out, " of rank %u in cluster %u", cta->rank, cta->cluster->linear);
  textbuf_printf(out, ", warp %d", warp);
  if (lane < 0) return;
  uint32_t t = (uint32_t)(warp * WARP_LANES + lane);
  textbuf_printf(out, ", lane %d (thread %u,%u,%u)", lane, t % block[0], t / block[0] % block[1],
                 t / block[0] / block[1]);
}

void report_place(TextBuf *out, const Machine *machine, const Origin *origin) {
  report_statement(out, machine->module, origin->inst);
  if (origin->cta != NULL) {
    textbuf_puts(out, "  thread: ");
    report_thread(out, machine, origin->cta, origin->warp, origin->lane);
    textbuf_puts(out, "\n");
  }
  add_source(out, machine->module, origin->inst);
}

// ---- faults

static ExecResult fault(Machine *machine, const Origin *origin, const char *format, va_list args) {
  if (machine->fault.happened) return EXEC_FAULT;
  TextBuf out = {.arena = machine->arena};
  const char *text = text_vprintf(machine->arena, format, args);
  int line = origin->inst != NULL ? origin->inst->line : 0;
  textbuf_printf(&out, "%s:%d: fault: %s\n", machine->module->name, line, text);
  report_place(&out, machine, origin);
  machine->fault = (Fault){.happened = true, .cluster = machine->running, .text = out.data};
  return EXEC_FAULT;
}

ExecResult machine_fault(Machine *machine, const Warp *warp, int lane, const char *format, ...) {
  Origin origin = {warp != NULL ? warp->cta : NULL, warp != NULL ? warp->index : 0, lane, machine->inst};
  va_list args;
  va_start(args, format);
  fault(machine, &origin, format, args);
  va_end(args);
  return EXEC_FAULT;
}

ExecResult machine_fault_at(Machine *machine, const Origin *origin, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fault(machine, origin, format, args);
  va_end(args);
  return EXEC_FAULT;
}

// ---- findings

enum { MOST_FINDINGS = 100 };

static Finding *find_finding(Findings *findings, Check check, const Inst *inst, const Inst *other) {
  for (int i = 0; i < findings->list.len; i++) {
    Finding *f = &findings->list.data[i];
    if (f->inst == inst && f->other == other && f->check == check) return f;
  }
  return NULL;
}

bool finding_is_new(Machine *machine, Check check, const Inst *inst, const Inst *other) {
  Findings *findings = machine->findings;
  if (findings == NULL || !(machine->checks >> check & 1)) return false;
  Finding *old = find_finding(findings, check, inst, other);
  if (old != NULL) old->count++;
  findings->full |= old == NULL && findings->list.len >= 4 * MOST_FINDINGS;
  return old == NULL && !findings->full;
}

static void add_other_side(TextBuf *out, Machine *machine, const OtherSide *other) {
  textbuf_printf(out, "  other side: %s\n", other->what);
  if (other->origin.cta == NULL) textbuf_printf(out, "  a CTA of cluster %u\n", other->cluster);
  report_place(out, machine, &other->origin);
}

static void add_finding(Machine *machine, Check check, const Origin *origin, const OtherSide *other,
                        const char *advice, const char *text) {
  TextBuf out = {.arena = machine->arena};
  int line = origin->inst != NULL ? origin->inst->line : 0;
  textbuf_printf(&out, "%s:%d: finding[%s]: %s\n", machine->module->name, line, check_names[check], text);
  report_place(&out, machine, origin);
  if (other != NULL) add_other_side(&out, machine, other);
  if (advice != NULL) textbuf_printf(&out, "  to do: %s\n", advice);
  Finding finding = {check, origin->inst,     other != NULL ? other->origin.inst : NULL,
                     1,     machine->running, out.data};
  vec_push(machine->arena, &machine->findings->list, finding);
}

void machine_finding_pair(Machine *machine, Check check, const Origin *origin, const OtherSide *other,
                          const char *advice, const char *format, ...) {
  va_list args;
  va_start(args, format);
  add_finding(machine, check, origin, other, advice, text_vprintf(machine->arena, format, args));
  va_end(args);
}

void machine_finding(Machine *machine, Check check, const Origin *origin, const char *format, ...) {
  if (!finding_is_new(machine, check, origin->inst, NULL)) return;
  va_list args;
  va_start(args, format);
  add_finding(machine, check, origin, NULL, NULL, text_vprintf(machine->arena, format, args));
  va_end(args);
}

void findings_merge(Arena *arena, Findings *into, const Findings *from) {
  for (int i = 0; i < from->list.len; i++) {
    Finding finding = from->list.data[i];
    Finding *old = find_finding(into, finding.check, finding.inst, finding.other);
    if (old != NULL) finding.count = old->count += finding.count;
    if (old != NULL && old->cluster <= finding.cluster) continue;
    finding.text = text_copy(arena, finding.text, strlen(finding.text));
    if (old != NULL) {
      *old = finding;
    } else {
      vec_push(arena, &into->list, finding);
    }
  }
}

static int by_cluster(const void *a, const void *b) {
  const Finding *x = a, *y = b;
  if (x->cluster != y->cluster) return x->cluster < y->cluster ? -1 : 1;
  if (x->inst != y->inst) return x->inst < y->inst ? -1 : 1;
  return x->check != y->check  ? (int)x->check - (int)y->check
         : x->other < y->other ? -1
                               : x->other > y->other;
}

const char *findings_text(Arena *arena, Findings *findings) {
  int count = findings->list.len;
  if (count == 0) return NULL;
  qsort(findings->list.data, (size_t)count, sizeof *findings->list.data, by_cluster);
  TextBuf out = {.arena = arena};
  for (int i = 0; i < count && i < MOST_FINDINGS; i++) {
    const Finding *f = &findings->list.data[i];
    textbuf_puts(&out, f->text);
    if (f->count > 1) textbuf_printf(&out, "  (%llu times)\n", (unsigned long long)f->count);
  }
  if (count > MOST_FINDINGS) textbuf_printf(&out, "and %d more findings\n", count - MOST_FINDINGS);
  return out.data;
}

// ---- names of addresses

static const Variable *nearest(const Module *module, const Function *entry, VariableSpace space,
                               uint64_t address) {
  const Variable *best = NULL;
  for (int i = 0; i < module->nvariables; i++) {
    const Variable *v = module->variables[i];
    bool visible = v->owner == NULL || v->owner == entry || !v->owner->is_entry;
    if (v->space != space || !visible || v->bytes == 0 || address < v->address) continue;
    if (address - v->address < v->bytes) best = v;
  }
  return best;
}

const char *machine_symbolize(Machine *machine, const Cta *cta, Space space, uint64_t address) {
  const Launch *launch = machine->launch;
  if (space == SPACE_GLOBAL || space == SPACE_CONST) {
    const GmemBlock *block = gmem_block(machine->gmem, address, 1);
    if (block == NULL || block->name == NULL)
      return text_printf(machine->arena, "0x%llx", (unsigned long long)address);
    return text_printf(machine->arena, "%s+%llu", block->name, (unsigned long long)(address - block->base));
  }
  uint32_t offset = (uint32_t)address & ((1u << SHARED_RANK_SHIFT) - 1);
  const Variable *v = nearest(launch->module, launch->entry, VAR_SHARED, offset);
  if (v != NULL) return text_printf(machine->arena, "%s+%u", v->name, offset - (uint32_t)v->address);
  uint32_t start = cta->smem_bytes - launch->dynamic_shared;
  if (launch->dynamic_shared > 0 && offset >= start) {
    return text_printf(machine->arena, "dynamic shared+%u", offset - start);
  }
  return text_printf(machine->arena, "0x%x", offset);
}

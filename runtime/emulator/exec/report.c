// Faults and findings in words: PTX line and statement, thread, source line. Findings are deduplicated by
// check and instruction.
#include "exec/report.h"

#include <stdio.h>
#include <string.h>

#include "exec/exec.h"

static const char *const check_names[CHECK_COUNT] = {
    [CHECK_UNINIT] = "uninit",   [CHECK_RACE] = "race",         [CHECK_PROXY] = "proxy",
    [CHECK_TCGEN05] = "tcgen05", [CHECK_MBARRIER] = "mbarrier", [CHECK_TMEM] = "tmem",
    [CHECK_EXIT] = "exit",       [CHECK_BOUNDS] = "bounds",
};

const char *check_name(Check check) {
  return check_names[check];
}

// ---- places

static void add_statement(TextBuf *out, const Module *module, const Inst *inst) {
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
  add_statement(out, machine->module, origin->inst);
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
  machine->fault = (Fault){.happened = true, .text = out.data};
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

void machine_finding(Machine *machine, Check check, const Origin *origin, const char *format, ...) {
  Findings *findings = machine->findings;
  if (findings == NULL || !(machine->checks >> check & 1)) return;
  for (int i = 0; i < findings->seen.len; i++) {
    if (findings->seen.data[i].inst == origin->inst && findings->seen.data[i].check == check) return;
  }
  FindingKey key = {check, origin->inst};
  vec_push(machine->arena, &findings->seen, key);
  if (++findings->count > MOST_FINDINGS) return;
  va_list args;
  va_start(args, format);
  const char *text = text_vprintf(machine->arena, format, args);
  va_end(args);
  int line = origin->inst != NULL ? origin->inst->line : 0;
  textbuf_printf(&findings->text, "%s:%d: finding[%s]: %s\n", machine->module->name, line, check_names[check],
                 text);
  report_place(&findings->text, machine, origin);
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

// Reached means: an instruction of that line is about to be executed by a thread whose guard holds. Where
// clusters take turns, "first" is the order of this run, which is deterministic.
#include "trace/stop.h"

#include <stdlib.h>
#include <string.h>

#include "exec/report.h"
#include "num/num.h"

enum { NEIGHBOURS = 4, VALUES_SHOWN = 8 };

// ---- command line

static bool parse_line(const char *text, int *line) {
  char *end;
  if (*text < '0' || *text > '9') return false;
  long value = strtol(text, &end, 10);
  *line = value > 0 && value < 0x7fffffff ? (int)value : 0;
  return *end == '\0' && *line > 0;
}

static bool ends_with(const char *path, const char *name, size_t length) {
  size_t have = strlen(path);
  if (have < length || memcmp(path + have - length, name, length) != 0) return false;
  return have == length || path[have - length - 1] == '/';
}

static const char *parse_source(Arena *arena, const Module *module, const char *text, const char *colon,
                                Breakpoint *out) {
  int wanted, best = 0;
  if (!parse_line(colon + 1, &wanted)) return "--break: LINE or FILE:LINE is expected";
  for (uint32_t i = 0; i < module->ninsts; i++) {
    int index = module->insts[i].loc;
    if (index < 0 || index >= module->nlocs) continue;
    const Loc *loc = &module->locs[index];
    for (int f = 0; f < module->nfiles; f++) {
      bool same = module->files[f].number == loc->file;
      if (!same || !ends_with(module->files[f].name, text, (size_t)(colon - text))) continue;
      if (loc->line < wanted || (best > 0 && loc->line >= best)) continue;
      best = loc->line;
      *out = (Breakpoint){0, loc->file, loc->line};
    }
  }
  if (best > 0) return NULL;
  return text_printf(arena, "--break: no instruction belongs to '%s' or a later line of that file", text);
}

const char *breakpoint_parse(Arena *arena, const Module *module, const char *text, Breakpoint *out) {
  const char *colon = strrchr(text, ':');
  if (colon != NULL) return parse_source(arena, module, text, colon, out);
  int wanted, best = 0;
  if (!parse_line(text, &wanted)) return "--break: LINE or FILE:LINE is expected";
  for (uint32_t i = 0; i < module->ninsts; i++) {
    int line = module->insts[i].line;
    if (line >= wanted && (best == 0 || line < best)) best = line;
  }
  *out = (Breakpoint){best, 0, 0};
  return best > 0 ? NULL : text_printf(arena, "--break: no instruction at or after line %d", wanted);
}

static bool matches(const Breakpoint *at, const Module *module, const Inst *inst) {
  if (at->line > 0) return inst->line == at->line;
  if (inst->loc < 0 || inst->loc >= module->nlocs) return false;
  return module->locs[inst->loc].file == at->source_file && module->locs[inst->loc].line == at->source_line;
}

// ---- what it shows

static const Function *function_of(const Module *module, const Inst *inst) {
  uint32_t pc = (uint32_t)(inst - module->insts);
  for (int i = 0; i < module->nfunctions; i++) {
    const Function *f = module->functions[i];
    if (pc >= f->first && pc < f->first + f->count) return f;
  }
  return NULL;
}

static void show_statements(TextBuf *out, const Module *module, const Inst *inst) {
  const Function *f = function_of(module, inst);
  if (f == NULL) return;
  uint32_t pc = (uint32_t)(inst - module->insts);
  uint32_t from = pc < f->first + NEIGHBOURS ? f->first : pc - NEIGHBOURS, to = pc + NEIGHBOURS;
  for (uint32_t i = from; i <= to && i < f->first + f->count; i++) {
    textbuf_puts(out, i == pc ? ">" : " ");
    report_statement(out, module, &module->insts[i]);
  }
}

static void show_value(TextBuf *out, const RegisterName *name, uint64_t low, uint64_t high) {
  switch ((RowKind)name->row) {
  case ROW_PRED:
  case ROW_NONE:
    break;
  case ROW_32:
    if (name->type == PT_f32)
      textbuf_printf(out, " %.9g", (double)num_f32_from_bits((uint32_t)low));
    else
      textbuf_printf(out, " 0x%x", (uint32_t)low);
    break;
  case ROW_64:
    if (name->type == PT_f64) {
      double value;
      memcpy(&value, &low, sizeof value);
      textbuf_printf(out, " %.17g", value);
    } else {
      textbuf_printf(out, " 0x%llx", (unsigned long long)low);
    }
    break;
  case ROW_128:
    textbuf_printf(out, " 0x%llx%016llx", (unsigned long long)high, (unsigned long long)low);
    break;
  }
}

static bool is_zero(const Warp *warp, const RegisterName *name, const Operand *op, uint32_t lanes) {
  uint64_t any = 0;
  if (name->row == ROW_PRED) return (row_pred(warp, op) & lanes) == 0;
  FOR_LANES(lane, lanes) any |= op_get(warp, op, (int)lane) | op_get_hi(warp, op, (int)lane);
  return any == 0;
}

// One value when all lanes agree, else those of the first lanes.
static void show_register(TextBuf *out, const Warp *warp, const RegisterName *name, const Operand *op,
                          uint32_t lanes) {
  textbuf_printf(out, name->number >= 0 ? "  %s%d" : "  %s", name->name, name->number);
  if (name->row == ROW_PRED) {
    textbuf_printf(out, " lanes 0x%08x\n", row_pred(warp, op) & lanes);
    return;
  }
  int first = first_lane(lanes), shown = 0;
  uint64_t low = op_get(warp, op, first), high = op_get_hi(warp, op, first);
  bool same = true;
  FOR_LANES(lane, lanes) same &= op_get(warp, op, (int)lane) == low && op_get_hi(warp, op, (int)lane) == high;
  if (same) {
    show_value(out, name, low, high);
    textbuf_puts(out, "\n");
    return;
  }
  textbuf_puts(out, " by lane:");
  FOR_LANES(lane, lanes) {
    if (shown++ == VALUES_SHOWN) break;
    show_value(out, name, op_get(warp, op, (int)lane), op_get_hi(warp, op, (int)lane));
  }
  textbuf_puts(out, shown > VALUES_SHOWN ? " ...\n" : "\n");
}

static int by_name(const void *a, const void *b) {
  const RegisterName *x = a, *y = b;
  int order = strcmp(x->name, y->name);
  return order != 0 ? order : x->number != y->number ? x->number - y->number : x->off < y->off ? -1 : 1;
}

static void show_registers(TextBuf *out, const Module *module, const Event *event) {
  const Function *f = function_of(module, event->inst);
  if (f == NULL || f->nregisters == 0) return;
  RegisterName *names = ARENA_ARRAY(out->arena, RegisterName, f->nregisters);
  memcpy(names, f->registers, (size_t)f->nregisters * sizeof *names);
  qsort(names, (size_t)f->nregisters, sizeof *names, by_name);
  int zeros = 0;
  textbuf_printf(out, "registers of lanes 0x%08x\n", event->lanes);
  for (int i = 0; i < f->nregisters; i++) {
    Operand op = {.kind = OPERAND_REG, .row = names[i].row, .type = names[i].type, .off = names[i].off};
    op.bank = f->is_entry ? BANK_WARP : BANK_FUNC;
    if (is_zero(event->warp, &names[i], &op, event->lanes))
      zeros++;
    else
      show_register(out, event->warp, &names[i], &op, event->lanes);
  }
  if (zeros > 0) textbuf_printf(out, "  and %d that are 0\n", zeros);
}

static void show_warps(TextBuf *out, const Module *module, const Cta *cta) {
  textbuf_puts(out, "warps of the CTA\n");
  for (int w = 0; w < cta->nwarps; w++) {
    const Warp *warp = &cta->warps[w];
    if (warp->live == 0) textbuf_printf(out, "  warp %d has exited\n", w);
    for (int g = 0; g < warp->ngroups && warp->live != 0; g++) {
      const LaneGroup *group = &warp->groups[g];
      const char *what = group->wait.kind == WAIT_NONE ? NULL : group->wait.what;
      textbuf_printf(out, "  warp %d, lanes 0x%08x, line %d%s%s\n", w, group->lanes,
                     module->insts[group->pc].line, what != NULL ? ", waits: " : "",
                     what != NULL ? what : "");
    }
  }
}

static void on_event(void *self, Machine *machine, const Event *event) {
  (void)self;
  const Module *module = machine->module;
  if (machine->fault.happened || !matches(machine->launch->watch.stop, module, event->inst)) return;
  TextBuf out = {.arena = machine->arena};
  Origin origin = {(Cta *)(uintptr_t)event->cta, event->warp->index, first_lane(event->lanes), event->inst};
  textbuf_printf(&out, "%s:%d: reached, after %llu instructions\n", module->name, event->inst->line,
                 (unsigned long long)machine->steps - 1);
  report_place(&out, machine, &origin);
  textbuf_puts(&out, "statements\n");
  show_statements(&out, module, event->inst);
  show_registers(&out, module, event);
  show_warps(&out, module, event->cta);
  machine->fault = (Fault){.happened = true, .stopped = true, .cluster = machine->running, .text = out.data};
}

const Observer stop_observer = {.name = "stop", .events = 1u << EVENT_ISSUE, .on_event = on_event};

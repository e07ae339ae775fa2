// Branches, calls, exit, traps. Device functions have static frames (no recursion); a call saves the return
// address per lane and copies the parameters, which live in the thread's local memory.
#include "exec/exec.h"

#include <string.h>

static ExecResult exec_bra(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine;
  return warp_branch(warp, lanes, (uint32_t)inst->ops[0].value);
}

static ExecResult exec_brx(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  const Operand *list = &inst->ops[1];
  uint32_t targets[WARP_LANES];
  FOR_LANES(lane, lanes) {
    uint32_t index = (uint32_t)op_get(warp, &inst->ops[0], (int)lane);
    if (index >= (uint32_t)list->nelems) {
      return machine_fault(machine, warp, (int)lane, "branch index %u of a list of %d targets", index,
                           list->nelems);
    }
    targets[lane] = (uint32_t)list->elems[index].value;
  }
  return warp_branch_each(warp, lanes, targets);
}

static ExecResult exec_exit(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)inst;
  return warp_exit(machine, warp, lanes);
}

static ExecResult exec_trap(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  return machine_fault(machine, warp, first_lane(lanes), "%s is executed", inst->def->name);
}

static ExecResult exec_pmevent(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)machine, (void)warp, (void)inst, (void)lanes;
  return EXEC_NEXT;
}

static bool turn_ready(Machine *machine, Warp *warp, const Wait *wait) {
  (void)machine, (void)warp, (void)wait;
  return true;
}

// A sleeping thread gives the others their turn.
static ExecResult exec_nanosleep(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  (void)inst, (void)machine, (void)lanes, (void)turn_ready;
  machine_poll(warp);
  warp->budget -= 1000;
  return EXEC_NEXT;
}

// ---- calls

static bool copy_bytes(Machine *machine, Warp *warp, int lane, const Variable *to, const Variable *from) {
  SpaceError why;
  uint64_t bytes = to->bytes < from->bytes ? to->bytes : from->bytes;
  const uint8_t *source = space_find(machine, warp, lane, SPACE_PARAM, from->address, bytes, false, &why);
  uint8_t *target = space_find(machine, warp, lane, SPACE_PARAM, to->address, bytes, true, &why);
  if (source == NULL || target == NULL) {
    machine_fault(machine, warp, lane, "call: %s", why.text);
    return false;
  }
  memmove(target, source, bytes);
  return true;
}

static uint64_t param_value(Machine *machine, Warp *warp, int lane, const Operand *list, int index) {
  uint64_t value = 0;
  if (index >= list->nelems || list->elems[index].symbol == NULL) return 0;
  const Variable *v = list->elems[index].symbol;
  SpaceError why;
  const uint8_t *at = space_find(machine, warp, lane, SPACE_PARAM, v->address, v->bytes, false, &why);
  if (at != NULL) memcpy(&value, at, v->bytes > 8 ? 8 : v->bytes);
  return value;
}

static const char *string_at(Machine *machine, Warp *warp, int lane, uint64_t address, char *text,
                             size_t size) {
  size_t n = 0;
  SpaceError why;
  for (; n + 1 < size; n++) {
    const uint8_t *c = space_find(machine, warp, lane, SPACE_GENERIC, address + n, 1, false, &why);
    if (c == NULL || *c == 0) break;
    text[n] = (char)*c;
  }
  text[n] = '\0';
  return text;
}

// The conversion is rebuilt from checked characters, with the length that the value is passed in.
static void print_value(Machine *machine, Warp *warp, int lane, char *spec, size_t n, char kind, bool wide,
                        uint64_t value) {
  char text[256];
  double real;
  memcpy(&real, &value, sizeof real);
  if (strchr("fFeEgGaA", kind) != NULL) {
    spec[n] = kind;
    textbuf_printf(machine->log, spec, real);
  } else if (kind == 's') {
    spec[n] = 's';
    textbuf_printf(machine->log, spec, string_at(machine, warp, lane, value, text, sizeof text));
  } else if (kind == 'c') {
    spec[n] = 'c';
    textbuf_printf(machine->log, spec, (int)(unsigned char)value);
  } else if (kind == 'p') {
    textbuf_printf(machine->log, "0x%llx", (unsigned long long)value);
  } else {
    bool is_signed = kind == 'd' || kind == 'i';
    if (is_signed && !wide) value = (uint64_t)(int64_t)(int32_t)value;
    memcpy(spec + n, "ll", 2);
    spec[n + 2] = strchr("diuxXo", kind) != NULL ? kind : 'd';
    textbuf_printf(machine->log, spec, (long long)value);
  }
}

// One conversion of a format string: %[flags][width][.precision][length]conv. The buffer packs arguments with
// natural alignment, floats as doubles.
static const char *print_one(Machine *machine, Warp *warp, int lane, const char *format, uint64_t *at) {
  char spec[40] = "%";
  size_t n = 1;
  const char *p = format + 1;
  bool is_long = false;
  for (; *p != '\0' && strchr("-+ #0123456789.lhjzt", *p) != NULL && n < 32; p++) {
    is_long |= *p == 'l' || *p == 'j' || *p == 'z' || *p == 't';
    if (*p != 'l' && *p != 'h' && *p != 'j' && *p != 'z' && *p != 't') spec[n++] = *p;
  }
  char kind = *p;
  if (kind == '\0') return p;
  if (kind == '%') {
    textbuf_puts(machine->log, "%");
    return p + 1;
  }
  bool is_float = strchr("fFeEgGaA", kind) != NULL, wide = is_float || is_long || kind == 's' || kind == 'p';
  uint64_t size = wide ? 8 : 4, value = 0;
  *at = (*at + size - 1) / size * size;
  SpaceError why;
  const uint8_t *from = space_find(machine, warp, lane, SPACE_GENERIC, *at, size, false, &why);
  if (from != NULL) memcpy(&value, from, size);
  *at += size;
  print_value(machine, warp, lane, spec, n, kind, wide, value);
  return p + 1;
}

enum { MOST_LOG = 1 << 20 };

static void call_vprintf(Machine *machine, Warp *warp, const Inst *inst, int lane) {
  char format[1024];
  string_at(machine, warp, lane, param_value(machine, warp, lane, &inst->ops[2], 0), format, sizeof format);
  uint64_t at = param_value(machine, warp, lane, &inst->ops[2], 1);
  if (machine->log->len > MOST_LOG) return;
  for (const char *p = format; *p != '\0';) {
    if (*p == '%') {
      p = print_one(machine, warp, lane, p, &at);
    } else {
      textbuf_add(machine->log, p++, 1);
    }
  }
}

static ExecResult call_assertfail(Machine *machine, Warp *warp, const Inst *inst, int lane) {
  char message[256], file[256], function[256];
  const Operand *args = &inst->ops[2];
  string_at(machine, warp, lane, param_value(machine, warp, lane, args, 0), message, sizeof message);
  string_at(machine, warp, lane, param_value(machine, warp, lane, args, 1), file, sizeof file);
  string_at(machine, warp, lane, param_value(machine, warp, lane, args, 3), function, sizeof function);
  return machine_fault(machine, warp, lane, "assertion `%s` failed, %s:%u, %s", message, file,
                       (unsigned)param_value(machine, warp, lane, args, 2), function);
}

static ExecResult call_builtin(Machine *machine, Warp *warp, const Inst *inst, const Function *f,
                               uint32_t lanes) {
  if (strcmp(f->name, "vprintf") == 0) {
    FOR_LANES(lane, lanes) call_vprintf(machine, warp, inst, (int)lane);
    return EXEC_NEXT;
  }
  if (strcmp(f->name, "__assertfail") == 0) return call_assertfail(machine, warp, inst, first_lane(lanes));
  return machine_fault(machine, warp, first_lane(lanes), "function '%s' has no body here", f->name);
}

static bool enter(Machine *machine, Warp *warp, const Inst *inst, const Function *f, int lane) {
  CallStack *stack = &warp->calls[lane];
  const Operand *args = &inst->ops[2];
  if (stack->depth == CALL_DEPTH) {
    machine_fault(machine, warp, lane, "calls are nested more than %d deep", CALL_DEPTH);
    return false;
  }
  uint32_t here = (uint32_t)(inst - machine->module->insts);
  for (int i = 0; i < stack->depth; i++) {
    uint32_t caller = stack->pc[i];
    if (caller >= f->first && caller < f->first + f->count) {
      machine_fault(machine, warp, lane, "'%s' is called recursively; frames are static here", f->name);
      return false;
    }
  }
  stack->pc[stack->depth++] = here;
  for (int i = 0; i < f->nparams; i++) {
    if (i >= args->nelems || args->elems[i].symbol == NULL) {
      machine_fault(machine, warp, lane, "call of '%s' with %d of %d parameters", f->name, args->nelems,
                    f->nparams);
      return false;
    }
    if (!copy_bytes(machine, warp, lane, &f->params[i], args->elems[i].symbol)) return false;
  }
  return true;
}

static const Function *callee(const Module *module, const Warp *warp, const Operand *op, int lane) {
  if (op->kind == OPERAND_SYMBOL) return op->symbol;
  uint64_t value = op_get(warp, op, lane) - FUNCTION_BASE;
  return value < (uint64_t)module->nfunctions ? module->functions[value] : NULL;
}

static ExecResult exec_call(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  uint32_t targets[WARP_LANES];
  const Function *first = callee(machine->module, warp, &inst->ops[1], first_lane(lanes));
  if (first != NULL && !first->has_body) return call_builtin(machine, warp, inst, first, lanes);
  FOR_LANES(lane, lanes) {
    const Function *f = callee(machine->module, warp, &inst->ops[1], (int)lane);
    if (f == NULL || !f->has_body || f->is_entry || warp->calls == NULL) {
      return machine_fault(machine, warp, (int)lane, "call of something that is no device function");
    }
    if (!enter(machine, warp, inst, f, (int)lane)) return EXEC_FAULT;
    targets[lane] = f->first;
  }
  return warp_branch_each(warp, lanes, targets);
}

static const Function *function_at(const Module *module, uint32_t pc) {
  for (int i = 0; i < module->nfunctions; i++) {
    const Function *f = module->functions[i];
    if (f->has_body && pc >= f->first && pc < f->first + f->count) return f;
  }
  return NULL;
}

// From an entry, ret is exit.
static ExecResult exec_ret(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {
  const Function *f = function_at(machine->module, (uint32_t)(inst - machine->module->insts));
  if (warp->calls == NULL || f == NULL || f->is_entry) return warp_exit(machine, warp, lanes);
  uint32_t targets[WARP_LANES];
  FOR_LANES(lane, lanes) {
    CallStack *stack = &warp->calls[lane];
    uint32_t caller = stack->pc[--stack->depth];
    const Operand *results = &machine->module->insts[caller].ops[0];
    for (int i = 0; i < f->nrets && i < results->nelems; i++) {
      if (!copy_bytes(machine, warp, (int)lane, results->elems[i].symbol, &f->rets[i])) return EXEC_FAULT;
    }
    targets[lane] = caller + 1;
  }
  return warp_branch_each(warp, lanes, targets);
}

// call (r), f, (a, b); the result list and the parameters may be absent: brought to three operands.
static const char *select_call(Inst *inst) {
  Operand none = {.kind = OPERAND_VECTOR}, ops[3] = {none, none, none};
  int at = 0;
  if (at < inst->nops && inst->ops[at].kind == OPERAND_VECTOR) ops[0] = inst->ops[at++];
  if (at >= inst->nops || (inst->ops[at].kind != OPERAND_SYMBOL && inst->ops[at].kind != OPERAND_REG))
    return "no function";
  ops[1] = inst->ops[at++];
  if (at < inst->nops && inst->ops[at].kind == OPERAND_VECTOR) ops[2] = inst->ops[at++];
  for (int k = 0; k < 3; k += 2) {
    for (int i = 0; i < ops[k].nelems; i++) {
      if (ops[k].elems[i].kind != OPERAND_SYMBOL) return "only .param variables are supported as arguments";
    }
  }
  memcpy(inst->ops, ops, sizeof ops);
  inst->nops = 3;
  return NULL;
}

static const char *select_brx(Inst *inst) {
  return inst->nops == 2 ? NULL : "index and list expected";
}

const InstDef flow_insts[] = {
    {"bra", MC(VOTE), "L", 0, exec_bra, NULL, NULL},
    {"brx.idx", MC(VOTE), "iL", 0, exec_brx, NULL, select_brx},
    {"call", MC(VOTE), "S?SSS", 0, exec_call, NULL, select_call},
    {"ret", MC(VOTE), "", 0, exec_ret, NULL, NULL},
    {"exit", 0, "", 0, exec_exit, NULL, NULL},
    {"trap", 0, "", 0, exec_trap, NULL, NULL},
    {"brkpt", 0, "", 0, exec_trap, NULL, NULL},
    {"pmevent", MC(BARRIER), "i", 0, exec_pmevent, NULL, NULL},
    {"nanosleep", 0, "i", 0, exec_nanosleep, NULL, NULL},
    {.name = NULL},
};

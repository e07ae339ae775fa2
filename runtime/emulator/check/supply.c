// Reachability over the instructions from each group's place. Calls are stepped over.
#include "check/supply.h"

#include <string.h>

#include "check/class.h"

enum { MOST_LINES = 6 };

static bool can_supply(const Inst *inst) {
  InstClass kind = inst_class(inst);
  if (kind == CLASS_ARRIVE || kind == CLASS_COMMIT) return true;
  return inst->def != NULL && strncmp(inst->def->name, "cp.async.bulk", 13) == 0 && inst->nops > 2;
}

static void push(uint8_t *seen, uint32_t *stack, uint32_t *n, uint32_t pc, uint32_t end) {
  if (pc >= end || seen[pc]) return;
  seen[pc] = 1;
  stack[(*n)++] = pc;
}

static void push_labels(const Operand *op, uint8_t *seen, uint32_t *stack, uint32_t *n, uint32_t end) {
  if (op->kind == OPERAND_LABEL) push(seen, stack, n, (uint32_t)op->value, end);
  for (int i = 0; i < op->nelems; i++) push_labels(&op->elems[i], seen, stack, n, end);
}

static bool falls_through(const Inst *inst) {
  if (inst->guarded || inst->def == NULL) return true;
  const char *name = inst->def->name;
  return strcmp(name, "bra") != 0 && strcmp(name, "brx.idx") != 0 && strcmp(name, "exit") != 0 &&
         strcmp(name, "ret") != 0;
}

static void reach(const Module *module, uint32_t from, uint8_t *seen, uint32_t *stack) {
  uint32_t n = 0, end = module->ninsts;
  memset(seen, 0, end);
  push(seen, stack, &n, from, end);
  while (n > 0) {
    uint32_t pc = stack[--n];
    const Inst *inst = &module->insts[pc];
    for (int i = 0; i < inst->nops; i++) push_labels(&inst->ops[i], seen, stack, &n, end);
    if (falls_through(inst)) push(seen, stack, &n, pc + 1, end);
  }
}

// Some address operand names the barrier for a lane of the group.
static bool names(Machine *machine, const Warp *warp, uint32_t lanes, const Inst *inst, const Cta *cta,
                  uint32_t offset) {
  for (int i = 0; i < inst->nops; i++) {
    const Operand *op = &inst->ops[i];
    if (op->kind != OPERAND_ADDRESS || op->nelems > 0) continue;
    FOR_LANES(lane, lanes) {
      uint32_t at;
      uint64_t address = op_address(warp, op, (int)lane) & 0xffffffff;
      const Cta *target = space_shared_cta(machine, warp->cta, address, &at);
      if (at == offset && (target == cta || inst_has(inst, MOD_multicast_cluster))) return true;
    }
  }
  return false;
}

typedef struct {
  const Inst *insts[MOST_LINES];
  const Warp *warps[MOST_LINES];
  int n;
} Suppliers;

static void add(Suppliers *list, const Inst *inst, const Warp *warp) {
  for (int i = 0; i < list->n; i++)
    if (list->insts[i] == inst) return;
  if (list->n == MOST_LINES) return;
  list->insts[list->n] = inst;
  list->warps[list->n++] = warp;
}

static void collect(Machine *machine, const Warp *warp, const Cta *cta, uint32_t offset, uint8_t *seen,
                    uint32_t *stack, Suppliers *list) {
  for (int g = 0; warp->live != 0 && g < warp->ngroups; g++) {
    const LaneGroup *group = &warp->groups[g];
    const Wait *wait = &group->wait;
    // Who waits for this very barrier can't help itself.
    if (wait->kind == WAIT_MBARRIER && wait->cta == cta && (uint32_t)wait->address == offset) continue;
    reach(machine->module, group->pc, seen, stack);
    for (uint32_t pc = 0; pc < machine->module->ninsts; pc++) {
      const Inst *inst = &machine->module->insts[pc];
      if (seen[pc] && can_supply(inst) && names(machine, warp, group->lanes, inst, cta, offset))
        add(list, inst, warp);
    }
  }
}

void supply_describe(TextBuf *out, Machine *machine, const Cta *cta, uint32_t offset) {
  uint32_t count = machine->module->ninsts;
  uint8_t *seen = ARENA_ARRAY(machine->arena, uint8_t, count + 1);
  uint32_t *stack = ARENA_ARRAY(machine->arena, uint32_t, count + 1);
  Suppliers list = {.n = 0};
  const Cluster *cluster = cta->cluster;
  for (int c = 0; c < cluster->nctas; c++)
    for (int w = 0; w < cluster->ctas[c].nwarps; w++)
      collect(machine, &cluster->ctas[c].warps[w], cta, offset, seen, stack, &list);
  if (list.n == 0) {
    textbuf_puts(out, "; no thread can still reach an instruction that arrives there or brings bytes");
    return;
  }
  textbuf_puts(out, "; could still be supplied by");
  for (int i = 0; i < list.n; i++) {
    textbuf_printf(out, "%s line %d (", i > 0 ? "," : "", list.insts[i]->line);
    if (cluster->nctas > 1) textbuf_printf(out, "CTA rank %u, ", list.warps[i]->cta->rank);
    textbuf_printf(out, "warp %d)", list.warps[i]->index);
  }
}

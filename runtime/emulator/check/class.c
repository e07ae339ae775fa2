// By name and modifiers.
#include "check/class.h"

#include <string.h>

static const struct {
  const char *name;
  InstClass inst_class;
} by_name[] = {
    {"atom", CLASS_STRONG},
    {"red", CLASS_STRONG},
    {"mov", CLASS_MOVE},
    {"st.async", CLASS_ST_ASYNC},
    {"red.async", CLASS_REDUCE},
    {"cp.reduce.async.bulk", CLASS_REDUCE},
    {"cp.reduce.async.bulk.tensor", CLASS_REDUCE},
    {"membar", CLASS_FENCE_MEMORY},
    {"tcgen05.fence::before_thread_sync", CLASS_FENCE_BEFORE},
    {"tcgen05.fence::after_thread_sync", CLASS_FENCE_AFTER},
    {"tcgen05.wait::ld", CLASS_WAIT_LD},
    {"tcgen05.wait::st", CLASS_WAIT_ST},
    {"cp.async.wait_group", CLASS_WAIT_COPIES},
    {"cp.async.wait_all", CLASS_WAIT_COPIES},
    {"wgmma.wait_group", CLASS_WAIT_WGMMA},
    {"wgmma.mma_async", CLASS_WGMMA},
    {"wgmma.fence", CLASS_FENCE_WGMMA},
    {"tcgen05.commit", CLASS_COMMIT},
    {"tcgen05.ld", CLASS_TMEM_LD},
    {"mbarrier.arrive", CLASS_ARRIVE},
    {"mbarrier.arrive_drop", CLASS_ARRIVE},
    {"mbarrier.complete_tx", CLASS_ARRIVE},
    {"cp.async.mbarrier.arrive", CLASS_ARRIVE},
};

static InstClass class_of_fence(const Inst *inst) {
  if (inst_has(inst, MOD_mbarrier_init)) return CLASS_FENCE_MBARRIER;
  bool async =
      inst_has(inst, MOD_async) || inst_has(inst, MOD_async_global) || inst_has(inst, MOD_async_shared_cta);
  return async ? CLASS_FENCE_ASYNC : inst_has(inst, MOD_proxy) ? CLASS_NONE : CLASS_FENCE_MEMORY;
}

InstClass inst_class(const Inst *inst) {
  if (inst->def == NULL) return CLASS_NONE;
  const char *name = inst->def->name;
  if (strcmp(name, "fence") == 0) return class_of_fence(inst);
  if (strcmp(name, "cp.async.bulk.wait_group") == 0)
    return inst_has(inst, MOD_read) ? CLASS_WAIT_BULK_READ : CLASS_WAIT_BULK;
  if (strcmp(name, "griddepcontrol") == 0) return inst_has(inst, MOD_wait) ? CLASS_WAIT_GRID : CLASS_NONE;
  if (strcmp(name, "ld") == 0 || strcmp(name, "st") == 0) {
    bool strong = inst_has(inst, MOD_volatile) || inst_has(inst, MOD_relaxed) ||
                  inst_has(inst, MOD_acquire) || inst_has(inst, MOD_release) || inst_has(inst, MOD_mmio);
    return strong ? CLASS_STRONG : CLASS_NONE;
  }
  for (size_t i = 0; i < sizeof by_name / sizeof *by_name; i++)
    if (strcmp(name, by_name[i].name) == 0) return by_name[i].inst_class;
  return CLASS_NONE;
}

const uint8_t *inst_classes(Machine *machine) {
  const Module *module = machine->module;
  uint8_t *classes = ARENA_ARRAY(machine->arena, uint8_t, module->ninsts + 1);
  for (uint32_t i = 0; i < module->ninsts; i++) classes[i] = (uint8_t)inst_class(&module->insts[i]);
  return classes;
}

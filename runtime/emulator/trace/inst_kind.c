// By the first words of the mnemonic; arithmetic also by its type.
#include "trace/inst_kind.h"

#include <string.h>

static const char *const names[KIND_COUNT] = {
    [KIND_OTHER] = "other",
    [KIND_MOVE] = "moves",
    [KIND_INTEGER] = "integer and logic",
    [KIND_FLOAT] = "floating point",
    [KIND_CONVERT] = "conversions",
    [KIND_COMPARE] = "comparisons and selections",
    [KIND_BRANCH] = "branches and exits",
    [KIND_WARP] = "between lanes",
    [KIND_GLOBAL] = "loads and stores, global",
    [KIND_SHARED] = "loads and stores, shared",
    [KIND_MEMORY] = "loads and stores, other",
    [KIND_ATOMIC] = "atomics",
    [KIND_COPY] = "asynchronous copies",
    [KIND_MBARRIER] = "mbarriers",
    [KIND_BARRIER] = "barriers",
    [KIND_FENCE] = "fences",
    [KIND_MMA] = "matrix products",
    [KIND_TMEM] = "tensor memory",
};

const char *inst_kind_name(InstKind kind) {
  return names[kind];
}

// The first row that is the name or begins it, up to a dot, decides.
static const struct {
  const char *prefix;
  InstKind kind;
} by_name[] = {
    {"tcgen05.mma", KIND_MMA},
    {"tcgen05.fence::before_thread_sync", KIND_FENCE},
    {"tcgen05.fence::after_thread_sync", KIND_FENCE},
    {"tcgen05", KIND_TMEM},
    {"wgmma.mma_async", KIND_MMA},
    {"wgmma.fence", KIND_FENCE},
    {"wgmma", KIND_MMA},
    {"mma", KIND_MMA},
    {"mbarrier", KIND_MBARRIER},
    {"cp.async.mbarrier", KIND_MBARRIER},
    {"cp", KIND_COPY},
    {"st.async", KIND_COPY},
    {"red.async", KIND_COPY},
    {"st.bulk", KIND_SHARED},
    {"atom", KIND_ATOMIC},
    {"red", KIND_ATOMIC},
    {"bar", KIND_BARRIER},
    {"barrier", KIND_BARRIER},
    {"fence", KIND_FENCE},
    {"membar", KIND_FENCE},
    {"bra", KIND_BRANCH},
    {"brx", KIND_BRANCH},
    {"call", KIND_BRANCH},
    {"ret", KIND_BRANCH},
    {"exit", KIND_BRANCH},
    {"mov", KIND_MOVE},
    {"cvta", KIND_MOVE},
    {"mapa", KIND_MOVE},
    {"cvt", KIND_CONVERT},
    {"setp", KIND_COMPARE},
    {"set", KIND_COMPARE},
    {"selp", KIND_COMPARE},
    {"slct", KIND_COMPARE},
    {"shfl", KIND_WARP},
    {"vote", KIND_WARP},
    {"activemask", KIND_WARP},
    {"elect", KIND_WARP},
    {"match", KIND_WARP},
    {"redux", KIND_WARP},
    {"ldmatrix", KIND_SHARED},
    {"stmatrix", KIND_SHARED},
    {"movmatrix", KIND_WARP},
    {"nanosleep", KIND_OTHER},
    {"setmaxnreg", KIND_OTHER},
    {"griddepcontrol", KIND_OTHER},
    {"clusterlaunchcontrol", KIND_COPY},
};

static InstKind kind_of_space(const Inst *inst) {
  switch (inst_space(inst, 0)) {
  case SPACE_GLOBAL:
    return KIND_GLOBAL;
  case SPACE_SHARED:
  case SPACE_SHARED_CLUSTER:
    return KIND_SHARED;
  case SPACE_GENERIC:
  case SPACE_LOCAL:
  case SPACE_PARAM:
  case SPACE_CONST:
  case SPACE_TMEM:
    break;
  }
  return KIND_MEMORY;
}

static InstKind kind_of(const Inst *inst) {
  if (inst->def == NULL) return KIND_OTHER;
  const char *name = inst->def->name;
  if (strcmp(name, "ld") == 0 || strcmp(name, "st") == 0 || strcmp(name, "ldu") == 0)
    return kind_of_space(inst);
  for (size_t i = 0; i < sizeof by_name / sizeof *by_name; i++) {
    size_t length = strlen(by_name[i].prefix);
    if (strncmp(name, by_name[i].prefix, length) == 0 && (name[length] == '\0' || name[length] == '.'))
      return by_name[i].kind;
  }
  if (inst->ntypes == 0) return KIND_OTHER;
  return ptx_type_float((PtxType)inst->types[0]) ? KIND_FLOAT : KIND_INTEGER;
}

const uint8_t *inst_kinds(Machine *machine) {
  const Module *module = machine->module;
  uint8_t *kinds = ARENA_ARRAY(machine->arena, uint8_t, module->ninsts + 1);
  for (uint32_t i = 0; i < module->ninsts; i++) kinds[i] = (uint8_t)kind_of(&module->insts[i]);
  return kinds;
}

// Holds tables together that must agree: for every target that has a code generator, a tile op has an emitter
// exactly when it has a rule, and every op that remains after the passes has an emitter.
#include "codegen/cg.h"

#include "check.h"

static bool has_code(const Target *target, OpKind kind) {
  bool tmem = kind == OP_tmem_alloc || kind == OP_tmem_dealloc || kind == OP_tcgen05_commit ||
              kind == OP_tcgen05_fence_before || kind == OP_tcgen05_fence_after;
  if (tmem) return target->tmem_columns > 0;
  if (kind == OP_mma_wait) return target->tmem_columns == 0;
  return kind != OP_wait && kind != OP_tmem_release;
}

static bool has_emitter(const CgTarget *emitters, OpKind kind) {
  for (int path = 0; path < PATH_COUNT; path++)
    if (cg_find_emit(emitters, kind, (Path)path)) return true;
  return false;
}

static void check_target(Checks *c, const Target *target, const CgTarget *emitters) {
  CHECK_TEXT(c, emitters->name, target->name);
  for (int kind = 0; kind < OP_COUNT; kind++) {
    bool tile = op_def((OpKind)kind)->group == GROUP_TILE;
    bool expected = tile ? target->rules[kind] != NULL : has_code(target, (OpKind)kind);
    if (!CHECK(c, has_emitter(emitters, (OpKind)kind) == expected))
      fprintf(stderr, "  %s on %s\n", op_def((OpKind)kind)->name, target->name);
  }
}

int main(void) {
  Checks checks = {0};
  int found = 0;
  for (int i = 0; i < target_count(); i++) {
    const CgTarget *emitters = cg_find_emitters(target_at(i));
    if (!emitters) continue;
    found++;
    check_target(&checks, target_at(i), emitters);
  }
  CHECK(&checks, found > 0);
  return check_report(&checks);
}

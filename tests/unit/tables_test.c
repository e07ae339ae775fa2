// Holds tables together that must agree: for every target that has a code generator, a tile op has an emitter
// exactly when it has a rule, and every op that remains after the passes has an emitter.
#include "codegen/cg.h"

#include "check.h"

static bool stays_until_code(OpKind kind) {
  return kind != OP_wait && kind != OP_tmem_release;
}

static void check_target(Checks *c, const Target *target, const CgTarget *emitters) {
  CHECK_TEXT(c, emitters->name, target->name);
  for (int kind = 0; kind < OP_COUNT; kind++) {
    bool tile = op_def((OpKind)kind)->group == GROUP_TILE;
    bool expected = tile ? target->rules[kind] != NULL : stays_until_code((OpKind)kind);
    if (!CHECK(c, (cg_find_emit(emitters, (OpKind)kind) != NULL) == expected))
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

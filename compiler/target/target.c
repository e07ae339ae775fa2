// The list of targets, the default first. Each has a file with its table; nothing else in the compiler names one.
#include "target/target.h"

#include <string.h>

#include "target/rules.h"

static const Target *const targets[] = {&target_sm100a, &target_sm90a};

// GPUs that exist, so that asking for one is not answered as if it were a typo.
static const char *const known_names[] = {"sm_80",   "sm_86",  "sm_89",   "sm_90",  "sm_90a",  "sm_100",
                                          "sm_100f", "sm_101", "sm_101a", "sm_103", "sm_103a", "sm_110",
                                          "sm_110a", "sm_120", "sm_120a", "sm_121", "sm_121a"};

enum {
  TARGET_COUNT = sizeof targets / sizeof *targets,
  KNOWN_COUNT = sizeof known_names / sizeof *known_names
};

int target_count(void) {
  return TARGET_COUNT;
}

const Target *target_at(int index) {
  return targets[index];
}

const Target *target_find(const char *name) {
  for (int i = 0; i < TARGET_COUNT; i++)
    if (!strcmp(targets[i]->name, name)) return targets[i];
  return NULL;
}

bool target_known(const char *name) {
  for (int i = 0; i < KNOWN_COUNT; i++)
    if (!strcmp(known_names[i], name)) return true;
  return false;
}

const MmaShape *target_find_mma(const Target *target, DType a, DType b, DType c) {
  for (int i = 0; i < target->nmma; i++) {
    const MmaShape *shape = &target->mma[i];
    if (shape->a == a && shape->b == b && shape->c == c) return shape;
  }
  return NULL;
}

const MmaExtents *target_mma_extents(const Target *target, const MmaShape *shape, int64_t m) {
  for (const MmaExtents *extents = shape->extents; extents->m; extents++) {
    bool repeats = extents->m >= target->tmem_lanes;
    if (m > 0 && (repeats ? m % extents->m == 0 : m == extents->m)) return extents;
  }
  return NULL;
}

int target_mma_n_step(const MmaShape *shape, const MmaExtents *extents, bool b_mn_major) {
  return b_mn_major && shape->mn_n_step > extents->n_step ? shape->mn_n_step : extents->n_step;
}

// What the hardware accepts: facts and rules, no LLVM. A target is a table; passes ask for facts, never for a
// name.
#ifndef TILEC_TARGET_TARGET_H
#define TILEC_TARGET_TARGET_H

#include "base/diag.h"
#include "tir/tir.h"

// One family of MMA instructions: element types, atoms and legal extents (PTX ISA 9.7.16.2, table 39).
typedef struct {
  DType a, b, c;
  int k_atom;                // elements of K one instruction consumes
  int m[3];                  // legal M of one instruction, 0-terminated
  int n_min, n_max, n_step;  // legal N of one instruction at M = 128
  int kind;                  // the instruction's kind field (0 f16, 1 tf32, 2 f8f6f4, 3 i8)
} MmaShape;

typedef struct Target Target;

// Decides the path of one op, or reports why the target cannot do it. `variant_tma`: TMA may be used where
// the guards will hold.
typedef bool (*RuleFn)(const Target *target, TirOp *op, bool variant_tma, Diags *ds);

struct Target {
  const char *name;              // "sm_100a"
  const char *llvm_cpu;          // "sm_100a"
  const char *llvm_features;     // "+ptx86"
  int64_t shared_bytes;          // usable per CTA
  int tmem_columns, tmem_lanes;  // 0: no TMEM
  int max_box;                   // elements of a TMA box dimension
  const MmaShape *mma;
  int nmma;
  RuleFn rules[OP_COUNT];  // NULL: the target lacks the op
};

const Target *target_find(const char *name);  // NULL: not supported; target_known tells why
// Whether a GPU of that name exists that this compiler has no table for ("sm_90a"): its message differs from
// a typo's.
bool target_known(const char *name);
int target_count(void);
const Target *target_at(int index);
const MmaShape *target_find_mma(const Target *target, DType a, DType b, DType c);  // NULL: no such triple

#endif

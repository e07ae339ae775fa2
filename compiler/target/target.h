// What the hardware accepts: facts and rules, no LLVM. A target is a table; passes ask for facts, never for a
// name.
#ifndef TILEC_TARGET_TARGET_H
#define TILEC_TARGET_TARGET_H

#include "base/diag.h"
#include "tir/tir.h"

// What one MMA instruction takes at one number of rows. Rows below those of TMEM stand alone; whole TMEM rows
// repeat.
typedef struct {
  int m;
  int n_min, n_max, n_step;
  bool
      ws;  // the .ws form, whose N is a power of two; each warp's lanes hold a quarter of it (layout G of 9.7.16.10.5)
} MmaExtents;

// One family of MMA instructions: element types, atoms and legal extents (PTX ISA 9.7.16.2, table 39).
typedef struct {
  DType a, b, c;
  int k_atom;             // elements of K one instruction consumes
  MmaExtents extents[4];  // most rows first, m = 0 ends
  bool mn_major;          // operands may be stored with M or N innermost (table 52)
  int mn_n_step;          // legal N when B is
  int kind;               // the instruction's kind field (0 f16, 1 tf32, 2 f8f6f4, 3 i8)
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
  int tmem_columns, tmem_lanes;  // 0: no TMEM; accumulators are fragments
  int registers;                 // 32-bit ones of an SM
  int fragment_registers;        // of a thread, that fragments may take
  int max_box;                   // elements of a TMA box dimension
  int param_bytes;               // of all kernel parameters
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
// The instruction that makes up M rows of an accumulator; NULL: none does.
const MmaExtents *target_mma_extents(const Target *target, const MmaShape *shape, int64_t m);
// The step of N, with B stored either way.
int target_mma_n_step(const MmaShape *shape, const MmaExtents *extents, bool b_mn_major);

#endif

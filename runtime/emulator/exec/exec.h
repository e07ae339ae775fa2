// What the warp interpreter's files share: groups, scheduling, launch set-up, and the loops over lanes that
// handlers are made of.
#ifndef PTXEMU_EXEC_EXEC_H
#define PTXEMU_EXEC_EXEC_H

#include "machine.h"

// ---- warp.c

bool warp_begin(Machine *machine, Cta *cta, Warp *warp, int index);
void warp_end(Warp *warp);
// Runs groups of the warp for at most `budget` instructions. false after a fault; *ran: at least one
// instruction was executed.
bool warp_slice(Machine *machine, Warp *warp, int budget, bool *ran);
// Sends `lanes` of the current group to `target`, the rest to the next instruction.
ExecResult warp_branch(Warp *warp, uint32_t lanes, uint32_t target);
// The same with a target per lane; all lanes of the mask.
ExecResult warp_branch_each(Warp *warp, uint32_t lanes, const uint32_t target[WARP_LANES]);
ExecResult warp_exit(Machine *machine, Warp *warp, uint32_t lanes);

// For instructions with a member mask in each lane, which may differ: narrows *lanes to those that name the
// same mask as the first one, *others are the rest. The members that take part, or 0 when some have not come
// and the group has been blocked.
uint32_t warp_meet_masked(Machine *machine, Warp *warp, const Operand *mask, uint32_t *lanes,
                          uint32_t *others);
// What such a handler returns: `others` execute the instruction on their own.
ExecResult warp_done(Machine *machine, Warp *warp, uint32_t others);

// ---- sync.c

// Barriers that the exit of a warp (of threads) may complete.
void barriers_after_exit(Machine *machine, Warp *warp, uint32_t lanes);

// ---- sched.c

// Runs the whole launch; the outcome is in machine->fault.
void launch_run(Machine *machine);

// ---- check/hang.c

// Fills machine->fault with the explanation of a deadlock (or, when livelock, of a spin without progress).
void hang_report(Machine *machine, bool livelock);

// ---- loops over lanes

// A full warp runs as a vector loop. Rows are either the same or disjoint, so no lane depends on another:
// ivdep is true.
#define LANE_LOOP(lanes, i, statement)                                                                       \
  do {                                                                                                       \
    if ((lanes) == 0xffffffffu) {                                                                            \
      _Pragma("GCC ivdep") for (int i = 0; i < WARP_LANES; i++) {                                            \
        statement;                                                                                           \
      }                                                                                                      \
    } else {                                                                                                 \
      for (uint32_t rest_ = (lanes); rest_ != 0; rest_ &= rest_ - 1) {                                       \
        int i = __builtin_ctz(rest_);                                                                        \
        statement;                                                                                           \
      }                                                                                                      \
    }                                                                                                        \
  } while (0)

// A handler for dst = expression of a (and b, c); T is the lane type of the row.
#define UNARY(function, T, expression)                                                                       \
  static ExecResult function(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {               \
    (void)machine;                                                                                           \
    T *d_ = (T *)(void *)row_ptr(warp, &inst->ops[0]);                                                       \
    const T *a_ = (const T *)(const void *)row_ptr(warp, &inst->ops[1]);                                     \
    LANE_LOOP(lanes, i, T a = a_[i]; d_[i] = (T)(expression));                                               \
    return EXEC_NEXT;                                                                                        \
  }

#define BINARY(function, T, expression)                                                                      \
  static ExecResult function(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {               \
    (void)machine;                                                                                           \
    T *d_ = (T *)(void *)row_ptr(warp, &inst->ops[0]);                                                       \
    const T *a_ = (const T *)(const void *)row_ptr(warp, &inst->ops[1]);                                     \
    const T *b_ = (const T *)(const void *)row_ptr(warp, &inst->ops[2]);                                     \
    LANE_LOOP(lanes, i, T a = a_[i]; T b = b_[i]; d_[i] = (T)(expression));                                  \
    return EXEC_NEXT;                                                                                        \
  }

#define TERNARY(function, T, expression)                                                                     \
  static ExecResult function(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes) {               \
    (void)machine;                                                                                           \
    T *d_ = (T *)(void *)row_ptr(warp, &inst->ops[0]);                                                       \
    const T *a_ = (const T *)(const void *)row_ptr(warp, &inst->ops[1]);                                     \
    const T *b_ = (const T *)(const void *)row_ptr(warp, &inst->ops[2]);                                     \
    const T *c_ = (const T *)(const void *)row_ptr(warp, &inst->ops[3]);                                     \
    LANE_LOOP(lanes, i, T a = a_[i]; T b = b_[i]; T c = c_[i]; d_[i] = (T)(expression));                     \
    return EXEC_NEXT;                                                                                        \
  }

// NULL, or an error text: the first type must have one of these widths in bits (0: none).
static inline const char *need_bits(const Inst *inst, int a, int b, int c) {
  int bits = inst->ntypes > 0 ? ptx_type_bits((PtxType)inst->types[0]) : 0;
  return bits != 0 && (bits == a || bits == b || bits == c) ? NULL : "this type is not supported";
}

// First type of an instruction, and whether it is one that integer handlers take.
static inline PtxType type0(const Inst *inst) {
  return inst->ntypes > 0 ? (PtxType)inst->types[0] : PT_none;
}
static inline bool is_pred_type(const Inst *inst) {
  return type0(inst) == PT_pred;
}
static inline bool is_float_type(const Inst *inst) {
  return ptx_type_float(type0(inst));
}
static inline bool is_half_type(const Inst *inst) {
  PtxType t = type0(inst);
  return t == PT_f16 || t == PT_f16x2 || t == PT_bf16 || t == PT_bf16x2;
}
static inline bool is_integer_type(const Inst *inst) {
  return !is_float_type(inst) && type0(inst) != PT_pred;
}

#endif

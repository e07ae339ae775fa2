// Decoded instructions and the table of those that exist. A mnemonic is a root ("cp.async.bulk.tensor"),
// known to isa.def, followed by a set of modifiers in any order. The parser classifies the modifiers, link.c
// turns operands into rows of the register file, and an InstDef's `select` picks the handler once, so that
// execution never sees a string.
//
// Who owns what: this file, mods.def, isa.def, the parser and exec/ belong to the warp half of the emulator;
// families under async/ (mbarrier, TMA, cp.async, tcgen05, wgmma) define InstDefs of their own and are listed
// in isa.def, one line each.
#ifndef PTXEMU_PTX_INST_H
#define PTXEMU_PTX_INST_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Machine Machine;
typedef struct Warp Warp;
typedef struct Inst Inst;

typedef enum {
  EXEC_NEXT,   // all lanes go on to the next instruction
  EXEC_MOVED,  // the handler set the program counters itself (branches, exit, warp_split)
  EXEC_BLOCK,  // some lanes wait: the handler called warp_block() first
  EXEC_FAULT,  // the handler called machine_fault() first
} ExecResult;

// Executes `inst` for the lanes of the mask: never empty, the guard predicate already applied.
typedef ExecResult (*ExecFn)(Machine *machine, Warp *warp, const Inst *inst, uint32_t lanes);

typedef enum {
#define MOD(id, spelling, class) MOD_##id,
#include "ptx/mods.def"
#undef MOD
  MOD_COUNT,
} Mod;

// Classes of modifiers; an InstDef names the ones that it takes. The last five are the patterns that mods.def
// does not list.
typedef enum {
  MC_ALIGNED,
  MC_ROUND,
  MC_FTZ,
  MC_SAT,
  MC_RELU,
  MC_NAN,
  MC_XORSIGN,
  MC_PRECISION,
  MC_HALF,
  MC_CARRY,
  MC_SHIFT,
  MC_COMPARE,
  MC_OPERATION,
  MC_VOTE,
  MC_SHUFFLE,
  MC_PERMUTE,
  MC_TO,
  MC_SPACE,
  MC_ORDER,
  MC_SCOPE,
  MC_NC,
  MC_CACHE,
  MC_HINT,
  MC_NOFTZ,
  MC_TRANS,
  MC_PROXY,
  MC_BARRIER,
  MC_MBARRIER,
  MC_COMPLETION,
  MC_MULTICAST,
  MC_READ,
  MC_TILE,
  MC_CTA_GROUP,
  MC_KIND,
  MC_BLOCK_SCALE,
  MC_COLLECTOR,
  MC_SPARSE,
  MC_TMEM_SHAPE,
  MC_TMEM_COPY,
  MC_PACK,
  MC_LAYOUT,
  MC_GRIDDEP,
  MC_CLC,
  MC_TEST,
  MC_TENSORMAP,
  MC_SHAPE,
  MC_COUNT,
  MC_VECTOR,
  MC_DIM,
  MC_BYTES,
  MC_PAIR,  // no modifier: the first operand may be d|p
} ModClass;

#define MC(c) ((uint64_t)1 << MC_##c)

// PTX types. PT_none ends a list.
typedef enum {
  PT_none,
  PT_pred,
  PT_b1,
  PT_b4,
  PT_b6,
  PT_b8,
  PT_b16,
  PT_b32,
  PT_b64,
  PT_b128,
  PT_u4,
  PT_s4,
  PT_u8,
  PT_u16,
  PT_u32,
  PT_u64,
  PT_s8,
  PT_s16,
  PT_s32,
  PT_s64,
  PT_u16x2,
  PT_s16x2,
  PT_f16,
  PT_f16x2,
  PT_bf16,
  PT_bf16x2,
  PT_tf32,
  PT_f32,
  PT_f32x2,
  PT_f64,
  PT_e4m3,
  PT_e5m2,
  PT_e3m2,
  PT_e2m3,
  PT_e2m1,
  PT_ue8m0,
  PT_ue4m3,
  PT_e4m3x2,
  PT_e5m2x2,
  PT_e3m2x2,
  PT_e2m3x2,
  PT_e2m1x2,
  PT_ue8m0x2,
  PT_e4m3x4,
  PT_e5m2x4,
  PT_e3m2x4,
  PT_e2m3x4,
  PT_e2m1x4,
  PT_COUNT,
} PtxType;

int ptx_type_bits(PtxType type);  // 1 for .pred, 0 for PT_none
bool ptx_type_signed(PtxType type);
bool ptx_type_float(PtxType type);
const char *ptx_type_name(PtxType type);

// How a value lies in the register file. One row holds the 32 lanes of one register:
// ROW_PRED one uint32_t, bit = lane; ROW_32 uint32_t[32] (also 8- and 16-bit registers, upper bits zero);
// ROW_64 uint64_t[32]; ROW_128 uint64_t[32] low halves, then uint64_t[32] high halves.
typedef enum { ROW_NONE, ROW_PRED, ROW_32, ROW_64, ROW_128 } RowKind;

typedef enum {
  OPERAND_NONE,
  OPERAND_REG,      // a register, or a constant (bank BANK_CONST): read both the same way
  OPERAND_SINK,     // `_`
  OPERAND_ADDRESS,  // [base + value]; elems are TMA coordinates ([map, {c0, c1}])
  OPERAND_VECTOR,   // {a, b, …}
  OPERAND_PAIR,     // d|p: elems[0], elems[1]
  OPERAND_LABEL,    // value = index of the target instruction in the module
  OPERAND_CLOCK,    // a special register that changes while it runs: value = SpecialRegister
  OPERAND_SYMBOL,   // a function or a call's parameter: `symbol`
} OperandKind;

// BANK_FUNC: registers of device functions, which are static (no recursion).
typedef enum { BANK_WARP, BANK_CONST, BANK_FUNC, BANK_COUNT } Bank;

typedef struct Operand {
  uint8_t kind;  // OperandKind
  uint8_t
      row;  // RowKind of a register, or of an address's base (ROW_NONE: no base, the value is the address)
  uint8_t bank;   // Bank: warp->bank[bank] + off is the row
  uint8_t type;   // PtxType with which a register was declared (PT_none for constants)
  bool negated;   // !p
  uint32_t off;   // bytes
  int64_t value;  // constant: its bits; address: the offset to add; label: the target
  struct Operand *elems;
  int nelems;
  const void *symbol;  // OPERAND_SYMBOL: Function or Variable
} Operand;

struct Inst {
  ExecFn exec;
  Operand *ops;
  uint8_t nops;
  uint8_t ntypes;
  bool guarded;
  Operand guard;     // a predicate
  uint8_t types[4];  // PtxType, in the order written
  uint64_t mods[4];  // set of Mod
  uint8_t nspaces;
  uint16_t spaces[3];  // Mods of class SPACE, in the order written (cp.async: destination, then source)
  uint8_t vec;         // .v2 .v4 .v8; 1 without
  uint8_t dims;        // .1d … .5d; 0 without
  uint16_t count;      // .x1 … .x128; 0 without
  uint16_t shape[3];   // .m64n64k16 and .m8n8, 0 where absent
  uint16_t bytes;      // free for select(): a size worked out once
  int32_t aux;         // free for select()
  const struct InstDef *def;
  const char *text;  // the statement as written, text_length bytes; for reports
  int text_length;
  const char *error;  // why it can't be executed; exec then reports it
  int line;           // PTX line
  int loc;            // index into module->locs, -1 without .loc
};

static inline bool inst_has(const Inst *inst, Mod mod) {
  return inst->mods[mod >> 6] >> (mod & 63) & 1;
}
// The first modifier of the set that lies in the class, or MOD_COUNT.
Mod inst_mod_in(const Inst *inst, ModClass mod_class);

// Operand form: blank-separated letters, one per operand, `?` before the first optional one, `*` for "any
// further operands". The letter gives the width that an immediate takes and the register row that is
// required:
//   0 1 2 3  of type types[i]          w  twice the width of types[0]
//   i  32 bits    j  the same, any register    l  64 bits   h  16 bits   f  f32 constant allowed (0f… or
//   decimal) p  predicate  m  address in brackets    v  vector in braces, elements of the last type (32 bits
//   if smaller) r  any register, or an immediate of 64 bits    L  label   S  symbol   x  anything
// `0|p` may follow for destinations that may be a pair; a sink is accepted for any destination.
typedef struct InstDef {
  const char *name;  // root, e.g. "tcgen05.mma"; several rows may share one root: the first whose accepts()
                     // holds is taken
  uint64_t classes;  // MC(…) that it takes; another class is an error when reached
  const char *operands;               // operand form
  int min_sm;                         // 0, 90 or 100
  ExecFn exec;                        // handler, unless select gives one
  bool (*accepts)(const Inst *inst);  // NULL: always
  const char *(*select)(
      Inst *inst);  // NULL, or: sets inst->exec (and aux, bytes); returns an error text or NULL
} InstDef;

typedef struct {
  char text[200];
} InstError;

PtxType ptx_type_find(const char *word, int length);
const char *mod_spelling(Mod mod);

// Longest dotted prefix of the mnemonic that is a root: its length, or 0; *first is some row of that root.
int inst_find_root(const char *mnemonic, int length, const InstDef **first);
// Classifies one modifier word; false when it is no known word.
bool inst_add_modifier(Inst *inst, const char *word, int length);
// Splits a mnemonic into root and modifiers and finds its def. `sm` is the module's target.
bool inst_decode(Inst *inst, const char *mnemonic, int length, int sm, InstError *error);
// After the operands are known: picks the handler.
bool inst_select(Inst *inst, InstError *error);

#endif

// A decoded PTX module: functions, variables, instructions, constants, source lines. Built once by ptx_parse
// + ptx_link, then read-only and shared by every launch.
#ifndef PTXEMU_PTX_MODULE_H
#define PTXEMU_PTX_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "ptx/inst.h"

typedef struct Gmem Gmem;

// Addresses of function-scope .param variables lie above this one and in the thread's local memory; local
// memory of device functions has bit 30 set. Functions as values: FUNCTION_BASE + index.
#define PARAM_LOCAL 0x1000000u
#define LOCAL_FUNC 0x40000000u
#define FUNCTION_BASE 0x0f000000u

typedef enum {
  SREG_TID_X,
  SREG_TID_Y,
  SREG_TID_Z,
  SREG_NTID_X,
  SREG_NTID_Y,
  SREG_NTID_Z,
  SREG_CTAID_X,
  SREG_CTAID_Y,
  SREG_CTAID_Z,
  SREG_NCTAID_X,
  SREG_NCTAID_Y,
  SREG_NCTAID_Z,
  SREG_CLUSTERID_X,
  SREG_CLUSTERID_Y,
  SREG_CLUSTERID_Z,
  SREG_NCLUSTERID_X,
  SREG_NCLUSTERID_Y,
  SREG_NCLUSTERID_Z,
  SREG_CLUSTER_CTAID_X,
  SREG_CLUSTER_CTAID_Y,
  SREG_CLUSTER_CTAID_Z,
  SREG_CLUSTER_NCTAID_X,
  SREG_CLUSTER_NCTAID_Y,
  SREG_CLUSTER_NCTAID_Z,
  SREG_CLUSTER_CTARANK,
  SREG_CLUSTER_NCTARANK,
  SREG_LANEID,
  SREG_WARPID,
  SREG_NWARPID,
  SREG_SMID,
  SREG_NSMID,
  SREG_GRIDID,
  SREG_LANEMASK_EQ,
  SREG_LANEMASK_LE,
  SREG_LANEMASK_LT,
  SREG_LANEMASK_GE,
  SREG_LANEMASK_GT,
  SREG_TOTAL_SMEM,
  SREG_DYNAMIC_SMEM,
  SREG_AGGR_SMEM,
  SREG_EXPLICIT_CLUSTER,
  SREG_FIRST_CLOCK,
  SREG_CLOCK = SREG_FIRST_CLOCK,
  SREG_CLOCK_HI,
  SREG_CLOCK64,
  SREG_GLOBALTIMER,
  SREG_GLOBALTIMER_LO,
  SREG_GLOBALTIMER_HI,
  SREG_COUNT,
} SpecialRegister;

typedef enum { VAR_GLOBAL, VAR_CONST, VAR_SHARED, VAR_LOCAL, VAR_PARAM } VariableSpace;

typedef struct Variable {
  const char *name;
  VariableSpace space;
  PtxType type;
  uint64_t bytes;  // 0: extern array of unknown size (dynamic shared memory)
  uint32_t align;
  bool is_extern, is_pointer;
  uint64_t address;     // global: absolute; shared, local, param: offset in its space
  const uint8_t *init;  // bytes of the initializer, NULL: zeros
  uint64_t init_bytes;
  struct Function *owner;  // NULL at module scope
} Variable;

// A row that a warp fills when it starts.
typedef enum { INIT_SREG, INIT_SHARED, INIT_DYNAMIC_SHARED } InitKind;

typedef struct {
  InitKind kind;
  int sreg;       // SpecialRegister
  uint8_t row;    // RowKind
  uint32_t off;   // in the register file
  int64_t value;  // shared: added to the variable's address (dynamic: to the dynamic array's start)
  const Variable *variable;
} InitRow;

// A register that some instruction names; for breakpoints.
typedef struct {
  const char *name;   // of a range: its prefix
  int32_t number;     // in the range, -1: a single register
  uint8_t row, type;  // RowKind, PtxType
  uint32_t off;       // in the function's bank
} RegisterName;

typedef struct Function {
  const char *name;
  bool is_entry, has_body;
  Variable *params;  // entry: in order, address = offset in the parameter block
  int nparams;
  Variable *rets;
  int nrets;
  uint64_t param_bytes;
  uint32_t first, count;                        // instructions of the module
  uint32_t register_bytes;                      // entry: its BANK_WARP
  uint32_t shared_bytes;                        // statics of its own
  uint32_t shared_align;                        // of the dynamic array
  uint32_t local_bytes;                         // per thread
  uint32_t reqntid[3], maxntid[3], cluster[3];  // 0: not given
  InitRow *inits;
  int ninits;
  RegisterName *registers;  // in the order of their first use
  int nregisters;
  bool calls;  // contains a call to a function with a body
  int line;
} Function;

typedef struct {
  int file;          // number of .file
  int line, column;  // column 0: not given
} Loc;

typedef struct {
  int number;
  const char *name;
} SourceFile;

typedef struct Module {
  const char *name;  // for reports: file name
  int version, sm;   // 88, 100
  Function **functions;
  int nfunctions;
  Variable **variables;  // module scope
  int nvariables;
  Inst *insts;
  uint32_t ninsts;
  uint8_t *constants;  // BANK_CONST: rows of 32 equal lanes
  uint64_t constant_bytes;
  Loc *locs;
  int nlocs;
  SourceFile *files;
  int nfiles;
  uint32_t func_register_bytes, func_local_bytes;  // of device functions together: their frames are static
  uint32_t
      shared_bytes;  // statics of the module and of device functions, from SHARED_FIRST; entries' own follow
} Module;

// Parses and links. Syntax errors make it fail, *error = "name:line: text"; unknown instructions only fail
// when reached. Global variables are allocated in gmem. Everything lives in `arena`.
Module *ptx_load(Arena *arena, Gmem *gmem, const char *name, const char *text, size_t length,
                 const char **error);

const Function *module_find_entry(const Module *module, const char *name);

#endif

// A decoded PTX module: functions, variables, instructions, constants, source lines. Built once by ptx_parse + ptx_link, then
// read-only and shared by every launch.
#ifndef PTXEMU_PTX_MODULE_H
#define PTXEMU_PTX_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "ptx/inst.h"

typedef struct Gmem Gmem;

typedef enum { VAR_GLOBAL, VAR_CONST, VAR_SHARED, VAR_LOCAL, VAR_PARAM } VariableSpace;

typedef struct Variable {
  const char *name;
  VariableSpace space;
  PtxType type;
  uint64_t bytes;         // 0: extern array of unknown size (dynamic shared memory)
  uint32_t align;
  bool is_extern, is_pointer;
  uint64_t address;       // global: absolute; shared, local, param: offset in its space
  const uint8_t *init;    // bytes of the initializer, NULL: zeros
  uint64_t init_bytes;
  struct Function *owner; // NULL at module scope
} Variable;

// A row that a warp fills when it starts.
typedef enum { INIT_SREG, INIT_SHARED, INIT_DYNAMIC_SHARED } InitKind;

typedef struct {
  InitKind kind;
  int sreg;        // SpecialRegister
  uint8_t row;     // RowKind
  uint32_t off;    // in the register file
  int64_t value;   // shared: offset (dynamic: added to the dynamic array's start)
} InitRow;

typedef struct Function {
  const char *name;
  bool is_entry, has_body;
  Variable *params;       // entry: in order, address = offset in the parameter block
  int nparams;
  Variable *rets;
  int nrets;
  uint64_t param_bytes;
  uint32_t first, count;  // instructions of the module
  uint32_t frame;         // bytes of the register file below this function's own rows (device functions)
  uint32_t register_bytes;
  uint32_t shared_bytes;  // statics, from SHARED_FIRST
  uint32_t shared_align;  // of the dynamic array
  uint32_t local_bytes;   // per thread
  uint32_t reqntid[3], maxntid[3], cluster[3];  // 0: not given
  InitRow *inits;
  int ninits;
  bool calls;             // contains a call to a function with a body
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
  const char *name;       // for reports: file name
  int version, sm;        // 88, 100
  Function **functions;
  int nfunctions;
  Variable **variables;   // module scope
  int nvariables;
  Inst *insts;
  uint32_t ninsts;
  uint8_t *constants;     // BANK_CONST: rows of 32 equal lanes
  uint64_t constant_bytes;
  Loc *locs;
  int nlocs;
  SourceFile *files;
  int nfiles;
  const Function **labels_of;  // reserved
  uint32_t max_register_bytes, max_local_bytes;
  uint32_t shared_bytes;  // module-scope statics, from SHARED_FIRST; functions' own follow
} Module;

// Parses and links. Syntax errors make it fail, *error = "name:line: text"; unknown instructions only fail when reached.
// Global variables are allocated in gmem. Everything lives in `arena`.
Module *ptx_load(Arena *arena, Gmem *gmem, const char *name, const char *text, size_t length, const char **error);

const Function *module_find_entry(const Module *module, const char *name);

#endif

// Shared by parse.c (module level), parse_inst.c (statements) and link.c (symbols, rows, labels): one reading
// pass over the text, in which names are looked up as they come; only labels and shared-memory layout are
// settled later.
#ifndef PTXEMU_PTX_INTERNAL_H
#define PTXEMU_PTX_INTERNAL_H

#include <setjmp.h>

#include "base/intern.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"
#include "ptx/lex.h"
#include "ptx/module.h"

#define NO_ROW 0xffffffffu

typedef enum { SYMBOL_REG, SYMBOL_VARIABLE, SYMBOL_FUNCTION } SymbolKind;

typedef struct {
  SymbolKind kind;
  PtxType type;
  Name name;          // of a register: as written, without the number
  uint32_t count;     // of a register range %r<count>; 0: a single register
  uint32_t *offsets;  // NO_ROW until first used
  Variable *variable;
  Function *function;
} Symbol;

typedef struct {
  uint32_t pc;
  Operand *targets;  // of a .branchtargets list
  int ntargets;
} Label;

typedef struct {
  Operand *op;
  Name name;
  uint32_t inst;
} LabelRef;

typedef struct Scope {
  struct Scope *parent;
  Map *symbols, *labels;  // NULL while empty
  VEC(LabelRef) refs;
} Scope;

typedef struct {
  uint64_t value;
  uint32_t off;
  uint8_t row;
} Constant;

typedef struct {
  Lexer lexer;
  Token token;
  Arena *arena;
  Gmem *gmem;
  Interner *names;
  Module *module;
  Scope *scope;
  Function *function;  // NULL at module level
  Map *functions;      // Name -> Function
  Map *mnemonics;      // Name -> Inst: each spelling is decoded once
  VEC(Function *) function_list;
  VEC(Variable *) variables;
  VEC(Inst) insts;
  VEC(Loc) locs;
  VEC(SourceFile) files;
  VEC(InitRow) inits;                 // of the function being read
  VEC(RegisterName) registers;        // the same
  uint32_t sreg_rows[SREG_COUNT][2];  // per row kind 32 / 64; NO_ROW
  uint32_t pred_block, pred_used;     // predicates share 64-byte blocks
  VEC(Constant) constants;
  uint32_t *constant_slots;
  uint32_t constant_cap;  // power of two
  uint32_t constant_bytes;
  const char *text;  // start, for statement texts
  int depth;         // of nested operands
  jmp_buf *fail;
  const char *error;
} Parser;

// parse.c
void parser_next(Parser *p);
bool parser_is(const Parser *p, char punct);
bool parser_accept(Parser *p, char punct);
void parser_expect(Parser *p, char punct);
bool parser_word_is(const Parser *p, const char *word);  // a word or a directive
__attribute__((noreturn, format(printf, 2, 3))) void parser_fail(Parser *p, const char *format, ...);
int64_t parser_integer(Parser *p);
void parse_variable(Parser *p, VariableSpace space, bool is_extern);
void parse_loc(Parser *p);
void parse_file(Parser *p);
void parser_skip_statement(Parser *p);

// parse_inst.c
void parse_body(Parser *p);  // the token is the function's `{`
typedef struct {
  TokenKind kind;  // TOKEN_INT, TOKEN_F32, TOKEN_F64
  uint64_t bits;
} Value;
Value parse_expression(Parser *p);

// link.c
void scope_push(Parser *p);
void scope_pop(Parser *p);  // resolves labels; what is not found goes to the parent
void scope_add_register(Parser *p, Name name, PtxType type, uint32_t count);
void scope_add_variable(Parser *p, Variable *variable);
void scope_add_label(Parser *p, Name name, Label *label);
// Finds a name; for a register of a range, *index is its number. NULL: unknown.
Symbol *scope_find(Parser *p, Name name, uint32_t *index);
RowKind row_of_type(PtxType type);
uint32_t link_new_row(Parser *p, RowKind row);
void link_register(Parser *p, Symbol *symbol, uint32_t index, Operand *out);
void link_constant(Parser *p, RowKind row, uint64_t value, Operand *out);
bool link_special(Parser *p, Token word, RowKind row, Operand *out);
// The address of a variable plus an offset, as a readable row.
void link_variable(Parser *p, Variable *variable, RowKind row, int64_t offset, Operand *out);
uint8_t link_bank(const Parser *p);
void link_finish(Parser *p);

#endif

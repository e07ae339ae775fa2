// Names to rows. Each register gets its row of the register file when it is first used, each distinct
// constant a row of 32 equal lanes in the module's constant bank, so that handlers read registers and
// immediates alike. Special registers and shared addresses (which carry the CTA's rank) are rows that a warp
// fills when it starts.
#include <stdlib.h>
#include <string.h>

#include "mem/gmem.h"
#include "mem/space.h"
#include "ptx/ptx_internal.h"

static const char *const sreg_names[SREG_COUNT] = {
    [SREG_TID_X] = "%tid.x",
    [SREG_TID_Y] = "%tid.y",
    [SREG_TID_Z] = "%tid.z",
    [SREG_NTID_X] = "%ntid.x",
    [SREG_NTID_Y] = "%ntid.y",
    [SREG_NTID_Z] = "%ntid.z",
    [SREG_CTAID_X] = "%ctaid.x",
    [SREG_CTAID_Y] = "%ctaid.y",
    [SREG_CTAID_Z] = "%ctaid.z",
    [SREG_NCTAID_X] = "%nctaid.x",
    [SREG_NCTAID_Y] = "%nctaid.y",
    [SREG_NCTAID_Z] = "%nctaid.z",
    [SREG_CLUSTERID_X] = "%clusterid.x",
    [SREG_CLUSTERID_Y] = "%clusterid.y",
    [SREG_CLUSTERID_Z] = "%clusterid.z",
    [SREG_NCLUSTERID_X] = "%nclusterid.x",
    [SREG_NCLUSTERID_Y] = "%nclusterid.y",
    [SREG_NCLUSTERID_Z] = "%nclusterid.z",
    [SREG_CLUSTER_CTAID_X] = "%cluster_ctaid.x",
    [SREG_CLUSTER_CTAID_Y] = "%cluster_ctaid.y",
    [SREG_CLUSTER_CTAID_Z] = "%cluster_ctaid.z",
    [SREG_CLUSTER_NCTAID_X] = "%cluster_nctaid.x",
    [SREG_CLUSTER_NCTAID_Y] = "%cluster_nctaid.y",
    [SREG_CLUSTER_NCTAID_Z] = "%cluster_nctaid.z",
    [SREG_CLUSTER_CTARANK] = "%cluster_ctarank",
    [SREG_CLUSTER_NCTARANK] = "%cluster_nctarank",
    [SREG_LANEID] = "%laneid",
    [SREG_WARPID] = "%warpid",
    [SREG_NWARPID] = "%nwarpid",
    [SREG_SMID] = "%smid",
    [SREG_NSMID] = "%nsmid",
    [SREG_GRIDID] = "%gridid",
    [SREG_LANEMASK_EQ] = "%lanemask_eq",
    [SREG_LANEMASK_LE] = "%lanemask_le",
    [SREG_LANEMASK_LT] = "%lanemask_lt",
    [SREG_LANEMASK_GE] = "%lanemask_ge",
    [SREG_LANEMASK_GT] = "%lanemask_gt",
    [SREG_TOTAL_SMEM] = "%total_smem_size",
    [SREG_DYNAMIC_SMEM] = "%dynamic_smem_size",
    [SREG_AGGR_SMEM] = "%aggr_smem_size",
    [SREG_EXPLICIT_CLUSTER] = "%is_explicit_cluster",
    [SREG_CLOCK] = "%clock",
    [SREG_CLOCK_HI] = "%clock_hi",
    [SREG_CLOCK64] = "%clock64",
    [SREG_GLOBALTIMER] = "%globaltimer",
    [SREG_GLOBALTIMER_LO] = "%globaltimer_lo",
    [SREG_GLOBALTIMER_HI] = "%globaltimer_hi",
};

// ---- scopes

void scope_push(Parser *p) {
  Scope *scope = ARENA_NEW(p->arena, Scope);
  scope->parent = p->scope;
  p->scope = scope;
}

static Label *find_label(const Scope *scope, Name name) {
  return scope->labels != NULL ? map_get(scope->labels, name) : NULL;
}

static void resolve(Operand *op, const Label *label) {
  op->value = label->pc;
  op->elems = label->targets;
  op->nelems = label->ntargets;
}

void scope_pop(Parser *p) {
  Scope *scope = p->scope;
  p->scope = scope->parent;
  bool in_function = scope->parent != NULL && scope->parent->parent != NULL;
  for (int i = 0; i < scope->refs.len; i++) {
    LabelRef ref = scope->refs.data[i];
    const Label *label = find_label(scope, ref.name);
    if (label != NULL) {
      resolve(ref.op, label);
    } else if (in_function) {
      vec_push(p->arena, &scope->parent->refs, ref);
    } else if (ref.inst < (uint32_t)p->insts.len) {
      p->insts.data[ref.inst].error = text_printf(p->arena, "label '%.80s' is not defined", ref.name);
    }
  }
}

static void add(Parser *p, Name name, Symbol *symbol) {
  if (p->scope->symbols == NULL) p->scope->symbols = map_new(p->arena);
  map_put(p->scope->symbols, name, symbol);
}

// %r<9> and a register called %r may stand side by side: a range goes by a name that no register can have.
static Name range_name(Parser *p, const char *prefix, size_t length) {
  char key[1500];
  if (length > sizeof key - 2) return NULL;
  memcpy(key, prefix, length);
  key[length] = '<';
  return intern_n(p->names, key, length + 1);
}

void scope_add_register(Parser *p, Name name, PtxType type, uint32_t count) {
  Symbol *symbol = ARENA_NEW(p->arena, Symbol);
  uint32_t n = count > 0 ? count : 1;
  *symbol = (Symbol){.kind = SYMBOL_REG, .type = type, .name = name, .count = count};
  symbol->offsets = ARENA_ARRAY(p->arena, uint32_t, n);
  memset(symbol->offsets, 0xff, n * sizeof *symbol->offsets);
  if (count > 0) name = range_name(p, name, strlen(name));
  if (name == NULL) parser_fail(p, "the register's name is too long");
  add(p, name, symbol);
}

void scope_add_variable(Parser *p, Variable *variable) {
  Symbol *symbol = ARENA_NEW(p->arena, Symbol);
  *symbol = (Symbol){.kind = SYMBOL_VARIABLE, .variable = variable};
  add(p, variable->name, symbol);
}

void scope_add_label(Parser *p, Name name, Label *label) {
  if (p->scope->labels == NULL) p->scope->labels = map_new(p->arena);
  map_put(p->scope->labels, name, label);
}

static Symbol *find_exact(const Parser *p, Name name) {
  for (const Scope *scope = p->scope; scope != NULL; scope = scope->parent) {
    Symbol *symbol = scope->symbols != NULL ? map_get(scope->symbols, name) : NULL;
    if (symbol != NULL) return symbol;
  }
  return NULL;
}

Symbol *scope_find(Parser *p, Name name, uint32_t *index) {
  *index = 0;
  Symbol *symbol = find_exact(p, name);
  if (symbol != NULL) return symbol;
  size_t length = strlen(name);
  uint64_t number = 0, scale = 1;
  for (size_t n = length; n > 1 && length - n < 9 && name[n - 1] >= '0' && name[n - 1] <= '9'; n--) {
    number += (uint64_t)(name[n - 1] - '0') * scale;
    scale *= 10;
    if (name[n - 1] == '0' && n < length) continue;  // %r07 is not register 7 of %r
    symbol = find_exact(p, range_name(p, name, n - 1));
    if (symbol == NULL || number >= symbol->count) continue;
    *index = (uint32_t)number;
    return symbol;
  }
  Function *function = map_get(p->functions, name);
  if (function == NULL) return NULL;
  symbol = ARENA_NEW(p->arena, Symbol);
  *symbol = (Symbol){.kind = SYMBOL_FUNCTION, .function = function};
  return symbol;
}

// ---- rows

RowKind row_of_type(PtxType type) {
  int bits = ptx_type_bits(type);
  return type == PT_pred ? ROW_PRED : bits <= 32 ? ROW_32 : bits == 64 ? ROW_64 : ROW_128;
}

static uint32_t row_bytes(RowKind row) {
  return row == ROW_128 ? 512 : row == ROW_64 ? 256 : row == ROW_32 ? 128 : 4;
}

static uint32_t *register_bytes(Parser *p) {
  return p->function->is_entry ? &p->function->register_bytes : &p->module->func_register_bytes;
}

uint8_t link_bank(const Parser *p) {
  return p->function->is_entry ? BANK_WARP : BANK_FUNC;
}

uint32_t link_new_row(Parser *p, RowKind row) {
  uint32_t *bytes = register_bytes(p);
  if (row == ROW_PRED && p->pred_used < 16) return p->pred_block + 4 * p->pred_used++;
  uint32_t off = *bytes;
  if (off > 0x40000000u) parser_fail(p, "function '%s' has too many registers", p->function->name);
  *bytes += row == ROW_PRED ? 64 : row_bytes(row);
  if (row == ROW_PRED) {
    p->pred_block = off;
    p->pred_used = 1;
  }
  return off;
}

void link_register(Parser *p, Symbol *symbol, uint32_t index, Operand *out) {
  RowKind row = row_of_type(symbol->type);
  if (symbol->offsets[index] == NO_ROW) {
    uint32_t off = symbol->offsets[index] = link_new_row(p, row);
    RegisterName named = {symbol->name, symbol->count > 0 ? (int32_t)index : -1, (uint8_t)row,
                          (uint8_t)symbol->type, off};
    vec_push(p->arena, &p->registers, named);
  }
  *out = (Operand){.kind = OPERAND_REG,
                   .row = (uint8_t)row,
                   .bank = link_bank(p),
                   .type = (uint8_t)symbol->type,
                   .off = symbol->offsets[index]};
}

static uint32_t hash_constant(uint64_t value, RowKind row) {
  uint64_t h = (value ^ (uint64_t)row << 60) * 0x9e3779b97f4a7c15u;
  return (uint32_t)(h >> 32);
}

static void insert_slot(Parser *p, uint32_t index) {
  const Constant *constant = &p->constants.data[index];
  uint32_t mask = p->constant_cap - 1, at = hash_constant(constant->value, constant->row) & mask;
  while (p->constant_slots[at] != NO_ROW) at = (at + 1) & mask;
  p->constant_slots[at] = index;
}

static void grow_slots(Parser *p) {
  p->constant_cap = p->constant_cap == 0 ? 256 : p->constant_cap * 2;
  p->constant_slots = ARENA_ARRAY(p->arena, uint32_t, p->constant_cap);
  memset(p->constant_slots, 0xff, p->constant_cap * sizeof(uint32_t));
  for (int i = 0; i < p->constants.len; i++) insert_slot(p, (uint32_t)i);
}

void link_constant(Parser *p, RowKind row, uint64_t value, Operand *out) {
  if (row == ROW_32) value = (uint32_t)value;
  if (row == ROW_PRED) value = value != 0 ? 0xffffffffu : 0;
  *out = (Operand){.kind = OPERAND_REG, .row = (uint8_t)row, .bank = BANK_CONST, .value = (int64_t)value};
  if (p->constants.len * 2 >= (int)p->constant_cap) grow_slots(p);
  uint32_t mask = p->constant_cap - 1;
  for (uint32_t at = hash_constant(value, row) & mask; p->constant_slots[at] != NO_ROW;
       at = (at + 1) & mask) {
    const Constant *constant = &p->constants.data[p->constant_slots[at]];
    if (constant->value == value && constant->row == row) {
      out->off = constant->off;
      return;
    }
  }
  out->off = p->constant_bytes;
  uint32_t bytes = row == ROW_PRED ? 64 : row_bytes(row);
  if (p->constant_bytes > 0x60000000u) parser_fail(p, "too many constants");
  p->constant_bytes += bytes;
  Constant constant = {value, out->off, (uint8_t)row};
  vec_push(p->arena, &p->constants, constant);
  insert_slot(p, (uint32_t)p->constants.len - 1);
}

static int find_sreg(Token word) {
  for (int i = 0; i < SREG_COUNT; i++) {
    if (strlen(sreg_names[i]) == (size_t)word.length &&
        memcmp(sreg_names[i], word.text, (size_t)word.length) == 0) {
      return i;
    }
  }
  return -1;
}

bool link_special(Parser *p, Token word, RowKind row, Operand *out) {
  int sreg = find_sreg(word);
  if (sreg < 0) return false;
  if (sreg >= SREG_FIRST_CLOCK) {
    *out = (Operand){.kind = OPERAND_CLOCK, .value = sreg};
    return true;
  }
  if (sreg == SREG_EXPLICIT_CLUSTER) row = ROW_PRED;
  uint32_t *cached = &p->sreg_rows[sreg][row == ROW_64];
  if (*cached == NO_ROW) {
    *cached = link_new_row(p, row);
    InitRow init = {.kind = INIT_SREG, .sreg = sreg, .row = (uint8_t)row, .off = *cached};
    vec_push(p->arena, &p->inits, init);
  }
  *out = (Operand){.kind = OPERAND_REG, .row = (uint8_t)row, .bank = link_bank(p), .off = *cached};
  return true;
}

// Shared addresses carry the rank, so they are rows of the warp; all other addresses are constants.
static void shared_row(Parser *p, Variable *variable, RowKind row, int64_t offset, Operand *out) {
  bool dynamic = variable->is_extern && variable->bytes == 0;
  InitRow init = {.kind = dynamic ? INIT_DYNAMIC_SHARED : INIT_SHARED, .row = (uint8_t)row, .off = NO_ROW};
  init.value = offset;
  init.variable = variable;
  for (int i = 0; i < p->inits.len && init.off == NO_ROW; i++) {
    const InitRow *old = &p->inits.data[i];
    if (old->variable == variable && old->row == row && old->value == offset) init.off = old->off;
  }
  if (init.off == NO_ROW) {
    init.off = link_new_row(p, row);
    vec_push(p->arena, &p->inits, init);
  }
  if (dynamic && variable->align > p->function->shared_align) p->function->shared_align = variable->align;
  *out = (Operand){.kind = OPERAND_REG, .row = (uint8_t)row, .bank = link_bank(p), .off = init.off};
}

void link_variable(Parser *p, Variable *variable, RowKind row, int64_t offset, Operand *out) {
  if (variable->space == VAR_SHARED) {
    shared_row(p, variable, row, offset, out);
  } else {
    link_constant(p, row, variable->address + (uint64_t)offset, out);
  }
}

// ---- the end

static void fill_constants(Parser *p) {
  uint8_t *bytes = arena_alloc(p->arena, (size_t)p->constant_bytes + 64);
  bytes += (64 - (uintptr_t)bytes % 64) % 64;
  for (int i = 0; i < p->constants.len; i++) {
    const Constant *c = &p->constants.data[i];
    uint32_t *words = (uint32_t *)(void *)(bytes + c->off);
    uint64_t *longs = (uint64_t *)(void *)(bytes + c->off);
    if (c->row == ROW_PRED) words[0] = (uint32_t)c->value;
    for (int lane = 0; lane < 32 && c->row == ROW_32; lane++) words[lane] = (uint32_t)c->value;
    for (int lane = 0; lane < 32 && c->row >= ROW_64; lane++) longs[lane] = c->value;
  }
  p->module->constants = bytes;
  p->module->constant_bytes = p->constant_bytes;
}

static uint64_t align_up(uint64_t value, uint64_t align) {
  return align > 1 ? (value + align - 1) / align * align : value;
}

// Statics of the module and of device functions come first, an entry's own after them: entries may overlap
// each other.
static void place_shared(Parser *p) {
  uint64_t common = SHARED_FIRST;
  for (int i = 0; i < p->variables.len; i++) {
    Variable *v = p->variables.data[i];
    if (v->space != VAR_SHARED || v->bytes == 0 || (v->owner != NULL && v->owner->is_entry)) continue;
    v->address = align_up(common, v->align);
    common = v->address + v->bytes;
  }
  if (common > 1u << SHARED_RANK_SHIFT)
    parser_fail(p, "shared variables take %llu bytes", (unsigned long long)common);
  p->module->shared_bytes = (uint32_t)common - SHARED_FIRST;
  for (int i = 0; i < p->variables.len; i++) {
    Variable *v = p->variables.data[i];
    if (v->space != VAR_SHARED || v->bytes == 0 || v->owner == NULL || !v->owner->is_entry) continue;
    v->address = align_up(common + v->owner->shared_bytes, v->align);
    uint64_t end = v->address + v->bytes - common;
    if (end > 1u << SHARED_RANK_SHIFT)
      parser_fail(p, "shared variables of '%s' are too large", v->owner->name);
    v->owner->shared_bytes = (uint32_t)end;
  }
}

static void add_tail(Parser *p) {
  // Running off the end of the last function must meet an instruction.
  Inst inst = {.error = "execution ran off the end of the function", .loc = -1, .text = "", .vec = 1};
  vec_push(p->arena, &p->insts, inst);
}

void link_finish(Parser *p) {
  Module *m = p->module;
  add_tail(p);
  place_shared(p);
  fill_constants(p);
  m->functions = p->function_list.data;
  m->nfunctions = p->function_list.len;
  m->variables = p->variables.data;
  m->nvariables = p->variables.len;
  m->insts = p->insts.data;
  m->ninsts = (uint32_t)p->insts.len;
  m->locs = p->locs.data;
  m->nlocs = p->locs.len;
  m->files = p->files.data;
  m->nfiles = p->files.len;
}

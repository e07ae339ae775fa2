// Function bodies: blocks, labels, instructions and their operands. An operand that makes no sense spoils its
// instruction, not the module: the text is kept and reported if a thread gets there.
#include <string.h>

#include "ptx/ptx_internal.h"

// ---- constant expressions

static Value unary(Parser *p);

static int precedence(const Parser *p, char *op) {
  if (p->token.kind != TOKEN_PUNCT) return 0;
  *op = p->token.text[0];
  switch (*op) {
  case '*':
  case '/':
  case '%':
    return 5;
  case '+':
  case '-':
    return 4;
  case '<':
  case '>':
    return p->lexer.at < p->lexer.end && *p->lexer.at == *op ? 3 : 0;
  case '&':
    return 2;
  case '^':
    return 1;
  default:
    return 0;
  }
}

static uint64_t apply(Parser *p, char op, uint64_t a, uint64_t b) {
  switch (op) {
  case '*':
    return a * b;
  case '/':
  case '%':
    if (b == 0) parser_fail(p, "division by zero in a constant");
    return op == '/' ? a / b : a % b;
  case '+':
    return a + b;
  case '-':
    return a - b;
  case '<':
    return b < 64 ? a << b : 0;
  case '>':
    return b < 64 ? a >> b : 0;
  case '&':
    return a & b;
  default:
    return a ^ b;
  }
}

static Value binary(Parser *p, int least) {
  Value left = unary(p);
  char op;
  for (int level = precedence(p, &op); level >= least && level > 0; level = precedence(p, &op)) {
    parser_next(p);
    if (op == '<' || op == '>') parser_next(p);
    Value right = binary(p, level + 1);
    if (left.kind != TOKEN_INT || right.kind != TOKEN_INT) parser_fail(p, "arithmetic on float constants");
    left.bits = apply(p, op, left.bits, right.bits);
  }
  return left;
}

// Nested parentheses, braces and signs recurse; a text of nothing else must not take the stack.
static void deeper(Parser *p) {
  if (++p->depth > 200) parser_fail(p, "nested too deep");
}

static Value unary_inner(Parser *p) {
  if (parser_accept(p, '-')) {
    Value v = unary(p);
    v.bits = v.kind == TOKEN_INT   ? 0 - v.bits
             : v.kind == TOKEN_F32 ? v.bits ^ 0x80000000u
                                   : v.bits ^ 1ull << 63;
    return v;
  }
  if (parser_accept(p, '+')) return unary(p);
  if (parser_accept(p, '~')) {
    Value v = unary(p);
    v.bits = ~v.bits;
    return v;
  }
  if (parser_accept(p, '!')) {
    Value v = unary(p);
    v.bits = v.bits == 0;
    return v;
  }
  if (parser_accept(p, '(')) {
    bool cast = p->token.kind == TOKEN_DIRECTIVE;  // (.s64)
    if (cast) parser_next(p);
    Value v = {TOKEN_INT, 0};
    if (!cast) v = binary(p, 1);
    parser_expect(p, ')');
    return cast ? unary(p) : v;
  }
  Value v = {p->token.kind, p->token.bits};
  if (parser_word_is(p, "WARP_SZ")) {
    v = (Value){TOKEN_INT, 32};
  } else if (v.kind != TOKEN_INT && v.kind != TOKEN_F32 && v.kind != TOKEN_F64) {
    parser_fail(p, "expected a constant, found '%.*s'", p->token.length > 60 ? 60 : p->token.length,
                p->token.text);
  }
  parser_next(p);
  return v;
}

static Value unary(Parser *p) {
  deeper(p);
  Value v = unary_inner(p);
  p->depth--;
  return v;
}

Value parse_expression(Parser *p) {
  return binary(p, 1);
}

// ---- operands

// The type that the form letter gives to an immediate.
static PtxType letter_type(const Inst *inst, char letter) {
  int last = inst->ntypes > 0 ? inst->ntypes - 1 : 0;
  int index = letter >= '0' && letter <= '3' ? letter - '0' : last;
  PtxType type = inst->ntypes > 0 ? (PtxType)inst->types[index > last ? last : index] : PT_b32;
  switch (letter) {
  case 'i':
  case 'j':
    return PT_b32;
  case 'l':
    return PT_b64;
  case 'h':
    return PT_b16;
  case 'f':
    return PT_f32;
  case 'p':
    return PT_pred;
  case 'w':
    return ptx_type_bits(type) == 16 ? PT_b32 : PT_b64;
  default:
    return type;
  }
}

static uint64_t convert_value(Value value, PtxType type) {
  double wide;
  float narrow;
  memcpy(&wide, &value.bits, sizeof wide);
  uint32_t low = (uint32_t)value.bits;
  memcpy(&narrow, &low, sizeof narrow);
  if (value.kind == TOKEN_F64 && (type == PT_f32 || type == PT_tf32)) {
    narrow = (float)wide;
    memcpy(&low, &narrow, sizeof low);
    return low;
  }
  if (value.kind == TOKEN_F32 && type == PT_f64) {
    wide = narrow;
    memcpy(&value.bits, &wide, sizeof wide);
  }
  int bits = ptx_type_bits(type);
  return bits < 64 && bits > 1 ? value.bits & ((1ull << bits) - 1) : value.bits;
}

static void parse_operand(Parser *p, Inst *inst, char letter, Operand *out);

static Operand *parse_list(Parser *p, Inst *inst, char letter, char close, int *count) {
  VEC(Operand) list = {NULL, 0, 0};
  while (!parser_is(p, close)) {
    Operand op;
    parse_operand(p, inst, letter, &op);
    vec_push(p->arena, &list, op);
    if (list.len > 1024) parser_fail(p, "list of more than 1024 operands");
    if (!parser_accept(p, ',')) break;
  }
  parser_expect(p, close);
  *count = list.len;
  return list.data;
}

static Name take_name(Parser *p) {
  Name name = intern_n(p->names, p->token.text, (size_t)p->token.length);
  parser_next(p);
  return name;
}

static void function_value(Parser *p, const Function *function, RowKind row, char letter, Operand *out) {
  if (letter == 'S') {
    *out = (Operand){.kind = OPERAND_SYMBOL, .symbol = function};
    return;
  }
  for (int i = 0; i < p->function_list.len; i++) {
    if (p->function_list.data[i] == function) link_constant(p, row, FUNCTION_BASE + (uint64_t)i, out);
  }
}

// `reg + constant` as a plain operand: an addition of its own before the instruction.
static void add_constant(Parser *p, Inst *inst, Operand *reg) {
  uint64_t addend = parse_expression(p).bits;
  if (addend == 0) return;
  Inst add = {.line = inst->line, .loc = inst->loc, .text = inst->text, .vec = 1, .nops = 3};
  InstError error;
  const char *mnemonic = reg->row == ROW_64 ? "add.s64" : "add.s32";
  if (reg->row < ROW_32 || reg->row > ROW_64)
    parser_fail(p, "constant added to a register that holds no integer");
  bool known = inst_decode(&add, mnemonic, 7, p->module->sm, &error);
  add.ops = ARENA_ARRAY(p->arena, Operand, 3);
  add.ops[1] = *reg;
  link_constant(p, (RowKind)reg->row, addend, &add.ops[2]);
  reg->off = link_new_row(p, (RowKind)reg->row);
  reg->bank = link_bank(p);
  add.ops[0] = *reg;
  if (!known || !inst_select(&add, &error)) parser_fail(p, "constant added to a register: %s", error.text);
  vec_push(p->arena, &p->insts, add);
}

static void word_operand(Parser *p, Inst *inst, char letter, Operand *out) {
  PtxType type = letter_type(inst, letter);
  RowKind row = row_of_type(type);
  Token word = p->token;
  Name name = take_name(p);
  *out = (Operand){.kind = OPERAND_NONE};
  if (letter == 'L') {
    *out = (Operand){.kind = OPERAND_LABEL, .symbol = name};
    return;
  }
  if (word.length == 1 && word.text[0] == '_') {
    out->kind = OPERAND_SINK;
    return;
  }
  uint32_t index;
  Symbol *symbol = scope_find(p, name, &index);
  if (symbol == NULL && word.text[0] == '%' && link_special(p, word, row == ROW_64 ? ROW_64 : ROW_32, out))
    return;
  if (symbol == NULL && letter == 'S') return;  // the prototype of an indirect call; select() judges the rest
  if (symbol == NULL) {
    inst->error = text_printf(p->arena, "'%.80s' is not declared", name);
    return;
  }
  switch (symbol->kind) {
  case SYMBOL_REG:
    link_register(p, symbol, index, out);
    if (parser_is(p, '+')) add_constant(p, inst, out);
    return;
  case SYMBOL_VARIABLE: {
    if (letter == 'S') {
      *out = (Operand){.kind = OPERAND_SYMBOL, .symbol = symbol->variable};
      return;
    }
    int64_t offset = 0;
    if (parser_is(p, '+') || parser_is(p, '-')) offset = parser_integer(p);
    link_variable(p, symbol->variable, row == ROW_64 ? ROW_64 : ROW_32, offset, out);
    return;
  }
  case SYMBOL_FUNCTION:
    function_value(p, symbol->function, row, letter, out);
    return;
  }
}

// [base], [base+n], [n], [base, {c0, c1}]
static void address_operand(Parser *p, Inst *inst, Operand *out) {
  *out = (Operand){.kind = OPERAND_ADDRESS};
  if (p->token.kind == TOKEN_WORD && !parser_word_is(p, "WARP_SZ")) {
    uint32_t index;
    Name name = take_name(p);
    Symbol *symbol = scope_find(p, name, &index);
    Operand base = {.kind = OPERAND_NONE};
    if (symbol == NULL) {
      inst->error = text_printf(p->arena, "'%.80s' is not declared", name);
    } else if (symbol->kind == SYMBOL_REG) {
      link_register(p, symbol, index, &base);
    } else if (symbol->kind == SYMBOL_VARIABLE && symbol->variable->space == VAR_SHARED) {
      link_variable(p, symbol->variable, ROW_32, 0, &base);
    } else if (symbol->kind == SYMBOL_VARIABLE) {
      out->value = (int64_t)symbol->variable->address;
      out->symbol = symbol->variable;
    } else {
      inst->error = "a function is no memory address";
    }
    if (base.kind == OPERAND_REG) {
      out->row = base.row;
      out->bank = base.bank;
      out->off = base.off;
    }
  } else {
    out->value = parser_integer(p);
  }
  if (parser_is(p, '+') || parser_is(p, '-')) out->value += parser_integer(p);
  if (parser_accept(p, ',')) {
    parser_expect(p, '{');
    out->elems = parse_list(p, inst, 'i', '}', &out->nelems);
  }
  parser_expect(p, ']');
}

static void pair_operand(Parser *p, Inst *inst, Operand *out) {
  Operand *elems = ARENA_ARRAY(p->arena, Operand, 2);
  elems[0] = *out;
  parse_operand(p, inst, 'p', &elems[1]);
  *out = (Operand){.kind = OPERAND_PAIR, .elems = elems, .nelems = 2};
}

static void operand(Parser *p, Inst *inst, char letter, Operand *out) {
  if (parser_accept(p, '[')) {
    address_operand(p, inst, out);
  } else if (parser_accept(p, '{')) {
    *out = (Operand){.kind = OPERAND_VECTOR};
    int count = 0;
    Operand *elems = parse_list(p, inst, letter == 'v' ? 'r' : letter, '}', &count);
    out->elems = elems;
    out->nelems = count;
  } else if (parser_accept(p, '(')) {
    *out = (Operand){.kind = OPERAND_VECTOR};
    int count = 0;
    Operand *elems = parse_list(p, inst, 'S', ')', &count);
    out->elems = elems;
    out->nelems = count;
  } else if (parser_is(p, '!')) {
    parser_next(p);
    parse_operand(p, inst, 'p', out);
    out->negated = !out->negated;
  } else if (p->token.kind == TOKEN_WORD && !parser_word_is(p, "WARP_SZ")) {
    word_operand(p, inst, letter, out);
    if (parser_accept(p, '|')) pair_operand(p, inst, out);
  } else {
    PtxType type = letter_type(inst, letter);
    link_constant(p, row_of_type(type), convert_value(parse_expression(p), type), out);
  }
}

static void parse_operand(Parser *p, Inst *inst, char letter, Operand *out) {
  deeper(p);
  operand(p, inst, letter, out);
  p->depth--;
}

// ---- instructions

static char next_letter(const char **form, char last) {
  while (**form == ' ' || **form == '?' || **form == '|') *form += **form == '|' ? 2 : 1;
  if (**form == '\0') return last == '*' ? 'r' : '\0';
  if (**form == '*') return '*';
  return *(*form)++;
}

static int required(const char *form) {
  int n = 0;
  for (; *form != '\0' && *form != '?' && *form != '*'; form++) n += *form != ' ';
  return n;
}

// Of registers that share a row, 16 and 32 bits: the upper half of the one is not known to be zero in the other.
static bool other_half(const Operand *op, PtxType type) {
  int bits = ptx_type_bits((PtxType)op->type), want = ptx_type_bits(type);
  return (bits == 16 && want == 32) || (bits == 32 && want == 16);
}

// Operands of an arithmetic type, whose handlers go straight to the rows.
static const char *check_typed(const Inst *inst, const Operand *op, char letter) {
  int index = letter == 'w' ? 0 : letter - '0';
  if (index >= inst->ntypes) return "the instruction lacks a type";
  if (op->kind != OPERAND_REG && op->kind != OPERAND_NONE && op->kind != OPERAND_ADDRESS &&
      op->kind != OPERAND_VECTOR)
    return "expected a register or a constant";
  return NULL;
}

// Instructions of typed operands have a result, and that comes first.
static bool is_result(const Inst *inst, bool first) {
  return first && strpbrk(inst->def->operands, "0123") != NULL;
}

static const char *check_pair(const Inst *inst, const Operand *op, char letter);

// Rows that the form asks for; memory and moves take any register.
static const char *check_operand(const Inst *inst, const Operand *op, char letter, bool first) {
  bool typed = (letter >= '0' && letter <= '3') || letter == 'w';
  bool exact = typed || letter == 'i' || letter == 'l' || letter == 'h';
  if (op->kind == OPERAND_PAIR) return check_pair(inst, op, letter);
  if (exact && op->kind == OPERAND_CLOCK) return "a clock can only be moved";
  const char *why = typed ? check_typed(inst, op, letter) : NULL;
  if (why != NULL) return why;
  if (is_result(inst, first) && op->kind == OPERAND_REG && op->bank == BANK_CONST)
    return "the destination is no register";
  if (letter == 'L' && op->kind != OPERAND_LABEL) return "expected a label";
  if (letter == 'p' && op->kind != OPERAND_REG && op->kind != OPERAND_SINK && op->kind != OPERAND_NONE)
    return "expected a predicate";
  if (exact && op->kind == OPERAND_REG && other_half(op, letter_type(inst, letter)))
    return "a register has the wrong width";
  if (letter == 'm' && op->kind != OPERAND_ADDRESS) return "expected an address in brackets";
  if (letter == 'p' && op->kind == OPERAND_REG && op->row != ROW_PRED) return "expected a predicate";
  if (letter == 'v' && op->kind != OPERAND_VECTOR) return "expected a list in braces";
  if (exact && op->kind == OPERAND_REG && op->row != row_of_type(letter_type(inst, letter))) {
    return "a register has the wrong width";
  }
  if (exact && (op->kind == OPERAND_ADDRESS || op->kind == OPERAND_VECTOR))
    return "expected a register or a constant";
  return NULL;
}

// d|p and p|q of handlers that know of them.
static const char *check_pair(const Inst *inst, const Operand *op, char letter) {
  if (!(inst->def->classes & MC(PAIR))) return "one destination expected";
  const char *why =
      op->elems[0].kind == OPERAND_SINK ? NULL : check_operand(inst, &op->elems[0], letter, true);
  return why != NULL ? why : check_operand(inst, &op->elems[1], 'p', true);
}

static void push_ref(Parser *p, Operand *op, uint32_t inst) {
  LabelRef ref = {op, op->symbol, inst};
  vec_push(p->arena, &p->scope->refs, ref);
}

// What follows an unknown mnemonic may be anything: it is not looked at.
static void skip_operands(Parser *p, Inst *inst) {
  while (!parser_is(p, ';') && p->token.kind != TOKEN_END) parser_next(p);
  inst->text_length = (int)(p->token.text - inst->text);
  parser_accept(p, ';');
}

static void parse_operands(Parser *p, Inst *inst) {
  const char *form = inst->def->operands;
  Operand ops[32];
  int n = 0;
  char letter = '\0';
  while (!parser_is(p, ';') && !parser_is(p, '}') && p->token.kind != TOKEN_END) {
    letter = next_letter(&form, letter);
    if (letter == '\0' || n == 32) {
      inst->error = "too many operands";
      inst->text_length = (int)(p->token.text - inst->text);
      parser_skip_statement(p);
      return;
    }
    parse_operand(p, inst, letter == '*' ? 'r' : letter, &ops[n]);
    const char *why = inst->error == NULL ? check_operand(inst, &ops[n], letter, n == 0) : NULL;
    if (why != NULL) inst->error = text_printf(p->arena, "operand %d: %s", n + 1, why);
    n++;
    parser_accept(p, ',');
  }
  if (n < required(inst->def->operands) && inst->error == NULL) inst->error = "too few operands";
  inst->ops = ARENA_ARRAY(p->arena, Operand, n + 2);  // select() of a call may add absent lists
  if (n > 0) memcpy(inst->ops, ops, (size_t)n * sizeof *ops);
  inst->nops = (uint8_t)n;
  inst->text_length = (int)(p->token.text - inst->text);
  parser_accept(p, ';');
}

static void parse_guard(Parser *p, Inst *inst) {
  bool negated = parser_accept(p, '!');
  if (p->token.kind != TOKEN_WORD) parser_fail(p, "expected a predicate after '@'");
  uint32_t index;
  Name name = take_name(p);
  Symbol *symbol = scope_find(p, name, &index);
  if (symbol == NULL || symbol->kind != SYMBOL_REG || symbol->type != PT_pred) {
    inst->error = text_printf(p->arena, "guard '%.80s' is no declared predicate", name);
    return;
  }
  inst->guarded = true;
  link_register(p, symbol, index, &inst->guard);
  inst->guard.negated = negated;
}

// Root, modifiers and types of a mnemonic; the rest of the instruction is zero.
static const Inst *decode_mnemonic(Parser *p, Token word) {
  Name name = intern_n(p->names, word.text, (size_t)word.length);
  Inst *inst = map_get(p->mnemonics, name);
  if (inst != NULL) return inst;
  inst = ARENA_NEW(p->arena, Inst);
  InstError error;
  if (!inst_decode(inst, word.text, word.length, p->module->sm, &error)) {
    inst->def = NULL;
    inst->error = text_copy(p->arena, error.text, strlen(error.text));
  }
  map_put(p->mnemonics, name, inst);
  return inst;
}

static void parse_instruction(Parser *p) {
  Inst guard = {.text = p->token.text};
  if (parser_accept(p, '@')) parse_guard(p, &guard);
  if (p->token.kind != TOKEN_WORD) parser_fail(p, "expected an instruction");
  Inst inst = *decode_mnemonic(p, p->token);
  inst.line = p->token.line;
  inst.loc = p->locs.len - 1;
  inst.text = guard.text;
  inst.guarded = guard.guarded;
  inst.guard = guard.guard;
  if (guard.error != NULL) inst.error = guard.error;
  if (inst.def != NULL && strcmp(inst.def->name, "call") == 0) p->function->calls = true;
  parser_next(p);
  if (inst.def != NULL) {
    parse_operands(p, &inst);
  } else {
    skip_operands(p, &inst);
  }
  InstError error;
  if (inst.def != NULL && inst.error == NULL && !inst_select(&inst, &error)) {
    inst.error = text_copy(p->arena, error.text, strlen(error.text));
  }
  for (int i = 0; i < inst.nops; i++) {
    if (inst.ops[i].kind == OPERAND_LABEL) push_ref(p, &inst.ops[i], (uint32_t)p->insts.len);
  }
  vec_push(p->arena, &p->insts, inst);
}

// ---- blocks

static void parse_registers(Parser *p) {
  PtxType type = PT_none;
  while (p->token.kind == TOKEN_DIRECTIVE) {
    PtxType t = ptx_type_find(p->token.text + 1, p->token.length - 1);
    if (t == PT_none) parser_fail(p, "register type '%.*s' is not supported", p->token.length, p->token.text);
    type = t;
    parser_next(p);
  }
  if (type == PT_none) parser_fail(p, "registers without a type");
  do {
    if (p->token.kind != TOKEN_WORD) parser_fail(p, "expected a register name");
    Name name = take_name(p);
    int64_t count = 0;
    if (parser_accept(p, '<')) {
      if (p->token.kind != TOKEN_INT) parser_fail(p, "expected the number of registers");
      count = (int64_t)p->token.bits;
      parser_next(p);
      parser_expect(p, '>');
      if (count < 1 || count > 1 << 22) parser_fail(p, "%lld registers", (long long)count);
    }
    scope_add_register(p, name, type, (uint32_t)count);
  } while (parser_accept(p, ','));
  parser_expect(p, ';');
}

static void parse_targets(Parser *p, Label *label) {
  VEC(Operand) targets = {NULL, 0, 0};
  do {
    if (p->token.kind != TOKEN_WORD) parser_fail(p, "expected a label");
    Operand op = {.kind = OPERAND_LABEL, .symbol = take_name(p)};
    vec_push(p->arena, &targets, op);
  } while (parser_accept(p, ','));
  parser_expect(p, ';');
  for (int i = 0; i < targets.len; i++) push_ref(p, &targets.data[i], (uint32_t)p->insts.len);
  label->targets = targets.data;
  label->ntargets = targets.len;
}

static void parse_directive(Parser *p, Label *label) {
  Token word = p->token;
  Str str = {word.text, (size_t)word.length};
  parser_next(p);
  if (str_is(str, ".reg")) {
    parse_registers(p);
  } else if (str_is(str, ".loc")) {
    parse_loc(p);
  } else if (str_is(str, ".local")) {
    parse_variable(p, VAR_LOCAL, false);
  } else if (str_is(str, ".shared")) {
    parse_variable(p, VAR_SHARED, false);
  } else if (str_is(str, ".param")) {
    parse_variable(p, VAR_PARAM, false);
  } else if (str_is(str, ".global")) {
    parse_variable(p, VAR_GLOBAL, false);
  } else if (str_is(str, ".const")) {
    parse_variable(p, VAR_CONST, false);
  } else if (str_is(str, ".extern")) {
    if (!parser_word_is(p, ".shared")) parser_fail(p, "only .extern .shared is allowed inside a function");
    parser_next(p);
    parse_variable(p, VAR_SHARED, true);
  } else if (str_is(str, ".branchtargets") && label != NULL) {
    parse_targets(p, label);
  } else if (str_is(str, ".pragma") || str_is(str, ".callprototype") || str_is(str, ".calltargets")) {
    parser_skip_statement(p);
  } else if (str_is(str, ".file")) {
    parse_file(p);
  } else {
    parser_fail(p, "unknown directive '%.*s'", word.length > 60 ? 60 : word.length, word.text);
  }
}

static bool at_label(Parser *p) {
  Lexer saved = p->lexer;
  Token next = lex_next(&saved);
  return next.kind == TOKEN_PUNCT && next.text[0] == ':';
}

static void parse_label(Parser *p) {
  Label *label = ARENA_NEW(p->arena, Label);
  Name name = take_name(p);
  parser_expect(p, ':');
  label->pc = (uint32_t)p->insts.len;
  scope_add_label(p, name, label);
  if (p->token.kind == TOKEN_DIRECTIVE) parse_directive(p, label);
}

static void parse_statement(Parser *p) {
  if (p->token.kind == TOKEN_DIRECTIVE) {
    parse_directive(p, NULL);
  } else if (p->token.kind == TOKEN_WORD && at_label(p)) {
    parse_label(p);
  } else if (p->token.kind == TOKEN_WORD || parser_is(p, '@')) {
    parse_instruction(p);
  } else if (!parser_accept(p, ';')) {
    parser_fail(p, "expected a statement, found '%.*s'", p->token.length > 60 ? 60 : p->token.length,
                p->token.text);
  }
}

// Where the text of a function ends, its threads return.
static void push_return(Parser *p, Token brace) {
  Inst inst = {.line = brace.line, .loc = p->locs.len - 1, .text = brace.text, .text_length = brace.length};
  InstError error;
  if (!inst_decode(&inst, "ret", 3, p->module->sm, &error) || !inst_select(&inst, &error))
    parser_fail(p, "ret: %s", error.text);
  vec_push(p->arena, &p->insts, inst);
}

void parse_body(Parser *p) {
  int depth = 0;
  Token last;
  do {
    last = p->token;
    if (p->token.kind == TOKEN_END) parser_fail(p, "the text ends inside of a function");
    if (parser_accept(p, '{')) {
      if (depth++ > 0) scope_push(p);
    } else if (parser_accept(p, '}')) {
      if (--depth > 0) scope_pop(p);
    } else {
      parse_statement(p);
    }
  } while (depth > 0);
  push_return(p, last);
}

// The module level of PTX: directives, variables, functions and their parameters. Statements are
// parse_inst.c's. Errors here (what is no PTX at all) end the parse; an unknown instruction is kept and
// reported when it is reached.
#include <string.h>

#include "mem/gmem.h"
#include "ptx/ptx_internal.h"

// ---- tokens

void parser_next(Parser *p) {
  p->token = lex_next(&p->lexer);
}

bool parser_is(const Parser *p, char punct) {
  return p->token.kind == TOKEN_PUNCT && p->token.text[0] == punct;
}

bool parser_accept(Parser *p, char punct) {
  if (!parser_is(p, punct)) return false;
  parser_next(p);
  return true;
}

void parser_fail(Parser *p, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *text = text_vprintf(p->arena, format, args);
  va_end(args);
  p->error = text_printf(p->arena, "%s:%d: %s", p->module->name, p->token.line, text);
  longjmp(*p->fail, 2);
}

static int shown(const Token *token) {
  return token->length > 60 ? 60 : token->length;
}

void parser_expect(Parser *p, char punct) {
  if (parser_accept(p, punct)) return;
  if (p->token.kind == TOKEN_END) parser_fail(p, "expected '%c', found the end of the text", punct);
  parser_fail(p, "expected '%c', found '%.*s'", punct, shown(&p->token), p->token.text);
}

bool parser_word_is(const Parser *p, const char *word) {
  if (p->token.kind != TOKEN_WORD && p->token.kind != TOKEN_DIRECTIVE) return false;
  return strlen(word) == (size_t)p->token.length && memcmp(word, p->token.text, (size_t)p->token.length) == 0;
}

static bool accept_word(Parser *p, const char *word) {
  if (!parser_word_is(p, word)) return false;
  parser_next(p);
  return true;
}

static Name name(Parser *p) {
  if (p->token.kind != TOKEN_WORD)
    parser_fail(p, "expected a name, found '%.*s'", shown(&p->token), p->token.text);
  Name result = intern_n(p->names, p->token.text, (size_t)p->token.length);
  parser_next(p);
  return result;
}

int64_t parser_integer(Parser *p) {
  Value value = parse_expression(p);
  if (value.kind != TOKEN_INT) parser_fail(p, "expected an integer");
  return (int64_t)value.bits;
}

void parser_skip_statement(Parser *p) {
  while (p->token.kind != TOKEN_END && !parser_is(p, ';')) parser_next(p);
  parser_accept(p, ';');
}

static void skip_braces(Parser *p) {
  int depth = 0;
  do {
    depth += parser_is(p, '{') - parser_is(p, '}');
    parser_next(p);
  } while (depth > 0 && p->token.kind != TOKEN_END);
}

// ---- variables

typedef struct {
  PtxType type;
  uint32_t align;
  uint32_t vector;
  bool is_pointer;
} Declaration;

static uint32_t parse_align(Parser *p) {
  int64_t align = parser_integer(p);
  if (align < 1 || align > 1 << 16 || (align & (align - 1)) != 0)
    parser_fail(p, "alignment %lld", (long long)align);
  return (uint32_t)align;
}

// .align N, a type, .v2 .v4, .ptr .global .align N, attributes: in any order
static Declaration parse_declaration(Parser *p) {
  Declaration d = {.type = PT_none, .vector = 1};
  while (p->token.kind == TOKEN_DIRECTIVE) {
    Token word = p->token;
    parser_next(p);
    PtxType type = ptx_type_find(word.text + 1, word.length - 1);
    if (type != PT_none) {
      d.type = type;
    } else if (word.length == 6 && memcmp(word.text, ".align", 6) == 0) {
      uint32_t align = parse_align(p);
      if (!d.is_pointer) d.align = align;  // a pointer's alignment is that of what it points to
    } else if (word.length == 4 && memcmp(word.text, ".ptr", 4) == 0) {
      d.is_pointer = true;
    } else if (word.length == 3 && word.text[1] == 'v') {
      d.vector = (uint32_t)(word.text[2] - '0');
    } else if (word.length == 10 && memcmp(word.text, ".attribute", 10) == 0) {
      parser_expect(p, '(');
      while (p->token.kind != TOKEN_END && !parser_is(p, ')')) parser_next(p);
      parser_expect(p, ')');
    } else if (!d.is_pointer) {
      parser_fail(p, "unexpected '%.*s' in a declaration", shown(&word), word.text);
    }
  }
  if (d.type == PT_none) parser_fail(p, "a declaration without a type");
  uint32_t bytes = (uint32_t)(ptx_type_bits(d.type) + 7) / 8 * d.vector;
  if (d.align == 0) d.align = bytes > 0 ? bytes : 1;
  return d;
}

// Array bounds; false: none; *bytes 0 for [].
static void parse_bounds(Parser *p, Variable *v) {
  uint64_t bytes = v->bytes;
  while (parser_accept(p, '[')) {
    if (parser_accept(p, ']')) {
      bytes = 0;
      continue;
    }
    int64_t count = parser_integer(p);
    parser_expect(p, ']');
    if (count < 0 || (count > 0 && bytes > (1ull << 32) / (uint64_t)count))
      parser_fail(p, "array of %lld elements", (long long)count);
    bytes *= (uint64_t)count;
  }
  v->bytes = bytes;
}

typedef struct {
  uint8_t *data;
  uint64_t bytes, cap;
} InitBuffer;

static void init_push(Parser *p, InitBuffer *b, uint64_t value, uint32_t size) {
  if (b->bytes + size > b->cap) {
    uint64_t cap = b->cap == 0 ? 64 : b->cap * 2;
    uint8_t *data = arena_alloc(p->arena, (size_t)cap);
    if (b->bytes > 0) memcpy(data, b->data, (size_t)b->bytes);
    b->data = data;
    b->cap = cap;
  }
  memcpy(b->data + b->bytes, &value, size);
  b->bytes += size;
}

static uint64_t init_symbol(Parser *p) {
  bool generic = accept_word(p, "generic");
  if (generic) parser_expect(p, '(');
  uint32_t index;
  Symbol *symbol = scope_find(p, name(p), &index);
  if (symbol == NULL || symbol->kind == SYMBOL_REG) parser_fail(p, "unknown name in an initializer");
  if (generic) parser_expect(p, ')');
  uint64_t value = 0;
  if (symbol->kind == SYMBOL_VARIABLE) value = symbol->variable->address;
  for (int i = 0; symbol->kind == SYMBOL_FUNCTION && i < p->function_list.len; i++) {
    if (p->function_list.data[i] == symbol->function) value = FUNCTION_BASE + (uint64_t)i;
  }
  if (parser_accept(p, '+')) value += (uint64_t)parser_integer(p);
  return value;
}

static void parse_initializer(Parser *p, InitBuffer *b, PtxType type, int depth) {
  if (depth > 16) parser_fail(p, "initializer too deep");
  if (parser_accept(p, '{')) {
    while (!parser_is(p, '}')) {
      parse_initializer(p, b, type, depth + 1);
      if (!parser_accept(p, ',')) break;
    }
    parser_expect(p, '}');
    return;
  }
  uint32_t size = (uint32_t)(ptx_type_bits(type) + 7) / 8;
  if (p->token.kind == TOKEN_STRING) {
    for (int i = 0; i < p->token.length; i++) init_push(p, b, (uint8_t)p->token.text[i], 1);
    init_push(p, b, 0, 1);
    parser_next(p);
  } else if (p->token.kind == TOKEN_WORD) {
    init_push(p, b, init_symbol(p), size > 8 ? 8 : size);
  } else {
    Value value = parse_expression(p);
    double wide;
    float narrow;
    memcpy(&wide, &value.bits, sizeof wide);
    narrow = (float)wide;
    if (value.kind == TOKEN_F64 && type == PT_f32) memcpy(&value.bits, &narrow, sizeof narrow);
    init_push(p, b, value.bits, size > 8 ? 8 : size);
  }
}

static void place_variable(Parser *p, Variable *v) {
  if (v->space == VAR_GLOBAL || v->space == VAR_CONST) {
    if (v->bytes == 0) return;
    v->address = gmem_alloc(p->gmem, v->bytes, v->name);
    if (v->address == 0) parser_fail(p, "no memory for '%s'", v->name);
    const GmemBlock *block = gmem_block(p->gmem, v->address, 1);
    if (v->init_bytes > 0) memcpy(block->host, v->init, (size_t)v->init_bytes);
  } else if (v->space == VAR_LOCAL || v->space == VAR_PARAM) {
    bool entry = p->function->is_entry;
    uint32_t *bytes = entry ? &p->function->local_bytes : &p->module->func_local_bytes;
    uint64_t at = (*bytes + (uint64_t)v->align - 1) / v->align * v->align;
    if (at + v->bytes > LOCAL_FUNC / 4) parser_fail(p, "local memory of '%s' is too large", v->name);
    *bytes = (uint32_t)(at + v->bytes);
    v->address = at + (entry ? 0 : LOCAL_FUNC) + (v->space == VAR_PARAM ? PARAM_LOCAL : 0);
  }
}

void parse_variable(Parser *p, VariableSpace space, bool is_extern) {
  Declaration d = parse_declaration(p);
  do {
    Variable *v = ARENA_NEW(p->arena, Variable);
    *v =
        (Variable){.name = name(p), .space = space, .type = d.type, .align = d.align, .is_extern = is_extern};
    v->owner = p->function;
    v->bytes = (uint64_t)(ptx_type_bits(d.type) + 7) / 8 * d.vector;
    parse_bounds(p, v);
    if (parser_accept(p, '=')) {
      InitBuffer b = {NULL, 0, 0};
      parse_initializer(p, &b, d.type, 0);
      if (v->bytes == 0) v->bytes = b.bytes;
      v->init = b.data;
      v->init_bytes = b.bytes < v->bytes ? b.bytes : v->bytes;
    }
    place_variable(p, v);
    vec_push(p->arena, &p->variables, v);
    scope_add_variable(p, v);
  } while (parser_accept(p, ','));
  parser_expect(p, ';');
}

// ---- functions

static void place_param(Parser *p, Function *f, Variable *v) {
  if (f->is_entry) {
    v->address = (f->param_bytes + v->align - 1) / v->align * v->align;
    f->param_bytes = v->address + v->bytes;
    if (f->param_bytes > 1 << 16) parser_fail(p, "parameters of '%s' take more than 64 KiB", f->name);
  } else {
    place_variable(p, v);
  }
}

static Variable *parse_params(Parser *p, Function *f, int *count) {
  VEC(Variable) params = {NULL, 0, 0};
  parser_expect(p, '(');
  while (!parser_is(p, ')')) {
    if (!accept_word(p, ".param")) parser_fail(p, "only .param parameters are supported");
    Declaration d = parse_declaration(p);
    Variable v = {
        .space = VAR_PARAM, .type = d.type, .align = d.align, .is_pointer = d.is_pointer, .owner = f};
    v.name = parser_word_is(p, "_") || p->token.kind == TOKEN_WORD ? name(p) : "";
    v.bytes = (uint64_t)(ptx_type_bits(d.type) + 7) / 8;
    parse_bounds(p, &v);
    vec_push(p->arena, &params, v);
    if (!parser_accept(p, ',')) break;
  }
  parser_expect(p, ')');
  *count = params.len;
  return params.data;
}

static void bind_params(Parser *p, Function *f, Variable *params, int count) {
  for (int i = 0; i < count; i++) {
    params[i].owner = f;
    place_param(p, f, &params[i]);
    scope_add_variable(p, &params[i]);
  }
}

static void parse_dims(Parser *p, uint32_t dims[3]) {
  for (int i = 0; i < 3; i++) dims[i] = 1;
  for (int i = 0; i < 3; i++) {
    int64_t value = parser_integer(p);
    if (value < 0 || value > 1 << 20) parser_fail(p, "dimension %lld", (long long)value);
    dims[i] = (uint32_t)value;
    if (!parser_accept(p, ',')) break;
  }
}

// .maxntid and the like, between the parameters and the body
static void parse_performance(Parser *p, Function *f) {
  uint32_t ignored[3];
  while (p->token.kind == TOKEN_DIRECTIVE) {
    if (accept_word(p, ".reqntid")) {
      parse_dims(p, f->reqntid);
    } else if (accept_word(p, ".maxntid")) {
      parse_dims(p, f->maxntid);
    } else if (accept_word(p, ".reqnctapercluster")) {
      parse_dims(p, f->cluster);
    } else if (accept_word(p, ".minnctapersm") || accept_word(p, ".maxnreg") ||
               accept_word(p, ".maxclusterrank") || accept_word(p, ".maxnctapersm") ||
               accept_word(p, ".abi_preserve") || accept_word(p, ".abi_preserve_control")) {
      parse_dims(p, ignored);
    } else if (accept_word(p, ".pragma")) {
      parser_skip_statement(p);
    } else if (!accept_word(p, ".explicitcluster") && !accept_word(p, ".noreturn") &&
               !accept_word(p, ".blocksareclusters")) {
      parser_fail(p, "unknown directive '%.*s'", shown(&p->token), p->token.text);
    }
  }
}

static Function *declare_function(Parser *p, Name name, bool is_entry) {
  Function *f = map_get(p->functions, name);
  if (f == NULL) {
    f = ARENA_NEW(p->arena, Function);
    *f = (Function){.name = name, .is_entry = is_entry, .line = p->token.line, .shared_align = 16};
    map_put(p->functions, name, f);
    vec_push(p->arena, &p->function_list, f);
  }
  return f;
}

static void begin_function(Parser *p, Function *f) {
  if (f->has_body) parser_fail(p, "function '%s' is defined twice", f->name);
  f->has_body = true;
  f->first = (uint32_t)p->insts.len;
  p->function = f;
  p->inits.data = NULL;
  p->inits.len = p->inits.cap = 0;
  p->registers.data = NULL;
  p->registers.len = p->registers.cap = 0;
  memset(p->sreg_rows, 0xff, sizeof p->sreg_rows);
  p->pred_used = 16;
  scope_push(p);
}

static void end_function(Parser *p, Function *f) {
  scope_pop(p);
  f->count = (uint32_t)p->insts.len - f->first;
  f->inits = p->inits.data;
  f->ninits = p->inits.len;
  f->registers = p->registers.data;
  f->nregisters = p->registers.len;
  p->function = NULL;
}

static void parse_function(Parser *p, bool is_entry) {
  Variable *rets = NULL, *params = NULL;
  int nrets = 0, nparams = 0;
  Function dummy = {.name = "", .is_entry = is_entry};
  if (!is_entry && parser_is(p, '(')) rets = parse_params(p, &dummy, &nrets);
  Function *f = declare_function(p, name(p), is_entry);
  if (parser_is(p, '(')) params = parse_params(p, f, &nparams);
  parse_performance(p, f);
  if (parser_accept(p, ';')) return;
  if (!parser_is(p, '{')) parser_fail(p, "expected the body of '%s'", f->name);
  begin_function(p, f);
  f->params = params;
  f->nparams = nparams;
  f->rets = rets;
  f->nrets = nrets;
  bind_params(p, f, params, nparams);
  bind_params(p, f, rets, nrets);
  parse_body(p);
  end_function(p, f);
}

// ---- module directives

void parse_file(Parser *p) {
  int number = (int)parser_integer(p);
  SourceFile file = {number, ""};
  if (p->token.kind == TOKEN_STRING) {
    file.name = text_copy(p->arena, p->token.text, (size_t)p->token.length);
    parser_next(p);
  }
  while (parser_accept(p, ',')) parser_integer(p);
  vec_push(p->arena, &p->files, file);
}

// .loc file line column [, function_name label [+ n], inlined_at file line column]
void parse_loc(Parser *p) {
  Loc loc = {0, 0, 0};
  loc.file = (int)parser_integer(p);
  loc.line = (int)parser_integer(p);
  loc.column = (int)parser_integer(p);
  while (parser_accept(p, ',')) {
    if (accept_word(p, "function_name")) {
      if (p->token.kind == TOKEN_WORD) parser_next(p);
      if (parser_accept(p, '+')) parser_integer(p);
    } else if (accept_word(p, "inlined_at")) {
      for (int i = 0; i < 3; i++) parser_integer(p);
    } else {
      parser_fail(p, "malformed .loc");
    }
  }
  vec_push(p->arena, &p->locs, loc);
}

static void parse_version(Parser *p) {
  double version = 0;
  if (p->token.kind == TOKEN_F64) memcpy(&version, &p->token.bits, sizeof version);
  if (p->token.kind == TOKEN_INT) version = (double)p->token.bits;
  if (!(version >= 1 && version < 1000)) parser_fail(p, "malformed .version");
  p->module->version = (int)(version * 10 + 0.5);
  parser_next(p);
}

static void parse_target(Parser *p) {
  do {
    if (p->token.kind == TOKEN_WORD && p->token.length > 3 && memcmp(p->token.text, "sm_", 3) == 0) {
      int sm = 0;
      for (int i = 3; i < p->token.length && i < 7; i++) {
        char c = p->token.text[i];
        if (c >= '0' && c <= '9') sm = sm * 10 + c - '0';
      }
      p->module->sm = sm;
    }
    name(p);
  } while (parser_accept(p, ','));
}

static void parse_section(Parser *p) {
  while (p->token.kind != TOKEN_END && !parser_is(p, '{')) parser_next(p);
  skip_braces(p);
}

static bool parse_linkage(Parser *p) {
  bool is_extern = false;
  for (;;) {
    if (accept_word(p, ".extern")) {
      is_extern = true;
    } else if (!accept_word(p, ".visible") && !accept_word(p, ".weak") && !accept_word(p, ".common")) {
      return is_extern;
    }
  }
}

static void parse_item(Parser *p) {
  bool is_extern = parse_linkage(p);
  if (accept_word(p, ".version")) {
    parse_version(p);
  } else if (accept_word(p, ".target")) {
    parse_target(p);
  } else if (accept_word(p, ".address_size")) {
    if (p->token.kind != TOKEN_INT || p->token.bits != 64) parser_fail(p, ".address_size must be 64");
    parser_next(p);
  } else if (accept_word(p, ".entry")) {
    parse_function(p, true);
  } else if (accept_word(p, ".func")) {
    parse_function(p, false);
  } else if (accept_word(p, ".global")) {
    parse_variable(p, VAR_GLOBAL, is_extern);
  } else if (accept_word(p, ".const")) {
    parse_variable(p, VAR_CONST, is_extern);
  } else if (accept_word(p, ".shared")) {
    parse_variable(p, VAR_SHARED, is_extern);
  } else if (accept_word(p, ".file")) {
    parse_file(p);
  } else if (accept_word(p, ".loc")) {
    parse_loc(p);
  } else if (accept_word(p, ".section")) {
    parse_section(p);
  } else if (accept_word(p, ".pragma") || accept_word(p, ".alias")) {
    parser_skip_statement(p);
  } else if (p->token.kind == TOKEN_WORD && !parser_is(p, ';')) {
    parser_next(p);  // labels between functions
    parser_expect(p, ':');
  } else if (!parser_accept(p, ';')) {
    parser_fail(p, "expected a directive, found '%.*s'", shown(&p->token), p->token.text);
  }
}

static void parse_module(Parser *p) {
  scope_push(p);
  parser_next(p);
  while (p->token.kind != TOKEN_END) parse_item(p);
  if (p->module->version == 0) parser_fail(p, "no .version: not a PTX text");
  link_finish(p);
}

static size_t trim_length(const char *text, size_t length) {
  while (length > 0 && text[length - 1] == '\0') length--;
  return length;
}

Module *ptx_load(Arena *arena, Gmem *gmem, const char *name, const char *text, size_t length,
                 const char **error) {
  length = trim_length(text, length);
  Parser *p = ARENA_NEW(arena, Parser);
  jmp_buf fail;
  p->arena = arena;
  p->gmem = gmem;
  p->fail = &fail;
  p->names = interner_new(arena);
  p->functions = map_new(arena);
  p->mnemonics = map_new(arena);
  p->module = ARENA_NEW(arena, Module);
  p->module->name = text_copy(arena, name, strlen(name));
  p->text = text_copy(arena, text, length);
  p->lexer = (Lexer){p->text, p->text + length, 1};
  if (setjmp(fail) != 0) {
    *error = p->error;
    return NULL;
  }
  parse_module(p);
  return p->module;
}

const Function *module_find_entry(const Module *module, const char *name) {
  for (int i = 0; i < module->nfunctions; i++) {
    const Function *f = module->functions[i];
    if (f->is_entry && f->has_body && strcmp(f->name, name) == 0) return f;
  }
  return NULL;
}

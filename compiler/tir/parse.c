// The reader of the text form. It knows the shape of a line and takes names, attributes and numbers of bodies
// from OpDef; whether the operands make sense is the verifier's question. The first mistake ends it.
#include <inttypes.h>
#include <string.h>

#include "tir/fold.h"
#include "tir/text.h"
#include "tir/text_lex.h"
#include "tir/text_names.h"

enum { MAX_DEPTH = 200, MAX_ARGS = OP_MAX_OPERANDS + TYPE_MAX_RANK, MAX_ID = 1 << 22, MAX_KERNELS = 1000 };

typedef struct {
  TirModule *module;
  Diags *ds;
  Lexer lexer;
  Token token;
  TirKernel *kernel;
  Map *values;                 // spelling -> TirValue
  VEC(TirValue *) unnumbered;  // written by name alone: numbered when the kernel has been read
  VEC(Token) tensors;          // of the header's maps, then guards, looked up after the launch block
  int depth;
} Parser;

static bool fail(Parser *p, const char *expected) {
  Span span = p->token.span;
  const char *text = p->lexer.source->text + span.begin;
  int len = (int)(span.end - span.begin);
  if (p->token.kind == TOKEN_END)
    diag_error(p->ds, DIAG_tir_syntax, span, "expected %s at the end", expected);
  else
    diag_error(p->ds, DIAG_tir_syntax, span, "expected %s, not '%.*s'", expected, len > 40 ? 40 : len, text);
  return false;
}

static void advance(Parser *p) {
  p->token = lexer_next(&p->lexer);
}

static bool at_punct(const Parser *p, char c) {
  return p->token.kind == TOKEN_PUNCT && p->token.text.data[0] == c;
}

static bool at_word(const Parser *p, const char *word) {
  return p->token.kind == TOKEN_WORD && str_is(p->token.text, word);
}

static bool accept(Parser *p, char c) {
  if (!at_punct(p, c)) return false;
  advance(p);
  return true;
}

static bool expect(Parser *p, char c) {
  if (accept(p, c)) return true;
  char text[] = {'\'', c, '\'', 0};
  return fail(p, text);
}

static bool expect_word(Parser *p, const char *word) {
  if (!at_word(p, word)) return fail(p, word);
  advance(p);
  return true;
}

static bool expect_int(Parser *p, int64_t least, int64_t most, int64_t *out) {
  if (p->token.kind != TOKEN_INT || p->token.integer < least || p->token.integer > most) {
    char expected[80];
    snprintf(expected, sizeof expected, "a number from %" PRId64 " to %" PRId64, least, most);
    return fail(p, expected);
  }
  *out = p->token.integer;
  advance(p);
  return true;
}

// The index of the word in a NULL-terminated list.
static bool expect_choice(Parser *p, const char *const *choices, const char *what, int64_t *out) {
  for (int i = 0; choices[i]; i++) {
    if (!at_word(p, choices[i])) continue;
    *out = i;
    advance(p);
    return true;
  }
  return fail(p, what);
}

// ---- strings and types

static int hex_digit(char c) {
  const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c) : NULL;
  return at ? (int)(at - digits) : -1;
}

static bool expect_string(Parser *p, Name *out) {
  if (p->token.kind != TOKEN_STRING) return fail(p, "a string");
  Str text = p->token.text;
  char *copy = ARENA_ARRAY(p->module->arena, char, text.len + 1);
  size_t used = 0;
  for (size_t i = 0; i < text.len; i++) {
    char c = text.data[i];
    if (c == '\\' && i + 3 < text.len && text.data[i + 1] == 'x') {
      int high = hex_digit(text.data[i + 2]), low = hex_digit(text.data[i + 3]);
      int code = high < 0 || low < 0 ? 0 : high * 16 + low;
      if (code == 0) return fail(p, "a string whose escapes are \\\" \\\\ \\xHH");
      c = (char)code;
      i += 3;
    } else if (c == '\\' && i + 1 < text.len) {
      c = text.data[++i];
    }
    copy[used++] = c;
  }
  *out = intern_n(p->module->names, copy, used);
  advance(p);
  return true;
}

static bool expect_dtype(Parser *p, DType *out) {
  char name[16];
  if (p->token.kind != TOKEN_WORD || p->token.text.len >= sizeof name) return fail(p, "a type");
  memcpy(name, p->token.text.data, p->token.text.len);
  name[p->token.text.len] = 0;
  if (!dtype_parse(name, out)) return fail(p, "a type");
  advance(p);
  return true;
}

static bool parse_shape(Parser *p, Type *type) {
  type->kind = TYPE_BUFFER;
  while (!at_punct(p, ']')) {
    if (type->rank && !expect(p, ',')) return false;
    if (type->rank == TYPE_MAX_RANK) return fail(p, "at most 5 dimensions");
    int64_t *extent = &type->shape[type->rank++];
    *extent = DIM_DYNAMIC;
    if (!accept(p, '?') && !expect_int(p, 0, INT32_MAX, extent)) return false;
  }
  advance(p);
  if (p->token.kind != TOKEN_WORD || !space_parse(p->token.text, &type->space))
    return fail(p, "a memory space");
  advance(p);
  return true;
}

static bool parse_type(Parser *p, Type *type) {
  *type = (Type){.kind = TYPE_SCALAR};
  if (at_word(p, "token")) {
    type->kind = TYPE_TOKEN;
    advance(p);
    return true;
  }
  if (at_word(p, "cell")) {
    type->kind = TYPE_CELL;
    advance(p);
    return expect_dtype(p, &type->dtype);
  }
  if (!expect_dtype(p, &type->dtype)) return false;
  return !accept(p, '[') || parse_shape(p, type);
}

// The token is '@'; a layout has a reader of its own.
static bool parse_layout(Parser *p, Layout **out) {
  const char *text = p->lexer.source->text, *begin = text + p->lexer.at;
  *out = ARENA_NEW(p->module->arena, Layout);
  while (*begin == ' ') begin++;
  const char *end = layout_parse(begin, *out);
  if (!end) {
    advance(p);
    return fail(p, "a layout");
  }
  p->lexer.at = (uint32_t)(end - text);
  advance(p);
  return true;
}

// ---- values

static Name spelling(Parser *p, Token token) {
  return intern_n(p->module->names, token.text.data, token.text.len);
}

static bool find_value(Parser *p, Token token, TirValue **out) {
  *out = map_get(p->values, spelling(p, token));
  if (*out) return true;
  diag_error(p->ds, DIAG_tir_syntax, token.span, "%%%.*s is not defined here", (int)token.text.len,
             token.text.data);
  return false;
}

// "12" is a number, "acc" a name, "acc.12" both.
static bool read_spelling(Str text, Str *name, int64_t *id) {
  const char *dot = memchr(text.data, '.', text.len), *end = text.data + text.len;
  bool has_digits = dot || (text.data[0] >= '0' && text.data[0] <= '9');
  const char *digits = dot ? dot + 1 : text.data;
  *name = (Str){text.data, dot ? (size_t)(dot - text.data) : has_digits ? 0 : text.len};
  *id = -1;
  if (!has_digits) return true;
  if (digits == end || end - digits > 9 || (dot && dot == text.data)) return false;
  for (*id = 0; digits < end; digits++) {
    if (*digits < '0' || *digits > '9') return false;
    *id = *id * 10 + (*digits - '0');
  }
  return *id < MAX_ID;
}

static bool define_value(Parser *p, Token token, TirValue *value) {
  Str name;
  int64_t id;
  if (!read_spelling(token.text, &name, &id)) {
    diag_error(p->ds, DIAG_tir_syntax, token.span, "%%%.*s is no value: write %%name, %%12 or %%name.12",
               (int)token.text.len, token.text.data);
    return false;
  }
  if (map_has(p->values, spelling(p, token))) {
    diag_error(p->ds, DIAG_tir_syntax, token.span, "%%%.*s is defined twice", (int)token.text.len,
               token.text.data);
    return false;
  }
  if (name.len) value->name = intern_n(p->module->names, name.data, name.len);
  value->id = (int)id;
  if (id < 0)
    vec_push(p->module->arena, &p->unnumbered, value);
  else if (id >= p->kernel->next_id)
    p->kernel->next_id = (int)id + 1;
  map_put(p->values, spelling(p, token), value);
  return true;
}

// ---- ops

typedef struct {
  OpKind kind;
  const OpDef *def;
  Span span;
  Token results[OP_MAX_RESULTS];
  TirValue *args[MAX_ARGS];
  int nresults, nargs;
  Name name;
  int64_t attrs[OP_MAX_ATTRS];
  bool decimal_bits;  // const: bits were written as a plain number
  VEC(int64_t) list;
} Line;

static bool parse_results(Parser *p, Line *line) {
  while (p->token.kind == TOKEN_VALUE) {
    if (line->nresults == OP_MAX_RESULTS) return fail(p, "at most 5 results");
    line->results[line->nresults++] = p->token;
    advance(p);
    if (!accept(p, ',')) return expect(p, '=');
  }
  return line->nresults == 0 || fail(p, "a value");
}

static bool parse_args(Parser *p, Line *line) {
  while (!p->token.first && (p->token.kind == TOKEN_VALUE || at_word(p, "_"))) {
    if (line->nargs == MAX_ARGS) return fail(p, "fewer operands");
    TirValue **arg = &line->args[line->nargs++];
    if (p->token.kind == TOKEN_VALUE && !find_value(p, p->token, arg)) return false;
    advance(p);
    if (!accept(p, ',')) break;
  }
  while (line->nargs < line->def->noperands && line->def->operands[line->nargs].optional)
    line->args[line->nargs++] = NULL;
  return true;
}

static bool parse_bits(Parser *p, Line *line, int64_t *out) {
  TokenKind kind = p->token.kind;
  if (kind != TOKEN_INT && kind != TOKEN_HEX && kind != TOKEN_FLOAT) return fail(p, "a number");
  *out = kind == TOKEN_FLOAT ? fold_bits(p->token.real) : p->token.integer;
  line->decimal_bits = kind == TOKEN_INT;
  advance(p);
  return true;
}

static bool expect_boolean(Parser *p, int64_t *out) {
  static const char *const booleans[] = {"false", "true", NULL};
  return expect_choice(p, booleans, "true or false", out);
}

static bool parse_attr(Parser *p, Line *line) {
  char name[32] = "";
  if (p->token.kind == TOKEN_WORD && p->token.text.len < sizeof name)
    memcpy(name, p->token.text.data, p->token.text.len);
  int slot = op_attr_index(line->def, name);
  if (slot < 0) return fail(p, "an attribute of this op");
  advance(p);
  if (!expect(p, '=')) return false;
  const AttrDef *def = &line->def->attrs[slot];
  int64_t *out = &line->attrs[slot];
  switch (def->kind) {
  case ATTR_INT:
    return expect_int(p, INT32_MIN, INT32_MAX, out);
  case ATTR_MASK:
    return expect_int(p, 0, UINT32_MAX, out);
  case ATTR_BOOL:
    return expect_boolean(p, out);
  case ATTR_ENUM:
    return expect_choice(p, def->names, "a name that this attribute takes", out);
  case ATTR_FLOAT_BITS:
    return parse_bits(p, line, out);
  }
  return false;
}

static bool parse_attrs(Parser *p, Line *line) {
  for (int i = 0; i < OP_MAX_ATTRS && line->def->attrs[i].name; i++)
    line->attrs[i] = line->def->attrs[i].initial;
  if (!at_punct(p, '{') || p->token.first || lexer_at_line_end(&p->lexer)) return true;
  do {
    advance(p);
    if (!parse_attr(p, line)) return false;
  } while (at_punct(p, ','));
  return expect(p, '}');
}

static bool parse_list(Parser *p, Line *line) {
  if (!line->def->listed) return true;
  if (!expect(p, '[')) return false;
  while (!at_punct(p, ']')) {
    int64_t number;
    if (line->list.len && !expect(p, ',')) return false;
    if (!expect_int(p, 0, INT32_MAX, &number)) return false;
    vec_push(p->module->arena, &line->list, number);
  }
  advance(p);
  return true;
}

static bool parse_result_types(Parser *p, const Line *line, TirOp *op) {
  for (int i = 0; i < line->nresults; i++) {
    TirValue *value = op->results[i];
    if (!expect(p, i ? ',' : ':') || !parse_type(p, &value->type)) return false;
    if (at_punct(p, '@') && !parse_layout(p, &value->layout)) return false;
    if (!define_value(p, line->results[i], value)) return false;
  }
  return true;
}

static bool parse_block(Parser *p, TirBlock *block);

static bool parse_body(Parser *p, TirBlock *block) {
  if (p->depth == MAX_DEPTH) return fail(p, "less nesting");
  p->depth++;
  bool ok = expect(p, '{') && parse_block(p, block) && expect(p, '}');
  p->depth--;
  return ok;
}

static bool parse_bodies(Parser *p, TirOp *op) {
  for (int i = 0; i < op->nbodies; i++) {
    if (i > 0 && !at_word(p, "else")) return true;
    if (i > 0) advance(p);
    if (!parse_body(p, op->bodies[i])) return false;
  }
  return true;
}

static TirOp *append_op(Parser *p, const Line *line, TirBlock *block) {
  int next_id = p->kernel->next_id;
  TirOp *op = tir_op_new(p->module, p->kernel, line->kind, line->span, line->nargs, line->nresults);
  p->kernel->next_id = next_id;
  for (int i = 0; i < line->nargs; i++) op->args[i] = line->args[i];
  memcpy(op->attrs, line->attrs, sizeof op->attrs);
  op->name = line->name;
  op->list = line->list.data;
  op->nlist = line->list.len;
  tir_append(block, op);
  return op;
}

static bool parse_op(Parser *p, TirBlock *block) {
  Line line = {.span = p->token.span};
  if (!parse_results(p, &line)) return false;
  if (p->token.kind != TOKEN_WORD || !op_lookup(p->token.text, &line.kind)) return fail(p, "an op");
  line.def = op_def(line.kind);
  advance(p);
  if (line.def->named && !expect_string(p, &line.name)) return false;
  if (!parse_args(p, &line) || !parse_attrs(p, &line) || !parse_list(p, &line)) return false;
  TirOp *op = append_op(p, &line, block);
  if (!parse_result_types(p, &line, op)) return false;
  if (line.decimal_bits && op->nresults == 1 && dtype_is_float(op->results[0]->type.dtype))
    op->attrs[CONST_bits] = fold_bits((double)op->attrs[CONST_bits]);
  op->span = (Span){line.span.begin, p->token.span.begin};
  while (op->span.end > op->span.begin + 1 && strchr(" \t\r\n", p->lexer.source->text[op->span.end - 1]))
    op->span.end--;
  return parse_bodies(p, op);
}

static bool parse_block(Parser *p, TirBlock *block) {
  while (p->token.kind == TOKEN_VALUE || (p->token.kind == TOKEN_WORD && !at_word(p, "body")))
    if (!parse_op(p, block)) return false;
  return true;
}

// ---- kernels

static const char *const directions[] = {"load", "store", NULL};

static bool parse_tensor_later(Parser *p) {
  if (p->token.kind != TOKEN_VALUE) return fail(p, "a tensor");
  vec_push(p->module->arena, &p->tensors, p->token);
  advance(p);
  return true;
}

static bool parse_map(Parser *p) {
  TirMap map = {0};
  int64_t number, swizzle, store;
  if (!expect_int(p, p->kernel->maps.len, p->kernel->maps.len, &number) || !parse_tensor_later(p))
    return false;
  if (!expect_word(p, "box") || !expect(p, '[')) return false;
  for (int i = 0; !accept(p, ']'); i++) {
    if (i == TYPE_MAX_RANK) return fail(p, "at most 5 dimensions");
    if ((i && !expect(p, ',')) || !expect_int(p, 1, INT32_MAX, &map.box[i])) return false;
  }
  if (!expect_word(p, "swizzle") || !expect_int(p, 0, 128, &swizzle)) return false;
  if (!expect_choice(p, directions, "load or store", &store)) return false;
  map.swizzle = (int)swizzle;
  map.store = store == 1;
  vec_push(p->module->arena, &p->kernel->maps, map);
  return true;
}

static bool parse_guard(Parser *p) {
  TirGuard guard = {0};
  int64_t store;
  if (!parse_tensor_later(p) || !expect_choice(p, directions, "load or store", &store)) return false;
  guard.store = store == 1;
  vec_push(p->module->arena, &p->kernel->guards, guard);
  return true;
}

static bool parse_resources(Parser *p) {
  while (p->token.kind == TOKEN_WORD && !at_word(p, "launch")) {
    Token word = p->token;
    int64_t columns;
    bool is_map = str_is(word.text, "map"), is_guard = str_is(word.text, "guard");
    bool is_shared = str_is(word.text, "shared"), is_tmem = str_is(word.text, "tmem");
    if (!is_map && !is_guard && !is_shared && !is_tmem) return fail(p, "launch");
    if (is_map && p->kernel->guards.len) return fail(p, "maps before guards");
    advance(p);
    if (is_map && !parse_map(p)) return false;
    if (is_guard && !parse_guard(p)) return false;
    if (is_shared && !expect_int(p, 0, INT32_MAX, &p->kernel->shared_bytes)) return false;
    if (is_tmem && !expect_int(p, 0, INT16_MAX, &columns)) return false;
    if (is_tmem) p->kernel->tmem_columns = (int)columns;
  }
  return true;
}

static bool resolve_tensors(Parser *p) {
  TirKernel *kernel = p->kernel;
  for (int i = 0; i < p->tensors.len; i++) {
    bool is_map = i < kernel->maps.len;
    TirValue **out =
        is_map ? &kernel->maps.data[i].tensor : &kernel->guards.data[i - kernel->maps.len].tensor;
    if (!find_value(p, p->tensors.data[i], out)) return false;
  }
  return true;
}

static bool parse_facts(Parser *p) {
  if (!expect(p, '(')) return false;
  do {
    int64_t fact;
    if (!expect_choice(p, tir_fact_names, "a fact", &fact)) return false;
    p->kernel->facts |= 1u << fact;
  } while (accept(p, ','));
  return expect(p, ')');
}

static bool parse_variant(Parser *p) {
  int64_t variant;
  if (!expect(p, '(') || !expect_choice(p, tir_variant_names, "only, tma or general", &variant)) return false;
  p->kernel->variant = (Variant)variant;
  return expect(p, ')');
}

static bool parse_threads(Parser *p) {
  int64_t threads;
  if (!expect(p, '(') || !expect_int(p, 1, 1024, &threads)) return false;
  p->kernel->threads = (int)threads;
  return expect(p, ')');
}

static bool parse_blocks(Parser *p) {
  int64_t order, panel;
  if (!expect(p, '(') || !expect_choice(p, tir_block_order_names, "rows or columns", &order)) return false;
  if (!expect_int(p, 1, INT32_MAX, &panel)) return false;
  p->kernel->block_order = (BlockOrder)order;
  p->kernel->panel = (int)panel;
  return expect(p, ')');
}

static bool parse_choice(Parser *p) {
  ChoiceKind kind;
  char name[32] = "";
  Span span = p->token.span;
  int64_t value;
  if (p->token.kind == TOKEN_WORD && p->token.text.len < sizeof name)
    memcpy(name, p->token.text.data, p->token.text.len);
  if (!choice_find(name, &kind)) return fail(p, "something that annotate(…) may say");
  if (p->kernel->choices[kind].given) return fail(p, "each annotation once");
  advance(p);
  if (!expect(p, '=')) return false;
  int most = choice_def(kind)->most;
  if (!(most ? expect_int(p, 1, most, &value) : expect_boolean(p, &value))) return false;
  p->kernel->choices[kind] = (TirChoice){true, (int)value, span};
  return true;
}

static bool parse_choices(Parser *p) {
  if (!expect(p, '(')) return false;
  do {
    if (!parse_choice(p)) return false;
  } while (accept(p, ','));
  return expect(p, ')');
}

static bool parse_heading(Parser *p) {
  Span span = p->token.span;
  if (!expect_word(p, "kernel") || !expect(p, '@')) return false;
  if (p->token.kind != TOKEN_WORD) return fail(p, "the kernel's name");
  if (p->module->kernels.len == MAX_KERNELS) return fail(p, "fewer kernels");
  p->kernel = tir_kernel_new(p->module, spelling(p, p->token), span_join(span, p->token.span));
  advance(p);
  while (p->token.kind == TOKEN_WORD) {
    Token word = p->token;
    advance(p);
    bool ok = str_is(word.text, "variant")    ? parse_variant(p)
              : str_is(word.text, "threads")  ? parse_threads(p)
              : str_is(word.text, "blocks")   ? parse_blocks(p)
              : str_is(word.text, "annotate") ? parse_choices(p)
              : str_is(word.text, "facts")    ? parse_facts(p)
                                              : fail(p, "variant, threads, blocks, annotate or facts before");
    if (!ok) return false;
  }
  return expect(p, '{');
}

static void number_values(Parser *p) {
  for (int i = 0; i < p->unnumbered.len; i++) p->unnumbered.data[i]->id = p->kernel->next_id++;
}

static bool parse_kernel(Parser *p) {
  p->values = map_new(p->module->arena);
  p->unnumbered.len = p->tensors.len = 0;
  if (!parse_heading(p) || !parse_resources(p)) return false;
  if (!expect_word(p, "launch") || !expect(p, ':') || !parse_block(p, p->kernel->launch)) return false;
  if (!resolve_tensors(p)) return false;
  if (!expect_word(p, "body") || !expect(p, ':') || !parse_block(p, p->kernel->body)) return false;
  number_values(p);
  return expect(p, '}');
}

TirModule *tir_parse(Arena *arena, Interner *names, const Source *source, Diags *ds) {
  Parser p = {.module = tir_module_new(arena, names), .ds = ds, .lexer = {.source = source}};
  advance(&p);
  do {
    if (!parse_kernel(&p)) return NULL;
  } while (p.token.kind != TOKEN_END);
  return p.module;
}

// Lines: which ends of line end a statement, what indentation means, where brackets join lines; and the one
// function that the grammar calls for tokens.
//
// Statements without a meaning here (import, class, try, match, …) are recognised by their first word and
// skipped token by token up to their end: the grammar sees one TOK_SKIPPED instead of them.
#include "syntax/syntax_internal.h"

#include <string.h>

#include "syntax/parser.h"

// ---- errors, one a logical line

bool px_is_spoiled(const Parser *px, uint32_t offset) {
  return px->is_fatal || (px->spoiled_begin <= offset && offset < px->spoiled_end);
}

void px_spoil(Parser *px, uint32_t offset) {
  if (offset >= px->line_begin) {
    px->spoiled_begin = px->line_begin;
    px->spoiled_end = UINT32_MAX;
    if (px->nbrackets > 0) px->is_bracket_broken = true;
    return;
  }
  // Reported late, when the lexer is in a later line: only that line is spoiled.
  px->spoiled_begin = px->spoiled_end = offset;
  while (px->spoiled_end < px->line_begin && px->source->text[px->spoiled_end] != '\n') px->spoiled_end++;
  if (px->spoiled_end < px->line_begin) px->spoiled_end++;
}

bool px_error(Parser *px, DiagCode code, Span span, const char *format, ...) {
  if (px_is_spoiled(px, span.begin)) return false;
  va_list args;
  va_start(args, format);
  diag_error(px->ds, code, span, "%s", text_vprintf(px->arena, format, args));
  va_end(args);
  px->errors++;
  px_spoil(px, span.begin);
  return true;
}

const char *px_text(const Parser *px, Span span) {
  enum { LONGEST = 40 };
  const char *text = px->source->text + span.begin;
  uint32_t len = span.end - span.begin;
  uint32_t shown = 0;
  while (shown < len && shown < LONGEST && text[shown] != '\n' && text[shown] != '\r') shown++;
  while (shown < len && shown > 0 && ((unsigned char)text[shown] & 0xc0) == 0x80) shown--;
  return text_printf(px->arena, "%.*s%s", (int)shown, text, shown < len ? "…" : "");
}

// ---- indentation

static int top_column(const Parser *px) {
  return px->nindents ? px->indents[px->nindents - 1].column : 0;
}

static int top_tab1(const Parser *px) {
  return px->nindents ? px->indents[px->nindents - 1].tab1 : 0;
}

static void measure(const char *text, uint32_t begin, uint32_t end, int *column, int *tab1) {
  *column = *tab1 = 0;
  for (uint32_t i = begin; i < end; i++) {
    if (text[i] == '\f') {
      *column = *tab1 = 0;
    } else {
      *column = text[i] == '\t' ? (*column / 8 + 1) * 8 : *column + 1;
      *tab1 += 1;
    }
  }
}

// After the first of these, the widths of lines mean little: what else is wrong with them is a consequence.
static void report_tabs(Parser *px, Span white) {
  if (px->has_mixed_tabs) return;
  px->has_mixed_tabs = true;
  if (px_error(px, DIAG_indentation, white,
               "tabs and spaces are mixed so that this indentation depends on the width of a tab")) {
    diag_hint(px->ds, "indent with spaces only");
  }
}

static void report_inconsistent(Parser *px, Span white, int column) {
  if (px->has_mixed_tabs) return;
  TextBuf levels = {.arena = px->arena};
  textbuf_puts(&levels, "0");
  for (int i = 0; i < px->nindents; i++) {
    textbuf_printf(&levels, "%s%d", i + 1 < px->nindents ? ", " : " and ", px->indents[i].column);
  }
  px_error(px, DIAG_indentation, white, "this line is indented by %d, but the blocks around it by %s", column,
           levels.data);
}

// Closes blocks. Between two levels the block is kept, and takes this line's indentation: the mistake is
// reported, and what follows at the same indentation is right.
static void dedent(Parser *px, Span white, int column, int tab1) {
  int depth = px->nindents;
  while (px->nindents && top_column(px) > column) px->nindents--;
  px->pending_dedents = depth - px->nindents;
  if (top_column(px) == column) {
    if (top_tab1(px) != tab1) report_tabs(px, white);
    return;
  }
  int kept = px->nindents;
  px->nindents = depth;
  report_inconsistent(px, white, column);
  px->nindents = kept + 1;
  px->pending_dedents--;
  px->indents[kept].column = column;
  px->indents[kept].tab1 = tab1;
}

static void indent(Parser *px, Span white, int column, int tab1) {
  if (tab1 <= top_tab1(px)) report_tabs(px, white);
  if (px->nindents == MAX_INDENTS) {
    px_error(px, DIAG_nesting, white, "blocks are nested more than %d deep", MAX_INDENTS);
    px->is_fatal = true;
    return;
  }
  px->indents[px->nindents].column = column;
  px->indents[px->nindents].tab1 = tab1;
  px->nindents++;
  px->pending_indents = 1;
}

bool layout_line(Parser *px, uint32_t begin, uint32_t end) {
  if (px->spoiled_end == UINT32_MAX) px->spoiled_end = begin;
  px->line_begin = begin;
  px->is_bracket_broken = false;
  px->layout_span = (Span){begin, end};
  int column, tab1;
  measure(px->source->text, begin, end, &column, &tab1);
  if (column > top_column(px)) {
    indent(px, px->layout_span, column, tab1);
  } else if (column < top_column(px)) {
    dedent(px, px->layout_span, column, tab1);
  } else if (tab1 != top_tab1(px)) {
    report_tabs(px, px->layout_span);
  }
  return px->pending_indents || px->pending_dedents;
}

// ---- brackets

static char closer_of(char opener) {
  return opener == '(' ? ')' : opener == '[' ? ']' : '}';
}

void layout_open(Parser *px, char opener, Span span) {
  if (px->nbrackets == MAX_BRACKETS) {
    px_error(px, DIAG_nesting, span, "brackets are nested more than %d deep", MAX_BRACKETS);
    px->is_fatal = true;
    return;
  }
  px->brackets[px->nbrackets].opener = opener;
  px->brackets[px->nbrackets].at = span.begin;
  px->nbrackets++;
}

static bool is_open(const Parser *px, char closer) {
  for (int i = 0; i < px->nbrackets; i++) {
    if (closer_of(px->brackets[i].opener) == closer) return true;
  }
  return false;
}

int layout_close(Parser *px, char closer, Span span, bool *is_inserted) {
  *is_inserted = false;
  if (px->nbrackets == 0) {
    px_error(px, DIAG_syntax, span, "this '%c' closes nothing", closer);
    return 0;
  }
  char opener = px->brackets[px->nbrackets - 1].opener;
  uint32_t at = px->brackets[px->nbrackets - 1].at;
  px->nbrackets--;
  if (closer_of(opener) != closer) {
    *is_inserted = is_open(px, closer);
    if (px_error(px, DIAG_unclosed, span, "this '%c' comes before the '%c' inside it is closed", closer,
                 opener)) {
      diag_note(px->ds, (Span){at, at + 1}, "'%c' opened here", opener);
    }
    px->is_bracket_broken = true;
  }
  return closer_of(opener);
}

void layout_leave_brackets(Parser *px) {
  px->nbrackets = 0;
  px->is_bracket_broken = false;
}

static bool starts_with(const Parser *px, uint32_t at, const char *word) {
  size_t len = strlen(word);
  return px->end - at >= len && memcmp(px->source->text + at, word, len) == 0;
}

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_definition(const Parser *px, uint32_t at) {
  if (starts_with(px, at, "def ") || starts_with(px, at, "class ") || starts_with(px, at, "async def "))
    return true;
  return starts_with(px, at, "@") && px->end - at > 1 && is_letter(px->source->text[at + 1]);
}

static void report_unclosed(Parser *px, Span stop, const char *why) {
  uint32_t at = px->brackets[px->nbrackets - 1].at;
  if (px_error(px, DIAG_unclosed, (Span){at, at + 1}, "this '%c' is never closed",
               px->brackets[px->nbrackets - 1].opener) &&
      why) {
    diag_note(px->ds, stop, "%s", why);
  }
}

// Inside brackets line ends mean nothing, except that a definition at the left margin shows that a bracket
// was left open; and once there was an error inside, any line that stands where a statement would is taken
// for one.
bool layout_newline(Parser *px) {
  if (px->is_expression) return false;
  if (px->nbrackets == 0) return true;
  const char *text = px->source->text;
  uint32_t at = px->at;
  while (at < px->end && (text[at] == ' ' || text[at] == '\t')) at++;
  if (at == px->end || strchr("\r\n#", text[at])) return false;
  if (at == px->at && is_definition(px, at)) {
    report_unclosed(px, (Span){at, at + 1}, "a new definition begins here");
    layout_leave_brackets(px);
    return true;
  }
  int column, tab1;
  measure(text, px->at, at, &column, &tab1);
  if (!px->is_bracket_broken || column > top_column(px) || strchr(")]}", text[at])) return false;
  layout_leave_brackets(px);
  return true;
}

// ---- the token stream

static int next_laid_out(Parser *px, void *scanner, RawValue *value, Span *span) {
  for (;;) {
    *span = px->layout_span;
    if (px->is_fatal) return RAW_END;
    if (px->pending_dedents) return px->pending_dedents--, TOK_DEDENT;
    if (px->pending_indents) return px->pending_indents--, TOK_INDENT;
    *span = (Span){px->at, px->at};
    if (px->has_ended) return RAW_END;
    int token = raw_next(scanner, value, span);
    if (token == RAW_LAYOUT) continue;
    px->line_has_tokens = token != TOK_NEWLINE && (token != RAW_END || px->line_has_tokens);
    if (token != RAW_END) return token;
    *span = px->layout_span = (Span){px->at, px->at};
    px->has_ended = true;
    if (px->is_expression) return RAW_END;
    if (px->nbrackets) report_unclosed(px, *span, NULL);
    px->pending_dedents = px->nindents;
    px->nindents = 0;
    if (px->line_has_tokens) return TOK_NEWLINE;
  }
}

static void push_ahead(Parser *px, int token, Span span, RawValue value) {
  px->queue[px->nqueue++] = (ReadAhead){token, span, value};
}

static void skip_line(Parser *px, void *scanner, Span *whole) {
  for (;;) {
    RawValue value = {0};
    Span span;
    int token = next_laid_out(px, scanner, &value, &span);
    if (token == RAW_END) return;
    if (token == TOK_NEWLINE || token == ';') {
      push_ahead(px, token, span, value);
      return;
    }
    whole->end = span.end;
  }
}

// Whether a token at the indentation of the statement that `first` began goes on with it.
static bool continues(int first, int token) {
  if (token == TOK_ELSE) return first == TOK_TRY || first == TOK_ASYNC;
  return first == TOK_TRY && (token == TOK_EXCEPT || token == TOK_FINALLY);
}

// Skips a compound statement with its block. The header's end becomes the end of `whole`.
static void skip_block(Parser *px, void *scanner, int first, Span *whole) {
  int depth = 0;
  bool is_header = true, is_line_begin = false;
  Span newline = *whole;
  for (;;) {
    RawValue value = {0};
    Span span;
    int token = next_laid_out(px, scanner, &value, &span);
    if (token == TOK_INDENT) depth++;
    if (token == TOK_DEDENT) depth--;
    bool is_after = is_line_begin && depth == 0 && token != TOK_NEWLINE && token != TOK_DEDENT;
    if (token == RAW_END || depth < 0 || (is_after && !continues(first, token))) {
      push_ahead(px, TOK_NEWLINE, newline, (RawValue){0});
      if (token != RAW_END) push_ahead(px, token, span, value);
      return;
    }
    if (token == TOK_NEWLINE) {
      if (is_header) newline = span;
      is_header = false;
    } else if (is_header) {
      whole->end = span.end;
    }
    is_line_begin = token == TOK_NEWLINE || token == TOK_DEDENT;
  }
}

// `match x:` and `type X = …` begin with words that are also plain names.
static const char *soft_statement(const Parser *px, Span word) {
  const char *text = px->source->text;
  uint32_t len = word.end - word.begin;
  bool is_match = len == 5 && memcmp(text + word.begin, "match", 5) == 0;
  bool is_type = len == 4 && memcmp(text + word.begin, "type", 4) == 0;
  if (!is_match && !is_type) return NULL;
  uint32_t at = word.end;
  while (at < px->end && text[at] == ' ') at++;
  if (at == word.end || at == px->end || !is_letter(text[at])) return NULL;
  static const char *const operators[] = {"in ", "is ", "not ", "and ", "or ", "if "};
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
    if (starts_with(px, at, operators[i])) return NULL;
  }
  uint32_t eol = at;
  while (eol < px->end && text[eol] != '\n' && text[eol] != '\r' && text[eol] != '#') eol++;
  while (eol > at && (text[eol - 1] == ' ' || text[eol - 1] == '\t')) eol--;
  if (is_match) return text[eol - 1] == ':' ? "a 'match' statement" : NULL;
  return memchr(text + at, '=', eol - at) ? "a type alias" : NULL;
}

typedef struct {
  int token;
  bool has_block;
  const char *what;
} Skipped;

static const Skipped skipped_statements[] = {
    {TOK_ASYNC, true, "an 'async' statement"},
    {TOK_CLASS, true, "a class definition"},
    {TOK_TRY, true, "a 'try' statement"},
    {TOK_IMPORT, false, "an import"},
    {TOK_FROM, false, "an import"},
    {TOK_DEL, false, "a 'del' statement"},
    {TOK_GLOBAL, false, "a 'global' statement"},
    {TOK_NONLOCAL, false, "a 'nonlocal' statement"},
};

// Begins to skip when `token` is the first of a statement without a meaning here: answers what it is, or
// NULL.
static const char *skip_statement(Parser *px, void *scanner, int token, Span *span) {
  if (!px->at_statement && (px->last.token != ':' || px->nbrackets)) return NULL;
  if (token == TOK_NAME && px->at_statement) {
    const char *what = soft_statement(px, *span);
    if (what && what[2] == 't') skip_line(px, scanner, span);
    if (what && what[2] != 't') skip_block(px, scanner, token, span);
    return what;
  }
  for (size_t i = 0; i < sizeof skipped_statements / sizeof *skipped_statements; i++) {
    const Skipped *row = &skipped_statements[i];
    if (row->token != token || (row->has_block && !px->at_statement)) continue;
    if (row->has_block)
      skip_block(px, scanner, token, span);
    else
      skip_line(px, scanner, span);
    return row->what;
  }
  return NULL;
}

static int take(Parser *px, void *scanner, RawValue *value, Span *span) {
  if (px->nqueue == 0) return next_laid_out(px, scanner, value, span);
  ReadAhead ahead = px->queue[0];
  px->queue[0] = px->queue[1];
  px->nqueue--;
  *value = ahead.value;
  *span = ahead.span;
  return ahead.token;
}

int grammar_lex(GRAMMAR_STYPE *out, Span *span, Parser *px, void *scanner) {
  *span = (Span){px->at, px->at};
  if (px->first_token) {
    int first = px->first_token;
    px->first_token = 0;
    return first;
  }
  if (!px->is_fatal && diags_at_limit(px->ds)) {
    px->is_fatal = true;
    px->errors++;
  }
  if (px->is_fatal) return RAW_END;
  RawValue value = {0};
  int token = take(px, scanner, &value, span);
  px->before_last = px->last;
  px->last = px->current;
  const char *what = skip_statement(px, scanner, token, span);
  if (what) token = TOK_SKIPPED;
  px->current = (TokenRecord){token, *span};
  if (px->at_statement) px->statement = px->current;
  px->at_statement = token == TOK_NEWLINE || token == TOK_INDENT || token == TOK_DEDENT || token == ';';
  if (what)
    out->what = what;
  else if (token == TOK_NAME)
    out->name = value.name;
  else if (token == TOK_NUMBER)
    out->expr = value.expr;
  else if (token == TOK_AUG)
    out->op = value.op;
  return token;
}

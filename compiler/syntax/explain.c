// A syntax error in words: what stands there, what could stand there, and what was probably meant. The
// well-known slips come first, each with a sentence of its own; what is left gets the general sentence with
// the expected set.
#include "syntax/syntax_internal.h"

#include <string.h>

#include "syntax/parser.h"

typedef struct {
  const char *const *names;
  int count;
} Expected;

static bool expects(const Expected *expected, const char *name) {
  for (int i = 0; i < expected->count; i++) {
    if (strcmp(expected->names[i], name) == 0) return true;
  }
  return false;
}

static bool expects_expression(const Expected *expected) {
  return expects(expected, "a number") && expects(expected, "'('");
}

// ---- what could stand there

static void add_choice(const char *choices[], int *count, const char *choice) {
  enum { MOST = 4 };
  if (*count < MOST) choices[(*count)++] = choice;
}

static const char *join(Parser *px, const char *const *choices, int count) {
  TextBuf out = {.arena = px->arena};
  for (int i = 0; i < count; i++) {
    textbuf_printf(&out, "%s%s", i == 0 ? "" : i + 1 == count ? " or " : ", ", choices[i]);
  }
  return out.data ? out.data : "";
}

static const char *expected_text(Parser *px, const Expected *expected) {
  static const char *const plain[] = {"'in'", "'else'", "')'", "']'", "'}'", "','", "':'", "'='"};
  const char *choices[4];
  int count = 0;
  if (expects_expression(expected)) {
    add_choice(choices, &count, "an expression");
  } else if (expects(expected, "a name")) {
    add_choice(choices, &count, "a name");
  } else if (expects(expected, "'('") && !expects(expected, "'+'")) {
    add_choice(choices, &count, "'('");
  }
  bool is_in_bracket = px->nbrackets > 0 || px->is_expression;
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
    bool is_minor = strcmp(plain[i], "'else'") == 0 && expects(expected, "'+'");
    bool is_assign = strcmp(plain[i], "'='") == 0 && (is_in_bracket || count > 0);
    bool is_colon = strcmp(plain[i], "':'") == 0 && expects(expected, "'='");
    bool is_comma = strcmp(plain[i], "','") == 0 && !is_in_bracket;
    bool is_operator = strcmp(plain[i], "'in'") == 0 && expects(expected, "'=='");
    if (!is_minor && !is_assign && !is_colon && !is_comma && !is_operator && expects(expected, plain[i])) {
      add_choice(choices, &count, plain[i]);
    }
  }
  if (expects(expected, "the end of the line") && !expects(expected, "':'")) {
    add_choice(choices, &count, "the end of the line");
  }
  if (expects(expected, "the end of the file") && px->is_expression)
    add_choice(choices, &count, "the end of the expression");
  return join(px, choices, count);
}

// ---- well-known slips

static bool is_word_token(const Parser *px, Span span) {
  char c = px->source->text[span.begin];
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_keyword(int token) {
  return token >= TOK_FALSE && token <= TOK_YIELD;
}

static bool is_header(int token) {
  return token == TOK_IF || token == TOK_ELIF || token == TOK_WHILE || token == TOK_FOR ||
         token == TOK_WITH || token == TOK_DEF || token == TOK_ELSE;
}

static void note_opener(Parser *px) {
  if (px->nbrackets == 0) return;
  uint32_t at = px->brackets[px->nbrackets - 1].at;
  diag_note(px->ds, (Span){at, at + 1}, "'%c' opened here", px->brackets[px->nbrackets - 1].opener);
}

static bool begins_line(const Parser *px, Span span) {
  uint32_t at = span.begin;
  while (at > 0 && strchr(" \t\f", px->source->text[at - 1])) at--;
  return at == 0 || px->source->text[at - 1] == '\n' || px->source->text[at - 1] == '\r';
}

// A token that inside brackets can only be the next statement's.
static bool is_of_statement(const Parser *px, Span span) {
  int token = px->current.token;
  bool is_early = px->brackets[px->nbrackets - 1].at >= px->line_begin;
  for (uint32_t i = px->brackets[px->nbrackets - 1].at; is_early && i < span.begin; i++) {
    if (px->source->text[i] == '\n' || px->source->text[i] == '\r') is_early = false;
  }
  return !is_early && (token == '=' || token == TOK_AUG || token == TOK_RETURN || token == TOK_WITH ||
                       token == TOK_PASS || token == TOK_WHILE || token == TOK_DEF || token == TOK_ASSERT);
}

// The brackets are open, and the line that follows is no continuation: the bracket is what is wrong.
static bool explain_open_bracket(Parser *px, Span span) {
  if (px->nbrackets == 0 || strchr(")]}", px->source->text[span.begin])) return false;
  if (!begins_line(px, span) && !is_of_statement(px, span)) return false;
  uint32_t at = px->brackets[px->nbrackets - 1].at;
  char opener = px->brackets[px->nbrackets - 1].opener;
  if (px_error(px, DIAG_unclosed, (Span){at, at + 1}, "this '%c' is not closed before the next statement",
               opener)) {
    diag_note(px->ds, span, "this does not continue what is inside the brackets");
  }
  return true;
}

// `fro k in …`, `wiht Kernel(…)`, `esle:`: the first word of the statement is nearly a keyword.
static const char *nearest_keyword(Parser *px, const Expected *expected) {
  static const char *const keywords[] = {"assert", "break",  "class", "continue", "def",    "elif",
                                         "else",   "for",    "from",  "if",       "import", "pass",
                                         "raise",  "return", "while", "with"};
  TokenRecord first = px->statement;
  bool is_beside = px->last.span.begin == first.span.begin;
  bool ends_badly = px->last.token == ':' && px->current.token == TOK_NEWLINE;
  if (first.token != TOK_NAME || px->nbrackets || !(is_beside || ends_badly)) return NULL;
  if (is_beside && !is_word_token(px, px->current.span) && expects_expression(expected)) return NULL;
  const char *word = px_text(px, first.span);
  char lower[16];
  size_t len = strlen(word);
  if (len >= sizeof lower) return NULL;
  for (size_t i = 0; i <= len; i++)
    lower[i] = (char)(word[i] >= 'A' && word[i] <= 'Z' ? word[i] + 32 : word[i]);
  return text_nearest(lower, keywords, (int)(sizeof keywords / sizeof *keywords));
}

static bool explain_keyword(Parser *px, const Expected *expected) {
  const char *keyword = nearest_keyword(px, expected);
  if (!keyword) return false;
  if (px_error(px, DIAG_syntax, px->statement.span, "'%s' does not begin a statement",
               px_text(px, px->statement.span))) {
    diag_hint(px->ds, "did you mean '%s'?", keyword);
  }
  return true;
}

static bool explain_start(Parser *px, Span span, int token) {
  if (px->statement.span.begin != span.begin || px->is_expression) return false;
  const char *needs = token == TOK_ELSE      ? "an 'if', 'for' or 'while'"
                      : token == TOK_ELIF    ? "an 'if'"
                      : token == TOK_EXCEPT  ? "a 'try'"
                      : token == TOK_FINALLY ? "a 'try'"
                                             : NULL;
  const char *text = px_text(px, span);
  if (needs) {
    px_error(px, DIAG_syntax, span, "this '%s' does not follow %s with the same indentation", text, needs);
  } else if (px_error(px, DIAG_syntax, span, "'%s' does not begin a statement", text) &&
             (token == TOK_FLOORDIV || token == '/')) {
    diag_hint(px->ds, "a comment begins with '#'");
  }
  return true;
}

static bool explain_pair(Parser *px, Span span, int token) {
  int last = px->last.token;
  bool is_step = (last == '+' || last == '-') && px->before_last.token == last &&
                 px->before_last.span.end == px->last.span.begin && token == TOK_NEWLINE;
  if (is_step) {
    Span both = {px->before_last.span.begin, px->last.span.end};
    if (px_error(px, DIAG_syntax, both, "'%s' is not an operator of the language", px_text(px, both))) {
      diag_hint(px->ds, "write '%c= 1'", last);
    }
    return true;
  }
  bool is_swapped = last == '=' && (token == '<' || token == '>') && px->last.span.end == span.begin;
  if (!is_swapped) return false;
  Span both = {px->last.span.begin, span.end};
  if (px_error(px, DIAG_syntax, both, "'%s' is not an operator of the language", px_text(px, both))) {
    diag_hint(px->ds, "write '%c='", (char)token);
  }
  return true;
}

// `if x = 3:` and `if x {`
static bool explain_header(Parser *px, Span span, int token) {
  if (!is_header(px->statement.token) || px->is_expression) return false;
  bool is_condition =
      px->statement.token == TOK_IF || px->statement.token == TOK_ELIF || px->statement.token == TOK_WHILE;
  if (is_condition && token == '=') {
    if (px_error(px, DIAG_syntax, span, "'=' assigns and cannot stand in a condition"))
      diag_hint(px->ds, "write '=='");
    return true;
  }
  if (token == '{' && px->nbrackets == 1) {
    if (px_error(px, DIAG_syntax, span, "expected ':' here: a block is made by indentation, not by braces")) {
      diag_hint(px->ds, "write ':' and indent the lines of the block");
    }
    return true;
  }
  return false;
}

static bool explain_name(Parser *px, Span span, int token, const Expected *expected) {
  if (!is_keyword(token) || !expects(expected, "a name") || expects_expression(expected)) return false;
  px_error(px, DIAG_syntax, span, "'%s' is a word of the language and cannot be a name", px_text(px, span));
  return true;
}

// `a b = 3` at the left, or a keyword that is assigned to.
static bool explain_keyword_target(Parser *px, Span span, int token) {
  if (token != '=' || !is_keyword(px->last.token) || px->last.span.begin != px->statement.span.begin)
    return false;
  (void)span;
  px_error(px, DIAG_syntax, px->last.span, "'%s' is a word of the language and cannot be assigned to",
           px_text(px, px->last.span));
  return true;
}

static void explain_plainly(Parser *px, Span span, int token, const Expected *expected) {
  const char *could_be = expected_text(px, expected);
  const char *join_word = *could_be ? ": expected " : "";
  bool reported;
  if (token == TOK_NEWLINE || token == TOK_END) {
    Span last = px->last.span;
    Span place = token == TOK_NEWLINE || last.end == 0 ? span : (Span){last.begin, last.end};
    reported = px_error(px, DIAG_syntax, place, "the %s ends too early%s%s",
                        px->is_expression ? "expression" : "line", join_word, could_be);
  } else if (px->last.span.end == 0) {
    reported = px_error(px, DIAG_syntax, span, "unexpected '%s'%s%s", px_text(px, span), join_word, could_be);
  } else {
    reported = px_error(px, DIAG_syntax, span, "unexpected '%s' after '%s'%s%s", px_text(px, span),
                        px_text(px, px->last.span), join_word, could_be);
  }
  if (reported && (expects(expected, "')'") || expects(expected, "']'") || expects(expected, "'}'")))
    note_opener(px);
}

void explain_unexpected(Parser *px, Span span, const char *const *names, int count) {
  int token = px->current.token;
  Expected expected = {names, count};
  // An opening bracket that is itself unexpected is not what the parser is inside of.
  bool is_opener = token == '(' || token == '[' || token == '{';
  if (explain_header(px, span, token)) return;
  if (is_opener && px->nbrackets) px->nbrackets--;
  bool done = explain_open_bracket(px, span) || explain_start(px, span, token) ||
              explain_pair(px, span, token) || explain_keyword(px, &expected) ||
              explain_name(px, span, token, &expected) || explain_keyword_target(px, span, token);
  if (!done) explain_plainly(px, span, token, &expected);
  if (is_opener && !px->is_fatal) px->nbrackets++;
}

void explain_missing_colon(Parser *px, Span newline) {
  Span end = {newline.begin, newline.begin + 1};
  if (px_error(px, DIAG_syntax, end, "the header of a block ends with ':'"))
    diag_hint(px->ds, "add ':' here");
}

void explain_missing_block(Parser *px, Span colon, Span newline) {
  (void)newline;
  if (px_error(px, DIAG_indentation, colon, "no indented block follows this ':'")) {
    diag_hint(px->ds, "indent the lines of the block; 'pass' stands for an empty one");
  }
}

void explain_unexpected_indent(Parser *px, Span indent) {
  if (indent.begin > 0 && px_is_spoiled(px, indent.begin - 1)) return;
  if (px->has_mixed_tabs) return;
  px_error(px, DIAG_indentation, indent, "this line is indented, but no line above it opens a block here");
}

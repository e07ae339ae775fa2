// docs/diagnostics.md is compiled in as it is; a code's paragraphs are what stands between its heading and the
// next one.
#include "driver/messages.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "driver/diagnostics_text.h"

static bool one_of(const char *value, const char *const *names, int count) {
  for (int i = 0; i < count; i++)
    if (strcmp(value, names[i]) == 0) return true;
  return false;
}

static bool check_word(Arena *arena, const char *option, const char *value, const char *const *names,
                       int count, const char **error) {
  if (!value || one_of(value, names, count)) return true;
  TextBuf list = {.arena = arena};
  for (int i = 0; i < count; i++)
    textbuf_printf(&list, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " or ", names[i]);
  const char *near = text_nearest(value, names, count);
  *error = text_printf(arena, "%s takes %s, not '%s'%s", option, list.data, value,
                       near ? text_printf(arena, "; did you mean '%s'?", near) : "");
  return false;
}

bool messages_check(Arena *arena, const MessageOptions *options, const char **error) {
  static const char *const formats[] = {"text", "json"}, *const colors[] = {"auto", "always", "never"};
  return check_word(arena, "--error-format", options->format, formats, 2, error) &&
         check_word(arena, "--color", options->color, colors, 3, error);
}

static bool wants_color(const char *choice, FILE *out) {
  if (choice && strcmp(choice, "always") == 0) return true;
  if (choice && strcmp(choice, "never") == 0) return false;
  const char *refused = getenv("NO_COLOR"), *terminal = getenv("TERM");
  if ((refused && *refused) || !terminal || strcmp(terminal, "dumb") == 0) return false;
  return isatty(fileno(out)) == 1;
}

DiagStyle messages_style(const MessageOptions *options, FILE *out, bool remarks) {
  bool json = options->format && strcmp(options->format, "json") == 0;
  return (DiagStyle){.json = json, .color = !json && wants_color(options->color, out), .remarks = remarks};
}

// The place in the document behind "### ", where the heading's first or second word is `code`; NULL: nowhere.
static const char *find_heading(const char *code) {
  size_t len = strlen(code);
  for (const char *at = (const char *)diagnostics_text; (at = strstr(at, "\n### "));) {
    at += strlen("\n### ");
    size_t first = strcspn(at, " \n"), second = at[first] == ' ' ? strcspn(at + first + 1, " \n") : 0;
    if (first == len && strncasecmp(at, code, len) == 0) return at;
    if (second == len && strncasecmp(at + first + 1, code, len) == 0) return at;
  }
  return NULL;
}

static const char *nearest_code(const char *code) {
  const char *names[DIAG_COUNT];
  for (int i = 0; i < DIAG_COUNT; i++) names[i] = diag_code_text((DiagCode)i);
  return text_nearest(code, names, DIAG_COUNT);
}

const char *messages_explain(Arena *arena, const char *code, const char **error) {
  const char *text = *code ? find_heading(code) : NULL;
  if (text) {
    const char *end = strstr(text, "\n##");
    return text_copy(arena, text, end ? (size_t)(end - text) : strlen(text));
  }
  const char *near = nearest_code(code);
  *error = text_printf(arena, "there is no diagnostic '%s'%s", code,
                       near ? text_printf(arena, "; did you mean '%s'?", near) : "");
  return NULL;
}

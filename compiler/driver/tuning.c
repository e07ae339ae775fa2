// A line an entry, words separated by blanks, no nesting: whoever tunes writes it, people may edit it.
#include "driver/tuning.h"

#include <math.h>
#include <string.h>

#include "target/target.h"

static const char form[] =
    "a line is: KERNEL TARGET NAME=SIZE ... set SETTING ... [rate NUMBER] [gpu \"NAME\"]";
static const char heading[] = "tile-tuning";

typedef struct {
  Arena *arena;
  const Source *source;
  Diags *ds;
  TuningFile *file;
  uint32_t at, end;  // the rest of the line
  Span word;         // the last that was read; empty at the line's end
} Reader;

static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

static bool next_word(Reader *r) {
  while (r->at < r->end && is_blank(r->source->text[r->at])) r->at++;
  r->word = (Span){r->at, r->at};
  while (r->at < r->end && !is_blank(r->source->text[r->at])) r->at++;
  r->word.end = r->at;
  return r->word.end > r->word.begin;
}

static const char *word_text(const Reader *r) {
  return text_copy(r->arena, r->source->text + r->word.begin, r->word.end - r->word.begin);
}

static bool word_is(const Reader *r, const char *text) {
  size_t len = strlen(text);
  return r->word.end - r->word.begin == len && memcmp(r->source->text + r->word.begin, text, len) == 0;
}

static bool is_name(const char *text, size_t len) {
  if (len == 0) return false;
  for (size_t i = 0; i < len; i++) {
    char c = text[i];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
    if (!letter && !(i > 0 && c >= '0' && c <= '9')) return false;
  }
  return true;
}

bool tuning_size_parse(Arena *arena, const char *text, size_t len, TuningSize *out) {
  const char *equals = memchr(text, '=', len);
  if (!equals || !is_name(text, (size_t)(equals - text)) || equals + 1 == text + len) return false;
  *out = (TuningSize){.name = text_copy(arena, text, (size_t)(equals - text))};
  for (const char *at = equals + 1; at < text + len; at++) {
    if (*at < '0' || *at > '9' || out->value > INT32_MAX) return false;
    out->value = out->value * 10 + (*at - '0');
  }
  return out->value >= 1 && out->value <= INT32_MAX;
}

// ---- the parts of a line

static bool wrong_form(Reader *r, const char *expected) {
  Span span = r->word.end > r->word.begin ? r->word : (Span){r->end, r->end};
  diag_error(r->ds, DIAG_tuning_file, span, "expected %s", expected);
  diag_hint(r->ds, "%s", form);
  return false;
}

static bool read_target(Reader *r, TuningEntry *entry) {
  if (!next_word(r)) return wrong_form(r, "a target");
  entry->arch = word_text(r);
  if (target_find(entry->arch) || target_known(entry->arch)) return true;
  TextBuf names = {.arena = r->arena};
  for (int i = 0; i < target_count(); i++) textbuf_printf(&names, "%s%s", i ? ", " : "", target_at(i)->name);
  diag_error(r->ds, DIAG_tuning_file, r->word, "target %s does not exist; the targets are: %s", entry->arch,
             names.data);
  return false;
}

static bool read_size(Reader *r, TuningEntry *entry) {
  TuningSize size;
  if (!tuning_size_parse(r->arena, r->source->text + r->word.begin, r->word.end - r->word.begin, &size)) {
    diag_error(r->ds, DIAG_tuning_file, r->word,
               "'%s' is no size: a name, '=', and a number from 1 to 2147483647, as in M=4096", word_text(r));
    diag_hint(r->ds, "%s", form);
    return false;
  }
  size.span = r->word;
  for (int i = 0; i < entry->sizes.len; i++) {
    if (strcmp(entry->sizes.data[i].name, size.name) != 0) continue;
    diag_error(r->ds, DIAG_tuning_file, r->word, "size %s is given twice", size.name);
    diag_note(r->ds, entry->sizes.data[i].span, "first here");
    return false;
  }
  vec_push(r->arena, &entry->sizes, size);
  return true;
}

static bool read_setting(Reader *r, TuningEntry *entry) {
  const char *text = word_text(r), *equals = strchr(text, '=');
  TuningSetting setting = {text, NULL, r->word};
  if (*text != '-') {
    if (!equals || !is_name(text, (size_t)(equals - text)) || !equals[1]) {
      diag_error(r->ds, DIAG_tuning_file, r->word,
                 "'%s' is no setting: NAME=VALUE as -D takes it, or an option as -O3", text);
      return false;
    }
    setting = (TuningSetting){text_copy(r->arena, text, (size_t)(equals - text)), equals + 1, r->word};
  }
  for (int i = 0; i < entry->settings.len; i++) {
    if (strcmp(entry->settings.data[i].name, setting.name) != 0) continue;
    diag_error(r->ds, DIAG_tuning_file, r->word, "%s is set twice", setting.name);
    diag_note(r->ds, entry->settings.data[i].span, "first here");
    return false;
  }
  vec_push(r->arena, &entry->settings, setting);
  return true;
}

static bool is_number(const char *text) {
  int digits = 0, points = 0;
  for (; *text; text++) {
    digits += *text >= '0' && *text <= '9';
    points += *text == '.';
    if (*text != '.' && (*text < '0' || *text > '9')) return false;
  }
  return digits > 0 && points < 2;
}

// What was measured, and where: for people.
static bool read_rest(Reader *r) {
  if (word_is(r, "rate")) {
    if (!next_word(r) || !is_number(word_text(r)))
      return wrong_form(r, "a number of TFLOP/s, as in rate 745.1");
    next_word(r);
  }
  if (word_is(r, "gpu")) {
    if (!next_word(r) || r->source->text[r->word.begin] != '"')
      return wrong_form(r, "a GPU's name in quotes");
    const char *close = memchr(r->source->text + r->word.begin + 1, '"', r->end - r->word.begin - 1);
    if (!close) return wrong_form(r, "a closing quote");
    r->at = (uint32_t)(close + 1 - r->source->text);
    next_word(r);
  }
  return r->word.end == r->word.begin || wrong_form(r, "the end of the line");
}

static bool read_settings(Reader *r, TuningEntry *entry) {
  while (next_word(r) && !word_is(r, "rate") && !word_is(r, "gpu"))
    if (!read_setting(r, entry)) return false;
  if (entry->settings.len == 0) return wrong_form(r, "a setting: NAME=VALUE, or an option as -O3");
  return read_rest(r);
}

static bool same_sizes(const TuningSizes *a, const TuningSizes *b) {
  int found = 0;
  for (int i = 0; i < a->len; i++)
    for (int k = 0; k < b->len; k++)
      found += !strcmp(a->data[i].name, b->data[k].name) && a->data[i].value == b->data[k].value;
  return found == a->len && a->len == b->len;
}

static bool check_new(Reader *r, const TuningEntry *entry) {
  for (int i = 0; i < r->file->entries.len; i++) {
    const TuningEntry *other = r->file->entries.data[i];
    if (strcmp(other->kernel, entry->kernel) != 0 || strcmp(other->arch, entry->arch) != 0) continue;
    if (!same_sizes(&other->sizes, &entry->sizes)) continue;
    diag_error(r->ds, DIAG_tuning_file, entry->span, "kernel %s has two entries for %s on %s", entry->kernel,
               tuning_sizes_text(r->arena, &entry->sizes), entry->arch);
    diag_note(r->ds, other->span, "the first");
    return false;
  }
  return true;
}

// The first word has been read.
static bool read_entry(Reader *r) {
  TuningEntry *entry = ARENA_NEW(r->arena, TuningEntry);
  entry->kernel = word_text(r);
  entry->span.begin = r->word.begin;
  if (!is_name(entry->kernel, strlen(entry->kernel))) return wrong_form(r, "a kernel's name");
  if (!read_target(r, entry)) return false;
  while (next_word(r) && !word_is(r, "set"))
    if (!read_size(r, entry)) return false;
  if (entry->sizes.len == 0) return wrong_form(r, "a size, as in M=4096");
  if (!word_is(r, "set")) return wrong_form(r, "'set' and settings");
  if (!read_settings(r, entry)) return false;
  entry->span.end = r->end;
  if (!check_new(r, entry)) return false;
  vec_push(r->arena, &r->file->entries, entry);
  return true;
}

static bool read_heading(Reader *r) {
  if (!next_word(r) || !word_is(r, heading)) {
    diag_error(r->ds, DIAG_tuning_file, r->word, "the first line of a tuning file is '%s 1'", heading);
    return false;
  }
  if (next_word(r) && word_is(r, "1")) {
    if (!next_word(r)) return true;
    diag_error(r->ds, DIAG_tuning_file, r->word, "the first line is '%s 1' and no more", heading);
    return false;
  }
  diag_error(r->ds, DIAG_tuning_file, r->word,
             "version '%s' of tuning files is not known; this tilec reads version 1", word_text(r));
  return false;
}

static void start_line(Reader *r, int line) {
  int len;
  r->at = r->source->line_starts[line];
  source_line(r->source, line + 1, &len);
  r->end = r->at + (uint32_t)len;
}

TuningFile *tuning_parse(Arena *arena, const Source *source, Diags *ds) {
  TuningFile *file = ARENA_NEW(arena, TuningFile);
  file->source = source;
  Reader r = {.arena = arena, .source = source, .ds = ds, .file = file};
  start_line(&r, 0);
  if (!read_heading(&r)) return NULL;
  bool fine = true;
  for (int line = 1; line < source->nlines && !diags_at_limit(ds); line++) {
    start_line(&r, line);
    if (next_word(&r) && source->text[r.word.begin] != '#') fine = read_entry(&r) && fine;
  }
  return fine ? file : NULL;
}

// ---- choosing

static bool is_of(const TuningEntry *entry, const char *kernel, const char *arch) {
  return !strcmp(entry->kernel, kernel) && !strcmp(entry->arch, arch);
}

bool tuning_has(const TuningFile *file, const char *kernel, const char *arch) {
  for (int i = 0; i < file->entries.len; i++)
    if (is_of(file->entries.data[i], kernel, arch)) return true;
  return false;
}

// False: they have no size in common.
static bool distance_of(const TuningEntry *entry, const TuningSizes *sizes, double *out) {
  bool common = false;
  *out = 0;
  for (int i = 0; i < sizes->len; i++)
    for (int k = 0; k < entry->sizes.len; k++) {
      if (strcmp(sizes->data[i].name, entry->sizes.data[k].name) != 0) continue;
      common = true;
      *out += fabs(log2((double)sizes->data[i].value / (double)entry->sizes.data[k].value));
    }
  return common;
}

const TuningEntry *tuning_choose(const TuningFile *file, const char *kernel, const char *arch,
                                 const TuningSizes *sizes, double *distance) {
  const TuningEntry *best = NULL;
  for (int i = 0; i < file->entries.len; i++) {
    const TuningEntry *entry = file->entries.data[i];
    double d;
    if (!is_of(entry, kernel, arch) || !distance_of(entry, sizes, &d)) continue;
    if (best && d >= *distance) continue;
    best = entry;
    *distance = d;
  }
  return best;
}

const char *tuning_sizes_text(Arena *arena, const TuningSizes *sizes) {
  TextBuf text = {.arena = arena};
  for (int i = 0; i < sizes->len; i++)
    textbuf_printf(&text, "%s%s=%lld", i ? " " : "", sizes->data[i].name, (long long)sizes->data[i].value);
  return text.data ? text.data : "";
}

const char *tuning_settings_text(Arena *arena, const TuningEntry *entry) {
  TextBuf text = {.arena = arena};
  for (int i = 0; i < entry->settings.len; i++) {
    const TuningSetting *setting = &entry->settings.data[i];
    textbuf_printf(&text, "%s%s%s%s", i ? " " : "", setting->name, setting->value ? "=" : "",
                   setting->value ? setting->value : "");
  }
  return text.data ? text.data : "";
}

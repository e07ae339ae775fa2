// Which kernel, which sizes, which entry; then settings one by one, behind those of the command line.
#include "driver/tuning_use.h"

#include <errno.h>
#include <string.h>

#include "driver/tuning.h"

typedef struct {
  Arena *arena;
  const Module *ast;
  Options *options;
  Diags *file_ds;
  const TuningFile *file;
} Use;

static const Span nowhere = {0, 0};

static bool read_file(Use *use, bool *environment) {
  static const char *const reasons[] = {[SOURCE_UNREADABLE] = "cannot be read",
                                        [SOURCE_TOO_LARGE] = "is larger than 16 MiB",
                                        [SOURCE_BINARY] = "is not UTF-8 text"};
  Source *source;
  SourceStatus status = source_read(use->arena, use->options->tuning, &source);
  *environment = status == SOURCE_UNREADABLE;
  const char *why = *environment ? strerror(errno) : NULL;
  if (status != SOURCE_OK) source = source_from_text(use->arena, use->options->tuning, "", 0);
  use->file_ds = diags_new(use->arena, source);
  if (status != SOURCE_OK)
    diag_error(use->file_ds, DIAG_tuning_file, nowhere, "the file %s%s%s", reasons[status], why ? ": " : "",
               why ? why : "");
  else
    use->file = tuning_parse(use->arena, source, use->file_ds);
  return use->file != NULL;
}

// The function of that name that the file has entries for; several make it ambiguous.
static bool find_kernel(Use *use, const char **out) {
  *out = use->options->kernel;
  TextBuf names = {.arena = use->arena};
  int found = 0;
  for (int i = 0; i < use->ast->body.count && !use->options->kernel; i++) {
    const Stmt *stmt = use->ast->body.stmts[i];
    if (stmt->kind != STMT_FUNCTION) continue;
    const char *name = stmt->function.name;
    if (!tuning_has(use->file, name, use->options->arch) || (*out && !strcmp(*out, name))) continue;
    textbuf_printf(&names, "%s%s", found++ ? ", " : "", name);
    *out = name;
  }
  if (found < 2) return true;
  diag_error(use->file_ds, DIAG_tuning_entry, nowhere, "several kernels of the program have entries: %s",
             names.data);
  diag_hint(use->file_ds, "choose one with --kernel");
  return false;
}

// What --for says, and the sizes that -D fixes.
static TuningSizes known_sizes(const Use *use) {
  TuningSizes sizes = {0};
  for (int i = 0; i < use->options->sizes.len; i++) vec_push(use->arena, &sizes, use->options->sizes.data[i]);
  for (int i = 0; i < use->options->defines.len; i++) {
    const ElabDefine *define = &use->options->defines.data[i];
    const char *text = text_printf(use->arena, "%s=%s", define->name, define->value);
    TuningSize size;
    if (tuning_size_parse(use->arena, text, strlen(text), &size)) vec_push(use->arena, &sizes, size);
  }
  return sizes;
}

static const TuningEntry *first_of(const Use *use, const char *kernel) {
  for (int i = 0; i < use->file->entries.len; i++) {
    const TuningEntry *entry = use->file->entries.data[i];
    if (!strcmp(entry->kernel, kernel) && !strcmp(entry->arch, use->options->arch)) return entry;
  }
  return NULL;
}

static bool no_sizes(Use *use, const char *kernel) {
  const TuningEntry *entry = first_of(use, kernel);
  diag_error(use->file_ds, DIAG_tuning_entry, nowhere,
             "kernel %s has entries for several sizes, and nothing says which is meant", kernel);
  TextBuf text = {.arena = use->arena};
  for (int i = 0; i < entry->sizes.len; i++)
    textbuf_printf(&text, "%s%s=%lld", i ? "," : "", entry->sizes.data[i].name,
                   (long long)entry->sizes.data[i].value);
  diag_hint(use->file_ds, "--for %s", text.data);
  return false;
}

static void no_entry(Use *use) {
  TextBuf text = {.arena = use->arena};
  int count = 0;
  for (int i = 0; i < use->file->entries.len && count < 8; i++) {
    const TuningEntry *entry = use->file->entries.data[i];
    bool again = false;
    for (int k = 0; k < i; k++)
      again = again || (!strcmp(use->file->entries.data[k]->kernel, entry->kernel) &&
                        !strcmp(use->file->entries.data[k]->arch, entry->arch));
    if (!again) textbuf_printf(&text, "%s%s on %s", count++ ? ", " : "", entry->kernel, entry->arch);
  }
  const char *kernel = use->options->kernel;
  diag_warning(use->file_ds, DIAG_tuning_entry, nowhere, "no entry for %s%s on %s; there are: %s",
               kernel ? "kernel " : "the kernels of ", kernel ? kernel : use->options->input,
               use->options->arch, count ? text.data : "none");
}

static bool is_defined(const Options *options, const char *name) {
  for (int i = 0; i < options->defines.len; i++)
    if (!strcmp(options->defines.data[i].name, name)) return true;
  return false;
}

static bool apply(Use *use, const TuningSetting *setting) {
  const char *message;
  if (setting->value) {
    Place at = source_place(use->file->source, setting->span.begin);
    const char *place = text_printf(use->arena, "%s:%d:%d", use->options->tuning, at.line, at.column);
    ElabDefine define = {setting->name, setting->value, place};
    if (!is_defined(use->options, setting->name)) vec_push(use->arena, &use->options->defines, define);
    return true;
  }
  if (options_tune(use->arena, use->options, setting->name, &message)) return true;
  diag_error(use->file_ds, DIAG_tuning_file, setting->span, "%s", message);
  return false;
}

static bool names_size(const TuningEntry *entry, const char *name) {
  for (int i = 0; i < entry->sizes.len; i++)
    if (!strcmp(entry->sizes.data[i].name, name)) return true;
  return false;
}

// A size of --for that no entry of the kernel has chooses nothing.
static void warn_unknown_sizes(Use *use, const char *kernel) {
  for (int i = 0; i < use->options->sizes.len; i++) {
    const char *name = use->options->sizes.data[i].name;
    bool known = false;
    for (int k = 0; k < use->file->entries.len && !known; k++) {
      const TuningEntry *entry = use->file->entries.data[k];
      known = !strcmp(entry->kernel, kernel) && !strcmp(entry->arch, use->options->arch) &&
              names_size(entry, name);
    }
    if (known) continue;
    diag_warning(use->file_ds, DIAG_tuning_entry, nowhere,
                 "--for %s: no entry of kernel %s on %s has a size of that name", name, kernel,
                 use->options->arch);
    diag_hint(use->file_ds, "the first one has %s",
              tuning_sizes_text(use->arena, &first_of(use, kernel)->sizes));
  }
}

static bool apply_entry(Use *use, const TuningEntry *entry, const TuningSizes *sizes, double distance) {
  diag_remark(use->file_ds, entry->span, "settings of this entry: %s",
              tuning_settings_text(use->arena, entry));
  if (distance > 0)
    diag_remark(use->file_ds, entry->span, "it is the nearest to %s, at a distance of %.2f",
                tuning_sizes_text(use->arena, sizes), distance);
  for (int i = 0; i < entry->settings.len; i++)
    if (!apply(use, &entry->settings.data[i])) return false;
  return true;
}

static bool use_file(Use *use) {
  const char *kernel;
  double distance = 0;
  if (!find_kernel(use, &kernel)) return false;
  if (!kernel || !tuning_has(use->file, kernel, use->options->arch)) {
    no_entry(use);
    return true;
  }
  TuningSizes sizes = known_sizes(use);
  warn_unknown_sizes(use, kernel);
  const TuningEntry *entry = tuning_choose(use->file, kernel, use->options->arch, &sizes, &distance);
  return entry ? apply_entry(use, entry, &sizes, distance) : no_sizes(use, kernel);
}

bool tuning_use(Arena *arena, const Module *ast, Options *options, Diags **file_ds, bool *environment) {
  Use use = {.arena = arena, .ast = ast, .options = options};
  bool fine = read_file(&use, environment) && use_file(&use);
  *file_ds = use.file_ds;
  return fine && diags_errors(use.file_ds) == 0;
}

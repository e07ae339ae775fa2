// Finding ptxas, asking its version, and running it between two temporaries. Its output is captured whole: on
// failure it becomes a note under a sentence of ours, on success the caller's (spills.c).
#include "driver/ptxas.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/vec.h"

extern char **environ;

enum { MIN_MAJOR = 12, MIN_MINOR = 8 };  // the first that knows the tcgen05 instructions of PTX ISA 8.6

// ---- running

enum { OUTPUT_LIMIT = 64 << 10 };

typedef struct {
  int status;        // exit status; -1: could not be started, or killed by a signal
  const char *text;  // what it printed, both streams, up to OUTPUT_LIMIT bytes
} Run;

// Reads to the end; what does not fit into `text` is dropped.
static void read_pipe(int fd, char text[static OUTPUT_LIMIT + 1]) {
  size_t len = 0;
  char rest[4096];
  for (;;) {
    bool full = len == OUTPUT_LIMIT;
    ssize_t got = read(fd, full ? rest : text + len, full ? sizeof rest : OUTPUT_LIMIT - len);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    if (!full) len += (size_t)got;
  }
}

static int wait_for(pid_t child) {
  int status;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Allocates nothing while the pipe is open: out of memory would leave it so.
static Run run(Arena *arena, char *const *argv) {
  char *text = ARENA_ARRAY(arena, char, OUTPUT_LIMIT + 1);
  Run result = {.status = -1, .text = text};
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return result;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  pid_t child;
  int failed = posix_spawn(&child, argv[0], &actions, NULL, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (!failed) {
    read_pipe(ends[0], text);
    result.status = wait_for(child);
  }
  close(ends[0]);
  return result;
}

// ---- finding

typedef VEC(const char *) Paths;

static void add_tools_folder(Arena *arena, Paths *paths) {
  char self[4096];
  ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
  if (len <= 0) return;
  self[len] = 0;
  char *slash = strrchr(self, '/');
  if (slash) vec_push(arena, paths, text_printf(arena, "%.*s/../tools/ptxas", (int)(slash - self), self));
}

static Paths candidates(Arena *arena) {
  Paths paths = {0};
  const char *cuda_home = getenv("CUDA_HOME"), *search = getenv("PATH");
  if (cuda_home && *cuda_home) vec_push(arena, &paths, text_printf(arena, "%s/bin/ptxas", cuda_home));
  while (search && *search) {
    size_t len = strcspn(search, ":");
    if (len) vec_push(arena, &paths, text_printf(arena, "%.*s/ptxas", (int)len, search));
    search += len + (search[len] == ':');
  }
  vec_push(arena, &paths, "/usr/local/cuda/bin/ptxas");
  add_tools_folder(arena, &paths);
  return paths;
}

// "… release 13.0, …". False: the text has no version.
static bool read_version(const char *text, int *major, int *minor) {
  const char *at = strstr(text, "release ");
  return at && sscanf(at, "release %d.%d", major, minor) == 2;
}

static bool is_recent(int major, int minor) {
  return major > MIN_MAJOR || (major == MIN_MAJOR && minor >= MIN_MINOR);
}

// Whether the program at `path` is a ptxas that will do; if not, *why says so.
static bool try_path(Arena *arena, const char *path, const char **why) {
  int major, minor;
  Run version = run(arena, (char *[]){(char *)path, "--version", NULL});
  if (version.status != 0 || !read_version(version.text, &major, &minor)) {
    *why = text_printf(arena, "%s does not answer --version like ptxas", path);
    return false;
  }
  *why = text_printf(arena, "%s is from CUDA %d.%d", path, major, minor);
  return is_recent(major, minor);
}

static const char *find(Arena *arena, const char *given, Diags *ds) {
  Paths paths = {0};
  if (given)
    vec_push(arena, &paths, given);
  else
    paths = candidates(arena);
  Paths reasons = {0};
  for (int i = 0; i < paths.len; i++) {
    const char *path = paths.data[i], *why;
    if (access(path, X_OK) != 0) continue;
    if (try_path(arena, path, &why)) return path;
    vec_push(arena, &reasons, why);
  }
  if (reasons.len) {
    diag_error(ds, DIAG_ptxas_too_old, (Span){0, 0}, "a cubin needs ptxas of CUDA %d.%d or later", MIN_MAJOR,
               MIN_MINOR);
    for (int i = 0; i < reasons.len; i++) diag_note(ds, (Span){0, 0}, "%s", reasons.data[i]);
  } else if (given) {
    diag_error(ds, DIAG_ptxas_missing, (Span){0, 0}, "'%s' is not a program that can be run", given);
  } else {
    diag_error(ds, DIAG_ptxas_missing, (Span){0, 0},
               "a cubin needs ptxas, which is neither in $CUDA_HOME/bin, PATH, /usr/local/cuda/bin nor in "
               "../tools beside "
               "this program's folder");
    diag_hint(ds, "name it with --ptxas PATH, or write PTX: -o OUT.ptx");
  }
  return NULL;
}

// ---- assembling

typedef struct {
  const char *folder, *ptx, *cubin;
} Temporaries;

static bool write_file(const char *path, const char *data, size_t len) {
  FILE *file = fopen(path, "wb");
  if (!file) return false;
  bool ok = fwrite(data, 1, len, file) == len;
  return fclose(file) == 0 && ok;
}

static bool make_temporaries(Arena *arena, const char *ptx, Temporaries *out, Diags *ds) {
  const char *root = getenv("TMPDIR");
  char *folder = (char *)text_printf(arena, "%s/tilec-XXXXXX", root && *root ? root : "/tmp");
  size_t len = strlen(folder);
  char *ptx_path = (char *)text_printf(arena, "%s/kernel.ptx", folder);
  char *cubin_path = (char *)text_printf(arena, "%s/kernel.cubin", folder);
  bool made = mkdtemp(folder) != NULL;
  memcpy(ptx_path, folder, len);
  memcpy(cubin_path, folder, len);
  *out = (Temporaries){folder, ptx_path, cubin_path};
  if (made && write_file(out->ptx, ptx, strlen(ptx))) return true;
  diag_error(ds, DIAG_ptxas_missing, (Span){0, 0}, "cannot write a temporary in '%s': %s", folder,
             strerror(errno));
  return false;
}

static void remove_temporaries(const Temporaries *temporaries) {
  unlink(temporaries->ptx);
  unlink(temporaries->cubin);
  rmdir(temporaries->folder);
}

static bool read_cubin(Arena *arena, const char *path, Cubin *out) {
  FILE *file = fopen(path, "rb");
  if (!file) return false;
  long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
  bool ok = size > 0 && fseek(file, 0, SEEK_SET) == 0;
  if (ok) {
    *out = (Cubin){arena_alloc(arena, (size_t)size), (size_t)size};
    ok = fread(out->data, 1, out->len, file) == out->len;
  }
  fclose(file);
  return ok;
}

static PtxasStatus assemble(Arena *arena, const char *ptxas, const char *arch, const Temporaries *files,
                            Cubin *out, const char **says, Diags *ds) {
  char *argv[] = {(char *)ptxas,      "-lineinfo", "-warn-spills",       "-arch", (char *)arch,
                  (char *)files->ptx, "-o",        (char *)files->cubin, NULL};
  Run result = run(arena, argv);
  *says = result.text;
  if (result.status == 0 && read_cubin(arena, files->cubin, out)) return PTXAS_OK;
  if (result.status == 0 || result.status < 0) {
    diag_error(ds, DIAG_ptxas_missing, (Span){0, 0}, "%s was stopped, or left no cubin", ptxas);
    if (*result.text) diag_note(ds, (Span){0, 0}, "it says:\n%s", result.text);
    return PTXAS_MISSING;
  }
  diag_error(
      ds, DIAG_ptxas_refused, (Span){0, 0},
      "ptxas refuses the PTX that was made from this source; the fault is the compiler's, please report it");
  diag_note(ds, (Span){0, 0}, "%s says:\n%s", ptxas, result.text);
  return PTXAS_REFUSED;
}

// Running out of memory removes the temporaries too, then goes on to the caller's handler.
static PtxasStatus assemble_guarded(Arena *arena, const char *ptxas, const char *arch,
                                    const Temporaries *files, Cubin *out, const char **says, Diags *ds) {
  jmp_buf handler, *volatile before = arena_on_out_of_memory(arena, &handler);
  if (setjmp(handler)) {
    remove_temporaries(files);
    arena_on_out_of_memory(arena, before);
    if (before) longjmp(*before, 1);
    return PTXAS_MISSING;
  }
  PtxasStatus status = assemble(arena, ptxas, arch, files, out, says, ds);
  arena_on_out_of_memory(arena, before);
  return status;
}

PtxasStatus ptxas_run(Arena *arena, const char *path, const char *arch, const char *ptx, Cubin *out,
                      const char **says, Diags *ds) {
  const char *ptxas = find(arena, path, ds);
  if (!ptxas) return PTXAS_MISSING;
  Temporaries files;
  PtxasStatus status = PTXAS_MISSING;
  if (make_temporaries(arena, ptx, &files, ds))
    status = assemble_guarded(arena, ptxas, arch, &files, out, says, ds);
  remove_temporaries(&files);
  return status;
}

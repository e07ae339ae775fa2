// posix_spawn of tilec with its diagnostics going where ours go, into a folder that is gone before the kernel
// starts.
#include "core/run_compile.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/module.h"
#include "core/run_tilec.h"

extern char **environ;

static bool find_compiler(char path[PATH_MAX]) {
  TileError *error = run_find_tilec(path);
  if (!error) return true;
  fprintf(stderr, "tile-run: %s\n", tile_error_message(error));
  tile_error_free(error);
  return false;
}

// The command line of tilec; strings that had to be made are in `made`, one for each -D.
static char **command(const RunOptions *options, const char *arch, char *compiler, char *output,
                      char **made) {
  char **argv = calloc(20 + 2 * (size_t)options->defines.count, sizeof *argv);
  if (!argv) return NULL;
  int n = 0;
  argv[n++] = compiler;
  argv[n++] = (char *)(uintptr_t)options->file;
  argv[n++] = "-o";
  argv[n++] = output;
  if (options->kernel) argv[n++] = "--kernel", argv[n++] = (char *)(uintptr_t)options->kernel;
  if (options->arch) arch = options->arch;
  if (arch) argv[n++] = "--arch", argv[n++] = (char *)(uintptr_t)arch;
  if (options->error_format)
    argv[n++] = "--error-format", argv[n++] = (char *)(uintptr_t)options->error_format;
  if (options->color) argv[n++] = "--color", argv[n++] = (char *)(uintptr_t)options->color;
  if (options->tuning) argv[n++] = "--tuning", argv[n++] = (char *)(uintptr_t)options->tuning;
  if (options->sizes) argv[n++] = "--for", argv[n++] = (char *)(uintptr_t)options->sizes;
  if (options->optimise) argv[n++] = (char *)(uintptr_t)options->optimise;
  for (int i = 0; i < options->defines.count; i++) {
    const RunPair *define = &options->defines.data[i];
    if (asprintf(&made[i], "%s=%s", define->name, define->value) < 0) made[i] = NULL;
    argv[n++] = "-D";
    argv[n++] = made[i];
  }
  return argv;
}

// Exit status of the child, RUN_USAGE when it did not start or did not end by itself.
static int spawn(char **argv, const posix_spawn_file_actions_t *files) {
  pid_t child;
  int status, failure = posix_spawn(&child, argv[0], files, NULL, argv, environ);
  if (failure) {
    fprintf(stderr, "tile-run: cannot start %s: %s\n", argv[0], strerror(failure));
    return RUN_USAGE;
  }
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return RUN_USAGE;
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  fprintf(stderr, "tile-run: tilec was ended by signal %d\n", WTERMSIG(status));
  return RUN_USAGE;
}

// tilec --version lists its targets.
bool run_compile_knows(const char *arch) {
  char compiler[PATH_MAX], text[1000] = "";
  if (!find_compiler(compiler)) return false;
  FILE *file = tmpfile();
  posix_spawn_file_actions_t files;
  if (!file || posix_spawn_file_actions_init(&files) != 0) {
    if (file) fclose(file);
    return false;
  }
  bool known = false;
  char *argv[] = {compiler, "--version", NULL};
  if (posix_spawn_file_actions_adddup2(&files, fileno(file), STDOUT_FILENO) == 0 &&
      spawn(argv, &files) == RUN_OK) {
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    const char *targets = strstr(text, "targets:");
    const char *at = targets ? strstr(targets, arch) : NULL;
    size_t length = strlen(arch);
    known = at && at[-1] == ' ' && (at[length] == ' ' || at[length] == '\n' || at[length] == '\0');
  }
  posix_spawn_file_actions_destroy(&files);
  fclose(file);
  return known;
}

static int compile_to(const RunOptions *options, const char *arch, char *output) {
  char compiler[PATH_MAX];
  if (!find_compiler(compiler)) return RUN_USAGE;
  char **made = calloc((size_t)options->defines.count + 1, sizeof *made);
  char **argv = made ? command(options, arch, compiler, output, made) : NULL;
  int status = RUN_USAGE;
  if (argv)
    status = spawn(argv, NULL);
  else
    fputs("tile-run: out of memory\n", stderr);
  for (int i = 0; made && i < options->defines.count; i++) free(made[i]);
  free(made);
  free(argv);
  return status;
}

// The module is known to messages by the name of its source: the temporary is gone before anyone could look at it.
static int open_compiled(const char *path, const RunOptions *options, TileModule **out) {
  char name[PATH_MAX];
  snprintf(name, sizeof name, "%s%s", run_options_emulated(options) ? "PTX of " : "", options->file);
  TileError *error = module_open_named(path, name, out);
  if (!error) return RUN_OK;
  fprintf(stderr, "tile-run: %s\n", tile_error_message(error));
  tile_error_free(error);
  return RUN_USAGE;
}

int run_compile(const RunOptions *options, const char *arch, TileModule **out) {
  const char *temporary = getenv("TMPDIR");
  char folder[PATH_MAX];
  snprintf(folder, sizeof folder, "%s/tile-run-XXXXXX", temporary && *temporary ? temporary : "/tmp");
  if (!mkdtemp(folder)) {
    fprintf(stderr, "tile-run: no temporary folder %s: %s\n", folder, strerror(errno));
    return RUN_USAGE;
  }
  // The emulator runs PTX, which needs no ptxas.
  char path[PATH_MAX + sizeof "/kernel.cubin"];
  snprintf(path, sizeof path, "%s/kernel.%s", folder, run_options_emulated(options) ? "ptx" : "cubin");
  int status = compile_to(options, arch, path);
  if (status == RUN_OK) status = open_compiled(path, options, out);
  unlink(path);
  rmdir(folder);
  return status;
}

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

#include "core/error.h"
#include "core/module.h"
#include "core/tool.h"

extern char **environ;

// The command line of tilec.
static char **command(const RunOptions *options, const char *arch, char *compiler, char *output) {
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
    argv[n++] = "-D";
    argv[n++] = (char *)(uintptr_t)options->defines.data[i].text;
  }
  return argv;
}

// Exit status of the child, TOOL_USAGE when it did not start or did not end by itself.
static int spawn(char **argv, const posix_spawn_file_actions_t *files) {
  pid_t child;
  int status, failure = posix_spawn(&child, argv[0], files, NULL, argv, environ);
  if (failure) {
    fprintf(stderr, "tile-run: cannot start %s: %s\n", argv[0], strerror(failure));
    return TOOL_USAGE;
  }
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return TOOL_USAGE;
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  fprintf(stderr, "tile-run: tilec was ended by signal %d\n", WTERMSIG(status));
  return TOOL_USAGE;
}

// tilec --version lists its targets.
bool run_compile_knows(const char *arch) {
  char compiler[PATH_MAX], text[1000] = "";
  if (tool_report("tile-run", tool_find_tilec(compiler)) != TOOL_OK) return false;
  FILE *file = tmpfile();
  posix_spawn_file_actions_t files;
  if (!file || posix_spawn_file_actions_init(&files) != 0) {
    if (file) fclose(file);
    return false;
  }
  bool known = false;
  char *argv[] = {compiler, "--version", NULL};
  if (posix_spawn_file_actions_adddup2(&files, fileno(file), STDOUT_FILENO) == 0 &&
      spawn(argv, &files) == TOOL_OK) {
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
  int status = tool_report("tile-run", tool_find_tilec(compiler));
  if (status != TOOL_OK) return status;
  char **argv = command(options, arch, compiler, output);
  status = argv ? spawn(argv, NULL) : tool_report("tile-run", error_no_memory());
  free(argv);
  return status;
}

// The module is known to messages by the name of its source: the temporary is gone before anyone could look at it.
static int open_compiled(const char *path, const RunOptions *options, TileModule **out) {
  char name[PATH_MAX];
  snprintf(name, sizeof name, "%s%s", run_options_emulated(options) ? "PTX of " : "", options->file);
  return tool_report("tile-run", module_open_named(path, name, out));
}

int run_compile(const RunOptions *options, const char *arch, TileModule **out) {
  char folder[PATH_MAX];
  int status = tool_report("tile-run", tool_folder("tile-run", folder));
  if (status != TOOL_OK) return status;
  // The emulator runs PTX, which needs no ptxas.
  char path[PATH_MAX + sizeof "/kernel.cubin"];
  snprintf(path, sizeof path, "%s/kernel.%s", folder, run_options_emulated(options) ? "ptx" : "cubin");
  status = compile_to(options, arch, path);
  if (status == TOOL_OK) status = open_compiled(path, options, out);
  unlink(path);
  rmdir(folder);
  return status;
}

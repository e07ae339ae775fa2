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
#include "core/tool_args.h"

extern char **environ;

// The command line of tilec, which is in the folder of this program.
static TileError *command(const RunOptions *options, const char *arch, const char *output, ArgList *out) {
  char compiler[PATH_MAX];
  TileError *error = tool_find_tilec(compiler);
  if (error) return error;
  args_add(out, "%s", compiler);
  args_add(out, "%s", options->file);
  args_add(out, "-o");
  args_add(out, "%s", output);
  args_add_flag(out, "--kernel", options->kernel);
  args_add_flag(out, "--arch", options->arch ? options->arch : arch);
  args_add_flag(out, "--error-format", options->error_format);
  args_add_flag(out, "--color", options->color);
  args_add_flag(out, "--tuning", options->tuning);
  args_add_flag(out, "--for", options->sizes);
  if (options->optimise) args_add(out, "%s", options->optimise);
  for (int i = 0; i < options->defines.count; i++) args_add(out, "-D%s", options->defines.data[i].text);
  return out->failed ? error_no_memory() : NULL;
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

static int compile_to(const RunOptions *options, const char *arch, const char *output) {
  ArgList args = {0};
  int status = tool_report("tile-run", command(options, arch, output, &args));
  if (status == TOOL_OK) status = spawn(args.data, NULL);
  args_free(&args);
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

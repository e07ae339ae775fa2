// Tools start their sibling tilec as a process: the runtime includes nothing of the compiler.
#include "core/tool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"

static int exit_status(const TileError *error) {
  switch (tile_error_status(error)) {
  case TILE_OK:
    return TOOL_OK;
  case TILE_FINDING:
    return TOOL_WRONG;
  case TILE_INVALID:
  case TILE_UNAVAILABLE:
    return TOOL_USAGE;
  case TILE_FAULT:
  case TILE_HANG:
    return TOOL_FAULT;
  }
  return TOOL_USAGE;
}

int tool_report(const char *program, TileError *error) {
  int status = exit_status(error);
  if (error) {
    const char *message = tile_error_message(error);
    size_t length = strlen(message);
    fflush(stdout);
    fprintf(stderr, "%s: %s%s", program, message, length && message[length - 1] == '\n' ? "" : "\n");
  }
  tile_error_free(error);
  return status;
}

bool tool_usage(const char *program, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fprintf(stderr, "%s: ", program);
  vfprintf(stderr, format, args);
  fprintf(stderr, " (%s --help lists everything)\n", program);
  va_end(args);
  return false;
}

bool tool_is_source(const char *file) {
  const char *dot = strrchr(file, '.');
  return dot && (strcmp(dot, ".tile") == 0 || strcmp(dot, ".py") == 0);
}

TileError *tool_find_tilec(char path[PATH_MAX]) {
  ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
  path[length > 0 ? length : 0] = '\0';
  char *slash = strrchr(path, '/');
  if (length <= 0 || !slash || slash - path + sizeof "/tilec" > PATH_MAX)
    return error_new(TILE_UNAVAILABLE, "cannot tell where this program is, so not where tilec is");
  strcpy(slash, "/tilec");
  if (access(path, X_OK) == 0) return NULL;
  return error_new(TILE_UNAVAILABLE, "%s: %s; it compiles source files", path, strerror(errno));
}

TileError *tool_folder(const char *program, char path[PATH_MAX]) {
  const char *temporary = getenv("TMPDIR");
  snprintf(path, PATH_MAX, "%s/%s-XXXXXX", temporary && *temporary ? temporary : "/tmp", program);
  if (mkdtemp(path)) return NULL;
  return error_new(TILE_UNAVAILABLE, "no temporary folder %s: %s", path, strerror(errno));
}

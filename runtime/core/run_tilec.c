// Tools start their sibling tilec as a process: the runtime includes nothing of the compiler.
#include "core/run_tilec.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"

TileError *run_find_tilec(char path[PATH_MAX]) {
  ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
  path[length > 0 ? length : 0] = '\0';
  char *slash = strrchr(path, '/');
  if (length <= 0 || !slash || slash - path + sizeof "/tilec" > PATH_MAX)
    return error_new(TILE_UNAVAILABLE, "cannot tell where this program is, so not where tilec is");
  strcpy(slash, "/tilec");
  if (access(path, X_OK) == 0) return NULL;
  return error_new(TILE_UNAVAILABLE, "%s: %s; it compiles source files", path, strerror(errno));
}

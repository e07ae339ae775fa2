// A reader of the output never sees half of it: the bytes go to a temporary in the same folder, then take its
// name.
#include "driver/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

static bool write_all(int fd, const char *data, size_t len) {
  while (len > 0) {
    ssize_t written = write(fd, data, len);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    data += written;
    len -= (size_t)written;
  }
  return true;
}

static bool fail(Arena *arena, const char *path, const char **error) {
  *error = text_printf(arena, "cannot write '%s': %s", path, strerror(errno));
  return false;
}

static bool write_stream(Arena *arena, FILE *file, const char *path, const char *data, size_t len,
                         const char **error) {
  bool ok = fwrite(data, 1, len, file) == len;
  ok = fflush(file) == 0 && ok;
  return ok || fail(arena, path, error);
}

static bool write_directly(Arena *arena, const char *path, const char *data, size_t len, const char **error) {
  FILE *file = fopen(path, "wb");
  if (!file) return fail(arena, path, error);
  bool ok = write_stream(arena, file, path, data, len, error);
  fclose(file);
  return ok;
}

// The usual permissions of a new file, which mkstemp does not give; those of the file that is replaced.
static mode_t mode_for(const char *path) {
  struct stat status;
  if (stat(path, &status) == 0) return status.st_mode & 0777;
  mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

static bool write_and_rename(Arena *arena, const char *path, const char *data, size_t len,
                             const char **error) {
  char *temporary = (char *)text_printf(arena, "%s.XXXXXX", path);
  int fd = mkstemp(temporary);
  if (fd < 0) return fail(arena, path, error);
  bool ok = write_all(fd, data, len) && fchmod(fd, mode_for(path)) == 0;
  ok = close(fd) == 0 && ok;
  if (ok && rename(temporary, path) == 0) return true;
  fail(arena, path, error);
  unlink(temporary);
  return false;
}

bool output_write(Arena *arena, const char *path, const char *data, size_t len, const char **error) {
  if (!strcmp(path, "-")) return write_stream(arena, stdout, "standard output", data, len, error);
  struct stat status;
  if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
    return write_directly(arena, path, data, len, error);
  char *real = realpath(path, NULL);
  const char *target = real ? text_copy(arena, real, strlen(real)) : path;
  free(real);
  return write_and_rename(arena, target, data, len, error);
}

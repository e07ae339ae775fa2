// A reader of the output never sees half of it: the bytes go to a temporary in the same folder, then take its
// name.
#include "driver/output.h"

#include <errno.h>
#include <fcntl.h>
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

// A new file beside `path` with the usual permissions, or those of the file that it will replace.
static int open_temporary(Arena *arena, const char *path, const char **temporary) {
  enum { ATTEMPTS = 100 };
  int fd = -1;
  for (int i = 0; i < ATTEMPTS && fd < 0; i++) {
    *temporary = text_printf(arena, "%s.%ld-%d", path, (long)getpid(), i);
    fd = open(*temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno != EEXIST) break;
  }
  struct stat status;
  if (fd >= 0 && stat(path, &status) == 0) (void)!fchmod(fd, status.st_mode & 0777);
  return fd;
}

static bool write_and_rename(Arena *arena, const char *path, const char *data, size_t len,
                             const char **error) {
  const char *temporary;
  int fd = open_temporary(arena, path, &temporary);
  if (fd < 0) return fail(arena, path, error);
  bool ok = write_all(fd, data, len);
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

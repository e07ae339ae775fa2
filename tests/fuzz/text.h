// Bytes as a source file of the compiler, read as a file is: text that is no UTF-8 is refused there.
#ifndef TESTS_FUZZ_TEXT_H
#define TESTS_FUZZ_TEXT_H

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/source.h"

// The descriptor of a nameless file with these bytes, to be closed; `path` is a name under which it can be opened.
static inline int fuzz_file(const uint8_t *data, size_t size, char path[32]) {
  int fd = memfd_create("fuzz", 0);
  if (fd >= 0 && write(fd, data, size) != (ssize_t)size) {
    close(fd);
    fd = -1;
  }
  snprintf(path, 32, "/proc/self/fd/%d", fd);
  return fd;
}

// NULL: it is no text. The source is called `name`.
static inline Source *fuzz_source(Arena *arena, const uint8_t *data, size_t size, const char *name) {
  char path[32];
  Source *source = NULL;
  int fd = fuzz_file(data, size, path);
  if (fd < 0) return NULL;
  if (source_read(arena, path, &source) != SOURCE_OK) source = NULL;
  close(fd);
  if (source) source->path = name;
  return source;
}

#endif

// main() of a target without a fuzzer: gives it every file of the files and folders named, and says how many there were.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static void replay_file(const char *path, int *files) {
  FILE *f = fopen(path, "rb");
  if (f == NULL) return;
  size_t size = 0, room = 1 << 16;
  uint8_t *data = malloc(room);
  for (size_t n; data != NULL && (n = fread(data + size, 1, room - size, f)) > 0;) {
    size += n;
    if (size == room) data = realloc(data, room *= 2);
  }
  fclose(f);
  if (data == NULL) return;
  // An exact copy, so that sanitizers see a read past the end.
  uint8_t *exact = malloc(size > 0 ? size : 1);
  if (exact != NULL) {
    memcpy(exact, data, size);
    LLVMFuzzerTestOneInput(exact, size);
    ++*files;
  }
  free(exact);
  free(data);
}

static void replay(const char *path, int *files) {
  DIR *folder = opendir(path);
  if (folder == NULL) {
    replay_file(path, files);
    return;
  }
  for (struct dirent *e; (e = readdir(folder)) != NULL;) {
    char name[4096];
    if (e->d_name[0] != '.' && snprintf(name, sizeof name, "%s/%s", path, e->d_name) < (int)sizeof name)
      replay(name, files);
  }
  closedir(folder);
}

int main(int argc, char **argv) {
  int files = 0;
  for (int i = 1; i < argc; i++) replay(argv[i], &files);
  printf("%d files replayed\n", files);
  return files > 0 ? 0 : 1;
}

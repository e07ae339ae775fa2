// Feeds bytes to the emulator as PTX: they are parsed, and what parses is launched with a few parameters for a bounded number of
// instructions, under an order and checks that the bytes themselves choose. Whatever they are, the library must return: no crash, no
// hang, no leak. With libFuzzer this is the whole program (fuzz.sh); alone, main() replays files and folders.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ptxemu.h"

enum { STEPS = 1000, ARRAY_BYTES = 4096, MOST_ENTRIES = 3, MOST_PARAM_BYTES = 4096 };

static uint32_t hash(const uint8_t *data, size_t size) {
  uint32_t h = 2166136261u;
  for (size_t i = 0; i < size; i++) h = (h ^ data[i]) * 16777619u;
  return h;
}

// Pointers where eight bytes are wanted, a tensor map where 128 are, a small number elsewhere.
static void fill_param(PtxEmu *emu, const PtxEmuParam *param, uint64_t array, uint8_t *block) {
  uint32_t number = 3;
  if (param->offset + param->bytes > MOST_PARAM_BYTES) return;
  if (param->bytes == 8) memcpy(block + param->offset, &array, 8);
  if (param->bytes == 4) memcpy(block + param->offset, &number, 4);
  if (param->bytes != 128) return;
  PtxEmuTensorMap map = {.type = 9,
                         .rank = 2,
                         .address = array,
                         .size = {32, 16},
                         .stride = {2, 64},
                         .box = {32, 8},
                         .element_stride = {1, 1, 1, 1, 1},
                         .swizzle = 2};
  ptxemu_encode_tensor_map(emu, &map, block + param->offset);
}

static void launch(PtxEmu *emu, const PtxEmuModule *module, const PtxEmuEntry *entry, uint64_t array,
                   uint32_t choice) {
  static const char *const checks[] = {"default", "none", "all", "all"};
  uint8_t block[MOST_PARAM_BYTES] = {0};
  for (int i = 0; i < entry->nparams; i++) fill_param(emu, &entry->params[i], array, block);
  PtxEmuLaunch l = {
      .grid = {2, 1, 1}, .block = {32 << (choice & 1), 1, 1}, .dynamic_shared = choice & 2 ? 8192 : 0};
  l.params = block;
  l.param_bytes = entry->param_bytes < MOST_PARAM_BYTES ? entry->param_bytes : MOST_PARAM_BYTES;
  for (int i = 0; i < 3; i++)
    if (entry->reqntid[i] > 0 && entry->reqntid[i] <= 256) l.block[i] = entry->reqntid[i];
  for (int i = 0; i < 3; i++)
    if (entry->cluster[i] > 0 && entry->cluster[i] <= 8) l.grid[i] = entry->cluster[i] * 2;
  l.order = (PtxEmuOrder)((choice >> 2 & 3) % 3);
  l.seed = choice >> 8;
  l.checks = checks[choice >> 4 & 3];
  l.max_steps = STEPS;
  l.workers = 1;
  PtxEmuStats stats;
  ptxemu_launch(emu, module, entry->name, &l, &stats);
  if (strlen(ptxemu_report(emu)) + strlen(ptxemu_output(emu)) == (size_t)-1) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  PtxEmu *emu = ptxemu_new();
  if (emu == NULL) return 0;
  PtxEmuModule *module = ptxemu_load(emu, "input.ptx", (const char *)data, size);
  uint64_t array = ptxemu_alloc(emu, ARRAY_BYTES, "array");
  for (int i = 0; module != NULL && i < ptxemu_entry_count(module) && i < MOST_ENTRIES; i++)
    launch(emu, module, ptxemu_entry_at(module, i), array, hash(data, size) + (uint32_t)i);
  ptxemu_free(emu);
  return 0;
}

#ifndef FUZZING
static int files;

static void replay_file(const char *path) {
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
    files++;
  }
  free(exact);
  free(data);
}

static void replay(const char *path) {
  DIR *folder = opendir(path);
  if (folder == NULL) {
    replay_file(path);
    return;
  }
  for (struct dirent *e; (e = readdir(folder)) != NULL;) {
    char name[4096];
    if (e->d_name[0] != '.' && snprintf(name, sizeof name, "%s/%s", path, e->d_name) < (int)sizeof name)
      replay(name);
  }
  closedir(folder);
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) replay(argv[i]);
  printf("%d files replayed\n", files);
  return files > 0 ? 0 : 1;
}
#endif

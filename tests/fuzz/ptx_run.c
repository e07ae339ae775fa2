// Bytes as PTX for the emulator: they are parsed, and what parses is launched with a few parameters for a bounded number of
// instructions, under an order and checks that the bytes themselves choose.
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "ptxemu.h"

enum { STEPS = 400, ARRAY_BYTES = 4096, MOST_ENTRIES = 2, MOST_PARAM_BYTES = 4096 };

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  PtxEmu *emu = ptxemu_new();
  if (emu == NULL) return 0;
  PtxEmuModule *module = ptxemu_load(emu, "input.ptx", (const char *)data, size);
  uint64_t array = ptxemu_alloc(emu, ARRAY_BYTES, "array");
  for (int i = 0; module != NULL && i < ptxemu_entry_count(module) && i < MOST_ENTRIES; i++)
    launch(emu, module, ptxemu_entry_at(module, i), array, fuzz_hash(data, size) + (uint32_t)i);
  ptxemu_free(emu);
  return 0;
}

// Bytes as PTX for the emulator's reader alone: text, decoding, linking.
#include "fuzz.h"
#include "ptxemu.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  PtxEmu *emu = ptxemu_new();
  if (emu == NULL) return 0;
  ptxemu_load(emu, "input.ptx", (const char *)data, size);
  ptxemu_free(emu);
  return 0;
}

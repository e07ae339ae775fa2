// A cubin is a 64-bit ELF file; its PTX is found by the section's name. Every offset is checked before it is followed.
#include "emu_file.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_all(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) return NULL;
  char *text = NULL;
  size_t used = 0, cap = 0, got = 1;
  while (got > 0) {
    if (used == cap) {
      char *grown = realloc(text, cap = cap == 0 ? 1 << 16 : cap * 2);
      if (grown == NULL) break;
      text = grown;
    }
    got = fread(text + used, 1, cap - used, file);
    used += got;
  }
  int reason = got > 0 ? ENOMEM : errno;
  bool ok = got == 0 && !ferror(file);
  fclose(file);
  *length = used;
  if (ok) return text;
  free(text);
  errno = reason;
  return NULL;
}

static bool part(const char *bytes, size_t length, uint64_t offset, void *out, size_t size) {
  if (offset > length || size > length - offset) return false;
  memcpy(out, bytes + offset, size);
  return true;
}

static bool find_ptx(const char *bytes, size_t length, EmuFile *out) {
  static const char wanted[] = ".nv_debug_ptx_txt";
  Elf64_Ehdr header;
  Elf64_Shdr names, section;
  char name[sizeof wanted];
  if (!part(bytes, length, 0, &header, sizeof header) || header.e_ident[EI_CLASS] != ELFCLASS64) return false;
  uint64_t table = header.e_shoff;
  if (!part(bytes, length, table + header.e_shstrndx * sizeof names, &names, sizeof names)) return false;
  for (unsigned i = 0; i < header.e_shnum; i++) {
    if (!part(bytes, length, table + i * sizeof section, &section, sizeof section)) return false;
    if (!part(bytes, length, names.sh_offset + section.sh_name, name, sizeof name)) continue;
    if (memcmp(name, wanted, sizeof name) != 0) continue;
    if (section.sh_offset > length || section.sh_size > length - section.sh_offset) return false;
    out->ptx = bytes + section.sh_offset;
    out->length = section.sh_size;
    return true;
  }
  return false;
}

EmuFile emu_file_read(const char *path) {
  EmuFile file = {0};
  file.bytes = read_all(path, &file.length);
  file.ptx = file.bytes;
  if (file.bytes == NULL) {
    snprintf(file.error, sizeof file.error, "%s", strerror(errno));
    return file;
  }
  file.is_cubin = file.length >= SELFMAG && memcmp(file.bytes, ELFMAG, SELFMAG) == 0;
  if (!file.is_cubin || find_ptx(file.bytes, file.length, &file)) return file;
  snprintf(file.error, sizeof file.error,
           "a cubin without PTX in it, which is what the emulator runs; give the PTX, or a cubin of tilec or "
           "of ptxas "
           "-lineinfo");
  free(file.bytes);
  file.bytes = NULL;
  return file;
}

// ptxas -lineinfo keeps the PTX in a section of the cubin, but without its .loc lines: whoever emulates a cubin would
// not know the source's lines. So the section gets the whole text. It becomes longer, and all that stands behind it in
// the file moves by a multiple of the largest alignment in a cubin; addresses do not change, nor does any other byte.
#include "driver/cubin.h"

#include <elf.h>
#include <string.h>

#include "tile_launch_info.h"

enum { LARGEST_ALIGNMENT = 1024 };

typedef struct {
  const Cubin *cubin;
  Elf64_Ehdr header;
  uint64_t begin, end;  // of the PTX in the file
} Elf;

static bool read_at(const Elf *elf, uint64_t offset, void *out, size_t size) {
  if (offset > elf->cubin->len || size > elf->cubin->len - offset) return false;
  memcpy(out, elf->cubin->data + offset, size);
  return true;
}

static bool read_section(const Elf *elf, int index, Elf64_Shdr *out) {
  return read_at(elf, elf->header.e_shoff + (uint64_t)index * sizeof *out, out, sizeof *out);
}

static bool find_ptx(Elf *elf) {
  static const char name[] = TILE_LAUNCH_INFO_PTX_SECTION;
  Elf64_Shdr names, section;
  char found[sizeof name];
  if (!read_section(elf, elf->header.e_shstrndx, &names)) return false;
  for (int i = 1; i < elf->header.e_shnum && read_section(elf, i, &section); i++) {
    if (!read_at(elf, names.sh_offset + section.sh_name, found, sizeof found) || strcmp(found, name) != 0)
      continue;
    elf->begin = section.sh_offset;
    elf->end = section.sh_offset + section.sh_size;
    return elf->end >= elf->begin && elf->end <= elf->cubin->len;
  }
  return false;
}

static bool open_elf(const Cubin *cubin, Elf *elf) {
  *elf = (Elf){.cubin = cubin};
  return read_at(elf, 0, &elf->header, sizeof elf->header) && !memcmp(elf->header.e_ident, ELFMAG, SELFMAG) &&
         elf->header.e_ident[EI_CLASS] == ELFCLASS64 && elf->header.e_shentsize == sizeof(Elf64_Shdr) &&
         elf->header.e_phentsize == sizeof(Elf64_Phdr) && find_ptx(elf) && elf->header.e_shoff >= elf->end &&
         elf->header.e_phoff >= elf->end;
}

// Headers of sections and segments point behind the text that has grown. Two sections may share it.
static bool move_headers(const Elf *elf, char *out, uint64_t shift, uint64_t length) {
  Elf64_Ehdr header = elf->header;
  header.e_shoff += shift;
  header.e_phoff += shift;
  memcpy(out, &header, sizeof header);
  for (int i = 0; i < header.e_shnum; i++) {
    Elf64_Shdr section;
    if (!read_section(elf, i, &section)) return false;
    bool is_text = section.sh_offset == elf->begin && section.sh_size == elf->end - elf->begin;
    if (is_text) section.sh_size = length;
    if (section.sh_offset >= elf->end) section.sh_offset += shift;
    memcpy(out + header.e_shoff + (uint64_t)i * sizeof section, &section, sizeof section);
  }
  for (int i = 0; i < header.e_phnum; i++) {
    Elf64_Phdr segment;
    if (!read_at(elf, elf->header.e_phoff + (uint64_t)i * sizeof segment, &segment, sizeof segment))
      return false;
    if (segment.p_offset < elf->end && segment.p_offset + segment.p_filesz > elf->begin) return false;
    if (segment.p_offset >= elf->end) segment.p_offset += shift;
    memcpy(out + header.e_phoff + (uint64_t)i * sizeof segment, &segment, sizeof segment);
  }
  return true;
}

static void write_text(char *out, const char *ptx, uint64_t length) {
  for (uint64_t i = 0; i < length; i++) out[i] = ptx[i] == '\n' ? '\0' : ptx[i];
}

bool cubin_keep_ptx(Arena *arena, Cubin *cubin, const char *ptx) {
  Elf elf;
  if (!open_elf(cubin, &elf)) return false;
  uint64_t length = strlen(ptx), old = elf.end - elf.begin, shift = 0;
  if (length > old) shift = (length - old + LARGEST_ALIGNMENT - 1) / LARGEST_ALIGNMENT * LARGEST_ALIGNMENT;
  char *out = arena_alloc(arena, cubin->len + shift);
  memset(out, 0, cubin->len + shift);
  memcpy(out, cubin->data, elf.begin);
  write_text(out + elf.begin, ptx, length);
  memcpy(out + elf.end + shift, cubin->data + elf.end, cubin->len - elf.end);
  if (!move_headers(&elf, out, shift, length)) return false;
  *cubin = (Cubin){out, cubin->len + shift};
  return true;
}

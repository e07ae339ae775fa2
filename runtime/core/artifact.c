// A cubin is a 64-bit little-endian ELF file: launch information is found by its symbol, the PTX by its
// section's name. In PTX text the constant's initialiser is read back into bytes.
#include "core/artifact.h"

#include <elf.h>
#include <string.h>

// ---- Cubin

typedef struct {
  const uint8_t *bytes;
  size_t length;
  Elf64_Ehdr header;
} Elf;

static bool inside(const Elf *elf, uint64_t offset, uint64_t size) {
  return offset <= elf->length && size <= elf->length - offset;
}

static bool elf_read(const Elf *elf, uint64_t offset, void *out, size_t size) {
  if (!inside(elf, offset, size)) return false;
  memcpy(out, elf->bytes + offset, size);
  return true;
}

static bool elf_section(const Elf *elf, unsigned index, Elf64_Shdr *out) {
  uint64_t at = (uint64_t)index * sizeof *out;
  return index < elf->header.e_shnum && elf->header.e_shoff <= elf->length &&
         elf_read(elf, elf->header.e_shoff + at, out, sizeof *out);
}

// Whether the string at an offset of a string table is `name`.
static bool elf_named(const Elf *elf, const Elf64_Shdr *table, uint64_t at, const char *name) {
  uint64_t size = strlen(name) + 1;
  return table->sh_type == SHT_STRTAB && inside(elf, table->sh_offset, table->sh_size) &&
         at <= table->sh_size && size <= table->sh_size - at &&
         memcmp(elf->bytes + table->sh_offset + at, name, size) == 0;
}

static bool elf_open(Elf *elf, const uint8_t *bytes, size_t length) {
  *elf = (Elf){.bytes = bytes, .length = length};
  if (!elf_read(elf, 0, &elf->header, sizeof elf->header)) return false;
  const unsigned char *ident = elf->header.e_ident;
  return memcmp(ident, ELFMAG, SELFMAG) == 0 && ident[EI_CLASS] == ELFCLASS64 &&
         ident[EI_DATA] == ELFDATA2LSB && elf->header.e_shentsize == sizeof(Elf64_Shdr) &&
         elf->header.e_machine == EM_CUDA;
}

// The bytes of a symbol; false: no such symbol, or one that leaves its section.
static bool symbol_bytes(const Elf *elf, const Elf64_Sym *symbol, const char **data, size_t *length) {
  Elf64_Shdr section;
  if (!elf_section(elf, symbol->st_shndx, &section) || section.sh_type == SHT_NOBITS) return false;
  if (!inside(elf, section.sh_offset, section.sh_size) || symbol->st_value < section.sh_addr) return false;
  uint64_t at = symbol->st_value - section.sh_addr;
  if (at > section.sh_size || symbol->st_size > section.sh_size - at) return false;
  *data = (const char *)elf->bytes + section.sh_offset + at;
  *length = symbol->st_size;
  return true;
}

static bool find_symbol(const Elf *elf, const char *name, const char **data, size_t *length) {
  for (unsigned i = 0; i < elf->header.e_shnum; i++) {
    Elf64_Shdr table, names;
    if (!elf_section(elf, i, &table) || table.sh_type != SHT_SYMTAB) continue;
    if (!inside(elf, table.sh_offset, table.sh_size) || !elf_section(elf, table.sh_link, &names)) continue;
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      if (!elf_read(elf, table.sh_offset + at, &symbol, sizeof symbol) || symbol.st_shndx == SHN_UNDEF)
        continue;
      if (elf_named(elf, &names, symbol.st_name, name)) return symbol_bytes(elf, &symbol, data, length);
    }
    return false;  // an ELF file has one symbol table
  }
  return false;
}

static bool find_section(const Elf *elf, const char *name, const char **data, size_t *length) {
  Elf64_Shdr names, section;
  if (!elf_section(elf, elf->header.e_shstrndx, &names)) return false;
  for (unsigned i = 0; i < elf->header.e_shnum; i++) {
    if (!elf_section(elf, i, &section) || section.sh_type == SHT_NOBITS) continue;
    if (!elf_named(elf, &names, section.sh_name, name) || !inside(elf, section.sh_offset, section.sh_size))
      continue;
    *data = (const char *)elf->bytes + section.sh_offset;
    *length = section.sh_size;
    return true;
  }
  return false;
}

static TileError *open_cubin(Artifact *out) {
  Elf elf;
  if (!elf_open(&elf, out->bytes, out->length))
    return error_new(TILE_INVALID, "%s: an ELF file, but not a cubin (64-bit, for CUDA), or damaged",
                     out->name);
  if (!find_section(&elf, TILE_LAUNCH_INFO_PTX_SECTION, &out->ptx, &out->ptx_length)) out->ptx = NULL;
  if (find_symbol(&elf, TILE_LAUNCH_INFO_SYMBOL, &out->info, &out->info_length)) return NULL;
  return error_new(
      TILE_INVALID,
      "%s: no launch information in this cubin (symbol %s): it was not made by tilec, or is damaged",
      out->name, TILE_LAUNCH_INFO_SYMBOL);
}

// ---- PTX

// A cursor over PTX text that steps over spaces and comments.
typedef struct {
  const char *at, *end;
} Ptx;

static void ptx_skip(Ptx *ptx) {
  while (ptx->at < ptx->end) {
    char c = *ptx->at;
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\0') {
      ptx->at++;
    } else if (ptx->end - ptx->at >= 2 && c == '/' && ptx->at[1] == '/') {
      while (ptx->at < ptx->end && *ptx->at != '\n') ptx->at++;
    } else if (ptx->end - ptx->at >= 2 && c == '/' && ptx->at[1] == '*') {
      ptx->at += 2;
      while (ptx->end - ptx->at >= 2 && !(ptx->at[0] == '*' && ptx->at[1] == '/')) ptx->at++;
      ptx->at = ptx->end - ptx->at >= 2 ? ptx->at + 2 : ptx->end;
    } else {
      return;
    }
  }
}

static bool ptx_take(Ptx *ptx, char c) {
  ptx_skip(ptx);
  if (ptx->at == ptx->end || *ptx->at != c) return false;
  ptx->at++;
  return true;
}

// A decimal or 0x number of at most `limit`.
static bool ptx_number(Ptx *ptx, uint64_t limit, uint64_t *out) {
  ptx_skip(ptx);
  unsigned base = 10;
  if (ptx->end - ptx->at > 2 && ptx->at[0] == '0' && (ptx->at[1] == 'x' || ptx->at[1] == 'X')) {
    base = 16;
    ptx->at += 2;
  }
  const char *start = ptx->at;
  *out = 0;
  for (; ptx->at < ptx->end; ptx->at++) {
    char c = *ptx->at;
    unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                     : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                     : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                            : 99;
    if (digit >= base) break;
    *out = *out * base + digit;
    if (*out > limit) return false;
  }
  return ptx->at > start;
}

static bool identifier_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}

// Moves behind the next word of the text; an empty word is some other character.
static bool ptx_word(Ptx *ptx, const char **word, size_t *length) {
  ptx_skip(ptx);
  if (ptx->at == ptx->end) return false;
  *word = ptx->at;
  while (ptx->at < ptx->end && identifier_char(*ptx->at)) ptx->at++;
  *length = (size_t)(ptx->at - *word);
  if (*length == 0) ptx->at++;
  return true;
}

// The definition `NAME[count] = {`; uses of the name in code are passed over. Leaves the cursor at the first
// value.
static bool find_definition(Ptx *ptx, const char *name, uint64_t *count) {
  const char *word;
  size_t length;
  while (ptx_word(ptx, &word, &length)) {
    if (length != strlen(name) || memcmp(word, name, length) != 0) continue;
    Ptx rest = *ptx;
    if (ptx_take(&rest, '[') && ptx_number(&rest, TILE_LAUNCH_INFO_MAX_BYTES, count) &&
        ptx_take(&rest, ']') && ptx_take(&rest, '=') && ptx_take(&rest, '{')) {
      *ptx = rest;
      return true;
    }
  }
  return false;
}

static TileError *open_ptx(Pool *pool, Artifact *out) {
  Ptx ptx = {(const char *)out->bytes, (const char *)out->bytes + out->length};
  out->ptx = (const char *)out->bytes;
  out->ptx_length = out->length;
  uint64_t count = 0;
  if (!find_definition(&ptx, TILE_LAUNCH_INFO_SYMBOL, &count))
    return error_new(TILE_INVALID,
                     "%s: no launch information in this PTX (constant %s), so nothing says how to launch it; "
                     "tile-emu runs any "
                     "PTX with grid, block and arguments given on its command line",
                     out->name, TILE_LAUNCH_INFO_SYMBOL);
  char *info = pool_alloc(pool, count + 1, 1);
  if (!info) return error_no_memory();
  // PTX fills an initialiser that is too short with zeros (PTX ISA 5.4.4).
  uint64_t value = 0, filled = 0;
  for (; !ptx_take(&ptx, '}'); filled++) {
    bool ok = filled < count && (filled == 0 || ptx_take(&ptx, ',')) && ptx_number(&ptx, 255, &value);
    if (!ok)
      return error_new(TILE_INVALID, "%s: the initialiser of %s is damaged", out->name,
                       TILE_LAUNCH_INFO_SYMBOL);
    info[filled] = (char)value;
  }
  out->info = info;
  out->info_length = count;
  return NULL;
}

// ---- Either

static bool looks_like_ptx(const char *text, size_t length) {
  Ptx ptx = {text, text + length};
  ptx_skip(&ptx);
  static const char version[] = ".version";
  return (size_t)(ptx.end - ptx.at) > strlen(version) && memcmp(ptx.at, version, strlen(version)) == 0;
}

TileError *artifact_open(Pool *pool, const char *name, const void *bytes, size_t length, Artifact *out) {
  *out = (Artifact){.length = length};
  out->name = pool_text(pool, name, strlen(name));
  uint8_t *copy = length < SIZE_MAX ? pool_alloc(pool, length + 1, 1) : NULL;
  if (!out->name || !copy) return error_no_memory();
  if (length) memcpy(copy, bytes, length);
  out->bytes = copy;
  out->cubin = length >= SELFMAG && memcmp(copy, ELFMAG, SELFMAG) == 0;
  if (out->cubin) return open_cubin(out);
  if (looks_like_ptx((const char *)copy, length)) return open_ptx(pool, out);
  return error_new(TILE_INVALID, "%s: neither a cubin (ELF) nor PTX text (.version …)", name);
}

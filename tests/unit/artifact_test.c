// Finds launch information in PTX text and in a cubin built here byte by byte; and survives every truncation
// and mutation.
#include <elf.h>
#include <stdlib.h>

#include "check.h"
#include "core/artifact.h"

static const char info[] = "tile-launch-info 1\n";

// ---- PTX

static TileError *open_text(Pool *pool, const char *text, Artifact *out) {
  return artifact_open(pool, "x.ptx", text, strlen(text), out);
}

static void accepts(Checks *checks, const char *text, const char *want) {
  Pool pool = {0};
  Artifact artifact;
  TileError *error = open_text(&pool, text, &artifact);
  if (CHECK(checks, error == NULL)) {
    CHECK(checks, artifact.info_length == strlen(want) && memcmp(artifact.info, want, strlen(want)) == 0);
    CHECK(checks, !artifact.cubin && artifact.ptx_length == strlen(text));
  } else {
    fprintf(stderr, "  %s\n", tile_error_message(error));
  }
  tile_error_free(error);
  pool_free(&pool);
}

static void refuses(Checks *checks, const void *bytes, size_t length, const char *message) {
  Pool pool = {0};
  Artifact artifact;
  TileError *error = artifact_open(&pool, "x", bytes, length, &artifact);
  CHECK_INT(checks, tile_error_status(error), TILE_INVALID);
  if (!CHECK(checks, strstr(tile_error_message(error), message) != NULL))
    fprintf(stderr, "  %s\n", tile_error_message(error));
  tile_error_free(error);
  pool_free(&pool);
}

static void refuses_text(Checks *checks, const char *text, const char *message) {
  refuses(checks, text, strlen(text), message);
}

static void test_ptx(Checks *checks) {
  accepts(checks, ".version 8.6\n.const .align 1 .b8 __tile_launch_info[3] = {116, 0x69, 108};", "til");
  accepts(checks,
          "// made by x\n/* .. */ .version 8.6\n.visible .const .align 1 .b8 __tile_launch_info[2]\n  =\n{ "
          "97 /*a*/ ,98};\n",
          "ab");
  // A use before the definition, and a longer name, are passed over.
  accepts(checks,
          ".version 8.6 __tile_launch_info; __tile_launch_info2[1] = {9} .b8 __tile_launch_info[1] = {97};",
          "a");
  accepts(checks, ".version 8.6 // .b8 __tile_launch_info[1] = {98};\n .b8 __tile_launch_info[1] = {97};",
          "a");
  refuses_text(checks, ".version 8.6\n", "tile-emu");
  refuses_text(checks, ".version 8.6 .b8 __tile_launch_info[2] = {97, 300};", "damaged");
  refuses_text(checks, ".version 8.6 .b8 __tile_launch_info[2] = {97, 98, 99};", "damaged");
  refuses_text(checks, ".version 8.6 .b8 __tile_launch_info[2] = {97, 98", "damaged");
  refuses_text(checks, ".version 8.6 .b8 __tile_launch_info[99999999999999999999] = {97}",
               "no launch information");
  refuses_text(checks, "", "neither");
  refuses_text(checks, "MZ", "neither");
}

// ---- Cubin: null, .shstrtab, .strtab, .symtab, .nv.constant3, .nv_debug_ptx_txt

enum { SECTIONS = 6 };

typedef struct {
  uint8_t bytes[2048];
  size_t length;
} File;

static size_t add(File *file, const void *data, size_t length) {
  size_t at = (file->length + 7) / 8 * 8;
  memcpy(file->bytes + at, data, length);
  file->length = at + length;
  return at;
}

static Elf64_Shdr section(File *file, unsigned name, unsigned type, const void *data, size_t length) {
  Elf64_Shdr header = {.sh_name = name, .sh_type = type, .sh_size = length};
  header.sh_offset = add(file, data, length);
  return header;
}

static File make_cubin(void) {
  static const char names[] = "\0.shstrtab\0.strtab\0.symtab\0.nv.constant3\0.nv_debug_ptx_txt";
  static const char strings[] = "\0kernel\0__tile_launch_info";
  static const char ptx[] = ".version 8.6\0.target x\0";
  char constants[4 + sizeof info] = "....";
  memcpy(constants + 4, info, sizeof info);
  Elf64_Sym symbols[3] = {{0},
                          {.st_name = 1, .st_shndx = 4},
                          {.st_name = 8, .st_shndx = 4, .st_value = 4, .st_size = sizeof info - 1}};
  File file = {.length = sizeof(Elf64_Ehdr)};
  Elf64_Shdr headers[SECTIONS] = {{0}};
  headers[1] = section(&file, 1, SHT_STRTAB, names, sizeof names);
  headers[2] = section(&file, 11, SHT_STRTAB, strings, sizeof strings);
  headers[3] = section(&file, 19, SHT_SYMTAB, symbols, sizeof symbols);
  headers[3].sh_link = 2;
  headers[4] = section(&file, 27, SHT_PROGBITS, constants, sizeof constants);
  headers[5] = section(&file, 41, SHT_PROGBITS, ptx, sizeof ptx);
  Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1},
                       .e_machine = EM_CUDA,
                       .e_shentsize = sizeof(Elf64_Shdr),
                       .e_shnum = SECTIONS,
                       .e_shstrndx = 1};
  header.e_shoff = add(&file, headers, sizeof headers);
  memcpy(file.bytes, &header, sizeof header);
  return file;
}

static void test_cubin(Checks *checks) {
  File file = make_cubin();
  Pool pool = {0};
  Artifact artifact;
  TileError *error = artifact_open(&pool, "x.cubin", file.bytes, file.length, &artifact);
  if (CHECK(checks, error == NULL)) {
    CHECK(checks, artifact.cubin && artifact.info_length == strlen(info) &&
                      memcmp(artifact.info, info, strlen(info)) == 0);
    CHECK(checks, artifact.ptx && memcmp(artifact.ptx, ".version", 8) == 0);
  }
  tile_error_free(error);
  pool_free(&pool);
  file.bytes[4] = ELFCLASS32;
  refuses(checks, file.bytes, file.length, "not a cubin");
}

// Whatever is found lies inside the copy: reading all of it is what ASan watches.
static unsigned read_all(const Artifact *artifact) {
  unsigned sum = 0;
  for (size_t i = 0; i < artifact->info_length; i++) sum += (unsigned char)artifact->info[i];
  for (size_t i = 0; artifact->ptx && i < artifact->ptx_length; i++) sum += (unsigned char)artifact->ptx[i];
  return sum;
}

static void try_bytes(Checks *checks, const uint8_t *bytes, size_t length) {
  // Exactly sized, so that one byte too far is noticed.
  uint8_t *exact = malloc(length ? length : 1);
  memcpy(exact, bytes, length);
  Pool pool = {0};
  Artifact artifact;
  TileError *error = artifact_open(&pool, "x", exact, length, &artifact);
  CHECK(checks, error || read_all(&artifact) < 1u << 30);
  tile_error_free(error);
  pool_free(&pool);
  free(exact);
}

static void test_damage(Checks *checks) {
  File whole = make_cubin();
  for (size_t length = 0; length <= whole.length; length++) try_bytes(checks, whole.bytes, length);
  static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
  for (size_t at = 0; at < whole.length; at++) {
    for (size_t v = 0; v < sizeof values; v++) {
      File file = whole;
      file.bytes[at] = values[v];
      try_bytes(checks, file.bytes, file.length);
    }
  }
  uint32_t random = 12345;
  for (int round = 0; round < 3000; round++) {
    File file = whole;
    for (int i = 0; i < 6; i++) {
      random = random * 1664525 + 1013904223;
      file.bytes[(random >> 8) % file.length] = (uint8_t)(random >> 24);
    }
    memcpy(file.bytes, whole.bytes, 7);
    try_bytes(checks, file.bytes, file.length);
  }
}

int main(void) {
  Checks checks = {0};
  test_ptx(&checks);
  test_cubin(&checks);
  test_damage(&checks);
  return check_report(&checks);
}

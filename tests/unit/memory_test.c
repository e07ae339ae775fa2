// Loading a module on the emulator where memory runs out, at each allocation in turn: the call says so, what it had
// allocated is given back, and with memory again it works. The program's own malloc counts and refuses (a sanitizer has
// its own: then there is nothing to test here).
#include <stdlib.h>

#include "embedding.h"
#include "tile.h"

#if defined(__SANITIZE_ADDRESS__)
#define REFUSES 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define REFUSES 0
#endif
#endif
#ifndef REFUSES
#define REFUSES 1
#endif

// Of this program: blocks that live, and the number of the allocation from now on that is refused, 0 for none.
static long live, refused;

#if REFUSES
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void __libc_free(void *block);

static void *counted(void *block) {
  live += block != NULL;
  return block;
}

static bool is_refused(void) {
  return refused > 0 && --refused == 0;
}

void *malloc(size_t size) {
  return is_refused() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size) {
  return is_refused() ? NULL : counted(__libc_calloc(count, size));
}

void *realloc(void *block, size_t size) {
  if (is_refused()) return NULL;
  void *bigger = __libc_realloc(block, size);
  return block ? bigger : counted(bigger);
}

void free(void *block) {
  live -= block != NULL;
  __libc_free(block);
}
#endif

static const char info[] =
    "tile-launch-info 1\nentry add\nkernel add\nvariant only\narch sm_100a\nblock 32\ngrid 1 1 1\n"
    "cluster 1 1 1\nshared 0\ntensor x i32 read N\nparam ptr x\nend\n";

// The table is memory of the device that the module brings along.
static const char code[] =
    ".global .align 16 .b8 table[4096];\n.visible .entry add(.param .u64 x) {\n  ret;\n}\n";

// Allocation number n fails in the load. False: there was none of that number. (The C library can do without some.)
static bool load_without(Checks *checks, TileModule *module, TileDevice *device, long n, int *failed) {
  long before = live;
  refused = n;
  TileError *error = tile_module_load(module, device);
  bool asked = refused == 0;
  refused = 0;
  if (!error) return asked;
  CHECK(checks, asked && strstr(tile_error_message(error), "memory") != NULL);
  tile_error_free(error);
  CHECK_INT(checks, live, before);
  embed_ok(checks, tile_module_load(module, device));
  ++*failed;
  return true;
}

static bool test_load(Checks *checks, const char *text, long n, int *failed) {
  long before = live;
  TileDevice *device = NULL;
  TileModule *module = NULL;
  uint64_t address;
  TileDeviceOptions options = {.backend = "emu"};
  if (!embed_ok(checks, tile_device_open(&options, &device))) return false;
  embed_ok(checks, tile_module_open_memory(text, strlen(text), "add.ptx", &module));
  embed_ok(checks, tile_alloc(device, 64, "first", &address));  // the table of device memory stays
  bool asked = load_without(checks, module, device, n, failed);
  tile_module_close(module);
  tile_device_close(device);
  CHECK_INT(checks, live, before);
  return asked;
}

int main(void) {
  Checks checks = {0};
  char *text = embed_file(info, code);
  CHECK(&checks, strlen(text) > sizeof info);
  enum { MOST = 10000, LEAST_FAILED = 5 };
  int failed = 0;
  long n = 1;
  while (REFUSES && n < MOST && test_load(&checks, text, n, &failed)) n++;
  CHECK(&checks, !REFUSES || (n < MOST && failed >= LEAST_FAILED));
  free(text);
  return check_report(&checks);
}

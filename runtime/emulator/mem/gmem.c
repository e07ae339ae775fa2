// Blocks are sorted by base, since bases only grow. The table holds pointers, so that a cached block stays
// valid while others come; a released one is unlinked and its address is never used again.
#include "mem/gmem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mem/space.h"

enum { BLOCK_ALIGN = 256, BLOCK_GAP = 1 << 20 };

struct Gmem {
  GmemBlock **blocks;
  int count, cap;
  uint64_t next;
};

static void block_free(GmemBlock *block) {
  if (!block) return;
  free(block->host);
  free((char *)(uintptr_t)block->name);
  free(block);
}

Gmem *gmem_new(void) {
  Gmem *gmem = calloc(1, sizeof *gmem);
  if (gmem) gmem->next = GLOBAL_BASE;
  return gmem;
}

void gmem_free(Gmem *gmem) {
  if (!gmem) return;
  for (int i = 0; i < gmem->count; i++) block_free(gmem->blocks[i]);
  free(gmem->blocks);
  free(gmem);
}

static bool make_room(Gmem *gmem) {
  if (gmem->count < gmem->cap) return true;
  int cap = gmem->cap ? 2 * gmem->cap : 16;
  GmemBlock **blocks = realloc(gmem->blocks, (size_t)cap * sizeof *blocks);
  if (!blocks) return false;
  gmem->blocks = blocks;
  gmem->cap = cap;
  return true;
}

uint64_t gmem_alloc(Gmem *gmem, uint64_t bytes, const char *name) {
  if (bytes >= PARAM_WINDOW - gmem->next || !make_room(gmem)) return 0;
  GmemBlock *block = calloc(1, sizeof *block);
  if (!block) return 0;
  block->base = gmem->next;
  block->bytes = bytes;
  block->host = calloc(bytes ? bytes : 1, 1);
  block->name = strdup(name ? name : "");
  if (!block->host || !block->name) {
    block_free(block);
    return 0;
  }
  gmem->blocks[gmem->count++] = block;
  gmem->next = (block->base + bytes + 2 * BLOCK_GAP - 1) / BLOCK_GAP * BLOCK_GAP;
  return block->base;
}

// Index of the last block whose base is <= address, or -1.
static int block_below(const Gmem *gmem, uint64_t address) {
  int low = 0, high = gmem->count;
  while (low < high) {
    int middle = low + (high - low) / 2;
    if (gmem->blocks[middle]->base <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low - 1;
}

bool gmem_release(Gmem *gmem, uint64_t base) {
  int index = block_below(gmem, base);
  if (index < 0 || gmem->blocks[index]->base != base) return false;
  block_free(gmem->blocks[index]);
  gmem->count--;
  memmove(gmem->blocks + index, gmem->blocks + index + 1,
          (size_t)(gmem->count - index) * sizeof *gmem->blocks);
  return true;
}

uint64_t gmem_mark(const Gmem *gmem) {
  return gmem->next;
}

void gmem_reset(Gmem *gmem, uint64_t mark) {
  while (gmem->count > 0 && gmem->blocks[gmem->count - 1]->base >= mark)
    block_free(gmem->blocks[--gmem->count]);
  gmem->next = mark;
}

static bool block_holds(const GmemBlock *block, uint64_t address, uint64_t bytes) {
  return address >= block->base && bytes <= block->bytes && address - block->base <= block->bytes - bytes;
}

const GmemBlock *gmem_block(const Gmem *gmem, uint64_t address, uint64_t bytes) {
  int index = block_below(gmem, address);
  if (index < 0) return NULL;
  const GmemBlock *block = gmem->blocks[index];
  return bytes == 0 || block_holds(block, address, bytes) ? block : NULL;
}

const GmemBlock *gmem_named(const Gmem *gmem, const char *name, size_t length) {
  for (int i = gmem->count - 1; i >= 0; i--) {
    const char *have = gmem->blocks[i]->name;
    if (strlen(have) == length && memcmp(have, name, length) == 0) return gmem->blocks[i];
  }
  return NULL;
}

uint8_t *gmem_find(const Gmem *gmem, uint64_t address, uint64_t bytes, const GmemBlock **hint) {
  const GmemBlock *block = *hint;
  if (!block || !block_holds(block, address, bytes)) {
    int index = block_below(gmem, address);
    if (index < 0 || !block_holds(gmem->blocks[index], address, bytes)) return NULL;
    *hint = block = gmem->blocks[index];
  }
  return block->host + (address - block->base);
}

void gmem_explain(const Gmem *gmem, uint64_t address, char *text, size_t size) {
  const GmemBlock *near = gmem_block(gmem, address, 0);
  if (address < 4096)
    snprintf(text, size, "a null pointer");
  else if (near == NULL)
    snprintf(text, size, "no allocation lies below");
  else
    snprintf(text, size,
             "the nearest allocation below, '%.40s', has %llu bytes, the access begins at its byte %llu",
             near->name != NULL ? near->name : "?", (unsigned long long)near->bytes,
             (unsigned long long)(address - near->base));
}

// Pages of cells in a hash table, with the page of the last access at hand.
#include "check/shadow.h"

#include <string.h>

enum { PAGE_CELLS = 256 };

typedef struct {
  uint64_t number;  // 1 + address / (PAGE_CELLS * GRANULE); 0: free
  Cell *cells;
} Page;

struct Shadow {
  Arena *arena;
  Page *pages;
  size_t cap, used;
  Page last;
};

Shadow *shadow_new(Arena *arena) {
  Shadow *shadow = ARENA_NEW(arena, Shadow);
  shadow->arena = arena;
  shadow->cap = 1024;
  shadow->pages = ARENA_ARRAY(arena, Page, shadow->cap);
  return shadow;
}

static Page *find(const Shadow *shadow, uint64_t number) {
  size_t i = (size_t)(number * 0x9e3779b97f4a7c15u >> 20) & (shadow->cap - 1);
  while (shadow->pages[i].number != 0 && shadow->pages[i].number != number) i = (i + 1) & (shadow->cap - 1);
  return &shadow->pages[i];
}

static void grow(Shadow *shadow) {
  Page *old = shadow->pages;
  size_t cap = shadow->cap;
  shadow->cap *= 4;
  shadow->pages = ARENA_ARRAY(shadow->arena, Page, shadow->cap);
  for (size_t i = 0; i < cap; i++)
    if (old[i].number != 0) *find(shadow, old[i].number) = old[i];
}

Cell *shadow_cell(Shadow *shadow, uint64_t address) {
  uint64_t number = 1 + address / (PAGE_CELLS * GRANULE);
  size_t index = (size_t)(address / GRANULE % PAGE_CELLS);
  if (shadow->last.number == number) return &shadow->last.cells[index];
  if (shadow->used * 2 > shadow->cap) grow(shadow);
  Page *page = find(shadow, number);
  if (page->number == 0) {
    *page = (Page){number, ARENA_ARRAY(shadow->arena, Cell, PAGE_CELLS)};
    shadow->used++;
  }
  shadow->last = *page;
  return &page->cells[index];
}

static bool same_moment(const Access *a, const Access *b) {
  return a->actor == b->actor && a->clock == b->clock && a->cluster == b->cluster;
}

// A slot that the access may take: its own actor's earlier read of no other bytes, a free one, one that is
// over for it.
static int slot_for(const Cell *cell, const Access *access, const Clock *now) {
  for (int i = 0; i < READERS; i++) {
    const Access *r = &cell->reads[i];
    if (r->clock == 0) return i;
    bool covers = (r->mask & ~access->mask) == 0, same_cluster = r->cluster == access->cluster;
    if (same_cluster && covers && r->actor == access->actor) return i;
    if (same_cluster && covers && clock_get(now, r->actor) >= r->clock) return i;
  }
  return (int)(access->clock % READERS);
}

void cell_note_read(Cell *cell, const Access *access, const Clock *now) {
  for (int i = 0; i < READERS; i++) {
    if (!same_moment(&cell->reads[i], access)) continue;
    cell->reads[i].mask |= access->mask;
    return;
  }
  cell->reads[slot_for(cell, access, now)] = *access;
}

void cell_note_write(Cell *cell, const Access *access) {
  uint16_t before = same_moment(&cell->write, access) ? cell->write.mask : 0;
  cell->write = *access;
  cell->write.mask |= before;
  for (int i = 0; i < READERS; i++)
    if (cell->reads[i].clock != 0 && (cell->reads[i].mask & ~access->mask) == 0) cell->reads[i].clock = 0;
}

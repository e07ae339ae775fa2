// Sixteen bytes a line for byte-addressed memories, a lane a line for tensor memory.
#include "trace/dump.h"

#include <stdlib.h>
#include <string.h>

#include "async/async_internal.h"
#include "num/num.h"

static const char *const type_names[] = {
    [DUMP_HEX] = "hex",           [DUMP_I32] = "i32", [DUMP_U8] = "u8",
    [DUMP_F32] = "f32",           [DUMP_F16] = "f16", [DUMP_BF16] = "bf16",
    [DUMP_MBARRIER] = "mbarrier",
};
enum { TYPES = sizeof type_names / sizeof *type_names, CELLS_A_LINE = 8 };

// ---- command line

static bool number(const char **at, uint64_t *value) {
  char *end;
  if (**at < '0' || **at > '9') return false;
  *value = strtoull(*at, &end, 0);
  *at = end;
  return true;
}

static bool take(const char **at, char c) {
  if (**at != c) return false;
  ++*at;
  return true;
}

static const Variable *find_variable(const Module *module, const Function *entry, VariableSpace space,
                                     const char *name, size_t length) {
  for (int i = 0; i < module->nvariables; i++) {
    const Variable *v = module->variables[i];
    bool visible = v->owner == NULL || v->owner == entry;
    if (visible && v->space == space && strlen(v->name) == length && memcmp(v->name, name, length) == 0)
      return v;
  }
  return NULL;
}

// The dynamic array begins behind all statics.
static uint64_t shared_address(const Module *module, const Function *entry, const Variable *v) {
  if (v->bytes > 0 || !v->is_extern) return v->address;
  uint64_t end = SHARED_FIRST + module->shared_bytes + entry->shared_bytes, align = entry->shared_align;
  return (end + align - 1) / align * align;
}

static bool find_start(const Module *module, const Function *entry, const Gmem *gmem, Space space,
                       const char **at, uint64_t *address) {
  if (number(at, address)) return true;
  size_t length = strcspn(*at, "+:");
  const char *name = *at;
  *at += length;
  const Variable *v =
      find_variable(module, entry, space == SPACE_SHARED ? VAR_SHARED : VAR_GLOBAL, name, length);
  if (v != NULL) {
    *address = space == SPACE_SHARED ? shared_address(module, entry, v) : v->address;
    return true;
  }
  const GmemBlock *block = space == SPACE_GLOBAL ? gmem_named(gmem, name, length) : NULL;
  if (block != NULL) *address = block->base;
  return block != NULL;
}

// START[+OFFSET]+BYTES
static bool parse_bytes(const Module *module, const Function *entry, const Gmem *gmem, const char **at,
                        DumpRange *out) {
  uint64_t more;
  if (!find_start(module, entry, gmem, out->space, at, &out->address)) return false;
  if (!take(at, '+') || !number(at, &out->bytes)) return false;
  if (take(at, '+')) {
    if (!number(at, &more)) return false;
    out->address += out->bytes;
    out->bytes = more;
  }
  return out->bytes > 0;
}

static bool parse_span(const char **at, int limit, int *first, int *count) {
  uint64_t from, to;
  if (!number(at, &from)) return false;
  to = from;
  if (take(at, '-') && !number(at, &to)) return false;
  if (from > to || to >= (uint64_t)limit) return false;
  *first = (int)from;
  *count = (int)(to - from + 1);
  return true;
}

static bool parse_range(const Module *module, const Function *entry, const Gmem *gmem, const char *at,
                        DumpRange *out) {
  size_t length = strcspn(at, ":@");
  bool shared = length == 6 && memcmp(at, "shared", 6) == 0, tmem = length == 4 && memcmp(at, "tmem", 4) == 0;
  bool global = length == 6 && memcmp(at, "global", 6) == 0;
  uint64_t cta = 0;
  at += length;
  out->space = shared ? SPACE_SHARED : tmem ? SPACE_TMEM : SPACE_GLOBAL;
  if ((shared || tmem) && take(&at, '@') && (!number(&at, &cta) || cta > 0x7fffffff)) return false;
  out->cta = (uint32_t)cta;
  if (!(shared || tmem || global) || !take(&at, ':')) return false;
  if (tmem) {
    if (!parse_span(&at, TMEM_COLUMNS, &out->column, &out->columns) || !take(&at, '/')) return false;
    if (!parse_span(&at, TMEM_LANES, &out->lane, &out->lanes)) return false;
  } else if (!parse_bytes(module, entry, gmem, &at, out)) {
    return false;
  }
  if (*at == '\0') return true;
  for (int i = 0; i < TYPES; i++) {
    if (*at != ':' || strcmp(at + 1, type_names[i]) != 0) continue;
    out->type = (DumpType)i;
    return true;
  }
  return false;
}

const char *dump_parse(Arena *arena, const Module *module, const Function *entry, const Gmem *gmem,
                       const char *text, DumpRange *out) {
  *out = (DumpRange){.text = text};
  if (parse_range(module, entry, gmem, text, out)) return NULL;
  return text_printf(
      arena,
      "--dump %s: expected shared[@CTA]:START+BYTES, tmem[@CTA]:C0-C1/L0-L1 or "
      "global:START+BYTES, with :hex, i32, u8, f32, f16, bf16 or mbarrier behind it if wanted; START is a "
      "number or a variable's or array's name, with or without +OFFSET",
      text);
}

// ---- figures

static void figure(TextBuf *out, DumpType type, const uint8_t *word) {
  uint32_t bits;
  uint16_t low, high;
  memcpy(&bits, word, 4);
  memcpy(&low, word, 2);
  memcpy(&high, word + 2, 2);
  switch (type) {
  case DUMP_MBARRIER:  // eight bytes: show_mbarriers
  case DUMP_HEX:
    textbuf_printf(out, " %08x", bits);
    break;
  case DUMP_I32:
    textbuf_printf(out, " %d", (int32_t)bits);
    break;
  case DUMP_U8:
    textbuf_printf(out, " %u %u %u %u", word[0], word[1], word[2], word[3]);
    break;
  case DUMP_F32:
    textbuf_printf(out, " %.9g", (double)num_f32_from_bits(bits));
    break;
  case DUMP_F16:
    textbuf_printf(out, " %g %g", (double)num_f16_to_f32(low), (double)num_f16_to_f32(high));
    break;
  case DUMP_BF16:
    textbuf_printf(out, " %g %g", (double)num_bf16_to_f32(low), (double)num_bf16_to_f32(high));
    break;
  }
}

// A last word that the range cuts is padded with zeros.
static void figures(TextBuf *out, DumpType type, const uint8_t *from, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; i += 4) {
    uint8_t word[4] = {0};
    memcpy(word, from + i, bytes - i < 4 ? bytes - i : 4);
    figure(out, type, word);
  }
  textbuf_puts(out, "\n");
}

static void show_mbarriers(TextBuf *out, const DumpRange *range, const uint8_t *from) {
  for (uint64_t i = 0; i + 8 <= range->bytes; i += 8) {
    uint64_t word;
    memcpy(&word, from + i, sizeof word);
    MbarrierState state = mbarrier_decode(word);
    textbuf_printf(out, "  0x%llx: ", (unsigned long long)(range->address + i));
    if (state.valid)
      textbuf_printf(out, "phase of parity %u, %u of %u arrivals missing, %lld bytes outstanding\n",
                     state.phase, state.pending, state.expected, (long long)state.tx);
    else
      textbuf_puts(out, "no mbarrier\n");
  }
}

static void show_bytes(TextBuf *out, const DumpRange *range, const uint8_t *from) {
  if (range->type == DUMP_MBARRIER) {
    show_mbarriers(out, range, from);
    return;
  }
  for (uint64_t i = 0; i < range->bytes; i += 16) {
    textbuf_printf(out, "  0x%llx:", (unsigned long long)(range->address + i));
    figures(out, range->type, from + i, range->bytes - i < 16 ? range->bytes - i : 16);
  }
}

static void show_cells(TextBuf *out, const DumpRange *range, const Tmem *tmem) {
  for (int lane = range->lane; lane < range->lane + range->lanes; lane++) {
    for (int c = 0; c < range->columns; c += CELLS_A_LINE) {
      int count = range->columns - c < CELLS_A_LINE ? range->columns - c : CELLS_A_LINE;
      textbuf_printf(out, "  lane %d, column %d:", lane, range->column + c);
      figures(out, range->type, (const uint8_t *)tmem_cell(tmem, lane, range->column + c),
              4u * (unsigned)count);
    }
  }
}

static void show(TextBuf *out, const DumpRange *range, const Cta *cta, const char *when) {
  textbuf_printf(out, "%s, CTA (%u,%u,%u), %s\n", range->text, cta->id[0], cta->id[1], cta->id[2], when);
  if (range->space == SPACE_SHARED) {
    if (range->address > cta->smem_bytes || range->bytes > cta->smem_bytes - range->address)
      textbuf_printf(out, "  the CTA's shared memory ends at 0x%x\n", cta->smem_bytes);
    else
      show_bytes(out, range, cta->smem + range->address);
    return;
  }
  const CtaAsync *async = cta_async(cta);
  if (async == NULL || async->tmem.cells == NULL)
    textbuf_puts(out, "  the CTA has not allocated tensor memory\n");
  else
    show_cells(out, range, &async->tmem);
}

void dump_global(TextBuf *out, const Gmem *gmem, const DumpRange *range) {
  const GmemBlock *hint = NULL;
  const uint8_t *from = gmem_find(gmem, range->address, range->bytes, &hint);
  textbuf_printf(out, "%s\n", range->text);
  if (from == NULL)
    textbuf_puts(out, "  not all of it is allocated global memory\n");
  else
    show_bytes(out, range, from);
}

// ---- observer

static void show_cta(Machine *machine, const Cta *cta, const char *when) {
  const Watch *watch = &machine->launch->watch;
  for (int i = 0; i < watch->nranges; i++) {
    DumpRange *range = &watch->ranges[i];
    if (range->space == SPACE_GLOBAL || range->cta != cta->linear) continue;
    show(machine->dump, range, cta, when);
    range->shown = true;
  }
}

static void on_event(void *self, Machine *machine, const Event *event) {
  (void)self;
  if (event->kind == EVENT_CTA_END) show_cta(machine, event->cta, "at its end");
  if (event->kind != EVENT_STOP) return;
  for (int i = 0; i < machine->nclusters; i++) {
    const Cluster *cluster = machine->clusters[i];
    for (int c = 0; c < cluster->nctas; c++)
      if (!cluster->ctas[c].ended) show_cta(machine, &cluster->ctas[c], "where it stopped");
  }
}

const Observer dump_observer = {
    .name = "dump", .events = 1u << EVENT_CTA_END | 1u << EVENT_STOP, .on_event = on_event};

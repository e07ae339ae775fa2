// The instruction table: families of isa.def in order, roots found by longest dotted prefix, modifiers by
// spelling or by pattern.
#include "ptx/inst.h"

#include <stdio.h>
#include <string.h>

#define ISA(family) extern const InstDef family[];
#include "ptx/isa.def"
#undef ISA

static const InstDef *const families[] = {
#define ISA(family) family,
#include "ptx/isa.def"
#undef ISA
};

typedef struct {
  const char *spelling;
  uint8_t length;
  uint8_t mod_class;
} ModRow;

static const ModRow mod_rows[MOD_COUNT] = {
#define MOD(id, spelling, class) [MOD_##id] = {spelling, sizeof(spelling) - 1, MC_##class},
#include "ptx/mods.def"
#undef MOD
};

static const struct {
  const char *name;
  uint8_t bits;
} type_rows[PT_COUNT] = {
    [PT_none] = {"", 0},
    [PT_pred] = {"pred", 1},
    [PT_b1] = {"b1", 1},
    [PT_b4] = {"b4", 4},
    [PT_b6] = {"b6", 6},
    [PT_b8] = {"b8", 8},
    [PT_b16] = {"b16", 16},
    [PT_b32] = {"b32", 32},
    [PT_b64] = {"b64", 64},
    [PT_b128] = {"b128", 128},
    [PT_u4] = {"u4", 4},
    [PT_s4] = {"s4", 4},
    [PT_u8] = {"u8", 8},
    [PT_u16] = {"u16", 16},
    [PT_u32] = {"u32", 32},
    [PT_u64] = {"u64", 64},
    [PT_s8] = {"s8", 8},
    [PT_s16] = {"s16", 16},
    [PT_s32] = {"s32", 32},
    [PT_s64] = {"s64", 64},
    [PT_u16x2] = {"u16x2", 32},
    [PT_s16x2] = {"s16x2", 32},
    [PT_f16] = {"f16", 16},
    [PT_f16x2] = {"f16x2", 32},
    [PT_bf16] = {"bf16", 16},
    [PT_bf16x2] = {"bf16x2", 32},
    [PT_tf32] = {"tf32", 32},
    [PT_f32] = {"f32", 32},
    [PT_f32x2] = {"f32x2", 64},
    [PT_f64] = {"f64", 64},
    [PT_e4m3] = {"e4m3", 8},
    [PT_e5m2] = {"e5m2", 8},
    [PT_e3m2] = {"e3m2", 6},
    [PT_e2m3] = {"e2m3", 6},
    [PT_e2m1] = {"e2m1", 4},
    [PT_ue8m0] = {"ue8m0", 8},
    [PT_ue4m3] = {"ue4m3", 8},
    [PT_e4m3x2] = {"e4m3x2", 16},
    [PT_e5m2x2] = {"e5m2x2", 16},
    [PT_e3m2x2] = {"e3m2x2", 16},
    [PT_e2m3x2] = {"e2m3x2", 16},
    [PT_e2m1x2] = {"e2m1x2", 8},
    [PT_ue8m0x2] = {"ue8m0x2", 16},
    [PT_e4m3x4] = {"e4m3x4", 32},
    [PT_e5m2x4] = {"e5m2x4", 32},
    [PT_e3m2x4] = {"e3m2x4", 32},
    [PT_e2m3x4] = {"e2m3x4", 32},
    [PT_e2m1x4] = {"e2m1x4", 16},
};

int ptx_type_bits(PtxType type) {
  return type_rows[type].bits;
}
const char *ptx_type_name(PtxType type) {
  return type_rows[type].name;
}

bool ptx_type_signed(PtxType type) {
  return type == PT_s8 || type == PT_s16 || type == PT_s32 || type == PT_s64 || type == PT_s16x2 ||
         type == PT_s4;
}

bool ptx_type_float(PtxType type) {
  return type >= PT_f16;
}

// Tables are searched for every word of a text: most rows differ in the first character.
static inline bool same_word(const char *name, const char *word, int length) {
  int i = 0;
  while (i < length && name[i] == word[i] && name[i] != '\0') i++;
  return i == length && name[i] == '\0';
}

PtxType ptx_type_find(const char *word, int length) {
  for (int t = PT_none + 1; t < PT_COUNT; t++) {
    if (same_word(type_rows[t].name, word, length)) return (PtxType)t;
  }
  return PT_none;
}

Mod inst_mod_in(const Inst *inst, ModClass mod_class) {
  for (int m = 0; m < MOD_COUNT; m++) {
    if (mod_rows[m].mod_class == mod_class && inst_has(inst, (Mod)m)) return (Mod)m;
  }
  return MOD_COUNT;
}

const char *mod_spelling(Mod mod) {
  return mod < MOD_COUNT ? mod_rows[mod].spelling : "?";
}

static bool all_digits(const char *text, int length, int *value) {
  *value = 0;
  if (length < 1 || length > 5) return false;
  for (int i = 0; i < length; i++) {
    if (text[i] < '0' || text[i] > '9') return false;
    *value = *value * 10 + text[i] - '0';
  }
  return true;
}

// m64n64k16, m8n8, m16n8k8
static bool shape_word(Inst *inst, const char *word, int length) {
  if (word[0] != 'm') return false;
  int axis = -1, i = 0;
  uint16_t shape[3] = {0, 0, 0};
  while (i < length) {
    int next = word[i] == 'm' ? 0 : word[i] == 'n' ? 1 : word[i] == 'k' ? 2 : -1, begin = ++i, value;
    if (next <= axis) return false;
    while (i < length && word[i] >= '0' && word[i] <= '9') i++;
    if (!all_digits(word + begin, i - begin, &value)) return false;
    axis = next;
    shape[axis] = (uint16_t)value;
  }
  memcpy(inst->shape, shape, sizeof shape);
  return true;
}

// collector::b0::fill and its kin: four buffers, four uses, all hints.
static bool collector_b_word(Inst *inst, const char *word, int length) {
  static const char *const uses[] = {"fill", "use", "lastuse", "discard"};
  if (length < 15 || memcmp(word, "collector::b", 12) != 0 || word[12] < '0' || word[12] > '3' ||
      word[13] != ':' || word[14] != ':')
    return false;
  for (int i = 0; i < 4; i++) {
    if (length - 15 != (int)strlen(uses[i]) || memcmp(word + 15, uses[i], strlen(uses[i])) != 0) continue;
    inst->mods[MOD_collector_b >> 6] |= (uint64_t)1 << (MOD_collector_b & 63);
    return true;
  }
  return false;
}

static bool pattern_word(Inst *inst, const char *word, int length) {
  int value;
  if (shape_word(inst, word, length) || collector_b_word(inst, word, length)) return true;
  if (word[0] == 'x' && all_digits(word + 1, length - 1, &value)) return inst->count = (uint16_t)value, true;
  if (word[0] == 'v' && all_digits(word + 1, length - 1, &value)) {
    inst->vec = (uint8_t)value;
    return value == 2 || value == 4 || value == 8;
  }
  if (length == 2 && word[1] == 'd' && word[0] >= '1' && word[0] <= '5') {
    inst->dims = (uint8_t)(word[0] - '0');
    return true;
  }
  return false;
}

bool inst_add_modifier(Inst *inst, const char *word, int length) {
  PtxType type = ptx_type_find(word, length);
  if (type != PT_none) {
    if (inst->ntypes == 4) return false;
    inst->types[inst->ntypes++] = (uint8_t)type;
    return true;
  }
  for (int m = 0; m < MOD_COUNT; m++) {
    if (mod_rows[m].length != length || memcmp(mod_rows[m].spelling, word, (size_t)length) != 0) continue;
    inst->mods[m >> 6] |= (uint64_t)1 << (m & 63);
    if (mod_rows[m].mod_class == MC_SPACE && inst->nspaces < 3) inst->spaces[inst->nspaces++] = (uint16_t)m;
    return true;
  }
  return pattern_word(inst, word, length);
}

// The row of exactly this root, or NULL.
static const InstDef *exact_root(const char *name, int length) {
  for (size_t f = 0; f < sizeof families / sizeof families[0]; f++) {
    for (const InstDef *def = families[f]; def->name != NULL; def++) {
      if (same_word(def->name, name, length)) return def;
    }
  }
  return NULL;
}

int inst_find_root(const char *mnemonic, int length, const InstDef **first) {
  for (int n = length; n > 0; n--) {
    if (n < length && mnemonic[n] != '.') continue;
    *first = exact_root(mnemonic, n);
    if (*first != NULL) return n;
  }
  return 0;
}

// The first row of the root, at or after `first` in its family, that takes the instruction's shape.
static const InstDef *choose_def(const Inst *inst, const InstDef *first) {
  int length = (int)strlen(first->name);
  for (size_t f = 0; f < sizeof families / sizeof families[0]; f++) {
    for (const InstDef *def = families[f]; def->name != NULL; def++) {
      if (!same_word(def->name, first->name, length)) continue;
      if (def->accepts == NULL || def->accepts(inst)) return def;
    }
  }
  return NULL;
}

static void fail(InstError *error, const char *what, const char *word, int length) {
  snprintf(error->text, sizeof error->text, "%s '%.*s'", what, length, word);
}

static bool check_classes(const Inst *inst, InstError *error) {
  for (int m = 0; m < MOD_COUNT; m++) {
    if (!inst_has(inst, (Mod)m) || inst->def->classes >> mod_rows[m].mod_class & 1) continue;
    snprintf(error->text, sizeof error->text, "modifier '.%s' is not supported for '%s'",
             mod_rows[m].spelling, inst->def->name);
    return false;
  }
  const char *what = inst->vec > 1 && !(inst->def->classes & MC(VECTOR))       ? "vectors"
                     : inst->dims > 0 && !(inst->def->classes & MC(DIM))       ? "dimensions"
                     : inst->count > 0 && !(inst->def->classes & MC(COUNT))    ? "counts"
                     : inst->shape[0] > 0 && !(inst->def->classes & MC(SHAPE)) ? "shapes"
                                                                               : NULL;
  if (what != NULL) snprintf(error->text, sizeof error->text, "'%s' takes no %s", inst->def->name, what);
  return what == NULL;
}

bool inst_decode(Inst *inst, const char *mnemonic, int length, int sm, InstError *error) {
  const InstDef *first = NULL;
  inst->vec = 1;
  int root = inst_find_root(mnemonic, length, &first);
  if (root == 0) return fail(error, "unknown instruction", mnemonic, length), false;
  for (int i = root; i < length;) {
    int begin = ++i;
    while (i < length && mnemonic[i] != '.') i++;
    if (!inst_add_modifier(inst, mnemonic + begin, i - begin)) {
      return fail(error, "unknown modifier", mnemonic + begin - 1, i - begin + 1), false;
    }
  }
  inst->def = choose_def(inst, first);
  if (inst->def == NULL) return fail(error, "unsupported form", mnemonic, length), false;
  if (sm < inst->def->min_sm) {
    snprintf(error->text, sizeof error->text, "'%s' needs sm_%d, the module is for sm_%d", inst->def->name,
             inst->def->min_sm, sm);
    return false;
  }
  return check_classes(inst, error);
}

bool inst_select(Inst *inst, InstError *error) {
  inst->exec = inst->def->exec;
  const char *why = inst->def->select != NULL ? inst->def->select(inst) : NULL;
  if (why == NULL && inst->exec == NULL) why = "no handler";
  if (why == NULL) return true;
  snprintf(error->text, sizeof error->text, "%s: %s", inst->def->name, why);
  return false;
}

// Lookup, and the operand check that follows from the tables alone: how many, in which space, of which rank,
// and that every letter of the index maps has one extent.
#include "ops/ops.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ops/ops_internal.h"

enum {
  CORE_COUNT = 0
#define CORE_OP(name, group) +1
#include "ops/core.def"
#undef CORE_OP
};

static const OpDef *const tile_ops[] = {
#define TILE_OP(name) &op_##name,
#include "ops/tile.def"
#undef TILE_OP
};

const char *const op_path_names[PATH_COUNT + 1] = {
    [PATH_NONE] = "none",
    [PATH_THREADS] = "threads",
    [PATH_TMA_LOAD] = "tma_load",
    [PATH_TMA_STORE] = "tma_store",
    [PATH_TMEM_LOAD] = "tmem_load",
    [PATH_TMEM_STORE] = "tmem_store",
    [PATH_MMA] = "mma",
    [PATH_WGMMA] = "wgmma",
    [PATH_PANELS] = "panels",
};

const OpDef *op_def(OpKind kind) {
  assert((unsigned)kind < OP_COUNT);
  return (int)kind < CORE_COUNT ? op_core_def(kind) : tile_ops[kind - CORE_COUNT];
}

bool op_lookup(Str name, OpKind *out) {
  for (int i = 0; i < OP_COUNT; i++) {
    if (!str_is(name, op_def((OpKind)i)->name)) continue;
    *out = (OpKind)i;
    return true;
  }
  return false;
}

int op_attr_index(const OpDef *def, const char *name) {
  for (int i = 0; i < OP_MAX_ATTRS && def->attrs[i].name; i++)
    if (strcmp(def->attrs[i].name, name) == 0) return i;
  return -1;
}

const char *op_operand_name(const OpCall *call, int i) {
  const OpDef *def = op_def(call->kind);
  if (call->names[i]) return call->names[i];
  return i < def->noperands ? def->operands[i].name : "operand";
}

ShapeText op_shape_text(const Type *type) {
  ShapeText out = {"a scalar"};
  if (type->kind != TYPE_BUFFER) return out;
  size_t used = 0;
  for (int i = 0; i < type->rank && used < sizeof out.text - 24; i++) {
    const char *cross = i ? "x" : "";
    char *at = out.text + used;
    size_t room = sizeof out.text - used;
    used += (size_t)(type->shape[i] < 0 ? snprintf(at, room, "%s?", cross)
                                        : snprintf(at, room, "%s%" PRId64, cross, type->shape[i]));
  }
  return out;
}

bool op_operand_index(const OpDef *def, int operand, const int64_t *attrs, char out[TYPE_MAX_RANK + 1]) {
  const OperandDef *row = &def->operands[operand];
  if (operand >= def->noperands || !row->index) return false;
  snprintf(out, TYPE_MAX_RANK + 1, "%s", row->index);
  int swap = row->transposed_by ? op_attr_index(def, row->transposed_by) : -1;
  if (swap >= 0 && attrs[swap]) {
    out[0] = row->index[1];
    out[1] = row->index[0];
  }
  return true;
}

// "shared", "shared or tmem", "global, shared or fragment"
static void spaces_text(unsigned spaces, char *out, size_t room) {
  size_t used = 0;
  out[0] = 0;
  for (int i = 0; i < SPACE_COUNT && used < room; i++) {
    if (!(spaces & 1u << i)) continue;
    bool last = spaces >> i == 1;
    const char *join = used == 0 ? "" : last ? " or " : ", ";
    used += (size_t)snprintf(out + used, room - used, "%s%s", join, space_name((Space)i));
  }
}

// Absent operands at the end may be left out.
static bool check_count(const OpCall *call, const OpDef *def) {
  int least = def->noperands;
  while (least > 0 && def->operands[least - 1].optional) least--;
  bool enough = call->nargs >= least && (def->variadic || call->nargs <= def->noperands);
  if (enough) return true;
  diag_error(call->ds, DIAG_operand_count, call->span, "%s takes %s%d operands, %d given", def->name,
             def->variadic ? "at least " : "", def->noperands, call->nargs);
  return false;
}

static bool check_buffer_operand(const OpCall *call, const OpDef *def, int i) {
  const OperandDef *row = &def->operands[i];
  const Type *type = call->types[i];
  if (type->kind != TYPE_BUFFER) {
    diag_error(call->ds, DIAG_operand_type, call->spans[i], "operand %s of %s must be a buffer", row->name,
               def->name);
    return false;
  }
  if (!(row->spaces & 1u << type->space)) {
    char allowed[96];
    spaces_text(row->spaces, allowed, sizeof allowed);
    diag_error(call->ds, DIAG_operand_space, call->spans[i],
               "%s, operand %s of %s, is in %s memory; it must be in %s memory", op_operand_name(call, i),
               row->name, def->name, space_name(type->space), allowed);
    return false;
  }
  char letters[TYPE_MAX_RANK + 1];
  if (!op_operand_index(def, i, call->attrs, letters) || (int)strlen(letters) == type->rank) return true;
  diag_error(call->ds, DIAG_operand_rank, call->spans[i],
             "%s is %s, of rank %d; operand %s of %s has rank %d", op_operand_name(call, i),
             op_shape_text(type).text, type->rank, row->name, def->name, (int)strlen(letters));
  return false;
}

static bool check_operand(const OpCall *call, const OpDef *def, int i) {
  const OperandDef *row = &def->operands[i];
  const Type *type = call->types[i];
  if (!type) {
    if (row->optional) return true;
    diag_error(call->ds, DIAG_operand_count, call->span, "operand %s of %s is missing", row->name, def->name);
    return false;
  }
  if (row->spaces) return check_buffer_operand(call, def, i);
  if (type->kind != TYPE_BUFFER) return true;  // scalar, cell or token: the verifier knows which
  diag_error(call->ds, DIAG_operand_type, call->spans[i], "operand %s of %s must be a scalar; %s is a buffer",
             row->name, def->name, op_operand_name(call, i));
  return false;
}

typedef struct {
  int operand, dim;
} LetterPlace;  // where a letter was seen first

// Where reading an operand the other way round would make the extents equal.
static bool suggest_transpose(const OpCall *call, const OpDef *def, LetterPlace place, int64_t wanted) {
  const OperandDef *row = &def->operands[place.operand];
  char letters[TYPE_MAX_RANK + 1];
  if (!row->transposed_by || call->types[place.operand]->shape[1 - place.dim] != wanted) return false;
  if (!op_operand_index(def, place.operand, call->attrs, letters)) return false;
  diag_hint(call->ds, "operand %s of %s is read as [%c, %c]; transposed, it would fit", row->name, def->name,
            letters[0], letters[1]);
  return true;
}

static bool check_letter(const OpCall *call, const OpDef *def, char letter, LetterPlace first,
                         LetterPlace here) {
  const Type *a = call->types[first.operand], *b = call->types[here.operand];
  int64_t x = a->shape[first.dim], y = b->shape[here.dim];
  if (x == y || x < 0 || y < 0) return true;
  diag_error(call->ds, DIAG_shapes_disagree, call->span, "%s is %s, %s is %s: %c is %" PRId64 " and %" PRId64,
             op_operand_name(call, first.operand), op_shape_text(a).text, op_operand_name(call, here.operand),
             op_shape_text(b).text, letter - 'a' + 'A', x, y);
  if (!suggest_transpose(call, def, here, x)) suggest_transpose(call, def, first, y);
  return false;
}

static bool check_extents(const OpCall *call, const OpDef *def) {
  LetterPlace seen[26];
  bool is_seen[26] = {false}, ok = true;
  for (int i = 0; i < def->noperands; i++) {
    char letters[TYPE_MAX_RANK + 1];
    if (!call->types[i] || !op_operand_index(def, i, call->attrs, letters)) continue;
    for (int d = 0; letters[d]; d++) {
      int letter = letters[d] - 'a';
      LetterPlace here = {i, d};
      if (is_seen[letter]) {
        if (!check_letter(call, def, letters[d], seen[letter], here)) ok = false;
      } else {
        is_seen[letter] = true;
        seen[letter] = here;
      }
    }
  }
  return ok;
}

bool op_check(const OpCall *call) {
  const OpDef *def = op_def(call->kind);
  if (!check_count(call, def)) return false;
  bool ok = true;
  for (int i = 0; i < def->noperands; i++)
    if (!check_operand(call, def, i)) ok = false;
  if (!ok || !check_extents(call, def)) return false;
  return !def->check || def->check(call);
}

// A kernel that never asks which thread it is in gets more warpgroups until its accumulators fit into their registers. One
// warpgroup with many accumulators shares them with a second anyway: the epilogue takes half as long, and what one stores
// leaves under the other's products (docs/performance.md: 0.905 -> 0.933 of cuBLAS at 8192x8192x1024). Many are fewer where
// work on them reads further operands: with their addresses, ptxas spills (128x128 and a residual: 248 bytes a thread).
#include "passes/warpgroups.h"

#include "passes/hazards.h"
#include "passes/tile.h"

enum { GROUP = 128, ROWS_OF_GROUP = 64, MANY = 128, MANY_BESIDE_OPERANDS = 96, MOST_THREADS = 512 };

typedef struct {
  PassCx *cx;
  TirOpList ops;           // of the kernel
  VEC(TirValue *) values;  // accumulators
  int64_t elements;        // of all of them
  bool rows_part;          // two warpgroups would have whole rows of each
} Accumulators;

static bool is_accumulator(const Accumulators *c, const TirValue *value) {
  for (int i = 0; i < c->values.len; i++)
    if (c->values.data[i] == value) return true;
  return false;
}

static void add(Accumulators *c, TirValue *value) {
  const Type *type = &value->type;
  if (!tile_is_fragment(value) || is_accumulator(c, value)) return;
  vec_push(c->cx->scratch, &c->values, value);
  c->elements += type_elements(type);
  c->rows_part = c->rows_part && type->rank >= 2 && type->shape[type->rank - 2] % (2 * ROWS_OF_GROUP) == 0;
}

static Accumulators find_accumulators(PassCx *cx, TirKernel *kernel) {
  Accumulators c = {.cx = cx, .ops = tile_collect(cx->scratch, kernel->body), .rows_part = true};
  for (int i = 0; i < c.ops.len; i++)
    for (int a = 0; a < c.ops.data[i]->nargs; a++)
      if (tile_is(c.ops.data[i]) && tile_access(c.ops.data[i], a) == ACCUMULATES)
        add(&c, c.ops.data[i]->args[a]);
  return c;
}

// ---- what work on accumulators reads

// Which indices of the loop a value varies with, as bits.
static uintptr_t varies(const Map *known, const TirValue *value) {
  return value ? (uintptr_t)map_get(known, value) : 0;
}

static Map *follow_indices(PassCx *cx, const TirOp *parallel, TirOpList body) {
  Map *known = map_new(cx->scratch);
  for (int r = 0; r < parallel->nresults; r++)
    map_put(known, parallel->results[r], (void *)((uintptr_t)1 << r));
  for (int i = 0; i < body.len; i++) {
    uintptr_t with = 0;
    for (int a = 0; a < body.data[i]->nargs; a++) with |= varies(known, body.data[i]->args[a]);
    for (int r = 0; r < body.data[i]->nresults && with; r++)
      map_put(known, body.data[i]->results[r], (void *)with);
  }
  return known;
}

static bool touches_accumulator(const Accumulators *c, TirOpList body) {
  for (int i = 0; i < body.len; i++)
    if (tile_is_element(body.data[i]) && is_accumulator(c, body.data[i]->args[0])) return true;
  return false;
}

// Whether the loop reads, beside accumulators, an element of something for each of its rounds, or two vectors from memory.
static bool loop_reads_operands(const Accumulators *c, const TirOp *parallel) {
  TirOpList body = tile_collect(c->cx->scratch, parallel->bodies[0]);
  if (!touches_accumulator(c, body)) return false;
  const Map *known = follow_indices(c->cx, parallel, body);
  const TirValue *vector = NULL;
  uintptr_t all = ((uintptr_t)1 << parallel->nresults) - 1;
  for (int i = 0; i < body.len; i++) {
    const TirOp *op = body.data[i];
    if (op->kind != OP_load || is_accumulator(c, op->args[0])) continue;
    uintptr_t with = varies(known, op->results[0]);
    const TirValue *root = tir_root(op->args[0]);
    if (with == all) return true;
    if (!with || tile_is_fragment(root)) continue;
    if (vector && vector != root) return true;
    vector = root;
  }
  return false;
}

// Sums that begin with what is in memory.
static bool loads_accumulator(const Accumulators *c, const TirOp *op) {
  TirValue *from, *to;
  return tile_move(op, &from, &to) && is_accumulator(c, to) && !tile_is_fragment(from);
}

static bool reads_operands(const Accumulators *c) {
  for (int i = 0; i < c->ops.len; i++) {
    const TirOp *op = c->ops.data[i];
    if (loads_accumulator(c, op) || (op->kind == OP_parallel && loop_reads_operands(c, op))) return true;
  }
  return false;
}

// ---- deciding

static bool sees_threads(const TirOp *op) {
  return op->kind == OP_thread_idx || op->kind == OP_role || op->kind == OP_mbar_arrive ||
         (op->kind == OP_sync_threads && op->attrs[SYNC_count]);
}

static bool wants_second(const TirKernel *kernel, const Accumulators *c) {
  if (kernel->threads != GROUP || !c->rows_part) return false;
  if (tir_asks_for(kernel, CHOICE_warpgroups) || c->elements > GROUP * MANY) return true;
  return c->elements >= GROUP * MANY_BESIDE_OPERANDS && reads_operands(c);
}

// Why a second warpgroup that the source asks for cannot share the accumulators; NULL: it does.
static const char *cannot_share(const TirKernel *kernel, const Accumulators *c) {
  if (!tir_asks_for(kernel, CHOICE_warpgroups) || kernel->threads > GROUP) return NULL;
  if (!c->elements) return "no product has an accumulator in registers";
  if (kernel->threads < GROUP) return "the kernel has no whole warpgroup";
  return c->rows_part ? NULL : "the rows of an accumulator cannot be cut in two for warpgroups of 64 rows";
}

bool add_warpgroups(PassCx *cx, TirKernel *kernel) {
  Accumulators c = find_accumulators(cx, kernel);
  if (tir_forbids(kernel, CHOICE_warpgroups)) return true;
  for (int i = 0; i < c.ops.len; i++)
    if (sees_threads(c.ops.data[i]))
      return !tir_asks_for(kernel, CHOICE_warpgroups) ||
             pass_refuse_choice(cx, kernel, CHOICE_warpgroups, c.ops.data[i]->span,
                                "the kernel asks which thread it is in");
  int64_t most = cx->target->fragment_registers, before = kernel->threads;
  const char *why = cannot_share(kernel, &c);
  if (why) return pass_refuse_choice(cx, kernel, CHOICE_warpgroups, (Span){0, 0}, why);
  if (wants_second(kernel, &c)) kernel->threads *= 2;
  while (kernel->threads < MOST_THREADS && c.elements > kernel->threads * most) kernel->threads *= 2;
  if (kernel->threads > before)
    diag_remark(cx->ds, kernel->span,
                "kernel %s: %d threads instead of %d, which share accumulators of %lld values", kernel->name,
                kernel->threads, (int)before, (long long)c.elements);
  return true;
}

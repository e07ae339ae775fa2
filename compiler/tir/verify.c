// What every module must keep: structure (links, one definition before its uses, visibility), then op by op
// what the operands and results are (verify_op.c), then what the kernel's facts claim. Every finding is a
// broken invariant of ours, or a .tir file written by hand.
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "tir/roles.h"
#include "tir/text.h"
#include "tir/verify_internal.h"

typedef enum { UNDEFINED, VISIBLE, OUT_OF_SCOPE } Visibility;

bool verify_fail(Verifier *v, const TirOp *op, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  diag_error(v->ds, DIAG_tir_invariant, op->span, "%s: %s", op_def(op->kind)->name, text);
  return false;
}

// ---- structure

static bool check_args(Verifier *v, const TirOp *op) {
  for (int i = 0; i < op->nargs; i++) {
    const TirValue *arg = op->args[i];
    const OpDef *def = op_def(op->kind);
    if (!arg && def->group != GROUP_TILE && !(i < def->noperands && def->operands[i].optional))
      return verify_fail(v, op, "operand %d is missing", i);
    if (!arg) continue;
    if (arg->id < 0 || arg->id >= v->kernel->next_id)
      return verify_fail(v, op, "operand %d has number %d of another kernel", i, arg->id);
    if (v->visible[arg->id] == UNDEFINED)
      return verify_fail(v, op, "operand %d is used before its definition", i);
    if (v->visible[arg->id] == OUT_OF_SCOPE)
      return verify_fail(v, op, "operand %d was defined in a body that has ended", i);
  }
  return true;
}

static bool define_results(Verifier *v, const TirOp *op) {
  for (int i = 0; i < op->nresults; i++) {
    const TirValue *value = op->results[i];
    if (value->op != op || value->index != i) return verify_fail(v, op, "result %d does not point back", i);
    if (value->id < 0 || value->id >= v->kernel->next_id || v->visible[value->id] != UNDEFINED)
      return verify_fail(v, op, "result %d has number %d, which is taken or too large", i, value->id);
    v->visible[value->id] = VISIBLE;
  }
  return true;
}

static void hide_results(Verifier *v, const TirOp *op) {
  for (int i = 0; i < op->nresults; i++) v->visible[op->results[i]->id] = OUT_OF_SCOPE;
}

static bool check_counts(Verifier *v, const TirOp *op) {
  const OpDef *def = op_def(op->kind);
  bool counted_later = def->group == GROUP_TILE;  // by op_check, with the message that a user's call gets
  if (!counted_later && (op->nargs < def->noperands || (!def->variadic && op->nargs > def->noperands)))
    return verify_fail(v, op, "takes %d operands, has %d", def->noperands, op->nargs);
  int wanted = def->nresults < 0 ? op->nargs - def->noperands : def->nresults;
  bool token = def->group == GROUP_TILE && op->nresults == 1 && op->results[0]->type.kind == TYPE_TOKEN;
  if (op->nresults != wanted && !token)
    return verify_fail(v, op, "has %d results, not %d", op->nresults, wanted);
  if (op->nbodies != def->nbodies)
    return verify_fail(v, op, "has %d bodies, not %d", op->nbodies, def->nbodies);
  return true;
}

static bool check_place(Verifier *v, const TirOp *op) {
  OpGroup group = op_def(op->kind)->group;
  bool launch_only = group == GROUP_DECLARE || group == GROUP_LAUNCH;
  bool body_only = group == GROUP_CONTROL || group == GROUP_MEMORY || group == GROUP_SYNC ||
                   group == GROUP_TILE || op->kind == OP_block_idx || op->kind == OP_block_count ||
                   op->kind == OP_thread_idx;
  if (v->in_launch && body_only) return verify_fail(v, op, "cannot stand in the launch block");
  if (!v->in_launch && launch_only) return verify_fail(v, op, "must stand in the launch block");
  return true;
}

static bool check_block(Verifier *v, const TirBlock *block);

static bool check_bodies(Verifier *v, const TirOp *op) {
  for (int i = 0; i < op->nbodies; i++) {
    if (op->bodies[i]->owner != op) return verify_fail(v, op, "body %d has another owner", i);
    if (!check_block(v, op->bodies[i])) return false;
  }
  return true;
}

static bool check_op(Verifier *v, const TirOp *op) {
  if (!check_counts(v, op) || !check_place(v, op) || !check_args(v, op) || !define_results(v, op))
    return false;
  if (!verify_op(v, op)) return false;
  if (!check_bodies(v, op)) return false;
  if (op->nbodies) hide_results(v, op);
  return true;
}

// The first mistake ends a kernel: what follows it would be judged by wrong types.
static bool check_block(Verifier *v, const TirBlock *block) {
  const TirOp *prev = NULL;
  if (block->kernel != v->kernel) return false;
  for (const TirOp *op = block->first; op; prev = op, op = op->next) {
    if (op->parent != block || op->prev != prev) return verify_fail(v, op, "is not linked into its block");
    if (!check_op(v, op)) return false;
  }
  if (block->last != prev) return prev ? verify_fail(v, prev, "is not the last op of its block") : false;
  for (const TirOp *op = block->first; op && block->owner; op = op->next) hide_results(v, op);
  return true;
}

// ---- facts

static bool fact(const Verifier *v, unsigned bit) {
  return (v->kernel->facts & bit) != 0;
}

static bool check_shared_layout(Verifier *v, const TirOp *op, const Type *type, const Layout *layout) {
  if (layout->kind != LAYOUT_SHARED)
    return verify_fail(v, op, "a shared buffer has a layout of another kind");
  if (!fact(v, TIR_SMEM_PLACED)) return true;
  if (layout->offset < 0) return verify_fail(v, op, "has no offset in shared memory");
  if (layout->offset % (type->space == SPACE_BARRIER ? 8 : 16))
    return verify_fail(v, op, "lies at byte %" PRId64 ", which is not aligned", layout->offset);
  int64_t end = layout->offset + layout_shared_bytes(layout, type);
  if (end > v->kernel->shared_bytes)
    return verify_fail(v, op, "ends at byte %" PRId64 " of %" PRId64, end, v->kernel->shared_bytes);
  return true;
}

static bool visit_other_role(void *threads, TirOp *op) {
  return op->kind != OP_role || tir_thread_count(tir_active_threads(op->bodies[0])) != *(int64_t *)threads;
}

// A fragment is spread over all threads or those of a role.
static bool check_fragment_layout(Verifier *v, const TirOp *op, const Layout *layout) {
  if (layout->kind != LAYOUT_FRAGMENT) return verify_fail(v, op, "a fragment has a layout of another kind");
  int64_t threads = layout_threads(layout);
  if (threads == v->kernel->threads || !tir_walk(v->kernel->body, visit_other_role, &threads)) return true;
  return verify_fail(v, op, "is laid out over %" PRId64 " threads, the kernel has %d", threads,
                     v->kernel->threads);
}

static bool check_tmem_layout(Verifier *v, const TirOp *op, const Layout *layout) {
  if (layout->kind != LAYOUT_TMEM) return verify_fail(v, op, "a TMEM buffer has a layout of another kind");
  if (!fact(v, TIR_TMEM_PLACED)) return true;
  if (layout->column < 0) return verify_fail(v, op, "has no TMEM column");
  if (layout->column + layout->columns > v->kernel->tmem_columns)
    return verify_fail(v, op, "ends at column %d of %d", layout->column + layout->columns,
                       v->kernel->tmem_columns);
  return op->args[0] || verify_fail(v, op, "has no TMEM base");
}

static bool check_alloc(Verifier *v, const TirOp *op) {
  const Type *type = &op->results[0]->type;
  const Layout *layout = op->results[0]->layout;
  unsigned needed = type->space == SPACE_SHARED     ? TIR_LAID_OUT
                    : type->space == SPACE_FRAGMENT ? TIR_FRAGMENTS
                    : type->space == SPACE_TMEM     ? TIR_TMEM_PLACED
                                                    : TIR_SMEM_PLACED;
  if (!layout) return type->space == SPACE_LOCAL || !fact(v, needed) || verify_fail(v, op, "has no layout");
  switch (type->space) {
  case SPACE_SHARED:
  case SPACE_BARRIER:
    return check_shared_layout(v, op, type, layout);
  case SPACE_FRAGMENT:
    return check_fragment_layout(v, op, layout);
  case SPACE_TMEM:
    return check_tmem_layout(v, op, layout);
  case SPACE_GLOBAL:
  case SPACE_LOCAL:
  case SPACE_COUNT:
    break;
  }
  return verify_fail(v, op, "a buffer of this space has no layout");
}

static bool check_copy_map(Verifier *v, const TirOp *op) {
  int64_t path = op->attrs[COPY_path], map = op->attrs[COPY_map];
  bool is_tma = path == PATH_TMA_LOAD || path == PATH_TMA_STORE || path == PATH_PANELS;
  if (map < -1 || map >= v->kernel->maps.len)
    return verify_fail(v, op, "map %" PRId64 " does not exist", map);
  if (!is_tma || map >= 0 || !fact(v, TIR_LAID_OUT)) return true;
  return verify_fail(v, op, "goes through TMA without a tensor map");
}

// Slots x rows x columns of a panel, panels that the columns of the tile are whole ones of, and no panel that is none of them.
static bool check_panels(Verifier *v, const TirOp *op) {
  enum { RING = 3, RING_RANK = 3 };
  const Type *tile = &op->args[0]->type,
             *ring = op->nargs > RING && op->args[RING] ? &op->args[RING]->type : NULL;
  if (!ring) return verify_fail(v, op, "has no ring for its panels");
  if (ring->rank != RING_RANK || tile->rank != 2 || ring->shape[1] != tile->shape[0] ||
      tile->shape[1] % ring->shape[2] || ring->dtype != op->args[1]->type.dtype)
    return verify_fail(v, op, "takes a ring of slots x rows x columns, of which whole panels make the tile");
  int64_t panel = op->attrs[COPY_panel], panels = tile->shape[1] / ring->shape[2];
  if (panel < -1 || panel >= panels)
    return verify_fail(v, op, "panel %" PRId64 " of %" PRId64 " does not exist", panel, panels);
  return true;
}

static bool check_facts_of(void *context, TirOp *op) {
  Verifier *v = context;
  const OpDef *def = op_def(op->kind);
  int path = def->group == GROUP_TILE ? op_attr_index(def, "path") : -1;
  bool ok = true;
  if (path >= 0 && op->attrs[path] == PATH_NONE && fact(v, TIR_SELECTED))
    ok = verify_fail(v, op, "has no path");
  if (op->kind == OP_alloc || op->kind == OP_alloc_barrier) ok = check_alloc(v, op) && ok;
  if (path >= 0 && op_attr_index(def, "map") >= 0) ok = check_copy_map(v, op) && ok;
  if (op->kind == OP_copy && op->attrs[COPY_path] == PATH_PANELS) ok = check_panels(v, op) && ok;
  for (int i = 0; i < op->nresults; i++)
    if (op->results[i]->type.kind == TYPE_TOKEN && fact(v, TIR_SYNCED))
      ok = verify_fail(v, op, "still has a token");
  return ok;
}

// ---- kernels

static bool check_heading(Verifier *v) {
  const TirKernel *kernel = v->kernel;
  bool ok = kernel->threads >= 1 && kernel->threads <= 1024;
  for (int i = 0; i < kernel->maps.len; i++) {
    const TirMap *map = &kernel->maps.data[i];
    bool swizzle = map->swizzle == 0 || map->swizzle == 32 || map->swizzle == 64 || map->swizzle == 128;
    if (!swizzle || map->tensor->op->kind != OP_tensor) ok = false;
    for (int d = 0; d < map->tensor->type.rank; d++)
      if (map->box[d] < 1) ok = false;
  }
  for (int i = 0; i < kernel->guards.len; i++)
    if (kernel->guards.data[i].tensor->op->kind != OP_tensor) ok = false;
  if (!ok)
    diag_error(v->ds, DIAG_tir_invariant, kernel->span, "the thread count, a map or a guard of %s is wrong",
               kernel->name);
  return ok;
}

static bool verify_kernel(TirKernel *kernel, Diags *ds) {
  Verifier v = {.kernel = kernel, .ds = ds};
  v.visible = calloc((size_t)kernel->next_id + 1, 1);
  if (!v.visible) {
    diag_error(ds, DIAG_tir_invariant, kernel->span, "no memory to verify %s", kernel->name);
    return false;
  }
  v.in_launch = true;
  bool ok = check_block(&v, kernel->launch);
  v.in_launch = false;
  ok = ok && check_block(&v, kernel->body) && check_heading(&v) && tir_walk(kernel->body, check_facts_of, &v);
  if (!ok && diags_errors(ds) == 0)
    diag_error(ds, DIAG_tir_invariant, kernel->span, "a block of %s belongs to another kernel", kernel->name);
  free(v.visible);
  return ok;
}

bool tir_verify(const TirModule *module, Diags *ds) {
  bool ok = true;
  for (int i = 0; i < module->kernels.len; i++)
    if (!verify_kernel(module->kernels.data[i], ds)) ok = false;
  return ok;
}

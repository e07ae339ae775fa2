// Reads placed tile IR and says in the user's terms what became of the program. Of two variants the one with TMA is
// described; what the passes decide on the way and leave no trace of (pieces) they remark on themselves.
#include "passes/remarks.h"

#include <inttypes.h>

#include "passes/hazards.h"
#include "passes/tile.h"
#include "target/rules.h"

typedef struct {
  const Target *target;
  const TirKernel *kernel;
  Arena *scratch;
  Diags *ds;
} Remarks;

static void list_guards(const Remarks *r, TextBuf *out) {
  int count = r->kernel->guards.len;
  for (int i = 0; i < count; i++) {
    const char *separator = i == 0 ? "" : i + 1 < count ? ", " : " and ";
    textbuf_printf(out, "%s%s", separator, r->kernel->guards.data[i].tensor->op->name);
  }
}

static bool guards_are_static(const Remarks *r) {
  for (int i = 0; i < r->kernel->guards.len; i++)
    if (!type_is_static(&r->kernel->guards.data[i].tensor->type)) return false;
  return true;
}

static void on_variants(const Remarks *r) {
  TextBuf names = {.arena = r->scratch};
  list_guards(r, &names);
  if (r->kernel->variant == VARIANT_TMA)
    diag_remark(r->ds, r->kernel->span,
                "kernel %s is compiled twice: with TMA, for launches where address and strides of %s are "
                "multiples of 16 "
                "bytes and no size is 0; and with copies by threads, for the others",
                r->kernel->name, names.data);
  else if (r->kernel->guards.len)
    diag_remark(
        r->ds, r->kernel->span,
        "kernel %s is compiled once, with TMA, since %s: a launch where the address or a stride of %s is no "
        "multiple of 16 bytes is refused",
        r->kernel->name, guards_are_static(r) ? "all sizes are fixed" : "copies ask for it", names.data);
  else
    diag_remark(r->ds, r->kernel->span, "kernel %s is compiled once: it does not use TMA", r->kernel->name);
}

static void on_resources(const Remarks *r) {
  TextBuf tmem = {.arena = r->scratch};
  if (r->kernel->tmem_columns)
    textbuf_printf(&tmem, ", %d of %d TMEM columns", r->kernel->tmem_columns, r->target->tmem_columns);
  diag_remark(r->ds, r->kernel->span,
              "kernel %s: %d threads, %" PRId64 " of %" PRId64 " bytes of shared memory%s", r->kernel->name,
              r->kernel->threads, r->kernel->shared_bytes, r->target->shared_bytes,
              tmem.data ? tmem.data : "");
}

static bool between_memories(const TirValue *src, const TirValue *dst) {
  return (src->type.space == SPACE_GLOBAL && dst->type.space == SPACE_SHARED) ||
         (src->type.space == SPACE_SHARED && dst->type.space == SPACE_GLOBAL);
}

static void on_tma(const Remarks *r, const TirOp *op, const char *from, const char *to) {
  const TirMap *map = &r->kernel->maps.data[tile_attr(op, "map", 0)];
  TextBuf box = {.arena = r->scratch};
  for (int d = 0; d < map->tensor->type.rank; d++)
    textbuf_printf(&box, "%s%" PRId64, d ? "x" : "", map->box[d]);
  if (map->swizzle) textbuf_printf(&box, ", swizzled over %d bytes", map->swizzle);
  diag_remark(r->ds, op->span, "%s to %s: by TMA, boxes of %s", from, to, box.data);
}

static void on_move(const Remarks *r, const TirOp *op, TirValue *src, TirValue *dst) {
  const char *from = tir_buffer_name(src), *to = tir_buffer_name(dst);
  Path path = op_path(op);
  if (path == PATH_TMA_LOAD || path == PATH_TMA_STORE) on_tma(r, op, from, to);
  if (path != PATH_THREADS || !between_memories(src, dst)) return;
  bool said = tile_attr(op, "no_tma", false) || tir_forbids(r->kernel, CHOICE_tma);
  const char *why = said ? "the source says so" : rule_tma_obstacle(r->target, src, dst);
  diag_remark(r->ds, op->span, "%s to %s: by threads, not by TMA%s%s", from, to, why ? ": " : "",
              why ? why : "");
}

static void on_accumulator(const Remarks *r, const TirOp *op) {
  const TirValue *buffer = op->results[0];
  if (buffer->type.space != SPACE_TMEM) return;
  const Layout *layout = tir_layout(buffer);
  diag_remark(r->ds, op->span, "%s is in TMEM, in columns %d to %d", tir_buffer_name(buffer), layout->column,
              layout->column + layout->columns - 1);
}

static bool on_op(void *context, TirOp *op) {
  const Remarks *r = context;
  TirValue *src, *dst;
  if (tile_is(op) && tile_move(op, &src, &dst)) on_move(r, op, src, dst);
  if (op->kind == OP_alloc) on_accumulator(r, op);
  return true;
}

void pass_remarks(const TirModule *module, const Target *target, Arena *scratch, Diags *ds) {
  for (int i = 0; i < module->kernels.len; i++) {
    const TirKernel *kernel = module->kernels.data[i];
    if (kernel->variant == VARIANT_GENERAL || !(kernel->facts & TIR_SMEM_PLACED)) continue;
    Remarks r = {target, kernel, scratch, ds};
    on_variants(&r);
    on_resources(&r);
    tir_walk(kernel->body, on_op, &r);
  }
}

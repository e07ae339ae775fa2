// One `entry` block a kernel, every line in the order of docs/launch-info.md.
#include "driver/launch_info.h"

#include <inttypes.h>
#include <string.h>

#include "driver/launch_expr.h"
#include "tir/params.h"

enum { VERSION = 1 };

typedef struct {
  TextBuf out;
  const TirKernel *kernel;
  Diags *ds;
} Writer;

static bool write_expr(Writer *w, const TirValue *value, Span span) {
  bool atom = value->op->kind == OP_size || value->op->kind == OP_param || value->op->kind == OP_const;
  if (atom) textbuf_puts(&w->out, "(");
  if (!launch_expr_print(&w->out, value, EXPR_LISP, span, w->ds)) return false;
  if (atom) textbuf_puts(&w->out, ")");
  return true;
}

static bool write_grid(Writer *w, const TirOp *op) {
  textbuf_puts(&w->out, "grid");
  for (int i = 0; i < 3; i++) {
    textbuf_puts(&w->out, " ");
    if (i >= op->nargs)
      textbuf_puts(&w->out, "1");
    else if (!launch_expr_print(&w->out, op->args[i], EXPR_LISP, op->span, w->ds))
      return false;
  }
  textbuf_puts(&w->out, "\n");
  return true;
}

static bool write_tensor(Writer *w, const TirOp *op) {
  static const char *const access_names[] = {"read", "read", "write", "readwrite"};
  const TirValue *tensor = op->results[0];
  textbuf_printf(&w->out, "tensor %s %s %s", op->name, dtype_name(tensor->type.dtype),
                 access_names[tir_access(w->kernel, tensor)]);
  for (int i = 0; i < op->nargs; i++) {
    textbuf_puts(&w->out, " ");
    if (!write_expr(w, op->args[i], op->span)) return false;
  }
  textbuf_puts(&w->out, "\n");
  return true;
}

// One line, whatever the message holds.
static void write_message(Writer *w, const char *message) {
  for (; *message; message++) {
    unsigned char c = (unsigned char)*message;
    textbuf_add(&w->out, c < 0x20 || c == 0x7f ? " " : message, 1);
  }
}

static bool write_check(Writer *w, const TirOp *op) {
  textbuf_puts(&w->out, "check ");
  if (!write_expr(w, op->args[0], op->span)) return false;
  textbuf_puts(&w->out, " ");
  write_message(w, op->name);
  textbuf_puts(&w->out, "\n");
  return true;
}

static bool write_ops(Writer *w, OpKind kind, bool (*write)(Writer *, const TirOp *)) {
  for (const TirOp *op = w->kernel->launch->first; op; op = op->next)
    if (op->kind == kind && !write(w, op)) return false;
  return true;
}

static void write_maps(Writer *w) {
  for (int i = 0; i < w->kernel->maps.len; i++) {
    const TirMap *map = &w->kernel->maps.data[i];
    textbuf_printf(&w->out, "map %d %s box", i, map->tensor->op->name);
    for (int d = 0; d < map->tensor->type.rank; d++) textbuf_printf(&w->out, " %" PRId64, map->box[d]);
    textbuf_printf(&w->out, " swizzle %d %s\n", map->swizzle, map->store ? "store" : "load");
  }
  for (int i = 0; i < w->kernel->guards.len; i++) {
    const TirGuard *guard = &w->kernel->guards.data[i];
    textbuf_printf(&w->out, "guard %s %s\n", guard->tensor->op->name, guard->store ? "store" : "load");
  }
}

static void write_params(Writer *w) {
  TirParams params = tir_params(w->out.arena, w->kernel);
  for (int i = 0; i < params.len; i++) {
    const TirParam *param = &params.data[i];
    const char *name = param->value->op->name;
    switch (param->kind) {
    case PARAM_POINTER:
      textbuf_printf(&w->out, "param ptr %s\n", name);
      break;
    case PARAM_SIZE:
      textbuf_printf(&w->out, "param size %s\n", name);
      break;
    case PARAM_STRIDE:
      textbuf_printf(&w->out, "param stride %s %d\n", name, param->index);
      break;
    case PARAM_MAP:
      textbuf_printf(&w->out, "param map %d\n", param->index);
      break;
    case PARAM_SCALAR:
      textbuf_printf(&w->out, "param scalar %s %s\n", name, dtype_name(param->value->type.dtype));
      break;
    }
  }
}

static bool write_kernel(Writer *w, const Target *target) {
  static const char *const variants[] = {
      [VARIANT_ONLY] = "only", [VARIANT_TMA] = "tma", [VARIANT_GENERAL] = "general"};
  const TirKernel *kernel = w->kernel;
  textbuf_printf(&w->out, "entry %s\nkernel %s\nvariant %s\narch %s\nblock %d\n",
                 tir_entry_name(w->out.arena, kernel), kernel->name, variants[kernel->variant], target->name,
                 kernel->threads);
  if (!write_ops(w, OP_grid, write_grid)) return false;
  textbuf_printf(&w->out, "cluster 1 1 1\nshared %" PRId64 "\n", kernel->shared_bytes);
  if (tir_may_overlap(kernel)) textbuf_puts(&w->out, "overlap 1\n");
  if (!write_ops(w, OP_tensor, write_tensor)) return false;
  write_maps(w);
  if (!write_ops(w, OP_check, write_check)) return false;
  write_params(w);
  textbuf_puts(&w->out, "end\n");
  return true;
}

const char *launch_info(Arena *arena, const TirModule *module, const Target *target, Diags *ds) {
  Writer w = {.out = {.arena = arena}, .ds = ds};
  textbuf_printf(&w.out, "tile-launch-info %d\n", VERSION);
  for (int i = 0; i < module->kernels.len; i++) {
    w.kernel = module->kernels.data[i];
    if (!write_kernel(&w, target)) return NULL;
  }
  return w.out.data;
}

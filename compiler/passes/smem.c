// Needs    TIR_SYNCED: all shared buffers and barriers exist, with layouts.
// Does     Gives each a byte offset in the kernel's dynamic shared memory, largest alignment first so that
//          little is lost.
// Leaves   TIR_SMEM_PLACED: offsets; shared_bytes of the kernel.
// Reports  More bytes than the target has, with a table of who takes what.
//
// A swizzled tile starts on a multiple of its pattern (1024 bytes for 128B: the XOR works on absolute
// addresses, PTX ISA 5.5.7), anything that TMA may touch on 128, a barrier on 8. Nothing overlaps.
#include "passes/pass.h"

enum { BARRIER_BYTES = 8, MAX_ALIGNMENT = 1024 };

typedef struct {
  PassCx *cx;
  VEC(TirOp *) buffers;
} Found;

static bool find_shared(void *context, TirOp *op) {
  Found *found = context;
  bool buffer = op->kind == OP_alloc && op->results[0]->type.space == SPACE_SHARED;
  if (buffer || op->kind == OP_alloc_barrier) vec_push(found->cx->scratch, &found->buffers, op);
  return true;
}

static int64_t bytes_of(const TirOp *op) {
  const TirValue *value = op->results[0];
  if (op->kind == OP_alloc_barrier) return value->type.shape[0] * BARRIER_BYTES;
  return layout_shared_bytes(value->layout, &value->type);
}

static int alignment_of(const TirOp *op) {
  return op->kind == OP_alloc_barrier ? BARRIER_BYTES : layout_shared_alignment(op->results[0]->layout);
}

// Largest first; what is less than a hundredth of the target's memory is one line.
static void note_largest(PassCx *cx, const Found *found) {
  int64_t small = 0, above = INT64_MAX, next;
  for (; above > cx->target->shared_bytes / 100; above = next) {
    next = 0;
    for (int i = 0; i < found->buffers.len; i++) {
      const TirOp *op = found->buffers.data[i];
      int64_t bytes = bytes_of(op);
      if (bytes == above)
        diag_note(cx->ds, op->span, "%s takes %lld bytes", op->name ? op->name : "a barrier",
                  (long long)bytes);
      if (bytes < above && bytes > next) next = bytes;
    }
  }
  for (int i = 0; i < found->buffers.len; i++)
    if (bytes_of(found->buffers.data[i]) <= above) small += bytes_of(found->buffers.data[i]);
  if (small) diag_note(cx->ds, (Span){0, 0}, "barriers and small buffers take %lld bytes", (long long)small);
}

static void report_overflow(PassCx *cx, const TirKernel *kernel, const Found *found) {
  TirOp *last = found->buffers.data[found->buffers.len - 1];
  for (int i = 0; i < found->buffers.len; i++)
    if (bytes_of(found->buffers.data[i]) > bytes_of(last)) last = found->buffers.data[i];
  diag_error(cx->ds, DIAG_shared_overflow, last->span,
             "shared buffers need %lld bytes, a block on %s has %lld", (long long)kernel->shared_bytes,
             cx->target->name, (long long)cx->target->shared_bytes);
  note_largest(cx, found);
  diag_hint(cx->ds, "smaller tiles or fewer of them need less");
}

bool pass_smem(PassCx *cx, TirKernel *kernel) {
  Found found = {.cx = cx};
  tir_walk(kernel->body, find_shared, &found);
  int64_t offset = 0;
  for (int alignment = MAX_ALIGNMENT; alignment >= 1; alignment /= 2) {
    for (int i = 0; i < found.buffers.len; i++) {
      TirOp *op = found.buffers.data[i];
      if (alignment_of(op) != alignment) continue;
      TirValue *value = op->results[0];
      if (!value->layout) {
        value->layout = ARENA_NEW(cx->module->arena, Layout);
        value->layout->kind = LAYOUT_SHARED;
      }
      offset = (offset + alignment - 1) / alignment * alignment;
      value->layout->offset = offset;
      int64_t bytes = bytes_of(op);
      offset = bytes > INT64_MAX - MAX_ALIGNMENT - offset ? INT64_MAX - MAX_ALIGNMENT : offset + bytes;
    }
  }
  kernel->shared_bytes = offset;
  if (offset <= cx->target->shared_bytes) return true;
  report_overflow(cx, kernel, &found);
  return false;
}

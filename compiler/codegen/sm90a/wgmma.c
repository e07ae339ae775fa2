// An asm call returns a struct of its outputs; outputs come first in its constraints, then inputs, then clobbers. Calls are
// convergent, since all lanes run them together, and clobber memory, since they read shared memory or wait for reads of it.
#include "codegen/sm90a/wgmma.h"

#include <string.h>

#include "base/text.h"

enum { MAX_OPERANDS = 300 };

typedef struct {
  TextBuf text, constraints;
  LLVMTypeRef types[MAX_OPERANDS];
  LLVMValueRef args[MAX_OPERANDS];
  int nargs;
} Asm;

static Asm begin(Cg *cg) {
  return (Asm){.text = {.arena = cg->arena}, .constraints = {.arena = cg->arena}};
}

static void add_input(Asm *a, LLVMValueRef value, const char *constraint) {
  textbuf_printf(&a->constraints, "%s%s", a->constraints.len ? "," : "", constraint);
  a->types[a->nargs] = LLVMTypeOf(value);
  a->args[a->nargs++] = value;
}

static void add_tied(Cg *cg, Asm *a, WgmmaRegisters d) {
  const char *output = d.type == cg->f32 ? "=f" : "=r";
  for (int i = 0; i < d.count; i++) textbuf_printf(&a->constraints, "%s%s", i ? "," : "", output);
  for (int i = 0; i < d.count; i++) {
    char number[16];
    snprintf(number, sizeof number, "%d", i);
    add_input(a, d.values[i], number);
  }
}

static void add_list(Asm *a, int first, int count) {
  textbuf_printf(&a->text, "{");
  for (int i = 0; i < count; i++) textbuf_printf(&a->text, "%s$%d", i ? ", " : "", first + i);
  textbuf_printf(&a->text, "}");
}

static void mark_convergent(Cg *cg, LLVMValueRef call) {
  static const char *const names[] = {"convergent", "nounwind"};
  for (int i = 0; i < 2; i++) {
    unsigned kind = LLVMGetEnumAttributeKindForName(names[i], strlen(names[i]));
    LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                             LLVMCreateEnumAttribute(cg->context, kind, 0));
  }
}

static void call(Cg *cg, Asm *a, WgmmaRegisters d) {
  textbuf_printf(&a->constraints, "%s~{memory}", a->constraints.len ? "," : "");
  LLVMTypeRef outputs[MAX_OPERANDS];
  for (int i = 0; i < d.count; i++) outputs[i] = d.type;
  LLVMTypeRef result = d.count == 0 ? cg->none
                       : d.count == 1
                           ? d.type
                           : LLVMStructTypeInContext(cg->context, outputs, (unsigned)d.count, false);
  LLVMTypeRef type = LLVMFunctionType(result, a->types, (unsigned)a->nargs, false);
  LLVMValueRef code = LLVMGetInlineAsm(type, a->text.data, a->text.len, a->constraints.data,
                                       a->constraints.len, true, false, LLVMInlineAsmDialectATT, false);
  LLVMValueRef out = LLVMBuildCall2(cg->builder, type, code, a->args, (unsigned)a->nargs, "");
  mark_convergent(cg, out);
  for (int i = 0; i < d.count; i++)
    d.values[i] = d.count == 1 ? out : LLVMBuildExtractValue(cg->builder, out, (unsigned)i, "");
}

void sm90a_wgmma(Cg *cg, const Wgmma *w, WgmmaRegisters d) {
  Asm a = begin(cg);
  add_tied(cg, &a, d);
  int first = 2 * d.count;  // tied inputs are numbered too
  for (int i = 0; i < w->a_count; i++) add_input(&a, w->a[i], w->a_count == 1 ? "l" : "r");
  add_input(&a, w->b, "l");
  add_input(&a, LLVMBuildZExt(cg->builder, w->accumulate, cg->i32, ""), "r");
  textbuf_printf(&a.text, "{ .reg .pred p; setp.ne.b32 p, $%d, 0; wgmma.mma_async.sync.aligned.%s ",
                 first + w->a_count + 1, w->shape);
  add_list(&a, 0, d.count);
  textbuf_printf(&a.text, ", ");
  if (w->a_count == 1)
    textbuf_printf(&a.text, "$%d", first);
  else
    add_list(&a, first, w->a_count);
  textbuf_printf(&a.text, ", $%d, p%s; }", first + w->a_count, w->tail);
  call(cg, &a, d);
}

void sm90a_wgmma_fence(Cg *cg, WgmmaRegisters registers) {
  Asm a = begin(cg);
  add_tied(cg, &a, registers);
  textbuf_printf(&a.text, "wgmma.fence.sync.aligned;");
  call(cg, &a, registers);
}

void sm90a_wgmma_pin(Cg *cg, WgmmaRegisters registers) {
  Asm a = begin(cg);
  add_tied(cg, &a, registers);
  textbuf_printf(&a.text, "%s", "");
  call(cg, &a, registers);
}

void sm90a_wgmma_wait(Cg *cg, int pending, WgmmaRegisters d) {
  Asm a = begin(cg);
  textbuf_printf(&a.text, "wgmma.wait_group.sync.aligned %d;", pending);
  call(cg, &a, (WgmmaRegisters){.type = d.type});
  sm90a_wgmma_pin(cg, d);
}

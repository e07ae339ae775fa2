// LLVM IR to PTX: the target machine, the one pass pipeline, the assembly printer.
//
// The pipeline is the same for every -O (functions of extreme length aside) and much shorter than LLVM's own:
// default<O2> deletes one of two equal MMAs, unrolls loops around them, and takes several times as long (rules
// L2). Tile passes have done what is worth doing.
#include "codegen/cg.h"

#include <string.h>

#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>

static const char triple[] = "nvptx64-nvidia-cuda";
static const char pipeline[] =
    "function(sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm),gvn,"
    "instcombine<no-verify-fixpoint>,simplifycfg,adce)";

// For functions of tens of thousands of instructions: instcombine looks at every branch that tells something about
// a value, so that its time is quadratic in guarded accesses (8000 of them take a minute).
static const char short_pipeline[] = "function(sroa,early-cse,simplifycfg,adce)";

enum {
  MAX_COMBINED = 50000,    // instructions of a function that takes the whole pipeline
  MAX_INSTRUCTIONS = 8000  // of one that LLVM's back end may optimise, after the pipeline
};

// LLVM's default handler would exit the process.
static void on_diagnostic(LLVMDiagnosticInfoRef info, void *context) {
  Cg *cg = context;
  if (LLVMGetDiagInfoSeverity(info) != LLVMDSError) return;
  char *text = LLVMGetDiagInfoDescription(info);
  Span nowhere = {0, 0};
  diag_error(cg->ds, DIAG_ptxas_refused, nowhere, "LLVM rejects the code generated for %s", cg->target->name);
  diag_note(cg->ds, nowhere, "LLVM says: %s", text);
  LLVMDisposeMessage(text);
  cg->failed = true;
}

bool cg_machine(Cg *cg) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  LLVMContextSetDiagnosticHandler(cg->context, on_diagnostic, cg);
  LLVMTargetRef nvptx = NULL;
  char *text = NULL;
  if (LLVMGetTargetFromTriple(triple, &nvptx, &text)) {
    Span nowhere = {0, 0};
    diag_error(cg->ds, DIAG_ptxas_refused, nowhere, "this LLVM was built without its NVPTX target");
    diag_note(cg->ds, nowhere, "LLVM says: %s", text);
    LLVMDisposeMessage(text);
    return false;
  }
  cg->machine = LLVMCreateTargetMachine(nvptx, triple, cg->target->llvm_cpu, cg->target->llvm_features,
                                        LLVMCodeGenLevelDefault, LLVMRelocDefault, LLVMCodeModelDefault);
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(cg->machine);
  LLVMSetTarget(cg->module, triple);
  LLVMSetModuleDataLayout(cg->module, layout);
  LLVMDisposeTargetData(layout);
  return true;
}

bool cg_verify(Cg *cg) {
  char *text = NULL;
  bool broken = LLVMVerifyModule(cg->module, LLVMReturnStatusAction, &text);
  if (broken) BUG("the LLVM module is broken: %s", text);
  LLVMDisposeMessage(text);
  return !broken;
}

static void add_flag(Cg *cg, LLVMValueRef function, const char *name) {
  unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
  if (!kind) BUG("LLVM knows no attribute %s", name);
  LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                          LLVMCreateEnumAttribute(cg->context, kind, 0));
}

static int64_t count_instructions(LLVMValueRef function) {
  int64_t count = 0;
  for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b))
    for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) count++;
  return count;
}

static int64_t longest_function(Cg *cg) {
  int64_t longest = 0;
  for (LLVMValueRef f = LLVMGetFirstFunction(cg->module); f; f = LLVMGetNextFunction(f)) {
    int64_t count = count_instructions(f);
    if (count > longest) longest = count;
  }
  return longest;
}

// LLVM's back end looks at every pair of addresses in straight code ("straight line strength reduction"):
// 2000 guarded accesses take half a minute. Functions that long are printed without its optimisations; ptxas
// does them again.
static void spare_long_functions(Cg *cg) {
  for (LLVMValueRef f = LLVMGetFirstFunction(cg->module); f; f = LLVMGetNextFunction(f)) {
    if (count_instructions(f) <= MAX_INSTRUCTIONS) continue;
    add_flag(cg, f, "optnone");
    add_flag(cg, f, "noinline");
  }
}

static bool optimise(Cg *cg) {
  if (cg->optimised) return true;
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  const char *passes = longest_function(cg) > MAX_COMBINED ? short_pipeline : pipeline;
  LLVMErrorRef error = LLVMRunPasses(cg->module, passes, cg->machine, options);
  LLVMDisposePassBuilderOptions(options);
  if (error) BUG("LLVM does not know the pass pipeline: %s", LLVMGetErrorMessage(error));
  spare_long_functions(cg);
  cg->optimised = true;
  return !cg->failed;
}

const char *cg_llvm_text(CgModule *cg, Arena *arena) {
  char *text = LLVMPrintModuleToString(cg->module);
  const char *copy = text_copy(arena, text, strlen(text));
  LLVMDisposeMessage(text);
  return copy;
}

const char *cg_ptx_text(CgModule *cg, Arena *arena, Diags *ds) {
  cg->ds = ds;
  if (!optimise(cg)) return NULL;
  LLVMMemoryBufferRef buffer = NULL;
  char *text = NULL;
  if (LLVMTargetMachineEmitToMemoryBuffer(cg->machine, cg->module, LLVMAssemblyFile, &text, &buffer)) {
    Span nowhere = {0, 0};
    diag_error(ds, DIAG_ptxas_refused, nowhere, "LLVM cannot print PTX for %s", cg->target->name);
    diag_note(ds, nowhere, "LLVM says: %s", text);
    LLVMDisposeMessage(text);
    return NULL;
  }
  const char *ptx = text_copy(arena, LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
  LLVMDisposeMemoryBuffer(buffer);
  return cg->failed ? NULL : ptx;
}

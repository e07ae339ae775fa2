// Line tables: one file, one subprogram a kernel, a location an op. The PTX then carries .loc lines, which
// ptxas -lineinfo turns into the cubin's line table and the emulator quotes in its findings. No types and no
// variables.
#include "codegen/cg.h"

#include <string.h>

// The C API's enum ends before it: only .file and .loc, no DWARF sections.
static const LLVMDWARFEmissionKind line_directives_only = (LLVMDWARFEmissionKind)3;

static void add_flag(Cg *cg, const char *name, unsigned number) {
  LLVMMetadataRef value = LLVMValueAsMetadata(LLVMConstInt(cg->i32, number, false));
  LLVMAddModuleFlag(cg->module, LLVMModuleFlagBehaviorWarning, name, strlen(name), value);
}

void cg_debug_begin(Cg *cg) {
  if (!cg->source) return;
  add_flag(cg, "Debug Info Version", LLVMDebugMetadataVersion());
  add_flag(cg, "Dwarf Version", 2);
  cg->di = LLVMCreateDIBuilder(cg->module);
  const char *path = cg->source->path ? cg->source->path : "";
  const char *slash = strrchr(path, '/');
  const char *name = slash ? slash + 1 : path;
  size_t folder = slash ? (size_t)(slash - path) : 0;
  cg->di_file = LLVMDIBuilderCreateFile(cg->di, name, strlen(name), path, folder);
  cg->di_unit =
      LLVMDIBuilderCreateCompileUnit(cg->di, LLVMDWARFSourceLanguageC, cg->di_file, "tilec", 5, true, "", 0,
                                     0, "", 0, line_directives_only, 0, false, false, "", 0, "", 0);
}

static unsigned line_of(Cg *cg, Span span, unsigned *column) {
  if (span.begin == 0 && span.end == 0) {
    *column = 0;
    return 0;
  }
  Place place = source_place(cg->source, span.begin);
  *column = (unsigned)place.column;
  return (unsigned)place.line;
}

void cg_debug_kernel(Cg *cg, const TirKernel *kernel) {
  if (!cg->di) return;
  unsigned column = 0, line = line_of(cg, kernel->span, &column);
  LLVMMetadataRef type = LLVMDIBuilderCreateSubroutineType(cg->di, cg->di_file, NULL, 0, LLVMDIFlagZero);
  size_t length = 0;
  const char *name = LLVMGetValueName2(cg->function, &length);
  cg->di_scope = LLVMDIBuilderCreateFunction(cg->di, cg->di_file, name, length, name, length, cg->di_file,
                                             line, type, false, true, line, LLVMDIFlagZero, true);
  LLVMSetSubprogram(cg->function, cg->di_scope);
  cg_debug_location(cg, kernel->span);
}

void cg_debug_location(Cg *cg, Span span) {
  if (!cg->di) return;
  unsigned column = 0, line = line_of(cg, span, &column);
  LLVMMetadataRef location = LLVMDIBuilderCreateDebugLocation(cg->context, line, column, cg->di_scope, NULL);
  LLVMSetCurrentDebugLocation2(cg->builder, location);
}

void cg_debug_end(Cg *cg) {
  if (!cg->di) return;
  LLVMDIBuilderFinalize(cg->di);
  LLVMDisposeDIBuilder(cg->di);
  cg->di = NULL;
}

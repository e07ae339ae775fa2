// Tile IR -> LLVM IR -> PTX. The only room that includes llvm-c/; this header does not.
#ifndef TILEC_CODEGEN_CODEGEN_H
#define TILEC_CODEGEN_CODEGEN_H

#include "base/diag.h"
#include "target/target.h"
#include "tir/tir.h"

typedef struct CgModule CgModule;

// Builds and verifies the LLVM module. `launch_info` becomes the constant __tile_launch_info. NULL: reported.
CgModule *cg_module(const TirModule *module, const Target *target, const Source *source,
                    const char *launch_info, Diags *ds);
// LLVM IR text as it stands: before cg_ptx_text not optimised yet, after it optimised. PTX text. Both are
// allocated in the arena; NULL: reported.
const char *cg_llvm_text(CgModule *cg, Arena *arena);
const char *cg_ptx_text(CgModule *cg, Arena *arena, Diags *ds);
void cg_free(CgModule *cg);

#endif

// Elaboration: AST -> tile IR, by running the kernel function at compile time (docs/language.md).
#ifndef TILEC_ELAB_ELAB_H
#define TILEC_ELAB_ELAB_H

#include "base/diag.h"
#include "syntax/ast.h"
#include "tir/tir.h"

typedef struct {
  const char *name, *value;  // -D NAME=VALUE; the value is a Python literal or a dtype name
  const char *place;         // of a tuning file that sets it, "FILE:3:9"; NULL: the command line does
} ElabDefine;

typedef struct {
  const ElabDefine *defines;
  int ndefines;
  const char *kernel;  // outermost kernel function to compile; NULL: all kernels of the file
} ElabOptions;

// NULL when anything was wrong; everything is reported in ds.
TirModule *elaborate(Arena *arena, Interner *names, const Module *ast, const ElabOptions *options, Diags *ds);

#endif

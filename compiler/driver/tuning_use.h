// --tuning FILE: the settings of the entry that fits become part of the command line.
#ifndef TILEC_DRIVER_TUNING_USE_H
#define TILEC_DRIVER_TUNING_USE_H

#include "driver/options.h"
#include "syntax/ast.h"

// Adds what the file says to `options`, for the kernel that they or the program name; what the command line says itself
// stays. *file_ds gets what is to be said about the file, at its lines. *environment: the file cannot be read. False:
// reported in *file_ds.
bool tuning_use(Arena *arena, const Module *ast, Options *options, Diags **file_ds, bool *environment);

#endif

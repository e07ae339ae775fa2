// The compiler as a function of its options: the pipeline, one line a stage.
#ifndef TILEC_DRIVER_COMPILE_H
#define TILEC_DRIVER_COMPILE_H

#include <stdio.h>

#include "driver/options.h"

enum { EXIT_FINE = 0, EXIT_SOURCE = 1, EXIT_ENVIRONMENT = 2 };

// Compiles, writes the output that the options ask for, and prints diagnostics to `messages`. Returns an exit
// status; on any but EXIT_FINE no output file was touched. Running out of memory is EXIT_ENVIRONMENT.
int compile(Arena *arena, const Options *options, FILE *messages);

#endif
